//! The range deletes of a merge: which of them cover the current key.
//!
//! Keys come in the order of the table, so the set of covering range deletes changes only at a few
//! keys, the *events*. Between two events a key costs one comparison; without range deletes it
//! costs none.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;

use folddb_base::Seq;
use folddb_rules::KeyOrder;

/// A delete of all keys from `from` (inclusive) to `to` (exclusive), at its place in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeDelete {
    /// The first key that it covers.
    pub from: Vec<u8>,
    /// The first key that it no longer covers.
    pub to: Vec<u8>,
    /// When it happened.
    pub seq: Seq,
}

/// Follows ascending keys through a set of range deletes.
#[derive(Debug)]
pub struct RangeSweep {
    order: KeyOrder,
    /// By `from`.
    ranges: Vec<RangeDelete>,
    /// The index of the first range that has not been entered yet.
    next: usize,
    /// The indexes of the ranges, by `to`.
    leaving: Vec<usize>,
    /// The first position in `leaving` that has not been left yet.
    next_left: usize,
    /// The seqs of the ranges that were entered and not left.
    seqs: BTreeSet<Seq>,
    /// The key at which the set changes next.
    event: Vec<u8>,
    has_event: bool,
}

impl RangeSweep {
    /// A sweep before the first key. The seqs of the ranges must be different.
    pub fn new(order: KeyOrder, mut ranges: Vec<RangeDelete>) -> RangeSweep {
        ranges.retain(|range| order.compare(&range.from, &range.to) == Ordering::Less);
        ranges.sort_by(|a, b| order.compare(&a.from, &b.from));
        let mut leaving: Vec<usize> = (0..ranges.len()).collect();
        leaving.sort_by(|&a, &b| order.compare(&ranges[a].to, &ranges[b].to));
        let (seqs, event) = (BTreeSet::new(), Vec::new());
        let mut sweep =
            RangeSweep { order, ranges, next: 0, leaving, next_left: 0, seqs, event, has_event: false };
        sweep.find_event();
        sweep
    }

    /// Advances to `key`, which must not be before the key of the last call.
    #[inline]
    pub fn reach(&mut self, key: &[u8]) {
        if self.has_event && self.order.compare(&self.event, key) != Ordering::Greater {
            self.pass_events(key);
        }
    }

    #[cold]
    fn pass_events(&mut self, key: &[u8]) {
        while let Some(range) = self.ranges.get(self.next)
            && self.order.compare(&range.from, key) != Ordering::Greater
        {
            self.seqs.insert(range.seq);
            self.next += 1;
        }
        // Every range that ends at or before this key began earlier, so it has been entered.
        while let Some(&index) = self.leaving.get(self.next_left)
            && self.order.compare(&self.ranges[index].to, key) != Ordering::Greater
        {
            self.seqs.remove(&self.ranges[index].seq);
            self.next_left += 1;
        }
        self.find_event();
    }

    fn find_event(&mut self) {
        let entering = self.ranges.get(self.next).map(|range| &range.from[..]);
        let leaving = self.leaving.get(self.next_left).map(|&index| &self.ranges[index].to[..]);
        let event = leaving.into_iter().chain(entering).min_by(|a, b| self.order.compare(a, b));
        self.has_event = event.is_some();
        self.event.clear();
        self.event.extend_from_slice(event.unwrap_or_default());
    }

    /// The seqs of the covering range deletes between two seqs, these excluded, newest first.
    pub fn between(&self, low: Seq, high: Seq) -> impl Iterator<Item = Seq> + '_ {
        let above = (Bound::Excluded(low), Bound::Excluded(high.max(low.saturating_add(1))));
        self.seqs.range(above).rev().copied()
    }

    /// The seq of the oldest covering range delete that is newer than `seq`.
    #[inline]
    pub fn next_above(&self, seq: Seq) -> Option<Seq> {
        if self.seqs.is_empty() {
            return None;
        }
        self.seqs.range((Bound::Excluded(seq), Bound::Unbounded)).next().copied()
    }
}

#[cfg(test)]
#[path = "range_sweep/tests.rs"]
mod tests;
