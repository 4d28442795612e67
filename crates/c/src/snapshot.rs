//! Snapshots: the whole store as it was at one moment.

use std::ptr::null_mut;
use std::time::{Duration, SystemTime};

use folddb::{AsOf, Error, Snapshot};

use crate::errors::{guard, guard_silently};
use crate::handles::{self, Object};
use crate::memory::ErrPtr;
use crate::store::StoreObject;

/// The whole store as it was when the snapshot was taken. Any number of threads read at it at once.
pub struct SnapshotObject(pub(crate) Snapshot);

impl Object for SnapshotObject {
    const NAME: &'static str = "folddb_snapshot";
}

/// Takes a snapshot, which is free. While it lives, the store keeps what it sees: destroy it when
/// done. NULL where it fails. folddb_snapshot_table reads at it.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_snapshot_create(store: *mut StoreObject, errptr: ErrPtr<'_>) -> *mut SnapshotObject {
    guard(errptr, null_mut(), || {
        let store = handles::get(store)?;
        handles::give(SnapshotObject(store.0.snapshot()))
    })
}

/// A snapshot of the store as it was after the record of this seq. Only tables that keep their past
/// (`keep=...` among the rules) can be read at it. NULL where it fails.
///
/// Errors: InvalidInput for a seq that is not written yet; SnapshotTooOld.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_snapshot_at_seq(
    store: *mut StoreObject,
    seq: u64,
    errptr: ErrPtr<'_>,
) -> *mut SnapshotObject {
    guard(errptr, null_mut(), || {
        let past = handles::get(store)?.0.snapshot_at(AsOf::Seq(seq.into()))?;
        handles::give(SnapshotObject(past))
    })
}

/// A snapshot of the store as it was at this time, in milliseconds since 1970. Otherwise as
/// folddb_snapshot_at_seq.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_snapshot_at_time(
    store: *mut StoreObject,
    unix_ms: u64,
    errptr: ErrPtr<'_>,
) -> *mut SnapshotObject {
    guard(errptr, null_mut(), || {
        let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(unix_ms));
        let time = time.ok_or_else(|| Error::invalid(format!("{unix_ms} ms is not a time")))?;
        handles::give(SnapshotObject(handles::get(store)?.0.snapshot_at(AsOf::Time(time))?))
    })
}

/// The seq of the last record that it sees; 0 where it fails, too.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_snapshot_seq(snapshot: *mut SnapshotObject, errptr: ErrPtr<'_>) -> u64 {
    guard(errptr, 0, || Ok(handles::get(snapshot)?.0.seq().into()))
}

/// Destroys the handle. NULL is ignored. Tables and iterators that read at it keep what they need
/// until they are destroyed.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_snapshot_destroy(snapshot: *mut SnapshotObject) {
    guard_silently(|| handles::take(snapshot).map(drop));
}
