//! Scans of numbers whose records are in several runs and in memory: folded by word where that can
//! be, and the same as gets, forward and backward, at any moment.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;

use common::{drain, fresh, small};
use folddb::codec::KeyCodec;
use folddb::table_rules::TableRules;
use folddb::{BytesTable, Snapshot, Store, WriteOp};
use proptest::prelude::*;

type Model = BTreeMap<Vec<u8>, u64>;

fn table_of(store: &Store, order: &str, fold: &str) -> BytesTable {
    let rules = TableRules::new(KeyCodec::Bytes).order(order).fold(fold).block_bytes(512);
    store.create_bytes_table("t", rules).unwrap()
}

fn write(table: &BytesTable, op: WriteOp, key: &[u8], number: u64) {
    let bytes = number.to_le_bytes();
    table.write(op, key, if op == WriteOp::Delete { &[] } else { &bytes }).unwrap();
}

/// All rows, read forward; the same backward, and by gets.
fn rows(table: &BytesTable, at: Option<&Snapshot>) -> Vec<(Vec<u8>, u64)> {
    let scan = || at.map_or_else(|| table.scan(), |at| at.scan(table));
    let number = |value: Vec<u8>| u64::from_le_bytes(value.try_into().unwrap());
    let collect = |scan: folddb::BytesScan| -> Vec<(Vec<u8>, u64)> {
        let row = |row: folddb::Result<(Vec<u8>, Vec<u8>)>| row.map(|(key, value)| (key, number(value)));
        scan.into_iter().map(|found| row(found).unwrap()).collect()
    };
    let forward = collect(scan());
    let mut backward = collect(scan().reverse());
    backward.reverse();
    assert_eq!(forward, backward);
    if at.is_none() {
        for (key, value) in &forward {
            assert_eq!(table.get(key).unwrap().map(number), Some(*value));
        }
    }
    let heads = scan().keys_only().count().unwrap();
    assert_eq!(heads as usize, forward.len());
    forward
}

#[test]
fn sums_over_other_ops_are_the_same_both_ways() {
    let (_dir, store) = fresh(small());
    let table = table_of(&store, "bytewise", "sum:u64");
    write(&table, WriteOp::PutIfAbsent, b"inserted", 5);
    write(&table, WriteOp::Put, b"put", 100);
    write(&table, WriteOp::Fold, b"put", 1);
    write(&table, WriteOp::Fold, b"gone", 9);
    write(&table, WriteOp::Fold, b"full", u64::MAX - 1);
    store.flush().unwrap();
    write(&table, WriteOp::Fold, b"inserted", 7);
    write(&table, WriteOp::Put, b"put", 20);
    write(&table, WriteOp::Delete, b"gone", 0);
    write(&table, WriteOp::Fold, b"full", 4);
    store.flush().unwrap();
    for key in ["inserted", "put", "gone", "full"] {
        write(&table, WriteOp::Fold, key.as_bytes(), 1);
    }
    let expected = [("full", u64::MAX), ("gone", 1), ("inserted", 13), ("put", 21)];
    let expected: Vec<_> = expected.map(|(key, sum)| (key.as_bytes().to_vec(), sum)).to_vec();
    assert_eq!(rows(&table, None), expected);
}

#[test]
fn a_key_in_memory_with_another_beginning_is_in_its_place() {
    let (_dir, store) = fresh(small());
    let table = table_of(&store, "bytewise", "sum:u64");
    for run in 0..3 {
        for number in 0..50 {
            write(&table, WriteOp::Fold, format!("user:{number:05}").as_bytes(), run);
        }
        store.flush().unwrap();
    }
    for key in ["order:1", "user:00030", "user:00030-", "users", "us", "z"] {
        write(&table, WriteOp::Fold, key.as_bytes(), 1);
    }
    let found = rows(&table, None);
    assert_eq!(found.len(), 55);
    assert!(found.is_sorted());
    assert_eq!(found.iter().map(|(_, sum)| sum).sum::<u64>(), 50 * 3 + 6);
}

/// A step of a random program.
#[derive(Clone, Debug)]
enum Step {
    Write(WriteOp, usize, u64),
    DeleteRange(usize, usize),
    Flush,
    Merge,
    Snapshot,
}

/// Keys that share much, little or nothing.
const KEYS: [&[u8]; 12] = [
    b"user:00001",
    b"user:00002",
    b"user:00003",
    b"user:00003\0",
    b"user:1",
    b"user",
    b"usher",
    b"order:7",
    b"",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    b"z",
];

fn step() -> impl Strategy<Value = Step> {
    let op = prop_oneof![
        6 => Just(WriteOp::Fold),
        1 => Just(WriteOp::Put),
        1 => Just(WriteOp::PutIfAbsent),
        1 => Just(WriteOp::Delete)
    ];
    let number = prop_oneof![0u64..100, Just(u64::MAX), Just(u64::MAX - 1)];
    prop_oneof![
        12 => (op, 0..KEYS.len(), number).prop_map(|(op, key, number)| Step::Write(op, key, number)),
        1 => (0..KEYS.len(), 0..KEYS.len()).prop_map(|(from, to)| Step::DeleteRange(from, to)),
        2 => Just(Step::Flush),
        1 => Just(Step::Merge),
        1 => Just(Step::Snapshot)
    ]
}

fn apply(model: &mut Model, op: WriteOp, key: &[u8], number: u64, fold: fn(u64, u64) -> u64) {
    let key = key.to_vec();
    match op {
        WriteOp::Put => {
            model.insert(key, number);
        }
        WriteOp::PutIfAbsent => {
            model.entry(key).or_insert(number);
        }
        WriteOp::Fold => {
            model.entry(key).and_modify(|value| *value = fold(*value, number)).or_insert(number);
        }
        WriteOp::Delete => {
            model.remove(&key);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 60 }))]
    #[test]
    fn scans_show_what_a_map_has(
        is_descending: bool,
        chosen in 0usize..3,
        steps in prop::collection::vec(step(), 1..90),
    ) {
        type Folds = fn(u64, u64) -> u64;
        let folds: [(&str, Folds); 3] =
            [("sum:u64", u64::saturating_add), ("sum:i64", u64::wrapping_add), ("max:u64", u64::max)];
        let (spec, fold) = folds[chosen];
        let (_dir, store) = fresh(small());
        let table = table_of(&store, if is_descending { "reversed" } else { "bytewise" }, spec);
        let in_order = |model: &Model| -> Vec<(Vec<u8>, u64)> {
            let rows = model.iter().map(|(key, value)| (key.clone(), *value));
            if is_descending { rows.rev().collect() } else { rows.collect() }
        };
        let mut model = Model::new();
        let mut past: Vec<(Snapshot, Model)> = Vec::new();
        for step in steps {
            match step {
                Step::Write(op, key, number) => {
                    write(&table, op, KEYS[key], number);
                    apply(&mut model, op, KEYS[key], number, fold);
                }
                Step::DeleteRange(a, b) => {
                    if a == b {
                        continue;
                    }
                    let (low, high) = (KEYS[a].min(KEYS[b]), KEYS[a].max(KEYS[b]));
                    let (from, to) = if is_descending { (high, low) } else { (low, high) };
                    table.delete_range(from, to).unwrap();
                    let hides = |key: &[u8]| match is_descending {
                        true => low < key && key <= high,
                        false => low <= key && key < high,
                    };
                    model.retain(|key, _| !hides(key));
                }
                Step::Flush => store.flush().unwrap(),
                Step::Merge => drain(&store),
                Step::Snapshot => past.push((store.snapshot(), model.clone())),
            }
            prop_assert_eq!(rows(&table, None), in_order(&model));
        }
        for (snapshot, model) in &past {
            prop_assert_eq!(rows(&table, Some(snapshot)), in_order(model));
        }
    }
}
