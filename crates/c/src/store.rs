//! Stores: opening, closing, and calls about a whole store.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;

use folddb::{Error, Options, Result, Store};

use crate::errors::guard;
use crate::handles::{self, Object};
use crate::memory::{ErrPtr, Text, copy_out_texts};
use crate::options::{OptionsObject, settings};

/// An open store: a directory of tables. Any number of threads use it at once.
pub struct StoreObject(pub(crate) Store);

impl Object for StoreObject {
    const NAME: &'static str = "folddb_store";
}

fn open(
    path: Text,
    options: *mut OptionsObject,
    errptr: ErrPtr<'_>,
    open: impl FnOnce(&Path, Options) -> Result<Store>,
) -> *mut StoreObject {
    guard(errptr, null_mut(), || {
        let path = path.get("the path")?;
        handles::give(StoreObject(open(Path::new(path), settings(options)?)?))
    })
}

/// Opens a store that exists, to read it and to write to it. `options` may be NULL for the
/// defaults. NULL where it fails. Close it with folddb_close.
///
/// Errors: StoreNotFound, Locked, NewerFormat, Permission; ReadOnly where it is frozen; Corruption.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_open(
    path: Text,
    options: *mut OptionsObject,
    errptr: ErrPtr<'_>,
) -> *mut StoreObject {
    open(path, options, errptr, |path, options| Store::open(path, options))
}

/// Creates a store in a directory that does not exist yet, or is empty, and opens it. Otherwise as
/// folddb_open.
///
/// Errors: AlreadyExists; any failure of the operating system.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_create(
    path: Text,
    options: *mut OptionsObject,
    errptr: ErrPtr<'_>,
) -> *mut StoreObject {
    open(path, options, errptr, |path, options| Store::create(path, options))
}

/// Opens the store in a directory, and creates it where the directory does not exist or is empty.
/// Otherwise as folddb_open.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_open_or_create(
    path: Text,
    options: *mut OptionsObject,
    errptr: ErrPtr<'_>,
) -> *mut StoreObject {
    open(path, options, errptr, |path, options| Store::open_or_create(path, options))
}

/// Opens a store to read it while no process writes: nothing on disk changes. Otherwise as
/// folddb_open. This is how a frozen store is opened.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_open_read_only(
    path: Text,
    options: *mut OptionsObject,
    errptr: ErrPtr<'_>,
) -> *mut StoreObject {
    open(path, options, errptr, |path, options| Store::open_read_only(path, options))
}

/// Opens a store to read it while another process may write to it: it shows what was there when it
/// was opened, and does not change; folddb_refresh opens it again. Otherwise as folddb_open.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_open_secondary(
    path: Text,
    options: *mut OptionsObject,
    errptr: ErrPtr<'_>,
) -> *mut StoreObject {
    open(path, options, errptr, |path, options| Store::open_secondary(path, options))
}

/// Opens a secondary again, as its store is now: another handle, which is closed separately. NULL
/// where it fails.
///
/// Errors: InvalidInput where the store was not opened by folddb_open_secondary; as folddb_open.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_refresh(store: *mut StoreObject, errptr: ErrPtr<'_>) -> *mut StoreObject {
    guard(errptr, null_mut(), || handles::give(StoreObject(handles::get(store)?.0.refresh()?)))
}

/// Flushes and closes a store, and ends the handle, also where it returns false for an error. NULL
/// is an error.
///
/// Handles of its tables, snapshots, iterators and the rest may outlive it: calls with them give
/// Closed, and they are destroyed as always. Calls under way in other threads end first, or with
/// that error. It must not be called by a function that listens to events of the store.
///
/// Errors: as folddb_flush; what was committed is in the store all the same.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_close(store: *mut StoreObject, errptr: ErrPtr<'_>) -> bool {
    guard(errptr, false, || {
        let store = match Arc::try_unwrap(handles::take(store)?) {
            Ok(only) => only.0,
            Err(shared) => shared.0.clone(), // another thread uses it at the moment
        };
        store.close().map(|()| true)
    })
}

/// The names of the tables, in order. `count` is set to how many there are; it may be NULL, and
/// NULL follows the last name. One folddb_free of the list frees all of it. NULL where it fails.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_tables(
    store: *mut StoreObject,
    count: Option<&mut MaybeUninit<usize>>,
    errptr: ErrPtr<'_>,
) -> *mut *mut c_char {
    guard(errptr, null_mut(), || copy_out_texts(&handles::get(store)?.0.tables(), count))
}

/// Removes a table and everything in it. Handles of it give Closed from now on; readers that are
/// under way end first. Returns whether it did.
///
/// Errors: TableNotFound; ReadOnly; a failed write.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_drop_table(store: *mut StoreObject, name: Text, errptr: ErrPtr<'_>) -> bool {
    guard(errptr, false, || {
        let store = handles::get(store)?;
        store.0.drop_table(name.get("the name")?).map(|()| true)
    })
}

/// The seq of the last record that was committed; 0 where there is none, and where it fails.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_last_seq(store: *mut StoreObject, errptr: ErrPtr<'_>) -> u64 {
    guard(errptr, 0, || Ok(handles::get(store)?.0.last_seq().into()))
}

/// Makes all that was committed so far survive a power cut. Returns whether it did.
///
/// Errors: NotDurable, Poisoned, Closed.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_sync(store: *mut StoreObject, errptr: ErrPtr<'_>) -> bool {
    guard(errptr, false, || handles::get(store)?.0.sync().map(|()| true))
}

/// Writes all memtables out as runs. Returns whether it did. A store does this on its own, too.
///
/// Errors: NoSpace, Poisoned, Closed; ReadOnly where the store was opened for reading; a failed
/// write.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_flush(store: *mut StoreObject, errptr: ErrPtr<'_>) -> bool {
    guard(errptr, false, || handles::get(store)?.0.flush().map(|()| true))
}

/// Waits until no background work is due. Returns whether it reached that point.
///
/// Errors: as folddb_flush.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_settle(store: *mut StoreObject, errptr: ErrPtr<'_>) -> bool {
    guard(errptr, false, || handles::get(store)?.0.settle().map(|()| true))
}

/// Freezes a store that no process has open: it can be opened only for reading, until it is thawed.
/// Returns whether it did. `options` may be NULL.
///
/// Errors: as folddb_open.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_freeze(path: Text, options: *mut OptionsObject, errptr: ErrPtr<'_>) -> bool {
    guard(errptr, false, || Store::freeze(path.get("the path")?, settings(options)?).map(|()| true))
}

/// Lets a frozen store be written to again. Returns whether it does. `options` may be NULL.
///
/// Errors: as folddb_open.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_thaw(path: Text, options: *mut OptionsObject, errptr: ErrPtr<'_>) -> bool {
    guard(errptr, false, || Store::thaw(path.get("the path")?, settings(options)?).map(|()| true))
}

/// Whether a store is frozen. False where it fails, too.
///
/// Errors: StoreNotFound where nothing is at `path`.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_is_frozen(path: Text, options: *mut OptionsObject, errptr: ErrPtr<'_>) -> bool {
    guard(errptr, false, || {
        let path = path.get("the path")?;
        let options = settings(options)?;
        if !Path::new(path).is_dir() {
            return Err(Error::new(folddb::ErrorKind::StoreNotFound, format!("there is no store at {path}")));
        }
        Ok(Store::is_frozen(path, &options))
    })
}
