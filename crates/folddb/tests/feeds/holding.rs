//! What is kept for a feed, for how long, and the readers of a feed.

use std::path::Path;
use std::time::{Duration, Instant};

use folddb::{BackgroundWork, ErrorKind, FeedEvent, FeedOptions, Rules, Store};

use crate::common::drain;
use crate::replica::{Replica, again, options, sums, write};

#[test]
fn a_feed_without_a_bound_is_never_lost_for_space_and_writes_wait_for_its_consumer() {
    let dir = tempfile::tempdir().unwrap();
    let options = options().disk_bytes_max(Some(24 << 20));
    let store = Store::create(dir.path().join("store"), options).unwrap();
    let table = store.table("texts", Rules::sorted::<u64, Vec<u8>>()).unwrap();
    let unbounded = FeedOptions::default().bytes_max(Some(u64::MAX)).from_now(true);
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
    assert!(write() < 10 && store.stats().background.feeds_lost == 0, "{:?}", store.feeds());
    let mut batches = 0;
    while let Some(event) = feed.poll().unwrap() {
        batches += usize::from(matches!(event, FeedEvent::Batch(_)));
    }
    assert!(batches >= first, "{batches} of {first}");
    feed.acknowledge(feed.position()).unwrap();
    drain(&store);
    assert!(write() > first / 2, "there is room again");
    assert_eq!(store.stats().background.feeds_lost, 0);
}

#[test]
fn a_feed_that_holds_more_than_it_may_is_lost_and_begins_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let mut feed = store.feed("slow", FeedOptions::default().bytes_max(Some(1 << 20))).unwrap();
    let mut replica = Replica::default();
    replica.follow(&mut feed);
    feed.acknowledge(feed.position()).unwrap();
    let mut rounds = 0;
    while store.stats().background.feeds_lost == 0 {
        write(&store, rounds);
        store.flush().unwrap();
        drain(&store);
        rounds += 1;
        assert!(rounds < 100, "{:?}", store.feeds());
    }
    assert_eq!(store.stats().disk.log_segments, 1, "what it held is gone");
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
fn a_feed_that_is_up_to_date_is_not_lost_for_the_segment_it_is_in() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    write(&store, 1);
    let small = FeedOptions::default().bytes_max(Some(1));
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
    let of = |bytes_max| FeedOptions::default().bytes_max(bytes_max);
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

    // A lost feed has it, too, when it begins again.
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
fn a_reader_that_waits_for_changes_sleeps_and_is_woken() {
    let dir = tempfile::tempdir().unwrap();
    let store =
        Store::create(dir.path().join("store"), options().background(BackgroundWork::Threads)).unwrap();
    let table = sums(&store);
    let mut feed = store.feed("f", FeedOptions::default().from_now(true).table(Some("sums"))).unwrap();
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
fn a_backup_has_no_feeds() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    write(&store, 0);
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    Replica::default().follow(&mut feed);
    let (place, restored) = (dir.path().join("backups"), dir.path().join("restored"));
    store.backup(&place, &folddb::maintenance::BackupOptions::default()).unwrap();
    Store::restore(&place, &restored, &folddb::maintenance::RestoreOptions::default(), &options()).unwrap();
    assert!(Store::open(&restored, options()).unwrap().feeds().is_empty());
}

#[test]
fn what_passes_the_log_by_is_refused_where_a_feed_would_have_to_tell_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let only = FeedOptions::default().table(Some("words"));
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
    store.feed("f", FeedOptions::default().from_now(true)).unwrap();
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
                drop(store); // as if the process died
            }
        }
    }
    let store = Store::open(&path, options()).unwrap();
    assert!(log_bytes(&path) < 3 << 19, "{}", log_bytes(&path)); // a segment has at least 1 MiB
    assert!(store.feeds()[0].held_bytes < 256 << 10, "{:?}", store.feeds());
    let mut feed = store.feed("f", FeedOptions::default().from_now(true)).unwrap();
    let (mut batches, mut events) = (0, 0);
    while let Some(event) = feed.poll().unwrap() {
        batches += usize::from(matches!(event, FeedEvent::Batch(_)));
        events += 1;
        assert!(events < 1000);
    }
    assert_eq!(batches, 20);
}
