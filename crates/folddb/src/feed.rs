//! A change feed: rows as of one moment, then every batch after it, in the order of commits, as
//! long as the store exists.
//!
//! ```text
//!   Begin   rows ... rows   RowsEnd   Batch  Batch  TableCreated  Batch ...
//!           as of seq s               s+1..  in order, whole
//! ```
//!
//! **The law**: rows and the ops of all batches after them, applied one by one, give the contents
//! of the store. Ops are given as they were written, so a fold is given as its operand and not its
//! result. Applying one twice would be wrong, so positions are exact: [`Feed::acknowledge`] makes
//! one durable, and everything after it is given again after a restart. Rows are as of a snapshot,
//! which does not survive the process: a feed whose rows were not all acknowledged begins again,
//! and says so. A consumer then has forgotten everything before, so an earlier position cannot be
//! acknowledged.
//!
//! Batches are read from the files of the log (`folddb_journal::follow`), up to where they are
//! durable; a reader that has caught up syncs what has been committed since. `feed_state.rs`
//! describes what is retained for a feed, and its bounds.

mod event;
mod batch;
mod position;
mod rows;
mod reader;
mod begin;
mod acknowledge;
mod changes;
mod poll_rows;
mod secondary;

use std::sync::Arc;
use std::time::Duration;

use folddb_base::{Error, Result};
use folddb_manifest::Change;

use crate::feed::reader::Stage;
use crate::store::Store;
use folddb_engine::edit::feeds;
use folddb_engine::edit::log_archive::{check_feed_is_no_log, check_holds_no_log};
use folddb_engine::state::engine::Engine;
use folddb_engine::state::pressure;

pub use event::{FeedBatch, FeedChange, FeedEvent, FeedOp, FeedOptions, FeedPosition, FeedRow, FeedTable};
pub use reader::Feed;
pub use secondary::SecondaryFeed;

/// How often a reader that has caught up looks for changes if it is not woken.
const LOOK_EVERY: Duration = Duration::from_millis(10);

impl Store {
    /// Opens the feed of this name for reading; creates it if there is none, and then begins with
    /// the present rows. A feed continues after what was acknowledged last, with its budget unless
    /// another one is given.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Locked`] while another reader has it open;
    /// [`crate::ErrorKind::InvalidInput`] if the existing feed covers something else, and for a bad
    /// name; a failed write.
    pub fn feed(&self, name: &str, options: FeedOptions) -> Result<Feed> {
        let engine = self.engine();
        engine.check_not_read_only()?;
        position::check_name(name)?;
        check_feed_is_no_log(name)?;
        engine.feeds.take(name)?;
        begin::open(engine, name, options)
    }

    /// All feeds, and what they retain.
    pub fn feeds(&self) -> Vec<crate::FeedStats> {
        match self.engine().check_here() {
            Ok(()) => feeds::feed_stats(self.engine()),
            Err(_) => Vec::new(),
        }
    }

    /// Removes a feed, and releases what is retained for it.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if there is none of this name;
    /// [`crate::ErrorKind::Locked`] while it is being read; a failed write.
    pub fn drop_feed(&self, name: &str) -> Result<()> {
        let engine = self.engine();
        engine.check_not_read_only()?;
        engine.feeds.take(name)?;
        let dropped = drop_feed(engine, name);
        engine.feeds.give_back(name);
        dropped
    }
}

impl Feed {
    /// Drops the position of the feed, and begins again with the present rows. For a lost feed, and
    /// for consumers that have lost their state. Earlier positions can no longer be acknowledged.
    ///
    /// # Errors
    /// A failed write.
    pub fn begin_again(&mut self) -> Result<()> {
        begin::begin_at(self, false)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The position after the last event that was given.
    pub fn position(&self) -> FeedPosition {
        self.place
    }

    /// The next event; waits for one at most this long.
    ///
    /// # Errors
    /// As [`Feed::poll`].
    pub fn next(&mut self, timeout: Duration) -> Result<Option<FeedEvent>> {
        let engine = Arc::clone(&self.engine);
        let since = engine.host.clock.monotonic();
        loop {
            let seen = engine.feeds.bell.count();
            if let Some(event) = self.poll()? {
                return Ok(Some(event));
            }
            let left = timeout.saturating_sub(engine.host.clock.monotonic().saturating_sub(since));
            if left.is_zero() {
                return Ok(None);
            }
            let most = if pressure::background_runs(&engine) { left } else { left.min(LOOK_EVERY) };
            engine.feeds.sleep(seen, most);
        }
    }

    /// The next event, if there is one by now.
    ///
    /// # Errors
    /// [`crate::ErrorKind::FeedLost`] if it has lost its place, see [`Feed::begin_again`]; damage;
    /// a failed read or write.
    pub fn poll(&mut self) -> Result<Option<FeedEvent>> {
        self.engine.check_open()?;
        reader::look_at_edits(self)?;
        let polled = match &mut self.stage {
            Stage::Lost => return Err(reader::lost_feed(self)),
            Stage::Rows(_) => poll_rows::poll_rows(self),
            Stage::Changes(_) => changes::poll_changes(self),
        };
        match polled {
            Err(error) => {
                // Files that it needs may have been removed while it was reading.
                reader::look_at_edits(self)?;
                if matches!(self.stage, Stage::Lost) { Err(reader::lost_feed(self)) } else { Err(error) }
            }
            polled => polled,
        }
    }

    /// Skips everything up to this place without giving it: a
    /// [`SecondaryFeed`](crate::SecondaryFeed) of this name has given it already, while another
    /// process had the store open. [`Feed::acknowledge`] makes the skip durable.
    ///
    /// # Errors
    /// As [`Feed::poll`]; [`crate::ErrorKind::InvalidInput`] if the feed begins with rows, or has
    /// not come that far.
    pub fn skip_to(&mut self, place: FeedPosition) -> Result<()> {
        changes::skip_to(self, place)
    }

    /// Records durably that everything up to this place has been processed: none of it is given
    /// again, and what was retained for it is released. A place among the rows is not recorded,
    /// since rows are useful only together.
    ///
    /// A place from before the feed began again is ignored, too, without an error, since a consumer
    /// that processes events in another thread may acknowledge late: those events are obsolete, and
    /// say nothing about the present rows.
    ///
    /// # Errors
    /// [`crate::ErrorKind::FeedLost`]; a place that was not reached yet; a failed write.
    pub fn acknowledge(&mut self, place: FeedPosition) -> Result<()> {
        acknowledge::acknowledge(self, place)
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        if self.engine.health.is_forked() {
            return;
        }
        self.engine.feeds.give_back(&self.name);
    }
}

fn drop_feed(engine: &Engine, name: &str) -> Result<()> {
    let mut manifest = engine.manifest.lock();
    if manifest.state().feeds.get(name).is_none() {
        return Err(Error::invalid(format!("the store has no feed `{name}`")));
    }
    check_holds_no_log(manifest.state(), name)?;
    feeds::edit_feeds(engine, &mut manifest, &[Change::DropFeed { name: name.to_owned() }])?;
    drop(manifest);
    feeds::let_go_of_history(engine);
    Ok(())
}
