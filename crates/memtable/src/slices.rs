//! All records of a memtable in the total order, slice by slice of its keys. A flush reads this.
//!
//! A full memtable has about two hundred chunks. A tree over this many sources plays eight matches
//! for each record, and reads four hundred places in memory in turn, more than the first-level
//! cache holds. So the keys are cut into slices of a few thousand records; the records of one slice
//! are gathered from all chunks and sorted like a tail, within the cache:
//!
//! ```text
//!   chunk 2   |a  a |b   b|c    c |
//!   chunk 1   |a a  |b  b |  c  c |       gather the a's, sort them, give them out; then the b's; then the c's
//!   chunk 0   |  a a|b b  |c  c   |
//!             0     bound bound         bounds: every 64th prefix of each chunk is a sample of its keys
//! ```
//!
//! Slices are cut by prefixes, so they need an order with prefixes, and keys that differ in them.
//! Other tables, and memtables with few chunks, use the tree (see kway.rs).

use std::sync::Arc;
use std::vec;

use folddb_base::{Record, RecordStream, Result};
use folddb_rules::KeyOrder;

use crate::chunk::Chunk;
use crate::kway::shared_skip;
use crate::sort::{SortKey, SortScratch, settle_ties, sort_keys};

/// How slices are cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// One in this many prefixes is a sample.
    sample_every: usize,
    /// The approximate number of records in a slice, so that everything that is touched fits the
    /// second-level cache.
    records: usize,
    /// If more records than this share a prefix, there are no slices.
    records_max: usize,
    /// With fewer chunks a tree is better.
    chunks_min: usize,
}

impl Default for Cut {
    fn default() -> Cut {
        Cut { sample_every: 64, records: 4096, records_max: 64 << 10, chunks_min: 32 }
    }
}

/// The records of many chunks in the total order.
pub(crate) struct Slices {
    order: KeyOrder,
    /// Leading bytes that all keys of all chunks share.
    skip: usize,
    /// Newest first, each with its first entry that has not been in a slice yet.
    chunks: Vec<(Arc<Chunk>, usize)>,
    /// Where the following slices end, by prefix. The last one has no end.
    bounds: vec::IntoIter<u64>,
    /// The records of the slice, sorted.
    scratch: SortScratch,
    /// The current record of the slice.
    at: usize,
}

impl Slices {
    /// A stream over the chunks, given newest first; none if a tree is better.
    pub(crate) fn of(order: &KeyOrder, newest_first: &[Arc<Chunk>], cut: Cut) -> Option<Slices> {
        if newest_first.len() < cut.chunks_min || !order.has_byte_prefixes() {
            return None;
        }
        let skip = shared_skip(order, newest_first);
        let mut slices = Slices {
            order: order.clone(),
            skip,
            chunks: newest_first.iter().map(|chunk| (Arc::clone(chunk), 0)).collect(),
            bounds: bounds_of(order, newest_first, skip, cut)?.into_iter(),
            scratch: SortScratch::default(),
            at: 0,
        };
        slices.next_slice();
        Some(slices)
    }

    /// Advances to the next slice with records, if there is one.
    #[cold]
    fn next_slice(&mut self) {
        self.at = 0;
        self.scratch.keys.clear();
        while self.scratch.keys.is_empty() {
            match self.bounds.next() {
                Some(bound) => self.gather(|prefix| prefix < bound),
                None => {
                    self.gather(|_| true);
                    break;
                }
            }
        }
        sort_keys(&mut self.scratch);
        let chunks = &self.chunks;
        settle_ties(&self.order, &mut self.scratch.keys, |key| {
            let chunk = &chunks[key.rank()].0;
            chunk.key(&chunk.entries[key.index()])
        });
    }

    /// Takes from each chunk the records that are `before` the end of the slice.
    fn gather(&mut self, before: impl Fn(u64) -> bool) {
        for (rank, (chunk, next)) in self.chunks.iter_mut().enumerate() {
            let prefixes =
                chunk.entries[*next..].iter().map(|entry| chunk.prefix(entry, &self.order, self.skip));
            let first = *next;
            for (index, prefix) in prefixes.take_while(|prefix| before(*prefix)).enumerate() {
                self.scratch.keys.push(SortKey::in_chunk(prefix, rank, first + index));
                *next += 1;
            }
        }
    }
}

/// The prefixes at which slices end; none if too many records have the same prefix.
fn bounds_of(order: &KeyOrder, chunks: &[Arc<Chunk>], skip: usize, cut: Cut) -> Option<Vec<u64>> {
    let mut samples = Vec::new();
    for chunk in chunks {
        let entries = chunk.entries.iter().skip(cut.sample_every - 1).step_by(cut.sample_every);
        samples.extend(entries.map(|entry| chunk.prefix(entry, order, skip)));
    }
    samples.sort_unstable();
    if samples.windows(cut.records_max / cut.sample_every).any(|same| same.first() == same.last()) {
        return None;
    }
    let apart = cut.records / cut.sample_every;
    let mut bounds: Vec<u64> = samples.into_iter().skip(apart).step_by(apart).collect();
    bounds.dedup();
    Some(bounds)
}

impl RecordStream for Slices {
    #[inline]
    fn record(&self) -> Option<Record<'_>> {
        let key = self.scratch.keys.get(self.at)?;
        let chunk = &self.chunks[key.rank()].0;
        Some(chunk.record(&chunk.entries[key.index()]))
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.at += 1;
        if self.at >= self.scratch.keys.len() {
            self.next_slice();
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "slices/tests.rs"]
mod tests;
