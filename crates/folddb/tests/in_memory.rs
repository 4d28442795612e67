//! Stores in memory do what those on the disk do, leave nothing on it, and keep to the same limits.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::{compact, drain, manual, small_values};
use folddb::maintenance::{BackupOptions, RepairOptions, RestoreOptions, VerifyOptions};
use folddb::table_rules::TableRules;
use folddb::{Durability, ErrorKind, Options, Rules, Store, WriteOp};

const ROWS: u64 = 20_000;

/// A store with tables of both kinds, values in the tree, in the log of values and in files.
fn filled(store: &Store) {
    let rules = ["", "separate=100", "separate=100\nvalue_placement=files", "kind=hashed"];
    for (at, rules) in rules.iter().enumerate() {
        let rules: TableRules = rules.parse().unwrap();
        let table = store.create_bytes_table(&format!("t{at}"), rules).unwrap();
        for i in 0..ROWS / 100 {
            table.write(WriteOp::Put, &i.to_be_bytes(), &vec![i as u8; 300]).unwrap();
        }
    }
}

fn rows(store: &Store) -> Vec<(String, u64, u64)> {
    let facts = |name: String| {
        let scan = store.bytes_table(&name).unwrap().scan();
        let rows: Vec<_> = scan.into_iter().map(|row| row.unwrap()).collect();
        let bytes = rows.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum();
        (name, rows.len() as u64, bytes)
    };
    store.tables().into_iter().map(facts).collect()
}

#[test]
fn a_store_in_memory_leaves_nothing_on_the_disk() {
    let here = || {
        let names = std::fs::read_dir(".").unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().ends_with(".folddb")).collect::<Vec<_>>()
    };
    let store = Store::in_memory(small_values()).unwrap();
    filled(&store);
    store.flush().unwrap();
    store.sync().unwrap();
    assert_eq!(rows(&store).len(), 4);
    assert_eq!(here(), Vec::<std::ffi::OsString>::new());
    assert!(store.stats().disk.bytes > 0);
}

#[test]
fn two_stores_in_memory_know_nothing_of_each_other() {
    let (one, two) = (Store::in_memory(manual()).unwrap(), Store::in_memory(manual()).unwrap());
    let table = one.table("t", Rules::sorted::<u64, u64>()).unwrap();
    table.put(&1, &1).unwrap();
    assert_eq!(two.tables(), Vec::<String>::new());
    let options = manual().in_memory();
    Store::create("s", options.clone()).unwrap();
    assert_eq!(Store::open("s", options.in_memory()).unwrap_err().kind(), ErrorKind::StoreNotFound);
}

#[test]
fn what_was_written_is_there_when_it_is_opened_again() {
    let options = small_values().in_memory();
    let path = Path::new("/var/lib/app/store.folddb"); // no directory of it exists
    let store = Store::create(path, options.clone()).unwrap();
    filled(&store);
    let before = rows(&store);
    drop(store); // nothing is flushed: the log has it
    let store = Store::open(path, options.clone()).unwrap();
    assert_eq!(rows(&store), before);
    drain(&store);
    store.tables().iter().for_each(|name| compact(&store, name));
    store.close().unwrap();
    assert_eq!(rows(&Store::open_read_only(path, options).unwrap()), before);
}

#[test]
fn one_writer_and_any_readers_have_it_open() {
    let options = manual().in_memory();
    let store = Store::create("s", options.clone()).unwrap();
    filled(&store);
    assert_eq!(Store::open("s", options.clone()).unwrap_err().kind(), ErrorKind::Locked);
    assert_eq!(Store::open_read_only("s", options.clone()).unwrap_err().kind(), ErrorKind::Locked);
    let secondary = Store::open_secondary("s", options.clone()).unwrap();
    assert_eq!(rows(&secondary), rows(&store));
    store.bytes_table("t0").unwrap().write(WriteOp::Put, b"new", b"row").unwrap();
    assert_eq!(rows(&secondary.refresh().unwrap()), rows(&store));
    store.close().unwrap();
    Store::freeze("s", options.clone()).unwrap();
    assert_eq!(Store::open("s", options).unwrap_err().kind(), ErrorKind::ReadOnly);
}

#[test]
fn it_is_backed_up_restored_verified_and_repaired_in_memory() {
    let options = small_values().in_memory();
    let store = Store::create("s", options.clone()).unwrap();
    filled(&store);
    let before = rows(&store);
    store.backup("backups", &BackupOptions::default()).unwrap();
    store.drop_table("t1").unwrap();
    store.close().unwrap();
    Store::restore("backups", "restored", &RestoreOptions::default(), &options).unwrap();
    assert!(Store::verify("restored", &VerifyOptions::default().deep(true), &options).unwrap().is_clean());
    assert_eq!(rows(&Store::open("restored", options.clone()).unwrap()), before);
    let report = Store::repair("restored", "repaired", &RepairOptions::default(), &options).unwrap();
    assert_eq!(report.lost().count(), 0);
    assert_eq!(rows(&Store::open("repaired", options).unwrap()), before);
    assert!(!Path::new("backups").exists() && !Path::new("restored").exists());
}

#[test]
fn a_bound_on_its_space_is_kept() {
    let bound = 32 << 20;
    let options = Options::default().disk_bytes_max(Some(bound)).memory_bytes(4 << 20);
    let store = Store::in_memory(options.tuning(|t| t.segment_bytes(1 << 20).part_bytes(1 << 20))).unwrap();
    let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).unwrap();
    let refused = (0..).find_map(|i| table.put(&i, &vec![i as u8; 64 << 10]).err()).unwrap();
    assert_eq!(refused.kind(), ErrorKind::NoSpace);
    assert!(store.stats().disk.bytes <= bound);
}

#[test]
fn threads_write_and_read_while_the_store_works() {
    let store = Store::in_memory(Options::default().memory_bytes(4 << 20)).unwrap();
    let table = store.table("t", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    let (table, store) = (&table, &store);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for i in 0..ROWS {
                    table.fold(&(i % 5000), &1).unwrap();
                    if i % 5000 == thread {
                        store.sync().unwrap();
                    }
                }
            });
        }
    });
    let mut batch = store.batch();
    batch.fold(table, &0, &1);
    batch.commit(Durability::Sync).unwrap();
    store.settle().unwrap();
    let sum: u64 = table.scan().into_iter().map(|row| row.unwrap().1).sum();
    assert_eq!(sum, 4 * ROWS + 1);
}
