//! The batches after the rows, and the events of tables between them.

use folddb_base::{Error, Result};
use folddb_journal::follow::Follower;
use folddb_manifest::TableNote;

use crate::feed::acknowledge;
use crate::feed::batch::{Reading, note_event};
use crate::feed::event::{FeedEvent, FeedPosition};
use crate::feed::reader::{self, Feed, Stage};
use folddb_engine::edit::feeds;
use folddb_engine::state::log_sync;

/// The next event after the rows, if there is one by now.
pub(crate) fn poll_changes(feed: &mut Feed) -> Result<Option<FeedEvent>> {
    loop {
        if let Some(event) = next_note(feed) {
            return reader::hand_out(feed, event);
        }
        let Stage::Changes(changes) = &mut feed.stage else { return Ok(None) };
        if let Some((batch, lsn)) = changes.next.take() {
            (feed.place.seq, feed.place.lsn) = (batch.last_seq.into(), lsn);
            if !batch.ops.is_empty() {
                return reader::hand_out(feed, FeedEvent::Batch(batch));
            }
        }
        if read_next(feed)? {
            continue;
        }
        if let Some(event) = next_note(feed) {
            return reader::hand_out(feed, event); // it follows the last batch
        }
        move_on(feed)?;
        if !raise_limit(feed)? {
            return Ok(None);
        }
    }
}

/// An event of a table before the next batch; notes of uncovered tables are skipped.
fn next_note(feed: &mut Feed) -> Option<FeedEvent> {
    while has_note_due(feed) {
        if let Some(event) = take_note(feed)? {
            return Some(event);
        }
    }
    None
}

fn has_note_due(feed: &Feed) -> bool {
    let Stage::Changes(changes) = &feed.stage else { return false };
    let is_due = |note: &TableNote| match &changes.next {
        Some((batch, _)) => note.seq < u64::from(batch.first_seq),
        None => note.seq <= changes.limit.1 && changes.follower.lsn() >= changes.limit.0,
    };
    feed.notes.front().is_some_and(is_due)
}

/// Passes the next note; returns its event if the feed covers the table.
fn take_note(feed: &mut Feed) -> Option<Option<FeedEvent>> {
    let note = feed.notes.pop_front()?;
    feed.place.note = note.note;
    Some(note_event(&note, &feed.options, &mut feed.tables))
}

/// Reads the next batch; false if there is none before the limit.
fn read_next(feed: &mut Feed) -> Result<bool> {
    let Stage::Changes(changes) = &mut feed.stage else { return Ok(false) };
    let engine = &feed.engine;
    let from = feed.place.lsn;
    let file_at = |lsn| feeds::history_at(engine, lsn);
    let Some(followed) = changes.follower.next(changes.limit.0, &file_at)? else { return Ok(false) };
    let living = |id| {
        let catalog = engine.catalog();
        let core = catalog.own_by_id(id)?;
        Some((core.name.clone(), core.present().rules.to_string()))
    };
    let mut reading = Reading {
        options: &feed.options,
        tables: &mut feed.tables,
        living: &living,
        notes: &feed.notes,
        values: &engine.values.files,
        segment_map: engine.values.files.present(),
        value_reads: &engine.counters.value_reads,
    };
    match reading.batch(&followed) {
        Ok(batch) => {
            changes.next = Some((batch, followed.end_lsn));
            Ok(true)
        }
        Err(error) => {
            // The next call reads it again.
            changes.follower = Follower::at(&engine.host, &engine.dir, from);
            Err(error)
        }
    }
}

/// Everything up to the limit was given, or is not covered. If nothing remains to be acknowledged
/// and this would release files, acknowledges that much.
fn move_on(feed: &mut Feed) -> Result<()> {
    let Stage::Changes(changes) = &feed.stage else { return Ok(()) };
    feed.place.lsn = changes.follower.lsn().max(feed.place.lsn);
    if feed.owes || feed.place == feed.acknowledged {
        return Ok(());
    }
    let file = |lsn| feeds::history_at(&feed.engine, lsn).map(|file| (file.is_archived, file.number));
    if file(feed.acknowledged.lsn) == file(feed.place.lsn) {
        return Ok(());
    }
    let place = feed.place;
    acknowledge::acknowledge(feed, place)
}

/// Updates the limit of what can be read; false if it is the same as before.
fn raise_limit(feed: &mut Feed) -> Result<bool> {
    let Stage::Changes(changes) = &mut feed.stage else { return Ok(false) };
    let engine = &feed.engine;
    let Some(journal) = &engine.journal else { return Ok(false) };
    let committer = engine.commit.lock(); // everything in the log before its end is published
    let (end_lsn, published) = (journal.end_lsn(), engine.published());
    drop(committer);
    if (end_lsn, published) == changes.limit {
        return Ok(false);
    }
    match log_sync::sync_to(engine, end_lsn) {
        Ok(()) => changes.limit = (end_lsn, published),
        // A store that cannot write any more still gives what is durable, and then reports why it
        // gives no more.
        Err(error) if journal.durable_lsn() <= changes.limit.0 => return Err(error),
        Err(_) => changes.limit.0 = journal.durable_lsn(),
    }
    Ok(true)
}

/// See [`Feed::skip_to`].
pub(crate) fn skip_to(feed: &mut Feed, place: FeedPosition) -> Result<()> {
    feed.engine.check_open()?;
    reader::look_at_edits(feed)?;
    loop {
        match &feed.stage {
            Stage::Lost => return Err(reader::lost_feed(feed)),
            Stage::Rows(_) => {
                let why =
                    format!("feed `{}` begins with the present rows, which cannot be skipped", feed.name);
                return Err(Error::invalid(why));
            }
            Stage::Changes(_) => {}
        }
        let has_note = |feed: &Feed| feed.notes.front().is_some_and(|note| note.note <= place.note);
        while has_note_due(feed) && has_note(feed) {
            take_note(feed);
        }
        let is_past_notes = !has_note(feed);
        let Stage::Changes(changes) = &mut feed.stage else { continue };
        match changes.next.take_if(|(batch, _)| u64::from(batch.last_seq) <= place.seq) {
            Some((batch, lsn)) => (feed.place.seq, feed.place.lsn) = (batch.last_seq.into(), lsn),
            None if changes.next.is_some() => break,
            None if feed.place.seq >= place.seq && is_past_notes => break,
            None => {}
        }
        let is_at_end = !read_next(feed)? && !raise_limit(feed)?;
        if is_at_end && !(has_note_due(feed) && has_note(feed)) {
            break;
        }
    }
    if feed.place.seq >= place.seq {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "feed `{}` has nothing at seq {}, but {} was read by a secondary: this is another store, or an older state of it",
        feed.name, feed.place.seq, place.seq
    )))
}
