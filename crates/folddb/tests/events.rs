//! What a store reports to its program: every flush, merge and reclaim, writers that waited, and
//! poison.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex, OnceLock};

use folddb::{BackgroundWork, Durability, Event, Options, Rules, Store, Table};

/// A listener that keeps its events.
fn kept() -> (Arc<Mutex<Vec<Event>>>, impl Fn(&Event) + Send + Sync + 'static) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&events);
    (events, move |event: &Event| into.lock().unwrap().push(event.clone()))
}

fn count(events: &[Event], is_one: impl Fn(&Event) -> bool) -> u64 {
    events.iter().filter(|event| is_one(event)).count() as u64
}

/// Overwrites 180 long values again and again and adds 20 that stay, so that there is something to
/// flush, to merge and to relocate.
fn overwrite(store: &Store, table: &Table<u64, Vec<u8>>) {
    for round in 0..20_u8 {
        let mut batch = store.batch();
        let stays = 1000 * (1 + u64::from(round));
        let keys = (0..180).chain(stays..stays + 20);
        keys.for_each(|key| _ = batch.put(table, &key, &vec![round; 3000]));
        batch.commit(Durability::Process).unwrap();
        store.flush().unwrap();
    }
    store.settle().unwrap();
    store.reclaim().unwrap();
}

/// As many events of each kind as the statistics count, on whichever threads the work is done.
#[test]
fn every_flush_merge_and_reclaim_is_reported() {
    for background in [BackgroundWork::Manual, BackgroundWork::Threads] {
        let dir = tempfile::tempdir().unwrap();
        let (events, listener) = kept();
        let options = Options::default()
            .background(background)
            .tuning(|tuning| tuning.segment_bytes(1 << 20))
            .on_event(listener);
        let store = Store::create(dir.path().join("s.folddb"), options).unwrap();
        let table = store.table("t", Rules::sorted::<u64, Vec<u8>>().separate(1000)).unwrap();
        overwrite(&store, &table);
        let stats = store.stats();
        store.close().unwrap();

        let events = events.lock().unwrap();
        let flushes = count(&events, |event| matches!(event, Event::Flush(flush) if flush.table == "t"));
        let merges = count(&events, |event| matches!(event, Event::Merge(merge) if merge.runs > 0));
        let reclaims = count(&events, |event| matches!(event, Event::Reclaim(_)));
        assert_eq!(count(&events, |event| matches!(event, Event::Missed(_))), 0);
        assert_eq!(
            (flushes, merges, reclaims),
            (stats.background.flushes, stats.background.merges, stats.background.reclaims),
            "{background:?}"
        );
        assert!(flushes >= 20 && merges > 0 && reclaims > 0, "{background:?}: {flushes} {merges} {reclaims}");
        let records = |event: &Event| match event {
            Event::Flush(flush) => flush.records,
            _ => 0,
        };
        assert_eq!(events.iter().map(records).sum::<u64>(), 20 * 200, "{background:?}");
    }
}

/// A listener may read and write: it is called with no lock of the store held.
#[test]
fn a_listener_may_use_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let log: Arc<OnceLock<Table<String, u64>>> = Arc::default();
    let to = Arc::clone(&log);
    let listener = move |event: &Event| {
        let Some(log) = to.get() else { return };
        if let Event::Flush(flush) = event
            && flush.table != "log"
        {
            log.fold(&flush.table, &flush.records).unwrap();
        }
    };
    let store = Store::create(dir.path().join("s.folddb"), Options::default().on_event(listener)).unwrap();
    let _ = log.set(store.table("log", Rules::sorted::<String, u64>().fold("sum:u64")).unwrap());
    let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).unwrap();
    for key in 0..30_u64 {
        table.put(&key, &[1, 2, 3]).unwrap();
        store.flush().unwrap();
    }
    let log = log.get().unwrap();
    for _ in 0..600 {
        if log.get("t").unwrap() == Some(30) {
            return store.close().unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("after a minute the listener has counted {:?} records", log.get("t").unwrap());
}
