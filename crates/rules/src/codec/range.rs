//! A range of keys as bytes: what prefixes and partial tuples turn into before they meet a scan.
//!
//! Ranges are in bytewise order. In a reversed table the same keys stand together too, only mirrored; in a
//! custom order they may be scattered, and [`KeyRange::contains`] filters them.

/// The keys `k` with `from <= k`, and `k < to` where there is a `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The least key, inclusive.
    pub from: Vec<u8>,
    /// The end, exclusive; `None` when the range has no end.
    pub to: Option<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    pub fn all() -> KeyRange {
        KeyRange { from: Vec::new(), to: None }
    }

    /// Only this key.
    pub fn one(key: Vec<u8>) -> KeyRange {
        let mut to = Vec::with_capacity(key.len() + 1);
        to.extend_from_slice(&key);
        to.push(0);
        KeyRange { from: key, to: Some(to) }
    }

    /// The keys that start with these bytes.
    pub fn prefix(prefix: Vec<u8>) -> KeyRange {
        KeyRange { to: prefix_end(&prefix), from: prefix }
    }

    /// True when the key lies in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.from.as_slice() <= key && self.to.as_deref().is_none_or(|to| key < to)
    }

    /// True when no key can lie in the range.
    pub fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to <= self.from)
    }

    /// The keys that lie in both ranges.
    pub fn intersect(self, other: KeyRange) -> KeyRange {
        let to = match (self.to, other.to) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        KeyRange { from: self.from.max(other.from), to }
    }
}

/// The least byte string that is greater than every one starting with `prefix`; `None` when there is none,
/// because the prefix is empty or all 0xff.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
#[path = "range/tests.rs"]
mod tests;
