//! How a change becomes visible to everyone: one edit of the manifest, then the next view of the
//! table.
//!
//! New parts are synced and their names durable before the edit; files that the edit no longer
//! lists are unlinked after it is durable and nobody reads them.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use folddb_base::{Error, ErrorKind, FileNumber, Lsn, Result, Seq};
use folddb_host::sync::atomic::Ordering;
use folddb_layout::file_name::FileName;
use folddb_layout::manifest_edit::{Change, PartState};
use folddb_manifest::{RangeDelete, State, TableState};
use folddb_rules::table_rules::BoundRules;
use folddb_run::{Part, PartFacts};

use crate::state::catalog::TableCore;
use crate::state::engine::Engine;
use crate::state::manifest::Manifest;
use crate::state::range_deletes::RangeDeletes;
use crate::state::view::{PartFile, RunView, Sealed, TableView, runs_of};
use crate::state::{clock, log_sync};

/// What an edit changes about one table, in addition to its changes.
#[derive(Default)]
pub struct Installed {
    /// Parts that the edit adds.
    pub parts: Vec<Arc<PartFile>>,
    /// A memtable whose records are now in those parts.
    pub flushed: Option<Sealed>,
}

/// Writes an edit about `table` and swaps its view in.
pub fn install(
    engine: &Engine,
    table: &TableCore,
    mut changes: Vec<Change>,
    installed: Installed,
) -> Result<()> {
    let mut manifest = engine.manifest.lock();
    // If the edit has certainly not taken place, the parts are useless and are removed.
    let discard = || installed.parts.iter().for_each(|part| part.retire());
    engine.check_readable(table).inspect_err(|_| discard())?;
    drop_idle_retirements(manifest.state(), table, &mut changes);
    changes.extend(numbers_change(engine, manifest.state()));
    changes.extend(clock::times_change(engine, manifest.state()));
    manifest.append(&changes).inspect_err(|error| {
        if error.kind() == ErrorKind::NoSpace {
            discard();
        }
        log_sync::note_write_failure(engine, error);
    })?;
    let Some(state) = manifest.state().tables.get(&table.id) else {
        return Err(Error::invalid(format!("table `{}` is not in the manifest", table.name)));
    };
    show(engine, table, state, &installed);
    Ok(())
}

/// The change that reserves more numbers, if they run short.
pub(crate) fn numbers_change(engine: &Engine, state: &State) -> Option<Change> {
    engine.numbers.change(state.next_number)
}

/// Reserves more numbers, if they run short, for files that no edit lists yet. Does nothing before
/// the manifest has a log, as during replay: files created then are known by their names. Not under
/// the manifest's lock.
pub(crate) fn reserve_numbers(engine: &Engine) -> Result<()> {
    if !engine.numbers.run_short() {
        return Ok(());
    }
    let mut manifest = engine.manifest.lock();
    if matches!(*manifest, Manifest::ReadOnly(_)) {
        return Ok(());
    }
    let Some(change) = numbers_change(engine, manifest.state()) else { return Ok(()) };
    manifest.append(&[change]).inspect_err(|error| log_sync::note_write_failure(engine, error))
}

/// Swaps in the view of a table that the durable manifest describes. The caller holds the
/// manifest's lock, or is alone.
pub fn show(engine: &Engine, table: &TableCore, state: &TableState, installed: &Installed) {
    engine.values.installs.fetch_add(1, Ordering::AcqRel);
    let mut files = table.part_files();
    files.extend(installed.parts.iter().map(|part| (part.number, Arc::clone(part))));
    let order = &table.rules.order;
    let runs = Arc::new(runs_of(state, &files, order));
    count_parts(engine, &table.view().runs, &runs);
    note_leading(engine, table, &runs);
    let listed: HashSet<FileNumber> =
        state.runs.iter().flat_map(|run| &run.parts).map(|part| part.file).collect();
    for file in files.values().filter(|file| !listed.contains(&file.number)) {
        file.retire();
    }
    let before = Arc::clone(&table.view().range_deletes);
    let is_in_force =
        |range: &RangeDelete| range.seq > state.flushed_seq || state.range_deletes.contains_key(&range.seq);
    let kept = match before.iter().all(|range| is_in_force(range)) {
        true => None,
        false => Some(RangeDeletes::of(order, before.iter().filter(|range| is_in_force(range)).cloned())),
    };
    let newest = before.iter().last().map_or(0, |range| range.seq);
    table.change_view(|view| {
        let is_flushed = |sealed: &Sealed| {
            installed.flushed.as_ref().is_some_and(|flushed| Arc::ptr_eq(&flushed.memtable, &sealed.memtable))
        };
        let range_deletes = match kept {
            None => Arc::clone(&view.range_deletes),
            Some(mut kept) => {
                view.range_deletes.newer_than(newest).for_each(|range| kept.add(order, Arc::clone(range)));
                Arc::new(kept)
            }
        };
        TableView {
            active: Arc::clone(&view.active),
            sealed: view.sealed.iter().filter(|sealed| !is_flushed(sealed)).cloned().collect(),
            runs,
            range_deletes,
        }
    });
    engine.work.changed.lock().insert(table.id);
    if !have_separated_values(&table.view().runs) {
        engine.work.leading.lock().remove(&table.id);
    }
}

/// Notes a table whose parts point to separated values, before the parts are visible.
pub(crate) fn note_leading(engine: &Engine, table: &TableCore, runs: &[RunView]) {
    if have_separated_values(runs) {
        engine.work.leading.lock().insert(table.id);
    }
}

/// Counts the bytes of added and removed parts.
pub(crate) fn count_parts(engine: &Engine, before: &[RunView], after: &[RunView]) {
    let bytes = |runs: &[RunView]| -> u64 {
        runs.iter().flat_map(|run| &run.parts).map(|part| part.file.part.facts().file_bytes).sum()
    };
    engine.work.part_bytes.fetch_add(bytes(after), Ordering::Relaxed);
    engine.work.part_bytes.fetch_sub(bytes(before), Ordering::Relaxed);
}

/// A new part file of a table to write: its number and path, and the rules that it is written by.
/// Where rules about parts are altered meanwhile, the number says whether these are the old ones.
pub(crate) fn new_part(engine: &Engine, table: &TableCore) -> Result<(FileNumber, PathBuf, Arc<BoundRules>)> {
    reserve_numbers(engine)?;
    let _same = table.altering.read();
    let number = engine.numbers.take();
    Ok((number, engine.path(&FileName::Part(number).to_string()), table.present()))
}

/// Opens a part that has just been written and synced, once its name is durable, too.
pub(crate) fn adopt_part(
    engine: &Engine,
    table: &TableCore,
    number: FileNumber,
    path: PathBuf,
) -> Result<Arc<PartFile>> {
    sync_dir(engine)?;
    let part = Part::open(&engine.host.files, &path, number, &table.rules.order, &engine.parts)?;
    part.warm();
    Ok(PartFile::new(part, number, path, Arc::clone(&engine.host.files)))
}

pub fn sync_dir(engine: &Engine) -> Result<()> {
    engine
        .host
        .files
        .sync_dir(&engine.dir)
        .map_err(|error| Error::io("sync the directory", &engine.dir, error))
}

/// Where replay must begin if `flushed` needs none: the first LSN of all other memtables.
pub(crate) fn log_start_without(engine: &Engine, flushed: Option<&Sealed>) -> Option<Lsn> {
    log_start_without_index(engine, flushed, None)
}

/// As [`log_start_without`], if this table's index has been saved, too.
pub(crate) fn log_start_without_index(
    engine: &Engine,
    flushed: Option<&Sealed>,
    saved: Option<&Arc<TableCore>>,
) -> Option<Lsn> {
    let committer = engine.commit.lock();
    let end = committer.journal.as_ref()?.end_lsn();
    let active = committer.written().filter_map(|active| active.first_lsn);
    let mut first = active.min().unwrap_or(end);
    for table in engine.tables_sealed() {
        let view = table.view();
        let waiting = view
            .sealed
            .iter()
            .filter(|sealed| flushed.is_none_or(|flushed| !Arc::ptr_eq(&flushed.memtable, &sealed.memtable)));
        first = waiting.map(|sealed| sealed.first_lsn).min().unwrap_or(first).min(first);
    }
    for (table, hashed) in engine.catalog().hashed() {
        if saved.is_none_or(|saved| !Arc::ptr_eq(saved, table)) {
            first = first.min(hashed.saving_from.load(Ordering::Acquire));
        }
    }
    Some(first)
}

/// The change that records the position of the log.
pub(crate) fn horizon(engine: &Engine, log_start_lsn: Lsn) -> Change {
    let durable_lsn = engine.journal.as_ref().map_or(log_start_lsn, |journal| journal.durable_lsn());
    Change::Horizon {
        last_seq: engine.published(),
        log_start_lsn,
        durable_lsn: durable_lsn.max(log_start_lsn),
    }
}

/// Removes segments of the log that end at or before `log_start_lsn`, which a durable edit has
/// recorded, except those retained for feeds.
pub(crate) fn retire_segments(engine: &Engine, log_start_lsn: Lsn) {
    let Some(journal) = &engine.journal else { return };
    engine.feeds.log_starts_at(log_start_lsn);
    for number in journal.retire_before(engine.feeds.held_from(log_start_lsn)) {
        // The next opening removes a segment that stays.
        let _ = engine.host.files.remove(&engine.path(&FileName::Log(number).to_string()));
    }
}

/// Removes retirements of range deletes from an edit that another edit has done in the meantime.
fn drop_idle_retirements(state: &State, table: &TableCore, changes: &mut Vec<Change>) {
    let known = state.tables.get(&table.id).map(|table| &table.range_deletes);
    changes.retain(|change| match change {
        Change::RetireRangeDelete { seq, .. } => known.is_some_and(|known| known.contains_key(seq)),
        _ => true,
    });
}

fn have_separated_values(runs: &[RunView]) -> bool {
    runs.iter().flat_map(|run| &run.parts).any(|part| !part.file.part.facts().values.is_empty())
}

/// The manifest's entry of a part.
pub fn part_state(number: FileNumber, facts: &PartFacts) -> PartState {
    PartState {
        file: number,
        file_bytes: facts.file_bytes,
        records: facts.records,
        low: facts.low.clone(),
        high: facts.high.clone(),
        min_seq: facts.min_seq,
        max_seq: facts.max_seq,
        deletes: facts.deletes,
        live_bytes: facts.file_bytes,
        trimmed: false,
        fingerprint: Some(facts.fingerprint),
    }
}

pub fn flushed_seq(engine: &Engine, table: &TableCore) -> Seq {
    engine.manifest.lock().state().tables.get(&table.id).map_or(0, |state| state.flushed_seq)
}
