//! Reclaim on request, while the caller waits, and a preview of it.

use std::ops::ControlFlow;

use folddb_base::Result;
use folddb_host::sync::atomic::Ordering;
use folddb_manifest::State;
use folddb_merge::{ReclaimPlan, ValueFile, plan_reclaim};

use crate::background::hidden_values::Unsettled;
use crate::background::reclaim_report::{ReclaimReport, ReclaimWant};
use crate::background::state::Background;
use crate::background::{dead_segments, hidden_values, reclaim, scheduler};
use crate::edit::feeds::is_held_for_feeds;
use crate::state::engine::Engine;
use crate::values::settle;

/// Does everything that is worth it, at once. `progress` gets each plan when it begins, and may
/// stop it: background work, or a later call, goes on with that plan.
pub fn reclaim_all(
    background: &Background,
    progress: &mut dyn FnMut(&ReclaimPlan) -> ControlFlow<()>,
) -> Result<ReclaimReport> {
    let engine = &background.engine;
    engine.values.installs.fetch_add(1, Ordering::AcqRel); // snapshots may have been released since the last look
    engine.values.log.directories.roll();
    settle::settle_values(engine)?;
    scheduler::flush_all(background)?; // the segments that memtables point to are settled then
    let (bytes_before, counted) = (engine.values.bytes(), engine.counters.value_bytes_copied.get());
    dead_segments::drop_dead_values(engine)?;
    let mut report = ReclaimReport::default();
    loop {
        let mut reclaiming = background.reclaiming.lock();
        let was_begun = reclaiming.job.is_some();
        let done = reclaim::reclaim_step_as(background, &mut reclaiming, ReclaimWant::Asked)?;
        let begun = reclaiming.job.as_ref().filter(|_| !was_begun);
        let is_stopped = begun.is_some_and(|job| progress(&job.plan).is_break());
        drop(reclaiming);
        if is_stopped {
            break;
        }
        match done {
            None => break,
            Some(done) => report.plans += u64::from(done.starts_with("done")),
        }
    }
    report.bytes_before = bytes_before;
    report.bytes_after = engine.values.bytes();
    report.bytes_copied = engine.counters.value_bytes_copied.get() - counted;
    report.hidden_bytes = hidden_values::hidden_value_bytes(engine);
    report.left_alone = reclaim::damaged_values(background);
    Ok(report)
}

/// A read-only store has settled nothing, and moves nothing: full segments count, as if their log
/// had been flushed.
pub(crate) fn settle_for_looking(engine: &Engine, state: &State) {
    let sealed = state.values.iter().filter(|(_, end)| end.is_some()).map(|(&number, _)| number);
    let free = sealed.filter(|&number| !is_held_for_feeds(state, number));
    engine.values.settled.lock().extend(free.chain(state.relocated.keys().copied()));
}

/// What would be done, plan by plan, as far as that is known.
pub fn reclaim_plans(background: &Background) -> Vec<ReclaimPlan> {
    let engine = &background.engine;
    let reclaiming = background.reclaiming.lock();
    let manifest = engine.manifest.lock();
    if engine.options.read_only {
        settle_for_looking(engine, manifest.state());
    }
    let mut files = reclaim::settled_files(engine, manifest.state(), &reclaiming.given_up);
    let mut next = engine.numbers.peek();
    drop(manifest);
    let options = reclaim::reclaim_options(engine, ReclaimWant::Asked, Unsettled::default(), 0);
    let mut plans = Vec::new();
    while let Some(plan) = plan_reclaim(&files, &options) {
        let (gone, stay): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|file| plan.files.contains(&file.number));
        files = stay;
        files.push(ValueFile {
            number: next,
            segments: plan.segments.clone(),
            bytes: plan.new_bytes,
            live_values: gone.iter().map(|file| file.live_values).sum(),
            live_bytes: plan.live_bytes,
        });
        next += 1;
        plans.push(plan);
    }
    plans
}
