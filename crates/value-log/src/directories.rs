//! Segments of the value log that are directories: each value is a file of its own, a *value file*.
//!
//! ```text
//!   000012.shelf/   000001.value  000002.value  000004.value        sealed; the third was dead, and was removed
//!   000031.shelf/   000001.value  000002.value                      active
//!   000044.shelf/                                                   next, made ahead by background work
//! ```
//!
//! A directory has a number like any segment, and a value file has a unit in it, so pointers,
//! slots, liveness and reclaim need not know about directories. A value file is one record of the
//! value log and nothing else. Its path consists of these two numbers; the key is not in it.
//!
//! A value file is written before the frame that points to it, like any value.
//! [`ValueDirectories::sync`] syncs the files that were written since, and their directories;
//! [`ValueLog`](crate::ValueLog) calls it in its own sync. The engine makes directories, lists them
//! and removes dead value files; the value log gives it access.
//!
//! ```text
//!   lock     guards                                     held while
//!   tail     which units are taken, written, synced     never while a file is
//! ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use folddb_base::{Error, ErrorKind, FileNumber, NumberSource, Result, ValuePlace, error};
use folddb_host::sync::Mutex;
use folddb_host::{Files, Host};
use folddb_layout::file_name::{FileName, parse_value_file};

use crate::long_value::LongValue;
use crate::segment::next_segment_bytes;

/// The most value files in a directory, so that listing it takes a few milliseconds.
pub const VALUE_FILES_MAX: u32 = 4096;

/// See the top of this file. Shared by all threads.
pub struct ValueDirectories {
    host: Host,
    dir: PathBuf,
    bytes_max: u64,
    numbers: NumberSource,
    tail: Mutex<Tail>,
    poison: OnceLock<Error>,
}

#[derive(Default)]
struct Tail {
    active: Option<OpenDirectory>,
    next: Option<OpenDirectory>,
    /// Full directories that [`ValueDirectories::take_sealed`] has not returned yet, oldest first.
    sealed: Vec<OpenDirectory>,
    is_closed: bool,
}

/// A directory that is not known to be sealed: value files are written to it, or will be, or have
/// just been.
pub struct OpenDirectory {
    number: FileNumber,
    /// It is full at this many bytes.
    full_bytes: u64,
    /// The last unit that was used.
    last: u32,
    /// The number of value files in it, and their bytes.
    value_files: u64,
    bytes: u64,
    /// Units with files that are being written.
    writing: BTreeSet<u32>,
    /// Units with files that may not be durable, and their bytes.
    unsynced: BTreeSet<u32>,
    unsynced_bytes: u64,
}

/// A directory, and its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryEnd {
    /// The directory.
    pub number: FileNumber,
    /// Bytes of its files.
    pub bytes: u64,
    /// How many files it has.
    pub value_files: u64,
}

impl OpenDirectory {
    /// The number of its directory.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    fn has_room(&self) -> bool {
        self.last < VALUE_FILES_MAX && self.bytes < self.full_bytes
    }

    fn end(&self) -> DirectoryEnd {
        DirectoryEnd { number: self.number, bytes: self.bytes, value_files: self.value_files }
    }

    /// True if none of its files is being written or must still be synced.
    fn is_at_rest(&self) -> bool {
        self.writing.is_empty() && self.unsynced.is_empty()
    }
}

impl Tail {
    fn all(&self) -> impl Iterator<Item = &OpenDirectory> {
        self.active.iter().chain(&self.next).chain(&self.sealed)
    }

    fn find(&mut self, number: FileNumber) -> Option<&mut OpenDirectory> {
        let Tail { active, next, sealed, .. } = self;
        active.iter_mut().chain(next).chain(sealed).find(|directory| directory.number == number)
    }

    fn continue_in(&mut self, next: OpenDirectory) {
        self.sealed.extend(self.active.replace(next));
    }

    /// Takes a unit of the active directory, or of the next one; none if neither has room.
    fn take_unit(&mut self, bytes: u64) -> Option<ValuePlace> {
        if !self.active.as_ref().is_some_and(OpenDirectory::has_room) {
            let next = self.next.take()?;
            self.continue_in(next);
        }
        let directory = self.active.as_mut()?;
        directory.last += 1;
        directory.bytes += bytes;
        directory.writing.insert(directory.last);
        Some(ValuePlace { segment: directory.number.0 as u32, unit: directory.last })
    }
}

impl ValueDirectories {
    /// Without directories. A directory with `bytes_max` bytes is always full.
    pub fn new(host: &Host, dir: &Path, bytes_max: u64, numbers: NumberSource) -> ValueDirectories {
        ValueDirectories {
            host: host.clone(),
            dir: dir.to_owned(),
            bytes_max,
            numbers,
            tail: Mutex::default(),
            poison: OnceLock::new(),
        }
    }

    /// Writes a record as a value file and returns its place. None if there is no room: then call
    /// [`ValueDirectories::make`] and [`ValueDirectories::adopt`].
    ///
    /// # Errors
    /// `NoSpace`: nothing has changed. `Poisoned`, `Closed`: see the kinds.
    pub fn append(&self, record: &[u8]) -> Result<Option<ValuePlace>> {
        self.check_sound()?;
        let bytes = record.len() as u64;
        let mut tail = self.tail.lock();
        if tail.is_closed {
            return Err(closed());
        }
        let Some(place) = tail.take_unit(bytes) else { return Ok(None) };
        drop(tail);
        let number = FileNumber(u64::from(place.segment));
        let path = value_file_path(&self.dir, number, place.unit);
        let written = write(&*self.host.files, &path, record);
        let mut tail = self.tail.lock();
        let is_closed = tail.is_closed;
        if let Some(directory) = tail.find(number) {
            directory.writing.remove(&place.unit);
            match &written {
                Ok(()) if !is_closed => {
                    directory.value_files += 1;
                    directory.unsynced.insert(place.unit);
                    directory.unsynced_bytes += bytes;
                }
                _ => directory.bytes -= bytes,
            }
        }
        drop(tail);
        if written.is_err() || is_closed {
            let _ = self.host.files.remove(&path); // if it stays, a sweep removes it
        }
        match written {
            Ok(()) if is_closed => Err(closed()),
            Ok(()) => Ok(Some(place)),
            Err(error) if error.kind() == ErrorKind::NoSpace => Err(error),
            Err(error) => Err(self.poison(error.message())),
        }
    }

    /// Makes a directory, for a value log that holds this many bytes. It is durable on return.
    /// Nothing is left behind on failure.
    ///
    /// # Errors
    /// `NoSpace`; any other failure of the operating system.
    pub fn make(&self, held_bytes: u64) -> Result<OpenDirectory> {
        let number = (self.numbers)();
        if u32::try_from(number.0).is_err() {
            return Err(Error::invalid(format!(
                "the store has used up the numbers of its value segments at {number}"
            )));
        }
        let (files, path) = (&self.host.files, directory_path(&self.dir, number));
        files.create_dir(&path).map_err(|error| Error::io("create the directory", &path, error))?;
        if let Err(error) = files.sync_dir(&self.dir) {
            let _ = files.remove_dir(&path);
            return Err(Error::io("sync", &self.dir, error));
        }
        Ok(OpenDirectory {
            number,
            full_bytes: next_segment_bytes(held_bytes, self.bytes_max),
            last: 0,
            value_files: 0,
            bytes: 0,
            writing: BTreeSet::new(),
            unsynced: BTreeSet::new(),
            unsynced_bytes: 0,
        })
    }

    /// Makes a finished long value, durably, the only value file of a directory that was made for
    /// it. The directory is then full.
    ///
    /// # Errors
    /// A failed call. Then the caller must remove the directory with its content.
    pub fn shelve(&self, mut directory: OpenDirectory, value: &mut LongValue) -> Result<OpenDirectory> {
        (directory.last, directory.value_files, directory.bytes) = (1, 1, value.record_bytes());
        value.rename_to(&value_file_path(&self.dir, directory.number, 1))?;
        let path = directory_path(&self.dir, directory.number);
        self.host.files.sync_dir(&path).map_err(|error| Error::io("sync", &path, error))?;
        Ok(directory)
    }

    /// Takes over a full directory that is durably listed. The open directories become full, too:
    /// later files are in directories with higher numbers.
    pub(crate) fn continue_after(&self, full: OpenDirectory) {
        let mut tail = self.tail.lock();
        let Tail { active, next, sealed, .. } = &mut *tail;
        sealed.extend(active.take().into_iter().chain(next.take()).chain([full]));
    }

    /// Takes over a directory that is durably listed. It becomes the next one if the active one has
    /// room and there is no next one yet; else the active one. A next one that exists remains.
    pub fn adopt(&self, directory: OpenDirectory) {
        let mut tail = self.tail.lock();
        let has_room = tail.active.as_ref().is_some_and(OpenDirectory::has_room);
        if has_room && tail.next.is_none() {
            tail.next = Some(directory);
        } else {
            tail.continue_in(directory);
        }
    }

    /// Removes a directory that is not listed and was never handed over. If it stays, it does no
    /// harm, and the next opening removes it.
    pub fn unmake(&self, directory: OpenDirectory) {
        let _ = self.host.files.remove_dir(&directory_path(&self.dir, directory.number));
    }

    /// Whether there is room for a value file.
    pub fn has_room(&self) -> bool {
        let tail = self.tail.lock();
        tail.active.iter().chain(&tail.next).any(OpenDirectory::has_room)
    }

    /// Whether the next directory should be made: the active one is half full.
    pub fn wants_next(&self) -> bool {
        let tail = self.tail.lock();
        let is_half_full = |directory: &OpenDirectory| {
            directory.last > VALUE_FILES_MAX / 2 || directory.bytes > directory.full_bytes / 2
        };
        let wants = tail.active.as_ref().is_some_and(is_half_full) && tail.next.is_none();
        wants && !tail.is_closed && self.poison.get().is_none()
    }

    /// Bytes of value files that were written since the last sync.
    pub fn unsynced_bytes(&self) -> u64 {
        self.tail.lock().all().map(|directory| directory.unsynced_bytes).sum()
    }

    /// Waits until all value files that were written before the call are durable, with their names.
    /// It costs almost nothing if they are.
    ///
    /// # Errors
    /// `Poisoned` if a write or sync failed, now or before.
    pub fn sync(&self) -> Result<()> {
        self.check_sound()?;
        let unsynced: Vec<(FileNumber, BTreeSet<u32>, u64)> = {
            let tail = self.tail.lock();
            let some = tail.all().filter(|directory| !directory.unsynced.is_empty());
            some.map(|directory| (directory.number, directory.unsynced.clone(), directory.unsynced_bytes))
                .collect()
        };
        for (number, units, bytes) in unsynced {
            self.sync_directory(number, &units).map_err(|error| {
                self.poison(format_args!("cannot sync directory {number} of values: {error}"))
            })?;
            if let Some(directory) = self.tail.lock().find(number) {
                directory.unsynced.retain(|unit| !units.contains(unit));
                let is_clean = directory.unsynced.is_empty();
                directory.unsynced_bytes =
                    if is_clean { 0 } else { directory.unsynced_bytes.saturating_sub(bytes) };
            }
        }
        Ok(())
    }

    fn sync_directory(&self, number: FileNumber, units: &BTreeSet<u32>) -> std::io::Result<()> {
        let files = &self.host.files;
        for &unit in units {
            files.sync_file(&value_file_path(&self.dir, number, unit))?;
        }
        files.sync_dir(&directory_path(&self.dir, number))
    }

    /// Full directories that are durable. Each is returned once.
    pub fn take_sealed(&self) -> Vec<DirectoryEnd> {
        let mut tail = self.tail.lock();
        let (done, rest): (Vec<_>, Vec<_>) = tail.sealed.drain(..).partition(OpenDirectory::is_at_rest);
        tail.sealed = rest;
        done.iter().map(OpenDirectory::end).collect()
    }

    /// Bytes of the value files of directories that are not sealed yet.
    pub fn open_bytes(&self) -> u64 {
        self.tail.lock().all().map(|directory| directory.bytes).sum()
    }

    /// Makes the active directory full, if it holds anything, so that it can be swept soon.
    pub fn roll(&self) {
        let mut tail = self.tail.lock();
        if tail.active.as_ref().is_some_and(|directory| directory.last > 0) {
            let full = tail.active.take();
            tail.sealed.extend(full);
        }
    }

    /// The content of the directories that are not sealed yet.
    pub fn ends(&self) -> Vec<DirectoryEnd> {
        self.tail.lock().all().map(OpenDirectory::end).collect()
    }

    /// Closes it: later calls of [`ValueDirectories::append`] fail. Returns the directories that
    /// hold something, all durable, and those that were never used.
    ///
    /// # Errors
    /// A sync failed, now or before.
    pub fn close(&self) -> Result<(Vec<DirectoryEnd>, Vec<FileNumber>)> {
        self.tail.lock().is_closed = true;
        self.sync()?;
        let mut tail = self.tail.lock();
        let Tail { active, next, sealed, .. } = &mut *tail;
        let open = sealed.drain(..).chain(active.take()).chain(next.take());
        let (unused, used): (Vec<_>, Vec<_>) = open.partition(|directory| directory.last == 0);
        Ok((
            used.iter().map(OpenDirectory::end).collect(),
            unused.iter().map(|directory| directory.number).collect(),
        ))
    }

    /// Forgets the directories of a value log that is closed or has failed. Later calls of
    /// [`ValueDirectories::append`] fail.
    pub fn let_go(&self) {
        *self.tail.lock() = Tail { is_closed: true, ..Tail::default() };
    }

    fn check_sound(&self) -> Result<()> {
        match self.poison.get() {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    /// Forbids all writes from now on. Returns the error with the first cause.
    #[cold]
    fn poison(&self, cause: impl std::fmt::Display) -> Error {
        let error = Error::new(ErrorKind::Poisoned, format!("the value log takes no more writes: {cause}"));
        self.poison.get_or_init(|| error).clone()
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the value log is closed")
}

fn write(files: &dyn Files, path: &Path, record: &[u8]) -> Result<()> {
    let mut file = files.create(path).map_err(|error| Error::io("create", path, error))?;
    file.append(record).map_err(|error| Error::io("write", path, error))
}

// ---- names --------------------------------------------------------------------------------------

/// The path of the directory with this number.
pub fn directory_path(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(FileName::ValueDirectory(number).to_string())
}

/// The path of a value file.
pub fn value_file_path(dir: &Path, directory: FileNumber, unit: u32) -> PathBuf {
    dir.join(FileName::ValueFile(directory, unit).to_string())
}

/// The units of the value files in a directory, ascending.
///
/// # Errors
/// The directory cannot be read.
pub fn value_files_in(files: &dyn Files, dir: &Path, directory: FileNumber) -> Result<Vec<u32>> {
    let path = directory_path(dir, directory);
    let names = files.list(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => error::corrupt(&path, 0, "it holds values, and it is not there"),
        _ => Error::io("list", &path, error),
    })?;
    let mut units: Vec<u32> = names.iter().filter_map(|name| parse_value_file(name)).collect();
    units.sort_unstable();
    Ok(units)
}

/// Counts the content of a directory, file by file.
///
/// # Errors
/// The directory cannot be read.
pub fn count_value_files(files: &dyn Files, dir: &Path, number: FileNumber) -> Result<DirectoryEnd> {
    let mut end = DirectoryEnd { number, bytes: 0, value_files: 0 };
    for unit in value_files_in(files, dir, number)? {
        let path = value_file_path(dir, number, unit);
        end.bytes += files.len_bytes(&path).map_err(|error| Error::io("read", &path, error))?;
        end.value_files += 1;
    }
    Ok(end)
}

/// Removes a directory with its content. The next opening removes what stays.
pub fn remove_directory(files: &dyn Files, path: &Path) {
    for name in files.list(path).unwrap_or_default() {
        let _ = files.remove(&path.join(name));
    }
    let _ = files.remove_dir(path);
}

#[cfg(test)]
#[path = "directories/tests.rs"]
mod tests;
