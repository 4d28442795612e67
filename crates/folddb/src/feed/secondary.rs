//! Reads a feed while another process writes: batch by batch, as that process passes them to the
//! kernel.
//!
//! ```text
//!   manifest   the position of the feed, the tables and files    read repeatedly
//!   log        | seg | seg | seg ..waits where no frame is whole yet      read from the position of the feed
//! ```
//!
//! No lock is taken, no store is opened and nothing is written: this is safe because of what the
//! feed retains in the writer (`feed_state.rs`). The log from its position on, with its values,
//! stays until the feed is acknowledged, dropped or lost. So despite any flush, merge, new segment
//! or removal in the writer, the reader finds each batch, or learns from the manifest that the feed
//! is lost.
//!
//! **What it sees** is what durability `Process` promises: complete batches in the order of
//! commits, once the frame has reached the kernel, whether or not it is synced. A batch committed
//! as `Buffered` appears some 10 ms later. So, unlike with [`Feed`](crate::Feed), a consumer may
//! see changes that a power cut then undoes. It cannot wait for durability: the log records that a
//! frame is durable only in a later frame, and never in a store that does not sync.
//!
//! **What it cannot do** is acknowledge, which is an edit of the manifest and needs the lock.
//! Batches are given again after a restart, until a process that has the store open for writing
//! acknowledges them ([`Feed::skip_to`](crate::Feed::skip_to)).
//!
//! **No hole is skipped.** Frames follow each other by their LSNs, from the position of the feed,
//! and inside a file by their seqs. After a crash of the writer, recovery rewrites the end of the
//! log to another place (`folddb_journal::archived_log`): then the reader begins again at the
//! position of the feed and skips the batches that it has given. Each of these must be the same:
//! they had reached the kernel, so a crash of the writer alone loses none of them, and if there are
//! others in their place, the files were restored to an earlier state. The same applies if the
//! feed's position has moved past this reader: that part was acknowledged, and has no batch that
//! was not given.
//!
//! **It does not wait on damage.** At a place without a whole frame, each look checks whether the
//! manifest records the log there as durable, and occasional searches check whether later frames
//! do: a durable frame that is not whole is an error that names the file.

mod frame;
mod manifest;
mod reader;
mod standing;
mod follow;

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use folddb_base::{Error, Result};
use folddb_host::sync::thread;
use folddb_journal::follow::Follower;
use folddb_manifest::FeedPhase;

use crate::feed::batch::note_event;
use crate::feed::event::{FeedEvent, FeedOptions, FeedPosition};
use crate::feed::position::{check_same, place_of};
use crate::feed::secondary::manifest::SeenManifest;
use crate::options::Options;
use crate::store::Store;
use folddb_engine::edit::log_archive::check_feed_is_no_log;
use folddb_engine::recovery::format::check_format;
use folddb_engine::state::counters::Counter;

pub use reader::SecondaryFeed;

/// A reader that has caught up looks for what is new after this long, then after twice as long each
/// time, up to this long.
const LOOK_AFTER: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

impl Store {
    /// Opens a feed for reading while another process may write the store in `dir`: without its
    /// lock, and without opening the store. The feed must exist, with all its rows acknowledged, so
    /// that the writer retains the log for it: create it by [`Store::feed`], in the writer or while
    /// nobody writes. For what it gives, and when, see [`SecondaryFeed`].
    ///
    /// It gives changes from the position of the feed, or after `from`, up to which an earlier
    /// reader in this process has given them.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if there is no such feed, or it covers something else or
    /// has not given all its rows; [`crate::ErrorKind::FeedLost`]; damage; a failed read.
    pub fn secondary_feed(
        dir: impl AsRef<Path>,
        name: &str,
        covers: FeedOptions,
        from: Option<FeedPosition>,
        options: &Options,
    ) -> Result<SecondaryFeed> {
        check_feed_is_no_log(name)?;
        let dir = dir.as_ref();
        let options = &options.engine;
        check_format(dir, options)?;
        let manifest = manifest::again(|| SeenManifest::read(&options.host, dir, None))?;
        let Some(state) = manifest.state.feeds.get(name).cloned() else {
            return Err(Error::invalid(format!("the store has no feed `{name}`")).advise(MAKE_IT));
        };
        check_same(name, &covers, &state)?;
        let from = from.filter(|from| from.is_settled);
        if state.phase == FeedPhase::Rows && from.is_none() {
            let why = format!("feed `{name}` begins with rows that nobody has acknowledged yet");
            return Err(Error::invalid(why).advise(MAKE_IT));
        }
        let place = FeedPosition { is_settled: true, ..from.unwrap_or(place_of(&state)) };
        let mut feed = SecondaryFeed {
            follower: Follower::at(&options.host, dir, state.lsn),
            host: options.host.clone(),
            dir: dir.to_owned(),
            name: name.to_owned(),
            options: FeedOptions { bytes_max: None, from_now: false, ..covers },
            value_files_max: options.value_files_max(),
            manifest,
            files: Vec::new(),
            values: None,
            value_reads: Counter::default(),
            followed_seq: state.seq,
            place,
            given: VecDeque::new(),
            given_after: place.seq,
            unacknowledged_bytes: 0,
            next: None,
            tables: BTreeMap::new(),
            notes: VecDeque::new(),
            is_in_doubt: false,
            wait: (0, 0),
        };
        standing::take_state(&mut feed)?;
        Ok(feed)
    }
}

const MAKE_IT: &str = "create it where the store is open for writing, and acknowledge its rows: by Store::feed, by \
                       folddb watch while nobody writes, or by watch in the shell that writes";

impl SecondaryFeed {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The position after the last event that was given, for
    /// [`Feed::skip_to`](crate::Feed::skip_to). Only positions of one reader can be compared.
    pub fn position(&self) -> FeedPosition {
        self.place
    }

    /// What it covers.
    pub fn options(&self) -> FeedOptions {
        self.options.clone()
    }

    /// Bytes of the batches that were met and are not acknowledged: the log that the writer retains
    /// for them is not much longer.
    pub fn unacknowledged_bytes(&self) -> u64 {
        self.unacknowledged_bytes
    }

    /// The next event; waits for one at most this long.
    ///
    /// # Errors
    /// As [`SecondaryFeed::poll`].
    pub fn next(&mut self, timeout: Duration) -> Result<Option<FeedEvent>> {
        let clock = Arc::clone(&self.host.clock);
        let (since, (mut pause, longest)) = (clock.monotonic(), LOOK_AFTER);
        loop {
            if let Some(event) = self.poll()? {
                return Ok(Some(event));
            }
            let left = timeout.saturating_sub(clock.monotonic().saturating_sub(since));
            if left.is_zero() {
                return Ok(None);
            }
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(longest);
        }
    }

    /// The next event, if there is one by now: batches, and tables that are created and dropped.
    ///
    /// # Errors
    /// [`crate::ErrorKind::FeedLost`] if the feed has lost its place, or the log does not continue
    /// at the position of this reader; [`crate::ErrorKind::Locked`] if another reader has
    /// acknowledged what this one has not given yet; persistent damage; a failed read. The next
    /// call tries the same again.
    pub fn poll(&mut self) -> Result<Option<FeedEvent>> {
        manifest::again(|| self.poll_once().inspect_err(|_| self.is_in_doubt = true))
    }

    fn poll_once(&mut self) -> Result<Option<FeedEvent>> {
        if std::mem::take(&mut self.is_in_doubt) {
            standing::begin_again(self)?;
        }
        loop {
            if self.next.is_none() {
                follow::read_next(self)?;
            }
            while self.has_note_due() {
                let Some(note) = self.notes.pop_front() else { break };
                self.place.note = note.note;
                if let Some(event) = note_event(&note, &self.options, &mut self.tables) {
                    return Ok(Some(event));
                }
            }
            let Some((batch, end)) = self.next.take() else { return Ok(None) };
            self.unacknowledged_bytes += end.bytes;
            (self.place.seq, self.place.lsn) = (batch.last_seq.into(), end.lsn);
            self.given.push_back((batch.last_seq.into(), end.mark));
            if !batch.ops.is_empty() {
                return Ok(Some(FeedEvent::Batch(batch)));
            }
        }
    }

    fn has_note_due(&self) -> bool {
        let next_seq = self.next.as_ref().map_or(self.place.seq + 1, |(batch, _)| batch.first_seq.into());
        self.notes.front().is_some_and(|note| note.seq < next_seq)
    }
}
