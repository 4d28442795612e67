//! Acknowledging: recording durably what was processed.

use std::sync::Arc;

use folddb_base::{Error, Result};
use folddb_manifest::{Change, FeedPhase, FeedState};

use crate::feed::event::FeedPosition;
use crate::feed::reader::{self, Feed};
use folddb_engine::edit::feeds;

/// See [`Feed::acknowledge`].
pub(crate) fn acknowledge(feed: &mut Feed, place: FeedPosition) -> Result<()> {
    feed.engine.check_here()?;
    let is_behind = (place.lsn, place.note) <= (feed.acknowledged.lsn, feed.acknowledged.note);
    let has_rows = feed.acknowledged.is_settled;
    let is_of_before = place.begun != feed.place.begun;
    if !place.is_settled || is_of_before || is_behind && has_rows {
        return Ok(());
    }
    if place.lsn > feed.place.lsn || place.note > feed.place.note {
        return Err(Error::invalid(format!("feed `{}` has not been read that far", feed.name)));
    }
    let engine = Arc::clone(&feed.engine);
    let mut manifest = engine.manifest.lock();
    if !manifest.state().feeds.get(&feed.name).is_some_and(FeedState::holds) {
        drop(manifest);
        return Err(reader::lost_feed(feed));
    }
    let values_from = feeds::values_from(&engine, manifest.state(), place.lsn);
    let acknowledged = reader::state_at(feed, place, FeedPhase::Changes, values_from);
    feeds::edit_feeds(&engine, &mut manifest, &[Change::SetFeed { feed: acknowledged }])?;
    drop(manifest);
    feeds::let_go_of_history(&engine);
    feed.acknowledged = place;
    feed.owes &= (place.lsn, place.note) < (feed.handed.lsn, feed.handed.note);
    Ok(())
}
