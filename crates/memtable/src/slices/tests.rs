//! Slices return the same as the tree, wherever they are cut.

use std::ops::Bound;

use folddb_base::{Direction, Seq};
use proptest::prelude::*;

use super::*;
use crate::chunk::tests::{any_key, any_order, chunk_of};
use crate::kway::KWay;

/// Keys of one chunk: awkward ones, or numbers, few or many, with or without something in common.
fn any_keys() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let numbers = |max: u64| prop::collection::vec(0..max, 1..60);
    prop_oneof![
        prop::collection::vec(any_key(), 1..60),
        numbers(9).prop_map(|keys| keys.iter().map(|key| key.to_be_bytes().to_vec()).collect()),
        numbers(u64::MAX).prop_map(|keys| keys.iter().map(|key| key.to_be_bytes().to_vec()).collect()),
        numbers(500).prop_map(|keys| keys.iter().map(|key| format!("user/{key}").into_bytes()).collect()),
    ]
}

fn all(mut stream: impl RecordStream) -> Vec<(Vec<u8>, Seq)> {
    let mut records = Vec::new();
    while let Some(record) = stream.record() {
        records.push((record.key.to_vec(), record.seq));
        stream.advance().unwrap();
    }
    assert!(stream.advance().is_ok() && stream.record().is_none());
    records
}

proptest! {
    #[test]
    fn they_are_what_the_tree_gives(
        order in any_order(),
        keys in prop::collection::vec(any_keys(), 2..12),
        sample_every in 1usize..9,
        samples in 1usize..9,
    ) {
        let newest_first: Vec<Arc<Chunk>> = keys.iter().enumerate().rev()
            .map(|(age, keys)| Arc::new(chunk_of(&order, keys, 1000 * age as Seq))).collect();
        let cut = Cut { sample_every, records: sample_every * samples, records_max: 1 << 20, chunks_min: 2 };
        let tree =
            KWay::new(order.clone(), newest_first.clone().into_iter(), Direction::Forward, Bound::Unbounded, None);
        match Slices::of(&order, &newest_first, cut) {
            Some(slices) => prop_assert_eq!(all(slices), all(tree)),
            None => prop_assert!(!order.has_byte_prefixes()),
        }
    }
}

#[test]
fn chunks_that_are_few_or_share_a_prefix_are_left_to_the_tree() {
    let order = KeyOrder::Bytewise;
    let same: Vec<Vec<u8>> =
        (0..200u8).map(|last| [&b"long before they differ"[..], &[last]].concat()).collect();
    let other = vec![b"x".to_vec()];
    let chunks = [&same, &other].map(|keys| Arc::new(chunk_of(&order, keys, 0)));
    let cut = Cut { sample_every: 1, records: 10, records_max: 100, chunks_min: 2 };
    assert!(Slices::of(&order, &chunks, cut).is_none());
    assert!(Slices::of(&order, &chunks, Cut { records_max: 201, ..cut }).is_some());
    assert!(Slices::of(&order, &chunks, Cut { records_max: 201, chunks_min: 3, ..cut }).is_none());
}
