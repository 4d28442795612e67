//! What an opening tidies up before it returns: many small runs, many small files of values, and
//! many small files of the log that are retained for feeds.
//!
//! A process that opens a store, writes one row and ends leaves a run, and background work has no
//! time to merge it. So merges that are due and small are done while the store is opened. The rest
//! is bounded even for short-lived processes: fewer runs than one merge factor in each tier of
//! small runs. Merges of more than an opening may have to replay are left to background work.
//!
//! Called by `recovery::open`, for stores that are opened for writing, in any mode of background
//! work.

use std::sync::Arc;

use folddb_base::Result;
use folddb_merge::plan::Way;
use folddb_merge::{Plan, RunSummary};

use super::merge_job::contain;
use crate::background::state::Background;
use crate::background::{dead_segments, join_history, merge, reclaim};
use crate::state::catalog::TableCore;

/// Does the merges that are due and small. A failure counts as one of background work, which will
/// meet it again; a store that it poisons does not open.
pub(crate) fn tidy(background: &Background) -> Result<()> {
    let engine = &background.engine;
    let tidied = merge_small(background).and_then(|()| dead_segments::drop_dead_values(engine).map(drop));
    let _ = tidied.and_then(|()| reclaim::reclaim_small(background));
    let _ = join_history::join_small(engine); // what cannot be joined stays, and its readers report why
    engine.health.cause().map_or(Ok(()), Err)
}

fn merge_small(background: &Background) -> Result<()> {
    let engine = &background.engine;
    for table in engine.catalog().all() {
        while let Some(plan) = small_plan(background, table) {
            merge_now(background, table, plan)?;
        }
    }
    Ok(())
}

/// The next small merge of a table that has enough runs to merge.
fn small_plan(background: &Background, table: &TableCore) -> Option<Plan> {
    let engine = &background.engine;
    if table.view().runs.len() < engine.options.merge_factor {
        return None;
    }
    let bytes_max = engine.options.replayed_bytes_max() as u64;
    let is_small = |plan: &Plan| plan.bytes <= bytes_max && plan.inputs.len() > 1;
    merge::reserve(background, table, |runs| {
        let of_all = merge::due(engine, table, runs).filter(is_small);
        let plan =
            of_all.or_else(|| merge::due(engine, table, &newest_only(runs, bytes_max)).filter(is_small))?;
        // Small runs are merged even if they share no keys: joined, each would still be a file.
        Some(Plan { way: Way::Merge, ..plan })
    })
}

fn merge_now(background: &Background, table: &Arc<TableCore>, plan: Plan) -> Result<()> {
    let engine = &background.engine;
    let mut job = merge::job(background, table, plan)?;
    loop {
        match contain(|| job.step(engine)) {
            Ok(false) => {}
            Ok(true) => {
                merge::finish_job(background, job);
                return Ok(());
            }
            Err(error) => {
                merge::abandon_job(background, job, &error);
                return Err(error);
            }
        }
    }
}

/// The same runs, but once their total is too large, the others count as taken: large runs must not
/// prevent small ones from being merged.
fn newest_only(runs: &[RunSummary], bytes_max: u64) -> Vec<RunSummary> {
    let mut bytes = 0u64;
    let marked = runs.iter().map(|run| {
        bytes = bytes.saturating_add(run.bytes);
        RunSummary { busy: run.busy || bytes > bytes_max, ..run.clone() }
    });
    marked.collect()
}
