//! The tail: the newest records, in the order in which they came. It can be read while more are
//! appended.
//!
//! A write only appends: the record to the arena, sixteen bytes to the entries, four to a slot of
//! the micro hash. Readers take no lock and copy nothing: what is appended never changes, and they
//! reach it only through what is stored last, at the end of a batch (see [`Appender::show`]):
//!
//! ```text
//!   arena     |record 0|record 1|record 2  |...                1. its bytes
//!   entries   [0] [1] [2]                                      2. its entry
//!   slots     hash of the key -> newest entry -> older ...     3. its slot             (release)
//!   shown     bytes, then records                              4. those of the batch   (release)
//! ```
//!
//! So a reader that follows a slot passes over entries from the length on.
//!
//! A tail has room for a fixed number of records and bytes; to grow, its records are copied to a
//! larger tail. Entries and slots are atomic numbers, which on most processors cost as much as
//! plain ones; the arena is `folddb_host::arena`, which has the unsafe code. Entries use the
//! atomics of the standard library: a test scheduler need not stop at them, since no reader uses
//! them before step 3 or 4.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64 as Word;

use folddb_base::{Record, Seq};
use folddb_host::arena::{Arena, ArenaWriter};
use folddb_host::sync::atomic::{AtomicU32, Ordering};

use crate::hash::key_hash;
use crate::packed::{self, Place};

/// The bounds of a tail. It is full when it reaches one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailLimits {
    /// Records. At most 65,000; default 4096, so that entries and slots stay in the first-level
    /// cache.
    pub records_max: usize,
    /// Bytes of packed records; one record may be longer. Default 256 KiB.
    pub bytes_max: usize,
    /// Records in one slot of the micro hash, and so of one key: what a get may have to visit.
    /// Default 512.
    pub chain_max: usize,
}

impl Default for TailLimits {
    fn default() -> TailLimits {
        TailLimits { records_max: 4096, bytes_max: 256 << 10, chain_max: 512 }
    }
}

/// How far seqs of a tail, and of the full one before it, may be from the first.
pub(crate) const TAILS_SEQS_MAX: Seq = u32::MAX as Seq;

/// The most records of a tail, since links have 16 bits.
const RECORDS_MAX: usize = 65_000;
const ENTRIES_MIN: usize = 32;
const BYTES_MIN: usize = 512;

/// One record of the tail. Links, here and in slots, are indexes plus one; zero means that no
/// record follows.
#[derive(Debug, Default)]
struct Entry {
    /// The upper half: where its bytes begin in the arena. The lower half: its seq, counted from
    /// the first seq of the tail.
    place: Word,
    /// The upper half: the hash of its key. The lower half: the next older record of the same slot.
    link: Word,
}

/// A slot of the micro hash: how many records it holds, and the newest of them.
#[derive(Clone, Copy)]
struct Slot {
    count: u16,
    newest: u16,
}

impl Slot {
    #[inline]
    fn of(number: u32) -> Slot {
        Slot { count: (number >> 16) as u16, newest: number as u16 }
    }

    #[inline]
    fn number(self) -> u32 {
        u32::from(self.count) << 16 | u32::from(self.newest)
    }
}

/// What readers see of a tail. See the module.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// Packed records.
    arena: Arena,
    entries: Box<[Entry]>,
    /// Twice as many as entries, so a power of two; none if there are no entries.
    slots: Box<[AtomicU32]>,
    base_seq: Word,
    len: AtomicU32,
}

impl Tail {
    /// An empty tail with room for this many entries (a power of two) and bytes, and what writes
    /// its arena.
    fn with_room(entries: usize, bytes: usize) -> (Arc<Tail>, ArenaWriter) {
        let (arena, writer) = Arena::with_room(bytes);
        let tail = Tail {
            arena,
            entries: (0..entries).map(|_| Entry::default()).collect(),
            slots: (0..entries * 2).map(|_| AtomicU32::new(0)).collect(),
            base_seq: Word::new(0),
            len: AtomicU32::new(0),
        };
        (Arc::new(tail), writer)
    }

    /// Forgets all records, keeping the memory; none if something still writes to it.
    fn begin_anew(&mut self) -> Option<ArenaWriter> {
        let writer = self.arena.begin_anew()?;
        self.slots.iter_mut().for_each(|slot| *slot.get_mut() = 0);
        *self.len.get_mut() = 0;
        Some(writer)
    }

    /// The number of records that are shown. It includes every record that was published before a
    /// moment that the caller knows of.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire) as usize
    }

    /// The packed records that are shown: at least those below a length that was loaded before.
    #[inline]
    pub(crate) fn arena(&self) -> &[u8] {
        self.arena.bytes()
    }

    /// Bytes that it takes, used or not.
    pub(crate) fn bytes(&self) -> usize {
        self.arena.room() + size_of_val(&*self.entries) + size_of_val(&*self.slots)
    }

    /// The seq from which the entries count.
    #[inline]
    pub(crate) fn base_seq(&self) -> Seq {
        self.base_seq.load(Ordering::Relaxed)
    }

    /// Where the bytes of an entry begin, and its seq delta.
    #[inline]
    fn place(&self, index: usize) -> (u32, u32) {
        let place = self.entries[index].place.load(Ordering::Relaxed);
        ((place >> 32) as u32, place as u32)
    }

    /// Offset and seq delta of these entries, which are below [`Tail::len`].
    #[inline]
    pub(crate) fn places(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = (u32, u32)> + Clone {
        range.map(|index| self.place(index))
    }

    /// The seq of an entry below [`Tail::len`].
    pub(crate) fn seq(&self, index: usize) -> Seq {
        self.base_seq() + Seq::from(self.place(index).1)
    }

    /// The records of these entries, which are below [`Tail::len`], oldest first.
    pub(crate) fn records(&self, range: Range<usize>) -> impl Iterator<Item = Record<'_>> {
        let (arena, base_seq) = (self.arena(), self.base_seq());
        self.places(range).map(move |(offset, seq_delta)| {
            Place::at(arena, offset).record(arena, base_seq + Seq::from(seq_delta))
        })
    }

    /// The slot of a hash; none if the tail has no slots.
    #[inline]
    fn slot(&self, hash: u32) -> Option<&AtomicU32> {
        self.slots.get(hash as usize & self.slots.len().wrapping_sub(1))
    }

    /// The records of a key with a seq up to `max_seq`, newest first.
    #[inline]
    pub(crate) fn find<'a>(
        &'a self,
        key: &'a [u8],
        hash: u32,
        max_seq: Seq,
    ) -> impl Iterator<Item = Record<'a>> {
        let len = self.len();
        let mut next = self.slot(hash).map_or(0, |slot| Slot::of(slot.load(Ordering::Acquire)).newest);
        let (arena, base_seq) = (self.arena(), self.base_seq());
        std::iter::from_fn(move || {
            while let Some(index) = usize::from(next).checked_sub(1) {
                let link = self.entries[index].link.load(Ordering::Relaxed);
                next = link as u16;
                let (offset, seq_delta) = self.place(index);
                let seq = base_seq + Seq::from(seq_delta);
                if index < len && seq <= max_seq && (link >> 32) as u32 == hash {
                    let record = Place::at(arena, offset).record(arena, seq);
                    if record.key == key {
                        return Some(record);
                    }
                }
            }
            None
        })
    }

    /// A copy of these entries, which are below [`Tail::len`], and of their records.
    pub(crate) fn copy_of(&self, range: Range<usize>) -> RawTail {
        let mut places = self.places(range.clone());
        let (Some((start, _)), last) = (places.next(), range.end.saturating_sub(1)) else {
            return RawTail::default();
        };
        let arena = self.arena();
        let end = Place::at(arena, self.place(last).0).end();
        RawTail {
            arena: arena[start as usize..end].to_vec(),
            entries: self.places(range).map(|(offset, seq_delta)| (offset - start, seq_delta)).collect(),
            base_seq: self.base_seq(),
            last_seq: self.seq(last),
        }
    }

    /// How many of the first `len` records have a seq up to this one.
    pub(crate) fn count_up_to(&self, seq: Seq, len: usize) -> usize {
        let (mut low, mut high) = (0, len);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.seq(middle) <= seq { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// Appends to a tail.
#[derive(Debug)]
pub(crate) struct Appender {
    tail: Arc<Tail>,
    writer: ArenaWriter,
    /// Records, shown or not.
    len: usize,
    base_seq: Seq,
    last_seq: Seq,
    longest_chain: u16,
}

impl Default for Appender {
    /// One whose tail has no room.
    fn default() -> Appender {
        let (tail, writer) = Tail::with_room(0, 0);
        Appender { tail, writer, len: 0, base_seq: 0, last_seq: 0, longest_chain: 0 }
    }
}

impl Appender {
    /// What readers see.
    pub(crate) fn tail(&self) -> &Arc<Tail> {
        &self.tail
    }

    /// Records, shown or not.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// True when `record` may still be appended under these limits. An empty tail takes any record.
    #[inline]
    pub(crate) fn has_room(&self, record: &Record<'_>, limits: &TailLimits) -> bool {
        if self.len == 0 {
            return true;
        }
        let bytes = self.writer.len() + packed::packed_len_max(record.key, record.payload);
        self.len < limits.records_max.min(RECORDS_MAX)
            && bytes <= limits.bytes_max
            && usize::from(self.longest_chain) < limits.chain_max
            && record.seq > self.last_seq
            && record.seq - self.base_seq <= TAILS_SEQS_MAX
    }

    /// Appends a record, if the memory of the tail has room for it. False if not: then call
    /// [`Appender::grow`]. Readers see it once it is shown.
    #[inline]
    pub(crate) fn try_push(&mut self, record: Record<'_>) -> bool {
        let offset = self.writer.len();
        let room = self.writer.rest();
        let bytes_max = packed::packed_len_max(record.key, record.payload);
        if self.len == self.tail.entries.len() || bytes_max > room.len() {
            return false;
        }
        if self.len == 0 {
            self.base_seq = record.seq;
            self.tail.base_seq.store(record.seq, Ordering::Relaxed);
        }
        self.last_seq = record.seq;
        let bytes = packed::put_at(room, record.kind, record.key, record.payload);
        self.writer.advance(bytes);
        let place = (offset as u32, (record.seq - self.base_seq) as u32);
        self.put_entry(self.len, place, key_hash(record.key));
        self.len += 1;
        true
    }

    /// Lets readers see all records: their bytes, and then how many they are.
    #[inline]
    pub(crate) fn show(&mut self) {
        self.writer.show(&self.tail.arena);
        self.tail.len.store(self.len as u32, Ordering::Release);
    }

    /// Writes an entry and makes it the newest of its slot.
    #[inline]
    fn put_entry(&mut self, index: usize, (offset, seq_delta): (u32, u32), hash: u32) {
        let Some(cell) = self.tail.slot(hash) else { return };
        let slot = Slot::of(cell.load(Ordering::Relaxed));
        let entry = &self.tail.entries[index];
        entry.place.store(u64::from(offset) << 32 | u64::from(seq_delta), Ordering::Relaxed);
        entry.link.store(u64::from(hash) << 32 | u64::from(slot.newest), Ordering::Relaxed);
        let slot = Slot { count: slot.count + 1, newest: index as u16 + 1 };
        self.longest_chain = self.longest_chain.max(slot.count);
        cell.store(slot.number(), Ordering::Release);
    }

    /// Shows all records, and continues in a larger tail, with the same records and room for one
    /// more. The caller must give it to readers before it appends.
    #[cold]
    pub(crate) fn grow(&mut self, record: &Record<'_>, limits: &TailLimits) {
        self.show();
        let small = Arc::clone(&self.tail);
        let room = |used: usize, has: usize, needs: usize, least: usize| match used + needs > has {
            true => (has * 2).max(least).max(used + needs),
            false => has,
        };
        let packed = small.arena();
        let needs = packed::packed_len_max(record.key, record.payload);
        let most = limits.bytes_max.max(packed.len() + needs);
        let bytes = room(packed.len(), small.arena.room(), needs, BYTES_MIN).min(most);
        let entries = room(self.len, small.entries.len(), 1, ENTRIES_MIN).next_power_of_two();
        (self.tail, self.writer) = Tail::with_room(entries, bytes);
        self.writer.rest()[..packed.len()].copy_from_slice(packed);
        self.writer.advance(packed.len());
        self.tail.base_seq.store(self.base_seq, Ordering::Relaxed);
        self.longest_chain = 0;
        for index in 0..self.len {
            let hash = (small.entries[index].link.load(Ordering::Relaxed) >> 32) as u32;
            self.put_entry(index, small.place(index), hash);
        }
        self.show();
    }

    /// Begins an empty tail and returns the previous one. It reuses the memory of `spare` if that
    /// has no readers left and the right size. Memory beyond the limits, which one long record
    /// needed, is not kept.
    pub(crate) fn begin(&mut self, spare: Option<Arc<Tail>>, limits: &TailLimits) -> Arc<Tail> {
        let bytes = self.tail.arena.room().min(limits.bytes_max);
        let entries = self.tail.entries.len();
        let fits = |spare: &&mut Tail| spare.arena.room() == bytes && spare.entries.len() == entries;
        let reused = spare.and_then(|mut spare| {
            let writer = Arc::get_mut(&mut spare).filter(fits)?.begin_anew()?;
            Some((spare, writer))
        });
        let (tail, writer) = reused.unwrap_or_else(|| Tail::with_room(entries, bytes));
        (self.len, self.base_seq, self.last_seq, self.longest_chain) = (0, 0, 0, 0);
        self.writer = writer;
        std::mem::replace(&mut self.tail, tail)
    }
}

/// A copy of a tail, or of a range of it: unsorted, without the micro hash.
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
    /// Adds newer records, whose seqs are within a `u32` of the first here.
    pub(crate) fn append(&mut self, newer: RawTail) {
        if newer.entries.is_empty() {
            return;
        }
        debug_assert!(!self.entries.is_empty(), "a full tail has records");
        let (offset, seqs) = (self.arena.len() as u32, (newer.base_seq - self.base_seq) as u32);
        self.arena.extend_from_slice(&newer.arena);
        self.entries.extend(newer.entries.iter().map(|&(at, seq_delta)| (at + offset, seq_delta + seqs)));
        self.last_seq = newer.last_seq;
    }

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
