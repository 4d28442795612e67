//! The handle of a table, with the types of its keys and values.

use std::io::Read;
use std::marker::PhantomData;

use folddb_base::{Error, OpKind, Result};
use folddb_rules::Fit;
use folddb_rules::codec::{AsKey, AsValue, Key, KeyPrefix, Value};
use folddb_rules::table_rules::BoundRules;

use crate::scan::cursor::{Cursor, Resume};
use crate::scan::typed::Scan;
use crate::table::bytes::{BytesTable, with_buffers, wrong};
use folddb_engine::options::Durability;
use folddb_engine::read::history::{self, HistoryEntry};
use folddb_engine::seq::Seq;
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::clock::AsOf;
use folddb_engine::write::encoded_batch::{RECYCLED_BYTES_MAX, WriteOp};
use folddb_engine::write::ops::Lifetime;
use folddb_engine::write::stream::ValueWriter;

/// A table of keys `K` and values `V`. Cheap to clone; any number of threads may use it.
///
/// Writes never read: they append, and the value of a key is the fold of everything that was
/// written to it.
pub struct Table<K, V> {
    pub(crate) bytes: BytesTable,
    /// Whether each value is checked when it is written: the type may encode values that do not fit
    /// the table.
    checks: bool,
    types: PhantomData<fn() -> (K, V)>,
}

/// How values of a type fit a table with these rules.
///
/// # Errors
/// They do not; names the table and what would fit.
pub(crate) fn fit<V: Value>(name: &str, rules: &BoundRules) -> Result<Fit> {
    rules.fit::<V>().map_err(|cause| Error::invalid(format!("table `{name}`: {cause}")))
}

/// Fails if bytes that a type has encoded are not a value of the table, or cannot be decoded again.
#[cold]
pub(crate) fn check_value<V: Value>(table: &TableCore, value: &[u8]) -> Result<()> {
    let checked = table.rules.check_value(value).and_then(|()| V::decode(value).map(drop));
    checked.map_err(|cause| wrong(table, "value", &cause))
}

impl<K, V> Clone for Table<K, V> {
    fn clone(&self) -> Self {
        Table { bytes: self.bytes.clone(), checks: self.checks, types: PhantomData }
    }
}

/// Values of any length, for tables that separate bytes, and for hashed ones.
impl<K: Key> Table<K, Vec<u8>> {
    /// A writer of the value of `key`, up to 4 GiB long, which takes it piece by piece and holds at
    /// most one piece, four in a hashed table: see [`ValueWriter`]. The key has its former value
    /// until it is finished. Batches cannot include such values.
    ///
    /// If the table cannot keep a value in pieces ([`BytesTable::takes_streams`]: it keeps values
    /// inline, or they are checked as a whole), the writer holds all of it, and it may be up to 16
    /// MiB long ([`VALUE_BYTES_MAX`](crate::limits::VALUE_BYTES_MAX)); a longer one fails before it
    /// is finished, saying why and what to do.
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn writer<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Result<ValueWriter> {
        self.bytes.writer(WriteOp::Put, &encoded_key(key))
    }

    /// Sets the value of `key` to everything that `from` gives, up to 4 GiB, holding at most a few
    /// pieces of it in memory.
    ///
    /// # Errors
    /// `from` fails: then nothing is written; as [`Table::writer`].
    pub fn put_from<Q: AsKey<K> + ?Sized>(&self, key: &Q, from: &mut impl Read) -> Result<Seq> {
        let mut writer = self.writer(key)?;
        writer.write_from(from)?;
        writer.finish()
    }
}

impl<K: Key, V: Value> Table<K, V> {
    /// # Errors
    /// Values of the type cannot be values of the table.
    pub(crate) fn new(bytes: BytesTable) -> Result<Table<K, V>> {
        let checks = fit::<V>(bytes.name(), &bytes.core.rules)? == Fit::Sometimes;
        Ok(Table { bytes, checks, types: PhantomData })
    }

    /// Fails if the value of an op does not fit the table. Not needed if all values of the type
    /// fit.
    #[inline]
    pub(crate) fn check_written(&self, kind: OpKind, value: &[u8]) -> Result<()> {
        match self.checks && kind != OpKind::Delete {
            true => check_value::<V>(&self.bytes.core, value),
            false => Ok(()),
        }
    }

    /// The same table without types.
    pub fn as_bytes(&self) -> &BytesTable {
        &self.bytes
    }

    /// The same table, with this durability for single writes.
    #[must_use = "it is another handle that has this durability"]
    pub fn with_durability(&self, durability: Durability) -> Self {
        Table { bytes: self.bytes.with_durability(durability), ..*self }
    }

    /// The same table, with this lifetime for values that are written: by single writes, in
    /// batches, in transactions, and in pieces. A present value keeps its deadline after
    /// [`Table::put_if_absent`], and gets this one after [`Table::fold`]; with
    /// [`Lifetime::Default`] and [`crate::Expire::ByWrite`] that is forever, even if it had a
    /// deadline.
    ///
    /// A table whose values last forever refuses such writes: [`crate::ErrorKind::InvalidInput`].
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use folddb::{Durability, Expire, Lifetime, Options, Rules, Store};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = Store::create(dir.path().join("s.folddb"), Options::default())?;
    /// let sessions = store.table("sessions", Rules::sorted::<u64, String>().expire(Expire::ByWrite))?;
    /// let short = sessions.with_lifetime(Lifetime::For(Duration::from_secs(1800)));
    /// short.put(&1, "ann")?;
    /// sessions.put(&2, "a daemon's, which does not end")?;
    ///
    /// let mut batch = store.batch();
    /// batch.put(&short, &3, "bob").put(&sessions, &4, "another daemon's");
    /// batch.commit(Durability::Process)?;
    /// # assert!(sessions.head(&3)?.unwrap().deadline.is_some());
    /// # assert!(sessions.head(&4)?.unwrap().deadline.is_none());
    /// # Ok::<(), folddb::Error>(())
    /// ```
    #[must_use = "it is another handle whose values last this long"]
    pub fn with_lifetime(&self, lifetime: Lifetime) -> Self {
        Table { bytes: self.bytes.with_lifetime(lifetime), ..*self }
    }

    /// Sets the value of `key`.
    ///
    /// # Errors
    /// A key or value that is too long; [`crate::ErrorKind::NoSpace`] on a full disk; any failed
    /// write.
    pub fn put<Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(&self, key: &Q, value: &W) -> Result<Seq> {
        self.write(OpKind::Set, key, Some(value))
    }

    /// Gives `key` this value unless it has one. Reads nothing: the first one wins when it is read.
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn put_if_absent<Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &self,
        key: &Q,
        value: &W,
    ) -> Result<Seq> {
        self.write(OpKind::Insert, key, Some(value))
    }

    /// Folds `operand` onto the value of `key`, or makes it the value of an absent key. Reads
    /// nothing.
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn fold<Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(&self, key: &Q, operand: &W) -> Result<Seq> {
        self.write(OpKind::Fold, key, Some(operand))
    }

    /// Deletes `key`.
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn delete<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Result<Seq> {
        self.write(OpKind::Delete, key, None::<&V>)
    }

    fn write<Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &self,
        kind: OpKind,
        key: &Q,
        value: Option<&W>,
    ) -> Result<Seq> {
        with_buffers(|(encoded, key_bytes, value_bytes)| {
            key_bytes.clear();
            value_bytes.clear();
            key.encode_key(key_bytes);
            if let Some(value) = value {
                value.encode(value_bytes);
            }
            let checked = self.check_written(kind, value_bytes);
            let op = (&key_bytes[..], &value_bytes[..]);
            let written = checked.and_then(|()| self.bytes.write_encoded(encoded, kind, op));
            value_bytes.clear();
            value_bytes.shrink_to(RECYCLED_BYTES_MAX);
            written
        })
    }

    /// Deletes all keys from `from` up to, but not including, `to`, in the order of the table;
    /// costs as much as one write.
    ///
    /// # Errors
    /// When `from` is not before `to`; otherwise as [`Table::put`].
    pub fn delete_range<Q: AsKey<K> + ?Sized, R: AsKey<K> + ?Sized>(&self, from: &Q, to: &R) -> Result<Seq> {
        self.bytes.delete_range(&encoded_key(from), &encoded_key(to))
    }

    /// Deletes all keys with this prefix: the first elements of a tuple (`&("UA",)`), or the first
    /// letters of a string; costs as much as one or two writes.
    ///
    /// ```
    /// # use folddb::{Options, Rules, Store};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = Store::create(dir.path().join("s.folddb"), Options::default())?;
    /// let delays = store.table("delays", Rules::sorted::<(String, String), u64>())?;
    /// delays.put(&("UA", "EWR"), &12)?;
    /// delays.put(&("UA", "LGA"), &3)?;
    /// delays.put(&("UAX", "EWR"), &1)?;
    /// delays.delete_prefix(&("UA",))?;
    /// assert_eq!(delays.first()?, Some((("UAX".to_owned(), "EWR".to_owned()), 1)));
    /// # Ok::<(), folddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] for a hashed table, and for one with an order of your
    /// own, which have no such ranges; otherwise as [`Table::put`].
    pub fn delete_prefix<P: KeyPrefix<K> + ?Sized>(&self, prefix: &P) -> Result<Seq> {
        self.bytes.delete_within(prefix.key_range())
    }

    /// The value that `key` had at a past moment, as far as the table keeps that.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if the table does not keep it, naming the oldest kept
    /// moment; otherwise as [`Table::get`].
    pub fn get_at<Q: AsKey<K> + ?Sized>(&self, key: &Q, as_of: AsOf) -> Result<Option<V>> {
        let key = encoded_key(key);
        let value = self.bytes.get_at(&key, as_of)?;
        self.bytes.decoded(&key, value.as_deref())
    }

    /// The states of `key`, newest first, as far as the table keeps them, at most `limit`.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn history<Q: AsKey<K> + ?Sized>(
        &self,
        key: &Q,
        limit: usize,
    ) -> Result<Vec<HistoryEntry<Option<V>>>> {
        let key = encoded_key(key);
        let decode = |value: Vec<u8>| V::decode(&value).map_err(|cause| self.bytes.undecodable(&key, &cause));
        let typed = |entry: HistoryEntry<Option<Vec<u8>>>| {
            history::try_map(entry, |value| value.map(decode).transpose())
        };
        self.bytes.history(&key, limit)?.into_iter().map(typed).collect()
    }

    /// Resumes a scan at its cursor.
    ///
    /// # Errors
    /// As [`BytesTable::resume`].
    pub fn resume(&self, cursor: &Cursor, how: Resume) -> Result<Scan<K, V>> {
        Ok(Scan::new(self.bytes.resume(cursor, how)?))
    }
}

/// Most keys are no longer, so their buffer is allocated once and does not grow.
const KEY_BYTES_USUAL: usize = 32;

pub(crate) fn encoded_key<K, Q: AsKey<K> + ?Sized>(key: &Q) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(KEY_BYTES_USUAL);
    key.encode_key(&mut bytes);
    bytes
}

/// Several keys, encoded side by side.
pub(crate) struct EncodedKeys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl EncodedKeys {
    pub(crate) fn of<'q, K, Q: AsKey<K> + ?Sized + 'q>(keys: impl IntoIterator<Item = &'q Q>) -> EncodedKeys {
        let mut encoded = EncodedKeys { bytes: Vec::new(), ends: Vec::new() };
        for key in keys {
            key.encode_key(&mut encoded.bytes);
            encoded.ends.push(encoded.bytes.len());
        }
        encoded
    }

    pub(crate) fn each(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| self.bytes.get(start..*end).unwrap_or(&[])).collect()
    }
}

impl<K, V> std::fmt::Debug for Table<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.bytes.fmt(f)
    }
}
