//! Change feeds as a consumer meets them: rows, then batches, over closes, deaths, merges and reclaim.
#![allow(clippy::unwrap_used)]

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use folddb::{
    BackgroundWork, Durability, ErrorKind, Expire, Feed, FeedChange, FeedEvent, FeedOptions, Fold,
    FoldFailure, Keep, Lifetime, Options, Outcome, Rules, Store, Table, ValuePlacement, WriteOp,
};
use folddb_rules::order::CustomOrder;

fn options() -> Options {
    Options::default()
        .memory_bytes(4 << 20)
        .segment_bytes(256 << 10)
        .value_segment_bytes(256 << 10)
        .background(BackgroundWork::Manual)
}

fn drain(store: &Store) {
    while store.background_step().unwrap().is_some() {}
}

/// What a consumer makes of a feed, of tables that sum numbers and of tables that replace.
#[derive(Default, Debug, PartialEq)]
struct Replica {
    tables: BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>,
    begun: usize,
    batches: Vec<(u64, u64)>,
}

fn sum(earlier: Option<&Vec<u8>>, later: &[u8]) -> Vec<u8> {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    (earlier.map_or(0, |bytes| number(bytes)) + number(later)).to_le_bytes().to_vec()
}

impl Replica {
    fn take(&mut self, event: FeedEvent) {
        match event {
            FeedEvent::Begin { .. } => {
                self.tables.clear();
                self.begun += 1;
            }
            FeedEvent::TableCreated(table) => {
                assert!(self.tables.insert(table.name.clone(), BTreeMap::new()).is_none(), "{}", table.name);
            }
            FeedEvent::TableDropped(table) => assert!(self.tables.remove(&table.name).is_some()),
            FeedEvent::Row(row) => {
                let rows = self.tables.get_mut(&row.table.name).unwrap();
                assert!(rows.insert(row.key, row.value.unwrap()).is_none());
            }
            FeedEvent::RowsEnd => {}
            FeedEvent::Batch(batch) => {
                self.batches.push((batch.first_seq, batch.last_seq));
                for op in batch.ops {
                    let rows = self.tables.get_mut(&op.table.name).unwrap();
                    match op.change {
                        FeedChange::Put(value) => drop(rows.insert(op.key, value)),
                        FeedChange::PutIfAbsent(value) => drop(rows.entry(op.key).or_insert(value)),
                        FeedChange::Fold(value) => {
                            let folded = sum(rows.get(&op.key), &value);
                            rows.insert(op.key, folded);
                        }
                        FeedChange::Delete => drop(rows.remove(&op.key)),
                        FeedChange::DeleteRange(to) => rows.retain(|key, _| *key < op.key || *key >= to),
                        change => panic!("no value is so long: {change:?}"),
                    }
                }
            }
        }
    }

    /// Takes all that there is by now.
    fn follow(&mut self, feed: &mut Feed) {
        while let Some(event) = feed.poll().unwrap() {
            self.take(event);
        }
    }

    /// What it has is what the store has.
    fn check(&self, store: &Store) {
        let mut there = BTreeMap::new();
        for name in store.tables() {
            let rows = store.bytes_table(&name).unwrap().scan();
            let rows: BTreeMap<Vec<u8>, Vec<u8>> = rows.into_iter().map(|row| row.unwrap()).collect();
            there.insert(name, rows);
        }
        let sizes = |tables: &BTreeMap<String, BTreeMap<_, _>>| {
            tables.iter().map(|(name, rows)| (name.clone(), rows.len())).collect::<Vec<_>>()
        };
        assert_eq!(sizes(&self.tables), sizes(&there), "the replica differs");
        assert!(self.tables == there, "the replica differs");
    }
}

fn sums(store: &Store) -> Table<u64, u64> {
    store.table("sums", Rules::sorted().fold("sum:u64")).unwrap()
}

fn texts(store: &Store) -> Table<u64, Vec<u8>> {
    store.table("texts", Rules::sorted().separate(100)).unwrap()
}

fn blobs(store: &Store) -> Table<u64, Vec<u8>> {
    store.table("blobs", Rules::hashed()).unwrap()
}

fn text(key: u64, round: u64) -> Vec<u8> {
    vec![(key * 7 + round) as u8; (key as usize * 37 + round as usize * 101) % 900]
}

/// A round of writes to three tables.
fn write(store: &Store, round: u64) {
    let (sums, texts, blobs) = (sums(store), texts(store), blobs(store));
    for key in 0..200u64 {
        let mut batch = store.batch();
        batch.fold(&sums, &(key % 50), &round).put(&texts, &key, &text(key, round));
        match (key + round) % 4 {
            0 => drop(batch.delete(&blobs, &key)),
            1 => drop(batch.put_if_absent(&blobs, &key, &text(key, round + 1))),
            _ => drop(batch.put(&blobs, &key, &text(key, round + 2))),
        }
        batch.commit(Durability::Process).unwrap();
    }
    sums.delete_range(&(round % 40), &(round % 40 + 4)).unwrap();
    texts.delete(&round).unwrap();
}

/// Opens the store again, in one of three ways.
fn again(store: Store, path: &Path, round: u64) -> Store {
    match round % 3 {
        0 => store.close().unwrap(),
        1 => drop(store),
        _ => {
            store.flush().unwrap();
            drop(store);
        }
    }
    Store::open(path, options()).unwrap()
}

#[test]
fn rows_and_batches_give_what_the_store_has_over_closes_deaths_merges_and_reclaim() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let mut store = Store::create(&path, options()).unwrap();
    write(&store, 0);
    let mut replica = Replica::default();
    for round in 1..25 {
        let mut feed = store.feed("all", FeedOptions::default()).unwrap();
        replica.follow(&mut feed);
        replica.check(&store);
        feed.acknowledge(feed.position()).unwrap();
        write(&store, round);
        if round % 2 == 0 {
            drain(&store);
        }
        if round % 5 == 0 {
            store.compact("texts", |_| std::ops::ControlFlow::Continue(())).unwrap();
            store.reclaim(|_| {}).unwrap();
        }
        drop(feed);
        store = again(store, &path, round);
    }
    assert_eq!(replica.begun, 1);
    assert!(replica.batches.windows(2).all(|pair| pair[0].1 < pair[1].0), "in order, each once");
}

#[test]
fn what_is_not_acknowledged_comes_again_and_rows_only_all_together() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    write(&store, 0);
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    assert!(matches!(feed.poll().unwrap(), Some(FeedEvent::Begin { .. })));
    assert!(matches!(feed.poll().unwrap(), Some(FeedEvent::TableCreated(_))));
    assert!(matches!(feed.poll().unwrap(), Some(FeedEvent::Row(_))));
    feed.acknowledge(feed.position()).unwrap(); // of no use
    write(&store, 1);
    drop(feed);
    let store = again(store, &path, 1);

    let mut replica = Replica::default();
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    replica.follow(&mut feed);
    assert_eq!((replica.begun, replica.batches.len()), (1, 0), "it begins anew, as of now");
    replica.check(&store);
    feed.acknowledge(feed.position()).unwrap();
    write(&store, 2);
    let mut places = Vec::new();
    while let Some(event) = feed.poll().unwrap() {
        replica.take(event);
        places.push(feed.position());
    }
    assert_eq!(replica.batches.len(), 202);
    feed.acknowledge(places[99]).unwrap();
    feed.acknowledge(places[50]).unwrap(); // behind, and so nothing
    drop(feed);
    let store = again(store, &path, 1);
    let mut rest = Replica { tables: replica.tables, ..Replica::default() };
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    while let Some(event) = feed.poll().unwrap() {
        let FeedEvent::Batch(batch) = event else { panic!("{event:?}") };
        rest.batches.push((batch.first_seq, batch.last_seq));
    }
    assert_eq!(rest.batches, replica.batches[100..]);
}

/// Opens the feed once more, and takes what it gives; whether it began with the rows.
fn reread(store: &Store, replica: &mut Replica) -> bool {
    let begun = replica.begun;
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    replica.follow(&mut feed);
    replica.begun > begun
}

#[test]
fn a_place_of_before_a_feed_began_anew_acknowledges_none_of_its_rows() {
    for writes_more in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let store = Store::create(&path, options()).unwrap();
        write(&store, 0);
        let mut feed = store.feed("f", FeedOptions::default()).unwrap();
        Replica::default().follow(&mut feed);
        feed.acknowledge(feed.position()).unwrap();
        write(&store, 1);
        while feed.poll().unwrap().is_some() {}
        let before = feed.position();
        if writes_more {
            write(&store, 2); // else the rows begin where that place is
        }
        feed.begin_again().unwrap();
        assert!(matches!(feed.poll().unwrap(), Some(FeedEvent::Begin { .. })));
        feed.acknowledge(before).unwrap(); // too late: passed over
        drop(feed);
        let store = again(store, &path, 0);
        let mut replica = Replica::default();
        assert!(reread(&store, &mut replica), "not all of its rows were handed out: it begins anew");
        replica.check(&store);

        // The rows were handed out, and whoever says so late has not dealt with them.
        let mut feed = store.feed("f", FeedOptions::default()).unwrap();
        while feed.poll().unwrap().is_some() {}
        let before = feed.position();
        feed.begin_again().unwrap();
        while feed.poll().unwrap().is_some() {}
        feed.acknowledge(before).unwrap();
        drop(feed);
        assert!(reread(&store, &mut replica), "the rows were not acknowledged");
        replica.check(&store);

        // The reader was opened anew, and its rows have begun again meanwhile.
        let mut feed = store.feed("f", FeedOptions::default()).unwrap();
        feed.acknowledge(before).unwrap();
        while feed.poll().unwrap().is_some() {}
        feed.acknowledge(before).unwrap();
        drop(feed);
        assert!(reread(&store, &mut replica));
        let mut feed = store.feed("f", FeedOptions::default()).unwrap();
        while feed.poll().unwrap().is_some() {}
        feed.acknowledge(feed.position()).unwrap();
        drop(feed);
        assert!(!reread(&store, &mut Replica::default()), "what is of now counts");
    }
}

#[test]
fn tables_come_and_go_in_the_order_of_the_history() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    let mut replica = Replica::default();
    replica.follow(&mut feed);
    write(&store, 1);
    store.drop_table("texts").unwrap();
    store.drop_table("blobs").unwrap();
    drain(&store);
    write(&store, 2);
    store.drop_table("sums").unwrap();
    drop(feed);
    let store = again(store, &path, 0);
    replica = Replica::default();
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    replica.follow(&mut feed); // nothing was acknowledged, so it begins anew
    replica.check(&store);
    feed.acknowledge(feed.position()).unwrap();
    write(&store, 3);
    store.drop_table("texts").unwrap();
    write(&store, 4);
    store.drop_table("texts").unwrap();
    drop(feed);
    let store = again(store, &path, 1);
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    replica.follow(&mut feed);
    replica.check(&store);
    assert!(!replica.tables.contains_key("texts"));
}

#[test]
fn a_feed_of_one_table_and_prefix_tells_of_nothing_else_and_holds_nothing_while_others_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let (words, other) = (
        store.table("words", Rules::sorted::<String, u64>()).unwrap(),
        store.table("other", Rules::sorted::<u64, Vec<u8>>()).unwrap(),
    );
    for word in ["ape", "bee", "bear", "cat"] {
        words.put(word, &1).unwrap();
    }
    let prefix = b"b".to_vec();
    let options = FeedOptions { table: Some("words".to_owned()), prefix, ..FeedOptions::default() };
    let mut feed = store.feed("bs", options.clone()).unwrap();
    let mut replica = Replica::default();
    replica.follow(&mut feed);
    assert_eq!(replica.tables["words"].len(), 2);
    feed.acknowledge(feed.position()).unwrap();
    for key in 0..3000u64 {
        other.put(&key, &vec![1; 1000]).unwrap();
    }
    let mut batch = store.batch();
    batch.put(&words, "dog", &2).put(&words, "bat", &3).put(&other, &1, &vec![2]);
    batch.commit(Durability::Process).unwrap();
    drain(&store);
    store.flush().unwrap();
    assert!(store.feeds()[0].held_bytes > 2_000_000, "{:?}", store.feeds());
    replica.follow(&mut feed);
    assert_eq!((replica.tables.len(), replica.tables["words"].len(), replica.batches.len()), (1, 3, 1));
    feed.acknowledge(feed.position()).unwrap();
    assert!(store.feeds()[0].held_bytes < 300_000, "{:?}", store.feeds());

    // Nothing is told of this, so nothing need be acknowledged.
    for key in 0..3000u64 {
        other.put(&key, &vec![2; 1000]).unwrap();
    }
    store.flush().unwrap();
    assert_eq!(feed.poll().unwrap(), None);
    assert!(store.feeds()[0].held_bytes < 300_000, "{:?}", store.feeds());
    let differs = store.feed("bs2", FeedOptions { table: None, ..options.clone() }).map(drop);
    differs.unwrap();
    drop(feed);
    let refused = store.feed("bs", FeedOptions { table: None, ..options }).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
    assert!(refused.to_string().contains("table `words`, of keys that begin with `b`"), "{refused}");
}

/// A range delete has no key that it could be known by.
#[test]
fn a_range_delete_that_begins_before_the_prefix_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let words = store.table("words", Rules::sorted::<String, u64>()).unwrap();
    for word in ["ape", "bear", "bee", "cat"] {
        words.put(word, &1).unwrap();
    }
    let mut feed = store.feed("bs", FeedOptions { prefix: b"b".to_vec(), ..FeedOptions::default() }).unwrap();
    let mut replica = Replica::default();
    replica.follow(&mut feed);
    words.delete_range("any", "bed").unwrap();
    replica.follow(&mut feed);
    assert_eq!(replica.tables["words"].keys().collect::<Vec<_>>(), [b"bee"]);
}

/// Longer keys first.
struct ByLength;

impl CustomOrder for ByLength {
    fn name(&self) -> &str {
        "by_length"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.len().cmp(&a.len())
    }
}

#[test]
fn rows_of_a_prefix_are_found_in_any_order_of_keys() {
    let dir = tempfile::tempdir().unwrap();
    let options = options().custom_order(Arc::new(ByLength));
    let store = Store::create(dir.path().join("store"), options).unwrap();
    let rules = Rules::sorted::<String, u64>();
    let tables = [
        store.table("bytes", rules.clone()).unwrap(),
        store.table("reversed", rules.clone().reversed()).unwrap(),
        store.table("lengths", rules.order("by_length")).unwrap(),
        store.table("hashed", Rules::hashed()).unwrap(),
    ];
    for table in &tables {
        ["ape", "b", "bear", "bee", "cat", "c"].iter().for_each(|word| assert!(table.put(*word, &1).is_ok()));
    }
    let mut feed = store.feed("bs", FeedOptions { prefix: b"b".to_vec(), ..FeedOptions::default() }).unwrap();
    let mut replica = Replica::default();
    replica.follow(&mut feed);
    for table in &tables {
        assert_eq!(replica.tables[table.name()].keys().collect::<Vec<_>>(), [&b"b"[..], b"bear", b"bee"]);
    }
}

/// A fold that always fails.
struct Fails;

impl Fold for Fails {
    fn spec(&self) -> String {
        "fails".to_owned()
    }
    fn fold(&self, _: &[u8], _: &[u8], _: &[u8], _: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        Err(FoldFailure::new("it always does"))
    }
}

#[test]
fn a_row_whose_fold_fails_is_told_without_a_value_and_others_follow() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options().custom_fold(Arc::new(Fails))).unwrap();
    let table = store.table("t", Rules::sorted::<u64, u64>().custom_fold(&Fails)).unwrap();
    (0..3).for_each(|key| assert!(table.put(&key, &key).is_ok()));
    table.fold(&1, &1).unwrap();
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    let mut rows = Vec::new();
    while let Some(event) = feed.poll().unwrap() {
        if let FeedEvent::Row(row) = event {
            rows.push((row.key[7], row.value.is_some()));
        }
    }
    assert_eq!(rows, [(0, true), (1, false), (2, true)]);
}

/// A batch whose values cannot be read now comes again with the next call, and none is left out.
#[test]
fn a_batch_that_could_not_be_read_is_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let rules = Rules::sorted::<u64, Vec<u8>>().separate(100).value_placement(ValuePlacement::Files);
    let table = store.table("texts", rules).unwrap();
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    let mut replica = Replica::default();
    replica.follow(&mut feed);
    for key in 0..3 {
        table.put(&key, &vec![key as u8; 5000]).unwrap();
    }
    let event = feed.poll().unwrap();
    replica.take(event.unwrap());
    let directories: Vec<_> = std::fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|entry| entry.is_dir())
        .map(|there| (there.with_extension("hidden"), there))
        .collect();
    assert!(!directories.is_empty());
    directories.iter().for_each(|(here, there)| std::fs::rename(there, here).unwrap());
    assert!(feed.poll().is_err() && feed.poll().is_err());
    directories.iter().for_each(|(here, there)| std::fs::rename(here, there).unwrap());
    replica.follow(&mut feed);
    replica.check(&store);
    assert_eq!(replica.batches.len(), 3);
}

/// Nothing is told of what is written to another table, so a feed moves on past it by itself; but not past what was handed out.
#[test]
fn what_was_handed_out_and_not_acknowledged_stays_though_the_feed_moves_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let (sums, texts) = (sums(&store), texts(&store));
    let of_sums = || FeedOptions { table: Some("sums".to_owned()), from_now: true, ..FeedOptions::default() };
    let mut feed = store.feed("f", of_sums()).unwrap();
    let first = sums.fold(&1, &1).unwrap();
    let batch = |event: Option<FeedEvent>| match event {
        Some(FeedEvent::Batch(batch)) => batch.first_seq,
        other => panic!("{other:?}"),
    };
    for round in 0..3 {
        for key in 0..30_000 {
            texts.put(&key, &vec![round; 99]).unwrap();
        }
        store.flush().unwrap();
        if round == 0 {
            assert_eq!(batch(feed.poll().unwrap()), first);
        }
        assert_eq!(feed.poll().unwrap(), None);
    }
    drop(feed);
    let mut feed = store.feed("f", of_sums()).unwrap();
    assert_eq!(batch(feed.poll().unwrap()), first, "it comes again");
    feed.acknowledge(feed.position()).unwrap();
    assert_eq!(feed.poll().unwrap(), None);
    drop(feed);
    assert_eq!(store.feed("f", of_sums()).unwrap().poll().unwrap(), None);
}

#[test]
fn a_feed_without_a_bound_is_never_lost_for_space_and_writes_wait_for_its_consumer() {
    let dir = tempfile::tempdir().unwrap();
    let options = options().disk_bytes_max(Some(24 << 20));
    let store = Store::create(dir.path().join("store"), options).unwrap();
    let table = store.table("texts", Rules::sorted::<u64, Vec<u8>>()).unwrap();
    let unbounded = FeedOptions { bytes_max: Some(u64::MAX), from_now: true, ..FeedOptions::default() };
    let mut feed = store.feed("patient", unbounded).unwrap();
    let write = || {
        let mut written = 0;
        for key in 0..60_000_u64 {
            match table.put(&(key % 100), &vec![key as u8; 1000]) {
                Ok(_) => written += 1,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
                    return written;
                }
            }
            if key % 500 == 0 {
                store.flush().unwrap();
                drain(&store);
            }
        }
        panic!("it never waits")
    };
    let first = write();
    drain(&store);
    assert!(write() < 10 && store.stats().feeds_lost == 0, "{:?}", store.feeds());
    let mut batches = 0;
    while let Some(event) = feed.poll().unwrap() {
        batches += usize::from(matches!(event, FeedEvent::Batch(_)));
    }
    assert!(batches >= first, "{batches} of {first}");
    feed.acknowledge(feed.position()).unwrap();
    drain(&store);
    assert!(write() > first / 2, "there is room again");
    assert_eq!(store.stats().feeds_lost, 0);
}

#[test]
fn a_feed_that_holds_more_than_it_may_is_lost_and_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let mut feed =
        store.feed("slow", FeedOptions { bytes_max: Some(1 << 20), ..FeedOptions::default() }).unwrap();
    let mut replica = Replica::default();
    replica.follow(&mut feed);
    feed.acknowledge(feed.position()).unwrap();
    let mut rounds = 0;
    while store.stats().feeds_lost == 0 {
        write(&store, rounds);
        store.flush().unwrap();
        drain(&store);
        rounds += 1;
        assert!(rounds < 100, "{:?}", store.feeds());
    }
    assert_eq!(store.stats().segments, 1, "what it held is gone");
    let lost = feed.poll().unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::FeedLost);
    assert!(lost.to_string().contains("slow") && lost.to_string().contains("1.0 MiB"), "{lost}");
    assert!(lost.to_string().contains("--again"), "{lost}");
    assert_eq!(
        feed.acknowledge(feed.position()).map_err(|error| error.kind()),
        Ok(()),
        "there is nothing new in it"
    );
    assert!(store.feeds()[0].lost.is_some());
    drop(feed);
    let store = again(store, &path, 1);
    let mut feed = store.feed("slow", FeedOptions::default()).unwrap();
    assert_eq!(feed.poll().unwrap_err().kind(), ErrorKind::FeedLost, "for good");
    feed.begin_again().unwrap();
    replica = Replica::default();
    replica.follow(&mut feed);
    replica.check(&store);
    feed.acknowledge(feed.position()).unwrap();
    write(&store, 3);
    replica.follow(&mut feed);
    replica.check(&store);
}

#[test]
fn a_table_that_goes_while_rows_are_read_is_told_of_before_what_was_written_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let names = ["a", "b", "c"];
    let tables = names.map(|name| store.table(name, Rules::sorted::<u64, u64>()).unwrap());
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    assert!(matches!(feed.poll().unwrap(), Some(FeedEvent::Begin { .. })));
    tables[2].put(&1, &1).unwrap();
    store.drop_table("c").unwrap();
    let (mut created, mut told, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(event) = feed.poll().unwrap() {
        match event {
            FeedEvent::TableCreated(table) => created.push(table.name.clone()),
            FeedEvent::TableDropped(table) => dropped.push(table.name.clone()),
            FeedEvent::Batch(batch) => {
                assert!(batch.ops.iter().all(|op| created.contains(&op.table.name)), "{created:?}");
                told.push(batch.last_seq);
            }
            _ => {}
        }
    }
    assert_eq!((created, told.len(), dropped), (names.map(str::to_owned).to_vec(), 1, vec!["c".to_owned()]));
}

/// Deadlines of rows are asked for one by one, also of a table that is gone by then.
#[test]
fn a_table_whose_values_expire_may_go_while_its_rows_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("s"), options()).unwrap();
    let table = store.table("t", Rules::sorted::<u64, u64>().expire(Expire::ByWrite)).unwrap();
    for key in 0..100 {
        table.put(&key, &key).unwrap();
    }
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    while !matches!(feed.poll().unwrap(), Some(FeedEvent::Row(_))) {}
    drop(table);
    store.drop_table("t").unwrap();
    let mut is_told = false;
    while let Some(event) = feed.poll().unwrap() {
        is_told |= matches!(event, FeedEvent::TableDropped(_));
    }
    assert!(is_told);
}

#[test]
fn a_feed_that_has_all_is_not_lost_for_the_piece_of_the_log_that_it_stands_in() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    write(&store, 1);
    let small = FeedOptions { bytes_max: Some(1), ..FeedOptions::default() };
    let mut feed = store.feed("f", small).unwrap();
    while feed.poll().unwrap().is_some() {}
    feed.acknowledge(feed.position()).unwrap();
    drop(feed);
    let store = again(store, &path, 1);
    drain(&store);
    let told = store.feeds().remove(0);
    assert!(told.held_bytes > 1, "{told:?}");
    assert_eq!((told.lag, told.lost), (0, None));
    write(&store, 2);
    store.flush().unwrap();
    drain(&store);
    assert!(store.feeds()[0].lost.is_some(), "one that owes something is, past its budget");
}

#[test]
fn a_feed_keeps_its_budget_until_another_one_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let budget = |store: &Store| store.feeds()[0].bytes_max;
    let of = |bytes_max| FeedOptions { bytes_max, ..FeedOptions::default() };
    drop(store.feed("f", of(None)).unwrap());
    assert_eq!(budget(&store), 1 << 30);
    drop(store.feed("f", of(Some(1 << 20))).unwrap());
    assert_eq!(budget(&store), 1 << 20, "it counts before anything is read");
    let mut feed = store.feed("f", of(None)).unwrap();
    while feed.poll().unwrap().is_some() {}
    feed.acknowledge(feed.position()).unwrap();
    assert_eq!(budget(&store), 1 << 20);
    feed.begin_again().unwrap();
    while feed.poll().unwrap().is_some() {}
    feed.acknowledge(feed.position()).unwrap();
    drop(feed);
    drop(store.feed("f", of(Some(3 << 20))).unwrap());
    let store = again(store, &path, 1);
    drop(store.feed("f", of(None)).unwrap());
    assert_eq!(budget(&store), 3 << 20, "it outlives the process, though nothing was acknowledged since");

    // One that is lost has it, too, when it begins anew.
    drop(store.feed("f", of(Some(1 << 20))).unwrap());
    for round in 0.. {
        if store.feeds()[0].lost.is_some() {
            break;
        }
        write(&store, round);
        store.flush().unwrap();
        drain(&store);
    }
    let mut feed = store.feed("f", of(Some(2 << 20))).unwrap();
    assert_eq!((budget(&store), store.feeds()[0].lost.is_some()), (2 << 20, true));
    feed.begin_again().unwrap();
    assert_eq!((budget(&store), store.feeds()[0].lost.is_some()), (2 << 20, false));
}

#[test]
fn who_waits_for_news_sleeps_and_is_woken() {
    let dir = tempfile::tempdir().unwrap();
    let store =
        Store::create(dir.path().join("store"), options().background(BackgroundWork::Threads)).unwrap();
    let table = sums(&store);
    let mut feed = store
        .feed("f", FeedOptions { from_now: true, table: Some("sums".to_owned()), ..FeedOptions::default() })
        .unwrap();
    assert_eq!(feed.next(Duration::from_millis(30)).unwrap(), None);
    let since = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            table.fold(&1, &2).unwrap();
        });
        let event = feed.next(Duration::from_secs(60)).unwrap();
        assert!(matches!(event, Some(FeedEvent::Batch(_))), "{event:?}");
    });
    assert!(since.elapsed() < Duration::from_secs(30), "long before the time is over");
}

#[test]
fn a_feed_has_one_reader_and_can_be_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let feed = store.feed("f", FeedOptions::default()).unwrap();
    assert_eq!(store.feed("f", FeedOptions::default()).err().unwrap().kind(), ErrorKind::Locked);
    assert_eq!(store.drop_feed("f").unwrap_err().kind(), ErrorKind::Locked);
    drop(feed);
    store.drop_feed("f").unwrap();
    assert_eq!(store.drop_feed("f").unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(store.feeds().is_empty());
    assert_eq!(store.feed("", FeedOptions::default()).err().unwrap().kind(), ErrorKind::InvalidInput);
}

#[test]
fn deadlines_come_with_rows_and_ops() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let rules = Rules::sorted::<u64, Vec<u8>>().expire(folddb::Expire::ByWrite).separate(50);
    let table = store.table("t", rules).unwrap();
    let far = store.unix_millis() + 3_600_000;
    let put = |key: u64, bytes: usize| {
        let table = table.as_bytes();
        table
            .write_expiring(WriteOp::Put, &key.to_be_bytes(), &vec![7; bytes], Lifetime::Until(far))
            .unwrap();
    };
    put(1, 10);
    put(2, 100);
    let hashed = store.table("h", Rules::hashed::<u64, Vec<u8>>().expire(folddb::Expire::ByWrite)).unwrap();
    let put_hashed = |key: u64, bytes: usize| {
        let table = hashed.as_bytes();
        table
            .write_expiring(WriteOp::Put, &key.to_be_bytes(), &vec![8; bytes], Lifetime::Until(far))
            .unwrap();
    };
    put_hashed(1, 30);
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    put(3, 10);
    put(4, 100);
    put_hashed(2, 40);
    let mut found = Vec::new();
    while let Some(event) = feed.poll().unwrap() {
        match event {
            FeedEvent::Row(row) => found.push((row.value.unwrap().len(), row.deadline_ms)),
            FeedEvent::Batch(batch) => {
                assert!(batch.written_ms.is_some());
                for op in batch.ops {
                    let FeedChange::Put(value) = op.change else { panic!("{op:?}") };
                    found.push((value.len(), op.deadline_ms));
                }
            }
            _ => {}
        }
    }
    assert_eq!(found, [30, 10, 100, 10, 100, 40].map(|bytes| (bytes, Some(far))));
}

/// Streams a value of so many bytes.
fn stream(table: &Table<u64, Vec<u8>>, op: WriteOp, key: u64, bytes: usize) {
    let mut writer = table.as_bytes().writer(op, &key.to_be_bytes()).unwrap();
    for piece in vec![key as u8; bytes].chunks(1 << 20) {
        std::io::Write::write_all(&mut writer, piece).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn of_long_values_rows_and_batches_tell_the_length_and_read_nothing() {
    const LONG: usize = (16 << 20) + 1;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let rules = Rules::sorted::<u64, Vec<u8>>().fold("append:\"\"").separate(100);
    let tables = [store.table("joins", rules).unwrap(), texts(&store), blobs(&store)];
    for table in &tables {
        stream(table, WriteOp::Put, 1, LONG);
        stream(table, WriteOp::Put, 2, LONG - 1);
        table.put(&3, &vec![3; 10]).unwrap();
    }
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    let mut rows = Vec::new();
    loop {
        let reads = store.stats().value_reads;
        match feed.poll().unwrap().unwrap() {
            FeedEvent::Row(row) => {
                let key = row.key[7];
                assert_eq!(row.long.is_none(), row.value.is_some());
                if let Some(head) = &row.long {
                    let table = store.bytes_table(&row.table.name).unwrap();
                    assert_eq!(Some(head), table.head(&row.key).unwrap().as_ref());
                    assert!(row.table.name == "blobs" || store.stats().value_reads == reads);
                }
                let len = row.value.map(|value| value.len());
                rows.push((row.table.name.clone(), key, len, row.long.map(|head| head.size_bytes as usize)));
            }
            FeedEvent::RowsEnd => break,
            _ => {}
        }
    }
    rows.sort();
    let of = |name: &str| {
        let row = |key, value, long| (name.to_owned(), key, value, long);
        [row(1, None, Some(LONG)), row(2, Some(LONG - 1), None), row(3, Some(10), None)]
    };
    assert_eq!(rows, ["blobs", "joins", "texts"].map(of).concat());

    for table in &tables[..2] {
        stream(table, WriteOp::Put, 4, LONG);
        stream(table, WriteOp::Put, 5, LONG - 1);
        stream(table, WriteOp::PutIfAbsent, 6, LONG);
    }
    stream(&tables[2], WriteOp::Put, 4, LONG);
    stream(&tables[0], WriteOp::Fold, 4, LONG);
    let mut told = Vec::new();
    while let Some(event) = feed.poll().unwrap() {
        let FeedEvent::Batch(batch) = event else { panic!("{event:?}") };
        told.extend(batch.ops.into_iter().map(|op| match op.change {
            FeedChange::Put(value) => FeedChange::PutLong(value.len() as u64),
            change => change,
        }));
    }
    let len = LONG as u64;
    let set = [FeedChange::PutLong(len), FeedChange::PutLong(len - 1), FeedChange::PutIfAbsentLong(len)];
    let rest = [FeedChange::PutLong(len), FeedChange::FoldLong(len)];
    assert_eq!(told, [&set[..], &set, &rest].concat());
}

#[test]
fn a_backup_has_no_feeds() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    write(&store, 0);
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    Replica::default().follow(&mut feed);
    let (place, restored) = (dir.path().join("backups"), dir.path().join("restored"));
    store.backup(&place, &folddb::BackupOptions::default()).unwrap();
    Store::restore(&place, &restored, &folddb::RestoreOptions::default(), &options()).unwrap();
    assert!(Store::open(&restored, options()).unwrap().feeds().is_empty());
}

#[test]
fn what_passes_the_log_by_is_refused_where_a_feed_would_have_to_tell_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let only = FeedOptions { table: Some("words".to_owned()), ..FeedOptions::default() };
    drop(store.feed("f", only).unwrap());
    let load = |name: &str| {
        let mut load = store.bulk_load(name, Rules::sorted::<u64, u64>())?;
        load.put(&1, &2)?;
        load.finish().map(drop)
    };
    assert_eq!(load("words").unwrap_err().kind(), ErrorKind::InvalidInput);
    load("other").unwrap();
    store.drop_feed("f").unwrap();
    load("words").unwrap();

    let mut begun = store.bulk_load("later", Rules::sorted::<u64, u64>()).unwrap();
    begun.put(&1, &2).unwrap();
    drop(store.feed("all", FeedOptions::default()).unwrap());
    assert_eq!(begun.finish().err().unwrap().kind(), ErrorKind::InvalidInput, "the feed came meanwhile");
    assert_eq!(store.tables(), ["other", "words"]);
}

/// Bytes on the disk of the segments of a store.
fn log_bytes(path: &Path) -> u64 {
    let files = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    let logs = files.filter(|file| file.path().extension().is_some_and(|end| end == "log"));
    logs.map(|file| file.metadata().unwrap().len()).sum()
}

#[test]
fn what_a_feed_holds_of_a_short_session_is_short() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    store.feed("f", FeedOptions { from_now: true, ..FeedOptions::default() }).unwrap();
    sums(&store);
    store.close().unwrap();
    for round in 0..20_u64 {
        let store = Store::open(&path, options()).unwrap();
        sums(&store).fold(&round, &1).unwrap();
        match round % 2 {
            0 => {
                store.flush().unwrap();
                store.close().unwrap();
            }
            _ => {
                store.sync().unwrap();
                drop(store); // as a process that dies
            }
        }
    }
    let store = Store::open(&path, options()).unwrap();
    assert!(log_bytes(&path) < 3 << 19, "{}", log_bytes(&path)); // a segment has 1 MiB at least
    assert!(store.feeds()[0].held_bytes < 256 << 10, "{:?}", store.feeds());
    let mut feed = store.feed("f", FeedOptions { from_now: true, ..FeedOptions::default() }).unwrap();
    let (mut batches, mut events) = (0, 0);
    while let Some(event) = feed.poll().unwrap() {
        batches += usize::from(matches!(event, FeedEvent::Batch(_)));
        events += 1;
        assert!(events < 1000);
    }
    assert_eq!(batches, 20);
}

#[test]
fn writes_of_long_values_are_told_with_their_deadlines() {
    const UNTIL_MS: u64 = 4_000_000_000_000;
    let dir = tempfile::tempdir().unwrap();
    let options = options().stream_piece_bytes(16 << 10);
    let store = Store::create(dir.path().join("store"), options).unwrap();
    let lasting = Rules::sorted::<u64, Vec<u8>>().separate(100).expire(Expire::ByWrite);
    let tables = [
        store.table("lasting", lasting).unwrap(),
        store.table("hashed", Rules::hashed().expire(Expire::ByWrite)).unwrap(),
        store.table("versions", Rules::hashed().keep(Keep::Versions(2))).unwrap(),
    ];
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    while feed.poll().unwrap().unwrap() != FeedEvent::RowsEnd {}
    // Too long to be held; in pieces that are held together; at once.
    let lens = [(16 << 20) + 1, 200_000, 1_000];
    for table in &tables {
        let lasts = table.name() != "versions";
        for (key, len) in (0_u64..).zip(lens) {
            let writer = match lasts {
                true => table.writer_expiring(&key, Lifetime::Until(UNTIL_MS)),
                false => table.writer(&key),
            };
            let mut writer = writer.unwrap();
            writer.write_from(&mut &vec![key as u8; len][..]).unwrap();
            writer.finish().unwrap();
        }
    }
    let mut told = Vec::new();
    while let Some(event) = feed.poll().unwrap() {
        let FeedEvent::Batch(batch) = event else { panic!("{event:?}") };
        told.extend(batch.ops.into_iter().map(|op| (op.table.name.clone(), op.change, op.deadline_ms)));
    }
    let of = |name: &str| {
        let deadline_ms = (name != "versions").then_some(UNTIL_MS);
        let held = |key: u8, len| FeedChange::Put(vec![key; len]);
        [FeedChange::PutLong(lens[0] as u64), held(1, lens[1]), held(2, lens[2])]
            .map(|change| (name.to_owned(), change, deadline_ms))
    };
    assert!(told == ["lasting", "hashed", "versions"].map(of).concat(), "what was written is not told so");
}
