//! LMDB, as its experts would set it for this work:
//!
//! - mode `process`: `MDB_WRITEMAP | MDB_NOSYNC`: a commit changes pages of the mapped file, which
//!   belong to the operating system: they survive the process. Only the operating system writes
//!   them to the disk, when it wants to. The store lives in the page cache, and `memory_bytes` does
//!   not bound it. Mention this with its figures.
//! - mode `sync`: neither flag: a commit writes its pages and syncs.
//! - a map of 64 GiB of address space; reads ahead are off (`MDB_NORDAHEAD`), as for random reads
//!   of what may be larger than memory.
//! - one transaction per commit; one for all reads if nobody writes. Folds are read, modified and
//!   written in the transaction.

use anyhow::Result;
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, RoTxn, RwTxn, WithoutTls};

use super::entries::{Entry, locked_version};
use crate::rival::{Durability, Meaning, Op, Reader, Rival, Setup, Sight, Writer};

pub(crate) const ENTRY: Entry = Entry {
    name: "lmdb",
    version: || format!("{} (heed {})", locked_version("lmdb-master-sys"), locked_version("heed")),
    settings: |setup| {
        match setup.durability {
        Durability::Process => {
            "WRITEMAP, NOSYNC, NORDAHEAD: lives in the page cache, beyond the memory; folds by read-modify-write".to_owned()
        }
        Durability::Sync => "NORDAHEAD: lives in the page cache, beyond the memory; folds by read-modify-write".to_owned(),
    }
    },
    open,
};

const MAP_BYTES: usize = 64 << 30;

type Rows = Database<Bytes, Bytes>;

struct Lmdb {
    env: Env<WithoutTls>,
    rows: Rows,
    meaning: Meaning,
}

#[allow(unsafe_code)]
fn open(setup: &Setup) -> Result<Box<dyn Rival>> {
    let dir = setup.dir.join("store.lmdb");
    std::fs::create_dir_all(&dir)?;
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(MAP_BYTES);
    let flags = match setup.durability {
        Durability::Process => EnvFlags::WRITE_MAP | EnvFlags::NO_SYNC | EnvFlags::NO_READ_AHEAD,
        Durability::Sync => EnvFlags::NO_READ_AHEAD,
    };
    // SAFETY: the directory is this process's alone, nobody changes its files, and it is opened
    // once at a time.
    let env = unsafe { options.flags(flags).open(&dir)? };
    let mut txn = env.write_txn()?;
    let rows = env.create_database(&mut txn, None)?;
    txn.commit()?;
    Ok(Box::new(Lmdb { env, rows, meaning: setup.meaning }))
}

impl Rival for Lmdb {
    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(LmdbWriter { of: self, txn: None, value: Vec::new() }))
    }

    fn reader(&self, sight: Sight) -> Result<Box<dyn Reader + '_>> {
        let txn = match sight {
            Sight::Still => Some(self.env.read_txn()?),
            Sight::Fresh => None,
        };
        Ok(Box::new(LmdbReader { of: self, txn }))
    }

    fn settle(&self) -> Result<()> {
        Ok(self.env.force_sync()?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.env.force_sync()?;
        self.env.prepare_for_closing().wait();
        Ok(())
    }
}

struct LmdbWriter<'a> {
    of: &'a Lmdb,
    txn: Option<RwTxn<'a>>,
    value: Vec<u8>,
}

impl Writer for LmdbWriter<'_> {
    fn apply(&mut self, op: Op<'_>) -> Result<()> {
        self.collect(op)?;
        self.commit()
    }

    fn collect(&mut self, op: Op<'_>) -> Result<()> {
        let rows = self.of.rows;
        let txn = match &mut self.txn {
            Some(txn) => txn,
            none => none.insert(self.of.env.write_txn()?),
        };
        match op {
            Op::Put { key, value } => rows.put(txn, key, value)?,
            Op::Delete { key } => drop(rows.delete(txn, key)?),
            Op::Fold { key, operand } => {
                self.of.meaning.fold(rows.get(txn, key)?, operand, &mut self.value);
                rows.put(txn, key, &self.value)?;
            }
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        if let Some(txn) = self.txn.take() {
            txn.commit()?;
        }
        Ok(())
    }
}

struct LmdbReader<'a> {
    of: &'a Lmdb,
    txn: Option<RoTxn<'a, WithoutTls>>,
}

impl Reader for LmdbReader<'_> {
    fn get(&mut self, key: &[u8], take: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        match &self.txn {
            Some(txn) => take(self.of.rows.get(txn, key)?),
            None => {
                let txn = self.of.env.read_txn()?;
                take(self.of.rows.get(&txn, key)?);
            }
        }
        Ok(())
    }

    fn scan(&mut self, from: Option<&[u8]>, rows_max: u64, take: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let fresh;
        let txn = match &self.txn {
            Some(txn) => txn,
            None => {
                fresh = self.of.env.read_txn()?;
                &fresh
            }
        };
        let low = from.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Included);
        let range = (low, std::ops::Bound::<&[u8]>::Unbounded);
        let rows = self.of.rows.range(txn, &range)?;
        for row in rows.take(usize::try_from(rows_max).unwrap_or(usize::MAX)) {
            let (key, value) = row?;
            take(key, value);
        }
        Ok(())
    }
}
