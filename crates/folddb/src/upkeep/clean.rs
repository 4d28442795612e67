//! Cleaning: a merge of an index leaves out entries that no record has the term of any more.
//!
//! **When an entry may go.** Let S be the oldest seq that anybody reads at: that of the oldest live snapshot, or the present. An
//! entry of seq e goes when e ≤ S and the record at S has not its term. Nobody misses it: whoever reads at S or later and finds
//! the term in the record finds it by the law because an op after S brought it, and that op has an entry of its own, which is
//! newer than S. No older entry of the same term comes to light that matters, for it is as stale as this one. So an entry may go
//! in any merge, and S may be another one at each step; while a step looks, S is held.
//!
//! A table that keeps its past is not cleaned: somebody may yet read it as it was.
//!
//! **What it costs.** A look at each record. So only merges to the bottom clean, and of these only every eighth step looks, until it finds a
//! tenth of the entries stale; then the next does, too. `optimize` looks at all. Where finds have met too many stale entries, a
//! merge is planned for that alone.
//!
//! What cannot be looked at, for damage or since its fold fails, stays. Called by `merge` and `optimize`.

use std::sync::Arc;

use folddb_base::stream::OwnedRecord;
use folddb_base::{OpKind, Record, RecordSink, Result, Seq};
use folddb_host::sync::atomic::Ordering;
use folddb_merge::plan::{Reason, optimize_plan};
use folddb_merge::{Budget, Plan, RunSummary};
use folddb_rules::Extractor;
use folddb_rules::terms::split_entry;

use crate::borders::{At, Held, HeldFor};
use crate::catalog::{IndexCore, TableCore};
use crate::engine::Engine;
use crate::looked::Want;

/// A step takes in so many records, since each may cost a read.
const STEP_RECORDS: u64 = 1024;

/// One step in so many looks, as long as hardly anything is stale.
const LOOKS_EVERY: u64 = 8;

/// From this share of stale entries on the next step looks, too.
const EAGER_FROM: f64 = 0.1;

/// Of so many entries that finds have met, more than this share stale, and the index is cleaned.
const MET_MIN: u64 = 1024;
const STALE_SHARE_MAX: f64 = 0.3;

impl IndexCore {
    /// Whether finds have met so many stale entries that it is worth a merge.
    pub(crate) fn wants_cleaning(&self) -> bool {
        let (met, stale) = (self.met.load(Ordering::Relaxed), self.stale.load(Ordering::Relaxed));
        met >= MET_MIN && stale as f64 > met as f64 * STALE_SHARE_MAX
    }

    /// Counts anew.
    pub(super) fn forget_met(&self) {
        self.met.store(0, Ordering::Relaxed);
        self.stale.store(0, Ordering::Relaxed);
    }
}

impl TableCore {
    /// The index that this is, where readers of its table find that it wants cleaning and it can be.
    pub(super) fn index_to_clean(&self) -> Option<Arc<IndexCore>> {
        let (table, index) = self.owner()?;
        (index.wants_cleaning() && is_cleanable(&table, &index)).then_some(index)
    }

    /// Whether it is an index in which a merge of all may find something stale that was none at the last one.
    pub(super) fn may_be_stale(&self, published: Seq) -> bool {
        let Some((table, index)) = self.owner() else { return false };
        is_cleanable(&table, &index) && index.cleaned_at.load(Ordering::Acquire) < published
    }
}

fn is_cleanable(table: &TableCore, index: &IndexCore) -> bool {
    index.is_built() && !table.keeps_past && table.rules.missing.is_none() && index.extractor.is_ok()
}

/// The plan that merges all runs of an index to clean it, also where they are one.
pub(super) fn clean_plan(index: &TableCore, runs: &[RunSummary]) -> Option<Plan> {
    let mut runs = runs.to_vec();
    // A stale entry is as good as deleted.
    runs.iter_mut().for_each(|run| run.deletes = run.deletes.max(1));
    optimize_plan(&index.rules.order, &runs)
}

/// What a merge of an index knows to clean it.
pub(super) struct Cleaner {
    table: Arc<TableCore>,
    index: Arc<IndexCore>,
    extractor: Extractor,
    /// Every step looks.
    is_thorough: bool,
    /// The last look found so much stale that the next is worth it.
    is_eager: bool,
    steps: u64,
    /// The lowest seq that a step has looked at.
    looked_at: Seq,
    gathered: Gathered,
}

/// What a step lets out.
#[derive(Default)]
struct Gathered(Vec<OwnedRecord>);

impl RecordSink for Gathered {
    fn push(&mut self, record: Record<'_>) -> Result<()> {
        self.0.push(OwnedRecord::from_record(record));
        Ok(())
    }
}

impl Cleaner {
    /// What cleans the output of a merge, where that is an index and can be.
    pub(super) fn of(table: &TableCore, plan: &Plan) -> Option<Cleaner> {
        let (table, index) = table.owner()?;
        if !plan.is_bottom || !is_cleanable(&table, &index) {
            return None;
        }
        let extractor = index.extractor.clone().ok()?;
        Some(Cleaner {
            table,
            index,
            extractor,
            is_thorough: plan.reason == Reason::Optimize,
            is_eager: false,
            steps: 0,
            looked_at: Seq::MAX,
            gathered: Gathered::default(),
        })
    }

    /// What a step may take in.
    pub(super) fn budget(&self, budget: Budget) -> Budget {
        Budget { records: budget.records.min(STEP_RECORDS), ..budget }
    }

    /// Where a step is to let its records out.
    pub(super) fn sink(&mut self) -> &mut dyn RecordSink {
        &mut self.gathered
    }

    /// Hands on what a step has let out, without what is stale.
    pub(super) fn hand_on(&mut self, engine: &Engine, to: &mut dyn RecordSink) -> Result<()> {
        let records = std::mem::take(&mut self.gathered.0);
        let looks = self.is_thorough || self.is_eager || self.steps.is_multiple_of(LOOKS_EVERY);
        self.steps += 1;
        let stale = if looks { self.stale(engine, &records) } else { vec![false; records.len()] };
        let count = stale.iter().filter(|stale| **stale).count();
        if looks {
            self.is_eager = count as f64 > records.len() as f64 * EAGER_FROM;
        }
        engine.counters.entries_cleaned.add(count as u64);
        for (record, _) in records.iter().zip(&stale).filter(|(_, stale)| !**stale) {
            to.push(record.record())?;
        }
        Ok(())
    }

    /// Which entries nobody needs any more.
    fn stale(&mut self, engine: &Engine, records: &[OwnedRecord]) -> Vec<bool> {
        let held = engine.hold_oldest();
        self.looked_at = self.looked_at.min(held.at.seq);
        let mut stale = vec![false; records.len()];
        let may_go = |record: &OwnedRecord| record.op.kind == OpKind::Set && record.seq <= held.at.seq;
        let split = |at: usize| split_entry(&records[at].key).unwrap_or_default();
        let mut order: Vec<usize> = (0..records.len()).filter(|&at| may_go(&records[at])).collect();
        order.sort_by_key(|&at| split(at).1);
        for same_key in order.chunk_by(|&a, &b| split(a).1 == split(b).1) {
            self.look(engine, split(same_key[0]).1, held.at, &mut |terms| {
                for &at in same_key {
                    stale[at] = !terms.is_some_and(|terms| terms.has(split(at).0));
                }
            });
        }
        stale
    }

    /// Tells the terms of a key, where that can be looked at.
    fn look(&self, engine: &Engine, key: &[u8], at: At, tell: &mut dyn FnMut(Option<&folddb_rules::Terms>)) {
        if let Ok(looked) = engine.look((&self.table, &self.extractor), key, at, Want::Key) {
            tell(looked.as_ref().map(|looked| &looked.terms));
        }
    }

    /// The merge is done.
    pub(super) fn finish(&self) {
        self.index.forget_met();
        if self.is_thorough && self.looked_at < Seq::MAX {
            self.index.cleaned_at.store(self.looked_at, Ordering::Release);
        }
    }
}

impl Engine {
    /// Holds the oldest seq that anybody reads at: of the oldest snapshot, or the present.
    fn hold_oldest(&self) -> Held {
        let _committer = self.commit.lock(); // no snapshot is taken meanwhile
        loop {
            let Some(oldest) = self.borders.oldest_of_all_tables() else {
                let at = At::new(self.published(), self.now_ms());
                return self.borders.hold(at, HeldFor::Work, self.host.clock.monotonic());
            };
            match self.borders.hold_if_live(oldest) {
                Some((held, held_for)) if !matches!(held_for, HeldFor::Past(_)) => return held,
                _ => {} // it went meanwhile
            }
        }
    }
}
