//! Tables that archive their logs forever (`archive_log=on`), so that their runs can be rebuilt
//! from them (compare leveled's reload strategies).
//!
//! Such a table has its own change feed, which nobody reads and whose position stays at the end of
//! the log when the table was created. So this feed retains, over flushes, restarts and crashes,
//! everything ever written to the table, with its values. It makes writes no slower; it costs
//! space.
//!
//! Called by `table::edits` when tables are created and dropped, by `feed` for the name, and by
//! `maintenance::repair`, which reads such a log.

use folddb_base::{Error, Result};
use folddb_manifest::{Change, FeedPhase, FeedState, State};

use crate::edit::feeds;
use crate::state::engine::Engine;
use crate::state::log_sync;

pub use folddb_layout::feed_state::ARCHIVE_PREFIX as PREFIX;

/// The name of the feed that retains the log of a table.
pub(crate) fn log_feed_name(table: &str) -> String {
    format!("{PREFIX}{table}")
}

/// Fails for the name of such a feed, which cannot be read.
pub fn check_feed_is_no_log(name: &str) -> Result<()> {
    match name.strip_prefix(PREFIX) {
        None => Ok(()),
        Some(table) => Err(Error::invalid(format!(
            "feed `{name}` is the log that table `{table}` archives, and cannot be read: choose another name"
        ))),
    }
}

/// Where the archived log of a table begins; none if it is not archived.
pub fn archived_log<'s>(state: &'s State, table: &str) -> Option<&'s FeedState> {
    log_feed(state, table).filter(|feed| feed.holds())
}

/// The feed that retains the log of a table, even if it is lost.
pub fn log_feed<'s>(state: &'s State, table: &str) -> Option<&'s FeedState> {
    state.feeds.get(&log_feed_name(table)).filter(|feed| feed.table == table)
}

/// Fails for a feed that retains the log of a table: it exists as long as the table.
pub fn check_holds_no_log(state: &State, name: &str) -> Result<()> {
    match name.strip_prefix(PREFIX).filter(|table| archived_log(state, table).is_some()) {
        None => Ok(()),
        Some(table) => Err(Error::invalid(format!(
            "feed `{name}` is the log that table `{table}` archives: it goes when the table is dropped"
        ))),
    }
}

/// The change that archives the log for a table from now on. Everything before is then durable. The
/// caller holds the manifest's lock.
pub fn archive_log(engine: &Engine, state: &State, table: &str) -> Result<Change> {
    let lsn = engine.journal.as_ref().map_or(state.log_start_lsn, |journal| journal.end_lsn());
    log_sync::sync_to(engine, lsn)?;
    let feed = FeedState {
        name: log_feed_name(table),
        table: table.to_owned(),
        prefix: Vec::new(),
        bytes_max: u64::MAX,
        phase: FeedPhase::Changes,
        seq: engine.published(),
        lsn,
        note: state.feeds.last_note(),
        values_from: feeds::values_from(engine, state, lsn),
    };
    Ok(Change::SetFeed { feed })
}
