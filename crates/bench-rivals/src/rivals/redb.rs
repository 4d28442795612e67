//! redb, as its experts would set it for this work:
//!
//! - all of the memory for its one cache, which reads and writes share.
//! - mode `process`: it has no such mode, only a weaker and a stronger one. `Durability::None`
//!   leaves commits in the process until an immediate commit. Here one commit per second is
//!   immediate: later commits are lost with the process. Mention this with its figures.
//! - mode `sync`: `Durability::Immediate` at each commit.
//! - one transaction per commit, in which the table is opened once; one for all reads if nobody
//!   writes. Folds are read, modified and written in the transaction.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Result;
use redb::{Database, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition};

use super::entries::{Entry, locked_version};
use crate::rival::{Durability, Meaning, Op, Reader, Rival, Setup, Sight, Writer};

pub(crate) const ENTRY: Entry = Entry {
    name: "redb",
    version: || locked_version("redb"),
    settings: |setup| {
        match setup.durability {
        Durability::Process => {
            "all memory for its cache; weaker than the others: commits stay in the process for up to a second; \
             folds by read-modify-write"
                .to_owned()
        }
        Durability::Sync => "all memory for its cache; folds by read-modify-write".to_owned(),
    }
    },
    open,
};

const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("rows");
const IMMEDIATE_EVERY: Duration = Duration::from_secs(1);

struct Redb {
    database: Database,
    durability: Durability,
    meaning: Meaning,
    immediate_at: Mutex<Instant>,
}

fn open(setup: &Setup) -> Result<Box<dyn Rival>> {
    let database = Database::builder()
        .set_cache_size(setup.memory_bytes as usize)
        .create(setup.dir.join("store.redb"))?;
    let txn = database.begin_write()?;
    txn.open_table(TABLE)?;
    txn.commit()?;
    Ok(Box::new(Redb {
        database,
        durability: setup.durability,
        meaning: setup.meaning,
        immediate_at: Mutex::new(Instant::now()),
    }))
}

impl Redb {
    /// How the next commit is made.
    fn next_durability(&self) -> redb::Durability {
        let Ok(mut immediate_at) = self.immediate_at.lock() else { return redb::Durability::Immediate };
        if self.durability == Durability::Process && immediate_at.elapsed() < IMMEDIATE_EVERY {
            return redb::Durability::None;
        }
        *immediate_at = Instant::now();
        redb::Durability::Immediate
    }

    fn table(&self) -> Result<ReadOnlyTable<&'static [u8], &'static [u8]>> {
        Ok(self.database.begin_read()?.open_table(TABLE)?)
    }
}

impl Rival for Redb {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(RedbWriter { of: self, batch: Vec::new(), value: Vec::new() }))
    }

    fn reader(&self, sight: Sight) -> Result<Box<dyn Reader + '_>> {
        let table = match sight {
            Sight::Still => Some(self.table()?),
            Sight::Fresh => None,
        };
        Ok(Box::new(RedbReader { of: self, table }))
    }

    fn settle(&self) -> Result<()> {
        Ok(self.database.begin_write()?.commit()?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.settle()?;
        Ok(self.database.close()?)
    }
}

/// A write of a batch. Writes are collected, since the transaction cannot be moved while its table
/// is open.
enum OwnedOp {
    Put(Vec<u8>, Vec<u8>),
    Fold(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
}

impl OwnedOp {
    fn as_op(&self) -> Op<'_> {
        match self {
            OwnedOp::Put(key, value) => Op::Put { key, value },
            OwnedOp::Fold(key, operand) => Op::Fold { key, operand },
            OwnedOp::Delete(key) => Op::Delete { key },
        }
    }
}

struct RedbWriter<'a> {
    of: &'a Redb,
    batch: Vec<OwnedOp>,
    value: Vec<u8>,
}

impl RedbWriter<'_> {
    fn write<'b>(&mut self, ops: impl Iterator<Item = Op<'b>>) -> Result<()> {
        let mut txn = self.of.database.begin_write()?;
        txn.set_durability(self.of.next_durability())?;
        let mut table = txn.open_table(TABLE)?;
        for op in ops {
            match op {
                Op::Put { key, value } => drop(table.insert(key, value)?),
                Op::Delete { key } => drop(table.remove(key)?),
                Op::Fold { key, operand } => {
                    let before = table.get(key)?;
                    let before_value = before.as_ref().map(|before| before.value());
                    self.of.meaning.fold(before_value, operand, &mut self.value);
                    drop(before);
                    table.insert(key, self.value.as_slice())?;
                }
            }
        }
        drop(table);
        Ok(txn.commit()?)
    }
}

impl Writer for RedbWriter<'_> {
    fn apply(&mut self, op: Op<'_>) -> Result<()> {
        self.write(std::iter::once(op))
    }

    fn collect(&mut self, op: Op<'_>) -> Result<()> {
        self.batch.push(match op {
            Op::Put { key, value } => OwnedOp::Put(key.to_vec(), value.to_vec()),
            Op::Fold { key, operand } => OwnedOp::Fold(key.to_vec(), operand.to_vec()),
            Op::Delete { key } => OwnedOp::Delete(key.to_vec()),
        });
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.write(batch.iter().map(OwnedOp::as_op))
    }
}

struct RedbReader<'a> {
    of: &'a Redb,
    table: Option<ReadOnlyTable<&'static [u8], &'static [u8]>>,
}

impl Reader for RedbReader<'_> {
    fn get(&mut self, key: &[u8], take: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        let fresh;
        let table = match &self.table {
            Some(table) => table,
            None => {
                fresh = self.of.table()?;
                &fresh
            }
        };
        take(table.get(key)?.as_ref().map(|value| value.value()));
        Ok(())
    }

    fn scan(&mut self, from: Option<&[u8]>, rows_max: u64, take: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let fresh;
        let table = match &self.table {
            Some(table) => table,
            None => {
                fresh = self.of.table()?;
                &fresh
            }
        };
        let rows = match from {
            None => table.iter()?,
            Some(key) => table.range(key..)?,
        };
        for row in rows.take(usize::try_from(rows_max).unwrap_or(usize::MAX)) {
            let (key, value) = row?;
            take(key.value(), value.value());
        }
        Ok(())
    }
}
