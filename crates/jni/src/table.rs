//! Tables: opening, rules, figures, compaction.

use folddb::table_rules::TableRules;
use folddb::{BytesTable, Result, Store};
use jni::EnvUnowned;
use jni::objects::{JClass, JObjectArray, JString};

use crate::errors::guard;
use crate::handles::{self, Object};
use crate::store::StoreObject;
use crate::text::{array, text, text_optional};

/// A table of a store, as it is now.
pub(crate) struct TableObject(pub(crate) BytesTable);

impl Object for TableObject {
    const NAME: &'static str = "table";
}

fn create(store: &Store, name: &str, rules: &str) -> Result<BytesTable> {
    store.create_bytes_table(name, rules.parse::<TableRules>()?)
}

fn open_or_create(store: &Store, name: &str, rules: &str) -> Result<BytesTable> {
    store.open_or_create_bytes_table(name, rules.parse::<TableRules>()?)
}

/// Opens or creates a table.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_table<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    store: i64,
    name: JString<'local>,
    rules: JString<'local>,
    mode: i32,
) -> i64 {
    guard(env, |env| {
        let name = text(env, &name, "the name")?;
        let rules = text_optional(env, &rules)?.unwrap_or_default();
        let store = &handles::get::<StoreObject>(store)?.0;
        let table = match mode {
            0 => store.bytes_table(&name),
            1 => create(store, &name, &rules),
            _ => open_or_create(store, &name, &rules),
        };
        Ok(handles::give(TableObject(table?))?)
    })
}

/// The rules of a table, as text.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_rules<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    table: i64,
) -> JString<'local> {
    guard(env, |env| {
        let rules = handles::get::<TableObject>(table)?.0.rules().as_table_rules().to_string();
        Ok(env.new_string(rules)?)
    })
}

/// Merges all runs of a table into one.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_compact<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    table: i64,
) {
    guard(env, |_| Ok(handles::get::<TableObject>(table)?.0.compact()?));
}

/// The figures of a table, as lines `name=value`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_tableStats<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    table: i64,
) -> JObjectArray<'local, JString<'local>> {
    guard(env, |env| {
        let stats = handles::get::<TableObject>(table)?.0.stats()?;
        let lines = [
            format!("records={}", stats.records),
            format!("keys_estimate={}", stats.keys_estimate),
            format!("disk_bytes={}", stats.disk_bytes),
            format!("memtable_bytes={}", stats.memtable_bytes),
            format!("runs={}", stats.runs.len()),
            format!("range_deletes={}", stats.range_deletes),
        ];
        array(env, &lines)
    })
}
