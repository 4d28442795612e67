//! Reads of keys: as the table is now, or as a snapshot sees it.

use jni::EnvUnowned;
use jni::objects::{JByteArray, JClass, JObjectArray};

use crate::errors::{guard, invalid};
use crate::handles;
use crate::memory::{array, whole, with_part};
use crate::store::SnapshotObject;
use crate::table::TableObject;

/// The value of a key; null where it is absent.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_get<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    table: i64,
    snapshot: i64,
    key: JByteArray<'local>,
    offset: i32,
    length: i32,
) -> JByteArray<'local> {
    guard(env, |env| {
        let table = handles::get::<TableObject>(table)?;
        let snapshot = handles::get_optional::<SnapshotObject>(snapshot)?;
        with_part(env, &key, offset, length, |env, key| {
            let copy = |value: Option<&[u8]>| value.map(|value| array(env, value)).transpose();
            let found = match snapshot {
                None => table.0.get_with(key, copy)?,
                Some(at) => at.0.table(&table.0).get_with(key, copy)?,
            };
            Ok(found?.unwrap_or_default())
        })
    })
}

/// The value of a key, which is deleted in the same moment; null where it is absent.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_take<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    table: i64,
    key: JByteArray<'local>,
) -> JByteArray<'local> {
    guard(env, |env| {
        let key = whole(env, &key, "the key")?;
        let taken = handles::get::<TableObject>(table)?.0.take(&key)?;
        Ok(taken.map(|value| array(env, &value)).transpose()?.unwrap_or_default())
    })
}

/// The values of many keys, each null where its key is absent.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_getMany<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    table: i64,
    snapshot: i64,
    keys: JObjectArray<'local, JByteArray<'local>>,
) -> JObjectArray<'local, JByteArray<'local>> {
    guard(env, |env| {
        if keys.is_null() {
            return Err(invalid("the keys are null"));
        }
        let table = handles::get::<TableObject>(table)?;
        let snapshot = handles::get_optional::<SnapshotObject>(snapshot)?;
        let mut wanted = Vec::new();
        for index in 0..keys.len(env)? {
            let key = keys.get_element(env, index)?;
            wanted.push(whole(env, &key, "a key")?);
            env.delete_local_ref(key);
        }
        let wanted = wanted.iter();
        let values = match snapshot {
            None => table.0.get_many(wanted)?,
            Some(at) => at.0.table(&table.0).get_many(wanted)?,
        };
        let found = JObjectArray::<JByteArray<'_>>::new(env, values.len(), JByteArray::null())?;
        for (index, value) in values.iter().enumerate() {
            if let Some(value) = value {
                let value = array(env, value)?;
                found.set_element(env, index, &value)?;
                env.delete_local_ref(value);
            }
        }
        Ok(found)
    })
}
