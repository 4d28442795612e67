//! The scan of the range that a command is given.

use std::ops::Bound;

use folddb::{AsOf, BytesScan, BytesTable};

use crate::args::RangeArgs;
use crate::failure::Failure;
use crate::human;
use crate::interrupt;
use crate::keys;
use crate::session::Begun;

/// The scan of a range, at the moment that the command asks for.
pub(crate) fn narrow(table: &BytesTable, range: &RangeArgs) -> Result<BytesScan, Failure> {
    narrow_at(table, range, range.at)
}

/// The same, where a transaction may have begun: as of its snapshot, with its own writes.
pub(crate) fn narrow_inside(
    table: &BytesTable,
    range: &RangeArgs,
    begun: Option<&Begun>,
) -> Result<BytesScan, Failure> {
    let Some(begun) = begun else { return narrow(table, range) };
    if range.at.is_some() {
        let why = "a transaction reads as of its snapshot: leave out --at, or commit or abort it first";
        return Err(Failure::Usage(why.to_owned()));
    }
    within(table, range, begun.transaction.scan(table))
}

/// The scan of the keys of a range at another moment; none is now.
pub(crate) fn narrow_at(
    table: &BytesTable,
    range: &RangeArgs,
    at: Option<AsOf>,
) -> Result<BytesScan, Failure> {
    human::check_over(at, table.now())?;
    within(table, range, at.map_or_else(|| table.scan(), |as_of| table.scan_at(as_of)))
}

fn within(table: &BytesTable, range: &RangeArgs, all: BytesScan) -> Result<BytesScan, Failure> {
    let bound = |words: &Vec<String>| keys::bound(table, words, range.hex);
    let (mut low, mut high) = (Bound::Unbounded, Bound::Unbounded);
    if !range.prefix.is_empty() {
        let keys = keys::prefix(table, &range.prefix, range.hex)?;
        (low, high) = (keys.low, keys.high);
    }
    let order = &table.rules().order();
    if !range.from.is_empty() {
        low = keys::higher(order, low, bound(&range.from)?.from());
    }
    if !range.after.is_empty() {
        low = keys::higher(order, low, bound(&range.after)?.after());
    }
    if !range.before.is_empty() {
        high = keys::lower(order, high, bound(&range.before)?.before());
    }
    if !range.through.is_empty() {
        high = keys::lower(order, high, bound(&range.through)?.through());
    }
    let all = match interrupt::flag() {
        Some(flag) => all.stopped_by(&flag),
        None => all,
    };
    let scan = match low {
        Bound::Included(key) => all.from(&key),
        Bound::Excluded(key) => all.after(&key),
        Bound::Unbounded => all,
    };
    Ok(match high {
        Bound::Included(key) => scan.through(&key),
        Bound::Excluded(key) => scan.before(&key),
        Bound::Unbounded => scan,
    })
}
