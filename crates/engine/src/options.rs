//! Every setting of a store, as the engine reads it. The purpose, unit and default of each are
//! described where callers set it: `folddb::Options`, `folddb::Tuning`.

use std::sync::Arc;
use std::time::Duration;

use folddb_base::limits::RANGE_DELETES_PER_FLUSH;
use folddb_base::pointer::VALUE_ALIGN;
use folddb_base::{Error, ErrorKind, Result};
use folddb_hash::IndexOptions;
use folddb_host::{AppendMode, Host, priority};
use folddb_layout::hash_checkpoint::UNIT_BITS;
use folddb_rules::table_rules::Custom;

use crate::events::{Event, Listener};
use crate::shared::Shared;
use crate::shared::memory_plan::{MEMORY_BYTES_MIN, MemoryPlan};

/// When a commit is acknowledged. Every commit may choose; the store's option is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// In memory. The last 10 ms or 256 KiB may be lost when the process dies.
    Buffered,
    /// Passed to the operating system: survives the death of the process, not a power cut.
    #[default]
    Process,
    /// On the disk: survives a power cut. Commits of several threads share one sync.
    Sync,
}

/// Most bytes of a value segment, except for one that holds a longer record.
const VALUE_SEGMENT_BYTES_MAX: u64 = VALUE_ALIGN << UNIT_BITS;

/// The most threads that merge.
const MERGE_THREADS_MAX: usize = 64;

/// Who does the work in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum BackgroundWork {
    /// Threads of the store: one keeps the log ready, one flushes, one merges, or as many as
    /// `merge_threads` says.
    #[default]
    Threads,
    /// The caller, step by step, by `Store::background_step`: for tests that must be repeatable.
    Manual,
}

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// For writing, by one process at a time.
    Primary,
    /// For reading, under a lock that readers share: nothing on disk changes.
    ReadOnly,
    /// For reading, without a lock, while another process may write.
    Secondary,
}

/// The settings of a store. They are not stored: each opening chooses them.
#[derive(Clone)]
pub struct Options {
    pub(crate) memory_bytes: usize,
    #[doc(hidden)]
    pub durability: Durability,
    #[doc(hidden)]
    pub merge_factor: usize,
    pub(crate) background_nice: u8,
    #[doc(hidden)]
    pub merge_threads: usize,
    #[doc(hidden)]
    pub part_bytes: u64,
    pub(crate) slice_bytes: Option<u64>,
    #[doc(hidden)]
    pub disk_bytes_max: Option<u64>,
    #[doc(hidden)]
    pub disk_reserve_bytes: u64,
    pub(crate) open_files_max: usize,
    pub(crate) index_bytes_max: Option<u64>,
    pub(crate) lock_in_memory: bool,
    pub(crate) append_mode: AppendMode,
    #[doc(hidden)]
    pub segment_bytes: u64,
    pub(crate) value_segment_bytes: Option<u64>,
    pub(crate) values_direct: bool,
    pub(crate) stream_piece_bytes: Option<usize>,
    pub(crate) value_space_max: f64,
    pub(crate) snapshot_files_after: Duration,
    pub(crate) snapshot_age_max: Option<Duration>,
    pub(crate) deletes_age_max: Option<Duration>,
    #[doc(hidden)]
    pub read_only: bool,
    pub(crate) secondary: bool,
    /// The underlying host of a store that was opened as a secondary.
    #[doc(hidden)]
    pub underlying: Option<Host>,
    pub(crate) background: BackgroundWork,
    pub(crate) listener: Option<Listener>,
    pub(crate) shared: Option<Shared>,
    #[doc(hidden)]
    pub custom: Custom,
    #[doc(hidden)]
    pub host: Host,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            memory_bytes: 64 << 20,
            durability: Durability::Process,
            merge_factor: 8,
            background_nice: 2,
            merge_threads: 1,
            part_bytes: 32 << 20,
            slice_bytes: None,
            disk_bytes_max: None,
            disk_reserve_bytes: 64 << 20,
            open_files_max: 256,
            index_bytes_max: None,
            lock_in_memory: false,
            append_mode: AppendMode::Mapped,
            segment_bytes: folddb_base::limits::SEGMENT_BYTES,
            value_segment_bytes: None,
            values_direct: false,
            stream_piece_bytes: None,
            value_space_max: 1.4,
            snapshot_files_after: Duration::from_secs(60),
            snapshot_age_max: None,
            deletes_age_max: None,
            read_only: false,
            secondary: false,
            underlying: None,
            background: BackgroundWork::Threads,
            listener: None,
            shared: None,
            custom: Custom::default(),
            host: Host::real(),
        }
    }
}

impl Options {
    pub fn memory_bytes(mut self, bytes: usize) -> Options {
        self.memory_bytes = bytes.max(MEMORY_BYTES_MIN);
        self
    }

    pub fn durability(mut self, durability: Durability) -> Options {
        self.durability = durability;
        self
    }

    pub fn merge_factor(mut self, runs: usize) -> Options {
        self.merge_factor = runs.clamp(2, 64);
        self
    }

    pub fn background_nice(mut self, steps: u8) -> Options {
        self.background_nice = steps.min(priority::NICE_MAX);
        self
    }

    pub fn merge_threads(mut self, threads: usize) -> Options {
        self.merge_threads = threads.clamp(1, MERGE_THREADS_MAX);
        self
    }

    /// About how many bytes of its inputs a slice of a merge has; none for about what makes a part.
    pub fn slice_bytes(mut self, bytes: u64) -> Options {
        self.slice_bytes = Some(bytes);
        self
    }

    pub fn part_bytes(mut self, bytes: u64) -> Options {
        self.part_bytes = bytes.max(64 << 10);
        self
    }

    pub fn disk_bytes_max(mut self, bytes: Option<u64>) -> Options {
        self.disk_bytes_max = bytes;
        self
    }

    pub fn disk_reserve_bytes(mut self, bytes: u64) -> Options {
        self.disk_reserve_bytes = bytes;
        self
    }

    pub fn open_files_max(mut self, files: usize) -> Options {
        self.open_files_max = files.max(8);
        self
    }

    pub fn index_bytes_max(mut self, bytes: Option<u64>) -> Options {
        self.index_bytes_max = bytes;
        self
    }

    pub fn lock_in_memory(mut self, lock: bool) -> Options {
        self.lock_in_memory = lock;
        self
    }

    pub fn append_mode(mut self, mode: AppendMode) -> Options {
        self.append_mode = mode;
        self
    }

    pub fn segment_bytes(mut self, bytes: u64) -> Options {
        self.segment_bytes = bytes.max(1 << 20);
        self
    }

    pub fn value_segment_bytes(mut self, bytes: u64) -> Options {
        self.value_segment_bytes = Some(bytes.max(8 << 10));
        self
    }

    pub fn stream_piece_bytes(mut self, bytes: usize) -> Options {
        self.stream_piece_bytes = Some(bytes.clamp(1 << 10, folddb_base::limits::VALUE_BYTES_MAX));
        self
    }

    pub fn values_direct(mut self, direct: bool) -> Options {
        self.values_direct = direct;
        self
    }

    pub fn value_space_max(mut self, times: f64) -> Options {
        self.value_space_max = if times.is_nan() { 1.4 } else { times.max(1.05) };
        self
    }

    pub fn snapshot_files_after(mut self, age: Duration) -> Options {
        self.snapshot_files_after = age;
        self
    }

    pub fn snapshot_age_max(mut self, age: Option<Duration>) -> Options {
        self.snapshot_age_max = age;
        self
    }

    pub fn deletes_age_max(mut self, age: Option<Duration>) -> Options {
        self.deletes_age_max = age;
        self
    }

    /// Whether the store is opened for writing, for reading, or for reading as a secondary.
    #[doc(hidden)]
    pub fn opened_as(mut self, mode: OpenMode) -> Options {
        self.read_only = mode != OpenMode::Primary;
        self.secondary = mode == OpenMode::Secondary;
        self
    }

    pub fn background(mut self, background: BackgroundWork) -> Options {
        self.background = background;
        self
    }

    pub fn on_event(mut self, listener: impl Fn(&Event) + Send + Sync + 'static) -> Options {
        self.listener = Some(Listener(Arc::new(listener)));
        self
    }

    pub fn shared(mut self, shared: Shared) -> Options {
        self.shared = Some(shared);
        self
    }

    pub fn custom_fold(mut self, fold: Arc<dyn folddb_rules::Fold>) -> Options {
        self.custom.add_fold(fold);
        self
    }

    pub fn custom_order(mut self, order: Arc<dyn folddb_rules::order::CustomOrder>) -> Options {
        self.custom.add_order(order);
        self
    }

    pub fn custom_predicate(
        mut self,
        name: &str,
        predicate: impl Fn(&[u8], &[u8]) -> bool + Send + Sync + 'static,
    ) -> Options {
        self.custom.add_predicate(name, Arc::new(predicate));
        self
    }

    pub fn custom_head(
        mut self,
        name: &str,
        take: impl Fn(&[u8], &[u8], &mut Vec<u8>) + Send + Sync + 'static,
    ) -> Options {
        self.custom.add_head(name, Arc::new(take));
        self
    }

    pub fn custom_terms(
        mut self,
        name: &str,
        version: u32,
        take: impl Fn(&[u8], &[u8], &mut folddb_rules::Terms) + Send + Sync + 'static,
    ) -> Options {
        self.custom.add_terms(name, version, Arc::new(take));
        self
    }

    pub fn host(mut self, host: Host) -> Options {
        self.host = host;
        self
    }

    /// The clock and chance stay those of the host.
    pub fn in_memory(mut self) -> Options {
        self.host.files = Host::in_memory().files;
        self
    }

    /// The length up to which segments of the log grow, in bytes: about what a few memtables hold
    /// that are flushed at their usual size.
    pub(crate) fn segment_bytes_grown(&self) -> u64 {
        (self.memory_bytes as u64 / 4).max(4 << 20).min(self.segment_bytes)
    }

    /// Longest segment of the value log, in bytes.
    pub(crate) fn values_segment_bytes(&self) -> u64 {
        let most = self.disk_bytes_max.map_or(u64::MAX, |max| (max / 16).max(1 << 20));
        let bytes =
            self.value_segment_bytes.unwrap_or_else(|| self.segment_bytes.saturating_mul(4).min(most));
        bytes.min(VALUE_SEGMENT_BYTES_MAX) // the slots of hashed tables reach no further
    }

    /// How many parts the output of merges may take before their inputs are removed: one for each
    /// input that a part takes in, and one for each slice that is begun and not installed.
    pub(crate) fn parts_of_merges(&self) -> u64 {
        let slices = if self.merge_threads > 1 { self.merge_threads + 1 } else { 0 };
        (self.merge_factor + 1 + slices) as u64
    }

    /// Whether the budget of the disk leaves room for merges in slices.
    pub(crate) fn has_space_for_slices(&self) -> bool {
        let needed = self.part_bytes.saturating_mul(self.parts_of_merges());
        self.disk_bytes_max.is_none_or(|max| needed <= max / 4)
    }

    /// Whether threads work for the store.
    pub(crate) fn has_threads(&self) -> bool {
        self.background == BackgroundWork::Threads && !self.read_only
    }

    /// How the log is appended to: stores that share their memory map less at a time.
    pub(crate) fn append_mode_now(&self) -> AppendMode {
        match self.append_mode {
            AppendMode::Mapped if self.shared.is_some() => AppendMode::MappedNarrow,
            mode => mode,
        }
    }

    /// How indexes of hashed tables are held.
    #[doc(hidden)]
    pub fn index(&self) -> IndexOptions {
        IndexOptions { lock_in_memory: self.lock_in_memory }
    }

    /// The length of the pieces of streamed values.
    pub(crate) fn stream_piece_bytes_now(&self) -> usize {
        self.stream_piece_bytes.unwrap_or_else(|| (self.memory_bytes / 16).clamp(64 << 10, 4 << 20))
    }

    /// How many value segments may be open for reading at once.
    #[doc(hidden)]
    pub fn value_files_max(&self) -> usize {
        (self.open_files_max / 4).max(4)
    }

    /// Fails if what it is to share with other stores is that of a process that forked this one.
    pub(crate) fn check_shared_here(&self) -> Result<()> {
        match &self.shared {
            Some(shared) if shared.mark.is_forked() => Err(Error::new(
                ErrorKind::Closed,
                "what stores share was made before this process was forked, which leaves its threads behind",
            )
            .advise("make another one in the child")),
            _ => Ok(()),
        }
    }

    /// What the store shares with others, or its own if it was given nothing.
    pub(crate) fn shared_or_own(&self) -> Shared {
        self.shared.clone().unwrap_or_else(|| Shared::new(self.memory_bytes, self.open_files_max))
    }

    /// How the memory of this store is divided.
    pub(crate) fn memory_plan(&self) -> MemoryPlan {
        MemoryPlan::of(self.memory_bytes)
    }

    /// All memtables together, sealed ones included, before writers wait.
    pub(crate) fn memtables_bytes_max(&self) -> usize {
        self.memory_plan().memtables_bytes_max()
    }

    /// How many range deletes seal an active memtable, regardless of its bytes.
    pub(crate) fn range_deletes_per_flush(&self) -> usize {
        (self.memtable_bytes() >> 14).clamp(16, RANGE_DELETES_PER_FLUSH)
    }

    /// How many range deletes that hide something are tolerated, even in the smallest table.
    pub(crate) fn range_deletes_min(&self) -> usize {
        4 * self.range_deletes_per_flush()
    }

    /// When an active memtable is sealed, in bytes.
    #[doc(hidden)]
    pub fn memtable_bytes(&self) -> usize {
        self.memory_plan().memtable_bytes()
    }

    /// How much memory a log may take when it is replayed into memory alone, as it is for reading:
    /// all except the cache. A writer with the same memory leaves no log that takes more: its
    /// sealed memtables take at most [`Options::memtables_bytes_max`], its active ones two thirds
    /// of that.
    pub(crate) fn replayed_bytes_max(&self) -> usize {
        self.memory_bytes - self.cache_bytes()
    }

    /// The memory budget with which a log that takes this much can be replayed into memory alone,
    /// with some to spare.
    pub(crate) fn memory_bytes_for_replayed(&self, replayed_bytes: u64) -> u64 {
        (replayed_bytes / 2).saturating_mul(3)
    }

    /// Blocks of runs kept in memory, as long as memtables may grow.
    #[doc(hidden)]
    pub fn cache_bytes(&self) -> usize {
        self.memory_plan().cache_bytes()
    }

    /// The same for a store that is opened for reading, whose memtables stay this large: at most
    /// twice as much. With everything that is left, the allocator's heaps of many threads exceeded
    /// what LIMITS promises.
    pub(crate) fn cache_bytes_beside(&self, memtables_bytes: usize) -> usize {
        let left = self.memory_plan().divided_bytes().saturating_sub(memtables_bytes);
        left.clamp(self.cache_bytes(), self.cache_bytes() * 2)
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("memory_bytes", &self.memory_bytes)
            .field("durability", &self.durability)
            .field("merge_factor", &self.merge_factor)
            .field("background_nice", &self.background_nice)
            .field("read_only", &self.read_only)
            .field("secondary", &self.secondary)
            .finish_non_exhaustive()
    }
}
