//! What plans are made from, and what a plan is.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

use folddb_base::ids::RunId;
use folddb_base::{Seq, counted, size_text};
use folddb_rules::KeyOrder;

use crate::sketch::{Overlap, Sketch};

/// What a planner knows about a run.
#[derive(Clone, Debug)]
pub struct RunSummary {
    /// Its number.
    pub id: RunId,
    /// The tier it is in.
    pub tier: u8,
    /// Its rank among the runs of the table: higher is newer.
    pub age: Seq,
    /// Bytes of its files. Merging the run moves them.
    pub bytes: u64,
    /// Bytes of the separated values that it points to. Merging the run may free them, but does not
    /// move them.
    pub value_bytes: u64,
    /// Its records.
    pub records: u64,
    /// How many of them are deletes.
    pub deletes: u64,
    /// About how many of them a merge would leave out because they have expired or are outdated.
    pub outdated: u64,
    /// The lowest seq in it.
    pub min_seq: Seq,
    /// The highest seq in it.
    pub max_seq: Seq,
    /// Its lowest key.
    pub low: Vec<u8>,
    /// Its highest key.
    pub high: Vec<u8>,
    /// A sample of its keys.
    pub sketch: Sketch,
    /// The number of its parts.
    pub parts: usize,
    /// True if some of them were written before a rule about parts was altered.
    pub is_old_form: bool,
    /// True while it is an input of a running merge.
    pub busy: bool,
}

/// Options of planning.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeOptions {
    /// How many runs make a tier full: fewer is better for reads, more for writes. Default 8; at
    /// least 2.
    pub merge_factor: usize,
    /// The most runs of a table that a read should visit. Default twice the merge factor, at least
    /// 12.
    pub read_runs_max: usize,
    /// The most inputs of one merge; each takes memory. Default twice the merge factor.
    pub inputs_max: usize,
    /// Obsolete data that are tolerated, as a share of the live data (σ). Default 0.20.
    pub garbage_ratio: f64,
    /// Obsolete bytes that are always tolerated, so that small tables are not merged often. Default
    /// 32 MiB.
    pub garbage_bytes_min: u64,
    /// Bytes of hidden values that are always tolerated; see [`super::hidden`]. Default: no limit.
    pub hidden_bytes_min: u64,
    /// The share that merging frees of the bytes of keys that newer runs also have: all if the
    /// newest value counts or numbers are added, hardly any if writes append to values, none if the
    /// past is kept. See [`crate::freed`]. Default 1.
    pub freed_by_repeat: f64,
    /// A run is mostly deletes if more than this share of its records are. Default 0.5.
    pub delete_share: f64,
}

impl MergeOptions {
    /// The defaults for a merge factor.
    pub fn with_factor(merge_factor: usize) -> MergeOptions {
        let merge_factor = merge_factor.max(2);
        MergeOptions {
            merge_factor,
            read_runs_max: (2 * merge_factor).max(12),
            inputs_max: 2 * merge_factor,
            garbage_ratio: 0.20,
            garbage_bytes_min: 32 << 20,
            hidden_bytes_min: u64::MAX,
            freed_by_repeat: 1.0,
            delete_share: 0.5,
        }
    }

    /// For tables with separated values. A newer record of the key makes such a value dead. This
    /// many bytes of hidden values are always tolerated.
    pub fn hiding_values(mut self, bytes_min: u64) -> MergeOptions {
        self.hidden_bytes_min = bytes_min.max(1);
        self
    }
}

impl Default for MergeOptions {
    fn default() -> MergeOptions {
        MergeOptions::with_factor(8)
    }
}

/// The tier of a run that no merge has made: the tier that a run of its size would have if merges
/// had made it from flushes of `flush_bytes` each.
pub fn tier_of(bytes: u64, flush_bytes: u64, merge_factor: u64) -> u8 {
    let (mut tier, mut reach) = (0, flush_bytes.max(1));
    while bytes > reach {
        reach = reach.saturating_mul(merge_factor.max(2));
        tier += 1;
    }
    tier
}

/// What else a plan depends on.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// The seqs of the live snapshots.
    pub boundaries: Vec<Seq>,
    /// Deletes up to this seq are too old; 0 if deletes may have any age.
    pub deletes_before: Seq,
    /// The number of range deletes that a merge of all runs would drop, if there are more than
    /// tolerated; else 0.
    pub ranges_due: usize,
    /// What gets have cost since the last merge for gets, as the number of bytes that could have
    /// been merged at that cost: see [`Reason::Joined`].
    pub joined_bytes: u64,
}

/// How the inputs become one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// They are read, and folded into new parts.
    Merge,
    /// Their key ranges are disjoint: their parts become one run as they are.
    Join,
}

/// Why a plan was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// The tier has as many runs as the merge factor.
    TierFull,
    /// There are this many runs, more than a read should visit.
    TooManyRuns(usize),
    /// Hidden values are this share of the live ones.
    HiddenValues(f64),
    /// Merging would free this share of the live data.
    Garbage(f64),
    /// Folding the records of several runs has cost gets as much as a merge of this many bytes.
    Joined(u64),
    /// This share of the records of the newest input are deletes.
    ManyDeletes(f64),
    /// The newest input has deletes, and a record that is older than deletes may be.
    OldDeletes,
    /// This share of the records of the newest input is outdated.
    Outdated(f64),
    /// This many range deletes hide what runs hold.
    RangeDeletes(usize),
    /// The caller has requested one run.
    Compact,
}

/// Runs that are to become one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// How.
    pub way: Way,
    /// Why.
    pub reason: Reason,
    /// The inputs, newest first; neighbors in age.
    pub inputs: Vec<RunId>,
    /// The lowest and the highest tier among them.
    pub tiers: (u8, u8),
    /// Their bytes.
    pub bytes: u64,
    /// Their records.
    pub records: u64,
    /// The share of their bytes that belongs to keys that a newer input also has, estimated from
    /// the sketches.
    pub repeated: f64,
    /// The tier of the output.
    pub target_tier: u8,
    /// The age of the output of a join: that of the newest input. The output of a merge gets the
    /// age of the oldest input.
    pub target_age: Seq,
    /// True if no older run overlaps the inputs: then an absent key needs no record.
    pub is_bottom: bool,
}

/// What plans are made from.
pub(super) struct Planner<'a> {
    pub(super) order: &'a KeyOrder,
    pub(super) runs: &'a [RunSummary],
    pub(super) moment: &'a Moment,
    pub(super) options: &'a MergeOptions,
}

/// The plan that makes one run of the runs in `range`.
pub(super) fn make(
    order: &KeyOrder,
    runs: &[RunSummary],
    range: Range<usize>,
    target_tier: u8,
    reason: Reason,
) -> Plan {
    let (inputs, older) = (&runs[range.clone()], &runs[range.end..]);
    let tiers = inputs.iter().map(|run| run.tier);
    Plan {
        way: Way::Merge,
        reason,
        inputs: inputs.iter().map(|run| run.id).collect(),
        tiers: (tiers.clone().min().unwrap_or(0), tiers.max().unwrap_or(0)),
        bytes: inputs.iter().map(|run| run.bytes).sum(),
        records: inputs.iter().map(|run| run.records).sum(),
        repeated: repeated(inputs).share(),
        target_tier,
        target_age: inputs.iter().map(|run| run.age).max().unwrap_or(0),
        is_bottom: !inputs.iter().any(|input| older.iter().any(|run| overlaps(order, input, run))),
    }
}

/// How many bytes of the runs belong to keys that newer ones of them also have.
fn repeated(runs: &[RunSummary]) -> Overlap {
    let per_record = |run: &RunSummary| run.bytes as f64 / run.records.max(1) as f64;
    Overlap::between(runs.iter().map(|run| (&run.sketch, per_record(run))))
}

/// Whether the key ranges of two runs overlap.
pub(super) fn overlaps(order: &KeyOrder, a: &RunSummary, b: &RunSummary) -> bool {
    order.compare(&a.low, &b.high) != Ordering::Greater && order.compare(&b.low, &a.high) != Ordering::Greater
}

/// True if the key ranges of no two runs overlap.
pub fn are_disjoint(order: &KeyOrder, runs: &[RunSummary]) -> bool {
    let mut runs: Vec<&RunSummary> = runs.iter().collect();
    runs.sort_by(|a, b| order.compare(&a.low, &b.low));
    runs.windows(2).all(|pair| order.compare(&pair[0].high, &pair[1].low) == Ordering::Less)
}

/// `merge 8 runs of tier 0 (1.2 GB) into tier 1: the tier is full`
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.way {
            Way::Join => "join",
            Way::Merge if self.inputs.len() == 1 => "rewrite",
            Way::Merge => "merge",
        };
        write!(f, "{verb} {} of tier", counted(self.inputs.len() as u64, "run"))?;
        match self.tiers {
            (low, high) if low == high => write!(f, " {low}")?,
            (low, high) => write!(f, "s {low}-{high}")?,
        }
        let bottom = if self.is_bottom { ", nothing below" } else { "" };
        write!(f, " ({}) into tier {}{bottom}: {}", size_text(self.bytes), self.target_tier, self.reason)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::TierFull => f.write_str("the tier is full"),
            Reason::TooManyRuns(runs) => write!(f, "{runs} runs are too many for reads"),
            Reason::HiddenValues(ratio) => {
                write!(f, "dead values are {:.0} % of the live ones", 100.0 * ratio)
            }
            Reason::Garbage(ratio) => write!(f, "garbage is {:.0} % of the live data", 100.0 * ratio),
            Reason::Joined(bytes) => {
                write!(
                    f,
                    "gets have read several runs for one key, which cost as much as merging {}",
                    size_text(*bytes)
                )
            }
            Reason::ManyDeletes(share) => write!(f, "{:.0} % of the records are deletes", 100.0 * share),
            Reason::OldDeletes => f.write_str("deletes are older than the limit"),
            Reason::Outdated(share) => write!(f, "{:.0} % of the records are outdated", 100.0 * share),
            Reason::RangeDeletes(count) => write!(f, "{count} range deletes hide what it holds"),
            Reason::Compact => f.write_str("asked for one run"),
        }
    }
}
