//! FoldDB, with its defaults (`folddb`), and for values by id with hashed tables: `folddb-hashed`,
//! and `folddb-locked` with the index locked in memory. `memory_bytes` bounds memtables, caches and
//! merges together, so FoldDB gets no more memory than the rivals have for buffers and caches
//! alone. Single writes use `BytesTable::write`, batches use `Batch`; folds are those of the
//! tables. Values from 1 KiB on are separated, if a workload has such values. Compression is off by
//! default.

use anyhow::{Result, anyhow};
use folddb::codec::tuple::Element;
use folddb::{Batch, BytesTable, Options, Rules, Store, WriteOp};

use super::entries::{Entry, locked_version};
use crate::rival::{Durability, Meaning, Op, Reader, Rival, Setup, Sight, Writer};

pub(crate) const ENTRY: Entry = Entry {
    name: "folddb",
    version: || locked_version("folddb"),
    settings: |_| {
        "defaults; the memory is for memtables, caches and merges together; values separated from 1 KiB on; no compression".to_owned()
    },
    open: |setup| open(setup, Kind::Sorted),
};

pub(crate) const HASHED: Entry = Entry {
    name: "folddb-hashed",
    version: || locked_version("folddb"),
    settings: |_| "a hashed table; else as folddb".to_owned(),
    open: |setup| open(setup, Kind::Hashed),
};

pub(crate) const LOCKED: Entry = Entry {
    name: "folddb-locked",
    version: || locked_version("folddb"),
    settings: |_| "a hashed table whose index is locked in memory; else as folddb".to_owned(),
    open: |setup| open(setup, Kind::Locked),
};

/// The kind of the table of values by id.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sorted,
    Hashed,
    Locked,
}

const TABLE: &str = "rows";
/// Values from this many bytes on are separated, in workloads with large ones.
const SEPARATE_FROM_BYTES: u32 = 1 << 10;

struct FoldDb {
    kind: Kind,
    store: Store,
    table: BytesTable,
    durability: folddb::Durability,
}

fn open(setup: &Setup, kind: Kind) -> Result<Box<dyn Rival>> {
    let durability = match setup.durability {
        Durability::Process => folddb::Durability::Process,
        Durability::Sync => folddb::Durability::Sync,
    };
    let path = setup.dir.join("store.folddb");
    let options = Options::default().memory_bytes(setup.memory_bytes as usize).durability(durability);
    let options = options.tuning(|t| t.lock_in_memory(kind == Kind::Locked));
    let options = match setup.meaning {
        Meaning::Indexed(count) => (0..count).fold(options, with_terms),
        _ => options,
    };
    let store = if path.exists() { Store::open(&path, options)? } else { Store::create(&path, options)? };
    if kind != Kind::Sorted && setup.meaning != Meaning::Objects {
        return Err(anyhow!("a hashed table takes part where values are put and asked for by id"));
    }
    let table = match setup.meaning {
        Meaning::Objects if kind != Kind::Sorted => {
            store.table(TABLE, Rules::hashed::<Vec<u8>, Vec<u8>>())?.as_bytes().clone()
        }
        Meaning::Numbers => store.table(TABLE, Rules::sorted::<u64, u64>())?.as_bytes().clone(),
        Meaning::Bytes => store.table(TABLE, Rules::sorted::<u64, Vec<u8>>())?.as_bytes().clone(),
        Meaning::Objects => {
            let rules = Rules::sorted::<Vec<u8>, Vec<u8>>().separate(SEPARATE_FROM_BYTES);
            store.table(TABLE, rules)?.as_bytes().clone()
        }
        Meaning::Indexed(count) => {
            let rules = Rules::sorted::<u64, Vec<u8>>();
            let rules =
                (0..count).fold(rules, |rules, index| rules.index(&format!("by{index}"), &terms_of(index)));
            store.table(TABLE, rules)?.as_bytes().clone()
        }
        Meaning::Sum => {
            store.table(TABLE, Rules::sorted::<String, u64>().fold("sum:u64"))?.as_bytes().clone()
        }
        Meaning::Append => {
            store.table(TABLE, Rules::sorted::<String, Vec<u8>>().fold("append"))?.as_bytes().clone()
        }
    };
    Ok(Box::new(FoldDb { kind, store, table: table.with_durability(durability), durability }))
}

/// The rule of an index; [`with_terms`] registers its function.
fn terms_of(index: u8) -> String {
    format!("custom:number{index}@1")
}

/// Registers the function of an index: its term is the number of four bytes at place `index` in a
/// value.
fn with_terms(options: Options, index: u8) -> Options {
    let at = usize::from(index) * 4;
    options.custom_terms(&format!("number{index}"), 1, move |_, value, terms| {
        if let Some(number) = value.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
            terms.push(&Element::Int(i128::from(u32::from_le_bytes(*number))));
        }
    })
}

impl Rival for FoldDb {
    fn is_ordered(&self) -> bool {
        self.kind == Kind::Sorted
    }

    fn keeps_indexes(&self) -> bool {
        true
    }

    fn find(&self, term: u32) -> Result<u64> {
        let keys = self.table.find("by0")?.term(i64::from(term)).keys();
        keys.map(|key| Ok(key.map(|_| 1)?)).sum()
    }

    fn writer(&self) -> Result<Box<dyn Writer + '_>> {
        Ok(Box::new(FoldDbWriter {
            table: &self.table,
            batch: self.store.batch(),
            durability: self.durability,
        }))
    }

    fn reader(&self, _: Sight) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(FoldDbReader { table: &self.table }))
    }

    fn settle(&self) -> Result<()> {
        Ok(self.store.settle()?)
    }

    fn optimize(&self) -> Result<bool> {
        if self.kind == Kind::Sorted {
            self.store.bytes_table(TABLE)?.compact()?;
        }
        Ok(self.kind == Kind::Sorted)
    }

    fn close(self: Box<Self>) -> Result<()> {
        drop(self.table);
        Ok(self.store.close()?)
    }
}

struct FoldDbWriter<'a> {
    table: &'a BytesTable,
    batch: Batch,
    durability: folddb::Durability,
}

fn parts(op: Op<'_>) -> (WriteOp, &[u8], &[u8]) {
    match op {
        Op::Put { key, value } => (WriteOp::Put, key, value),
        Op::Fold { key, operand } => (WriteOp::Fold, key, operand),
        Op::Delete { key } => (WriteOp::Delete, key, &[]),
    }
}

impl Writer for FoldDbWriter<'_> {
    fn apply(&mut self, op: Op<'_>) -> Result<()> {
        let (op, key, value) = parts(op);
        self.table.write(op, key, value)?;
        Ok(())
    }

    fn collect(&mut self, op: Op<'_>) -> Result<()> {
        let (op, key, value) = parts(op);
        self.batch.write(self.table, op, key, value);
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.batch.commit(self.durability)?;
        Ok(())
    }
}

struct FoldDbReader<'a> {
    table: &'a BytesTable,
}

impl Reader for FoldDbReader<'_> {
    fn get(&mut self, key: &[u8], take: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        Ok(self.table.get_with(key, take)?)
    }

    fn size_bytes(&mut self, key: &[u8]) -> Result<Option<u64>> {
        Ok(self.table.head(key)?.map(|head| head.size_bytes))
    }

    fn scan(&mut self, from: Option<&[u8]>, rows_max: u64, take: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let mut scan = self.table.scan();
        if let Some(key) = from {
            scan = scan.from(key);
        }
        if rows_max != u64::MAX {
            scan = scan.limit(rows_max as usize);
        }
        let mut rows = scan.rows()?;
        while let Some((key, value)) = rows.next_row()? {
            take(key, value);
        }
        Ok(())
    }
}
