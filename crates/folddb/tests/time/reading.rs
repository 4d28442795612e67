//! Transactions and cursors over values that expire.

use std::time::Duration;

use folddb::{Cursor, Durability, ErrorKind, Expire, Keep, Lifetime, Resume, Rules, Snapshot, Table};

use crate::common::compact;
use crate::indexes::HOUR_MS;
use crate::world::{World, counts};

#[test]
fn a_transaction_reads_what_it_wrote_where_values_expire() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Latest, Expire::After(Duration::from_secs(10)));
    let texts: Table<u64, Vec<u8>> = store
        .table("texts", Rules::sorted().fold("append").expire(Expire::After(Duration::from_secs(10))))
        .unwrap();
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
            table.with_lifetime(Lifetime::For(Duration::from_millis(lasts_ms))).put(&key, &key).unwrap();
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

/// A cursor that is resumed strictly shows what its scan saw, also values that have expired since,
/// or nothing.
#[test]
fn strict_cursors_lose_no_row_that_has_expired_since() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Latest, Expire::After(Duration::from_secs(10)));
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

// ---- transactions -------------------------------------------------------------------------------

#[test]
fn a_transaction_conflicts_where_what_it_has_read_has_expired_by_its_commit() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Latest, Expire::After(Duration::from_millis(HOUR_MS)));
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

#[test]
fn a_strict_cursor_of_a_hashed_table_is_refused_if_values_have_expired_since() {
    let world = World::new();
    let store = world.create();
    let rules = Rules::hashed::<u64, u64>().expire(Expire::After(Duration::from_millis(HOUR_MS)));
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
