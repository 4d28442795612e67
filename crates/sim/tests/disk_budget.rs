//! A disk quota is never exceeded: the files under the store count their bytes on their own, and
//! check the quota whenever a file grows. And a store at its bound recovers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use folddb::{BackgroundWork, Durability, ErrorKind, Options, Result, Rules, Store, Table};
use folddb_host::Host;
use folddb_sim::chance::Seeded;
use folddb_sim::faulty_files::FaultyFiles;

const MIB: u64 = 1 << 20;
const BUDGET_BYTES: u64 = 24 * MIB;
const PATIENCE: Duration = Duration::from_secs(30);

struct World {
    files: FaultyFiles,
    temp: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
        World { files: FaultyFiles::new(Host::real().files), temp }
    }

    fn options(&self) -> Options {
        let host = Host { files: Arc::new(self.files.clone()), ..Host::real() };
        let small =
            Options::default().memory_bytes(4 << 20).tuning(|t| t.segment_bytes(MIB).part_bytes(256 << 10));
        small.disk_bytes_max(Some(BUDGET_BYTES)).host(host)
    }

    fn create(&self) -> (Store, Table<u64, Vec<u8>>) {
        with_table(Store::create(self.temp.path().join("store"), self.options()))
    }

    fn open(&self) -> (Store, Table<u64, Vec<u8>>) {
        with_table(Store::open(self.temp.path().join("store"), self.options()))
    }

    fn assert_kept(&self) {
        let most = self.files.most_bytes();
        assert!(most <= BUDGET_BYTES, "{most} bytes of {BUDGET_BYTES}");
        assert!(most > BUDGET_BYTES / 3, "{most} bytes are no test of {BUDGET_BYTES}");
    }
}

fn with_table(store: Result<Store>) -> (Store, Table<u64, Vec<u8>>) {
    let store = store.expect("the store is there");
    let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).expect("the table is there");
    (store, table)
}

fn value(key: u64) -> Vec<u8> {
    let mut chance = Seeded::new(key);
    (0..100).flat_map(|_| chance.next_u64().to_le_bytes()).collect()
}

/// Writes keys from `first` on until a write is refused; returns the first that was.
fn write_until_refused(store: &Store, table: &Table<u64, Vec<u8>>, first: u64) -> u64 {
    let began = Instant::now();
    for key in (first..).step_by(10) {
        let mut batch = store.batch();
        for key in key..key + 10 {
            batch.put(table, &key, &value(key));
        }
        if let Err(error) = batch.commit(Durability::Process) {
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
            assert!(error.message().contains("budget"), "{error}");
            return key;
        }
        assert!(began.elapsed() < PATIENCE, "the budget is never used up");
    }
    unreachable!("there are enough numbers")
}

fn assert_holds(table: &Table<u64, Vec<u8>>, keys: std::ops::Range<u64>) {
    let mut rows = table.scan().into_iter();
    for key in keys {
        let (found, bytes) = rows.next().expect("a row").expect("it reads");
        assert_eq!((found, bytes == value(key)), (key, true));
    }
    assert!(rows.next().is_none(), "there is nothing more");
}

fn compact(store: &Store) -> Result<()> {
    store.bytes_table("t").and_then(|table| table.compact())
}

#[test]
fn the_budget_is_never_passed_whatever_goes_on() {
    let world = World::new();
    let (store, table) = world.create();
    let stop = AtomicBool::new(false);
    let refused = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                if let Err(error) = compact(&store) {
                    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
                }
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let past = store.snapshot();
                past.scan(&table).limit(3000).count().expect("it reads");
            }
        });
        let refused = write_until_refused(&store, &table, 0);
        stop.store(true, Ordering::Relaxed);
        refused
    });
    assert!(store.stats().poisoned_by.is_none());
    assert!(refused > 5000, "only {refused} writes went through");
    assert_holds(&table, 0..refused);
    world.assert_kept();
}

#[test]
fn separated_values_keep_to_the_budget() {
    let world = World::new();
    let store = Store::create(world.temp.path().join("store"), world.options()).expect("a store");
    let table = store.table("t", Rules::sorted::<u64, Vec<u8>>().separate(100)).expect("a table");
    let refused = write_until_refused(&store, &table, 0);
    assert!(refused > 5000, "only {refused} writes went through");
    for key in 0..100 {
        table.delete(&key).expect("deletes go through");
    }
    compact(&store).expect("merges go on");
    assert_holds(&table, 100..refused);
    drop((store, table));
    let (store, table) = world.open();
    assert_holds(&table, 100..refused);
    store.close().expect("it closes");
    world.assert_kept();
}

/// Three quarters of every segment are dead then, and no segment is wholly dead.
fn dead_values_are_given_back_at_the_bound(rules: Rules<u64, Vec<u8>>, asks: bool) {
    let world = World::new();
    let store = Store::create(world.temp.path().join("store"), world.options()).expect("a store");
    let table = store.table("t", rules).expect("a table");
    let refused = write_until_refused(&store, &table, 0);
    assert!(refused > 5000, "only {refused} writes went through");
    let is_kept = |key: u64| key.is_multiple_of(4);
    for key in (0..refused).filter(|key| !is_kept(*key)) {
        let began = Instant::now();
        while let Err(error) = table.delete(&key) {
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
            assert!(began.elapsed() < PATIENCE, "deletes do not go through: {error}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    store.flush().expect("there is room for that");
    // A deleted value is dead once a merge has found it, which background work does on its own;
    // then the live values are copied together.
    let began = Instant::now();
    let is_half_free = || store.stats().disk.value_bytes < BUDGET_BYTES / 3;
    while !is_half_free() {
        if asks {
            store.reclaim().expect("there is room for that");
        }
        assert!(began.elapsed() < PATIENCE, "asked {asks}: it never comes back: {:?}", store.stats());
        std::thread::sleep(Duration::from_millis(5));
    }
    let last = write_until_refused(&store, &table, refused);
    assert!(last - refused > refused / 3, "only {} writes went through again, of {refused}", last - refused);
    let holds = |table: &Table<u64, Vec<u8>>| {
        for key in 0..last {
            let expected = (key >= refused || is_kept(key)).then(|| value(key));
            assert_eq!(table.get(&key).expect("it reads"), expected, "key {key}");
        }
    };
    holds(&table);
    drop((store, table)); // as if the process died
    let store = Store::open(world.temp.path().join("store"), world.options()).expect("it opens");
    assert!(store.stats().disk.value_bytes > 0);
    world.assert_kept();
    let opened = store.tables();
    assert_eq!(opened, ["t"]);
}

#[test]
fn dead_values_of_sorted_tables_are_given_back_at_the_bound() {
    for asks in [false, true] {
        dead_values_are_given_back_at_the_bound(Rules::sorted::<u64, Vec<u8>>().separate(100), asks);
    }
}

#[test]
fn dead_values_of_hashed_tables_are_given_back_at_the_bound() {
    for asks in [false, true] {
        dead_values_are_given_back_at_the_bound(Rules::hashed::<u64, Vec<u8>>(), asks);
    }
}

#[test]
fn files_that_readers_hold_count_and_merges_stop_before_they_pass_the_budget() {
    let world = World::new();
    let (store, table) = world.create();
    let refused = write_until_refused(&store, &table, 0);
    // Each merge writes the table once more, and none of its inputs is removed, since a reader is
    // in the middle of them.
    let (mut readers, mut stopped) = (Vec::new(), 0);
    for round in 0..8 {
        let mut rows = table.scan().into_iter();
        assert!(rows.next().is_some());
        readers.push(rows);
        table.delete(&round).expect("deletes go through");
        match compact(&store) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NoSpace => stopped += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(stopped > 0, "no merge came to the bound");
    world.assert_kept();
    drop(readers);
    // Background work may hold some of the files for a moment longer, or be writing itself.
    let began = Instant::now();
    while let Err(error) = compact(&store) {
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        assert!(began.elapsed() < PATIENCE, "there is no space again: {error}");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_holds(&table, 8..refused);
    world.assert_kept();
}

#[test]
fn a_store_at_its_bound_is_opened_again_after_a_crash_and_deletes_bring_space_back() {
    let world = World::new();
    let (store, table) = world.create();
    let refused = write_until_refused(&store, &table, 0);
    drop((store, table)); // as if the process died: what was in memory is only in the log
    let (store, table) = world.open();
    assert_holds(&table, 0..refused);

    for key in 0..refused - 1000 {
        let began = Instant::now();
        while let Err(error) = table.delete(&key) {
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
            assert!(began.elapsed() < PATIENCE, "deletes do not go through: {error}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    store.settle().expect("it flushes and merges");
    compact(&store).expect("it merges");
    assert_holds(&table, refused - 1000..refused);
    let last = write_until_refused(&store, &table, refused);
    assert!(last - refused > refused / 2, "only {} writes went through again", last - refused);
    assert_holds(&table, refused - 1000..last);
    store.close().expect("it closes");
    world.assert_kept();
    let (_store, table) = world.open();
    assert_holds(&table, refused - 1000..last);
    world.assert_kept();
}

/// Nothing checks the space on its own here: whether a write is refused must not depend on the time
/// of the last check.
#[test]
fn writes_go_on_as_soon_as_there_is_space_again() {
    let world = World::new();
    let by_hand = world.options().background(BackgroundWork::Manual);
    let (store, table) = with_table(Store::create(world.temp.path().join("store"), by_hand));
    let mut refused = 0;
    while table.put(&refused, &value(refused)).is_ok() {
        refused += 1;
        if refused % 500 == 0 {
            while store.background_step().expect("there is room for flushes").is_some() {}
        }
    }
    assert_eq!(table.put(&refused, &value(refused)).map_err(|error| error.kind()), Err(ErrorKind::NoSpace));
    let mut batch = store.batch();
    batch.delete_range(table.as_bytes(), &0u64.to_be_bytes(), &(refused - 100).to_be_bytes());
    batch.commit(Durability::Process).expect("deletes go on");
    compact(&store).expect("there is room for that");
    table.put(&refused, &value(refused)).expect("there is space again");
    assert_holds(&table, refused - 100..refused + 1);
}

#[test]
fn a_budget_that_leaves_no_room_for_data_is_refused_and_says_what_does() {
    let world = World::new();
    let path = world.temp.path().join("store");
    let options = || world.options().disk_bytes_max(None);
    drop(Store::create(&path, options()).expect("the store is created"));
    let error = Store::open(&path, options().disk_bytes_max(Some(4 * MIB))).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let least = error.message().split("it takes ").nth(1).and_then(|said| said.split(' ').next());
    let least: u64 = least.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{error}"));
    drop(Store::open(&path, options().disk_bytes_max(Some(least * 4 / 3))).expect("that is enough"));
}

#[test]
fn a_store_that_holds_more_than_a_smaller_budget_opens_and_comes_down_to_it() {
    let world = World::new();
    let path = world.temp.path().join("store");
    let (store, table) = with_table(Store::create(&path, world.options().disk_bytes_max(None)));
    for key in 0..40_000 {
        table.put(&key, &value(key)).expect("there is no budget yet");
    }
    drop(table);
    store.close().expect("it closes");

    let (store, table) = world.open();
    assert!(store.stats().disk.bytes > BUDGET_BYTES, "{} bytes", store.stats().disk.bytes);
    assert_eq!(table.put(&1, &value(1)).map_err(|error| error.kind()), Err(ErrorKind::NoSpace));
    assert_eq!(table.get(&39_999).expect("reads go on"), Some(value(39_999)));
    let mut batch = store.batch();
    batch.delete_range(table.as_bytes(), &0u64.to_be_bytes(), &39_000u64.to_be_bytes());
    batch.commit(Durability::Sync).expect("deletes go on");
    store.bytes_table("t").expect("a table").compact().expect("there is room for that");
    let began = Instant::now();
    while let Err(error) = table.put(&1, &value(1)) {
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        assert!(began.elapsed() < PATIENCE, "it never comes down: {error}");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(store.stats().disk.bytes <= BUDGET_BYTES);
}
