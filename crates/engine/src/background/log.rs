//! The log is kept ready, so that no commit waits for a file: the next segments are made ahead,
//! full ones are synced, and when nothing is written any more the manifest says how far the log is
//! durable.
//!
//! Called by the thread of the log, and where there are no threads with each step (`scheduler`).

use std::time::Duration;

use folddb_base::Result;

use crate::state::engine::Engine;
use crate::state::log_sync;
use crate::values::settle;

/// All of it, as far as it is due. What fails is noted, for later commits to be refused.
pub(crate) fn keep_ready(engine: &Engine, now: Duration) -> Result<()> {
    let Some(journal) = &engine.journal else { return Ok(()) };
    let kept = journal.background(now).and_then(|()| settle::keep_values_ready(engine));
    let kept = kept.and_then(|()| vouch_when_idle(engine, now));
    kept.inspect_err(|error| log_sync::note_write_failure(engine, error))
}

/// Records in the manifest how far the log is durable when no write does so any more: then segments
/// that are removed while the store is closed are noticed.
fn vouch_when_idle(engine: &Engine, now: Duration) -> Result<()> {
    let is_due = engine.journal.as_ref().is_some_and(|journal| journal.is_to_be_vouched(now));
    if is_due { log_sync::vouch(engine) } else { Ok(()) }
}
