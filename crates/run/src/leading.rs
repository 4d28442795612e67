//! The leading elements of keys in filters: which ones a partition learns while it is written, and
//! asking it for those of a range.
//!
//! A partition gets a hash for each run of equal leading elements: of the first element of the keys
//! always, and of the first two, three and more as long as all of these hashes together stay below
//! half of its keys and [`HASHES_FREE`]. So keys of many rows a prefix cost little, and in a large
//! partition none costs more than twice what it does without. A filter is built for all hashes that
//! it gets, so gets are as sure as before.

use std::ops::Bound;

use folddb_base::bytes::common_prefix_len;
use folddb_base::checksum::leading_hash;
use folddb_rules::codec::leading::{LEADING_MAX, Leading};

/// A byte that continues a string behind its end.
const ESCAPE: u8 = 0xff;

/// Hashes of leading elements that a partition may take before it has many keys.
const HASHES_FREE: usize = 256;

/// The hashes of the leading elements of the keys of one partition.
#[derive(Debug, Default)]
pub(crate) struct LeadingHashes {
    /// How many elements are hashed at most.
    most: usize,
    /// How many are hashed in this partition.
    depth: usize,
    /// For each number of elements those of the keys so far, equal neighbors once.
    hashes: [Vec<u64>; LEADING_MAX],
    /// The leading elements of the last key, and where each of them ends.
    last: Vec<u8>,
    ends: [usize; LEADING_MAX],
    count: usize,
}

impl LeadingHashes {
    /// For partitions that learn at most this many elements.
    pub(crate) fn new(most: usize) -> LeadingHashes {
        let most = most.min(LEADING_MAX);
        LeadingHashes { most, depth: most, ..LeadingHashes::default() }
    }

    /// Takes the next key of a partition with `keys` keys so far, this one included.
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8], keys: usize) {
        let begins_like_last = self.count == self.depth
            && key.starts_with(&self.last)
            && key.get(self.last.len()) != Some(&ESCAPE);
        if !begins_like_last {
            self.push_other(key, keys);
        }
    }

    #[inline(never)]
    fn push_other(&mut self, key: &[u8], keys: usize) {
        let leading = Leading::of(key, self.depth);
        let shared_bytes = common_prefix_len(&self.last, key);
        let is_shared = |number: &usize| {
            let end = leading.first(number + 1).len();
            self.ends[*number] == end && end <= shared_bytes
        };
        let shared = (0..leading.count().min(self.count)).take_while(is_shared).count();
        for number in shared..leading.count() {
            let elements = leading.first(number + 1);
            self.ends[number] = elements.len();
            self.hashes[number].push(leading_hash(elements));
        }
        self.count = leading.count();
        self.last.clear();
        self.last.extend_from_slice(leading.first(self.count));
        self.drop_the_costly(keys);
    }

    /// Forgets the last elements if their hashes are too many.
    fn drop_the_costly(&mut self, keys: usize) {
        while self.depth > 1 && self.len() > HASHES_FREE + keys / 2 {
            self.depth -= 1;
            self.hashes[self.depth].clear();
            self.count = self.count.min(self.depth);
            self.last.truncate(self.count.checked_sub(1).map_or(0, |last| self.ends[last]));
        }
    }

    /// How many hashes there are.
    pub(crate) fn len(&self) -> usize {
        self.hashes.iter().map(Vec::len).sum()
    }

    /// Moves the hashes to those of the keys, and begins the next partition. Returns how many
    /// elements the partition knows.
    pub(crate) fn finish(&mut self, keys: &mut Vec<u64>) -> u8 {
        self.hashes.iter_mut().for_each(|hashes| keys.append(hashes));
        let known = self.depth;
        (self.depth, self.count) = (self.most, 0);
        self.last.clear();
        known as u8
    }

    /// Takes out the hashes so far, for a reader that checks each.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = u64> {
        self.hashes.iter_mut().flat_map(|hashes| hashes.drain(..))
    }
}

/// A range whose keys all begin with the same elements.
#[derive(Clone, Debug)]
pub struct PrefixRange<'k> {
    /// Its bounds, in the order of the table.
    pub(crate) low: Bound<&'k [u8]>,
    pub(crate) high: Bound<&'k [u8]>,
    /// The hashes of the first of these elements, the first two, and so on; at least one.
    hashes: [u64; LEADING_MAX],
    count: usize,
}

impl<'k> PrefixRange<'k> {
    /// The range between two bounds in the order of the table, whose keys begin with these
    /// elements; none if there are none.
    pub fn new(
        (low, high): (Bound<&'k [u8]>, Bound<&'k [u8]>),
        leading: &Leading<'_>,
    ) -> Option<PrefixRange<'k>> {
        let mut hashes = [0; LEADING_MAX];
        for (number, hash) in hashes.iter_mut().enumerate().take(leading.count()) {
            *hash = leading_hash(leading.first(number + 1));
        }
        (leading.count() > 0).then_some(PrefixRange { low, high, hashes, count: leading.count() })
    }

    /// The hash to ask a partition for that knows this many elements; none if it knows none.
    #[inline]
    pub(crate) fn hash(&self, known: u8) -> Option<u64> {
        let last = usize::from(known).min(self.count).checked_sub(1)?;
        self.hashes.get(last).copied()
    }
}

#[cfg(test)]
#[path = "leading/tests.rs"]
mod tests;
