//! Scans and results as streams of Arrow's C interface, which PyArrow, Polars, pandas and DuckDB
//! read.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use folddb::LentRows;
use folddb::table_rules::FoldName;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::ffi::{ArrayIterator, ArrayReader, to_stream_pycapsule};

use crate::errors::{detached, invalid};
use crate::forks::Guarded;
use crate::frames::Frame;
use crate::scan::Scan;

/// A scan, batch by batch.
///
/// The caller that reads the next batch may hold the lock of the interpreter or not, and PyO3 does
/// not know which. So nothing in here takes that lock.
struct Batches(Option<Guarded<(Frame, LentRows)>>);

impl Batches {
    fn next_batch(&mut self) -> Option<Result<ArrayRef, ArrowError>> {
        let batch = self.0.as_mut()?.reach().and_then(|(frame, rows)| read(frame, rows));
        match batch {
            Ok(Some(batch)) => Some(batch.map(structs)),
            Ok(None) => None,
            Err(error) => {
                self.0 = None;
                Some(Err(ArrowError::ExternalError(error.to_string().into())))
            }
        }
    }
}

/// The next rows as columns; none at the end.
fn read(frame: &Frame, rows: &mut LentRows) -> folddb::Result<Option<Result<RecordBatch, ArrowError>>> {
    let mut columns = frame.rows();
    while !columns.is_full() {
        match rows.next_row()? {
            Some((key, value)) => columns.push(key, Some(value))?,
            None => break,
        }
    }
    Ok((columns.len > 0).then(|| columns.finish()))
}

/// All of it, read at once, for tables with a fold that takes the lock of the interpreter itself.
fn read_all(frame: &Frame, rows: &mut LentRows) -> folddb::Result<Vec<Result<ArrayRef, ArrowError>>> {
    let mut batches = Vec::new();
    while let Some(batch) = read(frame, rows)? {
        batches.push(batch.map(structs));
    }
    Ok(batches)
}

fn structs(batch: RecordBatch) -> ArrayRef {
    Arc::new(StructArray::from(batch))
}

fn field_of(schema: &Schema) -> FieldRef {
    Arc::new(Field::new("", DataType::Struct(schema.fields().clone()), false))
}

/// How many rows of columns notebooks show.
const ROWS_SHOWN: usize = 10;

/// Rows in columns, passed on by the interface of Arrow: `pyarrow.table(columns)`,
/// `polars.DataFrame(columns)`, `pandas.DataFrame.from_arrow(columns)`.
#[pyclass(frozen, module = "folddb")]
pub(crate) struct Columns {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Columns {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Columns {
        Columns { schema, batches }
    }

    /// The first rows as texts, no more of them than notebooks show.
    fn first_rows(&self) -> Result<Vec<Vec<String>>, ArrowError> {
        let (options, mut rows) = (FormatOptions::default(), Vec::new());
        for batch in &self.batches {
            let columns: Vec<ArrayFormatter<'_>> = batch
                .columns()
                .iter()
                .map(|column| ArrayFormatter::try_new(column, &options))
                .collect::<Result<_, _>>()?;
            let left = ROWS_SHOWN - rows.len();
            rows.extend(
                (0..batch.num_rows().min(left))
                    .map(|row| columns.iter().map(|column| column.value(row).to_string()).collect()),
            );
        }
        Ok(rows)
    }
}

#[pymethods]
impl Columns {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let arrays: Vec<_> = self.batches.iter().map(|batch| Ok(structs(batch.clone()))).collect();
        let reader: Box<dyn ArrayReader + Send> =
            Box::new(ArrayIterator::new(arrays, field_of(&self.schema)));
        Ok(to_stream_pycapsule(py, reader, requested_schema)?)
    }

    /// A `pyarrow.Table` of them, which needs PyArrow.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        pyarrow_table(slf)
    }

    /// The names of the columns.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The first rows, as notebooks show them.
    fn _repr_html_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let rows = self.first_rows().map_err(|error| invalid(error.to_string()))?;
        let html = py.import("folddb.notebook")?.getattr("columns_html")?;
        html.call1((format!("{} rows", self.__len__()), self.names(), rows, self.__len__()))
    }

    fn __repr__(&self) -> String {
        format!("<folddb.Columns {}, {} rows>", self.names().join(", "), self.__len__())
    }
}

fn pyarrow_table<'py>(of: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match of.py().import("pyarrow") {
        Ok(pyarrow) => pyarrow.getattr("table")?.call1((of,)),
        Err(_) => Err(invalid(
            "to_arrow() needs pyarrow: install it, or give this itself to Polars, pandas or DuckDB",
        )),
    }
}

#[pymethods]
impl Scan {
    /// The rows as a stream of Arrow's C interface, read as it is taken.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let (table, scan) = self.begin(py)?;
        let frame = Frame::of(table);
        let field = field_of(&frame.schema);
        let mut rows = detached(py, || scan.rows())?;
        let is_custom = matches!(table.table.rules().as_table_rules().fold, FoldName::Custom { .. });
        let reader: Box<dyn ArrayReader + Send> = if is_custom {
            Box::new(ArrayIterator::new(detached(py, || read_all(&frame, &mut rows))?, field))
        } else {
            let mut batches = Batches(Some(Guarded::outliving((frame, rows))));
            Box::new(ArrayIterator::new(std::iter::from_fn(move || batches.next_batch()), field))
        };
        Ok(to_stream_pycapsule(py, reader, requested_schema)?)
    }

    /// The rows as a `pyarrow.Table`, which needs PyArrow.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        pyarrow_table(slf)
    }
}
