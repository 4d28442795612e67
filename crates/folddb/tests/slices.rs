//! Merges in slices, which several threads share (`Options::merge_threads`): whatever is written,
//! however it is cut and whatever fails, every reader finds what it found before.
//!
//! The background work of these stores is done by hand, and slices that are begun take turns, so
//! later slices are often written before earlier ones. After each step everything is read again, at
//! the present and at each snapshot.
#![allow(clippy::unwrap_used)]

mod common;
mod watched;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use common::{drain, fresh, small};
use folddb::table_rules::TableRules;
use folddb::{BackgroundJob, BytesTable, ErrorKind, Event, Options, Rules, Snapshot, Store, Table, WriteOp};

/// Keys of the tables; each is also a number.
const KEYS: u64 = 48;

/// Chance that is the same for a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn options(threads: usize) -> Options {
    small().disk_reserve_bytes(0).merge_threads(threads).tuning(|t| t.part_bytes(64 << 10).merge_factor(3))
}

fn key(number: u64) -> Vec<u8> {
    format!("{number:03}").into_bytes()
}

/// A value that does not compress: its number, and bytes that follow from it. Some are so long that
/// a slice takes several steps, in which others overtake it.
fn value(number: u64) -> Vec<u8> {
    let mut dice = Dice(number);
    let len = if number.is_multiple_of(4) { 15_000 } else { 300 };
    number.to_be_bytes().into_iter().chain((0..len).map(|_| dice.below(256) as u8)).collect()
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// A table and what must be in it.
struct Known {
    table: BytesTable,
    adds: bool,
    rows: Rows,
}

impl Known {
    fn write(&mut self, dice: &mut Dice) {
        let key = key(dice.below(KEYS));
        match dice.below(12) {
            0 => {
                self.rows.remove(&key);
                self.table.write(WriteOp::Delete, &key, &[]).unwrap();
            }
            1 => {
                let to = key_after(&key, dice);
                self.rows.retain(|at, _| *at < key || *at >= to);
                self.table.delete_range(&key, &to).unwrap();
            }
            2..=5 if self.adds => {
                let before = self.rows.get(&key).map_or(0, |sum| as_number(sum));
                let by = dice.below(100);
                self.rows.insert(key.clone(), (before + by).to_le_bytes().to_vec());
                self.table.write(WriteOp::Fold, &key, &by.to_le_bytes()).unwrap();
            }
            _ => {
                let number = dice.below(1 << 20);
                let value = if self.adds { number.to_le_bytes().to_vec() } else { value(number) };
                self.rows.insert(key.clone(), value.clone());
                self.table.write(WriteOp::Put, &key, &value).unwrap();
            }
        }
    }
}

fn as_number(sum: &[u8]) -> u64 {
    u64::from_le_bytes(sum.try_into().unwrap())
}

fn key_after(from: &[u8], dice: &mut Dice) -> Vec<u8> {
    let number: u64 = std::str::from_utf8(from).unwrap().parse().unwrap();
    key(number + 1 + dice.below(20))
}

/// A store with two tables, snapshots of it, and what they must show.
struct World {
    _dir: tempfile::TempDir,
    store: Store,
    known: Vec<Known>,
    snapshots: Vec<(Snapshot, Vec<Rows>)>,
}

impl World {
    fn of(options: Options, keep: &str) -> World {
        let (dir, store) = fresh(options);
        let known = [("sums", "fold=sum:u64"), ("values", "")].map(|(name, rules)| {
            let rules = format!("block_bytes=512\n{rules}\n{keep}").parse::<TableRules>().unwrap();
            let table = store.create_bytes_table(name, rules).unwrap();
            Known { table, adds: name == "sums", rows: Rows::new() }
        });
        World { _dir: dir, store, known: known.into(), snapshots: Vec::new() }
    }

    fn write(&mut self, dice: &mut Dice, ops: u64) {
        for _ in 0..ops {
            let table = dice.below(2) as usize;
            self.known[table].write(dice);
        }
    }

    fn snap(&mut self) {
        let rows = self.known.iter().map(|known| known.rows.clone()).collect();
        self.snapshots.push((self.store.snapshot(), rows));
    }

    fn check(&self, what: &str) {
        for known in &self.known {
            let rows: Rows = known.table.scan().into_iter().map(|row| row.unwrap()).collect();
            assert!(rows == known.rows, "{what}: {}", difference(&rows, &known.rows));
            for number in 0..KEYS {
                let key = key(number);
                assert_eq!(known.table.get(&key).unwrap().as_ref(), known.rows.get(&key), "{what}: {number}");
            }
        }
        for (index, (snapshot, all)) in self.snapshots.iter().enumerate() {
            for (known, rows) in self.known.iter().zip(all) {
                let table = snapshot.table(&known.table);
                let found: Rows = table.scan().into_iter().map(|row| row.unwrap()).collect();
                assert!(found == *rows, "{what}, snapshot {index}: {}", difference(&found, rows));
            }
        }
    }

    fn step(&self) -> bool {
        self.store.background_step().unwrap().is_some()
    }
}

fn difference(found: &Rows, expected: &Rows) -> String {
    let lost: Vec<_> = expected.iter().filter(|(key, value)| found.get(*key) != Some(value)).collect();
    let more: Vec<_> = found.keys().filter(|key| !expected.contains_key(*key)).collect();
    let text = |key: &Vec<u8>| String::from_utf8_lossy(key).into_owned();
    let lost: Vec<_> = lost.iter().map(|(key, _)| text(key)).collect();
    let more: Vec<_> = more.into_iter().map(text).collect();
    format!("lost or wrong {lost:?}, too many {more:?}")
}

#[test]
fn every_reader_finds_the_same_at_every_step_of_merges_in_slices() {
    let slices = Arc::new(AtomicUsize::new(0));
    for seed in 0..60 {
        let dice = &mut Dice(seed);
        let counted = Arc::clone(&slices);
        let options = options(2 + (seed % 3) as usize)
            .tuning(|t| t.slice_bytes([0, 700, 5000][seed as usize % 3]))
            .on_event(move |event| _ = counted.fetch_add(slices_of(event), Ordering::Relaxed));
        let keep = ["", "keep=versions:3", "keep=window:1h", "keep=forever"][(seed / 3 % 4) as usize];
        let mut world = World::of(options, keep);
        for round in 0..8 {
            let ops = 40 + dice.below(160);
            world.write(dice, ops);
            if dice.below(3) == 0 {
                world.snap();
            }
            world.store.flush().unwrap();
            for step in 0..dice.below(8) {
                world.step();
                world.check(&format!("seed {seed}, round {round}, step {step}"));
            }
            if dice.below(4) == 0 && !world.snapshots.is_empty() {
                world.snapshots.remove(0);
            }
            if dice.below(4) == 0 {
                let mut left = dice.below(6);
                let progress = |_| {
                    left = left.saturating_sub(1);
                    if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                world.known[dice.below(2) as usize].table.compact_with(progress).unwrap();
                world.check(&format!("seed {seed}, round {round}, a compaction that was broken off"));
            }
        }
        drain(&world.store);
        world.check(&format!("seed {seed}, settled"));
        for known in &world.known {
            known.table.compact().unwrap();
            assert!(known.table.stats().unwrap().runs.len() <= 1, "seed {seed}");
        }
        world.check(&format!("seed {seed}, compacted"));
    }
    assert!(slices.load(Ordering::Relaxed) > 500, "{slices:?} slices are no test");
}

/// How many slices a merge was cut into.
fn slices_of(event: &Event) -> usize {
    let Event::Merge(merge) = event else { return 0 };
    let cut = merge.plan.split(", in ").nth(1).and_then(|text| text.split(' ').next());
    cut.map_or(0, |slices| slices.parse().unwrap())
}

/// A store with three runs of one table, whose merge has a slice that takes many steps, with the
/// keys below 10, and later ones that take one.
fn heavy(host: Option<folddb_host::Host>) -> (tempfile::TempDir, Store, Table<u64, Vec<u8>>) {
    let options = options(3).tuning(|t| t.slice_bytes(0));
    let options = if let Some(host) = host { options.host(host) } else { options };
    let (dir, store) = fresh(options);
    let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).unwrap();
    for (run, from) in [(0, 0), (1, 0), (2, 10)] {
        for key in from..20 {
            table.put(&key, &heavy_value(key, run)).unwrap();
        }
        store.flush().unwrap();
    }
    (dir, store, table)
}

fn heavy_value(key: u64, run: u8) -> Vec<u8> {
    vec![run; if key < 10 { 20_000 } else { 10 }]
}

fn assert_heavy(table: &Table<u64, Vec<u8>>, what: &str) {
    let rows: Vec<(u64, Vec<u8>)> = table.scan().into_iter().map(|row| row.unwrap()).collect();
    let expected: Vec<(u64, Vec<u8>)> =
        (0..20).map(|key| (key, heavy_value(key, if key < 10 { 1 } else { 2 }))).collect();
    assert!(rows == expected, "{what}: {:?}", rows.iter().map(|row| (row.0, row.1[0])).collect::<Vec<_>>());
}

fn part_files(store: &std::path::Path) -> usize {
    let names = std::fs::read_dir(store).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.extension().is_some_and(|extension| extension == "part")).count()
}

fn parts_listed(store: &Store) -> usize {
    store.bytes_table("t").unwrap().stats().unwrap().runs.iter().map(|run| run.parts.len()).sum()
}

fn merge_steps(store: &Store, steps: usize) {
    (0..steps).for_each(|_| _ = store.background_step_of(BackgroundJob::Merge).unwrap());
}

/// Slices of a compaction rest while its caller is told how far it is. When the table is dropped
/// then, nobody takes them up again, and nobody waits for them.
#[test]
fn a_table_that_is_dropped_while_it_is_compacted_in_slices_ends_that() {
    let (_dir, store, table) = heavy(None);
    let mut calls = 0;
    let ended = table.compact_with(|_| {
        calls += 1;
        if calls == 3 {
            store.drop_table("t").unwrap();
        }
        assert!(calls < 500, "it waits for slices that are gone");
        ControlFlow::Continue(())
    });
    assert!(calls >= 3, "it took {calls} steps");
    assert_eq!(ended.unwrap_err().kind(), table.get(&1).unwrap_err().kind());
    assert_eq!(merge_steps_done(&store), 0);
}

fn merge_steps_done(store: &Store) -> usize {
    (0..10).filter(|_| store.background_step_of(BackgroundJob::Merge).unwrap().is_some()).count()
}

/// A slice that cannot go on stops those behind it, and those that run; what was installed stays,
/// what was not is removed, and the next merge does the rest.
#[test]
fn a_slice_that_fails_stops_those_behind_it_and_loses_nothing() {
    let mut failures = 0;
    for failing in 0..6 {
        let parts = Arc::new(AtomicU64::new(u64::MAX));
        let left = Arc::clone(&parts);
        let host = watched::host(move || match left.fetch_sub(1, Ordering::Relaxed) {
            0 => Err(std::io::Error::other("on purpose")),
            _ => Ok(()),
        });
        let (_dir, store, table) = heavy(Some(host));
        parts.store(failing, Ordering::Relaxed);
        loop {
            match store.background_step() {
                Ok(None) => break,
                Ok(Some(_)) => {}
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Io);
                    failures += 1;
                }
            }
            assert_heavy(&table, &format!("part {failing} fails"));
        }
        assert_eq!(part_files(store.path()), parts_listed(&store), "part {failing} fails: no file is left");
        store.bytes_table("t").unwrap().compact().unwrap();
        assert_eq!(store.bytes_table("t").unwrap().stats().unwrap().runs.len(), 1, "the rest is merged");
        assert_heavy(&table, &format!("part {failing} failed"));
    }
    assert!(failures >= 3, "{failures} failures are no test");
}

/// A slice that is written before one in front of it waits: nothing of it is visible, and its file
/// goes with the merge.
#[test]
fn what_waits_to_be_installed_is_removed_when_the_store_is_closed() {
    let (dir, store, table) = heavy(None);
    let before = parts_listed(&store);
    merge_steps(&store, 3); // an empty slice, and steps of two others
    assert_eq!(parts_listed(&store), before, "nothing is installed");
    assert!(part_files(store.path()) > before, "something is written");
    assert_heavy(&table, "while a slice waits");
    store.close().unwrap();
    let path = dir.path().join("s.folddb");
    assert_eq!(part_files(&path), before);
    let store = Store::open(&path, options(3).tuning(|t| t.slice_bytes(0))).unwrap();
    let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).unwrap();
    assert_heavy(&table, "opened again");
    drain(&store);
    assert_heavy(&table, "settled");
    assert_eq!(store.bytes_table("t").unwrap().stats().unwrap().runs.len(), 1);
}

/// A store that is dropped between the edits of two slices is opened with what was installed.
#[test]
fn a_store_may_end_between_the_edits_of_two_slices() {
    for steps in 1..20 {
        let (dir, store, table) = heavy(None);
        merge_steps(&store, steps);
        assert_heavy(&table, &format!("after {steps} steps"));
        drop((table, store));
        let path = dir.path().join("s.folddb");
        let store = Store::open(&path, options(2).tuning(|t| t.slice_bytes(0))).unwrap();
        let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).unwrap();
        assert_heavy(&table, &format!("opened after {steps} steps"));
        assert_eq!(part_files(&path), parts_listed(&store));
        drain(&store);
        assert_heavy(&table, &format!("settled after {steps} steps"));
    }
}

/// A table is dropped while slices of its merge run, or are written and wait.
#[test]
fn a_table_may_be_dropped_between_its_slices() {
    for steps in 1..8 {
        let (_dir, store, table) = heavy(None);
        merge_steps(&store, steps);
        store.drop_table("t").unwrap();
        drop(table);
        drain(&store);
        assert_eq!(part_files(store.path()), 0, "after {steps} steps");
    }
}

/// Every run has all keys up to its own, and begins at its own: so borders are first and last keys
/// of runs, and each has records in all of them.
fn add_runs(store: &Store, table: &Table<u64, u64>, runs: u64) {
    for run in 0..runs {
        for key in run * 10..100 - run * 10 {
            table.fold(&key, &1).unwrap();
        }
        store.flush().unwrap();
    }
}

fn rows(table: &Table<u64, u64>) -> Vec<(u64, u64)> {
    table.scan().into_iter().map(|row| row.unwrap()).collect()
}

/// A merge in slices is one event, whose numbers are those of all slices.
#[test]
fn a_merge_in_slices_is_one_event() {
    let events: Arc<Mutex<Vec<Event>>> = Arc::default();
    let heard = Arc::clone(&events);
    let options = options(2).tuning(|t| t.slice_bytes(0));
    let options = options.on_event(move |event| heard.lock().unwrap().push(event.clone()));
    let (_dir, store) = fresh(options);
    let table = store.table("t", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    add_runs(&store, &table, 3);
    drain(&store);
    let events = events.lock().unwrap();
    let merges: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Merge(merge) => Some(merge),
            _ => None,
        })
        .collect();
    let [merge] = merges.as_slice() else { panic!("{merges:?}") };
    assert!(merge.plan.contains(", in ") && merge.plan.contains(" slices of about "), "{}", merge.plan);
    assert_eq!((merge.records_in, merge.records_out), (100 + 80 + 60, 100));
    assert_eq!(store.stats().background.merges, 1);
}

/// Threads merge several tables, and slices of one, while rows are written and a caller compacts.
#[test]
fn threads_that_merge_at_once_lose_nothing() {
    let options = options(3).background(folddb::BackgroundWork::Threads).tuning(|t| t.slice_bytes(20_000));
    let (_dir, store) = fresh(options);
    let tables: Vec<Table<u64, u64>> = (0..3)
        .map(|n| store.table(&format!("t{n}"), Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap())
        .collect();
    for round in 0..12 {
        for table in &tables {
            let mut batch = store.batch();
            (0..5_000).for_each(|n| _ = batch.fold(table, &(n * 7), &1));
            batch.commit(folddb::Durability::Process).unwrap();
        }
        store.flush().unwrap();
        if round % 5 == 4 {
            store.bytes_table("t1").unwrap().compact().unwrap();
        }
    }
    store.settle().unwrap();
    for table in &tables {
        let rows = rows(table);
        assert_eq!(rows.len(), 5_000);
        assert!(rows.iter().all(|row| row.1 == 12));
    }
    store.close().unwrap();
}
