//! A feed while it is read: what it has given, and its view of the manifest.

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
    /// Everything up to here was given, or is not covered.
    pub(crate) place: FeedPosition,
    /// The place of the last event; `place` may be farther, past what it does not cover.
    pub(crate) handed: FeedPosition,
    pub(crate) acknowledged: FeedPosition,
    /// Something was given and is not acknowledged.
    pub(crate) owes: bool,
    /// The tables that were met; none for a table that it does not cover.
    pub(crate) tables: BTreeMap<TableId, Option<Met>>,
    /// The events of tables after `place`, and the edit as of which they are known.
    pub(crate) notes: VecDeque<TableNote>,
    pub(crate) notes_as_of: u64,
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "feed `{}`, read up to seq {}", self.name, self.place.seq)
    }
}

pub(crate) enum Stage {
    Rows(Box<Rows>),
    Changes(Box<Changes>),
    /// It has lost its place.
    Lost,
}

/// The remaining batches.
pub(crate) struct Changes {
    pub(crate) follower: Follower,
    /// Everything before this is published and durable, and the last seq then.
    pub(crate) limit: (Lsn, Seq),
    /// A batch that was read and not given yet, with the LSN after it.
    pub(crate) next: Option<(FeedBatch, Lsn)>,
}

/// Gives changes from its place on.
pub(crate) fn begin_changes(feed: &mut Feed) {
    let follower = Follower::at(&feed.engine.host, &feed.engine.dir, feed.place.lsn);
    let limit = (feed.place.lsn, feed.place.seq);
    feed.tables.clear();
    feed.notes_as_of = 0;
    feed.stage = Stage::Changes(Box::new(Changes { follower, limit, next: None }));
}

/// The manifest's state of the feed at a place.
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

/// Whether it covers a table.
pub(crate) fn covers(feed: &Feed, table: &str) -> bool {
    feed.options.table.as_ref().is_none_or(|only| only == table)
}

/// Why it gives nothing more.
pub(crate) fn lost_feed(feed: &Feed) -> Error {
    lost_error(&feed.name, feed.engine.manifest.lock().state().feeds.get(&feed.name))
}

/// Reads new events of tables, and of the feed.
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

/// Gives an event to the consumer.
pub(crate) fn hand_out(feed: &mut Feed, event: FeedEvent) -> Result<Option<FeedEvent>> {
    (feed.owes, feed.handed) = (true, feed.place);
    Ok(Some(event))
}
