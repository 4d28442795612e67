//! What several stores of one process share: memory, cache, background threads, and a limit on what
//! these write.

use std::fmt;

use folddb_engine::shared::Shared as EngineShared;

/// Open files of idle runs, over all stores.
const OPEN_FILES_MAX: usize = 256;

/// A budget of memory, a cache, background threads, and a limit on what they write, for all stores
/// that are opened with it ([`Options::shared`](crate::Options::shared)). A store that is
/// opened without it has its own.
///
/// Cheap to clone. A closed store releases its share; the threads end with the last store. A
/// poisoned store, or one with a full disk, does not stop others.
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
    /// A budget of this many bytes for memtables, the cache and merges of all stores, at least 4
    /// MiB. A store uses at most its own `memory_bytes` of it for memtables. docs/LIMITS.md
    /// promises what else a process needs, as measured.
    pub fn new(memory_bytes: usize) -> Shared {
        Shared { engine: EngineShared::new(memory_bytes, OPEN_FILES_MAX) }
    }

    /// Limits the writes of background work of all stores, in bytes a second; none, the default, is
    /// unlimited. Merges and reclaim wait; flushes count but never wait, since memory waits for
    /// them. It applies from now on, over any time, with at most one second's worth more. If merges
    /// fall behind because of it, writers are slowed down. The log and calls of the user
    /// (`compact`, `reclaim`) are not limited, but what these write to runs and files of values
    /// counts.
    pub fn set_background_bytes_per_s(&self, bytes: Option<u64>) {
        self.engine.throttle.set(bytes);
    }

    /// How many stores share it now.
    pub fn stores(&self) -> usize {
        self.engine.memory.tenants()
    }

    /// Bytes of the budget, as given to [`Shared::new`].
    pub fn memory_bytes(&self) -> usize {
        self.engine.memory.plan().memory_bytes()
    }

    /// Bytes that memtables and the cache of all stores use now.
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
