//! Whether a part can have a key of a range whose keys all begin with the same elements: by the top
//! index and the filters alone, without a leaf or a block.
//!
//! The keys of the range are in the leaves from the one where its lower bound is to the one where
//! its upper bound is. A leaf between these two has only keys of the range, so there is nothing to
//! ask then; otherwise the filters of both say whether they know the elements.

use std::ops::Bound;

use crate::leading::PrefixRange;
use crate::part::{Part, Rank};
use crate::shared::count;

impl Part {
    /// What the filters know of a key of the range: false if the part certainly has none, true if
    /// they let it pass, nothing if there is none to ask. Reads at most two filter partitions, and
    /// none if that is not worth it: see [`Rank::Oldest`]. One that cannot be read says nothing:
    /// the blocks have the answer, too.
    pub fn may_have(&self, rank: Rank, range: &PrefixRange<'_>) -> Option<bool> {
        if self.frame().meta.leading.is_empty() {
            return None;
        }
        let first = match range.low {
            Bound::Unbounded => Some(0),
            Bound::Included(key) => self.find_leaf(key, false),
            Bound::Excluded(key) => self.find_leaf(key, true),
        };
        let Some(first) = first else { return Some(false) };
        let last = match range.high {
            Bound::Unbounded => None,
            Bound::Included(key) | Bound::Excluded(key) => self.find_leaf(key, false),
        };
        let last = last.unwrap_or(self.frame().top.leaves.len() - 1);
        if last > first + 1 {
            return None;
        }
        let (one, other) = (self.filter_of(first)?, self.filter_of(last)?);
        match self.filter_may_have(rank, first, one, range)? {
            false if one != other => self.filter_may_have(rank, last, other, range),
            may_have => Some(may_have),
        }
    }

    fn filter_of(&self, leaf: usize) -> Option<usize> {
        self.frame().top.leaves.get(leaf)?.filter.map(|number| number as usize)
    }

    fn filter_may_have(
        &self,
        rank: Rank,
        leaf: usize,
        filter: usize,
        range: &PrefixRange<'_>,
    ) -> Option<bool> {
        let hash = range.hash(*self.frame().meta.leading.get(filter)?)?;
        match self.kept.filter(filter) {
            Some(filter) => {
                count(&self.shared().counters().cache_hits, 1);
                Some(filter.may_contain(hash))
            }
            None => self.cached_filter_admits(rank, leaf, hash).unwrap_or(None),
        }
    }
}
