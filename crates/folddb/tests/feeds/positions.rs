//! Positions: what is acknowledged does not come again, and what is not does.

use folddb::{FeedEvent, FeedOptions, Rules, Store, ValuePlacement};

use crate::common::drain;
use crate::replica::{Replica, again, options, sums, texts, write};

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
            store.bytes_table("texts").unwrap().compact().unwrap();
            store.reclaim().unwrap();
        }
        drop(feed);
        store = again(store, &path, round);
    }
    assert_eq!(replica.begun, 1);
    assert!(replica.batches.windows(2).all(|pair| pair[0].1 < pair[1].0), "in order, each once");
}

#[test]
fn unacknowledged_events_are_given_again_and_rows_only_all_together() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    write(&store, 0);
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    assert!(matches!(feed.poll().unwrap(), Some(FeedEvent::Begin { .. })));
    assert!(matches!(feed.poll().unwrap(), Some(FeedEvent::TableCreated(_))));
    assert!(matches!(feed.poll().unwrap(), Some(FeedEvent::Row(_))));
    feed.acknowledge(feed.position()).unwrap(); // without effect
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

/// Opens the feed once more, and takes its events; returns whether it began with the rows.
fn reread(store: &Store, replica: &mut Replica) -> bool {
    let begun = replica.begun;
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    replica.follow(&mut feed);
    replica.begun > begun
}

#[test]
fn a_place_from_before_a_feed_began_again_acknowledges_none_of_its_rows() {
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
            write(&store, 2); // otherwise the rows begin at that place
        }
        feed.begin_again().unwrap();
        assert!(matches!(feed.poll().unwrap(), Some(FeedEvent::Begin { .. })));
        feed.acknowledge(before).unwrap(); // too late: ignored
        drop(feed);
        let store = again(store, &path, 0);
        let mut replica = Replica::default();
        assert!(reread(&store, &mut replica), "not all of its rows were handed out: it begins anew");
        replica.check(&store);

        // The rows were handed out, but a late acknowledgment does not mean that they were dealt
        // with.
        let mut feed = store.feed("f", FeedOptions::default()).unwrap();
        while feed.poll().unwrap().is_some() {}
        let before = feed.position();
        feed.begin_again().unwrap();
        while feed.poll().unwrap().is_some() {}
        feed.acknowledge(before).unwrap();
        drop(feed);
        assert!(reread(&store, &mut replica), "the rows were not acknowledged");
        replica.check(&store);

        // The reader was reopened, and its rows have begun again meanwhile.
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

/// Writes to another table are not reported, so a feed moves past them on its own; but not past
/// events that were handed out.
#[test]
fn what_was_handed_out_and_not_acknowledged_stays_though_the_feed_moves_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let (sums, texts) = (sums(&store), texts(&store));
    let of_sums = || FeedOptions::default().table(Some("sums")).from_now(true);
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
