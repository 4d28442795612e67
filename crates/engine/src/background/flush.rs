//! Flushing: the oldest sealed memtable of a table becomes the newest run of tier 0.

use std::sync::Arc;

use folddb_base::{ErrorKind, Lsn, Result, counted};
use folddb_host::sync::atomic::Ordering;
use folddb_layout::manifest_edit::Change;
use folddb_memtable::FlushStream;
use folddb_merge::{BottomRule, FoldStep, StepResult, StepRules, Times};
use folddb_run::PartFacts;

use super::output::Output;
use super::ranges::Applied;
use crate::background::state::Background;
use crate::background::{merge, ranges, step};
use crate::edit::install::{Installed, part_state};
use crate::edit::{feeds, install};
use crate::events::{Event, FlushEvent};
use crate::state::catalog::TableCore;
use crate::state::disk_quota::SpaceUser;
use crate::state::engine::Engine;
use crate::state::view::{PartFile, Sealed, TableView};
use crate::state::{clock, log_sync};
use crate::values::settle;
use crate::write::commit;

/// A memtable as parts on the disk, and the changes that add them to the store.
pub struct Written {
    pub changes: Vec<Change>,
    pub parts: Vec<Arc<PartFile>>,
    pub records: u64,
}

impl Written {
    /// Gives up: removes the files.
    pub fn discard(&self) {
        self.parts.iter().for_each(|part| part.retire());
    }
}

/// Flushes the sealed memtable that has waited longest, and notes what it took; describes what was
/// done.
pub(crate) fn flush_oldest(
    background: &Background,
    table: &Arc<TableCore>,
    sealed: &Sealed,
) -> Result<Option<String>> {
    let engine = &background.engine;
    let started = engine.host.clock.monotonic();
    let (bytes, memory_bytes) = (sealed.bytes, sealed.memtable.bytes());
    let begun = engine.debt.flushes_begun.fetch_add(1, Ordering::AcqRel) + 1;
    let records = match flush(engine, table, sealed) {
        Ok(records) => records,
        // The table was dropped, with its memtables, which is no failure.
        Err(_) if table.check_alive().is_err() => return Ok(Some(ranges::gone(table))),
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
    engine.memory.settle_sealed(bytes);
    engine.counters.flushes.add(1);
    engine.latencies.flush.note(took);
    engine.events.note(|| {
        let (table, memory_bytes) = (table.name.clone(), memory_bytes as u64);
        Event::Flush(FlushEvent { table, records, memory_bytes, took })
    });
    merge::note_overdue_of(background, table);
    engine.bell.ring();
    Ok(Some(format!("flushed {} of table `{}`", counted(records, "record"), table.name)))
}

pub fn flush(engine: &Engine, table: &Arc<TableCore>, sealed: &Sealed) -> Result<u64> {
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

/// Writes a sealed memtable as the newest run of its table, which no manifest lists yet.
/// `is_bottom` if the table has nothing older; `times` is what it keeps of the past, already
/// determined; `range_changes` returns the changes of range deletes.
pub(crate) fn write_sealed(
    engine: &Engine,
    table: &Arc<TableCore>,
    sealed: &Sealed,
    (is_bottom, times): (bool, Times),
    range_changes: &dyn Fn(&Applied<'_>, &TableView) -> Vec<Change>,
) -> Result<Written> {
    let boundaries = engine.boundaries.all();
    let (min_seq, max_seq) = sealed.memtable.seqs().unwrap_or((0, 0));
    let view = table.view();
    let ranges = ranges::step_ranges(&view, sealed.last_seq);
    let rules = StepRules {
        order: table.rules.order.clone(),
        fold: table.rules.fold.clone(),
        boundaries: boundaries.clone(),
        range_deletes: ranges.clone(),
        bottom: if is_bottom { BottomRule::Always } else { BottomRule::Never },
    };
    let keep_seqs =
        table.keeps_past || boundaries.iter().any(|&boundary| boundary >= min_seq && boundary < max_seq);
    let mut step = FoldStep::new(sealed.memtable.stream(), rules).with_times(times);
    let mut output = Output::new(engine, table, (keep_seqs, is_bottom, times), SpaceUser::Flush);
    let mut parts = Vec::new();
    write_parts(engine, table, sealed, &mut step, &mut output, &mut parts).inspect_err(|_| {
        engine.memory.note_flushed(0);
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
    let applied =
        Applied { table, ranges: &ranges, boundaries: &boundaries, sheltering, written: Some(&parts) };
    changes.extend(range_changes(&applied, &view));
    changes.push(Change::Flushed { table: table.id, seq: sealed.last_seq });
    let counts = *step.counts();
    engine.counters.fold_failures.add(counts.declined_failed);
    engine.counters.records_expired.add(counts.expired);
    Ok(Written { changes, parts, records: counts.records_out })
}

/// Writes a memtable, part after part, each durable and open for reading.
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
        output.count_written(engine);
        let flushed_bytes = (step.counts().records_in as usize * record_bytes).min(sealed.bytes);
        engine.memory.note_flushed(flushed_bytes);
        match result {
            StepResult::Done => break,
            StepResult::AtKeyBoundary if output.bytes_written() >= engine.options.part_bytes => {
                parts.extend(output.close_part(engine, table)?);
            }
            _ => {}
        }
    }
    parts.extend(output.close_part(engine, table)?);
    Ok(())
}

/// A batch may have records in several tables. Before its records in one table become durable in a
/// run, the log with the others must be durable, or a power cut could leave half a batch.
fn sync_log_for(engine: &Engine, sealed: &Sealed, log_start: Option<Lsn>) -> Result<()> {
    match log_start {
        Some(needed) if needed < sealed.end_lsn => log_sync::sync_to(engine, sealed.end_lsn),
        Some(needed) => feeds::sync_history(engine, needed),
        None => Ok(()),
    }
}

/// Seals every memtable that has been written to. False if there was none.
pub(crate) fn seal_all(engine: &Engine) -> bool {
    let mut committer = engine.commit.lock();
    let written: Vec<_> = committer.written().map(|active| Arc::clone(&active.table)).collect();
    written.iter().for_each(|table| commit::seal(engine, &mut committer, table));
    !written.is_empty()
}
