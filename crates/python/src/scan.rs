//! Scans: a range of a table, to be iterated, counted, or taken as a whole.

use std::collections::VecDeque;
use std::ops;
use std::sync::Mutex;

use folddb::codec::KeyRange;
use folddb::{BytesRows, BytesScan, Result};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::{detached, invalid, raise};
use crate::forks::Guarded;
use crate::keys;
use crate::place::Placed;
use crate::records::{self, record};
use crate::typed::value_of;

/// The bounds of a range, by the names that scans have in Rust; `start` is `from`.
#[derive(Default)]
pub(crate) struct Bounds<'py> {
    pub(crate) prefix: Option<Bound<'py, PyAny>>,
    pub(crate) start: Option<Bound<'py, PyAny>>,
    pub(crate) after: Option<Bound<'py, PyAny>>,
    pub(crate) before: Option<Bound<'py, PyAny>>,
    pub(crate) through: Option<Bound<'py, PyAny>>,
}

/// A range of a table, and its direction and limit.
#[derive(Clone)]
pub(crate) struct Range {
    keys: KeyRange,
    reverse: bool,
    limit: usize,
}

impl Range {
    /// # Errors
    /// InvalidInput for bounds that are not keys of the table, and for two bounds at one end.
    pub(crate) fn of(
        table: &Placed,
        bounds: Bounds<'_>,
        reverse: bool,
        limit: Option<usize>,
    ) -> PyResult<Range> {
        let span = |key: &Bound<'_, PyAny>| keys::span(table.name(), &table.codec, key);
        let mut range = KeyRange::all();
        let named = [
            bounds.start.is_some(),
            bounds.after.is_some(),
            bounds.before.is_some(),
            bounds.through.is_some(),
        ];
        if named[0] && named[1] || named[2] && named[3] || bounds.prefix.is_some() && named.contains(&true) {
            let name = table.name();
            return Err(invalid(format!(
                "a scan of table `{name}` has one beginning and one end: start or after, before or through, or a prefix alone"
            )));
        }
        if let Some(key) = bounds.prefix {
            range = KeyRange::prefix(keys::prefix(table.name(), &table.codec, &key)?);
        }
        if let Some(key) = bounds.start {
            range.low = span(&key)?.from();
        }
        if let Some(key) = bounds.after {
            range.low = span(&key)?.after();
        }
        if let Some(key) = bounds.before {
            range.high = span(&key)?.before();
        }
        if let Some(key) = bounds.through {
            range.high = span(&key)?.through();
        }
        Ok(Range { keys: range, reverse, limit: limit.unwrap_or(usize::MAX) })
    }

    /// Narrows a scan of the whole table to this range.
    fn narrow(&self, scan: BytesScan) -> BytesScan {
        let is_all = self.keys.low == ops::Bound::Unbounded && self.keys.high == ops::Bound::Unbounded;
        let scan = if is_all { scan } else { scan.within(self.keys.clone()) };
        let scan = if self.reverse { scan.reverse() } else { scan };
        scan.limit(self.limit)
    }
}

/// A range of a table: iterate over it, count it, or take it as Arrow.
#[pyclass(frozen, module = "folddb")]
pub(crate) struct Scan {
    table: Guarded<Placed>,
    range: Range,
}

impl Scan {
    pub(crate) fn new(table: Placed, range: Range) -> Scan {
        Scan { table: Guarded::new(table), range }
    }

    /// The scan in Rust, of the table as it is now.
    pub(crate) fn begin(&self, py: Python<'_>) -> PyResult<(&Placed, BytesScan)> {
        let table = self.table.get()?;
        Ok((table, detached(py, || table.scan().map(|scan| self.range.narrow(scan)))?))
    }

    fn rows(&self, py: Python<'_>, gives: Gives) -> PyResult<Rows> {
        let (table, scan) = self.begin(py)?;
        let scan = if gives == Gives::Keys { scan.keys_only() } else { scan };
        let rows = detached(py, || Ok(scan.into_iter()))?;
        let walk = Walk { rows, ahead: VecDeque::new(), chunk: 1, reads_ahead: table.reads_ahead() };
        Ok(Rows { walk: Guarded::new(Mutex::new(walk)), table: Guarded::new(table.clone()), gives })
    }
}

#[pymethods]
impl Scan {
    fn __iter__(&self, py: Python<'_>) -> PyResult<Rows> {
        self.rows(py, Gives::Items)
    }

    /// The rows: pairs of key and value.
    pub(crate) fn items(&self, py: Python<'_>) -> PyResult<Rows> {
        self.rows(py, Gives::Items)
    }

    /// The keys; no separated value is read.
    pub(crate) fn keys(&self, py: Python<'_>) -> PyResult<Rows> {
        self.rows(py, Gives::Keys)
    }

    /// The values.
    pub(crate) fn values(&self, py: Python<'_>) -> PyResult<Rows> {
        self.rows(py, Gives::Values)
    }

    /// The totals of the range: the number of rows, and their values folded with one another.
    pub(crate) fn aggregate<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (table, scan) = self.begin(py)?;
        let found = detached(py, || scan.aggregate())?;
        let value = found.value.map(|value| table.values.show(&table.table, &value).map_err(raise));
        let value = value.transpose()?.map(|value| value_of(py, table, &value)).transpose()?;
        record(py, "Aggregate", (found.rows, value))
    }

    /// The keys with what is known about their values without reading them.
    fn heads<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let (table, scan) = self.begin(py)?;
        let found = detached(py, || scan.heads().collect::<Result<Vec<_>>>())?;
        let row = |(key, head): &(Vec<u8>, folddb::Head)| {
            Ok((keys::decode(py, &table.codec, key)?, records::head(py, head)?))
        };
        found.iter().map(row).collect()
    }

    /// The first rows, as notebooks show them.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let title = format!("scan of table `{}`", slf.get().table.get()?.name());
        slf.py().import("folddb.notebook")?.getattr("html")?.call1((title, slf))
    }

    /// How many rows there are.
    pub(crate) fn count(&self, py: Python<'_>) -> PyResult<u64> {
        let (_, scan) = self.begin(py)?;
        detached(py, || scan.count())
    }

    /// The first row in the direction of the scan; None if there is none.
    fn first<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (table, scan) = self.begin(py)?;
        let row = detached(py, || scan.first())?;
        row.map(|row| Gives::Items.of(py, table, row)).transpose()
    }

    /// The last row in the direction of the scan; None if there is none.
    fn last<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (table, scan) = self.begin(py)?;
        let row = detached(py, || scan.last())?;
        row.map(|row| Gives::Items.of(py, table, row)).transpose()
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        let (_, scan) = self.begin(py)?;
        detached(py, || scan.is_empty()).map(|is_empty| !is_empty)
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<folddb.Scan of table `{}`>", self.table.get()?.name()))
    }
}

/// Which part of a row is given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gives {
    Items,
    Keys,
    Values,
}

impl Gives {
    fn of<'py>(
        self,
        py: Python<'py>,
        table: &Placed,
        (key, value): (Vec<u8>, Vec<u8>),
    ) -> PyResult<Bound<'py, PyAny>> {
        let key = || keys::decode(py, &table.codec, &key);
        let value = || value_of(py, table, &table.values.show(&table.table, &value).map_err(raise)?);
        match self {
            Gives::Keys => key(),
            Gives::Values => value(),
            Gives::Items => Ok(PyTuple::new(py, [key()?, value()?])?.into_any()),
        }
    }
}

/// The most rows that are read ahead, without the lock of the interpreter.
const AHEAD_MAX: usize = 256;

/// A running scan.
struct Walk {
    rows: BytesRows,
    ahead: VecDeque<Result<(Vec<u8>, Vec<u8>)>>,
    chunk: usize,
    reads_ahead: bool,
}

impl Walk {
    fn read_ahead(&mut self) {
        self.ahead.extend(self.rows.by_ref().take(self.chunk));
        if self.reads_ahead {
            self.chunk = (self.chunk * 2).min(AHEAD_MAX);
        }
    }
}

/// Rows of a scan, or their keys or values.
#[pyclass(frozen, module = "folddb")]
pub(crate) struct Rows {
    walk: Guarded<Mutex<Walk>>,
    table: Guarded<Placed>,
    gives: Gives,
}

#[pymethods]
impl Rows {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let row = self.walk.with(py, |walk| {
            if walk.ahead.is_empty() {
                walk.read_ahead();
            }
            walk.ahead.pop_front().transpose()
        })?;
        row.map(|row| self.gives.of(py, self.table.get()?, row)).transpose()
    }
}
