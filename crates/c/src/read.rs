//! Reads of keys: the value of one, those of several, and what is known without reading them.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use folddb::time::unix_ms;
use folddb::{Head, Result};

use crate::errors::guard;
use crate::handles;
use crate::memory::{Buffer, Bytes, ErrPtr, Keys, Lens, Values, copy_out_with_len, fill, put};
use crate::table::{Place, TableObject};

/// Gives the value of a key to `take`.
#[inline]
fn get<R>(table: &TableObject, key: &[u8], take: impl FnOnce(Option<&[u8]>) -> Result<R>) -> Result<R> {
    match table.at()? {
        None => table.table.get_with(key, take)?,
        Some(table) => table.get_with(key, take)?,
    }
}

/// The value of a key, for folddb_free, and its length. NULL where the key is absent, and where it
/// fails. A NUL follows the value, and does not count.
///
/// Errors: FoldFailed where the fold of the table fails on this key; Corruption, SnapshotTooOld,
/// Closed; a failed read.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_get(
    table: *mut TableObject,
    key: Bytes,
    key_len: usize,
    value_len: Option<&mut MaybeUninit<usize>>,
    errptr: ErrPtr<'_>,
) -> *mut c_char {
    guard(errptr, null_mut(), || {
        let table = handles::get(table)?;
        let key = key.get(key_len, "the key")?;
        get(&table, key, |value| value.map_or(Ok(null_mut()), |value| copy_out_with_len(value, value_len)))
    })
}

/// The value of a key, which is deleted in the same moment: as folddb_get, and of several threads
/// that take one value, one gets it. An absent key is only read. A value that could not be handed
/// over is deleted, too.
///
/// Errors: as folddb_get and folddb_delete; Conflict if others wrote to the key during each of a
/// thousand tries; ReadOnly in a snapshot.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_take(
    table: *mut TableObject,
    key: Bytes,
    key_len: usize,
    value_len: Option<&mut MaybeUninit<usize>>,
    errptr: ErrPtr<'_>,
) -> *mut c_char {
    guard(errptr, null_mut(), || {
        let table = handles::get(table)?;
        let key = key.get(key_len, "the key")?;
        let value = match &table.place {
            Place::Now => table.table.take(key)?,
            Place::Snapshot(_) => return Err(table.read_only()),
            Place::Transaction(transaction) => {
                transaction.with(|transaction| transaction.take(&table.table, key))?
            }
        };
        value.map_or(Ok(null_mut()), |value| copy_out_with_len(&value, value_len))
    })
}

/// Copies the value of a key into `buffer`, as much as it has room for, and sets `value_len` to the
/// length of the value. Returns whether the key is there; false where it fails, too. Otherwise as
/// folddb_get.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_get_into(
    table: *mut TableObject,
    key: Bytes,
    key_len: usize,
    buffer: Buffer,
    buffer_len: usize,
    value_len: Option<&mut MaybeUninit<usize>>,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let table = handles::get(table)?;
        let key = key.get(key_len, "the key")?;
        get(&table, key, |value| {
            let Some(value) = value else { return Ok(false) };
            buffer.fill(buffer_len, value)?;
            put(value_len, value.len());
            Ok(true)
        })
    })
}

/// The values of `count` keys as of one moment, in the order of the keys. `values` has room for
/// `count`: each is set to the data of a value, for folddb_free, and its length, or to NULL where
/// its key is absent. Returns whether it did; where it fails all are NULL.
///
/// Errors: as folddb_get.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_get_many(
    table: *mut TableObject,
    count: usize,
    keys: Keys,
    key_lens: Lens,
    values: Values,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let values = values.get(count)?; // all absent, until there is something to say
        let keys = keys.get(key_lens, count)?;
        let table = handles::get(table)?;
        let found = match table.at()? {
            None => table.table.get_many(keys),
            Some(table) => table.get_many(keys),
        };
        fill(values, &found?).map(|()| true)
    })
}

/// Whether a key is there. False where it fails, too. No separated value is read.
///
/// Errors: as folddb_get.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_contains(
    table: *mut TableObject,
    key: Bytes,
    key_len: usize,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let table = handles::get(table)?;
        let key = key.get(key_len, "the key")?;
        match table.at()? {
            None => table.table.contains(key),
            Some(table) => table.contains(key),
        }
    })
}

/// What is known of a value without reading it. What is not known is 0.
#[repr(C)]
pub struct ValueHead {
    /// Bytes of the value.
    pub size_bytes: u64,
    /// Hash of the value, seeded with its key.
    pub hash: u32,
    /// In how many pieces it is stored: 1, but for values that were streamed or joined.
    pub pieces: u32,
    /// Whether the value, or some of it, is separated from its key.
    pub is_separated: bool,
    /// Whether its version is known, as it is of a separated value.
    pub has_version: bool,
    /// Distinguishes the value from any other that its key has ever had in this store.
    pub version: u64,
    /// When it was written, in milliseconds since 1970.
    pub written_ms: u64,
    /// When it expires, in milliseconds since 1970; 0 where it lasts forever.
    pub deadline_ms: u64,
}

impl ValueHead {
    fn of(head: &Head) -> ValueHead {
        ValueHead {
            size_bytes: head.size_bytes,
            hash: head.hash,
            pieces: head.pieces,
            is_separated: head.is_separated,
            has_version: head.version.is_some(),
            version: head.version.unwrap_or(0),
            written_ms: head.written.map_or(0, unix_ms),
            deadline_ms: head.deadline.map_or(0, unix_ms),
        }
    }
}

/// What is known of the value of a key without reading it: `head`, and as the result, for
/// folddb_free, what the rules of the table take out of the value (`head=...`), with its length;
/// empty where they take nothing. NULL where the key is absent, and where it fails.
///
/// Errors: as folddb_get.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_head(
    table: *mut TableObject,
    key: Bytes,
    key_len: usize,
    head: Option<&mut MaybeUninit<ValueHead>>,
    taken_len: Option<&mut MaybeUninit<usize>>,
    errptr: ErrPtr<'_>,
) -> *mut c_char {
    guard(errptr, null_mut(), || {
        let table = handles::get(table)?;
        let key = key.get(key_len, "the key")?;
        let found = match table.at()? {
            None => table.table.head(key)?,
            Some(table) => table.head(key)?,
        };
        let Some(found) = found else { return Ok(null_mut()) };
        let taken = copy_out_with_len(&found.bytes, taken_len)?;
        put(head, ValueHead::of(&found));
        Ok(taken)
    })
}
