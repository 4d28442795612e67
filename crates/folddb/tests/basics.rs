//! The store as a user sees it: write, read, scan, snapshot, reopen.
#![allow(clippy::unwrap_used)]

mod common;

use common::{drain, fresh, manual};
use folddb::{BackgroundWork, Durability, ErrorKind, Options, Rules, Store, WriteOp};

#[test]
fn folds_are_blind_and_read_as_their_sum() {
    let (_dir, store) = fresh(manual());
    let hits = store.table("hits", Rules::sorted::<String, u64>().fold("sum:u64")).unwrap();
    for n in 0..10_000u64 {
        hits.fold(&format!("page{}", n % 7), &n).unwrap();
    }
    let expected = |page: u64| (0..10_000).filter(|n| n % 7 == page).sum::<u64>();
    for round in 0..3 {
        for page in 0..7 {
            let key = format!("page{page}");
            assert_eq!(hits.get(&key).unwrap(), Some(expected(page)), "round {round}");
        }
        assert_eq!(hits.get("page9").unwrap(), None);
        store.flush().unwrap();
        drain(&store);
    }
    assert!(store.stats().reads.bytes > 0, "the last round read from runs");
}

#[test]
fn the_four_ops_mean_what_they_say_across_flushes() {
    let (_dir, store) = fresh(manual());
    let table = store.table("t", Rules::sorted::<String, u64>().fold("sum:u64")).unwrap();
    let flush = || store.flush().unwrap();
    table.put_if_absent("a", &5).unwrap();
    flush();
    table.fold("a", &2).unwrap();
    flush();
    table.put_if_absent("a", &100).unwrap();
    assert_eq!(table.get("a").unwrap(), Some(7));
    flush();
    table.delete("a").unwrap();
    flush();
    assert_eq!(table.get("a").unwrap(), None);
    table.fold("a", &3).unwrap();
    assert_eq!(table.get("a").unwrap(), Some(3));
    table.put("a", &1).unwrap();
    flush();
    drain(&store);
    store.bytes_table("t").unwrap().compact().unwrap();
    assert_eq!(table.get("a").unwrap(), Some(1));
}

#[test]
fn scans_go_both_ways_with_all_bounds() {
    let (_dir, store) = fresh(manual());
    let table = store.table("t", Rules::sorted::<u64, u64>()).unwrap();
    for n in (0..3000u64).rev() {
        table.put(&(n * 2), &n).unwrap();
        if n % 700 == 0 {
            store.flush().unwrap();
        }
    }
    let keys = |scan: folddb::Scan<u64, u64>| scan.into_iter().map(|row| row.unwrap().0).collect::<Vec<_>>();
    assert_eq!(keys(table.scan()).len(), 3000);
    assert_eq!(keys(table.scan().from(&10).before(&16)), [10, 12, 14]);
    assert_eq!(keys(table.scan().after(&10).through(&16)), [12, 14, 16]);
    assert_eq!(keys(table.scan().from(&11).before(&15).reverse()), [14, 12]);
    assert_eq!(keys(table.scan().from(&5990)), [5990, 5992, 5994, 5996, 5998]);
    assert_eq!(keys(table.scan().reverse().limit(2)), [5998, 5996]);
    let mut backward = keys(table.scan().reverse());
    backward.reverse();
    assert_eq!(backward, keys(table.scan()));
}

#[test]
fn what_was_written_is_there_after_reopening_with_and_without_close() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.folddb");
    let rules = || Rules::sorted::<u64, u64>().fold("sum:u64");
    let store = Store::create(&path, manual()).unwrap();
    let table = store.table("t", rules()).unwrap();
    let mut expected = 0;
    for round in 0..6u64 {
        let (store, table) = if round == 0 {
            (store.clone(), table.clone())
        } else {
            let store = Store::open(&path, manual()).unwrap();
            let table = store.table("t", rules()).unwrap();
            (store, table)
        };
        if round > 0 {
            assert_eq!(table.get(&1).unwrap(), Some(expected), "round {round}");
        }
        for n in 0..100 {
            table.fold(&1, &n).unwrap();
            expected += n;
        }
        if round % 2 == 0 && round > 0 {
            store.close().unwrap();
        }
        if round == 0 {
            break;
        }
    }
    drop((store, table));
    for round in 1..6u64 {
        let store = Store::open(&path, manual()).unwrap();
        let table = store.table("t", rules()).unwrap();
        assert_eq!(table.get(&1).unwrap(), Some(expected), "round {round}");
        for n in 0..100 {
            table.fold(&1, &n).unwrap();
            expected += n;
        }
        if round % 2 == 0 {
            store.close().unwrap();
        }
    }
}

#[test]
fn closing_without_a_flush_writes_no_run_and_the_log_has_every_row() {
    for durability in [Durability::Buffered, Durability::Process, Durability::Sync] {
        for background in [BackgroundWork::Manual, BackgroundWork::Threads] {
            let (dir, store) = fresh(Options::default().background(background));
            let path = store.path().to_owned();
            let table = store.table("t", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
            table.fold(&0, &1).unwrap();
            store.flush().unwrap();
            for n in 0..1000u64 {
                let mut batch = store.batch();
                batch.fold(&table, &(n % 100), &n).delete(&table, &200);
                batch.commit(durability).unwrap();
            }
            let before = runs_of(&path);
            let last = store.last_seq();
            store.clone().close_without_flush().unwrap();
            assert_eq!(table.get(&1).unwrap_err().kind(), ErrorKind::Closed);
            store.close_without_flush().unwrap(); // a second time does nothing
            assert_eq!(runs_of(&path), before, "{durability:?}, {background:?}");

            let store = Store::open(&path, manual()).unwrap();
            assert_eq!(store.last_seq(), last, "{durability:?}, {background:?}");
            assert!(store.stats().memory.memtable_bytes > 0, "the log was replayed into memory");
            let rows: Vec<(u64, u64)> = store
                .open_table::<u64, u64>("t")
                .unwrap()
                .scan()
                .into_iter()
                .map(|row| row.unwrap())
                .collect();
            let expected = |key: u64| (0..1000).filter(|n| n % 100 == key).sum::<u64>() + u64::from(key == 0);
            assert_eq!(rows, (0..100).map(|key| (key, expected(key))).collect::<Vec<_>>());
            drop((store, dir));
        }
    }
}

/// The files of a store that are parts of runs, and their lengths.
fn runs_of(path: &std::path::Path) -> Vec<(String, u64)> {
    let mut runs: Vec<_> = std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len()))
        .filter(|(name, _)| name.ends_with(".part"))
        .collect();
    runs.sort();
    assert!(!runs.is_empty(), "{}", path.display());
    runs
}

#[test]
fn a_snapshot_sees_the_store_as_it_was() {
    let (_dir, store) = fresh(manual());
    let table = store.table("t", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    let other = store.table("o", Rules::sorted::<u64, u64>()).unwrap();
    let mut snapshots = Vec::new();
    for n in 1..=20u64 {
        let mut batch = store.batch();
        batch.fold(&table, &1, &n).put(&other, &1, &n);
        batch.commit(Durability::Process).unwrap();
        snapshots.push((n, store.snapshot()));
        if n % 3 == 0 {
            store.flush().unwrap();
        }
    }
    drain(&store);
    store.bytes_table("t").unwrap().compact().unwrap();
    for (n, snapshot) in &snapshots {
        assert_eq!(snapshot.get(&table, &1).unwrap(), Some(n * (n + 1) / 2), "at {n}");
        assert_eq!(snapshot.get(&other, &1).unwrap(), Some(*n));
        let rows: Vec<_> = snapshot.scan(&table).reverse().into_iter().map(|row| row.unwrap()).collect();
        assert_eq!(rows, [(1, n * (n + 1) / 2)]);
    }
    snapshots.clear();
    store.bytes_table("t").unwrap().compact().unwrap();
    assert_eq!(table.get(&1).unwrap(), Some(210));
}

#[test]
fn a_range_delete_hides_what_was_and_not_what_comes() {
    let (_dir, store) = fresh(manual());
    let table = store.table("t", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    for n in 0..100 {
        table.fold(&n, &1).unwrap();
        if n == 50 {
            store.flush().unwrap();
        }
    }
    let before = store.snapshot();
    table.delete_range(&10, &60).unwrap();
    table.fold(&20, &7).unwrap();
    let check = |when: &str| {
        assert_eq!(table.get(&10).unwrap(), None, "{when}");
        assert_eq!(table.get(&59).unwrap(), None, "{when}");
        assert_eq!(table.get(&60).unwrap(), Some(1), "{when}");
        assert_eq!(table.get(&20).unwrap(), Some(7), "{when}");
        assert_eq!(table.scan().count().unwrap(), 51, "{when}");
        assert_eq!(before.get(&table, &20).unwrap(), Some(1), "{when}");
        assert_eq!(before.scan(&table).count().unwrap(), 100, "{when}");
    };
    check("in memory");
    store.flush().unwrap();
    check("flushed");
    drain(&store);
    store.bytes_table("t").unwrap().compact().unwrap();
    check("compacted");
}

#[test]
fn mistakes_are_named_and_lose_nothing() {
    let (dir, store) = fresh(manual());
    let path = dir.path().join("s.folddb");
    let kind = |error: folddb::Error| error.kind();
    store.table("t", Rules::sorted::<String, u64>().fold("sum:u64")).unwrap();
    let wrong_fold = store.table("t", Rules::sorted::<String, u64>().fold("max:u64")).unwrap_err();
    assert_eq!(wrong_fold.kind(), ErrorKind::RulesMismatch);
    assert!(
        wrong_fold.to_string().contains("sum:u64") && wrong_fold.to_string().contains("max:u64"),
        "{wrong_fold}"
    );
    assert_eq!(
        kind(store.table("t", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap_err()),
        ErrorKind::RulesMismatch
    );
    assert_eq!(kind(store.bytes_table("nope").unwrap_err()), ErrorKind::TableNotFound);
    assert_eq!(kind(Store::open(&path, manual()).unwrap_err()), ErrorKind::Locked);
    assert_eq!(kind(Store::create(&path, manual()).unwrap_err()), ErrorKind::AlreadyExists);
    assert_eq!(kind(Store::open(dir.path().join("typo"), manual()).unwrap_err()), ErrorKind::StoreNotFound);
    assert!(!dir.path().join("typo").exists());
    let table = store.bytes_table("t").unwrap();
    assert_eq!(kind(table.write(WriteOp::Fold, b"k", b"three").unwrap_err()), ErrorKind::InvalidInput);
    assert_eq!(
        kind(table.write(WriteOp::Delete, &vec![0; 70_000], b"").unwrap_err()),
        ErrorKind::InvalidInput
    );
    let bad_spec = store.table("u", Rules::sorted::<String, u64>().fold("sun:u64")).unwrap_err();
    assert_eq!(bad_spec.kind(), ErrorKind::InvalidInput);
    assert_eq!(store.tables(), ["t"]);
}

#[test]
fn a_dropped_table_is_gone_and_its_handles_say_so() {
    let (dir, store) = fresh(manual());
    let table = store.table("t", Rules::sorted::<u64, u64>()).unwrap();
    table.put(&1, &1).unwrap();
    store.flush().unwrap();
    table.put(&2, &2).unwrap();
    store.drop_table("t").unwrap();
    assert_eq!(table.get(&1).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(table.put(&1, &1).unwrap_err().kind(), ErrorKind::Closed);
    let again = store.table("t", Rules::sorted::<u64, u64>()).unwrap();
    assert_eq!(again.scan().count().unwrap(), 0);
    drop((again, table, store));
    let store = Store::open(dir.path().join("s.folddb"), manual()).unwrap();
    assert_eq!(store.bytes_table("t").unwrap().scan().count().unwrap(), 0);
}

#[test]
fn range_deletes_go_when_nothing_older_is_left() {
    let (_dir, store) = fresh(manual());
    let table = store.table("t", Rules::sorted::<u64, u64>()).unwrap();
    for n in 0..100 {
        table.put(&n, &n).unwrap();
    }
    store.flush().unwrap();
    let snapshot = store.snapshot();
    table.delete_range(&0, &50).unwrap();
    table.put(&200, &1).unwrap();
    let compact = || store.bytes_table("t").unwrap().compact().unwrap();
    compact();
    assert_eq!(
        store.bytes_table("t").unwrap().stats().unwrap().range_deletes,
        1,
        "a snapshot still needs what it hides"
    );
    assert_eq!(snapshot.scan(&table).count().unwrap(), 100);
    drop(snapshot);
    table.put(&201, &1).unwrap();
    compact();
    assert_eq!(store.bytes_table("t").unwrap().stats().unwrap().range_deletes, 0);
    assert_eq!(table.scan().count().unwrap(), 52);
}

#[test]
fn tuples_bound_scans_by_their_first_elements() {
    let (_dir, store) = fresh(manual());
    for (name, rules) in [("up", Rules::sorted::<(String, u64), u64>()), ("down", Rules::sorted().reversed())]
    {
        let table = store.table(name, rules).unwrap();
        for (index, carrier) in ["AA", "DL", "UA"].iter().enumerate() {
            for n in 0..3u64 {
                table.put(&(*carrier, n), &(index as u64)).unwrap();
            }
        }
        let count = |scan: folddb::Scan<(String, u64), u64>| scan.count().unwrap();
        assert_eq!(count(table.scan().from(&("DL",))), 6, "{name}");
        assert_eq!(count(table.scan().after(&("DL",))), 3, "{name}");
        assert_eq!(count(table.scan().before(&("DL",))), 3, "{name}");
        assert_eq!(count(table.scan().through(&("DL",))), 6, "{name}");
        assert_eq!(count(table.scan().prefix(&("DL",))), 3, "{name}");
        assert_eq!(count(table.scan().from(&("DL", 1)).through(&("DL", 1))), 1, "{name}");
    }
}

#[test]
fn a_closed_store_says_so() {
    let (_dir, store) = fresh(manual());
    let table = store.table("t", Rules::sorted::<u64, u64>()).unwrap();
    table.put(&1, &1).unwrap();
    store.clone().close().unwrap();
    assert_eq!(table.get(&1).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(table.put(&1, &1).unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_store_opened_for_reading_heeds_range_deletes_that_only_the_log_has() {
    let temp = tempfile::tempdir().unwrap();
    let (path, options) = (temp.path().join("store"), || Options::default().disk_reserve_bytes(0));
    let store = Store::create(&path, options()).unwrap();
    let sums = store.table("sums", Rules::sorted::<String, u64>().fold("sum:u64")).unwrap();
    sums.fold("k", &5).unwrap();
    sums.delete_range("a", "z").unwrap();
    sums.fold("k", &2).unwrap();
    drop(store); // without closing: all of it is in the log
    let store = Store::open_read_only(&path, options()).unwrap();
    let sums = store.table("sums", Rules::sorted::<String, u64>().fold("sum:u64")).unwrap();
    assert_eq!(sums.get("k").unwrap(), Some(2));
    assert_eq!(sums.scan().into_iter().map(Result::unwrap).collect::<Vec<_>>(), [("k".to_owned(), 2)]);
}

#[test]
fn a_store_opened_for_reading_has_the_memory_of_writers_for_its_cache() {
    const ROWS: u64 = 400_000;
    let temp = tempfile::tempdir().unwrap();
    let (path, options) = (temp.path().join("store"), || manual().memory_bytes(16 << 20));
    let key = |row: u64| row.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let store = Store::create(&path, options()).unwrap();
    let rows = store.table("rows", Rules::sorted::<u64, u64>()).unwrap();
    for start in (0..ROWS).step_by(1000) {
        let mut batch = store.batch();
        for row in start..start + 1000 {
            batch.put(&rows, &key(row), &row);
        }
        batch.commit(Durability::Buffered).unwrap();
    }
    rows.compact().unwrap();
    store.close().unwrap();
    let read_the_second_time = |store: Store| {
        let rows = store.open_table::<u64, u64>("rows").unwrap();
        let read_all =
            || (0..ROWS).step_by(61).for_each(|row| assert_eq!(rows.get(&key(row)).unwrap(), Some(row)));
        read_all();
        let before = store.stats().reads.pieces;
        read_all();
        let pieces = store.stats().reads.pieces - before;
        store.close().unwrap();
        pieces
    };
    assert!(read_the_second_time(Store::open(&path, options()).unwrap()) > 0);
    assert_eq!(read_the_second_time(Store::open_read_only(&path, options()).unwrap()), 0);
}

#[test]
fn a_store_is_opened_or_created_and_only_where_there_is_none() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("store");
    for round in 0..3u64 {
        let store = Store::open_or_create(&path, manual()).unwrap();
        let numbers = store.table("numbers", Rules::sorted::<u64, u64>()).unwrap();
        assert_eq!(numbers.scan().count().unwrap(), round);
        numbers.put(&round, &round).unwrap();
        assert_eq!(Store::open_or_create(&path, manual()).unwrap_err().kind(), ErrorKind::Locked);
        store.close().unwrap();
    }
    let other = temp.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("letter.txt"), "dear").unwrap();
    assert_eq!(Store::open_or_create(&other, manual()).unwrap_err().kind(), ErrorKind::StoreNotFound);
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 1, "nothing was made in it");
    Store::freeze(&path, manual()).unwrap();
    assert_eq!(Store::open_or_create(&path, manual()).unwrap_err().kind(), ErrorKind::ReadOnly);
}

#[test]
fn what_a_store_is_opened_for_is_said_by_the_call() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("store");
    let missing = temp.path().join("missing");
    assert_eq!(Store::open_read_only(&missing, manual()).unwrap_err().kind(), ErrorKind::StoreNotFound);
    assert_eq!(Store::open_secondary(&missing, manual()).unwrap_err().kind(), ErrorKind::StoreNotFound);
    let store = Store::create(&path, manual()).unwrap();
    let numbers = store.table("numbers", Rules::sorted::<u64, u64>()).unwrap();
    numbers.put(&1, &1).unwrap();
    assert_eq!(Store::open_read_only(&path, manual()).unwrap_err().kind(), ErrorKind::Locked);
    let secondary = Store::open_secondary(&path, manual()).unwrap();
    numbers.put(&2, &2).unwrap();
    let count = |store: &Store| store.open_table::<u64, u64>("numbers").unwrap().scan().count().unwrap();
    assert_eq!((count(&secondary), count(&secondary.refresh().unwrap())), (1, 2));
    assert_eq!(store.refresh().unwrap_err().kind(), ErrorKind::InvalidInput);
    store.close().unwrap();
    let readers = [(); 2].map(|()| Store::open_read_only(&path, manual()).unwrap());
    for reader in readers.iter().chain([&secondary]) {
        let numbers = reader.open_table::<u64, u64>("numbers").unwrap();
        assert_eq!(numbers.put(&3, &3).unwrap_err().kind(), ErrorKind::ReadOnly);
    }
}

#[test]
fn a_mistyped_table_is_not_created_and_a_table_is_not_created_twice() {
    let (_dir, store) = fresh(manual());
    let created = store.create_table("visits", Rules::sorted::<String, u64>().fold("sum:u64")).unwrap();
    created.fold("/", &2).unwrap();
    let opened = store.open_table::<String, u64>("visits").unwrap();
    opened.fold("/", &3).unwrap();
    assert_eq!(created.get("/").unwrap(), Some(5));

    let missing = store.open_table::<String, u64>("visit").unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::TableNotFound);
    assert!(missing.to_string().contains("visits"), "{missing}");
    let again = store.create_table("visits", Rules::sorted::<String, u64>().fold("sum:u64")).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    let keys = store.open_table::<u64, u64>("visits").unwrap_err();
    assert_eq!(keys.kind(), ErrorKind::RulesMismatch);
    let values = store.open_table::<String, i64>("visits").unwrap_err();
    assert_eq!(values.kind(), ErrorKind::InvalidInput, "the fold takes none: {values}");
    store.create_table("names", Rules::sorted::<String, String>()).unwrap();
    let values = store.open_table::<String, u64>("names").unwrap_err();
    assert_eq!(values.kind(), ErrorKind::RulesMismatch);
    assert!(values.message().contains("`names`"), "{values}");
    store.open_table::<String, Vec<u8>>("names").unwrap(); // their bytes

    // Impossible tables are not created.
    let unfit = store.create_table("odd", Rules::sorted::<String, String>().fold("sum:u64")).unwrap_err();
    assert_eq!(unfit.kind(), ErrorKind::InvalidInput);
    let rules = || Rules::sorted::<String, String>().index("by city", "no such rule");
    assert_eq!(store.create_table("odd", rules()).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(store.bulk_load("odd", rules()).map(drop).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(store.tables(), ["names", "visits"]);
}
