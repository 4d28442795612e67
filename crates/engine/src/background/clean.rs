//! Cleaning: a merge of an index leaves out entries that no record has the term of any more.
//!
//! **When an entry may go.** Let S be the oldest seq that anybody reads at: that of the oldest live
//! snapshot, or the present. An entry of seq e goes when e ≤ S and the record at S has not its
//! term. Nobody misses it: whoever reads at S or later and finds the term in the record finds it by
//! the law because an op after S brought it, and that op has an entry of its own, which is newer
//! than S. No older entry of the same term comes to light that matters, for it is as stale as this
//! one. So an entry may go in any merge, and S may be another one at each step; while a step looks,
//! S is held.
//!
//! Of a table that keeps a window of its past S is no later than where that begins, and its time no
//! later than that: whoever asks for a moment gets one of the window. The index of a table that
//! keeps its past forever is not cleaned: somebody may yet read it as it was. Who keeps versions of
//! each key shows none of the whole table, but for the present at a time when values lived that
//! have expired: there expiry makes nothing stale.
//!
//! **What it costs.** A look at each record, see `stale`. So only merges to the bottom clean, and
//! of these only every eighth step looks, until it finds a tenth of the entries stale; then the
//! next does, too. `compact` looks at all. Where finds have met too many stale entries, a merge is
//! planned for that alone. A step is large where the table is so small that one walk along it is
//! cheaper than a look for each entry, and small where each look may cost a read.
//!
//! **What is left out for good must be stale for good.** A look sees what the log has not synced
//! yet, and a power cut may take that: then the record has its old term again. So before an edit
//! takes the inputs of a part that lacks entries, the log is synced. And a look sees that a value
//! has expired: the edit makes durable what time it was.
//!
//! What cannot be examined, for damage or since its fold fails, stays. Called by `merge` and
//! `compact`.

use std::sync::Arc;

use folddb_base::{RecordSink, Result, Seq};
use folddb_host::sync::atomic::Ordering;
use folddb_merge::plan::{Reason, compact_plan};
use folddb_merge::{Budget, Plan, RunSummary};
use folddb_rules::{Extractor, Keep};

use super::stale::{Entries, Looks, is_walk_cheaper};
use crate::state::catalog::{IndexCore, TableCore};
use crate::state::engine::Engine;
use crate::state::snapshots::{At, Held, HeldFor};
use crate::state::{clock, log_sync};

/// A step takes in so many records where each may cost a read.
const STEP_RECORDS: u64 = 1024;

/// And so many where one walk along the table looks at all of them.
const WALK_RECORDS: u64 = 1 << 16;

/// One step in so many looks, as long as hardly anything is stale.
const LOOKS_EVERY: u64 = 8;

/// From this share of stale entries on the next step looks, too.
const EAGER_FROM: f64 = 0.1;

/// Of so many entries that finds have met, more than this share stale, and the index is cleaned.
const MET_MIN: u64 = 1024;

const STALE_SHARE_MAX: f64 = 0.3;

impl IndexCore {
    /// Whether finds have met so many stale entries that it is worth a merge.
    pub fn wants_cleaning(&self) -> bool {
        let (met, stale) = (self.met.load(Ordering::Relaxed), self.stale.load(Ordering::Relaxed));
        met >= MET_MIN && stale as f64 > met as f64 * STALE_SHARE_MAX
    }

    /// Counts again.
    pub(crate) fn forget_met(&self) {
        self.met.store(0, Ordering::Relaxed);
        self.stale.store(0, Ordering::Relaxed);
    }
}

impl TableCore {
    /// The index that this is, where readers of its table find that it wants cleaning and it can
    /// be. What they find stale now in the index of a window stays as long as the window has it: so
    /// that is left to other merges.
    pub(crate) fn index_to_clean(&self) -> Option<Arc<IndexCore>> {
        let (table, index) = self.owner()?;
        let is_windowed = matches!(table.rules.rules.keep, Keep::Window(_));
        (index.wants_cleaning() && !is_windowed && is_cleanable(&table, &index)).then_some(index)
    }

    /// Whether it is an index in which a merge of all may find something stale that was none at the
    /// last one.
    pub(crate) fn may_be_stale(&self, engine: &Engine) -> bool {
        let Some((table, index)) = self.owner() else { return false };
        let kept_since = clock::kept_since(engine, &table, clock::now_ms(engine));
        is_cleanable(&table, &index)
            && index.cleaned_at.load(Ordering::Acquire) < kept_since.min(engine.published())
    }
}

fn is_cleanable(table: &TableCore, index: &IndexCore) -> bool {
    index.is_built()
        && table.rules.rules.keep != Keep::Forever
        && table.rules.missing.is_none()
        && index.extractor.is_ok()
}

/// The plan that merges all runs of an index to clean it, also where they are one.
pub(crate) fn clean_plan(index: &TableCore, runs: &[RunSummary]) -> Option<Plan> {
    let mut runs = runs.to_vec();
    // A stale entry is as good as deleted.
    runs.iter_mut().for_each(|run| run.deletes = run.deletes.max(1));
    compact_plan(&index.rules.order, &runs)
}

/// What a merge of an index knows to clean it.
pub struct Cleaner {
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
    /// Entries were left out since the log was synced last.
    has_left_out: bool,
    entries: Entries,
}

impl Cleaner {
    /// What cleans the output of a merge, where that is an index and can be.
    pub fn of(table: &TableCore, plan: &Plan) -> Option<Cleaner> {
        let (table, index) = table.owner()?;
        if !plan.is_bottom || !is_cleanable(&table, &index) {
            return None;
        }
        let extractor = index.extractor.clone().ok()?;
        Some(Cleaner {
            table,
            index,
            extractor,
            is_thorough: plan.reason == Reason::Compact,
            is_eager: false,
            steps: 0,
            looked_at: Seq::MAX,
            has_left_out: false,
            entries: Entries::default(),
        })
    }

    /// What a step may take in.
    pub fn budget(&self, budget: Budget) -> Budget {
        let walks = is_walk_cheaper(&self.table, &self.extractor, WALK_RECORDS as usize);
        Budget { records: if walks { WALK_RECORDS } else { STEP_RECORDS }, ..budget }
    }

    /// Where a step is to let its records out.
    pub(crate) fn sink(&mut self) -> &mut dyn RecordSink {
        &mut self.entries
    }

    /// Hands on what a step has let out, without what is stale.
    pub fn hand_on(&mut self, engine: &Arc<Engine>, to: &mut dyn RecordSink) -> Result<()> {
        let entries = std::mem::take(&mut self.entries);
        let looks = self.is_thorough || self.is_eager || self.steps.is_multiple_of(LOOKS_EVERY);
        self.steps += 1;
        let stale = if looks { self.stale(engine, &entries) } else { vec![false; entries.count()] };
        let count = stale.iter().filter(|stale| **stale).count();
        if looks {
            self.is_eager = count as f64 > entries.count() as f64 * EAGER_FROM;
        }
        engine.counters.entries_cleaned.add(count as u64);
        self.has_left_out |= count > 0;
        for (at, _) in stale.iter().enumerate().filter(|(_, stale)| !**stale) {
            to.push(entries.record(at))?;
        }
        self.entries = entries.emptied();
        Ok(())
    }

    /// Which entries nobody needs any more.
    fn stale(&mut self, engine: &Arc<Engine>, entries: &Entries) -> Vec<bool> {
        let held = hold_oldest(engine, &self.table);
        self.looked_at = self.looked_at.min(held.at.seq);
        let stale =
            Looks { engine, table: &self.table, extractor: &self.extractor, at: held.at }.stale(entries);
        // A merge that was under way when the moment was held may have folded it: what was seen
        // then was not all that it had.
        let is_folded = self.is_windowed() && self.table.view().folded_up_to() > held.at.seq;
        if is_folded { vec![false; entries.count()] } else { stale }
    }

    /// Makes durable what the steps so far have seen, so that what they left out stays stale.
    /// Called before each edit.
    pub fn settle(&mut self, engine: &Engine) -> Result<()> {
        if std::mem::take(&mut self.has_left_out) { log_sync::sync_log(engine) } else { Ok(()) }
    }

    fn is_windowed(&self) -> bool {
        matches!(self.table.rules.rules.keep, Keep::Window(_))
    }

    /// The merge is done.
    pub fn finish(&self) {
        self.index.forget_met();
        if self.is_thorough && self.looked_at < Seq::MAX {
            self.index.cleaned_at.store(self.looked_at, Ordering::Release);
        }
    }
}

/// Holds the oldest moment of a table that anybody reads at: of the oldest snapshot, of the window
/// that it keeps, or the present.
fn hold_oldest(engine: &Engine, table: &TableCore) -> Held {
    if let Some(window_ms) = table.rules.rules.keep.window_ms() {
        return hold_window(engine, table, window_ms);
    }
    let committer = engine.commit.lock(); // no snapshot is taken meanwhile
    let present = clock::hold_present(engine, table, &committer);
    // Who keeps versions keeps those that have expired, and may be asked for a time when they were
    // alive.
    let is_kept = table.has_stamps && matches!(table.rules.rules.keep, Keep::Versions(_));
    let latest_ms = if is_kept { 0 } else { present.at.time_ms };
    loop {
        let oldest = engine.boundaries.oldest_of_all_tables().unwrap_or(present.at.seq);
        match engine.boundaries.hold_if_live(oldest, u64::MAX) {
            Some((held, held_for)) if !matches!(held_for, HeldFor::Past(_)) => {
                let time_ms = held.at.time_ms.min(latest_ms);
                return held.reading_at(time_ms);
            }
            _ => {} // it went meanwhile
        }
    }
}

/// Holds where the window begins that a table keeps, or the oldest moment that is held where that
/// is older.
fn hold_window(engine: &Engine, table: &TableCore, window_ms: u64) -> Held {
    let committer = engine.commit.lock(); // no snapshot is taken meanwhile
    let present = At::new(engine.published(), clock::noted_now_of(engine, table, &committer));
    let kept_since = clock::kept_since(engine, table, present.time_ms);
    // Whoever reads files of his own looks at these entries, too: see `find`.
    let seq = engine.boundaries.oldest_held().map_or(kept_since, |oldest| oldest.min(kept_since));
    let begins_ms = present.time_ms.saturating_sub(window_ms);
    let time_ms = engine.boundaries.oldest_held_ms().map_or(begins_ms, |oldest| oldest.min(begins_ms));
    engine.boundaries.hold(At::new(seq, time_ms), HeldFor::Past(present), engine.host.clock.monotonic())
}
