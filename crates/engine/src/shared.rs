//! What several stores of one process share when they are told to, and what each has alone else: a
//! budget of memory, a cache, background threads, and a limit on what background work writes.
//!
//! ```text
//!   memory_plan   how a budget is divided                     pure
//!   memory        the memtables of all stores, in bytes       who is over asks the largest to flush
//!   pool          three threads, which take turns             a store enters when it is opened
//!   throttle      bytes a second that merges may write
//! ```
//!
//! A store that is given none makes one of its own: there is no other way.

pub mod bell;
pub mod memory_plan;
pub mod memory;
pub mod pool;
pub mod throttle;

use std::sync::Arc;

use folddb_run::BlockCache;

use crate::shared::memory::SharedMemory;
use crate::shared::memory_plan::MemoryPlan;
use crate::shared::pool::Pool;
use crate::shared::throttle::Throttle;

/// What stores share. Clones share it, too.
#[derive(Clone)]
pub struct Shared {
    pub cache: Arc<BlockCache>,
    pub memory: Arc<SharedMemory>,
    pub pool: Arc<Pool>,
    pub throttle: Arc<Throttle>,
}

impl Shared {
    /// A budget of so many bytes of memory, and at most so many open files of runs at rest.
    pub fn new(memory_bytes: usize, open_files_max: usize) -> Shared {
        let plan = MemoryPlan::of(memory_bytes);
        Shared {
            cache: BlockCache::new(plan.cache_bytes() as u64, open_files_max),
            memory: Arc::new(SharedMemory::new(plan)),
            pool: Arc::default(),
            throttle: Arc::default(),
        }
    }
}
