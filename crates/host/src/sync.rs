//! Locks, atomics and threads: which thread runs when is a part of the outside world, too.
//!
//! They are those of the system. A build with `--cfg folddb_schedules` replaces them by those of a
//! scheduler that a test drives (`sync/scheduled.rs`): a thread then stops at each of these calls,
//! and a seed decides which continues. Such a build is for the tests named `schedules` alone;
//! `.ci/races schedules` runs them. A build with `--cfg folddb_sleeps` adds random sleeps at locks,
//! condition variables and atomics (`sync/sleeping.rs`), for the random programs of `.ci/races
//! sleeps`.
//!
//! [`Swap`] is built from them: a value that is replaced as a whole while others read it.
//!
//! Used by all crates with threads that interact: `memtable`, `hash`, `journal`, `value-log`,
//! `engine`, `folddb`, and `mapped.rs` here. What only counts (statistics, the numbers of files)
//! takes the atomics of the standard library.

#[cfg(folddb_schedules)]
mod scheduled;

#[cfg(folddb_schedules)]
pub use scheduled::{
    Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic, replay, schedules, thread,
};

#[cfg(folddb_sleeps)]
mod sleeping;

#[cfg(folddb_sleeps)]
pub use sleeping::{
    Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic, pause, thread,
};

#[cfg(not(any(folddb_schedules, folddb_sleeps)))]
pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(not(any(folddb_schedules, folddb_sleeps)))]
pub use std::{sync::atomic, thread};

mod swap;
pub use swap::Swap;
