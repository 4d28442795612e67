//! Values of all lengths, up to far beyond what one write may have, are exported and imported as
//! they were: as NDJSON and as CSV, into tables that replace, append, and keep sets.

mod support;

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
    let fold = folds::parse("set").expect("a spec");
    let encode = |last: usize| {
        let long = (0..len_bytes.saturating_sub(200_000) / 100_000)
            .map(|n| [format!("{n:05} ").into_bytes(), text(99_000)].concat());
        let members = long.chain([vec![b'~'; last]]).map(Datum::Bytes).collect();
        let mut value = Vec::new();
        fold.read(&Datum::List(members), &mut value).expect("an operand");
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
