//! Stores: opening, closing, and everything that concerns a store as a whole.

use std::path::PathBuf;

use folddb::maintenance::BackupOptions;
use folddb::table_rules::TableRules;
use folddb::{Durability, Error, ErrorKind, FeedOptions, Options, Result, Store};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{detached, invalid, raise, raise_of_call};
use crate::feeds::FeedOf;
use crate::forks::Guarded;
use crate::keys;
use crate::maintenance;
use crate::open_stores::keep;
use crate::place::{Opened, Placed};
use crate::rules;
use crate::settings::{as_of, durability, options};
use crate::snapshot::SnapshotOf;
use crate::table::Table;
use crate::writers::{BatchOf, TransactionOf};

/// An open store: a directory of tables. It is closed when the `with` block ends. Threads share it.
#[pyclass(frozen, module = "folddb", name = "Store", weakref)]
pub(crate) struct StoreOf(Guarded<Opened>);

fn opened(
    py: Python<'_>,
    path: PathBuf,
    settings: Option<&Bound<'_, PyDict>>,
    open: impl FnOnce(PathBuf, Options) -> Result<Store> + Send,
) -> PyResult<StoreOf> {
    let options = options(settings)?;
    let durability = match settings.map(|settings| settings.get_item("durability")).transpose()?.flatten() {
        Some(word) => self::durability(&word.extract::<String>()?)?,
        None => Durability::default(),
    };
    let told = options.clone();
    let store = keep(detached(py, || open(path, told))?);
    Ok(StoreOf(Guarded::new(Opened { store, durability, options })))
}

/// Opens a store, to read it and to write to it. It must exist, unless `create` is true.
#[pyfunction]
#[pyo3(signature = (path, *, create = false, **settings))]
pub(crate) fn _open(
    py: Python<'_>,
    path: PathBuf,
    create: bool,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<StoreOf> {
    opened(py, path, settings, |path, options| match create {
        true => Store::open_or_create(path, options),
        false => Store::open(path, options),
    })
}

/// Creates a store in a directory that does not exist yet, or is empty, and opens it.
#[pyfunction]
#[pyo3(signature = (path, **settings))]
pub(crate) fn _create(
    py: Python<'_>,
    path: PathBuf,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<StoreOf> {
    opened(py, path, settings, Store::create)
}

/// Opens a store to read it while no process writes: nothing on disk changes.
#[pyfunction]
#[pyo3(signature = (path, **settings))]
pub(crate) fn _open_read_only(
    py: Python<'_>,
    path: PathBuf,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<StoreOf> {
    opened(py, path, settings, Store::open_read_only)
}

/// Opens a store to read it while another process may write to it: it shows the store as it was
/// when it was opened; `refresh` opens it again.
#[pyfunction]
#[pyo3(signature = (path, **settings))]
pub(crate) fn _open_secondary(
    py: Python<'_>,
    path: PathBuf,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<StoreOf> {
    opened(py, path, settings, Store::open_secondary)
}

/// Most times that a transaction is tried.
const TRIES_MAX: usize = 1000;

#[pymethods]
impl StoreOf {
    /// The directory of the store.
    #[getter]
    fn path(&self) -> PyResult<PathBuf> {
        Ok(self.store()?.path().to_owned())
    }

    /// A table. Without rules it must exist. With rules it is created if it does not exist; it is
    /// an error if it has different rules.
    #[pyo3(signature = (name, **rules))]
    fn table(&self, py: Python<'_>, name: &str, rules: Option<&Bound<'_, PyDict>>) -> PyResult<Table> {
        let store = self.store()?;
        let rules = rules.map(rules::of).transpose()?;
        let table = detached(py, || match rules {
            None => store.bytes_table(name),
            Some(rules) => store.open_or_create_bytes_table(name, rules),
        })?;
        Ok(Table::new(Placed::now(self.0.get()?, table)))
    }

    /// Creates a table under these rules. It is an error if there is one of this name.
    #[pyo3(signature = (name, **rules))]
    fn create_table(&self, py: Python<'_>, name: &str, rules: Option<&Bound<'_, PyDict>>) -> PyResult<Table> {
        let store = self.store()?;
        let rules = rules.map_or_else(|| Ok(TableRules::replace()), rules::of)?;
        let table = detached(py, || store.create_bytes_table(name, rules))?;
        Ok(Table::new(Placed::now(self.0.get()?, table)))
    }

    /// Removes a table and everything in it.
    fn drop_table(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let store = self.store()?;
        detached(py, || store.drop_table(name))
    }

    /// The names of the tables, in order.
    fn tables(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let store = self.store()?;
        detached(py, || Ok(store.tables()))
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        self.table(py, name, None)
    }

    fn __contains__(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        Ok(self.tables(py)?.iter().any(|table| table == name))
    }

    /// Ops on any tables, which are committed together when the `with` block ends.
    #[pyo3(signature = (*, durability = None))]
    fn batch(&self, durability: Option<&str>) -> PyResult<BatchOf> {
        Ok(BatchOf::new(self.opened(durability)?))
    }

    /// The store as it is now, or as it was at a seq or a moment, until the `with` block ends.
    #[pyo3(signature = (as_of = None))]
    fn snapshot(&self, py: Python<'_>, as_of: Option<&Bound<'_, PyAny>>) -> PyResult<SnapshotOf> {
        let store = self.store()?;
        let as_of = as_of.map(self::as_of).transpose()?;
        let snapshot = detached(py, || match as_of {
            None => Ok(store.snapshot()),
            Some(as_of) => store.snapshot_at(as_of),
        })?;
        Ok(SnapshotOf::new(self.opened(None)?, snapshot))
    }

    /// Reads at one snapshot, and writes that are committed when the `with` block ends, if what was
    /// read still holds; otherwise it raises Conflict. `transact` tries again on its own.
    #[pyo3(signature = (*, durability = None))]
    fn transaction(&self, py: Python<'_>, durability: Option<&str>) -> PyResult<TransactionOf> {
        TransactionOf::begin(py, self.opened(durability)?)
    }

    /// Calls `work` with a transaction and commits it. If there is a conflict, it tries again, at
    /// most a thousand times in all. Returns what `work` returns; if it raises, nothing is written.
    #[pyo3(signature = (work, *, durability = None))]
    fn transact<'py>(
        &self,
        work: &Bound<'py, PyAny>,
        durability: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = work.py();
        for _ in 0..TRIES_MAX {
            let transaction = Bound::new(py, self.transaction(py, durability)?)?;
            let done = work.call1((&transaction,))?;
            match transaction.get().try_commit(py)? {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                committed => return committed.map(|_| done).map_err(|error| raise_of_call(py, error)),
            }
        }
        let message = format!("a transaction was overtaken {TRIES_MAX} times in a row");
        Err(raise(Error::new(ErrorKind::Conflict, message)))
    }

    /// A change feed by its name, from the place that was acknowledged last: of the whole store, or
    /// of one table, or of its keys that begin with `prefix`. The store keeps what the feed has not
    /// acknowledged, up to `bytes_max`; beyond that the feed is lost.
    #[pyo3(signature = (name, *, table = None, prefix = None, from_now = false, bytes_max = None))]
    fn feed(
        &self,
        py: Python<'_>,
        name: &str,
        table: Option<String>,
        prefix: Option<&Bound<'_, PyAny>>,
        from_now: bool,
        bytes_max: Option<u64>,
    ) -> PyResult<FeedOf> {
        let store = self.store()?;
        let mut options =
            FeedOptions::default().table(table.as_deref()).from_now(from_now).bytes_max(bytes_max);
        if let Some(prefix) = prefix {
            let named = table.as_deref().ok_or_else(|| {
                invalid(format!("feed `{name}`: a prefix is of the keys of one table: give table=, too"))
            })?;
            let of = detached(py, || store.bytes_table(named))?;
            let codec = of.rules().as_table_rules().key_codec().clone();
            options = options.prefix(&keys::prefix(named, &codec, prefix)?);
        }
        let feed = detached(py, || store.feed(name, options))?;
        Ok(FeedOf::new(feed, self.0.get()?.options.clone()))
    }

    /// The names of the feeds.
    fn feeds(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let store = self.store()?;
        detached(py, || Ok(store.feeds().into_iter().map(|feed| feed.name).collect()))
    }

    /// Drops a feed: the store no longer keeps anything for it.
    fn drop_feed(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let store = self.store()?;
        detached(py, || store.drop_feed(name))
    }

    /// Adds a backup of the store, as it is now, to a directory of backups. Writes and reads
    /// continue. `keep` removes all generations afterwards but the newest ones, of which this is
    /// one. Files are linked where that is possible, unless `copy` is true; `check_all` reads every
    /// record of linked files, too.
    #[pyo3(signature = (to, *, keep = None, copy = false, check_all = false, progress = None))]
    fn backup<'py>(
        &self,
        py: Python<'py>,
        to: PathBuf,
        keep: Option<usize>,
        copy: bool,
        check_all: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let options = BackupOptions::default().keep(keep).copy(copy).check_all(check_all);
        maintenance::backup(py, self.store()?, to, options, progress)
    }

    /// Reclaims the space of dead separated values at once, as long as that is worth it; a store
    /// does this on its own, too. Values that were overwritten count as live until a merge has met
    /// them, as `compact` does. Returns the bytes of the files before and after.
    fn reclaim<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        maintenance::reclaim(py, self.store()?)
    }

    /// Advice on the store, in words.
    fn doctor(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let store = self.store()?;
        let advice = detached(py, || store.doctor())?;
        Ok(advice.iter().map(ToString::to_string).collect())
    }

    /// Figures by group and name.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let store = self.store()?;
        let metrics = detached(py, || Ok(store.stats().metrics()))?;
        let groups = PyDict::new(py);
        for metric in metrics {
            if !groups.contains(metric.group)? {
                groups.set_item(metric.group, PyDict::new(py))?;
            }
            let group = groups.get_item(metric.group)?;
            if let Some(group) = group {
                group.set_item(metric.name, metric.value)?;
            }
        }
        Ok(groups)
    }

    /// The seq of the last record that was committed.
    #[getter]
    fn last_seq(&self, py: Python<'_>) -> PyResult<u64> {
        let store = self.store()?;
        detached(py, || Ok(store.last_seq().into()))
    }

    /// Makes everything committed so far durable: it survives a power failure.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let store = self.store()?;
        detached(py, || store.sync())
    }

    /// Writes all memtables as runs. A store also does this on its own.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let store = self.store()?;
        detached(py, || store.flush())
    }

    /// Waits until no background work is due.
    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        let store = self.store()?;
        detached(py, || store.settle())
    }

    /// Opens a secondary again, to show the store as it is now.
    fn refresh(&self, py: Python<'_>) -> PyResult<StoreOf> {
        let store = self.store()?;
        let store = keep(detached(py, || store.refresh())?);
        Ok(StoreOf(Guarded::new(Opened { store, ..self.0.get()?.clone() })))
    }

    /// Flushes and closes the store. Calls of its handles raise Closed afterwards. Closing it again
    /// does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let store = self.store()?.clone();
        detached(py, || match store.close() {
            Err(error) if error.kind() == ErrorKind::Closed => Ok(()),
            closed => closed,
        })
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    /// The tables with their sizes, as notebooks show them.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("folddb.notebook")?.getattr("store_html")?.call1((slf,))
    }

    /// Draws the runs of each table as a bar, one color for each tier, into these axes of
    /// Matplotlib or into new ones, which it returns. Needs Matplotlib.
    #[pyo3(signature = (axes = None))]
    fn plot_tiers<'py>(
        slf: &Bound<'py, Self>,
        axes: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("folddb.notebook")?.getattr("plot_tiers")?.call1((slf, axes))
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<folddb.Store {}>", self.store()?.path().display()))
    }
}

impl StoreOf {
    fn store(&self) -> PyResult<&Store> {
        Ok(&*self.0.get()?.store)
    }

    fn opened(&self, durability: Option<&str>) -> PyResult<Opened> {
        let opened = self.0.get()?.clone();
        Ok(match durability {
            Some(word) => Opened { durability: self::durability(word)?, ..opened },
            None => opened,
        })
    }
}
