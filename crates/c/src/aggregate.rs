//! The aggregate of a range.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use crate::errors::guard;
use crate::memory::{ErrPtr, copy_out_with_len, put};
use crate::scan::{ScanObject, range_of};

/// How many rows a scan has; 0 where it fails, too. In a table with summaries, most of it is known
/// without reading the rows.
///
/// Errors: Corruption, SnapshotTooOld, Closed; a failed read.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_scan_count(scan: *mut ScanObject, errptr: ErrPtr<'_>) -> u64 {
    guard(errptr, 0, || range_of(scan)?.scan()?.count())
}

/// The fold of the values of a scan, for folddb_free, and its length; NULL where there are no rows,
/// and where it fails. `rows` is set to the number of rows. In a table with summaries, most of it
/// is known without reading the rows.
///
/// Errors: InvalidInput for a scan with a limit, and for a table that replaces values; FoldFailed,
/// naming the key; as folddb_scan_count.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_scan_aggregate(
    scan: *mut ScanObject,
    rows: Option<&mut MaybeUninit<u64>>,
    value_len: Option<&mut MaybeUninit<usize>>,
    errptr: ErrPtr<'_>,
) -> *mut c_char {
    guard(errptr, null_mut(), || {
        let sum = range_of(scan)?.scan()?.aggregate()?;
        put(rows, sum.rows);
        sum.value.map_or(Ok(null_mut()), |value| copy_out_with_len(&value, value_len))
    })
}
