//! Compaction on request: all runs of a table become one, at once, in the calling thread.
//!
//! It takes all runs of the table, so at some moment no merge may hold any of them. During writes,
//! background work would always hold some. So a waiting caller announces itself; background work
//! then begins no merge of the table and gives up running ones between two of their steps. The wait
//! is at most one step of a merge, or for another caller that compacts the table; `progress` is
//! called all the time, and may stop it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use folddb_base::{Result, TableId};
use folddb_merge::plan::compact_plan;
use folddb_merge::{Plan, RunSummary};

use super::clean::clean_plan;
use super::merge_base::taken_in_bytes;
use super::merge_job::{CompactProgress, MergeJob, contain, progress_of};
use super::split::{End, Split};
use crate::background::merges::{Next, Turn};
use crate::background::state::Background;
use crate::background::{dead_segments, hash_sweep, merge, scheduler};
use crate::state::catalog::TableCore;
use crate::state::engine::Engine;

/// How long it waits for runs before it calls `progress` again.
const WAIT: Duration = Duration::from_millis(20);

/// A callback that gets the progress, and may stop the work.
pub(crate) type Report<'a> = &'a mut dyn FnMut(CompactProgress) -> ControlFlow<()>;

/// The right to compact a table, which one caller has at a time.
pub(crate) struct Claim<'a> {
    background: &'a Background,
    table: TableId,
}

impl<'a> Claim<'a> {
    /// None while another caller has it.
    pub(crate) fn take(background: &'a Background, table: TableId) -> Option<Claim<'a>> {
        let mut merges = background.merges.lock();
        if merges.compacted.contains_key(&table) {
            return None;
        }
        merges.compacted.insert(table, Turn::Waits);
        Some(Claim { background, table })
    }

    /// The work that is due for the table has changed.
    fn has_changed(&self) {
        self.background.engine.work.changed.lock().insert(self.table);
        self.background
            .engine
            .catalog()
            .by_id(self.table)
            .into_iter()
            .for_each(|table| merge::note_overdue_of(self.background, table));
    }

    /// The inputs are taken: background work may merge newer runs from now on.
    pub(crate) fn has_inputs(&self, plan: &Plan) {
        let mut merges = self.background.merges.lock();
        merges.compacted.insert(self.table, Turn::Merges(plan.inputs.clone()));
        drop(merges);
        self.has_changed();
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut merges = self.background.merges.lock();
        merges.compacted.remove(&self.table);
        drop(merges);
        self.has_changed();
        self.background.engine.bell.ring();
    }
}

/// Merges everything in a table into one run, at once. It calls `progress` after every step and
/// while it waits; that may stop it, and what is done by then stays done.
pub fn compact(background: &Background, table: &Arc<TableCore>, progress: Report<'_>) -> Result<()> {
    let engine = &background.engine;
    hash_sweep::sweep_all(engine, table)?;
    scheduler::flush_all(background)?;
    let Some(claim) = wait_for(engine, table, progress, || Ok(Claim::take(background, table.id)))? else {
        return Ok(());
    };
    let Some(Some(plan)) = wait_for(engine, table, progress, || try_compact_plan(background, table))? else {
        return Ok(());
    };
    claim.has_inputs(&plan);
    let job = merge::job(background, table, plan)?;
    drive(background, job, progress)?;
    dead_segments::drop_dead_values(engine).map(drop) // at once: the store may be closed before background work does it
}

/// Waits until `ready` returns something; none if `progress` stops it before.
pub(crate) fn wait_for<T>(
    engine: &Engine,
    table: &TableCore,
    progress: Report<'_>,
    ready: impl Fn() -> Result<Option<T>>,
) -> Result<Option<T>> {
    loop {
        let seen = engine.bell.count();
        table.check_alive()?;
        engine.health.check_writable(true)?; // neither a closed nor a poisoned store merges
        let found = ready()?;
        if found.is_some() || progress(nothing_done(table)).is_break() {
            return Ok(found);
        }
        engine.bell.wait(seen, WAIT);
    }
}

/// The merge that makes one run of a table, or nothing to do, as soon as no other merge has any of
/// its runs.
fn try_compact_plan(background: &Background, table: &TableCore) -> Result<Option<Option<Plan>>> {
    let engine = &background.engine;
    let mut is_free = false;
    let plan = free_runs(background, table, |runs| {
        is_free = !runs.iter().any(|run| run.busy);
        match (is_free, table.may_be_stale(engine)) {
            (false, _) => None,
            (true, false) => compact_plan(&table.rules.order, runs),
            (true, true) => clean_plan(table, runs),
        }
    })?;
    Ok(is_free.then_some(plan))
}

/// Takes back the merges of a table that rest between two steps, makes a plan of what is there
/// then, and reserves its inputs.
pub(crate) fn free_runs(
    background: &Background,
    table: &TableCore,
    make: impl FnOnce(&[RunSummary]) -> Option<Plan>,
) -> Result<Option<Plan>> {
    if let Some(damage) = background.merges.lock().given_up.get(&table.id) {
        return Err(damage.clone());
    }
    let taken = background.merges.lock().take_all_of(table.id);
    taken.jobs.into_iter().for_each(|job| merge::give_back(background, job));
    taken.splits.iter().for_each(|split| merge::stop(background, split));
    taken.plans.iter().for_each(|plan| merge::release(background, table.id, plan, None));
    Ok(merge::reserve(background, table, make))
}

/// Runs a merge to its end, or until `progress` stops it: then false.
pub(crate) fn drive(background: &Background, mut job: MergeJob, progress: Report<'_>) -> Result<bool> {
    let engine = &background.engine;
    if let Some(slice) = &job.slice {
        let split = Arc::clone(&slice.split);
        return drive_slices(background, &split, job, progress);
    }
    loop {
        match contain(|| job.step(engine)) {
            Ok(true) => {
                let _ = progress(job.progress());
                merge::finish_job(background, job);
                return Ok(true);
            }
            Ok(false) if progress(job.progress()).is_continue() => {}
            Ok(false) => {
                merge::give_back(background, job);
                return Ok(false);
            }
            Err(error) => {
                merge::abandon_job(background, job, &error);
                return Err(error);
            }
        }
    }
}

/// The same for a merge in slices, of which threads that merge may take some meanwhile.
fn drive_slices(
    background: &Background,
    split: &Arc<Split>,
    first: MergeJob,
    progress: Report<'_>,
) -> Result<bool> {
    let engine = &background.engine;
    let mut mine = Some(first);
    loop {
        let seen = engine.bell.count();
        match mine.take().map_or_else(|| next_job(background, split), |job| Ok(Some(job)))? {
            Some(job) => step_of_slice(background, job)?,
            None => match split.end() {
                Some(End::Complete) => {
                    let _ = progress(progress_of(&split.base, &split.read_so_far()));
                    return Ok(true);
                }
                Some(End::GivenUp(Some(error))) => return Err(error),
                end => {
                    split.base.table.check_alive()?;
                    engine.check_open()?;
                    match end {
                        Some(_) => return Ok(false),
                        None => engine.bell.wait(seen, WAIT),
                    }
                }
            },
        }
        if progress(progress_of(&split.base, &split.read_so_far())).is_break() {
            merge::stop(background, split);
            return Ok(false);
        }
    }
}

/// What this caller does next of a merge in slices: none while other threads have all of it.
fn next_job(background: &Background, split: &Arc<Split>) -> Result<Option<MergeJob>> {
    let next = background.merges.lock().take_next_of(split);
    match next {
        Some(Next::Begun(job)) => Ok(Some(*job)),
        Some(Next::Slice(slice)) => merge::slice_job(background, slice).map(Some),
        _ => Ok(None),
    }
}

fn step_of_slice(background: &Background, mut job: MergeJob) -> Result<()> {
    match contain(|| job.step(&background.engine)) {
        Ok(true) => _ = merge::finish_job(background, job),
        Ok(false) => merge::keep(background, job),
        Err(error) => {
            merge::abandon_job(background, job, &error);
            return Err(error);
        }
    }
    Ok(())
}

/// The progress while it waits.
fn nothing_done(table: &TableCore) -> CompactProgress {
    let view = table.view();
    let parts = view.runs.iter().flat_map(|run| &run.parts);
    let bytes_total = parts.map(|part| taken_in_bytes(part.file.part.facts())).sum();
    CompactProgress { bytes_done: 0, bytes_total, records_in: 0, records_out: 0 }
}
