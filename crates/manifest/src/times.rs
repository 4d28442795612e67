//! When records were written: a sparse map from seqs to times, about an entry a second.
//!
//! ```text
//!   entries   (seq, time) ...      records from one seq on, up to the next entry, have the time of the entry
//! ```
//!
//! It is needed only by tables with expiry or a kept past, and if an age is set for deletes. It is
//! kept short: when it has reached [`ENTRIES_MAX`] entries, every other one of its older half is
//! dropped, so the newest nine hours of writing are known to the second, and older ones less and
//! less exactly. Thinning never makes a record newer. Pure; `State` keeps what is durable, the
//! engine also what is newer.

use folddb_base::Seq;

/// Most entries.
pub const ENTRIES_MAX: usize = 1 << 16;

/// Times closer together than this share one entry, in milliseconds.
pub const TICK_MS: u64 = 1000;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    entries: Vec<(Seq, u64)>,
}

impl Times {
    /// The entries, rising.
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

    /// When the record of this seq was written, or a later time; none if neither is known.
    pub fn time_by(&self, seq: Seq) -> Option<u64> {
        self.time_of(seq).or_else(|| self.entries.first().map(|entry| entry.1))
    }

    /// Notes that records from `seq` on were written at this time or later, unless the last entry
    /// is close enough. True when that has made an entry. Neither seqs nor times go back.
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

    /// Adds an entry after the others; one that is not after them is ignored. An entry with the seq
    /// of the last one replaces it, since no record was written in between, unless the last is also
    /// the first: that one alone dates everything before it.
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

    /// The last seq that was written by this time, to within a tick. None if all known records are
    /// newer; the largest seq if all are older.
    pub fn seq_at(&self, time_ms: u64) -> Option<Seq> {
        let behind = self.entries.partition_point(|entry| entry.1 <= time_ms);
        match self.entries.get(behind) {
            _ if behind == 0 => None,
            Some(next) => Some(next.0 - 1),
            None => Some(Seq::MAX),
        }
    }

    /// When the record of this seq was written, to within a tick; none when that is not known.
    pub fn time_of(&self, seq: Seq) -> Option<u64> {
        let behind = self.entries.partition_point(|entry| entry.0 <= seq);
        behind.checked_sub(1).map(|at| self.entries[at].1)
    }

    /// The same map if nothing was written after this seq: keeps the present time known.
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
