//! Which range deletes still hide something, and when a merge is due to remove them.
//!
//! The edit of a flush or a merge that has applied a range delete removes it if
//!
//! 1. nothing else holds older records of its keys, and either no boundary is before it, so that
//!    the written files have none of them, or, with any boundaries except those of transactions,
//!    the written files hold nothing that old; or
//! 2. newer ones cover its keys, and no boundary is in between. Tables that keep versions, or all
//!    of their past, distinguish them anyway; one that keeps a window does so in the window.
//!
//! The remaining ones hide records in runs. If there are too many, all runs of the table are merged
//! into one. The bound grows with the table, so that merging costs some kilobytes for each of them,
//! and it is limited by the memory. Called by `flush` and `merge`.

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

/// Bytes of a table for each range delete that is tolerated.
const BYTES_PER_RANGE: u64 = 4 << 10;

/// Approximate bytes of one in memory and in the manifest.
const RANGE_BYTES: usize = 256;

/// The tolerated range deletes of a table take at most one part in this many of the memory.
const MEMORY_SHARE: usize = 16;

/// A job that has applied range deletes, and is about to be installed.
pub struct Applied<'a> {
    pub table: &'a TableCore,
    /// The range deletes that it has applied, oldest first.
    pub ranges: &'a [RangeDelete],
    /// The boundaries that it has respected, ascending.
    pub boundaries: &'a [Seq],
    /// Range deletes that cover something which it has kept.
    pub sheltering: HashSet<Seq>,
    /// Everything that it has written, if that is known.
    pub written: Option<&'a [Arc<PartFile>]>,
}

impl Applied<'_> {
    /// For each of the range deletes, whether it no longer hides anything. `others` are the runs
    /// that are neither inputs nor output.
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
                    facts.min_seq < range.seq
                        && meets(order, (&facts.low, &facts.high), (&range.from, &range.to))
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
    older_parts(order, run, (&range.from, &range.to), range.seq).next().is_some()
}

/// The parts of a run with keys from the first of these on, up to the second, that may hold records
/// older than `seq`.
fn older_parts<'a>(
    order: &'a KeyOrder,
    run: &'a RunView,
    (from, to): (&'a [u8], &'a [u8]),
    seq: Seq,
) -> impl Iterator<Item = &'a PartView> {
    let begin = run.parts.partition_point(|part| order.compare(&part.high, from).is_lt());
    let met = run.parts[begin..].iter().take_while(move |part| order.compare(&part.low, to).is_lt());
    met.filter(move |part| part.file.part.facts().min_seq < seq)
}

/// The range deletes up to `through` that hide nothing any more once some parts are gone.
pub(crate) fn retired_without(
    table: &TableCore,
    view: &TableView,
    through: Seq,
    is_gone: &dyn Fn(&PartView) -> bool,
) -> Vec<Change> {
    let order = &table.rules.order;
    let hides = |range: &folddb_manifest::RangeDelete| {
        let older = |run| older_parts(order, run, (&range.from, &range.to), range.seq);
        view.runs.iter().any(|run| older(run).any(|part| !is_gone(part)))
    };
    let applied = view.range_deletes.iter().take_while(|range| range.seq <= through);
    let idle = applied.filter(|range| !hides(range));
    idle.map(|range| Change::RetireRangeDelete { table: table.id, seq: range.seq }).collect()
}

/// Whether keys from `low` to `high`, both included, meet those of a range delete.
pub(crate) fn meets(order: &KeyOrder, (low, high): (&[u8], &[u8]), (from, to): (&[u8], &[u8])) -> bool {
    order.compare(from, high).is_le() && order.compare(low, to).is_lt()
}

/// Also marks those that are covered by newer ones that are not idle. `idle` has one entry for each
/// of `ranges`.
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
    let distinct = ranges.partition_point(|range| range.seq <= times.since);
    let left: Vec<usize> = (0..distinct).filter(|&index| !idle[index]).collect();
    let kept: Vec<RangeDelete> = left.iter().map(|&index| ranges[index].clone()).collect();
    let covered = is_covered(&table.rules.order, &kept, boundaries);
    left.iter().zip(covered).for_each(|(&index, covered)| idle[index] |= covered);
}

/// The changes of range deletes in a flush: those in the manifest that no longer hide anything are
/// removed, and those that were only in the log and hide something are added. `flushed_seq` is
/// where the previous flush ended.
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

/// How many range deletes of a table a merge of all its runs would remove, if there are too many;
/// otherwise 0.
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

/// Most range deletes that are tolerated in a table of this size.
fn ranges_max(table_bytes: u64, options: &Options) -> usize {
    let min = options.range_deletes_min();
    let by_memory = (options.memory_bytes / MEMORY_SHARE / RANGE_BYTES).max(min);
    let by_size = usize::try_from(table_bytes / BYTES_PER_RANGE).unwrap_or(usize::MAX);
    by_size.clamp(min, by_memory)
}

/// The report of a step whose table was dropped in the middle of it.
pub fn gone(table: &TableCore) -> String {
    format!("table `{}` was dropped meanwhile", table.name)
}

/// The range deletes of a view up to `through`, for merging. Later ones may be in a log that is not
/// durable yet, and what they hide must not be dropped before they are durable.
pub(crate) fn step_ranges(view: &TableView, through: Seq) -> Vec<RangeDelete> {
    let range = |range: &Arc<folddb_manifest::RangeDelete>| RangeDelete {
        from: range.from.clone(),
        to: range.to.clone(),
        seq: range.seq,
    };
    view.range_deletes.iter().take_while(|range| range.seq <= through).map(range).collect()
}

/// The range deletes after `flushed_seq` that are only in the log: the manifest takes them over.
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
