use folddb_base::{Op, OpBuf};
use folddb_rules::Datum;
use folddb_rules::codec::KeyCodec;
use folddb_rules::table_rules::{BoundRules, StoredRules, TableRules};

use super::{Content, Line, RowWriter, Said, Totals, parse, put_end, put_start, put_table};
use folddb_engine::write::encoded_batch::WriteOp;

fn bound(rules: &TableRules) -> BoundRules {
    rules.bind(&Default::default()).unwrap()
}

fn row(rules: &BoundRules, key: &[u8], value: &[u8]) -> String {
    let mut line = String::new();
    RowWriter::new(rules).put_value(key, value, None, &mut line);
    assert!(line.ends_with('\n') && line.lines().count() == 1);
    line.trim_end().to_owned()
}

#[test]
fn lines_are_these_and_come_back() {
    let mut text = String::new();
    put_start(false, &mut text);
    put_table("hi\"ts", "rules 1\nfold=sum:u64\n", &mut text);
    put_end(&Totals { tables: 1, records: 3, hash: 0xfeed }, &mut text);
    let expected = r#"{"folddb":"dump","version":1}
{"table":"hi\"ts","rules":["rules 1","fold=sum:u64"]}
{"end":"dump","tables":1,"records":3,"hash":"000000000000feed"}
"#;
    assert_eq!(text, expected);
    let lines: Vec<Line> = text.lines().map(|line| parse(line).unwrap()).collect();
    assert_eq!(
        lines,
        [
            Line::Start { version: 1 },
            Line::Table { name: "hi\"ts".to_owned(), rules_text: "rules 1\nfold=sum:u64\n".to_owned() },
            Line::End(Totals { tables: 1, records: 3, hash: 0xfeed }),
        ]
    );
}

#[test]
fn what_reads_back_is_shown_and_the_rest_is_hex() {
    let counts = bound(&TableRules::new(KeyCodec::Utf8).fold("sum:u64"));
    assert_eq!(row(&counts, b"a", &7u64.to_le_bytes()), r#"{"key":"a","value":7}"#);
    assert_eq!(
        row(&counts, b"0x61", &u64::MAX.to_le_bytes()),
        r#"{"key":"0x61","value":18446744073709551615}"#
    );
    let floats = bound(&TableRules::new(KeyCodec::I64).fold("max:f64"));
    let minus_one = (-1i64 as u64 ^ 1 << 63).to_be_bytes();
    assert_eq!(row(&floats, &minus_one, &0.1f64.to_le_bytes()), r#"{"key":-1,"value":0.1}"#);
    let odd_nan = f64::from_bits(0x7ff8_0000_0000_0001);
    let line = row(&floats, &minus_one, &odd_nan.to_le_bytes());
    assert_eq!(line, r#"{"key":-1,"value_hex":"0x010000000000f87f","shown":"NaN"}"#);
    let bytes = bound(&TableRules::new(KeyCodec::Bytes));
    assert_eq!(row(&bytes, b"\0\xff", b""), r#"{"key":{"$hex":"00ff"},"value":""}"#);
    assert_eq!(row(&bytes, b"0x00ff", b"0x"), r#"{"key":{"$hex":"307830306666"},"value":{"$hex":"3078"}}"#);
}

#[test]
fn a_deadline_follows_its_value() {
    let floats = bound(&TableRules::new(KeyCodec::Utf8).fold("max:f64"));
    let mut writer = RowWriter::new(&floats);
    let mut text = String::new();
    put_start(true, &mut text);
    writer.put_value(b"k", &1f64.to_le_bytes(), Some(1_800_000_000_000), &mut text);
    writer.put_value(b"k", &f64::from_bits(0x7ff8_0000_0000_0001).to_le_bytes(), Some(7), &mut text);
    let expected = r#"{"folddb":"dump","version":2}
{"key":"k","value":1.0,"until":1800000000000}
{"key":"k","value_hex":"0x010000000000f87f","until":7,"shown":"NaN"}
"#;
    assert_eq!(text, expected);
    let until = text.lines().skip(1).map(|line| match parse(line) {
        Ok(Line::Record { until_ms, .. }) => until_ms,
        other => panic!("{other:?}"),
    });
    assert_eq!(until.collect::<Vec<_>>(), [Some(1_800_000_000_000), Some(7)]);
}

#[test]
fn ops_that_do_not_fold_are_written_oldest_first() {
    let rules = bound(&TableRules::new(KeyCodec::Utf8));
    let ops = [Op::Fold(b"2"), Op::InsertFold { absent: b"a", present: b"p" }, Op::Set(b"1")];
    let ops: Vec<OpBuf> = ops.into_iter().map(OpBuf::from_op).collect();
    let mut line = String::new();
    RowWriter::new(&rules).put_ops(b"k", &ops, None, &mut line);
    assert_eq!(
        line,
        "{\"key\":\"k\",\"ops\":[[\"put\",\"0x31\"],[\"fold\",\"0x70\"],[\"fold\",\"0x32\"]]}\n"
    );
    let wanted =
        [(WriteOp::Put, b"1".to_vec()), (WriteOp::Fold, b"p".to_vec()), (WriteOp::Fold, b"2".to_vec())];
    let key = Said::Shown(Datum::Text("k".to_owned()));
    assert_eq!(
        parse(line.trim_end()),
        Ok(Line::Record { key, content: Content::Ops(wanted.to_vec()), until_ms: None })
    );
    let mut line = String::new();
    RowWriter::new(&rules).put_ops(b"k", &ops[..2], Some(7), &mut line);
    assert_eq!(line, "{\"key\":\"k\",\"ops\":[[\"put\",\"0x61\"],[\"fold\",\"0x32\"]],\"until\":7}\n");
}

#[test]
fn the_ops_of_older_dumps_are_read() {
    let ops = |words: [&str; 4]| {
        let list = words.map(|word| format!(r#"["{word}","0x31"]"#)).join(",");
        parse(&format!(r#"{{"key":"k","ops":[{list}]}}"#)).expect(words[0])
    };
    let today = ops(["put", "put_if_absent", "fold", "delete"]);
    assert_eq!(ops(["set", "insert", "fold", "delete"]), today);
    let Line::Record { content: Content::Ops(read), .. } = today else { panic!("{today:?}") };
    let wanted = [WriteOp::Put, WriteOp::PutIfAbsent, WriteOp::Fold, WriteOp::Delete];
    assert_eq!(read.into_iter().map(|(op, _)| op).collect::<Vec<_>>(), wanted);
}

#[test]
fn what_is_no_line_of_a_dump_is_refused_with_a_reason() {
    for (line, reason) in [
        ("", "expected a JSON value"),
        ("[]", "object"),
        ("{}", "not a line"),
        (r#"{"folddb":"backup"}"#, "not a dump"),
        (r#"{"folddb":"dump"}"#, "`version` is missing"),
        (r#"{"table":"t"}"#, "`rules` is missing"),
        (r#"{"table":"t","rules":[1]}"#, "not a list of text"),
        (r#"{"key":1}"#, "a key and a value"),
        (r#"{"key":1,"value":2,"more":3}"#, "no `more`"),
        (r#"{"key":1,"value":2,"until":-3}"#, "not a time"),
        (r#"{"key":1,"value":2,"until":"3"}"#, "not a time"),
        (r#"{"key":1,"value":2,"shown":3,"until":4}"#, "no `shown`"),
        (r#"{"key":1,"valu":2}"#, "expected `value`"),
        (r#"{"key_hex":"0x0","value":2}"#, "hexadecimal"),
        (r#"{"key":1,"ops":[["sat","0x"]]}"#, "not an op"),
        (r#"{"key":1,"ops":[["put"]]}"#, "list of two"),
        (r#"{"end":"dump","tables":-1,"records":0,"hash":"0"}"#, "not a count"),
        (r#"{"keys":1}"#, "begin with `keys`"),
    ] {
        let refused = parse(line).expect_err(line);
        assert!(refused.contains(reason), "{line}: {refused}");
    }
}
