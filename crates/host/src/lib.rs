//! Floor 1 of FoldDB: the outside world behind one interface. Internal, no promises: `folddb` is
//! the public API.
//!
//! Files, the clock and chance are traits, so that a simulated world can stand in for the real one.
//! The engine gets them in one [`Host`] and passes them down; no crate opens a file or reads a
//! clock in another way. Locks, atomics and threads come from [`sync`], for the same reason.

#![deny(unsafe_code)] // some is allowed in `arena.rs`, `mapped.rs`, `forks.rs`, `heap.rs`, `prefetch.rs` and `system/`

pub mod files;
pub mod chance;
pub mod sync;
pub mod arena;
pub mod clock;
#[cfg(target_os = "linux")]
mod mapped;
mod system;
mod direct;
pub mod resident;
pub mod real;
pub mod memory;
pub mod forks;
pub mod priority;
pub mod heap;
pub mod prefetch;

use std::sync::Arc;

pub use chance::Chance;
pub use clock::Clock;
pub use files::{AppendFile, AppendMode, AppendSync, Files, LockMode, ReadFile, SystemHandle, WriteFile};

/// The world that a store lives in.
#[derive(Clone)]
pub struct Host {
    /// Where its files are.
    pub files: Arc<dyn Files>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Where its random numbers come from.
    pub chance: Arc<dyn Chance>,
}

impl Host {
    /// The operating system's files, clock and randomness.
    pub fn real() -> Host {
        Host {
            files: Arc::new(real::RealFiles::default()),
            clock: Arc::new(clock::SystemClock::default()),
            chance: Arc::new(chance::SystemChance::default()),
        }
    }

    /// The same, with files in memory: an empty file system, which clones of the host share.
    pub fn in_memory() -> Host {
        Host { files: Arc::new(memory::MemoryFiles::default()), ..Host::real() }
    }
}
