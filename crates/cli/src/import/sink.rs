//! Where imported rows go: in batches to a table, or in the order of their keys to a new one.

use std::time::{Duration, Instant};

use folddb::limits::VALUE_BYTES_MAX;
use folddb::table_rules::{BoundRules, TableRules};
use folddb::{Batch, BytesBulkLoad, BytesTable, Durability, Lifetime, Store, WriteOp};

use crate::failure::Failure;

/// A batch is committed when it holds so many ops, or so many bytes.
const BATCH_OPS: usize = 4096;
const BATCH_BYTES: usize = 1 << 20;

/// A batch is committed, too, when its first op has waited so long: rows through a pipe are in within a second.
const BATCH_TIME: Duration = Duration::from_millis(700);

/// Progress is shown after so many rows that are loaded.
const LOADED_ROWS: u64 = 4096;

/// Takes the rows of an import.
pub(crate) enum Sink {
    /// To a table, as others may write to it.
    Batches {
        table: BytesTable,
        batch: Box<Batch>,
        op: WriteOp,
        lifetime: Option<Lifetime>,
        durability: Durability,
        /// Since when the first op of the batch waits.
        since: Instant,
        /// Rows that are committed already and not told of.
        apart: u64,
    },
    /// To a table that comes into being with all of them.
    Load { load: Box<BytesBulkLoad>, op: WriteOp },
}

impl Sink {
    /// Into a table that is there, for so long.
    pub(crate) fn batches(
        store: &Store,
        table: BytesTable,
        lifetime: Option<Lifetime>,
        durability: Durability,
    ) -> Sink {
        let op = op_of(&table.rules().rules);
        let (batch, since) = (Box::new(store.batch()), Instant::now());
        Sink::Batches { batch, op, lifetime, durability, since, table, apart: 0 }
    }

    /// Into a new table by these rules.
    pub(crate) fn load(store: &Store, name: &str, rules: TableRules) -> Result<Sink, Failure> {
        let op = op_of(&rules);
        Ok(Sink::Load { load: Box::new(store.bulk_load_bytes(name, rules)?), op })
    }

    pub(crate) fn rules(&self) -> &BoundRules {
        match self {
            Sink::Batches { table, .. } => table.rules(),
            Sink::Load { load, .. } => load.rules(),
        }
    }

    /// Takes a row. What came before one whose value is longer than an op of a batch may be is to be committed first: such a row is
    /// written at once.
    pub(crate) fn write(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        match self {
            // In commits of its own.
            Sink::Batches { table, op, lifetime, durability, apart, .. } if value.len() > VALUE_BYTES_MAX => {
                table.clone().with_durability(*durability).write_whole(*op, key, value, *lifetime)?;
                *apart += 1;
            }
            Sink::Batches { table, batch, op, lifetime, since, .. } => {
                if batch.is_empty() {
                    *since = Instant::now();
                }
                match lifetime {
                    None => batch.write(table, *op, key, value),
                    Some(lifetime) => batch.write_expiring(table, *op, key, value, *lifetime),
                };
            }
            Sink::Load { load, op } => load.push(*op, key, value)?,
        }
        Ok(())
    }

    /// Whether enough has come to commit it, or has waited for long, or to show how far it is.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Sink::Batches { batch, .. } if batch.is_empty() => false,
            Sink::Batches { batch, since, .. } => {
                batch.len() >= BATCH_OPS || batch.len_bytes() >= BATCH_BYTES || since.elapsed() >= BATCH_TIME
            }
            Sink::Load { load, .. } => load.rows().is_multiple_of(LOADED_ROWS),
        }
    }

    /// Commits what has come, and says how many rows that were. What is loaded is committed at the end.
    pub(crate) fn commit(&mut self) -> Result<u64, Failure> {
        let Sink::Batches { batch, durability, apart, .. } = self else { return Ok(0) };
        let ops = batch.len() as u64;
        batch.commit(*durability)?; // also an empty one: that may be for a mistake
        Ok(std::mem::take(apart) + ops)
    }

    /// Makes the table that is loaded, and says how many rows that has committed.
    pub(crate) fn finish(self) -> Result<u64, Failure> {
        let Sink::Load { load, .. } = self else { return Ok(0) };
        let rows = load.rows();
        load.finish()?;
        Ok(rows)
    }
}

/// What a row does to its key: it folds, or where values replace it sets.
fn op_of(rules: &TableRules) -> WriteOp {
    if rules.fold.spec() == "replace" { WriteOp::Set } else { WriteOp::Fold }
}
