//! Scans with the types of keys and values.

use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use folddb_base::{Error, Result};
use folddb_rules::codec::{CodecError, Key, KeyBound, KeyPrefix, KeyRange, Value};

use crate::scan::bytes::{BytesScan, RowsState};
use crate::scan::cursor::Cursor;
use folddb_engine::values::head::Head;

/// A scan of typed keys and values. Narrow it, then iterate.
#[must_use = "a scan does nothing until it is iterated"]
pub struct Scan<K, V> {
    pub(crate) bytes: BytesScan,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> std::fmt::Debug for Scan<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.bytes.fmt(f)
    }
}

impl<K: Key, V: Value> Scan<K, V> {
    pub(crate) fn new(bytes: BytesScan) -> Scan<K, V> {
        Scan { bytes, types: PhantomData }
    }

    fn change(self, change: impl FnOnce(BytesScan) -> BytesScan) -> Self {
        Scan::new(change(self.bytes))
    }

    /// Begins at `bound`, included: a key, or the first elements of a tuple (`&("UA",)`: all keys
    /// with them).
    pub fn from<B: KeyBound<K> + ?Sized>(self, bound: &B) -> Self {
        let span = self.span(bound);
        self.change(|scan| scan.low(span.from()))
    }

    /// Begins after `bound`.
    pub fn after<B: KeyBound<K> + ?Sized>(self, bound: &B) -> Self {
        let span = self.span(bound);
        self.change(|scan| scan.low(span.after()))
    }

    /// Ends before `bound`.
    pub fn before<B: KeyBound<K> + ?Sized>(self, bound: &B) -> Self {
        let span = self.span(bound);
        self.change(|scan| scan.high(span.before()))
    }

    /// Ends with `bound`, included.
    pub fn through<B: KeyBound<K> + ?Sized>(self, bound: &B) -> Self {
        let span = self.span(bound);
        self.change(|scan| scan.high(span.through()))
    }

    /// Only keys of a range: `10..20`, `..=("UA", "LGA")`; see [`Scan::from`] for what may bound
    /// one.
    pub fn range<B: KeyBound<K> + ?Sized>(self, range: impl RangeBounds<B>) -> Self {
        let low = match range.start_bound() {
            Bound::Included(bound) => self.span(bound).from(),
            Bound::Excluded(bound) => self.span(bound).after(),
            Bound::Unbounded => Bound::Unbounded,
        };
        let high = match range.end_bound() {
            Bound::Included(bound) => self.span(bound).through(),
            Bound::Excluded(bound) => self.span(bound).before(),
            Bound::Unbounded => Bound::Unbounded,
        };
        self.change(|scan| scan.low(low).high(high))
    }

    /// The keys that count as equal to a bound, in the order of this table.
    fn span<B: KeyBound<K> + ?Sized>(&self, bound: &B) -> KeyRange {
        self.bytes.in_order(bound.span())
    }

    /// Only keys that begin with `prefix`: the first elements of a tuple (`&("UA",)`), the first
    /// letters of a string.
    pub fn prefix<P: KeyPrefix<K> + ?Sized>(self, prefix: &P) -> Self {
        self.change(|scan| scan.within(prefix.key_range()))
    }

    /// Goes from the highest key down.
    pub fn reverse(self) -> Self {
        self.change(BytesScan::reverse)
    }

    /// Stops after this many rows.
    pub fn limit(self, rows: usize) -> Self {
        self.change(|scan| scan.limit(rows))
    }

    /// The keys of the range; no separated value is read.
    pub fn keys(self) -> impl FusedIterator<Item = Result<K>> {
        let table = self.bytes.table.name.clone();
        self.bytes.keys().map(move |key| K::decode(&key?).map_err(|cause| wrong_row(&table, &cause)))
    }

    /// The first row of the range, in the direction of the scan.
    ///
    /// # Errors
    /// As [`BytesScan::rows`].
    pub fn first(self) -> Result<Option<(K, V)>> {
        self.limit(1).into_iter().next().transpose()
    }

    /// The last row of the range, in the direction of the scan.
    ///
    /// # Errors
    /// As [`BytesScan::rows`].
    pub fn last(self) -> Result<Option<(K, V)>> {
        self.reverse().first()
    }

    /// True if the range has no row. Reads no separated value.
    ///
    /// # Errors
    /// As [`BytesScan::rows`].
    pub fn is_empty(self) -> Result<bool> {
        self.bytes.is_empty()
    }

    /// The number of keys in the range. Reads all of it.
    ///
    /// # Errors
    /// As [`BytesScan::rows`].
    pub fn count(self) -> Result<u64> {
        self.bytes.count()
    }
}

impl<K: Key, V: Value> Scan<K, V> {
    /// Keys with the heads of their values instead of these: no separated value is read, except as
    /// [`Head`] says.
    pub fn heads(self) -> impl FusedIterator<Item = Result<(K, Head)>> {
        let table = self.bytes.table.name.clone();
        self.bytes.heads().map(move |row| {
            let (key, head) = row?;
            Ok((K::decode(&key).map_err(|cause| wrong_row(&table, &cause))?, head))
        })
    }
}

impl<K: Key, V: Value> IntoIterator for Scan<K, V> {
    type Item = Result<(K, V)>;
    type IntoIter = TypedRows<K, V>;
    fn into_iter(self) -> TypedRows<K, V> {
        TypedRows {
            name: self.bytes.table.name.clone(),
            state: RowsState::start(self.bytes),
            types: PhantomData,
        }
    }
}

/// Rows of a scan as typed keys and values.
#[must_use = "an iterator does nothing until it is iterated"]
pub struct TypedRows<K, V> {
    name: String,
    state: RowsState,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> std::fmt::Debug for TypedRows<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rows of a scan of table `{}`", self.name)
    }
}

impl<K: Key, V: Value> TypedRows<K, V> {
    /// The position of the scan, to resume it later: [`Table::resume`](crate::Table::resume); none
    /// after a failure.
    pub fn cursor(&self) -> Option<Cursor> {
        self.state.cursor()
    }
}

impl<K: Key, V: Value> Iterator for TypedRows<K, V> {
    type Item = Result<(K, V)>;
    fn next(&mut self) -> Option<Self::Item> {
        let name = &self.name;
        let wrong = |cause| wrong_row(name, &cause);
        self.state.next(|key, value| Ok((K::decode(key).map_err(wrong)?, V::decode(value).map_err(wrong)?)))
    }
}

impl<K: Key, V: Value> FusedIterator for TypedRows<K, V> {}

/// The error of a row that is not of the type of its table.
pub(crate) fn wrong_row(table: &str, cause: &CodecError) -> Error {
    let message = format!("a row of table `{table}` is not of its type: {cause}");
    Error::new(crate::ErrorKind::RulesMismatch, message)
}
