//! A full disk is no disaster: writes are refused with a clear error, reads and deletes continue,
//! no acknowledged write is lost, and writing resumes on its own when there is space again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use folddb::{BackgroundWork, Durability, ErrorKind, Options, Rules, Store, Table};
use folddb_host::Host;
use folddb_sim::faulty_files::{Call, EDQUOT, ENOSPC, Fault, FaultyFiles};

const MIB: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(20);

struct World {
    files: FaultyFiles,
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        World { files: FaultyFiles::new(Host::real().files), dir: tempfile::tempdir().expect("a directory") }
    }

    fn options(&self) -> Options {
        let host = Host { files: Arc::new(self.files.clone()), ..Host::real() };
        Options::default()
            .host(host)
            .memory_bytes(4 << 20)
            .tuning(|t| t.segment_bytes(MIB).part_bytes(256 << 10))
    }

    fn create(&self, options: Options) -> (Store, Table<u64, Vec<u8>>) {
        let store = Store::create(self.dir.path().join("store"), options).expect("the store is created");
        let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).expect("the table is created");
        (store, table)
    }

    fn assert_holds_when_reopened(&self, keys: std::ops::Range<u64>) {
        let store = Store::open(self.dir.path().join("store"), self.options()).expect("the store opens");
        assert_holds(&store.table("t", Rules::sorted::<u64, Vec<u8>>()).expect("the table is there"), keys);
    }

    /// The files in the directory.
    fn names(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.dir.path().join("store")).expect("the directory lists");
        names.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Part files in the directory, known to the store or not.
    fn part_files(&self) -> usize {
        let names = std::fs::read_dir(self.dir.path().join("store")).expect("the directory lists");
        names.flatten().filter(|entry| entry.path().extension().is_some_and(|kind| kind == "part")).count()
    }
}

fn value(key: u64) -> Vec<u8> {
    // Does not compress and is never the same twice, so that merges save no space.
    (0..1000).map(|at| (key.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(at % 64) >> 7) as u8).collect()
}

/// Writes keys from `first` on until a write is refused. Returns the first key that was.
fn write_until_refused(table: &Table<u64, Vec<u8>>, first: u64) -> (u64, ErrorKind) {
    let began = Instant::now();
    for key in first.. {
        if let Err(error) = table.put(&key, &value(key)) {
            return (key, error.kind());
        }
        assert!(began.elapsed() < PATIENCE, "the disk never fills");
    }
    unreachable!("there are enough numbers")
}

/// Tries a write until it succeeds.
fn write_when_there_is_space(table: &Table<u64, Vec<u8>>, key: u64) {
    let began = Instant::now();
    while let Err(error) = table.put(&key, &value(key)) {
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        assert!(began.elapsed() < PATIENCE, "writing does not resume: {error}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn assert_holds(table: &Table<u64, Vec<u8>>, keys: std::ops::Range<u64>) {
    let mut rows = table.scan().into_iter();
    for key in keys {
        let (found, bytes) = rows.next().expect("a row").expect("it reads");
        assert_eq!(found, key);
        assert_eq!(bytes, value(key), "the value of {key}");
    }
    assert!(rows.next().is_none(), "there is nothing more");
}

#[test]
fn writes_are_refused_while_reads_and_deletes_go_on_and_resume_without_reopening() {
    let world = World::new();
    let (store, table) = world.create(world.options().disk_reserve_bytes(8 * MIB));
    table.put(&0, &value(0)).unwrap();
    world.files.leave_free(Some(20 * MIB));

    let (refused, kind) = write_until_refused(&table, 1);
    assert_eq!(kind, ErrorKind::NoSpace);
    assert!(refused > 1000, "only {refused} writes went through");
    assert!(store.stats().short_of_space.is_some());
    assert!(store.stats().poisoned_by.is_none());

    assert_eq!(table.get(&(refused - 1)).unwrap(), Some(value(refused - 1)));
    assert_holds(&table, 0..refused);
    for key in 0..100 {
        table.delete(&key).unwrap();
    }
    let mut batch = store.batch();
    batch.delete(&table, &100).delete_range(table.as_bytes(), &101u64.to_be_bytes(), &200u64.to_be_bytes());
    batch.commit(Durability::Sync).unwrap();
    assert_holds(&table, 200..refused);
    world.files.leave_free(Some(4 * MIB)); // independent of the space that flushes and merges have freed
    let began = Instant::now();
    while table.put(&refused, &value(refused)).is_ok() {
        assert!(began.elapsed() < PATIENCE, "nobody looks how much is left");
        std::thread::sleep(Duration::from_millis(5)); // background work checks now and then
    }
    let again = table.put(&refused, &value(refused)).map_err(|error| error.kind());
    assert_eq!(again, Err(ErrorKind::NoSpace));

    world.files.leave_free(None);
    write_when_there_is_space(&table, refused);
    for key in refused + 1..refused + 3000 {
        table.put(&key, &value(key)).unwrap();
    }
    store.settle().unwrap();
    assert_holds(&table, 200..refused + 3000);
    drop((store, table));
    world.assert_holds_when_reopened(200..refused + 3000);
}

#[test]
fn a_disk_without_a_byte_left_loses_nothing() {
    let world = World::new();
    let (store, table) = world.create(world.options().disk_reserve_bytes(0));
    table.put(&0, &value(0)).unwrap();
    world.files.leave_free(Some(3 * MIB));
    let (refused, kind) = write_until_refused(&table, 1);
    assert_eq!(kind, ErrorKind::NoSpace);
    assert_holds(&table, 0..refused);
    assert!(store.stats().poisoned_by.is_none());
    world.files.leave_free(Some(0));
    assert_holds(&table, 0..refused);
    world.files.leave_free(None);
    write_when_there_is_space(&table, refused);
    store.settle().unwrap();
    assert_holds(&table, 0..refused + 1);
    drop((store, table));
    world.assert_holds_when_reopened(0..refused + 1);
}

#[test]
fn closing_on_a_full_disk_loses_nothing() {
    let world = World::new();
    let (store, table) = world.create(world.options().disk_reserve_bytes(0));
    for key in 0..500 {
        table.put(&key, &value(key)).unwrap();
    }
    world.files.leave_free(Some(0));
    // What was acknowledged is in the log. An error would tell its writer to write it again.
    store.close().unwrap();
    drop(table);
    world.files.leave_free(None);
    world.assert_holds_when_reopened(0..500);
}

#[test]
fn the_first_write_after_an_opening_keeps_the_reserve_too() {
    let world = World::new();
    let options = || world.options().background(BackgroundWork::Manual).disk_reserve_bytes(2 * MIB);
    let (store, table) = world.create(options());
    table.put(&0, &value(0)).unwrap();
    store.close().unwrap();
    world.files.leave_free(Some(MIB));
    let store = Store::open(world.dir.path().join("store"), options()).unwrap();
    let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).unwrap();
    assert_eq!(table.put(&1, &value(1)).map_err(|error| error.kind()), Err(ErrorKind::NoSpace));
    table.delete(&0).unwrap();
    assert_eq!(table.scan().count().unwrap(), 0);
}

#[test]
fn a_budget_on_the_disk_is_kept_as_if_the_disk_were_full() {
    let world = World::new();
    let (store, table) = world.create(world.options().disk_bytes_max(Some(16 * MIB)));
    let (refused, kind) = write_until_refused(&table, 0);
    assert_eq!(kind, ErrorKind::NoSpace);
    let message = table.put(&0, &value(0)).unwrap_err().to_string();
    assert!(message.contains("budget"), "{message}");
    table.delete(&0).unwrap();
    assert_holds(&table, 1..refused);
    let mut batch = store.batch();
    batch.delete_range(table.as_bytes(), &0u64.to_be_bytes(), &(refused - 10).to_be_bytes());
    batch.commit(Durability::Process).unwrap();
    store.bytes_table("t").unwrap().compact().unwrap();
    write_when_there_is_space(&table, refused);
    assert_holds(&table, refused - 10..refused + 1);
}

#[test]
fn closing_on_a_full_disk_that_removes_nothing_either_leaves_a_store_that_opens() {
    let world = World::new();
    let (store, table) = world.create(world.options().background(BackgroundWork::Manual));
    for key in 0..1200 {
        table.put(&key, &value(key)).unwrap();
    }
    store.background_step().unwrap(); // creates the next segment in advance
    store.flush().unwrap();
    world.files.break_on(Fault { name: ".log".to_owned(), os_error: 28, ..Fault::on(&[Call::Append]) });
    world.files.break_on(Fault::on(&[Call::Remove]));
    store.close().unwrap();
    assert!(world.files.failed().iter().filter(|(call, _)| *call == Call::Remove).count() >= 2);
    drop(table);
    world.files.heal();
    world.assert_holds_when_reopened(0..1200);
}

#[test]
fn openings_that_find_no_space_leave_nothing_behind_however_many_there_are() {
    for call in
        [Call::Write, Call::WriteSync, Call::CreateAppend, Call::Append, Call::AppendSync, Call::SyncDir]
    {
        let world = World::new();
        let (store, table) = world.create(world.options().background(BackgroundWork::Manual));
        let other = store.table("other", Rules::sorted::<u64, Vec<u8>>()).unwrap();
        for key in 0..400 {
            table.put(&key, &value(key)).unwrap();
            other.put(&key, &value(key)).unwrap();
        }
        drop((store, table, other)); // as if the process died: all is in the log
        // The same failure again and again, at every call: each opening removes the leftovers of
        // the one before.
        let mut failures = 0;
        for skip in 0..12 {
            let mut names = Vec::new();
            for _ in 0..3 {
                world.files.break_on(Fault { os_error: 28, skip, times: 1, ..Fault::on(&[call]) });
                let opened = Store::open(world.dir.path().join("store"), world.options());
                failures += usize::from(opened.map(drop).is_err());
                world.files.heal();
                names.push(world.names().len());
            }
            assert!(names[2] <= names[1], "{call:?} after {skip}: {names:?} files: {:?}", world.names());
            if call == Call::Write && skip < 6 {
                assert_eq!(world.part_files(), 0, "nothing is installed yet: {call:?} after {skip}");
            }
        }
        assert!(failures >= 3, "{call:?} failed {failures} times");
        world.assert_holds_when_reopened(0..400);
    }
}

/// Part files that the store knows.
fn listed(store: &Store) -> usize {
    store
        .bytes_table("t")
        .expect("a table")
        .stats()
        .expect("it is there")
        .runs
        .iter()
        .map(|run| run.parts.len())
        .sum()
}

#[test]
fn a_flush_that_finds_no_space_leaves_nothing_behind_and_may_be_tried_again() {
    // The space ends in the first part, between two, at the end of the last.
    for free_bytes in [1000, 100_000, 280_000, 300_000, 320_000] {
        let world = World::new();
        let (store, table) = world.create(
            world
                .options()
                .disk_reserve_bytes(0)
                .background(BackgroundWork::Manual)
                .tuning(|t| t.part_bytes(0)),
        );
        for key in 0..300 {
            table.put(&key, &value(key)).unwrap();
        }
        world.files.leave_free(Some(free_bytes));
        let refused = store.flush().map_err(|error| error.kind());
        if refused.is_err() {
            assert_eq!(refused, Err(ErrorKind::NoSpace), "{free_bytes} bytes");
            assert_eq!(world.part_files(), listed(&store), "{free_bytes} bytes");
        }
        assert_holds(&table, 0..300);
        world.files.leave_free(None);
        while store.background_step().unwrap().is_some() {}
        store.flush().unwrap();
        assert_eq!(world.part_files(), listed(&store), "{free_bytes} bytes");
        assert_holds(&table, 0..300);
    }
}

#[test]
fn a_part_that_cannot_be_finished_is_removed() {
    let world = World::new();
    let (store, table) = world.create(world.options().background(BackgroundWork::Manual));
    for key in 0..100 {
        table.put(&key, &value(key)).unwrap();
    }
    for calls in [[Call::WriteSync, Call::WriteSync], [Call::SyncDir, Call::Open]] {
        world.files.break_on(Fault { name: ".part".to_owned(), os_error: 28, times: 1, ..Fault::on(&calls) });
        assert!(store.flush().is_err());
        assert_eq!(world.part_files(), 0, "{calls:?}");
        world.files.heal();
    }
    store.background_step().unwrap();
    store.flush().unwrap();
    assert_eq!(world.part_files(), 1);
    assert_holds(&table, 0..100);
}

/// As on a file system without preallocation: the log finds the disk full at an append, which may
/// have frames of any thread. Returns how many folds were refused.
fn fold_beside_refusals(os_error: i32) -> u64 {
    const FOLDS: u64 = 1500;
    const REFUSALS: u64 = 30; // on a fast machine, this many folds are done before as many are refused
    let refused_in_all = AtomicU64::new(0);
    let world = World::new();
    let options = world.options().tuning(|t| t.mapped_log(false)).disk_reserve_bytes(0);
    let store = Store::create(world.dir.path().join("store"), options.clone()).expect("it is created");
    let sums = |store: &Store| {
        store.table("sums", Rules::sorted::<u64, u64>().fold("sum:u64")).expect("the table is there")
    };
    let table = sums(&store);
    let durabilities = [Durability::Buffered, Durability::Sync, Durability::Buffered, Durability::Sync];
    let fold = |key: u64, durability: Durability| {
        let (mut taken, mut refused) = (0, 0);
        while taken + refused < FOLDS || refused_in_all.load(Ordering::Relaxed) < REFUSALS {
            let mut batch = store.batch();
            match batch.fold(&table, &key, &1).commit(durability) {
                Ok(_) => taken += 1,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
                    refused_in_all.fetch_add(1, Ordering::Relaxed);
                    refused += 1;
                }
            }
        }
        (key, taken, refused)
    };
    let folded: Vec<(u64, u64, u64)> = std::thread::scope(|scope| {
        let fold = &fold;
        let folding: Vec<_> = (0..)
            .zip(durabilities)
            .map(|(key, durability)| scope.spawn(move || fold(key, durability)))
            .collect();
        while folding.iter().any(|folding| !folding.is_finished()) {
            world.files.heal();
            let fault = Fault { name: ".log".to_owned(), os_error, skip: 1, ..Fault::on(&[Call::Append]) };
            world.files.break_on(Fault { times: 1, ..fault });
            std::thread::yield_now();
        }
        folding.into_iter().map(|folding| folding.join().expect("nobody panics")).collect()
    });
    world.files.heal();
    let assert_as_told = |table: &Table<u64, u64>, when: &str| {
        for (key, taken, refused) in &folded {
            let found = table.get(key).expect("it reads").unwrap_or_default();
            assert_eq!(
                found, *taken,
                "{when}, with {refused} refusals, of {:?}",
                durabilities[*key as usize]
            );
        }
    };
    assert_as_told(&table, "before");
    store.sync().expect("there is room again");
    drop((table, store));
    let store = Store::open(world.dir.path().join("store"), options).expect("it opens");
    assert_as_told(&sums(&store), "after reopening");
    folded.iter().map(|(_, _, refused)| refused).sum()
}

#[test]
fn a_fold_that_is_refused_for_lack_of_space_is_in_no_sum() {
    for os_error in [ENOSPC, EDQUOT] {
        assert!(fold_beside_refusals(os_error) > 20);
    }
}
