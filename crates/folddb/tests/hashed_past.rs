//! Hashed tables that keep versions, and whose values expire: by a clock that the test moves.
#![allow(clippy::unwrap_used)]

mod moved;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use folddb::maintenance::VerifyOptions;
use folddb::time::{moment, unix_ms};
use folddb::{
    AsOf, BackgroundWork, Durability, ErrorKind, Expire, Keep, Lifetime, Options, Rules, Store, Table,
};
use folddb_host::Host;
use folddb_host::clock::Clock;
use moved::{Moved, START_MS};

struct World {
    _dir: tempfile::TempDir,
    path: PathBuf,
    clock: Arc<Moved>,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        World { _dir: dir, path, clock: Arc::new(Moved::new()) }
    }

    fn options(&self) -> Options {
        let host = Host { clock: self.clock.clone(), ..Host::real() };
        let options = Options::default().memory_bytes(4 << 20).tuning(|t| t.segment_bytes(1 << 20));
        options.tuning(|t| t.value_segment_bytes(256 << 10)).background(BackgroundWork::Manual).host(host)
    }

    fn create(&self) -> Store {
        Store::create(&self.path, self.options()).unwrap()
    }

    fn open(&self) -> Store {
        Store::open(&self.path, self.options()).unwrap()
    }

    fn pass(&self, ms: u64) {
        self.clock.pass(ms);
    }

    fn is_whole(&self) {
        let looked =
            Store::verify(&self.path, &VerifyOptions::default().deep(true), &self.options()).unwrap();
        assert!(looked.findings.is_empty(), "{:?}", looked.findings);
    }
}

fn texts(store: &Store, keep: Keep, expire: Expire) -> Table<u64, String> {
    let rules = Rules::hashed::<u64, String>().fold("append:\",\"").keep(keep).expire(expire);
    store.table("texts", rules).unwrap()
}

/// The states of a key, newest first.
fn states(table: &Table<u64, String>, key: u64) -> Vec<Option<String>> {
    table.history(&key, usize::MAX).unwrap().into_iter().map(|version| version.value).collect()
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| (!text.is_empty()).then(|| (*text).to_owned())).collect()
}

#[test]
fn the_newest_versions_of_each_key_are_kept_over_crashes_and_checkpoints() {
    let world = World::new();
    let keep = Keep::Versions(3);
    let mut store = world.create();
    let mut expected: BTreeMap<u64, Vec<Option<String>>> = BTreeMap::new();
    for round in 0..9u64 {
        let table = texts(&store, keep, Expire::Never);
        for key in 0..150u64 {
            let versions = expected.entry(key).or_default();
            match (key + round) % 5 {
                0 => {
                    table.delete(&key).unwrap();
                    if versions.first().is_some_and(Option::is_some) {
                        versions.insert(0, None);
                    }
                }
                1 => {
                    table.fold(&key, &format!("f{round}")).unwrap();
                    let now = match versions.first() {
                        Some(Some(before)) => format!("{before},f{round}"),
                        _ => format!("f{round}"),
                    };
                    versions.insert(0, Some(now));
                }
                2 => {
                    table.put_if_absent(&key, &format!("i{round}")).unwrap();
                    if !versions.first().is_some_and(Option::is_some) {
                        versions.insert(0, Some(format!("i{round}")));
                    }
                }
                _ => {
                    table.put(&key, &format!("s{key}-{round}")).unwrap();
                    versions.insert(0, Some(format!("s{key}-{round}")));
                }
            }
            versions.truncate(3);
        }
        world.pass(5_000);
        match round % 3 {
            0 => store.close().unwrap(),
            1 => drop((table, store)),
            _ => {
                store.flush().unwrap();
                drop((table, store));
            }
        }
        store = world.open();
        let table = texts(&store, keep, Expire::Never);
        let mut there = BTreeMap::new();
        for (&key, versions) in &expected {
            let mut versions = versions.clone();
            let now = versions.first().cloned().flatten();
            assert_eq!(table.get(&key).unwrap(), now, "key {key} in round {round}");
            assert_eq!(table.contains(&key).unwrap(), now.is_some(), "key {key} in round {round}");
            while versions.last().is_some_and(Option::is_none) {
                versions.pop();
            }
            assert_eq!(states(&table, key), versions, "key {key} in round {round}");
            there.extend(now.map(|now| (key, now)));
        }
        let rows: BTreeMap<u64, String> = table.scan().into_iter().map(|row| row.unwrap()).collect();
        assert_eq!(rows, there, "round {round}");
        assert_eq!(table.scan().count().unwrap(), there.len() as u64, "round {round}");
    }
    store.close().unwrap();
    world.is_whole();
}

#[test]
fn what_a_key_was_is_asked_for_by_time_and_a_snapshot_sees_its_own() {
    let world = World::new();
    let store = world.create();
    let table = texts(&store, Keep::Versions(4), Expire::Never);
    for round in 0..6 {
        if round == 2 {
            table.delete(&1).unwrap();
        } else {
            table.put(&1, &format!("v{round}")).unwrap();
        }
        world.pass(10_000);
    }
    let snapshot = store.snapshot();
    table.put(&1, &"v6".to_owned()).unwrap();
    assert_eq!(states(&table, 1), some(&["v6", "v5", "v4", "v3"]));
    assert_eq!(snapshot.get(&table, &1).unwrap().as_deref(), Some("v5"));
    let times: Vec<_> =
        table.history(&1, 9).unwrap().iter().map(|version| version.written.map(unix_ms)).collect();
    let at = |round: u64| Some(START_MS + round * 10_000);
    assert_eq!(times, [at(6), at(5), at(4), at(3)]);
    let asked = |ms: u64| table.get_at(&1, AsOf::Time(moment(START_MS + ms)));
    assert_eq!(asked(35_000).unwrap().as_deref(), Some("v3"));
    assert_eq!(asked(59_999).unwrap().as_deref(), Some("v5"));
    assert!(asked(25_000).unwrap_err().message().contains("the oldest state that is kept"));
    assert_eq!(table.get_at(&2, AsOf::Time(moment(START_MS))).unwrap(), None, "it never was");
    let rules = |keep| Rules::hashed::<u64, String>().keep(keep).as_table_rules().clone();
    for keep in [Keep::Versions(17), Keep::Window(Duration::from_secs(60)), Keep::Forever] {
        let error = store.create_bytes_table("other", rules(keep)).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.message().contains("sorted table"), "{error}");
    }
}

/// A snapshot with pinned files of sorted tables still reads a hashed one from its index.
#[test]
fn what_an_old_snapshot_sees_of_a_hashed_table_is_not_swept_away() {
    let world = World::new();
    let store =
        Store::create(&world.path, world.options().tuning(|t| t.snapshot_files_after(Duration::ZERO)))
            .unwrap();
    let table = texts(&store, Keep::Latest, Expire::After(Duration::from_secs(60)));
    for key in 0..20 {
        table.put(&key, "here").unwrap();
    }
    let snapshot = store.snapshot();
    while store.background_step().unwrap().is_some() {}
    assert_eq!(store.stats().snapshots.in_files, 1);
    world.pass(120_000);
    store.bytes_table("texts").unwrap().compact().unwrap();
    assert_eq!(table.scan().count().unwrap(), 0);
    assert_eq!(snapshot.scan(&table).count().unwrap(), 20);
    assert_eq!(snapshot.get(&table, &7).unwrap().as_deref(), Some("here"));
    drop(snapshot);
    store.bytes_table("texts").unwrap().compact().unwrap();
    assert_eq!(store.bytes_table("texts").unwrap().stats().unwrap().records, 0, "and then it is");
}

#[test]
fn values_expire_for_readers_at_once_and_for_writers_too() {
    let world = World::new();
    let mut store = world.create();
    let expire = Expire::After(Duration::from_secs(60));
    {
        let table = texts(&store, Keep::Latest, expire);
        let mut batch = store.batch();
        for key in 0..40 {
            batch.put(&table, &key, &"by default".to_owned());
        }
        batch.commit(Durability::Process).unwrap();
        table.with_lifetime(Lifetime::For(Duration::from_secs(10))).put(&100, &"short".to_owned()).unwrap();
        table.with_lifetime(Lifetime::Forever).put(&101, &"long".to_owned()).unwrap();
        table.with_lifetime(Lifetime::Until(moment(START_MS))).put(&102, &"never was".to_owned()).unwrap();
    }
    let count = |store: &Store| {
        let table = texts(store, Keep::Latest, expire);
        let rows = table.scan().into_iter().filter(Result::is_ok).count() as u64;
        assert_eq!(table.scan().count().unwrap(), rows);
        rows
    };
    let table = texts(&store, Keep::Latest, expire);
    assert_eq!(table.get(&102).unwrap(), None);
    assert_eq!(table.head(&100).unwrap().unwrap().deadline.map(unix_ms), Some(START_MS + 10_000));
    assert_eq!(table.head(&100).unwrap().unwrap().size_bytes, 5);
    assert_eq!(table.head(&101).unwrap().unwrap().deadline, None);
    assert_eq!(count(&store), 42);
    let snapshot = store.snapshot();
    world.pass(10_000);
    assert_eq!(table.get(&100).unwrap(), None);
    assert!(!table.contains(&100).unwrap());
    assert_eq!(snapshot.get(&table, &100).unwrap().as_deref(), Some("short"), "as it was then");
    // An expired value neither prevents an insert, nor is folded onto.
    table.put_if_absent(&100, &"again".to_owned()).unwrap();
    assert_eq!(table.get(&100).unwrap().as_deref(), Some("again"));
    table.fold(&100, &"more".to_owned()).unwrap();
    table.fold(&102, &"first".to_owned()).unwrap();
    assert_eq!(table.get(&100).unwrap().as_deref(), Some("again,more"));
    assert_eq!(table.get(&102).unwrap().as_deref(), Some("first"));
    drop((snapshot, table));
    world.pass(50_000);
    drop(store);
    store = world.open();
    assert_eq!(count(&store), 3, "100, 101 and 102");
    let keys = |store: &Store| store.bytes_table("texts").unwrap().stats().unwrap().keys_estimate;
    assert_eq!(keys(&store), 43, "what has expired has its slots");
    store.bytes_table("texts").unwrap().compact().unwrap();
    assert_eq!(keys(&store), 3, "they go, and the checkpoint has none of them");
    world.pass(60_000);
    while store.background_step().unwrap().is_some() {}
    assert_eq!(
        (keys(&store), count(&store)),
        (1, 1),
        "background work sweeps after half of the time that values last"
    );
    drop(store);
    store = world.open();
    assert_eq!((keys(&store), count(&store)), (1, 1), "and saves what is left");
    store.close().unwrap();
    store = world.open();
    assert_eq!(count(&store), 1, "what lasts");
    assert_eq!(texts(&store, Keep::Latest, expire).get(&101).unwrap().as_deref(), Some("long"));
    store.close().unwrap();
    world.is_whole();
    let mended = world.path.with_extension("mended");
    let how = folddb::maintenance::RepairOptions::default();
    assert!(Store::repair(&world.path, &mended, &how, &world.options()).unwrap().is_complete());
    assert_eq!(count(&Store::open(&mended, world.options()).unwrap()), 1);
}

/// A byte of an index is wrong: keys of its shard remain, all others are removed, of this table and
/// of those after it.
#[test]
fn what_a_damaged_index_leads_to_stays_and_all_else_that_has_expired_is_swept() {
    const KEYS: u64 = 2000;
    let world = World::new();
    let expire = Expire::After(Duration::from_secs(60));
    let table = |store: &Store, name| {
        store.table(name, Rules::hashed::<u64, String>().expire(expire)).expect("the table")
    };
    let store = world.create();
    for name in ["a", "b"] {
        let table = table(&store, name);
        (0..KEYS).for_each(|key| assert!(table.put(&key, &format!("value {key}")).is_ok()));
    }
    store.close().unwrap();
    world.pass(61_000);
    let mut went_on = 0;
    for entry in std::fs::read_dir(&world.path).unwrap() {
        let index = entry.unwrap().path();
        if index.extension().is_none_or(|extension| extension != "index") {
            continue;
        }
        let len = std::fs::metadata(&index).unwrap().len() as usize;
        for at in (1..8).map(|eighth| len * eighth / 8) {
            went_on += usize::from(sweeps_the_rest(&world, (index.file_name().unwrap(), at), KEYS));
        }
    }
    assert!(went_on >= 8, "only {went_on} openings met a damaged shard");
}

/// Flips a bit there in a copy of the store, whose values have all expired; returns whether the
/// damage was found when they were removed.
fn sweeps_the_rest(world: &World, (index, at): (&std::ffi::OsStr, usize), keys: u64) -> bool {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(&world.path).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    let mut bytes = std::fs::read(copy.path().join(index)).unwrap();
    bytes[at] ^= 0x10;
    std::fs::write(copy.path().join(index), bytes).unwrap();
    let Ok(store) = Store::open(copy.path(), world.options()) else { return false }; // it says why
    assert_eq!(store.background_step().unwrap(), None);
    world.pass(60_000);
    let mut steps = 0;
    while !matches!(store.background_step(), Ok(None)) {
        steps += 1;
        assert!(steps < 2000, "background work never ends: {:?}", store.stats());
    }
    let left =
        ["a", "b"].map(|name| store.bytes_table(name).unwrap().stats().unwrap().records).iter().sum::<u64>();
    let stats = store.stats();
    assert!(left < keys / 8, "{left} are left, {stats:?}");
    assert_eq!(stats.poisoned_by, None);
    let table = store
        .table("a", Rules::hashed::<u64, String>().expire(Expire::After(Duration::from_secs(60))))
        .unwrap();
    let taken = (keys..keys + 1000).filter(|key| table.put(key, &"new".to_owned()).is_ok());
    assert!(taken.count() > 900, "writes went on in all other shards");
    store.flush().unwrap();
    drop(table);
    store.close().unwrap();
    let store = Store::open(copy.path(), world.options()).unwrap();
    let table = store
        .table("a", Rules::hashed::<u64, String>().expire(Expire::After(Duration::from_secs(60))))
        .unwrap();
    let found =
        (keys..keys + 1000).filter(|key| table.get(key).is_ok_and(|value| value.as_deref() == Some("new")));
    assert!(found.count() > 900, "what was saved beside the damage is there");
    assert_eq!(stats.damage.is_empty(), left == 0, "{stats:?}");
    !stats.damage.is_empty()
}

/// It knows when versions were written, but not by which record: it says so, and gives no wrong
/// seq.
#[test]
fn versions_of_hashed_tables_have_no_seq() {
    let world = World::new();
    let store = world.create();
    let table = store.table("t", Rules::hashed::<String, String>().keep(Keep::Versions(4))).unwrap();
    let mut seqs = Vec::new();
    for value in ["one", "two", "three"] {
        seqs.push(table.put("key", value).unwrap());
        world.pass(1200);
    }
    let history = table.history("key", usize::MAX).unwrap();
    assert!(history.iter().all(|version| version.seq.is_none() && version.written.is_some()));
    let refused = table.get_at("key", AsOf::Seq(seqs[0])).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert!(refused.message().contains("of a key by time"), "{refused}");
    assert_eq!(table.get_at("key", AsOf::Seq(seqs[2])).unwrap().as_deref(), Some("three"));
    let then = AsOf::Time(moment(START_MS + 1300));
    assert_eq!(table.get_at("key", then).unwrap().as_deref(), Some("two"));
}

/// Whenever it was written, and in any kind of table.
#[test]
fn the_same_content_has_the_same_digest_whenever_it_was_written() {
    let world = World::new();
    let store = world.create();
    let rules = Rules::hashed::<String, String>();
    let tables = [
        store.table("then", rules.clone().keep(Keep::Versions(2))).unwrap(),
        store.table("later", rules.clone().keep(Keep::Versions(2))).unwrap(),
        store.table("expiring", rules.clone().expire(Expire::ByWrite)).unwrap(),
        store.table("plain", rules).unwrap(),
    ];
    for table in &tables {
        world.pass(1100);
        table.put("key", "value").unwrap();
    }
    let digests = tables.each_ref().map(|table| table.as_bytes().scan().digest(1, 1).unwrap().root());
    assert_eq!(digests, [digests[3]; 4]);
    world.pass(1100);
    tables[0].put("key", "other").unwrap();
    assert_ne!(tables[0].as_bytes().scan().digest(1, 1).unwrap().root(), digests[3]);
}

/// The store as it would be found if its process died now, opened with the clock so far back.
fn dies_with_the_clock_back(world: &World, store: Store, back_ms: u64) -> Store {
    let path = world.path.with_extension("died");
    std::fs::create_dir(&path).unwrap();
    for entry in std::fs::read_dir(&world.path).unwrap().map(|entry| entry.unwrap()) {
        std::fs::copy(entry.path(), path.join(entry.file_name())).unwrap();
    }
    drop(store);
    world.clock.set(world.clock.unix_millis() - back_ms);
    Store::open(&path, world.options()).unwrap()
}

const DAY_MS: u64 = 86_400_000;

/// Nor in a store of hashed tables only, whose log is removed once their index is saved.
#[test]
fn time_does_not_go_back_where_the_log_that_knew_it_is_gone() {
    let world = World::new();
    let store = world.create();
    let table = store.table("t", Rules::hashed::<u64, Vec<u8>>().expire(Expire::ByWrite)).unwrap();
    world.pass(DAY_MS);
    for key in 0..3000u64 {
        table.put(&key, &vec![key as u8; 1000]).unwrap();
    }
    store.flush().unwrap();
    while store.background_step().unwrap().is_some() {}
    let before_ms = unix_ms(store.now());
    let store = dies_with_the_clock_back(&world, store, DAY_MS);
    assert!(unix_ms(store.now()) + 1000 >= before_ms, "{} after {before_ms}", unix_ms(store.now()));
}

/// Nor before a time at which expired values were removed, even if nothing was written then.
#[test]
fn time_does_not_go_back_before_a_sweep() {
    let world = World::new();
    let store = world.create();
    let table = store
        .table("t", Rules::hashed::<u64, String>().expire(Expire::After(Duration::from_secs(60))))
        .unwrap();
    table.put(&1, "one").unwrap();
    world.pass(DAY_MS);
    store.bytes_table("t").unwrap().compact().unwrap();
    store.flush().unwrap();
    while store.background_step().unwrap().is_some() {}
    let swept_ms = unix_ms(store.now());
    assert_eq!(store.stats().background.records_expired, 1);
    let store = dies_with_the_clock_back(&world, store, DAY_MS);
    assert!(unix_ms(store.now()) + 1000 >= swept_ms, "{} after {swept_ms}", unix_ms(store.now()));
}
