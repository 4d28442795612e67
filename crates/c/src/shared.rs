//! What several stores share: a budget of memory, a cache, threads, and a limit on their writes.

use std::ptr::null_mut;

use folddb::Shared;

use crate::errors::{guard, guard_silently};
use crate::handles::{self, Object};
use crate::memory::ErrPtr;

/// A budget of memory, a cache, three background threads, and a limit on what these write, for all
/// stores that are opened with it. Any number of threads use it at once.
pub struct SharedObject(pub(crate) Shared);

impl Object for SharedObject {
    const NAME: &'static str = "folddb_shared";
}

/// A budget of this many bytes, at least 4 MiB, for memtables, the cache and merges of all stores
/// that are opened with options on which folddb_options_set_shared was called. NULL where it fails.
/// Destroy it with folddb_shared_destroy.
///
/// A store uses at most its own `memory_bytes` of it for memtables. One that is poisoned, or whose
/// disk is full, stops no other.
///
/// Errors: InvalidInput where there are too many handles.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_shared_create(memory_bytes: usize, errptr: ErrPtr<'_>) -> *mut SharedObject {
    guard(errptr, null_mut(), || handles::give(SharedObject(Shared::new(memory_bytes))))
}

/// Destroys the handle. NULL is ignored. Stores and options that have it continue to share it; its
/// threads end with the last store.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_shared_destroy(shared: *mut SharedObject) {
    guard_silently(|| handles::take(shared).map(drop));
}

/// Sets how many bytes per second background work of all stores may write; 0, the default, is no
/// limit. Returns whether it was set. Merges, and work that moves values, wait; flushes count, but
/// never wait. It applies from now on.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_shared_set_background_bytes_per_s(
    shared: *mut SharedObject,
    bytes: u64,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        handles::get(shared)?.0.set_background_bytes_per_s(Some(bytes).filter(|&bytes| bytes > 0));
        Ok(true)
    })
}

/// How many stores share it now; 0 where it fails, too.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_shared_stores(shared: *mut SharedObject, errptr: ErrPtr<'_>) -> usize {
    guard(errptr, 0, || Ok(handles::get(shared)?.0.stores()))
}

/// Bytes of the budget; 0 where it fails.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_shared_memory_bytes(shared: *mut SharedObject, errptr: ErrPtr<'_>) -> usize {
    guard(errptr, 0, || Ok(handles::get(shared)?.0.memory_bytes()))
}

/// Bytes that memtables and the cache of all stores hold now; 0 where it fails, too.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_shared_used_bytes(shared: *mut SharedObject, errptr: ErrPtr<'_>) -> u64 {
    guard(errptr, 0, || Ok(handles::get(shared)?.0.used_bytes()))
}
