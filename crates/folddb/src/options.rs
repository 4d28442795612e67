//! The settings of a store: everyday ones, and tuning.
//!
//! Each states its unit, its default and when to change it. The engine's own struct stays internal,
//! so that its form can change.

pub(crate) mod shared;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use folddb_engine::events::Event;
use folddb_engine::options::{BackgroundWork, Durability, Options as EngineOptions};
use folddb_host::AppendMode;
use folddb_rules::{Fold, Terms, order::CustomOrder};

use crate::options::shared::Shared;

/// The settings of a store. They are not stored: each opening chooses them.
#[derive(Clone, Default)]
#[must_use = "settings do nothing until a store is opened with them"]
pub struct Options {
    pub(crate) engine: EngineOptions,
}

/// Settings to change only after measuring: see [`Options::tuning`].
#[derive(Clone)]
#[must_use = "settings do nothing until a store is opened with them"]
pub struct Tuning {
    engine: EngineOptions,
}

impl Options {
    /// Sets what rarely needs to be set: sizes and shares of the log, runs, merges, indexes and
    /// caches.
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
    /// More makes merges rarer and reads warmer. docs/LIMITS.md promises what else the process
    /// needs, as measured.
    pub fn memory_bytes(self, bytes: usize) -> Options {
        Options { engine: self.engine.memory_bytes(bytes) }
    }

    /// Shares memory, cache, background threads and the limit on what these write with other stores
    /// of this process that are opened with the same [`Shared`]. Default none: the store has its
    /// own. `memory_bytes` bounds this store's share for memtables, and `open_files_max` is
    /// ignored: a `Shared` has 256 open files. A store with [`BackgroundWork::Manual`] shares
    /// memory and cache, and its caller flushes.
    pub fn shared(self, shared: &Shared) -> Options {
        Options { engine: self.engine.shared(shared.engine.clone()) }
    }

    /// The durability of commits without their own. Default [`Durability::Process`].
    pub fn durability(self, durability: Durability) -> Options {
        Options { engine: self.engine.durability(durability) }
    }

    /// A strict bound on the disk space of all files of the store together, in bytes. Default none.
    /// Writes are refused with `ErrorKind::NoSpace` early enough for deletes, flushes and merges to
    /// free space; docs/LIMITS.md has the space that this reserves, and the least budget.
    pub fn disk_bytes_max(self, bytes: Option<u64>) -> Options {
        Options { engine: self.engine.disk_bytes_max(bytes) }
    }

    /// Free space of the file system below which writes other than deletes are refused, in bytes.
    /// Default 64 MiB, which merges need to recover from a full disk.
    pub fn disk_reserve_bytes(self, bytes: u64) -> Options {
        Options { engine: self.engine.disk_reserve_bytes(bytes) }
    }

    /// How old a snapshot or a transaction may become. Default: no limit. Reading at an older one,
    /// and committing one that has read, is `ErrorKind::SnapshotTooOld`; it no longer keeps
    /// anything. A running scan of a sorted table continues to its end; one of a hashed table ends
    /// with that error. Work without a snapshot of yours is not limited: scans without one, dumps,
    /// backups, the first rows of a feed.
    pub fn snapshot_age_max(self, age: Option<Duration>) -> Options {
        Options { engine: self.engine.snapshot_age_max(age) }
    }

    /// Deletes in runs that are older than this are merged with everything that they delete, which
    /// is then gone from the runs, at any cost of that merge: after about this time, plus that of
    /// the merge. Default none: deletes are merged when it is worth it. Ages are known only for
    /// writes made while this is set. Separated values are removed with their segment, by reclaim;
    /// entries of indexes when they are cleaned; logs that feeds or tables retain stay. It does not
    /// apply to range deletes, to what a snapshot still sees, to tables that keep their past, and
    /// to memtables, whose contents are on disk only in the log until they are flushed.
    pub fn deletes_age_max(self, age: Option<Duration>) -> Options {
        Options { engine: self.engine.deletes_age_max(age) }
    }

    /// Who does the work in the background. Default [`BackgroundWork::Threads`].
    pub fn background(self, background: BackgroundWork) -> Options {
        Options { engine: self.engine.background(background) }
    }

    /// How many threads merge. Default 1, at most 64. With more, several tables and several tiers
    /// are merged at the same time, and a large merge is cut by ranges of keys; its output is still
    /// installed file by file. Each further thread may take about as much memory and temporary
    /// space as the first, see docs/LIMITS.md. More than the processors that writers leave idle
    /// only take time from the writers. Stores that share their threads ([`Shared`]) have as many
    /// as the one that asks for the most, and each is merged by at most as many as it asks for
    /// itself. With [`BackgroundWork::Manual`] it is how many slices of a merge take turns.
    ///
    /// ```
    /// let options = folddb::Options::default().merge_threads(4);
    /// # drop(options);
    /// ```
    pub fn merge_threads(self, threads: usize) -> Options {
        Options { engine: self.engine.merge_threads(threads) }
    }

    /// Calls this with the events of the store: flushes, merges, reclaims, writers that waited, and
    /// poison. See [`Event`].
    ///
    /// A thread of the store calls it soon after, with one event at a time and no lock held: it may
    /// read and write the store, but not close it. Merges wait while it runs. At most 1,024 events
    /// wait for it; further ones are only counted, [`Event::Missed`]. With
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

    /// Registers a custom fold, so that tables with it can be opened.
    pub fn custom_fold(self, fold: Arc<dyn Fold>) -> Options {
        Options { engine: self.engine.custom_fold(fold) }
    }

    /// Registers a custom key order, so that tables with it can be opened.
    pub fn custom_order(self, order: Arc<dyn CustomOrder>) -> Options {
        Options { engine: self.engine.custom_order(order) }
    }

    /// Registers a named predicate, for the delete and short-circuit rules of tables.
    pub fn custom_predicate(
        self,
        name: &str,
        predicate: impl Fn(&[u8], &[u8]) -> bool + Send + Sync + 'static,
    ) -> Options {
        Options { engine: self.engine.custom_predicate(name, predicate) }
    }

    /// Registers your function that takes heads from values under this name (`HeadRule::Named`).
    pub fn custom_head(
        self,
        name: &str,
        take: impl Fn(&[u8], &[u8], &mut Vec<u8>) + Send + Sync + 'static,
    ) -> Options {
        Options { engine: self.engine.custom_head(name, take) }
    }

    /// Registers your function that takes terms from keys and values under this name and version
    /// (`TermRule::Custom`). It must always give the same terms.
    pub fn custom_terms(
        self,
        name: &str,
        version: u32,
        take: impl Fn(&[u8], &[u8], &mut Terms) + Send + Sync + 'static,
    ) -> Options {
        Options { engine: self.engine.custom_terms(name, version, take) }
    }

    /// Keeps the files of stores in memory instead of on the disk: for tests. Every call makes an
    /// empty file system of its own, which clones of these options share; it stays as long as one
    /// of them, or a store that was opened with them, does. All paths that calls with these options
    /// take are paths in it, those of backups and repairs too. A store there behaves and is limited
    /// as any other is; its bytes take memory besides `memory_bytes`, bounded by `disk_bytes_max`
    /// only. [`Store::in_memory`](crate::Store::in_memory) is shorter if nothing is opened twice.
    ///
    /// ```
    /// use folddb::{Options, Rules, Store};
    ///
    /// let options = Options::default().in_memory();
    /// let store = Store::create("counts.folddb", options.clone())?;
    /// store.table("counts", Rules::sorted::<String, u64>().fold("sum:u64"))?.fold("a", &1)?;
    /// store.close()?;
    ///
    /// let store = Store::open("counts.folddb", options)?; // as after a restart
    /// assert_eq!(store.open_table::<String, u64>("counts")?.get("a")?, Some(1));
    /// # Ok::<(), folddb::Error>(())
    /// ```
    pub fn in_memory(self) -> Options {
        Options { engine: self.engine.in_memory() }
    }

    /// The environment of the store. Default the operating system; tests use a simulated one, of
    /// the crate `folddb-host`, which may change with any version.
    #[cfg(feature = "testing")]
    pub fn host(self, host: folddb_host::Host) -> Options {
        Options { engine: self.engine.host(host) }
    }
}

impl Tuning {
    /// How many runs of similar size are merged into one. Default 8, from 2 to 64. More makes
    /// writes cheaper and reads more expensive.
    pub fn merge_factor(self, runs: usize) -> Tuning {
        Tuning { engine: self.engine.merge_factor(runs) }
    }

    /// By how many steps of nice the threads that flush and merge have a lower priority than the
    /// thread that opens the store, from 0 to 19, on Linux. Default 2: then a thread that reads now
    /// and then need not wait until they have used up a time slice, and nothing is slower on a
    /// machine that has time for them. Where other threads use all processors they get less, and a
    /// writer flat out waits for them: docs/decisions/0042 has measurements of 0 to 19. Of stores
    /// that share threads ([`Shared`]), the first decides.
    pub fn background_nice(self, steps: u8) -> Tuning {
        Tuning { engine: self.engine.background_nice(steps) }
    }

    /// Size at which a file of a run is closed and the next begun, in bytes. Default 32 MiB.
    /// Smaller needs less temporary space for merges, but more files.
    pub fn part_bytes(self, bytes: u64) -> Tuning {
        Tuning { engine: self.engine.part_bytes(bytes) }
    }

    /// About how many bytes of its inputs a slice of a merge has, however small the merge: for
    /// tests.
    #[cfg(feature = "testing")]
    pub fn slice_bytes(self, bytes: u64) -> Tuning {
        Tuning { engine: self.engine.slice_bytes(bytes) }
    }

    /// How many files of runs may be open at once. Default 256, at least 8. Lower it if descriptors
    /// are scarce.
    pub fn open_files_max(self, files: usize) -> Tuning {
        Tuning { engine: self.engine.open_files_max(files) }
    }

    /// Memory for the index of each hashed table, in bytes. Default none: all of it stays in
    /// memory, some 14 bytes a key. Shards that do not fit are evicted once they are saved, and
    /// read again when needed.
    pub fn index_bytes_max(self, bytes: Option<u64>) -> Tuning {
        Tuning { engine: self.engine.index_bytes_max(bytes) }
    }

    /// Asks the system not to swap the indexes of hashed tables out. Default false. Memory that it
    /// refuses to lock, by its limit on locked memory, is used anyway.
    pub fn lock_in_memory(self, lock: bool) -> Tuning {
        Tuning { engine: self.engine.lock_in_memory(lock) }
    }

    /// Whether the log is appended to in shared memory maps. Default true. Use false on file
    /// systems where these are unsafe (some network file systems): then each append is a system
    /// call.
    pub fn mapped_log(self, mapped: bool) -> Tuning {
        let mode = if mapped { AppendMode::Mapped } else { AppendMode::Written };
        Tuning { engine: self.engine.append_mode(mode) }
    }

    /// Longest segment of the log, in bytes; segments begin with 128 KiB and grow, up to a quarter
    /// of the memory. No batch can be larger. Default 64 MiB, at least 1 MiB. For tests and tiny
    /// disks.
    pub fn segment_bytes(self, bytes: u64) -> Tuning {
        Tuning { engine: self.engine.segment_bytes(bytes) }
    }

    /// Longest segment of the value log, in bytes. Default four times that of the log, or a
    /// sixteenth of `disk_bytes_max` if that is less; at least 8 KiB. For tests and tiny disks.
    pub fn value_segment_bytes(self, bytes: u64) -> Tuning {
        Tuning { engine: self.engine.value_segment_bytes(bytes) }
    }

    /// The length of the pieces of streamed values, in bytes. Default 4 MiB, or a sixteenth of
    /// `memory_bytes` if that is less; at least 1 KiB, at most 16 MiB. Each writer holds two, each
    /// reader one; a writer to a hashed table up to eight.
    pub fn stream_piece_bytes(self, bytes: usize) -> Tuning {
        Tuning { engine: self.engine.stream_piece_bytes(bytes) }
    }

    /// Whether reads of separated values bypass the page cache (`O_DIRECT`), if the file system
    /// supports it. Default false. For stores much larger than memory whose values are rarely read:
    /// then they evict nothing else from memory. Values that are read again are read from the disk
    /// again.
    pub fn values_direct(self, direct: bool) -> Tuning {
        Tuning { engine: self.engine.values_direct(direct) }
    }

    /// How much of the value log may be dead: when its full files exceed this many times their live
    /// bytes, background work copies the live values out of the worst of them. Default 1.4, at
    /// least 1.05. Less saves space and copies more: about as much as is written at 1.4, twice as
    /// much at 1.2, if keys are overwritten uniformly.
    pub fn value_space_max(self, times: f64) -> Tuning {
        Tuning { engine: self.engine.value_space_max(times) }
    }

    /// The age at which a snapshot pins files, and merges no longer keep versions for it. Default
    /// 60 s. Less makes merges cheaper if many keys are overwritten during snapshots, and costs the
    /// space of files that are merged away. Hashed tables keep what it sees in memory while it
    /// lives. Memtables are flushed for it, at most twice in this time. A transaction pins no
    /// files: merges keep versions for it to its end.
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
