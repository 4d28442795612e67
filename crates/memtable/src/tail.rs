//! The tail: the newest records, in the order in which they came.
//!
//! Appending is all that a write does: bytes to the arena, sixteen bytes to the entries, four to a slot of the
//! micro hash, through which a get finds the records of a key, newest first. One applier appends under the
//! memtable's lock; a full tail is sealed and never changes again.

use folddb_base::{Record, Seq};

use crate::hash::key_hash;
use crate::packed::{self, Place};

/// Bounds of a tail, whichever is met first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailLimits {
    /// Records. At most 65,000; default 4096, so that entries and slots stay in the first-level cache.
    pub records_max: usize,
    /// Bytes of packed records; one record may be longer. Default 256 KiB.
    pub bytes_max: usize,
    /// Records in one slot of the micro hash, so of one key: what a get may have to visit. Default 512.
    pub chain_max: usize,
}

impl Default for TailLimits {
    fn default() -> TailLimits {
        TailLimits { records_max: 4096, bytes_max: 256 << 10, chain_max: 512 }
    }
}

/// One record of the tail. Links, here and in slots, are indexes plus one; zero is the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TailEntry {
    /// Where its bytes begin in the arena.
    pub(crate) offset: u32,
    /// Its seq, counted from the tail's first.
    pub(crate) seq_delta: u32,
    hash: u32,
    /// The next older record of the same slot.
    prev: u16,
}

/// A slot of the micro hash: how many records it holds, and the newest of them.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    count: u16,
    newest: u16,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    arena: Vec<u8>,
    entries: Vec<TailEntry>,
    /// A power of two of them, at least twice the entries.
    slots: Vec<Slot>,
    base_seq: Seq,
    last_seq: Seq,
    longest_chain: u16,
}

const SLOTS_MIN: usize = 64;

impl Tail {
    /// True when `record` may still be appended under these limits. An empty tail takes any record.
    #[inline]
    pub(crate) fn has_room(&self, record: &Record<'_>, limits: &TailLimits) -> bool {
        if self.entries.is_empty() {
            return true;
        }
        let bytes = self.arena.len() + packed::packed_len_max(record.key, record.payload);
        self.entries.len() < limits.records_max.min(65_000)
            && bytes <= limits.bytes_max
            && usize::from(self.longest_chain) < limits.chain_max
            && record.seq > self.last_seq
            && record.seq - self.base_seq <= u64::from(u32::MAX)
    }

    /// Appends a record; it must have room.
    #[inline]
    pub(crate) fn push(&mut self, record: Record<'_>) {
        if self.entries.is_empty() {
            self.base_seq = record.seq;
        }
        if self.entries.len() * 2 >= self.slots.len() {
            self.grow_slots();
        }
        let hash = key_hash(record.key);
        let prev = self.link(hash, self.entries.len());
        self.entries.push(TailEntry {
            offset: self.arena.len() as u32,
            seq_delta: (record.seq - self.base_seq) as u32,
            hash,
            prev,
        });
        self.last_seq = record.seq;
        packed::put(&mut self.arena, record.kind, record.key, record.payload);
    }

    /// Makes an entry the newest of its slot. Returns the link to the one that was.
    #[inline]
    fn link(&mut self, hash: u32, index: usize) -> u16 {
        let at = slot_of(hash, &self.slots);
        let slot = &mut self.slots[at];
        slot.count += 1;
        self.longest_chain = self.longest_chain.max(slot.count);
        std::mem::replace(&mut slot.newest, index as u16 + 1)
    }

    /// Small tables stay small: slots grow with the entries, and keep their size in the next tail.
    #[cold]
    fn grow_slots(&mut self) {
        let count = (self.slots.len() * 2).max(SLOTS_MIN);
        self.slots.clear();
        self.slots.resize(count, Slot::default());
        for index in 0..self.entries.len() {
            self.entries[index].prev = self.link(self.entries[index].hash, index);
        }
    }

    /// Forgets all records, keeping the memory.
    pub(crate) fn clear(&mut self) {
        self.arena.clear();
        self.entries.clear();
        self.slots.fill(Slot::default());
        (self.base_seq, self.last_seq, self.longest_chain) = (0, 0, 0);
    }

    /// The records of a key with a seq up to `max_seq`, newest first: where they lie, and their seqs.
    #[inline]
    pub(crate) fn find<'a>(&'a self, key: &'a [u8], hash: u32, max_seq: Seq) -> Find<'a> {
        let next = if self.slots.is_empty() { 0 } else { self.slots[slot_of(hash, &self.slots)].newest };
        Find { tail: self, key, hash, max_seq, next }
    }

    /// The same as records.
    #[inline]
    pub(crate) fn records_of<'a>(
        &'a self,
        key: &'a [u8],
        hash: u32,
        max_seq: Seq,
    ) -> impl Iterator<Item = Record<'a>> {
        self.find(key, hash, max_seq).map(|(_, place, seq)| place.record(&self.arena, seq))
    }

    /// Copies the records that [`Tail::find`] gives into `out`, up to the first that absorbs, so that they
    /// can be visited after the lock is released.
    pub(crate) fn copy_found(&self, key: &[u8], hash: u32, max_seq: Seq, out: &mut Copied) {
        for (offset, place, seq) in self.find(key, hash, max_seq) {
            out.seqs.push((out.arena.len() as u32, seq));
            out.arena.extend_from_slice(place.packed(&self.arena, offset));
            if place.kind().absorbs() {
                return;
            }
        }
    }

    /// Copies everything from entry `from` on into `out`.
    pub(crate) fn copy_from(&self, from: usize, out: &mut RawTail) {
        let Some(first) = self.entries.get(from) else { return };
        out.base_seq = self.base_seq;
        out.last_seq = self.last_seq;
        out.arena.extend_from_slice(&self.arena[first.offset as usize..]);
        out.entries
            .extend(self.entries[from..].iter().map(|entry| (entry.offset - first.offset, entry.seq_delta)));
    }

    /// How many records it has up to a seq: so many entries come before the first that is newer.
    pub(crate) fn count_up_to(&self, seq: Seq) -> usize {
        self.entries.partition_point(|entry| self.base_seq + Seq::from(entry.seq_delta) <= seq)
    }

    /// The records that are newer than a seq, oldest first.
    pub(crate) fn newer_than(&self, seq: Seq) -> impl Iterator<Item = Record<'_>> {
        self.entries[self.count_up_to(seq)..].iter().map(|entry| {
            let seq = self.base_seq + Seq::from(entry.seq_delta);
            Place::at(&self.arena, entry.offset).record(&self.arena, seq)
        })
    }

    /// Bytes of packed records from entry `from` on.
    pub(crate) fn bytes_from(&self, from: usize) -> usize {
        self.entries.get(from).map_or(0, |first| self.arena.len() - first.offset as usize)
    }

    /// Its packed records.
    pub(crate) fn arena(&self) -> &[u8] {
        &self.arena
    }

    /// Its entries, oldest first.
    pub(crate) fn entries(&self) -> &[TailEntry] {
        &self.entries
    }

    /// The seq from which the entries count.
    pub(crate) fn base_seq(&self) -> Seq {
        self.base_seq
    }

    /// The newest seq.
    pub(crate) fn last_seq(&self) -> Seq {
        self.last_seq
    }

    /// Records.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// True when it holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes that it takes, used or not.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.arena.capacity()
            + self.entries.capacity() * size_of::<TailEntry>()
            + self.slots.capacity() * size_of::<Slot>()
    }
}

#[inline]
fn slot_of(hash: u32, slots: &[Slot]) -> usize {
    hash as usize & (slots.len() - 1)
}

/// See [`Tail::find`].
pub(crate) struct Find<'a> {
    tail: &'a Tail,
    key: &'a [u8],
    hash: u32,
    max_seq: Seq,
    next: u16,
}

impl Iterator for Find<'_> {
    type Item = (u32, Place, Seq);

    #[inline]
    fn next(&mut self) -> Option<(u32, Place, Seq)> {
        while self.next != 0 {
            let entry = self.tail.entries[usize::from(self.next) - 1];
            self.next = entry.prev;
            let seq = self.tail.base_seq + Seq::from(entry.seq_delta);
            if entry.hash != self.hash || seq > self.max_seq {
                continue;
            }
            let place = Place::at(&self.tail.arena, entry.offset);
            if place.key(&self.tail.arena) == self.key {
                return Some((entry.offset, place, seq));
            }
        }
        None
    }
}

/// Records of one key, copied out of a tail, newest first.
#[derive(Debug, Default)]
pub(crate) struct Copied {
    arena: Vec<u8>,
    seqs: Vec<(u32, Seq)>,
}

impl Copied {
    /// The records, newest first.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.seqs.iter().map(|&(offset, seq)| Place::at(&self.arena, offset).record(&self.arena, seq))
    }
}

/// A copy of a tail, or of its end, as a capture takes it: unsorted, without the micro hash.
#[derive(Debug, Default)]
pub(crate) struct RawTail {
    /// Packed records.
    pub(crate) arena: Vec<u8>,
    /// Offset and seq delta of each, oldest first.
    pub(crate) entries: Vec<(u32, u32)>,
    /// The seq from which the deltas count.
    pub(crate) base_seq: Seq,
    /// The newest seq.
    pub(crate) last_seq: Seq,
}

impl RawTail {
    /// Its records, oldest first.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.entries.iter().map(|&(offset, seq_delta)| {
            Place::at(&self.arena, offset).record(&self.arena, self.base_seq + Seq::from(seq_delta))
        })
    }
}

#[cfg(test)]
#[path = "tail/tests.rs"]
mod tests;
