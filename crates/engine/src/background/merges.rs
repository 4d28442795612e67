//! Which merges of a store are begun, planned or given up, and what merging is behind with, table
//! by table.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use folddb_base::ids::RunId;
use folddb_base::{Error, TableId};
use folddb_merge::Plan;
use folddb_merge::plan::Reason;

use crate::background::merge_job;
use crate::background::merge_job::MergeJob;
use crate::state::catalog::TableCore;

/// The merges that are under way.
#[derive(Default)]
pub struct Merges {
    /// Begun, and to be resumed: at most one for each tier, since each holds memory for every
    /// input.
    pub waiting: Vec<MergeJob>,
    /// Planned, with their inputs taken, and not begun.
    pub planned: Vec<(Arc<TableCore>, Plan)>,
    pub busy: HashSet<(TableId, RunId)>,
    /// Tables that somebody compacts, or waits to compact.
    pub compacted: HashMap<TableId, Turn>,
    /// Tables whose merges failed for a reason that trying again does not mend.
    pub given_up: HashMap<TableId, Error>,
    /// Tables that have been examined, for which more may be due when snapshots come and go.
    pub resting: BTreeSet<TableId>,
    /// The same, where time alone may make more due, too.
    pub timed: BTreeSet<TableId>,
    /// The version of the snapshots, and the second, of the last look at those.
    pub looked_at: (u64, u64),
    /// What each table is behind with.
    pub behind: Behind,
}

impl Merges {
    /// Takes the merge of the lowest tier. One that is begun comes before others of its tier, so
    /// that there are never more begun than tiers, however many tables have something to merge.
    pub(crate) fn take_next(&mut self) -> Option<Next> {
        let begun = (0..self.waiting.len()).min_by_key(|&index| self.waiting[index].plan.target_tier);
        let planned = (0..self.planned.len()).min_by_key(|&index| self.planned[index].1.target_tier);
        let lower = |planned: usize, begun: usize| {
            self.planned[planned].1.target_tier < self.waiting[begun].plan.target_tier
        };
        match (begun, planned) {
            (Some(begun), Some(planned)) if !lower(planned, begun) => {
                Some(Next::Begun(Box::new(self.waiting.swap_remove(begun))))
            }
            (_, Some(planned)) => {
                let (table, plan) = self.planned.remove(planned);
                Some(Next::Planned(table, plan))
            }
            (Some(begun), None) => Some(Next::Begun(Box::new(self.waiting.swap_remove(begun)))),
            (None, None) => None,
        }
    }

    /// Notes whether more may be due for a table that has been examined, and whether time alone may
    /// do that.
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

    /// Whether a merge is under way, or planned, that uncovers dead values.
    pub(crate) fn uncovers_values(&self) -> bool {
        let plans = self.waiting.iter().map(|job| &job.plan).chain(self.planned.iter().map(|(_, plan)| plan));
        plans.map(|plan| plan.reason).any(|reason| matches!(reason, Reason::HiddenValues(_)))
    }

    /// Takes out what is begun, and what is planned, of a table.
    pub(crate) fn take_all_of(&mut self, table: TableId) -> (Vec<MergeJob>, Vec<Plan>) {
        let (jobs, waiting) = self.waiting.drain(..).partition(|job| job.table.id == table);
        let (plans, planned): (Vec<_>, Vec<_>) = self.planned.drain(..).partition(|(of, _)| of.id == table);
        (self.waiting, self.planned) = (waiting, planned);
        (jobs, plans.into_iter().map(|(_, plan)| plan).collect())
    }
}

impl Merges {
    /// The tiers of a table, the lowest first. What somebody compacts does not count: it is no work
    /// of background work.
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
                run.parts.iter().map(|part| merge_job::taken_in_bytes(part.file.part.facts())).sum::<u64>();
        }
        tiers
    }
}

/// What merges are behind with, table by table, and what that comes to.
#[derive(Default)]
pub struct Behind {
    pub of: HashMap<TableId, TableDebt>,
    pub overdue_bytes: u64,
    /// How many tables have so many runs in their fullest tier, and how many so many tiers.
    pub runs: BTreeMap<usize, usize>,
    pub tiers: BTreeMap<usize, usize>,
}

impl Behind {
    /// Notes what a table is behind with by now.
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

/// What they are behind with in one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableDebt {
    pub overdue_bytes: u64,
    pub runs_max: usize,
    pub tier_max: usize,
}

/// What to go on with.
pub enum Next {
    Begun(Box<MergeJob>),
    Planned(Arc<TableCore>, Plan),
}

/// How far the one has come who compacts a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Merges have runs of the table: they are given up, and no more are begun.
    Waits,
    /// It has these inputs. Merges of newer runs go on beside it.
    Merges(Vec<RunId>),
}

/// What merges have before them of one tier of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tier {
    pub runs: usize,
    /// Bytes of keys and payloads, which is what the speed of merges is measured in: files may be
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
