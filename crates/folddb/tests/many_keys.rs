//! Keys that are read at once have the values that gets have: of any keys in any order, repeated or
//! absent, in memory and in runs, under range deletes, now and at snapshots.
#![allow(clippy::unwrap_used)]

mod common;

use common::{fresh, small};
use folddb::codec::KeyCodec;
use folddb::table_rules::TableRules;
use folddb::{BytesTable, Reader, Store, WriteOp};
use proptest::prelude::*;

/// So many keys may be in a table; those that are asked for may be above.
const KEYS: u64 = 3000;

fn key(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

#[derive(Clone, Debug)]
enum Step {
    /// Sums or puts on so many keys, from one on, at this distance.
    Write {
        is_sum: bool,
        from: u64,
        keys: u64,
        by: u64,
    },
    Delete(u64),
    DeleteRange(u64, u64),
    Flush,
    Work,
    Compact,
    Snapshot,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let number = || 0..KEYS;
    let step = prop_oneof![
        8 => (any::<bool>(), number(), 1..600u64, 1..9u64)
            .prop_map(|(is_sum, from, keys, by)| Step::Write { is_sum, from, keys, by }),
        3 => number().prop_map(Step::Delete),
        2 => (number(), 1..200u64).prop_map(|(from, len)| Step::DeleteRange(from, from + len)),
        5 => Just(Step::Flush),
        2 => Just(Step::Work),
        1 => Just(Step::Compact),
        1 => Just(Step::Snapshot),
    ];
    proptest::collection::vec(step, 1..40)
}

fn play(store: &Store, (table, is_reversed): (&BytesTable, bool), step: &Step, number: u64) {
    match *step {
        Step::Write { is_sum, from, keys, by } => (0..keys).for_each(|at| {
            let op = if is_sum { WriteOp::Fold } else { WriteOp::Put };
            let value = (number * 1_000_000 + at).to_le_bytes();
            table.write(op, &key((from + at * by) % KEYS), &value).unwrap();
        }),
        Step::Delete(number) => {
            table.delete(&key(number)).unwrap();
        }
        Step::DeleteRange(low, high) => {
            let (from, to) = if is_reversed { (high, low) } else { (low, high) };
            table.delete_range(&key(from), &key(to)).unwrap();
        }
        Step::Flush => store.flush().unwrap(),
        Step::Work => drop(store.background_step().unwrap()),
        Step::Compact => table.compact().unwrap(),
        Step::Snapshot => {}
    }
}

/// Asks at once, which reads blocks that were not read before, and then one by one.
fn assert_same(reader: &impl Reader<Key = Vec<u8>, Value = Vec<u8>>, asked: &[u64]) {
    let asked: Vec<Vec<u8>> = asked.iter().map(|number| key(*number)).collect();
    let found = reader.get_many(&asked).unwrap();
    let expected: Vec<Option<Vec<u8>>> = asked.iter().map(|key| reader.get(key).unwrap()).collect();
    assert_eq!(found, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 40 }))]

    #[test]
    fn keys_read_at_once_have_the_values_that_gets_have(
        steps in steps(),
        asked in proptest::collection::vec(0..KEYS + 300, 0..150),
        near in (0..KEYS, 1..100u64),
        is_reversed in any::<bool>(),
    ) {
        let (_dir, store) = fresh(small().tuning(|t| t.part_bytes(16 << 10).merge_factor(4)));
        let order = if is_reversed { "reversed" } else { "bytewise" };
        let rules = TableRules::new(KeyCodec::U64).order(order).fold("sum:u64").block_bytes(512);
        let table = store.create_bytes_table("t", rules).unwrap();
        let mut snapshots = Vec::new();
        for (step, number) in steps.iter().zip(0..) {
            play(&store, (&table, is_reversed), step, number);
            if matches!(step, Step::Snapshot) {
                snapshots.push(store.snapshot());
            }
        }
        let together: Vec<u64> = (near.0..near.0 + near.1).rev().collect();
        for asked in [&asked, &together] {
            assert_same(&table, asked);
            for snapshot in &snapshots {
                assert_same(&snapshot.table(&table), asked);
            }
        }
    }
}
