//! The front of a value of a hashed table with versions or expiry: its write time, its deadline,
//! and whether this version is a delete.
//!
//! ```text
//!   flags u8         0, or 1: deleted, and no value follows
//!   stamp 12 bytes   write time u48 | deadline u48, in milliseconds since 1970; see folddb_base::stamp
//!   value            the rest
//! ```
//!
//! It precedes the value in its record of the value log, whose length and hash cover both. For a
//! value that was written piece by piece, it follows the value, and the head of the record says so:
//! its times are known only at the end. Values of other tables have none.

use folddb_base::Stamp;
use folddb_base::bytes::Malformed;
use folddb_base::stamp::STAMP_BYTES;

/// Bytes of a front.
pub const FRONT_BYTES: usize = 1 + STAMP_BYTES;

/// See the top of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Front {
    /// The key was deleted.
    pub is_deleted: bool,
    /// When it was written, and its deadline.
    pub stamp: Stamp,
}

impl Front {
    /// Its bytes.
    pub fn bytes(self) -> [u8; FRONT_BYTES] {
        let mut bytes = [0; FRONT_BYTES];
        bytes[0] = u8::from(self.is_deleted);
        bytes[1..].copy_from_slice(&self.stamp.bytes());
        bytes
    }

    /// The front at the beginning of these bytes, and what comes after it.
    ///
    /// # Errors
    /// They are too short for one, or have unknown flags.
    pub fn split(bytes: &[u8]) -> Result<(Front, &[u8]), Malformed> {
        let (&flags, rest) = bytes.split_first().ok_or(Malformed::Short)?;
        let (stamp, value) = Stamp::split(rest)?;
        match flags {
            0 | 1 => Ok((Front { is_deleted: flags == 1, stamp }, value)),
            _ => Err(Malformed::Tag),
        }
    }

    /// Whether the key has a value at that time.
    pub fn is_alive(&self, time_ms: u64) -> bool {
        !self.is_deleted && self.stamp.deadline_ms > time_ms
    }
}

#[cfg(test)]
mod tests {
    use folddb_base::stamp::NEVER;

    use super::*;

    #[test]
    fn a_front_comes_back_with_what_follows_it() {
        for (is_deleted, deadline_ms) in [(false, NEVER), (true, NEVER), (false, 1_800_000_000_001)] {
            let front = Front { is_deleted, stamp: Stamp { write_ms: 1_800_000_000_000, deadline_ms } };
            let bytes = [&front.bytes()[..], b"value"].concat();
            assert_eq!(Front::split(&bytes), Ok((front, &b"value"[..])));
            (0..FRONT_BYTES).for_each(|len| assert_eq!(Front::split(&bytes[..len]), Err(Malformed::Short)));
            assert_eq!(front.is_alive(1_800_000_000_000), !is_deleted);
            assert!(!front.is_alive(deadline_ms));
        }
        assert_eq!(Front::split(&[2; 40]), Err(Malformed::Tag));
    }
}
