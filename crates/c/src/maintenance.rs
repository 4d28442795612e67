//! Maintenance of a store: compact it, reclaim its space, check whether it is whole, back it up and
//! restore it.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use folddb::maintenance::{BackupOptions, ByteProgress, Generation, RestoreOptions, Severity, VerifyOptions};
use folddb::{Error, ErrorKind, Result, Store, time};

use crate::callbacks::{Progress, ProgressFunction};
use crate::errors::guard;
use crate::handles;
use crate::memory::{ErrPtr, Text, copy_out_list, copy_out_texts, put};
use crate::options::{OptionsObject, parsed, settings};
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

/// Reclaims the space of dead separated values at once, as long as that is worth it; a store does
/// this on its own, too. Values that were overwritten count as live until a merge has met them, as
/// folddb_compact does. Returns whether it did. `freed_bytes`, unless it is NULL, is set to the
/// bytes by which the files of values have shrunk.
///
/// Errors: NoSpace, Poisoned, Closed; ReadOnly where the store was opened for reading; a failed
/// read or write.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_reclaim(
    store: *mut StoreObject,
    freed_bytes: Option<&mut MaybeUninit<u64>>,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let report = handles::get(store)?.0.reclaim()?;
        put(freed_bytes, report.bytes_before.saturating_sub(report.bytes_after));
        Ok(true)
    })
}

/// Advice on the store, each a sentence or some, the most urgent first; none where all is well.
/// Otherwise as folddb_tables.
///
/// Errors: Closed; a file that cannot be read.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_doctor(
    store: *mut StoreObject,
    count: Option<&mut MaybeUninit<usize>>,
    errptr: ErrPtr<'_>,
) -> *mut *mut c_char {
    guard(errptr, null_mut(), || {
        let advice = handles::get(store)?.0.doctor()?;
        copy_out_texts(&advice.iter().map(ToString::to_string).collect::<Vec<_>>(), count)
    })
}

/// The lines of `name=value` in a text. `what` has such lines.
fn lines<'a>(text: Option<&'a str>, what: &str) -> Result<Vec<(&'a str, &'a str)>> {
    let lines = text.unwrap_or_default().lines().filter(|line| !line.is_empty());
    let parts = |line: &'a str| {
        line.split_once('=')
            .ok_or_else(|| Error::invalid(format!("{what} has lines NAME=VALUE, not `{line}`")))
    };
    lines.map(parts).collect()
}

fn backup_options(how: Option<&str>) -> Result<BackupOptions> {
    let mut options = BackupOptions::default();
    for (name, value) in lines(how, "how to back up")? {
        options = match name {
            "keep" => options.keep(Some(parsed(name, value, "a whole number")?)),
            "copy" => options.copy(parsed(name, value, "true or false")?),
            "check_all" => options.check_all(parsed(name, value, "true or false")?),
            _ => return Err(Error::invalid(format!("a backup has keep, copy and check_all, not `{name}`"))),
        };
    }
    Ok(options)
}

fn restore_options(what: Option<&str>) -> Result<RestoreOptions> {
    let mut options = RestoreOptions::default();
    for (name, value) in lines(what, "what to restore")? {
        options = match name {
            "generation" => options.generation(Some(parsed(name, value, "a whole number")?)),
            "at_seq" => options.at_seq(Some(parsed::<u64>(name, value, "a whole number")?.into())),
            "copy" => options.copy(parsed(name, value, "true or false")?),
            _ => {
                return Err(Error::invalid(format!(
                    "a restore has generation, at_seq and copy, not `{name}`"
                )));
            }
        };
    }
    Ok(options)
}

/// Adds a backup of the store, as it is now, to the folder for backups at `to`, which is created
/// where nothing is there. Writes and reads continue. `progress` may be NULL; it is called with
/// bytes that are copied and checked. Returns whether it did: the backup is durable then, and
/// checked.
///
/// `how` is NULL, or a line for each of these that is not the default: `keep=N`, to remove all
/// generations afterwards except the newest N, of which this is one (all stay); `copy=true`, to
/// copy files instead of linking them (`false`); `check_all=true`, to read every record of linked
/// files, too (`false`).
///
/// Errors: AlreadyExists where `to` is something else; InvalidInput where it holds backups of
/// another store, and for a wrong line; Stopped where `progress` wants it to: no backup is added
/// then; Locked, NoSpace, Poisoned; any other failure of the operating system.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_backup(
    store: *mut StoreObject,
    to: Text,
    how: Text,
    progress: ProgressFunction,
    context: *mut c_void,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let (to, how) = (to.get("the place")?, backup_options(how.get_optional("how to back up")?)?);
        let mut progress = Progress::new(progress, context);
        let report = |at: ByteProgress| progress.report(at.bytes_done, at.bytes_total);
        handles::get(store)?.0.backup_with(to, &how, report).map(|_| true)
    })
}

/// A backup in a folder for backups.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BackupGeneration {
    /// Its number; a later backup has a higher one.
    pub number: u64,
    /// The first seq that can be restored from it.
    pub first_seq: u64,
    /// The last seq that can be restored from it: the state that it holds.
    pub last_seq: u64,
    /// When it was made, in milliseconds since 1970, to the second.
    pub made_ms: u64,
    /// How many files it has.
    pub files: u64,
    /// The bytes of its files; linked ones take no space of their own.
    pub bytes: u64,
    /// Whether its list is damaged or missing, so that it cannot be restored.
    pub is_damaged: bool,
}

fn generation(of: &Generation) -> BackupGeneration {
    BackupGeneration {
        number: of.number,
        first_seq: of.first_seq.into(),
        last_seq: of.last_seq.into(),
        made_ms: time::unix_ms(of.made),
        files: of.files,
        bytes: of.bytes,
        is_damaged: of.damage.is_some(),
    }
}

/// The backups in the folder at `place`, oldest first; `count`, unless it is NULL, is set to how
/// many there are. `options` may be NULL. The list is for folddb_free. NULL where it fails.
///
/// Errors: StoreNotFound where there is no backup; NewerFormat, Corruption; a failed read.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_backups(
    place: Text,
    options: *mut OptionsObject,
    count: Option<&mut MaybeUninit<usize>>,
    errptr: ErrPtr<'_>,
) -> *mut BackupGeneration {
    guard(errptr, null_mut(), || {
        let found = Store::backups(place.get("the place")?, &settings(options)?)?;
        copy_out_list(&found.iter().map(generation).collect::<Vec<_>>(), count)
    })
}

/// Creates a store at `to` from a backup at `from`. `options` and `progress` may be NULL; this is
/// called with bytes that are checked and copied. Returns whether it did.
///
/// `what` is NULL, or a line for each of these that is not the default: `generation=N` of
/// folddb_backups (the newest); `at_seq=N`, for the state at that seq (all of the generation);
/// `copy=true`, to copy files instead of linking them (`false`).
///
/// Errors: StoreNotFound where there is no backup; InvalidInput for a wrong line, and for a
/// generation or a seq that is not there; AlreadyExists where something is at `to`; Corruption;
/// Stopped where `progress` wants it to: no store is at `to` then; any other failure of the
/// operating system.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_restore(
    from: Text,
    to: Text,
    what: Text,
    options: *mut OptionsObject,
    progress: ProgressFunction,
    context: *mut c_void,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let (from, to, options) = (from.get("the place")?, to.get("the path")?, settings(options)?);
        let what = restore_options(what.get_optional("what to restore")?)?;
        let mut progress = Progress::new(progress, context);
        let report = |at: ByteProgress| progress.report(at.bytes_done, at.bytes_total);
        Store::restore_with(from, to, &what, &options, report).map(|_| true)
    })
}

/// Checks the files of a store that no process writes to; a deep check reads every record.
/// `options` and `progress` may be NULL. Returns whether the store is whole. `findings`, unless it
/// is NULL, is set to the number of things that are wrong.
///
/// Errors: Corruption, with the first thing that is wrong; FoldFailed where nothing is damaged, but
/// a program wrote values that their tables do not accept; NewerFormat where the rest is whole,
/// but this build cannot read some parts; StoreNotFound, Locked; Stopped where `progress` wants it
/// to; a folder that cannot be listed.
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
        let Some(first) = wrong.first() else {
            let unread = report.checked.parts_unread;
            if unread > 0 {
                let message =
                    format!("{path}: this build cannot read {unread} of its parts; the rest is whole");
                return Err(Error::new(ErrorKind::NewerFormat, message)
                    .advise("verify it with a build that has the features and the version that wrote it"));
            }
            return Ok(true);
        };
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
