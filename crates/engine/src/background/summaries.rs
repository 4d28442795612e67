//! Summaries of a table's runs, for planning merges.

use std::collections::HashSet;

use folddb_base::TableId;
use folddb_base::ids::RunId;
use folddb_merge::{RunSummary, Sketch};

use crate::state::catalog::TableCore;
use crate::state::view::RunView;

/// Summaries of the runs of a table, newest first.
pub fn summaries(table: &TableCore, busy: &HashSet<(TableId, RunId)>) -> Vec<RunSummary> {
    let is_busy = |run: &RunView| busy.contains(&(table.id, run.id));
    table.view().runs.iter().map(|run| summary(table, run, is_busy(run))).collect()
}

fn summary(table: &TableCore, run: &RunView, busy: bool) -> RunSummary {
    let facts = || run.parts.iter().map(|part| part.file.part.facts());
    RunSummary {
        id: run.id,
        tier: run.tier,
        age: run.age,
        bytes: facts().map(|facts| facts.file_bytes).sum(),
        value_bytes: facts().flat_map(|facts| &facts.values).map(|used| used.bytes).sum(),
        records: facts().map(|facts| facts.records).sum(),
        deletes: facts().map(|facts| facts.deletes).sum(),
        outdated: 0,
        is_old_form: run.parts.iter().any(|part| table.is_outdated(part.file.number)),
        min_seq: facts().map(|facts| facts.min_seq).min().unwrap_or(0),
        max_seq: facts().map(|facts| facts.max_seq).max().unwrap_or(0),
        low: run.parts.first().map(|part| part.low.clone()).unwrap_or_default(),
        high: run.parts.last().map(|part| part.high.clone()).unwrap_or_default(),
        sketch: Sketch::of_run(facts().map(|facts| facts.sketch.as_slice())),
        parts: run.parts.len(),
        busy,
    }
}
