//! Flushing: the oldest sealed memtable of a table becomes the newest run of tier 0.

use std::sync::Arc;

use folddb_base::{Error, ErrorKind, Lsn, Result, Seq};
use folddb_host::sync::atomic::Ordering;
use folddb_layout::manifest_edit::Change;
use folddb_memtable::FlushStream;
use folddb_merge::{BottomRule, FoldStep, RangeDelete, StepResult, StepRules, Times};

use super::output::Output;
use super::ranges::Applied;
use crate::budget::Who;
use crate::catalog::TableCore;
use crate::engine::Engine;
use crate::install::{Installed, part_state};
use crate::view::{PartFile, Sealed, TableView};
use folddb_run::PartFacts;

/// A memtable as parts on the disk, and the changes that make them a part of the store.
pub(crate) struct Written {
    pub(crate) changes: Vec<Change>,
    pub(crate) parts: Vec<Arc<PartFile>>,
    pub(crate) records: u64,
}

impl Written {
    /// Gives up: the files go.
    pub(crate) fn discard(&self) {
        self.parts.iter().for_each(|part| part.retire());
    }
}

/// So many bytes of values may memory keep in full segments whatever the lane holds.
const PINNED_BYTES_MIN: u64 = 16 << 20;

impl Engine {
    /// Flushes the memtable that has waited longest, if one waits; else merges the chunks that readers have met.
    pub(crate) fn flush_step(&self) -> Result<Option<String>> {
        let _only = self.debt.flushing.lock();
        if self.health.cause().is_some() {
            return Ok(None); // memory may hold half of a batch, which only replaying makes whole
        }
        self.mind_feeds()?;
        self.age_snapshots();
        self.settle_values()?;
        if let Some(done) = self.drop_dead_values()? {
            return Ok(Some(done));
        }
        self.limit_log();
        let waiting = self.tables_sealed().into_iter().filter(|table| table.check_alive().is_ok());
        let waiting = waiting.filter_map(|table| {
            let oldest = table.view().sealed.last().cloned()?;
            Some((table, oldest))
        });
        // Memtables and indexes take turns, so that neither holds the other up for long.
        let saves_now = !self.debt.saved_last.swap(true, Ordering::Relaxed);
        let oldest = waiting.min_by_key(|(_, sealed)| sealed.first_lsn);
        if (saves_now || oldest.is_none())
            && let Some(done) = self.save_due()?
        {
            return Ok(Some(done));
        }
        self.debt.saved_last.store(false, Ordering::Relaxed);
        let Some((table, sealed)) = oldest else {
            return Ok(self.merge_chunks().then(|| "merged chunks of a memtable".to_owned()));
        };
        let started = self.host.clock.monotonic();
        let (bytes, memory_bytes) = (sealed.bytes, sealed.memtable.bytes());
        let begun = self.debt.flushes_begun.fetch_add(1, Ordering::AcqRel) + 1;
        let records = match self.flush(&table, &sealed) {
            Ok(records) => records,
            // Nobody asked for a table that is gone: whoever drops it forgets what waits.
            Err(_) if table.check_alive().is_err() => return Ok(Some(gone(&table))),
            Err(error) => {
                if error.kind() == ErrorKind::NoSpace {
                    self.debt.flush_refused.store(begun, Ordering::Release);
                    self.bell.ring();
                }
                return Err(error);
            }
        };
        let took = self.host.clock.monotonic().saturating_sub(started);
        self.debt.flush_bytes_per_s.note(memory_bytes as u64, took);
        self.debt.settle_sealed(bytes);
        self.counters.flushes.add(1);
        self.note_overdue_of(&table);
        self.bell.ring();
        Ok(Some(format!("flushed {records} records of table `{}`", table.name)))
    }

    /// Saves some of an index, if one is to be saved.
    fn save_due(&self) -> Result<Option<String>> {
        let begun = self.debt.flushes_begun.fetch_add(1, Ordering::AcqRel) + 1;
        self.save_step().inspect_err(|error| {
            if error.kind() == ErrorKind::NoSpace {
                self.debt.flush_refused.store(begun, Ordering::Release);
                self.bell.ring();
            }
        })
    }

    fn flush(&self, table: &Arc<TableCore>, sealed: &Sealed) -> Result<u64> {
        let is_bottom = table.view().runs.is_empty();
        let times = self.times_to_flush(table, sealed);
        let mut written = self.write_sealed(table, sealed, (is_bottom, times), &|applied, view| {
            self.range_changes(applied, view, self.flushed_seq(table))
        })?;
        let log_start = self.log_start_without(Some(sealed));
        self.sync_values().inspect_err(|_| written.discard())?; // what the parts point to
        self.sync_log_for(sealed, log_start).inspect_err(|_| written.discard())?;
        written.changes.extend(log_start.map(|lsn| self.horizon(lsn)));
        let records = written.records;
        self.install(
            table,
            written.changes,
            Installed { parts: written.parts, flushed: Some(sealed.clone()) },
        )?;
        if let Some(lsn) = log_start {
            self.retire_segments(lsn);
        }
        Ok(records)
    }

    /// Writes a sealed memtable as the newest run of its table, which no manifest lists yet. `is_bottom` when the
    /// table has nothing older; `times` is what it keeps of the past, taken by now; `range_changes` says what becomes of the range deletes.
    pub(crate) fn write_sealed(
        &self,
        table: &Arc<TableCore>,
        sealed: &Sealed,
        (is_bottom, times): (bool, Times),
        range_changes: &dyn Fn(&Applied<'_>, &TableView) -> Vec<Change>,
    ) -> Result<Written> {
        let borders = self.borders.all();
        let (min_seq, max_seq) = sealed.memtable.seqs().unwrap_or((0, 0));
        let view = table.view();
        let ranges = step_ranges(&view, sealed.last_seq);
        let rules = StepRules {
            order: table.rules.order.clone(),
            fold: table.rules.fold.clone(),
            borders: borders.clone(),
            range_deletes: ranges.clone(),
            bottom: if is_bottom { BottomRule::Always } else { BottomRule::Never },
        };
        let keep_seqs =
            table.keeps_past || borders.iter().any(|&border| border >= min_seq && border < max_seq);
        let mut step = FoldStep::new(sealed.memtable.stream(), rules).with_times(times);
        let mut output = Output::new(self, table, (keep_seqs, is_bottom, times), Who::Flush);
        let mut parts = Vec::new();
        self.write_parts(table, sealed, &mut step, &mut output, &mut parts).inspect_err(|_| {
            self.debt.flushed_bytes.store(0, Ordering::Relaxed);
            output.discard(self);
            parts.iter().for_each(|(part, _)| part.retire());
        })?;
        let run = folddb_base::ids::RunId(self.numbers.take().0);
        let add_part = |(part, facts): &(Arc<PartFile>, PartFacts)| Change::AddPart {
            table: table.id,
            run,
            tier: 0,
            age: sealed.last_seq,
            part: part_state(part.number, facts),
        };
        let mut changes: Vec<Change> = parts.iter().map(add_part).collect();
        let parts: Vec<Arc<PartFile>> = parts.into_iter().map(|(part, _)| part).collect();
        let sheltering = step.sheltering().collect();
        let applied =
            Applied { table, ranges: &ranges, borders: &borders, sheltering, written: Some(&parts) };
        changes.extend(range_changes(&applied, &view));
        changes.push(Change::Flushed { table: table.id, seq: sealed.last_seq });
        let counts = *step.counts();
        self.counters.fold_failures.add(counts.declined_failed);
        self.counters.records_expired.add(counts.expired);
        Ok(Written { changes, parts, records: counts.records_out })
    }

    /// Writes all of a memtable, part after part, each durable and open for reading.
    fn write_parts(
        &self,
        table: &TableCore,
        sealed: &Sealed,
        step: &mut FoldStep<FlushStream>,
        output: &mut Output,
        parts: &mut Vec<(Arc<PartFile>, PartFacts)>,
    ) -> Result<()> {
        let record_bytes = sealed.bytes / (sealed.memtable.records() as usize).max(1);
        loop {
            let result = step.step(self.step_budget(), output.writer(self)?)?;
            let flushed_bytes = (step.counts().records_in as usize * record_bytes).min(sealed.bytes);
            self.debt.flushed_bytes.store(flushed_bytes, Ordering::Relaxed);
            match result {
                StepResult::Done => break,
                StepResult::AtKeyBorder if output.bytes_written() >= self.options.part_bytes => {
                    parts.extend(output.close_part(self, table)?);
                }
                _ => {}
            }
        }
        parts.extend(output.close_part(self, table)?);
        Ok(())
    }

    /// A batch may have records in several tables. Before those of one become durable in a run, the log of the
    /// others' must be, or a power cut could leave half a batch.
    fn sync_log_for(&self, sealed: &Sealed, log_start: Option<Lsn>) -> Result<()> {
        match log_start {
            Some(needed) if needed < sealed.end_lsn => self.sync_to(sealed.end_lsn),
            Some(needed) => self.sync_history(needed),
            None => Ok(()),
        }
    }

    pub(crate) fn flushed_seq(&self, table: &TableCore) -> Seq {
        self.manifest.lock().state().tables.get(&table.id).map_or(0, |state| state.flushed_seq)
    }

    /// Merges the chunks of active memtables whose readers have asked for it. False when none has.
    fn merge_chunks(&self) -> bool {
        let mut merged = false;
        let wishes = std::mem::take(&mut *self.work.chunked.lock());
        let catalog = self.catalog();
        for table in wishes.into_iter().filter_map(|id| catalog.by_id(id)) {
            table.take_chunk_merge_wish();
            // In this order: what is published first, which bounds what is touched, then all borders below it.
            let published = self.published();
            let view = table.view();
            let mut borders = self.borders.all();
            borders.extend(view.range_deletes.newer_than(self.flushed_seq(table)).map(|range| range.seq));
            borders.retain(|&border| border < published);
            borders.sort_unstable();
            borders.push(published);
            while view.active.merge_step(&borders) {
                merged = true;
            }
        }
        merged
    }

    /// Seals the memtable that holds the log back when too much of it is kept, or too many segments of values.
    fn limit_log(&self) {
        const SEGMENTS_MAX: usize = 4;
        // Segments of values count by their bytes: they begin small. Where space is short, those that only memory keeps are given back.
        let max = if self.health.short_of_space().is_some() { 1 } else { SEGMENTS_MAX };
        let kept = self.segments_of_memory();
        // What memory leads to counts as alive, dead or not: no more of it than a few segments, or an eighth of a lane that is small.
        let values_max = self.options.values_segment_bytes().saturating_mul(max as u64);
        let values_max = values_max.min((self.value_bytes() / 8).max(PINNED_BYTES_MIN));
        let is_long = kept > max;
        if !is_long && self.pinned_value_bytes() <= values_max {
            return;
        }
        let mut committer = self.commit.lock();
        let oldest = committer.written().min_by_key(|active| active.first_lsn);
        let Some((table, first_lsn)) = oldest.map(|active| (Arc::clone(&active.table), active.first_lsn))
        else {
            return;
        };
        // A memtable that is sealed already may hold the log back too; its flush comes first.
        let sealed_first = self
            .tables_sealed()
            .iter()
            .flat_map(|table| table.view().sealed.clone())
            .map(|s| s.first_lsn)
            .min();
        if !is_long && max == SEGMENTS_MAX && !self.saving_pays(&table) {
            return;
        }
        if sealed_first.is_none() || first_lsn < sealed_first {
            self.seal(&mut committer, &table);
        }
    }

    /// The error for lack of space.
    pub(crate) fn no_space(&self) -> Error {
        let why = self.health.short_of_space().unwrap_or_else(|| "the disk was full".to_owned());
        Error::new(ErrorKind::NoSpace, why)
    }

    /// Seals every memtable and flushes until none waits.
    pub(crate) fn flush_all(&self) -> Result<()> {
        self.check_not_read_only()?;
        self.health.check_writable(true)?;
        self.seal_all();
        self.wait_until_flushed()
    }

    /// Seals every memtable that has been written to. False when there was none.
    pub(crate) fn seal_all(&self) -> bool {
        let mut committer = self.commit.lock();
        let written: Vec<_> = committer.written().map(|active| Arc::clone(&active.table)).collect();
        written.iter().for_each(|table| self.seal(&mut committer, table));
        !written.is_empty()
    }

    fn wait_until_flushed(&self) -> Result<()> {
        let begun = self.debt.flushes_begun.load(Ordering::Acquire);
        // What is sealed from now on is for others to wait for, or a busy writer could keep this waiting for ever.
        let through = self.published();
        let is_flushed = |table: &Arc<TableCore>| table.view().sealed.iter().all(|s| s.last_seq > through);
        loop {
            let seen = self.bell.count();
            if let Some(cause) = self.health.cause() {
                return Err(cause);
            }
            let all_flushed = self.tables_sealed().iter().all(is_flushed)
                && self.catalog().hashed().all(|(_, hashed)| !hashed.is_to_be_saved());
            self.check_open()?; // nothing waits in a closed store, flushed or not
            if all_flushed {
                return Ok(());
            }
            // Writers may be refused while there is still enough for upkeep: only a flush that fails counts.
            if self.debt.is_refused_since(begun) {
                return Err(self.no_space());
            }
            if self.upkeep_runs() {
                self.bell.wait(seen, std::time::Duration::from_millis(50));
            } else {
                self.flush_step()?;
            }
        }
    }
}

/// What a step says that found its table dropped in the middle of it.
pub(crate) fn gone(table: &TableCore) -> String {
    format!("table `{}` was dropped meanwhile", table.name)
}

/// The range deletes of a picture up to `through`, as merging takes them. Later ones may be in a log that is not
/// durable yet, and what they hide must not be lost before they are.
pub(crate) fn step_ranges(view: &TableView, through: Seq) -> Vec<RangeDelete> {
    let range = |range: &Arc<folddb_manifest::RangeDelete>| RangeDelete {
        from: range.from.clone(),
        to: range.to.clone(),
        seq: range.seq,
    };
    view.range_deletes.iter().take_while(|range| range.seq <= through).map(range).collect()
}

/// The range deletes that only the log has yet, from after `flushed_seq` on: the manifest takes them over.
pub(crate) fn new_range_deletes(applied: &Applied<'_>, flushed_seq: Seq) -> Vec<Change> {
    let new = applied.ranges.iter().filter(|range| range.seq > flushed_seq);
    new.map(|range| Change::AddRangeDelete {
        table: applied.table.id,
        from: range.from.clone(),
        to: range.to.clone(),
        seq: range.seq,
    })
    .collect()
}
