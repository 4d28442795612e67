//! `folddb watch STORE NAME`: prints a change feed: rows the first time, then every batch since the
//! last printed one.
//!
//! ```text
//!   without --wait   the store is open for writing:   what there is is printed, and acknowledged
//!   with --wait      the same, and closed again;      then the feed is read while others write
//!   in the shell     the store of the shell is read, no matter who writes to it
//! ```
//!
//! Events are acknowledged after they are printed, so after an interrupted watch the same is
//! printed again. A watch that waits holds no lock, so it acknowledges when it ends, and before
//! that only once much has been printed; if another process then has the store open, it cannot, and
//! says so.

use folddb::table_rules::TableRules;
use folddb::{
    Datum, DynamicRules, ErrorKind, Feed, FeedBatch, FeedChange, FeedEvent, FeedOp, FeedOptions,
    FeedPosition, FeedRow, FeedTable, Options, SecondaryFeed, Store, datum,
};

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::Write;
use std::time::{Duration, Instant};

use crate::args::WatchArgs;
use crate::failure::Failure;
use crate::human;
use crate::interrupt;
use crate::keys;
use crate::messages;
use crate::render::head;
use crate::render::json::{self, Json, object};
use crate::session::{Opened, Session, once_unlocked_within};

/// After this many batches the printed ones are acknowledged.
const ACKNOWLEDGE_EVERY: u64 = 1000;

/// A watch that waits tries to acknowledge when the writer retains this many bytes of log for what
/// it has printed.
const HELD_BYTES_MAX: u64 = 64 << 20;

/// How long it waits at a time before it checks whether to end.
const SLICE: Duration = Duration::from_millis(100);

/// How long it tries to open the store for a moment: other commands may have it open.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &WatchArgs, session: &mut Session) -> Result<(), Failure> {
    let mut watch = Watch::of(args, session);
    if session.shared.is_none() && args.wait.is_some() {
        let _hearing = interrupt::hear();
        return watch.live(session);
    }
    let store = session.write(&args.store)?;
    watch.drain(&store, session).map(drop)?;
    store.close()
}

/// A running watch.
struct Watch<'a> {
    args: &'a WatchArgs,
    printer: Printer,
    /// It ends after this many more batches.
    left: u64,
}

impl Watch<'_> {
    fn of<'a>(args: &'a WatchArgs, session: &Session) -> Watch<'a> {
        let printer = Printer { is_json: session.globals.json, tables: BTreeMap::new() };
        Watch { args, printer, left: args.limit.unwrap_or(u64::MAX) }
    }

    fn options(&self, store: &Opened) -> Result<FeedOptions, Failure> {
        let args = self.args;
        let prefix = prefix_bytes(store, args)?;
        let bytes_max = args.hold_max.map(|bytes| bytes as u64);
        Ok(FeedOptions::default()
            .table(args.table.as_deref())
            .prefix(&prefix)
            .bytes_max(bytes_max)
            .from_now(args.from_now))
    }

    fn print(&mut self, event: &FeedEvent, session: &mut Session) -> Result<bool, Failure> {
        let is_batch = matches!(event, FeedEvent::Batch(_));
        self.printer.print(&mut session.out, event)?;
        self.left -= u64::from(is_batch);
        Ok(is_batch)
    }

    // ---- in a store that is open for writing ----------------------------------------------------

    /// Prints and acknowledges the present events of the feed, which is created if there is none;
    /// in the shell it waits for more.
    fn drain(
        &mut self,
        store: &Opened,
        session: &mut Session,
    ) -> Result<(FeedOptions, FeedPosition), Failure> {
        let options = self.options(store)?;
        let mut feed = store.feed(&self.args.name, options.clone())?;
        if self.args.again {
            feed.begin_again()?;
        }
        let waits = session.shared.is_some() && self.args.wait.is_some();
        while self.left > 0 {
            interrupt::check()?;
            let event = match feed.poll()? {
                None if waits => {
                    session.flush()?;
                    wait_for(self.args, |timeout| feed.next(timeout))?
                }
                event => event,
            };
            let Some(event) = event else { break };
            if self.print(&event, session)? && self.left.is_multiple_of(ACKNOWLEDGE_EVERY) {
                self.acknowledge(&mut feed, session)?;
            }
        }
        self.acknowledge(&mut feed, session)?;
        Ok((options, feed.position()))
    }

    fn acknowledge(&self, feed: &mut Feed, session: &mut Session) -> Result<(), Failure> {
        session.flush()?;
        if !self.args.peek {
            feed.acknowledge(feed.position())?;
        }
        Ok(())
    }

    // ---- while another process writes -----------------------------------------------------------

    fn live(&mut self, session: &mut Session) -> Result<(), Failure> {
        let Some(mut feed) = self.begin(session)? else { return Ok(()) };
        let mut reached = Reached { printed: feed.position(), acknowledged: feed.position() };
        let watched = self.follow(&mut feed, &mut reached, session);
        let is_over = match &watched {
            Err(Failure::OutputClosed) => true, // unread output is not acknowledged
            Err(Failure::Store(error)) => error.kind() == ErrorKind::FeedLost,
            _ => false,
        };
        if is_over || self.args.peek || reached.printed == reached.acknowledged {
            return watched;
        }
        match (watched, self.acknowledge_secondary(&feed, reached.printed, PATIENCE, session)) {
            (watched, Ok(true)) => watched,
            (Ok(()), Err(error)) => Err(error),
            (watched, Err(error)) => {
                messages::print(&format!("folddb: what was printed is not acknowledged: {error}"));
                watched
            }
            (watched, Ok(false)) => {
                messages::print(
                    "folddb: what was printed is not acknowledged, because another process has the store open for writing: \
                     the next watch of this name prints it again",
                );
                watched
            }
        }
    }

    /// Prints each event as it arrives.
    fn follow(
        &mut self,
        feed: &mut SecondaryFeed,
        reached: &mut Reached,
        session: &mut Session,
    ) -> Result<(), Failure> {
        let mut asks_at_bytes = HELD_BYTES_MAX;
        while self.left > 0 {
            let Some(event) = wait_for(self.args, |timeout| feed.next(timeout))? else { break };
            self.print(&event, session)?;
            session.flush()?;
            reached.printed = feed.position();
            let held_bytes = feed.unacknowledged_bytes();
            if held_bytes <= asks_at_bytes || self.args.peek {
                continue;
            }
            // Trying the lock takes time, and a writer may hold it: so not after each event.
            asks_at_bytes = held_bytes + HELD_BYTES_MAX;
            if self.acknowledge_secondary(feed, reached.printed, Duration::ZERO, session)? {
                (reached.acknowledged, asks_at_bytes) = (reached.printed, HELD_BYTES_MAX);
            }
        }
        Ok(())
    }

    /// The feed, for reading while another process writes. If nobody writes it is created, and its
    /// present events are printed; otherwise it must exist. None if enough has been printed
    /// already.
    fn begin(&mut self, session: &mut Session) -> Result<Option<SecondaryFeed>, Failure> {
        let (args, options) = (self.args, session.options());
        let since = Instant::now();
        loop {
            match session.write(&args.store) {
                Ok(store) => {
                    let (told, place) = self.drain(&store, session)?;
                    store.close()?;
                    if self.left == 0 {
                        return Ok(None);
                    }
                    return Ok(Some(Store::secondary_feed(
                        &args.store,
                        &args.name,
                        told,
                        Some(place),
                        &options,
                    )?));
                }
                Err(Failure::Store(error)) if error.kind() == ErrorKind::Locked => {
                    let is_asked_of_writer = args.again || args.hold_max.is_some();
                    let told = match args.table.is_some() || !args.prefix.is_empty() {
                        true => self.options(&session.read(&args.store)?)?,
                        false => FeedOptions::default(),
                    };
                    match Store::secondary_feed(&args.store, &args.name, told, None, &options) {
                        Ok(feed) if !is_asked_of_writer => return Ok(Some(feed)),
                        _ if since.elapsed() < PATIENCE => std::thread::sleep(SLICE),
                        Ok(_) => return Err(error.into()),
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(error) => return Err(error),
            }
            interrupt::check()?;
        }
    }

    /// Acknowledges what was printed, by opening the store for a moment; false if another process
    /// has it open.
    fn acknowledge_secondary(
        &self,
        feed: &SecondaryFeed,
        printed: FeedPosition,
        patience: Duration,
        session: &Session,
    ) -> Result<bool, Failure> {
        let open = || Store::open(&self.args.store, session.options());
        let store = match once_unlocked_within(patience, || true, open) {
            Err(error) if error.kind() == ErrorKind::Locked => return Ok(false),
            opened => opened?,
        };
        let mut own = store.feed(&self.args.name, feed.options())?;
        own.skip_to(printed)?;
        own.acknowledge(own.position())?;
        drop(own);
        store.close()?;
        Ok(true)
    }
}

/// The progress of a watch while another process writes: only printed and flushed events are
/// acknowledged.
struct Reached {
    printed: FeedPosition,
    acknowledged: FeedPosition,
}

/// The next event; waits for the time that the user gives, and returns none after that.
///
/// # Errors
/// [`Failure::Interrupted`]; as `next`.
fn wait_for(
    args: &WatchArgs,
    mut next: impl FnMut(Duration) -> folddb::Result<Option<FeedEvent>>,
) -> Result<Option<FeedEvent>, Failure> {
    let since = Instant::now();
    let most = args.wait.flatten();
    loop {
        interrupt::check()?;
        let left = most.map_or(SLICE, |most| most.saturating_sub(since.elapsed()).min(SLICE));
        let event = next(left)?;
        if event.is_some() || left.is_zero() {
            return Ok(event);
        }
    }
}

/// The prefix of keys, by the key type of the table, if one is named. The table must exist unless
/// the user says otherwise, or the feed exists already: a feed of a mistyped table would never give
/// anything.
fn prefix_bytes(store: &Opened, args: &WatchArgs) -> Result<Vec<u8>, Failure> {
    let is_there = |name: &String| store.tables().contains(name);
    let made = store.feeds().into_iter().find(|feed| feed.name == args.name);
    let is_made = made.is_some();
    // An existing feed continues as it was created, with words or with bytes, even if its table was
    // created or dropped since.
    if let (Some(made), [word]) = (&made, &args.prefix[..])
        && plain_bytes(word).is_ok_and(|bytes| bytes == made.prefix)
    {
        return Ok(made.prefix.clone());
    }
    match &args.table {
        Some(name) if is_there(name) || !args.to_come && !is_made => {
            let table = store.known_table(name)?;
            match &args.prefix[..] {
                [] => Ok(Vec::new()),
                words => keys::prefix_bytes(&table, words, false),
            }
        }
        _ => match &args.prefix[..] {
            [] => Ok(Vec::new()),
            [word] => plain_bytes(word),
            words => Err(Failure::Usage(format!(
                "a prefix of bytes is one word, not {}: name the table",
                words.len()
            ))),
        },
    }
}

fn plain_bytes(word: &str) -> Result<Vec<u8>, Failure> {
    match word.strip_prefix("0x") {
        None => Ok(word.as_bytes().to_vec()),
        Some(hex) => datum::from_hex(hex).ok_or_else(|| {
            Failure::Usage(format!("`{word}` must have pairs of hexadecimal digits after 0x"))
        }),
    }
}

/// Prints events, one per line; a batch one op per line.
struct Printer {
    is_json: bool,
    /// The rules of the tables that were met, if they can be read here.
    tables: BTreeMap<u32, Option<DynamicRules>>,
}

impl Printer {
    fn print(&mut self, out: &mut dyn Write, event: &FeedEvent) -> Result<(), Failure> {
        if self.is_json {
            let line = self.as_json(event)?;
            return Ok(writeln!(out, "{line}")?);
        }
        let written = match event {
            FeedEvent::Begin { seq, time } => {
                writeln!(out, "begin         as of seq {seq}, {}", human::time(*time))
            }
            FeedEvent::TableCreated(table) => writeln!(out, "table         {}", table.name),
            FeedEvent::TableDropped(table) => writeln!(out, "dropped       {}", table.name),
            FeedEvent::Row(FeedRow { table, key, long: Some(head), .. }) => {
                let (key, head) = (shown(&self.key(table, key)), head::shown(head));
                writeln!(out, "row-long      {}  {key}  {head}", table.name)
            }
            FeedEvent::Row(row) => {
                let value = row.value.as_ref().map(|value| self.value(&row.table, value));
                let value = value.map_or_else(|| "(its fold fails)".to_owned(), |value| shown(&value));
                let key = shown(&self.key(&row.table, &row.key));
                writeln!(out, "row           {}  {key}  {value}", row.table.name)
            }
            FeedEvent::RowsEnd => writeln!(out, "rows end"),
            FeedEvent::Batch(batch) => return batch.ops.iter().try_for_each(|op| self.op(out, batch, op)),
            unknown => return Err(not_known(unknown)),
        };
        Ok(written?)
    }

    fn op(&mut self, out: &mut dyn Write, batch: &FeedBatch, op: &FeedOp) -> Result<(), Failure> {
        // The ops of one batch are marked as connected.
        let mark = if batch.first_seq == batch.last_seq { ' ' } else { '+' };
        let (what, value) = self.change(op)?;
        let value = value.map(|value| format!("  {}", shown(&value))).unwrap_or_default();
        let key = shown(&self.key(&op.table, &op.key));
        Ok(writeln!(out, "{:>10}{mark}  {what} {}  {key}{value}", op.seq, op.table.name)?)
    }

    fn change(&mut self, op: &FeedOp) -> Result<(&'static str, Option<Datum>), Failure> {
        Ok(match &op.change {
            FeedChange::Put(value) => ("put", Some(self.value(&op.table, value))),
            FeedChange::PutIfAbsent(value) => ("put-if-absent", Some(self.value(&op.table, value))),
            FeedChange::Fold(value) => ("fold", Some(self.value(&op.table, value))),
            FeedChange::Delete => ("delete", None),
            FeedChange::DeleteRange(to) => ("delete-range", Some(self.key(&op.table, to))),
            FeedChange::PutLong(bytes) => ("put-long", Some(Datum::Int(i128::from(*bytes)))),
            FeedChange::PutIfAbsentLong(bytes) => {
                ("put-if-absent-long", Some(Datum::Int(i128::from(*bytes))))
            }
            FeedChange::FoldLong(bytes) => ("fold-long", Some(Datum::Int(i128::from(*bytes)))),
            unknown => return Err(not_known(unknown)),
        })
    }

    fn as_json(&mut self, event: &FeedEvent) -> Result<Json, Failure> {
        Ok(match event {
            FeedEvent::Begin { seq, time } => {
                object! { "event": "begin", "seq": *seq, "time": human::rfc3339(*time) }
            }
            FeedEvent::TableCreated(table) => {
                object! { "event": "table", "table": table.name.as_str(), "rules": table.rules_text.as_str() }
            }
            FeedEvent::TableDropped(table) => object! { "event": "dropped", "table": table.name.as_str() },
            FeedEvent::Row(row) => object! {
                "event": "row",
                "table": row.table.name.as_str(),
                "key": json::from_datum(&self.key(&row.table, &row.key)),
                "value": row.value.as_ref().map(|value| json::from_datum(&self.value(&row.table, value))),
                "long": row.long.as_ref().map(|long| json::from_datum(&head::exact(long))),
                "deadline": row.deadline.map(human::rfc3339),
            },
            FeedEvent::RowsEnd => object! { "event": "rows-end" },
            FeedEvent::Batch(batch) => {
                let ops: Result<Vec<Json>, Failure> =
                    batch.ops.iter().map(|op| self.op_as_json(op)).collect();
                object! {
                    "event": "batch",
                    "first_seq": batch.first_seq,
                    "last_seq": batch.last_seq,
                    "written": batch.written.map(human::rfc3339),
                    "ops": ops?,
                }
            }
            unknown => return Err(not_known(unknown)),
        })
    }

    fn op_as_json(&mut self, op: &FeedOp) -> Result<Json, Failure> {
        let (what, value) = self.change(op)?;
        Ok(object! {
            "seq": op.seq,
            "op": what,
            "table": op.table.name.as_str(),
            "key": json::from_datum(&self.key(&op.table, &op.key)),
            "value": value.as_ref().map(json::from_datum),
            "deadline": op.deadline.map(human::rfc3339),
        })
    }

    fn key(&mut self, table: &FeedTable, key: &[u8]) -> Datum {
        let shown = self.rules(table).map(|rules| keys::shown(rules, key));
        shown.unwrap_or_else(|| Datum::Bytes(key.to_vec()))
    }

    fn value(&mut self, table: &FeedTable, value: &[u8]) -> Datum {
        let shown = self.rules(table).map(|rules| keys::shown_value(rules, value));
        shown.unwrap_or_else(|| Datum::Bytes(value.to_vec()))
    }

    fn rules(&mut self, table: &FeedTable) -> Option<&DynamicRules> {
        let bound = self.tables.entry(table.id).or_insert_with(|| {
            let rules = table.rules_text.parse::<TableRules>().ok()?;
            DynamicRules::new(&rules, &Options::default()).ok()
        });
        bound.as_ref()
    }
}

/// An event that this command does not know is an error: nothing is skipped silently.
fn not_known(what: &impl Debug) -> Failure {
    Failure::Refused(format!("the feed has an event that this version does not know: {what:?}"))
}

/// A key or a value in a line.
fn shown(datum: &Datum) -> String {
    human::one_line(datum.to_string())
}
