//! Sorting what came unsorted: records of a tail into the total order.
//!
//! Each record becomes one number, compared in two instructions:
//!
//! ```text
//!   bits 127..64  eight bytes of the key after what all keys share, in the table's order
//!   bits  63..32  the seq delta, inverted: equal keys come newest first
//!   bits  31..0   the offset of the record in its arena
//! ```
//!
//! Stripping the common prefix is worth a factor of three on keys that have one. Where eight bytes do not
//! decide, the whole keys do.

use folddb_rules::KeyOrder;

use crate::packed::Place;

/// A record as a number; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SortKey(u128);

impl SortKey {
    #[inline]
    fn new(prefix: u64, seq_delta: u32, offset: u32) -> SortKey {
        SortKey(u128::from(prefix) << 64 | u128::from(!seq_delta) << 32 | u128::from(offset))
    }

    #[inline]
    pub(crate) fn prefix(self) -> u64 {
        (self.0 >> 64) as u64
    }

    #[inline]
    pub(crate) fn seq_delta(self) -> u32 {
        !((self.0 >> 32) as u32)
    }

    #[inline]
    pub(crate) fn offset(self) -> u32 {
        self.0 as u32
    }
}

/// What all keys of a set have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    /// Leading bytes that all share: those that the prefix skips.
    skip: usize,
    /// True when the eight bytes after them decide: equal prefixes are equal keys.
    exact: bool,
}

/// Sorts records, given by offset and seq delta, into `out`. Returns how many leading bytes all keys share.
pub(crate) fn sort_records(
    order: &KeyOrder,
    arena: &[u8],
    records: impl Iterator<Item = (u32, u32)> + Clone,
    out: &mut Vec<SortKey>,
) -> usize {
    let shape = shape_of(order, arena, records.clone().map(|(offset, _)| offset));
    out.clear();
    out.extend(records.map(|(offset, seq_delta)| {
        let key = Place::at(arena, offset).key(arena);
        SortKey::new(order.prefix(key, shape.skip), seq_delta, offset)
    }));
    out.sort_unstable();
    if !shape.exact {
        settle_ties(order, arena, out);
    }
    shape.skip
}

fn shape_of(order: &KeyOrder, arena: &[u8], mut offsets: impl Iterator<Item = u32>) -> Shape {
    let Some(first) = offsets.next() else { return Shape { skip: 0, exact: true } };
    let first = Place::at(arena, first).key(arena);
    let mut skip = first.len();
    let mut same_len = true;
    for offset in offsets {
        let key = Place::at(arena, offset).key(arena);
        same_len &= key.len() == first.len();
        if skip > 0 {
            skip = skip.min(order.shared_prefix_len(first, key));
        }
        if skip == 0 && !same_len {
            break;
        }
    }
    let has_prefixes = order.has_byte_prefixes();
    Shape {
        skip: if has_prefixes { skip } else { 0 },
        exact: has_prefixes && same_len && first.len() <= skip + 8,
    }
}

/// Orders what the prefixes left equal by whole keys. The sort is stable: equal keys stay newest first.
fn settle_ties(order: &KeyOrder, arena: &[u8], sorted: &mut [SortKey]) {
    let key = |record: &SortKey| Place::at(arena, record.offset()).key(arena);
    for run in sorted.chunk_by_mut(|a, b| a.prefix() == b.prefix()) {
        let one_key = run.windows(2).all(|pair| key(&pair[0]) == key(&pair[1]));
        if !one_key {
            run.sort_by(|a, b| order.compare(key(a), key(b)));
        }
    }
}
