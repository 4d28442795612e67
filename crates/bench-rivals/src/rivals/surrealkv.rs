//! SurrealKV 1, as its experts would set it for this work:
//!
//! - half of the memory for memtables (three of a sixth, keys, nodes and values: one fills, one is
//!   flushed, one waits, its default), half for the block cache, which also holds indexes and
//!   filters.
//! - blocks of 4 KiB, as the others have: its default of 64 KiB is read whole by each cold get.
//!   Parts of indexes and filters of 4 KiB: a small cache, which is divided, admits no larger ones.
//! - levels: the lowest as large as level 0 when it is full, files of up to 32 MiB; else its
//!   defaults. Filters of its default 10 bits; no compression, by default; no encryption built in.
//! - commits go through tasks of a tokio runtime, and so do flushes and compactions, which block
//!   their thread: it has four threads, so that a commit never waits for one. Writers wait in
//!   `block_on`.
//! - commits: its log goes to the operating system at each commit (`Eventual`), or is synced
//!   (`Immediate`), and then written into zeros written ahead (`with_wal_preallocation`).
//! - transactions without reads where nothing is folded; folds are read, modified and written in
//!   the transaction: it has no merge operator. A commit that conflicts is done again.
//! - `surrealkv-separated` keeps values from its default of 1 KiB on in its value log.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use surrealkv::{CompactRangeOptions, Error, LSMIterator, Mode, Options, Transaction, Tree, TreeBuilder};
use tokio::runtime::{Builder, Runtime};

use super::entries::{Entry, locked_version};
use crate::rival::{Durability, Meaning, Op, Reader, Rival, Setup, Sight, Writer};

pub(crate) const ENTRY: Entry = Entry {
    name: "surrealkv",
    version: || locked_version("surrealkv"),
    settings: |_| about("values in the tree"),
    open: |setup| open(setup, false),
};

pub(crate) const SEPARATED: Entry = Entry {
    name: "surrealkv-separated",
    version: || locked_version("surrealkv"),
    settings: |_| about("values from 1 KiB on in the value log"),
    open: |setup| open(setup, true),
};

fn about(variant: &str) -> String {
    format!(
        "{variant}; memtables 3 of 1/6 of the memory; cache 1/2, for blocks, indexes and filters of 10 bits; a runtime of \
         4 threads; folds by read-modify-write; no compression"
    )
}

/// SurrealKV does not say whether it compacts. So it counts as settled when its files have not
/// changed for this long.
const QUIET: Duration = Duration::from_millis(300);
/// The flush, the compaction and the log, and one more.
const THREADS: usize = 4;

struct SurrealKv {
    tree: Tree,
    runtime: Runtime,
    path: PathBuf,
    durability: surrealkv::Durability,
    meaning: Meaning,
}

fn options(setup: &Setup, path: &Path, is_separated: bool) -> Options {
    let memtable_bytes = (setup.memory_bytes / 6).max(64 << 10);
    let mut options = Options::new()
        .with_path(path.to_path_buf())
        .with_max_memtable_size(memtable_bytes as usize)
        .with_block_cache_capacity(setup.memory_bytes / 2)
        .with_block_size(4 << 10)
        .with_index_partition_size(4 << 10)
        .with_target_file_size(32 << 20)
        .with_enable_vlog(is_separated)
        .with_wal_preallocation(setup.durability == Durability::Sync);
    options.max_bytes_for_level = 4 * memtable_bytes;
    options
}

fn open(setup: &Setup, is_separated: bool) -> Result<Box<dyn Rival>> {
    let path = setup.dir.join("store.surrealkv");
    std::fs::create_dir_all(&path)?;
    let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_time().build()?;
    let options = options(setup, &path, is_separated);
    let tree = runtime.block_on(async { TreeBuilder::with_options(options).build() })?;
    let durability = match setup.durability {
        Durability::Process => surrealkv::Durability::Eventual,
        Durability::Sync => surrealkv::Durability::Immediate,
    };
    Ok(Box::new(SurrealKv { tree, runtime, path, durability, meaning: setup.meaning }))
}

impl SurrealKv {
    fn begin(&self) -> Result<Transaction> {
        let mode = if self.meaning.folds() { Mode::ReadWrite } else { Mode::WriteOnly };
        Ok(self.tree.begin_with_mode(mode)?.with_durability(self.durability))
    }

    /// Its files with their sizes.
    fn files(&self) -> Result<BTreeMap<PathBuf, u64>> {
        let (mut files, mut dirs) = (BTreeMap::new(), vec![self.path.clone()]);
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir)? {
                let entry = entry?;
                match entry.metadata() {
                    Ok(about) if about.is_dir() => dirs.push(entry.path()),
                    Ok(about) => drop(files.insert(entry.path(), about.len())),
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(files)
    }

    fn checked(&self) -> Result<()> {
        match self.tree.background_error() {
            Some(error) => Err(anyhow!("an error in the background: {error:?}")),
            None => Ok(()),
        }
    }
}

impl Rival for SurrealKv {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(SurrealKvWriter { of: self, txn: None, value: Vec::new() }))
    }

    fn reader(&self, sight: Sight) -> Result<Box<dyn Reader + '_>> {
        let txn = match sight {
            Sight::Still => Some(self.tree.begin_with_mode(Mode::ReadOnly)?),
            Sight::Fresh => None,
        };
        Ok(Box::new(SurrealKvReader { of: self, txn }))
    }

    fn settle(&self) -> Result<()> {
        let flush =
            CompactRangeOptions { flush_memtable: true, target_level: Some(0), rewrite_bottommost: false };
        self.tree.compact_range(None, None, &flush)?;
        let (mut before, mut busy_at) = (self.files()?, Instant::now());
        while busy_at.elapsed() < QUIET {
            std::thread::sleep(Duration::from_millis(20));
            let now = self.files()?;
            if now != before {
                (before, busy_at) = (now, Instant::now());
            }
        }
        self.checked()
    }

    fn optimize(&self) -> Result<bool> {
        self.tree.compact_range(None, None, &CompactRangeOptions::default())?;
        Ok(true)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.checked()?;
        Ok(self.runtime.block_on(self.tree.close())?)
    }
}

struct SurrealKvWriter<'a> {
    of: &'a SurrealKv,
    txn: Option<Transaction>,
    value: Vec<u8>,
}

impl Writer for SurrealKvWriter<'_> {
    fn apply(&mut self, op: Op<'_>) -> Result<()> {
        loop {
            self.collect(op)?;
            match self.commit() {
                Err(error) if was_too_late(&error) => continue,
                done => return done,
            }
        }
    }

    fn collect(&mut self, op: Op<'_>) -> Result<()> {
        let txn = match &mut self.txn {
            Some(txn) => txn,
            none => none.insert(self.of.begin()?),
        };
        match op {
            Op::Put { key, value } => txn.set(key, value)?,
            Op::Delete { key } => txn.delete(key)?,
            Op::Fold { key, operand } => {
                let before = txn.get(key)?;
                self.of.meaning.fold(before.as_deref(), operand, &mut self.value);
                txn.set(key, self.value.as_slice())?;
            }
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        match self.txn.take() {
            Some(mut txn) => Ok(self.of.runtime.block_on(txn.commit())?),
            None => Ok(()),
        }
    }
}

/// Whether another commit of the same key came first.
fn was_too_late(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<Error>(), Some(Error::TransactionWriteConflict | Error::TransactionRetry))
}

struct SurrealKvReader<'a> {
    of: &'a SurrealKv,
    txn: Option<Transaction>,
}

impl SurrealKvReader<'_> {
    /// Calls `read` with the transaction of all reads, or one of its own.
    fn with<T>(&self, read: impl FnOnce(&Transaction) -> Result<T>) -> Result<T> {
        match &self.txn {
            Some(txn) => read(txn),
            None => read(&self.of.tree.begin_with_mode(Mode::ReadOnly)?),
        }
    }
}

impl Reader for SurrealKvReader<'_> {
    fn get(&mut self, key: &[u8], take: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        self.with(|txn| {
            take(txn.get(key)?.as_deref());
            Ok(())
        })
    }

    fn scan(&mut self, from: Option<&[u8]>, rows_max: u64, take: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        self.with(|txn| match from {
            None => walk(txn.iter()?, rows_max, take),
            Some(key) => walk(txn.scan(key..)?, rows_max, take),
        })
    }
}

fn walk(mut rows: impl LSMIterator, rows_max: u64, take: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
    if rows_max == 0 {
        return Ok(());
    }
    rows.seek_first()?;
    for row in 0.. {
        if !rows.valid() {
            break;
        }
        take(rows.key().user_key(), &rows.value_ref()?);
        if row + 1 == rows_max {
            break;
        }
        rows.next()?;
    }
    Ok(())
}
