//! Bulk load: a new table from rows in the order of their keys, all at once or not at all.
#![allow(clippy::unwrap_used)]

mod common;

mod watched;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::small;
use folddb::codec::KeyCodec;
use folddb::folds::Stats;
use folddb::maintenance::VerifyOptions;
use folddb::table_rules::TableRules;
use folddb::{AsOf, Durability, ErrorKind, Expire, Keep, Options, Rules, Store, WriteOp};

fn options() -> Options {
    small().tuning(|t| t.part_bytes(64 << 10)).disk_reserve_bytes(0)
}

fn rules() -> Rules<u64, u64> {
    Rules::sorted::<u64, u64>().fold("sum:u64")
}

fn mix(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn parts(dir: &std::path::Path) -> usize {
    let is_part = |entry: &std::fs::DirEntry| entry.path().extension().is_some_and(|end| end == "part");
    std::fs::read_dir(dir).unwrap().filter_map(Result::ok).filter(is_part).count()
}

#[test]
fn rows_are_there_all_at_once_and_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let other = store.table("other", rules()).unwrap();
    other.fold(&1, &1).unwrap();
    let mut load = store.bulk_load("sums", rules()).unwrap();
    for number in 0..50_000u64 {
        load.fold(&number, &mix(number)).unwrap();
        if number % 10_000 == 0 {
            assert_eq!(store.tables(), ["other"], "nobody sees it yet");
            other.fold(&number, &1).unwrap();
        }
    }
    assert_eq!(load.rows(), 50_000);
    let sums = load.finish().unwrap();
    assert_eq!(store.tables(), ["other", "sums"]);
    assert!(parts(&path) > 3);
    let stats = store.bytes_table("sums").unwrap().stats().unwrap();
    assert_eq!(stats.runs.len(), 1);
    assert!(stats.runs[0].tier >= 1, "it is no small run: {}", stats.runs[0].tier);
    for number in (0..50_000).step_by(997) {
        assert_eq!(sums.get(&number).unwrap(), Some(mix(number)));
    }
    sums.fold(&3, &5).unwrap();
    sums.delete(&4).unwrap();
    let check = |store: &Store| {
        let sums = store.table("sums", rules()).unwrap();
        assert_eq!(sums.get(&3).unwrap(), Some(mix(3).saturating_add(5)));
        assert_eq!(sums.get(&4).unwrap(), None);
        assert_eq!(sums.scan().count().unwrap(), 49_999);
    };
    check(&store);
    store.flush().unwrap();
    check(&store);
    store.bytes_table("sums").unwrap().compact().unwrap();
    check(&store);
    store.close().unwrap();
    let report = Store::verify(&path, &VerifyOptions::default().deep(true), &options()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    check(&Store::open(&path, options()).unwrap());
}

#[test]
fn what_is_given_up_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let mut load = store.bulk_load("sums", rules()).unwrap();
    (0..50_000u64).for_each(|number| load.put(&number, &mix(number)).unwrap());
    assert!(parts(&path) > 1);
    drop(load);
    assert_eq!((parts(&path), store.tables().len()), (0, 0));
    let load = store.bulk_load("sums", rules()).unwrap();
    store.table("sums", rules()).unwrap();
    assert_eq!(load.finish().unwrap_err().kind(), ErrorKind::AlreadyExists, "another was faster");
    assert_eq!(store.bulk_load("sums", rules()).err().unwrap().kind(), ErrorKind::AlreadyExists);
}

#[test]
fn rows_of_one_key_fold_and_those_out_of_order_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let mut load = store.bulk_load("stats", Rules::sorted::<String, Stats>().fold("stats:f64")).unwrap();
    for value in [1.0, 2.0, 6.0] {
        load.fold("a", &Stats::of(value)).unwrap();
    }
    load.put("b", &Stats::of(1.0)).unwrap();
    load.put("b", &Stats::of(7.0)).unwrap();
    let refused = load.fold("aa", &Stats::of(1.0)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert!(refused.to_string().contains("row 6: key aa is before key b"), "{refused}");
    assert_eq!(load.rows(), 5, "the row that was refused is none");
    let table = load.finish().unwrap();
    assert_eq!(table.get("a").unwrap().map(|stats| stats.mean()), Some(3.0));
    assert_eq!(table.get("b").unwrap().map(|stats| stats.count()), Some(1));

    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let rules = TableRules::new(KeyCodec::Utf8).order("reversed").delete_when(b"gone");
    let mut load = store.bulk_load_bytes("words", rules).unwrap();
    for (op, key, value) in [
        (WriteOp::Put, "z", "1"),
        (WriteOp::Put, "y", "gone"),
        (WriteOp::PutIfAbsent, "x", "first"),
        (WriteOp::PutIfAbsent, "x", "second"),
        (WriteOp::Put, "w", "1"),
        (WriteOp::Delete, "w", ""),
        (WriteOp::Fold, "v", "folded"),
    ] {
        load.push(op, key.as_bytes(), value.as_bytes()).unwrap();
    }
    let words = load.finish().unwrap();
    let rows: Vec<_> =
        words.scan().into_iter().map(|row| row.map(|(k, v)| (text(&k), text(&v))).unwrap()).collect();
    let wanted = [("z", "1"), ("x", "first"), ("v", "folded")];
    assert_eq!(rows, wanted.map(|(key, value)| (key.to_owned(), value.to_owned())));
}

#[test]
fn rules_that_a_load_cannot_serve_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let sorted = || TableRules::new(KeyCodec::Bytes);
    for (rules, why) in [
        (TableRules::hashed(KeyCodec::Bytes), "hashed"),
        (sorted().separate(Some(2048)), "separated"),
        (sorted().expire(Expire::ByWrite), "expire"),
        (sorted().archive_log(true), "archives its log"),
    ] {
        let refused = store.bulk_load_bytes("t", rules).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert!(refused.to_string().contains(why), "{refused}");
    }
    let empty = store.bulk_load_bytes("t", sorted()).unwrap().finish().unwrap();
    assert_eq!(empty.scan().count().unwrap(), 0);
}

#[test]
fn snapshots_see_a_table_that_is_loaded_whole_and_backups_have_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let other = store.table("other", rules()).unwrap();
    other.fold(&1, &1).unwrap();
    let before = store.snapshot();
    other.fold(&1, &1).unwrap();
    let mut load = store.bulk_load("sums", rules()).unwrap();
    (0..1000u64).for_each(|number| load.put(&number, &number).unwrap());
    let during = store.snapshot();
    other.fold(&1, &1).unwrap();
    let sums = load.finish().unwrap();
    assert_eq!(before.scan(&sums).count().unwrap(), 0);
    assert_eq!(during.scan(&sums).count().unwrap(), 1000);
    let mut batch = store.batch();
    batch.put(&sums, &7, &0).put(&other, &7, &0);
    batch.commit(Durability::Sync).unwrap();
    assert_eq!(during.get(&sums, &7).unwrap(), Some(7));
}

#[test]
fn what_was_written_to_a_loaded_table_is_kept_for_its_window_over_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let kept = || rules().keep(Keep::Window(Duration::from_secs(3600)));
    let mut load = store.bulk_load("sums", kept()).unwrap();
    load.fold(&1, &10).unwrap();
    let sums = load.finish().unwrap();
    let first = sums.fold(&1, &5).unwrap();
    sums.fold(&1, &7).unwrap();
    drop(sums);
    store.close().unwrap();
    let store = Store::open(&path, options()).unwrap();
    let sums = store.table("sums", kept()).unwrap();
    assert_eq!(sums.get_at(&1, AsOf::Seq((u64::from(first) - 1).into())).unwrap(), Some(10));
    assert_eq!(sums.get_at(&1, AsOf::Seq(first)).unwrap(), Some(15));
    assert_eq!(sums.history(&1, 9).unwrap().len(), 3);
}

#[test]
fn a_load_whose_write_failed_can_only_be_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let made = AtomicUsize::new(0);
    let host = watched::host(move || match made.fetch_add(1, Ordering::Relaxed) {
        1 => Err(std::io::ErrorKind::StorageFull.into()),
        _ => Ok(()),
    });
    let store = Store::create(dir.path().join("store"), options().host(host)).unwrap();
    let mut load = store.bulk_load("sums", rules()).unwrap();
    let refused = (0..100_000_u64).find_map(|number| load.put(&number, &mix(number)).err()).unwrap();
    assert_eq!(refused.kind(), ErrorKind::NoSpace);
    let refused = load.put(&1_000_000, &1).unwrap_err();
    assert!(refused.to_string().contains("drop this load"), "{refused}");
    assert!(load.finish().is_err());
    assert!(store.tables().is_empty());
    let mut load = store.bulk_load("sums", rules()).unwrap();
    load.put(&1, &1).unwrap();
    assert_eq!(load.finish().unwrap().get(&1).unwrap(), Some(1));
}

#[test]
fn rows_that_were_loaded_before_anything_was_written_are_a_version_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    for (name, keep) in [("some", Keep::Versions(4)), ("all", Keep::Forever)] {
        let mut load = store.bulk_load(name, rules().keep(keep)).unwrap();
        load.put(&1, &10).unwrap();
        let table = load.finish().unwrap();
        let history =
            || -> Vec<_> { table.history(&1, 9).unwrap().into_iter().map(|version| version.value).collect() };
        assert_eq!(history(), [Some(10)]);
        table.fold(&1, &5).unwrap();
        store.bytes_table(name).unwrap().compact().unwrap();
        assert_eq!(history(), [Some(15), Some(10)], "{name}");
    }
}
