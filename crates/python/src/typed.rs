//! Values as instances of a class that the caller names: dataclasses, named tuples and the like.

use std::sync::Arc;

use folddb::Datum;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{python_of, shown};
use crate::errors::invalid;
use crate::place::Placed;

/// The value of Python of data of this table: a dict, or an instance of the class that its handle
/// has, which is called with what the dict has.
pub(crate) fn value_of<'py>(py: Python<'py>, table: &Placed, datum: &Datum) -> PyResult<Bound<'py, PyAny>> {
    let value = python_of(py, datum)?;
    match (&table.class, value.cast::<PyDict>()) {
        (Some(class), Ok(fields)) => class.bind(py).call((), Some(fields)),
        _ => Ok(value),
    }
}

/// The same table, whose values are instances of this class; dicts again where it is `None`.
///
/// # Errors
/// InvalidInput where it is no class.
pub(crate) fn with_type(table: &Placed, class: &Bound<'_, PyAny>) -> PyResult<Placed> {
    if !class.is_none() && !class.is_callable() {
        return Err(invalid(format!("{} is no class", shown(class))));
    }
    let class = (!class.is_none()).then(|| Arc::new(class.clone().unbind()));
    Ok(Placed { class, ..table.clone() })
}
