//! Restoring a backup: a new store with the contents at a seq.
//!
//! ```text
//!   choose     the generation that is asked for, or the newest that has the seq
//!   check      all of it, every record, before anything is written
//!   parts      hard links to the backup's files, or copies
//!   log        copied up to the last batch that counts; each header names the new store
//!   manifest, FORMAT    in this order: without FORMAT a directory is no store
//! ```
//!
//! The new store has its own identity. Its history continues from another point than that of the
//! original store, so files and backups of the two must never be confused.

use crate::maintenance::progress::{ByteProgress, Counter, Report, unreported};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::{Error, ErrorKind, FileNumber, Lsn, Result, Seq as RawSeq, error};
use folddb_host::{Host, LockMode};
use folddb_layout::backup::BackupList;
use folddb_layout::file_name::FileName;
use folddb_layout::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};
use folddb_layout::version::Version;
use folddb_manifest::{IndexBuild, State};

use crate::maintenance::backup_place::{Generation, describe, generations, no_backups, owner, read_list};
use crate::maintenance::copying;
use crate::maintenance::generation::{Checked, check, read_log};
use crate::maintenance::manifest_file::write_manifest;
use crate::maintenance::owned_directory::refuse_inside_store;
use crate::options::Options;
use crate::store::Store;
use folddb_engine::options::Options as EngineOptions;
use folddb_engine::recovery::format::{lock_file, make_empty_dir, new_store_id, write_format};
use folddb_engine::seq::Seq;

/// What is restored, and how.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct RestoreOptions {
    generation: Option<u64>,
    at_seq: Option<Seq>,
    copy: bool,
}

impl RestoreOptions {
    /// Restores this generation. Default: the newest, or with [`RestoreOptions::at_seq`] the newest
    /// that has it.
    pub fn generation(mut self, number: Option<u64>) -> RestoreOptions {
        self.generation = number;
        self
    }

    /// Restores the state at the last batch that ends at or before this seq. Default: everything in
    /// the generation.
    pub fn at_seq(mut self, seq: Option<Seq>) -> RestoreOptions {
        self.at_seq = seq;
        self
    }

    /// Copies parts instead of linking them, so that the store shares no byte of the disk with the
    /// backup. Default false.
    pub fn copy(mut self, copy: bool) -> RestoreOptions {
        self.copy = copy;
        self
    }
}

/// What was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreReport {
    /// The generation that it came from.
    pub generation: u64,
    /// The seq whose state the new store holds.
    pub last_seq: Seq,
    /// The identity of the new store.
    pub store_id: u128,
    /// Bytes of parts that are hard links to the backup's files.
    pub linked_bytes: u64,
    /// Bytes that were copied.
    pub copied_bytes: u64,
}

impl Store {
    /// The backups in a directory, oldest first. Those with a damaged list are included, and say
    /// so.
    ///
    /// # Errors
    /// [`ErrorKind::StoreNotFound`] if `place` has no backups; [`ErrorKind::Corruption`];
    /// [`ErrorKind::NewerFormat`]; a failed read.
    pub fn backups(place: impl AsRef<Path>, options: &Options) -> Result<Vec<Generation>> {
        generations(&options.engine.host, place.as_ref())
    }

    /// Creates a new store at `to` from a backup: `backups` is a directory of backups, or that of
    /// one generation. All of the backup is checked first. `options` provide custom orders of keys.
    ///
    /// # Errors
    /// [`ErrorKind::StoreNotFound`] when there is no backup; [`ErrorKind::InvalidInput`] for a
    /// number or seq that cannot be restored, naming those that can; [`ErrorKind::AlreadyExists`]
    /// when there is something at `to`; [`ErrorKind::Corruption`], naming the file, when the backup
    /// is damaged; [`ErrorKind::NoSpace`]; a failed read or write. What was made by then is
    /// removed.
    pub fn restore(
        backups: impl AsRef<Path>,
        to: impl AsRef<Path>,
        what: &RestoreOptions,
        options: &Options,
    ) -> Result<RestoreReport> {
        Store::restore_with(backups, to, what, options, unreported)
    }

    /// The same. `progress` is called as bytes are checked and copied, and may stop it.
    ///
    /// # Errors
    /// As [`Store::restore`]; [`ErrorKind::Stopped`] if `progress` broke it off.
    pub fn restore_with(
        backups: impl AsRef<Path>,
        to: impl AsRef<Path>,
        what: &RestoreOptions,
        options: &Options,
        mut progress: impl FnMut(ByteProgress) -> ControlFlow<()>,
    ) -> Result<RestoreReport> {
        restore(backups.as_ref(), to.as_ref(), what, &options.engine, &mut progress)
    }
}

fn restore(
    backups: &Path,
    to: &Path,
    what: &RestoreOptions,
    options: &EngineOptions,
    report_to: Report<'_>,
) -> Result<RestoreReport> {
    let host = &options.host;
    let files = &*host.files;
    refuse_inside_store(files, to, "a store")?;
    refuse_what_is_there(host, to)?;
    let chosen = choose(host, backups, what)?;
    let lock = chosen.path.join(FileName::Lock.to_string());
    // Prevents its removal. Without a lock, as on read-only media, it can still be read.
    let _lock = lock_file(files, &lock, LockMode::Shared).ok();
    let list = read_list(files, &chosen.path)?;
    let mut copied = Counter::new(report_to, bytes_to_read(&list));
    let wanted = what.at_seq.map_or(RawSeq::MAX, u64::from);
    let all = &|_: &_| true;
    let checked = check(host, (&chosen.path, &list), &options.custom, all, wanted, &mut |bytes| {
        copied.add(bytes);
        copied.check()
    });
    let checked = checked.map_err(|error| error.context(format!("backup {}", chosen.number)))?;
    make_empty_dir(files, to)?;
    let mut making = Making { host, from: &chosen.path, to, what, copied, linked_bytes: 0, copied_bytes: 0 };
    let store_id = new_store_id(options);
    let last_seq = making.make(&list, &checked, store_id).inspect_err(|_| copying::remove_all(files, to))?;
    let Making { linked_bytes, copied_bytes, .. } = making;
    Ok(RestoreReport {
        generation: chosen.number,
        last_seq: last_seq.into(),
        store_id,
        linked_bytes,
        copied_bytes,
    })
}

/// Refuses a directory that is not empty before the backup is read, which may take long.
fn refuse_what_is_there(host: &Host, to: &Path) -> Result<()> {
    let is_free = match host.files.list(to) {
        Ok(names) => names.is_empty(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if is_free {
        return Ok(());
    }
    let message = format!("{} exists already; a backup is restored to a new store", to.display());
    Err(Error::new(ErrorKind::AlreadyExists, message))
}

/// The generation to restore.
fn choose(host: &Host, backups: &Path, what: &RestoreOptions) -> Result<Generation> {
    let files = &*host.files;
    let all = match owner(files, backups)? {
        Some(_) => generations(host, backups)?,
        None => match read_list(files, backups) {
            Ok(list) => vec![describe(files, list.generation, backups.to_owned())],
            Err(error) if error.kind() == ErrorKind::StoreNotFound => return Err(no_backups(backups)),
            Err(error) => return Err(error),
        },
    };
    pick(&all, what, backups)
}

/// Which of these generations is requested.
fn pick(all: &[Generation], what: &RestoreOptions, place: &Path) -> Result<Generation> {
    let asked: Vec<&Generation> =
        all.iter().filter(|one| what.generation.is_none_or(|number| one.number == number)).collect();
    if asked.is_empty() {
        let numbers: Vec<String> = all.iter().map(|one| one.number.to_string()).collect();
        return Err(match what.generation.filter(|_| !numbers.is_empty()) {
            Some(number) => Error::invalid(format!(
                "{} has no backup {number}; it has {}",
                place.display(),
                numbers.join(", ")
            )),
            None => {
                Error::new(ErrorKind::StoreNotFound, format!("{} has no finished backup", place.display()))
                    .advise("make one: folddb backup STORE BACKUPS")
            }
        });
    }
    let Some(seq) = what.at_seq else {
        return whole(asked[asked.len() - 1]);
    };
    match asked.iter().rev().find(|one| one.damage.is_none() && (one.first_seq..=one.last_seq).contains(&seq))
    {
        Some(found) => Ok((*found).clone()),
        None => Err(Error::invalid(format!("seq {seq} cannot be restored; {}", possible(&asked)))),
    }
}

fn whole(one: &Generation) -> Result<Generation> {
    match &one.damage {
        None => Ok(one.clone()),
        Some(damage) => Err(Error::new(ErrorKind::Corruption, format!("backup {}: {damage}", one.number))),
    }
}

fn possible(generations: &[&Generation]) -> String {
    let ranges = generations.iter().filter(|one| one.damage.is_none());
    let ranges: Vec<String> =
        ranges.map(|one| format!("{} to {} (backup {})", one.first_seq, one.last_seq, one.number)).collect();
    format!("possible are {}", ranges.join(", "))
}

/// Every byte is read once to check it, and most are linked or copied then.
fn bytes_to_read(list: &BackupList) -> u64 {
    list.files.iter().map(|file| file.len_bytes * (1 + u64::from(is_moved(&file.name)))).sum()
}

/// Whether a file is linked or copied as it is.
fn is_moved(name: &FileName) -> bool {
    matches!(
        name,
        FileName::Part(_)
            | FileName::Values(_)
            | FileName::ValueFile(..)
            | FileName::Relocated(_)
            | FileName::Index(_)
    )
}

/// A store that is being made.
struct Making<'a> {
    host: &'a Host,
    from: &'a Path,
    to: &'a Path,
    what: &'a RestoreOptions,
    copied: Counter<'a>,
    linked_bytes: u64,
    copied_bytes: u64,
}

impl Making<'_> {
    /// Makes the store. Returns the seq whose state it holds.
    fn make(&mut self, list: &BackupList, checked: &Checked, store_id: u128) -> Result<RawSeq> {
        let files = Arc::clone(&self.host.files);
        let lock = self.to.join(FileName::Lock.to_string());
        let _lock = lock_file(&*files, &lock, LockMode::Exclusive)
            .map_err(|error| Error::io("lock", &lock, error))?;
        let log = &checked.log;
        let (end_lsn, last_seq) =
            if self.what.at_seq.is_some() { log.cut } else { (log.end_lsn, log.last_seq) };
        let directory = |number: &FileNumber| self.to.join(FileName::ValueDirectory(*number).to_string());
        let directories: Vec<PathBuf> = checked.state.directories.keys().map(directory).collect();
        directories.iter().try_for_each(|path| copying::make_directory(&*files, path))?;
        for file in &list.files {
            if is_moved(&file.name) {
                self.part(&file.name.to_string(), file.len_bytes)?;
                self.copied.check()?;
            }
        }
        directories.iter().try_for_each(|path| copying::sync_dir(&*files, path))?;
        if end_lsn > checked.state.log_start_lsn {
            for &number in &log.segments {
                self.segment(number, store_id, end_lsn)?;
            }
        }
        self.copied.check()?;
        let mut state = State {
            store_id,
            last_seq,
            durable_lsn: end_lsn,
            log_open: end_lsn > checked.state.log_start_lsn,
            log_copied: Some(true),
            times: Arc::new(checked.state.times.until(last_seq)), // edits may have later times than the restored state
            ..checked.state.clone()
        };
        forget_later_indexes(&mut state);
        write_manifest(self.host, self.to, state.clone())?;
        self.check(&state)?;
        write_format(&*files, self.to, &Version { store_id, ..checked.version })?;
        Ok(last_seq)
    }

    fn part(&mut self, name: &str, bytes: u64) -> Result<()> {
        let (from, to) = (self.from.join(name), self.to.join(name));
        let files = &*self.host.files;
        if !self.what.copy && files.link(&from, &to).is_ok() {
            self.linked_bytes += bytes;
            self.copied.add(bytes);
            return Ok(());
        }
        let file = files.open(&from).map_err(|error| Error::io("open", &from, error))?;
        copying::copy(files, (&[], &*file, 0..bytes), (&from, &to), &mut |bytes| self.copied.add(bytes))?;
        self.copied_bytes += bytes;
        Ok(())
    }

    /// Copies a segment up to `end_lsn`, with a header that names the new store. Frames stay valid:
    /// their hashes are seeded with the segment's salt and their place, which do not change.
    fn segment(&mut self, number: FileNumber, store_id: u128, end_lsn: Lsn) -> Result<()> {
        let name = FileName::Log(number).to_string();
        let (from, to) = (self.from.join(&name), self.to.join(&name));
        let files = &*self.host.files;
        let file = files.open(&from).map_err(|error| Error::io("open", &from, error))?;
        let failed = |error| Error::io("read", &from, error);
        let mut bytes = vec![0; SEGMENT_HEADER_BYTES];
        file.read_exact_at(0, &mut bytes).map_err(failed)?;
        let header =
            SegmentHeader::decode(&bytes, number).map_err(|cause| error::corrupt(&from, 0, cause))?;
        if header.first_lsn >= end_lsn {
            return Ok(());
        }
        let end = header.offset_of(header.next_lsn().min(end_lsn)).min(file.len_bytes().map_err(failed)?);
        let header = SegmentHeader { store_id, ..header }.encode();
        let range = SEGMENT_HEADER_BYTES as u64..end;
        copying::copy(files, (&header, &*file, range), (&from, &to), &mut |bytes| self.copied.add(bytes))?;
        self.copied_bytes += end;
        Ok(())
    }

    /// Checks that the written files read back correctly. Parts were read a moment ago.
    fn check(&self, state: &State) -> Result<()> {
        let loaded = folddb_manifest::load(self.host, self.to)?;
        let log = read_log(self.host, self.to, &loaded.state, RawSeq::MAX)?;
        let is_whole =
            log.end_lsn == state.durable_lsn.max(state.log_start_lsn) && log.last_seq == state.last_seq;
        if is_whole {
            return Ok(());
        }
        let message = format!("the log in {} is not what was copied", self.to.display());
        Err(Error::new(ErrorKind::Corruption, message))
    }
}

/// An index that was built later than the restored state may lack entries which the log had by
/// then: it must be rebuilt from the first key.
fn forget_later_indexes(state: &mut State) {
    let last_seq = state.last_seq;
    state.tables.for_each_mut(|table| {
        if table.build.building.is_some() || table.build.since > last_seq {
            table.build = IndexBuild { since: 0, building: Some(Vec::new()) };
        }
    });
}

#[cfg(test)]
mod tests;
