//! Tables that archive their logs forever (`log=forever`), so that their runs can be rebuilt from
//! it: what leveled's reload strategies are for.
//!
//! Such a table has a change feed of its own that nobody reads: it stands where the log was when
//! the table was made, and never moves. What feeds hold, over flushes, restarts and crashes, is
//! then all that was ever written to the table, with the values that it leads to. Nothing is paid
//! on the way of a write; the price is space.
//!
//! Called by `store` when tables come and go, by `feed` for the name, and by `maintenance::repair`,
//! which reads such a log.

use folddb_base::{Error, Result};
use folddb_manifest::{Change, FeedPhase, FeedState, State};

use crate::edit::feeds;
use crate::state::engine::Engine;
use crate::state::log_sync;

/// The names of such feeds begin so.
pub const PREFIX: &str = "log:";

/// The feed that holds the log of a table.
pub(crate) fn log_feed_name(table: &str) -> String {
    format!("{PREFIX}{table}")
}

/// Fails for the name of such a feed: it is not for reading.
pub fn check_feed_is_no_log(name: &str) -> Result<()> {
    match name.strip_prefix(PREFIX) {
        None => Ok(()),
        Some(table) => Err(Error::invalid(format!(
            "feed `{name}` is the log that table `{table}` archives, and cannot be read: choose another name"
        ))),
    }
}

/// Where the log of a table begins that is kept forever; none where it is not.
pub fn archived_log<'s>(state: &'s State, table: &str) -> Option<&'s FeedState> {
    log_feed(state, table).filter(|feed| feed.holds())
}

/// The feed that holds the log of a table, or was to: it may be lost.
pub fn log_feed<'s>(state: &'s State, table: &str) -> Option<&'s FeedState> {
    state.feeds.get(&log_feed_name(table)).filter(|feed| feed.table == table)
}

/// Fails for a feed that holds the log of a table: that is kept for as long as the table is.
pub fn check_holds_no_log(state: &State, name: &str) -> Result<()> {
    match name.strip_prefix(PREFIX).filter(|table| archived_log(state, table).is_some()) {
        None => Ok(()),
        Some(table) => Err(Error::invalid(format!(
            "feed `{name}` is the log that table `{table}` archives: it goes when the table is dropped"
        ))),
    }
}

/// The change that keeps the log for a table from now on. All before that is durable then. The
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
