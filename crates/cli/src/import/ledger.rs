//! What was imported into the tables of a store: a record for each file, in a table of the same
//! store, written in the batches of its rows.
//!
//! ```text
//!   key    (table, number)
//!   value  {"file", "path", "bytes", "modified", "ends",      the file as it was when it was opened
//!           "inode",                                          its device, its number, when it was made
//!           "read", "hash", "begin",                          its content up to a row
//!           "line", "rows_read", "skip",                      where reading goes on: so many rows after that
//!           "rows", "rows_bad", "rows_empty", "done",
//!           "open",                                           the last row read was bad, and its line, or a
//!                                                             quote of it, has no end: reading goes on before it
//!           "told",                                           of how many bad rows an import has told that ended
//!           "kept",                                           up to where bad ones are kept: path, bytes, hash
//!           "escape",                                         what escapes quotes, if a sign does
//!           "how", "at",                                      the options that make rows of it; when
//!           "followed",                                       it was read as it grows
//!           "again"}                                          the import that counts it again, until that
//!                                                             has ended
//! ```
//!
//! So after a crash the record says exactly which rows are in. A table that is dropped is
//! forgotten, and so is one that does not exist when rows come for it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};

use folddb::codec::ValueCodec;
use folddb::table_rules::TableRules;
use folddb::{Batch, BytesTable, Datum, Durability, Store, WriteOp, datum};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::import::tape::{Content, Mark};
use crate::zones;

/// The name of the table.
pub(crate) const TABLE: &str = "folddb_imports";

/// A file as it is on disk, packed or not. Modified: in nanoseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OnDisk {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) modified: u64,
    /// The hash of its first and last bytes.
    pub(crate) ends: u128,
    /// Which file it is; none of records that do not say so.
    pub(crate) inode: Option<Inode>,
}

/// Which file of a system it is, whatever its name: its device, its number there, and, where the
/// file system keeps it, when it was made, in nanoseconds since 1970. A file gets the number of one
/// that was removed, often at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inode {
    device: u64,
    number: u64,
    made_ns: u64,
}

impl Inode {
    pub(crate) fn of(facts: &Metadata) -> Inode {
        let made = facts.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        let made_ns = made.map_or(0, |since| since.as_nanos() as u64);
        Inode { device: facts.dev(), number: facts.ino(), made_ns }
    }

    pub(crate) fn number(self) -> u64 {
        self.number
    }

    fn to_json(self) -> Value {
        json!([self.device, self.number, self.made_ns])
    }

    fn of_json(value: &Value) -> Option<Inode> {
        let figure = |at: usize| value[at].as_u64();
        Some(Inode { device: figure(0)?, number: figure(1)?, made_ns: figure(2)? })
    }
}

/// Up to where a file has the bad rows that are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) hash: u128,
}

impl Kept {
    fn to_json(&self) -> Value {
        json!([self.path, self.bytes, hex(self.hash)])
    }

    fn of_json(value: &Value) -> Option<Kept> {
        let hash = u128::from_str_radix(value[2].as_str()?, 16).ok()?;
        Some(Kept { path: value[0].as_str()?.to_owned(), bytes: value[1].as_u64()?, hash })
    }
}

/// What is known of a file that was imported, wholly or up to a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) number: u64,
    /// Its name, as it was given.
    pub(crate) file: String,
    pub(crate) disk: OnDisk,
    /// Its content up to a row.
    pub(crate) content: Content,
    /// The line there.
    pub(crate) line: u64,
    /// How many rows were read up to there.
    pub(crate) read: u64,
    /// How many rows after that are settled, too.
    pub(crate) skip: u64,
    /// Of all rows that are settled: how many are in, were bad, and had nothing to fold.
    pub(crate) rows: u64,
    pub(crate) bad: u64,
    pub(crate) empty: u64,
    /// Of how many of the bad ones an import has told, and ended.
    pub(crate) told: u64,
    /// Where the bad ones are kept, if they are.
    pub(crate) kept: Option<Kept>,
    /// The file was read to its end.
    pub(crate) done: bool,
    /// The last row was bad, and its line, or a quote of it, has no end: its content is that before
    /// it.
    pub(crate) is_open: bool,
    /// What escapes quotes in it, besides a second one.
    pub(crate) escape: Option<u8>,
    /// The options that make rows of it.
    pub(crate) how: String,
    /// When it was written.
    pub(crate) at: String,
    /// It was read as it grows, so that its end is not known.
    pub(crate) is_followed: bool,
    /// The import that counts it again, as long as that has not come to its end.
    pub(crate) again: Option<u128>,
}

impl Entry {
    /// The place up to which it is in.
    pub(crate) fn mark(&self) -> Mark {
        Mark { content: self.content, line: self.line }
    }

    /// The same, to go on with: without a last row that has no end, which is read again.
    pub(crate) fn without_open(mut self) -> Entry {
        if std::mem::take(&mut self.is_open) {
            (self.read, self.bad) = (self.read.saturating_sub(1), self.bad.saturating_sub(1));
            self.told = self.told.min(self.bad);
        }
        self
    }

    /// How many bad rows no import has told of that ended.
    pub(crate) fn untold(&self) -> u64 {
        self.bad.saturating_sub(self.told)
    }

    fn to_json(&self) -> Value {
        json!({
            "file": self.file, "path": self.disk.path, "bytes": self.disk.bytes,
            "modified": self.disk.modified, "ends": hex(self.disk.ends),
            "inode": self.disk.inode.map(Inode::to_json),
            "read": self.content.bytes, "hash": hex(self.content.hash), "begin": hex(self.content.begin),
            "line": self.line, "rows_read": self.read, "skip": self.skip,
            "rows": self.rows, "rows_bad": self.bad, "rows_empty": self.empty, "done": self.done,
            "open": self.is_open, "escape": self.escape.map(|sign| char::from(sign).to_string()),
            "told": self.told, "kept": self.kept.as_ref().map(Kept::to_json),
            "how": self.how, "at": zones::utc_seconds(SystemTime::now()),
            "followed": self.is_followed, "again": self.again.map(hex),
        })
    }

    fn of_json(number: u64, value: &Value) -> Option<Entry> {
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let figure = |name: &str| value[name].as_u64();
        let hash = |name: &str| u128::from_str_radix(value[name].as_str()?, 16).ok();
        let disk = OnDisk {
            path: text("path")?,
            bytes: figure("bytes")?,
            modified: figure("modified")?,
            ends: hash("ends")?,
            inode: Inode::of_json(&value["inode"]),
        };
        let content = Content { bytes: figure("read")?, hash: hash("hash")?, begin: hash("begin")? };
        Some(Entry {
            number,
            file: text("file")?,
            disk,
            content,
            line: figure("line")?,
            read: figure("rows_read")?,
            skip: figure("skip")?,
            rows: figure("rows")?,
            bad: figure("rows_bad")?,
            empty: figure("rows_empty")?,
            // Records that do not say so are older.
            told: figure("told").unwrap_or(figure("rows_bad")?),
            kept: Kept::of_json(&value["kept"]),
            done: value["done"].as_bool()?,
            is_open: value["open"].as_bool().unwrap_or(false), // older ones have none
            escape: value["escape"].as_str().and_then(|sign| u8::try_from(sign.chars().next()?).ok()),
            how: text("how")?,
            at: text("at")?,
            is_followed: value["followed"].as_bool().unwrap_or(false), // older ones do not say it
            again: hash("again"),
        })
    }
}

fn hex(hash: u128) -> String {
    format!("{hash:032x}")
}

/// The records, to write them.
pub(crate) struct Ledger(BytesTable);

impl Ledger {
    /// Opens the table of records, or makes it.
    pub(crate) fn of(store: &Store) -> Result<Ledger, Failure> {
        let rules = TableRules::new("tuple(text,int)".parse().map_err(folddb::Error::from)?)
            .key_names(["table", "number"])
            .value(ValueCodec::Json);
        match open(store)? {
            Some(table) => Ok(Ledger(table)),
            None => Ok(Ledger(store.create_bytes_table(TABLE, rules)?)),
        }
    }

    /// Adds a record to a batch.
    pub(crate) fn note(&self, batch: &mut Batch, table: &str, entry: &Entry) -> Result<(), Failure> {
        let mut value = Vec::new();
        let text = Datum::Text(entry.to_json().to_string());
        self.0.rules().read_value(&text, &mut value).map_err(folddb::Error::from)?;
        batch.write(&self.0, WriteOp::Put, &key(&self.0, table, Some(entry.number))?, &value);
        Ok(())
    }

    /// Forgets what was imported into a table.
    pub(crate) fn forget(&self, table: &str) -> Result<(), Failure> {
        self.0.delete_prefix(&key(&self.0, table, None)?)?;
        Ok(())
    }
}

/// The table of records, if there is one.
fn open(store: &Store) -> Result<Option<BytesTable>, Failure> {
    if !store.tables().iter().any(|name| name == TABLE) {
        return Ok(None);
    }
    let table = store.bytes_table(TABLE)?;
    let rules = table.rules().as_table_rules();
    let is_known = rules.key_codec().name() == "tuple(text,int)" && rules.value_codec() == ValueCodec::Json;
    match is_known {
        true => Ok(Some(table)),
        false => Err(Failure::Refused(format!(
            "the table `{TABLE}` is where imports are noted, and this one has other rules: it was made by something \
             else (copy its rows to a table of another name, and drop it)"
        ))),
    }
}

/// The key of a record, or the beginning of the keys of a table's records.
fn key(records: &BytesTable, table: &str, number: Option<u64>) -> Result<Vec<u8>, Failure> {
    let codec = records.rules().as_table_rules().key_codec();
    match number {
        None => match codec.parse_prefix(&[table]).map_err(folddb::Error::from)?.low {
            std::ops::Bound::Included(prefix) | std::ops::Bound::Excluded(prefix) => Ok(prefix),
            std::ops::Bound::Unbounded => Ok(Vec::new()),
        },
        Some(number) => {
            let mut key = Vec::new();
            let items = vec![Datum::Text(table.to_owned()), Datum::Int(number.into())];
            codec.encode(&Datum::List(items), &mut key).map_err(folddb::Error::from)?;
            Ok(key)
        }
    }
}

/// What was imported into a table, or into all of them: the name of the table, and the record.
pub(crate) fn entries(store: &Store, table: Option<&str>) -> Result<Vec<(String, Entry)>, Failure> {
    let Some(records) = open(store)? else { return Ok(Vec::new()) };
    let mut scan = records.scan();
    if let Some(table) = table {
        scan = scan.prefix(&key(&records, table, None)?);
    }
    let (mut rows, mut found) = (scan.rows()?, Vec::new());
    while let Some((key, value)) = rows.next_row()? {
        let shown = records.rules().as_table_rules().key_codec().show(key).map_err(folddb::Error::from)?;
        let value = records.rules().show_value(value).map_err(folddb::Error::from)?;
        let value = serde_json::from_str(&datum::json::text_of(&value)).unwrap_or(Value::Null);
        let Datum::List(items) = shown else { continue };
        if let [Datum::Text(table), Datum::Int(number)] = &items[..] {
            let entry = u64::try_from(*number).ok().and_then(|number| Entry::of_json(number, &value));
            found.push((table.clone(), entry.ok_or_else(|| unread(table, *number))?));
        }
    }
    Ok(found)
}

fn unread(table: &str, number: i128) -> Failure {
    Failure::Refused(format!(
        "the record {table} {number} in table `{TABLE}` cannot be read: a newer version, or something else, wrote it \
         (if its file may be counted again: `folddb delete STORE {TABLE} {table} {number}`)"
    ))
}

/// Forgets what was imported into a table, if anything was.
pub(crate) fn forget(store: &Store, table: &str) -> Result<(), Failure> {
    match open(store)? {
        Some(records) => Ledger(records).forget(table),
        None => Ok(()),
    }
}

/// Forgets these records, each of a table.
pub(crate) fn forget_all(store: &Store, entries: &[(String, Entry)]) -> Result<(), Failure> {
    let Some(records) = open(store)?.filter(|_| !entries.is_empty()) else { return Ok(()) };
    let mut batch = store.batch();
    for (table, entry) in entries {
        batch.write(&records, WriteOp::Delete, &key(&records, table, Some(entry.number))?, &[]);
    }
    batch.commit(Durability::Sync)?;
    Ok(())
}

/// Makes what was imported into a table of one store count for that of another one, too.
pub(crate) fn copy(from: &Store, to: &Store, table: &str) -> Result<(), Failure> {
    forget(to, table)?;
    let entries: Vec<Entry> = entries(from, Some(table))?.into_iter().map(|(_, entry)| entry).collect();
    note_all(to, table, &entries)
}

/// Commits records alone.
pub(crate) fn note_all(store: &Store, table: &str, entries: &[Entry]) -> Result<(), Failure> {
    if entries.is_empty() {
        return Ok(());
    }
    let (ledger, mut batch) = (Ledger::of(store)?, store.batch());
    entries.iter().try_for_each(|entry| ledger.note(&mut batch, table, entry))?;
    batch.commit(Durability::Sync)?;
    Ok(())
}
