//! Files that are whole and do not belong there: of another store, of another copy, newer than the
//! manifest; and files of values that are gone. Each is found, and none is read as if it were
//! right.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use folddb::maintenance::{
    BackupOptions, Finding, RepairOptions, RestoreOptions, Severity, VerifyOptions, VerifyReport,
};
use folddb::{BackgroundWork, ErrorKind, Options, Result, Rules, Store, Table, ValuePlacement};

fn options() -> Options {
    Options::default().memory_bytes(8 << 20).background(BackgroundWork::Manual)
}

fn sums(store: &Store) -> Table<u64, u64> {
    store.table("sums", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap()
}

/// Folds `operand` into ten keys, and flushes.
fn fold_all(store: &Store, operand: u64) {
    (0..10).for_each(|key| assert!(sums(store).fold(&key, &operand).is_ok()));
    store.flush().unwrap();
}

/// A store with two parts, as a script makes one for each day.
fn day(path: &Path, operand: u64) {
    let store = Store::create(path, options()).unwrap();
    fold_all(&store, 1);
    fold_all(&store, operand);
    store.close().unwrap();
}

fn named(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.to_string_lossy().contains(ending)).collect();
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) -> PathBuf {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => drop(copy(&entry.path(), &to)),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
    to.to_owned()
}

/// The newest part of a store takes the place of the one with the same name.
fn swap_newest(from: &Path, to: &Path) -> String {
    let part = named(from, ".part").pop().unwrap();
    let other = to.join(part.file_name().unwrap());
    let (bytes, before) = (std::fs::read(&part).unwrap(), std::fs::read(&other).unwrap());
    assert!(bytes.len() == before.len() && bytes != before, "same name, same length, other bytes");
    std::fs::write(&other, bytes).unwrap();
    part.file_name().unwrap().to_str().unwrap().to_owned()
}

fn verify(dir: &Path, deep: bool) -> VerifyReport {
    Store::verify(dir, &VerifyOptions::default().deep(deep), &options()).unwrap()
}

/// The only damage that a check finds.
fn the_damage(dir: &Path, deep: bool) -> Finding {
    let report = verify(dir, deep);
    assert!(!report.is_clean());
    let found: Vec<&Finding> = report.damage().collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

fn opened(dir: &Path) -> Result<Store> {
    Store::open(dir, options())
}

#[test]
fn a_part_of_another_store_with_the_same_number_is_refused_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("monday"), dir.path().join("tuesday"));
    day(&first, 1);
    day(&second, 7);
    let part = swap_newest(&second, &first);
    for refused in [opened(&first).unwrap_err(), Store::open_read_only(&first, options()).unwrap_err()] {
        assert_eq!(refused.kind(), ErrorKind::Corruption);
        assert!(refused.message().contains(&part), "{refused}");
        assert!(refused.message().contains("not the part that the manifest lists"), "{refused}");
    }
    for deep in [false, true] {
        let damage = the_damage(&first, deep);
        assert_eq!(damage.file, part);
        assert!(damage.what.contains("another store"), "{damage}");
        assert_eq!(damage.losses[0].records, Some(10));
    }
    assert!(!Store::diagnose(&first, &options()).unwrap().is_empty());
}

#[test]
fn what_another_store_held_is_not_mended_into_this_one() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second, to) = (dir.path().join("a"), dir.path().join("b"), dir.path().join("mended"));
    day(&first, 1);
    day(&second, 7);
    swap_newest(&second, &first);
    let report = Store::repair(&first, &to, &RepairOptions::default(), &options()).unwrap();
    assert_eq!((report.parts_whole, report.parts_lost, report.records_lost), (1, 1, 10));
    assert!(!report.is_complete());
    let mended = opened(&to).unwrap();
    assert_eq!(sums(&mended).get(&3).unwrap(), Some(1), "what its own part has, and nothing else");
}

#[test]
fn a_part_of_another_copy_of_a_store_is_refused_and_so_is_its_manifest() {
    let dir = tempfile::tempdir().unwrap();
    let first = dir.path().join("first");
    day(&first, 1);
    let second = copy(&first, &dir.path().join("second"));
    for (path, operand) in [(&first, 2), (&second, 3)] {
        let store = opened(path).unwrap();
        fold_all(&store, operand);
        store.close().unwrap();
    }
    let third = copy(&first, &dir.path().join("third"));
    swap_newest(&second, &third);
    assert_eq!(opened(&third).unwrap_err().kind(), ErrorKind::Corruption);
    assert!(the_damage(&third, false).what.contains("another copy"));

    // The other way round: the list of one beside the parts of the other.
    let fourth = copy(&first, &dir.path().join("fourth"));
    named(&fourth, "MANIFEST").iter().for_each(|path| std::fs::remove_file(path).unwrap());
    let manifest = named(&second, "MANIFEST").pop().unwrap();
    std::fs::copy(&manifest, fourth.join(manifest.file_name().unwrap())).unwrap();
    assert_eq!(opened(&fourth).unwrap_err().kind(), ErrorKind::Corruption);
    assert!(!verify(&fourth, false).is_clean());
}

#[test]
fn a_block_of_another_file_is_found_by_a_deep_check() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    day(&first, 1);
    day(&second, 7);
    let of = |store: &Path| named(store, ".part").pop().unwrap();
    let (mut bytes, other) = (std::fs::read(of(&first)).unwrap(), std::fs::read(of(&second)).unwrap());
    // The only block is in the first half, and the facts are in the second.
    let half = bytes.len() / 2;
    assert_ne!(bytes[..half], other[..half]);
    bytes[..half].copy_from_slice(&other[..half]);
    std::fs::write(of(&first), bytes).unwrap();
    assert!(verify(&first, false).is_clean(), "no block was read");
    assert!(the_damage(&first, true).what.contains("another file"));
}

#[test]
fn a_backup_with_a_part_of_another_store_is_not_restored() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second, to) = (dir.path().join("first"), dir.path().join("second"), dir.path().join("to"));
    day(&first, 1);
    day(&second, 7);
    let (place, store) = (dir.path().join("backups"), opened(&first).unwrap());
    store.backup(&place, &BackupOptions::default().copy(true)).unwrap();
    swap_newest(&second, &place.join("000001"));
    let refused = Store::restore(&place, &to, &RestoreOptions::default(), &options()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corruption);
    assert!(refused.message().contains(".part"), "{refused}");
}

#[test]
fn an_older_manifest_that_was_put_back_is_noticed_before_anything_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    day(&path, 1);
    let old = named(&path, "MANIFEST").pop().unwrap();
    let (name, bytes) = (old.file_name().unwrap().to_owned(), std::fs::read(&old).unwrap());
    let store = opened(&path).unwrap();
    fold_all(&store, 100);
    store.close().unwrap();
    assert!(verify(&path, true).is_clean());
    let newest = named(&path, ".part").pop().unwrap();
    named(&path, "MANIFEST").iter().for_each(|path| std::fs::remove_file(path).unwrap());
    std::fs::write(path.join(name), bytes).unwrap();

    let damage = the_damage(&path, false);
    assert!(newest.ends_with(&damage.file) && damage.what.contains("an older MANIFEST"), "{damage}");
    assert_eq!(damage.losses[0].table, "sums");
    let advice = Store::diagnose(&path, &options()).unwrap();
    assert!(advice[0].what.starts_with("the manifest is old"), "{}", advice[0]);
    assert!(advice[0].todo.contains("newest MANIFEST"), "{}", advice[0]);
    let refused = opened(&path).unwrap_err();
    assert!(refused.message().contains("an older MANIFEST"), "{refused}");
    assert!(newest.exists(), "nothing was removed");
    let to = dir.path().join("mended");
    let report = Store::repair(&path, &to, &RepairOptions::default(), &options()).unwrap();
    let lost: Vec<&Finding> = report.lost().collect();
    assert!(lost.len() == 1 && lost[0].what.contains("left out"), "{lost:?}");

    // Whoever wants the older state says so.
    std::fs::remove_file(&newest).unwrap();
    assert!(verify(&path, true).is_clean());
    assert_eq!(sums(&opened(&path).unwrap()).get(&3).unwrap(), Some(2));
}

/// A store with values in files of their own, in a sorted and in a hashed table.
fn with_value_files(path: &Path) {
    let store = Store::create(path, options()).unwrap();
    let place = ValuePlacement::Files;
    let sorted = Rules::sorted::<u64, Vec<u8>>().separate(64).value_placement(place);
    let sorted = store.table("sorted", sorted).unwrap();
    let hashed = store.table("hashed", Rules::hashed::<u64, Vec<u8>>().value_placement(place)).unwrap();
    for key in 0..8u64 {
        sorted.put(&key, &vec![key as u8; 500]).unwrap();
        hashed.put(&key, &vec![key as u8; 700]).unwrap();
    }
    store.flush().unwrap();
    store.close().unwrap();
}

fn value_files(store: &Path) -> Vec<PathBuf> {
    named(store, ".shelf").iter().flat_map(|directory| named(directory, ".value")).collect()
}

#[test]
fn value_files_that_are_gone_or_cut_are_missed_without_reading_them() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    with_value_files(&whole);
    let all = value_files(&whole).len();
    assert_eq!(all, 16);
    assert!(verify(&whole, false).is_clean() && verify(&whole, true).is_clean());
    assert!(Store::diagnose(&whole, &options()).unwrap().is_empty());
    for at in 0..all {
        for how in ["removed", "emptied", "cut", "lengthened"] {
            let store = copy(&whole, &dir.path().join(format!("{at} {how}")));
            let file = value_files(&store)[at].clone();
            let bytes = std::fs::read(&file).unwrap();
            match how {
                "removed" => std::fs::remove_file(&file).unwrap(),
                "emptied" => std::fs::write(&file, []).unwrap(),
                "cut" => std::fs::write(&file, &bytes[..bytes.len() - 16]).unwrap(),
                _ => std::fs::write(&file, [&bytes[..], &[0; 16]].concat()).unwrap(),
            }
            // Of the files of a hashed table nothing says how long they are together.
            let report = verify(&store, false);
            let found = report.damage().find(|finding| file.ends_with(&finding.file));
            let is_sorted = bytes.len() < 600;
            assert_eq!(found.is_some(), is_sorted || matches!(how, "removed" | "emptied"), "{at} {how}");
            if let Some(found) = found {
                assert_eq!((found.severity, found.losses[0].records), (Severity::Damage, Some(1)));
                let advice = Store::diagnose(&store, &options()).unwrap();
                assert!(advice.iter().any(|one| one.what.contains("damaged")), "{advice:?}");
            }
            assert_eq!(verify(&store, true).is_clean(), how == "lengthened", "{at} {how}");
        }
    }
    let none = copy(&whole, &dir.path().join("none"));
    value_files(&none).iter().for_each(|file| std::fs::remove_file(file).unwrap());
    let report = verify(&none, false);
    let found: Vec<&Finding> = report.damage().collect();
    assert_eq!(found.len(), 2, "one of each table: {found:?}");
    assert!(found.iter().all(|one| one.losses[0].records == Some(8) && one.what.contains("7 value files")));
}
