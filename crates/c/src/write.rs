//! Writes to one key, and to a range of keys.

use folddb::{Result, WriteOp};

use crate::errors::guard;
use crate::handles;
use crate::memory::{Bytes, ErrPtr};
use crate::table::{Place, TableObject};

#[inline]
fn write(
    table: *mut TableObject,
    op: WriteOp,
    key: (Bytes, usize),
    value: Option<(Bytes, usize)>,
) -> Result<bool> {
    let table = handles::get(table)?;
    let key = key.0.get(key.1, "the key")?;
    let value = value.map_or(Ok(&[][..]), |(value, len)| value.get(len, "the value"))?;
    match &table.place {
        Place::Now => table.table.write(op, key, value).map(|_| true),
        Place::Snapshot(_) => Err(table.read_only()),
        Place::Transaction(transaction) => transaction.with(|transaction| {
            transaction.write(&table.table, op, key, value);
            Ok(true)
        }),
    }
}

/// Makes the value of a key this one. Returns whether it did. Key and value are copied.
///
/// Errors: InvalidInput for a key or a value that the rules of the table do not accept, or that is
/// too long; ReadOnly, NoSpace, NotDurable, Poisoned, Closed. In a transaction, the commit reports
/// a wrong key or value.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_put(
    table: *mut TableObject,
    key: Bytes,
    key_len: usize,
    value: Bytes,
    value_len: usize,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || write(table, WriteOp::Put, (key, key_len), Some((value, value_len))))
}

/// Gives a key this value if it is absent: the first wins. Otherwise as folddb_put.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_put_if_absent(
    table: *mut TableObject,
    key: Bytes,
    key_len: usize,
    value: Bytes,
    value_len: usize,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || write(table, WriteOp::PutIfAbsent, (key, key_len), Some((value, value_len))))
}

/// Folds this operand onto the value of a key. It reads nothing. Otherwise as folddb_put.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_fold(
    table: *mut TableObject,
    key: Bytes,
    key_len: usize,
    operand: Bytes,
    operand_len: usize,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || write(table, WriteOp::Fold, (key, key_len), Some((operand, operand_len))))
}

/// Makes a key absent. Otherwise as folddb_put.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_delete(
    table: *mut TableObject,
    key: Bytes,
    key_len: usize,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || write(table, WriteOp::Delete, (key, key_len), None))
}

/// Makes all keys from `from` on and below `to`, in the order of the table, absent. Otherwise as
/// folddb_put.
///
/// Errors: InvalidInput also for a hashed table, and for bounds in the wrong order.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_delete_range(
    table: *mut TableObject,
    from: Bytes,
    from_len: usize,
    to: Bytes,
    to_len: usize,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let table = handles::get(table)?;
        let (from, to) = (from.get(from_len, "the first key")?, to.get(to_len, "the end")?);
        match &table.place {
            Place::Now => table.table.delete_range(from, to).map(|_| true),
            Place::Snapshot(_) => Err(table.read_only()),
            Place::Transaction(transaction) => transaction.with(|transaction| {
                transaction.delete_range(&table.table, from, to);
                Ok(true)
            }),
        }
    })
}

/// Makes all keys whose bytes begin with `prefix` absent. Otherwise as folddb_put.
///
/// Errors: InvalidInput also for a hashed table, and for one with an order of its own, in which
/// such keys are not next to each other.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_delete_prefix(
    table: *mut TableObject,
    prefix: Bytes,
    prefix_len: usize,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let table = handles::get(table)?;
        let prefix = prefix.get(prefix_len, "the prefix")?;
        match &table.place {
            Place::Now => table.table.delete_prefix(prefix).map(|_| true),
            Place::Snapshot(_) => Err(table.read_only()),
            Place::Transaction(transaction) => transaction.with(|transaction| {
                transaction.delete_prefix(&table.table, prefix);
                Ok(true)
            }),
        }
    })
}
