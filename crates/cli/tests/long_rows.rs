//! Values of all lengths, up to far beyond what one write may have, are exported and imported as
//! they were: as NDJSON and as CSV, into tables that replace, append, and keep sets.

mod support;

use std::collections::BTreeSet;
use std::path::Path;

use folddb::codec::{KeyCodec, ValueCodec};
use folddb::limits::VALUE_BYTES_MAX;
use folddb::table_rules::TableRules;
use folddb::{Datum, Options, Store, WriteOp, folds};
use support::Place;

const LENGTHS: [usize; 6] =
    [1, 64 << 10, VALUE_BYTES_MAX - 1, VALUE_BYTES_MAX, VALUE_BYTES_MAX + 1, 40 << 20];

/// Tables by their rules on the command line.
const TABLES: [(&str, &[&str]); 3] = [
    ("appended", &["--fold", "append"]),
    ("sets", &["--fold", "set"]),
    ("blobs", &["--value", "bytes", "--separate", "1024"]),
];

/// Text that never repeats itself.
fn text(len_bytes: usize) -> Vec<u8> {
    (0_u64..).flat_map(|n| format!("{n},").into_bytes()).take(len_bytes).collect()
}

/// A set of this many bytes: long members, and one that fills up the rest.
fn set(len_bytes: usize) -> Vec<u8> {
    let fold = "set".parse::<folds::FoldSpec>().expect("a spec");
    let encode = |last: usize| {
        let long = (0..len_bytes.saturating_sub(200_000) / 100_000)
            .map(|n| [format!("{n:05} ").into_bytes(), text(99_000)].concat());
        let members = long.chain([vec![b'~'; last]]).map(Datum::Bytes).collect();
        let mut value = Vec::new();
        fold.as_fold().read(&Datum::List(members), &mut value).expect("an operand");
        value
    };
    let mut last = len_bytes.min(1);
    loop {
        let value = encode(last);
        match len_bytes.saturating_sub(value.len()) {
            0 => return value,
            more => last += more.saturating_sub(3).max(1), // the length of a member takes bytes, too
        }
    }
}

fn fill(store: &Path) {
    let store = Store::create(store, Options::default()).expect("a store");
    for (name, _) in TABLES {
        let rules = TableRules::new(KeyCodec::Utf8).key_names(["key"]);
        let rules = match name {
            "appended" => rules.fold("append"),
            "sets" => rules.fold("set"),
            _ => rules.value(ValueCodec::Bytes).separate(Some(1024)),
        };
        let table = store.create_bytes_table(name, rules).expect("a table");
        for len_bytes in LENGTHS {
            let (op, value) = match name {
                "sets" => (WriteOp::Fold, set(len_bytes)),
                "appended" => (WriteOp::Fold, text(len_bytes)),
                _ => (WriteOp::Put, text(len_bytes)),
            };
            table.write_whole(op, format!("{len_bytes:09}").as_bytes(), &value).expect("it is written");
        }
    }
    store.close().expect("it closes");
}

#[test]
fn values_of_all_lengths_are_imported_as_they_were_exported() {
    let place = Place::new();
    fill(&place.path().join("from"));
    for file in ["rows.ndjson", "rows.csv"] {
        for (name, rules) in TABLES {
            place.done(&["export", "from", name, "--to", &format!("{name}.{file}")]);
            let to = format!("to.{file}");
            if name == TABLES[0].0 {
                place.done(&["create", &to]);
            }
            place.done(&[&["create", &to, name, "--key", "utf8", "--key-names", "key"], rules].concat());
            place.done(&["import", &to, name, &format!("{name}.{file}"), "--key", "key", "--value", "value"]);
            std::fs::remove_file(place.path().join(format!("{name}.{file}"))).expect("it is there");
        }
        place.done(&["diff", "from", &format!("to.{file}")]);
        std::fs::remove_dir_all(place.path().join(format!("to.{file}"))).expect("it is there");
    }
}

/// Tables that take no value that long, by what their rules are on the command line.
const REFUSING: [&[&str]; 7] = [
    &["--value", "utf8"],
    &["--value", "bytes"],
    &["--value", "json", "--separate", "1024"],
    &["--fold", "min:bytes"],
    &["--fold", "min:bytes", "--kind", "hashed"],
    &["--value", "utf8", "--separate", "1024"],
    &["--value", "bytes", "--delete-when", "none"],
];

/// What refusals say to do, and the rules of tables that are made so.
const WAYS_OUT: [(&str, &[&[&str]]); 2] = [
    ("create it with a separation threshold (`separate`)", &[&["--separate", "1024"]]),
    (
        "use a sorted table with a separation threshold (`separate`) and no delete rule, whose values are bytes that \
         replace one another, or are joined by `append`",
        &[
            &["--value", "bytes", "--separate", "1024", "--kind", "sorted"],
            &["--fold", "append", "--separate", "1024", "--kind", "sorted"],
        ],
    ),
];

#[test]
fn the_way_out_that_a_refusal_of_a_long_value_names_is_one() {
    let place = Place::new();
    place.write("long", text(VALUE_BYTES_MAX + 1));
    place.write("row.csv", [b"k,".to_vec(), vec![b'v'; VALUE_BYTES_MAX + 1]].concat());
    let mut tried = BTreeSet::new();
    for (number, rules) in REFUSING.into_iter().enumerate() {
        let table = format!("t{number}");
        place.done(&[&["create", "s", &table, "--key", "utf8"], rules].concat());
        let import = ["import", "s", &table, "row.csv", "--no-header", "--key", "c1", "--value", "c2"];
        let ran = place.run(&["put", "s", &table, "k", "--file", "long"]);
        let imported = place.run(&import);
        assert!(ran.code == 2 && imported.code == 5, "{rules:?}: {} {}", ran.err, imported.err);
        let (_, ways) =
            WAYS_OUT.iter().find(|(said, _)| ran.err.contains(said)).unwrap_or_else(|| panic!("{}", ran.err));
        for (way, made) in ways.iter().enumerate() {
            let table = format!("t{number}w{way}");
            let kept = if made.contains(&"--kind") { &[][..] } else { rules };
            let made = [kept, made].concat();
            if !tried.insert(made.clone()) {
                continue;
            }
            place.done(&[&["create", "s", &table, "--key", "utf8"], &made[..]].concat());
            place.done(&["put", "s", &table, "k", "--file", "long"]);
            let import = import.map(|word| if word == format!("t{number}") { table.as_str() } else { word });
            place.done(&import);
        }
    }
}
