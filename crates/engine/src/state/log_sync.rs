//! Makes the log durable, and notes failures: on a full disk, writes are refused until there is
//! space; any other failure of a write poisons the store.

use folddb_base::{Error, ErrorKind, Lsn, Result};

use crate::state::engine::Engine;
use crate::state::timing;

/// Waits until everything up to `lsn` is on the disk.
pub fn sync_to(engine: &Engine, lsn: Lsn) -> Result<()> {
    let Some(journal) = &engine.journal else { return Ok(()) };
    if journal.durable_lsn() >= lsn {
        return Ok(());
    }
    let began = timing::begin_measured(engine);
    let synced = journal.sync_to(lsn).inspect_err(|error| note_write_failure(engine, error));
    timing::end_measured(engine, &engine.latencies.sync, began);
    engine.sync_waiters.wake(journal.durable_lsn());
    synced
}

/// The same for everything that has been written so far.
pub fn sync_log(engine: &Engine) -> Result<()> {
    engine.journal.as_ref().map_or(Ok(()), |journal| sync_to(engine, journal.end_lsn()))
}

/// Notes a full disk that was met by a file which is not part of the store yet.
pub(crate) fn note_lack(engine: &Engine, error: &Error) {
    if error.kind() == ErrorKind::NoSpace {
        note_write_failure(engine, error);
    }
}

pub fn note_write_failure(engine: &Engine, error: &Error) {
    match error.kind() {
        ErrorKind::NoSpace => engine.health.set_short(Some(error.message().to_owned())),
        ErrorKind::Closed => {}       // the value log is closed before the store
        ErrorKind::InvalidInput => {} // refused before anything was written, as a batch longer than a segment is
        _ => engine.health.poison(error),
    }
}

/// The error of a published batch whose sync has failed.
#[cold]
pub fn not_durable(done: &str, cause: &Error) -> Error {
    let message = format!("{done} and may not be durable: {}", cause.message());
    Error::new(ErrorKind::NotDurable, message)
}

/// The pointers of hashed tables are those in memory; a power cut must not bring back an index that
/// points elsewhere.
pub(crate) fn sync_for_hashed(engine: &Engine) -> Result<()> {
    if has_hashed(engine) { sync_log(engine) } else { Ok(()) }
}

/// Records in the manifest how far the log is durable, if it does not say so yet: then damage to it
/// is reported, instead of being taken for the end that a crash left. On a full disk, a later edit
/// does this.
pub(crate) fn vouch(engine: &Engine) -> Result<()> {
    let Some(journal) = &engine.journal else { return Ok(()) };
    let mut manifest = engine.manifest.lock();
    if journal.durable_lsn() <= manifest.state().durable_lsn {
        return Ok(());
    }
    match manifest.append(&[]) {
        Err(error) if error.kind() != ErrorKind::NoSpace => Err(error),
        _ => Ok(()),
    }
}

/// Whether the store has a hashed table.
pub(crate) fn has_hashed(engine: &Engine) -> bool {
    engine.catalog().hashed().next().is_some()
}
