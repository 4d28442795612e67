//! How a call fails: by an exception with a class that has the name of the kind of the error.
//!
//! The classes are in `python/folddb/errors.py`; each is a `folddb.Error`, and a subclass of
//! Python's own class for such errors, if there is one. The text names the thing and the place, and
//! says what the caller can do. The cause of the exception is what a fold in Python has raised.

use folddb::{Error, ErrorKind};
use pyo3::exceptions::{PyException, PyOverflowError, PyRecursionError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::calls;

static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// The exception of an error.
pub(crate) fn raise(error: Error) -> PyErr {
    Python::attach(|py| match class(py, error.kind()) {
        Ok(class) => PyErr::from_type(class, error.to_string()),
        Err(broken) => broken,
    })
}

fn class(py: Python<'_>, kind: ErrorKind) -> PyResult<Bound<'_, PyType>> {
    let module = MODULE.get_or_try_init(py, || py.import("folddb.errors").map(Bound::unbind))?.bind(py);
    let class = module.getattr(format!("{kind:?}")).or_else(|_| module.getattr("Error"))?;
    Ok(class.cast_into()?)
}

/// The exception of a call that is wrong.
pub(crate) fn invalid(message: impl Into<String>) -> PyErr {
    raise(Error::invalid(message))
}

/// Whether an exception says that an object does not fit. Others are failures.
pub(crate) fn is_misfit(py: Python<'_>, raised: &PyErr) -> bool {
    raised.is_instance_of::<PyValueError>(py)
        || raised.is_instance_of::<PyTypeError>(py)
        || raised.is_instance_of::<PyRecursionError>(py)
        || raised.is_instance_of::<PyOverflowError>(py)
}

/// What an exception says.
pub(crate) fn said(py: Python<'_>, raised: &PyErr) -> String {
    raised.value(py).to_string()
}

/// Runs `work` without the lock of the interpreter: other threads continue, and a fold written in
/// Python can run on a thread of the store. Everything that may wait for a store is called by this:
/// a thread that waits with that lock could wait for a thread that needs the lock.
///
/// # Errors
/// Those of `work`; the caller is itself a function that a store has called.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> folddb::Result<T> + Send,
) -> PyResult<T> {
    calls::calling(|| py.detach(work)).and_then(|done| done).map_err(|error| raise_of_call(py, error))
}

/// The exception of an error of the call that this thread has made.
pub(crate) fn raise_of_call(py: Python<'_>, error: Error) -> PyErr {
    let cause = if error.kind() == ErrorKind::FoldFailed { calls::take_raised() } else { None };
    match cause {
        None => raise(error),
        Some(cause) if !cause.is_instance_of::<PyException>(py) => cause, // such as KeyboardInterrupt
        Some(cause) => {
            let raised = raise(error);
            raised.set_cause(py, Some(cause));
            raised
        }
    }
}
