//! A feed while it is read: what it has handed out, and what it knows of the manifest.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use folddb_base::{Error, Lsn, Result, Seq, TableId};
use folddb_host::sync::atomic::Ordering;
use folddb_journal::follow::Follower;
use folddb_manifest::{FeedPhase, FeedState, TableNote};

use crate::feed::batch::Met;
use crate::feed::event::{FeedBatch, FeedEvent, FeedOptions, FeedPosition};
use crate::feed::rows::Rows;
use folddb_engine::edit::feeds::lost_error;
use folddb_engine::state::engine::Engine;

/// A feed that is being read, by one reader at a time; see [`Store::feed`](crate::Store::feed).
pub struct Feed {
    pub(crate) engine: Arc<Engine>,
    pub(crate) name: String,
    pub(crate) options: FeedOptions,
    /// Its budget.
    pub(crate) bytes_max: u64,
    pub(crate) stage: Stage,
    /// All up to here was handed out, or is not told of.
    pub(crate) place: FeedPosition,
    /// As of the last event; `place` may be farther, past what it does not tell of.
    pub(crate) handed: FeedPosition,
    pub(crate) acknowledged: FeedPosition,
    /// Something was handed out that is not acknowledged.
    pub(crate) owes: bool,
    /// The tables that were met; none where it tells nothing of one.
    pub(crate) tables: BTreeMap<TableId, Option<Met>>,
    /// What has happened to tables after `place`, and as of which edit that is known.
    pub(crate) notes: VecDeque<TableNote>,
    pub(crate) notes_as_of: u64,
}

pub(crate) enum Stage {
    Rows(Box<Rows>),
    Changes(Box<Changes>),
    /// It has lost its place.
    Lost,
}

/// The batches that are still to come.
pub(crate) struct Changes {
    pub(crate) follower: Follower,
    /// All before this is published and durable, and the seq that was the last then.
    pub(crate) limit: (Lsn, Seq),
    /// A batch that was read and not handed out, with the LSN after it.
    pub(crate) next: Option<(FeedBatch, Lsn)>,
}

/// Gives changes from its place on.
pub(crate) fn go_on(feed: &mut Feed) {
    let follower = Follower::at(&feed.engine.host, &feed.engine.dir, feed.place.lsn);
    let limit = (feed.place.lsn, feed.place.seq);
    feed.tables.clear();
    feed.notes_as_of = 0;
    feed.stage = Stage::Changes(Box::new(Changes { follower, limit, next: None }));
}

/// What the manifest says of the feed when it stands at a place.
pub(crate) fn state_at(
    feed: &Feed,
    place: FeedPosition,
    phase: FeedPhase,
    values_from: folddb_base::FileNumber,
) -> FeedState {
    let FeedOptions { table, prefix, .. } = feed.options.clone();
    let (name, table, bytes_max) = (feed.name.clone(), table.unwrap_or_default(), feed.bytes_max);
    let FeedPosition { seq, lsn, note, .. } = place;
    FeedState { name, table, prefix, bytes_max, phase, seq, lsn, note, values_from }
}

/// Whether it tells of a table.
pub(crate) fn tells_of(feed: &Feed, table: &str) -> bool {
    feed.options.table.as_ref().is_none_or(|only| only == table)
}

/// Why it gives nothing more.
pub(crate) fn lost_feed(feed: &Feed) -> Error {
    lost_error(&feed.name, feed.engine.manifest.lock().state().feeds.get(&feed.name))
}

/// Takes note of what has happened to tables, and to the feed.
pub(crate) fn look_at_edits(feed: &mut Feed) -> Result<()> {
    let edits = feed.engine.feeds.edits.load(Ordering::Acquire) + 1;
    if feed.notes_as_of == edits {
        return Ok(());
    }
    let manifest = feed.engine.manifest.lock();
    let feeds = &manifest.state().feeds;
    if !feeds.get(&feed.name).is_some_and(FeedState::holds) {
        feed.stage = Stage::Lost;
    }
    feed.notes = feeds.notes_after(feed.place.note).cloned().collect();
    feed.notes_as_of = edits;
    Ok(())
}

/// An event is given to the consumer.
pub(crate) fn hand_out(feed: &mut Feed, event: FeedEvent) -> Result<Option<FeedEvent>> {
    (feed.owes, feed.handed) = (true, feed.place);
    Ok(Some(event))
}
