//! What several stores of one process share: memory, cache, background threads, and a limit on what
//! these write.

use std::fmt;

use folddb_engine::shared::Shared as EngineShared;

/// Open files of runs at rest, over all stores.
const OPEN_FILES_MAX: usize = 256;

/// A budget of memory, a cache, three background threads, and a limit on what they write, for all
/// stores that are opened with it ([`Options::shared`](crate::Options::shared)). A store that is
/// opened without has each of these alone.
///
/// Cheap to clone. A store that is closed gives back what it had; the threads end with the last.
/// One that is poisoned, or whose disk is full, stops no other.
///
/// ```
/// # use folddb::{Options, Rules, Shared, Store};
/// # let dir = tempfile::tempdir().unwrap();
/// let shared = Shared::new(64 << 20);
/// for city in ["Bonn", "Lyon", "Oslo"] {
///     let options = Options::default().memory_bytes(16 << 20).shared(&shared);
///     let store = Store::create(dir.path().join(city), options)?;
///     store.table("visits", Rules::sorted::<String, u64>().fold("sum:u64"))?.fold("/", &1)?;
///     assert_eq!(shared.stores(), 1);
/// } // each is closed here
/// assert_eq!((shared.stores(), shared.used_bytes()), (0, 0));
/// # Ok::<(), folddb::Error>(())
/// ```
#[derive(Clone)]
pub struct Shared {
    pub(crate) engine: EngineShared,
}

impl Shared {
    /// A budget of so many bytes for memtables, the cache and merges of all stores, at least 4 MiB.
    /// Of it a store has at most its own `memory_bytes` for memtables. What else a process needs is
    /// promised, and measured, in docs/LIMITS.md.
    pub fn new(memory_bytes: usize) -> Shared {
        Shared { engine: EngineShared::new(memory_bytes, OPEN_FILES_MAX) }
    }

    /// Sets what background work of all stores may write in a second, in bytes, or that it may
    /// write as fast as it can, which is the default. Merges, and what moves values, wait; flushes
    /// count and never wait, since memory waits for them. It holds from now on, over any time but
    /// for a second's worth more. Where merges fall behind for it, writers are slowed down. The log
    /// and what a caller does himself (`compact`, `reclaim`) is no background work; what these
    /// write in runs and files of values counts.
    pub fn set_background_bytes_per_s(&self, bytes: Option<u64>) {
        self.engine.throttle.set(bytes);
    }

    /// How many stores share it now.
    pub fn stores(&self) -> usize {
        self.engine.memory.tenants()
    }

    /// Bytes of the budget, [`Shared::new`] has set it.
    pub fn memory_bytes(&self) -> usize {
        self.engine.memory.plan().memory_bytes()
    }

    /// Bytes that memtables and the cache of all stores hold now.
    pub fn used_bytes(&self) -> u64 {
        let memtables = self.engine.memory.bytes();
        (memtables.active + memtables.sealed) as u64 + self.engine.cache.bytes()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("memory_bytes", &self.memory_bytes())
            .field("used_bytes", &self.used_bytes())
            .field("stores", &self.stores())
            .finish_non_exhaustive()
    }
}
