//! Iterators: a place in a scan, which goes both ways.
//!
//! ```text
//!   next, prev    the scan continues; where its direction turns, another scan begins at the row
//!   seek          another scan begins at the key
//! ```
//!
//! All of these scans read at one snapshot, which the iterator takes when it is made. A limit is
//! the end of the range in both directions: its last key is found when it is first needed.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::ops::Bound;
use std::ptr::null_mut;

use folddb::{BytesScan, LentRows, Result};

use crate::callbacks::begin;
use crate::errors::{guard, guard_silently};
use crate::exclusive::Exclusive;
use crate::handles::{self, Object};
use crate::memory::{Bytes, ErrPtr, put};
use crate::scan::{Range, ScanObject, high, low, range_of};
use crate::table::Place;

/// A place in a scan. One thread uses it at a time.
pub struct IteratorObject(Exclusive<Walk>);

impl Object for IteratorObject {
    const NAME: &'static str = "folddb_iterator";
}

struct Walk {
    range: Range,
    /// All of the range, in its direction.
    all: BytesScan,
    /// Whether a limit of rows ends the range before its bound does, as far as is known.
    is_limited: bool,
    /// Rows from its position on, and whether they go against the range.
    rows: Option<(LentRows, bool)>,
    /// Its row, unless it is at neither a row nor one whose fold fails.
    row: Option<(Vec<u8>, Vec<u8>)>,
}

impl Walk {
    fn of(range: Range) -> Result<Walk> {
        let table = &range.table;
        let all = match &table.place {
            // Many scans with the same view.
            Place::Now => range.narrow(table.store.0.snapshot().scan(&table.table)),
            _ => range.scan()?,
        };
        let is_limited = range.is_limited();
        Ok(Walk { range, all, is_limited, rows: None, row: None })
    }

    /// All of the range, with a bound instead of its limit: scans of it may begin anywhere.
    fn whole(&mut self) -> Result<BytesScan> {
        if self.is_limited {
            let last = self.last_within()?;
            let scan = self.all.clone().limit(usize::MAX);
            self.all = match (last, self.range.is_reversed()) {
                (None, _) => scan.limit(0), // no limit of another scan of it brings rows back
                (Some(last), true) => low(scan, &last),
                (Some(last), false) => high(scan, &last),
            };
            self.is_limited = false;
        }
        Ok(self.all.clone())
    }

    /// The bound of the limit: the key of the last row within it.
    fn last_within(&self) -> Result<Option<Bound<Vec<u8>>>> {
        let mut rows = self.all.clone().keys_only().rows()?;
        let mut last = None;
        while let Some((key, _)) = rows.next_row()? {
            let last = last.get_or_insert_with(Vec::new);
            last.clear();
            last.extend_from_slice(key);
        }
        Ok(last.map(Bound::Included))
    }

    /// Begins a scan and goes to its first row.
    fn begin(&mut self, scan: BytesScan, is_against: bool) -> Result<bool> {
        (self.rows, self.row) = (None, None);
        self.rows = Some((scan.rows()?, is_against));
        self.step()
    }

    /// Goes to the next row of the running scan.
    fn step(&mut self) -> Result<bool> {
        let Some((rows, _)) = &mut self.rows else { return Ok(false) };
        let (mut key, mut value) = self.row.take().unwrap_or_default();
        let Some(row) = rows.next_row()? else { return Ok(false) };
        key.clear();
        key.extend_from_slice(row.0);
        value.clear();
        value.extend_from_slice(row.1);
        self.row = Some((key, value));
        Ok(true)
    }

    /// Goes to the neighbor of its row, along the range or against it.
    fn go(&mut self, is_against: bool) -> Result<bool> {
        match (&self.rows, &self.row) {
            (Some((_, way)), _) if *way == is_against => self.step(),
            (_, None) => Ok(false),
            (_, Some((key, _))) => {
                let from = Bound::Excluded(key.clone());
                let scan = if is_against { self.whole()?.reverse() } else { self.whole()? };
                let is_down = self.range.is_reversed() != is_against;
                let scan = if is_down { high(scan, &from) } else { low(scan, &from) };
                self.begin(scan, is_against)
            }
        }
    }

    /// Goes to the first row at the key or after it, in the direction of the range.
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let (all, is_reversed) = (self.whole()?, self.range.is_reversed());
        let order = self.range.table.table.rules().order();
        let first = if is_reversed { &self.range.high } else { &self.range.low };
        let is_inside = match first {
            Bound::Unbounded => true,
            Bound::Included(bound) | Bound::Excluded(bound) if is_reversed => {
                order.compare(key, bound).is_lt()
            }
            Bound::Included(bound) | Bound::Excluded(bound) => order.compare(key, bound).is_gt(),
        };
        let from = Bound::Included(key.to_vec());
        let scan = match (is_inside, is_reversed) {
            (false, _) => all,
            (true, true) => high(all, &from),
            (true, false) => low(all, &from),
        };
        self.begin(scan, false)
    }
}

fn walk(
    iterator: *mut IteratorObject,
    errptr: ErrPtr<'_>,
    walk: impl FnOnce(&mut Walk) -> Result<bool>,
) -> bool {
    guard(errptr, false, || {
        let iterator = handles::get(iterator)?;
        walk(&mut *iterator.0.lock::<IteratorObject>()?)
    })
}

/// An iterator over the range that the scan has now. It is at no row yet, and sees the table as it
/// is now, or as the snapshot or the transaction sees it. NULL where it fails. Destroy it with
/// folddb_iterator_destroy; while it lives, the store keeps what it sees.
///
/// Errors: SnapshotTooOld, Closed.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_iterator_create(scan: *mut ScanObject, errptr: ErrPtr<'_>) -> *mut IteratorObject {
    guard(errptr, null_mut(), || handles::give(IteratorObject(Exclusive::new(Walk::of(range_of(scan)?)?))))
}

/// Destroys the handle. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_iterator_destroy(iterator: *mut IteratorObject) {
    guard_silently(|| handles::take(iterator).map(drop));
}

/// Goes to the first row, in the direction of the scan. Returns whether there is one.
///
/// Errors: FoldFailed where the fold of the table fails on the key there: folddb_iterator_next
/// continues after it; InvalidInput for a hashed table whose scan has bounds; Corruption,
/// SnapshotTooOld, Closed; a failed read.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_iterator_seek_to_first(iterator: *mut IteratorObject, errptr: ErrPtr<'_>) -> bool {
    walk(iterator, errptr, |walk| walk.begin(walk.all.clone(), false))
}

/// Goes to the last row, in the direction of the scan. Otherwise as folddb_iterator_seek_to_first.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_iterator_seek_to_last(iterator: *mut IteratorObject, errptr: ErrPtr<'_>) -> bool {
    walk(iterator, errptr, |walk| {
        let all = walk.whole()?;
        walk.begin(all.reverse(), true)
    })
}

/// Goes to the first row at the key or after it, in the direction of the scan: in a reversed one,
/// to the last key that is no higher. Otherwise as folddb_iterator_seek_to_first.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_iterator_seek(
    iterator: *mut IteratorObject,
    key: Bytes,
    key_len: usize,
    errptr: ErrPtr<'_>,
) -> bool {
    walk(iterator, errptr, |walk| walk.seek(key.get(key_len, "the key")?))
}

/// Goes to the next row, in the direction of the scan. Otherwise as folddb_iterator_seek_to_first.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_iterator_next(iterator: *mut IteratorObject, errptr: ErrPtr<'_>) -> bool {
    walk(iterator, errptr, |walk| walk.go(false))
}

/// Goes to the previous row. Otherwise as folddb_iterator_seek_to_first.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_iterator_prev(iterator: *mut IteratorObject, errptr: ErrPtr<'_>) -> bool {
    walk(iterator, errptr, |walk| walk.go(true))
}

/// Whether it is at a row. False for an invalid handle, too.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_iterator_valid(iterator: *mut IteratorObject, errptr: ErrPtr<'_>) -> bool {
    walk(iterator, errptr, |walk| Ok(walk.row.is_some()))
}

fn part(
    iterator: *mut IteratorObject,
    len: Option<&mut MaybeUninit<usize>>,
    errptr: ErrPtr<'_>,
    part: impl FnOnce(&(Vec<u8>, Vec<u8>)) -> &Vec<u8>,
) -> *const c_char {
    guard(errptr, std::ptr::null(), || {
        let iterator = handles::get(iterator)?;
        let at = iterator.0.lock::<IteratorObject>()?;
        let row = at.row.as_ref();
        let row = row.ok_or_else(|| folddb::Error::invalid("the folddb_iterator is at no row"))?;
        let bytes = part(row);
        put(len, bytes.len());
        Ok(begin(bytes))
    })
}

/// The key of its row, and its length. NULL where it is at none. The pointer is valid until the
/// iterator moves or is destroyed; it is not for folddb_free.
///
/// Errors: InvalidInput where it is at no row.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_iterator_key(
    iterator: *mut IteratorObject,
    key_len: Option<&mut MaybeUninit<usize>>,
    errptr: ErrPtr<'_>,
) -> *const c_char {
    part(iterator, key_len, errptr, |row| &row.0)
}

/// The value of its row, and its length. Otherwise as folddb_iterator_key.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_iterator_value(
    iterator: *mut IteratorObject,
    value_len: Option<&mut MaybeUninit<usize>>,
    errptr: ErrPtr<'_>,
) -> *const c_char {
    part(iterator, value_len, errptr, |row| &row.1)
}
