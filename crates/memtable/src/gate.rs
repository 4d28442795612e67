//! The lock between the readers of a memtable and its writer, with manners on both sides.
//!
//! A batch keeps the lock for as long as its records take, a hundred microseconds and more, and a writer that pushes flat
//! out has it most of the time. A reader that went to sleep on it would have to be woken and scheduled again, among busy
//! threads, for milliseconds. So a reader that finds the lock taken looks again for some microseconds before it sleeps, and
//! says that it does; the writer asks every few records whether anybody looks, and lets him in. Only who can run looks, so
//! the writer never waits for the scheduler.
//!
//! Used by `memtable.rs`.

use std::hint::spin_loop;

use folddb_host::sync::atomic::{AtomicUsize, Ordering};
use folddb_host::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// So often does a reader look before it sleeps: for five to ten microseconds, several times as long as a writer takes to
/// ask. Few times where a scheduler counts every step.
const LOOKS_MAX: usize = if cfg!(folddb_schedules) { 2 } else { 200 };

/// So often does a writer look whether all that looked are in.
const WAITS_MAX: usize = if cfg!(folddb_schedules) { 2 } else { 50 };

/// A value that readers share and one writer changes.
#[derive(Debug, Default)]
pub(crate) struct Gate<T> {
    lock: RwLock<T>,
    /// Readers that found it taken and are awake.
    looking: AtomicUsize,
}

impl<T> Gate<T> {
    /// For a reader, who should not keep it for long.
    #[inline]
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        match self.lock.try_read() {
            Some(guard) => guard,
            None => self.look(),
        }
    }

    #[cold]
    fn look(&self) -> RwLockReadGuard<'_, T> {
        self.looking.fetch_add(1, Ordering::Relaxed);
        let seen = (0..LOOKS_MAX).find_map(|_| {
            spin_loop();
            self.lock.try_read()
        });
        self.looking.fetch_sub(1, Ordering::Relaxed);
        seen.unwrap_or_else(|| self.lock.read())
    }

    /// For the writer.
    #[inline]
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.lock.write()
    }

    /// Lets those in who look for it. Everything behind `guard` may have been read, and by another writer changed, when it
    /// returns.
    #[inline]
    pub(crate) fn let_in(&self, guard: &mut RwLockWriteGuard<'_, T>) {
        if self.looking.load(Ordering::Relaxed) > 0 {
            self.open(guard);
        }
    }

    #[cold]
    fn open(&self, guard: &mut RwLockWriteGuard<'_, T>) {
        RwLockWriteGuard::unlocked(guard, || {
            for _ in 0..WAITS_MAX {
                if self.looking.load(Ordering::Relaxed) == 0 {
                    break;
                }
                spin_loop();
            }
        });
    }
}

#[cfg(test)]
#[path = "gate/tests.rs"]
mod tests;
