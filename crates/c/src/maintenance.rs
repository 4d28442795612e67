//! Maintenance of a store: compact it, check whether it is whole, back it up and restore it.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use folddb::maintenance::{BackupOptions, ByteProgress, RestoreOptions, Severity, VerifyOptions};
use folddb::{Error, ErrorKind, Store};

use crate::callbacks::{Progress, ProgressFunction};
use crate::errors::guard;
use crate::handles;
use crate::memory::{ErrPtr, Text, put};
use crate::options::{OptionsObject, settings};
use crate::store::StoreObject;
use crate::table::TableObject;

/// Merges all runs of a table into one, and those of its indexes, before it returns. `progress` may
/// be NULL, and may stop it: what is merged by then stays merged. Returns whether all of it was
/// done.
///
/// Errors: NoSpace; Stopped where `progress` wants it to; a failed read or write.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_compact(
    table: *mut TableObject,
    progress: ProgressFunction,
    context: *mut c_void,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let table = handles::get(table)?;
        let mut progress = Progress::new(progress, context);
        table.itself()?.compact_with(|at| progress.report(at.bytes_done, at.bytes_total))?;
        match progress.is_stopped() {
            true => Err(Error::new(ErrorKind::Stopped, "the compaction was stopped")),
            false => Ok(true),
        }
    })
}

/// Adds a backup of the store, as it is now, to the folder for backups at `to`, which is created
/// where nothing is there. Writes and reads continue. `progress` may be NULL; it is called with
/// bytes that are copied and checked. Returns whether it did: the backup is durable then, and
/// checked.
///
/// Errors: AlreadyExists where `to` is something else; InvalidInput where it holds backups of
/// another store; Stopped where `progress` wants it to: no backup is added then; Locked, NoSpace,
/// Poisoned; any other failure of the operating system.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_backup(
    store: *mut StoreObject,
    to: Text,
    progress: ProgressFunction,
    context: *mut c_void,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let mut progress = Progress::new(progress, context);
        let report = |at: ByteProgress| progress.report(at.bytes_done, at.bytes_total);
        let to = to.get("the place")?;
        handles::get(store)?.0.backup_with(to, &BackupOptions::default(), report).map(|_| true)
    })
}

/// Creates a store at `to` from the newest backup at `from`. `options` and `progress` may be NULL;
/// this is called with bytes that are checked and copied. Returns whether it did.
///
/// Errors: StoreNotFound where there is no backup; AlreadyExists where something is at `to`;
/// Corruption; Stopped where `progress` wants it to: no store is at `to` then; any other failure of
/// the operating system.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_restore(
    from: Text,
    to: Text,
    options: *mut OptionsObject,
    progress: ProgressFunction,
    context: *mut c_void,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let (from, to, options) = (from.get("the place")?, to.get("the path")?, settings(options)?);
        let mut progress = Progress::new(progress, context);
        let report = |at: ByteProgress| progress.report(at.bytes_done, at.bytes_total);
        Store::restore_with(from, to, &RestoreOptions::default(), &options, report).map(|_| true)
    })
}

/// Checks the files of a store that no process writes to; a deep check reads every record.
/// `options` and `progress` may be NULL. Returns whether the store is whole. `findings`, unless it
/// is NULL, is set to the number of things that are wrong.
///
/// Errors: Corruption, with the first thing that is wrong; FoldFailed where nothing is damaged, but
/// a program wrote values that their tables do not accept; StoreNotFound, Locked; Stopped where
/// `progress` wants it to; a folder that cannot be listed.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_verify(
    path: Text,
    options: *mut OptionsObject,
    deep: bool,
    findings: Option<&mut MaybeUninit<usize>>,
    progress: ProgressFunction,
    context: *mut c_void,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let (path, options) = (path.get("the path")?, settings(options)?);
        let how = VerifyOptions::default().deep(deep);
        let mut progress = Progress::new(progress, context);
        let report = |at: ByteProgress| progress.report(at.bytes_done, at.bytes_total);
        let report = Store::verify_with(path, &how, &options, report)?;
        // The heaviest come first.
        let wrong: Vec<_> = report.findings.iter().filter(|found| found.severity != Severity::Note).collect();
        put(findings, wrong.len());
        let Some(first) = wrong.first() else { return Ok(true) };
        if first.severity == Severity::Unfit {
            let message = format!("{path} is not damaged; in {}: {}", first.file, first.what);
            return Err(
                Error::new(ErrorKind::FoldFailed, message).advise("put such keys again, or delete them")
            );
        }
        let message = format!("{path} is damaged in {}: {}", first.file, first.what);
        Err(Error::new(ErrorKind::Corruption, message))
    })
}
