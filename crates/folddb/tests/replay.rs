//! The part of the log that is not in runs is replayed: all of it, and nothing else.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};

use common::small;
use folddb::{BackgroundJob, Durability, Options, Rules, Store, Table};

fn options() -> Options {
    small().disk_reserve_bytes(0)
}

fn sums(store: &Store, name: &str) -> Table<u64, u64> {
    store.table(name, Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap()
}

/// The files of a store as they are if its process dies now.
fn as_if_it_died(store: &Store, name: &str) -> PathBuf {
    let left = store.path().with_file_name(name);
    std::fs::create_dir(&left).unwrap();
    for entry in std::fs::read_dir(store.path()).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, left.join(path.file_name().unwrap())).unwrap();
    }
    left
}

fn fresh() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    (dir, store)
}

/// How many files of a kind there are.
fn files(dir: &Path, kind: &str) -> usize {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.extension().is_some_and(|extension| extension == kind)).count()
}

#[test]
fn what_is_in_runs_is_not_replayed_again() {
    let (_dir, store) = fresh();
    let (a, b) = (sums(&store, "a"), sums(&store, "b"));
    let write = |n: u64| {
        for key in 0..100 {
            store.batch().fold(&a, &key, &n).fold(&b, &key, &n).commit(Durability::Process).unwrap();
        }
    };
    write(1);
    store.background_step_of(BackgroundJob::Seal).unwrap();
    store.background_step_of(BackgroundJob::Flush).unwrap().expect("one of the two is flushed");
    write(10);
    let store = Store::open(as_if_it_died(&store, "died"), options()).unwrap();
    for name in ["a", "b"] {
        assert_eq!(sums(&store, name).get(&5).unwrap(), Some(11), "table {name}");
    }
}

#[test]
fn a_segment_stays_while_any_table_needs_it() {
    let (_dir, store) = fresh();
    let quiet = sums(&store, "quiet");
    let waiting = sums(&store, "waiting");
    let loud = store.table("loud", Rules::sorted::<u64, String>()).unwrap();
    quiet.fold(&1, &7).unwrap();
    let value = "x".repeat(1000);
    let mut largest = 0;
    for round in 0..6u64 {
        waiting.fold(&1, &1).unwrap();
        for n in 0..400 {
            loud.put(&(round * 400 + n), &value).unwrap();
        }
        while store.background_step_of(BackgroundJob::Flush).unwrap().is_some() {
            let left = as_if_it_died(&store, &format!("died-{round}-{largest}"));
            largest = largest.max(files(&left, "log"));
            let after = Store::open(&left, options()).unwrap();
            assert_eq!(sums(&after, "quiet").get(&1).unwrap(), Some(7), "round {round}");
            assert_eq!(sums(&after, "waiting").get(&1).unwrap(), Some(round + 1), "round {round}");
            let rows = after.table("loud", Rules::sorted::<u64, String>()).unwrap();
            assert_eq!(rows.scan().count().unwrap() as u64, (round + 1) * 400);
            drop((rows, after));
            std::fs::remove_dir_all(left).unwrap();
        }
    }
    assert!(largest >= 2, "the log is longer than a segment");
    assert!(largest < 8, "and does not grow for ever: {largest} segments");
}

/// Reads the sums between all steps of merges by small parts, from the store and from the files of
/// a process that dies.
#[test]
fn a_key_is_in_one_place_at_every_step_of_a_merge() {
    let dir = tempfile::tempdir().unwrap();
    let small = || options().tuning(|t| t.part_bytes(64 << 10).merge_factor(2));
    let store = Store::create(dir.path().join("store"), small()).unwrap();
    let table = sums(&store, "a");
    const KEYS: u64 = 20_000;
    for _ in 0..3 {
        for key in 0..KEYS {
            table.fold(&(key * 0x9e37_79b9 % (1 << 40)), &1).unwrap();
        }
        store.flush().unwrap();
    }
    let all_are = |store: &Store, expected: u64| {
        let rows: Vec<(u64, u64)> = sums(store, "a").scan().into_iter().map(|row| row.unwrap()).collect();
        assert_eq!(rows.len() as u64, KEYS);
        assert!(rows.iter().all(|row| row.1 == expected), "a key is read twice, or not at all");
        let read = |row: &(u64, u64)| sums(store, "a").get(&row.0).unwrap();
        assert!(rows.iter().step_by(97).all(|row| read(row) == Some(expected)), "and by itself");
    };
    let mut steps = 0;
    store
        .bytes_table("a")
        .unwrap()
        .compact_with(|_| {
            all_are(&store, 3);
            if steps % 7 == 0 {
                let left = as_if_it_died(&store, &format!("died-{steps}"));
                all_are(&Store::open(&left, small()).unwrap(), 3);
            }
            steps += 1;
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    all_are(&store, 3);
    assert!(steps > 10, "only {steps} steps");
}

#[test]
fn a_delete_that_is_replayed_deletes_what_is_in_runs() {
    let (_dir, store) = fresh();
    let table = sums(&store, "a");
    for key in 0..10 {
        table.put(&key, &1).unwrap();
    }
    store.flush().unwrap();
    table.delete(&3).unwrap();
    let store = Store::open(as_if_it_died(&store, "died"), options()).unwrap();
    let table = sums(&store, "a");
    assert_eq!(table.get(&3).unwrap(), None);
    assert_eq!(table.scan().count().unwrap(), 9);
}

#[test]
fn a_range_delete_between_two_folds_of_one_batch_separates_them() {
    let (_dir, store) = fresh();
    let table = sums(&store, "a");
    let mut batch = store.batch();
    // More than a tail of the memtable holds: it is sealed in the middle of the batch.
    for key in 0..3000u64 {
        batch.fold(&table, &key, &1);
    }
    batch.delete_range(table.as_bytes(), &20u64.to_be_bytes(), &2980u64.to_be_bytes());
    for key in 0..3000u64 {
        batch.fold(&table, &key, &10);
    }
    batch.commit(Durability::Process).unwrap();
    let check = |store: &Store, when: &str| {
        let table = sums(store, "a");
        for (key, expected) in [(19, 11), (20, 10), (2979, 10), (2980, 11)] {
            assert_eq!(table.get(&key).unwrap(), Some(expected), "key {key}, {when}");
        }
        assert_eq!(table.scan().count().unwrap(), 3000, "{when}");
    };
    check(&store, "in memory");
    check(&Store::open(as_if_it_died(&store, "died"), options()).unwrap(), "replayed");
    store.flush().unwrap();
    check(&store, "flushed");
}

#[test]
fn what_a_merge_has_read_goes_from_the_disk() {
    let (_dir, store) = fresh();
    let table = sums(&store, "a");
    for _ in 0..3 {
        for key in 0..100 {
            table.fold(&key, &1).unwrap();
        }
        store.flush().unwrap();
    }
    assert_eq!(files(store.path(), "part"), 3);
    store.bytes_table("a").unwrap().compact().unwrap();
    assert_eq!(files(store.path(), "part"), 1);
    store.drop_table("a").unwrap();
    drop(table);
    assert_eq!(files(store.path(), "part"), 0);
}
