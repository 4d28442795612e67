//! A change feed: rows as of one moment, then every batch after it, in the order of commits, for as
//! long as the store lives.
//!
//! ```text
//!   Begin   rows ... rows   RowsEnd   Batch  Batch  TableCreated  Batch ...
//!           as of seq s               s+1..  in order, whole
//! ```
//!
//! **The law**: rows and the ops of all batches after them, applied one by one, give what the store
//! has. Ops are handed out as they were written, so a fold is handed out once and not its outcome;
//! a consumer that applies one twice is wrong, and so positions are exact: [`Feed::acknowledge`]
//! makes one durable, and what comes after it is handed out again after a restart. Rows are as of a
//! snapshot, which does not survive the process: a feed whose rows were not all acknowledged begins
//! again, and says so. Whoever was told to begin again has forgotten what came before, so a place
//! of before is nothing that can be acknowledged.
//!
//! Batches are read from the files of the log (`folddb_journal::follow`), up to where they are
//! durable; a reader that has caught up syncs what has been committed since. What is held for a
//! feed, and how that is bounded, is told in `feeds.rs`.

mod event;
mod batch;
mod place;
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

/// A reader that has caught up looks so often for what is new, where nobody tells it.
const LOOK_EVERY: Duration = Duration::from_millis(10);

impl Store {
    /// Opens the feed of this name for reading, and makes it where there is none: it begins with
    /// the rows of the present then. A feed goes on behind what was acknowledged last, with the
    /// budget that it has unless another one is given.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Locked`] while somebody else reads it;
    /// [`crate::ErrorKind::InvalidInput`] where there is one that reports something else, and for
    /// a bad name; a failed write.
    pub fn feed(&self, name: &str, options: FeedOptions) -> Result<Feed> {
        let engine = self.engine();
        engine.check_not_read_only()?;
        place::check_name(name)?;
        check_feed_is_no_log(name)?;
        engine.feeds.take(name)?;
        begin::open(engine, name, options)
    }

    /// The feeds that there are, and what they hold.
    pub fn feeds(&self) -> Vec<crate::FeedStats> {
        feeds::feed_stats(self.engine())
    }

    /// Removes a feed, and what is held for it.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] where there is none of this name;
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
    /// Forgets where the feed stood, and begins again with the rows of the present. For one that is
    /// lost, and for consumers that are. Places of before are not acknowledged any more.
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

    /// The place after the event that was handed out last.
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
    /// [`crate::ErrorKind::FeedLost`] where it has lost its place, see [`Feed::begin_again`];
    /// damage; a failed read or write.
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
                // What it needed may have gone while it was being read.
                reader::look_at_edits(self)?;
                if matches!(self.stage, Stage::Lost) { Err(reader::lost_feed(self)) } else { Err(error) }
            }
            polled => polled,
        }
    }

    /// Goes past all up to this place without handing it out: what a
    /// [`SecondaryFeed`](crate::SecondaryFeed) of this name has given already, while another
    /// process had the store open. [`Feed::acknowledge`] makes it durable.
    ///
    /// # Errors
    /// As [`Feed::poll`]; [`crate::ErrorKind::InvalidInput`] where the feed begins with rows, or
    /// has less than that.
    pub fn skip_to(&mut self, place: FeedPosition) -> Result<()> {
        changes::skip_to(self, place)
    }

    /// Says, durably, that all up to this place has been dealt with: none of it is handed out
    /// again, and what was held for it goes. Of a place among the rows nothing is kept, since they
    /// are only of use all together.
    ///
    /// A place of before the feed began again is passed over, too, without an error: who deals with
    /// events in another thread, and says so late, has done nothing wrong; but what it dealt with
    /// is to be forgotten, and says nothing of the rows that come now.
    ///
    /// # Errors
    /// [`crate::ErrorKind::FeedLost`]; a place that was not reached; a failed write.
    pub fn acknowledge(&mut self, place: FeedPosition) -> Result<()> {
        acknowledge::acknowledge(self, place)
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
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
