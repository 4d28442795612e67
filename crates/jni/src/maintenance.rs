//! What a person does for a store: backups, and checks.

use folddb::Store;
use folddb::maintenance::{BackupFile, BackupOptions, RestoreOptions, VerifyOptions};
use jni::EnvUnowned;
use jni::objects::{JClass, JObjectArray, JString};

use crate::errors::guard;
use crate::handles;
use crate::options::options;
use crate::store::StoreObject;
use crate::text::{array, text};

/// Adds a backup to a folder for backups. Gives its own folder.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_backup<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    store: i64,
    to: JString<'local>,
) -> JString<'local> {
    guard(env, |env| {
        let to = text(env, &to, "the place")?;
        let made = handles::get::<StoreObject>(store)?.0.backup(to, &BackupOptions::default())?;
        Ok(env.new_string(made.path.to_string_lossy())?)
    })
}

/// The files of a backup: role, whether it is immutable, length, hash and name of each, with spaces
/// between them.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_backupFiles<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    backup: JString<'local>,
) -> JObjectArray<'local, JString<'local>> {
    guard(env, |env| {
        let backup = text(env, &backup, "the backup")?;
        let files = Store::backup_files(backup, &folddb::Options::default())?;
        let line = |file: &BackupFile| {
            let BackupFile { role, bytes, hash, name, .. } = file;
            format!("{role:?} {} {bytes} {hash:016x} {name}", role.is_immutable())
        };
        array(env, &files.iter().map(line).collect::<Vec<_>>())
    })
}

/// Creates a store from the newest backup.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_restore<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    from: JString<'local>,
    to: JString<'local>,
    settings: JObjectArray<'local, JString<'local>>,
) {
    guard(env, |env| {
        let (from, to) = (text(env, &from, "the place")?, text(env, &to, "the path")?);
        let options = options(env, &settings, 0)?;
        Store::restore(from, to, &RestoreOptions::default(), &options)?;
        Ok(())
    });
}

/// Checks a store that no process writes to. Gives what is wrong.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_verify<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    path: JString<'local>,
    deep: bool,
    settings: JObjectArray<'local, JString<'local>>,
) -> JObjectArray<'local, JString<'local>> {
    guard(env, |env| {
        let path = text(env, &path, "the path")?;
        let options = options(env, &settings, 0)?;
        let report = Store::verify(path, &VerifyOptions::default().deep(deep), &options)?;
        let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        array(env, &findings)
    })
}
