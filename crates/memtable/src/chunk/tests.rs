//! Chunks: sorting and searching agree with the order of the table, for keys of any shape.

use std::cmp::Ordering;
use std::sync::Arc;

use folddb_base::{Direction, OpKind, RecordStream};
use folddb_rules::order::CustomOrder;
use proptest::prelude::*;

use super::*;
use crate::hash::key_hash;
use crate::kway::KWay;
use crate::packed;

struct ByLength;

impl CustomOrder for ByLength {
    fn name(&self) -> &str {
        "by-length"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len())
    }
}

pub(crate) fn any_order() -> impl Strategy<Value = KeyOrder> {
    (0..3).prop_map(|which| match which {
        0 => KeyOrder::Bytewise,
        1 => KeyOrder::Reversed,
        _ => KeyOrder::Custom(Arc::new(ByLength)),
    })
}

/// Few distinct bytes, so that keys are prefixes of each other and of the zero padding; some with a
/// long common prefix, so that eight bytes do not decide.
pub(crate) fn any_key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop::sample::select(vec![0u8, 1, 0x61, 0xff]);
    let short = prop::collection::vec(byte, 0..4);
    (short.clone(), short, 0..3u8).prop_map(|(head, tail, middle)| match middle {
        0 => head,
        1 => [b"a common prefix/", &tail[..]].concat(),
        _ => [&head[..], b"twelve bytes", &tail[..]].concat(),
    })
}

pub(crate) fn chunk_of(order: &KeyOrder, keys: &[Vec<u8>], base_seq: Seq) -> Chunk {
    let mut raw = RawTail { base_seq, last_seq: base_seq + keys.len() as Seq, ..RawTail::default() };
    for (index, key) in keys.iter().enumerate() {
        raw.entries.push((raw.arena.len() as u32, index as u32));
        packed::put(&mut raw.arena, OpKind::Fold, key, &[]);
    }
    Chunk::from_raw(order, raw)
}

fn total_order(order: &KeyOrder, a: &(Vec<u8>, Seq), b: &(Vec<u8>, Seq)) -> Ordering {
    order.compare(&a.0, &b.0).then(b.1.cmp(&a.1))
}

fn all(mut stream: KWay) -> Vec<(Vec<u8>, Seq)> {
    let mut records = Vec::new();
    while let Some(record) = stream.record() {
        records.push((record.key.to_vec(), record.seq));
        stream.advance().unwrap();
    }
    stream.advance().unwrap();
    assert_eq!(stream.record(), None, "it stays at the end");
    records
}

fn any_bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    (0..3, any_key()).prop_map(|(which, key)| match which {
        0 => Bound::Unbounded,
        1 => Bound::Included(key),
        _ => Bound::Excluded(key),
    })
}

proptest! {
    #[test]
    fn streams_of_chunks_are_in_the_total_order_and_mirrored(
        order in any_order(),
        keys in prop::collection::vec(any_key(), 0..80),
        cuts in prop::collection::vec(0usize..80, 0..6),
        from in any_bound(),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(keys.len())).collect();
        cuts.extend([0, keys.len()]);
        cuts.sort_unstable();
        let chunks: Vec<Arc<Chunk>> = cuts.windows(2)
            .map(|cut| Arc::new(chunk_of(&order, &keys[cut[0]..cut[1]], 100 + cut[0] as Seq)))
            .collect();
        let stream = |direction| {
            let newest_first = chunks.iter().rev().cloned();
            all(KWay::new(order.clone(), newest_first, direction, from.as_ref().map(|key| &key[..]), None))
        };
        let mut expected: Vec<_> = keys.iter().cloned().zip(100..).collect();
        expected.sort_by(|a, b| total_order(&order, a, b));
        let placed = |key: &[u8], bound: &[u8]| order.compare(key, bound);
        let forward: Vec<_> = expected.iter().filter(|(key, _)| match &from {
            Bound::Unbounded => true,
            Bound::Included(bound) => placed(key, bound).is_ge(),
            Bound::Excluded(bound) => placed(key, bound).is_gt(),
        }).cloned().collect();
        let reversed: Vec<_> = expected.iter().rev().filter(|(key, _)| match &from {
            Bound::Unbounded => true,
            Bound::Included(bound) => placed(key, bound).is_le(),
            Bound::Excluded(bound) => placed(key, bound).is_lt(),
        }).cloned().collect();
        prop_assert_eq!(stream(Direction::Forward), forward);
        prop_assert_eq!(stream(Direction::Reversed), reversed);
    }

    #[test]
    fn a_key_is_found_with_all_its_records(
        order in any_order(),
        keys in prop::collection::vec(any_key(), 0..60),
        key in any_key(),
        max_seq in 90u64..170,
    ) {
        let chunk = chunk_of(&order, &keys, 100);
        for key in keys.iter().chain([&key]) {
            let found: Vec<Seq> =
                chunk.find(&order, key, key_hash(key), max_seq).map(|record| record.seq).collect();
            let expected: Vec<Seq> = (0..keys.len()).rev()
                .filter(|&index| keys[index] == *key)
                .map(|index| 100 + index as Seq)
                .filter(|&seq| seq <= max_seq)
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}

proptest! {
    #[test]
    fn searching_side_by_side_finds_what_searching_alone_does(
        order in any_order(),
        chunks in prop::collection::vec(prop::collection::vec(any_key(), 0..30), 0..LANES + 1),
        key in any_key(),
    ) {
        let chunks: Vec<Chunk> = chunks.iter().map(|keys| chunk_of(&order, keys, 1)).collect();
        let lanes: Vec<&Chunk> = chunks.iter().collect();
        let found = counts_before(&order, &lanes, &key);
        for (chunk, found) in chunks.iter().zip(found) {
            prop_assert_eq!(found, chunk.count_before(&order, Bound::Included(&key)));
        }
    }
}
