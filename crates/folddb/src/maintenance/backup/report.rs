//! Options and reports of backups.

use folddb_engine::seq::Seq;
use std::path::PathBuf;
use std::time::Duration;

/// How a backup is made.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct BackupOptions {
    pub(crate) copy: bool,
    pub(crate) keep: Option<usize>,
    pub(crate) check_all: bool,
}

impl BackupOptions {
    /// Copies parts instead of linking them, so that the backup shares no byte of the disk with the
    /// store. Default false.
    pub fn copy(mut self, copy: bool) -> BackupOptions {
        self.copy = copy;
        self
    }

    /// Afterwards removes all generations except the newest N, including the new one. Default: all
    /// stay.
    pub fn keep(mut self, generations: Option<usize>) -> BackupOptions {
        self.keep = generations;
        self
    }

    /// Reads and checks every record of the new generation, including linked files. Default false:
    /// only copied files.
    pub fn check_all(mut self, check_all: bool) -> BackupOptions {
        self.check_all = check_all;
        self
    }
}

/// How many files were added to a backup in one way, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileTotals {
    /// How many.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl FileTotals {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }
}

/// The result of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// The number of the generation.
    pub generation: u64,
    /// Its directory.
    pub path: PathBuf,
    /// The first seq that can be restored from it: if a table is hashed, the last.
    pub first_seq: Seq,
    /// The seq at which it is consistent: all batches up to here are completely in it, and none
    /// after.
    pub last_seq: Seq,
    /// Parts that are hard links to the store's files.
    pub linked: FileTotals,
    /// Parts that are hard links to copies in the previous generation.
    pub reused: FileTotals,
    /// Parts whose bytes were copied.
    pub copied: FileTotals,
    /// Segments of the log, which are always copied.
    pub log: FileTotals,
    /// Generations that were removed.
    pub removed: Vec<u64>,
    /// How long writers were blocked.
    pub writers_held: Duration,
}
