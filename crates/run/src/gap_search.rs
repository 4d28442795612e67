//! Whether a part has a key between two others: reads the one block, or the two, that may hold it.
//!
//! The index tells where blocks end, and not which keys are in them:
//!
//! ```text
//!   keys       a b c |  f g  | h        blocks end at separators: here `d`, `g`, `h`
//!   between    [b..c): the first block has `b`
//!              [e..f): none; the second block begins with `f`
//!              [c+..d): none, without the second block: its keys are after `d`
//! ```
//!
//! For a reader that asks about ascending keys, and about each once: the last block is at hand, and
//! nothing is kept in the cache.

use std::sync::Arc;

use folddb_base::Result;
use folddb_base::bytes::Malformed;
use folddb_layout::block::{Block, BlockCursor, Place};

use crate::cache::Piece;
use crate::part::{Part, seek_block};
use crate::separators::Leaf;

/// A search for keys in the gaps between ranges.
#[derive(Debug)]
pub struct GapSearch<'p> {
    part: &'p Part,
    leaf: Option<(usize, Arc<Leaf>)>,
    block: Option<(Place, Arc<Block>)>,
    bytes: u64,
}

impl<'p> GapSearch<'p> {
    /// A search in this part, which has read nothing yet.
    pub fn new(part: &'p Part) -> GapSearch<'p> {
        GapSearch { part, leaf: None, block: None, bytes: 0 }
    }

    /// The bytes of the blocks that it has examined.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether some record has a key from `from` on that is before `to`.
    ///
    /// # Errors
    /// A read error, or damage.
    pub fn has_between(&mut self, from: &[u8], to: &[u8]) -> Result<bool> {
        let part = self.part;
        let Some(number) = part.find_leaf(from, false) else { return Ok(false) };
        let leaf = self.leaf(number)?;
        let at = leaf.separators.bound(part.order(), from, false);
        let place = self.place_of(&leaf, at)?;
        if let Some(is_before) = self.first_is_before(place, Some(from), to)? {
            return Ok(is_before);
        }
        // All keys of the next block are after the separator, or equal to the last key of this one.
        if part.order().compare(leaf.separators.get(at), to).is_ge() {
            return Ok(false);
        }
        let next = match (at + 1 < leaf.places.len(), number + 1 < part.boundaries().len()) {
            (true, _) => self.place_of(&leaf, at + 1)?,
            (false, true) => {
                let leaf = self.leaf(number + 1)?;
                self.place_of(&leaf, 0)?
            }
            (false, false) => return Ok(false),
        };
        Ok(self.first_is_before(next, None, to)?.unwrap_or(false))
    }

    /// Whether the first key of a block, from `from` on, is before `to`; none if it has no such
    /// key.
    fn first_is_before(&mut self, place: Place, from: Option<&[u8]>, to: &[u8]) -> Result<Option<bool>> {
        let (part, block) = (self.part, self.block(place)?);
        let mut cursor = BlockCursor::new(0);
        cursor.enter(&block);
        let sought = match from {
            Some(from) => seek_block(&mut cursor, &block, part.order(), from, false),
            None => cursor.seek_index(&block, 0),
        };
        sought.map_err(|fault| part.damage(place, fault))?;
        Ok(cursor.record(&block).map(|record| part.order().compare(record.key, to).is_lt()))
    }

    fn place_of(&self, leaf: &Leaf, block: usize) -> Result<Place> {
        // A part is dropped if there is no key, so a leaf that does not fit the index is no end.
        let index = self.part.frame().footer.top_index;
        leaf.places.get(block).copied().ok_or_else(|| self.part.damage(index, Malformed::Bounds))
    }

    fn leaf(&mut self, number: usize) -> Result<Arc<Leaf>> {
        if let Some((_, leaf)) = self.leaf.as_ref().filter(|(other, _)| *other == number) {
            return Ok(Arc::clone(leaf));
        }
        let leaf = self.part.leaf_in_passing(number)?;
        self.leaf = Some((number, Arc::clone(&leaf)));
        Ok(leaf)
    }

    fn block(&mut self, place: Place) -> Result<Arc<Block>> {
        if let Some((_, block)) = self.block.as_ref().filter(|(other, _)| *other == place) {
            return Ok(Arc::clone(block));
        }
        self.bytes += u64::from(place.len_bytes);
        let block = match self.part.shared().peek(self.part.key_of(place)) {
            Some(Piece::Block(block)) => block,
            _ => Arc::new(self.part.read_block(place)?),
        };
        self.block = Some((place, Arc::clone(&block)));
        Ok(block)
    }
}

#[cfg(test)]
mod tests;
