//! The two levels of an index in memory: separators to be searched, and what lies between them.
//!
//! A binary search compares numbers, the first eight bytes of the separators after those that all
//! of them share; only among equal numbers are keys compared. A leaf is decoded into this form
//! once, when it is read.

use std::cmp::Ordering;

use folddb_base::OpKind;
use folddb_base::bytes::{Malformed, Reader};
use folddb_layout::block::{Block, BlockCursor, Place};
use folddb_layout::part::TopIndex;
use folddb_rules::KeyOrder;

/// Keys in the order of a table, ready to be searched.
#[derive(Debug, Default)]
pub(crate) struct Separators {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    prefixes: Vec<u64>,
    /// Bytes that all of them share, and that the prefixes leave out.
    skip: usize,
}

/// A leaf of the index: which data block ends with which separator.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub(crate) separators: Separators,
    /// As many as there are separators; at least one.
    pub(crate) places: Vec<Place>,
}

impl Separators {
    /// Those of the top index, one for each leaf.
    pub(crate) fn of_top(top: &TopIndex, order: &KeyOrder) -> Separators {
        let mut separators = Separators::default();
        (0..top.leaves.len()).for_each(|leaf| separators.push(top.separator(leaf)));
        separators.prepare(order);
        separators
    }

    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// Makes the numbers to search by, once all keys are there.
    fn prepare(&mut self, order: &KeyOrder) {
        self.skip = order.shared_prefix_len(self.get(0), self.get(self.ends.len().saturating_sub(1)));
        self.prefixes =
            (0..self.ends.len()).map(|number| order.prefix(self.get(number), self.skip)).collect();
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// The key of this number; empty when there is none.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(number).and_then(|end| self.bytes.get(start..*end)).unwrap_or(&[])
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// How many come before `key`; with `past_equal`, how many come before or are equal.
    #[inline]
    pub(crate) fn bound(&self, order: &KeyOrder, key: &[u8], past_equal: bool) -> usize {
        let precedes = |number: usize| match order.compare(self.get(number), key) {
            Ordering::Less => true,
            Ordering::Equal => past_equal,
            Ordering::Greater => false,
        };
        // Keys that begin otherwise than all separators are before the first or after the last of
        // them.
        if key.get(..self.skip) != self.get(0).get(..self.skip) {
            return if self.len() > 0 && precedes(0) { self.len() } else { 0 };
        }
        let prefix = order.prefix(key, self.skip);
        let mut low = self.prefixes.partition_point(|other| *other < prefix);
        let mut high = low;
        while self.prefixes.get(high) == Some(&prefix) {
            high += 1;
        }
        while low < high {
            let middle = (low + high) / 2;
            if precedes(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + (self.ends.capacity() + self.prefixes.capacity()) * 8
    }
}

impl Leaf {
    /// Decodes a leaf index block. What is taken for one here is taken for one by a search without
    /// the index, too (`salvage.rs`), or its places would be salvaged as records.
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
