//! How much of a table's parts range deletes cover, which merges leave out.
//!
//! Only range deletes that merges may apply count: they are in the manifest, all records of the
//! part are older, and no snapshot is in between.
//!
//! Called by `drop_parts` and `merge`.

use folddb_base::Seq;
use folddb_manifest::RangeDelete;
use folddb_merge::RunSummary;
use folddb_rules::KeyOrder;
use folddb_run::PartFacts;

use crate::background::ranges;
use crate::edit::install;
use crate::state::catalog::TableCore;
use crate::state::engine::Engine;
use crate::state::view::{PartView, TableView};

/// What decides which range deletes of a table are applied.
pub(crate) struct Applying {
    /// The snapshots, rising.
    boundaries: Vec<Seq>,
    flushed_seq: Seq,
}

impl Applying {
    pub(crate) fn to(engine: &Engine, table: &TableCore) -> Applying {
        Applying { boundaries: engine.boundaries.all(), flushed_seq: install::flushed_seq(engine, table) }
    }

    /// Whether a range delete that is newer than all of a part is applied to it.
    fn applies(&self, range: &RangeDelete, facts: &PartFacts) -> bool {
        let is_pinned =
            || self.boundaries.iter().any(|boundary| (facts.min_seq..range.seq).contains(boundary));
        range.seq <= self.flushed_seq && !is_pinned()
    }

    /// The newest range delete without a snapshot below it.
    pub(crate) fn newest_seq(&self) -> Seq {
        self.boundaries.first().map_or(self.flushed_seq, |&lowest| lowest.min(self.flushed_seq))
    }
}

/// Whether covered records may make merges due. In tables with expiry or a kept past, time makes
/// merges due anyway.
pub(crate) fn has_covered(table: &TableCore) -> bool {
    !table.is_timed && !table.view().range_deletes.is_empty()
}

/// Counts covered records of each run as outdated.
pub(crate) fn count_covered(engine: &Engine, table: &TableCore, runs: &mut [RunSummary]) {
    if !has_covered(table) {
        return;
    }
    let (view, applying) = (table.view(), Applying::to(engine, table));
    for summary in runs.iter_mut() {
        let Some(run) = view.runs.iter().find(|run| run.id == summary.id) else { continue };
        let covered = |part| covered_records(table, &view, part, &applying);
        summary.outdated =
            (summary.outdated + run.parts.iter().map(covered).sum::<u64>()).min(summary.records);
    }
}

/// Whether range deletes cover all of a part.
pub(crate) fn is_covered(table: &TableCore, view: &TableView, part: &PartView, applying: &Applying) -> bool {
    let order = &table.rules.order;
    covers(order, &spans(order, view, part, applying), (&part.low, &part.high), false)
}

/// About how many records of a part are covered by range deletes. Counts only leaves that are
/// covered as a whole, so that a merge planned for this always finds some.
fn covered_records(table: &TableCore, view: &TableView, part: &PartView, applying: &Applying) -> u64 {
    let (order, facts) = (&table.rules.order, part.file.part.facts());
    let spans = spans(order, view, part, applying);
    if spans.is_empty() {
        return 0;
    }
    let separators = part.file.part.boundaries();
    let leaves = separators.len().max(1);
    let (mut covered, mut first) = (0, part.low.as_slice());
    for next in separators.skip(1) {
        covered += usize::from(covers(order, &spans, (first, next), true));
        first = next;
    }
    covered += usize::from(covers(order, &spans, (first, &part.high), false));
    (facts.records as f64 * covered as f64 / leaves as f64) as u64
}

/// The keys from the first up to, but not including, the second.
type Span<'a> = (&'a [u8], &'a [u8]);

/// What the range deletes that are applied to a part cover together: disjoint spans, ascending.
fn spans<'a>(order: &KeyOrder, view: &'a TableView, part: &PartView, applying: &Applying) -> Vec<Span<'a>> {
    let facts = part.file.part.facts();
    let newer = view.range_deletes.newer_than(facts.max_seq);
    let met = newer.filter(|range| ranges::meets(order, (&part.low, &part.high), (&range.from, &range.to)));
    let applied = met.filter(|range| applying.applies(range, facts));
    joined(order, applied.map(|range| (&range.from[..], &range.to[..])).collect())
}

fn joined<'a>(order: &KeyOrder, mut spans: Vec<Span<'a>>) -> Vec<Span<'a>> {
    spans.sort_by(|a, b| order.compare(a.0, b.0));
    let mut joined: Vec<Span<'a>> = Vec::with_capacity(spans.len());
    for (from, to) in spans {
        match joined.last_mut().filter(|last| order.compare(from, last.1).is_le()) {
            Some(last) if order.compare(to, last.1).is_gt() => last.1 = to,
            Some(_) => {}
            None => joined.push((from, to)),
        }
    }
    joined
}

/// Whether one of the spans has all keys from `first` to `last`, which is excluded if it
/// `is_behind` them.
fn covers(order: &KeyOrder, spans: &[Span<'_>], (first, last): (&[u8], &[u8]), is_behind: bool) -> bool {
    let begun = spans.partition_point(|(from, _)| order.compare(from, first).is_le());
    begun.checked_sub(1).is_some_and(|index| {
        let upto = order.compare(last, spans[index].1);
        upto.is_lt() || (is_behind && upto.is_eq())
    })
}

#[cfg(test)]
mod tests;
