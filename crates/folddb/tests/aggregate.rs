//! Counting and aggregating ranges from summaries: as exact as a scan, and cheaper where the bottom
//! run is the only one.
#![allow(clippy::unwrap_used)]

mod common;

use common::small;
use folddb::codec::KeyCodec;
use folddb::table_rules::TableRules;
use folddb::{
    Aggregate, BytesScan, BytesTable, ErrorKind, Fold, FoldFailure, Options, Outcome, Store, WriteOp,
};
use proptest::prelude::*;
use std::sync::Arc;

fn options() -> Options {
    small().tuning(|t| t.part_bytes(16 << 10).merge_factor(3)).disk_reserve_bytes(0)
}

fn rules(fold: &str) -> TableRules {
    TableRules::new(KeyCodec::U64).fold(fold).block_bytes(512).summaries(true)
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn write(table: &BytesTable, op: WriteOp, number: u64, value: &[u8]) {
    table.write(op, &key(number), value).unwrap();
}

/// The aggregate of the rows when they are read one by one.
fn by_hand(scan: BytesScan) -> (u64, Option<u64>) {
    let mut rows = scan.rows().unwrap();
    let (mut count, mut sum) = (0, None);
    while let Some((_, value)) = rows.next_row().unwrap() {
        count += 1;
        sum = Some(sum.unwrap_or(0) + u64::from_le_bytes(value.try_into().unwrap()));
    }
    (count, sum)
}

fn assert_same(scan: &BytesScan) -> Aggregate {
    let told = scan.clone().aggregate().unwrap();
    let value = told.value.as_deref().map(|value| u64::from_le_bytes(value.try_into().unwrap()));
    assert_eq!((told.rows, value), by_hand(scan.clone()));
    assert_eq!(scan.clone().count().unwrap(), told.rows);
    told
}

fn compact(store: &Store) {
    store.bytes_table("t").unwrap().compact().unwrap();
}

#[test]
fn a_merged_table_is_aggregated_without_reading_a_row() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let table = store.create_bytes_table("t", rules("sum:u64")).unwrap();
    (0..20_000).for_each(|number| write(&table, WriteOp::Fold, number, &number.to_le_bytes()));
    let before = assert_same(&table.scan());
    assert_eq!(before.cost.rows_scanned, 20_000, "what is in memory is read");
    compact(&store);
    let after = assert_same(&table.scan());
    assert_eq!((after.cost.rows_scanned, after.cost.block_summaries), (0, 0));
    assert!(after.cost.part_summaries > 1, "{:?}", after.cost);
    let inner = assert_same(&table.scan().from(&key(3_333)).before(&key(15_001)));
    assert!(inner.cost.rows_scanned < 1000 && inner.cost.block_summaries > 3, "{:?}", inner.cost);
    assert!(inner.cost.ranges_scanned <= 2, "{:?}", inner.cost);
    // One key that is written again costs the reading of its block.
    write(&table, WriteOp::Fold, 9_000, &1u64.to_le_bytes());
    let touched = assert_same(&table.scan());
    assert!(touched.cost.ranges_scanned == 1 && touched.cost.rows_scanned < 1000, "{:?}", touched.cost);
    store.close().unwrap();
    let store = Store::open(dir.path().join("store"), options()).unwrap();
    assert_same(&store.bytes_table("t").unwrap().scan());
}

#[test]
fn keys_on_both_sides_of_the_bottom_run_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let table = store.create_bytes_table("t", rules("sum:u64")).unwrap();
    (100..200).for_each(|number| write(&table, WriteOp::Fold, number, &number.to_le_bytes()));
    compact(&store);
    [5, 205].into_iter().for_each(|number| write(&table, WriteOp::Fold, number, &number.to_le_bytes()));
    for (from, to, rows) in [(0, 50, 1), (0, 6, 1), (150, 300, 51), (201, 300, 1), (0, 300, 102), (6, 100, 0)]
    {
        assert_eq!(assert_same(&table.scan().from(&key(from)).before(&key(to))).rows, rows);
        assert_eq!(assert_same(&table.scan().from(&key(from)).through(&key(to - 1))).rows, rows);
    }
}

/// A block states the aggregate of all of its records. A reader that does not see all of them, or
/// sees some deleted, does not use it.
#[test]
fn what_is_newer_than_a_snapshot_or_deleted_in_a_range_is_not_counted() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let table = store.create_bytes_table("t", rules("sum:u64")).unwrap();
    // A block describes records that were set in one piece, also for readers of the past.
    let set = |number: u64| write(&table, WriteOp::Put, number, &1u64.to_le_bytes());
    (0..1000).for_each(set);
    let all = store.snapshot();
    table.delete_range(&key(100), &key(300)).unwrap();
    (250..1500).for_each(set);
    let less = store.snapshot();
    (1500..2000).for_each(set);
    for how in [|_: &Store| {}, |store: &Store| store.flush().unwrap(), compact] {
        how(&store);
        assert_eq!(assert_same(&all.scan(&table)).rows, 1000);
        assert_eq!(assert_same(&less.scan(&table)).rows, 1350);
        assert_eq!(assert_same(&table.scan()).rows, 1850);
    }
    table.delete_range(&key(1700), &key(1800)).unwrap(); // the parts do not know of it
    assert_eq!(assert_same(&table.scan()).rows, 1750);
    assert_eq!(assert_same(&less.scan(&table)).rows, 1350);
}

/// As many as memory holds, without a flush: in the active memtable, and in sealed ones.
#[test]
fn keys_in_memory_are_counted_wherever_they_wait() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let table = store.create_bytes_table("t", rules("sum:u64")).unwrap();
    let fold = |number: u64| write(&table, WriteOp::Fold, number, &1u64.to_le_bytes());
    (0..100_000).filter(|number| number % 10 == 0).for_each(fold);
    compact(&store);
    (0..30_000).for_each(fold);
    assert_eq!(store.bytes_table("t").unwrap().stats().unwrap().runs.len(), 1);
    assert_eq!(assert_same(&table.scan()).rows, 37_000);
    assert_eq!(assert_same(&table.scan().from(&key(5)).before(&key(15))).rows, 10);
}

#[test]
fn tables_without_summaries_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let table = store.create_bytes_table("t", rules("sum:u64").summaries(false)).unwrap();
    (0..100).for_each(|number| write(&table, WriteOp::Fold, number, &number.to_le_bytes()));
    compact(&store);
    assert_eq!(assert_same(&table.scan()).cost.rows_scanned, 100);
}

#[test]
fn a_question_that_no_aggregate_answers_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let table = store.create_bytes_table("t", rules("replace")).unwrap();
    (0..1000).for_each(|number| write(&table, WriteOp::Put, number, b"value"));
    compact(&store);
    assert_eq!(table.scan().count().unwrap(), 1000);
    let refused = table.scan().aggregate().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    let sums = store.create_bytes_table("sums", rules("sum:u64")).unwrap();
    assert_eq!(sums.scan().limit(3).aggregate().unwrap_err().kind(), ErrorKind::InvalidInput);
    let none = sums.scan().aggregate().unwrap();
    assert_eq!((none.rows, none.value), (0, None));
    let expiring = rules("sum:u64").expire(folddb::Expire::ByWrite);
    assert_eq!(store.create_bytes_table("no", expiring).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[derive(Clone, Debug)]
enum Step {
    Fold(u64, u64),
    Set(u64, u64),
    Delete(u64),
    DeleteRange(u64, u64),
    Flush,
    Work,
    Compact,
    Snapshot,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let number = || 0..400u64;
    let step = prop_oneof![
        12 => (number(), 1..50u64).prop_map(|(key, value)| Step::Fold(key, value)),
        6 => (number(), 0..50u64).prop_map(|(key, value)| Step::Set(key, value)),
        4 => number().prop_map(Step::Delete),
        1 => (number(), 1..30u64).prop_map(|(from, len)| Step::DeleteRange(from, from + len)),
        2 => Just(Step::Flush),
        4 => Just(Step::Work),
        1 => Just(Step::Compact),
        1 => Just(Step::Snapshot),
    ];
    proptest::collection::vec(step, 1..120)
}

fn play(store: &Store, table: &BytesTable, step: &Step) {
    match step {
        Step::Fold(number, value) => write(table, WriteOp::Fold, *number, &value.to_le_bytes()),
        Step::Set(number, value) => write(table, WriteOp::Put, *number, &value.to_le_bytes()),
        Step::Delete(number) => write(table, WriteOp::Delete, *number, b""),
        Step::DeleteRange(from, to) => drop(table.delete_range(&key(*from), &key(*to)).unwrap()),
        Step::Flush => store.flush().unwrap(),
        Step::Work => drop(store.background_step().unwrap()),
        Step::Compact => compact(store),
        Step::Snapshot => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn aggregates_are_what_scans_come_to(
        steps in steps(),
        filled in (0..400u64, 0..400u64),
        ranges in proptest::collection::vec((0..400u64, 0..400u64), 4),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path().join("store"), options().tuning(|t| t.part_bytes(4096))).unwrap();
        let table = store.create_bytes_table("t", rules("sum:u64")).unwrap();
        (filled.0..filled.1).for_each(|number| write(&table, WriteOp::Fold, number, &number.to_le_bytes()));
        compact(&store);
        let mut snapshots = Vec::new();
        for step in &steps {
            play(&store, &table, step);
            if matches!(step, Step::Snapshot) {
                snapshots.push(store.snapshot());
            }
        }
        let scans = || std::iter::once(table.scan()).chain(snapshots.iter().map(|at| at.scan(&table)));
        for (from, to) in &ranges {
            for scan in scans() {
                assert_same(&scan.clone().from(&key(*from)).before(&key(*to)));
                assert_same(&scan.clone().after(&key(*from)).through(&key(*to)));
                assert_same(&scan);
            }
        }
    }
}

/// Adds, but to no more than 250.
struct Full;

impl Fold for Full {
    fn spec(&self) -> String {
        "full".to_owned()
    }
    fn fold(&self, _: &[u8], one: &[u8], other: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        let sum = one.iter().chain(other).fold(0, |sum: u8, add| sum.saturating_add(*add));
        out.push(sum);
        if sum > 250 { Err(FoldFailure::new("it is full")) } else { Ok(Outcome::Value) }
    }
}

/// A block has no key by which it could be named.
#[test]
fn what_does_not_fold_is_named_a_key_or_a_block() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options().custom_fold(Arc::new(Full))).unwrap();
    let rules = TableRules::new(KeyCodec::U64).custom_fold("full", 1).block_bytes(512).summaries(true);
    let table = store.create_bytes_table("t", rules).unwrap();
    let value = |number: u64| [if number.is_multiple_of(100) { 25 } else { 0 }];
    (0..4000).for_each(|number| write(&table, WriteOp::Fold, number, &value(number)));
    let failed = || table.scan().aggregate().unwrap_err().message().to_owned();
    assert!(failed().contains("do not fold up to key 1000: it is full"), "{}", failed());
    compact(&store);
    let told = table.scan().before(&key(900)).aggregate().unwrap();
    assert!(told.rows == 900 && told.cost.block_summaries > 0, "{told:?}");
    assert!(
        failed().contains("the aggregate of a block does not fold onto the values before it"),
        "{}",
        failed()
    );
    assert!(!failed().contains("key"), "{}", failed());
}
