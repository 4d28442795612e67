//! Reclaim on a disk that is full, or nearly: it needs room to give room back. Whichever of its
//! calls finds none, the store stays whole and unchanged. Where space is short, it moves the values
//! that free most for the least space. Once there is space, the value log shrinks on its own.

use std::path::PathBuf;
use std::time::Duration;

use folddb::maintenance::VerifyOptions;
use folddb::{BackgroundJob, BackgroundWork, ErrorKind, Options, Rules, Store, Table};
use folddb_sim::faulty_files::{Call, Fault};
use folddb_sim::world::SimDisk;

const MIB: u64 = 1 << 20;
const ENOSPC: i32 = 28;
const KEYS: u64 = 150;
const ROUNDS: u64 = 9;

fn options(disk: &SimDisk) -> Options {
    Options::default()
        .host(disk.host())
        .memory_bytes(4 << 20)
        .tuning(|t| t.segment_bytes(MIB).value_segment_bytes(256 << 10))
        .disk_reserve_bytes(0)
        .background(BackgroundWork::Manual)
}

fn create(options: Options) -> Store {
    Store::create(SimDisk::store_dir(), options).expect("a store")
}

fn open(disk: &SimDisk) -> Store {
    Store::open(SimDisk::store_dir(), options(disk)).expect("it opens")
}

/// A sorted table and a hashed one.
fn tables(store: &Store) -> [Table<u64, Vec<u8>>; 2] {
    let sorted = Rules::sorted::<u64, Vec<u8>>().separate(1024);
    let table = |name, rules| store.table(name, rules).expect("a table");
    [table("sorted", sorted), table("hashed", Rules::hashed())]
}

fn value(key: u64, round: u64) -> Vec<u8> {
    vec![(key * 7 + round * 31) as u8; 2000 + (key as usize * 37 + round as usize) % 3000]
}

fn round_of(key: u64) -> u64 {
    if key.is_multiple_of(3) { ROUNDS } else { 0 }
}

/// Every segment has live and dead values, and everything is in runs.
fn fill(store: &Store) {
    for round in 0..=ROUNDS {
        for table in tables(store) {
            for key in (0..KEYS).filter(|key| round == 0 || key.is_multiple_of(3)) {
                table.put(&key, &value(key, round)).expect("it goes");
            }
        }
        store.background_step_of(BackgroundJob::Log).expect("it goes");
    }
    store.bytes_table("sorted").expect("a table").compact().expect("it goes");
}

fn assert_holds(store: &Store, what: &str) {
    for table in tables(store) {
        for key in 0..KEYS {
            let found = table.get(&key).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(found == Some(value(key, round_of(key))), "{what}: key {key}");
        }
        assert_eq!(table.scan().into_iter().filter(Result::is_ok).count() as u64, KEYS, "{what}");
    }
}

fn assert_verifies(disk: &SimDisk, what: &str) {
    let report = Store::verify(SimDisk::store_dir(), &VerifyOptions::default().deep(true), &options(disk))
        .expect("it goes");
    assert!(report.is_clean(), "{what}: {:?}", report.findings);
}

fn background(store: &Store) {
    while store.background_step().expect("there is room").is_some() {}
}

/// Whether the value log is within its bound of 1.4, or nearly: the live bytes of hashed tables are
/// known by size classes.
fn is_down(store: &Store) -> bool {
    let stats = store.stats();
    stats.disk.value_bytes * 2 <= stats.disk.value_live_bytes * 3
}

/// The existing files of relocated values, listed or not.
fn relocated_files(disk: &SimDisk) -> usize {
    disk.names(&SimDisk::store_dir()).iter().filter(|(name, _)| name.ends_with(".moved")).count()
}

fn listed_relocated(store: &Store) -> usize {
    store.value_segments().iter().filter(|file| file.segments != [file.number]).count()
}

/// One call of a reclaim finds no space, each in turn, and again all from that call on.
#[test]
fn whichever_call_of_a_reclaim_finds_no_space_the_store_is_whole_and_comes_down_when_there_is_room() {
    let whole = SimDisk::new(1);
    let store = create(options(&whole));
    fill(&store);
    store.close().expect("it closes");
    let changing = [
        Call::Create,
        Call::Write,
        Call::WriteSync,
        Call::SyncDir,
        Call::CreateAppend,
        Call::Append,
        Call::AppendSync,
        Call::Prepare,
    ];
    let (mut met, mut refused, mut poisoned) = (0, 0, 0);
    for times in [1, u64::MAX] {
        for skip in 0.. {
            let what = format!("{times} from call {skip} on");
            let world = whole.fork();
            let mut store = open(&world);
            let before = store.stats().disk.value_bytes;
            assert!(!is_down(&store), "{:?}", store.stats());
            world.break_on(Fault { os_error: ENOSPC, skip, times, ..Fault::on(&changing) });
            let reclaimed = store.reclaim();
            let failed = world.failed();
            assert_holds(&store, &what);
            world.heal();
            if store.stats().poisoned_by.is_some() {
                // Data of a failed sync of the list may be on the disk or not: only an opening
                // shows it.
                let is_of_list = |(call, path): &(Call, PathBuf)| {
                    *call == Call::WriteSync && path.to_string_lossy().contains("MANIFEST")
                };
                assert!(failed.iter().any(is_of_list), "{what}: {failed:?}");
                poisoned += 1;
                drop(store);
                store = open(&world);
            } else if let Err(error) = &reclaimed {
                assert_eq!(error.kind(), ErrorKind::NoSpace, "{what}: {error}");
                refused += 1;
                assert_eq!(
                    relocated_files(&world),
                    listed_relocated(&store),
                    "{what}: nothing is left behind"
                );
            }
            world.advance(Duration::from_secs(60));
            background(&store); // on its own
            assert_holds(&store, &what);
            let after = store.stats();
            assert!(is_down(&store), "{what}: {before} bytes, {after:?}");
            assert_eq!(relocated_files(&world), listed_relocated(&store), "{what}: {failed:?}");
            store.close().expect("it closes");
            assert_verifies(&world, &what);
            assert_holds(&open(&world), &what);
            met += usize::from(!failed.is_empty());
            if failed.is_empty() {
                break;
            }
        }
    }
    let counts = format!("{met} calls failed, and {refused} reclaims, of which {poisoned} poisoned");
    assert!(met >= 6 && refused >= 4 && poisoned <= met / 4, "{counts}");
}

/// The manifest finds no space, at any edit, while everything in some segments dies: they are
/// removed as well once there is space.
#[test]
fn dead_segments_whose_edit_found_no_space_are_removed_when_there_is_room() {
    let whole = SimDisk::new(4);
    let store = create(options(&whole));
    fill(&store);
    store.close().expect("it closes");
    let dead = |store: &Store| {
        let files = store.value_segments().into_iter();
        files
            .filter(|file| file.is_sealed && file.live_values == 0)
            .map(|file| file.number)
            .collect::<Vec<_>>()
    };
    let (no_dead, mut refused) = (Vec::<u64>::new(), 0);
    for skip in 0.. {
        let what = format!("call {skip}");
        let world = whole.fork();
        let mut store = open(&world);
        for table in tables(&store) {
            (0..KEYS).for_each(|key| assert!(table.delete(&key).is_ok(), "{what}"));
        }
        let list = [Call::Write, Call::WriteSync];
        let fault =
            Fault { os_error: ENOSPC, skip, times: 1, name: "MANIFEST".to_owned(), ..Fault::on(&list) };
        world.break_on(fault);
        let merged = store.bytes_table("sorted").and_then(|table| table.compact());
        refused += usize::from(merged.is_err());
        let failed = world.failed();
        world.heal();
        if store.stats().poisoned_by.is_some() {
            drop(store);
            store = open(&world);
        }
        background(&store);
        if failed.is_empty() {
            assert_eq!(dead(&store), no_dead, "{what}: the last merge is the last that anything waits for");
            break;
        }
        store.flush().expect("there is room");
        background(&store);
        assert_eq!(dead(&store), no_dead, "{what}: {failed:?}, {:?}", store.value_segments());
    }
    assert!(refused >= 2, "{refused}");
}

/// Writes are refused for lack of space, most of the value log is dead, and there is room for one
/// or two files: reclaim uses that.
#[test]
fn short_of_space_reclaim_makes_room_and_writing_resumes() {
    let world = SimDisk::new(2);
    let reserve = 2 * MIB;
    let store = create(options(&world).disk_reserve_bytes(reserve));
    fill(&store);
    // Less than the reserve is left, and no space is freed from outside.
    world.leave_free(Some(reserve - MIB / 2));
    let before = store.stats().disk.value_bytes;
    let [sorted, _] = tables(&store);
    let refused = (0..100).find_map(|_| {
        store.background_step_of(BackgroundJob::Log).err();
        sorted.put(&0, &value(0, ROUNDS)).err()
    });
    assert_eq!(refused.map(|error| error.kind()), Some(ErrorKind::NoSpace), "{:?}", store.stats());
    assert_holds(&store, "short");
    let mut steps = 0;
    while store.background_step().expect("a step").is_some() {
        steps += 1;
        assert!(steps < 10_000, "background work never ends");
    }
    let after = store.stats();
    assert!(after.background.reclaims > 0 && after.disk.value_bytes < before, "{after:?}");
    assert!(after.short_of_space.is_none(), "{after:?}");
    sorted.put(&0, &value(0, ROUNDS)).expect("there is space again");
    assert_holds(&store, "after it");
    drop(sorted);
    store.close().expect("it closes");
    assert_verifies(&world, "after it");
}

/// No byte is left: nothing can move, nothing is lost, and no call waits; then there is space.
#[test]
fn without_a_byte_left_reclaim_lets_all_be_and_begins_when_there_is_room() {
    let world = SimDisk::new(3);
    let store = create(options(&world));
    fill(&store);
    store.close().expect("it closes");
    let store = open(&world);
    world.leave_free(Some(0));
    let before = store.stats().disk.value_bytes;
    assert!(!is_down(&store), "{:?}", store.stats());
    for _ in 0..20 {
        if let Err(error) = store.background_step() {
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        }
    }
    assert_holds(&store, "full");
    assert!(store.stats().poisoned_by.is_none());
    assert_eq!(relocated_files(&world), listed_relocated(&store));
    world.leave_free(Some(16 * MIB));
    background(&store);
    assert!(is_down(&store), "{before} bytes, {:?}", store.stats());
    assert_holds(&store, "with room");
    store.close().expect("it closes");
    assert_verifies(&world, "with room");
}
