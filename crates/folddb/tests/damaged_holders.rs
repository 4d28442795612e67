//! The parts and indexes that lead to values are damaged: then it is not known which values are
//! alive, so all remain, and writes continue.

mod common;

use std::path::{Path, PathBuf};

use common::small_values as options;
use folddb::{BackgroundJob, ErrorKind, Rules, Store, ValuePlacement};

fn blob(key: u64, round: u64) -> Vec<u8> {
    vec![(key * 7 + round) as u8; 4000 + key as usize]
}

/// A store most of whose values are dead, and whose parts and indexes know that.
fn make(path: &Path, rules: &Rules<u64, Vec<u8>>) {
    let store = Store::create(path, options()).expect("a store");
    let table = store.table("t", rules.clone()).expect("a table");
    for round in 0..5 {
        (0..40).filter(|key| round == 0 || key % 5 != 0).for_each(|key| {
            table.put(&key, &blob(key, round)).expect("it goes");
        });
        store.flush().expect("it flushes");
    }
    store.bytes_table("t").expect("a table").compact().expect("it merges");
    store.close().expect("it closes");
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry").path();
        let target = to.join(entry.file_name().expect("a name"));
        match entry.is_dir() {
            true => copy(&entry, &target),
            false => assert!(std::fs::copy(&entry, &target).expect("it is copied") < u64::MAX),
        }
    }
}

fn files_with(path: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).expect("a directory").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

/// Flips bytes of the files with this extension, one after the other; returns how often reclaim
/// found the damage.
fn flip(rules: Rules<u64, Vec<u8>>, extension: &str, step: usize) -> usize {
    let temp = tempfile::tempdir().expect("a directory");
    let whole = temp.path().join("whole");
    make(&whole, &rules);
    let mut met = 0;
    for file in files_with(&whole, extension) {
        let bytes = std::fs::read(&file).expect("it reads");
        for at in (0..bytes.len()).step_by(step) {
            let path = temp.path().join("damaged");
            copy(&whole, &path);
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            std::fs::write(path.join(file.file_name().expect("a name")), damaged).expect("it is written");
            met += usize::from(goes_on(&path, &rules));
            std::fs::remove_dir_all(&path).expect("it goes");
        }
    }
    met
}

/// Whether reclaim found damage in this store, which accepts writes in any case.
fn goes_on(path: &Path, rules: &Rules<u64, Vec<u8>>) -> bool {
    let Ok(store) = Store::open(path, options()) else { return false }; // opening reports it, and there is nothing more to check
    let Ok(table) = store.table("t", rules.clone()) else { return false };
    let mut has_met = false;
    for _ in 0..12 {
        has_met |= store.background_step_of(BackgroundJob::Reclaim).is_err();
    }
    has_met |= store.stats().damage.iter().any(|damage| damage.contains("values"));
    // Damage to an index costs a shard of it: keys there are refused, and no others.
    let (mut taken, all) = (0_usize, 1000..1040_u64);
    for key in all.clone() {
        match table.put(&key, &blob(1, 9)) {
            Ok(_) => {
                assert_eq!(table.get(&key).expect("it reads"), Some(blob(1, 9)));
                taken += 1;
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corruption, "{error}"),
        }
    }
    assert!(taken > all.count() / 2, "only {taken} writes went through");
    assert_eq!(store.stats().poisoned_by, None);
    for key in 0..40 {
        let expected = blob(key, if key % 5 == 0 { 0 } else { 4 });
        assert!(
            table.get(&key).is_ok_and(|found| found == Some(expected)) || table.get(&key).is_err(),
            "key {key}"
        );
    }
    has_met
}

#[test]
fn reclaim_that_meets_a_damaged_part_leaves_values_alone_and_writes_go_on() {
    assert!(flip(Rules::sorted::<u64, Vec<u8>>().separate(512), "part", 8) > 0);
}

#[test]
fn so_it_is_with_values_in_files_of_their_own() {
    assert!(
        flip(
            Rules::sorted::<u64, Vec<u8>>().separate(512).value_placement(ValuePlacement::Files),
            "part",
            32
        ) > 0
    );
}

#[test]
fn so_it_is_with_a_damaged_index_of_a_hashed_table() {
    assert!(flip(Rules::hashed::<u64, Vec<u8>>(), "index", 16) > 0);
}
