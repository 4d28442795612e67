//! How a call fails: an exception of the class that is named as the kind of the error.
//!
//! The classes are in `python/folddb/errors.py`; each is a `folddb.Error`, and where Python has a
//! class of its own for such trouble, one of that, too. The text names the thing and the place, and
//! says what the caller can do.

use folddb::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

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

/// What is not about Python is worked on without the lock of the interpreter: other threads go on,
/// and a fold that is written in Python can run on a thread of the store.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> folddb::Result<T> + Send,
) -> PyResult<T> {
    py.detach(work).map_err(raise)
}
