//! Values as instances of a class that the caller names: dataclasses, named tuples and the like.

use std::sync::Arc;

use folddb::Datum;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{python_of, shown};
use crate::errors::invalid;
use crate::place::Placed;

/// Data of this table as a value of Python. A dict becomes an instance of the class of the handle,
/// if it has one: the class is called with the fields of the dict.
pub(crate) fn value_of<'py>(py: Python<'py>, table: &Placed, datum: &Datum) -> PyResult<Bound<'py, PyAny>> {
    let value = python_of(py, datum)?;
    match (&table.class, value.cast::<PyDict>()) {
        (Some(class), Ok(fields)) => class.bind(py).call((), Some(fields)),
        _ => Ok(value),
    }
}

/// The same table, with values as instances of this class, or as dicts again if it is `None`.
///
/// # Errors
/// InvalidInput if it is not a class.
pub(crate) fn with_type(table: &Placed, class: &Bound<'_, PyAny>) -> PyResult<Placed> {
    if !class.is_none() && !class.is_callable() {
        return Err(invalid(format!("{} is not a class", shown(class))));
    }
    let class = (!class.is_none()).then(|| Arc::new(class.clone().unbind()));
    Ok(Placed { class, ..table.clone() })
}
