//! Facts about keys, values and stores: the named tuples of `folddb.records`, and dicts.

use folddb::Head;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A named tuple of `folddb.records`.
pub(crate) fn record<'py>(
    py: Python<'py>,
    name: &str,
    fields: impl pyo3::call::PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("folddb.records")?.getattr(name)?.call1(fields)
}

/// What is known about a value without reading it.
pub(crate) fn head<'py>(py: Python<'py>, head: &Head) -> PyResult<Bound<'py, PyAny>> {
    let fields = (head.size_bytes, head.hash, head.is_separated, head.written, head.deadline, head.version);
    record(py, "Head", fields)
}

/// A pair.
pub(crate) fn pair<'py>(
    py: Python<'py>,
    one: Bound<'py, PyAny>,
    other: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(PyTuple::new(py, [one, other])?.into_any())
}
