//! What a forked child must not touch, and what is dropped late.
//!
//! A fork copies the memory of a store, but none of its threads, and leaves locked what another
//! thread had locked. So everything that holds a store is kept in a [`Guarded`], which knows how
//! often the process had been forked when it was created. In a child it gives an error instead of
//! what it holds, and never drops it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use folddb::{Error, ErrorKind, Result};
use pyo3::prelude::*;

use crate::calls;
use crate::errors::raise;

/// How many forks lead to this process, since the library was loaded.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The number of forks so far.
pub(crate) fn count() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Called by the interpreter in each forked child.
#[pyfunction]
pub(crate) fn _forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Something that holds a store.
pub(crate) struct Guarded<T: Send + 'static> {
    held: Option<T>,
    forks: u32,
    outlives_calls: bool,
}

impl<T: Send + 'static> Guarded<T> {
    pub(crate) fn new(held: T) -> Guarded<T> {
        Guarded { held: Some(held), forks: count(), outlives_calls: false }
    }

    /// As `new`, for what code outside Python drops: it may or may not hold the lock of the
    /// interpreter.
    pub(crate) fn outliving(held: T) -> Guarded<T> {
        Guarded { held: Some(held), forks: count(), outlives_calls: true }
    }

    fn is_here(&self) -> bool {
        self.forks == count()
    }

    /// What it holds.
    ///
    /// # Errors
    /// In a child that was forked since.
    pub(crate) fn get(&self) -> PyResult<&T> {
        self.look().ok_or_else(|| raise(in_child()))
    }

    /// As [`Guarded::get`], with none in a child that was forked since.
    pub(crate) fn look(&self) -> Option<&T> {
        self.held.as_ref().filter(|_| self.is_here())
    }

    /// As [`Guarded::get`], to change it, for callers that may or may not hold the lock of the
    /// interpreter.
    pub(crate) fn reach(&mut self) -> Result<&mut T> {
        if !self.is_here() {
            return Err(in_child());
        }
        self.held.as_mut().ok_or_else(in_child)
    }
}

impl<T: Send + 'static> Guarded<Mutex<T>> {
    /// Runs `work` with what only one thread may use at a time; other threads wait for their turn.
    ///
    /// # Errors
    /// Those of [`Guarded::get`], before any lock is taken; those of `detached`, which refuses
    /// calls from a function that a store has called; those of `work`.
    pub(crate) fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut T) -> Result<R> + Send,
    ) -> PyResult<R> {
        let held = self.get()?;
        crate::errors::detached(py, || work(&mut held.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl<T: Send + 'static> Drop for Guarded<T> {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        if !self.is_here() {
            return std::mem::forget(held); // its locks may be held by threads of the parent
        }
        // The last handle of a store waits for threads that may run folds written in Python, and
        // those wait for the lock that this thread may hold. In a fold, garbage collection may drop
        // anything, and this thread may be the one waited for.
        if self.outlives_calls || calls::is_called() {
            return drop_elsewhere(held);
        }
        let mut held = Some(held);
        let _ = Python::try_attach(|py| py.detach(|| drop(held.take())));
    }
}

/// Threads that drop what must not be dropped on the thread that released it.
static DROPPING: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

fn drop_elsewhere<T: Send + 'static>(held: T) {
    let begun = std::thread::Builder::new().name("folddb-drop".to_owned()).spawn(move || drop(held));
    let (Ok(thread), Ok(mut dropping)) = (begun, DROPPING.try_lock()) else { return };
    dropping.retain(|thread| !thread.is_finished());
    dropping.push(thread);
}

/// Waits until everything released before is dropped.
pub(crate) fn wait_for_drops() {
    let dropping = std::mem::take(&mut *DROPPING.lock().unwrap_or_else(PoisonError::into_inner));
    dropping.into_iter().for_each(|thread| drop(thread.join()));
}

fn in_child() -> Error {
    let message = "the store was opened before this process was forked, which leaves its threads behind";
    Error::new(ErrorKind::Closed, message).advise(
        "open the store in the child, once the parent has closed it; or start processes by `spawn`, not `fork`",
    )
}
