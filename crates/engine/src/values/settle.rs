//! Maintenance of the value log: the next segment is created ahead, full ones are sealed, synced
//! and fenced, and it is ended when the store is closed.
//!
//! ```text
//!   sync    before each sync of the log, before each edit that lists parts, and when much has accumulated
//!   seal    a full segment that is durable: said in the manifest, then cut to what counts
//!   fence   notes where the log ends once every pointer to the segment is in it
//! ```

use folddb_base::{FileNumber, Result};
use folddb_host::sync::atomic::Ordering;
use folddb_layout::file_name::FileName;
use folddb_manifest::Change;

use crate::state::engine::Engine;
use crate::state::log_sync;
use crate::values::{directories, put, segments};

// ---- background work ----------------------------------------------------------------------------

/// Prepares the next window and the next segment, so that no write waits for them.
pub(crate) fn keep_values_ready(engine: &Engine) -> Result<()> {
    let value_log = &engine.values.log;
    value_log.prepare();
    // If space is short, the remaining half of the segment is used first.
    if value_log.wants_next() && engine.health.cause().is_none() && !engine.health.is_short() {
        let _only = engine.values.making.lock();
        if value_log.wants_next() {
            put::make_segment(engine, 0)?;
        }
    }
    directories::keep_directories_ready(engine)
}

/// Syncs what has accumulated, so that an opening after a crash has little to check, and seals full
/// segments.
pub(crate) fn settle_values(engine: &Engine) -> Result<()> {
    let value_log = &engine.values.log;
    if value_log.unsynced_bytes() > engine.options.values_segment_bytes() / 4
        && let Some(journal) = &engine.journal
    {
        log_sync::sync_to(engine, journal.end_lsn())?; // log and value log: the log then guarantees these values
        if value_log.unsynced_bytes() > engine.options.values_segment_bytes() / 4 {
            sync_values(engine)?; // pieces of streams, which the log does not have yet
        }
    }
    if value_log.has_left_early() {
        sync_values(engine)?;
    }
    shed_values(engine)?;
    let (sealed, directories) = (value_log.take_sealed(), value_log.directories.take_sealed());
    if sealed.is_empty() && directories.is_empty() {
        fence_unpinned(engine);
        return Ok(());
    }
    let changes: Vec<Change> = sealed
        .iter()
        .map(segments::seal_change)
        .chain(directories.iter().map(segments::seal_directory_change))
        .collect();
    // A segment that is not sealed by an edit is sealed at the next opening; until then it is
    // longer than necessary.
    segments::edit_values(engine, &changes)
        .inspect_err(|error| log_sync::note_write_failure(engine, error))?;
    sealed.iter().for_each(|&end| value_log.cut(end));
    let numbers = sealed.iter().map(|segment| segment.number);
    fence(engine, numbers.chain(directories.iter().map(|directory| directory.number)).collect());
    Ok(())
}

/// Gives up open segments that are much too long for the present value log.
pub(crate) fn shed_values(engine: &Engine) -> Result<()> {
    if engine.health.cause().is_some() {
        return Ok(());
    }
    let _only = engine.values.making.lock();
    let Some(gone) = engine.values.log.shed(engine.values.bytes()) else { return Ok(()) };
    let number = gone.number();
    drop(gone);
    let mut manifest = engine.manifest.lock();
    engine.check_open()?;
    // If the edit fails, the segment stays without values, and the next opening removes it from the
    // list.
    let unlisted = manifest.append(&[Change::RemoveValues { segment: number }]);
    unlisted.inspect_err(|error| log_sync::note_write_failure(engine, error))?;
    segments::note_listed_values(engine, &manifest);
    segments::begin_without(engine, &manifest, &[number]);
    Ok(())
}

/// Notes the end of the log, which now has everything that will ever point to these segments.
pub(crate) fn fence(engine: &Engine, sealed: Vec<FileNumber>) {
    drop(engine.values.placing.write()); // writers of values in them have these in a memtable now, or pin them
    engine.values.unfenced.lock().extend(sealed);
    fence_unpinned(engine);
}

/// Notes the same for segments that no stream writer holds any more.
pub(crate) fn fence_unpinned(engine: &Engine) {
    let mut unfenced = engine.values.unfenced.lock();
    if unfenced.is_empty() {
        return;
    }
    let Some(journal) = &engine.journal else { return };
    let pins = engine.values.pins.lock();
    let (rest, free) = unfenced.drain(..).partition(|number| pins.contains_key(&(number.0 as u32)));
    *unfenced = rest;
    drop(pins);
    let free: Vec<FileNumber> = free;
    if free.is_empty() {
        return;
    }
    let end = journal.end_lsn();
    engine.values.fences.lock().extend(free.into_iter().map(|number| (number, end)));
    engine.values.installs.fetch_add(1, Ordering::AcqRel);
}

/// Makes all values that were put so far durable.
pub(crate) fn sync_values(engine: &Engine) -> Result<()> {
    engine.values.log.sync().inspect_err(|error| log_sync::note_write_failure(engine, error))
}

/// Ends the value log in order: used segments are sealed, unused ones removed.
pub(crate) fn close_values(engine: &Engine) -> Result<()> {
    let value_log = &engine.values.log;
    let ((ends, unused), (directories, empty)) = (value_log.close()?, value_log.directories.close()?);
    let unused: Vec<FileName> = unused
        .into_iter()
        .map(FileName::Values)
        .chain(empty.into_iter().map(FileName::ValueDirectory))
        .collect();
    let mut changes: Vec<Change> = ends
        .iter()
        .map(segments::seal_change)
        .chain(directories.iter().map(segments::seal_directory_change))
        .collect();
    let numbers = unused.iter().filter_map(|name| name.number());
    changes.extend(numbers.map(|segment| Change::RemoveValues { segment }));
    if changes.is_empty() {
        return Ok(());
    }
    segments::edit_values(engine, &changes)?;
    ends.iter().for_each(|&end| value_log.cut(end));
    segments::remove_values(engine, &unused);
    Ok(())
}
