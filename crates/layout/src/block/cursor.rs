//! A place in a block, which moves in both directions.
//!
//! A cursor borrows nothing: it keeps the current key and, if it must be built, the payload, and
//! gets the block at each call. So it moves from block to block with its buffers, and its owner may
//! keep both block and cursor. After a change of block, call [`BlockCursor::enter`] first.

use folddb_base::bytes::Malformed;
use folddb_base::{OpKind, Record, Seq};

use super::columnar::{Columnar, Shape, TAIL_BYTES};
use super::columns::load_word;
use super::generic::{Generic, RESTART_EVERY};
use super::{Block, Head};

/// A place in a block.
#[derive(Debug)]
pub struct BlockCursor {
    /// The number of the current record; the count of the block if there is none.
    index: usize,
    count: usize,
    seq: Seq,
    kind: OpKind,
    implied_seq: Seq,
    /// Ends with the current key, which starts at `key_start`.
    key: Vec<u8>,
    key_start: usize,
    /// The payload: a range of the block, or of `scratch`.
    payload_at: usize,
    payload_end: usize,
    payload_in_scratch: bool,
    scratch: Vec<u8>,
    /// Generic blocks: where the entry after the current one begins.
    next_entry: usize,
    back: Back,
}

/// The entries between two restarts, decoded in order to be walked backward.
#[derive(Debug, Default)]
struct Back {
    /// Which restart they follow; none when nothing is decoded.
    restart: Option<usize>,
    keys: Vec<u8>,
    entries: Vec<BackEntry>,
}

#[derive(Clone, Copy, Debug)]
struct BackEntry {
    key_start: usize,
    key_end: usize,
    payload_at: usize,
    end: usize,
}

impl BlockCursor {
    /// A cursor without a place. Records of blocks without seqs get `implied_seq`.
    pub fn new(implied_seq: Seq) -> BlockCursor {
        BlockCursor {
            index: 0,
            count: 0,
            seq: implied_seq,
            kind: OpKind::Delete,
            implied_seq,
            key: Vec::new(),
            key_start: 0,
            payload_at: 0,
            payload_end: 0,
            payload_in_scratch: false,
            scratch: Vec::new(),
            next_entry: 0,
            back: Back::default(),
        }
    }

    /// Changes the seq that records of blocks without seqs get, from the next `enter` on.
    pub fn set_implied_seq(&mut self, implied_seq: Seq) {
        self.implied_seq = implied_seq;
    }

    /// Enters a block. It is on no record until it seeks.
    pub fn enter(&mut self, block: &Block) {
        let body = block.body();
        self.count = block.count();
        self.index = self.count;
        self.back.restart = None;
        self.key.clear();
        self.key_start = 0;
        self.payload_in_scratch = false;
        (self.payload_at, self.payload_end) = (0, 0);
        self.seq = self.implied_seq;
        if let Head::Columnar(columnar) = &block.head {
            self.key.extend_from_slice(columnar.key_head(body));
            self.key.resize(self.key.len() + TAIL_BYTES, 0);
            self.key_start = self.key.len().saturating_sub(columnar.key_len);
            self.scratch.clear();
            self.scratch.extend_from_slice(columnar.template(body));
            self.scratch.resize(columnar.payload_len.max(8), 0);
            self.payload_in_scratch = !matches!(columnar.shape, Shape::Whole);
        }
    }

    /// The number of the current record within the block; the count of the block if there is none.
    #[inline]
    pub fn index(&self) -> usize {
        self.index
    }

    /// The current record. `block` must be the one that was entered.
    #[inline]
    pub fn record<'a>(&'a self, block: &'a Block) -> Option<Record<'a>> {
        if self.index >= self.count {
            return None;
        }
        let source = if self.payload_in_scratch { &self.scratch[..] } else { block.body() };
        let payload = source.get(self.payload_at..self.payload_end).unwrap_or(&[]);
        let key = self.key.get(self.key_start..).unwrap_or(&[]);
        Some(Record { key, seq: self.seq, kind: self.kind, payload })
    }

    /// Goes to the record with this number; past the last one it is on none.
    ///
    /// # Errors
    /// The block is not what its builder writes.
    #[inline]
    pub fn seek_index(&mut self, block: &Block, index: usize) -> Result<(), Malformed> {
        if index >= self.count {
            self.index = self.count;
            return Ok(());
        }
        match &block.head {
            Head::Columnar(columnar) => self.load_columnar(columnar, block.body(), index),
            Head::Generic(generic) => {
                self.load_restart(generic, block.body(), index / RESTART_EVERY)?;
                while self.index < index {
                    self.load_next(generic, block.body())?;
                }
                Ok(())
            }
        }
    }

    /// Goes to the next record; false at the end of the block.
    ///
    /// # Errors
    /// The block is not what its builder writes.
    #[inline]
    pub fn next(&mut self, block: &Block) -> Result<bool, Malformed> {
        if self.index + 1 >= self.count {
            self.index = self.count;
            return Ok(false);
        }
        match &block.head {
            Head::Columnar(columnar) => self.load_columnar(columnar, block.body(), self.index + 1)?,
            Head::Generic(generic) => self.load_next(generic, block.body())?,
        }
        Ok(true)
    }

    /// Goes to the previous record; false at the beginning of the block. From past the end it goes
    /// to the last record.
    ///
    /// # Errors
    /// The block is not what its builder writes.
    #[inline]
    pub fn prev(&mut self, block: &Block) -> Result<bool, Malformed> {
        let Some(index) = self.index.checked_sub(1) else {
            self.index = self.count;
            return Ok(false);
        };
        match &block.head {
            Head::Columnar(columnar) => self.load_columnar(columnar, block.body(), index)?,
            Head::Generic(generic) => self.load_back(generic, block.body(), index)?,
        }
        Ok(true)
    }

    /// Goes to the first record whose key is not `before` the wanted place. Keys for which `before`
    /// holds must all precede the others.
    ///
    /// # Errors
    /// The block is not what its builder writes.
    pub fn seek_by(&mut self, block: &Block, mut before: impl FnMut(&[u8]) -> bool) -> Result<(), Malformed> {
        match &block.head {
            Head::Columnar(columnar) => self.seek_columnar(columnar, block.body(), before),
            Head::Generic(generic) => {
                let body = block.body();
                let (mut low, mut high) = (0, generic.restart_count());
                while low < high {
                    let middle = (low + high) / 2;
                    if before(generic.restart_key(body, middle)?) { low = middle + 1 } else { high = middle }
                }
                self.load_restart(generic, body, low.saturating_sub(1))?;
                while before(&self.key) {
                    if self.index + 1 >= self.count {
                        self.index = self.count;
                        break;
                    }
                    self.load_next(generic, body)?;
                }
                Ok(())
            }
        }
    }

    fn seek_columnar(
        &mut self,
        columnar: &Columnar,
        body: &[u8],
        mut before: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), Malformed> {
        let (mut low, mut high) = (0, columnar.count);
        while low < high {
            let middle = (low + high) / 2;
            self.put_tail(columnar.key_tail(body, middle));
            if before(self.key.get(self.key_start..).unwrap_or(&[])) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        if low == columnar.count {
            self.index = low;
            return Ok(());
        }
        self.load_columnar(columnar, body, low)
    }

    #[inline]
    fn put_tail(&mut self, tail: [u8; TAIL_BYTES]) {
        if let Some(slot) = self.key.last_chunk_mut::<TAIL_BYTES>() {
            *slot = tail;
        }
    }

    #[inline]
    fn load_columnar(&mut self, columnar: &Columnar, body: &[u8], index: usize) -> Result<(), Malformed> {
        self.index = index;
        self.put_tail(columnar.key_tail(body, index));
        self.seq = columnar.sides.seq(body, index).unwrap_or(self.implied_seq);
        self.kind = columnar.sides.kind(body, index)?;
        if self.kind == OpKind::Delete {
            (self.payload_at, self.payload_end) = (0, 0);
            return Ok(());
        }
        let packed_at = columnar.payloads_at + index * columnar.packed_len;
        match &columnar.shape {
            Shape::Constant => (self.payload_at, self.payload_end) = (0, columnar.payload_len),
            Shape::Whole => {
                (self.payload_at, self.payload_end) = (packed_at, packed_at + columnar.payload_len)
            }
            Shape::Word { template, mask, shift } => {
                let word = load_word(body, packed_at, *mask) << shift | template;
                if let Some(slot) = self.scratch.first_chunk_mut::<8>() {
                    *slot = word.to_le_bytes();
                }
                (self.payload_at, self.payload_end) = (0, columnar.payload_len);
            }
            Shape::Spread { segments, count } => {
                let mut from = packed_at;
                for segment in &segments[..*count] {
                    let (start, len) = (usize::from(segment.start), usize::from(segment.len));
                    let packed = body.get(from..from + len).ok_or(Malformed::Bounds)?;
                    self.scratch
                        .get_mut(start..start + len)
                        .ok_or(Malformed::Bounds)?
                        .copy_from_slice(packed);
                    from += len;
                }
                (self.payload_at, self.payload_end) = (0, columnar.payload_len);
            }
        }
        Ok(())
    }

    /// Goes to the record at a restart.
    fn load_restart(&mut self, generic: &Generic, body: &[u8], restart: usize) -> Result<(), Malformed> {
        self.key.clear();
        self.next_entry = generic.restart(body, restart)?;
        self.load_entry(generic, body, restart * RESTART_EVERY)
    }

    #[inline]
    fn load_next(&mut self, generic: &Generic, body: &[u8]) -> Result<(), Malformed> {
        let index = self.index + 1;
        // A walk that begins at a restart and one that reaches it must see the same records.
        if index.is_multiple_of(RESTART_EVERY) {
            if generic.restart(body, index / RESTART_EVERY)? != self.next_entry {
                return Err(Malformed::Order);
            }
            self.key.clear();
        }
        self.load_entry(generic, body, index)
    }

    /// Reads the entry at `next_entry`, which follows the one whose key is in `key`.
    #[inline]
    fn load_entry(&mut self, generic: &Generic, body: &[u8], index: usize) -> Result<(), Malformed> {
        let entry = generic.entry(body, self.next_entry)?;
        if entry.shared > self.key.len() {
            return Err(Malformed::Order);
        }
        self.key.truncate(entry.shared);
        self.key.extend_from_slice(body.get(entry.suffix_at..entry.payload_at).unwrap_or(&[]));
        (self.payload_at, self.payload_end) = (entry.payload_at, entry.end);
        self.next_entry = entry.end;
        self.load_sides(generic, body, index)
    }

    #[inline]
    fn load_sides(&mut self, generic: &Generic, body: &[u8], index: usize) -> Result<(), Malformed> {
        self.index = index;
        self.seq = generic.sides.seq(body, index).unwrap_or(self.implied_seq);
        self.kind = generic.sides.kind(body, index)?;
        Ok(())
    }

    /// Goes to record `index` through the entries decoded from its restart.
    fn load_back(&mut self, generic: &Generic, body: &[u8], index: usize) -> Result<(), Malformed> {
        let restart = index / RESTART_EVERY;
        if self.back.restart != Some(restart) {
            self.back.decode(generic, body, restart)?;
        }
        let entry = *self.back.entries.get(index % RESTART_EVERY).ok_or(Malformed::Bounds)?;
        self.key.clear();
        self.key.extend_from_slice(self.back.keys.get(entry.key_start..entry.key_end).unwrap_or(&[]));
        (self.payload_at, self.payload_end) = (entry.payload_at, entry.end);
        self.next_entry = entry.end;
        self.load_sides(generic, body, index)
    }
}

impl Back {
    fn decode(&mut self, generic: &Generic, body: &[u8], restart: usize) -> Result<(), Malformed> {
        self.restart = None;
        self.keys.clear();
        self.entries.clear();
        let first = restart * RESTART_EVERY;
        let mut at = generic.restart(body, restart)?;
        let (mut key_start, mut key_end) = (0, 0);
        for _ in first..generic.count.min(first + RESTART_EVERY) {
            let entry = generic.entry(body, at)?;
            if entry.shared > key_end - key_start {
                return Err(Malformed::Order);
            }
            self.keys.extend_from_within(key_start..key_start + entry.shared);
            self.keys.extend_from_slice(body.get(entry.suffix_at..entry.payload_at).unwrap_or(&[]));
            (key_start, key_end) = (key_end, self.keys.len());
            self.entries.push(BackEntry { key_start, key_end, payload_at: entry.payload_at, end: entry.end });
            at = entry.end;
        }
        self.restart = Some(restart);
        Ok(())
    }
}
