//! What is exported is imported as it was: rows of every fold with a shown form that has all of its
//! state, in CSV and in NDJSON, with byte strings of all kinds as keys, members, names and values.

mod support;

use folddb::codec::{KeyCodec, ValueCodec};
use folddb::table_rules::TableRules;
use folddb::{Datum, Options, Store, WriteOp, folds};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use support::Place;

/// Text that looks like bytes or like JSON, text with control characters, and bytes that are no
/// text.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&[u8]> = vec![
        b"",
        b"a\nb",
        b"0x610a62",
        b"0x",
        b"\xff",
        b"0xff",
        b"{\"$hex\":\"ff\"}",
        b"{\"$hex\":\"zz\"}",
        b"[1]",
        b"[]",
        b"{}",
        b"\"",
        b"a,b",
        b"a\tb\r\n",
        b"\0",
        b" x ",
        b"null",
        b"NA",
        b"{\"a\":1}",
        b"\\xff",
        b"a=1",
    ];
    prop_oneof![
        3 => prop::sample::select(known).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 1..4),
        1 => "\\PC{1,4}".prop_map(String::into_bytes),
    ]
}

fn member() -> BoxedStrategy<Datum> {
    bytes().prop_map(Datum::Bytes).boxed()
}

fn number() -> BoxedStrategy<Datum> {
    any::<i64>().prop_map(|number| Datum::Int(number.into())).boxed()
}

fn list(items: BoxedStrategy<Datum>, most: usize) -> BoxedStrategy<Datum> {
    prop::collection::vec(items, 0..=most).prop_map(Datum::List).boxed()
}

fn pair(a: BoxedStrategy<Datum>, b: BoxedStrategy<Datum>) -> BoxedStrategy<Datum> {
    (a, b).prop_map(|(a, b)| Datum::List(vec![a, b])).boxed()
}

/// JSON text, with numbers that no type of this program holds exactly.
fn document() -> impl Strategy<Value = Datum> {
    let number = "-?(0|[1-9][0-9]{0,41})(\\.[0-9]{1,3})?(e[0-9]{1,3})?";
    let text = prop::sample::select(vec!["5", "null", "", "a\nb", "{}", "0xff"])
        .prop_map(|text| format!("{text:?}"));
    let leaf = prop_oneof![number, text, Just("null".to_owned()), Just("{\"$hex\":\"31\"}".to_owned())];
    let nested = leaf.prop_recursive(3, 8, 3, |inner| {
        let fields = prop::collection::btree_map("[a-c]", inner.clone(), 0..3);
        let object = fields.prop_map(|fields| {
            let fields: Vec<_> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
            format!("{{{}}}", fields.join(","))
        });
        let list = prop::collection::vec(inner, 0..3).prop_map(|items| format!("[{}]", items.join(",")));
        prop_oneof![object, list]
    });
    nested.prop_map(Datum::Text)
}

/// Folds, operands, and whether CSV has their values in columns that an import accepts.
fn cases() -> Vec<(&'static str, BoxedStrategy<Datum>, bool)> {
    let scored = || pair((-9i32..9).prop_map(|score| Datum::Float(f64::from(score) / 2.0)).boxed(), member());
    let timed = pair(number(), member());
    let fields = (list(member(), 3), member(), member(), list(pair(member(), number()), 3), timed.clone());
    // Each is absent in half of the records, but never all of them: a row without any is no row.
    let record = (fields, any::<[bool; 4]>()).prop_map(|((a, b, c, d, e), [no_a, no_b, no_c, no_e])| {
        let fields = [("a", a, no_a), ("b", b, no_b), ("c", c, no_c), ("d", d, false), ("e", e, no_e)];
        let there = fields.into_iter().filter(|(_, _, is_absent)| !is_absent);
        Datum::Map(there.map(|(name, value, _)| (name.to_owned(), value)).collect())
    });
    vec![
        ("replace", member(), true),
        ("first", member(), true),
        ("set", list(member(), 4), true),
        ("intersect", list(member(), 4), true),
        ("counters", list(pair(member(), number()), 4), true),
        ("top:3", list(scored(), 3), true),
        ("append", member(), true),
        ("max:bytes", member(), true),
        ("lww:ts", timed, true),
        ("bitmap", list(any::<u32>().prop_map(|bit| Datum::Int(bit.into())).boxed(), 4), true),
        ("matmul:2:i64", prop::collection::vec(number(), 4).prop_map(Datum::List).boxed(), true),
        ("sum:i64", number(), true),
        ("sum:i128", any::<i128>().prop_map(Datum::Int).boxed(), true),
        ("{a: set, b: replace, c: max:bytes, d: counters, e: lww:ts}", record.boxed(), true),
        ("json-merge", document().boxed(), true),
        (
            "{a: json-merge}",
            document().prop_map(|document| Datum::Map(vec![("a".to_owned(), document)])).boxed(),
            true,
        ),
    ]
}

fn dump(store: &std::path::Path) -> String {
    let store = Store::open_read_only(store, Options::default()).expect("it opens");
    let mut text = Vec::new();
    store.dump(&["t".to_owned()], &mut text).expect("it is dumped");
    String::from_utf8(text).expect("text")
}

fn fill(store: &Store, name: &str, (spec, operand): (&str, &BoxedStrategy<Datum>), runner: &mut TestRunner) {
    let fold = spec.parse::<folds::FoldSpec>().expect("a spec");
    let rules = TableRules::new(KeyCodec::Bytes).key_names(["key"]).fold(spec).value(ValueCodec::Bytes);
    let table = store.create_bytes_table(name, rules).expect("a table");
    for _ in 0..80 {
        let (key, operand) = (bytes(), operand).new_tree(runner).expect("a sample").current();
        let mut value = Vec::new();
        fold.as_fold().read(&operand, &mut value).expect("an operand");
        table.write(WriteOp::Fold, &key, &value).expect("it is written");
    }
}

#[test]
fn what_is_exported_is_imported_as_it_was() {
    let place = Place::new();
    let mut runner = TestRunner::new_with_rng(Config::default(), {
        let seed = [17; 32];
        proptest::test_runner::TestRng::from_seed(proptest::test_runner::RngAlgorithm::ChaCha, &seed)
    });
    for (number, (spec, operand, in_csv)) in cases().into_iter().enumerate() {
        let from = format!("from{number}");
        let store = Store::create(place.path().join(&from), Options::default()).expect("a store");
        fill(&store, "t", (spec, &operand), &mut runner);
        store.close().expect("it closes");
        for file in ["rows.csv.gz", "rows.tsv", "rows.ndjson"] {
            let (to, file) = (format!("{number}-{file}.folddb"), format!("{number}-{file}"));
            let is_csv = !file.ends_with("ndjson");
            if is_csv && !in_csv {
                continue;
            }
            let mut create = vec!["create", &to, "t", "--key", "bytes", "--key-names", "key", "--fold", spec];
            if matches!(spec, "replace" | "first") {
                create.extend(["--value", "bytes"]);
            }
            place.done(&create);
            place.done(&["export", &from, "t", "--to", &file]);
            let mut import = vec!["import", &to, "t", &file, "--key", "key"];
            if !(is_csv && spec.starts_with('{')) {
                import.extend(["--value", "value"]);
            }
            place.done(&import);
            // A document that has replaced another is shown like one that has not.
            let of = |store: &str| match spec.contains("json-merge") {
                true => place.done(&["export", store, "t", "--format", "ndjson"]),
                false => dump(&place.path().join(store)),
            };
            let (was, is) = (of(&from), of(&to));
            for (was, is) in was.lines().zip(is.lines()) {
                assert_eq!(was, is, "{spec} by {file}");
            }
            assert_eq!(was, is, "{spec} by {file}");
        }
    }
}
