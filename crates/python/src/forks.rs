//! What a forked child must not touch.
//!
//! A fork copies the memory of a store, but none of its threads, and leaves locked what another
//! thread had locked. So whatever holds on to a store is held in a [`Guarded`], which knows how
//! often the process had been forked when it was made: in a child it gives an error instead of what
//! it holds, and never drops it.

use std::sync::atomic::{AtomicU32, Ordering};

use folddb::{Error, ErrorKind, Result};
use pyo3::prelude::*;

use crate::errors::raise;

/// How often this process, or one that it stems from, has been forked.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Told by the interpreter in each forked child.
#[pyfunction]
pub(crate) fn _forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Something that holds on to a store.
pub(crate) struct Guarded<T: Send + 'static> {
    held: Option<T>,
    forks: u32,
    outlives_calls: bool,
}

impl<T: Send + 'static> Guarded<T> {
    pub(crate) fn new(held: T) -> Guarded<T> {
        Guarded { held: Some(held), forks: FORKS.load(Ordering::Relaxed), outlives_calls: false }
    }

    /// The same for what is dropped by code that is not Python's, of which nobody can tell whether
    /// it has the lock of the interpreter.
    pub(crate) fn outliving(held: T) -> Guarded<T> {
        Guarded { held: Some(held), forks: FORKS.load(Ordering::Relaxed), outlives_calls: true }
    }

    fn is_here(&self) -> bool {
        self.forks == FORKS.load(Ordering::Relaxed)
    }

    /// What it holds.
    ///
    /// # Errors
    /// In a child that was forked since.
    pub(crate) fn get(&self) -> PyResult<&T> {
        match &self.held {
            Some(held) if self.is_here() => Ok(held),
            _ => Err(raise(in_child())),
        }
    }

    /// The same, to change it.
    pub(crate) fn get_mut(&mut self) -> PyResult<&mut T> {
        self.reach().map_err(raise)
    }

    /// The same, where nobody can tell who has the lock of the interpreter.
    pub(crate) fn reach(&mut self) -> Result<&mut T> {
        if !self.is_here() {
            return Err(in_child());
        }
        self.held.as_mut().ok_or_else(in_child)
    }
}

impl<T: Send + 'static> Drop for Guarded<T> {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        if !self.is_here() {
            return std::mem::forget(held); // its locks may be held by threads that are not here
        }
        // The last handle of a store waits for threads that may run folds that are written in
        // Python, and those for the lock that this thread may have.
        if self.outlives_calls {
            std::thread::spawn(move || drop(held));
            return;
        }
        Python::attach(|py| py.detach(|| drop(held)));
    }
}

fn in_child() -> Error {
    let message = "the store was opened before this process was forked, which leaves its threads behind";
    Error::new(ErrorKind::Closed, message).advise(
        "open the store in the child, once the parent has closed it; or start processes by `spawn`, not `fork`",
    )
}
