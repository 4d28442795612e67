//! Snapshots that grow old: they read pinned files, and merges no longer wait for them; and they
//! end, where they may not live longer.
#![allow(clippy::unwrap_used)]

mod common;

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use common::{compact, drain};
use folddb::{
    AsOf, BackgroundWork, Durability, ErrorKind, Keep, Options, Resume, Rules, Snapshot, Store, Table,
};

fn options(files_after: Duration) -> Options {
    Options::default()
        .memory_bytes(4 << 20)
        .tuning(|t| t.value_segment_bytes(128 << 10).snapshot_files_after(files_after))
        .background(BackgroundWork::Manual)
}

const AT_ONCE: Duration = Duration::ZERO;
const LATE: Duration = Duration::from_secs(3600);

fn create(options: Options) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options).unwrap();
    (dir, store)
}

fn text(key: u64, round: u64) -> Vec<u8> {
    vec![(key * 7 + round) as u8; 200 + (key % 90) as usize]
}

struct Tables {
    sums: Table<u64, u64>,
    texts: Table<u64, Vec<u8>>,
    blobs: Table<u64, Vec<u8>>,
}

impl Tables {
    fn of(store: &Store) -> Tables {
        Tables {
            sums: store.table("sums", Rules::sorted().fold("sum:u64")).unwrap(),
            texts: store.table("texts", Rules::sorted().separate(100)).unwrap(),
            blobs: store.table("blobs", Rules::hashed()).unwrap(),
        }
    }

    fn write(&self, round: u64) {
        for key in 0..500u64 {
            self.sums.fold(&key, &round).unwrap();
            self.texts.put(&key, &text(key, round)).unwrap();
            self.blobs.put(&key, &text(key, round + 1)).unwrap();
        }
        self.texts.delete_range(&(round * 3), &(round * 3 + 2)).unwrap();
    }

    /// A snapshot sees the state after the rounds up to this one.
    fn check(&self, snapshot: &Snapshot, round: u64) {
        let sum = (0..=round).sum::<u64>();
        let sums: Vec<_> = snapshot.scan(&self.sums).into_iter().map(Result::unwrap).collect();
        assert_eq!(sums, (0..500).map(|key| (key, sum)).collect::<Vec<_>>());
        let is_there = |key: &u64| !(round * 3..round * 3 + 2).contains(key);
        let texts: Vec<_> = snapshot.scan(&self.texts).reverse().into_iter().map(Result::unwrap).collect();
        let expected: Vec<_> = (0..500).rev().filter(is_there).map(|key| (key, text(key, round))).collect();
        assert!(texts == expected, "round {round}");
        for key in (0..500).step_by(7) {
            assert_eq!(snapshot.get(&self.sums, &key).unwrap(), Some(sum));
            assert_eq!(snapshot.get(&self.texts, &key).unwrap(), is_there(&key).then(|| text(key, round)));
            assert_eq!(snapshot.get(&self.blobs, &key).unwrap(), Some(text(key, round + 1)));
        }
    }
}

fn part_files(dir: &Path) -> usize {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".part")).count()
}

#[test]
fn old_snapshots_go_on_reading_while_merges_keep_nothing_for_them() {
    for files_after in [AT_ONCE, LATE] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let store = Store::create(&path, options(files_after)).unwrap();
        let tables = Tables::of(&store);
        let mut snapshots = Vec::new();
        for round in 0..6 {
            tables.write(round);
            snapshots.push(store.snapshot());
            drain(&store);
            store.flush().unwrap();
            drain(&store);
            snapshots.iter().zip(0..).for_each(|(snapshot, round)| tables.check(snapshot, round));
        }
        compact(&store, "sums");
        compact(&store, "texts");
        store.reclaim().unwrap();
        snapshots.iter().zip(0..).for_each(|(snapshot, round)| tables.check(snapshot, round));
        let (stats, records) = (store.stats(), store.bytes_table("sums").unwrap().stats().unwrap().records);
        assert_eq!(stats.snapshots.live, 6);
        if files_after == AT_ONCE {
            assert_eq!((stats.snapshots.in_files, records), (6, 500), "a record a key, whoever looks back");
            assert!(stats.disk.snapshot_file_bytes > 0);
        } else {
            assert_eq!((stats.snapshots.in_files, stats.disk.snapshot_file_bytes), (0, 0));
            assert_eq!(records, 6 * 500, "a record a key and snapshot");
        }
        drop(snapshots);
        assert_eq!(store.stats().disk.snapshot_file_bytes, 0);
        compact(&store, "sums");
        compact(&store, "texts");
        assert_eq!(part_files(&path), 2, "what was kept for them goes with them");
    }
}

/// One of the tables has nothing to be flushed, and the others have not been yet.
#[test]
fn a_snapshot_gets_pinned_files_once_all_that_it_sees_is_in_runs() {
    let (_dir, store) = create(options(AT_ONCE));
    let sums = |name| store.table::<u64, u64>(name, Rules::sorted().fold("sum:u64")).unwrap();
    let tables = ["first", "second", "unwritten"].map(sums);
    for key in 0..100 {
        tables[..2].iter().for_each(|table| assert!(table.fold(&key, &1).is_ok()));
    }
    let snapshot = store.snapshot();
    let counts = || tables.each_ref().map(|table| snapshot.scan(table).count().unwrap());
    tables[..2].iter().for_each(|table| assert!(table.fold(&200, &1).is_ok()));
    assert_eq!(counts(), [100, 100, 0]);
    while store.background_step().unwrap().is_some() {
        assert_eq!(counts(), [100, 100, 0], "{} in files", store.stats().snapshots.in_files);
    }
    assert_eq!((counts(), store.stats().snapshots.in_files), ([100, 100, 0], 1));
}

#[test]
fn a_table_that_came_later_or_is_gone_is_no_trouble_to_an_old_snapshot() {
    let (_dir, store) = create(options(AT_ONCE));
    let tables = Tables::of(&store);
    tables.write(0);
    let snapshot = store.snapshot();
    drain(&store);
    store.flush().unwrap();
    drain(&store);
    assert_eq!(store.stats().snapshots.in_files, 1);
    let later = store.table("later", Rules::sorted::<u64, u64>()).unwrap();
    later.put(&1, &2).unwrap();
    assert_eq!((snapshot.get(&later, &1).unwrap(), snapshot.scan(&later).count().unwrap()), (None, 0));
    store.drop_table("sums").unwrap();
    assert_eq!(snapshot.get(&tables.sums, &1).unwrap_err().kind(), ErrorKind::Closed);
    tables.texts.put(&9, &vec![1]).unwrap();
    assert_eq!(snapshot.get(&tables.texts, &9).unwrap(), Some(text(9, 0)));
    store.close().unwrap();
    assert_eq!(snapshot.get(&tables.texts, &9).unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_snapshot_that_is_too_old_says_so_and_holds_nothing() {
    let (_dir, store) = create(options(LATE).snapshot_age_max(Some(AT_ONCE)));
    let tables = Tables::of(&store);
    tables.write(0);
    let snapshot = store.snapshot();
    tables.check(&snapshot, 0);
    let mut rows = snapshot.scan(&tables.sums).into_iter();
    assert!(rows.next().is_some());
    drain(&store);
    let gone = snapshot.get(&tables.sums, &1).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::SnapshotTooOld, "{gone}");
    assert!(snapshot.scan(&tables.sums).count().is_err() && snapshot.get(&tables.blobs, &1).is_err());
    assert_eq!(rows.count(), 499, "a scan under way ends as it began");
    tables.check(&store.snapshot(), 0); // another one, of the same moment
    tables.write(1);
    store.flush().unwrap();
    compact(&store, "sums");
    assert_eq!(store.bytes_table("sums").unwrap().stats().unwrap().records, 500);
}

/// All in one thread: a wait for another thread would last forever.
#[test]
fn leveled_clones_and_snapshots_never_block() {
    for files_after in [AT_ONCE, LATE] {
        let (_dir, store) = create(options(files_after));
        let tables = Tables::of(&store);
        tables.write(0);
        let (mut snapshots, mut scans) = (Vec::new(), Vec::new());
        for round in 1..5 {
            let snapshot = store.snapshot();
            let mut scan = snapshot.scan(&tables.sums).into_iter();
            assert!(scan.next().is_some());
            snapshots.push(snapshot);
            scans.push(scan);
            tables.write(round);
            store.flush().unwrap();
            drain(&store);
            compact(&store, "texts");
            store.reclaim().unwrap();
        }
        snapshots.iter().zip(0..).for_each(|(snapshot, round)| tables.check(snapshot, round));
        for (scan, round) in scans.into_iter().zip(0u64..) {
            let sum = (0..=round).sum::<u64>();
            assert!(scan.map(Result::unwrap).all(|(_, value)| value == sum));
        }
    }
}

#[test]
fn the_aggregate_at_an_old_snapshot_is_of_what_it_sees() {
    let (_dir, store) = create(options(AT_ONCE));
    let rules = Rules::sorted::<u64, u64>().fold("sum:u64").summaries(true);
    let table = store.table("told", rules).unwrap();
    for key in 0..20_000 {
        table.put(&key, &1).unwrap();
    }
    compact(&store, "told");
    let snapshot = store.snapshot();
    drain(&store);
    assert_eq!(store.stats().snapshots.in_files, 1);
    table.delete_range(&100, &200).unwrap();
    for key in 5000..30_000 {
        table.put(&key, &7).unwrap();
    }
    compact(&store, "told");
    let found = snapshot.scan(&table).aggregate().unwrap();
    assert_eq!((found.rows, found.value), (20_000, Some(20_000)));
    assert!(found.cost.part_summaries > 0, "{:?}", found.cost);
    assert_eq!(snapshot.scan(&table).count().unwrap(), 20_000);
    let pieces = snapshot.scan(table.as_bytes()).split(4).unwrap();
    assert_eq!(pieces.into_iter().map(|piece| piece.count().unwrap()).sum::<u64>(), 20_000);
}

#[test]
fn a_transaction_that_has_grown_old_meets_what_was_deleted_since() {
    for age_max in [None, Some(AT_ONCE)] {
        let (_dir, store) = create(options(AT_ONCE).snapshot_age_max(age_max));
        let tables = Tables::of(&store);
        tables.write(1);
        let mut transaction = store.transaction();
        assert_eq!(transaction.get(&tables.sums, &7).unwrap(), Some(1));
        transaction.put(&tables.sums, &8, &100);
        let mut blind = store.transaction();
        blind.fold(&tables.sums, &9, &100);
        tables.sums.delete(&7).unwrap();
        drain(&store);
        store.flush().unwrap();
        drain(&store);
        compact(&store, "sums"); // a delete at the bottom leaves nothing to be found, unless there is a reader below it
        let kind = transaction.commit(Durability::Process).unwrap_err().kind();
        let expected = if age_max.is_some() { ErrorKind::SnapshotTooOld } else { ErrorKind::Conflict };
        assert_eq!((kind, tables.sums.get(&8).unwrap()), (expected, Some(1)));
        blind.commit(Durability::Process).unwrap(); // it has read nothing that may have changed
        assert_eq!(tables.sums.get(&9).unwrap(), Some(101));
    }
}

/// Once a snapshot is no boundary, what it read may be merged with what came later and have its
/// seq. A key that nobody has written to would then seem to be overtaken.
#[test]
fn a_transaction_that_has_ended_is_too_old_and_not_overtaken() {
    let (_dir, store) = create(options(LATE).snapshot_age_max(Some(AT_ONCE)));
    let tables = Tables::of(&store);
    tables.sums.put(&7, &1).unwrap();
    store.flush().unwrap();
    tables.sums.put(&9, &1).unwrap();
    let mut transaction = store.transaction();
    assert_eq!(transaction.get(&tables.sums, &7).unwrap(), Some(1));
    transaction.put(&tables.sums, &8, &100);
    tables.sums.delete(&11).unwrap();
    drain(&store); // it ends
    store.flush().unwrap();
    compact(&store, "sums");
    let error = transaction.commit(Durability::Process).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SnapshotTooOld, "{error}");
}

#[test]
fn the_past_of_a_table_can_be_read_at_the_seq_of_a_snapshot_that_has_ended() {
    let (_dir, store) = create(options(LATE).snapshot_age_max(Some(AT_ONCE)));
    let rules = Rules::sorted::<u64, u64>().fold("sum:u64");
    let (kept, plain) = (rules.clone().keep(Keep::Forever), rules);
    let (kept, plain) = (store.table("kept", kept).unwrap(), store.table("plain", plain).unwrap());
    let fold = || [&kept, &plain].map(|table| table.fold(&1, &1).unwrap());
    fold();
    let ended = store.snapshot();
    fold();
    drain(&store);
    assert!(ended.has_ended());
    store.flush().unwrap();
    let past = store.snapshot_at(AsOf::Seq(ended.seq())).unwrap();
    assert!(!past.has_ended() && ended.has_ended());
    assert_eq!(past.get(&kept, &1).unwrap(), Some(1));
    assert_eq!(past.get(&plain, &1).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(ended.get(&kept, &1).unwrap_err().kind(), ErrorKind::SnapshotTooOld);
}

#[test]
fn work_under_way_does_not_end_for_its_age() {
    let (_dir, store) = create(options(LATE).snapshot_age_max(Some(AT_ONCE)));
    let tables = Tables::of(&store);
    tables.write(0);
    store.settle().unwrap();
    let go_on = || {
        tables.sums.fold(&1, &1).unwrap();
        tables.blobs.put(&3, &vec![1]).unwrap();
        drain(&store);
    };
    let step = |rows: &mut u64, _: &[u8], _: &[u8]| {
        *rows += 1;
        if rows.is_multiple_of(100) {
            go_on();
        }
        ControlFlow::Continue(())
    };
    let rows = tables.sums.as_bytes().scan().fold_rows(1, || 0, step, |a, b| a + b).unwrap();
    assert_eq!(rows, 500);
    let mut walk = tables.blobs.scan().into_iter();
    assert!(walk.next().is_some_and(|row| row.is_ok()));
    go_on();
    assert_eq!(walk.map(Result::unwrap).count(), 499);
    let found = store.dump(&[], &mut std::io::sink()).unwrap();
    assert_eq!(found.records, 500 + 498 + 500);
}

/// Its records may be removed as soon as nothing holds them.
#[test]
fn a_walk_over_a_hashed_table_ends_with_its_snapshot() {
    let (_dir, store) = create(options(LATE).snapshot_age_max(Some(AT_ONCE)));
    let tables = Tables::of(&store);
    tables.write(0);
    store.flush().unwrap();
    let snapshot = store.snapshot();
    let mut walk = snapshot.scan(&tables.blobs).into_iter();
    assert!(walk.next().is_some_and(|row| row.is_ok()));
    (1..4).for_each(|round| tables.write(round));
    drain(&store);
    store.flush().unwrap();
    store.reclaim().unwrap();
    drain(&store);
    let kinds: Vec<_> = walk.filter_map(Result::err).map(|error| error.kind()).collect();
    assert!(kinds.iter().all(|kind| *kind == ErrorKind::SnapshotTooOld), "{kinds:?}");
}

#[test]
fn an_old_snapshot_keeps_what_it_sees_and_nothing_that_came_later() {
    let (dir, store) = create(options(AT_ONCE));
    let tables = Tables::of(&store);
    tables.write(0);
    store.settle().unwrap();
    let snapshot = store.snapshot();
    drain(&store);
    for round in 1..5 {
        tables.write(round);
        store.settle().unwrap();
        compact(&store, "texts");
        store.reclaim().unwrap();
    }
    tables.check(&snapshot, 0);
    let bytes = || -> u64 {
        let files = std::fs::read_dir(dir.path().join("store")).unwrap();
        let of_values = |name: &str| name.ends_with(".values") || name.ends_with(".moved");
        let lens = files.map(Result::unwrap).filter(|file| of_values(&file.file_name().to_string_lossy()));
        lens.map(|file| file.metadata().unwrap().len()).sum()
    };
    // The values of both tables are next to each other.
    let (kept, of_one_round) = (store.stats().disk.snapshot_file_bytes, 2 * 500 * 245);
    assert!(kept > of_one_round && kept < of_one_round * 2, "{kept} bytes are kept for {of_one_round}");
    let before = bytes();
    store.drop_table("sums").unwrap();
    store.drop_table("texts").unwrap();
    assert_eq!(snapshot.get(&tables.texts, &9).unwrap_err().kind(), ErrorKind::Closed);
    let without_tables = store.stats().disk.snapshot_file_bytes;
    drop(snapshot);
    let freed = before - bytes();
    assert!(freed <= kept, "{freed} bytes of values went with it, and {kept} were said to");
    assert!(without_tables < kept, "runs of tables that are gone are kept for nobody");
}

/// A load takes no seqs, so a snapshot from before it may have the seq of its rows, and then sees
/// them, whether it had pinned files when the table was created, or gets them later.
#[test]
fn a_loaded_table_is_seen_by_each_snapshot_that_is_not_older_than_its_rows() {
    for (files_after, keep) in
        [AT_ONCE, LATE].into_iter().flat_map(|age| [(age, Keep::Latest), (age, Keep::Forever)])
    {
        let (_dir, store) = create(options(files_after));
        let rules = || Rules::sorted::<u64, u64>().fold("sum:u64").keep(keep);
        let sums = store.table("sums", rules()).unwrap();
        sums.fold(&1, &1).unwrap();
        let older = store.snapshot();
        sums.fold(&1, &1).unwrap();
        let old = store.snapshot();
        let mut load = store.bulk_load("loaded", rules()).unwrap();
        sums.fold(&1, &1).unwrap();
        let meanwhile = store.snapshot();
        drain(&store);
        let in_files = if files_after == AT_ONCE { 3 } else { 0 };
        assert_eq!(store.stats().snapshots.in_files, in_files);
        (0..100u64).for_each(|number| load.put(&number, &number).unwrap());
        let loaded = load.finish().unwrap();
        let check = || {
            for (snapshot, rows, sum) in [(&older, 0, 1), (&old, 100, 2), (&meanwhile, 100, 3)] {
                assert_eq!(snapshot.scan(&loaded).count().unwrap(), rows, "{files_after:?} {keep:?}");
                assert_eq!(snapshot.get(&loaded, &7).unwrap(), (rows > 0).then_some(7));
                assert_eq!(snapshot.get(&sums, &1).unwrap(), Some(sum));
            }
        };
        check();
        let young = store.snapshot();
        assert_eq!(young.scan(&loaded).count().unwrap(), 100);
        drain(&store);
        assert_eq!(young.get(&loaded, &7).unwrap(), Some(7));
        for round in 0..3 {
            for number in 0..200u64 {
                loaded.fold(&number, &1000).unwrap();
            }
            loaded.delete_range(&(round * 7), &(round * 7 + 3)).unwrap();
            drain(&store);
            store.flush().unwrap();
            drain(&store);
            check();
        }
        compact(&store, "loaded");
        check();
        let kept = store.stats().disk.snapshot_file_bytes;
        store.drop_table("loaded").unwrap();
        assert!(store.stats().disk.snapshot_file_bytes < kept || files_after == LATE);
        assert_eq!(old.get(&loaded, &7).unwrap_err().kind(), ErrorKind::Closed);
    }
}

/// A strict cursor that finds a snapshot of its seq reads the same as that snapshot.
#[test]
fn a_strict_cursor_of_a_loaded_table_resumes_at_a_snapshot_older_than_the_load() {
    for keep in [Keep::Latest, Keep::Forever] {
        let (_dir, store) = create(options(AT_ONCE));
        let rules = || Rules::sorted::<u64, u64>().fold("sum:u64").keep(keep);
        let sums = store.table("sums", rules()).unwrap();
        sums.fold(&1, &1).unwrap();
        let old = store.snapshot();
        drain(&store);
        assert_eq!(store.stats().snapshots.in_files, 1);
        let mut load = store.bulk_load("loaded", rules()).unwrap();
        (0..100u64).for_each(|number| load.put(&number, &number).unwrap());
        let loaded = load.finish().unwrap();
        let mut scan = loaded.scan().into_iter();
        (0..10).for_each(|_| assert!(scan.next().unwrap().is_ok()));
        let cursor = scan.cursor().unwrap();
        sums.fold(&1, &1).unwrap();
        let rest = loaded.resume(&cursor, Resume::Strict).unwrap();
        assert_eq!(rest.count().unwrap(), 90, "{keep:?}");
        assert_eq!(old.get(&sums, &1).unwrap(), Some(1));
    }
}

/// Rows that are loaded before anything is written have the seq 0, and so has the snapshot.
#[test]
fn a_snapshot_of_before_the_first_write_keeps_what_was_loaded_by_then() {
    for files_after in [AT_ONCE, LATE] {
        let (_dir, store) = create(options(files_after));
        let mut load = store.bulk_load("loaded", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
        (0..100u64).for_each(|number| load.put(&number, &number).unwrap());
        let loaded = load.finish().unwrap();
        let snapshot = store.snapshot();
        assert_eq!(snapshot.seq(), folddb::Seq::default());
        for _ in 0..3 {
            for number in 0..100u64 {
                loaded.fold(&number, &1000).unwrap();
            }
            loaded.delete(&7).unwrap();
            store.flush().unwrap();
        }
        compact(&store, "loaded");
        let rows: Vec<_> = snapshot.scan(&loaded).into_iter().map(Result::unwrap).collect();
        assert_eq!(rows, (0..100).map(|number| (number, number)).collect::<Vec<_>>(), "{files_after:?}");
        drain(&store);
        assert_eq!(snapshot.get(&loaded, &7).unwrap(), Some(7));
    }
}
