//! Gives the rows that a feed begins with, one event at a time.

use folddb_base::Result;

use crate::feed::event::FeedEvent;
use crate::feed::reader::{self, Feed, Stage};

/// The next row, or an event around the rows.
pub(crate) fn poll_rows(feed: &mut Feed) -> Result<Option<FeedEvent>> {
    let Stage::Rows(rows) = &mut feed.stage else { return Ok(None) };
    if !rows.has_begun {
        rows.has_begun = true;
        let (seq, time) = (rows.snapshot.seq(), rows.snapshot.time());
        return reader::hand_out(feed, FeedEvent::Begin { seq, time });
    }
    loop {
        match rows.next(&feed.engine, &feed.options.prefix)? {
            Some(event) => return reader::hand_out(feed, event),
            None if rows.tables.is_empty() => break,
            None => {
                let Some(begun) = rows.next_table(&feed.options.prefix)? else { continue };
                return reader::hand_out(feed, FeedEvent::TableCreated(begun));
            }
        }
    }
    reader::begin_changes(feed);
    feed.place.is_settled = true;
    reader::hand_out(feed, FeedEvent::RowsEnd)
}
