//! fjall 3, as its experts would set it for this work:
//!
//! - filters and indexes whole (not partitioned) and pinned in memory on every level: with
//!   partitioned filters and a small cache a get takes nearly a hundred times as long. Pinned ones
//!   take memory in addition to the cache, as with RocksDB here.
//! - half of the memory for the cache, and memtables of a quarter of it: one fills while one is
//!   flushed. fjall bounds the size of a memtable, not their number.
//! - filters by its default policy; lz4 is not built in; blocks of its default 4 KiB.
//! - its default of a worker thread for each core, up to 4.
//! - commits: its log goes to the operating system at each commit (its default for single writes,
//!   requested for batches), or is synced (`SyncData`).
//! - folds are read, modified and written: it has no merge operator.
//! - `fjall-separated` keeps values from its default of 1 KiB on in blob files, with their default
//!   garbage collection.

use std::time::{Duration, Instant};

use anyhow::Result;
use fjall::config::{PartitioningPolicy, PinningPolicy};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, OwnedWriteBatch, PersistMode};

use super::entries::{Entry, locked_version};
use super::pending::Pending;
use crate::rival::{Durability, Meaning, Op, Reader, Rival, Setup, Sight, Writer};

pub(crate) const ENTRY: Entry = Entry {
    name: "fjall",
    version: || locked_version("fjall"),
    settings: |_| about("values in the tree"),
    open: |setup| open(setup, None),
};

pub(crate) const SEPARATED: Entry = Entry {
    name: "fjall-separated",
    version: || locked_version("fjall"),
    settings: |_| about("values from 1 KiB on in blob files"),
    open: |setup| open(setup, Some(KvSeparationOptions::default())),
};

fn about(variant: &str) -> String {
    format!(
        "{variant}; cache 1/2 of the memory, memtables of 1/4; filters and indexes whole and pinned, beyond the cache; \
         folds by read-modify-write; no compression"
    )
}

/// fjall says when flushes and compactions are active, but not whether one is about to begin. So it
/// counts as settled when nothing has happened for this long.
const QUIET: Duration = Duration::from_millis(200);

struct Fjall {
    database: Database,
    keyspace: Keyspace,
    persist: PersistMode,
    meaning: Meaning,
}

fn open(setup: &Setup, separation: Option<KvSeparationOptions>) -> Result<Box<dyn Rival>> {
    let database =
        Database::builder(setup.dir.join("store.fjall")).cache_size(setup.memory_bytes / 2).open()?;
    let keyspace = database.keyspace("rows", || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(setup.memory_bytes / 4)
            .filter_block_partitioning_policy(PartitioningPolicy::all(false))
            .index_block_partitioning_policy(PartitioningPolicy::all(false))
            .filter_block_pinning_policy(PinningPolicy::all(true))
            .index_block_pinning_policy(PinningPolicy::all(true))
            .manual_journal_persist(setup.durability == Durability::Sync)
            .with_kv_separation(separation.clone())
    })?;
    let persist = match setup.durability {
        Durability::Process => PersistMode::Buffer,
        Durability::Sync => PersistMode::SyncData,
    };
    Ok(Box::new(Fjall { database, keyspace, persist, meaning: setup.meaning }))
}

impl Fjall {
    fn batch(&self) -> OwnedWriteBatch {
        self.database.batch().durability(Some(self.persist))
    }
}

impl Rival for Fjall {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        let (batch, pending) = (self.batch(), Pending::new(self.meaning));
        Ok(Box::new(FjallWriter { of: self, batch, pending, value: Vec::new() }))
    }

    fn reader(&self, _: Sight) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(FjallReader { keyspace: &self.keyspace }))
    }

    fn settle(&self) -> Result<()> {
        self.keyspace.rotate_memtable_and_wait()?;
        let (mut completed, mut busy_at) = (self.database.compactions_completed(), Instant::now());
        while busy_at.elapsed() < QUIET {
            std::thread::sleep(Duration::from_millis(5));
            let now_completed = self.database.compactions_completed();
            let active = self.database.active_compactions() + self.database.outstanding_flushes();
            if active > 0 || now_completed != completed {
                (completed, busy_at) = (now_completed, Instant::now());
            }
        }
        Ok(())
    }

    fn optimize(&self) -> Result<bool> {
        self.keyspace.major_compact()?;
        Ok(true)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }
}

struct FjallWriter<'a> {
    of: &'a Fjall,
    batch: OwnedWriteBatch,
    /// For folds, which must see the earlier writes of their batch.
    pending: Pending,
    value: Vec<u8>,
}

impl FjallWriter<'_> {
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.of.keyspace.insert(key, value)?;
        self.persisted()
    }

    /// Single writes reach the operating system by themselves.
    fn persisted(&self) -> Result<()> {
        if self.of.persist != PersistMode::Buffer {
            self.of.database.persist(self.of.persist)?;
        }
        Ok(())
    }
}

impl Writer for FjallWriter<'_> {
    fn apply(&mut self, op: Op<'_>) -> Result<()> {
        match op {
            Op::Put { key, value } => self.insert(key, value),
            Op::Delete { key } => {
                self.of.keyspace.remove(key)?;
                self.persisted()
            }
            Op::Fold { key, operand } => {
                let before = self.of.keyspace.get(key)?;
                let mut value = std::mem::take(&mut self.value);
                self.of.meaning.fold(before.as_deref(), operand, &mut value);
                let inserted = self.insert(key, &value);
                self.value = value;
                inserted
            }
        }
    }

    fn collect(&mut self, op: Op<'_>) -> Result<()> {
        let keyspace = &self.of.keyspace;
        if self.of.meaning.folds() {
            return self.pending.collect(op, |key, value| {
                let stored = keyspace.get(key)?;
                value.extend_from_slice(stored.as_deref().unwrap_or_default());
                Ok(stored.is_some())
            });
        }
        match op {
            Op::Put { key, value } | Op::Fold { key, operand: value } => {
                self.batch.insert(keyspace, key, value)
            }
            Op::Delete { key } => self.batch.remove(keyspace, key),
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        for (key, value) in self.pending.drain() {
            match value {
                Some(value) => self.batch.insert(&self.of.keyspace, key, value),
                None => self.batch.remove(&self.of.keyspace, key),
            }
        }
        Ok(std::mem::replace(&mut self.batch, self.of.batch()).commit()?)
    }
}

struct FjallReader<'a> {
    keyspace: &'a Keyspace,
}

impl Reader for FjallReader<'_> {
    fn get(&mut self, key: &[u8], take: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        take(self.keyspace.get(key)?.as_deref());
        Ok(())
    }

    fn size_bytes(&mut self, key: &[u8]) -> Result<Option<u64>> {
        Ok(self.keyspace.size_of(key)?.map(u64::from))
    }

    fn scan(&mut self, from: Option<&[u8]>, rows_max: u64, take: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let rows = match from {
            None => self.keyspace.iter(),
            Some(key) => self.keyspace.range(key..),
        };
        for row in rows.take(usize::try_from(rows_max).unwrap_or(usize::MAX)) {
            let (key, value) = row.into_inner()?;
            take(&key, &value);
        }
        Ok(())
    }
}
