use proptest::prelude::*;

use crate::tests::{World, numbers, part_of, rows};
use crate::{GapSearch, WriteOptions};

proptest! {
    /// It finds what a look at each record finds: with any keys, orders and lengths of blocks, with
    /// keys that span blocks and leaves, and however many gaps one search is asked about.
    #[test]
    fn a_gap_has_a_key_exactly_if_a_record_has_one(
        rows in rows(),
        number in 0u8..3,
        block_bytes in 64usize..600,
        ends in proptest::collection::vec((any::<prop::sample::Index>(), 0u8..3), 2..20),
    ) {
        let (order, records, part) = part_of(rows, number, block_bytes);
        let mut keys: Vec<Vec<u8>> = ends
            .iter()
            .map(|(at, change)| {
                let mut key = at.get(&records).key.clone();
                match change {
                    0 => key.push(0),
                    1 => _ = key.pop(),
                    _ => {}
                }
                key
            })
            .collect();
        keys.sort_by(|a, b| order.compare(a, b));
        let mut search = GapSearch::new(&part);
        for gap in keys.windows(2) {
            let is_in = |key: &[u8]| {
                order.compare(&gap[0], key).is_le() && order.compare(key, &gap[1]).is_lt()
            };
            let has = records.iter().any(|record| is_in(&record.key));
            prop_assert_eq!(search.has_between(&gap[0], &gap[1]).unwrap(), has, "{:?}", gap);
        }
    }
}

#[test]
fn a_search_reads_a_block_or_two_for_each_gap_and_keeps_none() {
    let records = numbers(20_000);
    let world = World::new(1 << 20, 4);
    let part = world.part(1, &WriteOptions::default(), &records);
    part.warm();
    let (before, cached) = (part.shared().stats(), part.shared().stats().cache_bytes);
    let mut search = GapSearch::new(&part);
    for at in [5_000, 5_001, 5_002, 15_000] {
        let (key, next) = (&records[at].key, &records[at + 1].key);
        let behind = [&key[..], &[0]].concat();
        assert!(search.has_between(key, next).unwrap());
        assert!(!search.has_between(&behind, next).unwrap());
    }
    let stats = part.shared().stats();
    let read = stats.pieces_read - before.pieces_read;
    assert!((2..=4).contains(&read), "{read} blocks for two places");
    assert_eq!(stats.cache_bytes, cached);
    assert!(search.bytes() > 0 && search.bytes() < 8 * (16 << 10), "{} bytes", search.bytes());
}
