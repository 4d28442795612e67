//! How a budget of memory is divided.

/// Smallest budget, in bytes.
pub const MEMORY_BYTES_MIN: usize = 4 << 20;

/// A budget of memory, of one store or of several together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    memory_bytes: usize,
}

impl MemoryPlan {
    /// A budget of this many bytes, at least [`MEMORY_BYTES_MIN`].
    pub fn of(memory_bytes: usize) -> MemoryPlan {
        MemoryPlan { memory_bytes: memory_bytes.max(MEMORY_BYTES_MIN) }
    }

    /// All of it.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Memory for memtables and the cache. The rest is for merges, part writers, the log's windows
    /// and the allocator: nearly half of a small budget, 32 MiB of a large one, as measured over
    /// whole processes.
    pub fn divided_bytes(&self) -> usize {
        self.memory_bytes - (self.memory_bytes / 20 * 9).min(32 << 20)
    }

    /// All memtables together, sealed ones included, before writers wait: one fills, one is
    /// flushed, one waits.
    pub fn memtables_bytes_max(&self) -> usize {
        self.divided_bytes() / 3 * 2
    }

    /// When an active memtable is sealed, in bytes.
    pub fn memtable_bytes(&self) -> usize {
        self.memtables_bytes_max() / 3
    }

    /// What sealed memtables may hold before writers wait for a flush, in bytes: two memtables.
    pub fn sealed_bytes_max(&self) -> usize {
        self.memtables_bytes_max() - self.memtable_bytes()
    }

    /// What active memtables may hold together before the largest is sealed.
    pub fn active_bytes_max(&self) -> usize {
        2 * self.memtable_bytes()
    }

    /// Blocks of runs kept in memory, as long as memtables may grow.
    pub fn cache_bytes(&self) -> usize {
        self.divided_bytes() / 3
    }
}
