//! Values and operands of Python as the bytes of values: what the fold of the table takes.

use folddb::table_rules::FoldName;
use folddb::{Datum, Error, datum};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::convert::{bytes, datum_of, shown};
use crate::errors::{is_misfit, raise, said};
use crate::place::Placed;
use crate::values::Values;

/// How a key is called in a message.
pub(crate) type Called<'a> = &'a dyn Fn() -> String;

/// Appends the bytes of the value of one key. `None` is one only in a table of JSON.
///
/// # Errors
/// InvalidInput, naming the table, the key and the value, and what is expected. What an object
/// raises that says its value itself, unless that means that it does not fit.
pub(crate) fn encode(
    table: &Placed,
    key: Called<'_>,
    value: &Bound<'_, PyAny>,
    out: &mut Vec<u8>,
) -> PyResult<()> {
    let datum = data(table, key, value)?;
    append(table, key, value, &datum, out)
}

/// As [`encode`], for an object of a list of values. Returns false if it is null, so that nothing
/// is appended: `None`, and a record of which every field is null.
///
/// # Errors
/// Those of [`encode`].
pub(crate) fn encode_of_list(
    table: &Placed,
    key: Called<'_>,
    value: &Bound<'_, PyAny>,
    out: &mut Vec<u8>,
) -> PyResult<bool> {
    if value.is_none() {
        return Ok(false);
    }
    let datum = data(table, key, value)?;
    if table.wants.is_null(&datum) {
        return Ok(false);
    }
    append(table, key, value, &datum, out).map(|()| true)
}

fn data(table: &Placed, key: Called<'_>, value: &Bound<'_, PyAny>) -> PyResult<Datum> {
    let wrong = |why: &str| misfit(table, key, value, why);
    let data = match table.values {
        Values::Bytes => match bytes(value)? {
            Some(bytes) => Ok(Datum::Bytes(bytes)),
            None => return Err(wrong("it is not bytes")),
        },
        Values::Text => match value.cast::<PyString>() {
            Ok(text) => text.to_cow().map(|text| Datum::Text(text.into_owned())),
            Err(_) => return Err(wrong("it is not a str")),
        },
        Values::Json => datum_of(value).map(|datum| match datum {
            text @ Datum::Text(_) => Datum::Text(datum::json::text_of(&text)),
            other => other,
        }),
        Values::Fold => datum_of(value),
    };
    let py = value.py();
    data.map_err(|raised| match is_misfit(py, &raised) {
        true => caused(py, wrong(&said(py, &raised)), raised),
        false => raised,
    })
}

fn append(
    table: &Placed,
    key: Called<'_>,
    value: &Bound<'_, PyAny>,
    datum: &Datum,
    out: &mut Vec<u8>,
) -> PyResult<()> {
    if let (Values::Bytes, Datum::Bytes(bytes)) = (table.values, datum) {
        out.extend_from_slice(bytes);
        return Ok(());
    }
    let wrong = |why: String| misfit(table, key, value, &why);
    let rules = table.table.rules();
    table.wants.check(datum).map_err(wrong)?;
    rules.check_writable().map_err(raise)?;
    rules.read_value(datum, out).map_err(|cause| wrong(cause.to_string()))
}

#[cold]
fn misfit(table: &Placed, key: Called<'_>, value: &Bound<'_, PyAny>, why: &str) -> PyErr {
    let rules = table.table.rules().as_table_rules();
    let takes = match &rules.fold {
        FoldName::BuiltIn(spec) if matches!(spec.trim(), "replace" | "first") => {
            format!("value={}", rules.value_codec())
        }
        FoldName::BuiltIn(spec) => format!("fold={}", spec.trim()),
        fold => format!("fold={fold}"),
    };
    let (name, key, value_shown) = (table.name(), key(), shown(value));
    let message = format!("table `{name}`, key {key}: the value {value_shown} does not fit {takes}: {why}");
    raise(Error::invalid(message).advise(match value.is_none() {
        true => "nothing is written; leave out the call, since a null folds nothing",
        false => "nothing is written; give a value of the type that the rules of the table say",
    }))
}

fn caused(py: Python<'_>, error: PyErr, cause: PyErr) -> PyErr {
    error.set_cause(py, Some(cause));
    error
}
