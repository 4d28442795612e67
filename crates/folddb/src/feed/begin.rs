//! How a feed begins: with the present rows, from now on, or after what was acknowledged.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use folddb_base::Result;
use folddb_manifest::{Change, FeedPhase, FeedState};

use crate::feed::event::{FeedOptions, FeedPosition};
use crate::feed::position::{NOWHERE, check_same, place_of};
use crate::feed::reader::{self, Feed, Stage};
use crate::feed::rows::Rows;
use crate::snapshot::Snapshot;
use folddb_engine::edit::feeds;
use folddb_engine::state::engine::Engine;
use folddb_engine::state::{clock, log_sync};

/// The budget of a feed that is created without one.
const BYTES_MAX: u64 = 1 << 30;

/// Opens a feed that nobody else reads; creates it if there is none.
pub(crate) fn open(engine: &Arc<Engine>, name: &str, options: FeedOptions) -> Result<Feed> {
    let state = engine.manifest.lock().state().feeds.get(name).cloned();
    let begun = engine.feeds.begun(name);
    let place = FeedPosition { begun, ..state.as_ref().map_or(NOWHERE, place_of) };
    let mut feed = Feed {
        engine: Arc::clone(engine),
        name: name.to_owned(),
        bytes_max: state.as_ref().map_or(BYTES_MAX, |state| state.bytes_max),
        options,
        stage: Stage::Lost,
        place,
        handed: place,
        acknowledged: place,
        owes: false,
        tables: BTreeMap::new(),
        notes: VecDeque::new(),
        notes_as_of: 0,
    };
    let given = feed.options.bytes_max.unwrap_or(feed.bytes_max);
    let Some(state) = state else {
        feed.bytes_max = given;
        let from_now = feed.options.from_now;
        begin_at(&mut feed, from_now)?;
        return Ok(feed);
    };
    check_same(name, &feed.options, &state)?;
    if given != feed.bytes_max {
        set_bytes_max(&mut feed, given)?;
    }
    match state.phase {
        FeedPhase::Lost(_) => {}
        FeedPhase::Rows => begin_at(&mut feed, false)?,
        FeedPhase::Changes => reader::begin_changes(&mut feed),
    }
    Ok(feed)
}

/// Gives the feed another budget, durably.
fn set_bytes_max(feed: &mut Feed, bytes_max: u64) -> Result<()> {
    let engine = Arc::clone(&feed.engine);
    let mut manifest = engine.manifest.lock();
    let Some(state) = manifest.state().feeds.get(&feed.name).cloned() else { return Ok(()) };
    let changed = FeedState { bytes_max, ..state }; // its present state: it may have been lost in the meantime
    feeds::edit_feeds(&engine, &mut manifest, &[Change::SetFeed { feed: changed }])?;
    feed.bytes_max = bytes_max;
    Ok(())
}

/// The feed begins at the present: with its rows, or after them.
pub(crate) fn begin_at(feed: &mut Feed, from_now: bool) -> Result<()> {
    let engine = Arc::clone(&feed.engine);
    let mut manifest = engine.manifest.lock();
    engine.check_open()?;
    engine.health.check_writable(true)?;
    let catalog = engine.catalog();
    let wanted = catalog.own().filter(|core| reader::covers(feed, &core.name)).cloned();
    let tables: VecDeque<_> = wanted.collect();
    // Values that have expired by now are never reported, so they must stay expired if the clock is
    // set back before the next opening.
    let notes_time = tables.iter().any(|table| table.has_stamps);
    let (snapshot, lsn) = Snapshot::take_with_lsn(&engine, notes_time)?;
    log_sync::sync_to(&engine, lsn)?; // a power cut must not undo what the rows show
    let phase = if from_now { FeedPhase::Changes } else { FeedPhase::Rows };
    // No reader of an earlier feed of this name, in a secondary, has come this far.
    let note = manifest.state().feeds.last_note() + 1;
    let (seq, is_settled) = (snapshot.seen().seq, from_now);
    let place = FeedPosition { seq, lsn, note, is_settled, begun: 0 };
    let begun = reader::state_at(feed, place, phase, feeds::values_from(&engine, manifest.state(), lsn));
    let mut changes = vec![Change::SetFeed { feed: begun }];
    changes.extend(clock::times_change(&engine, manifest.state()));
    feeds::edit_feeds(&engine, &mut manifest, &changes)?;
    feed.place = FeedPosition { begun: engine.feeds.begin(&feed.name), ..place };
    drop(manifest);
    feeds::let_go_of_history(&engine); // what it retained before
    (feed.acknowledged, feed.owes) = (feed.place, false);
    reader::begin_changes(feed);
    if !from_now {
        feed.stage = Stage::Rows(Box::new(Rows { snapshot, has_begun: false, tables, current: None }));
    }
    Ok(())
}
