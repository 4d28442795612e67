//! Finds with the types of keys and values.

use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use folddb_base::{Error, ErrorKind, Result};
use folddb_rules::codec::tuple::Element;
use folddb_rules::codec::{Key, Value};

use crate::index::find::BytesFind;
use crate::index::hits::{Hit, Hits};
use crate::table::bytes::BytesTable;
use folddb_engine::values::head::Head;

/// A query of an index of a typed table. Narrow it, then iterate.
#[derive(Clone)]
#[must_use = "nothing is looked up until it is iterated"]
pub struct Find<K, V> {
    pub(crate) bytes: BytesFind,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Value> Find<K, V> {
    pub(crate) fn new(bytes: BytesFind) -> Self {
        Find { bytes, types: PhantomData }
    }

    fn change(self, change: impl FnOnce(BytesFind) -> BytesFind) -> Self {
        Find { bytes: change(self.bytes), types: PhantomData }
    }

    /// See [`BytesFind::term`].
    pub fn term<'t>(self, term: impl Into<Element<'t>>) -> Self {
        self.change(|find| find.term(term))
    }

    /// See [`BytesFind::range`].
    pub fn range<'t, T: Into<Element<'t>> + Clone>(self, range: impl RangeBounds<T>) -> Self {
        self.change(|find| find.range(range))
    }

    /// See [`BytesFind::prefix`].
    pub fn prefix<'t>(self, prefix: impl Into<Element<'t>>) -> Self {
        self.change(|find| find.prefix(prefix))
    }

    /// From the highest term down.
    pub fn reverse(self) -> Self {
        self.change(BytesFind::reverse)
    }

    /// Stops after this many hits.
    pub fn limit(self, hits: usize) -> Self {
        self.change(|find| find.limit(hits))
    }

    /// The keys of the records.
    pub fn keys(self) -> impl FusedIterator<Item = Result<K>> {
        let table = self.bytes.table.clone();
        self.bytes.keys().map(move |key| decoded_key(&table, &key?))
    }

    /// Keys and heads of the records.
    pub fn heads(self) -> impl FusedIterator<Item = Result<(K, Head)>> {
        let table = self.bytes.table.clone();
        self.bytes.heads().map(move |hit| {
            let (key, head) = hit?;
            Ok((decoded_key(&table, &key)?, head))
        })
    }

    /// Keys and values of the records.
    pub fn values(self) -> impl FusedIterator<Item = Result<(K, V)>> {
        self.into_iter()
    }

    /// Terms and keys of the records. A record with several of the requested terms appears once for
    /// each.
    pub fn terms(self) -> impl FusedIterator<Item = Result<(Element<'static>, K)>> {
        let table = self.bytes.table.clone();
        self.bytes.hits(false).map(move |hit| {
            let hit = hit?;
            Ok((hit.element(), decoded_key(&table, &hit.key)?))
        })
    }

    /// Terms, keys and values of the records, as [`Find::terms`].
    pub fn hits(self) -> impl FusedIterator<Item = Result<(Element<'static>, K, V)>> {
        let table = self.bytes.table.clone();
        self.bytes.hits(true).map(move |hit| {
            let hit = hit?;
            let value = V::decode(&hit.value).map_err(|cause| table.undecodable(&hit.key, &cause))?;
            Ok((hit.element(), decoded_key(&table, &hit.key)?, value))
        })
    }

    /// How many hits there are.
    ///
    /// # Errors
    /// As those of the iterators.
    pub fn count(self) -> Result<u64> {
        self.bytes.count()
    }
}

impl<K, V> std::fmt::Debug for Find<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.bytes.fmt(f)
    }
}

/// Keys and values of the records that a query of an index finds.
#[must_use = "an iterator does nothing until it is iterated"]
pub struct FoundRows<K, V> {
    hits: Hits,
    table: BytesTable,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Value> FoundRows<K, V> {
    fn start(find: BytesFind) -> FoundRows<K, V> {
        let table = find.table.clone();
        FoundRows { hits: find.hits(true), table, types: PhantomData }
    }

    fn decoded(&self, hit: Hit) -> Result<(K, V)> {
        let value = V::decode(&hit.value).map_err(|cause| self.table.undecodable(&hit.key, &cause))?;
        Ok((decoded_key(&self.table, &hit.key)?, value))
    }
}

impl<K: Key, V: Value> Iterator for FoundRows<K, V> {
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        let hit = self.hits.next()?;
        Some(hit.and_then(|hit| self.decoded(hit)))
    }
}

impl<K: Key, V: Value> FusedIterator for FoundRows<K, V> {}

impl<K, V> std::fmt::Debug for FoundRows<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.hits.fmt(f)
    }
}

impl<K: Key, V: Value> IntoIterator for Find<K, V> {
    type Item = Result<(K, V)>;
    type IntoIter = FoundRows<K, V>;

    fn into_iter(self) -> FoundRows<K, V> {
        FoundRows::start(self.bytes)
    }
}

impl IntoIterator for BytesFind {
    type Item = Result<(Vec<u8>, Vec<u8>)>;
    type IntoIter = FoundRows<Vec<u8>, Vec<u8>>;

    fn into_iter(self) -> FoundRows<Vec<u8>, Vec<u8>> {
        FoundRows::start(self)
    }
}

pub(crate) fn decoded_key<K: Key>(table: &BytesTable, key: &[u8]) -> Result<K> {
    K::decode(key).map_err(|cause| {
        let message = format!("a key of table `{}` is not of its type: {cause}", table.name());
        Error::new(ErrorKind::RulesMismatch, message)
    })
}
