//! How many bytes of a part a range of keys takes, by its index alone: no block is read.
//!
//! The index tells where blocks end, and not which keys are in them. So a range takes the blocks
//! between those that its bounds fall into, and some of these two:
//!
//! ```text
//!   blocks    | 0 | 1 | 2 | 3 | 4 | 5 |
//!   range           [--------)              most: blocks 1 to 4; least: blocks 2 and 3
//! ```

use std::ops::Bound;

use folddb_base::Result;
use folddb_layout::block::Place;

use crate::part::Part;

/// Bytes of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Those of the blocks whose records are all in the range.
    pub least_bytes: u64,
    /// Those of the blocks that may hold a record of the range.
    pub most_bytes: u64,
    /// Those of all blocks of the part.
    pub all_bytes: u64,
}

impl Extent {
    /// The middle of the two, as a share of all bytes.
    pub fn share(&self) -> f64 {
        let middle = (self.least_bytes + self.most_bytes) as f64 / 2.0;
        if self.all_bytes == 0 { 0.0 } else { middle / self.all_bytes as f64 }
    }
}

impl Part {
    /// The extent of the keys between two bounds, in the order of the part. Reads at most two
    /// leaves of the index, and keeps none.
    ///
    /// # Errors
    /// A read error, or damage.
    pub fn extent(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Result<Extent> {
        let all_bytes = self.frame().meta.data_bytes;
        // The block with the first key from the lower bound on: it may begin with lower ones.
        let (least_from, from) = match low {
            bound if self.begins_within(bound) => (0, 0),
            Bound::Included(key) => ends(self.block_of(key, false)?, all_bytes),
            Bound::Excluded(key) => ends(self.block_of(key, true)?, all_bytes),
            Bound::Unbounded => (0, 0),
        };
        // The block with the first key after the upper bound. Equal keys may continue in the next
        // block.
        let (to, least_to) = match high {
            bound if self.ends_within(bound) => (all_bytes, all_bytes),
            Bound::Included(key) => ends(self.block_of(key, true)?, all_bytes),
            Bound::Excluded(key) => ends(self.block_of(key, false)?, all_bytes),
            Bound::Unbounded => (all_bytes, all_bytes),
        };
        let (least_bytes, most_bytes) = (least_to.saturating_sub(least_from), to.saturating_sub(from));
        Ok(Extent { least_bytes, most_bytes, all_bytes })
    }

    /// Whether no key of the part is below this lower bound.
    fn begins_within(&self, low: Bound<&[u8]>) -> bool {
        let first = &self.facts().low;
        match low {
            Bound::Included(key) => self.order().compare(key, first).is_le(),
            Bound::Excluded(key) => self.order().compare(key, first).is_lt(),
            Bound::Unbounded => true,
        }
    }

    /// Whether no key of the part is above this upper bound.
    fn ends_within(&self, high: Bound<&[u8]>) -> bool {
        let last = &self.facts().high;
        match high {
            Bound::Included(key) => self.order().compare(last, key).is_le(),
            Bound::Excluded(key) => self.order().compare(last, key).is_lt(),
            Bound::Unbounded => true,
        }
    }

    /// The first block that may hold `key` or a key after it; with `past_equal`, a key after it.
    fn block_of(&self, key: &[u8], past_equal: bool) -> Result<Option<Place>> {
        let Some(number) = self.find_leaf(key, past_equal) else { return Ok(None) };
        let leaf = self.leaf_in_passing(number)?;
        let block = leaf.separators.bound(self.order(), key, past_equal);
        Ok(leaf.places.get(block).copied())
    }
}

/// Where a block ends and where it begins; behind the last one, where all blocks end.
fn ends(block: Option<Place>, all_bytes: u64) -> (u64, u64) {
    block.map_or((all_bytes, all_bytes), |place| (place.end(), place.offset))
}

#[cfg(test)]
mod tests;
