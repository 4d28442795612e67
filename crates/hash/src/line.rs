//! A line: six slots, with those bits of their points that the place does not give, in one cache
//! line.
//!
//! ```text
//!   words    6 × u64     print 14 | size class 6 | address 44       0: free
//!   rest     u128        how far slots of this home are 8 | six tags of 20 bits
//! ```
//!
//! 34 bits of the point are stored here, and the number of the sector is the 6 others: so a slot
//! can be moved, when its shard grows, without reading the key. That is why there are six slots and
//! not eight.

use folddb_layout::hash_checkpoint::SLOT_BITS;

use crate::slot::{Point, Slot};

/// Slots of a line.
pub(crate) const LINE_SLOTS: usize = 6;

/// Bits of a point that are next to the slot, in its word: the low ones.
const PRINT_BITS: u32 = 14;

/// Bits of a point that are in the rest.
const TAG_BITS: u32 = 20;

/// Bits of a point that a line knows.
pub(crate) const LINE_POINT_BITS: u32 = PRINT_BITS + TAG_BITS;

const TAG_MASK: u128 = (1 << TAG_BITS) - 1;
const FAR_SHIFT: u32 = LINE_SLOTS as u32 * TAG_BITS;

/// The largest distance that is stored. It means this distance and all longer ones.
pub(crate) const FAR_MAX: usize = u8::MAX as usize;

/// See the top of this file.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Line {
    words: [u64; LINE_SLOTS],
    rest: u128,
}

#[inline]
fn print_of(point: Point) -> u64 {
    point.bits() & ((1 << PRINT_BITS) - 1)
}

#[inline]
fn tag_of(point: Point) -> u128 {
    u128::from(point.bits() >> PRINT_BITS) & TAG_MASK
}

impl Line {
    /// A line without slots.
    pub(crate) const EMPTY: Line = Line { words: [0; LINE_SLOTS], rest: 0 };

    /// The places of the slots with this point, a bit for each.
    #[inline]
    pub(crate) fn matching(&self, point: Point) -> u32 {
        let print = print_of(point);
        let alike = self.words.iter().enumerate();
        let alike = alike.fold(0u32, |mask, (at, word)| mask | u32::from(word >> SLOT_BITS == print) << at);
        if alike == 0 { 0 } else { self.sift(alike, tag_of(point)) }
    }

    /// Keeps those of these places that are taken and have this tag.
    #[inline]
    fn sift(&self, mut alike: u32, tag: u128) -> u32 {
        let mut same = 0;
        while alike != 0 {
            let at = alike.trailing_zeros();
            alike &= alike - 1;
            let is_same = self.words[at as usize] != 0 && self.tag(at) == tag;
            same |= u32::from(is_same) << at;
        }
        same
    }

    #[inline]
    fn tag(&self, at: u32) -> u128 {
        self.rest >> (at * TAG_BITS) & TAG_MASK
    }

    /// The slot at a place that is taken.
    #[inline]
    pub(crate) fn slot(&self, at: u32) -> Slot {
        Slot::from_bits(self.words[at as usize] & ((1 << SLOT_BITS) - 1))
    }

    /// The bits of the point at a place that is taken, as far as the line knows them: the low ones.
    #[inline]
    pub(crate) fn point_bits(&self, at: u32) -> u64 {
        (self.tag(at) as u64) << PRINT_BITS | self.words[at as usize] >> SLOT_BITS
    }

    /// The places that are taken, a bit for each.
    #[inline]
    pub(crate) fn taken(&self) -> u32 {
        let words = self.words.iter().enumerate();
        words.fold(0, |mask, (at, word)| mask | u32::from(*word != 0) << at)
    }

    /// Puts a slot into a free place; false if there is none.
    #[inline]
    pub(crate) fn put(&mut self, point: Point, slot: Slot) -> bool {
        let Some(at) = self.words.iter().position(|word| *word == 0) else { return false };
        self.words[at] = print_of(point) << SLOT_BITS | slot.bits();
        let shift = at as u32 * TAG_BITS;
        self.rest = self.rest & !(TAG_MASK << shift) | tag_of(point) << shift;
        true
    }

    /// Replaces a slot by another one of the same point.
    #[inline]
    pub(crate) fn replace(&mut self, at: u32, slot: Slot) {
        let word = &mut self.words[at as usize];
        *word = *word >> SLOT_BITS << SLOT_BITS | slot.bits();
    }

    /// Frees a place.
    #[inline]
    pub(crate) fn clear(&mut self, at: u32) {
        self.words[at as usize] = 0;
    }

    /// How many lines away the furthest slot is that has this line as its home: at most
    /// [`FAR_MAX`].
    #[inline]
    pub(crate) fn far(&self) -> usize {
        (self.rest >> FAR_SHIFT) as usize
    }

    /// Sets how many lines away the furthest slot is.
    pub(crate) fn set_far(&mut self, lines: usize) {
        let others = self.rest & ((1 << FAR_SHIFT) - 1);
        self.rest = others | (lines.min(FAR_MAX) as u128) << FAR_SHIFT;
    }
}

#[cfg(test)]
#[path = "line/tests.rs"]
mod tests;
