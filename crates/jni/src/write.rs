//! Writes: of one key, of a range, and many in one crossing.
//!
//! A batch is a buffer of ops, one after the other, numbers little-endian:
//!
//! ```text
//!   [op : 4][table : 4][key length : 4][value length : 4][key][value]
//!   op      0 put, 1 put if absent, 2 fold, 3 delete, 4 delete range: from key up to value
//!   table   its place in the list of tables that comes beside
//! ```

use std::sync::Arc;

use folddb::{Batch, Error, Result, WriteOp};
use jni::EnvUnowned;
use jni::objects::{JByteArray, JByteBuffer, JClass, JLongArray, JString};

use crate::errors::guard;
use crate::handles;
use crate::memory::{direct, first, whole, with_part};
use crate::options::durability;
use crate::store::StoreObject;
use crate::table::TableObject;
use crate::text::text;

/// The number of a range delete in a batch.
const DELETE_RANGE: u32 = 4;

fn op(number: u32) -> Result<WriteOp> {
    match number {
        0 => Ok(WriteOp::Put),
        1 => Ok(WriteOp::PutIfAbsent),
        2 => Ok(WriteOp::Fold),
        3 => Ok(WriteOp::Delete),
        _ => Err(Error::invalid(format!("{number} is not an op"))),
    }
}

/// Writes to one key.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_write<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    table: i64,
    number: i32,
    key: JByteArray<'local>,
    key_offset: i32,
    key_length: i32,
    value: JByteArray<'local>,
    value_offset: i32,
    value_length: i32,
) {
    guard(env, |env| {
        let table = handles::get::<TableObject>(table)?;
        let op = op(number as u32)?;
        with_part(env, &key, key_offset, key_length, |env, key| {
            with_part(env, &value, value_offset, value_length, |_, value| {
                table.0.write(op, key, value)?;
                Ok(())
            })
        })
    });
}

/// Deletes a range of keys.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_deleteRange<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    table: i64,
    from: JByteArray<'local>,
    to: JByteArray<'local>,
) {
    guard(env, |env| {
        let (from, to) = (whole(env, &from, "the first key")?, whole(env, &to, "the end")?);
        handles::get::<TableObject>(table)?.0.delete_range(&from, &to)?;
        Ok(())
    });
}

/// Deletes all keys that begin with these bytes.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_deletePrefix<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    table: i64,
    prefix: JByteArray<'local>,
) {
    guard(env, |env| {
        let prefix = whole(env, &prefix, "the prefix")?;
        handles::get::<TableObject>(table)?.0.delete_prefix(&prefix)?;
        Ok(())
    });
}

/// Takes bytes off the front.
fn take<'a>(ops: &mut &'a [u8], len: u32) -> Result<&'a [u8]> {
    let split = usize::try_from(len).ok().and_then(|len| ops.split_at_checked(len));
    let (taken, rest) = split.ok_or_else(|| Error::invalid("a batch ends in the middle of an op"))?;
    *ops = rest;
    Ok(taken)
}

fn take_number(ops: &mut &[u8]) -> Result<u32> {
    let bytes = take(ops, 4)?;
    Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

fn gather(batch: &mut Batch, tables: &[Arc<TableObject>], ops: &mut &[u8]) -> Result<()> {
    let (number, table) = (take_number(ops)?, take_number(ops)?);
    let (key_len, value_len) = (take_number(ops)?, take_number(ops)?);
    let (key, value) = (take(ops, key_len)?, take(ops, value_len)?);
    let table = usize::try_from(table).ok().and_then(|table| tables.get(table));
    let table = &table.ok_or_else(|| Error::invalid("an op names a table that is not in the list"))?.0;
    if number == DELETE_RANGE {
        batch.delete_range(table, key, value);
    } else {
        batch.write(table, op(number)?, key, value);
    }
    Ok(())
}

/// Commits a batch.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_commit<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    store: i64,
    tables: JLongArray<'local>,
    mut ops: JByteBuffer<'local>,
    length: i32,
    acknowledged: JString<'local>,
) {
    guard(env, |env| {
        let durability = durability(&text(env, &acknowledged, "the durability")?)?;
        let mut numbers = vec![0i64; tables.len(env)?];
        tables.get_region(env, 0, &mut numbers)?;
        let tables = numbers.into_iter().map(handles::get::<TableObject>);
        let tables = tables.collect::<Result<Vec<_>>>()?;
        let mut ops = first(direct(env, &mut ops)?, length)?;
        let mut batch = handles::get::<StoreObject>(store)?.0.batch();
        while !ops.is_empty() {
            gather(&mut batch, &tables, &mut ops)?;
        }
        batch.commit(durability)?;
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::{op, take_number};

    #[test]
    fn no_bytes_panic() {
        let bytes: Vec<u8> = (0..40).collect();
        for len in 0..bytes.len() {
            let mut left = &bytes[..len];
            while take_number(&mut left).is_ok() {}
            assert!(left.len() < 4);
        }
        assert!(op(4).is_err() && op(u32::MAX).is_err());
    }
}
