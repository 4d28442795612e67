//! A change feed: rows as of one moment, then every batch after it, in the order of commits, for as long as the store lives.
//!
//! ```text
//!   Begin   rows ... rows   RowsEnd   Batch  Batch  TableCreated  Batch ...
//!           as of seq s               s+1..  in order, whole
//! ```
//!
//! **The law**: rows and the ops of all batches after them, applied one by one, give what the store has. Ops are handed out as they
//! were written, so a fold is handed out once and not its outcome; a consumer that applies one twice is wrong, and so positions
//! are exact: [`Feed::acknowledge`] makes one durable, and what comes after it is handed out again after a restart. Rows are as of
//! a snapshot, which does not survive the process: a feed whose rows were not all acknowledged begins anew, and says so.
//! Whoever was told to begin anew has forgotten what came before, so a place of before is nothing that can be acknowledged.
//!
//! Batches are read from the files of the log (`folddb_journal::follow`), up to where they are durable; a reader that has caught up
//! syncs what has been committed since. What is held for a feed, and how that is bounded, is told in `feeds.rs`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use folddb_base::bytes::Malformed;
use folddb_base::limits::VALUE_BYTES_MAX;
use folddb_base::{Error, ErrorKind, Lsn, OpKind, Piece, Pointer, Result, Rope, Seq, Stamp, TableId};
use folddb_host::sync::atomic::Ordering;
use folddb_journal::follow::{Followed, Follower};
use folddb_layout::frame::{self, FrameRecord, LogOp};
use folddb_layout::hash_front::{FRONT_BYTES, Front};
use folddb_layout::values::{RECORD_HEAD_BYTES, RecordHead};
use folddb_manifest::{Change, FeedPhase, FeedState, TableNote};
use folddb_rules::Datum;
use folddb_rules::table_rules::{TableKind, TableRules};

use crate::any_rows::Short;
use crate::engine::Engine;
use crate::feeds::why_lost;
use crate::hashed_read::is_long;
use crate::head::Head;
use crate::kept_logs::{check_feed_is_no_log, check_holds_no_log};
use crate::scans::{BytesScan, LentRows};
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::table::BytesTable;
use crate::value_files::Roster;

/// The budget of a feed that is made without one.
const BYTES_MAX: u64 = 1 << 30;

/// Longest name of a feed, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// A reader that has caught up looks so often for what is new, where nobody tells it.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What a feed tells of, and how much it may hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedOptions {
    /// The only table that it tells of; all where there is none. It need not be there yet, and may come and go.
    pub table: Option<String>,
    /// It tells of keys whose bytes begin so.
    pub prefix: Vec<u8>,
    /// Bytes of log and values that are kept only for this feed: its budget. With more than that the feed is lost, and begins
    /// anew. None leaves a feed that is there the one that it has, and gives a new one 1 GiB; one that is given counts from
    /// the opening on. Raise it where the consumer may be away for long. With `u64::MAX` the feed is never lost for space:
    /// where the disk is full or the store at its bound, writes wait for its consumer.
    pub bytes_max: Option<u64>,
    /// Whether it begins with what comes now, and gives no rows.
    pub from_now: bool,
}

/// A table, as feeds tell of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedTable {
    /// Its number, which no other table of the store ever has.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its rules, as text.
    pub rules_text: String,
}

/// What a feed gives.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedEvent {
    /// Forget all that this feed has given before: what comes now is everything.
    Begin {
        /// The rows are as of this seq.
        seq: Seq,
        /// And as of this time, in milliseconds since 1970.
        unix_millis: u64,
    },
    /// There is a table.
    TableCreated(Arc<FeedTable>),
    /// A table is gone, with all that is in it.
    TableDropped(Arc<FeedTable>),
    /// What a key has.
    Row(FeedRow),
    /// There are no more rows. To acknowledge this, or anything after it, is to have them all.
    RowsEnd,
    /// A batch, whole, but for ops on what the feed does not tell of.
    Batch(FeedBatch),
}

/// What a key had when the feed began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedRow {
    /// The table.
    pub table: Arc<FeedTable>,
    /// The key.
    pub key: Vec<u8>,
    /// Its value; none where it is long, and where the fold fails on the key.
    pub value: Option<Vec<u8>>,
    /// The head of a value of more than 16 MiB, with its length: such a one is not handed out whole, read it from the store.
    pub long: Option<Head>,
    /// Until when it lasts, in milliseconds since 1970; none where it does for ever.
    pub deadline_ms: Option<u64>,
}

/// A batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedBatch {
    /// The seq of its first op, told or not.
    pub first_seq: Seq,
    /// The seq of its last.
    pub last_seq: Seq,
    /// When it was written, in milliseconds since 1970, where a table of it or an age for deletes asks for that.
    pub written_ms: Option<u64>,
    /// Its ops, in order.
    pub ops: Vec<FeedOp>,
}

/// An op of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedOp {
    /// The table.
    pub table: Arc<FeedTable>,
    /// Its seq.
    pub seq: Seq,
    /// The key; of a range delete, the first that is deleted.
    pub key: Vec<u8>,
    /// What it does.
    pub change: FeedChange,
    /// Until when the value that it brings lasts, in milliseconds since 1970; none where it does for ever.
    pub deadline_ms: Option<u64>,
}

/// What an op does to its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedChange {
    /// Makes the value this one.
    Set(Vec<u8>),
    /// Gives an absent key this value.
    Insert(Vec<u8>),
    /// Folds this operand on.
    Fold(Vec<u8>),
    /// Makes the key absent.
    Delete,
    /// Makes all keys from the key on and below this one, in the order of the table, absent.
    DeleteRange(Vec<u8>),
    /// Makes the value one that is too long to be handed out whole (more than 16 MiB), of so many bytes: read it from the
    /// store.
    SetLong(u64),
    /// Gives an absent key such a value.
    InsertLong(u64),
    /// Folds an operand of so many bytes on: read what it comes to from the store.
    FoldLong(u64),
}

/// A place in a feed: all up to an event. Later ones are greater.
#[derive(Clone, Copy, Debug)]
pub struct FeedPosition {
    seq: Seq,
    lsn: Lsn,
    note: u64,
    /// Not among the rows.
    is_settled: bool,
    /// How often the feed had begun by then, in this process. It says nothing of where the place is.
    begun: u64,
}

impl FeedPosition {
    /// The seq of the last op before it.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    fn place(&self) -> (Seq, Lsn, u64, bool) {
        (self.seq, self.lsn, self.note, self.is_settled)
    }
}

impl PartialEq for FeedPosition {
    fn eq(&self, other: &FeedPosition) -> bool {
        self.place() == other.place()
    }
}

impl Eq for FeedPosition {}

impl PartialOrd for FeedPosition {
    fn partial_cmp(&self, other: &FeedPosition) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for FeedPosition {
    fn cmp(&self, other: &FeedPosition) -> std::cmp::Ordering {
        self.place().cmp(&other.place())
    }
}

/// A feed that is being read, by one reader at a time; see [`Store::feed`].
pub struct Feed {
    engine: Arc<Engine>,
    name: String,
    options: FeedOptions,
    /// Its budget.
    bytes_max: u64,
    stage: Stage,
    /// All up to here was handed out, or is not told of.
    place: FeedPosition,
    /// As of the last event; `place` may be farther, past what it does not tell of.
    handed: FeedPosition,
    acknowledged: FeedPosition,
    /// Something was handed out that is not acknowledged.
    owes: bool,
    /// The tables that were met; none where it tells nothing of one.
    tables: BTreeMap<TableId, Option<Met>>,
    /// What has happened to tables after `place`, and as of which edit that is known.
    notes: VecDeque<TableNote>,
    notes_as_of: u64,
}

/// A table that was met.
#[derive(Clone)]
struct Met {
    table: Arc<FeedTable>,
    has_stamps: bool,
    /// Its values have fronts, as those of hashed tables that know times.
    has_fronts: bool,
}

enum Stage {
    Rows(Box<Rows>),
    Changes(Box<Changes>),
    /// It has lost its place.
    Lost,
}

/// The rows that are still to come.
struct Rows {
    snapshot: Snapshot,
    has_begun: bool,
    /// The tables that are still to come.
    tables: VecDeque<BytesTable>,
    current: Option<(BytesTable, Met, LentRows)>,
}

/// The batches that are still to come.
struct Changes {
    follower: Follower,
    /// All before this is published and durable, and the seq that was the last then.
    limit: (Lsn, Seq),
    /// A batch that was read and not handed out, with the LSN after it.
    next: Option<(FeedBatch, Lsn)>,
}

impl Store {
    /// Opens the feed of this name for reading, and makes it where there is none: it begins with the rows of the present then. A feed
    /// goes on behind what was acknowledged last, with the budget that it has unless another one is given.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] while somebody else reads it; [`ErrorKind::InvalidInput`] where there is one that tells of something else,
    /// and for a bad name; a failed write.
    pub fn feed(&self, name: &str, options: FeedOptions) -> Result<Feed> {
        let engine = self.engine();
        engine.check_not_read_only()?;
        check_name(name)?;
        check_feed_is_no_log(name)?;
        engine.feeds.take(name)?;
        Feed::open(engine, name, options)
    }

    /// The feeds that there are, and what they hold.
    pub fn feeds(&self) -> Vec<crate::FeedStats> {
        self.engine().feed_stats()
    }

    /// Removes a feed, and what is held for it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] where there is none of this name; [`ErrorKind::Locked`] while it is being read; a failed write.
    pub fn drop_feed(&self, name: &str) -> Result<()> {
        let engine = self.engine();
        engine.check_not_read_only()?;
        engine.feeds.take(name)?;
        let dropped = engine.drop_feed(name);
        engine.feeds.give_back(name);
        dropped
    }
}

impl Feed {
    fn open(engine: &Arc<Engine>, name: &str, options: FeedOptions) -> Result<Feed> {
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
            feed.begin(feed.options.from_now)?;
            return Ok(feed);
        };
        feed.check_same(&state)?;
        if given != feed.bytes_max {
            feed.set_bytes_max(given)?;
        }
        match state.phase {
            FeedPhase::Lost(_) => {}
            FeedPhase::Rows => feed.begin(false)?,
            FeedPhase::Changes => feed.go_on(),
        }
        Ok(feed)
    }

    /// Gives the feed another budget, durably.
    fn set_bytes_max(&mut self, bytes_max: u64) -> Result<()> {
        let engine = Arc::clone(&self.engine);
        let mut manifest = engine.manifest.lock();
        let Some(state) = manifest.state().feeds.get(&self.name).cloned() else { return Ok(()) };
        let feed = FeedState { bytes_max, ..state }; // as it stands now: it may have been lost meanwhile
        engine.edit_feeds(&mut manifest, &[Change::SetFeed { feed }])?;
        self.bytes_max = bytes_max;
        Ok(())
    }

    fn check_same(&mut self, state: &FeedState) -> Result<()> {
        let table = Some(state.table.clone()).filter(|table| !table.is_empty());
        if (&table, &state.prefix) == (&self.options.table, &self.options.prefix) {
            return Ok(());
        }
        let tables = table.map_or("all tables".to_owned(), |table| format!("table `{table}`"));
        let keys = match state.prefix.is_empty() {
            true => String::new(),
            false => format!(", of keys that begin with `{}`", Datum::from_bytes(&state.prefix)),
        };
        Err(Error::invalid(format!(
            "feed `{}` tells of {tables}{keys}: read it so, drop it, or choose another name",
            self.name
        )))
    }

    /// Forgets where the feed stood, and begins anew with the rows of the present. For one that is lost, and for consumers that are.
    /// Places of before are not acknowledged any more.
    ///
    /// # Errors
    /// A failed write.
    pub fn begin_again(&mut self) -> Result<()> {
        self.begin(false)
    }

    fn begin(&mut self, from_now: bool) -> Result<()> {
        let engine = Arc::clone(&self.engine);
        let mut manifest = engine.manifest.lock();
        engine.check_open()?;
        engine.health.check_writable(true)?;
        let (snapshot, lsn) = Snapshot::take_with_lsn(&engine)?;
        engine.sync_to(lsn)?; // a power cut must not take back what the rows show
        let phase = if from_now { FeedPhase::Changes } else { FeedPhase::Rows };
        let note = manifest.state().feeds.last_note();
        let (seq, is_settled) = (snapshot.seq(), from_now);
        let place = FeedPosition { seq, lsn, note, is_settled, begun: 0 };
        let feed = self.state(place, phase, engine.values_from(manifest.state(), lsn));
        engine.edit_feeds(&mut manifest, &[Change::SetFeed { feed }])?;
        self.place = FeedPosition { begun: engine.feeds.begin(&self.name), ..place };
        let catalog = engine.catalog();
        let wanted = catalog.own().filter(|core| self.tells_of(&core.name)).cloned();
        let durability = engine.options.durability;
        let tables =
            wanted.map(|core| BytesTable { engine: Arc::clone(&engine), core, durability }).collect();
        drop(manifest);
        engine.let_go_of_history(); // what it held before
        (self.acknowledged, self.owes) = (self.place, false);
        self.go_on();
        if !from_now {
            self.stage = Stage::Rows(Box::new(Rows { snapshot, has_begun: false, tables, current: None }));
        }
        Ok(())
    }

    /// Gives changes from its place on.
    fn go_on(&mut self) {
        let follower = Follower::at(&self.engine.host, &self.engine.dir, self.place.lsn);
        let limit = (self.place.lsn, self.place.seq);
        self.tables.clear();
        self.notes_as_of = 0;
        self.stage = Stage::Changes(Box::new(Changes { follower, limit, next: None }));
    }

    fn state(
        &self,
        place: FeedPosition,
        phase: FeedPhase,
        values_from: folddb_base::FileNumber,
    ) -> FeedState {
        let FeedOptions { table, prefix, .. } = self.options.clone();
        let (name, table, bytes_max) = (self.name.clone(), table.unwrap_or_default(), self.bytes_max);
        let FeedPosition { seq, lsn, note, .. } = place;
        FeedState { name, table, prefix, bytes_max, phase, seq, lsn, note, values_from }
    }

    fn tells_of(&self, table: &str) -> bool {
        self.options.table.as_ref().is_none_or(|only| only == table)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The place after the event that was handed out last.
    pub fn position(&self) -> FeedPosition {
        self.place
    }

    /// The next event; waits for one at most so long.
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
            let most = if engine.upkeep_runs() { left } else { left.min(LOOK_EVERY) };
            engine.feeds.sleep(seen, most);
        }
    }

    /// The next event, if there is one by now.
    ///
    /// # Errors
    /// [`ErrorKind::FeedLost`] where it has lost its place, see [`Feed::begin_again`]; damage; a failed read or write.
    pub fn poll(&mut self) -> Result<Option<FeedEvent>> {
        self.engine.check_open()?;
        self.look_at_edits()?;
        let polled = match &mut self.stage {
            Stage::Lost => return Err(self.lost()),
            Stage::Rows(_) => self.poll_rows(),
            Stage::Changes(_) => self.poll_changes(),
        };
        match polled {
            Err(error) => {
                // What it needed may have gone while it was being read.
                self.look_at_edits()?;
                if matches!(self.stage, Stage::Lost) { Err(self.lost()) } else { Err(error) }
            }
            polled => polled,
        }
    }

    fn lost(&self) -> Error {
        let state = self.engine.manifest.lock().state().feeds.get(&self.name).cloned();
        let why = match state.as_ref().map(|state| state.phase) {
            Some(FeedPhase::Lost(cause)) => state.as_ref().map(|state| why_lost(state, cause)),
            _ => None,
        };
        let why = why.unwrap_or_else(|| "it has been dropped".to_owned());
        let lost = Error::new(ErrorKind::FeedLost, format!("feed `{}` has lost its place: {why}", self.name));
        lost.advise(
            "begin the feed anew, with the rows of the present: Feed::begin_again, or folddb watch with --again",
        )
    }

    /// Takes note of what has happened to tables, and to the feed.
    fn look_at_edits(&mut self) -> Result<()> {
        let edits = self.engine.feeds.edits.load(Ordering::Acquire) + 1;
        if self.notes_as_of == edits {
            return Ok(());
        }
        let manifest = self.engine.manifest.lock();
        let feeds = &manifest.state().feeds;
        if !feeds.get(&self.name).is_some_and(FeedState::holds) {
            self.stage = Stage::Lost;
        }
        self.notes = feeds.notes_after(self.place.note).cloned().collect();
        self.notes_as_of = edits;
        Ok(())
    }

    fn hand_out(&mut self, event: FeedEvent) -> Result<Option<FeedEvent>> {
        (self.owes, self.handed) = (true, self.place);
        Ok(Some(event))
    }

    // ---- rows --------------------------------------------------------------------------------------------

    fn poll_rows(&mut self) -> Result<Option<FeedEvent>> {
        let Stage::Rows(rows) = &mut self.stage else { return Ok(None) };
        if !rows.has_begun {
            rows.has_begun = true;
            let (seq, unix_millis) = (rows.snapshot.seq(), rows.snapshot.unix_millis());
            return self.hand_out(FeedEvent::Begin { seq, unix_millis });
        }
        loop {
            match rows.next(&self.engine, &self.options.prefix)? {
                Some(event) => return self.hand_out(event),
                None if rows.tables.is_empty() => break,
                None => {
                    let Some(begun) = rows.next_table(&self.options.prefix)? else { continue };
                    return self.hand_out(FeedEvent::TableCreated(begun));
                }
            }
        }
        self.go_on();
        self.place.is_settled = true;
        self.hand_out(FeedEvent::RowsEnd)
    }

    // ---- changes -----------------------------------------------------------------------------------------

    fn poll_changes(&mut self) -> Result<Option<FeedEvent>> {
        loop {
            if let Some(event) = self.next_note() {
                return self.hand_out(event);
            }
            let Stage::Changes(changes) = &mut self.stage else { return Ok(None) };
            if let Some((batch, lsn)) = changes.next.take() {
                (self.place.seq, self.place.lsn) = (batch.last_seq, lsn);
                if !batch.ops.is_empty() {
                    return self.hand_out(FeedEvent::Batch(batch));
                }
            }
            if self.read_next()? {
                continue;
            }
            if let Some(event) = self.next_note() {
                return self.hand_out(event); // it came after the last batch
            }
            self.move_on()?;
            if !self.raise_limit()? {
                return Ok(None);
            }
        }
    }

    /// Something that happened to a table before the next batch; notes of others are passed over.
    fn next_note(&mut self) -> Option<FeedEvent> {
        let Stage::Changes(changes) = &self.stage else { return None };
        let is_due = |note: &TableNote| match &changes.next {
            Some((batch, _)) => note.seq < batch.first_seq,
            None => note.seq <= changes.limit.1 && changes.follower.lsn() >= changes.limit.0,
        };
        let is_due = self.notes.front().is_some_and(is_due);
        let note = if is_due { self.notes.pop_front() } else { None }?;
        self.place.note = note.note;
        let met = self.tells_of(&note.name).then(|| met(note.table, &note.name, &note.rules_text));
        let table = met.as_ref().map(|met| Arc::clone(&met.table));
        self.tables.insert(note.table, met.filter(|_| !note.is_dropped));
        match table {
            None => self.next_note(),
            Some(table) if note.is_dropped => Some(FeedEvent::TableDropped(table)),
            Some(table) => Some(FeedEvent::TableCreated(table)),
        }
    }

    /// Reads the next batch; false where there is none before the limit.
    fn read_next(&mut self) -> Result<bool> {
        let Stage::Changes(changes) = &mut self.stage else { return Ok(false) };
        let engine = &self.engine;
        let from = self.place.lsn;
        let file_at = |lsn| engine.history_at(lsn);
        let Some(followed) = changes.follower.next(changes.limit.0, &file_at)? else { return Ok(false) };
        let mut reading = Reading {
            engine,
            options: &self.options,
            tables: &mut self.tables,
            notes: &self.notes,
            roster: engine.values.files.present(),
        };
        match reading.batch(&followed) {
            Ok(batch) => {
                changes.next = Some((batch, followed.end_lsn));
                Ok(true)
            }
            Err(error) => {
                // The next call comes to it again.
                changes.follower = Follower::at(&engine.host, &engine.dir, from);
                Err(error)
            }
        }
    }

    /// Everything up to the limit was handed out, or is not told of: where nothing is left to be acknowledged, that much is, once it
    /// holds files that are not needed.
    fn move_on(&mut self) -> Result<()> {
        let Stage::Changes(changes) = &self.stage else { return Ok(()) };
        self.place.lsn = changes.follower.lsn().max(self.place.lsn);
        if self.owes || self.place == self.acknowledged {
            return Ok(());
        }
        let file = |lsn| self.engine.history_at(lsn).map(|file| (file.is_kept, file.number));
        if file(self.acknowledged.lsn) == file(self.place.lsn) {
            return Ok(());
        }
        self.acknowledge(self.place)
    }

    /// Looks how far there is something to read; false when that is no farther than before.
    fn raise_limit(&mut self) -> Result<bool> {
        let Stage::Changes(changes) = &mut self.stage else { return Ok(false) };
        let engine = &self.engine;
        let Some(journal) = &engine.journal else { return Ok(false) };
        let committer = engine.commit.lock(); // what is in the log before its end is published
        let (end_lsn, published) = (journal.end_lsn(), engine.published());
        drop(committer);
        if (end_lsn, published) == changes.limit {
            return Ok(false);
        }
        match engine.sync_to(end_lsn) {
            Ok(()) => changes.limit = (end_lsn, published),
            // A store that writes no more still gives what is durable, and then says why it gives no more.
            Err(error) if journal.durable_lsn() <= changes.limit.0 => return Err(error),
            Err(_) => changes.limit.0 = journal.durable_lsn(),
        }
        Ok(true)
    }

    // ---- acknowledging -----------------------------------------------------------------------------------

    /// Says, durably, that all up to this place has been dealt with: none of it is handed out again, and what was held for it goes.
    /// Of a place among the rows nothing is kept, since they are only of use all together.
    ///
    /// A place of before the feed began anew is passed over, too, without an error: who deals with events in another thread,
    /// and says so late, has done nothing wrong; but what it dealt with is to be forgotten, and says nothing of the rows that
    /// come now.
    ///
    /// # Errors
    /// [`ErrorKind::FeedLost`]; a place that was not reached; a failed write.
    pub fn acknowledge(&mut self, place: FeedPosition) -> Result<()> {
        let is_behind = (place.lsn, place.note) <= (self.acknowledged.lsn, self.acknowledged.note);
        let has_rows = self.acknowledged.is_settled;
        let is_of_before = place.begun != self.place.begun;
        if !place.is_settled || is_of_before || is_behind && has_rows {
            return Ok(());
        }
        if place.lsn > self.place.lsn || place.note > self.place.note {
            return Err(Error::invalid(format!("feed `{}` has not come to that place", self.name)));
        }
        let engine = Arc::clone(&self.engine);
        let mut manifest = engine.manifest.lock();
        if !manifest.state().feeds.get(&self.name).is_some_and(FeedState::holds) {
            drop(manifest);
            return Err(self.lost());
        }
        let values_from = engine.values_from(manifest.state(), place.lsn);
        let feed = self.state(place, FeedPhase::Changes, values_from);
        engine.edit_feeds(&mut manifest, &[Change::SetFeed { feed }])?;
        drop(manifest);
        engine.let_go_of_history();
        self.acknowledged = place;
        self.owes &= (place.lsn, place.note) < (self.handed.lsn, self.handed.note);
        Ok(())
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.engine.feeds.give_back(&self.name);
    }
}

impl Engine {
    fn drop_feed(&self, name: &str) -> Result<()> {
        let mut manifest = self.manifest.lock();
        if manifest.state().feeds.get(name).is_none() {
            return Err(Error::invalid(format!("the store has no feed `{name}`")));
        }
        check_holds_no_log(manifest.state(), name)?;
        self.edit_feeds(&mut manifest, &[Change::DropFeed { name: name.to_owned() }])?;
        drop(manifest);
        self.let_go_of_history();
        Ok(())
    }
}

impl Rows {
    /// The next row of the present table; none at its end.
    fn next(&mut self, engine: &Engine, prefix: &[u8]) -> Result<Option<FeedEvent>> {
        let Some((table, met, rows)) = &mut self.current else { return Ok(None) };
        loop {
            let (key, value) = match rows.next_short() {
                Ok(Some((key, value))) => (key.to_vec(), Some(value)),
                Err(error) if error.kind() == ErrorKind::FoldFailed => (rows.key().to_vec(), None),
                Err(error) if table.core().check_alive().is_ok() => return Err(error),
                Ok(None) | Err(_) => break, // at its end, or dropped, as will be told
            };
            if !key.starts_with(prefix) {
                continue;
            }
            let (value, long) = match value {
                None => (None, None),
                Some(Short::Value(value)) if value.len() <= VALUE_BYTES_MAX => (Some(value.to_vec()), None),
                // One that was folded in memory may be long, too.
                Some(Short::Value(value)) => (None, Some(Head::of_value(table.core(), &key, value))),
                Some(Short::Long(head)) => (None, Some(head)),
            };
            let mut deadline_ms = None;
            if met.has_stamps && (value.is_some() || long.is_some()) {
                let head = engine.head(table.core(), &key, Some(self.snapshot.seen()))?;
                deadline_ms = head.and_then(|head| head.deadline_ms);
            }
            let table = Arc::clone(&met.table);
            return Ok(Some(FeedEvent::Row(FeedRow { table, key, value, long, deadline_ms })));
        }
        self.current = None;
        Ok(None)
    }

    /// Begins with the next table; none where there is none. One that has been dropped meanwhile has no rows: what was written to it
    /// since, and that it is gone, is told behind.
    fn next_table(&mut self, prefix: &[u8]) -> Result<Option<Arc<FeedTable>>> {
        let Some(table) = self.tables.pop_front() else { return Ok(None) };
        let core = table.core();
        let met = met(core.id, &core.name, &core.rules.rules.to_text());
        let mut scan: BytesScan = self.snapshot.scan_bytes(&table).short_values();
        if !prefix.is_empty() && core.rules.order.has_byte_prefixes() && core.hashed.is_none() {
            scan = scan.prefix(prefix);
        }
        let begun = Arc::clone(&met.table);
        match scan.rows() {
            Ok(rows) => self.current = Some((table, met, rows)),
            Err(_) if core.check_alive().is_err() => {}
            Err(error) => return Err(error),
        }
        Ok(Some(begun))
    }
}

/// What it takes to make a batch of what the log has.
struct Reading<'a> {
    engine: &'a Engine,
    options: &'a FeedOptions,
    tables: &'a mut BTreeMap<TableId, Option<Met>>,
    notes: &'a VecDeque<TableNote>,
    roster: Arc<Roster>,
}

impl Reading<'_> {
    fn batch(&mut self, followed: &Followed<'_>) -> Result<FeedBatch> {
        let mut ops = Vec::new();
        for (seq, record) in (followed.first_seq..).zip(frame::records(followed.payload)) {
            let malformed =
                |cause| Error::new(ErrorKind::Corruption, format!("the record of seq {seq}: {cause}"));
            let record = record.map_err(malformed)?;
            let is_told =
                matches!(record.op, LogOp::RangeDelete) || record.key.starts_with(&self.options.prefix);
            if let (true, Some(met)) = (is_told, self.met(record.table)) {
                ops.extend(self.op(&met, seq, &record)?);
            }
        }
        let last_seq = followed.first_seq + u64::from(followed.count).saturating_sub(1);
        Ok(FeedBatch { first_seq: followed.first_seq, last_seq, written_ms: followed.time_ms, ops })
    }

    /// The table of this number; none where nothing is told of it.
    fn met(&mut self, id: TableId) -> Option<Met> {
        if let Some(met) = self.tables.get(&id) {
            return met.clone();
        }
        let catalog = self.engine.catalog();
        let living = catalog.own_by_id(id).map(|core| (&core.name, core.rules.rules.to_text()));
        let noted = self.notes.iter().find(|note| note.table == id);
        let known = living.or_else(|| noted.map(|note| (&note.name, note.rules_text.clone())));
        let told = known.filter(|(name, _)| self.options.table.as_ref().is_none_or(|only| only == *name));
        let met = told.map(|(name, rules_text)| met(id, name, &rules_text));
        self.tables.insert(id, met.clone());
        met
    }

    fn op(&self, met: &Met, seq: Seq, record: &FrameRecord<'_>) -> Result<Option<FeedOp>> {
        let malformed =
            |cause| Error::new(ErrorKind::Corruption, format!("the record of seq {seq}: {cause}"));
        let (mut payload, mut stamp) = (record.payload, None);
        if let (LogOp::Op(kind), true) = (record.op, met.has_stamps) {
            stamp = Stamp::of(kind, payload).map_err(malformed)?;
            if !kind.is_apart() && kind != OpKind::Delete {
                payload = Stamp::split(payload).map_err(malformed)?.1;
            }
        }
        let inline = || payload.to_vec();
        let change = match record.op {
            LogOp::RangeDelete => FeedChange::DeleteRange(payload.to_vec()),
            LogOp::RemoveHashed if record.old_slot() == Some(0) => return Ok(None), // nothing came of it
            LogOp::RemoveHashed | LogOp::Op(OpKind::Delete) => FeedChange::Delete,
            LogOp::Op(OpKind::Set) => FeedChange::Set(inline()),
            LogOp::Op(OpKind::Insert) => FeedChange::Insert(inline()),
            LogOp::Op(OpKind::Fold) => FeedChange::Fold(inline()),
            LogOp::PutHashed if met.has_fronts => {
                let rope = Rope::decode(record.pointer().unwrap_or_default()).map_err(malformed)?;
                let (front, value) = self.with_front(record, &rope)?;
                stamp = Some(front.stamp);
                match value {
                    _ if front.is_deleted => FeedChange::Delete,
                    None => FeedChange::SetLong(rope.len - FRONT_BYTES as u64),
                    Some(value) => FeedChange::Set(value),
                }
            }
            LogOp::PutHashed | LogOp::Op(_) => {
                let pointer = record.pointer().unwrap_or_default();
                let rope = Rope::decode(pointer).map_err(malformed)?;
                match (self.value(record, &rope)?, record.op) {
                    (None, LogOp::Op(OpKind::InsertApart)) => FeedChange::InsertLong(rope.len),
                    (None, LogOp::Op(OpKind::FoldApart)) => FeedChange::FoldLong(rope.len),
                    (None, _) => FeedChange::SetLong(rope.len),
                    (Some(value), LogOp::Op(OpKind::InsertApart)) => FeedChange::Insert(value),
                    (Some(value), LogOp::Op(OpKind::FoldApart)) => FeedChange::Fold(value),
                    (Some(value), _) => FeedChange::Set(value),
                }
            }
        };
        let lasts = |stamp: Stamp| Some(stamp.deadline_ms).filter(|&ms| ms < folddb_base::stamp::NEVER);
        let deadline_ms = stamp.and_then(lasts);
        Ok(Some(FeedOp { table: Arc::clone(&met.table), seq, key: record.key.to_vec(), change, deadline_ms }))
    }

    /// A value that lies apart; none where it is too long to be held.
    fn value(&self, record: &FrameRecord<'_>, rope: &Rope<'_>) -> Result<Option<Vec<u8>>> {
        if rope.len > VALUE_BYTES_MAX as u64 {
            return Ok(None);
        }
        if let Some(pointer) = rope.as_pointer() {
            return self.piece(record, &pointer).map(Some);
        }
        let mut value = Vec::new();
        for piece in rope.iter() {
            match (piece, piece.pointer()) {
                (_, Some(pointer)) => value.extend_from_slice(&self.piece(record, &pointer)?),
                (Piece::Inline(bytes), None) => value.extend_from_slice(bytes),
                (Piece::Apart { .. }, None) => {} // cannot be
            }
        }
        Ok(Some(value))
    }

    /// The front of a value of a hashed table, and the value; none where it is too long to be held.
    fn with_front(&self, of: &FrameRecord<'_>, rope: &Rope<'_>) -> Result<(Front, Option<Vec<u8>>)> {
        let malformed = |cause| Error::new(ErrorKind::Corruption, format!("the front of a value: {cause}"));
        let pointer = rope.as_pointer().ok_or_else(|| malformed(Malformed::Tag))?;
        let file = self.engine.values.files.open(&self.roster, pointer.place.segment)?.at(pointer.place)?;
        self.engine.counters.value_reads.add(1);
        if is_long(rope.len) {
            // It stands behind one that was written piece by piece.
            let (offset, len) = file.extent(of.key, &pointer)?;
            let (mut front, at) = ([0; FRONT_BYTES], offset + len - FRONT_BYTES as u64);
            file.read_exact_at(at, &mut front).map_err(|error| Error::io("read", file.path(), error))?;
            return Front::split(&front).map(|(front, _)| (front, None)).map_err(malformed);
        }
        let mut record = Vec::new();
        let len = file.value((of.table, of.key), &pointer, &mut record)?.len();
        let head_bytes = RECORD_HEAD_BYTES + of.key.len();
        let mut value = record.split_off(record.len() - len);
        let head = record.get(record.len().saturating_sub(head_bytes)..).unwrap_or_default();
        let head = RecordHead::decode(head).map_err(malformed)?;
        let behind = value.len().checked_sub(FRONT_BYTES).ok_or_else(|| malformed(Malformed::Short))?;
        let at = if head.front_is_behind { behind } else { 0 };
        let front: Vec<u8> = value.drain(at..at + FRONT_BYTES).collect();
        Front::split(&front).map(|(front, _)| (front, Some(value))).map_err(malformed)
    }

    fn piece(&self, of: &FrameRecord<'_>, pointer: &Pointer<'_>) -> Result<Vec<u8>> {
        self.engine.counters.value_reads.add(1);
        let mut record = Vec::new();
        let file = self.engine.values.files.open(&self.roster, pointer.place.segment)?;
        let len = file.value((of.table, of.key), pointer, &mut record)?.len();
        record.drain(..record.len() - len);
        Ok(record)
    }
}

const NOWHERE: FeedPosition = FeedPosition { seq: 0, lsn: 0, note: 0, is_settled: false, begun: 0 };

fn place_of(state: &FeedState) -> FeedPosition {
    let is_settled = state.phase != FeedPhase::Rows;
    FeedPosition { seq: state.seq, lsn: state.lsn, note: state.note, is_settled, begun: 0 }
}

fn met(id: TableId, name: &str, rules_text: &str) -> Met {
    let rules = TableRules::from_text(rules_text).ok();
    let has_stamps = rules.as_ref().is_some_and(|rules| rules.expire.has_stamps());
    let keeps_past = rules.as_ref().is_some_and(|rules| rules.keep.keeps_past());
    let is_hashed = rules.is_some_and(|rules| rules.kind == TableKind::Hashed);
    let has_fronts = is_hashed && (has_stamps || keeps_past);
    let table = FeedTable { id: id.0, name: name.to_owned(), rules_text: rules_text.to_owned() };
    Met { table: Arc::new(table), has_stamps, has_fronts }
}

fn check_name(name: &str) -> Result<()> {
    if !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a feed's name has 1 to {NAME_BYTES_MAX} bytes and no control characters; {name:?} is none"
    )))
}
