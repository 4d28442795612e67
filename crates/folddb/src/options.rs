//! The settings of a store: those of every day, and those that tune.
//!
//! Each says its unit, its default and when to change it. The engine's own struct stays inside, so
//! that what is set here can change its form there.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use folddb_engine::events::Event;
use folddb_engine::options::{BackgroundWork, Durability, Options as EngineOptions};
use folddb_host::AppendMode;
use folddb_rules::{Fold, Terms, order::CustomOrder};

use crate::shared::Shared;

/// The settings of a store. They are not stored: each opening chooses them.
#[derive(Clone, Default)]
#[must_use = "settings do nothing until a store is opened with them"]
pub struct Options {
    pub(crate) engine: EngineOptions,
}

/// Settings for those who have measured: see [`Options::tuning`].
#[derive(Clone)]
#[must_use = "settings do nothing until a store is opened with them"]
pub struct Tuning {
    engine: EngineOptions,
}

impl Options {
    /// Sets what is rarely worth setting: how the log, runs, merges, indexes and caches are cut.
    ///
    /// ```
    /// let options = folddb::Options::default()
    ///     .memory_bytes(256 << 20)
    ///     .tuning(|tuning| tuning.merge_factor(16).open_files_max(1024));
    /// # drop(options);
    /// ```
    pub fn tuning(self, tune: impl FnOnce(Tuning) -> Tuning) -> Options {
        Options { engine: tune(Tuning { engine: self.engine }).engine }
    }

    /// Memory for memtables, caches and merges together, in bytes. Default 64 MiB, at least 4 MiB.
    /// More makes merges rarer and reads warmer. What the process needs besides is promised, and
    /// measured, in docs/LIMITS.md.
    pub fn memory_bytes(self, bytes: usize) -> Options {
        Options { engine: self.engine.memory_bytes(bytes) }
    }

    /// Shares memory, cache, background threads and the limit on what these write with other stores
    /// of this process that are opened with the same [`Shared`]. Default none: the store has each
    /// of them alone. `memory_bytes` bounds what this store has of the memory for memtables, and
    /// `open_files_max` does not count: a `Shared` has 256 open files. A store with
    /// [`BackgroundWork::Manual`] shares memory and cache, and its caller flushes.
    pub fn shared(self, shared: &Shared) -> Options {
        Options { engine: self.engine.shared(shared.engine.clone()) }
    }

    /// The durability of commits that do not say their own. Default [`Durability::Process`].
    pub fn durability(self, durability: Durability) -> Options {
        Options { engine: self.engine.durability(durability) }
    }

    /// A bound on what the files of the store take on disk together, in bytes, which is never
    /// passed. Default none. Writes are refused with `ErrorKind::NoSpace` in time for deletes,
    /// flushes and merges to find a way back; how much that keeps, and the least budget, stand in
    /// docs/LIMITS.md.
    pub fn disk_bytes_max(self, bytes: Option<u64>) -> Options {
        Options { engine: self.engine.disk_bytes_max(bytes) }
    }

    /// Free space of the file system below which writes other than deletes are refused, in bytes.
    /// Default 64 MiB, which merges need to work their way out of a full disk.
    pub fn disk_reserve_bytes(self, bytes: u64) -> Options {
        Options { engine: self.engine.disk_reserve_bytes(bytes) }
    }

    /// How old a snapshot or a transaction may become. Default as old as it likes. Reading at an
    /// older one, and committing one that has read, is `ErrorKind::SnapshotTooOld`; it keeps
    /// nothing any more. A scan of a sorted table that is under way goes on to its end; one of a
    /// hashed table ends with that error. Work that needs no snapshot of yours does not end for its
    /// age: scans without one, dumps, backups, the rows that a feed begins with.
    pub fn snapshot_age_max(self, age: Option<Duration>) -> Options {
        Options { engine: self.engine.snapshot_age_max(age) }
    }

    /// Deletes in runs that are older than this are merged with all that they delete, so that it is
    /// gone from the runs, whatever that merge costs: by so much later, about, and by what the
    /// merge takes. Default none: deletes meet what they delete when it is worth it. Ages are known
    /// of what is written while this is set. What is separated goes with its segment, when reclaim
    /// comes to that; entries of indexes when they are cleaned, and logs that feeds or tables keep
    /// stay. It says nothing of deletes of ranges, of what a snapshot still sees, of tables that
    /// keep their past, and of memtables: what lies in these is on the disk in the log only, until
    /// they are flushed.
    pub fn deletes_age_max(self, age: Option<Duration>) -> Options {
        Options { engine: self.engine.deletes_age_max(age) }
    }

    /// Who does the work in the background. Default [`BackgroundWork::Threads`].
    pub fn background(self, background: BackgroundWork) -> Options {
        Options { engine: self.engine.background(background) }
    }

    /// Calls this with what the store does and meets: flushes, merges, reclaims, writers that
    /// waited, and poison. See [`Event`].
    ///
    /// A thread of the store calls it soon after, with one event at a time and no lock held: it may
    /// read and write the store, but not close it. While it runs merges wait. At most 1,024 events
    /// wait for it; of those beyond only the number is kept, [`Event::Missed`]. With
    /// [`BackgroundWork::Manual`] it is called within the steps that the caller takes. A store that
    /// is opened for reading has no events. A panic of the listener ends that one call.
    ///
    /// ```
    /// use folddb::{Event, Options};
    ///
    /// let options = Options::default().on_event(|event| match event {
    ///     Event::Stall(stall) => eprintln!("a writer waited {:?}: {:?}", stall.took, stall.cause),
    ///     Event::Poison(poison) => eprintln!("the store writes no more: {}", poison.message),
    ///     _ => (),
    /// });
    /// # drop(options);
    /// ```
    pub fn on_event(self, listener: impl Fn(&Event) + Send + Sync + 'static) -> Options {
        Options { engine: self.engine.on_event(listener) }
    }

    /// Makes a custom fold known, so that tables which name it can be opened.
    pub fn custom_fold(self, fold: Arc<dyn Fold>) -> Options {
        Options { engine: self.engine.custom_fold(fold) }
    }

    /// Makes a custom key order known, so that tables which name it can be opened.
    pub fn custom_order(self, order: Arc<dyn CustomOrder>) -> Options {
        Options { engine: self.engine.custom_order(order) }
    }

    /// Makes a named predicate known, for the delete and short-circuit rules of tables.
    pub fn custom_predicate(
        self,
        name: &str,
        predicate: impl Fn(&[u8], &[u8]) -> bool + Send + Sync + 'static,
    ) -> Options {
        Options { engine: self.engine.custom_predicate(name, predicate) }
    }

    /// Makes a function of yours that takes heads out of values known by this name
    /// (`HeadRule::Named`).
    pub fn custom_head(
        self,
        name: &str,
        take: impl Fn(&[u8], &[u8], &mut Vec<u8>) + Send + Sync + 'static,
    ) -> Options {
        Options { engine: self.engine.custom_head(name, take) }
    }

    /// Makes a function of yours that takes terms out of keys and values known by this name and
    /// version (`TermRule::Custom`). It gives the same terms whenever it is asked.
    pub fn custom_terms(
        self,
        name: &str,
        version: u32,
        take: impl Fn(&[u8], &[u8], &mut Terms) + Send + Sync + 'static,
    ) -> Options {
        Options { engine: self.engine.custom_terms(name, version, take) }
    }

    /// The world that the store lives in. Default the operating system; tests bring a simulated
    /// one.
    #[cfg(feature = "testing")]
    pub fn host(self, host: folddb_host::Host) -> Options {
        Options { engine: self.engine.host(host) }
    }
}

impl Tuning {
    /// How many runs of similar size are merged into one. Default 8, from 2 to 64. More makes
    /// writing cheaper and reading dearer.
    pub fn merge_factor(self, runs: usize) -> Tuning {
        Tuning { engine: self.engine.merge_factor(runs) }
    }

    /// Size at which a file of a run is closed and the next begun, in bytes. Default 32 MiB.
    /// Smaller needs less temporary space while merging and more files.
    pub fn part_bytes(self, bytes: u64) -> Tuning {
        Tuning { engine: self.engine.part_bytes(bytes) }
    }

    /// How many files of runs may be open at once. Default 256, at least 8. Lower it where
    /// descriptors are scarce.
    pub fn open_files_max(self, files: usize) -> Tuning {
        Tuning { engine: self.engine.open_files_max(files) }
    }

    /// Memory for the index of each hashed table, in bytes. Default none: all of it stays in
    /// memory, some 14 bytes a key. What does not fit is let go of once it is saved, and read again
    /// when it is asked for.
    pub fn index_bytes_max(self, bytes: Option<u64>) -> Tuning {
        Tuning { engine: self.engine.index_bytes_max(bytes) }
    }

    /// Asks the system not to swap the indexes of hashed tables out. Default false. What it
    /// refuses, by its limit on locked memory, is held all the same.
    pub fn lock_in_memory(self, lock: bool) -> Tuning {
        Tuning { engine: self.engine.lock_in_memory(lock) }
    }

    /// Whether the log is appended to in shared memory maps. Default true. Take false on file
    /// systems where these are unsafe (some network file systems): each append is a system call
    /// then.
    pub fn mapped_log(self, mapped: bool) -> Tuning {
        let mode = if mapped { AppendMode::Mapped } else { AppendMode::Written };
        Tuning { engine: self.engine.append_mode(mode) }
    }

    /// Longest segment of the journal, in bytes; segments begin with 128 KiB and grow. No batch can
    /// be larger. Default 64 MiB, at least 1 MiB. For tests and tiny disks.
    pub fn segment_bytes(self, bytes: u64) -> Tuning {
        Tuning { engine: self.engine.segment_bytes(bytes) }
    }

    /// Longest segment of the value log, in bytes. Default four of the log's, or a sixteenth of
    /// `disk_bytes_max` where that is less; at least 8 KiB. For tests and tiny disks.
    pub fn value_segment_bytes(self, bytes: u64) -> Tuning {
        Tuning { engine: self.engine.value_segment_bytes(bytes) }
    }

    /// In pieces of how many bytes streamed values lie. Default 4 MiB, or a sixteenth of
    /// `memory_bytes` where that is less; at least 1 KiB, at most 16 MiB. Each writer holds two,
    /// each reader one; a writer to a hashed table up to eight.
    pub fn stream_piece_bytes(self, bytes: usize) -> Tuning {
        Tuning { engine: self.engine.stream_piece_bytes(bytes) }
    }

    /// Whether separated values are read past the page cache (`O_DIRECT`), where the file system
    /// can. Default false. For stores much larger than memory whose values are each read once in a
    /// long while: they push nothing else out of memory then. Values that are read again are read
    /// from the disk again.
    pub fn values_direct(self, direct: bool) -> Tuning {
        Tuning { engine: self.engine.values_direct(direct) }
    }

    /// How much of the value log may be dead: when its full files take more than this many times
    /// what is alive in them, background work copies what is alive out of the worst of them.
    /// Default 1.4, at least 1.05. Less saves space and copies more: about as much as is written at
    /// 1.4, twice as much at 1.2, where keys are overwritten uniformly.
    pub fn value_space_max(self, times: f64) -> Tuning {
        Tuning { engine: self.engine.value_space_max(times) }
    }

    /// How old a snapshot becomes before it keeps files of its own, and merges no longer keep
    /// versions for it. Default 60 s. Sooner makes merges cheaper where many keys are overwritten
    /// meanwhile, and takes the space of files that are merged away meanwhile. Hashed tables keep
    /// what it sees in memory for as long as it lives. Memtables are flushed for it, at most twice
    /// in this time. A transaction keeps no files: merges keep versions for it to its end.
    pub fn snapshot_files_after(self, age: Duration) -> Tuning {
        Tuning { engine: self.engine.snapshot_files_after(age) }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.engine.fmt(f)
    }
}

impl fmt::Debug for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.engine.fmt(f)
    }
}
