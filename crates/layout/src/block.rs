//! Blocks: the unit in which a part is read. Records in order, in one of two encodings behind one
//! cursor.
//!
//! [`BlockBuilder`] takes records and chooses the encoding by their shape; [`Block`] is a block in
//! memory, [`BlockCursor`] a place in it. This crate knows no key order: the caller of a search
//! passes the comparison, or says that the keys are in the order of their bytes.

mod lz4;
mod zstd;
mod trailer;
mod columns;
mod generic;
mod columnar;
mod cursor;
mod builder;

use folddb_base::bytes::{Malformed, Reader, put_u32, put_u64};

pub use builder::{BlockBuilder, BlockOptions};
pub use cursor::BlockCursor;
pub use trailer::{BODY_BYTES_MAX, Compression, Encoding, Sealed, TRAILER_BYTES, seal, stored_checksum};

use columnar::Columnar;
use generic::Generic;

/// Where a piece of a file is, including its trailer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The offset of its first byte.
    pub offset: u64,
    /// Its length in bytes.
    pub len_bytes: u32,
}

/// Bytes of an encoded [`Place`].
pub const PLACE_BYTES: usize = 12;

impl Place {
    /// The offset of the first byte after it.
    #[inline]
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.len_bytes))
    }

    /// Appends it: offset u64 LE, length u32 LE.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_u64(out, self.offset);
        put_u32(out, self.len_bytes);
    }

    /// Reads what [`Place::put`] wrote.
    ///
    /// # Errors
    /// The bytes end too soon.
    #[inline]
    pub fn read(reader: &mut Reader<'_>) -> Result<Place, Malformed> {
        Ok(Place { offset: reader.u64()?, len_bytes: reader.u32()? })
    }
}

/// A block in memory, checked and without compression.
#[derive(Debug)]
pub struct Block {
    head: Head,
    bytes: Vec<u8>,
    body_len: usize,
}

/// The parsed footer of either encoding.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a box would be one more line of memory to wait for")]
enum Head {
    Generic(Generic),
    Columnar(Columnar),
}

impl Block {
    /// A block from its stored bytes, which it keeps unless they are compressed.
    ///
    /// # Errors
    /// The checksum does not match, or the bytes are not a block.
    pub fn open(stored: Vec<u8>, seed: u64) -> Result<Block, Malformed> {
        let sealed = Sealed::open(&stored, seed)?;
        if sealed.is_compressed() {
            let mut bytes = Vec::new();
            sealed.copy_body(&mut bytes)?;
            let head = Head::parse(sealed.encoding, &bytes)?;
            return Ok(Block { head, body_len: bytes.len(), bytes });
        }
        let head = Head::parse(sealed.encoding, sealed.body)?;
        Ok(Block { head, body_len: sealed.body.len(), bytes: stored })
    }

    /// Replaces it by another block, and keeps its allocation. After an error it is unchanged, or
    /// useless.
    ///
    /// # Errors
    /// As for [`Block::open`].
    pub fn refill(&mut self, stored: &[u8], seed: u64) -> Result<(), Malformed> {
        let sealed = Sealed::open(stored, seed)?;
        sealed.copy_body(&mut self.bytes)?;
        self.body_len = self.bytes.len();
        self.head = Head::parse(sealed.encoding, &self.bytes)?;
        Ok(())
    }

    /// Its allocation, of any length, for the next block.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// How many records it holds; at least one.
    #[inline]
    pub fn count(&self) -> usize {
        match &self.head {
            Head::Generic(generic) => generic.count,
            Head::Columnar(columnar) => columnar.count,
        }
    }

    /// Which encoding it has.
    pub fn encoding(&self) -> Encoding {
        match &self.head {
            Head::Generic(_) => Encoding::Generic,
            Head::Columnar(_) => Encoding::Columnar,
        }
    }

    /// True if its records have their own seqs.
    pub fn has_seqs(&self) -> bool {
        match &self.head {
            Head::Generic(generic) => generic.sides.seqs.is_some(),
            Head::Columnar(columnar) => columnar.sides.seqs.is_some(),
        }
    }

    /// The memory that it uses, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Block>() + self.bytes.capacity()
    }

    /// How many records come before `key`, if keys are in the order of their bytes or,
    /// `descending`, in the reverse; with `past_equal`, how many come before or are equal. None if
    /// numbers alone do not decide it in this block: use [`BlockCursor::seek_by`].
    #[inline]
    pub fn bound_in_bytes(&self, key: &[u8], descending: bool, past_equal: bool) -> Option<usize> {
        match &self.head {
            Head::Generic(_) => None,
            Head::Columnar(columnar) => columnar.bound(self.body(), key, descending, past_equal),
        }
    }

    /// Where a search for `key` reads, for a reader that asks the processor for it beforehand.
    /// Reads nothing of it. Empty if only the search finds out.
    #[inline]
    pub fn where_searched(&self, key: &[u8], descending: bool) -> [&[u8]; 4] {
        match &self.head {
            Head::Generic(_) => [&[]; 4],
            Head::Columnar(columnar) => columnar.where_searched(self.body(), key, descending),
        }
    }

    #[inline]
    fn body(&self) -> &[u8] {
        self.bytes.get(..self.body_len).unwrap_or(&[])
    }
}

impl Head {
    fn parse(encoding: Encoding, body: &[u8]) -> Result<Head, Malformed> {
        match encoding {
            Encoding::Generic => Ok(Head::Generic(Generic::parse(body)?)),
            Encoding::Columnar => Ok(Head::Columnar(Columnar::parse(body)?)),
            _ => Err(Malformed::Tag),
        }
    }
}

#[cfg(test)]
#[path = "block/tests.rs"]
mod tests;
