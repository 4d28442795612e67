//! Values in files of their own: the same tables, with one file for each value.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::small_values;
use folddb::maintenance::{BackupOptions, RepairOptions, RestoreOptions, VerifyOptions};
use folddb::{ErrorKind, Options, Rules, Store, Table, ValuePlacement};

const KEYS: u64 = 300;

fn options() -> Options {
    small_values().tuning(|t| t.part_bytes(64 << 10))
}

fn hashed(store: &Store) -> Table<u64, Vec<u8>> {
    store.table("hashed", Rules::hashed::<u64, Vec<u8>>().value_placement(ValuePlacement::Files)).unwrap()
}

fn sorted(store: &Store) -> Table<u64, Vec<u8>> {
    store
        .table(
            "sorted",
            Rules::sorted::<u64, Vec<u8>>().separate(1024).value_placement(ValuePlacement::Files),
        )
        .unwrap()
}

fn blob(key: u64, round: u64) -> Vec<u8> {
    vec![(key * 7 + round) as u8; 1024 + (key as usize * 37 + round as usize * 11) % 3000]
}

fn fill(table: &Table<u64, Vec<u8>>, round: u64) {
    (0..KEYS).for_each(|key| assert!(table.put(&key, &blob(key, round)).is_ok()));
}

fn settle(store: &Store) {
    store.flush().unwrap();
    for table in store.tables() {
        store.bytes_table(&table).unwrap().compact().unwrap();
    }
    while store.background_step().unwrap().is_some() {}
    store.reclaim().unwrap();
}

/// The files of values under a store, with their lengths.
fn value_files(path: &Path) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(path).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_dir()) {
        assert!(entry.path().extension().is_some_and(|extension| extension == "shelf"));
        for value_file in fs::read_dir(entry.path()).unwrap().map(Result::unwrap) {
            found.insert(value_file.path(), value_file.metadata().unwrap().len());
        }
    }
    found
}

fn check(store: &Store, round: u64) {
    for table in [hashed(store), sorted(store)] {
        for key in 0..KEYS {
            assert_eq!(table.get(&key).unwrap(), Some(blob(key, round)), "key {key}");
            assert_eq!(table.head(&key).unwrap().unwrap().size_bytes, blob(key, round).len() as u64);
        }
        assert_eq!(table.scan().into_iter().map(Result::unwrap).count() as u64, KEYS);
    }
}

#[test]
fn each_value_is_a_file_and_goes_when_it_is_dead() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let mut store = Store::create(&path, options()).unwrap();
    for round in 0..4 {
        fill(&hashed(&store), round);
        fill(&sorted(&store), round);
        check(&store, round);
        match round {
            1 => {
                store.close().unwrap();
                store = Store::open(&path, options()).unwrap();
            }
            2 => {
                drop(store); // as if the process had died
                store = Store::open(&path, options()).unwrap();
            }
            _ => {}
        }
        check(&store, round);
    }
    settle(&store);
    check(&store, 3);
    let live: u64 = value_files(&path).values().sum();
    assert_eq!(value_files(&path).len() as u64, 2 * KEYS, "every value has its file, and no dead one has");
    assert_eq!(store.stats().disk.value_bytes, live);
    assert_eq!(fs::read_dir(&path).unwrap().filter(|one| has_ending(one, "values")).count(), 0);
    // Most of a directory is dead, and its live values stay where they are.
    for key in (0..KEYS).filter(|key| key % 5 != 0) {
        hashed(&store).delete(&key).unwrap();
        sorted(&store).delete(&key).unwrap();
    }
    let there = value_files(&path);
    settle(&store);
    let left = value_files(&path);
    assert_eq!(left.len() as u64, 2 * KEYS / 5);
    assert!(left.iter().all(|(path, bytes)| there.get(path) == Some(bytes)));
    store.close().unwrap();
    let report = Store::verify(&path, &VerifyOptions::default().deep(true), &options()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let store = Store::open(&path, options()).unwrap();
    assert_eq!(hashed(&store).get(&5).unwrap(), Some(blob(5, 3)));
    assert_eq!(hashed(&store).get(&6).unwrap(), None);
}

fn has_ending(entry: &std::io::Result<fs::DirEntry>, ending: &str) -> bool {
    entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == ending)
}

#[test]
fn snapshots_scans_and_located_values_keep_what_they_lead_to() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    for table in [hashed(&store), sorted(&store)] {
        fill(&table, 0);
        settle(&store);
        let snapshot = store.snapshot();
        let located = table.locate(&7, Default::default()).unwrap().unwrap();
        let file = located.as_file().unwrap();
        assert!(file.path().to_str().unwrap().ends_with(".value"));
        let end = file.offset() + file.len_bytes();
        assert_eq!(
            fs::metadata(file.path()).unwrap().len(),
            end.next_multiple_of(16),
            "a head, the key, the value"
        );
        let mut scan = table.scan().into_iter();
        let (first, _) = scan.next().unwrap().unwrap();
        fill(&table, 1);
        settle(&store);
        assert_eq!(snapshot.get(&table, &7).unwrap(), Some(blob(7, 0)));
        drop(snapshot);
        fill(&table, 2);
        settle(&store);
        let mut value = Vec::new();
        located.write_to(&mut value).unwrap();
        assert_eq!(value, blob(7, 0), "it is what the key had when it was asked for");
        let rest: BTreeMap<u64, Vec<u8>> = scan.map(Result::unwrap).collect();
        assert_eq!(rest.len() as u64, KEYS - 1);
        assert!(
            rest.iter().all(|(key, value)| *key != first && *value == blob(*key, 0)),
            "the scan sees what was"
        );
        settle(&store); // a walk of a hashed table is a boundary, as a snapshot is
        let before = value_files(&path).len();
        drop(located);
        let after = value_files(&path).len();
        assert!(after < before, "what only they held goes with them: {before}, then {after}");
    }
    settle(&store);
    assert_eq!(value_files(&path).len() as u64, 2 * KEYS);
}

#[test]
fn backups_link_each_file_and_repair_takes_each_one_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    fill(&hashed(&store), 0);
    fill(&sorted(&store), 0);
    settle(&store);
    fill(&hashed(&store), 1);
    fill(&sorted(&store), 1);
    let backups = dir.path().join("backups");
    let report = store.backup(&backups, &BackupOptions::default()).unwrap();
    assert!(report.linked.files >= 2 * KEYS);
    fill(&hashed(&store), 2);
    settle(&store);
    let copied = store.backup(&backups, &BackupOptions::default().copy(true).keep(Some(2))).unwrap();
    assert!(copied.copied.files >= 2 * KEYS);
    store.close().unwrap();
    let (back, again) = (dir.path().join("back"), dir.path().join("again"));
    Store::restore(&report.path, &back, &RestoreOptions::default(), &options()).unwrap();
    let restored = Store::open(&back, options()).unwrap();
    check(&restored, 1);
    settle(&restored);
    assert_eq!(value_files(&back).len() as u64, 2 * KEYS);
    restored.close().unwrap();
    // The index of the hashed table is lost: it is rebuilt from the files.
    let index = fs::read_dir(&back).unwrap().find(|one| has_ending(one, "index")).unwrap().unwrap().path();
    fs::remove_file(&index).unwrap();
    Store::repair(&back, &again, &RepairOptions::default(), &options()).unwrap();
    check(&Store::open(&again, options()).unwrap(), 1);
}

#[test]
fn a_damaged_or_missing_file_is_named_and_costs_one_key() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    fill(&sorted(&store), 0);
    store.flush().unwrap();
    let file = |key: u64| {
        let located = sorted(&store).locate(&key, Default::default()).unwrap().unwrap();
        located.as_file().unwrap().path().to_owned()
    };
    let (rotten, gone) = (file(3), file(4));
    let mut bytes = fs::read(&rotten).unwrap();
    bytes[100] ^= 1;
    fs::write(&rotten, bytes).unwrap();
    fs::remove_file(&gone).unwrap();
    for (key, file) in [(3, &rotten), (4, &gone)] {
        let error = sorted(&store).get(&key).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    }
    assert_eq!(sorted(&store).get(&5).unwrap(), Some(blob(5, 0)));
    store.close().unwrap();
    let report = Store::verify(&path, &VerifyOptions::default().deep(true), &options()).unwrap();
    assert!(!report.findings.is_empty());
}

#[test]
fn the_rule_is_refused_where_no_value_is_separated_and_comes_back_with_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let inline = Rules::sorted::<u64, Vec<u8>>().value_placement(ValuePlacement::Files);
    assert_eq!(store.table("inline", inline).err().unwrap().kind(), ErrorKind::InvalidInput);
    fill(&hashed(&store), 0);
    store.close().unwrap();
    let store = Store::open(&path, options()).unwrap();
    let table = store.bytes_table("hashed").unwrap();
    assert_eq!(table.rules().as_table_rules().value_placement, ValuePlacement::Files);
}
