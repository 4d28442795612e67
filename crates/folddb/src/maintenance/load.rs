//! Loading a dump: tables are created, and each key gets what the dump says, batch by batch.
//!
//! A dump that was cut, or changed, ends without the line that tells its counts and its hash.
//! [`Store::check_dump`] reads all of one without writing anything; where that can be done first,
//! nothing of a bad dump is ever written. A load that fails before its first record is in takes
//! away the tables that it has made.

mod text;

use std::io::BufRead;

use folddb_base::limits::VALUE_BYTES_MAX;
use folddb_base::{Error, ErrorKind, Result};
use folddb_rules::IndexRule;
use folddb_rules::table_rules::{Custom, TableRules};
use folddb_rules::time::moment;

use crate::batch::Batch;
use crate::bytes_table::BytesTable;
use crate::maintenance::lines::{Content, Line, Said, WITHOUT_DEADLINES};
use crate::maintenance::load::text::Text;
use crate::options::Options;
use crate::store::Store;
use crate::table_edits;
use folddb_engine::options::Durability;
use folddb_engine::write::encoded_batch::WriteOp;
use folddb_engine::write::ops::Lifetime;
use folddb_engine::write::stream::ValueWriter;

/// A batch is committed when it holds this many ops, or this many bytes.
const BATCH_OPS: usize = 4096;

const BATCH_BYTES: usize = 1 << 20;

const NO_TABLE: &str = "a record before any table";

/// How a dump is loaded.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct LoadOptions {
    pub(crate) partial: bool,
    over: bool,
}

impl LoadOptions {
    /// Takes a dump that was cut: what is there of it is loaded, but for half a line. Default
    /// false. Of a packed one that is all that can be unpacked: a reader that fails with
    /// [`std::io::ErrorKind::UnexpectedEof`] has come to its end. What is cut in its first line is
    /// no dump.
    pub fn partial(mut self, partial: bool) -> LoadOptions {
        self.partial = partial;
        self
    }

    /// Loads over what tables of the same names and rules hold: keys of the dump get its values,
    /// others stay. Default false: such a table must be empty.
    pub fn over(mut self, over: bool) -> LoadOptions {
        self.over = over;
        self
    }
}

/// What was loaded, or what a dump holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadReport {
    /// Tables of the dump.
    pub tables: u64,
    /// Those of them that were created.
    pub created: Vec<String>,
    /// Keys that the dump told: those that were loaded, had expired, or were skipped.
    pub records: u64,
    /// Keys that were loaded, and have what the dump tells. None where a dump was only checked.
    pub loaded: u64,
    /// Keys whose values had expired when they were loaded: they are absent.
    pub over: u64,
    /// Keys that were not loaded, since the dump was cut within their values
    /// ([`LoadOptions::partial`]).
    pub skipped: u64,
    /// Indexes that an older version made and that tables cannot have, as `TABLE/INDEX`, with the
    /// reason: they are left out.
    pub indexes_left: Vec<(String, String)>,
    /// False for a dump that was cut.
    pub whole: bool,
}

impl Store {
    /// Loads what [`Store::dump`] wrote. Tables that are not there are created under the rules that
    /// the dump tells. Keys are written in batches, each atomic; when this returns all are as
    /// durable as [`Durability::Sync`]. Values last until the dump says; what is over by now is
    /// absent. Dumps of version 1 say nothing of that: of them values last as if they were written
    /// now.
    ///
    /// # Errors
    /// [`ErrorKind::RulesMismatch`] for a table that is there under other rules, or whose fold is
    /// not at hand; [`ErrorKind::AlreadyExists`] for one that is not empty;
    /// [`ErrorKind::InvalidInput`] for a dump that was cut or changed, naming the line;
    /// [`ErrorKind::NewerFormat`]; any failure of writing. Batches before the failure stay.
    pub fn load(&self, dump: &mut dyn BufRead, options: &LoadOptions) -> Result<LoadReport> {
        let mut load = Load {
            store: self,
            options: *options,
            batch: self.batch(),
            table: None,
            tells_deadlines: false,
            long: None,
            has_expired: false,
            report: LoadReport::default(),
            indexes: Vec::new(),
            committed: 0,
            key: Vec::new(),
            value: Vec::new(),
        };
        let mut text = Text::new(dump);
        let ended = load.all(&mut text).and_then(|()| load.add_indexes());
        match ended {
            Ok(()) => self.sync().map(|()| load.report),
            Err(error) => Err(load.failed(error)),
        }
    }

    /// Reads all of a dump and checks its counts and its hash, that each line is one of a dump, and
    /// that a store of these options can have tables by its rules. Writes nothing. Of a dump that
    /// was cut, where that is taken, it says what is there.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a dump that was cut or changed, naming the line, or for
    /// rules that cannot be; [`ErrorKind::NewerFormat`]; a failed read.
    pub fn check_dump(
        dump: &mut dyn BufRead,
        options: &LoadOptions,
        of_store: &Options,
    ) -> Result<LoadReport> {
        let mut text = Text::new(dump);
        let mut report = LoadReport::default();
        let mut missing = None;
        while let Some(line) = text.next_of(options.partial)? {
            text.check_place(missing.is_some(), &line)?;
            match line {
                Line::Start { .. } => {}
                Line::Table { name, rules_text } => {
                    check_table(&name, &rules_text, &of_store.engine.custom)
                        .map_err(|error| text.at(&error))?;
                    report.tables += 1;
                }
                Line::Record { .. } if report.tables == 0 => return Err(text.wrong(NO_TABLE)),
                Line::Record { content, .. } => {
                    report.records += 1;
                    missing = if let Content::Long(bytes) = content { Some(bytes) } else { None };
                }
                Line::Piece(bytes) => {
                    let of = missing.take().unwrap_or_default();
                    missing = left_of(of, &bytes).map_err(|error| text.at(&error))?;
                }
                Line::End(totals) => {
                    text.check_end(&totals, report.tables, report.records)?;
                    return Ok(LoadReport { whole: true, ..report });
                }
            }
        }
        Ok(LoadReport { skipped: u64::from(missing.is_some()), ..report })
    }
}

/// Whether a store of these options can have a table by these rules. Which indexes it can have is
/// known of some by its records only.
fn check_table(name: &str, rules_text: &str, custom: &Custom) -> Result<()> {
    let mut rules = TableRules::from_text(rules_text)?;
    rules.indexes.clear();
    table_edits::check_rules(name, &rules, custom).map(drop)
}

/// How many bytes of a value are missing behind a piece of it; none when it is whole.
fn left_of(missing: u64, piece: &[u8]) -> Result<Option<u64>> {
    match missing.checked_sub(piece.len() as u64) {
        Some(left) if !piece.is_empty() => Ok(Some(left).filter(|left| *left > 0)),
        _ => Err(Error::invalid("the pieces of a value do not make its length")),
    }
}

/// A value whose pieces are being read.
enum Long {
    /// Into the table, as they come.
    Stream(Box<ValueWriter>),
    /// All of it is held, since its table takes no streams.
    Held { value: Vec<u8>, of: BytesTable },
}

/// A load under way.
struct Load<'a> {
    store: &'a Store,
    options: LoadOptions,
    batch: Batch,
    table: Option<BytesTable>,
    /// The dump says until when values last.
    tells_deadlines: bool,
    /// The value whose pieces are being read, and how many bytes of it are missing.
    long: Option<(Long, u64)>,
    /// The record that is being read had expired when its load began.
    has_expired: bool,
    report: LoadReport,
    /// Indexes that tables could not be made with, to be added once their records are there.
    indexes: Vec<(String, IndexRule)>,
    /// Keys that are loaded and in the store for good.
    committed: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Load<'_> {
    pub(crate) fn all(&mut self, text: &mut Text<'_>) -> Result<()> {
        loop {
            let Some(line) = text.next_of(self.options.partial)? else { return self.end() };
            text.check_place(self.long.is_some(), &line)?;
            match line {
                Line::Start { version } => self.tells_deadlines = version > WITHOUT_DEADLINES,
                Line::Piece(bytes) => self.piece(&bytes).map_err(|error| text.at(&error))?,
                Line::Table { name, rules_text } => {
                    self.open_table(&name, &rules_text).map_err(|e| text.at(&e))?
                }
                Line::Record { key, content, until_ms } => {
                    self.record(key, content, until_ms).map_err(|error| text.at(&error))?
                }
                Line::End(totals) => {
                    text.check_end(&totals, self.report.tables, self.report.records)?;
                    self.report.whole = true;
                    return self.end();
                }
            }
            if self.batch.len() >= BATCH_OPS || self.batch.len_bytes() >= BATCH_BYTES {
                self.commit()?;
            }
        }
    }

    /// Commits the rest, and holds the accounts against one another: no key of the dump may be
    /// left out without a word.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.report.skipped += u64::from(self.long.take().is_some());
        self.commit()?;
        let LoadReport { records, loaded, over, skipped, .. } = self.report;
        if records == loaded + over + skipped {
            return Ok(());
        }
        let message = format!(
            "of {records} keys of the dump {loaded} were loaded, {over} had expired and {skipped} were skipped, \
             which are not all: this is a bug of FoldDB, please report it"
        );
        Err(Error::new(ErrorKind::Corruption, message))
    }

    /// Counts the record that was just written: to the batch, or at once and behind all of it.
    fn count_written(&mut self, written: Written) {
        let count = if self.has_expired { &mut self.report.over } else { &mut self.report.loaded };
        *count += 1;
        if written == Written::AtOnce {
            self.committed = self.report.loaded;
        }
    }

    fn commit(&mut self) -> Result<()> {
        self.batch.commit(Durability::Process)?; // also an empty one: that may be for a mistake
        self.committed = self.report.loaded;
        Ok(())
    }

    /// Says how many records are in where a load has failed. Where none are, the tables that it has
    /// made go again, as long as nobody else has written to them.
    pub(crate) fn failed(mut self, error: Error) -> Error {
        if self.committed > 0 {
            return error.context(format!("after {} records that are loaded", self.committed));
        }
        self.long = None;
        for name in &self.report.created {
            let Ok(table) = self.store.bytes_table(name) else { continue };
            let is_empty = table.scan().limit(1).rows().and_then(|mut rows| Ok(rows.next_row()?.is_none()));
            if is_empty.unwrap_or(false) {
                let _ = self.store.drop_table(name); // what failed is what there is to tell
            }
        }
        error
    }

    fn open_table(&mut self, name: &str, rules_text: &str) -> Result<()> {
        let rules = TableRules::from_text(rules_text)?;
        let table = match self.store.bytes_table(name) {
            Err(error) if error.kind() == ErrorKind::TableNotFound => self.create(name, rules)?,
            Err(error) => return Err(error),
            Ok(table) => match table.core().rules_with_indexes().diff(&rules) {
                None => table,
                Some(difference) => {
                    let message = format!("table `{name}` exists with other rules: {difference}");
                    return Err(Error::new(ErrorKind::RulesMismatch, message));
                }
            },
        };
        table.rules().check_writable()?;
        if !self.options.over && table.scan().limit(1).rows()?.next_row()?.is_some() {
            let message = format!("table `{name}` exists and is not empty");
            let advice =
                "load it over what is there, by --over or `LoadOptions::over`, or drop the table first";
            return Err(Error::new(ErrorKind::AlreadyExists, message).advise(advice));
        }
        self.report.tables += 1;
        self.table = Some(table);
        Ok(())
    }

    /// Makes a table. With which indexes it can be is known of some only by its records.
    fn create(&mut self, name: &str, mut rules: TableRules) -> Result<BytesTable> {
        let created = match self.store.create_bytes_table(name, rules.clone()) {
            Err(error) if error.kind() == ErrorKind::InvalidInput && !rules.indexes.is_empty() => {
                let indexes = std::mem::take(&mut rules.indexes);
                let table = self.store.create_bytes_table(name, rules)?;
                self.indexes.extend(indexes.into_iter().map(|rule| (name.to_owned(), rule)));
                table
            }
            created => created?,
        };
        self.report.created.push(name.to_owned());
        Ok(created)
    }

    /// Adds the indexes that tables could not be made with; those that they cannot have with all
    /// their records either are left out.
    fn add_indexes(&mut self) -> Result<()> {
        for (table, rule) in std::mem::take(&mut self.indexes) {
            match self.store.bytes_table(&table).and_then(|table| table.add_index(&rule)) {
                Err(error) if error.kind() == ErrorKind::InvalidInput => {
                    let left = (format!("{table}/{}", rule.name), error.message().to_owned());
                    self.report.indexes_left.push(left);
                }
                added => added?,
            }
        }
        Ok(())
    }

    pub(crate) fn record(&mut self, key: Said, content: Content, until_ms: Option<u64>) -> Result<()> {
        let Some(table) = &self.table else { return Err(Error::invalid(NO_TABLE)) };
        let table = &table.with_lifetime(self.lifetime(table, until_ms)?);
        self.has_expired = until_ms.is_some_and(|until_ms| moment(until_ms) <= self.store.now());
        self.report.records += 1;
        self.key.clear();
        match key {
            Said::Shown(datum) => table.rules().as_table_rules().key_codec().encode(&datum, &mut self.key)?,
            Said::Bytes(bytes) => self.key = bytes,
        }
        let written = match content {
            Content::Long(bytes) => {
                let long = match table.takes_streams() {
                    true => Long::Stream(Box::new(table.writer(WriteOp::Put, &self.key)?)),
                    false => Long::Held { value: Vec::new(), of: table.clone() },
                };
                self.long = Some((long, bytes));
                return Ok(()); // which is written when it is all there
            }
            Content::Value(Said::Shown(datum)) => {
                self.value.clear();
                table.rules().read_value(&datum, &mut self.value)?;
                write(&mut self.batch, table, WriteOp::Put, (&self.key, &self.value))?
            }
            Content::Value(Said::Bytes(value)) => {
                write(&mut self.batch, table, WriteOp::Put, (&self.key, &value))?
            }
            Content::Ops(ops) => {
                let mut last = Written::ToBatch;
                for (op, value) in ops {
                    last = write(&mut self.batch, table, op, (&self.key, &value))?;
                }
                last
            }
        };
        self.count_written(written);
        Ok(())
    }

    /// How long a record lasts of which the dump says this.
    fn lifetime(&self, table: &BytesTable, until_ms: Option<u64>) -> Result<Lifetime> {
        match until_ms {
            Some(_) if !table.core().expires => Err(Error::invalid(format!(
                "it has a value that expires, and those of table `{}` never expire",
                table.name()
            ))),
            Some(until_ms) => Ok(Lifetime::Until(moment(until_ms))),
            None if self.tells_deadlines && table.core().expires => Ok(Lifetime::Forever),
            None => Ok(Lifetime::Default),
        }
    }
}

/// Where a record went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    ToBatch,
    /// Into the store, and the batch before it.
    AtOnce,
}

/// Adds an op to a batch, if it is one of its table. One that is longer than an op of a batch may
/// be is written at once, behind the others.
fn write(
    batch: &mut Batch,
    table: &BytesTable,
    op: WriteOp,
    (key, value): (&[u8], &[u8]),
) -> Result<Written> {
    if value.len() > VALUE_BYTES_MAX {
        batch.commit(Durability::Process)?;
        return table.write_whole(op, key, value).map(|_| Written::AtOnce);
    }
    table.check(op, key, value)?;
    batch.write(table, op, key, value);
    Ok(Written::ToBatch)
}

impl Load<'_> {
    /// Takes a piece of the value that is being read.
    fn piece(&mut self, bytes: &[u8]) -> Result<()> {
        let Some((mut long, missing)) = self.long.take() else { return Ok(()) };
        let left = left_of(missing, bytes)?;
        match &mut long {
            Long::Stream(writer) => writer.write_from(&mut &bytes[..])?,
            Long::Held { value, .. } => value.extend_from_slice(bytes),
        }
        if let Some(left) = left {
            self.long = Some((long, left));
            return Ok(());
        }
        let written = match long {
            Long::Stream(writer) => {
                self.commit()?;
                writer.finish()?;
                Written::AtOnce
            }
            Long::Held { value, of } => write(&mut self.batch, &of, WriteOp::Put, (&self.key, &value))?,
        };
        self.count_written(written);
        Ok(())
    }
}
