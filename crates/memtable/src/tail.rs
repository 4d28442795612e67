//! The tail: the newest records, in the order in which they came. It can be read while more are
//! appended.
//!
//! A write only appends: sixteen bytes to the entries, four to a slot of the micro hash, and the
//! record to a buffer that only the writer has (see [`Appender`]). At the end of a batch,
//! [`Appender::show`] copies the buffer to the arena, where readers find it. (If each record were
//! stored in words at once, its words would be loaded from where smaller stores have just put them,
//! which stalls a processor.) Readers take no lock: what is appended never changes, and they reach
//! it only through what is stored last:
//!
//! ```text
//!   entries   [0] [1] [2]                                      1. its entry
//!   slots     hash of the key -> newest entry -> older ...     2. its slot     (release)
//!   arena     |record 0|record 1|record 2  |...                3. the words of the batch
//!   len       3                                                4. the length   (release)
//! ```
//!
//! So a reader that follows a slot passes over entries from the length on. The last word of a batch
//! is stored again when more bytes fill it; those that it had stay.
//!
//! A tail has room for a fixed number of records and bytes; to grow, its records are copied to a
//! larger tail. All that readers see are atomic numbers, so nothing here is unsafe; on most
//! processors they cost as much as plain ones. The words and entries use the atomics of the
//! standard library: a test scheduler need not stop at them, since no reader uses them before step
//! 2 or 4.

use std::sync::Arc;
use std::sync::atomic::AtomicU64 as Word;

use folddb_base::{Record, Seq};
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

/// The most records of a tail, since links have 16 bits.
const RECORDS_MAX: usize = 65_000;
const WORD_BYTES: usize = size_of::<Word>();
/// The most words that a header touches; it may begin anywhere in a word.
const HEADER_WORDS_MAX: usize = packed::HEADER_BYTES_MAX.div_ceil(WORD_BYTES) + 1;
const ENTRIES_MIN: usize = 32;
const WORDS_MIN: usize = 64;

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
    arena: Box<[Word]>,
    entries: Box<[Entry]>,
    /// Twice as many as entries, so a power of two; none if there are no entries.
    slots: Box<[AtomicU32]>,
    base_seq: Word,
    len: AtomicU32,
}

impl Tail {
    /// An empty tail with room for this many entries (a power of two) and words.
    fn with_room(entries: usize, words: usize) -> Tail {
        Tail {
            arena: (0..words).map(|_| Word::new(0)).collect(),
            entries: (0..entries).map(|_| Entry::default()).collect(),
            slots: (0..entries * 2).map(|_| AtomicU32::new(0)).collect(),
            base_seq: Word::new(0),
            len: AtomicU32::new(0),
        }
    }

    /// Forgets all records, keeping the memory.
    fn clear(&mut self) {
        self.slots.iter_mut().for_each(|slot| *slot.get_mut() = 0);
        *self.len.get_mut() = 0;
    }

    /// The number of records that are shown. It includes every record that was published before a
    /// moment that the caller knows of.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire) as usize
    }

    /// Bytes that it takes, used or not.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.arena) + size_of_val(&*self.entries) + size_of_val(&*self.slots)
    }

    /// The seq from which the entries count.
    #[inline]
    pub(crate) fn base_seq(&self) -> Seq {
        self.base_seq.load(Ordering::Relaxed)
    }

    /// Where the bytes of an entry begin, and its seq delta.
    #[inline]
    fn place(&self, index: usize) -> (usize, u32) {
        let place = self.entries[index].place.load(Ordering::Relaxed);
        ((place >> 32) as usize, place as u32)
    }

    /// The seq of an entry below [`Tail::len`].
    pub(crate) fn seq(&self, index: usize) -> Seq {
        self.base_seq() + Seq::from(self.place(index).1)
    }

    /// The slot of a hash; none if the tail has no slots.
    #[inline]
    fn slot(&self, hash: u32) -> Option<&AtomicU32> {
        self.slots.get(hash as usize & self.slots.len().wrapping_sub(1))
    }

    /// Copies the records of a key with a seq up to `max_seq`, newest first, up to and including
    /// the first that absorbs.
    pub(crate) fn copy_found(&self, key: &[u8], hash: u32, max_seq: Seq, out: &mut Copied) {
        let Some(slot) = self.slot(hash) else { return };
        let len = self.len();
        let mut next = Slot::of(slot.load(Ordering::Acquire)).newest;
        let base_seq = self.base_seq();
        while let Some(index) = usize::from(next).checked_sub(1) {
            let link = self.entries[index].link.load(Ordering::Relaxed);
            next = link as u16;
            let (at, seq_delta) = self.place(index);
            let seq = base_seq + Seq::from(seq_delta);
            let is_seen = index < len && seq <= max_seq && (link >> 32) as u32 == hash;
            if is_seen && self.copy_if_of(key, at, seq, out) {
                return;
            }
        }
    }

    /// Copies the record at a byte if it belongs to `key`. True when it absorbs.
    #[inline]
    fn copy_if_of(&self, key: &[u8], at: usize, seq: Seq, out: &mut Copied) -> bool {
        let (before, skipped) = (out.arena.len(), at % WORD_BYTES);
        let words = &self.arena[at / WORD_BYTES..self.end_of(at).div_ceil(WORD_BYTES)];
        out.arena.resize(before + words.len() * WORD_BYTES, 0);
        copy_words(words, &mut out.arena[before..]);
        let offset = (before + skipped) as u32;
        let place = Place::at(&out.arena, offset);
        if place.key(&out.arena) != key {
            out.arena.truncate(before);
            return false;
        }
        out.seqs.push((offset, seq));
        place.kind().absorbs()
    }

    /// The byte at which the record at a byte ends.
    #[inline]
    fn end_of(&self, at: usize) -> usize {
        let (first, skipped) = (at / WORD_BYTES, at % WORD_BYTES);
        let mut head = [0; HEADER_WORDS_MAX * WORD_BYTES];
        copy_words(&self.arena[first..], &mut head);
        first * WORD_BYTES + Place::at(&head, skipped as u32).end()
    }

    /// Copies the records from entry `from` up to entry `to`, excluded, over what `out` had. `to`
    /// must not be above [`Tail::len`].
    pub(crate) fn copy_range(&self, from: usize, to: usize, out: &mut RawTail) {
        out.entries.clear();
        if from >= to {
            return;
        }
        let ((first, _), (last, _)) = (self.place(from), self.place(to - 1));
        let words = &self.arena[first / WORD_BYTES..self.end_of(last).div_ceil(WORD_BYTES)];
        out.arena.resize(words.len() * WORD_BYTES, 0); // only what it grows by is set to zero
        copy_words(words, &mut out.arena);
        out.base_seq = self.base_seq();
        out.last_seq = self.seq(to - 1);
        let start = first / WORD_BYTES * WORD_BYTES;
        out.entries.extend((from..to).map(|index| {
            let (at, seq_delta) = self.place(index);
            ((at - start) as u32, seq_delta)
        }));
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

/// Copies as many words as there are bytes for.
#[inline]
fn copy_words(words: &[Word], out: &mut [u8]) {
    for (bytes, word) in out.chunks_exact_mut(WORD_BYTES).zip(words) {
        bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
    }
}

/// Appends to a tail.
#[derive(Debug, Default)]
pub(crate) struct Appender {
    tail: Arc<Tail>,
    len: usize,
    /// Packed records that are not shown yet, after those bytes of their first word that are.
    hidden: Vec<u8>,
    /// Where these bytes begin in the arena: at a word.
    hidden_from: usize,
    base_seq: Seq,
    last_seq: Seq,
    longest_chain: u16,
}

/// A buffer over this many bytes is not kept for the next batch.
const HIDDEN_BYTES_MAX: usize = 64 << 10;

impl Appender {
    /// What readers see.
    pub(crate) fn tail(&self) -> &Arc<Tail> {
        &self.tail
    }

    /// Records, shown or not.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of all packed records.
    #[inline]
    fn used_bytes(&self) -> usize {
        self.hidden_from + self.hidden.len()
    }

    /// True when `record` may still be appended under these limits. An empty tail takes any record.
    #[inline]
    pub(crate) fn has_room(&self, record: &Record<'_>, limits: &TailLimits) -> bool {
        if self.len == 0 {
            return true;
        }
        let bytes = self.used_bytes() + packed::packed_len_max(record.key, record.payload);
        self.len < limits.records_max.min(RECORDS_MAX)
            && bytes <= limits.bytes_max
            && usize::from(self.longest_chain) < limits.chain_max
            && record.seq > self.last_seq
            && record.seq - self.base_seq <= u64::from(u32::MAX)
    }

    /// Appends a record, if the memory of the tail has room for it. False if not: then call
    /// [`Appender::grow`]. Readers see it once it is shown.
    #[inline]
    pub(crate) fn try_push(&mut self, record: Record<'_>) -> bool {
        let offset = self.used_bytes();
        let most_bytes = offset + packed::packed_len_max(record.key, record.payload);
        if self.len == self.tail.entries.len() || most_bytes > self.tail.arena.len() * WORD_BYTES {
            return false;
        }
        if self.len == 0 {
            self.base_seq = record.seq;
            self.tail.base_seq.store(record.seq, Ordering::Relaxed);
        }
        self.last_seq = record.seq;
        packed::put(&mut self.hidden, record.kind, record.key, record.payload);
        let place = (offset as u32, (record.seq - self.base_seq) as u32);
        self.put_entry(self.len, place, key_hash(record.key));
        self.len += 1;
        true
    }

    /// Lets readers see all records.
    #[inline]
    pub(crate) fn show(&mut self) {
        let cells = &self.tail.arena[self.hidden_from / WORD_BYTES..];
        let (words, rest) = self.hidden.as_chunks::<WORD_BYTES>();
        for (cell, bytes) in cells.iter().zip(words) {
            cell.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        let mut last = [0; WORD_BYTES];
        if !rest.is_empty() {
            last[..rest.len()].copy_from_slice(rest);
            cells[words.len()].store(u64::from_le_bytes(last), Ordering::Relaxed);
        }
        let (whole_bytes, rest_bytes) = (words.len() * WORD_BYTES, rest.len());
        self.hidden_from += whole_bytes;
        self.hidden.clear();
        self.hidden.shrink_to(HIDDEN_BYTES_MAX);
        self.hidden.extend_from_slice(&last[..rest_bytes]);
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
        let used = self.used_bytes().div_ceil(WORD_BYTES);
        let needs = packed::packed_len_max(record.key, record.payload).div_ceil(WORD_BYTES);
        let most = limits.bytes_max.div_ceil(WORD_BYTES).max(used + needs);
        let words = room(used, small.arena.len(), needs, WORDS_MIN).min(most);
        let entries = room(self.len, small.entries.len(), 1, ENTRIES_MIN).next_power_of_two();
        self.tail = Arc::new(Tail::with_room(entries, words));
        for (to, from) in self.tail.arena.iter().zip(&small.arena[..used]) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.tail.base_seq.store(self.base_seq, Ordering::Relaxed);
        self.longest_chain = 0;
        for index in 0..self.len {
            let (offset, seq_delta) = small.place(index);
            let hash = (small.entries[index].link.load(Ordering::Relaxed) >> 32) as u32;
            self.put_entry(index, (offset as u32, seq_delta), hash);
        }
        self.tail.len.store(self.len as u32, Ordering::Relaxed);
    }

    /// Begins an empty tail and returns the previous one. It reuses the memory of `spare` if that
    /// has no readers left and the right size. Memory beyond the limits, which one long record
    /// needed, is not kept.
    pub(crate) fn begin(&mut self, spare: Option<Arc<Tail>>, limits: &TailLimits) -> Arc<Tail> {
        let words = self.tail.arena.len().min(limits.bytes_max.div_ceil(WORD_BYTES));
        let entries = self.tail.entries.len();
        let fits = |spare: &&mut Tail| spare.arena.len() == words && spare.entries.len() == entries;
        let reused = spare.and_then(|mut spare| {
            Arc::get_mut(&mut spare).filter(fits)?.clear();
            Some(spare)
        });
        let next = reused.unwrap_or_else(|| Arc::new(Tail::with_room(entries, words)));
        self.hidden.clear();
        (self.len, self.hidden_from, self.longest_chain) = (0, 0, 0);
        (self.base_seq, self.last_seq) = (0, 0);
        std::mem::replace(&mut self.tail, next)
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

/// A copy of a tail, or of a range of it: unsorted, without the micro hash. There may be a few
/// unused bytes before the first and after the last record.
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

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.arena.capacity() + self.entries.capacity() * size_of::<(u32, u32)>()
    }
}

#[cfg(test)]
#[path = "tail/tests.rs"]
mod tests;
