//! A range of keys as bytes: what prefixes and partial tuples turn into before they meet a scan.
//!
//! Ranges are in bytewise order. A reversed table holds the same keys in reverse, see
//! [`KeyRange::mirrored`]; in a custom order they may be scattered, and [`KeyRange::contains`]
//! filters them.

use std::ops::{Bound, RangeBounds};

/// The keys between two bounds. It has no other fields, and never will.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// Where the range begins.
    pub low: Bound<Vec<u8>>,
    /// Where it ends.
    pub high: Bound<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    pub fn all() -> KeyRange {
        KeyRange { low: Bound::Unbounded, high: Bound::Unbounded }
    }

    /// Only this key.
    pub fn one(key: Vec<u8>) -> KeyRange {
        KeyRange { low: Bound::Included(key.clone()), high: Bound::Included(key) }
    }

    /// The keys that start with these bytes.
    pub fn prefix(prefix: Vec<u8>) -> KeyRange {
        if prefix.is_empty() {
            return KeyRange::all();
        }
        let high = prefix_end(&prefix).map_or(Bound::Unbounded, Bound::Excluded);
        KeyRange { low: Bound::Included(prefix), high }
    }

    /// True when the key is in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        let borrow = |bound| -> Bound<&[u8]> { Bound::map(bound, Vec::as_slice) };
        (borrow(self.low.as_ref()), borrow(self.high.as_ref())).contains(key)
    }

    /// The low bound that includes this range and everything after it.
    pub fn from(self) -> Bound<Vec<u8>> {
        self.low
    }

    /// The low bound that includes only what is after this range.
    pub fn after(self) -> Bound<Vec<u8>> {
        complement(self.high)
    }

    /// The high bound that includes only what is before this range.
    pub fn before(self) -> Bound<Vec<u8>> {
        complement(self.low)
    }

    /// The high bound that includes everything before this range, and the range.
    pub fn through(self) -> Bound<Vec<u8>> {
        self.high
    }

    /// The same keys as they are in a reversed table.
    #[must_use]
    pub fn mirrored(self) -> KeyRange {
        KeyRange { low: self.high, high: self.low }
    }
}

/// The bound of the other side at the same place. An open end has no other side and stays open; the
/// ranges of single keys and of tuples have no open ends.
fn complement(bound: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    match bound {
        Bound::Included(key) => Bound::Excluded(key),
        Bound::Excluded(key) => Bound::Included(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// The least byte string that is greater than every one starting with `prefix`; `None` when there
/// is none, because the prefix is empty or all 0xff.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
#[path = "range/tests.rs"]
mod tests;
