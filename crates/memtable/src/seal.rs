//! Sealing: makes a folded chunk from sorted records.
//!
//! Records come in the total order, from one sorted tail or from several chunks that are being
//! merged. Each key's records are cut into *stripes* at the boundaries, and each stripe is folded:
//!
//! 1. what is older than the newest `Set` or `Delete` of the stripe is left out;
//! 2. the others are composed on a stack (see fold_stack.rs);
//! 3. two that decline to compose both stay.
//!
//! A folded record gets the newest seq of those it replaces. In memtables that keep everything,
//! each record is a stripe.

use folddb_base::Seq;
use folddb_rules::{FoldRules, KeyOrder};

use crate::chunk::{Chunk, Entry};
use crate::filter::Filter;
use crate::fold_stack::{FoldStack, Incoming};
use crate::hash::key_hash;
use crate::packed::{self, Place};
use crate::sort::{SortScratch, sort_records};
use crate::tail::Tail;

/// Which stripe a seq is in: how many boundaries are older. Two records fold only in the same
/// stripe, that is, if no boundary S has older <= S < newer.
#[inline]
pub(crate) fn stripe_of(boundaries: &[Seq], seq: Seq) -> usize {
    boundaries.partition_point(|&boundary| boundary < seq)
}

/// Buffers that are kept from one sealing to the next.
#[derive(Debug, Default)]
pub(crate) struct SealScratch {
    sort: SortScratch,
    hashes: Vec<u32>,
    group: Vec<Incoming>,
    stack: FoldStack,
    /// Whether nothing is folded.
    pub(crate) keeps_all: bool,
}

impl SealScratch {
    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.sort.bytes()
            + self.hashes.capacity() * size_of::<u32>()
            + self.group.capacity() * size_of::<Incoming>()
            + self.stack.bytes()
    }
}

/// Sorts and folds a tail. All of it is shown, and nothing is appended to it at the same time.
pub(crate) fn seal_tail(
    order: &KeyOrder,
    rules: &FoldRules,
    boundaries: &[Seq],
    tail: &Tail,
    scratch: &mut SealScratch,
) -> Chunk {
    let (records, base_seq) = (tail.len(), tail.base_seq());
    let arena = tail.arena();
    let mut sort = std::mem::take(&mut scratch.sort);
    let sorted = sort_records(order, arena, tail.places(0..records), &mut sort);
    let incoming = sort.keys.iter().map(|key| Incoming {
        prefix: key.prefix(),
        seq: base_seq + Seq::from(key.seq_delta()),
        source: 0,
        offset: key.offset(),
    });
    let arenas = [arena];
    let last_seq = records.checked_sub(1).map_or(base_seq, |last| tail.seq(last));
    let mut sealer = Sealer::new(rules, boundaries, &arenas, base_seq, records, arena.len(), scratch);
    sealer.take_all(incoming, sorted.exact);
    let chunk = sealer.finish(sorted.skip, last_seq, 0);
    scratch.sort = sort;
    chunk
}

/// Builds a chunk from records in the total order.
pub(crate) struct Sealer<'a> {
    rules: &'a FoldRules,
    boundaries: &'a [Seq],
    arenas: &'a [&'a [u8]],
    base_seq: Seq,
    arena: Vec<u8>,
    entries: Vec<Entry>,
    scratch: &'a mut SealScratch,
}

impl<'a> Sealer<'a> {
    /// A sealer for about this many records and bytes. No seq may be lower than `base_seq`, or
    /// higher by more than a `u32` holds.
    pub(crate) fn new(
        rules: &'a FoldRules,
        boundaries: &'a [Seq],
        arenas: &'a [&'a [u8]],
        base_seq: Seq,
        records: usize,
        bytes: usize,
        scratch: &'a mut SealScratch,
    ) -> Sealer<'a> {
        scratch.hashes.clear();
        scratch.group.clear();
        let (arena, entries) = (Vec::with_capacity(bytes), Vec::with_capacity(records));
        Sealer { rules, boundaries, arenas, base_seq, arena, entries, scratch }
    }

    /// Takes the records, in the total order. `exact`: records with equal prefixes have one key.
    pub(crate) fn take_all(&mut self, mut records: impl Iterator<Item = Incoming>, exact: bool) {
        let Some(mut current) = records.next() else { return };
        loop {
            let mut next = records.next();
            if next.is_none_or(|next| !self.same_key(&current, &next, exact)) {
                self.copy_only(&current);
            } else {
                self.scratch.group.push(current);
                while let Some(record) = next.filter(|record| self.same_key(&current, record, exact)) {
                    self.scratch.group.push(record);
                    next = records.next();
                }
                self.fold_group();
            }
            match next {
                Some(record) => current = record,
                None => return,
            }
        }
    }

    #[inline]
    fn same_key(&self, a: &Incoming, b: &Incoming, exact: bool) -> bool {
        a.prefix == b.prefix && (exact || self.key_of(a) == self.key_of(b))
    }

    /// The chunk.
    pub(crate) fn finish(mut self, skip: usize, max_seq: Seq, generation: u32) -> Chunk {
        self.scratch.stack.trim();
        shrink(&mut self.arena);
        shrink(&mut self.entries);
        Chunk {
            arena: self.arena,
            entries: self.entries,
            filter: Filter::of(&self.scratch.hashes),
            skip,
            base_seq: self.base_seq,
            max_seq,
            generation,
        }
    }

    #[inline]
    fn key_of(&self, record: &Incoming) -> &'a [u8] {
        let arena = self.arenas[record.source as usize];
        Place::at(arena, record.offset).key(arena)
    }

    /// Folds and writes the records of one key.
    #[inline(never)]
    fn fold_group(&mut self) {
        let mut group = std::mem::take(&mut self.scratch.group);
        let key = self.key_of(&group[0]);
        self.scratch.hashes.push(key_hash(key));
        let (boundaries, keeps_all) = (self.boundaries, self.scratch.keeps_all);
        let same_stripe = |newer: &Incoming, older: &Incoming| {
            !keeps_all && stripe_of(boundaries, newer.seq) == stripe_of(boundaries, older.seq)
        };
        for stripe in group.chunk_by(same_stripe) {
            self.fold_stripe(key, stripe);
        }
        group.clear();
        self.scratch.group = group;
    }

    /// The records of one key and one stripe, newest first.
    fn fold_stripe(&mut self, key: &[u8], stripe: &[Incoming]) {
        let arenas = self.arenas;
        let kind_of = |record: &Incoming| Place::at(arenas[record.source as usize], record.offset).kind();
        let absorbing = stripe.iter().position(|record| kind_of(record).absorbs());
        let alive = &stripe[..absorbing.map_or(stripe.len(), |at| at + 1)];
        if let [only] = alive {
            return self.copy(only);
        }
        let mut stack = std::mem::take(&mut self.scratch.stack);
        for record in alive.iter().rev() {
            stack.push(self.rules, arenas, key, record);
        }
        while let Some(partial) = stack.pop(self.rules, arenas, key) {
            self.push_entry(alive[0].prefix, partial.seq);
            packed::put(&mut self.arena, partial.kind, key, partial.payload(arenas));
        }
        self.scratch.stack = stack;
    }

    /// Copies the only record of a key.
    #[inline]
    fn copy_only(&mut self, record: &Incoming) {
        let arena = self.arenas[record.source as usize];
        let place = Place::at(arena, record.offset);
        self.scratch.hashes.push(key_hash(place.key(arena)));
        self.push_entry(record.prefix, record.seq);
        self.arena.extend_from_slice(place.packed(arena, record.offset));
    }

    /// Copies a record as it is.
    fn copy(&mut self, record: &Incoming) {
        let arena = self.arenas[record.source as usize];
        self.push_entry(record.prefix, record.seq);
        self.arena.extend_from_slice(Place::at(arena, record.offset).packed(arena, record.offset));
    }

    #[inline]
    fn push_entry(&mut self, prefix: u64, seq: Seq) {
        let (offset, seq_delta) = (self.arena.len() as u32, (seq - self.base_seq) as u32);
        self.entries.push(Entry { prefix, offset, seq_delta });
    }
}

/// Frees memory that folding left unused, if it is more than an eighth.
fn shrink<T>(buffer: &mut Vec<T>) {
    if buffer.capacity() > buffer.len() + buffer.len() / 8 {
        buffer.shrink_to_fit();
    }
}

#[cfg(test)]
#[path = "seal/tests.rs"]
mod tests;
