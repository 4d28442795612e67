//! Stores: opening, closing, and calls about a whole store. Snapshots.

use std::path::Path;

use folddb::{Error, Result, Snapshot, Store};
use jni::EnvUnowned;
use jni::objects::{JClass, JObjectArray, JString};

use crate::errors::guard;
use crate::handles::{self, Object};
use crate::options::options;
use crate::text::{array, text};

/// An open store.
pub(crate) struct StoreObject(pub(crate) Store);

impl Object for StoreObject {
    const NAME: &'static str = "store";
}

/// The whole store as it was at one moment.
pub(crate) struct SnapshotObject(pub(crate) Snapshot);

impl Object for SnapshotObject {
    const NAME: &'static str = "snapshot";
}

fn opened(path: &Path, mode: i32, options: folddb::Options) -> Result<Store> {
    match mode {
        0 => Store::open(path, options),
        1 => Store::create(path, options),
        2 => Store::open_or_create(path, options),
        3 => Store::open_read_only(path, options),
        4 => Store::open_secondary(path, options),
        _ => Err(Error::invalid(format!("{mode} is not a way to open a store"))),
    }
}

/// Opens a store.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_open<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    path: JString<'local>,
    mode: i32,
    settings: JObjectArray<'local, JString<'local>>,
    shared: i64,
) -> i64 {
    guard(env, |env| {
        let path = text(env, &path, "the path")?;
        let options = options(env, &settings, shared)?;
        Ok(handles::give(StoreObject(opened(Path::new(&path), mode, options)?))?)
    })
}

/// Flushes and closes a store, and ends the handle in either case.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_close<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    store: i64,
) {
    guard(env, |_| {
        let object = handles::get::<StoreObject>(store)?;
        handles::end(store);
        Ok(object.0.clone().close()?)
    });
}

/// Closes a store without writing its memtables, and ends the handle in either case.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_closeWithoutFlush<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    store: i64,
) {
    guard(env, |_| {
        let object = handles::get::<StoreObject>(store)?;
        handles::end(store);
        Ok(object.0.clone().close_without_flush()?)
    });
}

/// Ends a handle of any kind; one that is over is ignored.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_release<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: i64,
) {
    guard(env, |_| {
        drop(handles::end(handle));
        Ok(())
    });
}

/// The names of the tables.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_tables<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    store: i64,
) -> JObjectArray<'local, JString<'local>> {
    guard(env, |env| array(env, &handles::get::<StoreObject>(store)?.0.tables()))
}

/// Removes a table.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_dropTable<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    store: i64,
    name: JString<'local>,
) {
    guard(env, |env| {
        let name = text(env, &name, "the name")?;
        Ok(handles::get::<StoreObject>(store)?.0.drop_table(&name)?)
    });
}

/// The seq of the last record.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_lastSeq<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    store: i64,
) -> i64 {
    guard(env, |_| Ok(u64::from(handles::get::<StoreObject>(store)?.0.last_seq()) as i64))
}

/// Makes what was committed survive a power cut.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_sync<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    store: i64,
) {
    guard(env, |_| Ok(handles::get::<StoreObject>(store)?.0.sync()?));
}

/// Writes all memtables out.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_flush<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    store: i64,
) {
    guard(env, |_| Ok(handles::get::<StoreObject>(store)?.0.flush()?));
}

/// The figures of a store, as lines `name=value`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_stats<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    store: i64,
) -> JObjectArray<'local, JString<'local>> {
    guard(env, |env| {
        let stats = handles::get::<StoreObject>(store)?.0.stats();
        let metrics = stats.metrics().into_iter();
        let lines: Vec<String> = metrics
            .map(|metric| format!("{}.{}={}", metric.group, metric.name, metric.value))
            .chain([format!("last_seq={}", u64::from(stats.last_seq))])
            .collect();
        array(env, &lines)
    })
}

/// What is wrong with a store that is open, and what to do.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_doctor<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    store: i64,
) -> JObjectArray<'local, JString<'local>> {
    guard(env, |env| {
        let advice = handles::get::<StoreObject>(store)?.0.doctor()?;
        array(env, &advice.iter().map(ToString::to_string).collect::<Vec<_>>())
    })
}

/// Takes a snapshot.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_snapshot<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    store: i64,
) -> i64 {
    guard(env, |_| {
        let snapshot = handles::get::<StoreObject>(store)?.0.snapshot();
        Ok(handles::give(SnapshotObject(snapshot))?)
    })
}
