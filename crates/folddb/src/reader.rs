//! Reading a table: the same for all readable handles, with and without types.
//!
//! ```text
//!                 now            as of a snapshot, or in a transaction
//!   typed         Table          TableAt
//!   of bytes      BytesTable     BytesTableAt
//! ```
//!
//! Each has the methods of [`Reader`] as its own, so that the trait need not be imported; generic
//! functions name the trait. The methods are documented there, once.

pub(crate) mod table_at;

use folddb_base::{OpKind, Result};
use folddb_rules::codec::{AsKey, Key, Value};

use crate::aggregate::range::Aggregate;
use crate::index::find::BytesFind;
use crate::index::typed_find::Find;
use crate::reader::table_at::{BytesTableAt, TableAt};
use crate::scan::bytes::BytesScan;
use crate::scan::typed::Scan;
use crate::snapshot::Snapshot;
use crate::table::bytes::BytesTable;
use crate::table::typed::{EncodedKeys, Table, encoded_key};
use folddb_engine::read::locate::{Locate, Located};
use folddb_engine::values::head::Head;
use folddb_engine::write::stream::ValueReader;

/// Reads of a table: as it is now ([`Table`], [`BytesTable`]), as of a snapshot
/// ([`Snapshot::table`]), and in a transaction ([`Transaction::table`](crate::Transaction::table)).
///
/// ```
/// # use folddb::{Durability, Options, Reader, Rules, Store};
/// # let dir = tempfile::tempdir().unwrap();
/// # let store = Store::create(dir.path().join("s.folddb"), Options::default())?;
/// # let visits = store.table("visits", Rules::sorted::<String, u64>().fold("sum:u64"))?;
/// fn both(visits: &impl Reader<Key = String, Value = u64>) -> folddb::Result<u64> {
///     Ok(visits.get_many(["/", "/about"])?.into_iter().flatten().sum())
/// }
///
/// visits.fold("/", &1)?;
/// let past = store.snapshot();
/// visits.fold("/about", &1)?;
/// assert_eq!((both(&visits)?, both(&past.table(&visits))?), (2, 1));
/// store.transact(Durability::Process, |transaction| {
///     transaction.fold(&visits, "/", &1);
///     assert_eq!(both(&transaction.table(&visits))?, 3);
///     Ok(())
/// })?;
/// # Ok::<(), folddb::Error>(())
/// ```
pub trait Reader: sealed::Sealed {
    /// The type of the keys; bytes as they are stored, if the handle has no types.
    type Key: Key;
    /// The type of the values.
    type Value: Value;
    /// A scan: [`Scan`] or [`BytesScan`].
    type Scan: IntoIterator<Item = Result<(Self::Key, Self::Value)>>;
    /// A query of an index: [`Find`] or [`BytesFind`].
    type Find: IntoIterator<Item = Result<(Self::Key, Self::Value)>>;

    /// The name of the table.
    fn name(&self) -> &str;

    /// The value of `key`: the fold of everything written to it.
    ///
    /// # Errors
    /// [`crate::ErrorKind::FoldFailed`] if the table's fold fails on this key; damage; a failed
    /// read. At a snapshot: a table of another store; [`crate::ErrorKind::SnapshotTooOld`] if it
    /// has ended because of its age.
    fn get<Q: AsKey<Self::Key> + ?Sized>(&self, key: &Q) -> Result<Option<Self::Value>>;

    /// The values of several keys as of one moment, in the order in which the keys are given.
    ///
    /// # Errors
    /// As [`Reader::get`], for a key on which that fails.
    fn get_many<'q, Q: AsKey<Self::Key> + ?Sized + 'q>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
    ) -> Result<Vec<Option<Self::Value>>>;

    /// True if `key` has a value.
    ///
    /// # Errors
    /// As [`Reader::get`].
    fn contains<Q: AsKey<Self::Key> + ?Sized>(&self, key: &Q) -> Result<bool>;

    /// The head of the value of `key`: its size, its hash, and what the table's rules extract from
    /// it. A separated value is not read, unless an operand waits to be folded onto it.
    ///
    /// # Errors
    /// As [`Reader::get`].
    fn head<Q: AsKey<Self::Key> + ?Sized>(&self, key: &Q) -> Result<Option<Head>>;

    /// A reader of the value of `key`, as bytes, which holds no more than a piece of it: see
    /// [`ValueReader`].
    ///
    /// # Errors
    /// As [`Reader::get`].
    fn read<Q: AsKey<Self::Key> + ?Sized>(&self, key: &Q) -> Result<Option<ValueReader>>;

    /// Where the value of `key` is, to be passed to the system (`sendfile`) or read piece by piece:
    /// see [`Located`].
    ///
    /// # Errors
    /// As [`Reader::get`].
    fn locate<Q: AsKey<Self::Key> + ?Sized>(&self, key: &Q, how: Locate) -> Result<Option<Located>>;

    /// A scan: of a table as it is when the scan starts. Narrow it, then iterate.
    fn scan(&self) -> Self::Scan;

    /// Records by the terms of an index: all of them, in the order of the terms, until it is
    /// narrowed.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`], with the existing indexes.
    fn find(&self, index: &str) -> Result<Self::Find>;

    /// How many rows there are, and what all values fold to. For a range, see [`Scan::aggregate`].
    ///
    /// # Errors
    /// As [`BytesScan::aggregate`].
    fn aggregate(&self) -> Result<Aggregate<Self::Value>>;

    /// The first row, in the order of the table.
    ///
    /// # Errors
    /// As [`Reader::get`].
    fn first(&self) -> Result<Option<(Self::Key, Self::Value)>>;

    /// The last row, in the order of the table.
    ///
    /// # Errors
    /// As [`Reader::get`].
    fn last(&self) -> Result<Option<(Self::Key, Self::Value)>>;

    /// True if no key has a value. Reads no values.
    ///
    /// # Errors
    /// As [`Reader::get`].
    fn is_empty(&self) -> Result<bool>;
}

/// A table for a batch, a transaction or a snapshot: [`Table`] or [`BytesTable`].
pub trait AnyTable: sealed::Sealed {
    /// The type of the keys; bytes as they are stored, if the handle has no types.
    type Key: Key;
    /// The type of the values.
    type Value: Value;
    /// The same table as of a snapshot, or in a transaction: [`TableAt`] or [`BytesTableAt`].
    type At: Reader<Key = Self::Key, Value = Self::Value>;

    #[doc(hidden)]
    fn of_bytes(&self) -> &BytesTable;

    #[doc(hidden)]
    fn at(&self, bytes: BytesTableAt) -> Self::At;

    /// Fails if an op does not fit the table.
    #[doc(hidden)]
    fn check_op(&self, kind: OpKind, key: &[u8], value: &[u8]) -> Result<()>;
}

impl<K: Key, V: Value> AnyTable for Table<K, V> {
    type Key = K;
    type Value = V;
    type At = TableAt<K, V>;

    fn of_bytes(&self) -> &BytesTable {
        self.as_bytes()
    }

    fn at(&self, bytes: BytesTableAt) -> TableAt<K, V> {
        TableAt::new(bytes)
    }

    #[inline]
    fn check_op(&self, kind: OpKind, _key: &[u8], value: &[u8]) -> Result<()> {
        self.check_written(kind, value)
    }
}

impl AnyTable for BytesTable {
    type Key = Vec<u8>;
    type Value = Vec<u8>;
    type At = BytesTableAt;

    fn of_bytes(&self) -> &BytesTable {
        self
    }

    fn at(&self, bytes: BytesTableAt) -> BytesTableAt {
        bytes
    }

    fn check_op(&self, kind: OpKind, key: &[u8], value: &[u8]) -> Result<()> {
        BytesTable::check_row(self.core(), kind, key, value)
    }
}

impl<T: AnyTable> AnyTable for &T {
    type Key = T::Key;
    type Value = T::Value;
    type At = T::At;

    fn of_bytes(&self) -> &BytesTable {
        (**self).of_bytes()
    }

    fn at(&self, bytes: BytesTableAt) -> T::At {
        (**self).at(bytes)
    }

    #[inline]
    fn check_op(&self, kind: OpKind, key: &[u8], value: &[u8]) -> Result<()> {
        (**self).check_op(kind, key, value)
    }
}

impl<T: sealed::Sealed> sealed::Sealed for &T {}

impl Snapshot {
    /// A table as of the snapshot, which lives as long as this. With a table of another store,
    /// reads fail.
    pub fn table<T: AnyTable>(&self, table: &T) -> T::At {
        table.at(BytesTableAt::new(table.of_bytes(), self, None))
    }

    /// The value of `key` at the snapshot: `snapshot.table(table).get(key)`.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn get<T: AnyTable, Q: AsKey<T::Key> + ?Sized>(
        &self,
        table: &T,
        key: &Q,
    ) -> Result<Option<T::Value>> {
        self.table(table).get(key)
    }

    /// A scan of a table at the snapshot, which lives as long as the scan:
    /// `snapshot.table(table).scan()`.
    pub fn scan<T: AnyTable>(&self, table: &T) -> <T::At as Reader>::Scan {
        self.table(table).scan()
    }
}

/// Gives a handle its own reading methods, through those of `self.bytes`, and the trait.
macro_rules! typed_reader {
    ($handle:ident) => {
        impl<K: Key, V: Value> $handle<K, V> {
            /// The name of the table.
            pub fn name(&self) -> &str {
                self.bytes.name()
            }

            /// The value of `key`: the fold of everything written to it.
            ///
            /// # Errors
            /// As [`Reader::get`].
            pub fn get<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>> {
                let key = encoded_key(key);
                self.bytes.get_with(&key, |value| self.bytes.table().decoded(&key, value))?
            }

            /// The values of several keys as of one moment, in the order in which the keys are
            /// given.
            ///
            /// # Errors
            /// As [`Reader::get`], for a key on which that fails.
            pub fn get_many<'q, Q: AsKey<K> + ?Sized + 'q>(
                &self,
                keys: impl IntoIterator<Item = &'q Q>,
            ) -> Result<Vec<Option<V>>> {
                let keys = EncodedKeys::of::<K, Q>(keys);
                let keys = keys.each();
                let mut values: Vec<Option<V>> = keys.iter().map(|_| None).collect();
                self.bytes.get_many_with(&keys, &mut |place, value| {
                    values[place] = self.bytes.table().decoded(keys[place], value)?;
                    Ok(())
                })?;
                Ok(values)
            }

            /// True if `key` has a value.
            ///
            /// # Errors
            /// As [`Reader::get`].
            pub fn contains<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Result<bool> {
                self.bytes.contains(&encoded_key(key))
            }

            /// The head of the value of `key`: see [`Reader::head`].
            ///
            /// # Errors
            /// As [`Reader::get`].
            pub fn head<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Result<Option<Head>> {
                self.bytes.head(&encoded_key(key))
            }

            /// A reader of the value of `key`, as bytes, which holds no more than a piece of it:
            /// see [`ValueReader`].
            ///
            /// # Errors
            /// As [`Reader::get`].
            pub fn read<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Result<Option<ValueReader>> {
                self.bytes.read(&encoded_key(key))
            }

            /// Where the value of `key` is: see [`Located`].
            ///
            /// # Errors
            /// As [`Reader::get`].
            pub fn locate<Q: AsKey<K> + ?Sized>(&self, key: &Q, how: Locate) -> Result<Option<Located>> {
                self.bytes.locate(&encoded_key(key), how)
            }

            /// A scan of the table, of all of it until it is narrowed.
            pub fn scan(&self) -> Scan<K, V> {
                Scan::new(self.bytes.scan())
            }

            /// Records by the terms of an index: see [`Reader::find`].
            ///
            /// # Errors
            /// As [`Reader::find`].
            pub fn find(&self, index: &str) -> Result<Find<K, V>> {
                self.bytes.find(index).map(Find::new)
            }

            /// How many rows there are, and what all values fold to.
            ///
            /// # Errors
            /// As [`BytesScan::aggregate`].
            pub fn aggregate(&self) -> Result<Aggregate<V>> {
                self.scan().aggregate()
            }

            /// The first row, in the order of the table.
            ///
            /// # Errors
            /// As [`Reader::get`].
            pub fn first(&self) -> Result<Option<(K, V)>> {
                self.scan().first()
            }

            /// The last row, in the order of the table.
            ///
            /// # Errors
            /// As [`Reader::get`].
            pub fn last(&self) -> Result<Option<(K, V)>> {
                self.scan().last()
            }

            /// True if no key has a value.
            ///
            /// # Errors
            /// As [`Reader::get`].
            pub fn is_empty(&self) -> Result<bool> {
                self.scan().is_empty()
            }
        }

        reader!($handle<K, V> [K: Key, V: Value], (K, V), Scan<K, V>, Find<K, V>, key => key);
    };
}

/// The same without types.
macro_rules! bytes_reader {
    ($handle:ident) => {
        impl $handle {
            /// The value of `key`, copied.
            ///
            /// # Errors
            /// As [`Reader::get`].
            pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
                self.get_with(key, |value| value.map(<[u8]>::to_vec))
            }

            /// The values of several keys as of one moment, in the order in which the keys are
            /// given.
            ///
            /// # Errors
            /// As [`Reader::get`], for a key on which that fails.
            pub fn get_many<'q, Q: AsKey<Vec<u8>> + ?Sized + 'q>(
                &self,
                keys: impl IntoIterator<Item = &'q Q>,
            ) -> Result<Vec<Option<Vec<u8>>>> {
                let keys = EncodedKeys::of::<Vec<u8>, Q>(keys);
                let keys = keys.each();
                let mut values = vec![None; keys.len()];
                self.get_many_with(&keys, &mut |place, value| {
                    values[place] = value.map(<[u8]>::to_vec);
                    Ok(())
                })?;
                Ok(values)
            }

            /// How many rows there are, and what all values fold to.
            ///
            /// # Errors
            /// As [`BytesScan::aggregate`].
            pub fn aggregate(&self) -> Result<Aggregate> {
                self.scan().aggregate()
            }

            /// The first row, in the order of the table.
            ///
            /// # Errors
            /// As [`Reader::get`].
            pub fn first(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
                self.scan().first()
            }

            /// The last row, in the order of the table.
            ///
            /// # Errors
            /// As [`Reader::get`].
            pub fn last(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
                self.scan().last()
            }

            /// True if no key has a value.
            ///
            /// # Errors
            /// As [`Reader::get`].
            pub fn is_empty(&self) -> Result<bool> {
                self.scan().is_empty()
            }
        }

        reader!($handle [], (Vec<u8>, Vec<u8>), BytesScan, BytesFind, key => &encoded_key::<Vec<u8>, _>(key));
    };
}

/// Implements the trait through the handle's own methods, which take a key converted by `$as_own`.
macro_rules! reader {
    ($handle:ty [$($types:tt)*], ($k:ty, $v:ty), $scan:ty, $find:ty, $key:ident => $as_own:expr) => {
        impl<$($types)*> sealed::Sealed for $handle {}

        impl<$($types)*> Reader for $handle {
            type Key = $k;
            type Value = $v;
            type Scan = $scan;
            type Find = $find;

            fn name(&self) -> &str {
                <$handle>::name(self)
            }
            fn get<Q: AsKey<$k> + ?Sized>(&self, $key: &Q) -> Result<Option<$v>> {
                <$handle>::get(self, $as_own)
            }
            fn get_many<'q, Q: AsKey<$k> + ?Sized + 'q>(
                &self,
                keys: impl IntoIterator<Item = &'q Q>,
            ) -> Result<Vec<Option<$v>>> {
                <$handle>::get_many(self, keys)
            }
            fn contains<Q: AsKey<$k> + ?Sized>(&self, $key: &Q) -> Result<bool> {
                <$handle>::contains(self, $as_own)
            }
            fn head<Q: AsKey<$k> + ?Sized>(&self, $key: &Q) -> Result<Option<Head>> {
                <$handle>::head(self, $as_own)
            }
            fn read<Q: AsKey<$k> + ?Sized>(&self, $key: &Q) -> Result<Option<ValueReader>> {
                <$handle>::read(self, $as_own)
            }
            fn locate<Q: AsKey<$k> + ?Sized>(&self, $key: &Q, how: Locate) -> Result<Option<Located>> {
                <$handle>::locate(self, $as_own, how)
            }
            fn scan(&self) -> $scan {
                <$handle>::scan(self)
            }
            fn find(&self, index: &str) -> Result<$find> {
                <$handle>::find(self, index)
            }
            fn aggregate(&self) -> Result<Aggregate<$v>> {
                <$handle>::aggregate(self)
            }
            fn first(&self) -> Result<Option<($k, $v)>> {
                <$handle>::first(self)
            }
            fn last(&self) -> Result<Option<($k, $v)>> {
                <$handle>::last(self)
            }
            fn is_empty(&self) -> Result<bool> {
                <$handle>::is_empty(self)
            }
        }
    };
}

typed_reader!(Table);
typed_reader!(TableAt);
bytes_reader!(BytesTable);
bytes_reader!(BytesTableAt);

mod sealed {
    /// Only handles of tables implement [`super::Reader`] and [`super::AnyTable`], so that these
    /// can be extended.
    pub trait Sealed {}
}
