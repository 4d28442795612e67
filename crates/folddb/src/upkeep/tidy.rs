//! What an opening puts in order before it returns: many small runs, and many small files of values.
//!
//! A process that opens a store, writes one row and ends leaves a run, and gives upkeep no time to merge it. So merges
//! that are due and small are made while the store is opened, here and now. What is left is bounded however short the
//! processes live: fewer runs than one merge factor in each tier of small runs. Merges of more than an opening may have to
//! replay are left to upkeep, which does them in the background.
//!
//! Called by `recover::open`, for stores that are opened for writing, whoever does their upkeep.

use std::sync::Arc;

use folddb_base::Result;
use folddb_merge::plan::Way;
use folddb_merge::{Plan, RunSummary};

use super::merge::contain;
use crate::catalog::TableCore;
use crate::engine::Engine;

impl Engine {
    /// Merges what is due and small. A failure is one of upkeep, which will meet it again; a store that it poisons does
    /// not open.
    pub(crate) fn tidy(self: &Arc<Engine>) -> Result<()> {
        let tidied = self.merge_small().and_then(|()| self.drop_dead_values().map(drop));
        let _ = tidied.and_then(|()| self.reclaim_small());
        self.health.cause().map_or(Ok(()), Err)
    }

    fn merge_small(self: &Arc<Engine>) -> Result<()> {
        for table in self.catalog().all() {
            while let Some(plan) = self.small_plan(table) {
                self.merge_now(table, plan)?;
            }
        }
        Ok(())
    }

    /// The next small merge of a table that has runs enough to merge.
    fn small_plan(&self, table: &TableCore) -> Option<Plan> {
        if table.view().runs.len() < self.options.merge_factor {
            return None;
        }
        let bytes_max = self.options.replayed_bytes_max() as u64;
        let is_small = |plan: &Plan| plan.bytes <= bytes_max && plan.inputs.len() > 1;
        self.reserve(table, |runs| {
            let of_all = self.due(table, runs).filter(is_small);
            let plan = of_all.or_else(|| self.due(table, &newest_only(runs, bytes_max)).filter(is_small))?;
            // Small runs are not joined, whatever keys they have: each of them is a file.
            Some(Plan { way: Way::Merge, ..plan })
        })
    }

    fn merge_now(self: &Arc<Engine>, table: &Arc<TableCore>, plan: Plan) -> Result<()> {
        let mut job = self.job(table, plan)?;
        loop {
            match contain(|| job.step(self)) {
                Ok(false) => {}
                Ok(true) => {
                    self.finish_job(job);
                    return Ok(());
                }
                Err(error) => {
                    self.abandon_job(job, &error);
                    return Err(error);
                }
            }
        }
    }
}

/// The same runs, where those from the first on that are too much together count as taken: large runs must not keep small
/// ones from being merged.
fn newest_only(runs: &[RunSummary], bytes_max: u64) -> Vec<RunSummary> {
    let mut bytes = 0u64;
    let marked = runs.iter().map(|run| {
        bytes = bytes.saturating_add(run.bytes);
        RunSummary { busy: run.busy || bytes > bytes_max, ..run.clone() }
    });
    marked.collect()
}
