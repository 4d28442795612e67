//! Batches: ops on any tables of a store, committed together.

use std::ffi::c_int;
use std::ptr::null_mut;

use folddb::{Batch, Result, WriteOp};

use crate::durability::durability;
use crate::errors::{guard, guard_silently};
use crate::exclusive::Exclusive;
use crate::handles::{self, Object};
use crate::memory::{Bytes, ErrPtr};
use crate::store::StoreObject;
use crate::table::TableObject;

/// Ops on any tables of a store, which are committed together. One thread uses it at a time.
pub struct BatchObject(Exclusive<Batch>);

impl Object for BatchObject {
    const NAME: &'static str = "folddb_batch";
}

/// An empty batch. NULL where it fails. Destroy it with folddb_batch_destroy.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_batch_create(store: *mut StoreObject, errptr: ErrPtr<'_>) -> *mut BatchObject {
    guard(errptr, null_mut(), || handles::give(BatchObject(Exclusive::new(handles::get(store)?.0.batch()))))
}

/// Destroys the handle. NULL is ignored. What was not committed is forgotten.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_batch_destroy(batch: *mut BatchObject) {
    guard_silently(|| handles::take(batch).map(drop));
}

fn gather(
    batch: *mut BatchObject,
    table: *mut TableObject,
    gather: impl FnOnce(&mut Batch, &TableObject) -> Result<()>,
) -> Result<bool> {
    let (batch, table) = (handles::get(batch)?, handles::get(table)?);
    table.itself()?;
    gather(&mut *batch.0.lock::<BatchObject>()?, &table).map(|()| true)
}

fn gather_op(
    batch: *mut BatchObject,
    table: *mut TableObject,
    op: WriteOp,
    key: (Bytes, usize),
    value: (Bytes, usize),
) -> Result<bool> {
    gather(batch, table, |batch, table| {
        let (key, value) = (key.0.get(key.1, "the key")?, value.0.get(value.1, "the value")?);
        batch.write(&table.table, op, key, value);
        Ok(())
    })
}

/// Makes the value of a key this one, with the batch. Returns whether it was added. Key and value
/// are copied.
///
/// Errors: InvalidInput where a handle is wrong. The commit reports a wrong key or value, and a
/// table of another store, and writes nothing then.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_batch_put(
    batch: *mut BatchObject,
    table: *mut TableObject,
    key: Bytes,
    key_len: usize,
    value: Bytes,
    value_len: usize,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || gather_op(batch, table, WriteOp::Put, (key, key_len), (value, value_len)))
}

/// Gives a key this value if it is absent, with the batch. Otherwise as folddb_batch_put.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_batch_put_if_absent(
    batch: *mut BatchObject,
    table: *mut TableObject,
    key: Bytes,
    key_len: usize,
    value: Bytes,
    value_len: usize,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || gather_op(batch, table, WriteOp::PutIfAbsent, (key, key_len), (value, value_len)))
}

/// Folds this operand onto the value of a key, with the batch. Otherwise as folddb_batch_put.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_batch_fold(
    batch: *mut BatchObject,
    table: *mut TableObject,
    key: Bytes,
    key_len: usize,
    operand: Bytes,
    operand_len: usize,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || gather_op(batch, table, WriteOp::Fold, (key, key_len), (operand, operand_len)))
}

/// Makes a key absent, with the batch. Otherwise as folddb_batch_put.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_batch_delete(
    batch: *mut BatchObject,
    table: *mut TableObject,
    key: Bytes,
    key_len: usize,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        gather(batch, table, |batch, table| {
            batch.write(&table.table, WriteOp::Delete, key.get(key_len, "the key")?, &[]);
            Ok(())
        })
    })
}

/// Makes all keys from `from` on and below `to` absent, with the batch. Otherwise as
/// folddb_batch_put.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_batch_delete_range(
    batch: *mut BatchObject,
    table: *mut TableObject,
    from: Bytes,
    from_len: usize,
    to: Bytes,
    to_len: usize,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        gather(batch, table, |batch, table| {
            let (from, to) = (from.get(from_len, "the first key")?, to.get(to_len, "the end")?);
            batch.delete_range(&table.table, from, to);
            Ok(())
        })
    })
}

/// Makes all keys whose bytes begin with `prefix` absent, with the batch. Otherwise as
/// folddb_batch_put.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_batch_delete_prefix(
    batch: *mut BatchObject,
    table: *mut TableObject,
    prefix: Bytes,
    prefix_len: usize,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        gather(batch, table, |batch, table| {
            batch.delete_prefix(&table.table, prefix.get(prefix_len, "the prefix")?);
            Ok(())
        })
    })
}

/// How many ops it has; 0 where it fails, too.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_batch_len(batch: *mut BatchObject, errptr: ErrPtr<'_>) -> usize {
    guard(errptr, 0, || Ok(handles::get(batch)?.0.lock::<BatchObject>()?.len()))
}

/// Commits all ops together, as durably as `durability` says, one of folddb_durability. Returns
/// whether it did. The batch is empty afterwards, in either case, and may be used again.
///
/// Errors: InvalidInput where an op was wrong: nothing is written; ReadOnly, NoSpace, NotDurable,
/// Poisoned, Closed.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_batch_commit(
    batch: *mut BatchObject,
    durability: c_int,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let batch = handles::get(batch)?;
        let durability = self::durability(durability)?;
        let committed = batch.0.lock::<BatchObject>()?.commit(durability);
        committed.map(|_| true)
    })
}
