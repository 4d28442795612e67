//! Which merges of a store are running, planned or given up, and the backlog of each table.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use folddb_base::ids::RunId;
use folddb_base::{Error, TableId};
use folddb_merge::Plan;
use folddb_merge::plan::Reason;

use crate::background::merge_base;
use crate::background::merge_job::MergeJob;
use crate::background::split::{Slice, Split};
use crate::state::catalog::TableCore;

/// The merges of a store.
#[derive(Default)]
pub struct Merges {
    /// Begun, and to be resumed: for each thread at most one per tier, since each holds memory for
    /// every input.
    pub waiting: Vec<MergeJob>,
    /// Those in slices, from their first slice to their last.
    pub splits: Vec<Arc<Split>>,
    /// Planned, with their inputs reserved, and not begun.
    pub planned: Vec<(Arc<TableCore>, Plan)>,
    pub busy: HashSet<(TableId, RunId)>,
    /// Tables that a caller compacts, or waits to compact.
    pub compacted: HashMap<TableId, Turn>,
    /// Tables whose merges failed for a reason that a retry does not fix.
    pub given_up: HashMap<TableId, Error>,
    /// Examined tables for which more may become due when snapshots are taken or released.
    pub resting: BTreeSet<TableId>,
    /// The same, if time alone may make more due, too.
    pub timed: BTreeSet<TableId>,
    /// The version of the snapshots, and the second, of the last look at these.
    pub examined_at: (u64, u64),
    /// The backlog of each table.
    pub behind: Behind,
}

impl Merges {
    /// Takes the merge of the lowest tier. In a tier, those that are begun come before others, so
    /// that each thread never begins more than there are tiers, even with many tables to merge; and
    /// slices of a merge that may begin before those that have begun, so that several run at once.
    /// What has begun takes turns.
    pub(crate) fn take_next(&mut self) -> Option<Next> {
        let slices = (0..self.splits.len()).filter(|&index| self.splits[index].may_begin());
        let slices = slices.map(|index| (self.splits[index].base.plan.target_tier, 0, index));
        let begun =
            (0..self.waiting.len()).map(|index| (self.waiting[index].base.plan.target_tier, 1, index));
        let planned = (0..self.planned.len()).map(|index| (self.planned[index].1.target_tier, 2, index));
        match slices.chain(begun).chain(planned).min()? {
            (_, 0, index) => self.splits[index].begin().map(Next::Slice),
            (_, 1, index) => Some(Next::Begun(Box::new(self.waiting.remove(index)))),
            (_, _, index) => {
                let (table, plan) = self.planned.remove(index);
                Some(Next::Planned(table, plan))
            }
        }
    }

    /// Takes the next thing to do for one merge in slices.
    pub(crate) fn take_next_of(&mut self, split: &Arc<Split>) -> Option<Next> {
        if let Some(slice) = split.begin() {
            return Some(Next::Slice(slice));
        }
        let is_of = |job: &MergeJob| job.slice.as_ref().is_some_and(|slice| Arc::ptr_eq(&slice.split, split));
        let index = self.waiting.iter().position(is_of)?;
        Some(Next::Begun(Box::new(self.waiting.remove(index))))
    }

    /// Notes whether more may become due for an examined table, and whether time alone may cause
    /// that.
    pub fn rest(&mut self, table: TableId, may_be_due: Option<bool>) {
        match may_be_due {
            Some(_) => self.resting.insert(table),
            None => self.resting.remove(&table),
        };
        match may_be_due {
            Some(true) => self.timed.insert(table),
            _ => self.timed.remove(&table),
        };
    }

    /// Whether a running or planned merge uncovers dead values.
    pub(crate) fn uncovers_values(&self) -> bool {
        let begun =
            self.waiting.iter().map(|job| &job.base).chain(self.splits.iter().map(|split| &split.base));
        let plans = begun.map(|base| &base.plan).chain(self.planned.iter().map(|(_, plan)| plan));
        plans.map(|plan| plan.reason).any(|reason| matches!(reason, Reason::HiddenValues(_)))
    }

    /// Takes out the slices of a merge that no thread works on.
    pub(crate) fn take_slices_of(&mut self, split: &Arc<Split>) -> Vec<MergeJob> {
        let is_of = |job: &MergeJob| job.slice.as_ref().is_some_and(|slice| Arc::ptr_eq(&slice.split, split));
        let (slices, waiting) = self.waiting.drain(..).partition(is_of);
        self.waiting = waiting;
        slices
    }

    /// Takes out the merges of a table that no thread works on.
    pub(crate) fn take_all_of(&mut self, table: TableId) -> Taken {
        let (jobs, waiting) = self.waiting.drain(..).partition(|job| job.base.table.id == table);
        let (splits, others) = self.splits.drain(..).partition(|split| split.base.table.id == table);
        let (plans, planned): (Vec<_>, Vec<_>) = self.planned.drain(..).partition(|(of, _)| of.id == table);
        (self.waiting, self.splits, self.planned) = (waiting, others, planned);
        Taken { jobs, splits, plans: plans.into_iter().map(|(_, plan)| plan).collect() }
    }
}

/// The merges of a table, taken out: what is begun, those in slices (some may have slices that
/// run), and what is planned.
pub(crate) struct Taken {
    pub(crate) jobs: Vec<MergeJob>,
    pub(crate) splits: Vec<Arc<Split>>,
    pub(crate) plans: Vec<Plan>,
}

impl Merges {
    /// The tiers of a table, the lowest first. Compaction on request does not count: it is not
    /// background work.
    pub(crate) fn tiers_to_merge(&self, table: &TableCore) -> Vec<Tier> {
        let mut tiers = Vec::new();
        let compacted = match self.compacted.get(&table.id) {
            Some(Turn::Merges(inputs)) => inputs.as_slice(),
            _ => &[],
        };
        for run in table.view().runs.iter().filter(|run| !compacted.contains(&run.id)) {
            let at = usize::from(run.tier);
            if tiers.len() <= at {
                tiers.resize(at + 1, Tier::default());
            }
            tiers[at].runs += 1;
            tiers[at].bytes +=
                run.parts.iter().map(|part| merge_base::taken_in_bytes(part.file.part.facts())).sum::<u64>();
        }
        tiers
    }
}

/// The backlog of merges, table by table, and in total.
#[derive(Default)]
pub struct Behind {
    pub of: HashMap<TableId, TableDebt>,
    pub overdue_bytes: u64,
    /// How many tables have a given number of runs in their fullest tier, and how many a given
    /// number of tiers.
    pub runs: BTreeMap<usize, usize>,
    pub tiers: BTreeMap<usize, usize>,
}

impl Behind {
    /// Notes the present backlog of a table.
    pub fn set(&mut self, table: TableId, debt: Option<TableDebt>) {
        let before = match debt {
            Some(debt) => self.of.insert(table, debt),
            None => self.of.remove(&table),
        };
        if let Some(before) = before {
            self.overdue_bytes -= before.overdue_bytes;
            count_out(&mut self.runs, before.runs_max);
            count_out(&mut self.tiers, before.tier_max);
        }
        if let Some(debt) = debt {
            self.overdue_bytes += debt.overdue_bytes;
            *self.runs.entry(debt.runs_max).or_default() += 1;
            *self.tiers.entry(debt.tier_max).or_default() += 1;
        }
    }
}

/// The backlog of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableDebt {
    pub overdue_bytes: u64,
    pub runs_max: usize,
    pub tier_max: usize,
}

/// The next thing to do.
pub enum Next {
    Begun(Box<MergeJob>),
    /// Another slice of a merge that is begun.
    Slice(Slice),
    Planned(Arc<TableCore>, Plan),
}

/// The state of a compaction on request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It waits: merges have runs of the table; these are given up, and none are begun.
    Waits,
    /// It merges these inputs. Merges of newer runs continue at the same time.
    Merges(Vec<RunId>),
}

/// What is still to be merged of one tier of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tier {
    pub runs: usize,
    /// Bytes of keys and payloads, the unit in which the speed of merges is measured: files may be
    /// several times smaller.
    pub bytes: u64,
}

pub(crate) fn count_out(counts: &mut BTreeMap<usize, usize>, value: usize) {
    if let Some(count) = counts.get_mut(&value) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&value);
        }
    }
}
