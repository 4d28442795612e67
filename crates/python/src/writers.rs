//! What is written together: batches and transactions.

use folddb::{Batch, Transaction};
use pyo3::prelude::*;

use crate::calls::calling;
use crate::errors::{detached, raise, raise_of_call};
use crate::exclusive::Exclusive;
use crate::forks::Guarded;
use crate::place::{Opened, Place};
use crate::table::{Table, table_of};

/// Ops on any tables of a store, which are committed together when the `with` block ends, and
/// discarded if it raises.
#[pyclass(frozen, module = "folddb", name = "Batch")]
pub(crate) struct BatchOf {
    store: Guarded<Opened>,
    batch: Guarded<Exclusive<Batch>>,
}

impl BatchOf {
    pub(crate) fn new(opened: Opened) -> BatchOf {
        let batch = Exclusive::new(opened.store.batch());
        BatchOf { store: Guarded::new(opened), batch: Guarded::new(batch) }
    }
}

/// Reads at one snapshot, and writes that are committed together when the `with` block ends, if
/// what was read was not written to since.
#[pyclass(frozen, module = "folddb", name = "Transaction")]
pub(crate) struct TransactionOf {
    store: Guarded<Opened>,
    transaction: Guarded<Exclusive<Transaction>>,
}

impl TransactionOf {
    pub(crate) fn begin(py: Python<'_>, opened: Opened) -> PyResult<TransactionOf> {
        let transaction = Exclusive::new(detached(py, || Ok(opened.store.transaction()))?);
        Ok(TransactionOf { store: Guarded::new(opened), transaction: Guarded::new(transaction) })
    }

    /// Commits with the engine's own result, which distinguishes a conflict from other errors.
    pub(crate) fn try_commit(&self, py: Python<'_>) -> PyResult<folddb::Result<u64>> {
        let transaction = self.transaction.get()?.take().map_err(raise)?;
        let durability = self.store.get()?.durability;
        calling(|| py.detach(|| transaction.commit(durability).map(u64::from))).map_err(raise)
    }
}

#[pymethods]
impl BatchOf {
    /// Commits the ops. Returns the seq of the last record. The batch has ended then.
    fn commit(&self, py: Python<'_>) -> PyResult<u64> {
        let mut batch = self.batch.get()?.take().map_err(raise)?;
        let durability = self.store.get()?.durability;
        detached(py, || batch.commit(durability).map(u64::from))
    }

    fn __len__(&self) -> PyResult<usize> {
        self.batch.get()?.with(|batch| Ok(batch.len())).map_err(raise)
    }
}

#[pymethods]
impl TransactionOf {
    /// Commits what was written, if what was read still holds; raises Conflict if it does not.
    /// Returns the seq of the last record. The transaction has ended then.
    fn commit(&self, py: Python<'_>) -> PyResult<u64> {
        self.try_commit(py)?.map_err(|error| raise_of_call(py, error))
    }

    /// The value of a key, or the default if the key is absent.
    #[pyo3(signature = (table, key, default = None))]
    fn get<'py>(
        &self,
        table: &Bound<'py, PyAny>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.table(table)?.get(table.py(), key, default)
    }

    /// The value of a key, which is deleted, or the default if the key is absent.
    #[pyo3(signature = (table, key, default = None))]
    fn take<'py>(
        &self,
        table: &Bound<'py, PyAny>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.table(table)?.take(table.py(), key, default)
    }

    /// Folds an operand onto the value of a key, and returns the result.
    fn fold_and_get<'py>(
        &self,
        table: &Bound<'py, PyAny>,
        key: &Bound<'py, PyAny>,
        operand: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let table_in = self.table(table)?;
        table_in.fold(table.py(), key, operand)?;
        table_in.get(table.py(), key, None)
    }
}

/// The methods of a type that collects ops.
macro_rules! gathering_verbs {
    ($gathers:ident, $held:ident, $place:ident) => {
        #[pymethods]
        impl $gathers {
            /// A table in this batch or transaction, by its handle or its name: its ops belong to
            /// it.
            fn table(&self, table: &Bound<'_, PyAny>) -> PyResult<Table> {
                let placed = table_of(self.store.get()?, table)?;
                Ok(Table::new(placed.at(Place::$place(self.$held.get()?.clone()))))
            }

            fn __getitem__(&self, table: &Bound<'_, PyAny>) -> PyResult<Table> {
                self.table(table)
            }

            /// Replaces the value of a key by this one.
            fn put(
                &self,
                table: &Bound<'_, PyAny>,
                key: &Bound<'_, PyAny>,
                value: &Bound<'_, PyAny>,
            ) -> PyResult<()> {
                self.table(table)?.put(table.py(), key, value).map(drop)
            }

            /// Gives a key this value unless it has one.
            fn put_if_absent(
                &self,
                table: &Bound<'_, PyAny>,
                key: &Bound<'_, PyAny>,
                value: &Bound<'_, PyAny>,
            ) -> PyResult<()> {
                self.table(table)?.put_if_absent(table.py(), key, value).map(drop)
            }

            /// Folds an operand onto the value of a key.
            fn fold(
                &self,
                table: &Bound<'_, PyAny>,
                key: &Bound<'_, PyAny>,
                operand: &Bound<'_, PyAny>,
            ) -> PyResult<()> {
                self.table(table)?.fold(table.py(), key, operand).map(drop)
            }

            /// Makes a key absent.
            fn delete(&self, table: &Bound<'_, PyAny>, key: &Bound<'_, PyAny>) -> PyResult<()> {
                self.table(table)?.delete(table.py(), key).map(drop)
            }

            /// Makes all keys from `start` on, up to but not including `before`, absent.
            fn delete_range(
                &self,
                table: &Bound<'_, PyAny>,
                start: &Bound<'_, PyAny>,
                before: &Bound<'_, PyAny>,
            ) -> PyResult<()> {
                self.table(table)?.delete_range(table.py(), start, before).map(drop)
            }

            /// Makes all keys with this prefix absent.
            fn delete_prefix(&self, table: &Bound<'_, PyAny>, prefix: &Bound<'_, PyAny>) -> PyResult<()> {
                self.table(table)?.delete_prefix(table.py(), prefix).map(drop)
            }

            fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
                this
            }

            #[pyo3(signature = (kind, _value, _traceback))]
            fn __exit__(
                &self,
                py: Python<'_>,
                kind: Option<Bound<'_, PyAny>>,
                _value: Option<Bound<'_, PyAny>>,
                _traceback: Option<Bound<'_, PyAny>>,
            ) -> PyResult<()> {
                if kind.is_none() {
                    return self.commit(py).map(drop);
                }
                let left = self.$held.get()?.take();
                py.detach(|| drop(left));
                Ok(())
            }
        }
    };
}

gathering_verbs!(BatchOf, batch, Batch);
gathering_verbs!(TransactionOf, transaction, Transaction);
