use std::ops::Bound;

use folddb_layout::block::BlockCursor;
use folddb_rules::KeyOrder;
use proptest::prelude::*;

use crate::part::Part;
use crate::tests::{World, part_of, rows};
use crate::{Extent, WriteOptions};

fn bound(kind: u8, key: &[u8]) -> Bound<&[u8]> {
    match kind % 3 {
        0 => Bound::Unbounded,
        1 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

fn is_within(order: &KeyOrder, (low, high): (Bound<&[u8]>, Bound<&[u8]>), key: &[u8]) -> bool {
    let is_above = match low {
        Bound::Unbounded => true,
        Bound::Included(low) => order.compare(low, key).is_le(),
        Bound::Excluded(low) => order.compare(low, key).is_lt(),
    };
    let is_below = match high {
        Bound::Unbounded => true,
        Bound::Included(high) => order.compare(key, high).is_le(),
        Bound::Excluded(high) => order.compare(key, high).is_lt(),
    };
    is_above && is_below
}

/// The blocks of a part, read one by one: bytes of those with only keys of a range, bytes of those
/// with at least one, and the longest of all.
fn of_blocks(part: &Part, range: (Bound<&[u8]>, Bound<&[u8]>)) -> (u64, u64, u64) {
    let (mut whole, mut met, mut longest) = (0, 0, 0);
    for number in 0..part.boundaries().len() {
        for &place in &part.leaf_in_passing(number).unwrap().places {
            let block = part.read_block(place).unwrap();
            let mut cursor = BlockCursor::new(0);
            cursor.enter(&block);
            cursor.seek_index(&block, 0).unwrap();
            let (mut inside, mut records) = (0, 0);
            while let Some(record) = cursor.record(&block) {
                records += 1;
                inside += u64::from(is_within(part.order(), range, record.key));
                cursor.next(&block).unwrap();
            }
            let bytes = u64::from(place.len_bytes);
            longest = bytes.max(longest);
            whole += if inside == records { bytes } else { 0 };
            met += if inside > 0 { bytes } else { 0 };
        }
    }
    (whole, met, longest)
}

proptest! {
    /// What the index says is a bound on both sides, and at most the two blocks at the ends of the
    /// range are between them: with any keys, orders, bounds and lengths of blocks, and with keys
    /// that span blocks.
    #[test]
    fn the_index_bounds_the_bytes_of_any_range(
        rows in rows(),
        number in 0u8..3,
        block_bytes in 64usize..600,
        kinds in (0u8..3, 0u8..3),
        ends in proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 2),
    ) {
        let (order, records, part) = part_of(rows, number, block_bytes);
        let mut keys: Vec<Vec<u8>> = ends
            .iter()
            .map(|(at, is_longer)| {
                let mut key = at.get(&records).key.clone();
                key.extend(is_longer.then_some(0));
                key
            })
            .collect();
        keys.sort_by(|a, b| order.compare(a, b));
        let range = (bound(kinds.0, &keys[0]), bound(kinds.1, &keys[1]));
        let Extent { least_bytes, most_bytes, all_bytes } = part.extent(range.0, range.1).unwrap();
        let (whole, met, longest) = of_blocks(&part, range);
        prop_assert!(least_bytes <= whole && met <= most_bytes && most_bytes <= all_bytes);
        prop_assert!(most_bytes - least_bytes <= 2 * longest, "{least_bytes} {most_bytes} {longest}");
        let is_all = records.iter().all(|record| is_within(&order, range, &record.key));
        prop_assert!(!is_all || least_bytes == all_bytes, "a range of everything is known exactly");
    }
}

#[test]
fn an_estimate_reads_no_block() {
    let records = crate::tests::numbers(20_000);
    let world = World::new(0, 4);
    let part = world.part(1, &WriteOptions::default(), &records);
    let before = part.shared().stats();
    let (low, high) = (&records[5_000].key[..], &records[15_000].key[..]);
    let extent = part.extent(Bound::Included(low), Bound::Excluded(high)).unwrap();
    assert_eq!(part.shared().stats().pieces_read - before.pieces_read, 2, "a leaf for each bound");
    assert!((extent.share() - 0.5).abs() < 0.02, "{extent:?}");
}
