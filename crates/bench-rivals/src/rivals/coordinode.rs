//! coordinode-lsm-tree 7, as its experts would set it for this work. It is a tree only: its program
//! has to bring the log, the threads, and the bounds of memory. What this file and `coordinode/`
//! bring is the least that its documentation asks for («External Write-Ahead Log Integration»):
//!
//! - a log, written before the tree: its record is with the operating system at each commit, or
//!   synced, by one thread for all that wait; the log of a memtable goes when that is flushed. In
//!   mode `sync` it is written into zeros written ahead, which makes its sync cheaper.
//! - half of the memory for memtables (three of a sixth: one fills, one is flushed, one waits), and
//!   half for its block cache, as with RocksDB here. A thread that flushes, and two that compact.
//! - writers wait while two memtables are to be flushed, or level 0 has as many runs as RocksDB
//!   allows; the tree alone would never wait.
//! - leveled compaction with dynamic levels, the lowest as large as level 0 when it is full.
//! - filters and indexes whole and pinned on every level, in addition to the cache, as with fjall
//!   here. Without the locator, which is a second way to a block: beside pinned indexes it is only
//!   written. Filters of its default 10 bits; no compression; blocks of its default 4 KiB.
//! - folds by its merge operator, which also composes operands, so a compaction in the middle may.
//!   Each write has a sequence number of its own: two folds of a key with the same number have no
//!   order.
//! - its table writer makes names of files durable in advance (`table_file_pool`), by default.
//! - `coordinode-separated` keeps values from its default of 1 KiB on in blob files.

mod log;
mod background;

use std::sync::Arc;

use anyhow::Result;
use lsm_tree::compaction::Leveled;
use lsm_tree::config::{LocatorPolicy, PinningPolicy};
use lsm_tree::{
    AbstractTree, AnyTree, Cache, Config, Guard, KvSeparationOptions, MAX_SEQNO, MergeOperator, UserValue,
};

use self::background::Background;
use self::log::{Numbers, Record};
use super::entries::{Entry, locked_version};
use crate::rival::{Meaning, Op, Reader, Rival, Setup, Sight, Writer, number};

pub(crate) const ENTRY: Entry = Entry {
    name: "coordinode",
    version: || locked_version("coordinode-lsm-tree"),
    settings: |_| about("values in the tree"),
    open: |setup| open(setup, None),
};

pub(crate) const SEPARATED: Entry = Entry {
    name: "coordinode-separated",
    version: || locked_version("coordinode-lsm-tree"),
    settings: |_| about("values from 1 KiB on in blob files"),
    open: |setup| open(setup, Some(KvSeparationOptions::default())),
};

fn about(variant: &str) -> String {
    format!(
        "{variant}; a tree alone: log, flushes and the waits of writers are of the contest; memtables 3 of 1/6 of the memory, \
         block cache 1/2; filters of 10 bits and indexes whole and pinned, beyond it; merge operator; 1 flush, 2 compactions; \
         no compression"
    )
}

struct Coordinode {
    background: Background,
}

fn open(setup: &Setup, separation: Option<KvSeparationOptions>) -> Result<Box<dyn Rival>> {
    let memtable_bytes = (setup.memory_bytes / 6).max(64 << 10);
    let (dir, numbers) = (setup.dir.join("store.coordinode"), Arc::new(Numbers::default()));
    let config = Config::new_with_generators(&dir, numbers.clone(), Arc::new(Numbers::default()))
        .use_cache(Arc::new(Cache::with_capacity_bytes(setup.memory_bytes / 2)))
        .filter_block_partitioning_policy(PinningPolicy::all(false))
        .index_block_partitioning_policy(PinningPolicy::all(false))
        .filter_block_pinning_policy(PinningPolicy::all(true))
        .index_block_pinning_policy(PinningPolicy::all(true))
        .locator_policy(LocatorPolicy::disabled())
        .with_merge_operator(operator(setup.meaning))
        .with_kv_separation(separation);
    let levels = Leveled::default()
        .with_table_target_size(memtable_bytes.clamp(1 << 20, 64 << 20))
        .with_dynamic_level_bytes(true);
    let tree = config.open()?;
    let background =
        Background::start(tree, numbers, levels, memtable_bytes, &setup.dir.join("log"), setup.durability)?;
    Ok(Box::new(Coordinode { background }))
}

fn operator(meaning: Meaning) -> Option<Arc<dyn MergeOperator>> {
    match meaning {
        Meaning::Sum => Some(Arc::new(Sum)),
        Meaning::Append => Some(Arc::new(Append)),
        _ => None,
    }
}

struct Sum;

impl MergeOperator for Sum {
    fn merge(&self, _: &[u8], before: Option<&[u8]>, operands: &[&[u8]]) -> lsm_tree::Result<UserValue> {
        let before = number(before.unwrap_or_default());
        let sum = operands.iter().fold(before, |sum, operand| sum.wrapping_add(number(operand)));
        Ok(sum.to_le_bytes().into())
    }

    fn composes_operands(&self) -> bool {
        true
    }
}

struct Append;

impl MergeOperator for Append {
    fn merge(&self, _: &[u8], before: Option<&[u8]>, operands: &[&[u8]]) -> lsm_tree::Result<UserValue> {
        let len_bytes = before.map_or(0, <[u8]>::len) + operands.iter().map(|it| it.len()).sum::<usize>();
        let mut value = Vec::with_capacity(len_bytes);
        value.extend_from_slice(before.unwrap_or_default());
        operands.iter().for_each(|operand| value.extend_from_slice(operand));
        Ok(value.into())
    }

    fn composes_operands(&self) -> bool {
        true
    }
}

impl Rival for Coordinode {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(CoordinodeWriter { background: &self.background, record: Record::default() }))
    }

    fn reader(&self, _: Sight) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(CoordinodeReader { background: &self.background }))
    }

    fn settle(&self) -> Result<()> {
        self.background.settle()
    }

    fn optimize(&self) -> Result<bool> {
        self.background.compact_all()?;
        Ok(true)
    }

    fn close(self: Box<Self>) -> Result<()> {
        let tree: AnyTree = self.background.close()?;
        tree.close().wait();
        Ok(())
    }
}

struct CoordinodeWriter<'a> {
    background: &'a Background,
    record: Record,
}

impl Writer for CoordinodeWriter<'_> {
    fn apply(&mut self, op: Op<'_>) -> Result<()> {
        self.collect(op)?;
        self.commit()
    }

    fn collect(&mut self, op: Op<'_>) -> Result<()> {
        self.record.push(op);
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.background.commit(&mut self.record)
    }
}

struct CoordinodeReader<'a> {
    background: &'a Background,
}

impl Reader for CoordinodeReader<'_> {
    /// By the newest number, as its documentation shows it: a get of one key needs no snapshot.
    fn get(&mut self, key: &[u8], take: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        let found = self.background.tree().get_pinned(key, MAX_SEQNO)?;
        take(found.as_ref().map(|value| value.value()));
        Ok(())
    }

    fn size_bytes(&mut self, key: &[u8]) -> Result<Option<u64>> {
        Ok(self.background.tree().size_of(key, MAX_SEQNO)?.map(u64::from))
    }

    fn scan(&mut self, from: Option<&[u8]>, rows_max: u64, take: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let tree = self.background.tree();
        let rows = self.background.at_a_snapshot(|snapshot| match from {
            None => tree.iter(snapshot, None),
            Some(key) => tree.range(key.to_vec().., snapshot, None),
        });
        for row in rows.take(usize::try_from(rows_max).unwrap_or(usize::MAX)) {
            let (key, value) = row.into_inner()?;
            take(&key, &value);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "coordinode/tests.rs"]
mod tests;
