//! The header of a segment of the log: its first four kilobytes.
//!
//! ```text
//!    0  magic      8 B   "FoldLog\0"
//!    8  format     u16
//!   10  kind       u8    0 = log
//!   11  flags      u8    0
//!   12  (zero)     u32
//!   16  number     u64   the file's number
//!   24  store_id   u128  a segment of another store is refused
//!   40  salt       u64   random; seeds the hash of each frame
//!   48  first_lsn  u64   the LSN of the first byte after the header
//!   56  capacity   u64   bytes after the header
//!   64  previous   u64   the segment before it, 0 = it begins a chain
//!   72  hash       u64   xxh3-64 of bytes 0..72, seeded with the number
//!   80  (zeros up to 4096)
//! ```
//!
//! All of it is known before the segment is used, so background work writes and syncs it ahead: a
//! bad header of a used segment is damage and never a torn write. A segment owns `capacity` LSNs
//! from `first_lsn` on, whether it is filled or sealed early; so the next one's `first_lsn` is
//! known ahead, too. Its SEAL frame shows that a segment was not cut short, and a field in each
//! frame chains the frames (see `frame.rs`).

use folddb_base::bytes::{Malformed, Reader, put_u32, put_u64};
use folddb_base::checksum::{hash64, place_seed};
use folddb_base::{FileNumber, Lsn};

/// Bytes that the header takes in the file. Frames begin after them.
pub const SEGMENT_HEADER_BYTES: usize = 4096;

/// The offset of the file's number in a header.
pub const NUMBER_AT: usize = 16;

const MAGIC: &[u8; 8] = b"FoldLog\0";
const FORMAT: u16 = 1;
const SEGMENTS_LOG: u8 = 0;
const HASHED_BYTES: usize = 72;

/// The fields of the header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The number of its file.
    pub number: FileNumber,
    /// The store that it belongs to.
    pub store_id: u128,
    /// Seeds the hash of each frame, so that no frame is taken for one of another segment.
    pub salt: u64,
    /// The LSN of the first byte after the header.
    pub first_lsn: Lsn,
    /// Bytes after the header.
    pub capacity_bytes: u64,
    /// The segment before it; none if it begins a chain.
    pub previous: Option<FileNumber>,
}

impl SegmentHeader {
    /// The first LSN after this segment, where the next one begins.
    pub fn next_lsn(&self) -> Lsn {
        self.first_lsn.saturating_add(self.capacity_bytes)
    }

    /// The file offset of an LSN at or after the first.
    pub fn offset_of(&self, lsn: Lsn) -> u64 {
        lsn.saturating_sub(self.first_lsn).saturating_add(SEGMENT_HEADER_BYTES as u64)
    }

    /// All [`SEGMENT_HEADER_BYTES`] of it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SEGMENT_HEADER_BYTES);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&FORMAT.to_le_bytes());
        out.extend_from_slice(&[SEGMENTS_LOG, 0]);
        put_u32(&mut out, 0);
        put_u64(&mut out, self.number.0);
        out.extend_from_slice(&self.store_id.to_le_bytes());
        put_u64(&mut out, self.salt);
        put_u64(&mut out, self.first_lsn);
        put_u64(&mut out, self.capacity_bytes);
        put_u64(&mut out, self.previous.map_or(0, |number| number.0));
        let hash = hash64(place_seed(self.number.0, 0), &out);
        put_u64(&mut out, hash);
        out.resize(SEGMENT_HEADER_BYTES, 0);
        out
    }

    /// The fields, whether or not the hash matches, in a file of `len_bytes`: for salvaging, which
    /// must verify them in another way.
    pub fn from_fields(bytes: &[u8], number: FileNumber, len_bytes: u64) -> Option<SegmentHeader> {
        let mut reader = Reader::new(bytes.get(24..HASHED_BYTES)?);
        let store_id = u128::from(reader.u64().ok()?) | u128::from(reader.u64().ok()?) << 64;
        let (salt, first_lsn) = (reader.u64().ok()?, reader.u64().ok()?);
        let capacity_bytes = len_bytes.checked_sub(SEGMENT_HEADER_BYTES as u64)?;
        first_lsn.checked_add(capacity_bytes)?;
        Some(SegmentHeader { number, store_id, salt, first_lsn, capacity_bytes, previous: None })
    }

    /// Reads the header of the file numbered `number` from its first [`SEGMENT_HEADER_BYTES`].
    ///
    /// # Errors
    /// `Tag` if it is whole but of another format or kind; anything else if it is not whole.
    pub fn decode(bytes: &[u8], number: FileNumber) -> Result<SegmentHeader, Malformed> {
        let header = bytes.get(..SEGMENT_HEADER_BYTES).ok_or(Malformed::Short)?;
        let (hashed, rest) = header.split_at(HASHED_BYTES);
        let (hash, zeros) = rest.split_at(8);
        if hash != hash64(place_seed(number.0, 0), hashed).to_le_bytes()
            || zeros.iter().any(|&byte| byte != 0)
        {
            return Err(Malformed::Checksum);
        }
        let mut reader = Reader::new(hashed);
        let (magic, kind) = (reader.take(8)?, reader.take(8)?);
        if magic != MAGIC || kind[..2] != FORMAT.to_le_bytes() || kind[2..] != [SEGMENTS_LOG, 0, 0, 0, 0, 0] {
            return Err(Malformed::Tag);
        }
        let said_number = FileNumber(reader.u64()?);
        let store_id = u128::from(reader.u64()?) | u128::from(reader.u64()?) << 64;
        let (salt, first_lsn, capacity_bytes) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let previous = Some(FileNumber(reader.u64()?)).filter(|number| number.0 != 0);
        if said_number != number || first_lsn.checked_add(capacity_bytes).is_none() {
            return Err(Malformed::Bounds);
        }
        Ok(SegmentHeader { number, store_id, salt, first_lsn, capacity_bytes, previous })
    }
}

#[cfg(test)]
#[path = "segment/tests.rs"]
mod tests;
