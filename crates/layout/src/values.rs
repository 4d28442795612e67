//! Segments of the value log: a header, then records, each the value of one key.
//!
//! ```text
//!   header, 4096 bytes
//!    0  magic     8 B    "FoldVal\0"
//!    8  format    u16
//!   10  kind      u8     1 = value log
//!   11  (zero)    5 B
//!   16  number    u64    the file's number
//!   24  (zeros)
//!   72  hash      u64    xxh3-64 of bytes 0..72, seeded with the number
//!   80  (zeros up to 4096)
//!
//!   record, at a multiple of 16
//!    0  len       u64    bytes of the value
//!    8  table     u32    the table that it belongs to
//!   12  key_len   u16
//!   14  flags     u16    0, or 1: the front of the value follows it (see hash_front.rs)
//!   16  hash      u32    of the value, as in the pointer (see base/pointer.rs)
//!   20  check     u32    low half of xxh3-64 of the key, seeded with xxh3-64 of bytes 0..20
//!   24  key, value, zeros up to a multiple of 16
//! ```
//!
//! Nothing in a record says where it is or which store it belongs to, so it can be copied as it is,
//! and a segment can have a name in another store's directory. A record is found by its pointer,
//! which has its length: one read gets it. A walk over a segment without pointers goes from record
//! to record by their lengths.

use folddb_base::bytes::{Malformed, Reader, put_u32, put_u64};
use folddb_base::checksum::{hash32, hash64, place_seed};
use folddb_base::pointer::{Pointer, VALUE_ALIGN, value_hash};
use folddb_base::{FileNumber, TableId};

/// Bytes that the header takes in the file. Records begin after them.
pub const VALUES_HEADER_BYTES: usize = 4096;

/// Bytes of a record before its key.
pub const RECORD_HEAD_BYTES: usize = 24;

const MAGIC: &[u8; 8] = b"FoldVal\0";
const FORMAT: u16 = 1;
const SEGMENTS_VALUES: u8 = 1;
const HASHED_BYTES: usize = 72;

/// The header of the value segment with this number.
pub fn header(number: FileNumber) -> Vec<u8> {
    let mut out = Vec::with_capacity(VALUES_HEADER_BYTES);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&FORMAT.to_le_bytes());
    out.extend_from_slice(&[SEGMENTS_VALUES, 0, 0, 0, 0, 0]);
    put_u64(&mut out, number.0);
    out.resize(HASHED_BYTES, 0);
    let hash = hash64(place_seed(number.0, 0), &out);
    put_u64(&mut out, hash);
    out.resize(VALUES_HEADER_BYTES, 0);
    out
}

/// Checks that these are the first [`VALUES_HEADER_BYTES`] of the value segment with this number.
///
/// # Errors
/// `Tag` if they are whole but of another format or kind; anything else if they are not whole.
pub fn check_header(bytes: &[u8], number: FileNumber) -> Result<(), Malformed> {
    let header = bytes.get(..VALUES_HEADER_BYTES).ok_or(Malformed::Short)?;
    let (hashed, rest) = header.split_at(HASHED_BYTES);
    let (hash, zeros) = rest.split_at(8);
    if hash != hash64(place_seed(number.0, 0), hashed).to_le_bytes() || zeros.iter().any(|&byte| byte != 0) {
        return Err(Malformed::Checksum);
    }
    let mut reader = Reader::new(hashed);
    let is_known = reader.take(8)? == MAGIC
        && reader.take(2)? == FORMAT.to_le_bytes()
        && reader.take(6)? == [SEGMENTS_VALUES, 0, 0, 0, 0, 0];
    if !is_known {
        return Err(Malformed::Tag);
    }
    if reader.u64()? != number.0 { Err(Malformed::Order) } else { Ok(()) }
}

/// Bytes that a record takes in its segment.
pub fn record_bytes(key_len: usize, value_len: u64) -> u64 {
    let bytes = (RECORD_HEAD_BYTES as u64 + key_len as u64).saturating_add(value_len);
    bytes.checked_next_multiple_of(VALUE_ALIGN).unwrap_or(u64::MAX) // damaged bytes may say any length
}

/// Appends a record, and returns the hash of its value. `out` must hold a multiple of 16 bytes,
/// also afterwards.
pub fn put_record(out: &mut Vec<u8>, table: TableId, key: &[u8], value: &[u8]) -> u32 {
    let start = out.len();
    let hash = value_hash(key, value);
    out.reserve(record_bytes(key.len(), value.len() as u64) as usize);
    put_head(out, (table, key), value.len() as u64, hash, false);
    out.extend_from_slice(key);
    out.extend_from_slice(value);
    out.resize(start + (out.len() - start).next_multiple_of(VALUE_ALIGN as usize), 0);
    hash
}

/// Appends the head of a record, which precedes its key, for a value of this length and hash, with
/// or without a front after it.
pub fn put_head(
    out: &mut Vec<u8>,
    (table, key): (TableId, &[u8]),
    value_len: u64,
    hash: u32,
    front_is_behind: bool,
) {
    let start = out.len();
    put_u64(out, value_len);
    put_u32(out, table.0);
    out.extend_from_slice(&(key.len() as u16).to_le_bytes());
    out.extend_from_slice(&[u8::from(front_is_behind), 0]);
    put_u32(out, hash);
    let check = hash32(hash64(0, &out[start..]), key);
    put_u32(out, check);
}

/// The head of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHead {
    /// Bytes of the value.
    pub len: u64,
    /// The table that it belongs to.
    pub table: TableId,
    /// Bytes of the key.
    pub key_len: u16,
    /// The hash of the value.
    pub hash: u32,
    /// Whether the front of the value, if its table has fronts, follows it.
    pub front_is_behind: bool,
    check: u32,
    seed: u64,
}

impl RecordHead {
    /// Reads the head of a record.
    ///
    /// # Errors
    /// There are too few bytes, or they are not a head.
    pub fn decode(bytes: &[u8]) -> Result<RecordHead, Malformed> {
        let mut reader = Reader::new(bytes);
        let (len, table) = (reader.u64()?, TableId(reader.u32()?));
        let lens = reader.u32()?;
        let key_len = lens as u16;
        let front_is_behind = match lens >> 16 {
            0 => false,
            1 => true,
            _ => return Err(Malformed::Bounds),
        };
        let (hash, check) = (reader.u32()?, reader.u32()?);
        let seed = hash64(0, bytes.get(..RECORD_HEAD_BYTES - 4).unwrap_or(&[]));
        Ok(RecordHead { len, table, key_len, hash, front_is_behind, check, seed })
    }

    /// Whether the head is valid for this key.
    pub fn is_of(&self, key: &[u8]) -> bool {
        usize::from(self.key_len) == key.len() && hash32(self.seed, key) == self.check
    }

    /// Bytes of the whole record.
    pub fn record_bytes(&self) -> u64 {
        record_bytes(usize::from(self.key_len), self.len)
    }
}

/// The value in the bytes of a record that a pointer of this key in this table leads to; none if
/// the record does not match.
pub fn value_in<'a>(bytes: &'a [u8], table: TableId, key: &[u8], pointer: &Pointer<'_>) -> Option<&'a [u8]> {
    let head = RecordHead::decode(bytes).ok()?;
    let is_that =
        head.len == pointer.len && head.hash == pointer.hash && head.table == table && head.is_of(key);
    let start = RECORD_HEAD_BYTES + key.len();
    let value = bytes.get(start..start.checked_add(usize::try_from(pointer.len).ok()?)?)?;
    (is_that && bytes.get(RECORD_HEAD_BYTES..start)? == key && value_hash(key, value) == pointer.hash)
        .then_some(value)
}

#[cfg(test)]
#[path = "values/tests.rs"]
mod tests;
