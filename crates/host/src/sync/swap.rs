//! A value that is replaced as a whole. Its readers never wait for the writer that replaces it.
//!
//! It has two places, and one of them is current. A writer fills the other, makes that current, and
//! empties the first:
//!
//! ```text
//!   version 4    place 0 [value]   place 1 [     ]
//!                place 0 [value]   place 1 [next ]      filled
//!   version 5    place 0 [value]   place 1 [next ]      made current
//!                place 0 [     ]   place 1 [next ]      emptied
//! ```
//!
//! So the lock of the current place is never taken by a writer. A reader that finds the lock of a
//! place taken came too late: the version has advanced, and it tries again. It never sleeps,
//! wherever a writer was interrupted. A writer waits for readers, but only for those that are just
//! counting their reference.

use std::fmt;
use std::sync::Arc;

use super::atomic::{AtomicU64, Ordering};
use super::{Mutex, RwLock};

/// See the module.
pub struct Swap<T> {
    /// The value of version `v` is in the place `v % 2`.
    places: [RwLock<Option<Arc<T>>>; 2],
    version: AtomicU64,
    /// One writer at a time.
    replacing: Mutex<()>,
}

impl<T> Swap<T> {
    /// One that holds this value.
    pub fn new(value: Arc<T>) -> Swap<T> {
        Swap {
            places: [RwLock::new(Some(value)), RwLock::new(None)],
            version: AtomicU64::new(0),
            replacing: Mutex::new(()),
        }
    }

    /// The present value.
    #[inline]
    pub fn load(&self) -> Arc<T> {
        self.load_with_version().0
    }

    /// The present value, and which version it is.
    #[inline]
    pub fn load_with_version(&self) -> (Arc<T>, u64) {
        loop {
            let version = self.version.load(Ordering::Acquire);
            let Some(place) = self.place(version).try_read() else { continue };
            // While it is current no writer fills or empties its place, and now none can.
            if let Some(value) = &*place
                && self.is_at(version)
            {
                return (Arc::clone(value), version);
            }
        }
    }

    /// Whether the value of this version is still the present one. If an effect of a thread has
    /// been seen that it had before it replaced the value, the value is no longer the present one.
    #[inline]
    pub fn is_at(&self, version: u64) -> bool {
        self.version.load(Ordering::Acquire) == version
    }

    /// Replaces the present value by what `next` makes from it. Returns the previous value.
    pub fn replace(&self, next: impl FnOnce(&Arc<T>) -> Arc<T>) -> Arc<T> {
        let _one = self.replacing.lock();
        let (value, version) = self.load_with_version();
        let next = next(&value);
        *self.place(version + 1).write() = Some(next);
        self.version.store(version + 1, Ordering::Release);
        *self.place(version).write() = None;
        value
    }

    #[inline]
    fn place(&self, version: u64) -> &RwLock<Option<Arc<T>>> {
        &self.places[(version % 2) as usize]
    }
}

impl<T: fmt::Debug> fmt::Debug for Swap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Swap").field(&self.load()).finish()
    }
}

#[cfg(test)]
#[path = "swap/tests.rs"]
mod tests;
