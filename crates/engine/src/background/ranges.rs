//! Which range deletes hide something still, and when a merge is due to let them go.
//!
//! A range delete is let go of by the edit of a flush or a merge that has applied it, when
//!
//! 1. nothing else holds older records of its keys, and no boundary stands before it: the files
//!    that the job has written have none of them; or, whatever boundaries there are but those of
//!    transactions, these hold nothing so old either; or
//! 2. newer ones cover its keys, and no boundary lies between. Tables that keep versions, or all of
//!    their past, tell them apart all the same; one that keeps a window does so in the window.
//!
//! What is left of them hides records in runs. When there are as many as are put up with, all runs
//! of the table are merged into one. The bound grows with the table, so that merging costs some
//! kilobytes for each of them, and is bounded by the memory. Called by `flush` and `merge`.

use std::collections::HashSet;
use std::sync::Arc;

use folddb_base::Seq;
use folddb_host::sync::atomic::Ordering;
use folddb_layout::manifest_edit::Change;
use folddb_merge::{RangeDelete, RunSummary, Times, is_covered};
use folddb_rules::KeyOrder;

use crate::edit::install;
use crate::options::Options;
use crate::state::catalog::TableCore;
use crate::state::clock;
use crate::state::engine::Engine;
use crate::state::view::{PartFile, PartView, RunView, TableView};

/// A range delete for each so many bytes of a table is put up with.
const BYTES_PER_RANGE: u64 = 4 << 10;

/// What one takes in memory and in the manifest, about, in bytes.
const RANGE_BYTES: usize = 256;

/// No more of the memory than one part in so many do those take that a table is allowed.
const MEMORY_SHARE: usize = 16;

/// A job that has applied range deletes, and is about to be installed.
pub struct Applied<'a> {
    pub table: &'a TableCore,
    /// The range deletes that it has applied, oldest first.
    pub ranges: &'a [RangeDelete],
    /// The boundaries that it has respected, rising.
    pub boundaries: &'a [Seq],
    /// Range deletes that something which it has kept is under.
    pub sheltering: HashSet<Seq>,
    /// All that it has written, where that is known.
    pub written: Option<&'a [Arc<PartFile>]>,
}

impl Applied<'_> {
    /// For each of the range deletes, whether it hides nothing any more. `others` are the runs that
    /// are neither inputs nor output.
    pub(crate) fn idle(&self, others: &[&RunView], oldest_transaction: Option<Seq>) -> Vec<bool> {
        let order = &self.table.rules.order;
        let lowest_boundary = self.boundaries.first().copied().unwrap_or(Seq::MAX);
        let oldest_transaction = oldest_transaction.unwrap_or(Seq::MAX);
        let is_idle = |range: &RangeDelete| {
            let is_over = || others.iter().any(|run| holds_older(order, run, range));
            let is_applied = lowest_boundary >= range.seq && !self.sheltering.contains(&range.seq);
            let holds_none = |written: &[Arc<PartFile>]| {
                let is_older = |part: &Arc<PartFile>| {
                    let facts = part.part.facts();
                    facts.min_seq < range.seq && meets(order, (&facts.low, &facts.high), range)
                };
                oldest_transaction >= range.seq && !written.iter().any(is_older)
            };
            (is_applied || self.written.is_some_and(holds_none)) && !is_over()
        };
        self.ranges.iter().map(is_idle).collect()
    }
}

/// Whether a run has a part with keys of a range that may hold records older than it.
fn holds_older(order: &KeyOrder, run: &RunView, range: &RangeDelete) -> bool {
    let from = run.parts.partition_point(|part| order.compare(&part.high, &range.from).is_lt());
    let is_met = |part: &&PartView| order.compare(&part.low, &range.to).is_lt();
    run.parts[from..].iter().take_while(is_met).any(|part| part.file.part.facts().min_seq < range.seq)
}

fn meets(order: &KeyOrder, (low, high): (&[u8], &[u8]), range: &RangeDelete) -> bool {
    order.compare(&range.from, high).is_le() && order.compare(low, &range.to).is_lt()
}

/// Marks those, too, that newer ones stand for among those that are not idle. `idle` is that of
/// each of `ranges`.
fn mark_covered(
    table: &TableCore,
    ranges: &[RangeDelete],
    boundaries: &[Seq],
    times: Times,
    idle: &mut [bool],
) {
    if times.newest > 1 {
        return;
    }
    let told_apart = ranges.partition_point(|range| range.seq <= times.since);
    let left: Vec<usize> = (0..told_apart).filter(|&index| !idle[index]).collect();
    let kept: Vec<RangeDelete> = left.iter().map(|&index| ranges[index].clone()).collect();
    let covered = is_covered(&table.rules.order, &kept, boundaries);
    left.iter().zip(covered).for_each(|(&index, covered)| idle[index] |= covered);
}

/// What a flush says of range deletes: those that the manifest lists and that hide nothing any more
/// go, and those that only the log has had and that do hide something come. `flushed_seq` is where
/// the flush before this one ended.
pub(crate) fn range_changes(
    engine: &Engine,
    applied: &Applied<'_>,
    view: &TableView,
    flushed_seq: Seq,
) -> Vec<Change> {
    if applied.ranges.is_empty() {
        return Vec::new();
    }
    let others: Vec<&RunView> = view.runs.iter().collect();
    let mut idle = applied.idle(&others, engine.boundaries.oldest_of_transactions());
    let times = clock::times_to_keep(engine, applied.table);
    mark_covered(applied.table, applied.ranges, applied.boundaries, times, &mut idle);
    let table = applied.table.id;
    let change = |(range, idle): (&RangeDelete, bool)| match (range.seq <= flushed_seq, idle) {
        (true, true) => Some(Change::RetireRangeDelete { table, seq: range.seq }),
        (false, false) => Some(Change::AddRangeDelete {
            table,
            from: range.from.clone(),
            to: range.to.clone(),
            seq: range.seq,
        }),
        _ => None,
    };
    applied.ranges.iter().zip(idle).filter_map(change).collect()
}

/// How many range deletes of a table a merge of all its runs would let go, where they are more than
/// are put up with; else 0.
pub(crate) fn ranges_due(engine: &Engine, table: &TableCore, runs: &[RunSummary]) -> usize {
    let ranges = Arc::clone(&table.view().range_deletes);
    let max = ranges_max(runs.iter().map(|run| run.bytes).sum(), &engine.options);
    let due = match table.keeps_past || ranges.len() <= max {
        true => 0,
        false => {
            let boundary = engine.boundaries.all().first().copied().unwrap_or(Seq::MAX);
            let reach = boundary.min(install::flushed_seq(engine, table));
            ranges.iter().take_while(|range| range.seq <= reach).count()
        }
    };
    table.has_many_ranges.store(due > 2 * max, Ordering::Relaxed);
    if due > max { due } else { 0 }
}

/// So many range deletes of a table of this size are put up with.
fn ranges_max(table_bytes: u64, options: &Options) -> usize {
    let min = options.range_deletes_min();
    let by_memory = (options.memory_bytes / MEMORY_SHARE / RANGE_BYTES).max(min);
    let by_size = usize::try_from(table_bytes / BYTES_PER_RANGE).unwrap_or(usize::MAX);
    by_size.clamp(min, by_memory)
}

/// What a step says that found its table dropped in the middle of it.
pub fn gone(table: &TableCore) -> String {
    format!("table `{}` was dropped meanwhile", table.name)
}

/// The range deletes of a view up to `through`, as merging takes them. Later ones may be in a log
/// that is not durable yet, and what they hide must not be lost before they are.
pub(crate) fn step_ranges(view: &TableView, through: Seq) -> Vec<RangeDelete> {
    let range = |range: &Arc<folddb_manifest::RangeDelete>| RangeDelete {
        from: range.from.clone(),
        to: range.to.clone(),
        seq: range.seq,
    };
    view.range_deletes.iter().take_while(|range| range.seq <= through).map(range).collect()
}

/// The range deletes that only the log has yet, from after `flushed_seq` on: the manifest takes
/// them over.
pub(crate) fn new_range_deletes(applied: &Applied<'_>, flushed_seq: Seq) -> Vec<Change> {
    let new = applied.ranges.iter().filter(|range| range.seq > flushed_seq);
    new.map(|range| Change::AddRangeDelete {
        table: applied.table.id,
        from: range.from.clone(),
        to: range.to.clone(),
        seq: range.seq,
    })
    .collect()
}
