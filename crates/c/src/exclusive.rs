//! An object that one call uses at a time. A second call meanwhile is refused and does not wait, so
//! that a callback which uses its caller is an error, and no deadlock.

use std::sync::{Mutex, MutexGuard, TryLockError};

use folddb::{Error, Result};

use crate::handles::Object;

/// Something that one call uses at a time.
pub(crate) struct Exclusive<T>(Mutex<T>);

impl<T> Exclusive<T> {
    pub(crate) fn new(value: T) -> Exclusive<T> {
        Exclusive(Mutex::new(value))
    }

    /// Takes it for a call on an object of type `O`.
    ///
    /// # Errors
    /// Another call uses it, or a bug in FoldDB has stopped one and left it half done.
    pub(crate) fn lock<O: Object>(&self) -> Result<MutexGuard<'_, T>> {
        let name = O::NAME;
        self.0.try_lock().map_err(|cause| match cause {
            TryLockError::WouldBlock => Error::invalid(format!(
                "this {name} is in use by another call: one thread uses it at a time, and its own callbacks must not"
            )),
            TryLockError::Poisoned(_) => {
                Error::invalid(format!("a call on this {name} has failed halfway: destroy it"))
            }
        })
    }
}

#[cfg(test)]
mod tests;
