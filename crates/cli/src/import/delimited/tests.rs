use std::io::{self, BufReader, Cursor, Read};

use proptest::prelude::*;

use super::*;

/// Gives this many bytes at a time, and nothing at every second call.
struct Hesitant {
    text: Cursor<Vec<u8>>,
    bytes: usize,
    asked: usize,
}

impl Read for Hesitant {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.asked += 1;
        if self.asked.is_multiple_of(2) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let len = buffer.len().min(self.bytes);
        self.text.read(&mut buffer[..len])
    }
}

/// A record: its line, its kind, and its fields.
type Told = (u64, Found, Vec<String>);

fn read_by(text: &str, bytes: usize, bytes_max: usize) -> Vec<Told> {
    let hesitant = Hesitant { text: Cursor::new(text.as_bytes().to_vec()), bytes, asked: 0 };
    told_by(Records::new(Box::new(BufReader::with_capacity(64, hesitant)), Dialect::of(b','), bytes_max))
}

fn told_by(mut records: Records) -> Vec<Told> {
    let mut told = Vec::new();
    loop {
        match records.advance() {
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            Ok(Found::End) => return told,
            Ok(found) => told.push(told_of(&records, found)),
        }
    }
}

fn told_of(records: &Records, found: Found) -> Told {
    let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
    (records.record_line, found, records.fields().map(text).collect())
}

fn read(text: &str) -> Vec<Told> {
    read_by(text, 64, 1 << 20)
}

fn row(line: u64, fields: &[&str]) -> Told {
    (line, Found::Record, fields.iter().map(|&field| field.to_owned()).collect())
}

fn open_quote(line: u64, fields: &[&str]) -> Told {
    (line, Found::OpenQuote, fields.iter().map(|&field| field.to_owned()).collect())
}

#[test]
fn lines_that_begin_with_a_sign_are_passed_over() {
    let text = "# a \"b\n\n#c,d\r\nk,#n\n \"#\",1\n\"x\n#y\",2\n#\n3,4\n# no end";
    let fields =
        [row(4, &["k", "#n"]), row(5, &[" \"#\"", "1"]), row(6, &["x\n#y", "2"]), row(9, &["3", "4"])];
    for bytes in [1, 7, 64] {
        let hesitant = Hesitant { text: Cursor::new(text.as_bytes().to_vec()), bytes, asked: 0 };
        let dialect = Dialect { comment: Some(b'#'), ..Dialect::of(b',') };
        let reader = Box::new(BufReader::with_capacity(64, hesitant));
        assert_eq!(told_by(Records::new(reader, dialect, 1 << 20)), fields);
    }
}

#[test]
fn a_quote_around_rows_is_a_stray_one() {
    let read_with = |text: &str, is_multiline: bool, bytes: usize| {
        let hesitant = Hesitant { text: Cursor::new(text.as_bytes().to_vec()), bytes, asked: 0 };
        let dialect = Dialect { is_multiline, ..Dialect::of(b',') };
        let reader = Box::new(BufReader::with_capacity(64, hesitant));
        told_by(Records::new(reader, dialect, 1 << 20).with_width(3))
    };
    let rows = "a,,\"1\nb,,1\nc,,1\nd,,1\ne,,1\"\nf,,1\n";
    let opening = vec!["a".to_owned(), String::new(), "\"1".to_owned()];
    let stray = (1, Found::StrayQuote { lines: 4 }, opening);
    let text = "a,,\"1\nb,,1\nc 1\nd,,1\ne,,1\"\nf,,1\n";
    let (last, table) =
        ("a,,\"1\nb,,1\nc,,1\nd,,1\ne\"\nf,,1\n", "a,,\"k,,1\nb,,1\nc,,1\nd,,1\ne,,1\"\nf,,1\n");
    for bytes in [1, 7, 64] {
        let read = read_with(rows, false, bytes);
        assert_eq!(read[0], stray);
        assert_eq!(read[1..3], [row(2, &["b", "", "1"]), row(3, &["c", "", "1"])]);
        assert_eq!(read[4..], [row(5, &["e", "", "1\""]), row(6, &["f", "", "1"])]);
        assert_eq!(read_with(rows, true, bytes)[0], row(1, &["a", "", "1\nb,,1\nc,,1\nd,,1\ne,,1"]));
        assert_eq!(read_with(text, false, bytes)[0], row(1, &["a", "", "1\nb,,1\nc 1\nd,,1\ne,,1"]));
        assert_eq!(read_with(last, false, bytes).len(), 2, "a text that ends otherwise");
        assert_eq!(read_with(table, false, bytes).len(), 2, "a table in a field");
        let few = "a,,\"1\nb,,1\nc,,1\nd,,1\"\nf,,1\n";
        assert_eq!(read_with(few, false, bytes).len(), 2, "{few}");
    }
}

/// One delimiter is in many a line of text: code behind a tab, a letter with a comma in each line.
#[test]
fn lines_of_two_fields_are_rows_only_if_they_are_many_and_have_both() {
    let records_of = |line: &str, lines: usize| {
        let text = format!("a,\"1\n{}z,1\"\n", line.repeat(lines));
        told_by(
            Records::new(Box::new(Cursor::new(text.into_bytes())), Dialect::of(b','), 1 << 20).with_width(2),
        )
        .len()
    };
    assert_eq!(records_of("b,1\n", 50), 52);
    assert_eq!(records_of("b,1\n", 49), 1);
    assert_eq!(records_of(",code\n", 100), 1);
    assert_eq!(records_of("statement,\n", 100), 1);
}

#[test]
fn quotes_may_be_others_or_none() {
    let text = "'a,b','it''s',\"x\"\n\"y,'z\n',\"\n";
    let read_with = |quote: Option<u8>, bytes: usize| {
        let hesitant = Hesitant { text: Cursor::new(text.as_bytes().to_vec()), bytes, asked: 0 };
        let dialect = Dialect { quote, ..Dialect::of(b',') };
        told_by(Records::new(Box::new(BufReader::with_capacity(64, hesitant)), dialect, 1 << 20))
    };
    for bytes in [1, 64] {
        let single = read_with(Some(b'\''), bytes);
        assert_eq!(single[0], row(1, &["a,b", "it's", "\"x\""]));
        assert_eq!(single[1], row(2, &["\"y", "z\n", "\""]));
        let none = read_with(None, bytes);
        assert_eq!(none[0], row(1, &["'a", "b'", "'it''s'", "\"x\""]));
        assert_eq!(none[1..], [row(2, &["\"y", "'z"]), row(3, &["'", "\""])]);
    }
}

/// The first field of many lines of each record.
fn spans(text: &str) -> Vec<Option<(u64, u64)>> {
    let mut records =
        Records::new(Box::new(Cursor::new(text.as_bytes().to_vec())), Dialect::of(b','), 1 << 20);
    let mut spans = Vec::new();
    while records.advance().unwrap() != Found::End {
        spans.push(records.span.map(|span| (span.line, span.lines)));
    }
    spans
}

#[test]
fn a_field_of_many_lines_is_noted_where_it_begins() {
    assert_eq!(spans("a,b\n\"1\n2\n3\n4\",x\n"), [None, None], "four lines are an address");
    assert_eq!(spans("a,\"1\n2\n3\n4\n5\"\nb,c\n"), [Some((1, 5)), None]);
    let stray = "k,\"1\n2\",\"3\n4\n5\n6\n7\n8\",\"9\n1\n1\n1\n1\"\n";
    assert_eq!(spans(&format!("x,y\n{stray}")), [None, Some((3, 6))], "the first of two");
}

/// Two stray quotes soon after each other take the rows between them into a field.
#[test]
fn a_field_of_few_lines_is_noted_if_they_are_like_rows() {
    let spans_of = |width: usize, text: &str| {
        let text = Box::new(Cursor::new(text.as_bytes().to_vec()));
        let mut records = Records::new(text, Dialect::of(b','), 1 << 20).with_width(width);
        let mut spans = Vec::new();
        while records.advance().unwrap() != Found::End {
            spans.push(records.span.map(|span| (span.line, span.lines, span.is_of_rows)));
        }
        spans
    };
    assert_eq!(spans_of(3, "1,\"x,c\n3,y,d\n4,z\",e\n5,q,f\n"), [Some((1, 3, true)), None]);
    assert_eq!(spans_of(3, "1,x,\"c\n3,y,d\"\n5,q,f\n"), [Some((1, 2, true)), None]);
    assert_eq!(spans_of(2, "1,\"c\n3,y\"\n"), [Some((1, 2, true))]);
    assert_eq!(spans_of(2, "1,\"Hello\nBob, how are you?\"\n"), [None], "a text has blanks");
    assert_eq!(spans_of(3, "1,x,\"Main Street 1\nBerlin, DE\"\n"), [None], "no row has two fields");
    assert_eq!(spans_of(3, "1,x,\"c\nno row\n3,y,d\"\n"), [None]);
}

#[test]
fn lines_end_in_three_ways_and_empty_ones_are_no_records() {
    let rows = [row(1, &["a", "b"]), row(3, &["c", ""]), row(4, &["d"])];
    assert_eq!(read("\u{feff}a,b\n\nc,\nd"), rows);
    assert_eq!(read("a,b\r\n\r\nc,\r\nd\r\n"), rows);
    assert_eq!(read("a,b\r\rc,\rd\r"), rows);
    assert_eq!(read(""), []);
}

#[test]
fn quotes_hold_delimiters_lines_and_quotes() {
    let text = "\"a,\"\"b\"\"\",\"c\nd\" ,e\"f\n\"g\"h,\"\"\n";
    assert_eq!(read(text), [row(1, &["a,\"b\"", "c\nd ", "e\"f"]), torn(3, (0, false), &["\"g\"h", ""])]);
}

fn torn(line: u64, (field, is_escaped): (usize, bool), fields: &[&str]) -> Told {
    let fields = fields.iter().map(|&field| field.to_owned()).collect();
    (line, Found::Torn { field, is_escaped }, fields)
}

/// What is read where a backslash escapes quotes, at once and byte by byte.
fn read_escaped(text: &str) -> Vec<Told> {
    let dialect = Dialect { escape: Some(b'\\'), ..Dialect::of(b',') };
    let at_once = told_by(Records::of_text(text.as_bytes().to_vec(), true, dialect, 1 << 20));
    let hesitant = Hesitant { text: Cursor::new(text.as_bytes().to_vec()), bytes: 1, asked: 0 };
    let reader = Box::new(BufReader::with_capacity(64, hesitant));
    assert_eq!(at_once, told_by(Records::new(reader, dialect, 1 << 20)), "{text:?}");
    at_once
}

#[test]
fn a_sign_escapes_quotes_and_itself_in_quotes() {
    // Before other bytes it stands for itself, and so it does outside of quotes, which may be
    // doubled, too.
    for (text, fields) in [
        (r#""a\"b","c\\","\n\,d""#, [r#"a"b"#, r"c\", r"\n\,d"]),
        (r#""x""y",\"z,a\\b"#, [r#"x"y"#, r#"\"z"#, r"a\\b"]),
        (r#""\"","\\","\\\"""#, [r#"""#, r"\", r#"\""#]),
        (r#""","","\a\\\\""#, ["", "", r"\a\\"]),
    ] {
        assert_eq!(read_escaped(&format!("{text}\n")), [row(1, &fields)]);
        assert_eq!(read_escaped(text), [row(1, &fields)]);
    }
    assert_eq!(read_escaped("\"q\\\"\nr\",1\n2,3\n"), [row(1, &["q\"\nr", "1"]), row(3, &["2", "3"])]);
    assert_eq!(read_escaped("1,\"x\\"), [open_quote(1, &["1", "\"x\\"])]);
    assert_eq!(read_escaped("1,\"x\\\"\n2,y\n")[0], open_quote(1, &["1", "\"x\\\""]));
}

#[test]
fn text_behind_a_closing_quote_is_seen() {
    let text = "1,\"a\\\"b\",x\n2,\"y\" ,a\"b\n3,\"c\"d,\"e\nf\"\n4,5,6\n";
    let wanted = [
        torn(1, (1, true), &["1", "\"a\\\"b\"", "x"]),
        row(2, &["2", "y ", "a\"b"]),
        torn(3, (1, false), &["3", "\"c\"d", "e\nf"]),
        row(5, &["4", "5", "6"]),
    ];
    assert_eq!(read(text), wanted);
    assert_eq!(read_by(text, 1, 1 << 20), wanted);
}

#[test]
fn an_unclosed_quote_is_reported_where_it_opens() {
    // At the end of the text; in the middle of it, where the next quote opens a field; after
    // well-quoted lines.
    assert_eq!(read("1,\"x\n2,y"), [open_quote(1, &["1", "\"x"]), row(2, &["2", "y"])]);
    let text = "1,\"x\n2,y\n3,\"z\"\n4,w\n";
    let good = [row(2, &["2", "y"]), row(3, &["3", "z"]), row(4, &["4", "w"])];
    assert_eq!(read(text)[0], open_quote(1, &["1", "\"x"]));
    assert_eq!(read(text)[1..], good);
    let text = "0,\"a\nb\"\n1,\"x\ny\",\"z\n5,6\n";
    assert_eq!(
        read(text),
        [row(1, &["0", "a\nb"]), open_quote(4, &["1", "x\ny", "\"z"]), row(5, &["5", "6"])]
    );
}

#[test]
fn what_is_too_long_is_passed_over() {
    let long = "x".repeat(1000);
    let read = |text: &str| read_by(text, 64, 200);
    assert_eq!(read(&format!("{long},1\n2\n"))[1..], [row(2, &["2"])]);
    assert_eq!(read(&format!("{long},1\n2\n"))[0].1, Found::TooLong);
    let quoted = read(&format!("\"{long}\n{long}\n2\n"));
    let kinds: Vec<_> = quoted.iter().map(|(line, found, _)| (*line, *found)).collect();
    assert_eq!(kinds, [(1, Found::OpenQuote), (2, Found::TooLong), (3, Found::Record)]);
}

fn field() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-c0-9 ]{0,4}", 1 => "[a-c,\"\n\r ]{0,6}"]
}

proptest! {
    /// Everything that a writer of such files writes is read back, in pieces of any size.
    #[test]
    fn what_is_written_is_read(
        rows in prop::collection::vec(prop::collection::vec(field(), 1..4), 0..8),
        bytes in 1usize..40,
    ) {
        let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
        rows.iter().for_each(|row| writer.write_record(row).unwrap());
        let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
        let read: Vec<_> = read_by(&text, bytes, 1 << 20).into_iter().map(|(_, _, fields)| fields).collect();
        prop_assert_eq!(read, rows);
    }

    /// A text that is here as a whole, where most records are found at once, is read as one that
    /// comes byte by byte.
    #[test]
    fn both_ways_give_the_same_records(text in "[ab,,\"\"\n\r ]{0,200}") {
        let at_once = told_by(Records::of_text(text.clone().into_bytes(), true, Dialect::of(b','), 1 << 20));
        prop_assert_eq!(at_once, read_by(&text, 1, 1 << 20));
    }

    #[test]
    fn both_ways_give_the_same_escaped_records(text in "[ab,,\"\"\\\\\\\\\n ]{0,200}") {
        read_escaped(&text);
    }

    /// What is left of a text, of which more follows, is a row that goes on there.
    #[test]
    fn a_text_that_goes_on_ends_with_a_record_or_the_rest_is_left(
        text in "[ab,,\"\n ]{0,40}", more in "[ab,\"\n]{0,40}",
    ) {
        let text = text + "\n";
        let mut records = Records::of_text(text.clone().into_bytes(), false, Dialect::of(b','), 1 << 20);
        let mut count = 0;
        while records.advance().is_ok() {
            count += 1;
        }
        let (rest, lines) = (records.begin(), records.processed_lines());
        let whole = told_by(Records::of_text((text.clone() + &more).into_bytes(), true, Dialect::of(b','), 1 << 20));
        let after = told_by(Records::of_text((text[rest..].to_owned() + &more).into_bytes(), true, Dialect::of(b','), 1 << 20));
        let after = after.into_iter().map(|(line, found, fields)| (line + lines, found, fields));
        let first = whole[..count.min(whole.len())].to_vec();
        prop_assert_eq!(first.into_iter().chain(after).collect::<Vec<_>>(), whole);
    }

    /// An unclosed quote costs only its own line, for any other lines.
    #[test]
    fn an_open_quote_costs_one_line(
        before in prop::collection::vec(("[a-c0-9]{1,3}", "[a-c0-9 ]{0,3}", any::<bool>()), 0..6),
        after in prop::collection::vec(("[a-c0-9]{1,3}", "[a-c0-9]{1,3}", any::<bool>()), 0..6),
        torn in "[a-c0-9 ]{0,3}",
        bytes in 1usize..40,
    ) {
        let line = |(a, b, quoted): &(String, String, bool)| {
            if *quoted { format!("{a},\"{b}\"\n") } else { format!("{a},{b}\n") }
        };
        let mut text: String = before.iter().map(line).collect();
        text.push_str(&format!("t,\"{torn}\n"));
        text.extend(after.iter().map(line));
        let told = read_by(&text, bytes, 1 << 20);
        let at = before.len();
        let tagged = |rows: &[(String, String, bool)], from: usize| -> Vec<Told> {
            let numbered = rows.iter().zip(from as u64 + 1..);
            numbered.map(|((a, b, _), line)| row(line, &[a, b])).collect()
        };
        prop_assert_eq!(&told[..at], &tagged(&before, 0)[..]);
        prop_assert_eq!(&told[at], &open_quote(at as u64 + 1, &["t", &format!("\"{torn}")]));
        prop_assert_eq!(&told[at + 1..], &tagged(&after, at + 1)[..]);
    }

    /// Cut behind any line, and gone on with where it says, a text has the rows that it has at
    /// once.
    #[test]
    fn a_text_that_grows_by_lines_has_the_rows_of_the_whole(
        lines in prop::collection::vec("[ab,,\" ]{0,6}", 0..10), cut in 0usize..10,
    ) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let cut: usize = lines.iter().take(cut).map(|line| line.len() + 1).sum();
        let of_text = |text: &str, may_grow| {
            Records::of_text(text.as_bytes().to_vec(), true, Dialect::of(b','), 1 << 20).that_may_grow(may_grow)
        };
        let (mut records, mut told, mut at) = (of_text(&text[..cut], true), Vec::new(), (cut, 0));
        loop {
            match records.advance().unwrap() {
                Found::End => break,
                Found::LeftOpen { .. } => {
                    let (content, line) = records.before_open().unwrap();
                    at = (content.bytes as usize, line - 1);
                }
                found => told.push(told_of(&records, found)),
            }
        }
        if at.0 == cut {
            at.1 = records.processed_lines();
        }
        let after = told_by(of_text(&text[at.0..], false)).into_iter();
        told.extend(after.map(|(line, found, fields)| (line + at.1, found, fields)));
        prop_assert_eq!(told, told_by(of_text(&text, false)));
    }

    #[test]
    fn no_text_panics(text in "[ab,\"\n\r ]{0,40}", bytes in 1usize..40, bytes_max in 1usize..50) {
        read_by(&text, bytes, bytes_max);
    }
}

#[test]
fn what_is_before_a_record_without_an_end_is_known() {
    for (text, bytes, line) in [
        ("a,b\n1,2\n3", Some(8), 3),
        ("a,b\n\n1,\"x", Some(5), 3),
        ("a,b\n\"1\n2\",3", Some(4), 2),
        ("a,b\n1,2\n", None, 0),
        ("a,b\n1,\"x\ny", Some(4), 2),
        ("a,b\n1,\"x\ny\n\n", Some(4), 2),
        ("a,b\n\"1\n\",\"x\ny\n", Some(4), 2),
        ("a,b\n1,\"x\ny\"z\n", None, 0), // the next quote says that this one is stray
        ("a,b\n1,2\r", None, 0),
        ("a", Some(0), 1),
    ] {
        let records = Records::new(Box::new(Cursor::new(text.to_owned())), Dialect::of(b','), 1000);
        let mut records = records.that_may_grow(true);
        let mut before = None;
        while records.advance().unwrap() != Found::End {
            before = records.before_open();
        }
        let mut wanted = Tape::new();
        wanted.feed(&text.as_bytes()[..bytes.unwrap_or(0)]);
        assert_eq!(before, bytes.map(|_| (wanted.content(), line)), "{text:?}");
    }
}
