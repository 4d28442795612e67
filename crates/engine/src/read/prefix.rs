//! Which parts of a run a range of keys has to be read from. Parts that lie outside are passed over
//! by their first and last keys. If all keys of the range begin with the same elements of a tuple,
//! the filters of the others are asked for these, and a part that knows that it has no such key is
//! passed over as well: neither its index nor its blocks are read.
//!
//! What is passed over has no record of the range, of whatever age: so snapshots, range deletes and
//! folding need not know of it.

use std::ops::Bound;

use folddb_rules::KeyOrder;
use folddb_rules::codec::leading::Leading;
use folddb_run::{PrefixRange, PrefixTally, Rank};

use crate::state::catalog::TableCore;
use crate::state::view::{PartView, RunView};

/// Bounds in the order of a table.
pub type Range<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// The range in the form in which filters are asked for it; none if its keys need not begin with
/// the same elements, or filters do not know these.
pub fn prefix_range<'k>(table: &TableCore, (low, high): Range<'k>) -> Option<PrefixRange<'k>> {
    let most = table.rules.leading_in_filters();
    if most == 0 {
        return None;
    }
    let leading = match table.rules.order {
        KeyOrder::Reversed => Leading::of_range(high, low, most),
        _ => Leading::of_range(low, high, most),
    };
    PrefixRange::new((low, high), &leading)
}

/// Some of these parts of a run, which follow one another and are all that have keys of the range.
/// Adds to `tally` what the filters said.
pub fn parts_with<'v>(
    parts: &'v [PartView],
    range: Option<&PrefixRange<'_>>,
    rank: Rank,
    tally: &mut PrefixTally,
) -> &'v [PartView] {
    let Some(range) = range else { return parts };
    let mut may_have = |part: &PartView| {
        let said = part.file.part.may_have(rank, range);
        tally.rejects += u64::from(said == Some(false));
        tally.passes += u64::from(said == Some(true));
        said != Some(false)
    };
    match parts {
        [one] if !may_have(one) => &[],
        [one, other] => match (may_have(one), may_have(other)) {
            (true, true) => parts,
            (true, false) => &parts[..1],
            (false, true) => &parts[1..],
            (false, false) => &[],
        },
        // Of three and more those in the middle have only keys of the range.
        _ => parts,
    }
}

/// Whether a run may have a key of the range.
pub fn may_have(table: &TableCore, run: &RunView, rank: Rank, range: Range<'_>) -> bool {
    let parts = run.parts_between(&table.rules.order, range);
    !parts_with(parts, prefix_range(table, range).as_ref(), rank, &mut PrefixTally::default()).is_empty()
}
