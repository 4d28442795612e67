//! Where imported rows go: in batches to a table, or in the order of their keys to a new one.
//!
//! A table that is not there yet, and its store, come with the first rows that are committed: an
//! import of which nothing is in leaves nothing behind.

use std::path::Path;
use std::time::{Duration, Instant};

use folddb::DynamicRules;
use folddb::limits::VALUE_BYTES_MAX;
use folddb::table_rules::TableRules;
use folddb::{Batch, BytesBulkLoad, BytesTable, Durability, Lifetime, WriteOp};

use crate::failure::Failure;
use crate::session::{Opened, Session};

/// A batch is committed when it holds this many ops, or this many bytes.
const BATCH_OPS: usize = 4096;
const BATCH_BYTES: usize = 1 << 20;

/// A batch is committed, too, when its first op has waited so long: rows through a pipe are in
/// within a second.
const BATCH_TIME: Duration = Duration::from_millis(700);

/// Progress is shown after so many rows that are loaded.
const LOADED_ROWS: u64 = 4096;

/// Takes the rows of an import.
pub(crate) struct Sink<'a> {
    session: &'a Session,
    into: Into<'a>,
    rules: DynamicRules,
    op: WriteOp,
    store: Option<Opened>,
    /// Rows for a table that is not there yet, with their lines, and the bytes of them.
    waiting: Vec<(u64, Vec<u8>, Vec<u8>)>,
    waiting_bytes: usize,
    /// Since when the first row waits that is not committed.
    since: Instant,
    table: Option<Made>,
}

/// Where rows go, as the command line says.
#[derive(Clone, Copy)]
pub(crate) struct Into<'a> {
    /// The directory of the store.
    pub(crate) path: &'a Path,
    /// The table.
    pub(crate) table: &'a str,
    /// Rows come in the order of their keys, and make the table.
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
        /// Rows that are committed already and not told of.
        separated: u64,
    },
    /// All at once: it comes into being with them.
    Load(Box<BytesBulkLoad>),
}

impl<'a> Sink<'a> {
    /// Into a table that is there.
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

    /// Into a table by these rules, which is made with the first rows that are committed; and so is
    /// its store, where there is none.
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

    /// Takes a row. What came before one whose value is longer than an op of a batch may be is to
    /// be committed first: such a row is written at once.
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

    /// Makes the table, and its store, where they are not there yet, and hands them what waits.
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

    /// Hands a row to the table.
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
            None => Ok(()), // it is made before
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

    /// Whether enough has come to commit it, or has waited for long, or to show how far it is.
    pub(crate) fn is_full(&self) -> bool {
        let (rows, bytes) = match &self.table {
            None => (self.waiting.len(), self.waiting_bytes),
            Some(Made::Batches { batch, .. }) => (batch.len(), batch.len_bytes()),
            Some(Made::Load(load)) => return load.rows().is_multiple_of(LOADED_ROWS),
        };
        rows > 0 && (rows >= BATCH_OPS || bytes >= BATCH_BYTES || self.since.elapsed() >= BATCH_TIME)
    }

    /// Commits what has come, and says how many rows that were. What is loaded is committed at the
    /// end.
    pub(crate) fn commit(&mut self) -> Result<u64, Failure> {
        if !self.waiting.is_empty() {
            self.make()?;
        }
        let Some(Made::Batches { batch, separated, .. }) = &mut self.table else { return Ok(0) };
        let ops = batch.len() as u64;
        batch.commit(self.into.durability)?; // also an empty one: that may be for a mistake
        Ok(std::mem::take(separated) + ops)
    }

    /// Makes the table that is loaded, and says how many rows that has committed. One that no row
    /// came for is made where none was amiss.
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

/// What a row does to its key: it folds, or where values replace it sets.
fn op_of(rules: &TableRules) -> WriteOp {
    if rules.fold.spec() == "replace" { WriteOp::Put } else { WriteOp::Fold }
}
