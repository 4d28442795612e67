//! Cleaning: a merge of an index drops entries whose record no longer has their term.
//!
//! **When an entry may be dropped.** Let S be the oldest seq of any reader: that of the oldest live
//! snapshot, or the present. An entry of seq e is dropped if e ≤ S and the record at S does not
//! have its term. Nobody misses it: if a reader at S or later finds the term in the record, then by
//! the law of terms an op after S brought it, and that op has its own entry, newer than S. An older
//! entry of the same term that reappears is as stale as this one. So an entry may be dropped in any
//! merge, and S may differ at each step; while a step looks, S is held.
//!
//! For a table that keeps a window of its past, S and its time are no later than the window's
//! beginning, since readers may ask for any moment in it. The index of a table that keeps its past
//! forever is not cleaned: it may still be read at any past moment. A table with versions of each
//! key shows no past of the whole table, except the present at a time when values lived that have
//! expired since: there, expiry makes nothing stale.
//!
//! **What it costs.** A lookup of each record, see `stale`. So only merges to the bottom clean, and
//! only every eighth step of these looks records up; after one that finds a tenth of the entries
//! stale, the next does, too. `compact` looks up all. If queries have met too many stale entries, a
//! merge is planned for that alone. A step is large if the table is so small that one walk along it
//! is cheaper than a lookup for each entry, and small if each lookup may cost a read.
//!
//! **What is dropped for good must be stale for good.** A lookup sees what the log has not synced
//! yet, and a power cut may undo that: then the record has its old term again. So before an edit
//! removes the inputs of a part that lacks entries, the log is synced. A lookup may also find that
//! a value has expired: the edit makes that time durable.
//!
//! An entry whose record cannot be examined, because of damage or a failing fold, is kept. Called
//! by `merge` and `compact`.

use std::sync::Arc;

use folddb_base::{RecordSink, Result, Seq};
use folddb_host::sync::atomic::Ordering;
use folddb_merge::plan::{Reason, compact_plan};
use folddb_merge::{Budget, Plan, RunSummary};
use folddb_rules::{Extractor, Keep, time};

use super::stale::{Entries, Looks, is_walk_cheaper};
use crate::state::catalog::{IndexCore, TableCore};
use crate::state::engine::Engine;
use crate::state::snapshots::{At, Held, HeldFor};
use crate::state::{clock, log_sync};

/// Records of a step if each may cost a read.
const STEP_RECORDS: u64 = 1024;

/// Records of a step if one walk along the table examines all of them.
const WALK_RECORDS: u64 = 1 << 16;

/// One step in this many looks records up, while hardly anything is stale.
const LOOKS_EVERY: u64 = 8;

/// If at least this share of entries is stale, the next step looks records up, too.
const EAGER_FROM: f64 = 0.1;

/// The index is cleaned after queries have read this many entries, if enough of them were stale.
const READ_MIN: u64 = 1024;

const STALE_SHARE_MAX: f64 = 0.3;

impl IndexCore {
    /// Whether queries have read enough stale entries to make a merge worthwhile.
    pub fn wants_cleaning(&self) -> bool {
        let (read, stale) = (self.read.load(Ordering::Relaxed), self.stale.load(Ordering::Relaxed));
        read >= READ_MIN && stale as f64 > read as f64 * STALE_SHARE_MAX
    }

    /// Starts to count again.
    pub(crate) fn forget_read(&self) {
        self.read.store(0, Ordering::Relaxed);
        self.stale.store(0, Ordering::Relaxed);
    }
}

impl TableCore {
    /// The index that this table is, if readers have found that it needs cleaning and it can be
    /// cleaned. Entries that are stale now in the index of a window stay as long as the window has
    /// them: those are left to other merges.
    pub(crate) fn index_to_clean(&self) -> Option<Arc<IndexCore>> {
        let (table, index) = self.owner()?;
        let is_windowed = matches!(table.keep(), Keep::Window(_));
        (index.wants_cleaning() && !is_windowed && is_cleanable(&table, &index)).then_some(index)
    }

    /// Whether it is an index in which a full merge may find stale entries that the last one did
    /// not.
    pub(crate) fn may_be_stale(&self, engine: &Engine) -> bool {
        let Some((table, index)) = self.owner() else { return false };
        let kept_since = clock::kept_since(engine, &table, clock::now_ms(engine));
        is_cleanable(&table, &index)
            && index.cleaned_at.load(Ordering::Acquire) < kept_since.min(engine.published())
    }
}

fn is_cleanable(table: &TableCore, index: &IndexCore) -> bool {
    index.is_built()
        && table.keep() != Keep::Forever
        && table.rules.missing.is_none()
        && index.extractor.is_ok()
}

/// The plan that merges all runs of an index to clean it, even if there is only one.
pub(crate) fn clean_plan(index: &TableCore, runs: &[RunSummary]) -> Option<Plan> {
    let mut runs = runs.to_vec();
    // A stale entry is as good as deleted.
    runs.iter_mut().for_each(|run| run.deletes = run.deletes.max(1));
    compact_plan(&index.rules.order, &runs)
}

/// The state of a merge that cleans an index.
pub struct Cleaner {
    table: Arc<TableCore>,
    index: Arc<IndexCore>,
    extractor: Extractor,
    /// Every step looks records up.
    is_thorough: bool,
    /// The last step found many stale entries, so the next one looks records up, too.
    is_eager: bool,
    steps: u64,
    /// The lowest seq at which a step has looked.
    lowest_seq: Seq,
    /// Entries were dropped since the last sync of the log.
    has_left_out: bool,
    entries: Entries,
}

impl Cleaner {
    /// The cleaner of a merge, if its table is an index that can be cleaned.
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
            lowest_seq: Seq::MAX,
            has_left_out: false,
            entries: Entries::default(),
        })
    }

    /// The budget of a step.
    pub fn budget(&self, budget: Budget) -> Budget {
        let walks = is_walk_cheaper(&self.table, &self.extractor, WALK_RECORDS as usize);
        Budget { records: if walks { WALK_RECORDS } else { STEP_RECORDS }, ..budget }
    }

    /// Where a step writes its records.
    pub(crate) fn sink(&mut self) -> &mut dyn RecordSink {
        &mut self.entries
    }

    /// Passes on the records of a step, without stale ones.
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

    /// Which entries are no longer needed.
    fn stale(&mut self, engine: &Arc<Engine>, entries: &Entries) -> Vec<bool> {
        let held = hold_oldest(engine, &self.table);
        self.lowest_seq = self.lowest_seq.min(held.at.seq);
        let stale =
            Looks { engine, table: &self.table, extractor: &self.extractor, at: held.at }.stale(entries);
        // A merge that was already running when the moment was held may have folded past it: then
        // the lookup did not see everything.
        let is_folded = self.is_windowed() && self.table.view().folded_up_to() > held.at.seq;
        if is_folded { vec![false; entries.count()] } else { stale }
    }

    /// Makes durable what the steps so far have seen, so that the entries they dropped stay stale.
    /// Called before each edit.
    pub fn settle(&mut self, engine: &Engine) -> Result<()> {
        if std::mem::take(&mut self.has_left_out) { log_sync::sync_log(engine) } else { Ok(()) }
    }

    fn is_windowed(&self) -> bool {
        matches!(self.table.keep(), Keep::Window(_))
    }

    /// The merge is done.
    pub fn finish(&self) {
        self.index.forget_read();
        if self.is_thorough && self.lowest_seq < Seq::MAX {
            self.index.cleaned_at.store(self.lowest_seq, Ordering::Release);
        }
    }
}

/// Holds the oldest moment of a table that any reader may use: of the oldest snapshot, of the
/// window that it keeps, or the present.
fn hold_oldest(engine: &Engine, table: &TableCore) -> Held {
    if matches!(table.keep(), Keep::Window(_)) {
        let _same = table.altering.read(); // an alteration of the window knows what is held before it
        return hold_window(engine, table, time::window_ms(table.keep()).unwrap_or(0));
    }
    let committer = engine.commit.lock(); // no snapshot is taken in between
    let present = clock::hold_present(engine, table, &committer);
    // A table with versions keeps expired ones, and may be read at a time when they were alive.
    let is_kept = table.has_stamps && matches!(table.keep(), Keep::Versions(_));
    let latest_ms = if is_kept { 0 } else { present.at.time_ms };
    loop {
        let oldest = engine.boundaries.oldest_of_all_tables().unwrap_or(present.at.seq);
        match engine.boundaries.hold_if_live(oldest, u64::MAX) {
            Some((held, held_for)) if !matches!(held_for, HeldFor::Past(_)) => {
                let time_ms = held.at.time_ms.min(latest_ms);
                return held.reading_at(time_ms);
            }
            _ => {} // it is gone
        }
    }
}

/// Holds the beginning of a table's window, or the oldest held moment if that is older.
fn hold_window(engine: &Engine, table: &TableCore, window_ms: u64) -> Held {
    let committer = engine.commit.lock(); // no snapshot is taken in between
    let present = At::new(engine.published(), clock::noted_now_of(engine, table, &committer));
    let kept_since = clock::kept_since(engine, table, present.time_ms);
    // Readers of pinned files examine these entries, too: see `find`.
    let seq = engine.boundaries.oldest_held().map_or(kept_since, |oldest| oldest.min(kept_since));
    let begins_ms = present.time_ms.saturating_sub(window_ms);
    let time_ms = engine.boundaries.oldest_held_ms().map_or(begins_ms, |oldest| oldest.min(begins_ms));
    engine.boundaries.hold(At::new(seq, time_ms), HeldFor::Past(present), engine.host.clock.monotonic())
}
