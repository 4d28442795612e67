//! What a store must be able to do to take part: writes, reads and background work. The interface
//! is as thin as possible, so that the store itself is measured. A file for each store in `rivals/`
//! implements it; the workloads know nothing else.

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
    /// It does not occur: keys of 8 bytes, values with this many indexes, each by one of the first
    /// numbers of four bytes in the value.
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

    /// Sets `value` to the fold of the value before (`None` for none) and an operand: for stores
    /// that read, modify and write.
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

/// A little-endian number. Anything that is not 8 bytes long counts as 0, and the checksum will
/// show it.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map(u64::from_le_bytes).unwrap_or(0)
}

/// The settings with which a store is opened.
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
    /// A writer. If the store reads, modifies and writes, no other writer may fold at the same
    /// time.
    fn writer(&self) -> Result<Box<dyn Writer + '_>>;

    fn reader(&self, sight: Sight) -> Result<Box<dyn Reader + '_>>;

    /// Returns when everything is written to files and no background work is due.
    fn settle(&self) -> Result<()>;

    /// Makes reads as fast as the store can, by its own means. False if it has none.
    fn optimize(&self) -> Result<bool> {
        Ok(false)
    }

    /// Whether scans go in the order of the keys.
    fn is_ordered(&self) -> bool {
        true
    }

    /// Whether it keeps the indexes of [`Meaning::Indexed`] itself. Otherwise the program does
    /// that, and reads before it writes.
    fn keeps_indexes(&self) -> bool {
        false
    }

    /// How many records its own index 0 finds by a term.
    fn find(&self, term: u32) -> Result<u64> {
        let _ = term;
        Ok(0)
    }

    /// Closes the store.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Writes of one thread.
pub(crate) trait Writer {
    /// Commits one op, by the store's call for single writes.
    fn apply(&mut self, op: Op<'_>) -> Result<()>;

    /// Adds an op to the next batch.
    fn collect(&mut self, op: Op<'_>) -> Result<()>;

    /// Commits the batch.
    fn commit(&mut self) -> Result<()>;
}

/// Reads of one thread.
pub(crate) trait Reader {
    /// Passes the value of a key to `take`, or `None` if there is none.
    fn get(&mut self, key: &[u8], take: &mut dyn FnMut(Option<&[u8]>)) -> Result<()>;

    /// The length of a value, without reading it if the store has a way to do that.
    fn size_bytes(&mut self, key: &[u8]) -> Result<Option<u64>> {
        let mut size_bytes = None;
        self.get(key, &mut |found| size_bytes = found.map(|value| value.len() as u64))?;
        Ok(size_bytes)
    }

    /// Passes rows to `take`, in the order of keys, from a key on or all of them, at most
    /// `rows_max`.
    fn scan(&mut self, from: Option<&[u8]>, rows_max: u64, take: &mut dyn FnMut(&[u8], &[u8])) -> Result<()>;
}
