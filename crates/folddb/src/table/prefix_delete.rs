//! The ops that delete all keys of a prefix: a range delete, and possibly the delete of one more
//! key.
//!
//! A range delete begins with a key and ends before one. A range of a prefix may end with a key,
//! begin after one, or have no end at all; keys have a limited length, so there is a key before and
//! after each, and a first and a last one.

use std::ops::Bound;

use folddb_base::limits::KEY_BYTES_MAX;
use folddb_rules::KeyOrder;
use folddb_rules::codec::KeyRange;

/// The deletes for a range of keys, in the order of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrefixDelete {
    /// From the first key up to, but not including, the second.
    pub(crate) range: Option<(Vec<u8>, Vec<u8>)>,
    /// The last key, if it belongs to the range.
    pub(crate) last: Option<Vec<u8>>,
}

impl PrefixDelete {
    /// The deletes of a range in bytewise order, in a table whose order has such ranges.
    pub(crate) fn of(order: &KeyOrder, range: KeyRange) -> PrefixDelete {
        let is_reversed = matches!(order, KeyOrder::Reversed);
        let range = if is_reversed { range.mirrored() } else { range };
        let (least, greatest) = (Vec::new(), vec![0xff; KEY_BYTES_MAX]);
        let (first, last) = if is_reversed { (greatest, least) } else { (least, greatest) };
        let from = match range.low {
            Bound::Included(key) => Some(key),
            Bound::Excluded(key) if is_reversed => before(key),
            Bound::Excluded(key) => behind(key),
            Bound::Unbounded => Some(first),
        };
        let (to, last) = match range.high {
            Bound::Excluded(key) => (key, None),
            Bound::Included(key) => (key.clone(), Some(key)),
            Bound::Unbounded => (last.clone(), Some(last)),
        };
        let range = from.filter(|from| order.compare(from, &to).is_lt()).map(|from| (from, to));
        PrefixDelete { range, last }
    }
}

/// The least key that is greater.
fn behind(mut key: Vec<u8>) -> Option<Vec<u8>> {
    if key.len() < KEY_BYTES_MAX {
        key.push(0);
        return Some(key);
    }
    let kept = key.iter().rposition(|&byte| byte < 0xff)?;
    key.truncate(kept + 1);
    key[kept] += 1;
    Some(key)
}

/// The greatest key that is less.
fn before(mut key: Vec<u8>) -> Option<Vec<u8>> {
    let last = key.pop()?;
    if last > 0 {
        key.push(last - 1);
        key.resize(KEY_BYTES_MAX, 0xff);
    }
    Some(key)
}

#[cfg(test)]
mod tests;
