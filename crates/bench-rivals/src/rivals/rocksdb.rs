//! RocksDB, as its experts would set it for this work on two cores:
//!
//! - half of the memory for memtables (three of a sixth: one fills, one is flushed, one waits),
//!   half for the block cache.
//! - filters of 10 bits and indexes on the heap, beyond the cache: in a small cache they evict each
//!   other and the data, and can stall a store for minutes. That takes memory in addition to
//!   `memory_bytes`; the peak shows how much.
//! - leveled compaction with dynamic levels, the lowest as large as level 0 when it is full; or
//!   universal compaction with runs of eight, as `rocksdb-universal`. One flush and two compactions
//!   at once, each in up to two parts.
//! - no compression; blocks of 4 KiB with a hash index for gets; syncs of files spread
//!   (`bytes_per_sync`), against bursts.
//! - commits: the log goes to the operating system at each commit, or is synced; logs are then
//!   recycled, which makes their sync cheaper.
//! - folds: `rocksdb` and `rocksdb-universal` read, modify and write. `rocksdb-merge` has a merge
//!   operator and leaves operands unfolded until compaction (`max_successive_merges` 0);
//!   `rocksdb-universal-merge` likewise, with universal compaction; `rocksdb-merge-eager` folds at
//!   a write what the memtable has of the key, from 8 operands on.
//! - `rocksdb-blob` keeps values from 512 bytes on in blob files, with their garbage collection on.

use anyhow::Result;
use rocksdb::{
    BlockBasedOptions, BottommostLevelCompaction, Cache, CompactOptions, DB, DBCompactionStyle,
    DBCompressionType, DataBlockIndexType, MergeOperands, Options, ReadOptions, UniversalCompactOptions,
    WaitForCompactOptions, WriteBatch, WriteOptions,
};

use super::entries::{Entry, locked_version};
use super::pending::Pending;
use crate::rival::{Durability, Meaning, Op, Reader, Rival, Setup, Sight, Writer, number};

/// How the rivals of this file differ.
#[derive(Clone, Copy, Debug, Default)]
struct Variant {
    is_universal: bool,
    has_blobs: bool,
    /// `max_successive_merges` of a merge operator, if there is one.
    merges: Option<usize>,
}

const PLAIN: Variant = Variant { is_universal: false, has_blobs: false, merges: None };

pub(crate) const LEVELED: Entry = Entry {
    name: "rocksdb",
    version,
    settings: |_| about("leveled; folds by read-modify-write"),
    open: |setup| open(setup, PLAIN),
};

pub(crate) const UNIVERSAL: Entry = Entry {
    name: "rocksdb-universal",
    version,
    settings: |_| about("universal, runs of 8; folds by read-modify-write"),
    open: |setup| open(setup, Variant { is_universal: true, ..PLAIN }),
};

pub(crate) const MERGE: Entry = Entry {
    name: "rocksdb-merge",
    version,
    settings: |_| about("leveled; merge operator, max_successive_merges 0"),
    open: |setup| open(setup, Variant { merges: Some(0), ..PLAIN }),
};

pub(crate) const UNIVERSAL_MERGE: Entry = Entry {
    name: "rocksdb-universal-merge",
    version,
    settings: |_| about("universal, runs of 8; merge operator, max_successive_merges 0"),
    open: |setup| open(setup, Variant { is_universal: true, merges: Some(0), ..PLAIN }),
};

pub(crate) const MERGE_EAGER: Entry = Entry {
    name: "rocksdb-merge-eager",
    version,
    settings: |_| about("leveled; merge operator, max_successive_merges 8"),
    open: |setup| open(setup, Variant { merges: Some(8), ..PLAIN }),
};

pub(crate) const BLOB: Entry = Entry {
    name: "rocksdb-blob",
    version,
    settings: |_| about("leveled; values from 512 bytes on in blob files"),
    open: |setup| open(setup, Variant { has_blobs: true, ..PLAIN }),
};

fn about(variant: &str) -> String {
    format!(
        "{variant}; memtables 3 of 1/6 of the memory, block cache 1/2; filters of 10 bits and indexes on the heap, beyond it; \
         1 flush, 2 compactions; no compression"
    )
}

/// The version of the binding ends with that of RocksDB, after a plus.
fn version() -> String {
    let binding = locked_version("librocksdb-sys");
    binding.split_once('+').map_or(binding.clone(), |(_, own)| own.to_owned())
}

fn options(setup: &Setup, variant: Variant) -> Options {
    let memtable_bytes = (setup.memory_bytes / 6).max(64 << 10);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_write_buffer_size(memtable_bytes as usize);
    options.set_max_write_buffer_number(3);
    options.set_compression_type(DBCompressionType::None);
    options.set_max_background_jobs(3);
    options.set_max_subcompactions(2);
    options.set_bytes_per_sync(1 << 20);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_max_bytes_for_level_base(4 * memtable_bytes);
    options.set_target_file_size_base(32 << 20);
    options.set_max_open_files(-1);
    options.set_block_based_table_factory(&tables(setup.memory_bytes as usize / 2));
    if setup.durability == Durability::Sync {
        options.set_recycle_log_file_num(4);
    }
    if variant.is_universal {
        options.set_compaction_style(DBCompactionStyle::Universal);
        options.set_universal_compaction_options(&UniversalCompactOptions::default());
        options.set_level_zero_file_num_compaction_trigger(8);
    }
    if variant.has_blobs {
        options.set_enable_blob_files(true);
        options.set_min_blob_size(512);
        options.set_enable_blob_gc(true);
    }
    if let (Some(successive), true) = (variant.merges, setup.meaning.folds()) {
        match setup.meaning {
            Meaning::Sum => options.set_merge_operator_associative("sum", sum),
            _ => options.set_merge_operator_associative("append", append),
        }
        options.set_max_successive_merges(successive);
    }
    options
}

fn tables(cache_bytes: usize) -> BlockBasedOptions {
    let mut tables = BlockBasedOptions::default();
    tables.set_block_cache(&Cache::new_lru_cache(cache_bytes));
    tables.set_block_size(4 << 10);
    tables.set_bloom_filter(10.0, false);
    tables.set_cache_index_and_filter_blocks(false);
    tables.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    tables.set_data_block_hash_ratio(0.75);
    tables.set_format_version(6);
    tables
}

fn sum(_: &[u8], existing: Option<&[u8]>, operands: &MergeOperands) -> Option<Vec<u8>> {
    let before = number(existing.unwrap_or_default());
    let sum = operands.iter().fold(before, |sum, operand| sum.wrapping_add(number(operand)));
    Some(sum.to_le_bytes().to_vec())
}

fn append(_: &[u8], existing: Option<&[u8]>, operands: &MergeOperands) -> Option<Vec<u8>> {
    let len_bytes = existing.map_or(0, <[u8]>::len) + operands.iter().map(<[u8]>::len).sum::<usize>();
    let mut value = Vec::with_capacity(len_bytes);
    value.extend_from_slice(existing.unwrap_or_default());
    operands.iter().for_each(|operand| value.extend_from_slice(operand));
    Some(value)
}

struct RocksDb {
    database: DB,
    durability: Durability,
    meaning: Meaning,
    has_merges: bool,
}

fn write_options(durability: Durability) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(durability == Durability::Sync);
    options
}

fn open(setup: &Setup, variant: Variant) -> Result<Box<dyn Rival>> {
    let database = DB::open(&options(setup, variant), setup.dir.join("store.rocksdb"))?;
    Ok(Box::new(RocksDb {
        database,
        durability: setup.durability,
        meaning: setup.meaning,
        has_merges: variant.merges.is_some(),
    }))
}

impl Rival for RocksDb {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(RocksDbWriter {
            of: self,
            options: write_options(self.durability),
            batch: WriteBatch::default(),
            pending: Pending::new(self.meaning),
            value: Vec::new(),
        }))
    }

    fn reader(&self, _: Sight) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(RocksDbReader { database: &self.database, options: ReadOptions::default() }))
    }

    fn settle(&self) -> Result<()> {
        let mut options = WaitForCompactOptions::default();
        options.set_flush(true);
        Ok(self.database.wait_for_compact(&options)?)
    }

    fn optimize(&self) -> Result<bool> {
        let mut options = CompactOptions::default();
        options.set_bottommost_level_compaction(BottommostLevelCompaction::ForceOptimized);
        self.database.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &options);
        Ok(true)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.database.flush_wal(true)?)
    }
}

struct RocksDbWriter<'a> {
    of: &'a RocksDb,
    options: WriteOptions,
    batch: WriteBatch,
    /// Where a fold must see what the batch did before.
    pending: Pending,
    value: Vec<u8>,
}

impl Writer for RocksDbWriter<'_> {
    fn apply(&mut self, op: Op<'_>) -> Result<()> {
        let database = &self.of.database;
        match op {
            Op::Put { key, value } => database.put_opt(key, value, &self.options)?,
            Op::Delete { key } => database.delete_opt(key, &self.options)?,
            Op::Fold { key, operand } if self.of.has_merges => {
                database.merge_opt(key, operand, &self.options)?
            }
            Op::Fold { key, operand } => {
                let before = database.get_pinned(key)?;
                self.of.meaning.fold(before.as_deref(), operand, &mut self.value);
                database.put_opt(key, &self.value, &self.options)?;
            }
        }
        Ok(())
    }

    fn collect(&mut self, op: Op<'_>) -> Result<()> {
        if self.of.meaning.folds() && !self.of.has_merges {
            let database = &self.of.database;
            return self.pending.collect(op, |key, value| {
                let stored = database.get_pinned(key)?;
                value.extend_from_slice(stored.as_deref().unwrap_or_default());
                Ok(stored.is_some())
            });
        }
        match op {
            Op::Put { key, value } => self.batch.put(key, value),
            Op::Delete { key } => self.batch.delete(key),
            Op::Fold { key, operand } => self.batch.merge(key, operand),
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        for (key, value) in self.pending.drain() {
            match value {
                Some(value) => self.batch.put(key, value),
                None => self.batch.delete(key),
            }
        }
        self.of.database.write_opt(std::mem::take(&mut self.batch), &self.options)?;
        Ok(())
    }
}

struct RocksDbReader<'a> {
    database: &'a DB,
    options: ReadOptions,
}

impl Reader for RocksDbReader<'_> {
    fn get(&mut self, key: &[u8], take: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        take(self.database.get_pinned_opt(key, &self.options)?.as_deref());
        Ok(())
    }

    fn scan(&mut self, from: Option<&[u8]>, rows_max: u64, take: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let mut rows = self.database.raw_iterator();
        match from {
            None => rows.seek_to_first(),
            Some(key) => rows.seek(key),
        }
        for _ in 0..rows_max {
            let Some((key, value)) = rows.item() else { break };
            take(key, value);
            rows.next();
        }
        Ok(rows.status()?)
    }
}
