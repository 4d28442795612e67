//! Scans: a range of a table, which is then walked, counted, aggregated, or handed to a function.

use std::ffi::{c_char, c_void};
use std::ops::Bound;
use std::ptr::null_mut;
use std::sync::Arc;

use folddb::codec::KeyRange;
use folddb::order::KeyOrder;
use folddb::{BytesScan, BytesTable, Error, ErrorKind, Result};

use crate::callbacks::begin;
use crate::errors::{guard, guard_silently};
use crate::exclusive::Exclusive;
use crate::handles::{self, Object};
use crate::memory::{Bytes, ErrPtr};
use crate::table::TableObject;

/// A range of a table, and how it is walked. One thread uses it at a time, any number of times.
pub struct ScanObject(Exclusive<Range>);

impl Object for ScanObject {
    const NAME: &'static str = "folddb_scan";
}

/// A range of a table.
#[derive(Clone)]
pub(crate) struct Range {
    pub(crate) table: Arc<TableObject>,
    pub(crate) low: Bound<Vec<u8>>,
    pub(crate) high: Bound<Vec<u8>>,
    is_reversed: bool,
    limit: Option<usize>,
    is_keys_only: bool,
}

impl Range {
    /// The scan of this range, of the table as its handle sees it.
    ///
    /// # Errors
    /// The transaction is over.
    pub(crate) fn scan(&self) -> Result<BytesScan> {
        Ok(self.narrow(match self.table.at()? {
            None => self.table.table.scan(),
            Some(table) => table.scan(),
        }))
    }

    /// Narrows a scan of all of the table to this range.
    pub(crate) fn narrow(&self, scan: BytesScan) -> BytesScan {
        let scan = low(scan, &self.low);
        let scan = high(scan, &self.high);
        let scan = if self.is_reversed { scan.reverse() } else { scan };
        let scan = if self.is_keys_only { scan.keys_only() } else { scan };
        scan.limit(self.limit.unwrap_or(usize::MAX))
    }

    /// Makes these the bounds.
    pub(crate) fn set(&mut self, keys: KeyRange) {
        (self.low, self.high) = (keys.low, keys.high);
    }

    /// Whether it has a limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Whether it goes from the highest key down.
    pub(crate) fn is_reversed(&self) -> bool {
        self.is_reversed
    }
}

/// The scan from this bound on.
pub(crate) fn low(scan: BytesScan, low: &Bound<Vec<u8>>) -> BytesScan {
    match low {
        Bound::Included(key) => scan.from(key),
        Bound::Excluded(key) => scan.after(key),
        Bound::Unbounded => scan,
    }
}

/// The scan up to this bound.
pub(crate) fn high(scan: BytesScan, high: &Bound<Vec<u8>>) -> BytesScan {
    match high {
        Bound::Included(key) => scan.through(key),
        Bound::Excluded(key) => scan.before(key),
        Bound::Unbounded => scan,
    }
}

/// A range of bytes, in the order of the table.
///
/// # Errors
/// InvalidInput where it is none in that order.
pub(crate) fn in_order(table: &BytesTable, range: KeyRange) -> Result<KeyRange> {
    match table.rules().order() {
        KeyOrder::Reversed => Ok(range.mirrored()),
        order if order.has_byte_prefixes() => Ok(range),
        _ => {
            let name = table.name();
            Err(Error::invalid(format!(
                "table `{name}` has a custom order, in which the keys of a prefix are not a range"
            )))
        }
    }
}

/// The range of a scan.
pub(crate) fn range_of(scan: *mut ScanObject) -> Result<Range> {
    Ok(handles::get(scan)?.0.lock::<ScanObject>()?.clone())
}

/// A scan of all of a table: as it is now, as the snapshot sees it, or in the transaction,
/// depending on the handle `table`. NULL where it fails. Destroy it with folddb_scan_destroy.
///
/// A scan of a table as it is now sees the table at the time when the scan is walked.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_scan_create(table: *mut TableObject, errptr: ErrPtr<'_>) -> *mut ScanObject {
    guard(errptr, null_mut(), || {
        handles::give(ScanObject(Exclusive::new(Range {
            table: handles::get(table)?,
            low: Bound::Unbounded,
            high: Bound::Unbounded,
            is_reversed: false,
            limit: None,
            is_keys_only: false,
        })))
    })
}

/// Destroys the handle. NULL is ignored. Iterators of it remain valid.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_scan_destroy(scan: *mut ScanObject) {
    guard_silently(|| handles::take(scan).map(drop));
}

/// Changes the range of a scan.
pub(crate) fn change(
    scan: *mut ScanObject,
    errptr: ErrPtr<'_>,
    change: impl FnOnce(&mut Range) -> Result<()>,
) -> bool {
    guard(errptr, false, || {
        let scan = handles::get(scan)?;
        let mut range = scan.0.lock::<ScanObject>()?;
        change(&mut range).map(|()| true)
    })
}

/// Only keys from this one on, in the order of the table. Returns whether it was set. The key is
/// copied.
///
/// Errors: InvalidInput where the key is NULL and its length is not 0.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_scan_from(
    scan: *mut ScanObject,
    key: Bytes,
    key_len: usize,
    errptr: ErrPtr<'_>,
) -> bool {
    change(scan, errptr, |range| {
        range.low = Bound::Included(key.get(key_len, "the key")?.to_vec());
        Ok(())
    })
}

/// Only keys after this one. Otherwise as folddb_scan_from, which it replaces.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_scan_after(
    scan: *mut ScanObject,
    key: Bytes,
    key_len: usize,
    errptr: ErrPtr<'_>,
) -> bool {
    change(scan, errptr, |range| {
        range.low = Bound::Excluded(key.get(key_len, "the key")?.to_vec());
        Ok(())
    })
}

/// Only keys before this one. Otherwise as folddb_scan_from.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_scan_before(
    scan: *mut ScanObject,
    key: Bytes,
    key_len: usize,
    errptr: ErrPtr<'_>,
) -> bool {
    change(scan, errptr, |range| {
        range.high = Bound::Excluded(key.get(key_len, "the key")?.to_vec());
        Ok(())
    })
}

/// Only keys up to this one, included. Otherwise as folddb_scan_before, which it replaces.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_scan_through(
    scan: *mut ScanObject,
    key: Bytes,
    key_len: usize,
    errptr: ErrPtr<'_>,
) -> bool {
    change(scan, errptr, |range| {
        range.high = Bound::Included(key.get(key_len, "the key")?.to_vec());
        Ok(())
    })
}

/// Only keys that begin with these bytes. It replaces both bounds. Returns whether it was set.
///
/// Errors: InvalidInput for a table with a custom order, in which the keys of a prefix are not
/// a range.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_scan_prefix(
    scan: *mut ScanObject,
    prefix: Bytes,
    prefix_len: usize,
    errptr: ErrPtr<'_>,
) -> bool {
    change(scan, errptr, |range| {
        let keys = KeyRange::prefix(prefix.get(prefix_len, "the prefix")?.to_vec());
        range.set(in_order(&range.table.table, keys)?);
        Ok(())
    })
}

/// Reverses its direction: from the highest key down, or up again. Returns whether it was set.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_scan_reverse(scan: *mut ScanObject, errptr: ErrPtr<'_>) -> bool {
    change(scan, errptr, |range| {
        range.is_reversed = !range.is_reversed;
        Ok(())
    })
}

/// At most this many rows, the first ones in its direction; an iterator reaches no others, in
/// either direction. Returns whether it was set.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_scan_limit(scan: *mut ScanObject, rows: usize, errptr: ErrPtr<'_>) -> bool {
    change(scan, errptr, |range| {
        range.limit = Some(rows);
        Ok(())
    })
}

/// Only keys: values are empty, and no separated one is read. Returns whether it was set.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_scan_keys_only(scan: *mut ScanObject, errptr: ErrPtr<'_>) -> bool {
    change(scan, errptr, |range| {
        range.is_keys_only = true;
        Ok(())
    })
}

/// Receives a row, and returns whether it wants the next one. The pointers are valid during the
/// call. A C++ exception must not leave it.
pub type RowFunction = Option<
    extern "C" fn(
        context: *mut c_void,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
    ) -> bool,
>;

/// Calls `visit` with each row, without copying any: the fastest way through a range. Returns
/// whether it reached the end.
///
/// Errors: FoldFailed, naming the key; Stopped where `visit` wants no more; Corruption,
/// SnapshotTooOld, Closed; a failed read.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_scan_each(
    scan: *mut ScanObject,
    visit: RowFunction,
    context: *mut c_void,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let visit = visit.ok_or_else(|| Error::invalid("the function is NULL"))?;
        let mut rows = range_of(scan)?.scan()?.rows()?;
        while let Some((key, value)) = rows.next_row()? {
            if !visit(context, begin(key), key.len(), begin(value), value.len()) {
                return Err(Error::new(ErrorKind::Stopped, "the function asked for no more rows"));
            }
        }
        Ok(true)
    })
}
