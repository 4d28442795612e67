//! One running merge: its inputs, what it folds, the parts that it has written. It advances step by
//! step, and takes over keys part by part.

use std::sync::Arc;
use std::time::Duration;

use folddb_base::ids::RunId;
use folddb_base::{Error, ErrorKind, Result, Seq};
use folddb_layout::manifest_edit::Change;
use folddb_merge::{FoldStep, KWay, Plan, RangeDelete, StepResult};
use folddb_rules::codec::KeyRange;
use folddb_run::{PartFacts, RunCursor};

use super::clean::Cleaner;
use super::output::Output;
use super::ranges::Applied;
use crate::background::step;
use crate::edit::install;
use crate::edit::install::{Installed, part_state};
use crate::events::{Event, MergeEvent};
use crate::state::catalog::TableCore;
use crate::state::engine::Engine;
use crate::state::key_range;
use crate::state::view::{PartFile, RunView, TableView};

/// One running merge.
pub struct MergeJob {
    pub table: Arc<TableCore>,
    pub plan: Plan,
    pub run: RunId,
    /// The age of the oldest input: if the merge is given up after some parts, its output must not
    /// be above an input of a lower tier, or a later merge of its tier would lift old records over
    /// newer ones.
    pub age: Seq,
    pub step: FoldStep<KWay<RunCursor>>,
    /// What share of their bytes the inputs repeat; 0 if a past that is kept may prevent folding
    /// it.
    pub repeated: f64,
    /// Drops stale entries, if the table is an index.
    pub cleaner: Option<Cleaner>,
    pub output: Output,
    /// The range deletes that the merge applies, oldest first.
    pub range_deletes: Vec<RangeDelete>,
    /// The boundaries when the merge began; a range delete below them no longer serves any
    /// snapshot.
    pub boundaries: Vec<Seq>,
    /// The keys that it takes over: all of the inputs, or a range of them in which no part of an
    /// input begins earlier.
    pub range: KeyRange,
    pub bytes_total: u64,
    /// The time of its steps so far.
    pub took: Duration,
    /// The inputs that it may still read.
    pub files: Vec<Arc<PartFile>>,
}

impl MergeJob {
    /// Reads some keys; installs when the part is full, and at the end. True when the merge is
    /// done.
    pub fn step(&mut self, engine: &Arc<Engine>) -> Result<bool> {
        engine.check_readable(&self.table)?; // a closed store gets no more files
        let (started, bytes_before) = (engine.host.clock.monotonic(), self.step.counts().bytes_in);
        let result = self.take_in(engine)?;
        self.output.count_written(engine);
        let took = engine.host.clock.monotonic().saturating_sub(started);
        engine.debt.merge_bytes_per_s.note(self.step.counts().bytes_in - bytes_before, took);
        self.took += took;
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
        let closed = self.output.close_part(engine, &self.table)?;
        let mut changes = Vec::new();
        let mut installed = Installed::default();
        if let Some((part, facts)) = closed {
            changes.push(Change::AddPart {
                table: self.table.id,
                run: self.run,
                tier: self.plan.target_tier,
                age: self.age,
                part: part_state(part.number, &facts),
            });
            installed.parts.push(part);
        }
        changes.extend(consumed(&self.table, &self.plan.inputs, &self.range, self.step.next_key()));
        // After a range of the inputs, range deletes hide what they still hold.
        if is_last && self.range == KeyRange::all() {
            changes.extend(self.retired_range_deletes(engine));
        }
        install::install(engine, &self.table, changes, installed)?;
        self.files.retain(|file| !file.is_retired()); // files that have been read completely are released now
        Ok(())
    }

    /// The range deletes that no longer hide anything, as far as this merge can know. Those that
    /// are only in the log are left to a later one.
    fn retired_range_deletes(&self, engine: &Engine) -> Vec<Change> {
        if self.range_deletes.is_empty() {
            return Vec::new();
        }
        // The manifest first: a flush that ends in between adds a range delete together with its
        // run.
        let _manifest = engine.manifest.lock();
        let view = self.table.view();
        let is_other = |run: &&RunView| run.id != self.run && !self.plan.inputs.contains(&run.id);
        let others: Vec<&RunView> = view.runs.iter().filter(is_other).collect();
        let applied = Applied {
            table: &self.table,
            ranges: &self.range_deletes,
            boundaries: &self.boundaries,
            sheltering: self.step.sheltering().collect(),
            written: None,
        };
        let idle = applied.idle(&others, None);
        let done = self.range_deletes.iter().zip(idle).filter(|(_, idle)| *idle);
        done.map(|(range, _)| Change::RetireRangeDelete { table: self.table.id, seq: range.seq }).collect()
    }

    /// The event that reports what it has done.
    pub(crate) fn event(&self) -> Event {
        let counts = self.step.counts();
        Event::Merge(MergeEvent {
            table: self.table.name.clone(),
            plan: self.plan.to_string(),
            runs: self.plan.inputs.len(),
            bytes_in: counts.bytes_in,
            records_in: counts.records_in,
            records_out: counts.records_out,
            took: self.took,
        })
    }

    pub fn progress(&self) -> CompactProgress {
        let counts = self.step.counts();
        CompactProgress {
            bytes_done: counts.bytes_in,
            bytes_total: self.bytes_total,
            records_in: counts.records_in,
            records_out: counts.records_out,
        }
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

/// The bytes that a merge reads of a part, as [`CompactProgress::bytes_done`] counts them.
pub(crate) fn taken_in_bytes(facts: &PartFacts) -> u64 {
    facts.key_bytes + facts.payload_bytes
}

/// Whether seqs of other runs are among those of the inputs, as after a merge that was given up.
/// The output has the newest seqs, but also keys that only older runs have; without their own seqs,
/// these would appear newer than their records in other runs.
pub(crate) fn reaches_among_others(view: &TableView, inputs: &[RunId], min_seq: Seq, max_seq: Seq) -> bool {
    let others = view.runs.iter().filter(|run| !inputs.contains(&run.id)).flat_map(|run| &run.parts);
    others
        .map(|part| part.file.part.facts())
        .any(|facts| facts.min_seq <= max_seq && facts.max_seq >= min_seq)
}

/// What is removed from the inputs: everything of the range below `next_key`, or all of it.
pub(crate) fn consumed(
    table: &TableCore,
    inputs: &[RunId],
    range: &KeyRange,
    next_key: Option<&[u8]>,
) -> Vec<Change> {
    let order = &table.rules.order;
    let mut changes = Vec::new();
    let view = table.view();
    for run in view.runs.iter().filter(|run| inputs.contains(&run.id)) {
        for part in run.parts.iter().filter(|part| !key_range::is_before(range, order, &part.high)) {
            let (table, run, file) = (table.id, run.id, part.file.number);
            match next_key {
                Some(next) if order.compare(next, &part.low).is_le() => {}
                Some(next) if order.compare(next, &part.high).is_le() => {
                    changes.push(Change::TrimPart { table, run, file, low: next.to_vec() });
                }
                _ => changes.push(Change::RemovePart { table, run, file }),
            }
        }
    }
    changes
}
