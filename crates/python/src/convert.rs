//! Values of Python as data, and back.

use folddb::Datum;
use pyo3::exceptions::PyRecursionError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyMemoryView, PySet, PyString,
    PyTuple,
};

use crate::errors::invalid;

/// How deep values may be nested in one another.
const DEPTH_MAX: usize = 100;

/// The data of a value of Python: `None`, bools, numbers, text, bytes, sequences, sets,
/// mappings by text, and dataclasses as mappings of their fields.
pub(crate) fn datum_of(object: &Bound<'_, PyAny>) -> PyResult<Datum> {
    nested(object, 0)
}

fn nested(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Datum> {
    if depth > DEPTH_MAX {
        return Err(PyRecursionError::new_err(format!("a value is nested more than {DEPTH_MAX} deep")));
    }
    if object.is_none() {
        return Ok(Datum::Null);
    }
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Datum::Bool(value.is_true()));
    }
    if let Ok(value) = object.cast::<PyFloat>() {
        return Ok(Datum::Float(value.value()));
    }
    if object.is_instance_of::<PyInt>() {
        return int(object);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Datum::Text(text.to_cow()?.into_owned()));
    }
    if let Some(bytes) = bytes(object)? {
        return Ok(Datum::Bytes(bytes));
    }
    if let Ok(fields) = object.cast::<PyDict>() {
        return map(fields, depth);
    }
    if is_sequence(object) {
        let items = object.try_iter()?.map(|item| nested(&item?, depth + 1));
        return items.collect::<PyResult<_>>().map(Datum::List);
    }
    other(object, depth)
}

fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.is_instance_of::<PySet>()
        || object.is_instance_of::<PyFrozenSet>()
}

fn int(object: &Bound<'_, PyAny>) -> PyResult<Datum> {
    if let Ok(value) = object.extract::<i64>() {
        return Ok(Datum::Int(value.into()));
    }
    match object.extract::<i128>() {
        Ok(value) => Ok(Datum::Int(value)),
        Err(_) => Ok(Datum::Number(object.str()?.to_cow()?.into_owned())),
    }
}

fn map(fields: &Bound<'_, PyDict>, depth: usize) -> PyResult<Datum> {
    let field = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| match name.cast::<PyString>() {
        Ok(name) => Ok((name.to_cow()?.into_owned(), nested(&value, depth + 1)?)),
        Err(_) => Err(invalid(format!("a mapping has the name {}, which is not a str", shown(&name)))),
    };
    fields.iter().map(field).collect::<PyResult<_>>().map(Datum::Map)
}

/// Dataclasses, and numbers of other libraries.
fn other(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Datum> {
    let py = object.py();
    if object.hasattr("__dataclass_fields__")? {
        let fields = py.import("dataclasses")?.getattr("asdict")?.call1((object,))?;
        return map(fields.cast()?, depth);
    }
    if object.hasattr("__index__")? {
        return int(&object.call_method0("__index__")?);
    }
    if object.hasattr("__float__")? {
        return Ok(Datum::Float(object.extract()?));
    }
    Err(invalid(format!("{} is a {}, which cannot be stored", shown(object), object.get_type().name()?)))
}

/// The bytes of a bytes-like object; none for anything else.
pub(crate) fn bytes(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Some(bytes.as_bytes().to_vec()));
    }
    if object.is_instance_of::<PyByteArray>() || object.is_instance_of::<PyMemoryView>() {
        let bytes = object.py().get_type::<PyBytes>().call1((object,))?;
        return Ok(Some(bytes.cast::<PyBytes>()?.as_bytes().to_vec()));
    }
    Ok(None)
}

/// A value in a message, cut to 80 characters.
pub(crate) fn shown(object: &Bound<'_, PyAny>) -> String {
    cut(&object.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string()))
}

/// The first 80 characters of a text.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Data as a value of Python.
pub(crate) fn python_of<'py>(py: Python<'py>, datum: &Datum) -> PyResult<Bound<'py, PyAny>> {
    Ok(match datum {
        Datum::Null => py.None().into_bound(py),
        Datum::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Datum::Int(value) => match i64::try_from(*value) {
            Ok(value) => value.into_pyobject(py)?.into_any(),
            Err(_) => value.into_pyobject(py)?.into_any(),
        },
        Datum::Float(value) => PyFloat::new(py, *value).into_any(),
        Datum::Number(text) => number(py, text)?,
        Datum::Text(text) => PyString::new(py, text).into_any(),
        Datum::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Datum::List(items) => {
            let items = items.iter().map(|item| python_of(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        Datum::Map(fields) => {
            let map = PyDict::new(py);
            for (name, value) in fields {
                map.set_item(name, python_of(py, value)?)?;
            }
            map.into_any()
        }
    })
}

/// A number of JSON that is neither an integer of 128 bits nor a float, with all of its digits.
fn number<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let is_whole = text.trim_start_matches('-').chars().all(|letter| letter.is_ascii_digit());
    if is_whole {
        return py.get_type::<PyInt>().call1((text,));
    }
    py.import("decimal")?.getattr("Decimal")?.call1((text,))
}
