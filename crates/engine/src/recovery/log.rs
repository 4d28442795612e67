//! The log of an open store: begun with a fresh segment, and ended in order.

use std::sync::Arc;

use folddb_base::{FileNumber, Lsn, Result};
use folddb_journal::{Journal, JournalOptions, JournalStart};
use folddb_layout::file_name::FileName;
use folddb_layout::manifest_edit::Change;

use crate::edit::install;
use crate::state::clock;
use crate::state::disk_quota::SpaceUser;
use crate::state::engine::Engine;
use crate::values::{segments, settle};

/// Begins a fresh segment, from `first_lsn` on.
pub(crate) fn start_journal(engine: &mut Engine, first_lsn: Lsn) -> Result<()> {
    let next_seq = engine.commit.lock().next_seq;
    let store_id = engine.manifest.lock().state().store_id;
    let numbers = Arc::clone(&engine.numbers);
    let values = Arc::clone(&engine.values.log);
    let journal = Journal::start_behind(
        &engine.host_for(SpaceUser::Log),
        &engine.dir,
        JournalStart { store_id, first_lsn, next_seq },
        JournalOptions {
            segment_bytes: engine.options.segment_bytes,
            segment_bytes_grown: engine.options.segment_bytes_grown(),
            append_mode: engine.options.append_mode_now(),
            ..JournalOptions::default()
        },
        Arc::new(move || numbers.take()),
        Some(Box::new(move || values.sync())), // first, since the log points there
    )?;
    engine.journal = Some(journal.syncer());
    let mut manifest = engine.manifest.lock();
    manifest.vouch_for(journal.syncer());
    engine.commit.lock().journal = Some(journal);
    manifest.append_in_snapshot(&[Change::LogOpen { open: true }])
}

/// Records durably, with these changes, that the log before `lsn` is not needed and that the log is
/// closed.
pub(crate) fn record_log_start(engine: &Engine, lsn: Lsn, mut changes: Vec<Change>) -> Result<()> {
    let mut manifest = engine.manifest.lock();
    changes.push(Change::Horizon { last_seq: engine.published(), log_start_lsn: lsn, durable_lsn: lsn });
    let has_numbers = changes.iter().any(|change| matches!(change, Change::ReserveNumbers { .. }));
    changes.extend(install::numbers_change(engine, manifest.state()).filter(|_| !has_numbers));
    changes.push(Change::LogOpen { open: false });
    let was_copied = manifest.state().log_copied == Some(true);
    changes.extend(was_copied.then_some(Change::LogCopied { copied: false }));
    changes.extend(clock::times_change(engine, manifest.state()));
    let appended = manifest.append(&changes);
    segments::note_listed_values(engine, &manifest);
    appended
}

fn remove_segments(engine: &Engine, numbers: &[FileNumber]) {
    for &number in numbers {
        // A segment that stays is not needed, and the next opening removes it.
        let _ = engine.host.files.remove(&engine.path(&FileName::Log(number).to_string()));
    }
}

/// Ends the log in order. If all of it is in runs, it is removed. `is_last` if nobody else can
/// write a file of the store any more, so that reserved but unused numbers are released.
pub fn close_journal(engine: &Engine, is_last: bool) -> Result<()> {
    let Some(journal) = engine.commit.lock().journal.take() else { return Ok(()) };
    let sync = journal.syncer();
    let end = journal.close()?;
    settle::close_values(engine)?;
    // A log without a seal, for lack of space, ends like that of a killed process: if feeds retain
    // it, the next opening must rewrite its end.
    let is_ended = sync.is_sealed() || engine.feeds.hold_nothing();
    if is_ended && log_is_in_runs(engine) {
        let unused = Change::ReserveNumbers { next_number: engine.numbers.peek() };
        record_log_start(engine, end, if is_last { vec![unused] } else { Vec::new() })?;
        let held_from = engine.feeds.held_from(end);
        let segments = sync.segments().into_iter().filter(|segment| segment.end_lsn <= held_from);
        let numbers: Vec<FileNumber> = segments.map(|segment| segment.number).collect();
        remove_segments(engine, &numbers);
    }
    sync.cut_closed(); // a feed may keep it, or the next opening replays it
    Ok(())
}

fn log_is_in_runs(engine: &Engine) -> bool {
    let committer = engine.commit.lock();
    let is_saved = engine.catalog().hashed().all(|(_, hashed)| !hashed.is_to_be_saved());
    committer.written().next().is_none() && engine.tables_sealed().is_empty() && is_saved
}
