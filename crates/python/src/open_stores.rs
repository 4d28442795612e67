//! The stores that this process has open. They are closed when the interpreter ends.
//!
//! Their threads may run folds written in Python, so they must end before the interpreter does. A
//! store is open as long as any handle of it lives: a table or a scan, for example.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use folddb::Store;
use pyo3::prelude::*;

use crate::forks;

/// Each store, with the number of forks when it was opened.
static OPEN: Mutex<Vec<(u32, Weak<Store>)>> = Mutex::new(Vec::new());

/// Registers a store until it is dropped. The lock is never held while anything waits.
pub(crate) fn keep(store: Store) -> Arc<Store> {
    let store = Arc::new(store);
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|(_, store)| store.strong_count() > 0);
    open.push((forks::count(), Arc::downgrade(&store)));
    store
}

/// Called by the interpreter before it ends. Errors are ignored here: what was committed is in the
/// log.
#[pyfunction]
pub(crate) fn _close_all(py: Python<'_>) {
    let open = std::mem::take(&mut *OPEN.lock().unwrap_or_else(PoisonError::into_inner));
    py.detach(|| {
        for (_, store) in open.iter().filter(|(forks, _)| *forks == forks::count()) {
            let Some(store) = store.upgrade() else { continue };
            let _ = Store::clone(&store).close();
        }
        forks::wait_for_drops();
    });
    std::mem::forget(open); // a forked child drops nothing of its parent
}
