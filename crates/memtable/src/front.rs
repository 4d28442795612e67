//! The front of a tail: the records that a forward stream returns first. The rest is sorted when
//! the stream gets there.
//!
//! Most scans end after a few rows. Under a writer at full speed a tail exists for a millisecond:
//! sorting all of it for each scan would be most of the cost of the scan. So the records from the
//! start of the stream on get numbers as for a sort, a few hundred of the lowest are picked and
//! sorted, and the others are kept as they are.

use std::ops::Bound;

use folddb_rules::KeyOrder;
use folddb_rules::order::PrefixOrder;

use crate::chunk::Chunk;
use crate::packed::Place;
use crate::sort::{SortKey, SortScratch, Sorted, number_records, sort_numbered};
use crate::tail::RawTail;

/// How many records a front has. It may have more, since records of one prefix stay together.
const RECORDS: usize = 256;

/// The unsorted records of a tail after its front.
#[derive(Debug)]
pub(crate) struct Rest {
    order: KeyOrder,
    raw: RawTail,
    keys: SortScratch,
    sorted: Sorted,
}

impl Rest {
    /// The rest, sorted.
    #[cold]
    pub(crate) fn sort(mut self) -> Chunk {
        sort_numbered(&self.order, &self.raw.arena, self.sorted, &mut self.keys);
        Chunk::of_sorted(self.raw, &self.keys.keys, self.sorted.skip)
    }
}

/// The front of a tail from `from` on, sorted, and the rest of the tail, if there is one. None if
/// the tail has no record from there on.
pub(crate) fn front_of(order: &KeyOrder, raw: RawTail, from: Bound<&[u8]>) -> Option<(Chunk, Option<Rest>)> {
    let mut scratch = SortScratch::default();
    let sorted = number_records(order, &raw.arena, raw.entries.iter().copied(), &mut scratch);
    leave_out_before(order, &raw, sorted, from, &mut scratch.keys);
    if scratch.keys.is_empty() {
        return None;
    }
    let behind = if order.has_byte_prefixes() { split(&mut scratch.keys) } else { Vec::new() };
    sort_numbered(order, &raw.arena, sorted, &mut scratch);
    if behind.is_empty() {
        return Some((Chunk::of_sorted(raw, &scratch.keys, sorted.skip), None));
    }
    let front = Chunk::of_sorted(copy_of(&raw, &mut scratch.keys), &scratch.keys, sorted.skip);
    let keys = SortScratch::of(behind);
    Some((front, Some(Rest { order: order.clone(), raw, keys, sorted })))
}

/// Leaves out the records that come before `from`, as far as their prefixes show it.
fn leave_out_before(
    order: &KeyOrder,
    raw: &RawTail,
    sorted: Sorted,
    from: Bound<&[u8]>,
    keys: &mut Vec<SortKey>,
) {
    let (Bound::Included(from) | Bound::Excluded(from), Some(first)) = (from, raw.records().next()) else {
        return;
    };
    if from.get(..sorted.skip) == first.key.get(..sorted.skip) {
        let prefix = order.prefix(from, sorted.skip);
        keys.retain(|key| key.prefix() >= prefix);
    } else if order.compare(first.key, from).is_lt() {
        keys.clear(); // all keys come before it
    }
}

/// Takes out all but the lowest keys, and returns those; takes out none if there are too few. No
/// prefix is in both.
fn split(keys: &mut Vec<SortKey>) -> Vec<SortKey> {
    if keys.len() <= 2 * RECORDS {
        return Vec::new();
    }
    let last = keys.select_nth_unstable(RECORDS).1.prefix();
    keys.extract_if(RECORDS.., |key| key.prefix() > last).collect()
}

/// A copy of the records of `keys`. The keys then have the offsets in the copy.
fn copy_of(raw: &RawTail, keys: &mut [SortKey]) -> RawTail {
    let mut copy = RawTail { base_seq: raw.base_seq, last_seq: raw.last_seq, ..RawTail::default() };
    for key in keys {
        let offset = key.offset();
        let packed = Place::at(&raw.arena, offset).packed(&raw.arena, offset);
        *key = key.moved_to(copy.arena.len() as u32);
        copy.arena.extend_from_slice(packed);
    }
    copy
}

#[cfg(test)]
#[path = "front/tests.rs"]
mod tests;
