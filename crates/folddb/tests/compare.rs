//! Two stores are compared, and one is brought up to the other.
#![allow(clippy::unwrap_used)]

mod occasion;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use folddb::maintenance::{DiffReport, Difference, SyncOptions};
use folddb::time::{moment, unix_ms};
use folddb::{
    BackgroundWork, BytesScan, BytesTable, ErrorKind, Expire, Fold, FoldFailure, Lifetime, Options, Outcome,
    Rules, Store, Table,
};
use folddb_base::pointer::value_hash;
use occasion::Occasion;

struct Side {
    _dir: tempfile::TempDir,
    store: Store,
    table: Table<u64, Vec<u8>>,
}

fn side(separate: u32) -> Side {
    side_of(Rules::sorted::<u64, Vec<u8>>().separate(separate))
}

fn side_of(rules: Rules<u64, Vec<u8>>) -> Side {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default()
        .memory_bytes(4 << 20)
        .tuning(|t| t.part_bytes(64 << 10))
        .background(BackgroundWork::Manual);
    let store = Store::create(dir.path().join("s.folddb"), options).unwrap();
    let table = store.table("t", rules).unwrap();
    Side { _dir: dir, store, table }
}

fn blob(key: u64) -> Vec<u8> {
    vec![key as u8; 100 + (key * 37 % 900) as usize]
}

/// Two stores: the first has keys 0 to 999; of these the second lacks each hundredth, has others
/// for each that ends with 33, and has some beyond.
fn two() -> (Side, Side) {
    let (first, second) = (side(512), side(700));
    for key in 0..1000 {
        first.table.put(&key, &blob(key)).unwrap();
        if key % 100 != 0 {
            second.table.put(&key, &blob(if key % 100 == 33 { key + 1 } else { key })).unwrap();
        }
        if key % 300 == 299 {
            second.store.flush().unwrap();
        }
    }
    for key in 2000..2005 {
        second.table.put(&key, &blob(key)).unwrap();
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
    assert_eq!(first.store.stats().reads.values, 0, "sizes differ, or hashes are the same");

    let (report, found) = compared(first.table.as_bytes(), first.table.as_bytes());
    assert!(report.is_same() && found.is_empty() && report.same == 1000);
}

#[test]
fn synchronize_makes_tables_equal_and_does_nothing_the_second_time() {
    let (first, second) = two();
    let synchronize = || {
        let options = SyncOptions::default();
        second
            .store
            .synchronize(second.table.as_bytes().scan(), first.table.as_bytes().scan(), &options)
            .unwrap()
    };
    let synced = synchronize();
    assert_eq!((synced.put, synced.deleted), (20, 5));
    assert_eq!(synced.found.only_first, 5, "of the second's view, which stands first here");
    assert!(compared(first.table.as_bytes(), second.table.as_bytes()).0.is_same());
    let again = synchronize();
    assert_eq!((again.put, again.deleted, again.found.same), (0, 0, 1000));
}

#[test]
fn synchronize_changes_only_the_range_and_may_keep_other_keys() {
    let (first, second) = two();
    let key = |key: u64| {
        first.table.as_bytes().scan().limit(key as usize + 1).into_iter().last().unwrap().unwrap().0
    };
    let (low, high) = (key(0), key(500));
    let (ours, theirs) = (second.table.as_bytes(), first.table.as_bytes());
    let part = |table: &BytesTable| table.scan().from(&low).before(&high);
    let synced = second.store.synchronize(part(ours), part(theirs), &SyncOptions::default()).unwrap();
    assert_eq!((synced.put, synced.deleted), (10, 0));
    assert_eq!(compared(theirs, ours).0.only_first, 5);
    let keep = SyncOptions::default().keep_others(true);
    let synced = second.store.synchronize(ours.scan(), theirs.scan(), &keep).unwrap();
    assert_eq!((synced.put, synced.deleted), (10, 0));
    assert_eq!(second.table.get(&2003).unwrap(), Some(blob(2003)));
}

#[test]
fn tables_that_mean_other_things_are_refused() {
    let (first, second) = (side(512), side(512));
    let sums = second.store.table("sums", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    let to = sums.as_bytes().scan();
    let refused =
        second.store.synchronize(to, first.table.as_bytes().scan(), &SyncOptions::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::RulesMismatch);
    assert!(refused.to_string().contains("sum:u64"), "{refused}");
    let (ours, theirs) = (second.table.as_bytes().scan(), first.table.as_bytes().scan());
    let wrong_store = first.store.synchronize(ours, theirs, &SyncOptions::default()).unwrap_err();
    assert_eq!(wrong_store.kind(), ErrorKind::InvalidInput);
    let other_order = side_of(Rules::sorted().reversed());
    let forward = || first.table.as_bytes().scan();
    for other in [forward().reverse(), other_order.table.as_bytes().scan()] {
        let refused = forward().compare(other, |_| ControlFlow::Continue(())).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    }
}

/// The writes of a transaction are in no table yet.
#[test]
fn a_table_is_not_compared_as_a_transaction_has_changed_it() {
    let (first, second) = (side(512), side(512));
    let mut transaction = first.store.transaction();
    let theirs = || second.table.as_bytes().scan();
    let compare = |one: BytesScan, other: BytesScan| one.compare(other, |_| ControlFlow::Continue(()));
    assert!(compare(transaction.scan(first.table.as_bytes()), theirs()).unwrap().is_same());
    transaction.put(&first.table, &1, &blob(1));
    let inside = || transaction.scan(first.table.as_bytes());
    for refused in [compare(inside(), theirs()), compare(theirs(), inside())].map(Result::unwrap_err) {
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert!(refused.message().contains("transaction"), "{refused}");
    }
}

/// What would be refused while a table is brought up to date is refused before anything is read.
#[test]
fn synchronize_refuses_tables_that_cannot_be_written_to_or_read_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.folddb");
    let options = || Options::default().background(BackgroundWork::Manual);
    let store = Store::create(&path, options().custom_fold(Arc::new(Fails))).unwrap();
    store.table("t", Rules::sorted::<u64, Vec<u8>>().custom_fold(&Fails)).unwrap();
    let other = store.table("other", Rules::sorted::<u64, Vec<u8>>()).unwrap();
    let elsewhere = side(512);
    let failing = || elsewhere.store.snapshot().scan(other.as_bytes());
    for (to, from) in [(failing(), other.as_bytes().scan()), (other.as_bytes().scan(), failing())] {
        let refused = store.check_synchronize(&to, &from).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert!(refused.message().contains("snapshot"), "{refused}");
    }
    drop(other);
    store.close().unwrap();
    let store = Store::open(&path, options()).unwrap(); // without the function
    let table = store.bytes_table("t").unwrap();
    let refused = store.check_synchronize(&table.scan(), &table.scan()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::RulesMismatch);
}

/// A time that does not come during this test, in milliseconds since 1970.
const FAR_MS: u64 = 4_000_000_000_000;

fn synchronize(ours: &Side, theirs: &Side) -> folddb::Result<folddb::maintenance::SyncReport> {
    let (to, from) = (ours.table.as_bytes().scan(), theirs.table.as_bytes().scan());
    ours.store.synchronize(to, from, &SyncOptions::default())
}

fn deadline(side: &Side, key: u64) -> Option<u64> {
    side.table.head(&key).unwrap().unwrap().deadline.map(unix_ms)
}

#[test]
fn copied_values_keep_their_deadlines() {
    let expiring = |expire| side_of(Rules::sorted::<u64, Vec<u8>>().separate(512).expire(expire));
    let (first, second) = (expiring(Expire::ByWrite), expiring(Expire::After(Duration::from_secs(3600))));
    let long = blob(24); // is separated
    assert!(long.len() > 512);
    first.table.with_lifetime(Lifetime::Until(moment(FAR_MS))).put(&1, &blob(1)).unwrap();
    first.table.with_lifetime(Lifetime::Until(moment(FAR_MS + 2))).put(&2, &long).unwrap();
    first.table.put(&3, &blob(3)).unwrap();
    for key in 1..=3 {
        second.table.put(&key, &first.table.get(&key).unwrap().unwrap()).unwrap();
    }
    let (report, found) = compared(first.table.as_bytes(), second.table.as_bytes());
    assert_eq!((report.same, report.differing, report.is_same()), (0, 3, false));
    assert_eq!(found[0].first.as_ref().unwrap().deadline.map(unix_ms), Some(FAR_MS));

    assert_eq!(synchronize(&second, &first).unwrap().put, 3);
    assert_eq!((deadline(&second, 1), deadline(&second, 2)), (Some(FAR_MS), Some(FAR_MS + 2)));
    assert_eq!(deadline(&second, 3), None, "also where the rules here say a time");
    assert!(compared(first.table.as_bytes(), second.table.as_bytes()).0.is_same());
    assert_eq!(synchronize(&second, &first).unwrap().put, 0);
    second.store.flush().unwrap();
    assert!(compared(first.table.as_bytes(), second.table.as_bytes()).0.is_same());
}

#[test]
fn synchronize_refuses_expiring_values_for_a_table_without_expiry() {
    let (first, second) = (side_of(Rules::sorted().expire(Expire::ByWrite)), side_of(Rules::sorted()));
    first.table.with_lifetime(Lifetime::Until(moment(FAR_MS))).put(&1, &blob(1)).unwrap();
    second.table.put(&2, &blob(2)).unwrap();
    let refused = synchronize(&second, &first).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::RulesMismatch);
    assert!(refused.to_string().contains("never expire"), "{refused}");
    assert_eq!(second.table.get(&2).unwrap(), Some(blob(2)), "nothing was done");
    synchronize(&first, &second).unwrap();
    assert_eq!((first.table.get(&1).unwrap(), deadline(&first, 2)), (None, None));
}

#[test]
fn tables_are_compared_in_ascending_and_descending_order() {
    let made = || side_of(Rules::sorted().reversed());
    let (first, second) = (made(), made());
    for key in 0..10 {
        first.table.put(&key, &blob(key)).unwrap();
        second.table.put(&(key + 3), &blob(key + 3)).unwrap();
    }
    let ways: [fn(&Side) -> BytesScan; 2] =
        [|side| side.table.as_bytes().scan(), |side| side.table.as_bytes().scan().reverse()];
    for way in ways {
        let report = way(&first).compare(way(&second), |_| ControlFlow::Continue(())).unwrap();
        assert_eq!((report.same, report.only_first, report.only_second), (7, 3, 3));
    }
}

#[test]
fn the_same_bytes_that_last_for_ever_in_one_table_only_are_not_the_same() {
    let (first, second) = (side_of(Rules::sorted().expire(Expire::ByWrite)), side_of(Rules::sorted()));
    first.table.with_lifetime(Lifetime::Until(moment(FAR_MS))).put(&1, &blob(1)).unwrap();
    first.table.put(&2, &blob(2)).unwrap();
    for key in 1..=2 {
        second.table.put(&key, &blob(key)).unwrap();
    }
    for (one, other) in [(&first, &second), (&second, &first)] {
        let (report, _) = compared(one.table.as_bytes(), other.table.as_bytes());
        assert_eq!((report.same, report.differing), (1, 1));
    }
}

/// Writes during a comparison of two tables belong to neither.
#[test]
fn each_table_is_compared_as_it_was_at_one_moment() {
    let (first, second) = (side(50), side(50));
    // Some are in several pieces, and are read where they differ.
    let value = |key: u64| if key.is_multiple_of(1000) { vec![7; 300 << 10] } else { blob(key) };
    let other = |key: u64| vec![key as u8 + 1; value(key).len()];
    let put = |side: &Side, key: u64, value: Vec<u8>| side.table.put_from(&key, &mut &value[..]).unwrap();
    for key in 0..3000 {
        put(&first, key, value(key));
        put(&second, key, if key.is_multiple_of(1000) { other(key) } else { value(key) });
    }
    let mut found = 0;
    let (ours, theirs) = (first.table.as_bytes().scan(), second.table.as_bytes().scan());
    let report = ours.compare(theirs, |_| {
        found += 1;
        for key in 0..3000 {
            put(&second, key, value(key)); // as the first has it
        }
        ControlFlow::Continue(())
    });
    let report = report.unwrap();
    assert_eq!((found, report.same, report.differing), (3, 2997, 3));
}

/// Nothing is copied that the other table did not have at the moment of the comparison, nor an
/// empty value for one that was removed since.
#[test]
fn synchronize_makes_a_table_equal_to_one_moment_of_the_other() {
    let occasion = Arc::new(Occasion::default());
    let made = || {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::default().background(BackgroundWork::Manual).custom_order(occasion.clone());
        let store = Store::create(dir.path().join("s.folddb"), options).unwrap();
        let table = store.table("t", Rules::sorted::<u64, Vec<u8>>().order(occasion::NAME)).unwrap();
        Side { _dir: dir, store, table }
    };
    let (ours, theirs) = (made(), made());
    for key in 0..10 {
        theirs.table.put(&key, &blob(key)).unwrap();
    }
    ours.table.put(&5, &blob(5)).unwrap();
    let table = theirs.table.clone();
    let (to, from) = (ours.table.as_bytes().scan(), theirs.table.as_bytes().scan());
    occasion.then(move || (0..10).for_each(|key| assert!(table.delete(&key).is_ok())));
    let synced = ours.store.synchronize(to, from, &SyncOptions::default()).unwrap();
    assert!(occasion.is_over());
    assert_eq!((synced.put, synced.deleted), (9, 0));
    for key in 0..10 {
        assert_eq!(ours.table.get(&key).unwrap(), Some(blob(key)));
    }
}

/// Two values of one length that have one hash under a key.
fn alike(key: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut met = HashMap::new();
    for number in 0u64.. {
        let value = number.to_le_bytes();
        if let Some(other) = met.insert(value_hash(key, &value), number) {
            return (other.to_le_bytes().to_vec(), value.to_vec());
        }
    }
    unreachable!("there are more numbers than hashes")
}

#[test]
fn inline_values_are_compared_by_their_bytes_and_not_by_their_hashes() {
    let plain = || side_of(Rules::sorted());
    let expiring = || side_of(Rules::sorted().expire(Expire::ByWrite));
    for (first, second) in
        [(plain(), plain()), (side(512), side(512)), (expiring(), plain()), (plain(), side(512))]
    {
        first.table.put(&7, &blob(7)).unwrap();
        let key = first.table.as_bytes().scan().into_iter().next().unwrap().unwrap().0;
        let (one, other) = alike(&key);
        first.table.put(&7, &one).unwrap();
        second.table.put(&7, &other).unwrap();
        let hash = |side: &Side| side.table.head(&7).unwrap().unwrap().hash;
        assert_eq!(hash(&first), hash(&second));
        let (report, found) = compared(first.table.as_bytes(), second.table.as_bytes());
        assert_eq!((report.same, report.differing), (0, 1));
        assert_eq!(found[0].first, first.table.head(&7).unwrap());
        assert_eq!(synchronize(&first, &second).unwrap().put, 1);
        assert_eq!(first.table.get(&7).unwrap(), Some(other));
    }
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
fn a_key_whose_fold_fails_is_reported_and_left_alone() {
    let made = || {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::default().custom_fold(Arc::new(Fails)).background(BackgroundWork::Manual);
        let store = Store::create(dir.path().join("s.folddb"), options).unwrap();
        let rules = Rules::sorted::<u64, Vec<u8>>().custom_fold(&Fails);
        let table = store.table("t", rules).unwrap();
        (0..10).for_each(|key| assert!(table.put(&key, &blob(key)).is_ok()));
        (dir, store, table)
    };
    let ((_a_dir, _a_store, a), (_b_dir, b_store, b)) = (made(), made());
    a.fold(&3, &vec![1]).unwrap();
    assert_eq!(a.get(&3).unwrap_err().kind(), ErrorKind::FoldFailed);
    let (report, found) = compared(a.as_bytes(), b.as_bytes());
    assert_eq!((report.same, report.failing, found.len()), (9, 1, 0));
    let synced =
        b_store.synchronize(b.as_bytes().scan(), a.as_bytes().scan(), &SyncOptions::default()).unwrap();
    assert_eq!((synced.put, synced.deleted, b.get(&3).unwrap()), (0, 0, Some(blob(3))));
}

/// A value longer than a batch may be is copied piece by piece, and those around it as always.
#[test]
fn values_longer_than_a_batch_are_copied() {
    let (from, to) = (side(512), side(512));
    let long = vec![7; (16 << 20) + 5];
    for key in 0..20 {
        from.table.put(&key, &blob(key)).unwrap();
    }
    from.table.put_from(&7, &mut &long[..]).unwrap();
    let report = synchronize(&to, &from).unwrap();
    assert_eq!(report.put, 20);
    assert!(to.table.get(&7).unwrap() == Some(long));
    assert!(synchronize(&to, &from).unwrap().found.is_same());

    let inline = side_of(Rules::sorted::<u64, Vec<u8>>());
    let refused = synchronize(&inline, &from).unwrap_err();
    assert!(refused.message().contains("key 7"), "{refused}");
}

/// Where one table counts a value as deleted that the other keeps, each sync would report that it
/// set this value, again and again.
#[test]
fn synchronize_refuses_tables_that_count_other_values_as_deleted() {
    let rules = || Rules::sorted::<u64, Vec<u8>>();
    let (from, to) = (side_of(rules()), side_of(rules().delete_when(&vec![0])));
    from.table.put(&1, &vec![0]).unwrap();
    let refused = synchronize(&to, &from).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::RulesMismatch);
    assert!(refused.message().contains("delete when"), "{refused}");
}

/// Whatever options a scan has, its values are compared.
#[test]
fn scans_of_keys_alone_are_compared_by_their_values_too() {
    for separate in [None, Some(512)] {
        let rules = || separate.map_or(Rules::sorted(), |from| Rules::sorted().separate(from));
        let (first, second) = (side_of(rules()), side_of(rules()));
        first.table.put(&1, &vec![1]).unwrap();
        second.table.put(&1, &vec![9]).unwrap();
        let keys = |side: &Side| side.table.as_bytes().scan().keys_only();
        let report = keys(&first).compare(keys(&second), |_| ControlFlow::Continue(())).unwrap();
        assert_eq!((report.same, report.differing), (0, 1));
        let options = SyncOptions::default();
        assert_eq!(second.store.synchronize(keys(&second), keys(&first), &options).unwrap().put, 1);
        assert_eq!(second.table.get(&1).unwrap(), Some(vec![1]));
    }
}

/// Rows that `to` has beyond the range of `from` are not missing there, and its past is not its
/// present.
#[test]
fn synchronize_makes_one_range_equal_to_the_present() {
    let forever = || side_of(Rules::sorted().keep(folddb::Keep::Forever));
    let (first, second) = (forever(), forever());
    for key in 0..9 {
        [&first, &second].into_iter().for_each(|side| assert!(side.table.put(&key, &blob(key)).is_ok()));
    }
    let (to, from) = (|| second.table.as_bytes().scan(), || first.table.as_bytes().scan());
    let key = |key: u64| key.to_be_bytes();
    let past = second.table.as_bytes().scan_at(folddb::AsOf::Seq(3.into()));
    let snapshot = second.store.snapshot();
    let refused = [
        (to(), from().from(&key(0)).before(&key(5))),
        (to().from(&key(2)), from().after(&key(2))),
        (to().before(&key(5)), from().through(&key(5))),
        (to().limit(9), from()),
        (to(), from().limit(3)),
        (to().limit(3), from().limit(3)),
        (past, from()),
        (snapshot.scan(second.table.as_bytes()), from()),
    ];
    for (number, (to, from)) in refused.into_iter().enumerate() {
        assert_eq!(second.store.check_synchronize(&to, &from).unwrap_err().kind(), ErrorKind::InvalidInput);
        let refused = second.store.synchronize(to, from, &SyncOptions::default()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{number}: {refused}");
        assert!(refused.message().contains("table `t`"), "{refused}");
    }
    assert_eq!(second.table.scan().count().unwrap(), 9, "nothing was deleted");
    // The past of the other is accepted: the table is brought up to that.
    second
        .store
        .synchronize(
            to(),
            first.table.as_bytes().scan_at(folddb::AsOf::Seq(3.into())),
            &SyncOptions::default(),
        )
        .unwrap();
    assert_eq!(second.table.scan().count().unwrap(), 3);
}

/// Two long values are read in parallel as far as they are the same; values in one piece are not
/// read at all.
#[test]
fn values_that_differ_are_read_up_to_where_they_do() {
    let streamed = |first_piece: u8, last_piece: u8| {
        let side = side(512);
        let piece = vec![5; 256 << 10];
        let all = [&piece[..], &piece, &piece, &[first_piece; 3]].concat();
        let mut value = all.clone();
        (value[0], value[all.len() - 1]) = (first_piece, last_piece);
        side.table.put_from(&1, &mut &value[..]).unwrap();
        side.table.put(&2, &vec![last_piece; 5000]).unwrap();
        assert!(side.table.head(&1).unwrap().unwrap().pieces > 3);
        side
    };
    let reads = |a: &Side, b: &Side| {
        let report = compared(a.table.as_bytes(), b.table.as_bytes()).0;
        (report.differing, a.store.stats().reads.values, b.store.stats().reads.values)
    };
    assert_eq!(reads(&streamed(1, 1), &streamed(2, 2)), (2, 1, 1));
    assert_eq!(reads(&streamed(1, 1), &streamed(1, 2)), (2, 4, 4));
}

/// The hash of a value in several pieces depends on how it was cut, too.
#[test]
fn values_of_the_same_bytes_are_the_same_however_they_were_cut() {
    let (whole, cut) = (side(512), side(512));
    let value: Vec<u8> = (0..300_000).map(|at| (at % 251) as u8).collect();
    whole.table.put(&1, &value).unwrap();
    cut.table.put_from(&1, &mut &value[..]).unwrap();
    let head = |side: &Side| side.table.head(&1).unwrap().unwrap();
    assert!(head(&whole).pieces == 1 && head(&cut).pieces > 1 && head(&whole).hash != head(&cut).hash);
    for (one, other) in [(&whole, &cut), (&cut, &whole)] {
        assert!(compared(one.table.as_bytes(), other.table.as_bytes()).0.is_same());
    }
}
