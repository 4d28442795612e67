//! What Python gives as columns: anything of Arrow, NumPy arrays, lists, and one value for all
//! rows.

use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Fields};
use folddb::Datum;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyo3_arrow::PyArray;
use pyo3_arrow::input::AnyArray;

use crate::cells::Cells;
use crate::convert::datum_of;
use crate::errors::{invalid, is_misfit, said};

/// One column, before it is cut into chunks.
pub(crate) enum Column {
    /// Arrays of Arrow, one after the other.
    Arrays { arrays: Vec<ArrayRef>, of: DataType },
    /// One value for all rows.
    Constant(Datum),
}

/// What keys or values are made of.
pub(crate) enum Source {
    /// Columns, with their names, if they have any.
    Columns(Vec<(Option<String>, Column)>),
    /// Objects of Python that were encoded one by one.
    Encoded(Column),
}

/// Encodes one object of Python, the one of this row. Returns false if it is null.
pub(crate) type Encode<'a> = &'a dyn Fn(u64, &Bound<'_, PyAny>, &mut Vec<u8>) -> PyResult<bool>;

/// Takes columns of keys or values. A list, and an array of NumPy that holds objects, is encoded
/// object by object. An object that does not fit and may be skipped becomes null; so does a `None`
/// that does not fit.
///
/// # Errors
/// InvalidInput, which names the table, for something that is not a column, and for an object of a
/// list that does not fit, with its row.
pub(crate) fn source(
    table: &str,
    given: &Bound<'_, PyAny>,
    skips: bool,
    encode: Encode<'_>,
) -> PyResult<Source> {
    if let Some(list) = list_of(given)? {
        return encoded(&list, skips, encode).map(Source::Encoded);
    }
    let py = given.py();
    columns(given).map_err(|raised| match is_misfit(py, &raised) {
        true => {
            let named = invalid(format!("table `{table}`: {}", said(py, &raised)));
            named.set_cause(py, Some(raised));
            named
        }
        false => raised,
    })
}

fn columns(given: &Bound<'_, PyAny>) -> PyResult<Source> {
    if let Ok(columns) = given.cast::<PyTuple>() {
        let columns = columns.iter().map(|column| Ok((None, column_of(&column)?)));
        return columns.collect::<PyResult<_>>().map(Source::Columns);
    }
    if let Ok(named) = given.cast::<PyDict>() {
        let columns = named.iter().map(|(name, column)| Ok((Some(name.extract()?), column_of(&column)?)));
        return columns.collect::<PyResult<_>>().map(Source::Columns);
    }
    match column_of(given)? {
        Column::Arrays { arrays, of: DataType::Struct(fields) } => {
            Ok(Source::Columns(columns_of(arrays, fields)))
        }
        column => Ok(Source::Columns(vec![(None, column)])),
    }
}

/// A list, and an array of NumPy that holds objects as one: text of pandas, for example.
fn list_of<'py>(given: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyList>>> {
    if let Ok(list) = given.cast::<PyList>() {
        return Ok(Some(list.clone()));
    }
    let holds_objects = given.hasattr("__array_interface__")?
        && given.getattr("shape")?.len()? == 1
        && given.getattr("dtype")?.getattr("kind")?.eq("O")?;
    if !holds_objects {
        return Ok(None);
    }
    Ok(Some(given.call_method0("tolist")?.cast_into()?))
}

fn encoded(list: &Bound<'_, PyList>, skips: bool, encode: Encode<'_>) -> PyResult<Column> {
    let (py, mut bytes) = (list.py(), Vec::new());
    let (mut arrays, mut objects): (Vec<ArrayRef>, _) = (Vec::new(), BinaryBuilder::new());
    for (row, object) in list.iter().enumerate() {
        bytes.clear();
        match encode(row as u64, &object, &mut bytes) {
            Ok(true) => objects.append_value(&bytes),
            Ok(false) => objects.append_null(),
            Err(error) if (skips || object.is_none()) && is_misfit(py, &error) => objects.append_null(),
            Err(error) => return Err(in_row(py, row as u64, error)),
        }
        if objects.values_slice().len() >= ARRAY_BYTES {
            arrays.push(Arc::new(objects.finish()));
        }
    }
    arrays.push(Arc::new(objects.finish()));
    Ok(Column::Arrays { arrays, of: DataType::Binary })
}

/// The approximate size in bytes at which an array of encoded objects ends: its offsets have 32
/// bits.
const ARRAY_BYTES: usize = 256 << 20;

/// The error of one row of many.
pub(crate) fn in_row(py: Python<'_>, row: u64, error: PyErr) -> PyErr {
    if !is_misfit(py, &error) {
        return error;
    }
    let named = invalid(format!("row {row}: {}", said(py, &error)));
    named.set_cause(py, error.cause(py));
    named
}

fn column_of(given: &Bound<'_, PyAny>) -> PyResult<Column> {
    let is_arrow = given.hasattr("__arrow_c_array__")? || given.hasattr("__arrow_c_stream__")?;
    if is_arrow {
        return arrays(given.extract::<AnyArray>()?);
    }
    if let Some(list) = list_of(given)? {
        let of_pyarrow = given.py().import("pyarrow");
        let pyarrow = of_pyarrow.map_err(|_| {
            invalid("a list among columns needs pyarrow: install it, or give arrays of NumPy or Arrow")
        })?;
        return arrays(pyarrow.getattr("array")?.call1((list,))?.extract::<AnyArray>()?);
    }
    if given.hasattr("__array_interface__")? && given.getattr("shape")?.len()? > 0 {
        let array = given.py().get_type::<PyArray>().call_method1("from_numpy", (given,))?;
        return arrays(array.extract::<AnyArray>()?);
    }
    datum_of(given).map(Column::Constant)
}

fn arrays(given: AnyArray) -> PyResult<Column> {
    let of = given.field()?.data_type().clone();
    let arrays = given.into_reader()?.collect::<Result<Vec<_>, _>>();
    let arrays = arrays.map_err(|cause| invalid(format!("the columns could not be read: {cause}")))?;
    Ok(Column::Arrays { arrays, of })
}

/// The columns of a table, which Arrow gives as one column of structs; a table without rows has no
/// array. If rows are null as a whole, the structs stay one column.
fn columns_of(arrays: Vec<ArrayRef>, fields: Fields) -> Vec<(Option<String>, Column)> {
    if arrays.iter().any(|array| array.null_count() > 0) {
        return vec![(None, Column::Arrays { arrays, of: DataType::Struct(fields) })];
    }
    let column = |(index, field): (usize, &arrow_schema::FieldRef)| {
        let arrays = arrays.iter().map(|array| Arc::clone(array.as_struct().column(index))).collect();
        (Some(field.name().clone()), Column::Arrays { arrays, of: field.data_type().clone() })
    };
    fields.iter().enumerate().map(column).collect()
}

impl Column {
    /// The number of its rows; none for a constant, which has any number.
    pub(crate) fn len(&self) -> Option<u64> {
        match self {
            Column::Arrays { arrays, .. } => Some(arrays.iter().map(|array| array.len() as u64).sum()),
            Column::Constant(_) => None,
        }
    }

    /// Its approximate size in bytes.
    pub(crate) fn len_bytes(&self) -> usize {
        let Column::Arrays { arrays, .. } = self else { return 0 };
        arrays.iter().filter_map(|array| array.to_data().get_slice_memory_size().ok()).sum()
    }
}

/// One row of columns; none if they have no such row.
pub(crate) fn row_of(columns: &[&Column], row: u64) -> Option<Chunk> {
    let part = |column: &&Column| match column {
        Column::Constant(value) => Some(Part::Constant(value.clone())),
        Column::Arrays { arrays, .. } => {
            let mut offset = usize::try_from(row).ok()?;
            let array = arrays.iter().find(|array| match array.len() {
                len if offset < len => true,
                len => {
                    offset -= len;
                    false
                }
            })?;
            Some(Part::Array(array.slice(offset, 1)))
        }
    };
    let parts = columns.iter().map(part).collect::<Option<Vec<_>>>()?;
    Some(Chunk { first_row: row, len: 1, parts })
}

/// A part of columns of the same length: some rows of one array of each.
pub(crate) struct Chunk {
    pub(crate) first_row: u64,
    pub(crate) len: usize,
    parts: Vec<Part>,
}

enum Part {
    Array(ArrayRef),
    Constant(Datum),
}

impl Chunk {
    /// # Errors
    /// A column with a type that has no sort.
    pub(crate) fn cells(&self) -> Result<Vec<Cells>, String> {
        let cells = |part: &Part| match part {
            Part::Array(array) => Cells::of(array),
            Part::Constant(value) => Ok(Cells::Constant(value.clone())),
        };
        self.parts.iter().map(cells).collect()
    }
}

/// Cuts columns of the same length where one of their arrays ends, and after `rows_max` rows.
pub(crate) fn chunks(columns: &[&Column], rows: u64, rows_max: usize) -> Vec<Chunk> {
    let mut places = vec![(0, 0); columns.len()];
    let (mut chunks, mut first_row) = (Vec::new(), 0);
    while first_row < rows {
        let mut len = rows_max.min(usize::try_from(rows - first_row).unwrap_or(rows_max));
        for (column, (array, offset)) in columns.iter().zip(&mut places) {
            let Column::Arrays { arrays, .. } = column else { continue };
            while *offset == arrays[*array].len() {
                (*array, *offset) = (*array + 1, 0);
            }
            len = len.min(arrays[*array].len() - *offset);
        }
        let take = |(column, (array, offset)): (&&Column, &mut (usize, usize))| match column {
            Column::Constant(value) => Part::Constant(value.clone()),
            Column::Arrays { arrays, .. } => {
                let part = arrays[*array].slice(*offset, len);
                *offset += len;
                Part::Array(part)
            }
        };
        let parts = columns.iter().zip(&mut places).map(take).collect();
        chunks.push(Chunk { first_row, len, parts });
        first_row += len as u64;
    }
    chunks
}
