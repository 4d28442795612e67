//! Change feeds: what is committed, in order, from the place that was acknowledged last.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use folddb::codec::KeyCodec;
use folddb::table_rules::TableRules;
use folddb::{DynamicRules, Feed, FeedChange, FeedEvent, FeedOp, FeedTable, Options};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::convert::python_of;
use crate::errors::invalid;
use crate::forks::Guarded;
use crate::keys;
use crate::records::record;

/// A feed: iterate over what is there, or wait for the `next` event.
#[pyclass(frozen, module = "folddb", name = "Feed")]
pub(crate) struct FeedOf {
    feed: Guarded<Mutex<Feed>>,
    rules: Mutex<HashMap<u32, Option<DynamicRules>>>,
    options: Guarded<Options>,
}

impl FeedOf {
    pub(crate) fn new(feed: Feed, options: Options) -> FeedOf {
        FeedOf {
            feed: Guarded::new(Mutex::new(feed)),
            rules: Mutex::default(),
            options: Guarded::new(options),
        }
    }

    fn rules(&self, table: &FeedTable) -> Option<DynamicRules> {
        let mut known = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let rules = || {
            let rules = table.rules_text.parse::<TableRules>().ok()?;
            DynamicRules::new(&rules, self.options.look()?).ok()
        };
        known.entry(table.id).or_insert_with(rules).clone()
    }

    fn key<'py>(&self, py: Python<'py>, table: &FeedTable, key: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let rules = self.rules(table);
        let codec = rules.as_ref().map_or(&KeyCodec::Bytes, |rules| rules.as_table_rules().key_codec());
        keys::decode(py, codec, key)
    }

    /// A bound of a range: a key, or bytes where it is none, such as the end of a prefix of tuples.
    fn bound<'py>(&self, py: Python<'py>, table: &FeedTable, bound: &[u8]) -> Bound<'py, PyAny> {
        self.key(py, table, bound).unwrap_or_else(|_| PyBytes::new(py, bound).into_any())
    }

    fn value<'py>(&self, py: Python<'py>, table: &FeedTable, value: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let shown = self.rules(table).and_then(|rules| crate::values::show_by(&rules, value).ok());
        match shown {
            Some(shown) => python_of(py, &shown),
            None => Ok(PyBytes::new(py, value).into_any()),
        }
    }

    fn event<'py>(&self, py: Python<'py>, event: &FeedEvent) -> PyResult<Bound<'py, PyAny>> {
        match event {
            FeedEvent::Begin { seq, time } => record(py, "Begin", (u64::from(*seq), *time)),
            FeedEvent::Row(row) => {
                let key = self.key(py, &row.table, &row.key)?;
                let value = row.value.as_ref().map(|value| self.value(py, &row.table, value)).transpose()?;
                record(py, "Row", (&row.table.name, key, value, row.deadline))
            }
            FeedEvent::RowsEnd => record(py, "RowsEnd", ()),
            FeedEvent::Batch(batch) => {
                let ops = batch.ops.iter().map(|op| self.op(py, op)).collect::<PyResult<Vec<_>>>()?;
                let ops = PyList::new(py, ops)?;
                let (first_seq, last_seq) = (u64::from(batch.first_seq), u64::from(batch.last_seq));
                record(py, "Changes", (first_seq, last_seq, batch.written, ops))
            }
            FeedEvent::TableCreated(table) => record(py, "TableCreated", (&table.name,)),
            FeedEvent::TableDropped(table) => record(py, "TableDropped", (&table.name,)),
            unknown => Err(not_known(unknown)),
        }
    }

    fn op<'py>(&self, py: Python<'py>, op: &FeedOp) -> PyResult<Bound<'py, PyAny>> {
        let value = |value: &[u8]| self.value(py, &op.table, value);
        let long = |bytes: u64| Ok::<_, PyErr>(bytes.into_pyobject(py)?.into_any());
        let (name, value) = match &op.change {
            FeedChange::Put(bytes) => ("put", value(bytes)?),
            FeedChange::PutIfAbsent(bytes) => ("put_if_absent", value(bytes)?),
            FeedChange::Fold(bytes) => ("fold", value(bytes)?),
            FeedChange::Delete => ("delete", py.None().into_bound(py)),
            FeedChange::DeleteRange(to) => ("delete_range", self.bound(py, &op.table, to)),
            FeedChange::PutLong(bytes) => ("put_long", long(*bytes)?),
            FeedChange::PutIfAbsentLong(bytes) => ("put_if_absent_long", long(*bytes)?),
            FeedChange::FoldLong(bytes) => ("fold_long", long(*bytes)?),
            unknown => return Err(not_known(unknown)),
        };
        let key = match &op.change {
            FeedChange::DeleteRange(_) => self.bound(py, &op.table, &op.key),
            _ => self.key(py, &op.table, &op.key)?,
        };
        record(py, "Change", (u64::from(op.seq), &op.table.name, name, key, value))
    }
}

/// An event that this library does not know is an error: nothing is skipped silently.
fn not_known(what: &impl std::fmt::Debug) -> PyErr {
    crate::errors::invalid(format!("the feed has an event that this version does not know: {what:?}"))
}

/// The longest wait between two checks for signals.
const WAIT: Duration = Duration::from_millis(100);

#[pymethods]
impl FeedOf {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// The next event that is there already. The iteration ends when there is none; a new one
    /// continues from there.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let event = self.feed.with(py, Feed::poll)?;
        event.map(|event| self.event(py, &event)).transpose()
    }

    /// Waits for the next event, at most `timeout_s` seconds; None if there is none.
    #[pyo3(signature = (timeout_s = f64::INFINITY))]
    fn next<'py>(&self, py: Python<'py>, timeout_s: f64) -> PyResult<Option<Bound<'py, PyAny>>> {
        if timeout_s.is_nan() {
            return Err(invalid(
                "timeout_s is nan, which no time is: leave it out to wait as long as it takes",
            ));
        }
        let begun = std::time::Instant::now();
        loop {
            let left = timeout_s - begun.elapsed().as_secs_f64();
            let wait = Duration::try_from_secs_f64(left.max(0.0)).unwrap_or(WAIT).min(WAIT);
            if let Some(event) = self.feed.with(py, |feed| feed.next(wait))? {
                return self.event(py, &event).map(Some);
            }
            py.check_signals()?;
            if left <= 0.0 {
                return Ok(None);
            }
        }
    }

    /// Acknowledges everything taken so far: the feed continues after it, also when it is opened
    /// again.
    fn acknowledge(&self, py: Python<'_>) -> PyResult<()> {
        self.feed.with(py, |feed| {
            let place = feed.position();
            feed.acknowledge(place)
        })
    }

    /// The seq of the last record that was taken.
    #[getter]
    fn seq(&self, py: Python<'_>) -> PyResult<u64> {
        self.feed.with(py, |feed| Ok(feed.position().seq().into()))
    }

    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        self.feed.with(py, |feed| Ok(feed.name().to_owned()))
    }
}
