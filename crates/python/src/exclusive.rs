//! Things that one thread uses at a time and that end: batches and transactions.

use std::sync::{Arc, Mutex, TryLockError};

use folddb::{Error, Result};

/// Something for one thread at a time. A second call at the same time is refused. It may not wait:
/// it would hold the lock of the interpreter, which the first call may need.
pub(crate) struct Exclusive<T>(Arc<Mutex<Option<T>>>);

impl<T> Clone for Exclusive<T> {
    fn clone(&self) -> Self {
        Exclusive(Arc::clone(&self.0))
    }
}

impl<T> Exclusive<T> {
    pub(crate) fn new(of: T) -> Exclusive<T> {
        Exclusive(Arc::new(Mutex::new(Some(of))))
    }

    /// Runs `work` with it.
    ///
    /// # Errors
    /// It has ended; another thread uses it; those of `work`.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> Result<R>) -> Result<R> {
        let mut held = match self.0.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(broken)) => broken.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(Error::invalid("another call uses this batch or transaction at the moment")
                    .advise("use it by one thread at a time"));
            }
        };
        work(held.as_mut().ok_or_else(over)?)
    }

    /// Takes it out, which ends it.
    ///
    /// # Errors
    /// As [`Exclusive::with`].
    pub(crate) fn take(&self) -> Result<T> {
        match self.0.try_lock() {
            Ok(mut held) => held.take().ok_or_else(over),
            Err(_) => Err(Error::invalid("another call uses this batch or transaction at the moment")),
        }
    }
}

fn over() -> Error {
    Error::invalid("this batch or transaction was committed or left, and is over").advise("begin another")
}
