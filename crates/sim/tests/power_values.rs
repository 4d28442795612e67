//! Promises about separated values, one per test: data acknowledged as durable is there after a
//! power cut, wherever its values are by then, and no index leads to a lost value.
//!
//! As in `power_promises`, each test brings a small store to some moments and cuts the power there,
//! a few dozen times by seed.
#![allow(clippy::unwrap_used)]

use folddb::{
    BackgroundJob, Durability, FeedEvent, FeedOptions, Options, Rules, Store, Table, ValuePlacement,
};
use folddb_sim::small_store;
use folddb_sim::world::SimDisk;

/// Power cuts at each moment.
const CUTS: u64 = 16;
const KEYS: u64 = 60;

type Blobs = Table<u64, Vec<u8>>;

fn options(disk: &SimDisk) -> Options {
    small_store::options(disk).tuning(|t| t.value_segment_bytes(32 << 10).value_space_max(1.05))
}

fn create(disk: &SimDisk) -> Store {
    small_store::create(disk, options(disk))
}

/// With value segments so large that background work has no reason of its own to sync their
/// contents.
fn create_with_large_segments(disk: &SimDisk) -> Store {
    small_store::create(disk, options(disk).tuning(|t| t.value_segment_bytes(4 << 20)))
}

fn open(disk: &SimDisk) -> Store {
    small_store::open(disk, options(disk))
}

fn sorted(store: &Store, place: ValuePlacement) -> Blobs {
    store.table("sorted", Rules::sorted::<u64, Vec<u8>>().separate(256).value_placement(place)).unwrap()
}

fn hashed(store: &Store, place: ValuePlacement) -> Blobs {
    store.table("hashed", Rules::hashed::<u64, Vec<u8>>().value_placement(place)).unwrap()
}

fn sums(store: &Store) -> Table<u64, u64> {
    store.table("sums", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap()
}

fn blob(key: u64, round: u64) -> Vec<u8> {
    vec![(key * 7 + round * 31) as u8; 600 + (key as usize * 37 + round as usize * 11) % 900]
}

/// Writes the keys for which this is true, each in a batch.
fn write(table: &Blobs, round: u64, durability: Durability, is_meant: impl Fn(u64) -> bool) {
    let table = table.clone().with_durability(durability);
    (0..KEYS)
        .filter(|key| is_meant(*key))
        .for_each(|key| assert!(table.put(&key, &blob(key, round)).is_ok()));
}

/// The round in which each key of a table was written last.
fn rounds(table: &Blobs, rounds: u64) -> Vec<u64> {
    let round_of = |key: u64| {
        let value = table.get(&key).unwrap_or_else(|error| panic!("key {key}: {error}"));
        let value = value.unwrap_or_else(|| panic!("key {key} is not there"));
        (0..=rounds).find(|round| blob(key, *round) == value).expect("a value that was written")
    };
    (0..KEYS).map(round_of).collect()
}

fn compact(store: &Store, table: &str) {
    store.bytes_table(table).unwrap().compact().unwrap();
}

/// Cuts the power here, again and again, and shows each resulting store.
fn after_cuts(disk: &SimDisk, mut judge: impl FnMut(&SimDisk, &Store)) {
    disk.after_power_cuts(CUTS, |left| judge(left, &open(left)));
}

#[test]
fn what_has_moved_is_durable_before_what_it_lay_in_goes() {
    let disk = SimDisk::new(1);
    let store = create(&disk);
    let tables = [sorted(&store, ValuePlacement::Segments), hashed(&store, ValuePlacement::Segments)];
    let changes = |key: u64| !key.is_multiple_of(4);
    for table in &tables {
        write(table, 0, Durability::Sync, |_| true);
        write(table, 1, Durability::Sync, changes);
    }
    store.flush().unwrap();
    compact(&store, "sorted");
    assert!(store.reclaim().unwrap().plans > 0, "something moves");
    let expected: Vec<u64> = (0..KEYS).map(|key| u64::from(changes(key))).collect();
    after_cuts(&disk, |left, store| {
        for table in [sorted(store, ValuePlacement::Segments), hashed(store, ValuePlacement::Segments)] {
            assert_eq!(rounds(&table, 1), expected, "{}", left.diary(40));
        }
    });
}

/// A replaced value that was not durable is removed from the disk, alone or with all its
/// neighbors: its replacement is durable by then.
fn replaced_values_go(place: ValuePlacement, work: BackgroundJob, changes: impl Fn(u64) -> bool) {
    let disk = SimDisk::new(2);
    let store = create(&disk);
    let table = hashed(&store, place);
    write(&table, 0, Durability::Sync, |_| true);
    write(&filler(&store, place), 0, Durability::Sync, |_| true); // the last segment is another
    store.flush().unwrap();
    store.reclaim().unwrap(); // earlier writes are settled
    // Short: background work syncs large amounts in any case.
    let brief = |key: u64| vec![key as u8; 8];
    let table = table.with_durability(Durability::Process);
    (0..KEYS).filter(|key| changes(*key)).for_each(|key| assert!(table.put(&key, &brief(key)).is_ok()));
    let before = store.stats();
    store.background_step_of(BackgroundJob::Log).unwrap();
    sums(&store); // another table makes background work check again; a flush would sync the replacement
    while store.background_step_of(work).unwrap().is_some() {}
    let after = store.stats();
    assert!(
        after.background.value_bytes_given_back > before.background.value_bytes_given_back,
        "something goes"
    );
    after_cuts(&disk, |left, store| {
        let table = hashed(store, place);
        for key in 0..KEYS {
            let value = table.get(&key).unwrap_or_else(|error| panic!("{error}\n{}", left.diary(40)));
            let is_either = value == Some(blob(key, 0)) || changes(key) && value == Some(brief(key));
            assert!(is_either, "key {key} has {value:?}\n{}", left.diary(40));
        }
    });
}

fn filler(store: &Store, place: ValuePlacement) -> Blobs {
    store.table("filler", Rules::hashed::<u64, Vec<u8>>().value_placement(place)).unwrap()
}

#[test]
fn a_new_value_is_durable_before_the_old_one_is_not_copied() {
    replaced_values_go(ValuePlacement::Segments, BackgroundJob::Reclaim, |key| !key.is_multiple_of(4));
}

#[test]
fn what_replaced_a_value_is_durable_before_its_segment_goes() {
    replaced_values_go(ValuePlacement::Segments, BackgroundJob::Flush, |_| true);
}

#[test]
fn what_replaced_a_value_is_durable_before_its_file_goes() {
    replaced_values_go(ValuePlacement::Files, BackgroundJob::Reclaim, |key| !key.is_multiple_of(4));
}

#[test]
fn a_synced_value_in_a_file_of_its_own_is_there() {
    let disk = SimDisk::new(3);
    let store = create(&disk);
    let tables = [sorted(&store, ValuePlacement::Files), hashed(&store, ValuePlacement::Files)];
    for round in 0..3 {
        tables.iter().for_each(|table| write(table, round, Durability::Sync, |_| true));
        if round == 1 {
            store.flush().unwrap();
        }
        after_cuts(&disk, |left, store| {
            for table in [sorted(store, ValuePlacement::Files), hashed(store, ValuePlacement::Files)] {
                assert_eq!(rounds(&table, round), [round; KEYS as usize], "{}", left.diary(40));
            }
        });
    }
}

/// The frame of a `Buffered` batch dies with its process, the bytes of its value do not. The
/// opening gives them back: alone in a segment with the segment, otherwise with what is behind the
/// last value that something points to.
#[test]
fn bytes_of_a_value_whose_frame_was_lost_are_given_back_by_the_opening() {
    for with_another in [true, false] {
        let disk = SimDisk::new(4);
        let store = create_with_large_segments(&disk);
        let table = sorted(&store, ValuePlacement::Segments);
        if with_another {
            table.clone().with_durability(Durability::Process).put(&0, &blob(0, 0)).unwrap();
        }
        let lost = table.with_durability(Durability::Buffered);
        lost.put(&1, &vec![1; 100_000]).unwrap();
        let next = disk.after_death();
        let store = open(&next);
        let table = sorted(&store, ValuePlacement::Segments);
        assert_eq!(table.get(&0).unwrap(), with_another.then(|| blob(0, 0)));
        assert_eq!(table.get(&1).unwrap(), None, "the frame was lost");
        let left = store.value_segments();
        let bytes: u64 = left.iter().map(|segment| segment.dead_bytes()).sum();
        assert!(bytes < 4096, "{left:?}\n{}", next.diary(40));
        assert_eq!(left.iter().any(|segment| segment.live_values > 0), with_another, "{left:?}");
    }
}

/// Streamed, longer than the part of a stream that is held in memory; the last one is not synced,
/// and so may be there or not, but never in part.
#[test]
fn a_long_value_of_a_hashed_table_is_there() {
    for place in [ValuePlacement::Segments, ValuePlacement::Files] {
        let disk = SimDisk::new(7);
        let store =
            Store::create(SimDisk::store_dir(), options(&disk).tuning(|t| t.stream_piece_bytes(1 << 10)))
                .unwrap();
        let table = hashed(&store, place);
        let long = |round: u64| vec![round as u8; 9000 + round as usize];
        let put = |round: u64, durability: Durability| {
            let table = table.clone().with_durability(durability);
            table.put_from(&1, &mut long(round).as_slice()).unwrap();
        };
        for round in 0..3 {
            put(round, Durability::Sync);
            put(round + 1, Durability::Process);
            after_cuts(&disk, |left, store| {
                let found = hashed(store, place).get(&1).unwrap_or_else(|error| panic!("{error}"));
                let is_one = (round..=round + 1).any(|round| found == Some(long(round)));
                assert!(is_one, "{:?} bytes\n{}", found.map(|value| value.len()), left.diary(40));
            });
        }
    }
}

#[test]
fn a_batch_over_a_hashed_table_and_a_sorted_one_is_whole_when_the_index_is_saved() {
    let disk = SimDisk::new(4);
    let store = create_with_large_segments(&disk);
    let (table, sums) = (hashed(&store, ValuePlacement::Segments), sums(&store));
    let put = |key: u64, round: u64| {
        let mut batch = store.batch();
        batch.put(&table, &key, &blob(key, round)).fold(&sums, &key, &1);
        batch.commit(Durability::Process).unwrap();
    };
    (0..KEYS).for_each(|key| put(key, 0));
    store.background_step_of(BackgroundJob::Seal).unwrap();
    for round in 1..8 {
        // Written while the index is being saved, so that some of it is in the checkpoint.
        (0..KEYS).for_each(|key| put(key, round));
        let step = store.background_step_of(BackgroundJob::Flush).unwrap();
        after_cuts(&disk, |left, store| {
            let (table, sums) = (hashed(store, ValuePlacement::Segments), self::sums(store));
            for key in 0..KEYS {
                let value = table.get(&key).unwrap();
                let written = (0..=round).find(|round| value.as_ref() == Some(&blob(key, *round)));
                let count = written.map(|round| round + 1);
                assert_eq!(sums.get(&key).unwrap(), count, "key {key} after {step:?}\n{}", left.diary(40));
            }
        });
    }
    assert!(store.stats().background.indexes_saved > 0, "the index was saved");
}

#[test]
fn the_log_is_kept_while_an_index_that_needs_it_is_being_saved() {
    let disk = SimDisk::new(5);
    let store = create(&disk);
    let (table, sums) = (hashed(&store, ValuePlacement::Segments), sums(&store));
    for round in 0..3u64 {
        write(&table, round, Durability::Sync, |_| true);
        store.background_step_of(BackgroundJob::Seal).unwrap();
        loop {
            // Another table is written to and flushed in between, so that the log could begin
            // later.
            sums.clone().with_durability(Durability::Sync).fold(&1, &1).unwrap();
            let step = store.background_step_of(BackgroundJob::Flush).unwrap();
            after_cuts(&disk, |left, store| {
                let found = rounds(&hashed(store, ValuePlacement::Segments), round);
                assert_eq!(found, [round; KEYS as usize], "after {step:?}\n{}", left.diary(40));
            });
            if step.is_none() {
                break;
            }
            store.background_step_of(BackgroundJob::Seal).unwrap();
            if step.is_some_and(|step| step.contains("saved the index")) {
                break;
            }
        }
    }
}

/// All pending ops of a feed.
fn ops_of(store: &Store) -> usize {
    let mut feed = store.feed("all", FeedOptions::default().from_now(true)).unwrap();
    let mut ops = 0;
    while let Some(event) = feed.poll().unwrap() {
        match event {
            FeedEvent::Batch(batch) => ops += batch.ops.len(),
            FeedEvent::Begin { .. } => panic!("the feed has lost its place"),
            _ => {}
        }
    }
    ops
}

#[test]
fn what_a_feed_has_still_to_give_is_durable_before_it_is_in_runs_only() {
    let disk = SimDisk::new(6);
    let store = create_with_large_segments(&disk);
    let table = sorted(&store, ValuePlacement::Segments);
    drop(store.feed("all", FeedOptions::default().from_now(true)).unwrap());
    for round in 0..2 {
        write(&table, round, Durability::Process, |_| true);
        store.flush().unwrap();
        let expected = (round as usize + 1) * KEYS as usize;
        after_cuts(&disk, |left, store| assert_eq!(ops_of(store), expected, "{}", left.diary(40)));
    }
}
