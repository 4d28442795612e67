//! The summaries of the blocks of a part: how many rows each block shows, and what their values
//! fold to.
//!
//! ```text
//!   piece   count of leaves varint, then of each: count of blocks varint, then of each block:
//!           0                                   no summary: the block must be read
//!           rows + 1 varint | fold              rows, and what they fold to
//!   fold    0                                   not known
//!           length + 1 varint | bytes
//! ```
//!
//! A block with a summary shows one row for each of its records, regardless of older records: each
//! is a `Set` without a deadline, and no key of it is in another block. The total over all blocks
//! is in the facts of the part (`part.rs`), so that a reader that needs the whole part reads
//! nothing else. Written by `run` at the bottom of tables with summaries.

use folddb_base::bytes::{Malformed, Reader, put_varint};

use crate::block::{Compression, Encoding, Sealed, seal};

/// Most rows of a part, so that those of all its blocks can be added up.
const ROWS_MAX: u64 = u32::MAX as u64;

/// The summary of one block, or of a part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Its rows.
    pub rows: u64,
    /// What their values fold to, in the order of the keys, if that is known and short.
    pub fold: Option<Vec<u8>>,
}

/// The summaries of the blocks of a part, leaf by leaf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summaries {
    /// The blocks of each leaf; none for a block that must be read.
    pub leaves: Vec<Vec<Option<Summary>>>,
}

impl Summary {
    fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.rows + 1);
        match &self.fold {
            None => put_varint(out, 0),
            Some(fold) => {
                put_varint(out, fold.len() as u64 + 1);
                out.extend_from_slice(fold);
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Option<Summary>, Malformed> {
        let Some(rows) = reader.varint()?.checked_sub(1) else { return Ok(None) };
        if rows > ROWS_MAX {
            return Err(Malformed::Bounds);
        }
        let fold = match reader.varint()?.checked_sub(1) {
            None => None,
            Some(len) => Some(reader.take(usize::try_from(len).map_err(|_| Malformed::Bounds)?)?.to_vec()),
        };
        Ok(Some(Summary { rows, fold }))
    }
}

/// Appends a summary, or that there is none.
pub(crate) fn put_summary(out: &mut Vec<u8>, summary: Option<&Summary>) {
    match summary {
        None => put_varint(out, 0),
        Some(summary) => summary.put(out),
    }
}

/// Reads what [`put_summary`] wrote.
pub(crate) fn read_summary(reader: &mut Reader<'_>) -> Result<Option<Summary>, Malformed> {
    Summary::read(reader)
}

impl Summaries {
    /// Appends it as a piece of a file.
    pub fn put(&self, out: &mut Vec<u8>, seed: u64) {
        let start = out.len();
        put_varint(out, self.leaves.len() as u64);
        for blocks in &self.leaves {
            put_varint(out, blocks.len() as u64);
            blocks.iter().for_each(|block| put_summary(out, block.as_ref()));
        }
        seal(out, start, Encoding::Summaries, Compression::None, seed, &mut Vec::new());
    }

    /// Reads what [`Summaries::put`] wrote.
    ///
    /// # Errors
    /// The checksum does not match, or the bytes are malformed.
    pub fn open(stored: &[u8], seed: u64) -> Result<Summaries, Malformed> {
        let mut reader = Reader::new(Sealed::open(stored, seed)?.plain(Encoding::Summaries)?);
        let mut summaries = Summaries::default();
        for _ in 0..reader.length()? {
            let mut blocks = Vec::new();
            for _ in 0..reader.length()? {
                blocks.push(read_summary(&mut reader)?);
            }
            summaries.leaves.push(blocks);
        }
        reader.finish()?;
        Ok(summaries)
    }
}

#[cfg(test)]
#[path = "summaries/tests.rs"]
mod tests;
