//! Tables: what is read from one, and written to it.

use folddb::{Datum, WriteOp};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice, PyString};

use crate::convert::python_of;
use crate::errors::{detached, invalid, raise};
use crate::forks::Guarded;
use crate::keys;
use crate::place::{Opened, Placed};
use crate::scan::{Bounds, Range, Rows, Scan};
use crate::settings::{durability, lifetime};

/// A table: as it is now, as a snapshot sees it, or in a transaction or a batch. Threads share it.
#[pyclass(frozen, module = "folddb")]
pub(crate) struct Table(pub(crate) Guarded<Placed>);

impl Table {
    pub(crate) fn new(table: Placed) -> Table {
        Table(Guarded::new(table))
    }

    fn key(&self, key: &Bound<'_, PyAny>) -> PyResult<(&Placed, Vec<u8>)> {
        let table = self.0.get()?;
        let mut bytes = Vec::with_capacity(32);
        keys::encode(table.name(), &table.codec, key, &mut bytes)?;
        Ok((table, bytes))
    }

    fn write(
        &self,
        py: Python<'_>,
        op: WriteOp,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<Option<u64>> {
        let (table, key) = self.key(key)?;
        let mut bytes = Vec::with_capacity(32);
        table.values.encode(&table.table, value, &mut bytes)?;
        detached(py, || table.write(op, &key, &bytes))
    }

    fn datum(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<Datum>> {
        let (table, key) = self.key(key)?;
        detached(py, || table.get(&key))
    }

    fn range(&self, bounds: Bounds<'_>, reverse: bool, limit: Option<usize>) -> PyResult<Scan> {
        let table = self.0.get()?;
        Ok(Scan::new(table.clone(), Range::of(table, bounds, reverse, limit)?))
    }
}

#[pymethods]
impl Table {
    /// The name of the table.
    #[getter]
    fn name(&self) -> PyResult<&str> {
        Ok(self.0.get()?.name())
    }

    /// The rules of the table, as the store keeps them.
    #[getter]
    fn rules<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let text = self.0.get()?.table.rules().as_table_rules().to_text();
        let rules = PyDict::new(py);
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            rules.set_item(name, value)?;
        }
        Ok(rules)
    }

    /// The value of a key, or the default where it is absent.
    #[pyo3(signature = (key, default = None))]
    pub(crate) fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.datum(py, key)? {
            Some(value) => python_of(py, &value),
            None => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = key.cast::<PySlice>() {
            return Ok(self.slice(slice)?.into_pyobject(py)?.into_any());
        }
        match self.datum(py, key)? {
            Some(value) => python_of(py, &value),
            None => Err(PyKeyError::new_err(key.clone().unbind())),
        }
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (table, key) = self.key(key)?;
        detached(py, || table.contains(&key))
    }

    fn __setitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.write(py, WriteOp::Put, key, value).map(drop)
    }

    fn __delitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.delete(py, key).map(drop)
    }

    /// Makes the value of a key this one, whatever it was. Returns the seq of the record; None
    /// where it is written later, with a batch or a transaction.
    pub(crate) fn put(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<Option<u64>> {
        self.write(py, WriteOp::Put, key, value)
    }

    /// Gives a key this value unless it has one. Reads nothing in a sorted table.
    pub(crate) fn put_if_absent(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<Option<u64>> {
        self.write(py, WriteOp::PutIfAbsent, key, value)
    }

    /// Folds an operand onto the value of a key. Reads nothing in a sorted table.
    pub(crate) fn fold(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        operand: &Bound<'_, PyAny>,
    ) -> PyResult<Option<u64>> {
        self.write(py, WriteOp::Fold, key, operand)
    }

    /// Puts many rows in one commit: a mapping, or pairs of key and value.
    fn update(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        let table = self.0.get()?;
        let rows = if rows.hasattr("keys")? { rows.call_method0("items")? } else { rows.clone() };
        let mut encoded = Vec::new();
        for (number, row) in rows.try_iter()?.enumerate() {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = row?.extract()?;
            let (mut key_bytes, mut value_bytes) = (Vec::new(), Vec::new());
            let read = keys::encode(table.name(), &table.codec, &key, &mut key_bytes)
                .and_then(|()| table.values.encode(&table.table, &value, &mut value_bytes));
            read.map_err(|error| in_row(number, &error))?;
            encoded.push((key_bytes, value_bytes));
        }
        detached(py, || table.put_all(&encoded))
    }

    /// Makes a key absent. It need not be there.
    pub(crate) fn delete(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let (table, key) = self.key(key)?;
        detached(py, || table.write(WriteOp::Delete, &key, &[]))
    }

    /// Makes all keys from `start` on and before `before` absent. Costs as much as one write.
    pub(crate) fn delete_range(
        &self,
        py: Python<'_>,
        start: &Bound<'_, PyAny>,
        before: &Bound<'_, PyAny>,
    ) -> PyResult<Option<u64>> {
        let (table, from) = self.key(start)?;
        let (_, to) = self.key(before)?;
        detached(py, || table.delete_range(&from, &to))
    }

    /// Makes all keys absent that begin so: a tuple by its first elements, text or bytes by their
    /// beginning.
    pub(crate) fn delete_prefix(&self, py: Python<'_>, prefix: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let table = self.0.get()?;
        let prefix = keys::prefix(table.name(), &table.codec, prefix)?;
        detached(py, || table.delete_prefix(&prefix))
    }

    /// A range of the table, to be iterated, counted, or taken whole: from `start` on or after
    /// `after`, `before` or `through` an end, or all that begins with `prefix`.
    #[pyo3(signature = (prefix = None, *, start = None, after = None, before = None, through = None,
                        reverse = false, limit = None))]
    fn scan(
        &self,
        prefix: Option<Bound<'_, PyAny>>,
        start: Option<Bound<'_, PyAny>>,
        after: Option<Bound<'_, PyAny>>,
        before: Option<Bound<'_, PyAny>>,
        through: Option<Bound<'_, PyAny>>,
        reverse: bool,
        limit: Option<usize>,
    ) -> PyResult<Scan> {
        self.range(Bounds { prefix, start, after, before, through }, reverse, limit)
    }

    /// The keys, in order.
    fn __iter__(&self, py: Python<'_>) -> PyResult<Rows> {
        self.range(Bounds::default(), false, None)?.keys(py)
    }

    /// The keys, in order.
    fn keys(&self, py: Python<'_>) -> PyResult<Rows> {
        self.range(Bounds::default(), false, None)?.keys(py)
    }

    /// The values, in the order of their keys.
    fn values(&self, py: Python<'_>) -> PyResult<Rows> {
        self.range(Bounds::default(), false, None)?.values(py)
    }

    /// The pairs of key and value, in the order of keys.
    fn items(&self, py: Python<'_>) -> PyResult<Rows> {
        self.range(Bounds::default(), false, None)?.items(py)
    }

    /// How many keys there are: it goes over all of them.
    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        self.range(Bounds::default(), false, None)?.count(py)
    }

    fn __bool__(&self) -> bool {
        true // a handle is one whether the table has keys or not
    }

    /// Another handle of the table, whose single writes are as durable as this says.
    fn with_durability(&self, durability: &str) -> PyResult<Table> {
        let table = self.0.get()?;
        let durability = self::durability(durability)?;
        let own = table.itself().map_err(raise)?.with_durability(durability);
        Ok(Table::new(Placed { table: own, durability, ..table.clone() }))
    }

    /// Another handle of the table, whose values last so long: a `timedelta`, until a `datetime`
    /// with a time zone, or forever by None. The rules of the table must have `expire`.
    fn with_lifetime(&self, lifetime: &Bound<'_, PyAny>) -> PyResult<Table> {
        let table = self.0.get()?;
        let table = Placed { table: table.table.with_lifetime(self::lifetime(lifetime)?), ..table.clone() };
        Ok(Table::new(table))
    }

    fn __repr__(&self) -> PyResult<String> {
        let table = self.0.get()?;
        let rules = table.table.rules().as_table_rules();
        Ok(format!("<folddb.Table `{}`, key {}, fold {}>", table.name(), rules.key_codec(), rules.fold))
    }
}

impl Table {
    fn slice(&self, slice: &Bound<'_, PySlice>) -> PyResult<Scan> {
        let part = |name| -> PyResult<Option<Bound<'_, PyAny>>> {
            let part = slice.getattr(name)?;
            Ok((!part.is_none()).then_some(part))
        };
        if part("step")?.is_some() {
            return Err(invalid("a slice of a table has no step; use scan(reverse=True) to go backwards"));
        }
        let bounds = Bounds { start: part("start")?, before: part("stop")?, ..Bounds::default() };
        self.range(bounds, false, None)
    }
}

/// The error of a row of many.
pub(crate) fn in_row(number: usize, error: &PyErr) -> PyErr {
    Python::attach(|py| invalid(format!("row {number}: {}", error.value(py))))
}

/// The table that an argument is: a handle, or a name.
pub(crate) fn table_of(store: &Opened, argument: &Bound<'_, PyAny>) -> PyResult<Placed> {
    if let Ok(table) = argument.cast::<Table>() {
        return Ok(table.get().0.get()?.clone());
    }
    match argument.cast::<PyString>() {
        Ok(name) => store.table(&name.to_cow()?).map_err(raise),
        Err(_) => Err(invalid("a table is given by its handle or by its name")),
    }
}
