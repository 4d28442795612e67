//! Backups and restores that a crash interrupts, before each of their changes: listed backups are
//! whole, promised ones exist, and interrupted ones do not disturb the next.

use std::path::{Path, PathBuf};

use folddb::maintenance::{BackupOptions, RestoreOptions};
use folddb::{Durability, ErrorKind, Options, Store};
use folddb_sim::numbered::Numbered;
use folddb_sim::small_store;
use folddb_sim::world::SimDisk;

const SEED: u64 = 7;

fn options(disk: &SimDisk) -> Options {
    small_store::options(disk).tuning(|t| t.part_bytes(64 << 10))
}

fn place() -> PathBuf {
    PathBuf::from("/backups")
}

fn write(store: &Store, range: std::ops::RangeInclusive<u64>) {
    let numbered = Numbered::open(store).expect("the tables are there");
    for i in range {
        let mut batch = store.batch();
        numbered.fill(&mut batch, i);
        batch.commit(Durability::Process).expect("it is written");
    }
}

/// A store with one backup, at batch 50, and more batches since; everything is on the disk.
fn world() -> (SimDisk, Store) {
    let disk = SimDisk::new(SEED);
    let store = Store::create(SimDisk::store_dir(), options(&disk)).expect("a store");
    write(&store, 1..=40);
    store.flush().expect("it is flushed");
    write(&store, 41..=50);
    store.backup(place(), &BackupOptions::default().copy(true)).expect("a backup");
    write(&store, 51..=60);
    store.flush().expect("it is flushed");
    write(&store, 61..=70);
    store.sync().expect("it is synced");
    (disk, store)
}

fn last_of(disk: &SimDisk, dir: &Path) -> Result<u64, String> {
    let store = Store::open(dir, options(disk)).map_err(|error| error.to_string())?;
    Numbered::open(&store).map_err(|error| error.to_string())?.last()
}

/// Every listed backup is whole, and holds what it says; returns their last batches.
fn backups_in(disk: &SimDisk, said: &str) -> Vec<u64> {
    let listed = Store::backups(place(), &options(disk)).unwrap_or_else(|error| panic!("{said}: {error}"));
    let restore = |(at, one): (usize, &folddb::maintenance::Generation)| {
        let to = PathBuf::from(format!("/restored-{at}-{}", disk.calls()));
        let what = RestoreOptions::default().generation(Some(one.number));
        Store::restore(place(), &to, &what, &options(disk)).unwrap_or_else(|error| panic!("{said}: {error}"));
        let found = last_of(disk, &to).unwrap_or_else(|error| panic!("{said}: {error}"));
        assert_eq!(found, u64::from(one.last_seq) / 2, "{said}");
        found
    };
    listed.iter().enumerate().map(restore).collect()
}

fn crash_in_backup(how: &BackupOptions, step: usize, cuts: u64) {
    for n in (0..).step_by(step) {
        let (disk, store) = world();
        disk.die_after(n);
        let made = store.backup(place(), how).is_ok();
        assert!(made || disk.is_dead(), "only death ends it");
        for (said, next) in small_store::crashed(&disk, SEED, n, cuts) {
            let found = backups_in(&next, &said);
            // The new one exists when that was promised, and the old one unless it was to be
            // removed.
            assert!(found.contains(&70) || !made, "{said}: {found:?}");
            assert!(found == [50] || found == [50, 70] || found == [70], "{said}: {found:?}");
            let store = Store::open(SimDisk::store_dir(), options(&next))
                .unwrap_or_else(|error| panic!("{said}: {error}"));
            assert_eq!(Numbered::open(&store).expect("tables").last(), Ok(70), "{said}");
            write(&store, 71..=72);
            let again = store.backup(place(), &BackupOptions::default().keep(Some(1)));
            again.unwrap_or_else(|error| panic!("{said}: {error}"));
            let names: Vec<String> = next.names(&place()).into_iter().map(|(name, _)| name).collect();
            assert_eq!(names.len(), 3, "{said}: {names:?}");
        }
        if !disk.is_dead() {
            assert!(n > 20, "a backup takes more changes");
            return;
        }
    }
}

#[test]
fn a_crash_before_any_change_of_a_backup_leaves_only_whole_ones() {
    crash_in_backup(&BackupOptions::default().copy(true).keep(Some(1)), 2, 3);
    crash_in_backup(&BackupOptions::default().check_all(true), 3, 2);
}

#[test]
fn a_crash_before_any_change_of_a_first_backup_leaves_a_place_that_works() {
    for n in 0.. {
        let disk = SimDisk::new(SEED);
        let store = Store::create(SimDisk::store_dir(), options(&disk)).expect("a store");
        write(&store, 1..=10);
        store.sync().expect("it is synced");
        disk.die_after(n);
        let made = store.backup(place(), &BackupOptions::default()).is_ok();
        for (said, next) in small_store::crashed(&disk, SEED, n, 3) {
            if made {
                assert_eq!(backups_in(&next, &said), [10], "{said}");
            }
            let store = Store::open(SimDisk::store_dir(), options(&next))
                .unwrap_or_else(|error| panic!("{said}: {error}"));
            let again = store.backup(place(), &BackupOptions::default());
            again.unwrap_or_else(|error| panic!("{said}: {error}"));
            assert_eq!(backups_in(&next, &said).last(), Some(&10), "{said}");
        }
        if !disk.is_dead() {
            return;
        }
    }
}

#[test]
fn a_crash_before_any_change_of_a_restore_leaves_no_store_or_all_of_it() {
    let to = PathBuf::from("/new");
    for copy in [true, false] {
        for n in 0.. {
            let (disk, store) = world();
            store.backup(place(), &BackupOptions::default()).expect("a backup");
            disk.die_after(n);
            let what = RestoreOptions::default().copy(copy).at_seq(Some(130.into()));
            let made = Store::restore(place(), &to, &what, &options(&disk)).is_ok();
            for (said, next) in small_store::crashed(&disk, SEED, n, 3) {
                match Store::open(&to, options(&next)) {
                    Err(error) if error.kind() == ErrorKind::StoreNotFound => assert!(!made, "{said}"),
                    Err(error) => panic!("{said}: {error}"),
                    Ok(store) => assert_eq!(Numbered::open(&store).expect("tables").last(), Ok(65), "{said}"),
                }
                assert_eq!(backups_in(&next, &said), [50, 70], "{said}: the backups are none the worse");
            }
            if !disk.is_dead() {
                assert!(n > 8, "a restore takes more changes");
                break;
            }
        }
    }
}
