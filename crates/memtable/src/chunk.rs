//! A chunk: a sealed, sorted, immutable piece of the memtable.
//!
//! ```text
//!   entries   prefix u64 | offset u32 | seq delta u32     in the total order; what searching touches
//!   arena     packed records (see packed.rs)              in the order of the entries, once sealed
//!   filter    ten bits a key
//! ```
//!
//! The prefix is taken after the bytes that all keys of the chunk share, so that it decides most
//! comparisons.

use std::ops::Bound;

use folddb_base::{Record, Seq};
use folddb_rules::KeyOrder;
use folddb_rules::order::PrefixOrder;

use crate::filter::Filter;
use crate::packed::Place;
use crate::sort::{SortKey, SortScratch, sort_records};
use crate::tail::RawTail;

/// One record of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// See [`PrefixOrder::prefix`]; taken after `skip` bytes.
    pub(crate) prefix: u64,
    /// Where its bytes begin in the arena.
    pub(crate) offset: u32,
    /// Its seq, counted from the chunk's `base_seq`.
    pub(crate) seq_delta: u32,
}

/// See the module. It has at least one record, except in a capture without records.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) arena: Vec<u8>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) filter: Filter,
    /// Leading bytes that all keys share; the prefixes begin after them.
    pub(crate) skip: usize,
    /// The seq from which the deltas count: no record has a lower one.
    pub(crate) base_seq: Seq,
    /// No seq is higher.
    pub(crate) max_seq: Seq,
    /// 0 if it was made from a tail; after a merge, one more than that of the inputs, or that of
    /// the oldest if all were merged.
    pub(crate) generation: u32,
}

impl Chunk {
    /// Sorts a copied tail, without folding it. It has no filter: it is only scanned.
    pub(crate) fn from_raw(order: &KeyOrder, raw: RawTail) -> Chunk {
        let mut scratch = SortScratch::default();
        let sorted = sort_records(order, &raw.arena, raw.entries.iter().copied(), &mut scratch);
        Chunk::of_sorted(raw, &scratch.keys, sorted.skip)
    }

    /// Records of a copied tail, sorted.
    pub(crate) fn of_sorted(raw: RawTail, keys: &[SortKey], skip: usize) -> Chunk {
        let entry =
            |key: &SortKey| Entry { prefix: key.prefix(), offset: key.offset(), seq_delta: key.seq_delta() };
        Chunk {
            entries: keys.iter().map(entry).collect(),
            arena: raw.arena,
            filter: Filter::none(),
            skip,
            base_seq: raw.base_seq,
            max_seq: raw.last_seq,
            generation: 0,
        }
    }

    /// Records.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Chunk>()
            + self.arena.capacity()
            + self.entries.capacity() * size_of::<Entry>()
            + self.filter.bytes()
    }

    /// The key of an entry.
    #[inline]
    pub(crate) fn key(&self, entry: &Entry) -> &[u8] {
        Place::at(&self.arena, entry.offset).key(&self.arena)
    }

    /// The prefix of an entry's key after `skip` bytes. All keys that it is compared with share
    /// these bytes.
    #[inline]
    pub(crate) fn prefix(&self, entry: &Entry, order: &KeyOrder, skip: usize) -> u64 {
        if self.skip == skip { entry.prefix } else { order.prefix(self.key(entry), skip) }
    }

    /// The record of an entry.
    #[inline]
    pub(crate) fn record(&self, entry: &Entry) -> Record<'_> {
        Place::at(&self.arena, entry.offset).record(&self.arena, self.seq(entry))
    }

    /// The seq of an entry.
    #[inline]
    pub(crate) fn seq(&self, entry: &Entry) -> Seq {
        self.base_seq + Seq::from(entry.seq_delta)
    }

    /// How many entries a forward stream from `bound` on leaves out: those before it.
    pub(crate) fn count_before(&self, order: &KeyOrder, bound: Bound<&[u8]>) -> usize {
        match bound {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.partition(order, key, |placed| placed.is_lt()),
            Bound::Excluded(key) => self.partition(order, key, |placed| placed.is_le()),
        }
    }

    /// How many entries a reversed stream from `bound` on returns.
    pub(crate) fn count_up_to(&self, order: &KeyOrder, bound: Bound<&[u8]>) -> usize {
        match bound {
            Bound::Unbounded => self.len(),
            Bound::Included(key) => self.partition(order, key, |placed| placed.is_le()),
            Bound::Excluded(key) => self.partition(order, key, |placed| placed.is_lt()),
        }
    }

    /// The records of a key with a seq up to `max_seq`, newest first. `start` is the first entry at
    /// or after the key.
    pub(crate) fn records_from<'a>(
        &'a self,
        start: usize,
        key: &'a [u8],
        max_seq: Seq,
    ) -> impl Iterator<Item = Record<'a>> {
        self.entries[start..]
            .iter()
            .map(|entry| self.record(entry))
            .take_while(move |record| record.key == key)
            .filter(move |record| record.seq <= max_seq)
    }

    /// The records that are newer than a seq, in the order of the chunk.
    pub(crate) fn newer_than(&self, seq: Seq) -> impl Iterator<Item = Record<'_>> {
        self.entries.iter().filter(move |entry| self.seq(entry) > seq).map(|entry| self.record(entry))
    }

    /// False if the chunk has no record of a key of this hash with a seq up to `max_seq`.
    #[inline]
    pub(crate) fn may_hold(&self, hash: u32, max_seq: Seq) -> bool {
        (self.base_seq <= max_seq) & self.filter.may_hold(hash)
    }

    /// How many entries come first for which `before` is true. It gets how their keys compare with
    /// `key`.
    fn partition(&self, order: &KeyOrder, key: &[u8], before: impl Fn(std::cmp::Ordering) -> bool) -> usize {
        let Some(first) = self.entries.first() else { return 0 };
        let first_key = self.key(first);
        if key.get(..self.skip) != first_key.get(..self.skip) {
            // All keys of the chunk are on the same side of this one.
            return if before(order.compare(first_key, key)) { self.len() } else { 0 };
        }
        let prefix = order.prefix(key, self.skip);
        self.entries.partition_point(|entry| {
            before(entry.prefix.cmp(&prefix).then_with(|| order.compare(self.key(entry), key)))
        })
    }

    /// How many entries come before `key`. The first entry with a prefix that is not below that of
    /// `key` is `low` or the one after it.
    fn finish_search(&self, order: &KeyOrder, low: usize, prefix: u64, key: &[u8]) -> usize {
        let at = low + usize::from(self.entries.get(low).is_some_and(|entry| entry.prefix < prefix));
        if let Some(entry) = self.entries.get(at) {
            let other = self.key(entry);
            let shares = key.get(..self.skip) == other.get(..self.skip);
            if shares && (entry.prefix > prefix || order.compare(other, key).is_ge()) {
                return at;
            }
        }
        // `key` does not share the first `skip` bytes, or comes after a key of the same prefix, or
        // after all keys: search all entries.
        self.count_before(order, Bound::Included(key))
    }

    /// The records of a key with a seq up to `max_seq`, newest first.
    pub(crate) fn find<'a>(
        &'a self,
        order: &KeyOrder,
        key: &'a [u8],
        hash: u32,
        max_seq: Seq,
    ) -> impl Iterator<Item = Record<'a>> {
        let start = if self.may_hold(hash, max_seq) {
            self.count_before(order, Bound::Included(key))
        } else {
            self.len()
        };
        self.records_from(start, key, max_seq)
    }
}

/// How many chunks are searched at the same time.
pub(crate) const LANES: usize = 16;

/// For each of up to [`LANES`] chunks, how many entries come before `key`.
///
/// Each step of a search waits for memory. If the steps of several searches are interleaved, these
/// waits overlap.
pub(crate) fn counts_before(order: &KeyOrder, chunks: &[&Chunk], key: &[u8]) -> [usize; LANES] {
    let (mut lows, mut lens, mut prefixes) = ([0; LANES], [0; LANES], [0; LANES]);
    for (lane, chunk) in chunks.iter().enumerate().take(LANES) {
        lens[lane] = chunk.len();
        prefixes[lane] = order.prefix(key, chunk.skip);
    }
    let mut longest = lens.iter().copied().max().unwrap_or(0);
    while longest > 1 {
        for (lane, chunk) in chunks.iter().enumerate().take(LANES) {
            let half = lens[lane] / 2;
            let is_before =
                chunk.entries.get(lows[lane] + half).is_some_and(|entry| entry.prefix < prefixes[lane]);
            lows[lane] += if is_before { half } else { 0 };
            lens[lane] -= half;
        }
        longest -= longest / 2;
    }
    for (lane, chunk) in chunks.iter().enumerate().take(LANES) {
        lows[lane] = chunk.finish_search(order, lows[lane], prefixes[lane], key);
    }
    lows
}

#[cfg(test)]
#[path = "chunk/tests.rs"]
pub(crate) mod tests;
