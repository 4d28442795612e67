//! Follows the log: the next batch, batches that were given before, and waiting.

use std::sync::Arc;

use folddb_base::{Error, ErrorKind, Result, error};
use folddb_journal::follow::Written;
use folddb_layout::frame;
use folddb_run::Shared;

use crate::feed::batch::Reading;
use crate::feed::event::FeedBatch;
use crate::feed::secondary::frame::ReadFrame;
use crate::feed::secondary::reader::{BEGIN_AGAIN, CACHE_BYTES, End, SecondaryFeed};
use crate::feed::secondary::standing::ManifestCheck;
use crate::feed::secondary::{manifest, standing};
use folddb_engine::edit::feeds::history_in;
use folddb_engine::recovery::secondary::is_known;
use folddb_engine::state::value_state::value_files;

/// After this many looks at a place without a whole frame, and then after twice as many each time,
/// the log beyond it is searched.
const SEARCH_AFTER: u32 = 16;

/// Reads on to the next batch that was not given, if there is one.
pub(crate) fn read_next(feed: &mut SecondaryFeed) -> Result<()> {
    while feed.next.is_none() {
        let files = &feed.files;
        let file_at = |lsn| files.iter().find(|file| file.covers(lsn)).copied();
        let (frame, has_file) = match feed.follower.next_written(&file_at)? {
            Written::Batch(batch) => (Some(ReadFrame::of(&batch)), true),
            Written::NotYet => (None, true),
            Written::NoFile => (None, false),
        };
        let goes_on = match frame {
            Some(frame) => take(feed, &frame).map(|()| true)?,
            None if has_file => {
                standing::check_manifest(feed, false)? != ManifestCheck::Same || keep_waiting(feed)?
            }
            None => find_files(feed)?,
        };
        if !goes_on {
            break;
        }
    }
    Ok(())
}

/// There is no whole frame at the follower, and the manifest is the same: returns false to wait for
/// the writer; fails if the log there was durable.
fn keep_waiting(feed: &mut SecondaryFeed) -> Result<bool> {
    let lsn = feed.follower.lsn();
    let looks = if feed.wait.0 == lsn { feed.wait.1.saturating_add(1) } else { 1 };
    feed.wait = (lsn, looks);
    let is_damaged = looks == u32::MAX; // an earlier search found it
    let is_searched = is_damaged || looks >= SEARCH_AFTER && looks.is_power_of_two();
    let files = match is_searched {
        true => Some(history_in(&feed.host, &feed.dir, &feed.manifest.state)?),
        false => None,
    };
    let waits = feed.follower.check_wait(feed.manifest.durable_lsn(), files.as_deref());
    // The error is checked again each time, until it has passed.
    match waits {
        Err(error) => {
            feed.wait.1 = u32::MAX;
            return Err(error);
        }
        Ok(()) if is_damaged => feed.wait.1 = SEARCH_AFTER,
        Ok(()) => {}
    }
    Ok(false)
}

/// Takes a batch that the follower has passed.
fn take(feed: &mut SecondaryFeed, frame: &ReadFrame) -> Result<()> {
    // The tables and segments that it names were in the manifest before it was written, and so they
    // are in the present manifest.
    let is_known = is_known(&frame.payload, &feed.manifest.state);
    if standing::check_manifest(feed, !is_known)? == ManifestCheck::Elsewhere {
        return Ok(());
    }
    let state = &feed.manifest.state;
    if frame::records(&frame.payload).flatten().any(|record| record.table.0 >= state.next_table_id) {
        return Err(error::lacking(format!("a batch at seq {} is of an unknown table", frame.first_seq)));
    }
    let (last_seq, mark) = (frame.last_seq(), frame.mark());
    if !may_come_next(feed, frame) {
        let dir = feed.dir.display();
        let (from, to) = (feed.followed_seq, frame.first_seq);
        return Err(error::lacking(format!("the log in {dir} goes from seq {from} to seq {to}")));
    }
    feed.followed_seq = last_seq;
    if frame.first_seq <= feed.place.seq {
        return pass_over(feed, frame, mark);
    }
    let batch = batch(feed, frame)?;
    feed.next = Some((batch, End { lsn: frame.end_lsn, bytes: frame.payload.len() as u64, mark }));
    Ok(())
}

/// Whether a batch may come next. Inside a file seqs have no gap. At the beginning of a file they
/// may: a power cut may lose the end of a log with its seqs, and an opening does not reuse seqs
/// whose times are recorded.
fn may_come_next(feed: &SecondaryFeed, frame: &ReadFrame) -> bool {
    let begins_a_file = feed.files.iter().any(|file| file.first_lsn == frame.lsn);
    match begins_a_file {
        true => frame.first_seq > feed.followed_seq,
        false => frame.first_seq == feed.followed_seq + 1,
    }
}

/// Skips a batch that was given before; fails if it is not the same.
fn pass_over(feed: &mut SecondaryFeed, frame: &ReadFrame, mark: u64) -> Result<()> {
    let last_seq = frame.last_seq();
    let given = feed.given.binary_search_by_key(&last_seq, |(seq, _)| *seq);
    let is_another = match given {
        Ok(at) => feed.given[at].1 != mark,
        Err(_) => last_seq > feed.given_after,
    };
    if is_another {
        let seq = feed.place.seq;
        let why = format!(
            "feed `{}` has given batches up to seq {seq} that differ from those in the log now",
            feed.name
        );
        return Err(Error::new(ErrorKind::FeedLost, why).advise(BEGIN_AGAIN));
    }
    if last_seq == feed.place.seq {
        feed.place.lsn = frame.end_lsn; // it may have been rewritten since
    }
    Ok(())
}

pub(crate) fn batch(feed: &mut SecondaryFeed, frame: &ReadFrame) -> Result<FeedBatch> {
    let state = Arc::clone(&feed.manifest.state);
    let values = feed.values.get_or_insert_with(|| {
        let cache = Shared::new(CACHE_BYTES, feed.value_files_max);
        let how = (feed.value_files_max, false);
        value_files(&feed.dir, Arc::clone(&feed.host.files), cache, &state, how)
    });
    let mut reading = Reading {
        options: &feed.options,
        tables: &mut feed.tables,
        living: &|id| manifest::living(&state, id),
        notes: &feed.notes,
        segment_map: values.present(),
        values,
        value_reads: &feed.value_reads,
    };
    reading.batch(&frame.followed())
}

/// Finds the file with the history at the follower; false if the log has not reached that yet.
fn find_files(feed: &mut SecondaryFeed) -> Result<bool> {
    let lsn = feed.follower.lsn();
    let mut next_lsn = lsn;
    for _ in 0..2 {
        if standing::check_manifest(feed, false)? != ManifestCheck::Same {
            return Ok(true);
        }
        feed.files = history_in(&feed.host, &feed.dir, &feed.manifest.state)?;
        if feed.files.iter().any(|file| file.covers(lsn)) {
            return Ok(true);
        }
        let beyond = feed.files.iter().map(|file| file.first_lsn).filter(|first| *first > lsn).min();
        next_lsn = beyond.unwrap_or(feed.manifest.state.log_start_lsn);
        if next_lsn <= lsn {
            return check_no_file(feed);
        }
        // The files may be newer than the known manifest; the feed may have moved by now.
        if standing::check_manifest(feed, true)? != ManifestCheck::Same {
            return Ok(true);
        }
    }
    let dir = feed.dir.display();
    let why = format!(
        "feed `{}` is at LSN {lsn}, and the log in {dir} has nothing before LSN {next_lsn}",
        feed.name
    );
    Err(Error::new(ErrorKind::FeedLost, why).advise(BEGIN_AGAIN))
}

/// No file has the history at the follower: returns false to wait for one; fails if there was one.
fn check_no_file(feed: &SecondaryFeed) -> Result<bool> {
    let (lsn, durable_lsn) = (feed.follower.lsn(), feed.manifest.durable_lsn());
    let why = match feed.follower.owes_next() {
        true => {
            "the segment before it says that the log continues in one, which was durable by then".to_owned()
        }
        false if lsn < durable_lsn => format!("but the log was durable up to LSN {durable_lsn}"),
        false => return Ok(false),
    };
    let dir = feed.dir.display();
    Err(error::lacking(format!("the log in {dir} has no segment with a whole header at LSN {lsn}: {why}")))
}
