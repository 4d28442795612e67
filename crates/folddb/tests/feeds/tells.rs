//! What a feed reports: tables, prefixes, range deletes, folds that fail.

use std::cmp::Ordering;
use std::sync::Arc;

use folddb::{Durability, ErrorKind, Expire, FeedEvent, FeedOptions, Rules, Store};
use folddb_rules::order::CustomOrder;

use crate::common::{Fails, drain};
use crate::replica::{Replica, again, options, write};

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
    replica.follow(&mut feed); // nothing was acknowledged, so it begins again
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
fn a_feed_of_one_table_and_prefix_gives_nothing_else_and_holds_nothing_for_other_writes() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let (words, other) = (
        store.table("words", Rules::sorted::<String, u64>()).unwrap(),
        store.table("other", Rules::sorted::<u64, Vec<u8>>()).unwrap(),
    );
    for word in ["ape", "bee", "bear", "cat"] {
        words.put(word, &1).unwrap();
    }
    let options = FeedOptions::default().table(Some("words")).prefix(b"b");
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

    // This is not reported, so nothing need be acknowledged.
    for key in 0..3000u64 {
        other.put(&key, &vec![2; 1000]).unwrap();
    }
    store.flush().unwrap();
    assert_eq!(feed.poll().unwrap(), None);
    assert!(store.feeds()[0].held_bytes < 300_000, "{:?}", store.feeds());
    let differs = store.feed("bs2", options.clone().table(None)).map(drop);
    differs.unwrap();
    drop(feed);
    let refused = store.feed("bs", options.table(None)).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
    assert!(refused.to_string().contains("table `words`, of keys that begin with `b`"), "{refused}");
}

/// A range delete has no single key that could identify it.
#[test]
fn a_range_delete_that_begins_before_the_prefix_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let words = store.table("words", Rules::sorted::<String, u64>()).unwrap();
    for word in ["ape", "bear", "bee", "cat"] {
        words.put(word, &1).unwrap();
    }
    let mut feed = store.feed("bs", FeedOptions::default().prefix(b"b")).unwrap();
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
    let mut feed = store.feed("bs", FeedOptions::default().prefix(b"b")).unwrap();
    let mut replica = Replica::default();
    replica.follow(&mut feed);
    for table in &tables {
        assert_eq!(replica.tables[table.name()].keys().collect::<Vec<_>>(), [&b"b"[..], b"bear", b"bee"]);
    }
}

#[test]
fn a_row_whose_fold_fails_is_given_without_a_value_and_others_follow() {
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

#[test]
fn a_table_dropped_while_rows_are_read_is_given_before_its_writes() {
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

/// Deadlines of rows are asked for one by one, also of a table that was dropped by then.
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
