//! What leveled promises of its secondary indexes, row by row: one test each, named after the row.
//! And what it does not promise: that nothing is read for them, that they are right with folds, and
//! that they can be checked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use folddb::maintenance::VerifyOptions;
use folddb::{BackgroundWork, Durability, IndexRule, Options, Rules, Store, Table};
use folddb_sim::chance::Seeded;

struct Place {
    temp: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place { temp: tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory") }
    }

    fn path(&self) -> PathBuf {
        self.temp.path().join("store")
    }
}

fn options() -> Options {
    Options::default()
        .memory_bytes(4 << 20)
        .tuning(|t| t.segment_bytes(1 << 20).part_bytes(64 << 10))
        .disk_reserve_bytes(0)
        .background(BackgroundWork::Manual)
}

type Objects = Table<u64, Vec<u8>>;

fn objects(store: &Store) -> Objects {
    let rules =
        Rules::sorted::<u64, Vec<u8>>().index("by_owner", "json:/owner").index("by_day", "json:/days");
    store.table("objects", rules).expect("the table")
}

fn object(owner: u64, days: &[u64]) -> Vec<u8> {
    format!(r#"{{"owner":"user{owner:03}","days":{days:?},"body":"{}"}}"#, "b".repeat(40)).into_bytes()
}

fn drain(store: &Store) {
    while store.background_step().expect("a step").is_some() {}
}

fn keys(found: impl Iterator<Item = folddb::Result<u64>>) -> Vec<u64> {
    found.map(|key| key.expect("a key")).collect()
}

/// Objects written at random, and their state at the end.
fn fill(store: &Store, table: &Objects, writes: u64) -> BTreeMap<u64, (u64, Vec<u64>)> {
    let mut chance = Seeded::new(7);
    let mut expected = BTreeMap::new();
    for write in 0..writes {
        let (key, owner) = (chance.below(400), chance.below(20));
        if chance.one_in(8) {
            table.delete(&key).expect("written");
            expected.remove(&key);
        } else {
            let days: Vec<u64> = (0..chance.below(4)).map(|_| chance.below(30)).collect();
            table.put(&key, &object(owner, &days)).expect("written");
            expected.insert(key, (owner, days));
        }
        if write % 500 == 499 {
            store.flush().expect("flushed");
            (0..4).for_each(|_| drop(store.background_step().expect("a step")));
        }
    }
    expected
}

#[test]
fn leveled_secondary_indexes_an_index_is_asked_for_a_term_and_for_a_range_of_terms() {
    let place = Place::new();
    let store = Store::create(place.path(), options()).expect("the store");
    let table = objects(&store);
    let expected = fill(&store, &table, 4000);
    let of_owner = |owner: u64| -> Vec<u64> {
        expected.iter().filter(|(_, (has, _))| *has == owner).map(|(key, _)| *key).collect()
    };
    let check = || {
        for owner in 0..20 {
            let found = table.find("by_owner").expect("the index").term(format!("user{owner:03}"));
            assert_eq!(keys(found.keys()), of_owner(owner));
        }
        let range = table.find("by_owner").expect("the index").range("user005".."user008");
        assert_eq!(keys(range.keys()), (5..8).flat_map(of_owner).collect::<Vec<_>>());
        let days: BTreeSet<(u64, u64)> = expected
            .iter()
            .flat_map(|(key, (_, days))| days.iter().map(|day| (*day, *key)))
            .filter(|(day, _)| (10..=12).contains(day))
            .collect();
        let found = table.find("by_day").expect("the index").range(10..=12);
        assert_eq!(keys(found.keys()), days.into_iter().map(|(_, key)| key).collect::<Vec<_>>());
    };
    check();
    drain(&store);
    check();
    store.bytes_table("objects").expect("a table").compact().expect("compacted");
    check();
}

#[test]
fn leveled_secondary_indexes_a_write_to_an_indexed_table_reads_nothing() {
    let place = Place::new();
    let store = Store::create(place.path(), options()).expect("the store");
    let table = objects(&store);
    fill(&store, &table, 2000);
    store.flush().expect("flushed");
    let reads = |store: &Store| {
        let stats = store.stats();
        (stats.reads.pieces, stats.reads.gets, stats.reads.values)
    };
    let before = reads(&store);
    for key in 0..400 {
        table.put(&key, &object(key % 7, &[1, 2, 3])).expect("written");
        table.delete(&(key + 1)).expect("written");
    }
    assert_eq!(reads(&store), before);
}

#[test]
fn leveled_secondary_indexes_an_object_and_its_index_entries_are_written_together_or_not_at_all() {
    let place = Place::new();
    let store = Store::create(place.path(), options()).expect("the store");
    let table = objects(&store);
    for round in 0..50 {
        let mut batch = store.batch();
        for key in 0..20u64 {
            batch.put(&table, &key, &object(round, &[round]));
        }
        batch.commit(Durability::Sync).expect("committed");
    }
    drop((table, store)); // as if the process died
    let store = Store::open(place.path(), options()).expect("the store opens");
    let table = objects(&store);
    assert_eq!(keys(table.find("by_owner").expect("the index").term("user049").keys()).len(), 20);
    for index in ["by_owner", "by_day"] {
        let check = store.check_index("objects", index).expect("checked");
        assert_eq!((check.keys, check.missing, check.entries, check.stale), (20, 0, 50 * 20, 49 * 20));
    }
}

#[test]
fn leveled_secondary_indexes_a_query_stays_at_its_snapshot_while_objects_change() {
    let place = Place::new();
    let store = Store::create(place.path(), options()).expect("the store");
    let table = objects(&store);
    for key in 0..600u64 {
        table.put(&key, &object(key % 3, &[])).expect("written");
    }
    let mut found = table.find("by_owner").expect("the index").term("user001").keys();
    let mut seen: Vec<u64> = found.by_ref().take(50).map(|key| key.expect("a key")).collect();
    for key in 0..600u64 {
        table.put(&key, &object(9, &[])).expect("written");
    }
    store.bytes_table("objects").expect("a table").compact().expect("compacted");
    seen.extend(found.map(|key| key.expect("a key")));
    assert_eq!(seen, (0..600).filter(|key| key % 3 == 1).collect::<Vec<_>>());
}

#[test]
fn leveled_secondary_indexes_an_index_is_rebuilt_and_checked() {
    let place = Place::new();
    let store = Store::create(place.path(), options()).expect("the store");
    let table = objects(&store);
    let expected = fill(&store, &table, 3000);
    store.bytes_table("objects").expect("a table").drop_index("by_owner").expect("dropped");
    let rule = "by_owner:json:/owner".parse::<IndexRule>().expect("a rule");
    store.bytes_table("objects").expect("a table").add_index(&rule).expect("added");
    let check = store.check_index("objects", "by_owner").expect("checked");
    assert_eq!((check.keys, check.missing), (expected.len() as u64, 0));
    assert_eq!((check.entries, check.stale), (expected.len() as u64, 0), "a new index has nothing stale");
    store.close().expect("closed");
    let report =
        Store::verify(place.path(), &VerifyOptions::default().deep(true), &options()).expect("verified");
    assert!(report.is_clean(), "{:?}", report.findings);
}
