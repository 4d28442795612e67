//! The destination of imported rows: in batches to a table, or in the order of their keys to a new
//! one.
//!
//! A missing table, and its store, are created with the first committed rows: an import without any
//! leaves nothing behind.
//!
//! A row that the store refuses (a term of it is too long for an index, or folding it makes a value
//! too long) is found when its batch is committed. The batch is then written in halves, down to the
//! refused rows, so that all others are in. Bad rows are kept before what passes them is committed.
//!
//! **Exactly once.** Each batch has the record of its file (`ledger.rs`), which says up to which
//! row the file is in. Loaded rows appear all at once: the records are written before that, and
//! count once the table exists. A value that is too long for a batch ([`VALUE_BYTES_MAX`]) is
//! written alone, and its record after it.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use folddb::DynamicRules;
use folddb::limits::VALUE_BYTES_MAX;
use folddb::table_rules::TableRules;
use folddb::{Batch, BytesBulkLoad, BytesTable, Durability, Error, ErrorKind, Lifetime, WriteOp};

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::import::ahead::Folded;
use crate::import::bad_rows::BadRows;
use crate::import::ledger::{self, Entry, Ledger};
use crate::import::row::BadRow;
use crate::import::tape::Mark;
use crate::session::{Opened, Session};

/// A batch is committed when it has this many ops, or this many bytes.
const BATCH_OPS: usize = 4096;
const BATCH_BYTES: usize = 1 << 20;

/// A batch is also committed when its first op has waited this long: rows from a pipe are committed
/// within a second.
const BATCH_TIME: Duration = Duration::from_millis(700);

/// Takes the rows of an import.
pub(crate) struct Sink<'a> {
    session: &'a Session,
    into: Into<'a>,
    rules: DynamicRules,
    op: WriteOp,
    store: Option<Opened>,
    table: Option<Made>,
    waiting: Waiting,
    /// When the first waiting row began to wait.
    since: Instant,
    /// Rows that are committed.
    written: u64,
    /// Rows that it took and did not write, since it stopped before.
    left: u64,
    /// Rows that the store refused.
    refusals: u64,
    /// Those that the reader does not know of yet.
    refused: u64,
    /// The records of imports, once one is written.
    ledger: Option<Ledger>,
    /// The file that is read, as it is noted with the last batch; none of a pipe.
    entry: Option<Entry>,
    /// Files whose rows are loaded.
    loaded: Vec<Entry>,
    /// The tables that were there before this one was made, if it was.
    before: Option<Vec<String>>,
}

/// How many rows of a file were read, and what became of those that were not written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) read: u64,
    pub(crate) bad: u64,
    pub(crate) empty: u64,
}

/// How far reading is: the place, if reading may go on there, and what was read up to it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reached {
    pub(crate) mark: Option<Mark>,
    pub(crate) counts: Counts,
    /// The place is before the last row that was read: it was bad, and had no end.
    pub(crate) is_open: bool,
}

/// Rows that are to be committed.
#[derive(Default)]
struct Waiting {
    rows: Vec<Row>,
    /// Their keys and values.
    bytes: Vec<u8>,
    /// Bytes of the rows as they were in the file.
    raw_bytes: usize,
}

/// A waiting row.
struct Row {
    line: u64,
    key: Range<usize>,
    value: Range<usize>,
    raw: Raw,
    /// Up to this row.
    counts: Counts,
}

/// A row as it was in the file, if that is kept for the file of bad rows.
pub(crate) type Raw = Option<Vec<Vec<u8>>>;

/// The destination of rows, from the command line.
#[derive(Clone, Copy)]
pub(crate) struct Into<'a> {
    /// The directory of the store.
    pub(crate) path: &'a Path,
    /// The table.
    pub(crate) table: &'a str,
    /// Rows are in the order of their keys, and create the table.
    pub(crate) is_sorted: bool,
    /// How long they last.
    pub(crate) lifetime: Lifetime,
    /// When a batch of them is acknowledged.
    pub(crate) durability: Durability,
    /// Nothing is written after a refused row.
    pub(crate) is_strict: bool,
}

/// A table that takes rows.
enum Made {
    /// In batches, as others may write to it.
    Batches { table: Box<BytesTable>, batch: Box<Batch> },
    /// All at once: it is created with them.
    Load { load: Box<BytesBulkLoad>, last_key: Vec<u8> },
}

impl<'a> Sink<'a> {
    /// Into an existing table.
    pub(crate) fn of_table(
        session: &'a Session,
        into: Into<'a>,
        store: Opened,
        table: BytesTable,
    ) -> Sink<'a> {
        let (rules, batch) = (table.rules().clone(), Box::new(store.batch()));
        let made = Made::Batches { table: Box::new(table), batch };
        Sink { table: Some(made), ..Sink::to_come(session, into, Some(store), rules) }
    }

    /// Into a table with these rules, which is created with the first committed rows; and so is its
    /// store, if there is none.
    pub(crate) fn to_come(
        session: &'a Session,
        into: Into<'a>,
        store: Option<Opened>,
        rules: DynamicRules,
    ) -> Sink<'a> {
        Sink {
            session,
            into,
            op: op_of(rules.as_table_rules()),
            rules,
            store,
            table: None,
            waiting: Waiting::default(),
            since: Instant::now(),
            written: 0,
            left: 0,
            refusals: 0,
            refused: 0,
            ledger: None,
            entry: None,
            loaded: Vec::new(),
            before: None,
        }
    }

    /// What follows are rows of this file, after those that its record has.
    pub(crate) fn begin_file(&mut self, entry: Option<Entry>) {
        self.entry = entry;
    }

    /// The file, as it is noted with the last batch.
    pub(crate) fn entry(&self) -> Option<&Entry> {
        self.entry.as_ref()
    }

    /// The store, if there is one by now.
    pub(crate) fn into_store(self) -> Option<Opened> {
        self.store
    }

    pub(crate) fn rules(&self) -> &DynamicRules {
        &self.rules
    }

    /// How many rows are committed.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// How many rows it took and did not write, since it stopped before.
    pub(crate) fn left(&self) -> u64 {
        let loaded = if let Some(Made::Load { load, .. }) = &self.table { load.rows() } else { 0 };
        self.left + loaded + self.waiting.rows.len() as u64
    }

    /// Rows that are read are not written.
    pub(crate) fn leave(&mut self, rows: u64) {
        self.left += rows;
    }

    /// Forgets the rows that wait.
    pub(crate) fn discard(&mut self) {
        self.waiting.clear();
    }

    /// How many rows the store refused since the last call.
    pub(crate) fn take_refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }

    /// Takes a row.
    pub(crate) fn write(&mut self, line: u64, key: &[u8], value: &[u8], raw: Raw, counts: Counts) {
        if self.waiting.rows.is_empty() {
            self.since = Instant::now();
        }
        self.waiting.push((line, counts), key, value, raw);
    }

    /// Creates the table, and its store, if they do not exist.
    fn make(&mut self) -> Result<(), Failure> {
        if self.table.is_some() {
            return Ok(());
        }
        let store = match self.store.take() {
            Some(store) => store,
            None => self.session.create_to_fill(self.into.path)?,
        };
        ledger::forget(&store, self.into.table)?; // of an earlier table of this name
        self.before = Some(store.tables());
        let (store, rules) = (self.store.insert(store), self.rules.as_table_rules().clone());
        self.table = Some(match self.into.is_sorted {
            true => {
                let load = Box::new(store.bulk_load_bytes(self.into.table, rules)?);
                Made::Load { load, last_key: Vec::new() }
            }
            false => {
                let table = Box::new(store.create_bytes_table(self.into.table, rules)?);
                Made::Batches { table, batch: Box::new(store.batch()) }
            }
        });
        Ok(())
    }

    /// Takes back what was made for rows of which none is in: the table, and that of the records.
    /// The disk may be full, so that this fails; then the report says that the table is there.
    pub(crate) fn take_back_unfilled(&mut self) {
        let (Some(before), Some(store), 0) = (&self.before, &self.store, self.written) else { return };
        (self.table, self.ledger) = (None, None);
        let is_made = |name: &String| {
            !before.contains(name) && [self.into.table, ledger::TABLE].contains(&name.as_str())
        };
        let dropped: Result<Vec<()>, Error> =
            store.tables().iter().filter(|name| is_made(name)).map(|name| store.drop_table(name)).collect();
        if dropped.is_ok() {
            let _ = ledger::forget(store, self.into.table);
        }
    }

    /// Whether no row waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.rows.is_empty()
    }

    /// Whether there is enough to commit, or it has waited long enough.
    pub(crate) fn is_full(&self) -> bool {
        let Waiting { rows, bytes, raw_bytes } = &self.waiting;
        let is_large = rows.len() >= BATCH_OPS || bytes.len() + raw_bytes >= BATCH_BYTES;
        !rows.is_empty() && (is_large || self.since.elapsed() >= BATCH_TIME)
    }

    /// Commits the waiting rows. Loaded rows are committed at the end.
    ///
    /// # Errors
    /// A failure that is not that of a single row, or the first refused row of a strict import:
    /// rows after it are not written.
    pub(crate) fn commit(&mut self, reached: &Reached, bad: &mut BadRows) -> Result<(), Failure> {
        if self.waiting.rows.is_empty() {
            return Ok(());
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        let (settled, rows) = (self.settled(), waiting.rows.len());
        let done = self.make().and_then(|()| match self.into.is_sorted {
            true => (0..rows).try_for_each(|row| self.load(&mut waiting, row, bad)),
            false => self.put(&mut waiting, 0..rows, reached, bad),
        });
        self.left += rows as u64 - (self.settled() - settled);
        waiting.clear();
        self.waiting = waiting;
        done
    }

    /// Commits rows that are folded, at once, with the records of their files, the last of which is
    /// the present one. False if the store refuses one of the rows: then none is in.
    ///
    /// # Errors
    /// A failure that is not that of a row.
    pub(crate) fn commit_folded(
        &mut self,
        folded: &Folded,
        rows: u64,
        entries: &[Entry],
    ) -> Result<bool, Failure> {
        if rows == 0 && self.table.is_none() {
            return Ok(true); // nothing is made for no rows
        }
        match self.make().and_then(|()| self.put_folded(folded, rows, entries)) {
            Ok(()) => Ok(true),
            Err(Failure::Store(error)) if is_of_a_row(&error) => Ok(false),
            Err(failure) => {
                self.left += rows;
                Err(failure)
            }
        }
    }

    fn put_folded(&mut self, folded: &Folded, rows: u64, entries: &[Entry]) -> Result<(), Failure> {
        self.entry = entries.last().cloned();
        self.open_ledger()?;
        let Into { lifetime, durability, .. } = self.into;
        let Some(Made::Batches { table, batch }) = &mut self.table else { return Ok(()) }; // it is made before
        let table = table.with_durability(durability).with_lifetime(lifetime);
        for (key, value) in folded.iter() {
            batch.write(&table, self.op, key, value);
        }
        for entry in entries {
            if let Some(ledger) = &self.ledger {
                ledger.note(batch, self.into.table, entry)?;
            }
        }
        if !batch.is_empty() {
            batch.commit(durability)?;
        }
        self.written += rows;
        Ok(())
    }

    /// Notes that the present file is in: it has been read to its end, and its rows are committed.
    pub(crate) fn end_file(&mut self, reached: &Reached, bad: &mut BadRows) -> Result<(), Failure> {
        let kept = bad.keep(u64::MAX)?;
        let Some(entry) = &mut self.entry else { return Ok(()) };
        advance(entry, reached);
        entry.kept = kept.or_else(|| entry.kept.take());
        entry.done = true;
        match &self.table {
            None => return Ok(()),
            Some(Made::Load { .. }) => self.loaded.push(entry.clone()),
            Some(Made::Batches { .. }) => self.open_ledger()?,
        }
        if let (Some(Made::Batches { batch, .. }), Some(ledger), Some(entry)) =
            (&mut self.table, &self.ledger, &self.entry)
        {
            ledger.note(batch, self.into.table, entry)?;
            batch.commit(self.into.durability)?;
        }
        Ok(())
    }

    fn open_ledger(&mut self) -> Result<(), Failure> {
        if let (None, Some(_), Some(store)) = (&self.ledger, &self.entry, &self.store) {
            self.ledger = Some(Ledger::of(store)?);
        }
        Ok(())
    }

    /// How many rows are written, loaded, or refused.
    fn settled(&self) -> u64 {
        let loaded = if let Some(Made::Load { load, .. }) = &self.table { load.rows() } else { 0 };
        self.written + loaded + self.refusals
    }

    /// Commits these rows: all at once, or where the store refuses one of them, in halves.
    fn put(
        &mut self,
        waiting: &mut Waiting,
        rows: Range<usize>,
        reached: &Reached,
        bad: &mut BadRows,
    ) -> Result<(), Failure> {
        let is_long = |row: &Row| row.value.len() > VALUE_BYTES_MAX;
        // A long one is written alone.
        if rows.len() == 1 || !waiting.rows[rows.clone()].iter().any(is_long) {
            let place = bad.place();
            match self.put_at_once(waiting, rows.clone(), reached, bad) {
                Err(Failure::Store(error)) if is_of_a_row(&error) => {
                    // The record of a half must not have bad rows of the other.
                    bad.take_back(&place)?;
                    if rows.len() == 1 {
                        return self.refuse(&mut waiting.rows[rows.start], error, bad);
                    }
                }
                done => return done,
            }
        }
        let middle = rows.start + rows.len() / 2;
        let counts = waiting.rows[middle - 1].counts;
        self.put(waiting, rows.start..middle, &Reached { mark: None, counts, is_open: false }, bad)?;
        self.put(waiting, middle..rows.end, reached, bad)
    }

    fn put_at_once(
        &mut self,
        waiting: &mut Waiting,
        rows: Range<usize>,
        reached: &Reached,
        bad: &mut BadRows,
    ) -> Result<(), Failure> {
        let kept = bad.keep(reached.counts.read)?;
        self.open_ledger()?;
        let Into { lifetime, durability, .. } = self.into;
        let Some(Made::Batches { table, batch }) = &mut self.table else { return Ok(()) }; // it is made before
        let table = table.with_durability(durability).with_lifetime(lifetime);
        for row in &waiting.rows[rows.clone()] {
            let (key, value) = waiting.key_and_value(row);
            if row.value.len() > VALUE_BYTES_MAX {
                table.write_whole(self.op, key, value)?; // it is alone here
            } else {
                batch.write(&table, self.op, key, value);
            }
        }
        let mut entry = self.entry.clone();
        if let (Some(ledger), Some(entry)) = (&self.ledger, &mut entry) {
            advance(entry, reached);
            entry.rows += rows.len() as u64;
            entry.bad += self.refused; // they are counted once the reader knows of them
            entry.kept = kept.or_else(|| entry.kept.take());
            ledger.note(batch, self.into.table, entry)?;
        }
        if !batch.is_empty() {
            batch.commit(durability)?;
        }
        self.entry = entry;
        self.written += rows.len() as u64;
        Ok(())
    }

    /// Passes a row to the load.
    fn load(&mut self, waiting: &mut Waiting, at: usize, bad: &mut BadRows) -> Result<(), Failure> {
        let Some(Made::Load { load, last_key }) = &mut self.table else { return Ok(()) }; // it is made before
        let row = &waiting.rows[at];
        let (key, value) = waiting.key_and_value(row);
        let is_in_order = self.rules.order().compare(last_key, key).is_le() || load.rows() == 0;
        match load.push(self.op, key, value) {
            Ok(()) => {
                last_key.clear();
                last_key.extend_from_slice(key);
                if let Some(entry) = &mut self.entry {
                    entry.rows += 1;
                }
                Ok(())
            }
            Err(error) if is_in_order && is_of_a_row(&error) => {
                self.refuse(&mut waiting.rows[at], error, bad)
            }
            Err(error) => Err(Failure::Store(error).at_line(row.line)),
        }
    }

    fn refuse(&mut self, row: &mut Row, error: Error, bad: &mut BadRows) -> Result<(), Failure> {
        self.refusals += 1;
        self.refused += 1;
        let advice = if error.advice().is_empty() { "" } else { "; " };
        let reason = format!("{}{advice}{}", error.message(), error.advice());
        bad.add((row.counts.read, row.line), &row.raw.take().unwrap_or_default(), BadRow::whole(reason))?;
        if self.into.is_strict { Err(Failure::Reported(ExitCode::Refused)) } else { Ok(()) }
    }

    /// Creates the loaded table with all of its rows. A table without rows is created only if no
    /// row was bad.
    pub(crate) fn finish(&mut self, is_all_well: bool) -> Result<(), Failure> {
        if is_all_well {
            self.make()?;
        }
        if let Some(Made::Load { load, .. }) = self.table.take_if(|table| matches!(table, Made::Load { .. }))
        {
            let rows = load.rows();
            self.left += rows;
            if let Some(store) = &self.store {
                ledger::note_all(store, self.into.table, &self.loaded)?;
            }
            load.finish()?;
            self.left -= rows;
            self.written += rows;
        }
        Ok(())
    }
}

impl Waiting {
    fn push(&mut self, (line, counts): (u64, Counts), key: &[u8], value: &[u8], raw: Raw) {
        let begin = self.bytes.len();
        let middle = begin + key.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.raw_bytes += raw.iter().flatten().map(Vec::len).sum::<usize>();
        self.rows.push(Row { line, key: begin..middle, value: middle..self.bytes.len(), raw, counts });
    }

    fn key_and_value(&self, row: &Row) -> (&[u8], &[u8]) {
        (&self.bytes[row.key.clone()], &self.bytes[row.value.clone()])
    }

    /// Forgets the rows; the buffers are kept, unless a long value has made them large.
    fn clear(&mut self) {
        self.rows.clear();
        self.bytes.clear();
        self.bytes.shrink_to(2 * BATCH_BYTES);
        self.raw_bytes = 0;
    }
}

/// The record of a file that was read up to here.
pub(crate) fn advance(entry: &mut Entry, reached: &Reached) {
    let Reached { mark, counts, is_open } = reached;
    entry.is_open = *is_open;
    match mark {
        Some(mark) => {
            (entry.content, entry.line) = (mark.content, mark.line);
            (entry.read, entry.skip) = (counts.read, 0);
        }
        None => entry.skip = counts.read - entry.read,
    }
    (entry.bad, entry.empty) = (counts.bad, counts.empty);
}

/// Whether the store refuses a row, so that others may be written.
fn is_of_a_row(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::FoldFailed)
}

/// The op of a row: a fold, or a put if values replace.
fn op_of(rules: &TableRules) -> WriteOp {
    if rules.fold.spec() == "replace" { WriteOp::Put } else { WriteOp::Fold }
}
