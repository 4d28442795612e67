//! What several stores of one process can share, or else each has alone: a budget of memory, a
//! cache, background threads, and a limit on the writes of background work.
//!
//! ```text
//!   memory_plan   how a budget is divided                     pure
//!   memory        the memtables of all stores, in bytes       a store over the budget asks the largest to flush
//!   pool          the threads, which take turns               a store enters when it is opened
//!   throttle      bytes a second that merges may write
//!   trims         when free pages of heaps are given back
//! ```
//!
//! A store that is given none creates its own.

pub mod bell;
pub mod memory_plan;
pub mod memory;
pub mod pool;
pub mod throttle;
pub mod trims;

use std::sync::Arc;

use folddb_host::forks::ForkMark;
use folddb_run::BlockCache;

use crate::shared::memory::SharedMemory;
use crate::shared::memory_plan::MemoryPlan;
use crate::shared::pool::Pool;
use crate::shared::throttle::Throttle;
use crate::shared::trims::Trims;

/// What stores share. Clones share it, too.
#[derive(Clone)]
pub struct Shared {
    pub cache: Arc<BlockCache>,
    pub memory: Arc<SharedMemory>,
    pub pool: Arc<Pool>,
    pub throttle: Arc<Throttle>,
    pub trims: Arc<Trims>,
    /// Of the process that has the threads.
    pub mark: Arc<ForkMark>,
}

impl Shared {
    /// A budget of this many bytes of memory, and at most this many open files of idle runs.
    pub fn new(memory_bytes: usize, open_files_max: usize) -> Shared {
        let plan = MemoryPlan::of(memory_bytes);
        Shared {
            cache: BlockCache::new(plan.cache_bytes() as u64, open_files_max),
            memory: Arc::new(SharedMemory::new(plan)),
            pool: Arc::default(),
            throttle: Arc::default(),
            trims: Arc::default(),
            mark: Arc::default(),
        }
    }
}
