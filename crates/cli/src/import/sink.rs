//! The destination of imported rows: in batches to a table, or in the order of their keys to a new
//! one.
//!
//! A missing table, and its store, are created with the first committed rows: an import without any
//! leaves nothing behind.

use std::path::Path;
use std::time::{Duration, Instant};

use folddb::DynamicRules;
use folddb::limits::VALUE_BYTES_MAX;
use folddb::table_rules::TableRules;
use folddb::{Batch, BytesBulkLoad, BytesTable, Durability, Lifetime, WriteOp};

use crate::failure::Failure;
use crate::session::{Opened, Session};

/// A batch is committed when it has this many ops, or this many bytes.
const BATCH_OPS: usize = 4096;
const BATCH_BYTES: usize = 1 << 20;

/// A batch is also committed when its first op has waited this long: rows from a pipe are committed
/// within a second.
const BATCH_TIME: Duration = Duration::from_millis(700);

/// Progress is shown after this many loaded rows.
const LOADED_ROWS: u64 = 4096;

/// Takes the rows of an import.
pub(crate) struct Sink<'a> {
    session: &'a Session,
    into: Into<'a>,
    rules: DynamicRules,
    op: WriteOp,
    store: Option<Opened>,
    /// Rows for a missing table, with their lines, and their bytes.
    waiting: Vec<(u64, Vec<u8>, Vec<u8>)>,
    waiting_bytes: usize,
    /// When the first uncommitted row began to wait.
    since: Instant,
    table: Option<Made>,
}

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
}

/// A table that takes rows.
enum Made {
    /// In batches, as others may write to it.
    Batches {
        table: Box<BytesTable>,
        batch: Box<Batch>,
        /// Rows that are committed already and not reported yet.
        separated: u64,
    },
    /// All at once: it is created with them.
    Load(Box<BytesBulkLoad>),
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
        let made = Made::Batches { table: Box::new(table), batch, separated: 0 };
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
        let (op, since, waiting) = (op_of(rules.as_table_rules()), Instant::now(), Vec::new());
        Sink { session, into, rules, op, store, waiting, waiting_bytes: 0, since, table: None }
    }

    /// The store, if there is one by now.
    pub(crate) fn into_store(self) -> Option<Opened> {
        self.store
    }

    pub(crate) fn rules(&self) -> &DynamicRules {
        &self.rules
    }

    /// Takes a row. If its value is too long for a batch, it is written directly, so the rows
    /// before it must be committed first.
    pub(crate) fn write(&mut self, line: u64, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        if self.is_empty() {
            self.since = Instant::now();
        }
        if self.table.is_none() && value.len() <= VALUE_BYTES_MAX {
            self.waiting_bytes += key.len() + value.len();
            self.waiting.push((line, key.to_vec(), value.to_vec()));
            return Ok(());
        }
        self.make()?;
        self.put(key, value)
    }

    /// Creates the table, and its store, if they do not exist, and writes the waiting rows.
    fn make(&mut self) -> Result<(), Failure> {
        if self.table.is_some() {
            return Ok(());
        }
        let store = match self.store.take() {
            Some(store) => store,
            None => self.session.create_to_fill(self.into.path)?,
        };
        let (store, rules) = (self.store.insert(store), self.rules.as_table_rules().clone());
        self.table = Some(match self.into.is_sorted {
            true => Made::Load(Box::new(store.bulk_load_bytes(self.into.table, rules)?)),
            false => {
                let table = Box::new(store.create_bytes_table(self.into.table, rules)?);
                Made::Batches { table, batch: Box::new(store.batch()), separated: 0 }
            }
        });
        for (line, key, value) in std::mem::take(&mut self.waiting) {
            self.put(&key, &value).map_err(|failure| failure.at_line(line))?;
        }
        Ok(())
    }

    /// Writes a row to the table.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let Into { lifetime, durability, .. } = self.into;
        let put = match &mut self.table {
            // In commits of its own.
            Some(Made::Batches { table, separated, .. }) if value.len() > VALUE_BYTES_MAX => {
                let table = table.with_durability(durability).with_lifetime(lifetime);
                table.write_whole(self.op, key, value).map(|_| *separated += 1)
            }
            Some(Made::Batches { table, batch, .. }) => {
                batch.write(&table.with_lifetime(lifetime), self.op, key, value);
                Ok(())
            }
            Some(Made::Load(load)) => load.push(self.op, key, value),
            None => Ok(()), // it is created before
        };
        Ok(put?)
    }

    fn is_empty(&self) -> bool {
        match &self.table {
            None => self.waiting.is_empty(),
            Some(Made::Batches { batch, .. }) => batch.is_empty(),
            Some(Made::Load(_)) => false,
        }
    }

    /// Whether there is enough to commit, or it has waited long enough, or progress is to be shown.
    pub(crate) fn is_full(&self) -> bool {
        let (rows, bytes) = match &self.table {
            None => (self.waiting.len(), self.waiting_bytes),
            Some(Made::Batches { batch, .. }) => (batch.len(), batch.len_bytes()),
            Some(Made::Load(load)) => return load.rows().is_multiple_of(LOADED_ROWS),
        };
        rows > 0 && (rows >= BATCH_OPS || bytes >= BATCH_BYTES || self.since.elapsed() >= BATCH_TIME)
    }

    /// Commits the rows, and returns their number. Loaded rows are committed at the end.
    pub(crate) fn commit(&mut self) -> Result<u64, Failure> {
        if !self.waiting.is_empty() {
            self.make()?;
        }
        let Some(Made::Batches { batch, separated, .. }) = &mut self.table else { return Ok(0) };
        let ops = batch.len() as u64;
        batch.commit(self.into.durability)?; // also an empty one, which may have a mistake
        Ok(std::mem::take(separated) + ops)
    }

    /// Creates the loaded table, and returns how many rows that has committed. A table without rows
    /// is created only if no row was bad.
    pub(crate) fn finish(&mut self, is_all_well: bool) -> Result<u64, Failure> {
        if is_all_well {
            self.make()?;
        }
        let Some(Made::Load(load)) = self.table.take_if(|table| matches!(table, Made::Load(_))) else {
            return Ok(0);
        };
        let rows = load.rows();
        load.finish()?;
        Ok(rows)
    }
}

/// The op of a row: a fold, or a put if values replace.
fn op_of(rules: &TableRules) -> WriteOp {
    if rules.fold.spec() == "replace" { WriteOp::Put } else { WriteOp::Fold }
}
