//! A table in the place where it is read and written: as it is now, as a snapshot sees it, in a
//! transaction, or in a batch.

use std::sync::Arc;

use folddb::codec::KeyCodec;
use folddb::{
    Batch, BytesFind, BytesScan, BytesTable, Datum, Durability, Error, ErrorKind, Head, Options, Result,
    Snapshot, Store, Transaction, ValueReader, WriteOp,
};
use pyo3::{Py, PyAny};

use crate::exclusive::Exclusive;
use crate::strict::Wants;
use crate::values::Values;

/// A store with the default settings of its writes.
#[derive(Clone)]
pub(crate) struct Opened {
    pub(crate) store: Arc<Store>,
    pub(crate) durability: Durability,
    pub(crate) options: Options,
}

impl Opened {
    /// A table that is there.
    pub(crate) fn table(&self, name: &str) -> Result<Placed> {
        self.store.bytes_table(name).map(|table| Placed::now(self, table))
    }
}

/// A table in its place. Its methods do not need the interpreter.
#[derive(Clone)]
pub(crate) struct Placed {
    pub(crate) store: Arc<Store>,
    pub(crate) durability: Durability,
    pub(crate) table: BytesTable,
    pub(crate) codec: Arc<KeyCodec>,
    pub(crate) values: Values,
    pub(crate) wants: Arc<Wants>,
    /// The class that dicts become instances of.
    pub(crate) class: Option<Arc<Py<PyAny>>>,
    pub(crate) place: Place,
}

#[derive(Clone)]
pub(crate) enum Place {
    /// As it is now.
    Now,
    /// As a snapshot sees it; it cannot be written.
    Snapshot(Snapshot),
    /// In a transaction.
    Transaction(Exclusive<Transaction>),
    /// In a batch; it cannot be read.
    Batch(Exclusive<Batch>),
}

impl Placed {
    pub(crate) fn now(of: &Opened, table: BytesTable) -> Placed {
        let codec = Arc::new(table.rules().as_table_rules().key_codec().clone());
        let Opened { store, durability, .. } = of.clone();
        let wants = Arc::new(Wants::of(table.rules().as_table_rules()));
        let values = Values::of(&table);
        Placed { codec, values, wants, class: None, table, place: Place::Now, store, durability }
    }

    /// The same table in another place.
    pub(crate) fn at(&self, place: Place) -> Placed {
        Placed { place, ..self.clone() }
    }

    pub(crate) fn name(&self) -> &str {
        self.table.name()
    }

    /// The table itself, for calls that need it as it is now.
    ///
    /// # Errors
    /// It is in a snapshot, a transaction or a batch.
    pub(crate) fn itself(&self) -> Result<&BytesTable> {
        match &self.place {
            Place::Now => Ok(&self.table),
            Place::Snapshot(_) => Err(self.read_only()),
            Place::Transaction(_) | Place::Batch(_) => Err(Error::invalid(format!(
                "table `{}` is in a transaction or a batch, which cannot do this: use the table itself",
                self.name()
            ))),
        }
    }

    fn read_only(&self) -> Error {
        let message = format!("table `{}` is as a snapshot sees it", self.name());
        Error::new(ErrorKind::ReadOnly, message).advise("write to the table itself")
    }

    fn unread(&self) -> Error {
        Error::invalid(format!("table `{}` is in a batch, which reads nothing", self.name()))
            .advise("read the table itself, or use a transaction")
    }

    /// The value of a key as data.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Datum>> {
        let show = |value: Option<&[u8]>| value.map(|value| self.values.show(&self.table, value)).transpose();
        match &self.place {
            Place::Now => self.table.get_with(key, show)?,
            Place::Snapshot(snapshot) => snapshot.table(&self.table).get_with(key, show)?,
            Place::Transaction(transaction) => {
                let value = transaction.with(|transaction| transaction.get(&self.table, key))?;
                show(value.as_deref())
            }
            Place::Batch(_) => Err(self.unread()),
        }
    }

    /// The value of a key as data, which is deleted in the same moment.
    pub(crate) fn take(&self, key: &[u8]) -> Result<Option<Datum>> {
        let value = match &self.place {
            Place::Now => self.table.take(key)?,
            Place::Snapshot(_) => return Err(self.read_only()),
            Place::Transaction(transaction) => {
                transaction.with(|transaction| transaction.take(&self.table, key))?
            }
            Place::Batch(_) => return Err(self.unread()),
        };
        value.map(|value| self.values.show(&self.table, &value)).transpose()
    }

    /// The values of keys as of one moment.
    pub(crate) fn get_many(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>> {
        match &self.place {
            Place::Now => self.table.get_many(keys),
            Place::Snapshot(snapshot) => snapshot.table(&self.table).get_many(keys),
            Place::Transaction(transaction) => {
                transaction.with(|transaction| transaction.table(&self.table).get_many(keys))
            }
            Place::Batch(_) => Err(self.unread()),
        }
    }

    pub(crate) fn contains(&self, key: &[u8]) -> Result<bool> {
        match &self.place {
            Place::Now => self.table.contains(key),
            Place::Snapshot(snapshot) => snapshot.table(&self.table).contains(key),
            Place::Transaction(transaction) => {
                transaction.with(|transaction| transaction.table(&self.table).contains(key))
            }
            Place::Batch(_) => Err(self.unread()),
        }
    }

    pub(crate) fn head(&self, key: &[u8]) -> Result<Option<Head>> {
        match &self.place {
            Place::Now => self.table.head(key),
            Place::Snapshot(snapshot) => snapshot.table(&self.table).head(key),
            Place::Transaction(transaction) => {
                transaction.with(|transaction| transaction.table(&self.table).head(key))
            }
            Place::Batch(_) => Err(self.unread()),
        }
    }

    pub(crate) fn find(&self, index: &str) -> Result<BytesFind> {
        match &self.place {
            Place::Now => self.table.find(index),
            Place::Snapshot(snapshot) => snapshot.table(&self.table).find(index),
            Place::Transaction(transaction) => {
                transaction.with(|transaction| transaction.table(&self.table).find(index))
            }
            Place::Batch(_) => Err(self.unread()),
        }
    }

    pub(crate) fn read(&self, key: &[u8]) -> Result<Option<ValueReader>> {
        match &self.place {
            Place::Now => self.table.read(key),
            Place::Snapshot(snapshot) => snapshot.table(&self.table).read(key),
            Place::Transaction(transaction) => {
                transaction.with(|transaction| transaction.table(&self.table).read(key))
            }
            Place::Batch(_) => Err(self.unread()),
        }
    }

    pub(crate) fn scan(&self) -> Result<BytesScan> {
        match &self.place {
            Place::Now => Ok(self.table.scan()),
            Place::Snapshot(snapshot) => Ok(snapshot.table(&self.table).scan()),
            Place::Transaction(transaction) => {
                transaction.with(|transaction| Ok(transaction.scan(&self.table)))
            }
            Place::Batch(_) => Err(self.unread()),
        }
    }

    /// Writes an op, or adds it to the batch or transaction, which writes at its end. Returns the
    /// seq if it is written already.
    pub(crate) fn write(&self, op: WriteOp, key: &[u8], value: &[u8]) -> Result<Option<u64>> {
        match &self.place {
            Place::Now => self.table.write(op, key, value).map(|seq| Some(seq.into())),
            Place::Snapshot(_) => Err(self.read_only()),
            Place::Transaction(transaction) => {
                self.table.check(op, key, value)?;
                transaction.with(|transaction| {
                    transaction.write(&self.table, op, key, value);
                    Ok(None)
                })
            }
            Place::Batch(batch) => {
                self.table.check(op, key, value)?;
                batch.with(|batch| {
                    batch.write(&self.table, op, key, value);
                    Ok(None)
                })
            }
        }
    }

    /// Puts rows in one commit.
    pub(crate) fn put_all(&self, rows: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        if !matches!(self.place, Place::Now) {
            return rows.iter().try_for_each(|(key, value)| self.write(WriteOp::Put, key, value).map(drop));
        }
        let mut batch = self.store.batch();
        for (key, value) in rows {
            batch.write(&self.table, WriteOp::Put, key, value);
        }
        batch.commit(self.durability).map(drop)
    }

    pub(crate) fn delete_range(&self, from: &[u8], to: &[u8]) -> Result<Option<u64>> {
        match &self.place {
            Place::Now => self.table.delete_range(from, to).map(|seq| Some(seq.into())),
            Place::Snapshot(_) => Err(self.read_only()),
            Place::Transaction(transaction) => transaction.with(|transaction| {
                transaction.delete_range(&self.table, from, to);
                Ok(None)
            }),
            Place::Batch(batch) => batch.with(|batch| {
                batch.delete_range(&self.table, from, to);
                Ok(None)
            }),
        }
    }

    pub(crate) fn delete_prefix(&self, prefix: &[u8]) -> Result<Option<u64>> {
        match &self.place {
            Place::Now => self.table.delete_prefix(prefix).map(|seq| Some(seq.into())),
            Place::Snapshot(_) => Err(self.read_only()),
            Place::Transaction(transaction) => transaction.with(|transaction| {
                transaction.delete_prefix(&self.table, prefix);
                Ok(None)
            }),
            Place::Batch(batch) => batch.with(|batch| {
                batch.delete_prefix(&self.table, prefix);
                Ok(None)
            }),
        }
    }

    /// Whether rows may be read ahead: in a transaction, what was read counts for conflicts.
    pub(crate) fn reads_ahead(&self) -> bool {
        !matches!(self.place, Place::Transaction(_))
    }
}
