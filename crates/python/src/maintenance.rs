//! Maintenance of a store: check it, reclaim its space, back it up and restore it.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;

use folddb::maintenance::{
    BackupOptions, BackupReport, ByteProgress, Generation, RestoreOptions, Severity, VerifyOptions,
};
use folddb::{Seq, Store};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::calls;
use crate::errors::detached;
use crate::settings::options;

/// A function of Python that is called with the work done and the total work. If it raises, the
/// work ends and raises the same.
pub(crate) struct Progress {
    told: Option<Py<PyAny>>,
    raised: Mutex<Option<PyErr>>,
}

impl Progress {
    pub(crate) fn new(told: Option<Py<PyAny>>) -> Progress {
        Progress { told, raised: Mutex::new(None) }
    }

    pub(crate) fn report(&self, done: u64, total: u64) -> ControlFlow<()> {
        let Some(told) = &self.told else { return ControlFlow::Continue(()) };
        let report = || Python::attach(|py| told.call1(py, (done, total)));
        match calls::called("a function to call with the progress", report) {
            Ok(_) => ControlFlow::Continue(()),
            Err(raised) => {
                self.raised.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(raised);
                ControlFlow::Break(())
            }
        }
    }

    /// What it raised, otherwise the result of the work.
    pub(crate) fn result<T>(&self, done: PyResult<T>) -> PyResult<T> {
        match self.raised.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take() {
            Some(raised) => Err(raised),
            None => done,
        }
    }
}

/// Adds a backup of a store to a folder for backups.
pub(crate) fn backup<'py>(
    py: Python<'py>,
    store: &Store,
    to: PathBuf,
    options: BackupOptions,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let progress = Progress::new(progress);
    let report = |at: ByteProgress| progress.report(at.bytes_done, at.bytes_total);
    let report: BackupReport = progress.result(detached(py, || store.backup_with(to, &options, report)))?;
    let told = PyDict::new(py);
    told.set_item("generation", report.generation)?;
    told.set_item("path", report.path)?;
    told.set_item("first_seq", u64::from(report.first_seq))?;
    told.set_item("last_seq", u64::from(report.last_seq))?;
    told.set_item("copied_bytes", report.copied.bytes)?;
    told.set_item("linked_bytes", report.linked.bytes)?;
    told.set_item("removed", report.removed)?;
    Ok(told)
}

/// The backups in a directory, oldest first, as dicts. `damage` says why one cannot be restored.
#[pyfunction]
#[pyo3(signature = (place, **settings))]
pub(crate) fn backups<'py>(
    py: Python<'py>,
    place: PathBuf,
    settings: Option<&Bound<'py, PyDict>>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let options = options(settings)?;
    let found = detached(py, || Store::backups(place, &options))?;
    let told = |of: Generation| {
        let told = PyDict::new(py);
        told.set_item("generation", of.number)?;
        told.set_item("path", of.path)?;
        told.set_item("made", of.made)?;
        told.set_item("first_seq", u64::from(of.first_seq))?;
        told.set_item("last_seq", u64::from(of.last_seq))?;
        told.set_item("files", of.files)?;
        told.set_item("bytes", of.bytes)?;
        told.set_item("damage", of.damage)?;
        Ok(told)
    };
    found.into_iter().map(told).collect()
}

/// Reclaims the space of dead values at once, as long as that is worth it.
pub(crate) fn reclaim<'py>(py: Python<'py>, store: &Store) -> PyResult<Bound<'py, PyDict>> {
    let report = detached(py, || store.reclaim())?;
    let told = PyDict::new(py);
    told.set_item("bytes_before", report.bytes_before)?;
    told.set_item("bytes_after", report.bytes_after)?;
    told.set_item("bytes_copied", report.bytes_copied)?;
    told.set_item("left_alone", report.left_alone)?;
    Ok(told)
}

/// Creates a store from a backup: the latest, or the one of this generation; as it was at a seq, if
/// the backups have the log of that time. Files are linked where that is possible, unless `copy` is
/// true. `progress` is called with the bytes done and the total;
/// if it raises, no store is made.
#[pyfunction]
#[pyo3(signature = (backups, to, *, generation = None, at_seq = None, copy = false, progress = None, **settings))]
pub(crate) fn restore<'py>(
    py: Python<'py>,
    backups: PathBuf,
    to: PathBuf,
    generation: Option<u64>,
    at_seq: Option<u64>,
    copy: bool,
    progress: Option<Py<PyAny>>,
    settings: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let what = RestoreOptions::default().generation(generation).at_seq(at_seq.map(Seq::from)).copy(copy);
    let options = options(settings)?;
    let progress = Progress::new(progress);
    let told = |at: ByteProgress| progress.report(at.bytes_done, at.bytes_total);
    let report = progress.result(detached(py, || Store::restore_with(backups, to, &what, &options, told)))?;
    let told = PyDict::new(py);
    told.set_item("generation", report.generation)?;
    told.set_item("last_seq", u64::from(report.last_seq))?;
    Ok(told)
}

/// Checks a store that nobody has open: every file, and with `deep` every value. The findings are
/// in `damage`, `unfit` (values that programs wrote and that their tables do not take) and `notes`;
/// `parts_unread` counts files that this build cannot read: it lacks a feature, or is too old.
#[pyfunction]
#[pyo3(signature = (path, *, deep = false, progress = None, **settings))]
pub(crate) fn verify<'py>(
    py: Python<'py>,
    path: PathBuf,
    deep: bool,
    progress: Option<Py<PyAny>>,
    settings: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = options(settings)?;
    let progress = Progress::new(progress);
    let how = VerifyOptions::default().deep(deep);
    let report = |at: ByteProgress| progress.report(at.bytes_done, at.bytes_total);
    let report = progress.result(detached(py, || Store::verify_with(path, &how, &options, report)))?;
    let of = |severity| report.findings.iter().filter(move |found| found.severity == severity);
    let told = PyDict::new(py);
    told.set_item("is_clean", report.is_clean())?;
    told.set_item("damage", PyList::new(py, of(Severity::Damage).map(ToString::to_string))?)?;
    told.set_item("unfit", PyList::new(py, of(Severity::Unfit).map(ToString::to_string))?)?;
    told.set_item("notes", PyList::new(py, of(Severity::Note).map(ToString::to_string))?)?;
    told.set_item("parts_unread", report.checked.parts_unread)?;
    told.set_item("tables", report.checked.tables)?;
    told.set_item("records", report.checked.records)?;
    told.set_item("bytes", report.checked.bytes)?;
    Ok(told)
}
