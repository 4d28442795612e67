//! Sorts the records of a tail into the total order.
//!
//! Each record becomes one number, which two instructions compare:
//!
//! ```text
//!   bits 127..64  eight bytes of the key after what all keys share, in the table's order
//!   bits  63..32  the seq delta, inverted: equal keys come newest first
//!   bits  31..0   the offset of the record in its arena
//! ```
//!
//! For keys with a common prefix, sorting without it is three times as fast. If the eight bytes are
//! equal, the whole keys are compared.

use folddb_rules::KeyOrder;
use folddb_rules::order::PrefixOrder;

use crate::packed::Place;

/// A record as a number; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SortKey(u128);

impl SortKey {
    #[inline]
    fn new(prefix: u64, seq_delta: u32, offset: u32) -> SortKey {
        SortKey(u128::from(prefix) << 64 | u128::from(!seq_delta) << 32 | u128::from(offset))
    }

    /// For a record of one of many chunks: the rank of the chunk, newest first, and the index of
    /// the entry. They replace seq delta and offset, and give the records of one key the same
    /// order.
    #[inline]
    pub(crate) fn in_chunk(prefix: u64, rank: usize, index: usize) -> SortKey {
        SortKey(u128::from(prefix) << 64 | (rank as u128) << 32 | index as u128)
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

    /// The number of the same record after it was copied to another offset.
    pub(crate) fn moved_to(self, offset: u32) -> SortKey {
        SortKey(self.0 >> 32 << 32 | u128::from(offset))
    }

    /// See [`SortKey::in_chunk`].
    #[inline]
    pub(crate) fn rank(self) -> usize {
        (self.0 >> 32) as u32 as usize
    }

    /// See [`SortKey::in_chunk`].
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as u32 as usize
    }
}

/// Sorts records, given by offset and seq delta. The result is in `scratch.keys`.
pub(crate) fn sort_records(
    order: &KeyOrder,
    arena: &[u8],
    records: impl DoubleEndedIterator<Item = (u32, u32)> + Clone,
    scratch: &mut SortScratch,
) -> Sorted {
    let sorted = number_records(order, arena, records, scratch);
    sort_numbered(order, arena, sorted, scratch);
    sorted
}

/// Makes the numbers that [`sort_numbered`] sorts.
#[inline]
pub(crate) fn number_records(
    order: &KeyOrder,
    arena: &[u8],
    records: impl DoubleEndedIterator<Item = (u32, u32)> + Clone,
    scratch: &mut SortScratch,
) -> Sorted {
    scratch.keys.clear();
    let Some((first, _)) = records.clone().next() else { return Sorted { skip: 0, exact: true } };
    let first = Place::at(arena, first).key(arena);
    let mut skip = if order.has_byte_prefixes() { first.len() } else { 0 };
    // The bytes that the second and the last key share with the first are nearly always those that
    // all keys share; then one pass is enough.
    for (offset, _) in [records.clone().nth(1), records.clone().next_back()].into_iter().flatten() {
        skip = skip.min(order.shared_prefix_len(first, Place::at(arena, offset).key(arena)));
    }
    let same_len = loop {
        match take_prefixes(order, arena, records.clone(), first, skip, &mut scratch.keys) {
            Ok(same_len) => break same_len,
            Err(shared) => skip = shared,
        }
    };
    let exact = order.has_byte_prefixes() && same_len && first.len() <= skip + 8;
    Sorted { skip, exact }
}

/// Sorts what [`number_records`] numbered, or some of it.
#[inline]
pub(crate) fn sort_numbered(order: &KeyOrder, arena: &[u8], sorted: Sorted, scratch: &mut SortScratch) {
    sort_keys(scratch);
    if !sorted.exact {
        settle_ties(order, &mut scratch.keys, |record| Place::at(arena, record.offset()).key(arena));
    }
}

/// Makes the numbers, if all keys share `skip` bytes with the first key. True if all keys have the
/// length of the first.
///
/// # Errors
/// A key shares less: the number of bytes that it shares.
fn take_prefixes(
    order: &KeyOrder,
    arena: &[u8],
    records: impl Iterator<Item = (u32, u32)>,
    first: &[u8],
    skip: usize,
    out: &mut Vec<SortKey>,
) -> Result<bool, usize> {
    let mut same_len = true;
    out.clear();
    for (offset, seq_delta) in records {
        let key = Place::at(arena, offset).key(arena);
        same_len &= key.len() == first.len();
        if skip > 0 && key.get(..skip) != first.get(..skip) {
            return Err(order.shared_prefix_len(first, key));
        }
        out.push(SortKey::new(order.prefix(key, skip), seq_delta, offset));
    }
    Ok(same_len)
}

/// Sorts the numbers: first into about as many buckets as there are keys, up to 4096, by their
/// position between the lowest and the highest prefix; then each bucket. Random keys are nearly
/// sorted after the first step; for other keys, the second step sorts smaller pieces.
pub(crate) fn sort_keys(scratch: &mut SortScratch) {
    let SortScratch { keys, spread, counts } = scratch;
    let (low, high) = keys.iter().fold((u64::MAX, 0), |(low, high), key| {
        let prefix = key.prefix();
        (low.min(prefix), high.max(prefix))
    });
    if keys.len() < BUCKETS_WORTH_IT || low == high || keys.is_sorted() {
        return keys.sort_unstable();
    }
    let bucket_bits = keys.len().ilog2().min(12);
    let shift = (64 - (high - low).leading_zeros()).saturating_sub(bucket_bits);
    let mask = (1usize << bucket_bits) - 1;
    let bucket_of = |key: &SortKey| ((key.prefix() - low) >> shift) as usize & mask;

    counts.clear();
    counts.resize(mask + 1, 0);
    keys.iter().for_each(|key| counts[bucket_of(key)] += 1);
    let mut start = 0;
    for count in counts.iter_mut() {
        start += std::mem::replace(count, start);
    }
    spread.clear();
    spread.resize(keys.len(), SortKey(0));
    for key in keys.iter() {
        let at = &mut counts[bucket_of(key)];
        spread[*at as usize] = *key;
        *at += 1;
    }
    let mut start = 0;
    for &end in counts.iter() {
        sort_bucket(&mut spread[start..end as usize]);
        start = end as usize;
    }
    std::mem::swap(keys, spread);
}

/// Fewer keys than this are sorted without buckets.
const BUCKETS_WORTH_IT: usize = 64;

#[inline]
fn sort_bucket(bucket: &mut [SortKey]) {
    match bucket {
        [] | [_] => {}
        [a, b] => {
            if b < a {
                std::mem::swap(a, b);
            }
        }
        more => more.sort_unstable(),
    }
}

/// What sorting found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sorted {
    /// Leading bytes that all keys share; the prefixes begin after them.
    pub(crate) skip: usize,
    /// True if keys with equal prefixes are equal.
    pub(crate) exact: bool,
}

/// Buffers of sorting. The sorted numbers are in `keys`.
#[derive(Debug, Default)]
pub(crate) struct SortScratch {
    pub(crate) keys: Vec<SortKey>,
    spread: Vec<SortKey>,
    counts: Vec<u32>,
}

impl SortScratch {
    /// Buffers that hold these numbers.
    pub(crate) fn of(keys: Vec<SortKey>) -> SortScratch {
        SortScratch { keys, ..SortScratch::default() }
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        (self.keys.capacity() + self.spread.capacity()) * size_of::<SortKey>()
            + self.counts.capacity() * size_of::<u32>()
    }
}

/// Sorts keys with equal prefixes by the whole keys. The sort is stable: the records of a key stay
/// newest first.
pub(crate) fn settle_ties<'k>(order: &KeyOrder, sorted: &mut [SortKey], key: impl Fn(&SortKey) -> &'k [u8]) {
    for run in sorted.chunk_by_mut(|a, b| a.prefix() == b.prefix()) {
        let one_key = run.windows(2).all(|pair| key(&pair[0]) == key(&pair[1]));
        if !one_key {
            run.sort_by(|a, b| order.compare(key(a), key(b)));
        }
    }
}

#[cfg(test)]
#[path = "sort/tests.rs"]
mod tests;
