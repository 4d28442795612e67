use proptest::prelude::*;

use super::*;

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0u8..4, 0..3)
}

proptest! {
    #[test]
    fn agrees_with_asking_every_range(
        reversed in any::<bool>(),
        ranges in prop::collection::vec((key(), key()), 0..20),
        mut keys in prop::collection::vec(key(), 0..30),
        seq in 0u64..20,
    ) {
        let order = if reversed { KeyOrder::Reversed } else { KeyOrder::Bytewise };
        let ranges: Vec<_> =
            (1..).zip(ranges).map(|(seq, (from, to))| RangeDelete { from, to, seq }).collect();
        keys.sort_by(|a, b| order.compare(a, b));
        let mut sweep = RangeSweep::new(order.clone(), ranges.clone());
        for key in keys {
            sweep.reach(&key);
            let covers = |range: &&RangeDelete| {
                order.compare(&range.from, &key).is_le() && order.compare(&key, &range.to).is_lt()
            };
            let expected = ranges.iter().filter(covers).map(|range| range.seq).filter(|&at| at > seq).min();
            prop_assert_eq!(sweep.next_above(seq), expected);
            let newest_first: Vec<Seq> = sweep.between(seq, 15).collect();
            let covering = ranges.iter().rev().filter(covers).map(|range| range.seq);
            prop_assert_eq!(newest_first, covering.filter(|&at| seq < at && at < 15).collect::<Vec<_>>());
        }
    }
}
