//! Flushing: the oldest sealed memtable of a table becomes the newest run of tier 0.

use std::sync::Arc;

use folddb_base::{ErrorKind, Lsn, Result};
use folddb_host::sync::atomic::Ordering;
use folddb_layout::manifest_edit::Change;
use folddb_memtable::FlushStream;
use folddb_merge::{BottomRule, FoldStep, StepResult, StepRules, Times};
use folddb_run::PartFacts;

use super::output::Output;
use super::ranges::Applied;
use crate::background::{dead_segments, hash_checkpoint, merge, ranges, snapshot_files, step};
use crate::edit::install::{Installed, part_state};
use crate::edit::{feeds, install};
use crate::state::catalog::TableCore;
use crate::state::disk_quota::Who;
use crate::state::engine::Engine;
use crate::state::view::{PartFile, Sealed, TableView};
use crate::state::{clock, log_sync, pressure};
use crate::values::settle;
use crate::write::commit;

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

/// Flushes the memtable that has waited longest, if one waits; else merges the chunks that readers have met.
pub(crate) fn flush_step(engine: &Engine) -> Result<Option<String>> {
    let _only = engine.debt.flushing.lock();
    if engine.health.cause().is_some() {
        return Ok(None); // memory may hold half of a batch, which only replaying makes whole
    }
    feeds::mind_feeds(engine)?;
    snapshot_files::age_snapshots(engine);
    settle::settle_values(engine)?;
    if let Some(done) = dead_segments::drop_dead_values(engine)? {
        return Ok(Some(done));
    }
    limit_log(engine);
    let waiting = engine.tables_sealed().into_iter().filter(|table| table.check_alive().is_ok());
    let waiting = waiting.filter_map(|table| {
        let oldest = table.view().sealed.last().cloned()?;
        Some((table, oldest))
    });
    // Memtables and indexes take turns, so that neither holds the other up for long.
    let saves_now = !engine.debt.saved_last.swap(true, Ordering::Relaxed);
    let oldest = waiting.min_by_key(|(_, sealed)| sealed.first_lsn);
    if (saves_now || oldest.is_none())
        && let Some(done) = save_due(engine)?
    {
        return Ok(Some(done));
    }
    engine.debt.saved_last.store(false, Ordering::Relaxed);
    let Some((table, sealed)) = oldest else {
        return Ok(merge_chunks(engine).then(|| "merged chunks of a memtable".to_owned()));
    };
    let started = engine.host.clock.monotonic();
    let (bytes, memory_bytes) = (sealed.bytes, sealed.memtable.bytes());
    let begun = engine.debt.flushes_begun.fetch_add(1, Ordering::AcqRel) + 1;
    let records = match flush(engine, &table, &sealed) {
        Ok(records) => records,
        // Nobody asked for a table that is gone: whoever drops it forgets what waits.
        Err(_) if table.check_alive().is_err() => return Ok(Some(ranges::gone(&table))),
        Err(error) => {
            if error.kind() == ErrorKind::NoSpace {
                engine.debt.flush_refused.store(begun, Ordering::Release);
                engine.bell.ring();
            }
            return Err(error);
        }
    };
    let took = engine.host.clock.monotonic().saturating_sub(started);
    engine.debt.flush_bytes_per_s.note(memory_bytes as u64, took);
    engine.debt.settle_sealed(bytes);
    engine.counters.flushes.add(1);
    merge::note_overdue_of(engine, &table);
    engine.bell.ring();
    Ok(Some(format!("flushed {records} records of table `{}`", table.name)))
}

/// Saves some of an index, if one is to be saved.
fn save_due(engine: &Engine) -> Result<Option<String>> {
    let begun = engine.debt.flushes_begun.fetch_add(1, Ordering::AcqRel) + 1;
    hash_checkpoint::save_step(engine).inspect_err(|error| {
        if error.kind() == ErrorKind::NoSpace {
            engine.debt.flush_refused.store(begun, Ordering::Release);
            engine.bell.ring();
        }
    })
}

fn flush(engine: &Engine, table: &Arc<TableCore>, sealed: &Sealed) -> Result<u64> {
    let is_bottom = table.view().runs.is_empty();
    let times = clock::times_to_flush(engine, table, sealed);
    let mut written = write_sealed(engine, table, sealed, (is_bottom, times), &|applied, view| {
        ranges::range_changes(engine, applied, view, install::flushed_seq(engine, table))
    })?;
    let log_start = install::log_start_without(engine, Some(sealed));
    settle::sync_values(engine).inspect_err(|_| written.discard())?; // what the parts point to
    sync_log_for(engine, sealed, log_start).inspect_err(|_| written.discard())?;
    written.changes.extend(log_start.map(|lsn| install::horizon(engine, lsn)));
    let records = written.records;
    install::install(
        engine,
        table,
        written.changes,
        Installed { parts: written.parts, flushed: Some(sealed.clone()) },
    )?;
    if let Some(lsn) = log_start {
        install::retire_segments(engine, lsn);
    }
    Ok(records)
}

/// Writes a sealed memtable as the newest run of its table, which no manifest lists yet. `is_bottom` when the
/// table has nothing older; `times` is what it keeps of the past, taken by now; `range_changes` says what becomes of the range deletes.
pub(crate) fn write_sealed(
    engine: &Engine,
    table: &Arc<TableCore>,
    sealed: &Sealed,
    (is_bottom, times): (bool, Times),
    range_changes: &dyn Fn(&Applied<'_>, &TableView) -> Vec<Change>,
) -> Result<Written> {
    let borders = engine.borders.all();
    let (min_seq, max_seq) = sealed.memtable.seqs().unwrap_or((0, 0));
    let view = table.view();
    let ranges = ranges::step_ranges(&view, sealed.last_seq);
    let rules = StepRules {
        order: table.rules.order.clone(),
        fold: table.rules.fold.clone(),
        borders: borders.clone(),
        range_deletes: ranges.clone(),
        bottom: if is_bottom { BottomRule::Always } else { BottomRule::Never },
    };
    let keep_seqs = table.keeps_past || borders.iter().any(|&border| border >= min_seq && border < max_seq);
    let mut step = FoldStep::new(sealed.memtable.stream(), rules).with_times(times);
    let mut output = Output::new(engine, table, (keep_seqs, is_bottom, times), Who::Flush);
    let mut parts = Vec::new();
    write_parts(engine, table, sealed, &mut step, &mut output, &mut parts).inspect_err(|_| {
        engine.debt.flushed_bytes.store(0, Ordering::Relaxed);
        output.discard(engine);
        parts.iter().for_each(|(part, _)| part.retire());
    })?;
    let run = folddb_base::ids::RunId(engine.numbers.take().0);
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
    let applied = Applied { table, ranges: &ranges, borders: &borders, sheltering, written: Some(&parts) };
    changes.extend(range_changes(&applied, &view));
    changes.push(Change::Flushed { table: table.id, seq: sealed.last_seq });
    let counts = *step.counts();
    engine.counters.fold_failures.add(counts.declined_failed);
    engine.counters.records_expired.add(counts.expired);
    Ok(Written { changes, parts, records: counts.records_out })
}

/// Writes all of a memtable, part after part, each durable and open for reading.
fn write_parts(
    engine: &Engine,
    table: &TableCore,
    sealed: &Sealed,
    step: &mut FoldStep<FlushStream>,
    output: &mut Output,
    parts: &mut Vec<(Arc<PartFile>, PartFacts)>,
) -> Result<()> {
    let record_bytes = sealed.bytes / (sealed.memtable.records() as usize).max(1);
    loop {
        let result = step.step(step::step_budget(engine), output.writer(engine)?)?;
        let flushed_bytes = (step.counts().records_in as usize * record_bytes).min(sealed.bytes);
        engine.debt.flushed_bytes.store(flushed_bytes, Ordering::Relaxed);
        match result {
            StepResult::Done => break,
            StepResult::AtKeyBorder if output.bytes_written() >= engine.options.part_bytes => {
                parts.extend(output.close_part(engine, table)?);
            }
            _ => {}
        }
    }
    parts.extend(output.close_part(engine, table)?);
    Ok(())
}

/// A batch may have records in several tables. Before those of one become durable in a run, the log of the
/// others' must be, or a power cut could leave half a batch.
fn sync_log_for(engine: &Engine, sealed: &Sealed, log_start: Option<Lsn>) -> Result<()> {
    match log_start {
        Some(needed) if needed < sealed.end_lsn => log_sync::sync_to(engine, sealed.end_lsn),
        Some(needed) => feeds::sync_history(engine, needed),
        None => Ok(()),
    }
}

/// Merges the chunks of active memtables whose readers have asked for it. False when none has.
fn merge_chunks(engine: &Engine) -> bool {
    let mut merged = false;
    let wishes = std::mem::take(&mut *engine.work.chunked.lock());
    let catalog = engine.catalog();
    for table in wishes.into_iter().filter_map(|id| catalog.by_id(id)) {
        table.take_chunk_merge_wish();
        // In this order: what is published first, which bounds what is touched, then all borders below it.
        let published = engine.published();
        let view = table.view();
        let mut borders = engine.borders.all();
        borders.extend(
            view.range_deletes.newer_than(install::flushed_seq(engine, table)).map(|range| range.seq),
        );
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
fn limit_log(engine: &Engine) {
    const SEGMENTS_MAX: usize = 4;
    // Segments of values count by their bytes: they begin small. Where space is short, those that only memory keeps are given back.
    let max = if engine.health.short_of_space().is_some() { 1 } else { SEGMENTS_MAX };
    let kept = feeds::segments_of_memory(engine);
    // What memory leads to counts as alive, dead or not: no more of it than a few segments, or an eighth of a lane that is small.
    let values_max = engine.options.values_segment_bytes().saturating_mul(max as u64);
    let values_max = values_max.min((engine.values.bytes() / 8).max(PINNED_BYTES_MIN));
    let is_long = kept > max;
    if !is_long && dead_segments::pinned_value_bytes(engine) <= values_max {
        return;
    }
    let mut committer = engine.commit.lock();
    let oldest = committer.written().min_by_key(|active| active.first_lsn);
    let Some((table, first_lsn)) = oldest.map(|active| (Arc::clone(&active.table), active.first_lsn)) else {
        return;
    };
    // A memtable that is sealed already may hold the log back too; its flush comes first.
    let sealed_first = engine
        .tables_sealed()
        .iter()
        .flat_map(|table| table.view().sealed.clone())
        .map(|s| s.first_lsn)
        .min();
    if !is_long && max == SEGMENTS_MAX && !hash_checkpoint::saving_pays(&table) {
        return;
    }
    if sealed_first.is_none() || first_lsn < sealed_first {
        commit::seal(engine, &mut committer, &table);
    }
}

/// Seals every memtable and flushes until none waits.
pub(crate) fn flush_all(engine: &Engine) -> Result<()> {
    engine.check_not_read_only()?;
    engine.health.check_writable(true)?;
    seal_all(engine);
    wait_until_flushed(engine)
}

/// Seals every memtable that has been written to. False when there was none.
pub(crate) fn seal_all(engine: &Engine) -> bool {
    let mut committer = engine.commit.lock();
    let written: Vec<_> = committer.written().map(|active| Arc::clone(&active.table)).collect();
    written.iter().for_each(|table| commit::seal(engine, &mut committer, table));
    !written.is_empty()
}

fn wait_until_flushed(engine: &Engine) -> Result<()> {
    let begun = engine.debt.flushes_begun.load(Ordering::Acquire);
    // What is sealed from now on is for others to wait for, or a busy writer could keep this waiting for ever.
    let through = engine.published();
    let is_flushed = |table: &Arc<TableCore>| table.view().sealed.iter().all(|s| s.last_seq > through);
    loop {
        let seen = engine.bell.count();
        if let Some(cause) = engine.health.cause() {
            return Err(cause);
        }
        let all_flushed = engine.tables_sealed().iter().all(is_flushed)
            && engine.catalog().hashed().all(|(_, hashed)| !hashed.is_to_be_saved());
        engine.check_open()?; // nothing waits in a closed store, flushed or not
        if all_flushed {
            return Ok(());
        }
        // Writers may be refused while there is still enough for upkeep: only a flush that fails counts.
        if engine.debt.is_refused_since(begun) {
            return Err(pressure::no_space(engine));
        }
        if pressure::upkeep_runs(engine) {
            engine.bell.wait(seen, std::time::Duration::from_millis(50));
        } else {
            flush_step(engine)?;
        }
    }
}
