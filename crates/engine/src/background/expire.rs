//! Expiry: frees the space of expired values, and of a past that is no longer kept.
//!
//! Readers ignore expired values at once, even while these are on the disk. Background work frees
//! the space:
//!
//! 1. A part is dropped unread if everything in it has expired, and so has everything under it in
//!    older parts: then nothing can reappear. Nor may any later write have met a live value of it
//!    (`clock.rs`).
//! 2. Merges drop expired values that they meet; if the facts of a run show that much of it would
//!    be dropped, a merge is planned for that alone. The estimate assumes that deadlines and seqs
//!    are spread evenly between the first and the last.
//!
//! Called by `drop_parts` and `merge`.

use folddb_base::Seq;
use folddb_layout::part::StampFacts;
use folddb_merge::RunSummary;
use folddb_run::PartFacts;

use crate::state::catalog::TableCore;
use crate::state::clock;
use crate::state::engine::Engine;
use crate::state::view::{PartView, TableView};

/// Estimates for each run how many of its records are outdated by time.
pub(crate) fn count_outdated(engine: &Engine, table: &TableCore, runs: &mut [RunSummary]) {
    let view = table.view();
    let since = clock::times_to_keep_now(engine, table).since;
    for summary in runs.iter_mut() {
        let Some(run) = view.runs.iter().find(|run| run.id == summary.id) else { continue };
        let facts = || run.parts.iter().map(|part| part.file.part.facts());
        if table.has_stamps && facts().any(|facts| facts.stamps.is_some_and(|stamps| stamps.expiring > 0)) {
            let sweep_ms = clock::sweepable_ms(engine, table, &|other| other.id == run.id);
            summary.outdated +=
                facts().filter_map(|facts| facts.stamps).map(|s| expired(&s, sweep_ms)).sum::<u64>();
        }
        if since < Seq::MAX {
            summary.outdated += facts().map(|facts| past_beyond(facts, since)).sum::<u64>();
        }
    }
}

/// The last deadline of a part in which all values have one; deletes need none.
pub(crate) fn deadline_of_all(facts: &PartFacts) -> Option<u64> {
    let stamps = facts.stamps.filter(|stamps| stamps.expiring > 0)?;
    (stamps.expiring + facts.deletes == facts.records).then_some(stamps.max_deadline_ms)
}

pub fn is_over(part: &PartView, sweep_ms: u64) -> bool {
    deadline_of_all(part.file.part.facts()).is_some_and(|deadline| deadline <= sweep_ms)
}

/// Whether an older run has something in the range of a part that has not expired.
pub(crate) fn covers_what_lasts(
    table: &TableCore,
    view: &TableView,
    run: usize,
    part: &PartView,
    sweep_ms: u64,
) -> bool {
    let meets = |older: &&PartView| older.overlaps(part, &table.rules.order);
    view.runs[run + 1..]
        .iter()
        .flat_map(|older| &older.parts)
        .filter(meets)
        .any(|older| !is_over(older, sweep_ms))
}

/// About how many records of a part have expired by this time, and had not when it was written.
fn expired(stamps: &StampFacts, sweep_ms: u64) -> u64 {
    let from = stamps.min_deadline_ms.max(stamps.swept_ms.saturating_add(1));
    between(stamps.expiring, (stamps.min_deadline_ms, stamps.max_deadline_ms), (from, sweep_ms))
}

/// About how many records of a part a merge that keeps the past from `since` on would fold or drop,
/// and the merge that wrote it did not.
fn past_beyond(facts: &PartFacts, since: Seq) -> u64 {
    let repeats = facts.records.saturating_sub(facts.keys) + facts.deletes;
    let from = facts.min_seq.max(facts.kept_since.saturating_add(1));
    between(repeats.min(facts.records), (facts.min_seq, facts.max_seq), (from, since))
}

/// How many of `count` things, spread evenly over a span, are in a part of it, both ends included.
fn between(count: u64, (first, last): (u64, u64), (from, to): (u64, u64)) -> u64 {
    let (from, to) = (from.max(first), to.min(last));
    if count == 0 || from > to || first > last {
        return 0;
    }
    (count as f64 * (to - from + 1) as f64 / (last - first + 1) as f64) as u64
}

#[cfg(test)]
mod tests;
