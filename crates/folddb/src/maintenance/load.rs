//! Loading a dump: creates tables, and writes each key's value, batch by batch.
//!
//! A truncated or changed dump lacks a last line with the right counts and hash.
//! [`Store::check_dump`] reads all of one without writing anything; if that is done first, nothing
//! of a bad dump is ever written. A load that fails before its first record removes the tables that
//! it has created.

mod text;

use std::io::BufRead;

use folddb_base::limits::VALUE_BYTES_MAX;
use folddb_base::{Error, ErrorKind, Result, counted};
use folddb_rules::IndexRule;
use folddb_rules::table_rules::{Custom, StoredRules, TableRules};
use folddb_rules::time::moment;

use crate::batch::Batch;
use crate::maintenance::dump_lines::{Content, Line, Said, WITHOUT_DEADLINES};
use crate::maintenance::load::text::Text;
use crate::options::Options;
use crate::store::Store;
use crate::table::bytes::BytesTable;
use crate::table::edits;
use folddb_engine::options::Durability;
use folddb_engine::write::encoded_batch::WriteOp;
use folddb_engine::write::ops::Lifetime;
use folddb_engine::write::stream::ValueWriter;

/// A batch is committed when it has this many ops, or this many bytes.
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
    /// Accepts a truncated dump: all complete lines are loaded. Default false. Of a compressed one,
    /// that is what can be decompressed: a reader that fails with
    /// [`std::io::ErrorKind::UnexpectedEof`] has reached its end. A file that is cut in its first
    /// line is not a dump.
    pub fn partial(mut self, partial: bool) -> LoadOptions {
        self.partial = partial;
        self
    }

    /// Loads into existing tables of the same names and rules: keys of the dump get its values,
    /// others stay. Default false: such a table must be empty.
    pub fn over(mut self, over: bool) -> LoadOptions {
        self.over = over;
        self
    }
}

/// What was loaded, or the contents of a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadReport {
    /// Tables of the dump.
    pub tables: u64,
    /// Those of them that were created.
    pub created: Vec<String>,
    /// Keys of the dump: those that were loaded, had expired, or were skipped.
    pub records: u64,
    /// Keys that were loaded, and have the values of the dump. 0 if the dump was only checked.
    pub loaded: u64,
    /// Keys whose values had expired when they were loaded: they are absent.
    pub expired: u64,
    /// Keys that were not loaded, since the dump ends within their values
    /// ([`LoadOptions::partial`]).
    pub skipped: u64,
    /// Indexes of an older version that tables cannot have, as `TABLE/INDEX`, with the reason: they
    /// are left out.
    pub indexes_left: Vec<(String, String)>,
    /// False for a truncated dump.
    pub whole: bool,
}

impl Store {
    /// Loads the output of [`Store::dump`]. Missing tables are created with the rules in the dump.
    /// Keys are written in batches, each atomic; when this returns all are as durable as
    /// [`Durability::Sync`]. Values have the deadlines in the dump; expired ones are absent. Dumps
    /// of version 1 have no deadlines: their values last as if they were written now.
    ///
    /// # Errors
    /// [`ErrorKind::RulesMismatch`] for an existing table with other rules, or if a fold is not
    /// available; [`ErrorKind::AlreadyExists`] for one that is not empty;
    /// [`ErrorKind::InvalidInput`] for a truncated or changed dump, naming the line;
    /// [`ErrorKind::NewerFormat`]; any failed write. Batches before the failure stay.
    pub fn load(&self, dump: &mut dyn BufRead, options: &LoadOptions) -> Result<LoadReport> {
        self.engine().check_here()?;
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

    /// Reads all of a dump and checks its counts and its hash, that each line is valid, and that a
    /// store with these options can have its tables. Writes nothing. For a truncated dump, if
    /// accepted, it reports what is there.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a truncated or changed dump, naming the line, or for
    /// impossible rules; [`ErrorKind::NewerFormat`]; a failed read.
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

/// Whether a store with these options can have a table with these rules. Whether it can have some
/// indexes depends on its records.
fn check_table(name: &str, rules_text: &str, custom: &Custom) -> Result<()> {
    let mut rules = TableRules::from_stored(rules_text)?;
    rules.indexes.clear();
    edits::check_rules(name, &rules, custom).map(drop)
}

/// How many bytes of a value are missing after a piece of it; none if it is complete.
fn left_of(missing: u64, piece: &[u8]) -> Result<Option<u64>> {
    match missing.checked_sub(piece.len() as u64) {
        Some(left) if !piece.is_empty() => Ok(Some(left).filter(|left| *left > 0)),
        _ => Err(Error::invalid("the pieces of a value do not add up to its length")),
    }
}

/// A value whose pieces are being read.
enum Long {
    /// Written to the table piece by piece.
    Stream(Box<ValueWriter>),
    /// Held completely, since its table takes no streams.
    Held { value: Vec<u8>, of: BytesTable },
}

/// A running load.
struct Load<'a> {
    store: &'a Store,
    options: LoadOptions,
    batch: Batch,
    table: Option<BytesTable>,
    /// The dump has deadlines.
    tells_deadlines: bool,
    /// The value whose pieces are being read, and how many of its bytes are missing.
    long: Option<(Long, u64)>,
    /// The present record had expired when its load began.
    has_expired: bool,
    report: LoadReport,
    /// Indexes that tables could not be created with, to be added after their records.
    indexes: Vec<(String, IndexRule)>,
    /// Keys that are loaded and committed.
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

    /// Commits the rest, and compares the counts: no key of the dump may be left out silently.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.report.skipped += u64::from(self.long.take().is_some());
        self.commit()?;
        let LoadReport { records, loaded, expired, skipped, .. } = self.report;
        if records == loaded + expired + skipped {
            return Ok(());
        }
        let message = format!(
            "of {records} keys of the dump {loaded} were loaded, {expired} had expired and {skipped} were skipped, \
             which are not all: this is a bug of FoldDB, please report it"
        );
        Err(Error::new(ErrorKind::Corruption, message))
    }

    /// Counts the record that was just written: to the batch, or directly after it.
    fn count_written(&mut self, written: Written) {
        let count = if self.has_expired { &mut self.report.expired } else { &mut self.report.loaded };
        *count += 1;
        if written == Written::AtOnce {
            self.committed = self.report.loaded;
        }
    }

    fn commit(&mut self) -> Result<()> {
        self.batch.commit(Durability::Process)?; // also an empty one, which may have a mistake
        self.committed = self.report.loaded;
        Ok(())
    }

    /// Adds to the error of a failed load how many records are loaded. If there are none, removes
    /// the tables that it has created, unless others have written to them.
    pub(crate) fn failed(mut self, error: Error) -> Error {
        if self.committed > 0 {
            return error.context(format!("after {} loaded", counted(self.committed, "record")));
        }
        self.long = None;
        for name in &self.report.created {
            let Ok(table) = self.store.bytes_table(name) else { continue };
            let is_empty = table.scan().limit(1).rows().and_then(|mut rows| Ok(rows.next_row()?.is_none()));
            if is_empty.unwrap_or(false) {
                let _ = self.store.drop_table(name); // the first failure is the one to report
            }
        }
        error
    }

    fn open_table(&mut self, name: &str, rules_text: &str) -> Result<()> {
        let rules = TableRules::from_stored(rules_text)?;
        let table = match self.store.bytes_table(name) {
            Err(error) if error.kind() == ErrorKind::TableNotFound => self.create(name, rules)?,
            Err(error) => return Err(error),
            Ok(table) => match table.core().rules_with_indexes().diff(&rules) {
                None => table,
                Some(difference) => {
                    let message = format!("table `{name}` exists with different rules: {difference}");
                    return Err(Error::new(ErrorKind::RulesMismatch, message));
                }
            },
        };
        table.rules().check_writable()?;
        if !self.options.over && table.scan().limit(1).rows()?.next_row()?.is_some() {
            let message = format!("table `{name}` exists and is not empty");
            let advice = "load it over what is there (`LoadOptions::over`), or drop the table first";
            return Err(Error::new(ErrorKind::AlreadyExists, message).advise(advice));
        }
        self.report.tables += 1;
        self.table = Some(table);
        Ok(())
    }

    /// Creates a table. Whether it can have some indexes depends on its records.
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

    /// Adds the indexes that tables could not be created with; those that are impossible even with
    /// all their records are left out.
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
                return Ok(()); // it is written when it is complete
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

    /// The lifetime of a record with this deadline in the dump.
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

/// Where a record was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    ToBatch,
    /// Directly into the store, after the batch.
    AtOnce,
}

/// Adds an op to a batch, if it fits its table. One that is too long for a batch is written
/// directly, after the others.
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
    /// Takes a piece of the present value.
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
