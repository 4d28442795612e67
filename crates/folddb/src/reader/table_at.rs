//! A table as of a snapshot, or in a transaction: the result of [`Snapshot::table`] and
//! [`Transaction::table`](crate::Transaction::table). It is read like the table itself
//! ([`crate::Reader`]).
//!
//! In a transaction, a key that it has written to has the result of its ops on the snapshot's
//! value; that has no place in the store yet, so it is inline. Reads of the snapshot are noted for
//! the commit.

use std::marker::PhantomData;
use std::sync::Arc;

use folddb_base::Result;
use folddb_host::sync::Mutex;

use crate::index::find::BytesFind;
use crate::scan::bytes::BytesScan;
use crate::snapshot::Snapshot;
use crate::table::bytes::BytesTable;
use crate::uncommitted::{Inside, OwnWrites, applied};
use folddb_engine::read::get::TakeValue;
use folddb_engine::read::get_many;
use folddb_engine::read::locate::{self, Locate, Located};
use folddb_engine::values::head::{self, Head};
use folddb_engine::write::stream::{self, ValueReader};

/// A table of keys `K` and values `V` as of a snapshot, or in a transaction. It keeps the snapshot
/// as long as it lives.
pub struct TableAt<K, V> {
    pub(crate) bytes: BytesTableAt,
    types: PhantomData<fn() -> (K, V)>,
}

/// A table of bytes as of a snapshot, or in a transaction. It keeps the snapshot as long as it
/// lives.
#[derive(Clone)]
pub struct BytesTableAt {
    table: BytesTable,
    past: Snapshot,
    /// The own writes of a transaction.
    own: Option<Arc<Mutex<OwnWrites>>>,
}

impl<K, V> TableAt<K, V> {
    pub(crate) fn new(bytes: BytesTableAt) -> TableAt<K, V> {
        TableAt { bytes, types: PhantomData }
    }

    /// The same table without types.
    pub fn as_bytes(&self) -> &BytesTableAt {
        &self.bytes
    }
}

impl BytesTableAt {
    pub(crate) fn new(
        table: &BytesTable,
        past: &Snapshot,
        own: Option<&Arc<Mutex<OwnWrites>>>,
    ) -> BytesTableAt {
        BytesTableAt { table: table.clone(), past: past.clone(), own: own.cloned() }
    }

    /// The name of the table.
    pub fn name(&self) -> &str {
        self.table.name()
    }

    pub(crate) fn table(&self) -> &BytesTable {
        &self.table
    }

    /// The state of a key that the transaction has written to; none if it has not.
    fn own_value(&self, key: &[u8]) -> Result<Option<Option<Vec<u8>>>> {
        let core = self.table.core();
        let Some(own) = self.own.as_ref().map(|own| own.lock().of(core, key)) else { return Ok(None) };
        if own.is_empty() {
            return Ok(None);
        }
        // A failing fold is noted, too.
        let past = self.past.get_with(&self.table, key, |value| value.map(<[u8]>::to_vec));
        applied(self.table.engine(), core, key, past, &own).map(Some)
    }

    /// Passes the value of `key` to `take` without copying it.
    ///
    /// # Errors
    /// As [`Reader::get`](crate::Reader::get).
    pub fn get_with<R>(&self, key: &[u8], take: impl FnOnce(Option<&[u8]>) -> R) -> Result<R> {
        match self.own_value(key)? {
            Some(value) => Ok(take(value.as_deref())),
            None => self.past.get_with(&self.table, key, take),
        }
    }

    pub(crate) fn get_many_with(&self, keys: &[&[u8]], take: &mut TakeValue<'_>) -> Result<()> {
        if self.past.reads().is_some() {
            let each = |(place, key): (usize, &&[u8])| self.get_with(key, |value| take(place, value))?;
            return keys.iter().enumerate().try_for_each(each);
        }
        let at = self.past.at(&self.table)?;
        get_many::get_many(self.table.engine(), self.table.core(), keys, at, take)
    }

    /// True if `key` has a value.
    ///
    /// # Errors
    /// As [`Reader::get`](crate::Reader::get).
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        match self.own_value(key)? {
            Some(value) => Ok(value.is_some()),
            None => self.past.contains(&self.table, key),
        }
    }

    /// The head of the value of `key`: see [`Reader::head`](crate::Reader::head).
    ///
    /// # Errors
    /// As [`Reader::get`](crate::Reader::get).
    pub fn head(&self, key: &[u8]) -> Result<Option<Head>> {
        match self.own_value(key)? {
            Some(value) => Ok(value.map(|value| head::of_value(self.table.core(), key, &value))),
            None => self.past.head(&self.table, key),
        }
    }

    /// A reader of the value of `key`: see [`ValueReader`].
    ///
    /// # Errors
    /// As [`Reader::get`](crate::Reader::get).
    pub fn read(&self, key: &[u8]) -> Result<Option<ValueReader>> {
        match self.own_value(key)? {
            Some(value) => {
                Ok(value.map(|value| stream::reader_of(self.table.engine(), self.table.core(), key, value)))
            }
            None => self.past.read(&self.table, key),
        }
    }

    /// Where the value of `key` is: see [`Located`].
    ///
    /// # Errors
    /// As [`Reader::get`](crate::Reader::get).
    pub fn locate(&self, key: &[u8], how: Locate) -> Result<Option<Located>> {
        match self.own_value(key)? {
            Some(value) => Ok(value.map(locate::of_value)),
            None => self.past.locate(&self.table, key, how),
        }
    }

    /// A scan of the table, of all of it until it is narrowed; includes the transaction's writes
    /// before its iteration begins.
    pub fn scan(&self) -> BytesScan {
        let scan = self.past.scan_bytes(&self.table);
        match (self.past.reads(), &self.own) {
            (Some(reads), Some(own)) => scan.inside(Inside { reads, own: Some(Arc::clone(own)) }),
            _ => scan,
        }
    }

    /// Records by the terms of an index: see [`Reader::find`](crate::Reader::find). Includes the
    /// transaction's writes before its iteration begins.
    ///
    /// # Errors
    /// As [`Reader::find`](crate::Reader::find).
    pub fn find(&self, index: &str) -> Result<BytesFind> {
        Ok(self.table.find(index)?.at(&self.past).with_own(self.own.as_ref()))
    }
}

impl<K, V> Clone for TableAt<K, V> {
    fn clone(&self) -> Self {
        TableAt::new(self.bytes.clone())
    }
}

impl std::fmt::Debug for BytesTableAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} at seq {}", self.table, self.past.seq())
    }
}

impl<K, V> std::fmt::Debug for TableAt<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.bytes.fmt(f)
    }
}
