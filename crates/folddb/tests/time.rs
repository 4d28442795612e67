//! Tables that keep their past, and values that expire: by a clock that the test moves.

mod moved;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use folddb::codec::KeyCodec;
use folddb::table_rules::TableRules;
use folddb::{
    AsOf, BackgroundWork, Cursor, Durability, ErrorKind, Expire, Fold, FoldFailure, Host, Keep, Lifetime,
    LoadOptions, Options, Outcome, Resume, Rules, Snapshot, Store, Table, WriteOp,
};
use folddb_host::clock::Clock;
use moved::{Moved, START_MS};

struct World {
    _dir: tempfile::TempDir,
    path: PathBuf,
    clock: Arc<Moved>,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("store");
        World { _dir: dir, path, clock: Arc::new(Moved::new()) }
    }

    fn options(&self) -> Options {
        let host = Host { clock: self.clock.clone(), ..Host::real() };
        Options::default()
            .memory_bytes(4 << 20)
            .segment_bytes(1 << 20)
            .part_bytes(64 << 10)
            .background(BackgroundWork::Manual)
            .host(host)
    }

    fn create(&self) -> Store {
        Store::create(&self.path, self.options()).expect("the store is made")
    }

    fn open(&self) -> Store {
        Store::open(&self.path, self.options()).expect("the store opens")
    }

    fn pass(&self, ms: u64) {
        self.clock.pass(ms);
    }

    fn set(&self, ms: u64) {
        self.clock.set(ms);
    }
}

fn counts(store: &Store, keep: Keep, expire: Expire) -> Table<u64, u64> {
    store
        .table("counts", Rules::sorted::<u64, u64>().fold("sum:u64").keep(keep).expire(expire))
        .expect("it works")
}

fn compact(store: &Store, table: &str) {
    store.compact(table, |_| ControlFlow::Continue(())).expect("it works");
}

fn values<V: Clone>(versions: &[folddb::HistoryEntry<Option<V>>]) -> Vec<Option<V>> {
    versions.iter().map(|version| version.value.clone()).collect()
}

/// Does something to a store.
type Shake = fn(&World, Store) -> Store;

/// What changes nothing that is read.
fn shakes() -> [(&'static str, Shake); 4] {
    [
        ("nothing", |_, store| store),
        ("flush", |_, store| {
            store.flush().expect("it works");
            store
        }),
        ("compact", |_, store| {
            for table in store.tables() {
                compact(&store, &table);
            }
            store
        }),
        ("reopening", |world, store| {
            drop(store);
            world.open()
        }),
    ]
}

#[test]
fn counters_travel_in_time_forever() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Forever, Expire::Never);
    let mut seqs = Vec::new();
    for round in 1..=30u64 {
        for key in 0..20 {
            table.fold(&key, &round).unwrap();
        }
        seqs.push((store.last_seq(), world.clock.unix_millis()));
        if round % 7 == 0 {
            store.flush().unwrap();
        }
        world.pass(1500);
    }
    drop(table);
    let mut store = store;
    for (how, shake) in shakes() {
        store = shake(&world, store);
        let table = counts(&store, Keep::Forever, Expire::Never);
        for (round, (seq, time_ms)) in seqs.iter().enumerate() {
            let total = (1..=round as u64 + 1).sum::<u64>();
            let sum = Some(total);
            assert_eq!(table.get_at(&7, AsOf::Seq(*seq)).unwrap(), sum, "{how}: after seq {seq}");
            assert_eq!(table.get_at(&7, AsOf::UnixMillis(*time_ms)).unwrap(), sum, "{how}: at {time_ms}");
            let past = store.snapshot_at(AsOf::Seq(*seq)).unwrap();
            assert_eq!(past.get(&table, &3).unwrap(), sum);
            let rows: Vec<_> = past.scan(&table).into_iter().map(|row| row.unwrap().1).collect();
            assert_eq!(rows, vec![total; 20], "{how}");
        }
        assert_eq!(table.get_at(&7, AsOf::UnixMillis(START_MS - 1)).unwrap(), None);
        let history = table.history(&7, 3).unwrap();
        assert_eq!(values(&history), [Some(465), Some(435), Some(406)]);
        assert_eq!(history[0].time_ms, Some(seqs[29].1));
        assert_eq!(table.history(&7, usize::MAX).unwrap().len(), 30);
        drop(table);
    }
}

#[test]
fn the_newest_versions_of_a_key_are_kept_and_no_more() {
    let world = World::new();
    let mut store = world.create();
    let rules = || Rules::sorted::<String, String>().keep(Keep::Versions(3)).separate(100);
    let long = |n: u32| format!("{n}").repeat(200);
    let table = store.table("pages", rules()).unwrap();
    let first = table.put("a", &long(1)).unwrap();
    table.delete("a").unwrap();
    for n in 3..=5 {
        table.put("a", &long(n)).unwrap();
    }
    let deleted = table.delete("a").unwrap();
    let last = table.put("a", "short").unwrap();
    table.put("b", "only").unwrap();
    table.put("c", "gone").unwrap();
    table.delete("c").unwrap();
    drop(table);
    for (how, shake) in shakes() {
        store = shake(&world, store);
        let table = store.table("pages", rules()).unwrap();
        let history = table.history("a", usize::MAX).unwrap();
        assert_eq!(values(&history), [Some("short".to_owned()), None, Some(long(5))], "{how}");
        assert_eq!(history[1].seq, Some(deleted));
        assert_eq!(values(&table.history("b", 9).unwrap()), [Some("only".to_owned())]);
        assert_eq!(values(&table.history("c", 9).unwrap()), [None, Some("gone".to_owned())], "{how}");
        assert_eq!(table.get_at("a", AsOf::Seq(deleted)).unwrap(), None);
        assert_eq!(table.get_at("a", AsOf::Seq(deleted - 1)).unwrap(), Some(long(5)));
        assert_eq!(table.get_at("a", AsOf::Seq(last)).unwrap().as_deref(), Some("short"));
        let refused = table.get_at("a", AsOf::Seq(first)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert!(refused.to_string().contains(&format!("at seq {}", deleted - 1)), "{refused}");
        let refused = store.snapshot_at(AsOf::Seq(first)).unwrap().scan(&table).count().unwrap_err();
        assert!(refused.to_string().contains("history"), "{refused}");
    }
    let stats = store.table_stats("pages").unwrap();
    assert!(stats.records <= 3 + 1 + 2, "{} records", stats.records);
}

#[test]
fn a_window_moves_and_what_is_beyond_it_is_folded_and_refused() {
    let world = World::new();
    let store = world.create();
    let keep = Keep::Window(60_000);
    let table = counts(&store, keep, Expire::Never);
    let mut seqs = Vec::new();
    for round in 1..=120u64 {
        seqs.push(table.fold(&1, &round).unwrap());
        world.pass(1000);
    }
    assert_eq!(table.get_at(&1, AsOf::Seq(seqs[70])).unwrap(), Some((1..=71).sum::<u64>()));
    let refused = table.get_at(&1, AsOf::Seq(seqs[20])).unwrap_err();
    assert!(refused.to_string().contains("window:1m"), "{refused}");
    let held = store.snapshot_at(AsOf::Seq(seqs[70])).unwrap();
    compact(&store, "counts");
    let records = store.table_stats("counts").unwrap().records;
    assert!((60..=63).contains(&records), "{records} records");
    assert_eq!(table.history(&1, usize::MAX).unwrap().len() as u64, records);
    world.pass(600_000);
    table.fold(&2, &1).unwrap();
    compact(&store, "counts");
    assert_eq!(held.get(&table, &1).unwrap(), Some((1..=71).sum::<u64>()), "a snapshot holds its moment");
    drop(held);
    table.fold(&2, &1).unwrap();
    store.flush().unwrap();
    compact(&store, "counts");
    assert_eq!(table.history(&1, usize::MAX).unwrap().len(), 1);
    assert_eq!(table.get(&1).unwrap(), Some((1..=120).sum::<u64>()));
    assert_eq!(store.table_stats("counts").unwrap().records, 1 + 2);
}

#[test]
fn a_table_that_keeps_only_what_is_says_so() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Latest, Expire::Never);
    table.fold(&1, &1).unwrap();
    let before = store.last_seq();
    table.fold(&1, &2).unwrap();
    assert_eq!(values(&table.history(&1, 9).unwrap()), [Some(3)]);
    let refused = table.get_at(&1, AsOf::Seq(before)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert!(refused.to_string().contains("keeps latest"), "{refused}");
    assert_eq!(table.get_at(&1, AsOf::Seq(before + 1)).unwrap(), Some(3), "the present is there");
    let refused = table.put_expiring(&1, &1, Lifetime::For(Duration::from_secs(1))).unwrap_err();
    assert!(refused.to_string().contains("last for ever"), "{refused}");
}

#[test]
fn a_range_delete_hides_the_past_from_the_present_only() {
    let world = World::new();
    let mut store = world.create();
    let table = counts(&store, Keep::Versions(2), Expire::Never);
    for key in 0..10u64 {
        table.fold(&key, &1).unwrap();
    }
    let before = store.last_seq();
    table.delete_range(&2, &8).unwrap();
    table.fold(&3, &5).unwrap();
    drop(table);
    for (how, shake) in shakes() {
        store = shake(&world, store);
        let table = counts(&store, Keep::Versions(2), Expire::Never);
        assert_eq!(table.scan().count().unwrap(), 5, "{how}");
        assert_eq!(values(&table.history(&2, 9).unwrap()), [None, Some(1)], "{how}");
        assert_eq!(values(&table.history(&3, 9).unwrap()), [Some(5)], "{how}");
        assert_eq!(table.get_at(&4, AsOf::Seq(before)).unwrap(), Some(1), "{how}");
    }
}

#[test]
fn what_has_expired_is_hidden_at_once_from_whoever_reads() {
    let world = World::new();
    let mut store = world.create();
    let rules = || Rules::sorted::<String, Vec<u8>>().expire(Expire::After(10_000)).separate(100);
    let table = store.table("sessions", rules()).unwrap();
    table.put("default", &vec![1; 5]).unwrap();
    table.put("separated", &vec![2; 500]).unwrap();
    table.put_expiring("short", &vec![3; 5], Lifetime::For(Duration::from_secs(2))).unwrap();
    table.put_expiring("dated", &vec![4; 500], Lifetime::Until(START_MS + 5_000)).unwrap();
    table.put_expiring("kept", &vec![5; 5], Lifetime::Forever).unwrap();
    let head = table.head("dated").unwrap().unwrap();
    assert_eq!(
        (head.is_separated, head.deadline_ms, head.written_ms),
        (true, Some(START_MS + 5_000), Some(START_MS))
    );
    assert_eq!(table.head("default").unwrap().unwrap().deadline_ms, Some(START_MS + 10_000));
    assert_eq!(table.head("kept").unwrap().unwrap().deadline_ms, None);
    drop(table);
    for (elapsed, left) in [
        (1_999, vec!["dated", "default", "kept", "separated", "short"]),
        (2_000, vec!["dated", "default", "kept", "separated"]),
        (5_000, vec!["default", "kept", "separated"]),
        (10_000, vec!["kept"]),
    ] {
        world.set(START_MS + elapsed);
        for (how, shake) in shakes() {
            store = shake(&world, store);
            let table = store.table("sessions", rules()).unwrap();
            let keys: Vec<_> = table.scan().into_iter().map(|row| row.unwrap().0).collect();
            assert_eq!(keys, left, "{how} after {elapsed} ms");
            let mut back: Vec<_> = table.scan().reverse().into_iter().map(|row| row.unwrap().0).collect();
            back.reverse();
            assert_eq!(back, left);
            assert_eq!(table.scan().count().unwrap(), left.len() as u64);
            let heads: Vec<_> = table.scan().heads().map(|row| row.unwrap()).collect();
            assert_eq!(heads.len(), left.len());
            for key in ["separated", "dated", "default", "kept", "short"] {
                assert_eq!(table.get(key).unwrap().is_some(), left.contains(&key), "{how}: {key}");
                assert_eq!(table.contains(key).unwrap(), left.contains(&key));
                assert_eq!(table.head(key).unwrap().is_some(), left.contains(&key));
            }
            assert!(heads.iter().any(|(key, head)| key == "kept" && head.deadline_ms.is_none()));
        }
    }
}

#[test]
fn folds_let_a_value_live_on_and_begin_anew_when_it_has_expired() {
    let world = World::new();
    let mut store = world.create();
    let expire = Expire::After(10_000);
    let table = counts(&store, Keep::Latest, expire);
    table.fold(&1, &1).unwrap();
    world.pass(9_000);
    table.fold(&1, &10).unwrap(); // lives on until 19 s
    table.put_if_absent(&2, &1).unwrap();
    world.pass(9_000);
    table.fold(&1, &100).unwrap(); // until 28 s
    table.put_if_absent(&2, &50).unwrap(); // the first has not expired
    world.pass(2_000);
    table.put_if_absent(&2, &7).unwrap(); // now it has
    drop(table);
    for (how, shake) in shakes() {
        store = shake(&world, store);
        let table = counts(&store, Keep::Latest, expire);
        assert_eq!(table.get(&1).unwrap(), Some(111), "{how}");
        assert_eq!(table.get(&2).unwrap(), Some(7), "{how}");
    }
    drop(store);
    let report = Store::verify(&world.path, &world.options(), true, |_, _| {}).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let store = world.open();
    world.pass(8_000);
    let table = counts(&store, Keep::Latest, expire);
    assert_eq!(table.get(&1).unwrap(), None);
    table.fold(&1, &1000).unwrap();
    assert_eq!(table.get(&1).unwrap(), Some(1000), "what had expired is not folded onto");
    compact(&store, "counts");
    assert_eq!(table.get(&1).unwrap(), Some(1000));
}

#[test]
fn a_snapshot_reads_at_its_own_time_and_holds_what_it_sees() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Latest, Expire::After(5_000));
    for key in 0..100u64 {
        table.fold(&key, &key).unwrap();
    }
    let past = store.snapshot();
    world.pass(60_000);
    table.fold(&500, &1).unwrap();
    compact(&store, "counts");
    assert_eq!(table.scan().count().unwrap(), 1);
    assert_eq!(past.scan(&table).count().unwrap(), 100);
    assert_eq!(past.get(&table, &7).unwrap(), Some(7));
    assert_eq!(past.unix_millis(), START_MS);
    drop(past);
    table.fold(&501, &1).unwrap();
    compact(&store, "counts");
    assert_eq!(store.table_stats("counts").unwrap().records, 2);
    assert_eq!(store.stats().records_expired, 100);
}

#[test]
fn time_does_not_go_back_over_reopening() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Latest, Expire::After(5_000));
    table.fold(&1, &1).unwrap();
    world.pass(3_600_000); // a jump ahead
    assert_eq!(table.get(&1).unwrap(), None);
    table.fold(&2, &1).unwrap();
    world.set(START_MS); // and back
    assert_eq!(table.get(&1).unwrap(), None, "what is gone stays gone");
    assert_eq!(table.get(&2).unwrap(), Some(1));
    drop((table, store));
    let store = world.open();
    let table = counts(&store, Keep::Latest, Expire::After(5_000));
    assert!(store.unix_millis() >= START_MS + 3_600_000);
    assert_eq!(table.get(&1).unwrap(), None, "the log knows how late it was");
    store.close().unwrap();
    let store = world.open();
    assert!(store.unix_millis() >= START_MS + 3_600_000, "and so does the manifest");
    let table = counts(&store, Keep::Latest, Expire::After(5_000));
    assert_eq!(table.get(&2).unwrap(), Some(1));
    world.set(START_MS + 3_600_000 + 5_000);
    assert_eq!(table.get(&2).unwrap(), None);
}

#[test]
fn parts_in_which_all_has_expired_go_unread() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Latest, Expire::After(100_000));
    for hour in 0..6u64 {
        let mut batch = store.batch();
        for at in 0..5000u64 {
            batch.fold(&table, &(hour * 10_000 + at), &at);
        }
        batch.commit(Durability::Process).unwrap();
        store.flush().unwrap();
        world.pass(50_000);
    }
    store.settle().unwrap();
    // Six slices at 0, 50, .. 250 s, now 300 s: that of 250 s lives.
    let (left, expired, merged) =
        (store.table_stats("counts").unwrap(), store.stats().records_expired, store.stats().records_merged);
    assert_eq!(left.records, 5_000, "{left:?}");
    assert_eq!((expired, merged), (25_000, 0), "no record was read for it");
    assert_eq!(table.scan().count().unwrap(), 5_000);
}

#[test]
fn a_merge_is_planned_for_what_has_expired() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Latest, Expire::ByWrite);
    for key in 0..4000u64 {
        let lifetime = if key % 4 == 0 { Lifetime::Forever } else { Lifetime::For(Duration::from_secs(60)) };
        let bytes = (key.to_be_bytes(), key.to_le_bytes());
        table.as_bytes().write_expiring(WriteOp::Put, &bytes.0, &bytes.1, lifetime).unwrap();
    }
    store.settle().unwrap();
    assert_eq!(store.table_stats("counts").unwrap().records, 4000);
    world.pass(120_000);
    assert_eq!(table.scan().count().unwrap(), 1000);
    store.settle().unwrap();
    assert_eq!(store.table_stats("counts").unwrap().records, 1000, "{:?}", store.table_stats("counts"));
    store.settle().unwrap(); // and comes to rest
}

#[test]
fn rules_of_time_are_checked_where_the_table_is_opened() {
    let world = World::new();
    let store = world.create();
    let _table = counts(&store, Keep::Versions(3), Expire::ByWrite);
    let open = |rules: Rules<u64, u64>| store.table("counts", rules.fold("sum:u64")).map(drop);
    open(Rules::sorted()).unwrap();
    let differs = open(Rules::sorted().keep(Keep::Forever)).unwrap_err();
    assert_eq!(differs.kind(), ErrorKind::RulesMismatch);
    assert!(differs.to_string().contains("it keeps versions:3, not forever"), "{differs}");
    assert!(open(Rules::sorted().expire(Expire::After(5))).is_err());
    assert!(Path::new(&world.path).exists());
}

#[test]
fn a_transaction_reads_what_it_wrote_where_values_expire() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Latest, Expire::After(10_000));
    let texts: Table<u64, Vec<u8>> =
        store.table("texts", Rules::sorted().fold("append").expire(Expire::After(10_000))).unwrap();
    let text = |text: &str| text.as_bytes().to_vec();
    texts.fold(&1, &text("a text that is longer than a stamp")).unwrap();
    table.fold(&1, &40).unwrap();
    for (passed, sum, said) in
        [(0, 42, "a text that is longer than a stamp, and more"), (10_000, 2, ", and more")]
    {
        world.pass(passed);
        let mut transaction = store.transaction();
        assert_eq!(transaction.fold_and_get(&table, &1, &2).unwrap(), Some(sum));
        assert_eq!(transaction.fold_and_get(&texts, &1, &text(", and more")).unwrap(), Some(text(said)));
        transaction.put(&table, &2, &7).put_if_absent(&table, &2, &8).delete(&texts, &1);
        assert_eq!(transaction.get(&table, &2).unwrap(), Some(7));
        assert_eq!(transaction.get(&texts, &1).unwrap(), None);
        transaction.fold(&texts, &1, &text(said));
        assert_eq!(transaction.get(&texts, &1).unwrap(), Some(text(said)));
        transaction.commit(Durability::Process).unwrap();
        assert_eq!((table.get(&1).unwrap(), table.get(&2).unwrap()), (Some(sum), Some(7)));
        assert_eq!(texts.get(&1).unwrap(), Some(text(said)));
        texts.put(&1, &text("a text that is longer than a stamp")).unwrap();
    }
}

#[test]
fn what_a_transaction_scanned_and_has_expired_since_holds_no_more() {
    for is_hashed in [false, true] {
        let world = World::new();
        let store = world.create();
        let rules = if is_hashed { Rules::hashed::<u64, u64>() } else { Rules::sorted() };
        let table = store.table("t", rules.expire(Expire::ByWrite)).unwrap();
        for (key, lasts_ms) in [(1, 1_000), (2, 50_000), (3, 2_000)] {
            table.put_expiring(&key, &key, Lifetime::For(Duration::from_millis(lasts_ms))).unwrap();
        }
        let scanned = |limit: usize, passed_ms: u64| {
            let mut transaction = store.transaction();
            let rows = transaction.scan(&table).limit(limit).into_iter().count();
            transaction.put(&table, &100, &(rows as u64));
            world.pass(passed_ms);
            (rows, transaction.commit(Durability::Process).map_err(|error| error.kind()).is_ok())
        };
        assert_eq!(scanned(99, 500), (3, true), "{is_hashed}");
        assert_eq!(scanned(99, 1_000), (4, false), "{is_hashed}: the first has expired");
        let mut transaction = store.transaction();
        assert_eq!(transaction.get(&table, &3).unwrap(), Some(3));
        transaction.put(&table, &100, &1);
        world.pass(1_000);
        let kind = transaction.commit(Durability::Process).unwrap_err().kind();
        assert_eq!(kind, ErrorKind::Conflict, "{is_hashed}: the third, which was got");
        if !is_hashed {
            assert_eq!(scanned(1, 40_000), (1, true), "the second lasts, the others were not come to");
        }
    }
}

/// A cursor that is gone on with strictly shows what its scan saw, also of what has expired since, or nothing.
#[test]
fn strict_cursors_lose_no_row_that_has_expired_since() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Latest, Expire::After(10_000));
    for key in 0..10 {
        table.put(&key, &key).unwrap();
    }
    let left = |cursor: &Cursor, how: Resume| -> Result<Vec<u64>, ErrorKind> {
        let rows = table.resume(cursor, how).map_err(|error| error.kind())?;
        Ok(rows.into_iter().map(|row| row.unwrap().0).collect())
    };
    let begun = |snapshot: Option<&Snapshot>| {
        let mut rows = snapshot.map_or_else(|| table.scan(), |at| at.scan(&table)).into_iter();
        assert_eq!(rows.by_ref().take(4).count(), 4);
        rows.cursor().unwrap()
    };
    let of_nobody = begun(None);
    assert_eq!(left(&of_nobody, Resume::Strict), Ok((4..10).collect()), "it is the same moment still");
    world.pass(1);
    assert_eq!(left(&of_nobody, Resume::Strict), Err(ErrorKind::SnapshotTooOld), "nobody holds what it saw");
    let snapshot = store.snapshot();
    let of_snapshot = begun(Some(&snapshot));
    world.pass(9_998);
    let later = store.snapshot();
    let of_now = begun(None);
    for (how, passed) in [("nothing has expired", 0), ("all has expired", 1), ("and long since", 100_000)] {
        world.pass(passed);
        compact(&store, "counts");
        for cursor in [&of_snapshot, &of_now] {
            assert_eq!(left(cursor, Resume::Strict), Ok((4..10).collect()), "{how}");
        }
    }
    assert_eq!(left(&of_now, Resume::Relaxed), Ok(Vec::new()));
    drop(snapshot);
    assert_eq!(left(&of_snapshot, Resume::Strict), Ok((4..10).collect()), "`later` holds the same moment");
    drop(later);
    assert_eq!(left(&of_now, Resume::Strict), Err(ErrorKind::SnapshotTooOld));
}

/// What a table says of a moment does not change with a merge.
#[test]
fn a_moment_at_which_values_were_alive_that_are_not_kept_is_refused() {
    let world = World::new();
    let store = world.create();
    let keeps = [Keep::Latest, Keep::Forever, Keep::Versions(3), Keep::Window(1_000_000)];
    let table = |keep: Keep| -> Table<u64, u64> {
        let rules = Rules::sorted::<u64, u64>().keep(keep).expire(Expire::After(10_000));
        store.table(&format!("t{}", keep.to_string().replace(':', "")), rules).unwrap()
    };
    for keep in keeps {
        table(keep).put(&1, &7).unwrap();
    }
    let alive = AsOf::UnixMillis(world.clock.unix_millis() + 5_000);
    world.pass(10_000);
    for _ in 0..2 {
        for keep in keeps {
            let (got, now) =
                (table(keep).get_at(&1, alive), table(keep).get_at(&1, AsOf::Seq(store.last_seq())));
            assert_eq!(now.unwrap(), None);
            match keep {
                Keep::Latest => {
                    assert!(got.unwrap_err().message().contains("keeps no values that have expired"))
                }
                _ => assert_eq!(got.unwrap(), Some(7), "{keep}"),
            }
            let scanned = table(keep).as_bytes().scan_at(alive).into_iter().next().unwrap();
            assert_eq!(scanned.is_err(), keep == Keep::Latest, "{keep}");
            let to_come = table(keep).get_at(&1, AsOf::Seq(store.last_seq() + 1)).unwrap_err();
            assert!(to_come.message().contains("yet"), "{to_come}");
            let to_come = store.snapshot_at(AsOf::Seq(store.last_seq() + 1)).map(drop).unwrap_err();
            assert!(to_come.message().contains("yet"), "{to_come}");
        }
        store.tables().iter().for_each(|table| compact(&store, table));
    }
}

/// The record is the newest of all, and so at every boundary of a window by its seq; what it was is gone by time alone.
#[test]
fn a_moment_before_the_window_is_refused_where_values_expired_though_nothing_was_written_since() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Window(20_000), Expire::After(5_000));
    table.put(&1, &7).unwrap();
    let alive = AsOf::UnixMillis(START_MS + 2_000);
    world.pass(60_000);
    table.put(&2, &8).unwrap();
    for _ in 0..2 {
        let refused = table.get_at(&1, alive).unwrap_err();
        assert!(refused.message().contains("keeps no values that have expired by 20s ago"), "{refused}");
        store.flush().unwrap();
        compact(&store, "counts");
    }
    assert_eq!(table.get_at(&2, AsOf::UnixMillis(START_MS + 45_000)).unwrap(), None);
}

/// What finds show of a moment stays what it was; what nobody can ask for any more goes.
#[test]
fn indexes_lose_what_is_stale_as_far_as_their_table_forgets() {
    let world = World::new();
    let store = world.create();
    let keeps = [Keep::Latest, Keep::Versions(2), Keep::Window(100_000), Keep::Forever];
    let rules = |keep| Rules::sorted::<u64, u64>().keep(keep).index("by_value", "value");
    let tables: Vec<Table<u64, u64>> = keeps
        .iter()
        .enumerate()
        .map(|(at, keep)| store.table(&format!("t{at}"), rules(*keep)).unwrap())
        .collect();
    let mut moments = Vec::new();
    for round in 0..30u64 {
        for table in &tables {
            for key in 0..4 {
                table.put(&key, &(100 * key + round)).unwrap();
            }
        }
        moments.push((store.last_seq(), round));
        world.pass(10_000);
        store.flush().unwrap();
    }
    let check = || {
        for (at, (table, keep)) in tables.iter().zip(keeps).enumerate() {
            let found = |term: u64, of: Option<&Snapshot>| -> folddb::Result<Vec<u64>> {
                let find = table.find("by_value").unwrap().term(term);
                of.map_or_else(|| find.clone(), |of| find.clone().at(of)).keys().collect()
            };
            assert_eq!(found(329, None).unwrap(), [3], "table {at}");
            assert_eq!(found(328, None).unwrap(), [0; 0]);
            for (seq, round) in &moments {
                let past = store.snapshot_at(AsOf::Seq(*seq)).unwrap();
                let is_kept = match keep {
                    Keep::Forever => true,
                    Keep::Window(_) => *round > 20,
                    _ => false,
                };
                if is_kept {
                    assert_eq!(found(100 + round, Some(&past)).unwrap(), [1], "table {at}, round {round}");
                    assert_eq!(found(100 + round + 1, Some(&past)).unwrap(), [0; 0]);
                }
            }
        }
    };
    let entries = || -> Vec<u64> {
        (0..keeps.len()).map(|at| store.table_stats(&format!("t{at}/by_value")).unwrap().records).collect()
    };
    check();
    (0..keeps.len()).for_each(|at| compact(&store, &format!("t{at}")));
    check();
    let now = entries();
    assert_eq!((now[0], now[1], now[3]), (4, 4, 120));
    assert!((40..=52).contains(&now[2]), "those of the window, ten rounds: {now:?}");
    world.pass(1_000_000);
    for table in &tables {
        table.put(&9, &9).unwrap();
    }
    (0..keeps.len()).for_each(|at| compact(&store, &format!("t{at}")));
    assert_eq!(entries(), [5, 5, 5, 121]);
    assert_eq!(tables[2].find("by_value").unwrap().count().unwrap(), 5);
}

/// With a bound on the age of deletes what was deleted goes from the disk, however few the deletes are.
#[test]
fn deletes_that_are_older_than_may_be_take_what_they_delete_from_the_disk() {
    let world = World::new();
    for bound in [None, Some(Duration::from_secs(60))] {
        let path = world.path.with_extension(if bound.is_some() { "bounded" } else { "free" });
        let mut store = Store::create(&path, world.options().deletes_age_max(bound)).unwrap();
        let table = |store: &Store| store.table::<u64, u64>("t", Rules::sorted()).unwrap();
        let settle = |store: &Store| while store.background_step().unwrap().is_some() {};
        let records = |store: &Store| store.table_stats("t").unwrap().records;
        for key in 0..1000 {
            table(&store).put(&key, &key).unwrap();
        }
        store.flush().unwrap();
        table(&store).delete(&7).unwrap();
        store.flush().unwrap();
        settle(&store);
        assert_eq!(records(&store), 1001);
        world.pass(55_000);
        settle(&store);
        drop(store);
        store = Store::open(&path, world.options().deletes_age_max(bound)).unwrap();
        settle(&store);
        assert_eq!(records(&store), 1001, "not as old as that");
        world.pass(10_000);
        let snapshot = store.snapshot();
        settle(&store);
        drop(snapshot);
        settle(&store);
        assert_eq!(records(&store), if bound.is_some() { 999 } else { 1001 });
        assert_eq!(store.background_step().unwrap(), None, "and no merge more");
        assert_eq!((table(&store).get(&7).unwrap(), table(&store).scan().count().unwrap()), (None, 999));
    }
}

/// A cursor of a scan of the past goes on as long as somebody holds that; and what a window has let go of is refused before a merge as
/// after it.
#[test]
fn the_past_of_values_that_expire_is_gone_on_with_and_ends_with_its_window() {
    let world = World::new();
    let store = world.create();
    let rules = Rules::sorted::<u64, u64>().keep(Keep::Window(20_000)).expire(Expire::After(5_000));
    let table = store.table("t", rules).unwrap();
    for key in 0..6 {
        table.put(&key, &key).unwrap();
    }
    world.pass(10_000);
    let alive = AsOf::UnixMillis(START_MS + 2_000);
    let past = store.snapshot_at(alive).unwrap();
    let mut rows = past.scan(&table).into_iter();
    assert_eq!(rows.by_ref().take(2).count(), 2);
    let cursor = rows.cursor().unwrap();
    drop(rows);
    let rest = || -> Result<Vec<u64>, ErrorKind> {
        let rest = table.resume(&cursor, Resume::Strict).map_err(|error| error.kind())?;
        Ok(rest.into_iter().map(|row| row.unwrap().0).collect())
    };
    assert_eq!(rest(), Ok(vec![2, 3, 4, 5]));
    drop(past);
    assert_eq!(rest(), Ok(vec![2, 3, 4, 5]), "the table keeps it");
    assert_eq!(table.get_at(&1, alive).unwrap(), Some(1));
    world.pass(90_000);
    for _ in 0..2 {
        assert_eq!(rest(), Err(ErrorKind::SnapshotTooOld));
        assert!(table.get_at(&1, alive).unwrap_err().message().contains("keeps no values that have expired"));
        compact(&store, "t");
    }
}

/// A part in which all has expired stays as long as it hides something older that has not.
#[test]
fn what_has_expired_goes_on_hiding_what_lasts_longer() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Latest, Expire::ByWrite);
    let set = |key: u64, value: u64, lifetime| table.put_expiring(&key, &value, lifetime).unwrap();
    for key in 0..100 {
        set(key, 1, Lifetime::Forever);
    }
    store.flush().unwrap();
    set(7, 2, Lifetime::For(Duration::from_secs(60)));
    store.flush().unwrap();
    world.pass(120_000);
    for _ in 0..2 {
        assert_eq!((table.get(&7).unwrap(), table.scan().count().unwrap()), (None, 99));
        store.settle().unwrap();
    }
}

/// A value that has expired was alive when something was folded onto it, and that fold has not expired: wherever the fold lies.
#[test]
fn what_somebody_met_alive_who_lives_on_is_not_swept_away() {
    for is_flushed in [false, true] {
        let world = World::new();
        let store = world.create();
        let table = counts(&store, Keep::Latest, Expire::After(10_000));
        table.fold(&1, &1).unwrap();
        store.flush().unwrap();
        world.pass(9_000);
        table.fold(&1, &10).unwrap(); // lives on until 19 s
        if is_flushed {
            store.flush().unwrap();
        }
        world.pass(6_000);
        while store.background_step().unwrap().is_some() {}
        assert_eq!(table.get(&1).unwrap(), Some(11), "flushed {is_flushed}");
        world.pass(4_000);
        while store.background_step().unwrap().is_some() {}
        assert_eq!(table.get(&1).unwrap(), None);
    }
}

#[test]
fn what_has_expired_is_kept_as_long_as_its_window_shows_it_alive() {
    let world = World::new();
    let store = world.create();
    let rules = Rules::sorted::<u64, u64>().keep(Keep::Window(60_000)).expire(Expire::After(5_000));
    let table = store.table("t", rules).unwrap();
    (0..100).for_each(|key| assert!(table.put(&key, &key).is_ok()));
    let alive = AsOf::UnixMillis(START_MS + 2_000);
    world.pass(10_000);
    for _ in 0..2 {
        assert_eq!((table.get(&7).unwrap(), table.get_at(&7, alive).unwrap()), (None, Some(7)));
        store.settle().unwrap();
        compact(&store, "t");
    }
    world.pass(60_000);
    table.put(&200, &1).unwrap();
    compact(&store, "t");
    assert_eq!(store.table_stats("t").unwrap().records, 1);
}

#[test]
fn a_version_of_a_key_is_no_value_once_it_has_expired() {
    let world = World::new();
    let mut store = world.create();
    let rules = || Rules::sorted::<u64, u64>().keep(Keep::Versions(3)).expire(Expire::After(10_000));
    let table = store.table("t", rules()).unwrap();
    table.put(&1, &7).unwrap();
    world.pass(20_000);
    table.put(&1, &8).unwrap();
    let deleted = table.delete(&1).unwrap();
    drop(table);
    for (how, shake) in shakes() {
        store = shake(&world, store);
        let table = store.table("t", rules()).unwrap();
        for (after_ms, value) in [(0, Some(7)), (9_999, Some(7)), (10_000, None), (15_000, None)] {
            let at = AsOf::UnixMillis(START_MS + after_ms);
            assert_eq!(table.get_at(&1, at).unwrap(), value, "{how}: after {after_ms} ms");
        }
        assert_eq!(table.get_at(&1, AsOf::Seq(deleted - 1)).unwrap(), Some(8));
        for (limit, states) in [(1, vec![None]), (2, vec![None, Some(8)]), (9, vec![None, Some(8), Some(7)])]
        {
            assert_eq!(values(&table.history(&1, limit).unwrap()), states, "{how}: at most {limit}");
        }
    }
}

/// A moment that has not come is the present.
#[test]
fn nobody_sees_what_is_to_expire_as_if_it_had() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Forever, Expire::After(10_000));
    table.put(&1, &7).unwrap();
    world.pass(3_000);
    let to_come = AsOf::UnixMillis(START_MS + 3_600_000);
    let at = store.snapshot_at(to_come).unwrap();
    assert_eq!(at.unix_millis(), START_MS + 3_000);
    assert_eq!((at.get(&table, &1).unwrap(), at.scan(&table).count().unwrap()), (Some(7), 1));
    assert_eq!(table.get_at(&1, to_come).unwrap(), Some(7));
}

// ---- what indexes know of time --------------------------------------------------------------------------------

const HOUR_MS: u64 = 3_600_000;

fn sessions(store: &Store, keep: Keep) -> Table<u64, Vec<u8>> {
    let rules = Rules::sorted::<u64, Vec<u8>>().keep(keep).expire(Expire::After(HOUR_MS));
    store.table("sessions", rules).expect("it works")
}

fn add_index(store: &Store) {
    let rule = folddb::IndexRule::parse("by_user:value").expect("a rule");
    store.add_index("sessions", &rule, |_| ControlFlow::Continue(())).expect("it works");
}

fn found(table: &Table<u64, Vec<u8>>, at: Option<&Snapshot>) -> folddb::Result<u64> {
    let find = table.find("by_user")?;
    at.into_iter().fold(find, |find, at| find.at(at)).count()
}

/// That the index says what it cannot tell, instead of telling too little.
fn is_too_young(found: folddb::Result<u64>) -> bool {
    found.is_err_and(|error| error.message().contains("when it was built"))
}

#[test]
fn an_index_that_was_built_when_all_had_expired_does_not_tell_what_was_before() {
    let world = World::new();
    let store = world.create();
    let table = sessions(&store, Keep::Window(24 * HOUR_MS));
    table.put(&1, b"ann").expect("it works");
    let alive_ms = store.unix_millis();
    let snapshot = store.snapshot();
    world.pass(2 * HOUR_MS);
    add_index(&store);
    assert_eq!(found(&table, None).expect("it works"), 0);
    assert!(is_too_young(found(&table, Some(&snapshot))));
    let past = store.snapshot_at(AsOf::UnixMillis(alive_ms)).expect("it works");
    assert!(is_too_young(found(&table, Some(&past))));
    table.put(&2, b"bob").expect("it works");
    assert_eq!(found(&table, Some(&store.snapshot())).expect("it works"), 1);
}

#[test]
fn what_had_expired_when_an_index_was_built_does_not_come_to_life_behind_its_back() {
    let world = World::new();
    let store = world.create();
    let table = sessions(&store, Keep::Latest);
    table.put(&1, b"ann").expect("it works");
    world.pass(2 * HOUR_MS);
    add_index(&store);
    drop((table, store)); // the process dies, and the wall clock is set back
    world.set(START_MS);
    let store = world.open();
    let table = sessions(&store, Keep::Latest);
    let rows = table.scan().into_iter().count() as u64;
    assert_eq!(found(&table, None).expect("it works"), rows);
}

#[test]
fn what_had_expired_when_an_index_was_cleaned_does_not_come_to_life_behind_its_back() {
    let world = World::new();
    let store = world.create();
    let table = sessions(&store, Keep::Latest);
    add_index(&store);
    table.put(&1, b"ann").expect("it works");
    store.flush().expect("it works");
    world.pass(2 * HOUR_MS);
    compact(&store, "sessions/by_user");
    assert_eq!(store.table_stats("sessions/by_user").expect("it works").records, 0);
    drop((table, store)); // the process dies, and the wall clock is set back
    world.set(START_MS);
    let store = world.open();
    let table = sessions(&store, Keep::Latest);
    let rows = table.scan().into_iter().count() as u64;
    assert_eq!(found(&table, None).expect("it works"), rows);
}

#[test]
fn a_snapshot_of_the_past_that_has_come_to_files_of_its_own_finds_what_was() {
    let world = World::new();
    let store = world.create();
    let rules = Rules::sorted::<u64, u64>().keep(Keep::Window(30_000)).index("by_value", "value");
    let table = store.table("counts", rules).expect("it works");
    let first = table.put(&1, &100).expect("it works");
    world.pass(10_000);
    table.put(&1, &200).expect("it works");
    let past = store.snapshot_at(AsOf::Seq(first)).expect("it works");
    for n in 2..4 {
        world.pass(61_000);
        while store.background_step().expect("it works").is_some() {}
        table.put(&n, &5).expect("it works");
    }
    compact(&store, "counts");
    assert_eq!(past.get(&table, &1).expect("it works"), Some(100));
    let found = table.find("by_value").expect("an index").term(100u64).at(&past).count().expect("it works");
    assert_eq!(found, 1);
}

#[test]
fn time_does_not_go_back_where_a_store_is_repaired() {
    for archive_log in [false, true] {
        let world = World::new();
        let store = world.create();
        let rules = || Rules::sorted::<u64, u64>().expire(Expire::ByWrite).archive_log(archive_log);
        let table = store.table("brief", rules()).expect("it works");
        table.put_expiring(&1, &1, Lifetime::For(Duration::from_millis(HOUR_MS))).expect("it works");
        world.pass(2 * HOUR_MS);
        table.put(&2, &2).expect("it works");
        assert_eq!(table.get(&1).expect("it works"), None);
        drop((table, store)); // the process dies, and the wall clock is set back
        world.set(START_MS);
        let to = world.path.with_extension("repaired");
        let how = folddb::maintenance::RepairOptions::default();
        let how = if archive_log { how.rebuild_index("brief") } else { how };
        Store::repair(&world.path, &to, &how, &world.options(), |_, _| {}).expect("it is repaired");
        let store = Store::open(&to, world.options()).expect("it opens");
        assert!(store.unix_millis() >= START_MS + 2 * HOUR_MS);
        let table = store.table("brief", rules()).expect("it works");
        assert_eq!((table.get(&1).expect("it works"), table.get(&2).expect("it works")), (None, Some(2)));
    }
}

// ---- transactions ---------------------------------------------------------------------------------------------

#[test]
fn a_transaction_conflicts_where_what_it_has_read_has_expired_by_its_commit() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Latest, Expire::After(HOUR_MS));
    table.put(&1, &5).expect("it works");
    let mut transaction = store.transaction();
    assert_eq!(transaction.fold_and_get(&table, &1, &1).expect("it works"), Some(6));
    let mut other = store.transaction();
    assert_eq!(other.get(&table, &2).expect("it works"), None);
    other.put(&table, &3, &1);
    world.pass(2 * HOUR_MS);
    let overtaken = transaction.commit(Durability::Process).expect_err("it was never 6");
    assert_eq!(overtaken.kind(), ErrorKind::Conflict);
    other.commit(Durability::Process).expect("what was absent is");
    let taken = store.transact(Durability::Process, |it| it.fold_and_get(&table, &1, &1)).expect("it works");
    assert_eq!((taken, table.get(&1).expect("it works")), (Some(1), Some(1)));
}

fn dump_of(store: &Store) -> String {
    let mut text = Vec::new();
    store.dump(&[], &mut text).expect("it is dumped");
    String::from_utf8(text).expect("a dump is text")
}

/// Until when the values of these keys last.
fn deadlines(table: &Table<u64, u64>, keys: [u64; 3]) -> [Option<u64>; 3] {
    keys.map(|key| table.head(&key).expect("it is read").expect("it has a value").deadline_ms)
}

#[test]
fn what_is_dumped_and_loaded_lasts_as_long_as_it_did() {
    let hour_ms = 3_600_000;
    for (what, rules, default_ms) in [
        ("by-write", Rules::sorted::<u64, u64>().expire(Expire::ByWrite), None),
        ("an-hour", Rules::sorted::<u64, u64>().expire(Expire::After(hour_ms)), Some(START_MS + hour_ms)),
        ("hashed", Rules::hashed::<u64, u64>().expire(Expire::ByWrite), None),
    ] {
        let world = World::new();
        let store = world.create();
        let table = store.table("t", rules).unwrap();
        table.put_expiring(&1, &1, Lifetime::For(Duration::from_secs(5))).unwrap();
        table.put(&2, &2).unwrap();
        table.put_expiring(&3, &3, Lifetime::Forever).unwrap();
        let text = dump_of(&store);
        world.pass(2_000);
        let load = |name: &str| {
            let loaded = Store::create(world.path.with_file_name(name), world.options()).unwrap();
            loaded.load(&mut text.as_bytes(), &LoadOptions::default()).unwrap();
            loaded
        };
        let loaded = load("loaded");
        let of_loaded = loaded.bytes_table("t").unwrap();
        let head = |key: u64| of_loaded.head(&key.to_be_bytes()).unwrap().map(|head| head.deadline_ms);
        assert_eq!(
            [head(1), head(2), head(3)],
            [Some(Some(START_MS + 5_000)), Some(default_ms), Some(None)],
            "{what}"
        );
        assert_eq!(deadlines(&table, [1, 2, 3]), [Some(START_MS + 5_000), default_ms, None], "{what}");
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.pop(); // the hash, which tells the order of hashed tables too
            lines.sort_unstable();
            lines
        };
        assert_eq!(sorted(&dump_of(&loaded)), sorted(&text), "{what}");
        world.pass(3_000);
        assert_eq!(head(1), None, "{what}");
        let late_store = load("late");
        let late = late_store.bytes_table("t").unwrap();
        assert_eq!(
            (late.get(&1u64.to_be_bytes()).unwrap(), late.scan().count().unwrap()),
            (None, 2),
            "{what}"
        );
    }
}

/// Adds up, but to no more than 10.
struct Brittle;

impl Fold for Brittle {
    fn spec(&self) -> String {
        "brittle".to_owned()
    }
    fn fold(&self, _: &[u8], one: &[u8], other: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        out.extend(one.iter().zip(other).map(|(one, other)| one.saturating_add(*other)));
        if out[0] > 10 { Err(FoldFailure::new("it is too much")) } else { Ok(Outcome::Value) }
    }
}

/// A key whose fold fails lasts as long as its value would.
#[test]
fn ops_that_do_not_fold_are_dumped_with_their_deadline() {
    let world = World::new();
    let create = |name: &str| {
        let options = world.options().custom_fold(Arc::new(Brittle));
        Store::create(world.path.with_file_name(name), options).unwrap()
    };
    let (store, loaded) = (create("store"), create("loaded"));
    let rules = TableRules::new(KeyCodec::Bytes).custom_fold("brittle", 1).expire(Expire::ByWrite);
    let table = store.create_bytes_table("t", rules).unwrap();
    let fold = |operand: u8, seconds| {
        let lifetime = Lifetime::For(Duration::from_secs(seconds));
        table.write_expiring(WriteOp::Fold, b"k", &[operand], lifetime).unwrap()
    };
    fold(9, 5);
    world.pass(1_000);
    fold(2, 9);
    assert_eq!(table.get(b"k").unwrap_err().kind(), ErrorKind::FoldFailed);
    world.pass(6_000); // the first is over, but was not when the second came
    let text = dump_of(&store);
    loaded.load(&mut text.as_bytes(), &LoadOptions::default()).unwrap();
    let again = loaded.bytes_table("t").unwrap();
    assert_eq!(again.get(b"k").unwrap_err().kind(), ErrorKind::FoldFailed);
    assert_eq!(dump_of(&loaded), text);
    world.pass(3_000);
    assert_eq!((again.get(b"k").unwrap(), table.get(b"k").unwrap()), (None, None));
}

/// A dump at a moment is the text that a dump gave then, whatever became of the runs.
#[test]
fn a_dump_at_a_moment_is_what_it_was_then() {
    for (how, shake) in shakes() {
        let world = World::new();
        let store = world.create();
        let table = counts(&store, Keep::Forever, Expire::ByWrite);
        let mut told = Vec::new();
        for round in 0..6u64 {
            for key in 0..5 {
                let lasts = Lifetime::For(Duration::from_secs(5 * (key + 1)));
                table.fold_expiring(&key, &(round + 1), lasts).unwrap();
            }
            table.delete(&(round % 5)).unwrap();
            told.push((store.last_seq(), START_MS + 3_000 * round, dump_of(&store)));
            world.pass(3_000);
        }
        drop(table);
        let store = shake(&world, store);
        for (seq, time_ms, text) in told {
            let mut then = Vec::new();
            let report = store.dump_at(&[], AsOf::UnixMillis(time_ms), &mut then).unwrap();
            assert_eq!((report.seq, String::from_utf8(then).unwrap()), (seq, text), "{how}");
        }
    }
}

#[test]
fn a_dump_at_a_moment_that_is_forgotten_is_refused_before_a_line() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Forever, Expire::Never);
    let latest = store.table("latest", Rules::sorted::<u64, u64>()).unwrap();
    table.fold(&1, &1).unwrap();
    let then = store.last_seq();
    latest.put(&1, &1).unwrap();
    table.fold(&1, &1).unwrap();
    let dump = |tables: &[&str], as_of| {
        let names: Vec<String> = tables.iter().map(|name| (*name).to_owned()).collect();
        let mut text = Vec::new();
        let dumped = store.dump_at(&names, as_of, &mut text);
        assert!(dumped.is_ok() || text.is_empty(), "nothing is written of what is refused");
        dumped.map(|report| report.records)
    };
    for (tables, as_of, why) in [
        (&[][..], AsOf::Seq(then), "table `latest` keeps latest"),
        (&["counts", "latest"], AsOf::Seq(then), "table `latest` keeps latest"),
        (&["counts"], AsOf::Seq(store.last_seq() + 1), "nothing has been written with seq"),
    ] {
        let refused = dump(tables, as_of).unwrap_err();
        assert!(refused.kind() == ErrorKind::InvalidInput && refused.message().contains(why), "{refused}");
    }
    assert_eq!(dump(&["counts"], AsOf::Seq(then)).unwrap(), 1);
    assert_eq!(dump(&[], AsOf::Seq(store.last_seq())).unwrap(), 2);
}

/// Dumps of version 1 know no deadlines; one of version 2 that says none says for ever.
#[test]
fn dumps_of_before_are_loaded_as_they_were() {
    for (version, until_ms) in [(1, Some(START_MS + 60_000)), (2, None)] {
        let world = World::new();
        let store = world.create();
        let table = store.table("t", Rules::sorted::<u64, u64>().expire(Expire::After(60_000))).unwrap();
        table.put(&1, &1).unwrap();
        let rules = dump_of(&store).lines().nth(1).unwrap().to_owned();
        let text =
            format!("{{\"folddb\":\"dump\",\"version\":{version}}}\n{rules}\n{{\"key\":7,\"value\":7}}\n");
        store.load(&mut text.as_bytes(), &LoadOptions::default().over(true).partial(true)).unwrap();
        assert_eq!(table.head(&7).unwrap().unwrap().deadline_ms, until_ms, "version {version}");
    }
    let world = World::new();
    let store = world.create();
    store.table("t", Rules::sorted::<u64, u64>()).unwrap().put(&1, &1).unwrap();
    let text = dump_of(&store);
    assert!(
        text.starts_with("{\"folddb\":\"dump\",\"version\":1}\n"),
        "earlier programs read what needs no more: {text}"
    );
    let text = text.replace("\"value\":1}", "\"value\":1,\"until\":7}").replace("version\":1", "version\":2");
    let wrong = store.load(&mut text.as_bytes(), &LoadOptions::default().over(true)).unwrap_err();
    assert!(wrong.message().contains("line 3") && wrong.message().contains("last for ever"), "{wrong}");
}

#[test]
fn each_op_says_how_long_its_value_lasts() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Latest, Expire::ByWrite);
    let lasts = |seconds| Lifetime::For(Duration::from_secs(seconds));
    let deadline = |key: u64| table.head(&key).unwrap().and_then(|head| head.deadline_ms);
    let until = |seconds: u64| Some(START_MS + seconds * 1000);
    table.put_if_absent_expiring(&1, &1, lasts(5)).unwrap();
    table.put_if_absent_expiring(&1, &9, lasts(50)).unwrap();
    assert_eq!(
        (table.get(&1).unwrap(), deadline(1)),
        (Some(1), until(5)),
        "what is there lasts as long as it did"
    );
    table.fold_expiring(&1, &2, lasts(8)).unwrap();
    assert_eq!((table.get(&1).unwrap(), deadline(1)), (Some(3), until(8)));
    let mut batch = store.batch();
    batch
        .put_expiring(&table, &2, &1, lasts(3))
        .fold_expiring(&table, &2, &1, lasts(4))
        .put_if_absent_expiring(&table, &3, &7, lasts(5));
    batch.commit(Durability::Process).unwrap();
    assert_eq!((table.get(&2).unwrap(), deadline(2), deadline(3)), (Some(2), until(4), until(5)));
    let mut transaction = store.transaction();
    transaction.put_expiring(&table, &4, &1, lasts(3)).fold_expiring(&table, &4, &1, lasts(6));
    assert_eq!(
        transaction.put_if_absent_expiring(&table, &5, &7, lasts(7)).get(&table, &4).unwrap(),
        Some(2)
    );
    transaction.commit(Durability::Process).unwrap();
    assert_eq!((deadline(4), deadline(5)), (until(6), until(7)));
    table.fold(&4, &1).unwrap();
    assert_eq!(deadline(4), None, "a fold that says nothing makes it last for ever");
    let plain = store.table::<u64, u64>("plain", Rules::sorted()).unwrap();
    let mut batch = store.batch();
    batch.fold_expiring(&plain, &1, &1, lasts(5));
    assert!(batch.commit(Durability::Process).unwrap_err().message().contains("last for ever"));
    assert_eq!(plain.put_if_absent_expiring(&1, &1, lasts(5)).unwrap_err().kind(), ErrorKind::InvalidInput);
}

/// What the table keeps is not for any merge to fold, and a record tells its times.
#[test]
fn explain_tells_what_the_table_keeps_and_when() {
    let world = World::new();
    let store = world.create();
    for (name, keep, kept) in [
        ("forever", Keep::Forever, 3),
        ("window", Keep::Window(60_000), 3),
        ("two", Keep::Versions(2), 1),
        ("latest", Keep::Latest, 0),
    ] {
        let rules = Rules::sorted::<u64, u64>().fold("sum:u64").keep(keep).expire(Expire::ByWrite);
        let table = store.table::<u64, u64>(name, rules).unwrap();
        table.put(&1, &1).unwrap();
        for operand in 1..=3 {
            table.fold_expiring(&1, &operand, Lifetime::For(Duration::from_secs(900))).unwrap();
        }
        for _ in 0..2 {
            let told = table.as_bytes().explain(&1u64.to_be_bytes()).unwrap();
            let because = |record: &&folddb::Explained| record.why.contains("the table keeps its past");
            assert_eq!(told.iter().filter(because).count(), kept, "{name}: {told:?}");
            assert!(
                told.iter().filter(because).all(|record| record.why.contains(&format!("keep={keep}"))),
                "{told:?}"
            );
            assert_eq!(
                (told[0].written_ms, told[0].deadline_ms),
                (Some(START_MS), Some(START_MS + 900_000)),
                "{name}"
            );
            compact(&store, name);
            let after = table.as_bytes().explain(&1u64.to_be_bytes()).unwrap();
            assert_eq!(after.len(), kept + 1, "{name}: {after:?}");
        }
    }
}

#[test]
fn a_snapshot_at_the_present_finds_what_was_when_it_has_come_to_files_of_its_own() {
    let world = World::new();
    let store = world.create();
    let table =
        store.table("plain", Rules::sorted::<u64, u64>().index("by_value", "value")).expect("it works");
    table.put(&1, &100).expect("it works");
    let past = store.snapshot_at(AsOf::Seq(store.last_seq())).expect("it works");
    for n in 1..3 {
        world.pass(61_000);
        while store.background_step().expect("it works").is_some() {}
        table.put(&n, &200).expect("it works");
    }
    compact(&store, "plain");
    assert_eq!(past.get(&table, &1).expect("it works"), Some(100));
    let found = table.find("by_value").expect("an index").term(100u64).at(&past).count().expect("it works");
    assert_eq!(found, 1);
}

#[test]
fn where_versions_are_kept_what_has_expired_is_found_at_a_time_when_it_lived() {
    let world = World::new();
    let store = world.create();
    let table = sessions(&store, Keep::Versions(2));
    add_index(&store);
    table.put(&1, b"ann").expect("it works");
    let alive_ms = store.unix_millis();
    store.flush().expect("it works");
    world.pass(2 * HOUR_MS);
    compact(&store, "sessions/by_user");
    let past = store.snapshot_at(AsOf::UnixMillis(alive_ms)).expect("it works");
    let rows = past.scan(&table).into_iter().count() as u64;
    assert_eq!((rows, found(&table, Some(&past)).expect("it works")), (1, 1));
    assert_eq!(found(&table, None).expect("it works"), 0);
}

#[test]
fn a_strict_cursor_of_a_hashed_table_tells_that_values_have_expired_since() {
    let world = World::new();
    let store = world.create();
    let rules = Rules::hashed::<u64, u64>().expire(Expire::After(HOUR_MS));
    let table = store.table("hashed", rules).expect("it works");
    for key in 0..10 {
        table.put(&key, &key).expect("it works");
    }
    let snapshot = store.snapshot();
    let mut rows = snapshot.scan(&table).into_iter();
    assert_eq!(rows.by_ref().take(4).count(), 4);
    let cursor = rows.cursor().expect("it works");
    drop(rows);
    let rest = || -> Result<usize, ErrorKind> {
        let rest = table.resume(&cursor, Resume::Strict).map_err(|error| error.kind())?;
        Ok(rest.into_iter().inspect(|row| assert!(row.is_ok())).count())
    };
    assert_eq!(rest(), Ok(6));
    world.pass(2 * HOUR_MS);
    assert_eq!(rest(), Ok(6), "the snapshot lives");
    drop(snapshot);
    assert_eq!(rest(), Err(ErrorKind::SnapshotTooOld));
}
