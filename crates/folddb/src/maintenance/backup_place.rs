//! A directory of backups: generations, all of one store.
//!
//! ```text
//!   place/BACKUPS            the identity of the store; marks the directory as one of backups
//!         LOCK               held while a generation is made or removed
//!         000007/            a generation: a store directory with the list BACKUP
//!         making-000008/     one that is being made, or was interrupted
//!         removing-000002/   one that is being removed
//! ```
//!
//! A generation gets its name only when all of it is durable and checked. The next backup removes
//! an interrupted one.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use folddb_base::bytes::Malformed;
use folddb_base::{Error, ErrorKind, Result, error};
use folddb_host::files::FileLock;
use folddb_host::{Files, Host, LockMode};
use folddb_layout::backup::{
    BackupList, LIST_FILE, LIST_FILE_BYTES_MAX, PLACE_FILE, decode_place, encode_place,
};
use folddb_layout::file_name::FileName;
use folddb_rules::time::moment;

use crate::maintenance::copying::{self, read_small, sync_dir};
use crate::maintenance::owned_directory::refuse_inside_store;
use folddb_engine::recovery::format::{lock_file, sync_parent};
use folddb_engine::seq::Seq;

/// A backup that can be restored, from its own list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Generation {
    /// Its number; a later backup has a higher one.
    pub number: u64,
    /// Its directory, which can be opened for reading like any store.
    pub path: PathBuf,
    /// When it was made, to the second.
    pub made: SystemTime,
    /// The first seq that can be restored from it.
    pub first_seq: Seq,
    /// The last seq that can be restored from it: the state that it holds.
    pub last_seq: Seq,
    /// How many files it has.
    pub files: u64,
    /// The bytes of its files; linked ones take no space of their own.
    pub bytes: u64,
    /// Why it cannot be restored, if its list is damaged or missing.
    pub damage: Option<String>,
}

/// A name in a directory of backups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Generation(u64),
    Leftover(u64),
}

/// An open directory of backups.
pub(crate) struct Place {
    pub(crate) host: Host,
    pub(crate) dir: PathBuf,
    /// Whose backups these are.
    pub(crate) store_id: u128,
    _lock: Box<dyn FileLock>,
}

impl Place {
    /// Opens a directory to add backups of a store, or creates one if nothing is there.
    pub(crate) fn open_or_make(host: &Host, dir: &Path, store_id: u128) -> Result<Place> {
        let files = &*host.files;
        refuse_inside_store(files, dir, "backups")?;
        if let Err(error) = files.create_dir(dir)
            && error.kind() != std::io::ErrorKind::AlreadyExists
        {
            return Err(Error::io("create the directory", dir, error));
        }
        check_is_place_or_empty(files, dir)?;
        let lock = lock_place(files, dir)?;
        let place = Place { host: host.clone(), dir: dir.to_owned(), store_id, _lock: lock };
        place.settle_owner()?;
        place.remove_leftovers()?;
        Ok(place)
    }

    /// Records whose backups these are, or checks the record.
    fn settle_owner(&self) -> Result<()> {
        let files = &*self.host.files;
        match owner(files, &self.dir)? {
            Some(owner) if owner == self.store_id => Ok(()),
            Some(owner) => Err(Error::invalid(format!(
                "{} holds backups of another store ({owner:032x}, and this one is {:032x}); name another directory",
                self.dir.display(),
                self.store_id
            ))),
            None => {
                let draft = self.dir.join(DRAFT);
                let _ = files.remove(&draft);
                copying::write(files, &draft, &encode_place(self.store_id))?;
                let path = self.dir.join(PLACE_FILE);
                files.rename(&draft, &path).map_err(|error| Error::io("rename to", &path, error))?;
                sync_dir(files, &self.dir)?;
                sync_parent(files, &self.dir)
            }
        }
    }

    fn remove_leftovers(&self) -> Result<()> {
        for (name, entry) in entries(&*self.host.files, &self.dir)? {
            if matches!(entry, Entry::Leftover(_)) {
                copying::remove_all(&*self.host.files, &self.dir.join(name));
            }
        }
        Ok(())
    }

    /// The number of the next generation: no name in the place has it.
    pub(crate) fn next_number(&self) -> Result<u64> {
        let numbers = entries(&*self.host.files, &self.dir)?.into_iter().map(|(_, entry)| match entry {
            Entry::Generation(number) | Entry::Leftover(number) => number,
        });
        Ok(numbers.max().unwrap_or(0) + 1)
    }

    /// Where a generation is built.
    pub(crate) fn draft_of(&self, number: u64) -> PathBuf {
        self.dir.join(format!("making-{number:06}"))
    }

    /// Gives a complete and durable generation its name.
    pub(crate) fn adopt(&self, number: u64) -> Result<PathBuf> {
        let (files, path) = (&*self.host.files, self.dir.join(generation_name(number)));
        let renamed = files.rename(&self.draft_of(number), &path);
        renamed.map_err(|error| Error::io("rename to", &path, error))?;
        sync_dir(files, &self.dir)?;
        Ok(path)
    }

    /// The newest generation with an intact list.
    pub(crate) fn newest(&self) -> Result<Option<(PathBuf, BackupList)>> {
        let mut numbers = generation_numbers(&*self.host.files, &self.dir)?;
        numbers.reverse();
        for number in numbers {
            let path = self.dir.join(generation_name(number));
            if let Ok(list) = read_list(&*self.host.files, &path) {
                return Ok(Some((path, list)));
            }
        }
        Ok(None)
    }

    /// Removes all generations except the newest `keep`. One that is open stays until the next
    /// time. Returns the numbers of the removed ones.
    pub(crate) fn remove_all_but(&self, keep: usize) -> Result<Vec<u64>> {
        let numbers = generation_numbers(&*self.host.files, &self.dir)?;
        let old = &numbers[..numbers.len().saturating_sub(keep.max(1))];
        let mut removed = Vec::new();
        for &number in old {
            if self.remove(number)? {
                removed.push(number);
            }
        }
        Ok(removed)
    }

    fn remove(&self, number: u64) -> Result<bool> {
        let files = &*self.host.files;
        let (path, gone) =
            (self.dir.join(generation_name(number)), self.dir.join(format!("removing-{number:06}")));
        let lock = lock_file(files, &path.join(FileName::Lock.to_string()), LockMode::Exclusive);
        if lock.is_err() {
            return Ok(false);
        }
        files.rename(&path, &gone).map_err(|error| Error::io("rename", &path, error))?;
        sync_dir(files, &self.dir)?;
        copying::remove_all(files, &gone);
        Ok(true)
    }
}

/// The name of `BACKUPS` while it is written.
const DRAFT: &str = "BACKUPS.new";

/// The backups in a place, oldest first.
pub(crate) fn generations(host: &Host, dir: &Path) -> Result<Vec<Generation>> {
    let files = &*host.files;
    if owner(files, dir)?.is_none() {
        return Err(no_backups(dir));
    }
    let numbers = generation_numbers(files, dir)?;
    Ok(numbers.into_iter().map(|number| describe(files, number, dir.join(generation_name(number)))).collect())
}

/// The error that there are no backups in a directory.
pub(crate) fn no_backups(dir: &Path) -> Error {
    let message = format!("there are no backups at {}", dir.display());
    Error::new(ErrorKind::StoreNotFound, message).advise("check the path")
}

/// A generation, described from its list.
pub(crate) fn describe(files: &dyn Files, number: u64, path: PathBuf) -> Generation {
    match read_list(files, &path) {
        Ok(list) => Generation {
            number,
            path,
            made: moment(list.made_unix_s.saturating_mul(1000)),
            first_seq: list.first_seq.into(),
            last_seq: list.last_seq.into(),
            files: list.files.len() as u64,
            bytes: list.files.iter().map(|file| file.len_bytes).sum(),
            damage: None,
        },
        Err(error) => Generation {
            number,
            path,
            made: SystemTime::UNIX_EPOCH,
            first_seq: Seq::default(),
            last_seq: Seq::default(),
            files: 0,
            bytes: 0,
            damage: Some(error.message().to_owned()),
        },
    }
}

/// The list of a generation.
pub(crate) fn read_list(files: &dyn Files, generation: &Path) -> Result<BackupList> {
    let path = generation.join(LIST_FILE);
    let Some(bytes) = read_small(files, &path, LIST_FILE_BYTES_MAX)? else {
        let message = format!("{} is not a backup: it has no list of its files", generation.display());
        return Err(Error::new(ErrorKind::StoreNotFound, message).advise("check the path"));
    };
    BackupList::decode(&bytes).map_err(|cause| undecodable(&path, cause))
}

/// Whose backups are in a directory; none if it is not a directory of backups.
pub(crate) fn owner(files: &dyn Files, dir: &Path) -> Result<Option<u128>> {
    let path = dir.join(PLACE_FILE);
    let bytes = match read_small(files, &path, 4096) {
        Err(error) if error.kind() == ErrorKind::Io && files.list(dir).is_err() => None, // for example a file
        read => read?,
    };
    bytes.map(|bytes| decode_place(&bytes).map_err(|cause| undecodable(&path, cause))).transpose()
}

fn undecodable(path: &Path, cause: Malformed) -> Error {
    match cause {
        Malformed::Tag => Error::new(
            ErrorKind::NewerFormat,
            format!("{} was written by a newer version, which this one cannot read", path.display()),
        ),
        cause => error::corrupt(path, 0, cause),
    }
}

fn check_is_place_or_empty(files: &dyn Files, dir: &Path) -> Result<()> {
    let refuse = |what: &str| {
        let message = format!("{} {what}; backups need a directory of their own", dir.display());
        Err(Error::new(ErrorKind::AlreadyExists, message))
    };
    let names = match files.list(dir) {
        Ok(names) => names,
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return refuse("is a file"),
        Err(error) => return Err(Error::io("list", dir, error)),
    };
    let has = |name: &str| names.iter().any(|other| other == name);
    if has(PLACE_FILE) {
        return Ok(());
    }
    if has(LIST_FILE) {
        return refuse("is a single backup");
    }
    if has(&FileName::Format.to_string()) {
        return refuse("is a store");
    }
    let of_a_first_backup = |name: &String| name == DRAFT || *name == FileName::Lock.to_string();
    if names.iter().all(of_a_first_backup) { Ok(()) } else { refuse("holds other files") }
}

fn lock_place(files: &dyn Files, dir: &Path) -> Result<Box<dyn FileLock>> {
    let path = dir.join(FileName::Lock.to_string());
    lock_file(files, &path, LockMode::Exclusive).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            let message = format!("another backup to {} is running", dir.display());
            Error::new(ErrorKind::Locked, message)
        }
        _ => Error::io("lock", &path, error),
    })
}

fn generation_numbers(files: &dyn Files, dir: &Path) -> Result<Vec<u64>> {
    let mut numbers: Vec<u64> = entries(files, dir)?
        .into_iter()
        .filter_map(|(_, entry)| match entry {
            Entry::Generation(number) => Some(number),
            Entry::Leftover(_) => None,
        })
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn entries(files: &dyn Files, dir: &Path) -> Result<Vec<(String, Entry)>> {
    let names = files.list(dir).map_err(|error| Error::io("list", dir, error))?;
    Ok(names.into_iter().filter_map(|name| entry(&name).map(|entry| (name, entry))).collect())
}

fn entry(name: &str) -> Option<Entry> {
    let leftover = name.strip_prefix("making-").or_else(|| name.strip_prefix("removing-"));
    match leftover {
        Some(digits) => parse_number(digits).map(Entry::Leftover),
        None => parse_number(name).map(Entry::Generation),
    }
}

/// Only what [`generation_name`] prints.
fn parse_number(digits: &str) -> Option<u64> {
    let number: u64 = digits.parse().ok()?;
    (generation_name(number) == digits && number < u64::MAX).then_some(number)
}

fn generation_name(number: u64) -> String {
    format!("{number:06}")
}

#[cfg(test)]
mod tests;
