//! Two stores are compared, and one is brought up to the other.
#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;
use std::sync::Arc;

use folddb::{
    BytesTable, DiffReport, Difference, ErrorKind, Fold, FoldFailure, Options, Outcome, Rules, Store,
    SyncOptions, Table, Upkeep,
};

struct Side {
    _dir: tempfile::TempDir,
    store: Store,
    table: Table<u64, Vec<u8>>,
}

fn side(separate: u32) -> Side {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default().memory_bytes(4 << 20).part_bytes(64 << 10).upkeep(Upkeep::Manual);
    let store = Store::create(dir.path().join("s.folddb"), options).unwrap();
    let table = store.table("t", Rules::sorted::<u64, Vec<u8>>().separate(separate)).unwrap();
    Side { _dir: dir, store, table }
}

fn blob(key: u64) -> Vec<u8> {
    vec![key as u8; 100 + (key * 37 % 900) as usize]
}

/// Two stores: the first has keys 0 to 999; of these the second lacks each hundredth, has others for each that ends with 33, and has
/// some beyond.
fn two() -> (Side, Side) {
    let (first, second) = (side(512), side(700));
    for key in 0..1000 {
        first.table.set(&key, &blob(key)).unwrap();
        if key % 100 != 0 {
            second.table.set(&key, &blob(if key % 100 == 33 { key + 1 } else { key })).unwrap();
        }
        if key % 300 == 299 {
            second.store.flush().unwrap();
        }
    }
    for key in 2000..2005 {
        second.table.set(&key, &blob(key)).unwrap();
    }
    first.store.flush().unwrap();
    (first, second)
}

fn compared(first: &BytesTable, second: &BytesTable) -> (DiffReport, Vec<Difference>) {
    let mut found = Vec::new();
    let report = first.scan().compare(second.scan(), |difference| {
        found.push(difference);
        ControlFlow::Continue(())
    });
    (report.unwrap(), found)
}

#[test]
fn what_differs_is_found_in_order_and_values_are_read_only_where_their_heads_leave_it_open() {
    let (first, second) = two();
    let (report, found) = compared(first.table.as_bytes(), second.table.as_bytes());
    assert_eq!(
        (report.same, report.only_first, report.only_second, report.differing, report.failing),
        (980, 10, 5, 10, 0)
    );
    assert!(!report.is_same());
    assert_eq!(found.len(), 25);
    assert!(found.is_sorted_by(|a, b| a.key < b.key));
    assert!(found.iter().all(|one| one.first.is_some() || one.second.is_some()));
    assert_eq!(first.store.stats().value_reads, 0, "sizes differ, or hashes are the same");

    let (report, found) = compared(first.table.as_bytes(), first.table.as_bytes());
    assert!(report.is_same() && found.is_empty() && report.same == 1000);
}

#[test]
fn a_table_that_was_brought_up_is_the_same_and_needs_nothing_the_second_time() {
    let (first, second) = two();
    let bring_up = || {
        let options = SyncOptions::default();
        second
            .store
            .bring_up(second.table.as_bytes().scan(), first.table.as_bytes().scan(), &options)
            .unwrap()
    };
    let synced = bring_up();
    assert_eq!((synced.set, synced.deleted), (20, 5));
    assert_eq!(synced.found.only_first, 5, "of the second's view, which stands first here");
    assert!(compared(first.table.as_bytes(), second.table.as_bytes()).0.is_same());
    let again = bring_up();
    assert_eq!((again.set, again.deleted, again.found.same), (0, 0, 1000));
}

#[test]
fn only_the_range_that_is_asked_for_is_brought_up_and_others_may_stay() {
    let (first, second) = two();
    let key = |key: u64| {
        first.table.as_bytes().scan().limit(key as usize + 1).into_iter().last().unwrap().unwrap().0
    };
    let (low, high) = (key(0), key(500));
    let (ours, theirs) = (second.table.as_bytes(), first.table.as_bytes());
    let part = |table: &BytesTable| table.scan().from(&low).before(&high);
    let synced = second.store.bring_up(part(ours), part(theirs), &SyncOptions::default()).unwrap();
    assert_eq!((synced.set, synced.deleted), (10, 0));
    assert_eq!(compared(theirs, ours).0.only_first, 5);
    let keep = SyncOptions::default().keep_others(true);
    let synced = second.store.bring_up(ours.scan(), theirs.scan(), &keep).unwrap();
    assert_eq!((synced.set, synced.deleted), (10, 0));
    assert_eq!(second.table.get(&2003).unwrap(), Some(blob(2003)));
}

#[test]
fn tables_that_mean_other_things_are_refused() {
    let (first, second) = (side(512), side(512));
    let sums = second.store.table("sums", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    let to = sums.as_bytes().scan();
    let refused =
        second.store.bring_up(to, first.table.as_bytes().scan(), &SyncOptions::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::RulesDiffer);
    assert!(refused.to_string().contains("sum:u64"), "{refused}");
    let (ours, theirs) = (second.table.as_bytes().scan(), first.table.as_bytes().scan());
    let wrong_store = first.store.bring_up(ours, theirs, &SyncOptions::default()).unwrap_err();
    assert_eq!(wrong_store.kind(), ErrorKind::InvalidInput);
    let (forward, back) = (first.table.as_bytes().scan(), first.table.as_bytes().scan().reverse());
    let refused = forward.compare(back, |_| ControlFlow::Continue(())).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
}

/// Fails on any operand of one byte.
struct Fails;

impl Fold for Fails {
    fn spec(&self) -> String {
        "fails".to_owned()
    }
    fn fold(&self, _key: &[u8], _: &[u8], later: &[u8], _: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        if later.len() == 1 { Err(FoldFailure::new("one byte")) } else { Ok(Outcome::KeepLater) }
    }
}

#[test]
fn a_key_whose_fold_fails_is_told_and_left_alone() {
    let made = || {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::default().custom_fold(Arc::new(Fails)).upkeep(Upkeep::Manual);
        let store = Store::create(dir.path().join("s.folddb"), options).unwrap();
        let rules = Rules::sorted::<u64, Vec<u8>>().custom_fold(&Fails);
        let table = store.table("t", rules).unwrap();
        (0..10).for_each(|key| assert!(table.set(&key, &blob(key)).is_ok()));
        (dir, store, table)
    };
    let ((_a_dir, _a_store, a), (_b_dir, b_store, b)) = (made(), made());
    a.fold(&3, &vec![1]).unwrap();
    assert_eq!(a.get(&3).unwrap_err().kind(), ErrorKind::FoldFailed);
    let (report, found) = compared(a.as_bytes(), b.as_bytes());
    assert_eq!((report.same, report.failing, found.len()), (9, 1, 0));
    let synced = b_store.bring_up(b.as_bytes().scan(), a.as_bytes().scan(), &SyncOptions::default()).unwrap();
    assert_eq!((synced.set, synced.deleted, b.get(&3).unwrap()), (0, 0, Some(blob(3))));
}
