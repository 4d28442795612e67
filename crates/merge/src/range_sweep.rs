//! Range deletes along a merge: which of them cover the key that has been reached.
//!
//! Keys come in the order of the table, so the set of covering range deletes changes only at a few keys,
//! the *events*. Between two events a key costs one comparison; without range deletes it costs none.

use std::cmp::Ordering;

use folddb_base::Seq;
use folddb_rules::KeyOrder;

/// A delete of all keys from `from` (inclusive) to `to` (exclusive), at its place in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeDelete {
    /// The first key that it covers.
    pub from: Vec<u8>,
    /// The first key that it does not cover any more.
    pub to: Vec<u8>,
    /// When it happened.
    pub seq: Seq,
}

/// Follows rising keys through a set of range deletes.
#[derive(Debug)]
pub struct RangeSweep {
    order: KeyOrder,
    /// By `from`.
    ranges: Vec<RangeDelete>,
    /// The first one that has not been entered yet.
    next: usize,
    /// Those entered and not left, by index.
    entered: Vec<usize>,
    /// Their seqs, rising.
    seqs: Vec<Seq>,
    /// The key at which the set changes next.
    event: Vec<u8>,
    has_event: bool,
}

impl RangeSweep {
    /// A sweep that stands before the first key.
    pub fn new(order: KeyOrder, mut ranges: Vec<RangeDelete>) -> RangeSweep {
        ranges.sort_by(|a, b| order.compare(&a.from, &b.from));
        let mut sweep = RangeSweep {
            order,
            ranges,
            next: 0,
            entered: Vec::new(),
            seqs: Vec::new(),
            event: Vec::new(),
            has_event: false,
        };
        sweep.find_event();
        sweep
    }

    /// Goes on to `key`, which must not be before the key of the last call.
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
            self.entered.push(self.next);
            self.next += 1;
        }
        let (order, ranges) = (&self.order, &self.ranges);
        self.entered.retain(|&index| order.compare(&ranges[index].to, key) == Ordering::Greater);
        self.seqs.clear();
        self.seqs.extend(self.entered.iter().map(|&index| ranges[index].seq));
        self.seqs.sort_unstable();
        self.find_event();
    }

    fn find_event(&mut self) {
        let entering = self.ranges.get(self.next).map(|range| &range.from[..]);
        let leaving = self.entered.iter().map(|&index| &self.ranges[index].to[..]);
        let event = leaving.chain(entering).min_by(|a, b| self.order.compare(a, b));
        self.has_event = event.is_some();
        self.event.clear();
        self.event.extend_from_slice(event.unwrap_or_default());
    }

    /// The seqs of the covering range deletes between two seqs, these excluded, newest first.
    pub fn between(&self, low: Seq, high: Seq) -> impl Iterator<Item = Seq> + '_ {
        self.seqs.iter().rev().copied().filter(move |&at| low < at && at < high)
    }

    /// The seq of the oldest covering range delete that is newer than `seq`.
    #[inline]
    pub fn next_above(&self, seq: Seq) -> Option<Seq> {
        if self.seqs.is_empty() {
            return None;
        }
        self.seqs.get(self.seqs.partition_point(|&at| at <= seq)).copied()
    }
}

#[cfg(test)]
#[path = "range_sweep/tests.rs"]
mod tests;
