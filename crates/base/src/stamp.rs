//! Stamps: when a record was written and until when its value lasts, in tables with expiry.
//!
//! ```text
//!   of Set, Insert, Fold       the payload begins with it:   write time u48 | deadline u48
//!   of SetSeparated, InsertSeparated   the pointer has the write time; the deadline, as u64, follows its head. A rope has both (`rope.rs`)
//!   of Delete                  none
//! ```
//!
//! Times are milliseconds since 1970; [`NEVER`] is the deadline of a value that does not expire.
//! Tables without expiry have no stamps, and pay nothing for those of other tables. `folddb-rules`
//! says what stamps mean; this file only defines their form.

use crate::bytes::Malformed;
use crate::op::{Op, OpKind};
use crate::rope::Rope;

/// Bytes of a stamp at the front of a payload.
pub const STAMP_BYTES: usize = 12;

/// The deadline of a value that does not expire, and the end of time: the year 10889.
pub const NEVER: u64 = (1 << 48) - 1;

/// When a record was written, and until when its value lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// When it was written; for a composed record, the oldest of the records that it replaces.
    pub write_ms: u64,
    /// From then on its value is absent; [`NEVER`] if it does not expire.
    pub deadline_ms: u64,
}

impl Stamp {
    /// Its bytes at the front of a payload. Times beyond [`NEVER`] become [`NEVER`].
    #[inline]
    pub fn bytes(self) -> [u8; STAMP_BYTES] {
        let mut bytes = [0; STAMP_BYTES];
        bytes[..6].copy_from_slice(&self.write_ms.min(NEVER).to_le_bytes()[..6]);
        bytes[6..].copy_from_slice(&self.deadline_ms.min(NEVER).to_le_bytes()[..6]);
        bytes
    }

    /// The stamp at the front of a payload, and what comes after it.
    ///
    /// # Errors
    /// The payload is too short for one.
    #[inline]
    pub fn split(payload: &[u8]) -> Result<(Stamp, &[u8]), Malformed> {
        let (stamp, value) = payload.split_first_chunk::<STAMP_BYTES>().ok_or(Malformed::Short)?;
        let time = |from: usize| {
            let mut bytes = [0; 8];
            bytes[..6].copy_from_slice(&stamp[from..from + 6]);
            u64::from_le_bytes(bytes)
        };
        Ok((Stamp { write_ms: time(0), deadline_ms: time(6) }, value))
    }

    /// The stamp of a separated value, from its pointer or its rope.
    ///
    /// # Errors
    /// The bytes are neither.
    pub fn of_pointer(pointer: &[u8]) -> Result<Stamp, Malformed> {
        let rope = Rope::decode(pointer)?;
        Ok(Stamp { write_ms: rope.time_ms, deadline_ms: rope.deadline_ms.unwrap_or(NEVER) })
    }

    /// The stamp of a record of a table with expiry; none for a `Delete`.
    ///
    /// # Errors
    /// The payload has none.
    pub fn of(kind: OpKind, payload: &[u8]) -> Result<Option<Stamp>, Malformed> {
        match kind {
            OpKind::Delete => Ok(None),
            kind if kind.is_separated() => Stamp::of_pointer(payload).map(Some),
            _ => Stamp::split(payload).map(|(stamp, _)| Some(stamp)),
        }
    }

    /// The stamp of an op of such a table, and the op without it.
    ///
    /// # Errors
    /// The payload has none; or the op is an `InsertFold` or a `FoldSeparated`, which such tables
    /// never have.
    #[inline]
    pub fn take(op: Op<'_>) -> Result<(Option<Stamp>, Op<'_>), Malformed> {
        Ok(match op {
            Op::Delete => (None, op),
            Op::Set(payload) => Stamp::split(payload).map(|(stamp, value)| (Some(stamp), Op::Set(value)))?,
            Op::Insert(payload) => {
                Stamp::split(payload).map(|(stamp, value)| (Some(stamp), Op::Insert(value)))?
            }
            Op::Fold(payload) => {
                Stamp::split(payload).map(|(stamp, value)| (Some(stamp), Op::Fold(value)))?
            }
            Op::SetSeparated(pointer) | Op::InsertSeparated(pointer) => {
                (Some(Stamp::of_pointer(pointer)?), op)
            }
            Op::InsertFold { .. } | Op::FoldSeparated(_) => return Err(Malformed::Tag),
        })
    }

    /// Whether the value is gone at this time.
    #[inline]
    pub fn is_over_at(self, time_ms: u64) -> bool {
        self.deadline_ms <= time_ms && self.deadline_ms < NEVER
    }
}

#[cfg(test)]
#[path = "stamp/tests.rs"]
mod tests;
