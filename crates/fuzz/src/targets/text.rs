//! What people type: specs of folds, names of codecs, keys, operands; and the rules of tables as
//! text.

use std::sync::Arc;

use folddb_rules::codec::KeyCodec;
use folddb_rules::datum::Datum;
use folddb_rules::folds::{Columns, FoldSpec, Record, SPECS};
use folddb_rules::table_rules::{Custom, StoredRules, TableRules};
use folddb_rules::{Fold, IndexRule, ParseError};

use crate::carve::Carver;
use crate::target::Target;

pub(super) const JSON_WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "null",
    "true",
    "\"$set\":",
    "\\u00e9",
    "\\ud83d\\ude00",
    "-0",
    "1e400",
];

const SPEC_WORDS: &[&str] = &[
    "sum:u64",
    "stats:f64",
    "append:",
    "hll:12",
    "top:10",
    "matmul:",
    "quantiles:0.1",
    "json-merge",
    "{a: ",
    "}",
    ", ",
    "\"",
    "\\x00",
    " = ",
    "`col`",
    ":i64",
];

const KEY_WORDS: &[&str] = &[
    "tuple(",
    "text",
    "any",
    "int",
    "?",
    ")",
    ",",
    "versionstamp",
    "uuid",
    "[",
    "]",
    "\"",
    "\\u{1f525}",
    "\\ud83d",
    "0x",
];

const RULES_WORDS: &[&str] = &[
    "rules 1\n",
    "\n",
    "=",
    "%0a",
    "fold=",
    "custom_fold=",
    "fold_version=",
    "key=",
    "order=reversed",
    "delete=equal:",
    "named:",
    "?key_names=",
    "value=json",
    "compression=lz4",
];

pub(super) const TARGETS: &[Target] = &[
    // A field takes an allocation or two; the message of an error holds the whole text, some times.
    Target::new("fold-spec", fold_spec, fold_spec_seeds).words(SPEC_WORDS).heap(1024, 256 << 10),
    Target::new("fold-read", fold_read, fold_read_seeds).words(JSON_WORDS).heap(1024, 2 << 20),
    Target::new("key-codec-name", key_codec_name, key_codec_name_seeds).words(KEY_WORDS).heap(1024, 64 << 10),
    Target::new("key-text", key_text, key_text_seeds).words(KEY_WORDS).heap(1024, 64 << 10),
    Target::new("table-rules", table_rules, table_rules_seeds).words(RULES_WORDS).heap(1024, 256 << 10),
];

fn fold_spec(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match text.parse::<FoldSpec>() {
        Ok(fold) => check_fold(fold.as_fold()),
        Err(error) => check_error(&error),
    }
    match text.parse::<Columns>() {
        Ok(Columns::Plain(fold, _)) => check_fold(&fold),
        Ok(Columns::Record(record, sources)) => {
            assert_eq!(record.names().count(), sources.len());
            check_fold(&record.fold());
            assert!(record.fold().spec().parse::<Record>().is_ok());
        }
        Err(error) => check_error(&error),
    }
    let _ = text.parse::<Record>();
}

/// A fold's own spec names it.
fn check_fold(fold: &Arc<dyn Fold>) {
    let spec = fold.spec();
    match spec.parse::<FoldSpec>() {
        Ok(again) => {
            assert_eq!(again.to_string(), spec);
            assert_eq!(again.as_fold().fixed_len(), fold.fixed_len());
        }
        Err(error) => panic!("{spec:?} is the spec of a fold and is not read: {error}"),
    }
}

fn check_error(error: &ParseError) {
    assert!(error.at() <= error.text().len() && error.text().is_char_boundary(error.at()), "{error:?}");
    assert!(error.to_string().contains('^'));
}

fn fold_spec_seeds() -> Vec<Vec<u8>> {
    let others = [
        "append:, ",
        "append:\\x1f\\n",
        "top:3:i64",
        "hll:4",
        "quantiles:0.05",
        "matmul:2:f64",
        "{flights: sum:u64, delay: stats:f64, tails: hll:12}",
        "{a: {b: set, c: {d: replace}}, \"e f\": patch, g: append:\";\"}",
        "flights: sum:u64 = 1, delay: stats:f64 = dep_delay, tail: hll:12 = `tail num`, x: set = \"lit\"",
        "sum:i46",
    ];
    SPECS.iter().chain(&others).map(|spec| spec.as_bytes().to_vec()).collect()
}

/// Folds whose operands are typed.
const TYPED: [&str; 19] = [
    "sum:i64",
    "sum:u64",
    "sum:f64",
    "max:f64",
    "stats:f64",
    "append:,",
    "set",
    "bitmap",
    "counters",
    "lww:ts",
    "top:3",
    "hll:12",
    "quantiles",
    "json-merge",
    "matmul:2:i64",
    "patch",
    "{n: sum:u64, m: max:i64}",
    "{n: sum:u64, d: stats:f64, s: set, j: json-merge, p: patch}",
    "sum:i128",
];

/// `fold u8 | what was typed`. What is taken for an operand is one.
fn fold_read(input: &[u8]) {
    let mut carver = Carver::new(input);
    let fold = carver.choice(&TYPED).parse::<FoldSpec>().expect("the spec of a fold");
    let fold = fold.as_fold();
    let text = String::from_utf8_lossy(carver.rest()).into_owned();
    for datum in [Datum::List(vec![Datum::Text(text.clone()), Datum::Null]), Datum::Text(text)] {
        let mut operand = b"before".to_vec();
        if fold.read(&datum, &mut operand).is_err() {
            continue;
        }
        assert!(operand.starts_with(b"before"));
        let operand = operand.split_off(6);
        assert_eq!(fold.check(&operand), Ok(()), "{} read {datum}", fold.spec());
        let shown = fold.show(&operand);
        assert!(shown.is_ok(), "{}: {shown:?}", fold.spec());
    }
}

fn fold_read_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "-5",
        "18446744073709551615",
        "0.1",
        "1e308",
        "12.5",
        "text",
        "member",
        "70000",
        "name=-3",
        "1700000000 hello",
        "12.5 alice",
        "N14228",
        "-2.5",
        r#"{"a":{"$set":{"b":1}},"c":null,"d":[1,"x"]}"#,
        "1 2; 3 4",
        r#"[{"append":"x"},{"splice":1,"remove":2,"bytes":"y"},{"write":3,"bytes":"z"}]"#,
        r#"{"n":1,"m":-2}"#,
        r#"{"n":1,"d":0.5,"s":"x","j":{"a":1},"p":"object"}"#,
    ];
    texts.iter().enumerate().map(|(number, text)| [&[number as u8][..], text.as_bytes()].concat()).collect()
}

fn key_codec_name(input: &[u8]) {
    let name = String::from_utf8_lossy(input);
    let Ok(codec) = name.parse::<KeyCodec>() else { return };
    assert_eq!(codec.name().parse::<KeyCodec>().as_ref(), Ok(&codec));
    let _ = (codec.check(input), codec.show_line(input));
}

fn key_codec_name_seeds() -> Vec<Vec<u8>> {
    let names = [
        "bytes",
        "i64",
        "tuple",
        "tuple(any,text?,int,float,double,bool,uuid,versionstamp,tuple,tuple(int,tuple(any))?)",
    ];
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}

const TYPED_KEYS: [&str; 6] = [
    "tuple",
    "tuple(any,any?)",
    "tuple(text,int)",
    "tuple(bytes,versionstamp?)",
    "bytes",
    "tuple(tuple(text,double),tuple)",
];

/// `codec u8 | what was typed`. What is taken for a key is one, and so is the beginning of a range.
fn key_text(input: &[u8]) {
    let mut carver = Carver::new(input);
    let codec = carver.choice(&TYPED_KEYS).parse::<KeyCodec>().expect("the name of a codec");
    let text = String::from_utf8_lossy(carver.rest()).into_owned();
    let parts: Vec<&str> = text.split('\n').collect();
    if let Ok(key) = codec.parse_text(&parts) {
        assert_eq!(codec.check(&key), Ok(()), "{text:?}");
        assert!(codec.show(&key).is_ok());
        if let Ok(range) = codec.parse_bound(&parts) {
            assert!(range.contains(&key));
        }
    }
    let _ = codec.parse_prefix(&parts);
}

fn key_text_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "a,1,2.5,null,true,0x00ff,\"q,\\u{1f525}\"",
        "[\"a\", [1, \"\\ud83d\\ude00\"], null]",
        "UA\n12",
        "0x01\n0x00112233445566778899",
        "0xff",
        "[[\"a\", 1.5], [1, [2]]]",
    ];
    let seeds = texts.iter().zip([0u8, 1, 2, 3, 4, 5]);
    seeds.map(|(text, codec)| [&[codec][..], text.as_bytes()].concat()).collect()
}

fn table_rules(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match text.parse::<TableRules>() {
        Ok(typed) => assert_eq!(typed.to_string().parse::<TableRules>().as_ref(), Ok(&typed)),
        Err(error) => check_error(&error),
    }
    let Ok(rules) = TableRules::from_stored(&text) else { return };
    let canonical = rules.to_string();
    let again = TableRules::from_stored(&canonical);
    assert_eq!(again.ok().as_ref(), Some(&rules));
    assert_eq!(rules.diff(&rules), None);
    let custom = Custom::default();
    let is_valid = rules.validate(&custom).is_ok();
    let bound = rules.bind(&custom);
    assert!(!is_valid || bound.as_ref().is_ok_and(|bound| bound.check_writable().is_ok()));
    let _ = rules.names_of_key().count();
    if let Ok(bound) = bound {
        let shown = bound.show_value(b"value");
        assert!(shown.is_ok() || bound.check_value(b"value").is_err());
    }
}

fn table_rules_seeds() -> Vec<Vec<u8>> {
    let all = [
        TableRules::replace(),
        TableRules::counter(),
        TableRules::stats(),
        TableRules::postings(),
        TableRules::new("tuple(text,int?)".parse::<KeyCodec>().expect("the name of a codec"))
            .key_names(["carrier", "hour"])
            .order("reversed")
            .delete_when(b"\0\xff%")
            .short_circuit_by("done")
            .block_bytes(512)
            .filter_bits(0),
        TableRules::default().custom_fold("latest", 3),
        ["by_city:json:/a~1b/c", "by_age:field:age", "by_word:custom:words@7"]
            .iter()
            .filter_map(|index| index.parse::<IndexRule>().ok())
            .fold(TableRules::replace(), TableRules::index),
    ];
    all.iter().map(|rules| rules.to_string().into_bytes()).collect()
}
