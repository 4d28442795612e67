//! The index of a hashed table, as it is saved: pieces, a directory of them, a footer.
//!
//! ```text
//!   pieces        one for each range of points, ascending, from offset 0 on
//!   directory     which ranges, and how long each piece is
//!   footer        64 bytes
//!
//!   piece         of each key: distance of its point varint (of the first from the range's start, of the others from the
//!                 one before), slot 7 bytes LE; ascending by point, then by slot
//!                 then xxh3-64 of that, u64 LE, seeded with file and offset
//!   directory     piece count varint, then of each: depth u8, keys varint, seq varint, length varint (checksum included);
//!                 then xxh3-64 of that, u64 LE, seeded with file and offset
//! ```
//!
//! A *point* is the first 40 bits of a key's hash. A piece of *depth* d, 6 to 22, holds the points
//! that share their first d bits; the pieces of a checkpoint hold all points between them, each
//! once. A piece holds every change up to its *seq*, and none after. A *slot* says where a value is
//! and about how long it is; the crate `folddb-hash` defines it. Its low 44 bits are never all
//! zero.
//!
//! Written and read by `folddb-hash`. The layout of lines and shards in memory is not part of the
//! format.

use std::ops::Range;

use folddb_base::Seq;
use folddb_base::bytes::{Malformed, Reader, put_u32, put_u64, put_varint};
use folddb_base::checksum::{hash64, place_seed};

use crate::part::FooterFault;

/// Bits of a point.
pub const POINT_BITS: u32 = 40;

/// Bits of a slot.
pub const SLOT_BITS: u32 = 50;

/// Bits of the address in a slot: the low ones.
pub const ADDRESS_BITS: u32 = 44;

/// How many bits of the number of a value segment are in an address: no two live segments may share
/// them.
pub const SEGMENT_BITS: u32 = 20;

/// The other bits of an address: the place in the segment, in units of 16 bytes.
pub const UNIT_BITS: u32 = ADDRESS_BITS - SEGMENT_BITS;

/// Fewest bits that the points of a piece share.
pub const DEPTH_MIN: u32 = 6;

/// Most bits that they share.
pub const DEPTH_MAX: u32 = 22;

/// Bytes of the footer.
pub const CHECKPOINT_FOOTER_BYTES: usize = 64;

/// The version of checkpoints that is written, and the newest that is read.
pub const CHECKPOINT_VERSION: u32 = 1;

/// Bytes of the checksum that ends a piece and the directory.
pub const SUM_BYTES: usize = 8;

/// Longest piece that a reader accepts, in bytes. Writers stay far below it.
pub const CHECKPOINT_PIECE_BYTES_MAX: u64 = 1 << 30;

/// Longest directory that a reader accepts, in bytes: some ten million pieces.
pub const DIRECTORY_BYTES_MAX: u64 = 64 << 20;

const MAGIC: [u8; 8] = *b"FoldHash";
pub(crate) const SLOT_BYTES: usize = 7;

/// Fewest bytes that a key takes in a piece: a distance and a slot.
const ENTRY_BYTES_MIN: usize = 1 + SLOT_BYTES;

/// Fewest bytes that a piece takes in the directory.
const DIRECTORY_ENTRY_BYTES_MIN: usize = 4;

/// A key in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The first [`POINT_BITS`] bits of the hash of the key.
    pub point: u64,
    /// Where its value is, and about how long it is: [`SLOT_BITS`] bits.
    pub slot: u64,
}

/// The points that share their first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointRange {
    /// The first of them.
    pub start: u64,
    /// How many bits they share.
    pub depth: u32,
}

impl PointRange {
    /// How many points there are in it.
    pub fn width(self) -> u64 {
        1 << POINT_BITS.saturating_sub(self.depth)
    }

    /// The first point after it.
    pub fn end(self) -> u64 {
        self.start + self.width()
    }

    /// Whether a point is in it.
    pub fn contains(self, point: u64) -> bool {
        (self.start..self.end()).contains(&point)
    }
}

/// A piece, in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceEntry {
    /// The points that it holds.
    pub range: PointRange,
    /// How many keys there are in it.
    pub keys: u64,
    /// It holds every change up to this seq, and none after.
    pub seq: Seq,
    /// Where it begins in the file.
    pub offset: u64,
    /// Its length in bytes, its checksum included.
    pub len_bytes: u64,
}

/// Where the pieces of a checkpoint are. They follow each other, by point and in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    /// The pieces, ascending.
    pub pieces: Vec<PieceEntry>,
}

/// Appends the checksum of `out[start..]`, which is at `offset` of the file of this number.
pub(crate) fn put_sum(out: &mut Vec<u8>, start: usize, number: u64, offset: u64) {
    let sum = hash64(place_seed(number, offset), out.get(start..).unwrap_or(&[]));
    put_u64(out, sum);
}

/// The bytes before the checksum, if that is correct.
pub(crate) fn body_of(stored: &[u8], number: u64, offset: u64) -> Result<&[u8], Malformed> {
    let (body, sum) = stored.split_last_chunk::<SUM_BYTES>().ok_or(Malformed::Short)?;
    let is_right = hash64(place_seed(number, offset), body) == u64::from_le_bytes(*sum);
    if is_right { Ok(body) } else { Err(Malformed::Checksum) }
}

/// Appends the piece of `range` with these entries, which ascend and are in the range. It will be
/// at `offset` of the file of this number.
pub fn put_piece(out: &mut Vec<u8>, range: PointRange, entries: &[Entry], number: u64, offset: u64) {
    let start = out.len();
    out.reserve(entries.len() * (ENTRY_BYTES_MIN + 3) + SUM_BYTES);
    let mut before = range.start;
    for entry in entries {
        put_varint(out, entry.point.wrapping_sub(before));
        out.extend_from_slice(&entry.slot.to_le_bytes()[..SLOT_BYTES]);
        before = entry.point;
    }
    put_sum(out, start, number, offset);
}

/// Reads the piece that `said` describes.
///
/// # Errors
/// The checksum does not match, or the bytes are not that piece.
pub fn read_piece(stored: &[u8], said: &PieceEntry, number: u64) -> Result<Vec<Entry>, Malformed> {
    let body = body_of(stored, number, said.offset)?;
    let keys = usize::try_from(said.keys).map_err(|_| Malformed::Bounds)?;
    if keys > body.len() / ENTRY_BYTES_MIN {
        return Err(Malformed::Bounds);
    }
    let mut reader = Reader::new(body);
    let mut entries: Vec<Entry> = Vec::with_capacity(keys);
    let mut before = said.range.start;
    for _ in 0..keys {
        let point = before.checked_add(reader.varint()?).ok_or(Malformed::Order)?;
        let mut slot = [0; 8];
        slot[..SLOT_BYTES].copy_from_slice(reader.take(SLOT_BYTES)?);
        let entry = Entry { point, slot: u64::from_le_bytes(slot) };
        check_entry(entry, said.range, entries.last())?;
        entries.push(entry);
        before = point;
    }
    reader.finish()?;
    Ok(entries)
}

fn check_entry(entry: Entry, range: PointRange, before: Option<&Entry>) -> Result<(), Malformed> {
    let is_placed = entry.slot & ((1 << ADDRESS_BITS) - 1) != 0 && entry.slot < 1 << SLOT_BITS;
    if !range.contains(entry.point) || !is_placed {
        return Err(Malformed::Bounds);
    }
    if before.is_some_and(|before| *before >= entry) { Err(Malformed::Order) } else { Ok(()) }
}

impl Directory {
    /// Appends it. It will be at `offset` of the file of this number, right after the pieces.
    pub fn put(&self, out: &mut Vec<u8>, number: u64, offset: u64) {
        let start = out.len();
        put_varint(out, self.pieces.len() as u64);
        for piece in &self.pieces {
            out.push(piece.range.depth as u8);
            put_varint(out, piece.keys);
            put_varint(out, piece.seq);
            put_varint(out, piece.len_bytes);
        }
        put_sum(out, start, number, offset);
    }

    /// Reads what [`Directory::put`] wrote at `offset`.
    ///
    /// # Errors
    /// The checksum does not match, or the pieces do not together hold all points and all bytes
    /// before the directory.
    pub fn read(stored: &[u8], number: u64, offset: u64) -> Result<Directory, Malformed> {
        let mut reader = Reader::new(body_of(stored, number, offset)?);
        let count = reader.length()?;
        if count > reader.rest().len() / DIRECTORY_ENTRY_BYTES_MIN {
            return Err(Malformed::Bounds);
        }
        let mut pieces: Vec<PieceEntry> = Vec::with_capacity(count);
        let (mut start, mut at) = (0, 0);
        for _ in 0..count {
            let piece = read_piece_entry(&mut reader, start, at)?;
            (start, at) = (piece.range.end(), piece.offset + piece.len_bytes);
            pieces.push(piece);
        }
        reader.finish()?;
        if start != 1 << POINT_BITS || at != offset {
            return Err(Malformed::Bounds);
        }
        Ok(Directory { pieces })
    }

    /// How many keys there are in all pieces.
    pub fn keys(&self) -> u64 {
        self.pieces.iter().fold(0, |keys, piece| keys.saturating_add(piece.keys))
    }

    /// No piece lacks a change up to this seq. The log is needed from the next one on.
    pub fn seq(&self) -> Seq {
        self.pieces.iter().map(|piece| piece.seq).min().unwrap_or(0)
    }
}

/// Reads the directory entry of the piece at `at`, whose points begin with `start`.
fn read_piece_entry(reader: &mut Reader<'_>, start: u64, at: u64) -> Result<PieceEntry, Malformed> {
    let depth = u32::from(reader.u8()?);
    let (keys, seq, len_bytes) = (reader.varint()?, reader.varint()?, reader.varint()?);
    let range = PointRange { start, depth };
    if !(DEPTH_MIN..=DEPTH_MAX).contains(&depth)
        || !start.is_multiple_of(range.width())
        || range.end() > 1 << POINT_BITS
    {
        return Err(Malformed::Order);
    }
    if !(SUM_BYTES as u64..=CHECKPOINT_PIECE_BYTES_MAX).contains(&len_bytes) {
        return Err(Malformed::Bounds);
    }
    if keys > len_bytes / ENTRY_BYTES_MIN as u64 {
        return Err(Malformed::Bounds);
    }
    at.checked_add(len_bytes).ok_or(Malformed::Bounds)?;
    Ok(PieceEntry { range, keys, seq, offset: at, len_bytes })
}

/// The last [`CHECKPOINT_FOOTER_BYTES`] of a checkpoint.
///
/// ```text
///    0  magic             8 B    "FoldHash"
///    8  version           u32
///   12  (zero)            u32
///   16  number            u64    the file's number
///   24  file_bytes        u64    the footer included
///   32  directory_offset  u64
///   40  directory_len     u64    ends where the footer begins
///   48  salt              u64    seeds the hashes of the keys
///   56  checksum          u64    xxh3-64 of the 56 bytes before, seeded with file and offset
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointFooter {
    /// The file's number.
    pub number: u64,
    /// The length of the file, the footer included.
    pub file_bytes: u64,
    /// Where the directory begins; it ends where the footer begins.
    pub directory_offset: u64,
    /// What the hashes of the keys are seeded with.
    pub salt: u64,
}

impl CheckpointFooter {
    /// Where the directory is.
    pub fn directory(&self) -> Range<u64> {
        self.directory_offset..self.file_bytes.saturating_sub(CHECKPOINT_FOOTER_BYTES as u64)
    }

    /// Appends it.
    pub fn put(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let directory = self.directory();
        out.extend_from_slice(&MAGIC);
        put_u32(out, CHECKPOINT_VERSION);
        put_u32(out, 0);
        put_u64(out, self.number);
        put_u64(out, self.file_bytes);
        put_u64(out, directory.start);
        put_u64(out, directory.end.saturating_sub(directory.start));
        put_u64(out, self.salt);
        put_sum(out, start, self.number, directory.end);
    }

    /// Reads the footer of the file of this number and length.
    ///
    /// # Errors
    /// The bytes are not a footer, or are of a newer version.
    pub fn read(
        bytes: &[u8; CHECKPOINT_FOOTER_BYTES],
        number: u64,
        file_bytes: u64,
    ) -> Result<CheckpointFooter, FooterFault> {
        let mut reader = Reader::new(bytes);
        if reader.take(MAGIC.len())? != MAGIC {
            return Err(Malformed::Tag.into());
        }
        let version = reader.u32()?;
        let footer_at = file_bytes.checked_sub(CHECKPOINT_FOOTER_BYTES as u64).ok_or(Malformed::Short)?;
        body_of(bytes, number, footer_at)?; // before the version: a damaged one is no newer one
        if version > CHECKPOINT_VERSION {
            return Err(FooterFault::Newer(version));
        }
        let reserved = reader.u32()?;
        let (said_number, said_bytes) = (reader.u64()?, reader.u64()?);
        let (directory_offset, directory_len, salt) = (reader.u64()?, reader.u64()?, reader.u64()?);
        if version == 0 || reserved != 0 {
            return Err(Malformed::Tag.into());
        }
        if said_number != number || said_bytes != file_bytes {
            return Err(Malformed::Order.into());
        }
        let ends_at = directory_offset.checked_add(directory_len).ok_or(Malformed::Bounds)?;
        if ends_at != footer_at || directory_len > DIRECTORY_BYTES_MAX {
            return Err(Malformed::Bounds.into());
        }
        Ok(CheckpointFooter { number, file_bytes, directory_offset, salt })
    }
}

#[cfg(test)]
#[path = "hash_checkpoint/tests.rs"]
mod tests;
