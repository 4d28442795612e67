use proptest::prelude::*;

use super::*;

const KEYS: u8 = 12;

/// The newest range delete over a key that a reader at `limit` sees.
fn cover(ranges: &[&RangeDelete], key: u8, limit: Seq) -> Seq {
    let covers = |range: &&&RangeDelete| range.seq <= limit && range.from[0] <= key && key < range.to[0];
    ranges.iter().filter(covers).map(|range| range.seq).max().unwrap_or(0)
}

proptest! {
    #[test]
    fn without_those_that_are_covered_every_reader_misses_what_it_missed(
        ranges in prop::collection::vec((0..KEYS, 0..=KEYS), 0..24),
        boundaries in prop::collection::btree_set(0u64..30, 0..4),
    ) {
        let ranges: Vec<RangeDelete> = (1..)
            .zip(&ranges)
            .map(|(seq, &(from, to))| RangeDelete { from: vec![from], to: vec![to], seq })
            .collect();
        let boundaries: Vec<Seq> = boundaries.into_iter().collect();
        let covered = is_covered(&KeyOrder::Bytewise, &ranges, &boundaries);
        let all: Vec<&RangeDelete> = ranges.iter().collect();
        let kept: Vec<&RangeDelete> =
            ranges.iter().zip(&covered).filter(|(_, covered)| !**covered).map(|(range, _)| range).collect();
        for limit in boundaries.iter().copied().chain([u64::MAX]) {
            for key in 0..KEYS {
                prop_assert_eq!(cover(&kept, key, limit), cover(&all, key, limit));
            }
        }
        // And each that is kept hides some key that no newer one of its stripe hides.
        for range in &kept {
            let limit = boundaries.iter().copied().find(|&boundary| boundary >= range.seq).unwrap_or(u64::MAX);
            prop_assert!((0..KEYS).any(|key| cover(&all, key, limit) == range.seq));
        }
    }
}
