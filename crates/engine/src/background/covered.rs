//! How much of a table's parts range deletes cover, which merges leave out.
//!
//! Only range deletes that merges may apply count: they are in the manifest, all records of the
//! part are older, and no snapshot is in between. What they cover together are spans of keys, and
//! a part is covered if each of its records is in one of them:
//!
//! ```text
//!   spans       [-----)   [--------)    [---)
//!   leaves   |     |     |     |     |     |       within a span: covered; beside all: the part stays
//!   blocks             |  |                        of the leaves that are neither: the same
//!   gaps             )   [          )    [         of what is left, one block is read for each gap
//! ```
//!
//! The rows of a window are such a case: they are in one range for each key group, and between the
//! ranges are keys of other windows. Only if no leaf and no block is beside the spans, gaps are
//! read: then most likely the part has no row in them. In vain, no more is read of a part than it
//! has; then it is left to merges.
//!
//! Called by `drop_parts` and `merge`.

use folddb_base::{Result, Seq};
use folddb_manifest::RangeDelete;
use folddb_merge::RunSummary;
use folddb_rules::KeyOrder;
use folddb_run::{GapSearch, PartFacts};

use crate::background::ranges;
use crate::edit::install;
use crate::state::catalog::TableCore;
use crate::state::coverage::Coverage;
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

/// Counts covered records of each run as outdated, as far as its parts have been examined.
pub(crate) fn count_covered(table: &TableCore, runs: &mut [RunSummary]) {
    if !has_covered(table) {
        return;
    }
    let view = table.view();
    for summary in runs.iter_mut() {
        let Some(run) = view.runs.iter().find(|run| run.id == summary.id) else { continue };
        let covered = run.parts.iter().map(|part| part.file.coverage.lock().records);
        summary.outdated = (summary.outdated + covered.sum::<u64>()).min(summary.records);
    }
}

/// Whether range deletes cover all of a part, as it was found out when it was examined.
pub(crate) fn is_covered(table: &TableCore, view: &TableView, part: &PartView, applying: &Applying) -> bool {
    if !part.file.coverage.lock().is_whole {
        return false;
    }
    let ranges = applied(&table.rules.order, view, part, applying);
    let known = part.file.coverage.lock();
    known.is_whole && is_of(&known, &ranges)
}

/// Whether a part of a table has to be examined, since other range deletes are applied to it.
pub(crate) fn is_to_examine(engine: &Engine, table: &TableCore) -> bool {
    let view = table.view();
    if table.keeps_past || view.range_deletes.is_empty() {
        return false; // it is not examined
    }
    let applying = Applying::to(engine, table);
    view.runs.iter().flat_map(|run| &run.parts).any(|part| {
        let ranges = applied(&table.rules.order, &view, part, &applying);
        !is_of(&part.file.coverage.lock(), &ranges)
    })
}

/// Finds out how much of the parts is covered to which other range deletes are applied than when
/// they were last examined. Reads files, so no lock may be held.
pub(crate) fn examine(engine: &Engine, table: &TableCore) {
    let (view, applying) = (table.view(), Applying::to(engine, table));
    for part in view.runs.iter().flat_map(|run| &run.parts) {
        let ranges = applied(&table.rules.order, &view, part, &applying);
        let is_known = is_of(&part.file.coverage.lock(), &ranges);
        if !is_known {
            let bytes_in_vain = part.file.coverage.lock().bytes_in_vain;
            let found = coverage(&table.rules.order, part, &ranges, bytes_in_vain);
            *part.file.coverage.lock() = found;
        }
    }
}

fn is_of(known: &Coverage, ranges: &[&RangeDelete]) -> bool {
    known.ranges.iter().copied().eq(ranges.iter().map(|range| range.seq))
}

/// The range deletes that are applied to a part, oldest first.
fn applied<'a>(
    order: &KeyOrder,
    view: &'a TableView,
    part: &PartView,
    applying: &Applying,
) -> Vec<&'a RangeDelete> {
    let facts = part.file.part.facts();
    let newer = view.range_deletes.newer_than(facts.max_seq);
    let met = newer
        .map(|range| &**range)
        .filter(|range| ranges::meets(order, (&part.low, &part.high), (&range.from, &range.to)));
    met.filter(|range| applying.applies(range, facts)).collect()
}

/// How much of a part these range deletes cover. What cannot be read is not proven to be covered:
/// a merge meets the damage, and reports it.
fn coverage(order: &KeyOrder, part: &PartView, ranges: &[&RangeDelete], bytes_in_vain: u64) -> Coverage {
    let spans = joined(order, ranges.iter().map(|range| (&range.from[..], &range.to[..])).collect());
    let facts = part.file.part.facts();
    let seqs = ranges.iter().map(|range| range.seq).collect();
    let mut coverage = Coverage { ranges: seqs, bytes_in_vain, ..Coverage::default() };
    let Ok(shown) = shown_by_index(order, part, &spans) else { return coverage };
    coverage.records = (facts.records as f64 * shown.share) as u64;
    if shown.may_be_whole && bytes_in_vain < facts.file_bytes {
        let mut search = GapSearch::new(&part.file.part);
        match has_none_between(order, part, &spans, &mut search) {
            Ok(true) => (coverage.is_whole, coverage.records) = (true, facts.records),
            Ok(false) => coverage.bytes_in_vain += search.bytes(),
            Err(_) => coverage.bytes_in_vain = u64::MAX,
        }
    }
    coverage
}

/// The keys from the first up to, but not including, the second.
type Span<'a> = (&'a [u8], &'a [u8]);

/// What ranges cover together: disjoint spans, ascending.
fn joined<'a>(order: &KeyOrder, mut spans: Vec<Span<'a>>) -> Vec<Span<'a>> {
    spans.retain(|(from, to)| order.compare(from, to).is_lt());
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

/// Where keys are, seen from disjoint spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// All of them are in one span.
    Within,
    /// None of them is in a span.
    Beside,
    /// That is not known.
    Astride,
}

/// Where the keys from `first` to `last` are, both included.
fn place(order: &KeyOrder, spans: &[Span<'_>], (first, last): (&[u8], &[u8])) -> Place {
    // The one that ends after `first`, so that all before it end there or earlier.
    let is_upto = |key: &[u8], other: &[u8]| order.compare(key, other).is_le();
    let at = spans.partition_point(|(_, to)| is_upto(to, first));
    match spans.get(at) {
        Some((from, to)) if is_upto(from, first) && !is_upto(to, last) => Place::Within,
        Some((from, _)) if is_upto(from, last) => Place::Astride,
        _ => Place::Beside,
    }
}

/// What the index of a part shows of the spans over it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shown {
    /// How much of the part is covered at least. Counts only blocks that are within a span, so that
    /// a merge planned for this always finds some.
    share: f64,
    /// False if some record is surely beside the spans.
    may_be_whole: bool,
}

fn shown_by_index(order: &KeyOrder, part: &PartView, spans: &[Span<'_>]) -> Result<Shown> {
    let file = &part.file.part;
    if spans.is_empty() {
        return Ok(Shown { share: 0.0, may_be_whole: false });
    }
    let is_beside = |key: &[u8]| place(order, spans, (key, key)) == Place::Beside;
    // The lowest visible key of a part that a merge has begun to take over may not be known.
    let is_end_beside = is_beside(&part.high) || (!part.trimmed && is_beside(&part.low));
    let mut shown = Shown { share: 0.0, may_be_whole: !is_end_beside };
    let mut first = part.low.as_slice();
    for (leaf, last) in file.boundaries().enumerate() {
        if order.compare(last, first).is_lt() {
            continue; // all of its keys were taken over
        }
        match place(order, spans, (first, last)) {
            Place::Within => shown.share += 1.0,
            Place::Beside => shown.may_be_whole = false,
            Place::Astride => {
                let separators = file.separators_of(leaf)?.unwrap_or_default();
                let places = places_of_blocks(order, spans, first, &separators);
                let within = places.iter().filter(|place| **place == Place::Within).count();
                shown.share += within as f64 / places.len().max(1) as f64;
                shown.may_be_whole &= !places.contains(&Place::Beside);
            }
        }
        first = last;
    }
    shown.share /= file.boundaries().len().max(1) as f64;
    Ok(shown)
}

/// Where the blocks of a leaf are that end at these separators, from the key `first` on.
fn places_of_blocks(
    order: &KeyOrder,
    spans: &[Span<'_>],
    first: &[u8],
    separators: &[Vec<u8>],
) -> Vec<Place> {
    let visible = separators.partition_point(|last| order.compare(last, first).is_lt());
    let ends = || separators[visible..].iter().map(Vec::as_slice);
    let firsts = std::iter::once(first).chain(ends());
    firsts.zip(ends()).map(|keys| place(order, spans, keys)).collect()
}

/// Whether no key of a part is in the gaps before and between the spans. Reads one block for each,
/// or two.
fn has_none_between(
    order: &KeyOrder,
    part: &PartView,
    spans: &[Span<'_>],
    search: &mut GapSearch<'_>,
) -> Result<bool> {
    let mut covered_to = part.low.as_slice();
    for (from, to) in spans {
        if order.compare(covered_to, from).is_lt() && search.has_between(covered_to, from)? {
            return Ok(false);
        }
        covered_to = to;
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
