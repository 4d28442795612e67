//! Which runs to merge next: a pure function from the runs of a table to a printable plan.
//!
//! The shape is lazy leveling (Dayan and Idreos, Dostoevsky, SIGMOD 2018): tiers of up to T runs,
//! and the bottom, the oldest run. Other runs are merged into the bottom only if that pays. The
//! reasons for a merge, in this order:
//!
//! 1. *A tier is full*: it has T runs. They become one run of the next tier. Lower tiers are first:
//!    their merges are small, and writers wait for them.
//! 2. *Reads*: there are more runs than a read should visit. Of the merges that lower the number,
//!    the one that moves the fewest useless bytes for each run saved is chosen. Merging n of the T
//!    runs of a tier early moves (1 - n/T) of the bytes uselessly and saves n - 1 runs; merging two
//!    neighbors that stay in their tier moves all of them uselessly.
//! 3. *Dead values*: runs point to more dead separated values than is tolerated: see [`hidden`].
//! 4. *Garbage*: merging would free more than σ of the live data. Sketches show how many keys the
//!    runs have in common; the last merges show how much of these bytes merging frees
//!    ([`crate::freed`]). The oldest such runs become one. This never happens if nothing is
//!    overwritten, or if writes append to values.
//! 5. *Gets*: where garbage is tolerated, each get of a key that is repeated folds records of many
//!    runs. When gets have cost as much as a merge of the oldest runs, as many as one merge takes,
//!    these become one.
//! 6. *Deletes*: a run consists mostly of deletes. It is merged down to the oldest run that it
//!    overlaps, or rewritten alone if there is none.
//! 7. *Time*: so much of a run has expired, or is older than the past that the table keeps, that it
//!    is worth rewriting. It is merged down as in 6.
//!
//! Before all of them, *range deletes*: if there are more than tolerated, and not more runs than a
//! read should visit, all runs become one.
//!
//! If the key ranges of the runs are disjoint, merges for the reasons 1 and 2 *join* them: their
//! parts become one run as they are, without any I/O.
//!
//! A live snapshot keeps versions from folding, so no plan is made that it would make useless:
//! garbage counts only between runs with no boundary between them, and deletes wait until no
//! boundary is among the records that they hide. Every plan except the rewriting of one run leaves
//! fewer runs, and that one leaves no deletes or nothing outdated, so planning terminates. No plan
//! includes a run that is an input of a running merge; background work may carry out several plans
//! at the same time.

mod shape;
pub mod hidden;

use std::ops::Range;

use folddb_rules::KeyOrder;

use self::shape::{Planner, make, overlaps};
use crate::sketch::Overlap;

pub use shape::{MergeOptions, Moment, Plan, Reason, RunSummary, Way, are_disjoint, tier_of};

/// The next plan for a table; none if there is nothing to do. `runs` are all its runs, newest
/// first.
pub fn plan(order: &KeyOrder, runs: &[RunSummary], moment: &Moment, options: &MergeOptions) -> Option<Plan> {
    let planner = Planner { order, runs, moment, options };
    if moment.ranges_due > 0 && !runs.is_empty() && runs.len() <= options.read_runs_max.max(1) {
        return planner.range_deletes();
    }
    planner
        .full_tier()
        .or_else(|| planner.too_many_runs())
        .or_else(|| hidden::hidden(&planner))
        .or_else(|| planner.garbage())
        .or_else(|| planner.joined())
        .or_else(|| planner.deletes())
        .or_else(|| planner.outdated())
        .and_then(|plan| planner.in_order(plan))
}

/// How many bytes the merge for gets (5) would move; none if there is none.
pub fn joined_price(
    order: &KeyOrder,
    runs: &[RunSummary],
    moment: &Moment,
    options: &MergeOptions,
) -> Option<u64> {
    let planner = Planner { order, runs, moment, options };
    planner.joined_range().map(|range| planner.bytes_of(&range))
}

/// The plan that makes one run of all runs. None while a merge is running, or if there is only one
/// run, it has no deletes and hardly any old versions, and all of it was written by the present
/// rules.
pub fn compact_plan(order: &KeyOrder, runs: &[RunSummary]) -> Option<Plan> {
    let settled = match runs {
        [] => true,
        // With a tenth more records than keys, it has versions that a snapshot kept. The sketch has
        // an error of 3 %.
        [run] => !run.is_old_form && run.deletes == 0 && run.records as f64 <= 1.1 * run.sketch.distinct(),
        _ => false,
    };
    if settled || runs.iter().any(|run| run.busy) {
        return None;
    }
    let target_tier = runs.iter().map(|run| run.tier).max().unwrap_or(0).max(1);
    Some(make(order, runs, 0..runs.len(), target_tier, Reason::Compact))
}

impl Planner<'_> {
    /// The same plan, with the runs before its inputs that its output would wrongly come before.
    ///
    /// Of runs of one age that with the highest number is the newest, and the output has a new one.
    /// Such runs mostly share no keys: a merge that was broken off leaves its output, and what is
    /// left of its oldest input, at one age. But newer runs may have been merged with one of them
    /// since. None while one of that age is in a merge.
    fn in_order(&self, plan: Plan) -> Option<Plan> {
        let first = self.runs.iter().position(|run| plan.inputs.first() == Some(&run.id))?;
        let end = first + plan.inputs.len();
        let age = self.runs[first].age;
        let peers = (0..first).rev().take_while(|&index| self.runs[index].age == age).last();
        let peers = peers.unwrap_or(first)..first;
        if self.runs[peers.clone()].iter().any(|run| run.busy) {
            return None;
        }
        let mut from = first;
        let meets = |from: usize| {
            let is_met = |index: &usize| {
                self.runs[from..end].iter().any(|run| overlaps(self.order, &self.runs[*index], run))
            };
            (peers.start..from).find(is_met)
        };
        while let Some(newer) = meets(from) {
            from = newer;
        }
        match from == first {
            true => Some(plan),
            false => Some(make(self.order, self.runs, from..end, plan.target_tier, plan.reason)),
        }
    }

    /// Merges all runs into one, which makes range deletes unnecessary. It waits until no run is in
    /// a merge. Until then nothing else is planned: otherwise that might never happen.
    fn range_deletes(&self) -> Option<Plan> {
        if self.runs.iter().any(|run| run.busy) {
            return None;
        }
        let target_tier = self.runs.iter().map(|run| run.tier).max().unwrap_or(0);
        let reason = Reason::RangeDeletes(self.moment.ranges_due);
        Some(make(self.order, self.runs, 0..self.runs.len(), target_tier, reason))
    }

    fn full_tier(&self) -> Option<Plan> {
        let full = |group: &Group| group.count >= self.options.merge_factor.max(2);
        let group = self.groups().into_iter().filter(full).min_by_key(|group| group.tier)?;
        // The oldest of them, if there are more than one merge may take.
        let start = group.range.end.saturating_sub(self.options.inputs_max.max(2)).max(group.range.start);
        Some(self.join_or_merge(start..group.range.end, group.tier.saturating_add(1), Reason::TierFull))
    }

    fn too_many_runs(&self) -> Option<Plan> {
        // Neighbors in a running merge will soon be one run.
        let soon_gone = self.runs.windows(2).filter(|pair| pair[0].busy && pair[1].busy).count();
        let runs = self.runs.len() - soon_gone;
        if runs <= self.options.read_runs_max.max(1) {
            return None;
        }
        let promoted = self.groups().into_iter().filter(|group| group.range.len() >= 2).map(|group| {
            let fill = group.count as f64 / self.options.merge_factor.max(2) as f64;
            (
                self.waste_per_run(&group.range, (1.0 - fill).max(0.0)),
                group.tier.saturating_add(1),
                group.range,
            )
        });
        let idle_pair = |index: &usize| !self.runs[*index].busy && !self.runs[index + 1].busy;
        let absorbed = (0..self.runs.len() - 1).filter(idle_pair).map(|index| {
            let range = index..index + 2;
            let target_tier = self.runs[index].tier.max(self.runs[index + 1].tier);
            (self.waste_per_run(&range, 1.0), target_tier, range)
        });
        let (_, target_tier, range) = promoted.chain(absorbed).min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(self.join_or_merge(range, target_tier, Reason::TooManyRuns(runs)))
    }

    /// Bytes that are moved uselessly for each run saved, if this share of the bytes is.
    fn waste_per_run(&self, range: &Range<usize>, share: f64) -> f64 {
        self.bytes_of(range) as f64 * share / (range.len() - 1) as f64
    }

    /// For each tier and each range of idle runs: the runs of the tier in that range. The runs of a
    /// tier are neighbors, except for runs that a canceled merge left between them, which are
    /// included.
    fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut stretch_start = 0;
        for (index, run) in self.runs.iter().enumerate() {
            if run.busy {
                stretch_start = index + 1;
                continue;
            }
            let same = |group: &&mut Group| group.tier == run.tier && group.range.start >= stretch_start;
            match groups.iter_mut().rev().find(same) {
                Some(group) => {
                    group.range.end = index + 1;
                    group.count += 1;
                }
                None => groups.push(Group { tier: run.tier, range: index..index + 1, count: 1 }),
            }
        }
        groups
    }

    fn garbage(&self) -> Option<Plan> {
        if self.options.freed_by_repeat <= 0.0 {
            return None;
        }
        self.stripes().find_map(|stripe| self.garbage_of_stripe(stripe.start, stripe.end))
    }

    /// The groups of neighboring runs without a snapshot between them, oldest first.
    fn stripes(&self) -> impl Iterator<Item = Range<usize>> {
        let mut end = self.runs.len();
        std::iter::from_fn(move || {
            let stripe = (end > 0).then(|| self.stripe_start(end)..end)?;
            end = stripe.start;
            Some(stripe)
        })
    }

    /// The first of the runs up to `end` that have no snapshot between them.
    fn stripe_start(&self, end: usize) -> usize {
        let apart = |newer: &RunSummary, older: &RunSummary| {
            self.moment
                .boundaries
                .iter()
                .any(|&boundary| older.max_seq <= boundary && boundary < newer.min_seq)
        };
        (1..end).rev().find(|&index| apart(&self.runs[index - 1], &self.runs[index])).unwrap_or(0)
    }

    /// The smallest group of runs, beginning with the oldest of the stripe, that repeat one another
    /// too much.
    fn garbage_of_stripe(&self, start: usize, end: usize) -> Option<Plan> {
        let idle = |index: &usize| !self.runs[*index].busy;
        let first = (start..end).rev().take_while(idle).last()?;
        if first + 1 >= end || self.garbage_beyond_bounds(first..end).is_none() {
            return None;
        }
        (first..end - 1).rev().find_map(|from| {
            let ratio = self.garbage_beyond_bounds(from..end)?;
            Some(make(self.order, self.runs, from..end, self.runs[end - 1].tier, Reason::Garbage(ratio)))
        })
    }

    fn garbage_beyond_bounds(&self, range: Range<usize>) -> Option<f64> {
        let runs = &self.runs[range];
        let held_bytes = |run: &RunSummary| run.bytes + run.value_bytes;
        let per_record = |run: &RunSummary| held_bytes(run) as f64 / run.records.max(1) as f64;
        let repeated = Overlap::between(runs.iter().map(|run| (&run.sketch, per_record(run))));
        let overlap = repeated.freeing(self.options.freed_by_repeat);
        let bytes: u64 = runs.iter().map(held_bytes).sum();
        let beyond = overlap.ratio() > self.options.garbage_ratio
            && bytes as f64 * overlap.share() >= self.options.garbage_bytes_min as f64;
        beyond.then(|| overlap.ratio())
    }

    /// The merge that gets have paid for (5).
    fn joined(&self) -> Option<Plan> {
        let range = self.joined_range()?;
        let price = self.bytes_of(&range);
        let target_tier = self.runs[range.end - 1].tier;
        (self.moment.joined_bytes >= price)
            .then(|| make(self.order, self.runs, range, target_tier, Reason::Joined(price)))
    }

    /// The runs to merge for gets: the oldest neighbors that are in no merge and that no snapshot
    /// separates, as many as one merge takes.
    fn joined_range(&self) -> Option<Range<usize>> {
        self.stripes().find_map(|stripe| {
            let range =
                stripe.start.max(stripe.end.saturating_sub(self.options.inputs_max.max(2)))..stripe.end;
            let runs = &self.runs[range.clone()];
            let is_free = runs.len() >= 2 && !runs.iter().any(|run| run.busy);
            (is_free && !are_disjoint(self.order, runs)).then_some(range)
        })
    }

    fn bytes_of(&self, range: &Range<usize>) -> u64 {
        self.runs[range.clone()].iter().map(|run| run.bytes).sum()
    }

    fn deletes(&self) -> Option<Plan> {
        (0..self.runs.len()).rev().find_map(|index| {
            let range = index..self.last_overlapped(index) + 1;
            let reason = self.delete_reason(&self.runs[range.clone()])?;
            let range = if reason == Reason::OldDeletes { self.with_younger_deletes(range) } else { range };
            let target_tier = self.runs[range.clone()].iter().map(|run| run.tier).max().unwrap_or(0);
            Some(make(self.order, self.runs, range, target_tier, reason))
        })
    }

    /// The same runs, and newer ones up to one that also has deletes: otherwise its deletes would
    /// move all of the older runs once more as soon as they are old enough. None of the newer runs
    /// may overlap a run that is older than the range, because its deletes would have to stay.
    fn with_younger_deletes(&self, range: Range<usize>) -> Range<usize> {
        let is_free = |first: &usize| {
            let runs = &self.runs[*first..range.end];
            let meets_older = |index: usize| self.last_overlapped(index) >= range.end;
            runs.len() <= self.options.inputs_max
                && runs[0].deletes > 0
                && !runs.iter().any(|run| run.busy)
                && !self.is_pinned(runs)
                && !(*first..range.start).any(meets_older)
        };
        (0..range.start).find(is_free).unwrap_or(range.start)..range.end
    }

    fn outdated(&self) -> Option<Plan> {
        let bytes_min = self.options.garbage_bytes_min.min(self.options.hidden_bytes_min);
        (0..self.runs.len()).rev().find_map(|index| {
            let run = &self.runs[index];
            let share = run.outdated as f64 / run.records.max(1) as f64;
            let bytes = (run.bytes + run.value_bytes) as f64 * share;
            let is_much = share > self.options.delete_share
                || (share > self.options.garbage_ratio && bytes >= bytes_min as f64);
            let range = index..self.last_overlapped(index) + 1;
            if !is_much || self.runs[range.clone()].iter().any(|run| run.busy) {
                return None;
            }
            let target_tier = self.runs[range.end - 1].tier;
            Some(make(self.order, self.runs, range, target_tier, Reason::Outdated(share)))
        })
    }

    /// The oldest run that overlaps a run; the run itself if there is none.
    fn last_overlapped(&self, index: usize) -> usize {
        let run = &self.runs[index];
        let meets = |older: &usize| overlaps(self.order, run, &self.runs[*older]);
        (index + 1..self.runs.len()).rev().find(meets).unwrap_or(index)
    }

    /// Why the deletes of the newest of `runs` should be merged with the others now; none if they
    /// should not.
    fn delete_reason(&self, runs: &[RunSummary]) -> Option<Reason> {
        let newest = runs.first()?;
        if newest.deletes == 0 || runs.iter().any(|run| run.busy) || self.is_pinned(runs) {
            return None;
        }
        if newest.min_seq <= self.moment.deletes_before && self.moment.deletes_before > 0 {
            return Some(Reason::OldDeletes);
        }
        let records: u64 = runs.iter().map(|run| run.records).sum();
        let share = newest.deletes as f64 / newest.records.max(1) as f64;
        // A few deletes are not worth moving a large run, even if they are most of their run.
        let worth = newest.deletes as f64 >= 0.1 * self.options.garbage_ratio * records as f64;
        (share > self.options.delete_share && worth).then_some(Reason::ManyDeletes(share))
    }

    /// True if a snapshot is among the records of `runs`: it may be between a delete and what that
    /// hides.
    fn is_pinned(&self, runs: &[RunSummary]) -> bool {
        let min_seq = runs.iter().map(|run| run.min_seq).min().unwrap_or(0);
        let max_seq = runs.iter().map(|run| run.max_seq).max().unwrap_or(0);
        self.moment.boundaries.iter().any(|&boundary| min_seq <= boundary && boundary < max_seq)
    }

    fn join_or_merge(&self, range: Range<usize>, target_tier: u8, reason: Reason) -> Plan {
        let way = if are_disjoint(self.order, &self.runs[range.clone()]) { Way::Join } else { Way::Merge };
        Plan { way, ..make(self.order, self.runs, range, target_tier, reason) }
    }
}

/// The idle runs of one tier, and the runs between them.
struct Group {
    tier: u8,
    range: Range<usize>,
    /// Runs of the tier itself.
    count: usize,
}

#[cfg(test)]
#[path = "plan/tests.rs"]
mod tests;
