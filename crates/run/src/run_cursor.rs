//! A position in a run: its parts, one after the other, as one stream.
//!
//! The parts of a run are disjoint and in the order of their keys, so a seek is a binary search of
//! the parts and then one of a part. A part that a merge has trimmed shows only its keys from `low`
//! on.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use folddb_base::{Direction, Record, RecordStream, Result};
use folddb_rules::KeyOrder;
use folddb_rules::order::PrefixOrder;

use crate::part::Part;
use crate::part_cursor::{PartCursor, ReadMode};

/// A stream over the records of a run, in either direction.
pub struct RunCursor {
    /// In key order. A trimmed part has the first key that it still shows.
    parts: Vec<(Arc<Part>, Option<Vec<u8>>)>,
    order: KeyOrder,
    direction: Direction,
    mode: ReadMode,
    /// The number of the part that `cursor` reads.
    number: usize,
    cursor: Option<PartCursor>,
}

impl RunCursor {
    /// A cursor over `parts`, which are disjoint and in key order, without a position yet. For a
    /// trimmed part the second of the pair is the first key that it still shows.
    pub fn new(
        parts: Vec<(Arc<Part>, Option<Vec<u8>>)>,
        order: KeyOrder,
        direction: Direction,
        mode: ReadMode,
    ) -> RunCursor {
        RunCursor { parts, order, direction, mode, number: 0, cursor: None }
    }

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
    /// As for [`RunCursor::seek_start`].
    pub fn seek(&mut self, from: Bound<&[u8]>) -> Result<()> {
        let Some(number) = self.find_part(from) else {
            self.cursor = None;
            return Ok(());
        };
        self.enter(number);
        if let Some(cursor) = &mut self.cursor {
            cursor.seek(from)?;
        }
        self.skip_ended()
    }

    /// How many leading bytes all keys of its parts share, and a key that begins with these; none
    /// if it has no parts.
    pub fn shared_prefix(&self) -> Option<(usize, &[u8])> {
        let (first, last) = (self.parts.first()?, self.parts.last()?);
        let low = low_of(first);
        Some((self.order.shared_prefix_len(low, &last.0.facts().high), low))
    }

    /// True when it is on no record.
    #[inline]
    pub fn is_ended(&self) -> bool {
        self.cursor.is_none()
    }

    /// The first part, in its direction, that may hold keys from `from` on.
    fn find_part(&self, from: Bound<&[u8]>) -> Option<usize> {
        let count = match (self.direction, from) {
            (Direction::Forward, Bound::Unbounded) => 0,
            (Direction::Forward, Bound::Included(key)) => {
                self.parts.partition_point(|part| self.order.compare(&part.0.facts().high, key).is_lt())
            }
            (Direction::Forward, Bound::Excluded(key)) => {
                self.parts.partition_point(|part| self.order.compare(&part.0.facts().high, key).is_le())
            }
            (Direction::Reversed, Bound::Unbounded) => self.parts.len(),
            (Direction::Reversed, Bound::Included(key)) => {
                self.parts.partition_point(|part| self.order.compare(low_of(part), key).is_le())
            }
            (Direction::Reversed, Bound::Excluded(key)) => {
                self.parts.partition_point(|part| self.order.compare(low_of(part), key).is_lt())
            }
        };
        match self.direction {
            Direction::Forward => (count < self.parts.len()).then_some(count),
            Direction::Reversed => count.checked_sub(1),
        }
    }

    fn enter(&mut self, number: usize) {
        if self.cursor.is_some() && self.number == number {
            return;
        }
        self.number = number;
        self.cursor =
            self.parts.get(number).map(|(part, low)| part.cursor(self.direction, self.mode, low.as_deref()));
    }

    /// Advances to the next parts until one has a record.
    #[cold]
    fn skip_ended(&mut self) -> Result<()> {
        while self.cursor.as_ref().is_some_and(PartCursor::is_ended) {
            let next = match self.direction {
                Direction::Forward => Some(self.number + 1).filter(|next| *next < self.parts.len()),
                Direction::Reversed => self.number.checked_sub(1),
            };
            let Some(next) = next else {
                self.cursor = None;
                return Ok(());
            };
            self.enter(next);
            if let Some(cursor) = &mut self.cursor {
                cursor.seek_start()?;
            }
        }
        Ok(())
    }
}

fn low_of((part, low): &(Arc<Part>, Option<Vec<u8>>)) -> &[u8] {
    match low {
        Some(low) => low,
        None => &part.facts().low,
    }
}

impl RecordStream for RunCursor {
    #[inline]
    fn record(&self) -> Option<Record<'_>> {
        self.cursor.as_ref()?.record()
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        let Some(cursor) = &mut self.cursor else { return Ok(()) };
        cursor.advance()?;
        if cursor.is_ended() { self.skip_ended() } else { Ok(()) }
    }
}

impl fmt::Debug for RunCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunCursor({} parts, at {}, {:?})", self.parts.len(), self.number, self.cursor)
    }
}
