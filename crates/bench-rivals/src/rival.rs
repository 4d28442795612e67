//! What a store must be able to do to take part: writes, reads and background work, as thin as it
//! can be, so that what is measured is the store. A store's own file in `rivals/` implements it;
//! the workloads know nothing else.

use std::path::PathBuf;

use anyhow::Result;

/// When a commit counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Durability {
    /// The log is with the operating system at each commit, unsynced.
    Process,
    /// The log is on the disk at each commit.
    Sync,
}

impl Durability {
    /// Its name on the command line and in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Durability::Process => "process",
            Durability::Sync => "sync",
        }
    }
}

/// What [`Op::Fold`] means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// It does not occur: keys and values of 8 bytes.
    Numbers,
    /// It does not occur: keys of 8 bytes, values of any.
    Bytes,
    /// It does not occur: keys of any bytes, values of some kilobytes among them.
    Objects,
    /// It does not occur: keys of 8 bytes, values that this many indexes are of, by their first
    /// numbers of four bytes.
    Indexed(u8),
    /// Keys of text; the operand is added to the value, both little-endian numbers of 8 bytes.
    Sum,
    /// Keys of text; the operand is put after the value.
    Append,
}

#[cfg_attr(not(feature = "rocksdb"), allow(dead_code))] // only some rivals fold by themselves, and a build may have none
impl Meaning {
    /// True where folds occur.
    pub(crate) fn folds(self) -> bool {
        matches!(self, Meaning::Sum | Meaning::Append)
    }

    /// Makes `value` the fold of what it was (`None` for nothing) and an operand: for stores that
    /// read, modify and write.
    pub(crate) fn fold(self, before: Option<&[u8]>, operand: &[u8], value: &mut Vec<u8>) {
        value.clear();
        match self {
            Meaning::Sum => {
                let sum = number(before.unwrap_or_default()).wrapping_add(number(operand));
                value.extend_from_slice(&sum.to_le_bytes());
            }
            Meaning::Append => {
                value.extend_from_slice(before.unwrap_or_default());
                value.extend_from_slice(operand);
            }
            Meaning::Numbers | Meaning::Bytes | Meaning::Objects | Meaning::Indexed(_) => {
                value.extend_from_slice(operand)
            }
        }
    }
}

/// A little-endian number; what is no 8 bytes long counts as nothing, and the checksum will show
/// it.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map(u64::from_le_bytes).unwrap_or(0)
}

/// With what a store is opened.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// A directory for the store alone; it exists.
    pub(crate) dir: PathBuf,
    /// Memory for write buffers and caches together.
    pub(crate) memory_bytes: u64,
    pub(crate) durability: Durability,
    pub(crate) meaning: Meaning,
}

/// A write.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op<'a> {
    Put { key: &'a [u8], value: &'a [u8] },
    Fold { key: &'a [u8], operand: &'a [u8] },
    Delete { key: &'a [u8] },
}

/// What a reader must see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Nobody writes: one transaction or snapshot may serve all reads.
    Still,
    /// Each read sees all that was committed before it.
    Fresh,
}

/// An open store.
pub(crate) trait Rival: Send + Sync {
    /// A writer; where the store reads, modifies and writes, no other writer may fold at the same
    /// time.
    fn writer(&self) -> Result<Box<dyn Writer + '_>>;

    fn reader(&self, sight: Sight) -> Result<Box<dyn Reader + '_>>;

    /// Returns when all is written to files and no work in the background is due.
    fn settle(&self) -> Result<()>;

    /// Does what the store has for making reads as fast as they can be. False where it has nothing
    /// of the kind.
    fn optimize(&self) -> Result<bool> {
        Ok(false)
    }

    /// Whether scans go in the order of the keys.
    fn is_ordered(&self) -> bool {
        true
    }

    /// Whether it keeps the indexes of [`Meaning::Indexed`] by itself. Otherwise the program does,
    /// which reads before it writes.
    fn keeps_indexes(&self) -> bool {
        false
    }

    /// How many records its own index 0 finds by a term.
    fn find(&self, term: u32) -> Result<u64> {
        let _ = term;
        Ok(0)
    }

    /// Closes in good order.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Writes of one thread.
pub(crate) trait Writer {
    /// One op as a commit of its own, by the store's way for single writes.
    fn apply(&mut self, op: Op<'_>) -> Result<()>;

    /// Takes an op into the next batch.
    fn collect(&mut self, op: Op<'_>) -> Result<()>;

    /// Commits the batch.
    fn commit(&mut self) -> Result<()>;
}

/// Reads of one thread.
pub(crate) trait Reader {
    /// Hands out the value of a key, `None` where there is none.
    fn get(&mut self, key: &[u8], take: &mut dyn FnMut(Option<&[u8]>)) -> Result<()>;

    /// The length of a value: without reading it, where the store has a way.
    fn size_bytes(&mut self, key: &[u8]) -> Result<Option<u64>> {
        let mut size_bytes = None;
        self.get(key, &mut |found| size_bytes = found.map(|value| value.len() as u64))?;
        Ok(size_bytes)
    }

    /// Hands out rows in the order of keys, from a key on or all, up to a number of them.
    fn scan(&mut self, from: Option<&[u8]>, rows_max: u64, take: &mut dyn FnMut(&[u8], &[u8])) -> Result<()>;
}
