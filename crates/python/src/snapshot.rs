//! Snapshots: a store as it was at one moment.

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use folddb::Snapshot;
use pyo3::prelude::*;

use crate::errors::raise;
use crate::forks::Guarded;
use crate::place::{Opened, Place};
use crate::table::{Table, table_of};

/// A store as it was at one moment, until the `with` block ends.
#[pyclass(frozen, module = "folddb", name = "Snapshot")]
pub(crate) struct SnapshotOf {
    store: Guarded<Opened>,
    snapshot: Guarded<Mutex<Option<Snapshot>>>,
    seq: u64,
    time: SystemTime,
}

impl SnapshotOf {
    pub(crate) fn new(opened: Opened, snapshot: Snapshot) -> SnapshotOf {
        let (seq, time) = (snapshot.seq().into(), snapshot.time());
        let snapshot = Guarded::new(Mutex::new(Some(snapshot)));
        SnapshotOf { store: Guarded::new(opened), snapshot, seq, time }
    }

    fn snapshot(&self) -> PyResult<Snapshot> {
        let held = self.snapshot.get()?.lock().unwrap_or_else(PoisonError::into_inner);
        match &*held {
            Some(snapshot) => Ok(snapshot.clone()),
            None => Err(raise(
                folddb::Error::new(folddb::ErrorKind::Closed, "this snapshot was left, and is over")
                    .advise("read inside its `with` block, or take another"),
            )),
        }
    }
}

#[pymethods]
impl SnapshotOf {
    /// The seq of the last record that it sees.
    #[getter]
    fn seq(&self) -> u64 {
        self.seq
    }

    /// The moment that it shows.
    #[getter]
    fn time(&self) -> SystemTime {
        self.time
    }

    /// A table as this snapshot sees it, by its handle or its name.
    fn table(&self, table: &Bound<'_, PyAny>) -> PyResult<Table> {
        let placed = table_of(self.store.get()?, table)?;
        Ok(Table::new(placed.at(Place::Snapshot(self.snapshot()?))))
    }

    fn __getitem__(&self, table: &Bound<'_, PyAny>) -> PyResult<Table> {
        self.table(table)
    }

    /// Ends the snapshot. Its tables and scans that are still in use keep what it saw.
    fn close(&self) -> PyResult<()> {
        let held = self.snapshot.get()?.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(held.map(Guarded::new));
        Ok(())
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close()
    }
}
