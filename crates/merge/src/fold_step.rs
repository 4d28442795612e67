//! The work of a merge: it reads a stream in the total order and outputs folded records, in bounded
//! steps.
//!
//! For each key, newest record first:
//!
//! 1. A record belongs to the *stripe* between two live snapshots. Only records of one stripe fold,
//!    and the folded record gets the newest seq. The boundaries of stripes are taken once, when the
//!    merge begins.
//! 2. A record under a range delete of its own stripe is dropped. If a boundary is between the two,
//!    it stays.
//! 3. An op that absorbs (`Set`, `Delete`) shadows everything older in its stripe.
//! 4. Two ops that decline to compose both stay. If a user's function fails, that costs space, but
//!    never data.
//! 5. At the *bottom* of a key, if nothing older exists than what the merge sees, the oldest record
//!    that is left becomes final: a `Delete` is dropped; `Insert`, `Fold` and `InsertFold` become
//!    the `Set` (or `SetSeparated`) of their result on an absent key; a state that counts as
//!    deleted is dropped. After a drop, the next newer record is the oldest, even if it is in a
//!    younger stripe. A `Delete` above a kept version stays.
//!
//! ```text
//!   seq      9        8    |   5        3        2   |   1              | = boundaries 6 and 1
//!   op    Fold c   Fold b  | Fold a   Set v   Fold u |  Delete
//!   out      Fold b·c      |        Set v·a          |  (dropped at the bottom)
//! ```
//!
//! Two more rules, for tables that keep their past or have values that expire ([`Times`]):
//!
//! 6. If the *past* is kept, some events of a key (records, and range deletes over it) stay
//!    unchanged: the newest N - 1, and those newer than some seq. Each is a stripe of its own;
//!    older records fold as above. A range delete over kept records stays in force.
//! 7. A state that has *expired* counts as a `Delete` if it is the only record of its key that is
//!    left, and if no later write can have seen it before it expired.
//!
//! Every input record is counted: as output, folded, shadowed, range-deleted or dropped. If these
//! counts do not add up, the step fails, and the merge is not installed. Background work drives a
//! [`FoldStep`] over a [`crate::KWay`] of runs; a flush does the same over chunks.

mod rules;
mod counts;
mod past;
mod waiting;
mod key_folder;

use std::ops::Bound;

use folddb_base::{RecordSink, RecordStream, Result, Seq};
use folddb_rules::KeyOrder;

use self::key_folder::KeyFolder;

pub use counts::{Counts, StepFailure};
pub use rules::{BottomRule, KeyRule, StepRules, Times};

/// How much input a step takes before it pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Records.
    pub records: u64,
    /// Bytes of their keys and payloads.
    pub bytes: u64,
}

impl Budget {
    /// No bound: runs to the end.
    pub const UNBOUNDED: Budget = Budget { records: u64::MAX, bytes: u64::MAX };
}

/// Where a step paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// Inside a key. An output part must not end here.
    More,
    /// Between two keys. Everything before [`FoldStep::next_key`] has been output.
    AtKeyBoundary,
    /// At the end. Everything has been output; where the merge has a bound, everything before
    /// [`FoldStep::next_key`].
    Done,
}

/// A running merge.
pub struct FoldStep<S> {
    stream: S,
    folder: KeyFolder,
    /// Where it ends, if not with the stream, and the order of the keys.
    end: Option<(KeyOrder, Bound<Vec<u8>>)>,
}

impl<S: RecordStream> FoldStep<S> {
    /// A merge of `stream`, which runs forward and is at its first record.
    pub fn new(stream: S, rules: StepRules) -> FoldStep<S> {
        FoldStep { stream, folder: KeyFolder::new(rules), end: None }
    }

    /// The same merge, for a table that keeps its past or has values that expire.
    pub fn with_times(mut self, times: Times) -> FoldStep<S> {
        self.folder.set_times(times);
        self
    }

    /// The same merge, which is done with the last key before, or at, this bound.
    pub fn ending(mut self, order: &KeyOrder, end: Bound<Vec<u8>>) -> FoldStep<S> {
        self.end = (end != Bound::Unbounded).then(|| (order.clone(), end));
        self
    }

    /// The range deletes that are still needed: they hide kept records from readers of the present.
    pub fn sheltering(&self) -> impl Iterator<Item = Seq> + '_ {
        self.folder.past.iter().flat_map(|past| past.sheltering.iter().copied())
    }

    /// Takes records until the budget is spent, at least one, and sends to `sink` what is final.
    ///
    /// # Errors
    /// Those of the stream and of the sink; a payload that is not valid for its kind; counts that
    /// do not add up. After an error the merge must not be installed.
    pub fn step<K: RecordSink + ?Sized>(&mut self, budget: Budget, sink: &mut K) -> Result<StepResult> {
        let FoldStep { stream, folder, end } = self;
        let records_max = folder.counts.records_in.saturating_add(budget.records.max(1));
        let bytes_max = folder.counts.bytes_in.saturating_add(budget.bytes.max(1));
        loop {
            let spent = folder.counts.records_in >= records_max || folder.counts.bytes_in >= bytes_max;
            let Some(record) = stream.record() else {
                folder.finish_key(sink)?;
                folder.check_balance()?;
                return Ok(StepResult::Done);
            };
            if folder.is_inside(record.key) {
                if spent {
                    return Ok(StepResult::More);
                }
            } else {
                folder.finish_key(sink)?;
                if end.as_ref().is_some_and(|end| is_beyond(end, record.key)) {
                    folder.check_balance()?;
                    return Ok(StepResult::Done);
                }
                if spent {
                    folder.check_balance()?;
                    return Ok(StepResult::AtKeyBoundary);
                }
                folder.begin_key(record.key);
            }
            folder.take(record, sink)?;
            stream.advance()?;
        }
    }

    /// Between two keys: the key that comes next. None inside a key and at the end of the stream.
    pub fn next_key(&self) -> Option<&[u8]> {
        if self.folder.inside { None } else { self.stream.record().map(|record| record.key) }
    }

    /// What became of the records so far.
    pub fn counts(&self) -> &Counts {
        &self.folder.counts
    }

    /// The first failure of the user's function, if there was one.
    pub fn failure(&self) -> Option<&StepFailure> {
        self.folder.failure.as_ref()
    }

    /// The stream below.
    pub fn stream(&self) -> &S {
        &self.stream
    }
}

/// Whether a key is after the bound.
fn is_beyond((order, end): &(KeyOrder, Bound<Vec<u8>>), key: &[u8]) -> bool {
    match end {
        Bound::Unbounded => false,
        Bound::Included(last) => order.compare(key, last).is_gt(),
        Bound::Excluded(end) => order.compare(key, end).is_ge(),
    }
}

#[cfg(test)]
#[path = "fold_step/tests.rs"]
mod tests;
