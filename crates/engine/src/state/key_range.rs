//! Where keys and parts are, as seen from a range of keys in the order of a table.

use std::ops::Bound;

use folddb_rules::KeyOrder;
use folddb_rules::codec::KeyRange;

use crate::state::view::PartView;

/// The bounds of a range, borrowed.
pub fn bounds(range: &KeyRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (borrowed(&range.low), borrowed(&range.high))
}

fn borrowed(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// Whether a key comes before the range.
pub fn is_before(range: &KeyRange, order: &KeyOrder, key: &[u8]) -> bool {
    match &range.low {
        Bound::Unbounded => false,
        Bound::Included(low) => order.compare(key, low).is_lt(),
        Bound::Excluded(low) => order.compare(key, low).is_le(),
    }
}

/// Whether a key comes after the range.
pub fn is_behind(range: &KeyRange, order: &KeyOrder, key: &[u8]) -> bool {
    match &range.high {
        Bound::Unbounded => false,
        Bound::Included(high) => order.compare(key, high).is_gt(),
        Bound::Excluded(high) => order.compare(key, high).is_ge(),
    }
}

/// Whether a part shows keys that may be in the range.
pub fn meets(range: &KeyRange, order: &KeyOrder, part: &PartView) -> bool {
    !is_behind(range, order, &part.low) && !is_before(range, order, &part.high)
}
