//! Pointers to values in the value log: the payload of the ops `SetSeparated`, `InsertSeparated`
//! and `FoldSeparated`, unless it is a rope.
//!
//! ```text
//!    0  segment  u32     the number of the value segment
//!    4  place    u32     where the value's record begins in it, in units of 16 bytes
//!    8  time     u64     when it was written, in milliseconds since 1970
//!   16  hash     u32     low half of xxh3-64 of the value, seeded with the hash of its key
//!   20  len      varint  bytes of the value
//!    .  head     slice   what the table's head extractor took out of the value; mostly nothing
//!    .  deadline u64     in tables with expiry only, see `stamp.rs`
//! ```
//!
//! The hash does not depend on the place of the value, so it also fits a copy elsewhere. The first
//! sixteen bytes have fixed places, because they are known only when the value has been placed,
//! after the batch that points to it was encoded: see [`Pointer::patch`]. Merges copy pointers as
//! they are.

use crate::bytes::{Malformed, Reader, put_slice, put_u32, put_u64, put_varint};
use crate::checksum::{hash32, key_hash};

/// Value records begin at multiples of this many bytes.
pub const VALUE_ALIGN: u64 = 16;

/// Bytes of the deadline after a pointer, in tables with expiry.
pub const DEADLINE_BYTES: usize = 8;

/// The place of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValuePlace {
    /// The number of the segment.
    pub segment: u32,
    /// Where its record begins, in units of [`VALUE_ALIGN`] bytes.
    pub unit: u32,
}

impl ValuePlace {
    /// Where its record begins, in bytes from the beginning of the file.
    pub fn offset(self) -> u64 {
        u64::from(self.unit) * VALUE_ALIGN
    }
}

/// What a record keeps of a separated value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer<'a> {
    /// Its place.
    pub place: ValuePlace,
    /// When it was written, in milliseconds since 1970.
    pub time_ms: u64,
    /// See [`value_hash`].
    pub hash: u32,
    /// Bytes of the value.
    pub len: u64,
    /// What the table's head extractor took out of it.
    pub head: &'a [u8],
}

/// The hash of a value under its key.
#[inline]
pub fn value_hash(key: &[u8], value: &[u8]) -> u32 {
    hash32(key_hash(key), value)
}

impl<'a> Pointer<'a> {
    /// Appends it.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_u32(out, self.place.segment);
        put_u32(out, self.place.unit);
        put_u64(out, self.time_ms);
        put_u32(out, self.hash);
        put_varint(out, self.len);
        put_slice(out, self.head);
    }

    /// Reads it; nothing but a deadline may follow.
    ///
    /// # Errors
    /// The bytes are not a pointer.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Pointer<'a>, Malformed> {
        Pointer::decode_front(bytes).map(|(pointer, _)| pointer)
    }

    /// Reads it, and returns what follows its head: nothing, or a deadline.
    ///
    /// # Errors
    /// The bytes are not a pointer.
    #[inline]
    pub(crate) fn decode_front(bytes: &'a [u8]) -> Result<(Pointer<'a>, &'a [u8]), Malformed> {
        let mut reader = Reader::new(bytes);
        let place = ValuePlace { segment: reader.u32()?, unit: reader.u32()? };
        let time_ms = reader.u64()?;
        let hash = reader.u32()?;
        let (len, head) = (reader.varint()?, reader.slice()?);
        let rest = reader.rest();
        match rest.len() {
            0 | DEADLINE_BYTES => Ok((Pointer { place, time_ms, hash, len, head }, rest)),
            _ => Err(Malformed::Bounds),
        }
    }

    /// Sets, in a pointer at the front of `bytes`, the place of its value and its write time.
    pub fn patch(bytes: &mut [u8], place: ValuePlace, time_ms: u64) {
        Pointer::move_to(bytes, place);
        Pointer::date(bytes, time_ms);
    }

    /// Sets only the write time of its value.
    pub fn date(bytes: &mut [u8], time_ms: u64) {
        if let Some(time) = bytes.get_mut(8..16) {
            time.copy_from_slice(&time_ms.to_le_bytes());
        }
    }

    /// Sets only the present place of its value.
    pub fn move_to(bytes: &mut [u8], place: ValuePlace) {
        if let Some(front) = bytes.get_mut(..8) {
            front[..4].copy_from_slice(&place.segment.to_le_bytes());
            front[4..].copy_from_slice(&place.unit.to_le_bytes());
        }
    }
}

#[cfg(test)]
#[path = "pointer/tests.rs"]
mod tests;
