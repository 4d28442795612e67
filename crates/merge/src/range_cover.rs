//! Which range deletes are covered by newer ones.
//!
//! If no boundary is between two range deletes, every reader that sees the older sees the newer,
//! too. So if newer range deletes of its stripe, alone or together, cover all keys of a range
//! delete, it hides nothing more. Pure.

use std::collections::BTreeMap;

use folddb_base::Seq;
use folddb_rules::KeyOrder;

use crate::range_sweep::RangeDelete;

/// For each of `ranges`: whether newer ones of its stripe cover it. `ranges` are oldest first, and
/// `boundaries` ascend.
pub fn is_covered(order: &KeyOrder, ranges: &[RangeDelete], boundaries: &[Seq]) -> Vec<bool> {
    let places = places(order, ranges);
    let stripe = |seq: Seq| boundaries.partition_point(|&boundary| boundary < seq);
    let mut covered = vec![false; ranges.len()];
    let mut taken = Intervals::default();
    for index in (0..ranges.len()).rev() {
        let is_new_stripe =
            ranges.get(index + 1).is_some_and(|newer| stripe(newer.seq) != stripe(ranges[index].seq));
        if is_new_stripe {
            taken = Intervals::default();
        }
        covered[index] = !taken.take(places[index]);
    }
    covered
}

/// The ranks of the ends of the ranges among all ends; equal keys have one rank.
fn places(order: &KeyOrder, ranges: &[RangeDelete]) -> Vec<(usize, usize)> {
    let mut ends: Vec<(&[u8], usize, bool)> = Vec::with_capacity(2 * ranges.len());
    for (index, range) in ranges.iter().enumerate() {
        ends.push((&range.from, index, false));
        ends.push((&range.to, index, true));
    }
    ends.sort_by(|a, b| order.compare(a.0, b.0));
    let mut places = vec![(0, 0); ranges.len()];
    let mut place = 0;
    for at in 0..ends.len() {
        place += usize::from(at > 0 && order.compare(ends[at - 1].0, ends[at].0).is_ne());
        let (_, index, is_end) = ends[at];
        if is_end { places[index].1 = place } else { places[index].0 = place }
    }
    places
}

/// Disjoint intervals of ranks: the beginning and the end of each.
#[derive(Default)]
struct Intervals(BTreeMap<usize, usize>);

impl Intervals {
    /// Adds an interval. False if it is empty or all of it was already there.
    fn take(&mut self, (mut from, mut to): (usize, usize)) -> bool {
        let before = self.0.range(..=from).next_back().map(|(&from, &to)| (from, to));
        if to <= from || before.is_some_and(|(_, end)| end >= to) {
            return false;
        }
        if let Some((start, _)) = before.filter(|&(_, end)| end >= from) {
            from = start;
        }
        let joined: Vec<(usize, usize)> = self.0.range(from..=to).map(|(&from, &to)| (from, to)).collect();
        for (start, end) in joined {
            to = to.max(end);
            self.0.remove(&start);
        }
        self.0.insert(from, to);
        true
    }
}

#[cfg(test)]
#[path = "range_cover/tests.rs"]
mod tests;
