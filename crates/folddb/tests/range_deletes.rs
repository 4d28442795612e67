//! Many range deletes: none is refused, those that hide nothing are removed, and reads are right
//! all the while.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use folddb::{BackgroundWork, Keep, Options, Rules, Snapshot, Store, Table};

/// From which key on the n-th range delete deletes, and up to which.
type Ends = fn(u64) -> (u64, u64);

/// The range deletes that are made, one after another: the n-th of `COUNT`.
const PATTERNS: [(&str, Ends); 5] = [
    ("the same", |_| (10, 1_000)),
    ("side by side", |n| (n, n + 1)),
    ("a queue", |n| (0, n)),
    ("inside of one another", |n| (n, 2 * COUNT - n)),
    ("here and there", |n| (n * 7919 % COUNT, n * 7919 % COUNT + 3)),
];
const COUNT: u64 = 2_000;

fn options() -> Options {
    Options::default().background(BackgroundWork::Manual).memory_bytes(4 << 20)
}

/// The most range deletes that hide something which a table of 4 MiB of memory may have, and as
/// many as one memtable has.
const RANGES_MAX: usize = 250;

fn rows(table: &Table<u64, u64>) -> Vec<(u64, u64)> {
    table.scan().into_iter().map(|row| row.unwrap()).collect()
}

fn rows_at(snapshot: &Snapshot, table: &Table<u64, u64>) -> Vec<(u64, u64)> {
    snapshot.scan(table).into_iter().map(|row| row.unwrap()).collect()
}

struct Played {
    ranges_max: usize,
    ranges_left: usize,
}

/// Deletes `COUNT` ranges of a table, with writes between, and compares its reads with a map.
fn play(store: &Store, rules: Rules<u64, u64>, pattern: Ends, has_rows: bool) -> Played {
    let table = store.table("t", rules).unwrap();
    let mut model = BTreeMap::new();
    for n in 0..if has_rows { COUNT } else { 0 } {
        table.put(&n, &n).unwrap();
        model.insert(n, n);
    }
    let mut ranges_max = 0;
    for n in 0..COUNT {
        let (from, to) = pattern(n);
        if from < to {
            table.delete_range(&from, &to).unwrap();
            model.retain(|key, _| !(from..to).contains(key));
        }
        if n % 16 == 3 {
            let key = n * 31 % COUNT;
            table.put(&key, &n).unwrap();
            model.insert(key, n);
        }
        if n % 500 == 499 {
            store.settle().unwrap();
            ranges_max = ranges_max.max(store.bytes_table("t").unwrap().stats().unwrap().range_deletes);
            assert_eq!(rows(&table), model.clone().into_iter().collect::<Vec<_>>());
        }
    }
    store.flush().unwrap();
    store.settle().unwrap();
    assert_eq!(rows(&table), model.into_iter().collect::<Vec<_>>());
    Played { ranges_max, ranges_left: store.bytes_table("t").unwrap().stats().unwrap().range_deletes }
}

#[test]
fn range_deletes_without_end_are_taken_and_few_are_left() {
    for (name, pattern) in PATTERNS {
        for has_rows in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("s.folddb");
            let store = Store::create(&path, options()).unwrap();
            let played = play(&store, Rules::sorted(), pattern, has_rows);
            assert!(played.ranges_max <= RANGES_MAX, "{name}: {} range deletes", played.ranges_max);
            assert!(played.ranges_left <= RANGES_MAX, "{name}: {} range deletes", played.ranges_left);
            if name == "the same" || name == "a queue" {
                assert!(played.ranges_left <= 250, "{name}: {} range deletes", played.ranges_left);
            }
            let before = rows(&store.table("t", Rules::sorted()).unwrap());
            store.close().unwrap();
            let store = Store::open(&path, options()).unwrap();
            assert_eq!(rows(&store.table("t", Rules::sorted()).unwrap()), before, "{name}");
        }
    }
}

/// The number of them in a table at any moment while threads do the background work: those that are
/// not removed in time delay their writer.
const RANGES_BESIDE_THREADS_MAX: usize = 2_500;

#[test]
fn range_deletes_with_background_threads_are_slowed_and_never_refused() {
    for (name, pattern) in PATTERNS {
        let dir = tempfile::tempdir().unwrap();
        let options = options().background(BackgroundWork::Threads);
        let store = Store::create(dir.path().join("s.folddb"), options).unwrap();
        let table = store.table("t", Rules::sorted::<u64, u64>()).unwrap();
        let mut model = BTreeMap::new();
        let mut ranges_max = 0;
        for n in 0..4 * COUNT {
            let (from, to) = pattern(n % COUNT);
            if from < to {
                table.delete_range(&from, &to).unwrap();
                model.retain(|key, _| !(from..to).contains(key));
            }
            if n % 4 == 3 {
                let key = n * 31 % COUNT;
                table.put(&key, &n).unwrap();
                model.insert(key, n);
            }
            if n % 50 == 49 {
                ranges_max = ranges_max.max(store.bytes_table("t").unwrap().stats().unwrap().range_deletes);
            }
        }
        assert_eq!(rows(&table), model.into_iter().collect::<Vec<_>>(), "{name}");
        assert!(ranges_max <= RANGES_BESIDE_THREADS_MAX, "{name}: {ranges_max} range deletes");
        store.close().unwrap();
    }
}

#[test]
fn nor_does_a_snapshot_or_a_past_that_is_kept_refuse_one() {
    for (name, pattern) in PATTERNS {
        for keep in [Keep::Versions(2), Keep::Window(Duration::from_secs(1)), Keep::Forever] {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::create(dir.path().join("s.folddb"), options()).unwrap();
            play(&store, Rules::sorted().keep(keep), pattern, true);
        }
        for (grows_old, files_after) in [(false, Duration::from_secs(3600)), (true, Duration::ZERO)] {
            let dir = tempfile::tempdir().unwrap();
            let options = options().tuning(|t| t.snapshot_files_after(files_after));
            let store = Store::create(dir.path().join("s.folddb"), options).unwrap();
            let table = store.table("t", Rules::sorted::<u64, u64>()).unwrap();
            (0..COUNT).for_each(|n| _ = table.put(&n, &(n + 7)).unwrap());
            table.delete_range(&5, &9).unwrap();
            let snapshot = store.snapshot();
            let before = rows_at(&snapshot, &table);
            let played = play(&store, Rules::sorted(), pattern, true);
            assert_eq!(rows_at(&snapshot, &table), before, "{name}");
            assert!(before.len() as u64 == COUNT - 4 && played.ranges_left <= COUNT as usize);
            if grows_old {
                assert!(played.ranges_left <= RANGES_MAX, "{name}: {} range deletes", played.ranges_left);
            }
            if name == "the same" {
                assert!(
                    played.ranges_left <= 2,
                    "one for the snapshot to miss, at most: {}",
                    played.ranges_left
                );
            }
        }
    }
}

#[test]
fn a_log_full_of_range_deletes_is_read_back_in_memtables_that_have_few() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.folddb");
    let store = Store::create(&path, options()).unwrap();
    let table = store.table("t", Rules::sorted::<u64, u64>()).unwrap();
    (0..COUNT).for_each(|n| _ = table.put(&n, &n).unwrap());
    (0..COUNT).filter(|n| n % 3 > 0).for_each(|n| _ = table.delete_range(&n, &(n + 1)).unwrap());
    let before = rows(&table);
    drop((table, store)); // without closing: all of it is in the log
    for _ in 0..2 {
        let store = Store::open(&path, options()).unwrap();
        assert_eq!(rows(&store.table("t", Rules::sorted()).unwrap()), before);
        store.settle().unwrap();
    }
}

#[test]
fn a_range_delete_leaves_what_waits_for_its_flush() {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::create(temp.path().join("store"), options()).unwrap();
    let table = store.table("t", Rules::sorted()).unwrap();
    (0..10).for_each(|key| assert!(table.put(&key, &key).is_ok()));
    assert!(store.background_step_of(folddb::BackgroundJob::Seal).unwrap().is_some());
    table.put(&5, &50).unwrap();
    table.delete_range(&2, &8).unwrap();
    let left = [(0, 0), (1, 1), (8, 8), (9, 9)];
    assert_eq!(rows(&table), left);
    store.flush().unwrap();
    assert_eq!(rows(&table), left);
}

const ROWS: u64 = 100_000;

/// A table of one run of many parts, settled.
fn table_of_parts(store: &Store) -> Table<u64, u64> {
    let table = store.table("t", Rules::sorted()).unwrap();
    let mut batch = store.batch();
    for key in 0..ROWS {
        batch.put(&table, &key, &key.wrapping_mul(0x9E37_79B9_7F4A_7C15)); // no block can pack these
    }
    batch.commit(folddb::Durability::Process).unwrap();
    store.bytes_table("t").unwrap().compact().unwrap();
    table
}

fn parts_of(store: &Store) -> usize {
    store.bytes_table("t").unwrap().stats().unwrap().runs.iter().map(|run| run.parts.len()).sum()
}

#[test]
fn parts_that_range_deletes_cover_go_without_a_merge_and_the_range_deletes_with_them() {
    // All at once; by ranges that touch, none of which covers a part; and all but both ends.
    let many: Vec<(u64, u64)> = (0..200).map(|n| (n * ROWS / 200, (n + 1) * ROWS / 200)).collect();
    for (ranges, left) in [(vec![(0, ROWS)], 0), (many, 0), (vec![(10, ROWS - 10)], 20)] {
        let temp = tempfile::tempdir().unwrap();
        let store =
            Store::create(temp.path().join("store"), options().tuning(|t| t.part_bytes(16 << 10))).unwrap();
        let table = table_of_parts(&store);
        let (parts, before) = (parts_of(&store), store.stats().background);
        assert!(parts > 10, "{parts} parts");
        for (from, to) in &ranges {
            table.delete_range(from, to).unwrap();
        }
        store.flush().unwrap();
        store.settle().unwrap();
        let merged = store.stats().background.records_merged - before.records_merged;
        let of_two_parts = 2 * ROWS / parts as u64;
        assert!(merged <= 2 * of_two_parts, "{merged} of {ROWS} records were merged, {ranges:?}");
        assert!(parts_of(&store) <= 2, "{ranges:?}");
        // The parts at the ends, of which it covers some, keep it.
        let kept = store.bytes_table("t").unwrap().stats().unwrap().range_deletes;
        assert!(kept <= usize::from(left > 0), "{ranges:?}");
        assert_eq!(rows(&table).len(), left, "{ranges:?}");
        store.close().unwrap();
        let store = Store::open(temp.path().join("store"), options()).unwrap();
        assert_eq!(rows(&store.table("t", Rules::sorted()).unwrap()).len(), left, "{ranges:?}");
    }
}

#[test]
fn parts_that_a_snapshot_sees_or_with_a_newer_write_stay() {
    let temp = tempfile::tempdir().unwrap();
    let store =
        Store::create(temp.path().join("store"), options().tuning(|t| t.part_bytes(16 << 10))).unwrap();
    let table = table_of_parts(&store);
    let snapshot = store.snapshot();
    table.delete_range(&0, &ROWS).unwrap();
    table.put(&7, &70).unwrap();
    store.flush().unwrap();
    store.settle().unwrap();
    assert_eq!(rows(&table), [(7, 70)]);
    assert_eq!(rows_at(&snapshot, &table).len() as u64, ROWS);
    drop(snapshot);
    store.settle().unwrap();
    assert_eq!(rows(&table), [(7, 70)]);
    assert!(parts_of(&store) <= 1);
}

/// From one group of keys to the next: most of it is a gap without rows, which no range delete
/// covers.
const GROUP: u64 = 1 << 32;

/// A table of one run, whose rows are in so many groups of keys, as those of a window are.
fn table_of_groups(store: &Store, groups: u64) -> Table<u64, u64> {
    let table = store.table("t", Rules::sorted()).unwrap();
    let mut batch = store.batch();
    for n in 0..ROWS {
        let key = (n % groups + 1) * GROUP + n / groups;
        batch.put(&table, &key, &n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }
    batch.commit(folddb::Durability::Process).unwrap();
    store.bytes_table("t").unwrap().compact().unwrap();
    table
}

/// Deletes the rows of some groups, one range delete for each, and does all background work.
fn delete_groups(store: &Store, table: &Table<u64, u64>, groups: std::ops::Range<u64>) {
    for from in groups.map(|group| (group + 1) * GROUP) {
        table.delete_range(&from, &(from + ROWS)).unwrap();
    }
    store.flush().unwrap();
    store.settle().unwrap();
}

#[test]
fn parts_whose_rows_lie_in_several_ranges_go_without_a_merge() {
    for (groups, part_bytes) in [(8, 64 << 20), (128, 64 << 20), (128, 16 << 10)] {
        let temp = tempfile::tempdir().unwrap();
        let options = options().tuning(|t| t.part_bytes(part_bytes));
        let store = Store::create(temp.path().join("store"), options).unwrap();
        let table = table_of_groups(&store, groups);
        let before = store.stats().background;
        // So little of a part makes no merge due; parts that are covered go.
        delete_groups(&store, &table, 0..groups / 8);
        assert_eq!(rows(&table).len(), (0..ROWS).filter(|n| n % groups >= groups / 8).count());
        delete_groups(&store, &table, groups / 8..groups);
        let merged = store.stats().background.records_merged - before.records_merged;
        assert_eq!((rows(&table).len(), parts_of(&store), merged), (0, 0, 0), "{groups} groups");
        assert_eq!(store.bytes_table("t").unwrap().stats().unwrap().range_deletes, 0, "{groups} groups");
    }
}

#[test]
fn a_row_between_ranges_is_never_dropped_with_what_they_delete() {
    let ends = [0, 1, GROUP / 2, GROUP - ROWS - 1];
    let gaps = [1, 2, 60, 127].map(|group| ends.map(|at| group * GROUP + ROWS + at));
    // One row that no range has: between any two, before the first or behind the last.
    for key in gaps.concat().into_iter().chain([0, GROUP - 1, 128 * GROUP + ROWS]) {
        let temp = tempfile::tempdir().unwrap();
        let options = || options().tuning(|t| t.part_bytes(64 << 20));
        let store = Store::create(temp.path().join("store"), options()).unwrap();
        let table = table_of_groups(&store, 128);
        table.put(&key, &7).unwrap();
        store.bytes_table("t").unwrap().compact().unwrap();
        assert_eq!(parts_of(&store), 1);
        delete_groups(&store, &table, 0..128);
        assert_eq!(rows(&table), [(key, 7)]);
        assert_eq!(table.get(&key).unwrap(), Some(7));
        drop((table, store));
        let store = Store::open(temp.path().join("store"), options()).unwrap();
        assert_eq!(rows(&store.table("t", Rules::sorted()).unwrap()), [(key, 7)]);
    }
}

#[test]
fn parts_that_a_snapshot_sees_or_with_a_newer_write_stay_under_several_ranges() {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::create(temp.path().join("store"), options()).unwrap();
    let table = table_of_groups(&store, 128);
    let snapshot = store.snapshot();
    delete_groups(&store, &table, 0..128);
    table.put(&(GROUP + 7), &70).unwrap();
    delete_groups(&store, &table, 1..2);
    assert_eq!(rows(&table), [(GROUP + 7, 70)]);
    assert_eq!(rows_at(&snapshot, &table).len() as u64, ROWS);
    drop(snapshot);
    store.settle().unwrap();
    assert_eq!(rows(&table), [(GROUP + 7, 70)]);
    assert!(parts_of(&store) <= 1);
}

#[test]
fn of_a_part_with_a_row_between_ranges_no_more_is_read_than_it_has() {
    const GROUPS: u64 = 100;
    let temp = tempfile::tempdir().unwrap();
    // With less memory, so many range deletes would make a merge due.
    let store = Store::create(temp.path().join("store"), options().memory_bytes(64 << 20)).unwrap();
    let table = store.table("t", Rules::sorted()).unwrap();
    // Groups are much shorter than blocks, so that no block is covered, and no merge is due.
    let key_of = |n| (n % GROUPS + 1) * GROUP + n / GROUPS;
    (0..GROUPS * 50).for_each(|n| _ = table.put(&key_of(n), &n).unwrap());
    let key = 90 * GROUP + ROWS;
    table.put(&key, &7).unwrap();
    store.bytes_table("t").unwrap().compact().unwrap();
    let part_bytes = store.bytes_table("t").unwrap().stats().unwrap().runs[0].bytes();
    let before = store.stats();
    delete_groups(&store, &table, 0..GROUPS);
    for n in 0..60 {
        table.delete_range(&(n * GROUP + 2 * ROWS), &(n * GROUP + 2 * ROWS + 1)).unwrap();
        store.flush().unwrap();
        store.settle().unwrap();
    }
    let after = store.stats();
    assert_eq!(after.background.records_merged, before.background.records_merged);
    let read = after.reads.bytes - before.reads.bytes;
    assert!(read > 0 && read <= 3 * part_bytes, "{read} bytes of a part of {part_bytes}");
    assert_eq!(rows(&table), [(key, 7)]);
}
