//! Ranges of keys that a scan has found empty, so that later scans can skip the hidden records in
//! them.
//!
//! A queue is written at one end and deleted at the other: its first row comes after all deletes
//! that are not merged away yet. A scan that has skipped them notes here that no key of the empty
//! range had a value at its seq. Later scans that begin in the empty range need only its newer
//! records, which are few, and jump over the rest (`scan.rs`).
//!
//! A note is a fact of history, so it stays true after flushes and merges. But it must follow from
//! deletes alone: the newest record of each key up to that seq is a `Delete`, or is hidden by a
//! range delete, or there is none. Then everything that is folded across that seq later starts from
//! nothing, too. A value that a delete predicate makes absent does not count: later records may
//! have been folded with a part of it.
//!
//! A note is a hint and may be forgotten; each table keeps a few short ones.

use std::ops::Bound;
use std::sync::Arc;

use folddb_base::Seq;
use folddb_host::sync::Mutex;
use folddb_rules::KeyOrder;

/// Notes that a table keeps.
const STRETCHES_MAX: usize = 4;
/// Longer keys are not noted.
const KEY_BYTES_MAX: usize = 256;

/// Between `from` and `to` no key had a value at `seq`.
#[derive(Debug)]
pub struct EmptyRange {
    pub from: Bound<Vec<u8>>,
    /// The first key after it; none if it reaches to the end of the table.
    pub to: Option<Vec<u8>>,
    pub seq: Seq,
}

impl EmptyRange {
    /// True if a key that is not before the empty range is in it.
    #[inline]
    pub(crate) fn reaches(&self, order: &KeyOrder, key: &[u8]) -> bool {
        self.to.as_ref().is_none_or(|to| order.compare(key, to).is_lt())
    }

    /// True if a forward scan from `low` on begins in it.
    fn holds(&self, order: &KeyOrder, low: &Bound<Vec<u8>>) -> bool {
        let begins = match (&self.from, low) {
            (Bound::Unbounded, _) => true,
            (_, Bound::Unbounded) => false,
            (Bound::Excluded(from), Bound::Included(low)) => order.compare(from, low).is_lt(),
            (Bound::Included(from) | Bound::Excluded(from), Bound::Included(low) | Bound::Excluded(low)) => {
                order.compare(from, low).is_le()
            }
        };
        let ends = match low {
            Bound::Unbounded => true,
            Bound::Included(low) | Bound::Excluded(low) => self.reaches(order, low),
        };
        begins && ends
    }

    fn is_short(&self) -> bool {
        let from_bytes = match &self.from {
            Bound::Unbounded => 0,
            Bound::Included(key) | Bound::Excluded(key) => key.len(),
        };
        from_bytes.max(self.to.as_ref().map_or(0, Vec::len)) <= KEY_BYTES_MAX
    }
}

/// The notes of a table.
#[derive(Debug, Default)]
pub struct EmptyRanges {
    /// Oldest first.
    notes: Mutex<Vec<Arc<EmptyRange>>>,
}

impl EmptyRanges {
    /// The newest range in which a forward scan from `low` on begins and that a reader at `limit`
    /// may use.
    pub fn find(&self, order: &KeyOrder, low: &Bound<Vec<u8>>, limit: Seq) -> Option<Arc<EmptyRange>> {
        let notes = self.notes.lock();
        let usable = notes.iter().filter(|note| note.seq <= limit && note.holds(order, low));
        usable.max_by_key(|note| note.seq).cloned()
    }

    /// Notes an empty range, in place of one with the same beginning, or of the oldest.
    pub fn note(&self, range: EmptyRange) {
        if !range.is_short() {
            return;
        }
        let mut notes = self.notes.lock();
        if notes.iter().any(|note| note.from == range.from && note.seq > range.seq) {
            return;
        }
        notes.retain(|note| note.from != range.from);
        if notes.len() == STRETCHES_MAX {
            notes.remove(0);
        }
        notes.push(Arc::new(range));
    }
}

#[cfg(test)]
mod tests;
