//! Compaction of a range of keys on request: afterwards one run has all its records, folded.
//!
//! A merge takes keys away from the front of its inputs, part by part, so a part may only be cut at
//! its front. One that begins before the range is cut in two first: a merge of its run alone moves
//! the keys before the range to a part of their own. Then one merge takes the range out of all runs
//! that have some of it.
//!
//! ```text
//!   runs          newer  [----------------]            [---|------------]           [---]        [---]
//!                 older  [------][--------]   split    [------][--------]   merge   [------]     [---]
//!                                                                                          [----]
//!   range                    |-------|
//! ```
//!
//! Each leaves a run with keys that its inputs no longer have. It is as old as the oldest of them,
//! which it joins without being read, unless other work has taken one of the two meanwhile.
//!
//! Runs of one age are in the order of their numbers, and what a step leaves has a new one. So if
//! some of one age share keys, these are merged first.
//!
//! Runs that are flushed meanwhile stay out, so the steps are at most one for each run that was
//! there, and one. While it runs, background work begins no merge of the table up to the last step,
//! as for `compact`. Range deletes stay: they may hide records outside of the range. Called by
//! `table`.

use std::ops::Bound;
use std::sync::Arc;

use folddb_base::ids::RunId;
use folddb_base::{Error, Result, Seq};
use folddb_merge::plan::{Reason, Way};
use folddb_merge::{Plan, RunSummary};
use folddb_rules::KeyOrder;
use folddb_rules::codec::KeyRange;

use crate::background::compact::{Claim, Report, drive, free_runs, wait_for};
use crate::background::state::Background;
use crate::background::{dead_segments, merge, scheduler};
use crate::state::catalog::TableCore;
use crate::state::key_range;
use crate::state::view::{PartView, RunView, TableView};

/// What is done next.
#[derive(Debug, PartialEq)]
struct Step {
    inputs: Vec<RunId>,
    range: KeyRange,
    /// The range itself, and not what comes before it in a part.
    is_last: bool,
}

/// Merges everything in a range of a table into one run, at once. It calls `progress` after every
/// step and while it waits; that may stop it, and what is done by then stays done.
pub fn compact_range(
    background: &Background,
    table: &Arc<TableCore>,
    range: &KeyRange,
    progress: Report<'_>,
) -> Result<()> {
    let engine = &background.engine;
    if table.hashed.is_some() {
        let message = format!("table `{}` is hashed: it has no ranges of keys", table.name);
        return Err(Error::invalid(message).advise("compact the whole table"));
    }
    let range = from_a_key(range);
    if let Bound::Included(low) = &range.low
        && key_range::is_behind(&range, &table.rules.order, low)
    {
        return Ok(()); // no key is in it
    }
    scheduler::flush_all(background)?;
    let Some(claim) = wait_for(engine, table, progress, || Ok(Claim::take(background, table.id)))? else {
        return Ok(());
    };
    let Some(newest) = table.view().runs.iter().map(|run| run.age).max() else { return Ok(()) };
    loop {
        let ready = || try_plan(background, table, &range, newest);
        let Some(Some((step, plan))) = wait_for(engine, table, progress, ready)? else { return Ok(()) };
        if step.is_last {
            claim.has_inputs(&plan);
        }
        let job = merge::job_of_range(background, table, plan.clone(), step.range)?;
        let output = job.base.run;
        let is_done = drive(background, job, progress)?;
        join(background, table, &plan, output)?;
        if step.is_last || !is_done {
            return dead_segments::drop_dead_values(engine).map(drop);
        }
    }
}

/// The same range, with a lower bound that parts can be cut at.
fn from_a_key(range: &KeyRange) -> KeyRange {
    let low = match &range.low {
        Bound::Excluded(key) => Bound::Included(key.clone()),
        low => low.clone(),
    };
    KeyRange { low, high: range.high.clone() }
}

/// The next step with its reserved inputs, or nothing to do, as soon as no other merge has any run
/// of the table. Runs that are younger than `newest` are left as they are.
fn try_plan(
    background: &Background,
    table: &TableCore,
    range: &KeyRange,
    newest: Seq,
) -> Result<Option<Option<(Step, Plan)>>> {
    let (mut step, mut is_free) = (None, false);
    let plan = free_runs(background, table, |runs| {
        is_free = !runs.iter().any(|run| run.busy);
        step = is_free.then(|| next_step(&table.rules.order, &table.view(), range, newest)).flatten();
        step.as_ref().map(|step| plan_of(step, runs))
    })?;
    Ok(is_free.then(|| step.zip(plan)))
}

/// What a view needs next, so that of the runs up to the newest one, one has all of the range.
fn next_step(order: &KeyOrder, view: &TableView, range: &KeyRange, newest: Seq) -> Option<Step> {
    let meets = |part: &&PartView| key_range::meets(range, order, part);
    let old_enough = view.runs.iter().filter(|run| run.age <= newest);
    let met: Vec<&RunView> = old_enough.filter(|run| run.parts.iter().any(|part| meets(&part))).collect();
    let facts = met.iter().flat_map(|run| &run.parts).filter(meets).map(|part| part.file.part.facts());
    // As for a whole table: a tenth more records than keys may be versions that a snapshot kept.
    let (deletes, records, keys) =
        facts.fold((0, 0, 0), |sum, one| (sum.0 + one.deletes, sum.1 + one.records, sum.2 + one.keys));
    if met.is_empty() || (met.len() == 1 && deletes == 0 && records as f64 <= 1.1 * keys as f64) {
        return None;
    }
    let peers = |run: &RunView| {
        let age = run.age;
        view.runs.iter().filter(move |peer| peer.age == age)
    };
    let shares_keys = |run: &&&RunView| peers(run).any(|peer| peer.id != run.id && overlap(order, run, peer));
    if let Some(run) = met.iter().find(shares_keys) {
        let inputs = peers(run).map(|run| run.id).collect();
        return Some(Step { inputs, range: KeyRange::all(), is_last: false });
    }
    let begins_earlier = |part: &&PartView| meets(part) && key_range::is_before(range, order, &part.low);
    let cut = met.iter().find_map(|run| Some((run.id, run.parts.iter().find(begins_earlier)?)));
    if let (Some((run, part)), Bound::Included(from)) = (cut, &range.low) {
        let before = KeyRange { low: Bound::Included(part.low.clone()), high: Bound::Excluded(from.clone()) };
        return Some(Step { inputs: vec![run], range: before, is_last: false });
    }
    Some(Step { inputs: met.iter().map(|run| run.id).collect(), range: range.clone(), is_last: true })
}

/// Whether two runs may share keys.
fn overlap(order: &KeyOrder, a: &RunView, b: &RunView) -> bool {
    let ends = |run: &RunView| Some((run.parts.first()?.low.clone(), run.parts.last()?.high.clone()));
    let (Some((low, high)), Some((other_low, other_high))) = (ends(a), ends(b)) else { return false };
    order.compare(&low, &other_high).is_le() && order.compare(&other_low, &high).is_le()
}

/// The plan of a step. Everything that is older than the whole range is among the inputs.
fn plan_of(step: &Step, runs: &[RunSummary]) -> Plan {
    let inputs = || runs.iter().filter(|run| step.inputs.contains(&run.id));
    let tiers = inputs().map(|run| run.tier);
    let tiers = (tiers.clone().min().unwrap_or(0), tiers.max().unwrap_or(0));
    Plan {
        way: Way::Merge,
        reason: Reason::Compact,
        inputs: inputs().map(|run| run.id).collect(),
        tiers,
        bytes: inputs().map(|run| run.bytes).sum(),
        records: inputs().map(|run| run.records).sum(),
        repeated: 0.0,
        target_tier: inputs().next_back().map_or(0, |run| run.tier),
        target_age: inputs().map(|run| run.age).min().unwrap_or(0),
        is_bottom: step.is_last,
    }
}

/// Makes one run of the output and the oldest input, which share no keys.
fn join(background: &Background, table: &TableCore, plan: &Plan, output: RunId) -> Result<()> {
    let Some(&oldest) = plan.inputs.last() else { return Ok(()) };
    let both = merge::reserve(background, table, |runs| {
        let both: Vec<&RunSummary> = runs.iter().filter(|run| [oldest, output].contains(&run.id)).collect();
        let is_free = both.len() == 2 && !both.iter().any(|run| run.busy);
        let inputs = both.iter().map(|run| run.id).collect();
        is_free.then(|| Plan { way: Way::Join, inputs, ..plan.clone() })
    });
    let Some(both) = both else { return Ok(()) };
    let joined = merge::join_runs(&background.engine, table, &both);
    merge::release(background, table.id, &both, None);
    joined
}
