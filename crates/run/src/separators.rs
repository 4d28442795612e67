//! The two levels of the index in memory: separators, and searching them.
//!
//! A binary search compares numbers, made of eight bytes of each separator: its first eight if no
//! two separators have the same, else the eight after the bytes that all of them share. Whole keys
//! are compared only if the numbers are equal. A leaf is decoded into this form once, when it is
//! read.

use std::cmp::Ordering;

use folddb_base::OpKind;
use folddb_base::bytes::{Malformed, Reader};
use folddb_host::prefetch::prefetch_all;
use folddb_layout::block::{Block, BlockCursor, Place};
use folddb_layout::part::TopIndex;
use folddb_rules::KeyOrder;
use folddb_rules::order::PrefixOrder;

/// Keys in the order of a table, prepared for searching.
#[derive(Debug, Default)]
pub(crate) struct Separators {
    prefixes: Vec<u64>,
    /// How many leading bytes all keys share; the prefixes begin after them.
    skip: usize,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Disjoint ranges of keys, in order, such as those of the parts of a run.
#[derive(Debug)]
pub struct Spans {
    /// The lowest and the highest key of each, in turn.
    ends: Separators,
}

/// A leaf of the index: data blocks, and the separator after each.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub(crate) separators: Separators,
    /// As many as there are separators; at least one.
    pub(crate) places: Vec<Place>,
}

impl Separators {
    /// Separators of these keys, which must be in this order.
    pub(crate) fn of<'k>(keys: impl Iterator<Item = &'k [u8]>, order: &KeyOrder) -> Separators {
        let mut separators = Separators::default();
        keys.for_each(|key| separators.push(key));
        separators.prepare(order);
        separators
    }

    /// The separators of the top index, one for each leaf.
    pub(crate) fn of_top(top: &TopIndex, order: &KeyOrder) -> Separators {
        Separators::of((0..top.leaves.len()).map(|leaf| top.separator(leaf)), order)
    }

    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// Makes the numbers for the search, after all keys were pushed.
    fn prepare(&mut self, order: &KeyOrder) {
        self.skip = 0;
        self.prefixes = self.prefixes_after(0, order);
        let tells_all_apart = self.prefixes.is_sorted_by(|a, b| a < b);
        if !tells_all_apart {
            self.skip = order.shared_prefix_len(self.get(0), self.get(self.ends.len().saturating_sub(1)));
            self.prefixes = self.prefixes_after(self.skip, order);
        }
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    fn prefixes_after(&self, skip: usize, order: &KeyOrder) -> Vec<u64> {
        (0..self.ends.len()).map(|number| order.prefix(self.get(number), skip)).collect()
    }

    /// The key of this number; empty if there is none.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(number).and_then(|end| self.bytes.get(start..*end)).unwrap_or(&[])
    }

    /// Asks the processor for the numbers that a search compares.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch_all(&self.prefixes[..]);
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// How many of the keys come before `key`; with `past_equal`, how many come before or are
    /// equal.
    #[inline]
    pub(crate) fn bound(&self, order: &KeyOrder, key: &[u8], past_equal: bool) -> usize {
        self.search(order, key, past_equal).map_or_else(
            // Keys that do not begin like the separators are before the first or after the last.
            || if self.precedes(0, order, key, past_equal) { self.len() } else { 0 },
            |(before, _)| before,
        )
    }

    /// Whether `key` begins like all the keys, as far as these share their beginning.
    #[inline]
    fn share_beginning_with(&self, key: &[u8]) -> bool {
        self.skip == 0 || key.get(..self.skip) == self.bytes.get(..self.skip)
    }

    /// As [`Separators::bound`], and whether the number of `key` is that of one of the keys. None
    /// if it is before all of them or after all of them, as its first bytes show.
    #[inline(always)] // shared by two callers, it would cost each get from a run 70 instructions
    fn search(&self, order: &KeyOrder, key: &[u8], past_equal: bool) -> Option<(usize, bool)> {
        if !self.share_beginning_with(key) {
            return None;
        }
        let prefix = order.prefix(key, self.skip);
        let low = self.prefixes.partition_point(|other| *other < prefix);
        Some(match self.prefixes.get(low) {
            Some(equal) if *equal == prefix => (self.bound_among_equal(low, order, key, past_equal), true),
            _ => (low, false),
        })
    }

    /// As [`Separators::bound`], beginning with the first separator that has the number of `key`.
    fn bound_among_equal(&self, first: usize, order: &KeyOrder, key: &[u8], past_equal: bool) -> usize {
        let (mut low, mut high) = (first, self.end_of_equal(first));
        while low < high {
            let middle = (low + high) / 2;
            if self.precedes(middle, order, key, past_equal) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The end of the separators that have the same number as this one. Mostly it is alone.
    fn end_of_equal(&self, first: usize) -> usize {
        match self.prefixes.get(first..).unwrap_or(&[]) {
            [one, next, rest @ ..] if one == next => first + 2 + rest.partition_point(|other| other == one),
            equal => first + equal.len().min(1),
        }
    }

    /// Whether a separator comes before `key`; with `past_equal`, whether it comes before or is
    /// equal.
    fn precedes(&self, number: usize, order: &KeyOrder, key: &[u8], past_equal: bool) -> bool {
        match order.compare(self.get(number), key) {
            Ordering::Less => true,
            Ordering::Equal => past_equal,
            Ordering::Greater => false,
        }
    }

    /// The heap memory that it takes, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + (self.ends.capacity() + self.prefixes.capacity()) * 8
    }
}

impl Spans {
    /// The ranges, each given by its first and its last key.
    pub fn of<'k>(spans: impl Iterator<Item = (&'k [u8], &'k [u8])>, order: &KeyOrder) -> Spans {
        Spans { ends: Separators::of(spans.flat_map(|(low, high)| [low, high]), order) }
    }

    /// The number of the range that includes `key`.
    #[inline]
    pub fn find(&self, order: &KeyOrder, key: &[u8]) -> Option<usize> {
        let (before, may_be_end) = self.ends.search(order, key, false)?;
        let is_inside = before % 2 == 1;
        let is_end =
            || may_be_end && before < self.ends.len() && order.compare(self.ends.get(before), key).is_eq();
        (is_inside || is_end()).then_some(before / 2)
    }
}

impl Leaf {
    /// Decodes a leaf index block. A search without the index (`salvage.rs`) must recognize the
    /// same blocks as leaves, or their places would be salvaged as records.
    pub(crate) fn decode(block: &Block, order: &KeyOrder) -> Result<Leaf, Malformed> {
        if block.has_seqs() {
            return Err(Malformed::Tag);
        }
        let mut leaf =
            Leaf { separators: Separators::default(), places: Vec::with_capacity(block.count().min(1024)) };
        let mut cursor = BlockCursor::new(0);
        cursor.enter(block);
        cursor.seek_index(block, 0)?;
        while let Some(record) = cursor.record(block) {
            if record.kind != OpKind::Set {
                return Err(Malformed::Tag);
            }
            let mut payload = Reader::new(record.payload);
            leaf.separators.push(record.key);
            leaf.places.push(Place::read(&mut payload)?);
            payload.finish()?;
            cursor.next(block)?;
        }
        leaf.separators.prepare(order);
        Ok(leaf)
    }

    /// The memory that it takes, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Leaf>() + self.separators.memory_bytes() + self.places.capacity() * size_of::<Place>()
    }
}

#[cfg(test)]
#[path = "separators/tests.rs"]
mod tests;
