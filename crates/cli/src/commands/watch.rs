//! `folddb watch STORE NAME`: what a change feed has to give: rows the first time, then every batch since what was printed last.
//!
//! A store has one process at a time, so a watch from outside drains what there is and ends; in the shell of a program, or in the
//! shell here, the same feed is read while others write. What is printed is acknowledged when all of it has been printed, so a watch
//! that is broken off is told the same again.

use folddb::table_rules::{BoundRules, Custom, TableRules};
use folddb::{Datum, Feed, FeedBatch, FeedChange, FeedEvent, FeedOp, FeedOptions, FeedRow, FeedTable, datum};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use crate::args::WatchArgs;
use crate::commands::head;
use crate::failure::Failure;
use crate::human;
use crate::keys;
use crate::render::json;
use crate::session::{Opened, Session};

/// After so many batches what has been printed is acknowledged.
const ACKNOWLEDGE_EVERY: u64 = 1000;

pub(crate) fn run(args: &WatchArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.write(&args.store)?;
    let prefix = prefix_bytes(&store, args)?;
    let bytes_max = args.hold_max.map(|bytes| bytes as u64);
    let options = FeedOptions { table: args.table.clone(), prefix, bytes_max, from_now: args.from_now };
    let mut feed = store.feed(&args.name, options)?;
    if args.again {
        feed.begin_again()?;
    }
    let mut printer = Printer { is_json: session.globals.json, tables: BTreeMap::new() };
    let mut left = args.limit.unwrap_or(u64::MAX);
    while left > 0 {
        let Some(event) = next(&mut feed, args)? else { break };
        let is_batch = matches!(event, FeedEvent::Batch(_));
        printer.print(&mut session.out, &event)?;
        left -= u64::from(is_batch);
        if !args.peek && is_batch && left.is_multiple_of(ACKNOWLEDGE_EVERY) {
            session.flush()?;
            feed.acknowledge(feed.position())?;
        }
    }
    session.flush()?;
    if !args.peek {
        feed.acknowledge(feed.position())?;
    }
    drop(feed);
    store.close()
}

fn next(feed: &mut Feed, args: &WatchArgs) -> Result<Option<FeedEvent>, Failure> {
    Ok(match args.wait {
        Some(wait_s) => feed.next(Duration::from_secs(wait_s))?,
        None => feed.poll()?,
    })
}

/// What the keys begin with, by the type of the keys of the table, where one is named. It must be there unless the user says otherwise, or
/// the feed is there already: a feed of a table that was mistyped would never tell anything.
fn prefix_bytes(store: &Opened, args: &WatchArgs) -> Result<Vec<u8>, Failure> {
    let is_there = |name: &String| store.tables().contains(name);
    let made = store.feeds().into_iter().find(|feed| feed.name == args.name);
    let is_made = made.is_some();
    // A feed that is there goes on as it was made, with words or with bytes, whether its table has come or gone meanwhile.
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
                words => keys::prefix_bytes(&table, words),
            }
        }
        _ => match &args.prefix[..] {
            [] => Ok(Vec::new()),
            [word] => plain_bytes(word),
            words => Err(Failure::Usage(format!(
                "a prefix of bytes is one word, and not {}: name the table",
                words.len()
            ))),
        },
    }
}

fn plain_bytes(word: &str) -> Result<Vec<u8>, Failure> {
    match word.strip_prefix("0x") {
        None => Ok(word.as_bytes().to_vec()),
        Some(hex) => datum::from_hex(hex)
            .ok_or_else(|| Failure::Usage(format!("`{word}` has to go on in pairs of hexadecimal digits"))),
    }
}

/// Prints events, one to a line; a batch one op to a line.
struct Printer {
    is_json: bool,
    /// The rules of the tables that were met, where they can be read here.
    tables: BTreeMap<u32, Option<BoundRules>>,
}

impl Printer {
    fn print(&mut self, out: &mut dyn Write, event: &FeedEvent) -> io::Result<()> {
        if self.is_json {
            let line = self.as_json(event);
            return writeln!(out, "{line}");
        }
        match event {
            FeedEvent::Begin { seq, unix_millis } => {
                writeln!(out, "begin         as of seq {seq}, {}", human::utc(unix_millis / 1000))
            }
            FeedEvent::TableCreated(table) => writeln!(out, "table         {}", table.name),
            FeedEvent::TableDropped(table) => writeln!(out, "dropped       {}", table.name),
            FeedEvent::Row(FeedRow { table, key, long: Some(head), .. }) => {
                let shown = head::shown(head);
                writeln!(out, "row-long      {}  {}  {shown}", table.name, self.key(table, key))
            }
            FeedEvent::Row(row) => {
                let value = row.value.as_ref().map(|value| self.value(&row.table, value));
                let value = value.map_or_else(|| "(its fold fails)".to_owned(), |value| value.to_string());
                writeln!(out, "row           {}  {}  {value}", row.table.name, self.key(&row.table, &row.key))
            }
            FeedEvent::RowsEnd => writeln!(out, "rows end"),
            FeedEvent::Batch(batch) => batch.ops.iter().try_for_each(|op| self.op(out, batch, op)),
        }
    }

    fn op(&mut self, out: &mut dyn Write, batch: &FeedBatch, op: &FeedOp) -> io::Result<()> {
        // The ops of one batch hang together.
        let mark = if batch.first_seq == batch.last_seq { ' ' } else { '+' };
        let (what, value) = self.change(op);
        let value = value.map(|value| format!("  {value}")).unwrap_or_default();
        let key = self.key(&op.table, &op.key);
        writeln!(out, "{:>10}{mark}  {what} {}  {key}{value}", op.seq, op.table.name)
    }

    fn change(&mut self, op: &FeedOp) -> (&'static str, Option<Datum>) {
        match &op.change {
            FeedChange::Set(value) => ("set", Some(self.value(&op.table, value))),
            FeedChange::Insert(value) => ("insert", Some(self.value(&op.table, value))),
            FeedChange::Fold(value) => ("fold", Some(self.value(&op.table, value))),
            FeedChange::Delete => ("delete", None),
            FeedChange::DeleteRange(to) => ("delete-range", Some(self.key(&op.table, to))),
            FeedChange::SetLong(bytes) => ("set-long", Some(Datum::Int(i128::from(*bytes)))),
            FeedChange::InsertLong(bytes) => ("insert-long", Some(Datum::Int(i128::from(*bytes)))),
            FeedChange::FoldLong(bytes) => ("fold-long", Some(Datum::Int(i128::from(*bytes)))),
        }
    }

    fn as_json(&mut self, event: &FeedEvent) -> Value {
        match event {
            FeedEvent::Begin { seq, unix_millis } => {
                json!({ "event": "begin", "seq": seq, "time": human::rfc3339(*unix_millis) })
            }
            FeedEvent::TableCreated(table) => {
                json!({ "event": "table", "table": table.name, "rules": table.rules_text })
            }
            FeedEvent::TableDropped(table) => json!({ "event": "dropped", "table": table.name }),
            FeedEvent::Row(row) => json!({
                "event": "row",
                "table": row.table.name,
                "key": json::from_datum(&self.key(&row.table, &row.key)),
                "value": row.value.as_ref().map(|value| json::from_datum(&self.value(&row.table, value))),
                "long": row.long.as_ref().map(|long| json::from_datum(&head::exact(long))),
                "deadline": row.deadline_ms.map(human::rfc3339),
            }),
            FeedEvent::RowsEnd => json!({ "event": "rows-end" }),
            FeedEvent::Batch(batch) => {
                let ops: Vec<Value> = batch.ops.iter().map(|op| self.op_as_json(op)).collect();
                json!({
                    "event": "batch",
                    "first_seq": batch.first_seq,
                    "last_seq": batch.last_seq,
                    "written": batch.written_ms.map(human::rfc3339),
                    "ops": ops,
                })
            }
        }
    }

    fn op_as_json(&mut self, op: &FeedOp) -> Value {
        let (what, value) = self.change(op);
        json!({
            "seq": op.seq,
            "op": what,
            "table": op.table.name,
            "key": json::from_datum(&self.key(&op.table, &op.key)),
            "value": value.as_ref().map(json::from_datum),
            "deadline": op.deadline_ms.map(human::rfc3339),
        })
    }

    fn key(&mut self, table: &FeedTable, key: &[u8]) -> Datum {
        let shown = self.rules(table).and_then(|rules| rules.rules.key_codec().show(key).ok());
        shown.unwrap_or_else(|| Datum::Bytes(key.to_vec()))
    }

    fn value(&mut self, table: &FeedTable, value: &[u8]) -> Datum {
        let shown = self.rules(table).and_then(|rules| rules.show_value(value).ok());
        shown.unwrap_or_else(|| Datum::Bytes(value.to_vec()))
    }

    fn rules(&mut self, table: &FeedTable) -> Option<&BoundRules> {
        let bound = self.tables.entry(table.id).or_insert_with(|| {
            let rules = TableRules::from_text(&table.rules_text).ok()?;
            rules.bind(&Custom::default()).ok()
        });
        bound.as_ref()
    }
}
