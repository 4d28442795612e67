//! The trailer of a piece of a part file: its kind, whether it is compressed, and a checksum.
//!
//! ```text
//!   body, as it is or compressed       any length
//!   encoding         u8                1 generic, 2 columnar, 3 filter, 4 top index, 5 meta, 6 liveness,
//!                                      7 summaries
//!   compression      u8                0 none, 1 lz4, 2 zstd; the body is then: raw length u32, and an
//!                                      lz4 block or a zstd frame
//!   checksum         u32 LE            hash32(seed, all of the above)
//! ```
//!
//! The seed is made of file number and offset, so an intact piece in the wrong place is detected,
//! too.

use folddb_base::bytes::{Malformed, Reader, put_u32};
use folddb_base::checksum::hash32;

use super::{lz4, zstd};

/// Bytes that follow the body of every piece.
pub const TRAILER_BYTES: usize = 6;

/// Longest body that a reader accepts, in bytes: the longest record (an `InsertFold` of two
/// values), and some room.
pub const BODY_BYTES_MAX: usize = 64 << 20;

/// What the body of a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Encoding {
    /// Records of any shape, see `generic.rs`.
    Generic = 1,
    /// Records of one shape, see `columnar.rs`.
    Columnar = 2,
    /// A partition of the filter.
    Filter = 3,
    /// The top level of a part's index.
    TopIndex = 4,
    /// The facts about a part.
    Meta = 5,
    /// What a part points to in the value log, see `liveness.rs`.
    Liveness = 6,
    /// The summaries of the blocks of a part, see `summaries.rs`.
    Summaries = 7,
}

impl Encoding {
    /// Whether the piece is a block of records. Salvaging a part without its index searches for
    /// these: a new encoding of blocks must be named here.
    pub fn is_block(self) -> bool {
        match self {
            Encoding::Generic | Encoding::Columnar => true,
            Encoding::Filter
            | Encoding::TopIndex
            | Encoding::Meta
            | Encoding::Liveness
            | Encoding::Summaries => false,
        }
    }

    /// The encoding with this number.
    ///
    /// # Errors
    /// `Malformed` if there is none.
    pub fn from_u8(number: u8) -> Result<Encoding, Malformed> {
        Ok(match number {
            1 => Encoding::Generic,
            2 => Encoding::Columnar,
            3 => Encoding::Filter,
            4 => Encoding::TopIndex,
            5 => Encoding::Meta,
            6 => Encoding::Liveness,
            7 => Encoding::Summaries,
            _ => return Err(Malformed::Tag),
        })
    }
}

/// Whether bodies are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Compression {
    /// They are not.
    #[default]
    None = 0,
    /// By LZ4, if that saves at least an eighth. Columnar bodies are never compressed.
    Lz4 = 1,
    /// By zstd, likewise.
    Zstd = 2,
}

impl Compression {
    /// Whether this build of the library can do it: that is a question of its features.
    pub fn is_available(self) -> bool {
        match self {
            Compression::None => true,
            Compression::Lz4 => cfg!(feature = "lz4"),
            Compression::Zstd => cfg!(feature = "zstd"),
        }
    }

    fn from_u8(number: u8) -> Result<Compression, Malformed> {
        match number {
            0 => Ok(Compression::None),
            1 => Ok(Compression::Lz4),
            2 => Ok(Compression::Zstd),
            _ => Err(Malformed::Tag),
        }
    }

    fn compress(self, raw: &[u8], scratch: &mut Vec<u8>) -> Option<usize> {
        match self {
            Compression::None => None,
            Compression::Lz4 => lz4::compress(raw, scratch),
            Compression::Zstd => zstd::compress(raw, scratch),
        }
    }

    fn decompress(self, compressed: &[u8], out: &mut [u8]) -> Option<usize> {
        match self {
            Compression::None => None,
            Compression::Lz4 => lz4::decompress(compressed, out),
            Compression::Zstd => zstd::decompress(compressed, out),
        }
    }

    /// Whether `compressed` may be the form of a body of `raw_len` bytes. What claims more is
    /// refused before memory is taken for it.
    fn may_expand_to(self, raw_len: usize, compressed: &[u8]) -> bool {
        match self {
            Compression::None => raw_len == compressed.len(),
            // LZ4 expands one byte to at most 255.
            Compression::Lz4 => raw_len / 255 <= compressed.len(),
            Compression::Zstd => zstd::may_expand_to(raw_len, compressed),
        }
    }
}

/// Closes the piece whose body is `out[start..]`. `scratch` holds compressed bytes between calls.
pub fn seal(
    out: &mut Vec<u8>,
    start: usize,
    encoding: Encoding,
    compression: Compression,
    seed: u64,
    scratch: &mut Vec<u8>,
) {
    let compressed = encoding == Encoding::Generic && compress(out, start, compression, scratch);
    let compression = if compressed { compression } else { Compression::None };
    out.extend_from_slice(&[encoding as u8, compression as u8]);
    let checksum = hash32(seed, out.get(start..).unwrap_or(&[]));
    put_u32(out, checksum);
}

/// Replaces `out[start..]` by its compressed form, if that saves enough.
fn compress(out: &mut Vec<u8>, start: usize, compression: Compression, scratch: &mut Vec<u8>) -> bool {
    let raw = out.get(start..).unwrap_or(&[]);
    let Ok(raw_len) = u32::try_from(raw.len()) else { return false };
    let Some(len) = compression.compress(raw, scratch) else { return false };
    if len + 4 > raw.len() - raw.len() / 8 {
        return false;
    }
    out.truncate(start);
    put_u32(out, raw_len);
    out.extend_from_slice(&scratch[..len]);
    true
}

/// The checksum in the trailer of a stored piece, as its bytes; nothing of what is too short.
pub fn stored_checksum(stored: &[u8]) -> &[u8] {
    stored.last_chunk::<4>().map_or(&[], |bytes| bytes)
}

/// A piece whose checksum was right.
#[derive(Clone, Copy, Debug)]
pub struct Sealed<'a> {
    /// What the body is.
    pub encoding: Encoding,
    /// The body, compressed if [`Sealed::is_compressed`].
    pub body: &'a [u8],
    /// How it is compressed.
    pub compression: Compression,
}

impl<'a> Sealed<'a> {
    /// Opens a stored piece, checking its checksum.
    ///
    /// # Errors
    /// The checksum does not match, or this version does not know the kind of the trailer.
    pub fn open(stored: &'a [u8], seed: u64) -> Result<Sealed<'a>, Malformed> {
        let body_len = stored.len().checked_sub(TRAILER_BYTES).ok_or(Malformed::Short)?;
        let (body, trailer) = stored.split_at(body_len);
        let mut reader = Reader::new(trailer);
        let (encoding, compression, checksum) = (reader.u8()?, reader.u8()?, reader.u32()?);
        if hash32(seed, &stored[..body_len + 2]) != checksum {
            return Err(Malformed::Checksum);
        }
        let compression = Compression::from_u8(compression)?;
        Ok(Sealed { encoding: Encoding::from_u8(encoding)?, body, compression })
    }

    /// The body of a piece that must be of this encoding and not compressed.
    ///
    /// # Errors
    /// It is of another, or compressed.
    pub fn plain(&self, encoding: Encoding) -> Result<&'a [u8], Malformed> {
        if self.encoding == encoding && !self.is_compressed() { Ok(self.body) } else { Err(Malformed::Tag) }
    }

    /// True when the body is compressed.
    pub fn is_compressed(&self) -> bool {
        self.compression != Compression::None
    }

    /// Makes `out` the body without compression.
    ///
    /// # Errors
    /// The compressed bytes are not what LZ4 or zstd writes, or not of the length they claim; or
    /// this build of the library has not the feature that they need.
    pub fn copy_body(&self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        out.clear();
        if !self.is_compressed() {
            out.extend_from_slice(self.body);
            return Ok(());
        }
        let mut reader = Reader::new(self.body);
        let raw_len = reader.u32()? as usize;
        let compressed = reader.rest();
        if !self.compression.is_available() {
            return Err(Malformed::Feature);
        }
        if raw_len > BODY_BYTES_MAX || !self.compression.may_expand_to(raw_len, compressed) {
            return Err(Malformed::Bounds);
        }
        out.resize(raw_len, 0);
        let len = self.compression.decompress(compressed, out).ok_or(Malformed::Bounds)?;
        if len == raw_len { Ok(()) } else { Err(Malformed::Bounds) }
    }
}
