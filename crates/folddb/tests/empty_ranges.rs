//! A drained table: scans that begin where an earlier one found nothing skip that range, and still
//! see all later writes.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;

use common::{fresh, manual};
use folddb::{BackgroundWork, Options, Rules, Snapshot, Store, Table};

const KEYS: u64 = 400;

/// A number as good as random (a step of SplitMix64).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32
}

fn check(table: &Table<u64, u64>, model: &BTreeMap<u64, u64>, from: u64, limit: usize) {
    let found: Vec<_> = table.scan().from(&from).limit(limit).into_iter().map(Result::unwrap).collect();
    let expected: Vec<_> = model.range(from..).map(|(key, value)| (*key, *value)).take(limit).collect();
    assert_eq!(found, expected, "from {from}");
}

/// Sums whose value 0 is absent, or plain values: written, deleted range by range, flushed, merged
/// and read in any order.
fn run(seed: u64, rules: Rules<u64, u64>, folds: bool) {
    let (_dir, store) = fresh(manual());
    let table = store.table("t", rules).unwrap();
    let mut model = BTreeMap::new();
    let mut past: Option<(Snapshot, BTreeMap<u64, u64>)> = None;
    let mut chance = seed;
    for _ in 0..1500 {
        let (what, key) = (next(&mut chance) % 20, next(&mut chance) % KEYS);
        match what {
            0..=4 => {
                table.put(&key, &(key + 1)).unwrap();
                model.insert(key, key + 1);
            }
            5..=7 if folds => {
                table.fold(&key, &1).unwrap();
                *model.entry(key).or_insert(0) += 1;
            }
            5..=7 => {
                table.put_if_absent(&key, &5).unwrap();
                model.entry(key).or_insert(5);
            }
            8 => {
                let end = key + next(&mut chance) % 200;
                for key in key..end {
                    table.delete(&key).unwrap();
                }
                model.retain(|at, _| *at < key || *at >= end);
            }
            9 => {
                table.delete_range(&key, &(key + 30)).unwrap();
                model.retain(|at, _| *at < key || *at >= key + 30);
            }
            10 => store.flush().unwrap(),
            11 => drop(store.background_step().unwrap()),
            12 => past = Some((store.snapshot(), model.clone())),
            13 => past = None,
            14..=16 => check(&table, &model, 0, 1),
            17 => check(&table, &model, key, 3),
            _ => check(&table, &model, 0, usize::MAX),
        }
        if let Some((snapshot, then)) = past.as_ref().filter(|_| what >= 14) {
            let found: Vec<_> =
                snapshot.scan(&table).from(&key).limit(2).into_iter().map(Result::unwrap).collect();
            let expected: Vec<_> = then.range(key..).map(|(key, value)| (*key, *value)).take(2).collect();
            assert_eq!(found, expected, "at the snapshot, from {key}");
        }
    }
}

#[test]
fn scans_of_a_table_that_is_drained_see_what_there_is() {
    for seed in 1..=3 {
        run(seed, Rules::sorted::<u64, u64>(), false);
        run(seed + 100, Rules::sorted::<u64, u64>().fold("sum:u64"), true);
    }
}

/// A value that a delete predicate makes absent may be folded with later operands, so no scan may
/// skip it.
#[test]
fn values_that_a_predicate_makes_absent_are_not_jumped_over() {
    let dir = tempfile::tempdir().unwrap();
    let zero = |_: &[u8], value: &[u8]| value == 0i64.to_le_bytes();
    let options = Options::default().background(BackgroundWork::Manual).custom_predicate("zero", zero);
    let store = Store::create(dir.path().join("s.folddb"), options).unwrap();
    let table = store.table("t", Rules::sorted::<u64, i64>().fold("sum:i64").delete_by("zero")).unwrap();
    let first = || table.scan().limit(1).into_iter().next().transpose().unwrap();
    for key in 0..500u64 {
        table.fold(&key, &3).unwrap();
    }
    store.flush().unwrap();
    for key in 0..500u64 {
        table.fold(&key, &-3).unwrap();
    }
    assert_eq!(first(), None);
    table.fold(&7, &2).unwrap();
    store.flush().unwrap();
    assert_eq!(first(), Some((7, 2)));
}
