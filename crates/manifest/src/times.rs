//! When records were written: a sparse map from seqs to times, with at most about one entry for
//! each second.
//!
//! ```text
//!   entries   (seq, time) ...      records from one seq on, up to the next entry, have the time of the entry
//! ```
//!
//! Only tables with expiry or a kept past need it, and stores with a maximum age of deletes. It is
//! kept short: when it has more than [`ENTRIES_MAX`] entries, every other entry of its older half
//! is dropped. So the times of the newest nine hours of writing are exact to the second, and older
//! ones are less exact; dropping entries never gives a record a later time. Pure. `State` keeps the
//! durable entries, the engine also newer ones.

use folddb_base::Seq;

/// The most entries.
pub const ENTRIES_MAX: usize = 1 << 16;

/// The shortest time between two entries, in milliseconds.
pub const TICK_MS: u64 = 1000;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    entries: Vec<(Seq, u64)>,
}

impl Times {
    /// The entries, ascending.
    pub fn entries(&self) -> &[(Seq, u64)] {
        &self.entries
    }

    /// The newest time that it knows; 0 if it knows none.
    pub fn newest_ms(&self) -> u64 {
        self.entries.last().map_or(0, |entry| entry.1)
    }

    /// The seq that its newest entry begins with; 0 if it has none.
    pub fn newest_seq(&self) -> Seq {
        self.entries.last().map_or(0, |entry| entry.0)
    }

    /// The time by which the record of this seq had been written; none if no time is known.
    pub fn time_by(&self, seq: Seq) -> Option<u64> {
        self.time_of(seq).or_else(|| self.entries.first().map(|entry| entry.1))
    }

    /// Notes that records from `seq` on were written at this time or later. True if that made an
    /// entry; it makes none if the last entry is less than a tick older, or has a higher seq.
    pub fn note(&mut self, seq: Seq, time_ms: u64) -> bool {
        let is_new = self
            .entries
            .last()
            .is_none_or(|&(last_seq, last_ms)| seq >= last_seq && time_ms >= last_ms.saturating_add(TICK_MS));
        if is_new {
            self.push(seq, time_ms);
        }
        is_new
    }

    /// Adds an entry after the others; an entry that is not after them is ignored. If it has the
    /// seq of the last entry, it replaces that, since no record was written in between. The first
    /// entry is never replaced: only it gives a time to what is before it.
    pub fn push(&mut self, seq: Seq, time_ms: u64) {
        let before = self.entries.len();
        match self.entries.last_mut() {
            Some(last) if seq < last.0 || time_ms < last.1 => return,
            Some(last) if seq == last.0 && before > 1 => last.1 = time_ms,
            _ => self.entries.push((seq, time_ms)),
        }
        if self.entries.len() > ENTRIES_MAX {
            let mut index = 0;
            self.entries.retain(|_| {
                index += 1;
                index > ENTRIES_MAX / 2 || index % 2 == 1
            });
        }
    }

    /// The last seq that was written by this time, exact to a tick. None if all known records are
    /// newer; `Seq::MAX` if all are older.
    pub fn seq_at(&self, time_ms: u64) -> Option<Seq> {
        let behind = self.entries.partition_point(|entry| entry.1 <= time_ms);
        match self.entries.get(behind) {
            _ if behind == 0 => None,
            Some(next) => Some(next.0 - 1),
            None => Some(Seq::MAX),
        }
    }

    /// When the record of this seq was written, exact to a tick; none if that is not known.
    pub fn time_of(&self, seq: Seq) -> Option<u64> {
        let behind = self.entries.partition_point(|entry| entry.0 <= seq);
        behind.checked_sub(1).map(|at| self.entries[at].1)
    }

    /// The map that there would be if nothing had been written after this seq, but time had passed:
    /// it has the newest time.
    pub fn until(&self, last_seq: Seq) -> Times {
        let known = self.entries.partition_point(|entry| entry.0 <= last_seq + 1);
        let mut until = Times { entries: self.entries[..known].to_vec() };
        if known < self.entries.len() {
            until.push(last_seq + 1, self.newest_ms());
        }
        until
    }

    /// The entries that `other` does not have.
    pub fn beyond(&self, other: &Times) -> &[(Seq, u64)] {
        let known = other.entries.last().copied().unwrap_or((0, 0));
        &self.entries[self.entries.partition_point(|entry| *entry <= known)..]
    }
}

#[cfg(test)]
#[path = "times/tests.rs"]
mod tests;
