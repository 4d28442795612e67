use std::io::{Cursor, Read};
use std::sync::Arc;

use folddb::datum;

use super::*;
use crate::import::delimited_rows::delimiter_in;

/// The rows of what a reader gives.
fn of(reader: impl BufRead + 'static, format: InputFormat, header: bool) -> Result<Rows, Failure> {
    let source = Source {
        reader: Box::new(reader),
        name: "test".to_owned(),
        inode: None,
        bytes_total: None,
        bytes_read: Arc::default(),
        packed: None,
        is_packed: false,
        is_array: false,
        may_grow: false,
        kept: None,
        comment: None,
    };
    let how = How {
        format,
        pattern: None,
        delimiter: None,
        quote: Some(b'"'),
        escape: Escape::Find,
        is_multiline: false,
        comment: None,
        header: Some(header),
        words: None,
        is_asked_for: &|_| false,
        nulls: &["NA".to_owned()],
    };
    Rows::open(source, &how)
}

/// What is found out about what escapes quotes, by the first rows.
fn escape_of(text: &str) -> Option<u8> {
    let rows = open(text, InputFormat::Csv, true);
    let is_said = rows.notes().iter().any(|note| note.starts_with("quotes in fields are escaped by `\\`"));
    assert_eq!(is_said, rows.escape().is_some(), "{:?}", rows.notes());
    rows.escape()
}

#[test]
fn what_escapes_quotes_is_found_out() {
    for text in [
        "k,v\n1,\"say \\\"hi\\\" now\"\n",
        "k,v\n1,\"5\\\"\"\n2,x\n",               // the quote at the end of a field
        "k,v\n1,\"a \\\", b\"\n2,\"c\"\n",       // a delimiter behind it makes a row too long
        "k;v\n1;\"a \\\"b, c; d\\\" e\"\n2;x\n", // nor do delimiters in quotes count
        "\"a\\\"b\",v\n1,2\n",                   // a name
        "k,v\n1,\"say \\\"hi\\\"\"\n2,\"C:\\\\\"\n",
        "k,v\n1,\"say \\\"hi\\\"\"\n2,3,4\n", // another bad row says nothing
    ] {
        assert_eq!(escape_of(text), Some(b'\\'), "{text}");
    }
    for text in [
        "k,v\n1,\"C:\\\"\n2,\"D:\\\"\n", // paths
        "k,v\n1,\"say \"\"hi\"\"\"\n",
        "k,v\n1,\"{\"\"a\"\":\"\"x\\\"\"y\"\"}\"\n", // JSON in doubled quotes
        "k,v\n1,\"a\\\\\"\n2,\"b\"\n",
        "k,v\n1,a\\\"b\n",
        "k,v\n1,\"C:\\\"\n2,\"D:\\\"\n3,\"x\\\"y\"\n", // both: then it has to be said
        "k,v\n1,\"a\"b\n",
    ] {
        assert_eq!(escape_of(text), None, "{text}");
    }
}

fn open(text: &str, format: InputFormat, header: bool) -> Rows {
    of(Cursor::new(text.to_owned()), format, header).unwrap()
}

/// Line, and the field or what is wrong, of each row.
fn read(rows: &mut Rows, column: &str) -> Vec<(u64, Result<String, String>)> {
    let slot = rows.slot(column).unwrap();
    let mut found = Vec::new();
    loop {
        let row = match rows.advance().unwrap() {
            Next::End => return found,
            Next::Wait => continue,
            Next::Bad(bad) => Err(bad.to_string()),
            Next::Row => match rows.field(slot) {
                Ok(text) => Ok(text.map_or("(missing)".to_owned(), Cow::into_owned)),
                Err(bad) => Err(bad.to_string()),
            },
        };
        found.push((rows.line(), row));
    }
}

#[test]
fn delimited_rows_know_their_lines() {
    let mut rows = open("\u{feff}a,b\n1,x\n2,\"y\nz\"\n3\n4,w\n", InputFormat::Csv, true);
    let found = read(&mut rows, "b");
    let text = |line, text: &str| (line, Ok(text.to_owned()));
    let short = (5, Err("expected 2 fields, found 1".to_owned()));
    assert_eq!(found, [text(2, "x"), text(3, "y\nz"), short, text(6, "w")]);
}

#[test]
fn the_mark_that_a_file_of_json_lines_begins_with_is_no_part_of_its_first_row() {
    let mut rows = open("\u{feff}{\"a\":\"x\"}\n{\"a\":\"\u{feff}y\"}\n", InputFormat::Ndjson, true);
    let text = |line, text: &str| (line, Ok(text.to_owned()));
    assert_eq!(read(&mut rows, "a"), [text(1, "x"), text(2, "\u{feff}y")]);
}

#[test]
fn the_mark_is_skipped_in_the_first_piece_of_a_file_of_lines_and_in_no_other() {
    let rows = open("\u{feff}a b\n", InputFormat::Spaces, false);
    let template = rows.template();
    for (begins, wanted) in [(true, "x"), (false, "\u{feff}x")] {
        let mut piece = template.rows("\u{feff}x y\n".as_bytes().to_vec(), begins, true);
        assert_eq!(read(&mut piece, "c1"), [(1, Ok(wanted.to_owned()))]);
    }
    let marked = "\u{feff}Oct 11 22:14:15 box su[230]: failed\n";
    let mut rows = open(marked, InputFormat::Syslog, true);
    assert_eq!(read(&mut rows, "time"), [(1, Ok("Oct 11 22:14:15".to_owned()))]);
    assert_eq!(rows.mark().map(|mark| mark.content.bytes), Some(marked.len() as u64));
}

#[test]
fn columns_of_words_may_be_known_before() {
    let mut rows = open("Filesystem  Used Mounted on\n/dev   7 /my disk\n", InputFormat::Spaces, true);
    assert_eq!(read(&mut rows, "Mounted on"), [(2, Ok("/my disk".to_owned()))]);
    assert_eq!(rows.words().map(<[String]>::len), Some(3));
    let mut listing =
        open("total 4\n-rw-r--r-- 1 a b 3 Nov 1 06:00 x y\ntotal 9\n", InputFormat::Spaces, false);
    assert_eq!(read(&mut listing, "c9").len(), 1, "totals are passed over");
}

#[test]
fn columns_without_a_header_are_numbered() {
    let mut rows = open("1\tx\n2\ty\n", InputFormat::Tsv, false);
    assert_eq!(read(&mut rows, "c2"), [(1, Ok("x".to_owned())), (2, Ok("y".to_owned()))]);
    let empty = of(Cursor::new("\n"), InputFormat::Csv, false);
    assert!(matches!(empty.err(), Some(Failure::Empty(_))));
}

#[test]
fn an_unknown_column_is_refused() {
    let error = open("carrier,origin\n", InputFormat::Csv, true).slot("carier").unwrap_err();
    assert_eq!(error.to_string(), "test has no column `carier` (did you mean `carrier`?)");
}

#[test]
fn columns_that_stand_twice_are_numbered_and_another_delimiter_is_found() {
    let mut rows = open("a;a;a_2\n1;2;3\n", InputFormat::Csv, true);
    let slots = ["a", "a_2", "a_2_2"].map(|name| rows.slot(name).unwrap());
    assert!(matches!(rows.advance(), Ok(Next::Row)));
    assert_eq!(slots.map(|slot| rows.field(slot).unwrap().unwrap().into_owned()), ["1", "2", "3"]);
    assert_eq!(rows.notes().len(), 3, "{:?}", rows.notes());
    let found =
        |head: &str| Some(delimiter_in(head.as_bytes(), Some(b'"'), None).0).filter(|found| *found != b',');
    assert_eq!(found("a,b;c"), None);
    assert_eq!(found("\"a,b\"|c"), Some(b'|'));
    assert_eq!(found("a\tb"), Some(b'\t'));
    assert_eq!(found("a"), None);
}

#[test]
fn fields_of_logfmt_and_nested_fields_are_found() {
    let mut rows = open("level=info msg=\"a \\\"b\\\"\" ok\nx\n", InputFormat::Logfmt, true);
    assert_eq!(read(&mut rows, "msg")[0], (1, Ok("a \"b\"".to_owned())));
    let mut rows = open("{\"a\":{\"b\":[1,{\"c\":2}]},\"/a\":3}\n", InputFormat::Ndjson, true);
    let slots = ["/a/b/1/c", "/a", "/a/x"].map(|name| rows.slot(name).unwrap());
    assert!(matches!(rows.advance(), Ok(Next::Row)));
    let texts = slots.map(|slot| rows.field(slot).unwrap().map(Cow::into_owned));
    assert_eq!(texts, [Some("2".to_owned()), Some("3".to_owned()), None]);
}

#[test]
fn lines_of_json_are_rows() {
    let text = "{\"a\":1.50,\"b\":\"x\"}\n\n[1]\n{\"a\":null}\n{\"a\":[1,{}]}\n{\n";
    let mut rows = open(text, InputFormat::Ndjson, true);
    let found = read(&mut rows, "a");
    assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 3, 4, 5, 6]);
    let texts: Vec<_> = found.into_iter().map(|(_, row)| row).collect();
    assert_eq!(texts[0], Ok("1.50".to_owned()), "as it is written");
    assert_eq!(texts[1], Err("expected a JSON object".to_owned()));
    assert_eq!((&texts[2], &texts[3]), (&Ok("(missing)".to_owned()), &Ok("[1,{}]".to_owned())));
    assert!(texts[4].as_ref().unwrap_err().starts_with("not JSON: "));
}

#[test]
fn the_other_columns_become_an_object() {
    let mut rows = open("k,n,t,e\nx,12,007,\n", InputFormat::Csv, true);
    let key = rows.slot("k").unwrap();
    assert!(matches!(rows.advance(), Ok(Next::Row)));
    assert_eq!(datum::json::text_of(&rows.object_without(&[key]).unwrap()), r#"{"n":12,"t":"007","e":null}"#);
}

#[test]
fn null_texts_and_bad_bytes_are_distinguished() {
    let mut rows = open("a,b\nNA,x\n,y\nn/a,z\n", InputFormat::Csv, true);
    let texts: Vec<_> = read(&mut rows, "a").into_iter().map(|(_, row)| row.unwrap()).collect();
    assert_eq!(texts, ["(missing)", "", "n/a"]);
}

#[test]
fn a_quote_that_does_not_close_costs_its_line_and_no_other() {
    let mut rows = open("a,b\n1,x\n2,\"y\n3,z\n4,w\n", InputFormat::Csv, true);
    let wrong = "column `b`: a quote opens here and does not close";
    let text = |line, text: &str| (line, Ok(text.to_owned()));
    let found = read(&mut rows, "b");
    assert_eq!(found, [text(2, "x"), (3, Err(wrong.to_owned())), text(4, "z"), text(5, "w")]);
}

#[test]
fn a_quote_in_the_first_row_leaves_the_count_of_columns_to_the_next() {
    let mut rows = open("1,2,\"x\n3,y\n4,z\n", InputFormat::Csv, false);
    let found = read(&mut rows, "c2");
    assert_eq!(
        found.iter().map(|(line, row)| (*line, row.is_ok())).collect::<Vec<_>>(),
        [(1, false), (2, true), (3, true)]
    );
    let Err(refused) = of(Cursor::new("a,\"b\n1,2\n"), InputFormat::Csv, true) else {
        panic!("it is refused")
    };
    assert_eq!(
        refused.to_string(),
        "cannot read the header of test: line 1: a quote opens here and does not close"
    );
}

/// No more than the largest row is read for it, and reading continues after its line.
#[test]
fn a_quote_that_does_not_close_does_not_take_in_a_file_without_lines() {
    let rest = std::io::BufReader::new(std::io::repeat(b'x').take(ROW_BYTES_MAX as u64 * 2));
    let reader = Cursor::new("a,b\n1,2\n\"").chain(rest).chain(Cursor::new("\n3,4\n"));
    let mut rows = of(reader, InputFormat::Csv, true).unwrap();
    let found = read(&mut rows, "b");
    assert_eq!(
        found.iter().map(|(line, row)| (*line, row.is_ok())).collect::<Vec<_>>(),
        [(2, true), (3, false), (4, true)]
    );
    assert!(found[1].1.as_ref().is_err_and(|wrong| wrong.contains("a quote opens here")));
}

#[test]
fn a_delimiter_makes_as_many_fields_of_each_of_the_first_lines() {
    let found =
        |head: &str| Some(delimiter_in(head.as_bytes(), Some(b'"'), None).0).filter(|found| *found != b',');
    assert_eq!(found("name, first;n;m\nAnn;1;2\n"), Some(b';'));
    assert_eq!(found("\u{feff}k|what, and when\na|x\nb|y, z\n"), Some(b'|'));
    assert_eq!(found("k;m\n1,5;2,5\n3,5;4,5\n"), Some(b';'));
    // Both do: the one that makes more, or a comma.
    assert_eq!(found("a,b,c;d\n1,2,3;4\n"), None);
    assert_eq!(found("a,b;c;d\n1,2;3;4\n"), Some(b';'));
    assert_eq!(found("a,b;c\n1,2;3\n"), None);
    // None does, or a line has not come wholly.
    assert_eq!(found("a,b;c\n1\n2;3,4\n"), None);
    assert_eq!(found("a;b\n1;2\n3"), Some(b';'));
    assert_eq!(found("a|b;c|d\n1|2\n"), Some(b'|'));
    // Line ends in quotes end no line, nor do those behind a stray one in the first line.
    assert_eq!(found("a;b\n\"1,\n2\";3\n"), Some(b';'));
    assert_eq!(found("a;5\" disk\n1,2,3,4\n"), Some(b';'));
    // Another one that makes as many is told of.
    let both = |head: &str| delimiter_in(head.as_bytes(), Some(b'"'), None);
    assert_eq!(both("a;b,c\na;1,5\n"), (b',', Some(b';')));
    assert_eq!(both("a;b\tc\na;1\t5\n"), (b';', Some(b'\t')));
    assert_eq!(both("a;b,c\na;1\n"), (b';', None));
    assert_eq!(both("a;b|c\n1\n"), (b';', Some(b'|')));
    assert_eq!(both(""), (b',', None));
}
