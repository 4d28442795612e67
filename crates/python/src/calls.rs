//! What runs on a thread: calls into a store, and functions of Python that a store calls.
//!
//! A store calls a fold with locks held, so the fold must not call a store: it would wait for
//! itself. What the fold raises is kept for the call that fails because of it.

use std::cell::{Cell, RefCell};

use folddb::{Error, Result};
use pyo3::PyErr;

thread_local! {
    /// What a store has called on this thread, if anything.
    static CALLED: Cell<Option<&'static str>> = const { Cell::new(None) };
    /// Whether Python has called a store on this thread.
    static CALLING: Cell<bool> = const { Cell::new(false) };
    /// What a function has raised since the last call of a store began.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Restores the value of a cell.
struct Back<T: Copy + 'static>(&'static std::thread::LocalKey<Cell<T>>, T);

impl<T: Copy + 'static> Drop for Back<T> {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

/// Runs a function of Python that a store calls: `a fold`, say.
pub(crate) fn called<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
    let _back = Back(&CALLED, CALLED.replace(Some(what)));
    work()
}

/// Whether this thread is in a function of Python that a store calls.
pub(crate) fn is_called() -> bool {
    CALLED.get().is_some()
}

/// Runs a call of a store.
///
/// # Errors
/// The caller is itself a function that a store has called.
pub(crate) fn calling<T>(work: impl FnOnce() -> T) -> Result<T> {
    if let Some(what) = CALLED.get() {
        return Err(Error::invalid(format!("{what} must not call a store, which calls it with locks held"))
            .advise("compute with its arguments alone"));
    }
    drop(RAISED.take());
    let _back = Back(&CALLING, CALLING.replace(true));
    Ok(work())
}

/// Keeps what a function has raised, for the call of a store around it, if there is one.
pub(crate) fn keep_raised(raised: PyErr) {
    if CALLING.get() {
        drop(RAISED.replace(Some(raised)));
    }
}

/// What was raised in the last call.
pub(crate) fn take_raised() -> Option<PyErr> {
    RAISED.take()
}
