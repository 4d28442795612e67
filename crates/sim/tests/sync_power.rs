//! A sync of tables, with a power cut at any moment: each row is the old one or the new one, those
//! before some key are new and those after it old, and a second sync completes the table.

use folddb::maintenance::SyncOptions;
use folddb::{BackgroundWork, BytesScan, Options, Rules, Store, Table};
use folddb_sim::chance::Seeded;
use folddb_sim::world::SimDisk;

const SEED: u64 = 21;

/// More than two batches of rows to be copied.
const KEYS: u64 = 10_000;

/// The power is cut before each n-th change, with this n.
const STEP: usize = 7;

fn options(disk: &SimDisk) -> Options {
    Options::default()
        .host(disk.host())
        .memory_bytes(4 << 20)
        .tuning(|t| t.segment_bytes(1 << 20).value_segment_bytes(256 << 10).part_bytes(64 << 10))
        .disk_reserve_bytes(0)
        .background(BackgroundWork::Manual)
}

fn table(store: &Store) -> Table<u64, Vec<u8>> {
    store.table("rows", Rules::sorted::<u64, Vec<u8>>().separate(256)).expect("a table")
}

/// Some rows are the same in both, some differ, some are in one only; a few are separated.
fn value(key: u64, is_new: bool) -> Option<Vec<u8>> {
    let len = if key.is_multiple_of(97) { 2000 } else { 20 };
    match key % 5 {
        0 => Some(vec![1; len]),
        1 if is_new => None,
        2 if !is_new => None,
        _ => Some(vec![2 + u8::from(is_new); len]),
    }
}

fn filled(is_new: bool) -> SimDisk {
    let disk = SimDisk::new(SEED + u64::from(is_new));
    let store = Store::create(SimDisk::store_dir(), options(&disk)).expect("a store");
    let rows = table(&store);
    let mut batch = store.batch();
    (0..KEYS).filter_map(|key| Some((key, value(key, is_new)?))).for_each(|(key, value)| {
        batch.put(&rows, &key, &value);
    });
    batch.commit(folddb::Durability::Sync).expect("it goes");
    store.flush().expect("it goes");
    drop(rows);
    store.close().expect("it closes");
    disk
}

fn synchronize(store: &Store, from: BytesScan) -> folddb::Result<folddb::maintenance::SyncReport> {
    store.synchronize(table(store).as_bytes().scan(), from, &SyncOptions::default())
}

/// The number of new rows, from the first on. The others must be the old ones.
fn rows_brought(store: &Store, what: &str) -> u64 {
    let rows = table(store);
    let found = |key: u64| rows.get(&key).unwrap_or_else(|error| panic!("{what}: {error}"));
    let is_old = |key: &u64| value(*key, false) != value(*key, true) && found(*key) != value(*key, true);
    let brought = (0..KEYS).find(is_old).unwrap_or(KEYS);
    for key in 0..KEYS {
        assert!(found(key) == value(key, key < brought), "{what}: key {key}, with {brought} brought over");
    }
    brought
}

#[test]
fn a_power_cut_in_a_sync_leaves_each_row_old_or_new_and_the_next_sync_brings_up_the_rest() {
    let new = filled(true);
    let source = Store::open(SimDisk::store_dir(), options(&new)).expect("it opens");
    let old = filled(false);
    let theirs = || table(&source).as_bytes().scan();
    let changes = {
        let disk = old.fork();
        let store = Store::open(SimDisk::store_dir(), options(&disk)).expect("it opens");
        let before = disk.changes();
        let report = synchronize(&store, theirs()).expect("it is brought up");
        assert!(report.put > 4096 && report.deleted == KEYS / 5, "{report:?}");
        assert_eq!(rows_brought(&store, "undisturbed"), KEYS);
        disk.changes() - before
    };
    assert!(changes > 10, "{changes} changes are few");
    let mut seen = std::collections::BTreeSet::new();
    for after in (0..=changes).step_by((changes as usize / (5 * STEP)).max(1)) {
        let disk = old.fork();
        let store = Store::open(SimDisk::store_dir(), options(&disk)).expect("it opens");
        disk.die_after(after);
        let brought = synchronize(&store, theirs());
        let is_over = brought.is_ok() && !disk.is_dead();
        drop(store);
        for power in [false, true] {
            let chance = &mut Seeded::new(after * 2 + u64::from(power));
            let next = if power { disk.after_power_cut(chance) } else { disk.after_death() };
            let what = format!("a crash before change {after}, with power {power}");
            let store = Store::open(SimDisk::store_dir(), options(&next)).expect("it opens");
            let rows = rows_brought(&store, &what);
            assert!(!is_over || rows == KEYS, "{what}: it had returned");
            seen.insert(rows);
            let report = synchronize(&store, theirs()).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(report.put + report.deleted == 0, rows == KEYS, "{what}: {report:?}");
            assert_eq!(rows_brought(&store, &what), KEYS);
            let again = synchronize(&store, theirs()).expect("it goes");
            assert!(again.found.is_same(), "{what}: {again:?}");
        }
    }
    assert!(seen.len() > 2, "some between none and all: {seen:?}");
}
