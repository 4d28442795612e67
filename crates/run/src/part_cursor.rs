//! A cursor over the records of a part, in either direction.
//!
//! A cursor is on a record of a data block, and on the entry of the leaf that says where that block
//! is. If a merge has taken over the lower keys of a part, the part is trimmed: the cursor shows
//! only keys at or above `low`.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use folddb_base::bytes::Malformed;
use folddb_base::{Direction, Record, RecordStream, Result};
use folddb_layout::block::{Block, BlockCursor, Place};

use crate::part::{Part, Rank, seek_block};
use crate::separators::Leaf;
use crate::window::Window;

/// Where a cursor gets its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReadMode {
    /// Through the shared cache: for scans of users.
    Cached,
    /// In long reads that bypass the cache, with the next one announced: for merges and everything
    /// else that reads all records once.
    ReadAhead,
}

/// A stream over the records of a part, with all seqs: the reader decides which are visible.
pub struct PartCursor {
    part: Arc<Part>,
    direction: Direction,
    low: Option<Vec<u8>>,
    window: Option<Window>,
    leaf_number: usize,
    leaf: Option<Arc<Leaf>>,
    /// The number of the block within the leaf.
    block_number: usize,
    place: Place,
    /// The block that it is in; none before the first seek and after the end.
    block: Option<Arc<Block>>,
    at: BlockCursor,
    /// Reversed: the records of the block before this number are below `low`.
    floor: usize,
}

impl Part {
    /// A cursor without a position yet. For a trimmed part, `low` is the first key that it still
    /// shows.
    pub fn cursor(self: &Arc<Self>, direction: Direction, mode: ReadMode, low: Option<&[u8]>) -> PartCursor {
        PartCursor {
            part: Arc::clone(self),
            direction,
            low: low.map(<[u8]>::to_vec),
            window: (mode == ReadMode::ReadAhead).then(Window::default),
            leaf_number: 0,
            leaf: None,
            block_number: 0,
            place: Place::default(),
            block: None,
            at: BlockCursor::new(self.facts().max_seq),
            floor: 0,
        }
    }
}

impl PartCursor {
    /// Moves to the first record in its direction.
    ///
    /// # Errors
    /// A read error or damage. Then the cursor must not be used any more.
    pub fn seek_start(&mut self) -> Result<()> {
        self.seek(Bound::Unbounded)
    }

    /// Moves to the first record, in its direction, from `from` on.
    ///
    /// # Errors
    /// As for [`PartCursor::seek_start`].
    pub fn seek(&mut self, from: Bound<&[u8]>) -> Result<()> {
        match self.direction {
            Direction::Forward => self.seek_forward(from),
            Direction::Reversed => self.seek_reversed(from),
        }
    }

    /// True when it is on no record.
    #[inline]
    pub fn is_ended(&self) -> bool {
        self.block.is_none()
    }

    /// The part that it reads.
    pub fn part(&self) -> &Arc<Part> {
        &self.part
    }

    fn seek_forward(&mut self, from: Bound<&[u8]>) -> Result<()> {
        let low = self.low.take();
        let from = match (&low, from) {
            (Some(low), Bound::Included(key) | Bound::Excluded(key))
                if self.part.order().compare(key, low).is_lt() =>
            {
                Bound::Included(&low[..])
            }
            (Some(low), Bound::Unbounded) => Bound::Included(&low[..]),
            (_, from) => from,
        };
        let done = match from {
            Bound::Unbounded => self.start_at_leaf(0),
            Bound::Included(key) => self.seek_key(key, false),
            Bound::Excluded(key) => self.seek_key(key, true),
        };
        self.low = low;
        done
    }

    fn start_at_leaf(&mut self, leaf: usize) -> Result<()> {
        self.enter_leaf(leaf)?;
        self.enter_block(0)?;
        self.block_seek(|cursor, block| cursor.seek_index(block, 0))
    }

    /// Forward: moves to the first record at or after `key`; with `past_equal`, after it.
    fn seek_key(&mut self, key: &[u8], past_equal: bool) -> Result<()> {
        let Some(leaf) = self.part.find_leaf(key, past_equal) else { return self.end() };
        self.find_block(leaf, key, past_equal)?;
        let part = Arc::clone(&self.part);
        self.block_seek(|cursor, block| seek_block(cursor, block, part.order(), key, past_equal))?;
        if self.is_off_block() { self.next_block() } else { Ok(()) }
    }

    /// Enters the first block with a separator at or after `key`; with `past_equal`, after it.
    fn find_block(&mut self, leaf: usize, key: &[u8], past_equal: bool) -> Result<()> {
        self.enter_leaf(leaf)?;
        let number =
            self.leaf.as_ref().map_or(0, |leaf| leaf.separators.bound(self.part.order(), key, past_equal));
        self.enter_block(number)
    }

    fn seek_reversed(&mut self, from: Bound<&[u8]>) -> Result<()> {
        let (key, past_equal) = match from {
            Bound::Unbounded => return self.seek_last(),
            Bound::Included(key) => (key, true),
            Bound::Excluded(key) => (key, false),
        };
        let Some(leaf) = self.part.find_leaf(key, past_equal) else { return self.seek_last() };
        self.find_block(leaf, key, past_equal)?;
        let part = Arc::clone(&self.part);
        // First to the first record that is too high, then back by one.
        self.block_seek(|cursor, block| seek_block(cursor, block, part.order(), key, past_equal))?;
        self.step_back()
    }

    fn seek_last(&mut self) -> Result<()> {
        self.enter_last_block_of(self.part.frame().top.leaves.len() - 1)?;
        self.step_back()
    }

    fn enter_last_block_of(&mut self, leaf: usize) -> Result<()> {
        self.enter_leaf(leaf)?;
        let count = self.leaf.as_ref().map_or(0, |leaf| leaf.places.len());
        self.enter_block(count.saturating_sub(1))
    }

    fn end(&mut self) -> Result<()> {
        self.block = None;
        Ok(())
    }

    fn is_off_block(&self) -> bool {
        self.block.as_ref().is_none_or(|block| self.at.index() >= block.count())
    }

    fn enter_leaf(&mut self, number: usize) -> Result<()> {
        if number >= self.part.frame().top.leaves.len() {
            return self.end();
        }
        if self.leaf.is_none() || self.leaf_number != number {
            self.leaf = Some(match self.window {
                None => self.part.leaf(Rank::Oldest, number)?,
                Some(_) => self.part.leaf_in_passing(number)?,
            });
            self.leaf_number = number;
        }
        Ok(())
    }

    /// Moves within the block.
    fn block_seek(
        &mut self,
        go: impl FnOnce(&mut BlockCursor, &Block) -> Result<(), Malformed>,
    ) -> Result<()> {
        let Some(block) = &self.block else { return Ok(()) };
        go(&mut self.at, block).map_err(|fault| self.part.damage(self.place, fault))
    }

    /// Takes the block of this number of the leaf; ends if there is none.
    fn enter_block(&mut self, number: usize) -> Result<()> {
        let used = self.block.take();
        let Some(place) = self.leaf.as_ref().and_then(|leaf| leaf.places.get(number)) else { return Ok(()) };
        (self.block_number, self.place) = (number, *place);
        let block = match &mut self.window {
            None => self.part.block(self.place)?,
            Some(window) => window.block(&self.part, self.place, self.direction, used)?,
        };
        self.at.enter(&block);
        self.floor = 0;
        if let (Direction::Reversed, Some(low)) = (self.direction, &self.low) {
            seek_block(&mut self.at, &block, self.part.order(), low, false)
                .map_err(|fault| self.part.damage(self.place, fault))?;
            self.floor = self.at.index();
            self.at.enter(&block);
        }
        self.block = Some(block);
        Ok(())
    }

    /// Moves to the first record of the next block.
    #[cold]
    fn next_block(&mut self) -> Result<()> {
        let next = self.block_number + 1;
        if self.leaf.as_ref().is_some_and(|leaf| next < leaf.places.len()) {
            self.enter_block(next)?;
            return self.block_seek(|cursor, block| cursor.seek_index(block, 0));
        }
        let next = self.leaf_number + 1;
        if next >= self.part.frame().top.leaves.len() {
            return self.end();
        }
        self.start_at_leaf(next)
    }

    /// Moves back by one record, from any position in the block, including its end.
    #[inline]
    fn step_back(&mut self) -> Result<()> {
        let Some(block) = &self.block else { return Ok(()) };
        if self.at.index() > self.floor {
            return match self.at.prev(block) {
                Ok(_) => Ok(()),
                Err(fault) => Err(self.part.damage(self.place, fault)),
            };
        }
        self.previous_block()
    }

    /// Reversed: moves to the last record of the previous block; ends if all of that block is below
    /// `low`.
    #[cold]
    fn previous_block(&mut self) -> Result<()> {
        if self.floor > 0 {
            return self.end();
        }
        match (self.block_number.checked_sub(1), self.leaf_number.checked_sub(1)) {
            (Some(before), _) => self.enter_block(before)?,
            (None, Some(leaf)) => self.enter_last_block_of(leaf)?,
            (None, None) => return self.end(),
        }
        // The cursor is at the end of the block, so there is a record before it, unless all are
        // below `low`.
        match &self.block {
            Some(block) if self.floor >= block.count() => self.end(),
            _ => self.step_back(),
        }
    }
}

impl RecordStream for PartCursor {
    #[inline]
    fn record(&self) -> Option<Record<'_>> {
        self.at.record(self.block.as_ref()?)
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        let Some(block) = &self.block else { return Ok(()) };
        if self.direction == Direction::Reversed {
            return self.step_back();
        }
        match self.at.next(block) {
            Ok(true) => Ok(()),
            Ok(false) => self.next_block(),
            Err(fault) => Err(self.part.damage(self.place, fault)),
        }
    }
}

impl fmt::Debug for PartCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PartCursor({:?}, {:?}, {:?})", self.part, self.direction, self.record())
    }
}
