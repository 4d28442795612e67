//! Reading ahead: a window of a file in memory, for readers that pass once from end to end.
//!
//! A merge reads its inputs through this: a few hundred kilobytes at a time, with the next window
//! announced to the system, and nothing put into the cache. What was read stays in the page cache
//! of the system: gets read it until the merge is installed, and would otherwise wait for the disk.
//! Windows begin small and double, so that reading only a little costs little; a block that is
//! longer than any window is read alone. All memory is reused from window to window and block to
//! block.

use std::sync::Arc;

use folddb_base::{Direction, Result};
use folddb_layout::block::{Block, Place};

use crate::cache::WINDOW_BYTES_MIN;
use crate::part::Part;
use crate::shared::count;

/// A window of a part's data, and the last block taken from it.
#[derive(Debug, Default)]
pub(crate) struct Window {
    bytes: Vec<u8>,
    offset: u64,
    next_bytes: u64,
    spare: Option<Arc<Block>>,
}

impl Window {
    /// The block at `place`. `used` is the block that this call replaces; its memory is reused.
    pub(crate) fn block(
        &mut self,
        part: &Part,
        place: Place,
        direction: Direction,
        used: Option<Arc<Block>>,
    ) -> Result<Arc<Block>> {
        if u64::from(place.len_bytes) > part.shared().window_bytes_max() {
            drop(used);
            return self.long_block(part, place);
        }
        if used.is_some() {
            self.spare = used;
        }
        if place.offset < self.offset || place.end() > self.offset + self.bytes.len() as u64 {
            self.read(part, place, direction)?;
        }
        let start = (place.offset - self.offset) as usize;
        let stored = &self.bytes[start..start + place.len_bytes as usize];
        count(&part.shared().counters().pieces_read, 1);
        if let Some(mut spare) = self.spare.take()
            && let Some(block) = Arc::get_mut(&mut spare)
        {
            block.refill(stored, part.seed(place)).map_err(|fault| part.unread(place, fault))?;
            return Ok(spare);
        }
        let block =
            Block::open(stored.to_vec(), part.seed(place)).map_err(|fault| part.unread(place, fault))?;
        Ok(Arc::new(block))
    }

    /// Reads a block that is longer than a window. The window and the spare block are freed first:
    /// so with large values every input of a merge holds one such block, and not three.
    fn long_block(&mut self, part: &Part, place: Place) -> Result<Arc<Block>> {
        check_bounds(part, place)?;
        (self.spare, self.bytes) = (None, Vec::new());
        let mut stored = vec![0; place.len_bytes as usize];
        part.read_at(place.offset, &mut stored)?;
        count(&part.shared().counters().pieces_read, 1);
        let block = Block::open(stored, part.seed(place)).map_err(|fault| part.unread(place, fault))?;
        Ok(Arc::new(block))
    }

    /// Reads the window that begins (reversed: ends) with `place`.
    fn read(&mut self, part: &Part, place: Place, direction: Direction) -> Result<()> {
        check_bounds(part, place)?;
        let (data_bytes, max) = (part.frame().meta.data_bytes, part.shared().window_bytes_max());
        let wanted = self.next_bytes.clamp(WINDOW_BYTES_MIN, max).max(u64::from(place.len_bytes));
        self.next_bytes = (wanted * 2).min(max);
        let (from, to) = match direction {
            Direction::Forward => (place.offset, (place.offset + wanted).min(data_bytes)),
            Direction::Reversed => (place.end().saturating_sub(wanted), place.end()),
        };
        self.bytes.clear();
        self.offset = from;
        self.bytes.resize((to - from) as usize, 0);
        if let Err(error) = part.read_at(from, &mut self.bytes) {
            self.bytes.clear();
            return Err(error);
        }
        let (next, next_bytes) = match direction {
            Direction::Forward => (to, self.next_bytes.min(data_bytes - to)),
            Direction::Reversed => (from.saturating_sub(self.next_bytes), self.next_bytes.min(from)),
        };
        part.file()?.will_need(next, next_bytes);
        Ok(())
    }
}

/// Checks that a block is before the filters and the index of its part.
fn check_bounds(part: &Part, place: Place) -> Result<()> {
    if place.end() > part.frame().meta.data_bytes {
        return Err(part.damage(place, folddb_base::bytes::Malformed::Bounds));
    }
    Ok(())
}
