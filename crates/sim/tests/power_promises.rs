//! One promise per test: what was promised before a power cut is there afterwards, however much
//! unsynced data is lost.
//!
//! Each test brings a small store to one moment and cuts the power there, a few dozen times by
//! seed. While `power` crashes a workload after every call, these tests name the promise that is
//! broken.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use folddb::time::unix_ms;
use folddb::{
    BackgroundJob, Durability, ErrorKind, Expire, Feed, FeedChange, FeedEvent, FeedOptions, Keep, Options,
    Rules, Store, Table,
};
use folddb_sim::chance::Seeded;
use folddb_sim::faulty_files::{Call, ENOSPC, Fault};
use folddb_sim::small_store;
use folddb_sim::world::SimDisk;

/// Power cuts at each moment.
const CUTS: u64 = 40;
const KEYS: u64 = 60;

fn options(disk: &SimDisk) -> Options {
    small_store::options(disk).tuning(|t| t.part_bytes(16 << 10).merge_factor(2))
}

fn create(disk: &SimDisk) -> Store {
    small_store::create(disk, options(disk))
}

fn open(disk: &SimDisk) -> Store {
    small_store::open(disk, options(disk))
}

fn sums(store: &Store, name: &str) -> Table<u64, u64> {
    store.table(name, Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap()
}

/// Adds one to every key, in one batch.
fn add_to(store: &Store, tables: &[&Table<u64, u64>], durability: Durability) {
    let mut batch = store.batch();
    for key in 0..KEYS {
        for table in tables {
            batch.fold(table, &key, &1);
        }
    }
    batch.commit(durability).unwrap();
}

/// The value of every key of a table; it must be the same for all.
fn level(table: &Table<u64, u64>) -> u64 {
    let rows: Vec<(u64, u64)> = table.scan().into_iter().map(|row| row.unwrap()).collect();
    let level = rows.first().map_or(0, |row| row.1);
    let even: Vec<(u64, u64)> = (0..if level == 0 { 0 } else { KEYS }).map(|key| (key, level)).collect();
    assert_eq!(rows, even, "batches are whole, and none counts twice");
    level
}

/// Cuts the power here, again and again, and shows each resulting world.
fn after_cuts(disk: &SimDisk, judge: impl FnMut(&SimDisk)) {
    disk.after_power_cuts(CUTS, judge);
}

fn assert_level(disk: &SimDisk, expected: u64) {
    after_cuts(disk, |left| assert_eq!(level(&sums(&open(left), "a")), expected, "{}", left.diary(40)));
}

fn compact(store: &Store) {
    store.bytes_table("a").unwrap().compact().unwrap();
}

#[test]
fn a_synced_batch_is_there() {
    let disk = SimDisk::new(1);
    let store = create(&disk);
    let table = sums(&store, "a");
    for round in 1..=3 {
        add_to(&store, &[&table], Durability::Sync);
        assert_level(&disk, round);
    }
}

#[test]
fn a_synced_batch_is_there_in_whichever_segment_it_is() {
    let disk = SimDisk::new(12);
    let store = create(&disk);
    let rules = || Rules::sorted::<u64, Vec<u8>>();
    let table = store.table("large", rules()).unwrap();
    for key in 0..8u64 {
        let mut batch = store.batch();
        batch.put(&table, &key, &vec![key as u8; 300_000]); // a segment holds three
        batch.commit(Durability::Sync).unwrap();
        for seed in 0..CUTS / 4 {
            let left = disk.after_power_cut(&mut Seeded::new(seed));
            let rows = open(&left).table("large", rules()).unwrap().scan().count().unwrap();
            assert_eq!(rows, key + 1, "cut {seed}\n{}", left.diary(40));
        }
    }
}

#[test]
fn what_store_sync_has_said_to_be_durable_is_there() {
    let disk = SimDisk::new(2);
    let store = create(&disk);
    let table = sums(&store, "a");
    for round in 1..=2 {
        add_to(&store, &[&table], Durability::Buffered);
        add_to(&store, &[&table], Durability::Process);
        add_to(&store, &[&table], Durability::Buffered);
        store.sync().unwrap();
        assert_level(&disk, 3 * round);
    }
}

#[test]
fn a_table_is_there_once_it_is_created_and_gone_once_it_is_dropped() {
    let disk = SimDisk::new(3);
    let store = create(&disk);
    sums(&store, "a");
    after_cuts(&disk, |left| assert_eq!(open(left).tables(), ["a"]));
    store.drop_table("a").unwrap();
    after_cuts(&disk, |left| assert!(open(left).tables().is_empty()));
}

#[test]
fn a_flush_is_durable_before_its_log_is_not_needed() {
    let disk = SimDisk::new(4);
    let store = create(&disk);
    let table = sums(&store, "a");
    for round in 1..=3 {
        add_to(&store, &[&table], Durability::Sync);
        store.flush().unwrap();
        assert_level(&disk, round);
    }
}

#[test]
fn a_batch_over_two_tables_is_whole_when_one_of_them_is_flushed() {
    let disk = SimDisk::new(5);
    let store = create(&disk);
    let (a, b) = (sums(&store, "a"), sums(&store, "b"));
    add_to(&store, &[&a, &b], Durability::Process);
    store.background_step_of(BackgroundJob::Seal).unwrap();
    assert!(store.background_step_of(BackgroundJob::Flush).unwrap().is_some());
    after_cuts(&disk, |left| {
        let store = open(left);
        assert_eq!(level(&sums(&store, "a")), level(&sums(&store, "b")), "{}", left.diary(40));
    });
}

#[test]
fn a_merge_is_durable_before_its_inputs_go() {
    let disk = SimDisk::new(6);
    let store = create(&disk);
    let table = sums(&store, "a");
    for _ in 0..3 {
        add_to(&store, &[&table], Durability::Sync);
        store.flush().unwrap();
    }
    compact(&store);
    assert_eq!(store.bytes_table("a").unwrap().stats().unwrap().runs.len(), 1);
    assert_level(&disk, 3);
}

#[test]
fn what_a_merge_leaves_out_of_an_index_stays_stale() {
    let disk = SimDisk::new(6);
    let store = create(&disk);
    let table = store.table::<u64, Vec<u8>>("a", indexed()).unwrap();
    let set_all = |value: &[u8]| {
        for key in 0..KEYS {
            table.put(&key, value).unwrap();
        }
    };
    for value in [b"old", b"old"] {
        set_all(value);
        store.flush().unwrap();
    }
    set_all(b"new");
    while store.background_step_of(BackgroundJob::Merge).unwrap().is_some() {}
    after_cuts(&disk, |left| {
        let store = open(left);
        let table = store.table::<u64, Vec<u8>>("a", indexed()).unwrap();
        assert_eq!(table.find("by_value").unwrap().count().unwrap(), KEYS, "{}", left.diary(40));
    });
}

#[test]
fn what_is_written_after_a_power_cut_has_its_own_time() {
    let disk = SimDisk::new(7);
    let store = create(&disk);
    let rules = || {
        Rules::sorted::<u64, u64>()
            .fold("sum:u64")
            .keep(Keep::Window(Duration::from_secs(9000)))
            .expire(Expire::ByWrite)
    };
    let table = store.table("a", rules()).unwrap();
    add_to(&store, &[&table], Durability::Sync);
    store.flush().unwrap();
    add_to(&store, &[&table], Durability::Sync);
    store.flush().unwrap();
    sums(&store, "b").put(&1, &1).unwrap(); // this may be lost
    disk.jump_wall(3600);
    while store.background_step_of(BackgroundJob::Merge).unwrap().is_some() {}
    after_cuts(&disk, |left| {
        left.jump_wall(3600);
        let store = open(left);
        let table = store.table("a", rules()).unwrap();
        table.fold(&1, &1).unwrap();
        let written_ms = unix_ms(table.history(&1, 1).unwrap()[0].written.unwrap());
        assert!(written_ms.abs_diff(unix_ms(store.now())) < 2_000, "{written_ms}\n{}", left.diary(40));
    });
}

/// A feed never reports the end of a value that had expired when it began.
#[test]
fn what_had_expired_when_a_feed_began_stays_expired_if_the_clock_goes_back_over_an_opening() {
    let expiring = || Rules::sorted::<u64, u64>().expire(Expire::After(Duration::from_secs(3600)));
    for is_cut in [false, true] {
        let disk = SimDisk::new(7);
        let store = create(&disk);
        let table = store.table("a", expiring()).unwrap();
        table.put(&1, &1).unwrap();
        store.sync().unwrap();
        disk.jump_wall(7200);
        let mut feed = store.feed("f", FeedOptions::default()).unwrap();
        while let Some(event) = feed.poll().unwrap() {
            assert!(!matches!(event, FeedEvent::Row(_)), "it has expired: {event:?}");
        }
        feed.acknowledge(feed.position()).unwrap();
        drop((feed, table));
        let left = if is_cut { disk.after_death() } else { disk };
        store.close().unwrap();
        left.jump_wall(-86_400);
        let store = open(&left);
        assert_eq!(store.table("a", expiring()).unwrap().get(&1).unwrap(), None, "cut: {is_cut}");
    }
}

fn indexed() -> Rules<u64, Vec<u8>> {
    Rules::sorted::<u64, Vec<u8>>().index("by_value", "value")
}

#[test]
fn a_recovery_is_durable_before_the_old_log_goes() {
    let disk = SimDisk::new(7);
    let store = create(&disk);
    let table = sums(&store, "a");
    for _ in 0..3 {
        add_to(&store, &[&table], Durability::Sync);
    }
    let reopened = disk.after_death();
    let store = open(&reopened);
    assert_level(&reopened, 3);
    add_to(&store, &[&sums(&store, "a")], Durability::Sync);
    assert_level(&reopened, 4);
}

#[test]
fn a_recovery_that_dies_before_any_of_its_changes_loses_nothing() {
    let disk = SimDisk::new(8);
    let store = create(&disk);
    let (a, b) = (sums(&store, "a"), sums(&store, "b"));
    for _ in 0..2 {
        add_to(&store, &[&a, &b], Durability::Sync);
        store.flush().unwrap();
    }
    add_to(&store, &[&a, &b], Durability::Sync);
    let mut changes = 0;
    loop {
        let dying = disk.after_death();
        dying.die_after(changes);
        let opened = Store::open(SimDisk::store_dir(), options(&dying));
        let has_died = dying.is_dead();
        drop(opened);
        for left in [dying.after_death(), dying.after_power_cut(&mut Seeded::new(changes))] {
            let store = open(&left);
            assert_eq!((level(&sums(&store, "a")), level(&sums(&store, "b"))), (3, 3), "{}", left.diary(60));
        }
        if !has_died {
            break;
        }
        changes += 1;
    }
    assert!(changes > 15, "only {changes} changes");
}

#[test]
fn closing_leaves_all_durable() {
    let disk = SimDisk::new(9);
    let store = create(&disk);
    let table = sums(&store, "a");
    add_to(&store, &[&table], Durability::Buffered);
    drop(table);
    store.close().unwrap();
    assert_level(&disk, 1);
}

#[test]
fn after_an_edit_that_failed_every_file_of_either_state_is_there() {
    for (call, nth) in [(Call::Write, 0), (Call::WriteSync, 0), (Call::WriteSync, 1)] {
        let disk = SimDisk::new(10);
        let store = create(&disk);
        let table = sums(&store, "a");
        for _ in 0..3 {
            add_to(&store, &[&table], Durability::Sync);
            store.flush().unwrap();
        }
        let fault = Fault { name: "MANIFEST".to_owned(), skip: nth, ..Fault::on(&[call]) };
        disk.break_on(fault);
        let refused = store.bytes_table("a").and_then(|table| table.compact());
        if nth == 0 {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Poisoned, "{call:?}");
        }
        drop((table, store));
        disk.heal();
        assert_level(&disk, 3);
        assert_eq!(level(&sums(&open(&disk.after_death()), "a")), 3);
    }
}

#[test]
fn after_a_failed_sync_nothing_is_acknowledged() {
    let disk = SimDisk::new(11);
    let store = create(&disk);
    let table = sums(&store, "a");
    add_to(&store, &[&table], Durability::Sync);
    disk.break_on(Fault { times: 1, ..Fault::on(&[Call::AppendSync]) });
    assert!(store.sync().is_ok(), "nothing is left to sync");
    let kind = |durability| {
        let mut batch = store.batch();
        batch.fold(&table, &1, &1);
        batch.commit(durability).map(drop).map_err(|error| error.kind())
    };
    let poisoned = Err(ErrorKind::Poisoned);
    assert_eq!(kind(Durability::Sync), Err(ErrorKind::NotDurable), "its own sync fails");
    for durability in [Durability::Sync, Durability::Process, Durability::Buffered] {
        assert_eq!(kind(durability), poisoned, "{durability:?}");
    }
    assert_eq!(store.sync().map_err(|error| error.kind()), poisoned);
    assert_eq!(store.flush().map_err(|error| error.kind()), poisoned);
}

// ---- feeds --------------------------------------------------------------------------------------

/// What a consumer of a feed has seen: the value of each key.
#[derive(Clone, Default)]
struct Shown {
    sums: BTreeMap<Vec<u8>, u64>,
    tables: BTreeSet<String>,
}

impl Shown {
    fn take(&mut self, event: FeedEvent) {
        let number = |value: &[u8]| u64::from_le_bytes(value.try_into().unwrap());
        match event {
            FeedEvent::Begin { .. } => *self = Shown::default(),
            FeedEvent::TableCreated(table) => assert!(self.tables.insert(table.name.clone())),
            FeedEvent::TableDropped(table) => assert!(self.tables.remove(&table.name)),
            FeedEvent::Row(row) => _ = self.sums.insert(row.key, number(&row.value.unwrap())),
            FeedEvent::RowsEnd => {}
            FeedEvent::Batch(batch) => {
                for op in batch.ops {
                    assert!(self.tables.contains(&op.table.name), "table {} was not told of", op.table.name);
                    let FeedChange::Fold(operand) = op.change else { panic!("{:?}", op.change) };
                    *self.sums.entry(op.key).or_default() += number(&operand);
                }
            }
            unknown => panic!("{unknown:?}"),
        }
    }

    /// Takes all pending events.
    fn follow(&mut self, feed: &mut Feed) {
        while let Some(event) = feed.poll().unwrap() {
            self.take(event);
        }
    }
}

fn feed(store: &Store, from_now: bool) -> Feed {
    store.feed("f", FeedOptions::default().from_now(from_now)).unwrap()
}

#[test]
fn rows_that_a_feed_has_shown_are_not_taken_back() {
    let disk = SimDisk::new(13);
    let store = create(&disk);
    add_to(&store, &[&sums(&store, "a")], Durability::Process);
    let (mut feed, mut shown) = (feed(&store, false), Shown::default());
    while !matches!(feed.poll().unwrap().unwrap(), FeedEvent::RowsEnd) {}
    feed.acknowledge(feed.position()).unwrap();
    after_cuts(&disk, |left| {
        let store = open(left);
        assert_eq!(level(&sums(&store, "a")), 1, "{}", left.diary(40));
        shown.follow(&mut self::feed(&store, false)); // nothing is pending
        assert!(shown.sums.is_empty(), "{}", left.diary(40));
    });
}

#[test]
fn batches_that_a_feed_has_shown_are_not_taken_back() {
    let disk = SimDisk::new(14);
    let store = create(&disk);
    let table = sums(&store, "a");
    let mut feed = feed(&store, true);
    let mut shown = Shown { tables: ["a".to_owned()].into(), ..Shown::default() };
    for round in 1..=3 {
        add_to(&store, &[&table], Durability::Process);
        shown.follow(&mut feed);
        assert!(shown.sums.len() as u64 == KEYS && shown.sums.values().all(|sum| *sum == round));
        assert_level(&disk, round);
    }
}

#[test]
fn a_close_without_room_to_seal_the_log_leaves_feeds_what_they_hold() {
    for is_told in [false, true] {
        let disk = SimDisk::new(16);
        let store = create(&disk);
        let table = sums(&store, "a");
        let mut feed = feed(&store, true);
        let mut shown = Shown { tables: ["a".to_owned()].into(), ..Shown::default() };
        add_to(&store, &[&table], Durability::Process);
        if is_told {
            shown.follow(&mut feed);
            feed.acknowledge(feed.position()).unwrap();
        }
        store.flush().unwrap(); // no opening has to replay records that are in runs
        disk.break_on(Fault { os_error: ENOSPC, ..Fault::on(&[Call::Append]) });
        drop((feed, table));
        let _ = store.close();
        disk.heal();
        for level in 2..=3 {
            let store = open(&disk);
            add_to(&store, &[&sums(&store, "a")], Durability::Process);
            let mut feed = self::feed(&store, true);
            shown.follow(&mut feed);
            assert_eq!(shown.sums.len() as u64, KEYS, "{}", disk.diary(40));
            assert!(shown.sums.values().all(|sum| *sum == level), "{}", disk.diary(40));
            feed.acknowledge(feed.position()).unwrap();
        }
    }
}

/// Seqs that a power cut took back are given to other batches: for those, the table is as new as it
/// was for the lost ones.
#[test]
fn a_feed_gives_a_table_before_its_writes_also_after_a_power_cut() {
    let disk = SimDisk::new(15);
    let store = create(&disk);
    let table = sums(&store, "a");
    drop(feed(&store, true));
    for _ in 0..3 {
        add_to(&store, &[&table], Durability::Process);
    }
    sums(&store, "b");
    after_cuts(&disk, |left| {
        let store = open(left);
        add_to(&store, &[&sums(&store, "b")], Durability::Sync);
        let mut shown = Shown { tables: ["a".to_owned()].into(), ..Shown::default() };
        shown.follow(&mut feed(&store, true));
        assert_eq!(shown.tables.len(), 2, "{}", left.diary(40));
    });
}
