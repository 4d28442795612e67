//! A feed that is read beside the process that writes: batch by batch, as that process hands them
//! to the kernel.
//!
//! ```text
//!   manifest   where the feed stands, which tables and files there are    looked at again and again
//!   log        | seg | seg | seg ..waits where no frame is whole yet      read from where the feed stands
//! ```
//!
//! No lock is taken, no store is opened and nothing is written: what the feed holds in the writer
//! (`feeds.rs`) is what makes this safe. The log from where it stands, and the values that this
//! leads to, stay until the feed is acknowledged, dropped or lost; so whatever the writer flushes,
//! merges, rolls or removes meanwhile, the reader finds each batch, or learns from the manifest
//! that the feed is lost.
//!
//! **What it sees** is what durability `Process` promises: a batch once its frame is with the
//! kernel, whole, in the order of commits, whether or not it is synced. One that was committed as
//! `Buffered` shows when it is handed on, some 10 ms later. So, unlike by [`Feed`](crate::Feed), a
//! consumer may learn of what a power cut then takes back. It cannot wait for what is durable: the
//! log says that of a frame with a later one only, and in a store that syncs nothing it never does.
//!
//! **What it cannot do** is acknowledge, which is an edit of the manifest, and whose that is the
//! lock says. What was read is given again after a restart, until a process that has the store open
//! for writing acknowledges it ([`Feed::skip_to`](crate::Feed::skip_to)).
//!
//! **No hole is passed over.** Frames follow each other by their LSNs, from the place where the feed
//! stands, and inside a file by their seqs. After the writer's crash recovery writes the end of the log anew,
//! elsewhere (`folddb_journal::kept`): then this begins again where the feed stands and passes
//! over the batches that it has given. Each of these must be the one that was: what this has given
//! was with the kernel, so a crash of the writer alone takes none of it, and where others have come
//! in its place, the files were put back to what they were before. The same where the feed has moved
//! on past here: that was acknowledged, and has no batch that was not given.
//!
//! **No damage is waited for.** Where no whole frame stands, what the manifest vouches for is held
//! against that place at each look, and what frames further on vouch for now and then, since that is
//! a search: what was durable there and is not whole is an error that names the file.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use folddb_base::checksum::GrowingHash;
use folddb_base::{Error, ErrorKind, FileNumber, Lsn, Result, Seq, TableId};
use folddb_host::Host;
use folddb_host::sync::thread;
use folddb_journal::follow::{Followed, Follower, HistoryFile, Written};
use folddb_layout::file_name::FileName;
use folddb_layout::frame::{self, LogOp};
use folddb_manifest::{ArchivedLog, FeedPhase, FeedState, State, TableNote};
use folddb_rules::table_rules::TableRules;
use folddb_run::Shared;

use crate::feed::{check_same, place_of};
use crate::feed_batch::{Met, Reading, note_event};
use crate::feed_event::{FeedBatch, FeedEvent, FeedOptions, FeedPosition};
use crate::store::Store;
use folddb_engine::edit::feeds::{history_in, lost_error};
use folddb_engine::edit::log_archive::check_feed_is_no_log;
use folddb_engine::options::Options;
use folddb_engine::recovery::format::check_format;
use folddb_engine::recovery::replay::replay_from;
use folddb_engine::recovery::secondary::{ATTEMPTS_MAX, PAUSE, is_known, may_pass};
use folddb_engine::state::counters::Counter;
use folddb_engine::state::value_state::value_files;
use folddb_value_log::ValueFiles;

/// A reader that has caught up looks for what is new after so long, then after twice as long each
/// time, up to so long.
const LOOK_AFTER: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// After so many looks at a place without a whole frame, and then each time after twice as many,
/// what lies beyond it is searched.
const SEARCH_AFTER: u32 = 16;

/// Memory for pages of files of relocated values.
const CACHE_BYTES: u64 = 1 << 20;

/// A feed that is read beside the process that writes: see [`Store::secondary_feed`].
///
/// It gives each batch once that process has handed it to the kernel, which is what durability
/// `Process` promises, whole and in the order of commits; nothing is left out, and nothing given
/// twice by one reader. It acknowledges nothing: what it has given it gives again after a restart,
/// until a process that has the store open for writing acknowledges it, by
/// [`Feed::skip_to`](crate::Feed::skip_to) and [`Feed::acknowledge`](crate::Feed::acknowledge). A
/// batch that is not synced yet may be given and then lost to a power cut: a consumer elsewhere
/// that must never see such a one reads the feed in the process that writes, by [`Store::feed`].
pub struct SecondaryFeed {
    host: Host,
    dir: PathBuf,
    name: String,
    options: FeedOptions,
    value_files_max: usize,
    manifest: SeenManifest,
    /// The files of history, as they were looked for last.
    files: Vec<HistoryFile>,
    /// Where values lie, as the manifest was seen last.
    values: Option<ValueFiles>,
    value_reads: Counter,
    follower: Follower,
    /// The seq of the last batch that the follower has gone past.
    followed_seq: Seq,
    /// All up to here was handed out, or is not told of.
    place: FeedPosition,
    /// The batches up to `place` that were met here and are not acknowledged: of each its last seq,
    /// and what tells it from any other.
    given: VecDeque<(Seq, u64)>,
    /// All batches after this seq, up to `place`, are among those; another reader has met what was
    /// before, or it is acknowledged.
    given_after: Seq,
    unacknowledged_bytes: u64,
    /// A batch that was read and not handed out, and where it ends.
    next: Option<(FeedBatch, End)>,
    tables: BTreeMap<TableId, Option<Met>>,
    /// What has happened to tables after `place`.
    notes: VecDeque<TableNote>,
    /// Something did not fit the last time: look at everything anew.
    is_in_doubt: bool,
    /// Where it waits for a frame, and how often it has looked there.
    wait: (Lsn, u32),
}

/// The manifest, as it was seen last.
struct SeenManifest {
    state: Arc<State>,
    number: FileNumber,
    edits: u64,
    /// With this length it is the same still; none where it is to be read again in any case.
    len_bytes: Option<u64>,
}

/// Where a batch ends, and what tells it from others.
struct End {
    lsn: Lsn,
    bytes: u64,
    mark: u64,
}

impl Store {
    /// Opens a feed for reading beside the process that writes the store in `dir`, if there is one:
    /// without its lock, without opening the store, and while batches come. The feed is there
    /// already, with all its rows acknowledged, so that the writer keeps the log for it: make it by
    /// [`Store::feed`], in the writer or while nobody writes. What it gives, and when, see the top
    /// of [`SecondaryFeed`].
    ///
    /// It gives changes from where the feed stands, or from `from` on: what a reader in this
    /// process has given before it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] where there is no such feed, or it tells of something else or
    /// has not given all its rows; [`ErrorKind::FeedLost`]; damage; a failed read.
    pub fn secondary_feed(
        dir: impl AsRef<Path>,
        name: &str,
        told: FeedOptions,
        from: Option<FeedPosition>,
        options: &Options,
    ) -> Result<SecondaryFeed> {
        check_feed_is_no_log(name)?;
        let dir = dir.as_ref();
        check_format(dir, options)?;
        let manifest = again(|| SeenManifest::read(&options.host, dir, None))?;
        let Some(state) = manifest.state.feeds.get(name).cloned() else {
            return Err(Error::invalid(format!("the store has no feed `{name}`")).advise(MAKE_IT));
        };
        check_same(name, &told, &state)?;
        let from = from.filter(|from| from.is_settled);
        if state.phase == FeedPhase::Rows && from.is_none() {
            let why = format!("feed `{name}` begins with rows, which nobody has acknowledged yet");
            return Err(Error::invalid(why).advise(MAKE_IT));
        }
        let place = FeedPosition { is_settled: true, ..from.unwrap_or(place_of(&state)) };
        let mut feed = SecondaryFeed {
            follower: Follower::at(&options.host, dir, state.lsn),
            host: options.host.clone(),
            dir: dir.to_owned(),
            name: name.to_owned(),
            options: FeedOptions { bytes_max: None, from_now: false, ..told },
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
        feed.take_state()?;
        Ok(feed)
    }
}

const MAKE_IT: &str = "make it where the store is open for writing, and acknowledge its rows: by Store::feed, by \
                       folddb watch while nobody writes, or by watch in the shell that writes";

impl SecondaryFeed {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The place after the event that was handed out last, for
    /// [`Feed::skip_to`](crate::Feed::skip_to). Only places of one reader are compared.
    pub fn position(&self) -> FeedPosition {
        self.place
    }

    /// What it tells of.
    pub fn told(&self) -> FeedOptions {
        self.options.clone()
    }

    /// Bytes of the batches that were met and are not acknowledged: the log that the writer holds
    /// for them is not much longer.
    pub fn unacknowledged_bytes(&self) -> u64 {
        self.unacknowledged_bytes
    }

    /// The next event; waits for one at most so long.
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

    /// The next event, if there is one by now: tables that come and go, and batches.
    ///
    /// # Errors
    /// [`ErrorKind::FeedLost`] where the feed has lost its place, or the log does not go on where
    /// this reader stands; [`ErrorKind::Locked`] where another reader has acknowledged what this
    /// one has not given yet; damage that is there each time that it is looked at; a failed read.
    /// The next call comes to the same again.
    pub fn poll(&mut self) -> Result<Option<FeedEvent>> {
        again(|| self.poll_once().inspect_err(|_| self.is_in_doubt = true))
    }

    fn poll_once(&mut self) -> Result<Option<FeedEvent>> {
        if std::mem::take(&mut self.is_in_doubt) {
            self.begin_again()?;
        }
        loop {
            if self.next.is_none() {
                self.read_next()?;
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
            (self.place.seq, self.place.lsn) = (batch.last_seq, end.lsn);
            self.given.push_back((batch.last_seq, end.mark));
            if !batch.ops.is_empty() {
                return Ok(Some(FeedEvent::Batch(batch)));
            }
        }
    }

    fn has_note_due(&self) -> bool {
        let next_seq = self.next.as_ref().map_or(self.place.seq + 1, |(batch, _)| batch.first_seq);
        self.notes.front().is_some_and(|note| note.seq < next_seq)
    }

    // ---- the log -------------------------------------------------------------------------------

    /// Reads on to the next batch that was not handed out, if there is one.
    fn read_next(&mut self) -> Result<()> {
        while self.next.is_none() {
            let files = &self.files;
            let file_at = |lsn| files.iter().find(|file| file.covers(lsn)).copied();
            let (frame, has_file) = match self.follower.next_written(&file_at)? {
                Written::Batch(batch) => (Some(ReadFrame::of(&batch)), true),
                Written::NotYet => (None, true),
                Written::NoFile => (None, false),
            };
            let goes_on = match frame {
                Some(frame) => self.take(&frame).map(|()| true)?,
                None if has_file => self.look(false)? != Look::Same || self.keep_waiting()?,
                None => self.find_files()?,
            };
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// Nothing whole stands where the follower does, and the manifest is the same: waits for the
    /// writer, and so returns false; fails where what stood there was durable.
    fn keep_waiting(&mut self) -> Result<bool> {
        let lsn = self.follower.lsn();
        let looks = if self.wait.0 == lsn { self.wait.1.saturating_add(1) } else { 1 };
        self.wait = (lsn, looks);
        let is_damaged = looks == u32::MAX; // it was when it was searched before
        let is_searched = is_damaged || looks >= SEARCH_AFTER && looks.is_power_of_two();
        let files = match is_searched {
            true => Some(history_in(&self.host, &self.dir, &self.manifest.state)?),
            false => None,
        };
        let waits = self.follower.check_wait(self.manifest.durable_lsn(), files.as_deref());
        // What is wrong is looked for again each time, until it has passed.
        match waits {
            Err(error) => {
                self.wait.1 = u32::MAX;
                return Err(error);
            }
            Ok(()) if is_damaged => self.wait.1 = SEARCH_AFTER,
            Ok(()) => {}
        }
        Ok(false)
    }

    /// Takes a batch that the follower has gone past.
    fn take(&mut self, frame: &ReadFrame) -> Result<()> {
        // What it speaks of stood in the manifest before it was written, and so does it in the
        // manifest as it is now.
        let is_known = is_known(&frame.payload, &self.manifest.state);
        if self.look(!is_known)? == Look::Elsewhere {
            return Ok(());
        }
        let state = &self.manifest.state;
        if frame::records(&frame.payload).flatten().any(|record| record.table.0 >= state.next_table_id) {
            return Err(Error::lacking(format!("a batch at seq {} is of an unknown table", frame.first_seq)));
        }
        let (last_seq, mark) = (frame.last_seq(), frame.mark());
        if !self.goes_on_with(frame) {
            let dir = self.dir.display();
            let (from, to) = (self.followed_seq, frame.first_seq);
            return Err(Error::lacking(format!("the log in {dir} goes from seq {from} to seq {to}")));
        }
        self.followed_seq = last_seq;
        if frame.first_seq <= self.place.seq {
            return self.pass_over(frame, mark);
        }
        let batch = self.batch(frame)?;
        self.next = Some((batch, End { lsn: frame.end_lsn, bytes: frame.payload.len() as u64, mark }));
        Ok(())
    }

    /// Whether a batch may come next. Inside a file seqs have no gap. Where one begins, they may: what a
    /// power cut took from the end of a log took its seqs with it, and an opening that has told times of
    /// these gives them to nobody else.
    fn goes_on_with(&self, frame: &ReadFrame) -> bool {
        let begins_a_file = self.files.iter().any(|file| file.first_lsn == frame.lsn);
        match begins_a_file {
            true => frame.first_seq > self.followed_seq,
            false => frame.first_seq == self.followed_seq + 1,
        }
    }

    /// Goes past a batch that was given before; fails where it is not the one that was.
    fn pass_over(&mut self, frame: &ReadFrame, mark: u64) -> Result<()> {
        let last_seq = frame.last_seq();
        let given = self.given.binary_search_by_key(&last_seq, |(seq, _)| *seq);
        let is_another = match given {
            Ok(at) => self.given[at].1 != mark,
            Err(_) => last_seq > self.given_after,
        };
        if is_another {
            let seq = self.place.seq;
            let why =
                format!("feed `{}` has given other batches up to seq {seq} than there are now", self.name);
            return Err(Error::new(ErrorKind::FeedLost, why).advise(BEGIN_ANEW));
        }
        if last_seq == self.place.seq {
            self.place.lsn = frame.end_lsn; // it may have been written anew since
        }
        Ok(())
    }

    fn batch(&mut self, frame: &ReadFrame) -> Result<FeedBatch> {
        let state = Arc::clone(&self.manifest.state);
        let values = self.values.get_or_insert_with(|| {
            let cache = Shared::new(CACHE_BYTES, self.value_files_max);
            let how = (self.value_files_max, false);
            value_files(&self.dir, Arc::clone(&self.host.files), cache, &state, how)
        });
        let mut reading = Reading {
            options: &self.options,
            tables: &mut self.tables,
            living: &|id| living(&state, id),
            notes: &self.notes,
            segment_map: values.present(),
            values,
            value_reads: &self.value_reads,
        };
        reading.batch(&frame.followed())
    }

    /// Looks which file has the history where the follower stands; false where the log has not come
    /// to that yet.
    fn find_files(&mut self) -> Result<bool> {
        let lsn = self.follower.lsn();
        let mut goes_on_at = lsn;
        for _ in 0..2 {
            if self.look(false)? != Look::Same {
                return Ok(true);
            }
            self.files = history_in(&self.host, &self.dir, &self.manifest.state)?;
            if self.files.iter().any(|file| file.covers(lsn)) {
                return Ok(true);
            }
            let beyond = self.files.iter().map(|file| file.first_lsn).filter(|first| *first > lsn).min();
            goes_on_at = beyond.unwrap_or(self.manifest.state.log_start_lsn);
            if goes_on_at <= lsn {
                return self.check_no_file();
            }
            // What is there may be newer than what is known; the feed may stand elsewhere by now.
            if self.look(true)? != Look::Same {
                return Ok(true);
            }
        }
        let dir = self.dir.display();
        let why = format!(
            "feed `{}` stands at LSN {lsn}, and the log in {dir} has nothing before LSN {goes_on_at}",
            self.name
        );
        Err(Error::new(ErrorKind::FeedLost, why).advise(BEGIN_ANEW))
    }

    /// No file has the history where the follower stands: waits for one, and so returns false; fails
    /// where there was one.
    fn check_no_file(&self) -> Result<bool> {
        let (lsn, durable_lsn) = (self.follower.lsn(), self.manifest.durable_lsn());
        let why = match self.follower.owes_next() {
            true => "the segment before it was left for one, which was durable before that".to_owned(),
            false if lsn < durable_lsn => format!("but was durable up to LSN {durable_lsn}"),
            false => return Ok(false),
        };
        let dir = self.dir.display();
        Err(Error::lacking(format!(
            "the log in {dir} has no segment with a whole header at LSN {lsn}: {why}"
        )))
    }

    // ---- the manifest --------------------------------------------------------------------------

    /// Reads the manifest where it has changed, or where that is forced.
    fn look(&mut self, is_forced: bool) -> Result<Look> {
        let before = self.manifest.length(&self.host, &self.dir);
        if !is_forced && before.is_some() && before == self.manifest.len_bytes {
            return Ok(Look::Same);
        }
        let seen = SeenManifest::read(&self.host, &self.dir, Some((self.manifest.number, before)))?;
        let known = std::mem::replace(&mut self.manifest, seen);
        let now = &self.manifest;
        if (now.number, now.edits) == (known.number, known.edits) {
            return Ok(Look::Same);
        }
        let is_new = |kept: &ArchivedLog| !known.state.feeds.kept().contains(kept);
        let is_rewritten = now.state.feeds.kept().iter().any(is_new);
        if now.state.store_id != known.state.store_id {
            let why = format!("there is another store in {} now", self.dir.display());
            return Err(Error::new(ErrorKind::FeedLost, why).advise(BEGIN_ANEW));
        }
        let stands = self.take_state()?;
        // A feed that has nothing to tell moves on over places that have no batches, and lets their
        // files go.
        if is_rewritten || stands.lsn > self.follower.lsn() {
            self.go_to(&stands);
            return Ok(Look::Elsewhere);
        }
        Ok(Look::Changed)
    }

    /// Takes over what the manifest says of the feed, and of tables; where the feed stands.
    fn take_state(&mut self) -> Result<FeedState> {
        let feeds = &self.manifest.state.feeds;
        let stands = feeds.get(&self.name);
        let Some(stands) = stands.filter(|feed| feed.holds()).cloned() else {
            return Err(lost_error(&self.name, stands).advise(BEGIN_ANEW));
        };
        if stands.seq > self.place.seq || stands.note > self.place.note {
            let why = format!(
                "feed `{}` was read by somebody else, who has acknowledged it up to seq {}, and this reader is at {}",
                self.name, stands.seq, self.place.seq
            );
            return Err(Error::new(ErrorKind::Locked, why).advise("read it once, or by two names"));
        }
        if stands.seq == self.place.seq {
            self.unacknowledged_bytes = 0;
            self.place.lsn = stands.lsn; // that of a place from before may have been written anew since
        }
        let acknowledged = self.given.partition_point(|(seq, _)| *seq <= stands.seq);
        self.given.drain(..acknowledged);
        self.given_after = self.given_after.max(stands.seq);
        self.notes = feeds.notes_after(self.place.note).cloned().collect();
        self.values = None;
        Ok(stands)
    }

    /// Follows from where the feed stands, which stays a place in the log whatever is written anew
    /// behind it.
    fn go_to(&mut self, stands: &FeedState) {
        self.follow_from(stands.lsn, stands.seq);
    }

    fn follow_from(&mut self, lsn: Lsn, seq: Seq) {
        self.follower = Follower::at(&self.host, &self.dir, lsn);
        self.followed_seq = seq;
        self.files.clear();
        self.next = None;
    }

    /// Looks at everything anew after something did not fit.
    fn begin_again(&mut self) -> Result<()> {
        let is_passing_over = self.followed_seq < self.place.seq;
        let look = self.look(true)?;
        let stands = self.take_state()?;
        if look == Look::Elsewhere || is_passing_over || stands.lsn > self.place.lsn {
            self.go_to(&stands);
        } else {
            self.follow_from(self.place.lsn, self.place.seq);
        }
        Ok(())
    }
}

const BEGIN_ANEW: &str = "begin the feed anew, with the rows of the present, by Feed::begin_again or folddb watch with \
                          --again; where its consumer may be away for long, with a larger budget, FeedOptions::bytes_max \
                          or --hold-max";

/// What a look at the manifest has shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Same,
    Changed,
    /// The follower stands where the feed does now: the end of the log was written anew, or the
    /// feed has moved on.
    Elsewhere,
}

impl SeenManifest {
    /// Reads it; `before` is a file and how long it was before.
    fn read(host: &Host, dir: &Path, before: Option<(FileNumber, Option<u64>)>) -> Result<SeenManifest> {
        let loaded = folddb_manifest::load(host, dir)?;
        let is_whole = |number: FileNumber| number == loaded.number && loaded.cut_bytes == 0;
        let len_bytes = before.and_then(|(number, len)| len.filter(|_| is_whole(number)));
        let (number, edits, state) = (loaded.number, loaded.edits, Arc::new(loaded.state));
        Ok(SeenManifest { state, number, edits, len_bytes })
    }

    /// Up to where it says that the log is durable.
    fn durable_lsn(&self) -> Lsn {
        replay_from(&self.state, self.edits).durable_lsn
    }

    /// How long its file is now; none where it has gone.
    fn length(&self, host: &Host, dir: &Path) -> Option<u64> {
        host.files.len_bytes(&dir.join(FileName::Manifest(self.number).to_string())).ok()
    }
}

/// A batch as it stands in the log.
struct ReadFrame {
    lsn: Lsn,
    end_lsn: Lsn,
    first_seq: Seq,
    count: u32,
    time_ms: Option<u64>,
    payload: Vec<u8>,
}

impl ReadFrame {
    fn of(batch: &Followed<'_>) -> ReadFrame {
        let Followed { lsn, end_lsn, first_seq, count, time_ms, payload } = *batch;
        ReadFrame { lsn, end_lsn, first_seq, count, time_ms, payload: payload.to_vec() }
    }

    fn followed(&self) -> Followed<'_> {
        let ReadFrame { lsn, end_lsn, first_seq, count, time_ms, ref payload } = *self;
        Followed { lsn, end_lsn, first_seq, count, time_ms, payload }
    }

    fn last_seq(&self) -> Seq {
        self.first_seq + u64::from(self.count).saturating_sub(1)
    }

    /// A hash of what the batch says, wherever its values lie: recovery may put them elsewhere.
    fn mark(&self) -> u64 {
        let mut hash = GrowingHash::new(self.first_seq);
        for record in frame::records(&self.payload).flatten() {
            hash.push(&record.table.0.to_le_bytes());
            hash.push(&[record.op.code()]);
            hash.push(&(record.key.len() as u64).to_le_bytes());
            hash.push(record.key);
            if matches!(record.op, LogOp::Op(_) | LogOp::RangeDelete) && record.pointer().is_none() {
                hash.push(record.payload);
            }
        }
        hash.hash64()
    }
}

/// The name and the rules of a table of the user's.
fn living(state: &State, id: TableId) -> Option<(String, String)> {
    let table = state.tables.get(&id)?;
    match TableRules::from_text(&table.rules_text) {
        Ok(rules) if rules.index_of.is_some() => None,
        Ok(rules) => Some((table.name.clone(), rules.to_text())),
        Err(_) => Some((table.name.clone(), table.rules_text.clone())),
    }
}

/// Does something that the writer may disturb by what it does meanwhile, a few times if need be.
fn again<T>(mut work: impl FnMut() -> Result<T>) -> Result<T> {
    let mut attempt = 1;
    loop {
        match work() {
            Err(error)
                if attempt < ATTEMPTS_MAX
                    && (may_pass(&error) || error.kind() == ErrorKind::StoreNotFound) =>
            {
                thread::sleep(PAUSE * attempt as u32);
                attempt += 1;
            }
            worked => return worked,
        }
    }
}
