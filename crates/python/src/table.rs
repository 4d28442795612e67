//! Tables: reads and writes of one table.

use folddb::{Datum, Error, HistoryEntry, RunInfo, WriteOp};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice, PyString};

use crate::arrow::Columns;
use crate::columns::{Source, in_row, source};
use crate::convert::shown;
use crate::encode::by_name;
use crate::errors::{detached, invalid, raise};
use crate::finds::{Asked, Find};
use crate::forks::Guarded;
use crate::frames::{self, Frame};
use crate::keys;
use crate::maintenance::Progress;
use crate::many::{Many, encoded_keys, key_of_row};
use crate::operands;
use crate::place::{Opened, Placed};
use crate::records::{self, record};
use crate::rules;
use crate::scan::{Bounds, Range, Rows, Scan};
use crate::settings::{as_of, durability, lifetime};
use crate::streams::{RawReader, RawWriter};
use crate::typed::{value_of, with_type};

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
        let (table, key_bytes) = self.key(key)?;
        let mut bytes = Vec::with_capacity(32);
        operands::encode(table, &|| shown(key), value, &mut bytes)?;
        detached(py, || table.write(op, &key_bytes, &bytes))
    }

    fn source_of_keys(&self, keys: &Bound<'_, PyAny>, skips: bool) -> PyResult<Source> {
        let table = self.0.get()?;
        let given = source(table.name(), keys, skips, &|_, key, out| {
            keys::encode(table.name(), &table.codec, key, out).map(|()| true)
        })?;
        by_name(table, given).map_err(|why| invalid(format!("table `{}`: {why}", table.name())))
    }

    fn write_many(
        &self,
        py: Python<'_>,
        op: WriteOp,
        keys: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
        skips: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let table = self.0.get()?;
        let keys = self.source_of_keys(keys, skips)?;
        let values = source(table.name(), values, skips, &|row, value, out| {
            operands::encode_of_list(table, &|| key_of_row(table, &keys, row), value, out)
        })?;
        let many = Many { op, keys, values, skips };
        let progress = Progress::new(progress);
        progress.result(detached(py, || many.write(table, |done, total| progress.report(done, total))))
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
        let text = self.0.get()?.table.rules().as_table_rules().to_string();
        let rules = PyDict::new(py);
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            rules.set_item(name, value)?;
        }
        Ok(rules)
    }

    /// The value of a key, or the default if the key is absent.
    #[pyo3(signature = (key, default = None))]
    pub(crate) fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.datum(py, key)? {
            Some(value) => value_of(py, self.0.get()?, &value),
            None => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    /// The value of a key, which is deleted in the same moment, or the default if the key is
    /// absent. Of several threads that take one value, one gets it.
    #[pyo3(signature = (key, default = None))]
    pub(crate) fn take<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (table, key) = self.key(key)?;
        match detached(py, || table.take(&key))? {
            Some(value) => value_of(py, table, &value),
            None => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = key.cast::<PySlice>() {
            return Ok(self.slice(slice)?.into_pyobject(py)?.into_any());
        }
        match self.datum(py, key)? {
            Some(value) => value_of(py, self.0.get()?, &value),
            None => Err(PyKeyError::new_err((key.clone().unbind(),))),
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

    /// Replaces the value of a key by this one. Returns the seq of the record; None if it is
    /// written later, with a batch or a transaction.
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
                .and_then(|()| operands::encode(table, &|| shown(&key), &value, &mut value_bytes));
            read.map_err(|error| in_row(py, number as u64, error))?;
            encoded.push((key_bytes, value_bytes));
        }
        detached(py, || table.put_all(&encoded))
    }

    /// Folds whole columns at once. Returns how many rows were written.
    ///
    /// Keys and values are columns of Arrow (anything with `__arrow_c_stream__` or
    /// `__arrow_c_array__`), NumPy arrays, or lists; for keys that are tuples, a table or a tuple
    /// of columns; for records, a table or a dict of columns. A value that is not a column is used
    /// for all rows. A null operand folds nothing.
    ///
    /// All rows are checked first: if a row does not fit, the error names it and nothing is
    /// written; with `skip_invalid` the row is skipped. `progress` is called with the rows done and
    /// the total; if it raises, the remaining rows are not written.
    #[pyo3(signature = (keys, values, *, skip_invalid = false, progress = None))]
    fn fold_many(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
        skip_invalid: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        self.write_many(py, WriteOp::Fold, keys, values, skip_invalid, progress)
    }

    /// Puts whole columns at once, as `fold_many` folds them. A null cannot be put.
    #[pyo3(signature = (keys, values, *, skip_invalid = false, progress = None))]
    fn put_many(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
        skip_invalid: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        self.write_many(py, WriteOp::Put, keys, values, skip_invalid, progress)
    }

    /// The values of keys as of one moment, in the order of the keys. These are given as to
    /// `fold_many`. The result is columns of Arrow, with null for each absent key.
    fn get_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<Columns> {
        let table = self.0.get()?;
        let keys = self.source_of_keys(keys, false)?;
        let frame = Frame::of(table);
        let batches = detached(py, || {
            let keys = encoded_keys(table, &keys)?;
            let values = table.get_many(&keys)?;
            let (mut batches, mut rows) = (Vec::new(), frame.rows());
            let finish =
                |rows: frames::Rows<'_>| rows.finish().map_err(|cause| Error::invalid(cause.to_string()));
            for (key, value) in keys.iter().zip(&values) {
                if rows.is_full() {
                    batches.push(finish(std::mem::replace(&mut rows, frame.rows()))?);
                }
                rows.push(key, value.as_deref())?;
            }
            batches.push(finish(rows)?);
            Ok(batches)
        })?;
        Ok(Columns::new(frame.schema, batches))
    }

    /// Makes a key absent. It need not exist.
    pub(crate) fn delete(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let (table, key) = self.key(key)?;
        detached(py, || table.write(WriteOp::Delete, &key, &[]))
    }

    /// Makes all keys from `start` on, up to but not including `before`, absent. Costs as much as
    /// one write.
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

    /// Makes all keys with this prefix absent: the first elements of a tuple, or the beginning of
    /// text or bytes.
    pub(crate) fn delete_prefix(&self, py: Python<'_>, prefix: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let table = self.0.get()?;
        let prefix = keys::prefix(table.name(), &table.codec, prefix)?;
        detached(py, || table.delete_prefix(&prefix))
    }

    /// A range of the table, to be iterated, counted, or taken as a whole: from `start` on or after
    /// `after`, up to `before` (excluded) or `through` (included), or all keys that begin with
    /// `prefix`.
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

    /// How many keys there are. It reads all of them.
    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        self.range(Bounds::default(), false, None)?.count(py)
    }

    fn __bool__(&self) -> bool {
        true // a handle is one whether the table has keys or not
    }

    /// The totals of the table: the number of rows, and their values folded with one another.
    fn aggregate<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.range(Bounds::default(), false, None)?.aggregate(py)
    }

    /// What is known about a value without reading it; None if the key is absent.
    fn head<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (table, key) = self.key(key)?;
        let head = detached(py, || table.head(&key))?;
        head.map(|head| records::head(py, &head)).transpose()
    }

    /// The past states of a key, newest first, as far as the table keeps them.
    #[pyo3(signature = (key, limit = 100))]
    fn history<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        limit: usize,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (table, key) = self.key(key)?;
        let itself = table.itself().map_err(raise)?;
        let entries = detached(py, || itself.history(&key, limit))?;
        let entry = |entry: &HistoryEntry<Option<Vec<u8>>>| {
            let value =
                entry.value.as_ref().map(|value| table.values.show(&table.table, value).map_err(raise));
            let value = value.transpose()?.map(|value| value_of(py, table, &value)).transpose()?;
            record(py, "HistoryEntry", (entry.seq.map(u64::from), entry.written, value, entry.deadline))
        };
        entries.iter().map(entry).collect()
    }

    /// The value that a key had at a seq or a past moment, which is known to about a second, or the
    /// default.
    #[pyo3(signature = (key, as_of, default = None))]
    fn get_at<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        as_of: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (table, key) = self.key(key)?;
        let (itself, as_of) = (table.itself().map_err(raise)?, self::as_of(as_of)?);
        match detached(py, || itself.get_at(&key, as_of))? {
            Some(value) => value_of(py, table, &table.values.show(&table.table, &value).map_err(raise)?),
            None => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    /// Adds an index by its rule, `city:json:/address/city`, and builds it. `progress` is called
    /// with the keys done and about how many there are; if it raises, the build stops there, and
    /// continues when the index is added again.
    #[pyo3(signature = (rule, progress = None))]
    fn add_index(&self, py: Python<'_>, rule: &str, progress: Option<Py<PyAny>>) -> PyResult<()> {
        let (itself, rule) = (self.0.get()?.itself().map_err(raise)?, rules::index(rule)?);
        let progress = Progress::new(progress);
        let report = |at: folddb::IndexProgress| progress.report(at.keys_done, at.keys_total);
        progress.result(detached(py, || itself.add_index_with(&rule, report)))
    }

    /// Removes an index.
    fn drop_index(&self, py: Python<'_>, index: &str) -> PyResult<()> {
        let itself = self.0.get()?.itself().map_err(raise)?;
        detached(py, || itself.drop_index(index))
    }

    /// The names of the indexes, with their rules.
    fn indexes(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let table = self.0.get()?;
        let indexes = detached(py, || Ok(table.table.indexes()))?;
        Ok(indexes.into_iter().map(|index| (index.rule.name.clone(), index.rule.terms.to_string())).collect())
    }

    /// The records that an index finds by this term, by terms with this prefix, or by terms from
    /// `start` on, up to but not including `before`.
    #[pyo3(signature = (index, term = None, *, prefix = None, start = None, before = None, reverse = false,
                        limit = None))]
    fn find(
        slf: &Bound<'_, Self>,
        index: &str,
        term: Option<Bound<'_, PyAny>>,
        prefix: Option<Bound<'_, PyAny>>,
        start: Option<Bound<'_, PyAny>>,
        before: Option<Bound<'_, PyAny>>,
        reverse: bool,
        limit: Option<usize>,
    ) -> PyResult<Find> {
        Find::new(slf.py(), slf.get().0.get()?, index, Asked { term, prefix, start, before }, reverse, limit)
    }

    /// A value as a file-like object to read, from any place; None if the key is absent.
    fn reader<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (table, key) = self.key(key)?;
        let Some(reader) = detached(py, || table.read(&key))? else { return Ok(None) };
        let streams = py.import("folddb.streams")?;
        streams.getattr("reader")?.call1((RawReader::new(reader),)).map(Some)
    }

    /// A file-like object to write. What is written becomes the value when it is closed. The rules
    /// of the table must take any bytes as a value.
    fn writer<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (table, key) = self.key(key)?;
        let itself = table.itself().map_err(raise)?;
        let writer = detached(py, || itself.writer(WriteOp::Put, &key))?;
        py.import("folddb.streams")?.getattr("writer")?.call1((RawWriter::new(writer),))
    }

    /// Merges all runs of the table into one, right away. `progress` is called with the bytes done
    /// and the total; if it raises, the work ends.
    #[pyo3(signature = (progress = None))]
    fn compact(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<()> {
        let itself = self.0.get()?.itself().map_err(raise)?;
        let progress = Progress::new(progress);
        let report = |at: folddb::CompactProgress| progress.report(at.bytes_done, at.bytes_total);
        progress.result(detached(py, || itself.compact_with(report)))
    }

    /// Estimates for the table: keys, records and bytes.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let itself = self.0.get()?.itself().map_err(raise)?;
        let stats = detached(py, || itself.stats())?;
        let told = PyDict::new(py);
        told.set_item("keys_estimate", stats.keys_estimate)?;
        told.set_item("records", stats.records)?;
        told.set_item("disk_bytes", stats.disk_bytes)?;
        told.set_item("memtable_bytes", stats.memtable_bytes)?;
        told.set_item("index_bytes", stats.index_bytes)?;
        told.set_item("runs", stats.runs.len())?;
        Ok(told)
    }

    /// The runs of the table, newest first: their tier, parts, records and bytes.
    fn runs<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let itself = self.0.get()?.itself().map_err(raise)?;
        let stats = detached(py, || itself.stats())?;
        let told = |run: &RunInfo| {
            let told = PyDict::new(py);
            told.set_item("tier", run.tier)?;
            told.set_item("parts", run.parts.len())?;
            told.set_item("records", run.records())?;
            told.set_item("disk_bytes", run.bytes())?;
            Ok(told)
        };
        stats.runs.iter().map(told).collect()
    }

    /// The first rows, as notebooks show them.
    fn _repr_html_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let title = format!("table `{}`", self.0.get()?.name());
        let scan = self.range(Bounds::default(), false, None)?;
        py.import("folddb.notebook")?.getattr("html")?.call1((title, scan))
    }

    /// Another handle of the table, for single writes of this durability.
    fn with_durability(&self, durability: &str) -> PyResult<Table> {
        let table = self.0.get()?;
        let durability = self::durability(durability)?;
        let own = table.itself().map_err(raise)?.with_durability(durability);
        Ok(Table::new(Placed { table: own, durability, ..table.clone() }))
    }

    /// Another handle of the table, for writes of values with this lifetime: a `timedelta`, a
    /// `datetime` with a time zone until which they last, or None for forever. The rules of the
    /// table must have `expire`.
    fn with_lifetime(&self, lifetime: &Bound<'_, PyAny>) -> PyResult<Table> {
        let table = self.0.get()?;
        let table = Placed { table: table.table.with_lifetime(self::lifetime(lifetime)?), ..table.clone() };
        Ok(Table::new(table))
    }

    /// Another handle of the table, which gives values that are dicts as instances of this class: a
    /// dataclass, for example. The class is called with the fields by their names.
    #[pyo3(signature = (cls))]
    fn with_type(&self, cls: &Bound<'_, PyAny>) -> PyResult<Table> {
        with_type(self.0.get()?, cls).map(Table::new)
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
            return Err(invalid("a slice of a table has no step; use scan(reverse=True) to go backward"));
        }
        let bounds = Bounds { start: part("start")?, before: part("stop")?, ..Bounds::default() };
        self.range(bounds, false, None)
    }
}

/// The table that an argument is: a handle, or a name.
pub(crate) fn table_of(store: &Opened, argument: &Bound<'_, PyAny>) -> PyResult<Placed> {
    if let Ok(table) = argument.cast::<Table>() {
        return Ok(table.get().0.get()?.clone());
    }
    match argument.cast::<PyString>() {
        Ok(name) => {
            let name = name.to_cow()?;
            detached(argument.py(), || store.table(&name))
        }
        Err(_) => Err(invalid("a table is given by its handle or by its name")),
    }
}
