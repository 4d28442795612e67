//! One running merge: its inputs, what it folds, the parts that it has written. It advances step by
//! step, and takes over keys part by part.

use std::sync::Arc;
use std::time::Duration;

use folddb_base::{Error, ErrorKind, Result};
use folddb_merge::{Counts, FoldStep, KWay, StepResult};
use folddb_rules::codec::KeyRange;
use folddb_run::RunCursor;

use super::clean::Cleaner;
use super::merge_base::{MergeBase, consumed};
use super::output::Output;
use super::split::Slice;
use crate::background::step;
use crate::edit::install;
use crate::edit::install::Installed;
use crate::events::{Event, MergeEvent};
use crate::state::engine::Engine;
use crate::state::view::PartFile;

/// One running merge, or one slice of it.
pub struct MergeJob {
    pub base: Arc<MergeBase>,
    /// The slice, if it is only one: then its parts are installed when it is their turn.
    pub slice: Option<Slice>,
    pub step: FoldStep<KWay<RunCursor>>,
    /// Drops stale entries, if the table is an index.
    pub cleaner: Option<Cleaner>,
    pub output: Output,
    /// The keys that it takes over: all of the inputs, or a range of them in which no part of an
    /// input begins earlier.
    pub range: KeyRange,
    /// The time of its steps so far.
    pub took: Duration,
    /// The inputs that it may still read.
    pub files: Vec<Arc<PartFile>>,
}

impl MergeJob {
    /// Reads some keys; installs when the part is full, and at the end. True when the merge, or the
    /// slice, is done.
    pub fn step(&mut self, engine: &Arc<Engine>) -> Result<bool> {
        engine.check_readable(&self.base.table)?; // a closed store gets no more files
        let merging = engine.debt.merging.begin();
        let (started, before) = (engine.host.clock.monotonic(), *self.step.counts());
        let result = self.take_in(engine)?;
        self.output.count_written(engine);
        let took = engine.host.clock.monotonic().saturating_sub(started);
        let bytes_in = self.step.counts().bytes_in - before.bytes_in;
        // With one thread, a caller that compacts besides it is not part of the backlog's rate.
        let at_once = if engine.options.merge_threads > 1 { merging.at_once() } else { 1 };
        engine.debt.merge_bytes_per_s.note(bytes_in * at_once, took);
        self.took += took;
        if let Some(slice) = &self.slice {
            slice.split.note_step(&before, self.step.counts());
        }
        match result {
            StepResult::Done => {
                self.close_part(engine, true)?;
                Ok(true)
            }
            StepResult::AtKeyBoundary if self.output.bytes_written() >= engine.options.part_bytes => {
                self.close_part(engine, false)?;
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// Reads some keys, and writes the result.
    fn take_in(&mut self, engine: &Arc<Engine>) -> Result<StepResult> {
        let writer = self.output.writer(engine)?;
        let Some(cleaner) = &mut self.cleaner else {
            return self.step.step(step::step_budget(engine), writer);
        };
        let result = self.step.step(cleaner.budget(step::step_budget(engine)), cleaner.sink())?;
        cleaner.hand_on(engine, writer)?;
        Ok(result)
    }

    /// Installs the part written so far, and removes its keys from the inputs.
    fn close_part(&mut self, engine: &Engine, is_last: bool) -> Result<()> {
        self.cleaner.as_mut().map_or(Ok(()), |cleaner| cleaner.settle(engine))?;
        let table = &self.base.table;
        let closed = self.output.close_part(engine, table)?;
        if let Some(slice) = &mut self.slice {
            slice.written.parts.extend(closed);
            return if is_last { slice.deliver(engine, &self.step, self.took) } else { Ok(()) };
        }
        let mut changes = Vec::new();
        let mut installed = Installed::default();
        if let Some((part, facts)) = closed {
            changes.push(self.base.added(&part, &facts));
            installed.parts.push(part);
        }
        changes.extend(consumed(table, &self.base.plan.inputs, &self.range, self.step.next_key()));
        // After a range of the inputs, range deletes hide what they still hold.
        if is_last && self.range == KeyRange::all() {
            changes.extend(self.base.retired_range_deletes(engine, self.step.sheltering().collect()));
        }
        install::install(engine, table, changes, installed)?;
        self.files.retain(|file| !file.is_retired()); // files that have been read completely are released now
        Ok(())
    }

    /// Whether it is a slice of a merge that was given up.
    pub(crate) fn is_stopped(&self) -> bool {
        self.slice.as_ref().is_some_and(|slice| slice.split.is_stopped())
    }

    pub fn progress(&self) -> CompactProgress {
        match &self.slice {
            None => progress_of(&self.base, self.step.counts()),
            Some(slice) => progress_of(&self.base, &slice.split.read_so_far()),
        }
    }
}

/// The event that reports what a merge has done.
pub(crate) fn event_of(base: &MergeBase, plan: String, counts: &Counts, took: Duration) -> Event {
    Event::Merge(MergeEvent {
        table: base.table.name.clone(),
        plan,
        runs: base.plan.inputs.len(),
        bytes_in: counts.bytes_in,
        records_in: counts.records_in,
        records_out: counts.records_out,
        took,
    })
}

/// The progress of a merge that has read and written this much.
pub(crate) fn progress_of(base: &MergeBase, counts: &Counts) -> CompactProgress {
    CompactProgress {
        bytes_done: counts.bytes_in,
        bytes_total: base.bytes_total,
        records_in: counts.records_in,
        records_out: counts.records_out,
    }
}

/// The progress of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactProgress {
    /// Bytes of keys and values read so far.
    pub bytes_done: u64,
    /// Bytes of the files that are being merged; an estimate of the final `bytes_done`.
    pub bytes_total: u64,
    /// Records read so far.
    pub records_in: u64,
    /// Records written so far.
    pub records_out: u64,
}

/// Runs work that may call a user's comparison function. A panic becomes a failure, so that
/// reserved inputs are released.
pub(crate) fn contain<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Error::new(ErrorKind::Io, "a merge panicked; what it was doing has not taken effect"))
    })
}
