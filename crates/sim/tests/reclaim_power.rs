//! What survives a reclaim with a power cut at any moment: a backup that was linked before it, and
//! a scan that is resumed.
//!
//! A reclaim copies live values into new files and removes old ones. A backup has hard links of
//! those, and cursors that were handed out before lead to their values. It is crashed before each
//! change that it makes.

use std::path::PathBuf;

use folddb::maintenance::{BackupOptions, RestoreOptions};
use folddb::{Cursor, Options, Resume, Rules, Store, Table};
use folddb_sim::small_store;
use folddb_sim::world::SimDisk;

const SEED: u64 = 12;
const KEYS: u64 = 80;

/// Rounds in the backup, and rounds in the end.
const BACKED_UP: u64 = 3;
const ROUNDS: u64 = 5;

fn options(disk: &SimDisk) -> Options {
    small_store::options(disk).tuning(|t| t.value_segment_bytes(256 << 10))
}

fn open(disk: &SimDisk) -> Store {
    small_store::open(disk, options(disk))
}

fn place() -> PathBuf {
    PathBuf::from("/backups")
}

fn tables(store: &Store) -> [Table<u64, Vec<u8>>; 2] {
    let sorted = Rules::sorted::<u64, Vec<u8>>().separate(1024);
    [("sorted", sorted), ("hashed", Rules::hashed())]
        .map(|(name, rules)| store.table(name, rules).expect("a table"))
}

fn value(key: u64, round: u64) -> Vec<u8> {
    vec![(key * 7 + round * 31) as u8; 1500 + (key as usize * 37 + round as usize) % 2000]
}

/// Every fifth key keeps its first value, so that old files have live values.
fn round_of(key: u64, last: u64) -> u64 {
    if key.is_multiple_of(5) { 0 } else { last }
}

fn write(store: &Store, rounds: std::ops::RangeInclusive<u64>) {
    for round in rounds {
        for table in tables(store) {
            for key in (0..KEYS).filter(|&key| round == 0 || round_of(key, round) > 0) {
                table.put(&key, &value(key, round)).expect("it goes");
            }
        }
        store.background_step_of(folddb::BackgroundJob::Log).expect("it goes");
    }
    store.bytes_table("sorted").expect("a table").compact().expect("it goes");
    store.flush().expect("it goes");
}

fn assert_holds(store: &Store, last: u64, what: &str) {
    for table in tables(store) {
        for key in 0..KEYS {
            let found = table.get(&key).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(found == Some(value(key, round_of(key, last))), "{what}: key {key}");
        }
    }
}

/// For each table the position of a scan, and the keys that it has handed out.
type Begun = [(Cursor, Vec<u64>); 2];

/// A store whose values a backup has by hard links, overwritten since; and a scan of each table
/// that has begun.
struct World {
    disk: SimDisk,
    begun: Begun,
}

fn world() -> World {
    let disk = SimDisk::new(SEED);
    let store = Store::create(SimDisk::store_dir(), options(&disk)).expect("a store");
    write(&store, 0..=BACKED_UP);
    let backup = store.backup(place(), &BackupOptions::default()).expect("a backup");
    assert!(backup.linked.files > 0, "nothing was linked: {backup:?}");
    write(&store, BACKED_UP + 1..=ROUNDS);
    let begun = tables(&store).map(|table| {
        let mut rows = table.scan().into_iter();
        let had: Vec<u64> = rows.by_ref().take(30).map(|row| row.expect("a row").0).collect();
        (rows.cursor().expect("it stands somewhere"), had)
    });
    store.close().expect("it closes");
    World { disk, begun }
}

/// The scans resume from what was handed out before: each key comes once, with its value.
fn go_on(store: &Store, begun: &Begun, how: Resume, what: &str) {
    for (table, (cursor, had)) in tables(store).into_iter().zip(begun) {
        let cursor: Cursor = cursor.to_string().parse().expect("a cursor");
        let rest = table.resume(&cursor, how).unwrap_or_else(|error| panic!("{what}: {error}"));
        let mut keys = had.clone();
        for row in rest {
            let (key, found) = row.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(found == value(key, round_of(key, ROUNDS)), "{what}: key {key}");
            keys.push(key);
        }
        keys.sort_unstable();
        assert!(keys.into_iter().eq(0..KEYS), "{what}");
    }
}

/// The backup is whole, and has the same contents as before.
fn assert_restores(disk: &SimDisk, what: &str) {
    let listed = Store::backups(place(), &options(disk)).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(listed.len() == 1 && listed[0].damage.is_none(), "{what}: {listed:?}");
    let to = PathBuf::from("/restored");
    Store::restore(place(), &to, &RestoreOptions::default(), &options(disk))
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let store = Store::open(&to, options(disk)).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_holds(&store, BACKED_UP, what);
}

/// Opens the store after a crash: all is there, and a reclaim that is not interrupted completes.
fn goes_on_after(disk: &SimDisk, begun: &Begun, what: &str) {
    let store = open(disk);
    assert_holds(&store, ROUNDS, what);
    go_on(&store, begun, Resume::Relaxed, what);
    store.reclaim().unwrap_or_else(|error| panic!("{what}: {error}"));
    go_on(&store, begun, Resume::Strict, what);
    go_on(&store, begun, Resume::Relaxed, what);
    store.close().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_restores(disk, what);
}

#[test]
fn a_linked_backup_and_a_scan_under_way_outlive_a_reclaim_wherever_it_is_cut_short() {
    let World { disk: whole, begun } = world();
    for n in 0.. {
        let disk = whole.fork();
        let store = open(&disk);
        disk.die_after(n);
        let done = store.reclaim();
        if !disk.is_dead() {
            assert!(done.is_ok_and(|done| done.plans > 0) && n > 10, "a reclaim takes more changes than {n}");
            go_on(&store, &begun, Resume::Strict, "a reclaim that was done");
            assert_holds(&store, ROUNDS, "a reclaim that was done");
            disk.die_after(1 << 40);
            drop(store);
            return assert_restores(&disk, "a reclaim that was done");
        }
        drop(store);
        small_store::crashed(&disk, SEED, n, 2)
            .iter()
            .for_each(|(what, disk)| goes_on_after(disk, &begun, what));
    }
}
