//! What is fixed when a merge begins, and the same for all of its keys; and how its output takes
//! over keys of its inputs.

use std::collections::HashSet;
use std::sync::Arc;

use folddb_base::Seq;
use folddb_base::ids::RunId;
use folddb_layout::manifest_edit::Change;
use folddb_merge::{Plan, RangeDelete, Times};
use folddb_rules::codec::KeyRange;
use folddb_run::PartFacts;

use super::ranges::Applied;
use crate::edit::install::part_state;
use crate::state::catalog::TableCore;
use crate::state::engine::Engine;
use crate::state::key_range;
use crate::state::view::{PartFile, RunView, TableView};

/// What all slices of a merge share.
pub struct MergeBase {
    pub table: Arc<TableCore>,
    pub plan: Plan,
    pub run: RunId,
    /// The age of the oldest input: if the merge is given up after some parts, its output must not
    /// be above an input of a lower tier, or a later merge of its tier would lift old records over
    /// newer ones.
    pub age: Seq,
    /// Whether a live snapshot, or a reader of the past, may distinguish records of the inputs.
    pub keep_seqs: bool,
    /// What is kept of the past, and what has expired.
    pub times: Times,
    /// What share of their bytes the inputs repeat; 0 if a past that is kept may prevent folding
    /// it.
    pub repeated: f64,
    /// The range deletes that the merge applies, oldest first.
    pub range_deletes: Vec<RangeDelete>,
    /// The boundaries when the merge began; a range delete below them no longer serves any
    /// snapshot.
    pub boundaries: Vec<Seq>,
    pub bytes_total: u64,
}

impl MergeBase {
    /// The change that adds a part to its output.
    pub(crate) fn added(&self, part: &PartFile, facts: &PartFacts) -> Change {
        Change::AddPart {
            table: self.table.id,
            run: self.run,
            tier: self.plan.target_tier,
            age: self.age,
            part: part_state(part.number, facts),
        }
    }

    /// The range deletes that no longer hide anything, as far as this merge can know, if it has
    /// applied them to all keys and these still shelter something. Those that are only in the log
    /// are left to a later one.
    pub(crate) fn retired_range_deletes(&self, engine: &Engine, sheltering: HashSet<Seq>) -> Vec<Change> {
        if self.range_deletes.is_empty() {
            return Vec::new();
        }
        // The manifest first: a flush that ends in between adds a range delete together with its
        // run.
        let _manifest = engine.manifest.lock();
        let view = self.table.view();
        let is_other = |run: &&RunView| run.id != self.run && !self.plan.inputs.contains(&run.id);
        let others: Vec<&RunView> = view.runs.iter().filter(is_other).collect();
        let applied = Applied {
            table: &self.table,
            ranges: &self.range_deletes,
            boundaries: &self.boundaries,
            sheltering,
            written: None,
        };
        let idle = applied.idle(&others, None);
        let done = self.range_deletes.iter().zip(idle).filter(|(_, idle)| *idle);
        done.map(|(range, _)| Change::RetireRangeDelete { table: self.table.id, seq: range.seq }).collect()
    }
}

/// The bytes that a merge reads of a part, as `CompactProgress::bytes_done` counts them.
pub(crate) fn taken_in_bytes(facts: &PartFacts) -> u64 {
    facts.key_bytes + facts.payload_bytes
}

/// Whether seqs of other runs are among those of the inputs, as after a merge that was given up.
/// The output has the newest seqs, but also keys that only older runs have; without their own seqs,
/// these would appear newer than their records in other runs.
pub(crate) fn reaches_among_others(view: &TableView, inputs: &[RunId], min_seq: Seq, max_seq: Seq) -> bool {
    let others = view.runs.iter().filter(|run| !inputs.contains(&run.id)).flat_map(|run| &run.parts);
    others
        .map(|part| part.file.part.facts())
        .any(|facts| facts.min_seq <= max_seq && facts.max_seq >= min_seq)
}

/// What is removed from the inputs: everything of the range below `next_key`, or all of it.
pub(crate) fn consumed(
    table: &TableCore,
    inputs: &[RunId],
    range: &KeyRange,
    next_key: Option<&[u8]>,
) -> Vec<Change> {
    let order = &table.rules.order;
    let mut changes = Vec::new();
    let view = table.view();
    for run in view.runs.iter().filter(|run| inputs.contains(&run.id)) {
        for part in run.parts.iter().filter(|part| !key_range::is_before(range, order, &part.high)) {
            let (table, run, file) = (table.id, run.id, part.file.number);
            match next_key {
                Some(next) if order.compare(next, &part.low).is_le() => {}
                Some(next) if order.compare(next, &part.high).is_le() => {
                    changes.push(Change::TrimPart { table, run, file, low: next.to_vec() });
                }
                _ => changes.push(Change::RemovePart { table, run, file }),
            }
        }
    }
    changes
}
