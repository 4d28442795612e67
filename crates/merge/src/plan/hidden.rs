//! Hidden values: values that are dead, but a run still points to them, because a newer run has
//! another value for the key, or a delete.
//!
//! Only a merge of both runs drops the older pointer, and only then may the space of the value be
//! freed. Such a merge moves little compared with what it frees: a few dozen bytes for each
//! separated value. So in these tables, runs are merged to free values long before tiers are full:
//!
//! ```text
//!   hidden   bytes of values that newer runs have replaced, estimated from the sketches
//!   bound    h = sqrt( M / (K · V) ), as a share of the live values, where
//!            M: bytes of all runs, V: bytes of the live values, K: `COPY_SLOPE`
//!   range    of the neighbors whose merge uncovers at least a third of the hidden bytes,
//!            those that uncover most for each byte moved
//! ```
//!
//! The bound minimizes the sum of two costs. The first is merging: with a bound of h · V hidden
//! bytes, a merge of all runs is due each time that so much was overwritten, so M / (h · V) bytes
//! are moved for each byte put. The second is copying: hidden values take space, so reclaim must
//! copy more, about K · h bytes for each byte put.
//!
//! Called by [`super::plan`]. The engine calls [`hidden_value_bytes`]: reclaim does not count these
//! bytes as live.

use std::ops::Range;

use super::shape::{Moment, Plan, Planner, Reason, RunSummary, make};

/// K: how many more bytes reclaim copies for each byte put if the space bound is lowered by 1, that
/// is, by the size of the live values. Measured with evenly overwritten keys: 0.94 bytes are copied
/// for each byte put at a bound of 1.4, and 1.3 at 1.3.
const COPY_SLOPE: f64 = 3.5;
/// The lowest and the highest bound on hidden bytes, as a share of the live ones.
const HIDDEN_MIN: f64 = 0.03;
const HIDDEN_MAX: f64 = 0.25;
/// A merge must uncover at least this share of what is hidden.
const UNCOVERED_SHARE: f64 = 1.0 / 3.0;
/// And at least this many times the bytes that it moves.
const UNCOVERED_PER_MOVED: f64 = 2.0;

/// About how many bytes of the values that these runs point to are dead. Counts only pointers that
/// merges could drop now.
pub fn hidden_value_bytes(runs: &[RunSummary], moment: &Moment) -> u64 {
    let apart = |at: usize| is_boundary_between(moment, &runs[at - 1], &runs[at]);
    let hidden: f64 =
        stretches(runs.len(), apart).into_iter().map(|range| Hidden::of(&runs[range]).all()).sum();
    let outdated = runs
        .iter()
        .map(|run| run.value_bytes as f64 * run.outdated.min(run.records) as f64 / run.records.max(1) as f64);
    (hidden + outdated.sum::<f64>()) as u64
}

/// The merge that drops pointers to hidden values, if there are too many of these.
pub(super) fn hidden(planner: &Planner<'_>) -> Option<Plan> {
    let value_bytes: u64 = planner.runs.iter().map(|run| run.value_bytes).sum();
    if value_bytes < planner.options.hidden_bytes_min {
        return None;
    }
    let is_separated = |at: usize| {
        let (newer, older) = (&planner.runs[at - 1], &planner.runs[at]);
        newer.busy || older.busy || is_boundary_between(planner.moment, newer, older)
    };
    let found: Vec<(Range<usize>, Hidden)> = stretches(planner.runs.len(), is_separated)
        .into_iter()
        .map(|range| (range.clone(), Hidden::of(&planner.runs[range])))
        .collect();
    let hidden: f64 = found.iter().map(|(_, hidden)| hidden.all()).sum();
    let alive = (value_bytes as f64 - hidden).max(1.0);
    if hidden < planner.options.hidden_bytes_min as f64 || hidden <= hidden_max(planner, alive) {
        return None;
    }
    let best = found.iter().flat_map(|(stretch, of)| ranges_worth_it(planner, stretch, of, hidden));
    let (_, range) = best.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let target_tier = planner.runs[range.end - 1].tier;
    Some(make(planner.order, planner.runs, range, target_tier, Reason::HiddenValues(hidden / alive)))
}

/// How many bytes may be hidden if this many are live.
fn hidden_max(planner: &Planner<'_>, alive: f64) -> f64 {
    let moved: u64 = planner.runs.iter().map(|run| run.bytes).sum();
    (moved as f64 / (COPY_SLOPE * alive)).sqrt().clamp(HIDDEN_MIN, HIDDEN_MAX) * alive
}

/// The ranges of neighbors in a stretch that are worth merging: each with the bytes that the merge
/// would uncover for each byte that it moves.
fn ranges_worth_it(
    planner: &Planner<'_>,
    stretch: &Range<usize>,
    of: &Hidden,
    hidden: f64,
) -> Vec<(f64, Range<usize>)> {
    let mut worthy = Vec::new();
    for from in 0..stretch.len() {
        for to in from + 2..=stretch.len() {
            let range = stretch.start + from..stretch.start + to;
            let moved: u64 = planner.runs[range.clone()].iter().map(|run| run.bytes).sum();
            let uncovered = of.uncovered(from..to);
            let worth = uncovered / moved.max(1) as f64;
            if uncovered >= UNCOVERED_SHARE * hidden && worth >= UNCOVERED_PER_MOVED {
                worthy.push((worth, range));
            }
        }
    }
    worthy
}

fn is_boundary_between(moment: &Moment, newer: &RunSummary, older: &RunSummary) -> bool {
    moment.boundaries.iter().any(|&boundary| older.max_seq <= boundary && boundary < newer.min_seq)
}

/// The longest ranges of neighbors that are not separated from one another.
fn stretches(runs: usize, is_separated: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let mut stretches = Vec::new();
    let mut start = 0;
    for at in 1..=runs {
        if at == runs || is_separated(at) {
            stretches.push(start..at);
            start = at;
        }
    }
    stretches
}

/// The dead values of some runs, for each pair of runs.
struct Hidden {
    runs: usize,
    /// At `newer * runs + older`: bytes of the values in the older run that the newer run hides.
    /// The newer run is the next newer one that has the key.
    pairs: Vec<f64>,
}

impl Hidden {
    /// The hidden values of these runs, which are neighbors in age, newest first.
    fn of(runs: &[RunSummary]) -> Hidden {
        let mut hidden = Hidden { runs: runs.len(), pairs: vec![0.0; runs.len() * runs.len()] };
        let weight = |run: &RunSummary| run.value_bytes as f64 / run.records.max(1) as f64;
        let threshold = runs.iter().map(|run| run.sketch.threshold()).min().unwrap_or(u64::MAX);
        let mut sample: Vec<(u64, usize)> = Vec::new();
        for (at, run) in runs.iter().enumerate() {
            sample.extend(run.sketch.below(threshold).iter().map(|&hash| (hash, at)));
        }
        sample.sort_unstable();
        let sampled: f64 = sample.iter().map(|&(_, at)| weight(&runs[at])).sum();
        let bytes: u64 = runs.iter().map(|run| run.value_bytes).sum();
        let scale = if sampled > 0.0 { bytes as f64 / sampled } else { 0.0 };
        for pair in sample.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            let (newer, older) = (pair[0].1, pair[1].1);
            hidden.pairs[newer * runs.len() + older] += scale * weight(&runs[older]);
        }
        hidden
    }

    /// All of it.
    fn all(&self) -> f64 {
        self.pairs.iter().sum()
    }

    /// The bytes that a merge of these runs would drop.
    fn uncovered(&self, range: Range<usize>) -> f64 {
        let of = |newer: usize| &self.pairs[newer * self.runs + range.start..newer * self.runs + range.end];
        range.clone().map(|newer| of(newer).iter().sum::<f64>()).sum()
    }
}
