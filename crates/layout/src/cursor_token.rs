//! The token of a scan: its position, so that it can be resumed later, also by another process.
//!
//! ```text
//!   0  version     u8       1
//!   1  flags       u8       bit 0 from the highest key down, bit 1 keys only, bit 2 with a time
//!   2  store       16 bytes the identity of the store
//!  18  table       u32
//!  22  seq         u64      the scan sees what was written up to here
//!      time        u64      with bit 2 only: and of that what expires after this, in milliseconds since 1970
//!      low         bound    tag u8: 0 none, 1 from, 2 after, then a length varint and the key
//!      high        bound    the same: 1 through, 2 before
//!      last        bound    0 nothing was handed out yet, 2 the last key that was
//!      checksum    u64      xxh3-64 with seed 0 of everything before
//! ```

use std::ops::Bound;

use folddb_base::bytes::{Malformed, Reader, put_slice, put_u32, put_u64};
use folddb_base::checksum::hash64;
use folddb_base::limits::KEY_BYTES_MAX;
use folddb_base::stream::Direction;
use folddb_base::{Seq, TableId};

/// The version of its form.
pub const CURSOR_VERSION: u8 = 1;

const CHECKSUM_BYTES: usize = 8;
const REVERSED: u8 = 1;
const KEYS_ONLY: u8 = 2;
const TIMED: u8 = 4;

/// The position of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorToken {
    /// The identity of the store.
    pub store_id: u128,
    /// The table.
    pub table: TableId,
    /// Which way it goes.
    pub direction: Direction,
    /// The scan returns keys only.
    pub is_keys_only: bool,
    /// The scan sees what was written up to here.
    pub seq: Seq,
    /// If values expire: it sees those whose deadline is after this, in milliseconds since 1970.
    pub time_ms: Option<u64>,
    /// Where the range begins.
    pub low: Bound<Vec<u8>>,
    /// Where it ends.
    pub high: Bound<Vec<u8>>,
    /// The last key that was handed out.
    pub last: Option<Vec<u8>>,
}

impl CursorToken {
    /// The token as bytes: see the top of this file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let reversed = if self.direction == Direction::Reversed { REVERSED } else { 0 };
        let keys_only = if self.is_keys_only { KEYS_ONLY } else { 0 };
        let timed = if self.time_ms.is_some() { TIMED } else { 0 };
        let mut out = vec![CURSOR_VERSION, reversed | keys_only | timed];
        out.extend_from_slice(&self.store_id.to_le_bytes());
        put_u32(&mut out, self.table.0);
        put_u64(&mut out, self.seq);
        self.time_ms.iter().for_each(|time_ms| put_u64(&mut out, *time_ms));
        put_bound(&mut out, self.low.as_ref());
        put_bound(&mut out, self.high.as_ref());
        put_bound(&mut out, self.last.as_ref().map_or(Bound::Unbounded, Bound::Excluded));
        let checksum = hash64(0, &out);
        put_u64(&mut out, checksum);
        out
    }

    /// Reads what [`CursorToken::to_bytes`] wrote.
    ///
    /// # Errors
    /// The bytes are not a token, or are of a later version.
    pub fn from_bytes(bytes: &[u8]) -> Result<CursorToken, Malformed> {
        let (body, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(Malformed::Short)?;
        if hash64(0, body) != u64::from_le_bytes(*checksum) {
            return Err(Malformed::Checksum);
        }
        let mut reader = Reader::new(body);
        let (version, flags) = (reader.u8()?, reader.u8()?);
        if version != CURSOR_VERSION || flags & !(REVERSED | KEYS_ONLY | TIMED) != 0 {
            return Err(Malformed::Tag);
        }
        let direction = if flags & REVERSED == 0 { Direction::Forward } else { Direction::Reversed };
        let store_id = u128::from(reader.u64()?) | u128::from(reader.u64()?) << 64;
        let (table, seq) = (TableId(reader.u32()?), reader.u64()?);
        let time_ms = if flags & TIMED != 0 { Some(reader.u64()?) } else { None };
        let is_keys_only = flags & KEYS_ONLY != 0;
        let (low, high) = (read_bound(&mut reader)?, read_bound(&mut reader)?);
        let last = match read_bound(&mut reader)? {
            Bound::Unbounded => None,
            Bound::Excluded(key) => Some(key),
            Bound::Included(_) => return Err(Malformed::Tag),
        };
        reader.finish()?;
        Ok(CursorToken { store_id, table, direction, is_keys_only, seq, time_ms, low, high, last })
    }
}

/// Appends a bound.
pub fn put_bound(out: &mut Vec<u8>, bound: Bound<&Vec<u8>>) {
    let (tag, key) = match bound {
        Bound::Unbounded => return out.push(0),
        Bound::Included(key) => (1, key),
        Bound::Excluded(key) => (2, key),
    };
    out.push(tag);
    put_slice(out, key);
}

fn read_bound(reader: &mut Reader<'_>) -> Result<Bound<Vec<u8>>, Malformed> {
    let tag = reader.u8()?;
    if tag == 0 {
        return Ok(Bound::Unbounded);
    }
    let len = reader.length()?;
    if len > KEY_BYTES_MAX {
        return Err(Malformed::Bounds);
    }
    let key = reader.take(len)?.to_vec();
    match tag {
        1 => Ok(Bound::Included(key)),
        2 => Ok(Bound::Excluded(key)),
        _ => Err(Malformed::Tag),
    }
}

#[cfg(test)]
#[path = "cursor_token/tests.rs"]
mod tests;
