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

use folddb_base::limits::VALUE_BYTES_MAX;
use folddb_base::{Error, ErrorKind, Lsn, Result, Seq, TableId};
use folddb_host::sync::atomic::Ordering;
use folddb_journal::follow::Follower;
use folddb_manifest::{Change, FeedPhase, FeedState, TableNote};
use folddb_rules::Datum;

use crate::any_rows::Short;
use crate::feed_batch::{Met, Reading, met, note_event};
use crate::feed_event::{FeedBatch, FeedEvent, FeedOptions, FeedPosition, FeedRow, FeedTable};
use crate::scans::{BytesScan, LentRows};
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::table::BytesTable;
use folddb_engine::edit::feeds;
use folddb_engine::edit::feeds::lost_error;
use folddb_engine::edit::log_archive::{check_feed_is_no_log, check_holds_no_log};
use folddb_engine::read::head;
use folddb_engine::state::engine::Engine;
use folddb_engine::state::{log_sync, pressure};
use folddb_engine::values::head::Head;

/// The budget of a feed that is made without one.
const BYTES_MAX: u64 = 1 << 30;

/// Longest name of a feed, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// A reader that has caught up looks so often for what is new, where nobody tells it.
const LOOK_EVERY: Duration = Duration::from_millis(10);

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
        feeds::feed_stats(self.engine())
    }

    /// Removes a feed, and what is held for it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] where there is none of this name; [`ErrorKind::Locked`] while it is being read; a failed write.
    pub fn drop_feed(&self, name: &str) -> Result<()> {
        let engine = self.engine();
        engine.check_not_read_only()?;
        engine.feeds.take(name)?;
        let dropped = drop_feed(engine, name);
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
        check_same(name, &feed.options, &state)?;
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
        feeds::edit_feeds(&engine, &mut manifest, &[Change::SetFeed { feed }])?;
        self.bytes_max = bytes_max;
        Ok(())
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
        log_sync::sync_to(&engine, lsn)?; // a power cut must not take back what the rows show
        let phase = if from_now { FeedPhase::Changes } else { FeedPhase::Rows };
        let note = manifest.state().feeds.last_note();
        let (seq, is_settled) = (snapshot.seq(), from_now);
        let place = FeedPosition { seq, lsn, note, is_settled, begun: 0 };
        let feed = self.state(place, phase, feeds::values_from(&engine, manifest.state(), lsn));
        feeds::edit_feeds(&engine, &mut manifest, &[Change::SetFeed { feed }])?;
        self.place = FeedPosition { begun: engine.feeds.begin(&self.name), ..place };
        let catalog = engine.catalog();
        let wanted = catalog.own().filter(|core| self.tells_of(&core.name)).cloned();
        let durability = engine.options.durability;
        let tables =
            wanted.map(|core| BytesTable { engine: Arc::clone(&engine), core, durability }).collect();
        drop(manifest);
        feeds::let_go_of_history(&engine); // what it held before
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
            let most = if pressure::background_runs(&engine) { left } else { left.min(LOOK_EVERY) };
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
        lost_error(&self.name, self.engine.manifest.lock().state().feeds.get(&self.name))
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
        while self.has_note_due() {
            if let Some(event) = self.take_note()? {
                return Some(event);
            }
        }
        None
    }

    fn has_note_due(&self) -> bool {
        let Stage::Changes(changes) = &self.stage else { return false };
        let is_due = |note: &TableNote| match &changes.next {
            Some((batch, _)) => note.seq < batch.first_seq,
            None => note.seq <= changes.limit.1 && changes.follower.lsn() >= changes.limit.0,
        };
        self.notes.front().is_some_and(is_due)
    }

    /// Goes past the next note; what it tells, where it is one of a table that the feed tells of.
    fn take_note(&mut self) -> Option<Option<FeedEvent>> {
        let note = self.notes.pop_front()?;
        self.place.note = note.note;
        Some(note_event(&note, &self.options, &mut self.tables))
    }

    /// Reads the next batch; false where there is none before the limit.
    fn read_next(&mut self) -> Result<bool> {
        let Stage::Changes(changes) = &mut self.stage else { return Ok(false) };
        let engine = &self.engine;
        let from = self.place.lsn;
        let file_at = |lsn| feeds::history_at(engine, lsn);
        let Some(followed) = changes.follower.next(changes.limit.0, &file_at)? else { return Ok(false) };
        let living = |id| {
            let catalog = engine.catalog();
            let core = catalog.own_by_id(id)?;
            Some((core.name.clone(), core.rules.rules.to_text()))
        };
        let mut reading = Reading {
            options: &self.options,
            tables: &mut self.tables,
            living: &living,
            notes: &self.notes,
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
        let file = |lsn| feeds::history_at(&self.engine, lsn).map(|file| (file.is_kept, file.number));
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
        match log_sync::sync_to(engine, end_lsn) {
            Ok(()) => changes.limit = (end_lsn, published),
            // A store that writes no more still gives what is durable, and then says why it gives no more.
            Err(error) if journal.durable_lsn() <= changes.limit.0 => return Err(error),
            Err(_) => changes.limit.0 = journal.durable_lsn(),
        }
        Ok(true)
    }

    // ---- acknowledging -----------------------------------------------------------------------------------

    /// Goes past all up to this place without handing it out: what a
    /// [`SecondaryFeed`](crate::SecondaryFeed) of this name has given already, while another process had
    /// the store open. [`Feed::acknowledge`] makes it durable.
    ///
    /// # Errors
    /// As [`Feed::poll`]; [`ErrorKind::InvalidInput`] where the feed begins with rows, or has less
    /// than that.
    pub fn skip_to(&mut self, place: FeedPosition) -> Result<()> {
        self.engine.check_open()?;
        self.look_at_edits()?;
        loop {
            match &self.stage {
                Stage::Lost => return Err(self.lost()),
                Stage::Rows(_) => {
                    let why =
                        format!("feed `{}` begins with its rows: nothing of them is skipped", self.name);
                    return Err(Error::invalid(why));
                }
                Stage::Changes(_) => {}
            }
            let has_note = |feed: &Feed| feed.notes.front().is_some_and(|note| note.note <= place.note);
            while self.has_note_due() && has_note(self) {
                self.take_note();
            }
            let is_past_notes = !has_note(self);
            let Stage::Changes(changes) = &mut self.stage else { continue };
            match changes.next.take_if(|(batch, _)| batch.last_seq <= place.seq) {
                Some((batch, lsn)) => (self.place.seq, self.place.lsn) = (batch.last_seq, lsn),
                None if changes.next.is_some() => break,
                None if self.place.seq >= place.seq && is_past_notes => break,
                None => {}
            }
            let is_at_end = !self.read_next()? && !self.raise_limit()?;
            if is_at_end && !(self.has_note_due() && has_note(self)) {
                break;
            }
        }
        if self.place.seq >= place.seq {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "feed `{}` has nothing at seq {}, but {} was read beside a writer: it is another store, or one of before",
            self.name, self.place.seq, place.seq
        )))
    }

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
        let values_from = feeds::values_from(&engine, manifest.state(), place.lsn);
        let feed = self.state(place, FeedPhase::Changes, values_from);
        feeds::edit_feeds(&engine, &mut manifest, &[Change::SetFeed { feed }])?;
        drop(manifest);
        feeds::let_go_of_history(&engine);
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

fn drop_feed(engine: &Engine, name: &str) -> Result<()> {
    let mut manifest = engine.manifest.lock();
    if manifest.state().feeds.get(name).is_none() {
        return Err(Error::invalid(format!("the store has no feed `{name}`")));
    }
    check_holds_no_log(manifest.state(), name)?;
    feeds::edit_feeds(engine, &mut manifest, &[Change::DropFeed { name: name.to_owned() }])?;
    drop(manifest);
    feeds::let_go_of_history(engine);
    Ok(())
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
                match head::head(engine, table.core(), &key, Some(self.snapshot.seen())) {
                    Ok(head) => deadline_ms = head.and_then(|head| head.deadline_ms),
                    Err(_) if table.core().check_alive().is_err() => break, // dropped, as will be told
                    Err(error) => return Err(error),
                }
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

/// Fails where a feed tells of something else than is asked for.
pub(crate) fn check_same(name: &str, options: &FeedOptions, state: &FeedState) -> Result<()> {
    let table = Some(state.table.clone()).filter(|table| !table.is_empty());
    if (&table, &state.prefix) == (&options.table, &options.prefix) {
        return Ok(());
    }
    let tables = table.map_or("all tables".to_owned(), |table| format!("table `{table}`"));
    let keys = match state.prefix.is_empty() {
        true => String::new(),
        false => format!(", of keys that begin with `{}`", Datum::from_bytes(&state.prefix)),
    };
    Err(Error::invalid(format!(
        "feed `{name}` tells of {tables}{keys}: read it so, drop it, or choose another name"
    )))
}

const NOWHERE: FeedPosition = FeedPosition { seq: 0, lsn: 0, note: 0, is_settled: false, begun: 0 };

pub(crate) fn place_of(state: &FeedState) -> FeedPosition {
    let is_settled = state.phase != FeedPhase::Rows;
    FeedPosition { seq: state.seq, lsn: state.lsn, note: state.note, is_settled, begun: 0 }
}

fn check_name(name: &str) -> Result<()> {
    if !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a feed's name has 1 to {NAME_BYTES_MAX} bytes and no control characters; {name:?} is none"
    )))
}
