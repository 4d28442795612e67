//! Segments of the value log that are directories: each value is a file of its own, an *object*.
//!
//! ```text
//!   000012.shelf/   000001.value  000002.value  000004.value        sealed; the third was dead, and is gone
//!   000031.shelf/   000001.value  000002.value                      active
//!   000044.shelf/                                                   next, made ahead by upkeep
//! ```
//!
//! A shelf has its number as any segment has, and an object its unit in it: so pointers, slots, liveness and reclaiming know
//! nothing of all this. An object is one record of the value log and nothing else. Its name is made of those two numbers,
//! never of its key.
//!
//! An object is written before the frame that points to it, as any value is. [`Shelves::sync`] syncs the files that were made
//! since, and the directories that name them; [`ValueLog`](crate::ValueLog) calls it with its own sync, and hands its shelves out to
//! the engine, which makes them, lists them and takes dead objects away.
//!
//! ```text
//!   lock     guards                                     held while
//!   tail     which units are taken, written, synced     never while a file is
//! ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use folddb_base::{Error, ErrorKind, FileNumber, NumberSource, Result, ValuePlace};
use folddb_host::sync::Mutex;
use folddb_host::{Files, Host};
use folddb_layout::file_name::{FileName, parse_object};

use crate::long_value::LongValue;
use crate::segment::next_segment_bytes;

/// Most objects of a shelf: what a directory holds that is listed in a few milliseconds.
pub const OBJECTS_MAX: u32 = 4096;

/// See the top of this file. Shared by all threads.
pub struct Shelves {
    host: Host,
    dir: PathBuf,
    bytes_max: u64,
    numbers: NumberSource,
    tail: Mutex<Tail>,
    poison: OnceLock<Error>,
}

#[derive(Default)]
struct Tail {
    active: Option<OpenShelf>,
    next: Option<OpenShelf>,
    /// Full ones that nobody has asked for yet, oldest first.
    sealed: Vec<OpenShelf>,
    is_closed: bool,
}

/// A shelf that takes objects, or will, or did until lately.
pub struct OpenShelf {
    number: FileNumber,
    /// It is full at so many bytes.
    full_bytes: u64,
    /// The last unit that was given out.
    last: u32,
    /// Objects that are there, and the bytes of their files.
    objects: u64,
    bytes: u64,
    /// Units whose files are being written.
    writing: BTreeSet<u32>,
    /// Units whose files may not be durable, and their bytes.
    unsynced: BTreeSet<u32>,
    unsynced_bytes: u64,
}

/// A shelf, and what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShelfEnd {
    /// The shelf.
    pub number: FileNumber,
    /// Bytes of its files.
    pub bytes: u64,
    /// How many they are.
    pub objects: u64,
}

impl OpenShelf {
    /// The number of its directory.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    fn has_room(&self) -> bool {
        self.last < OBJECTS_MAX && self.bytes < self.full_bytes
    }

    fn end(&self) -> ShelfEnd {
        ShelfEnd { number: self.number, bytes: self.bytes, objects: self.objects }
    }

    /// True when no file of it is being written, or is still to be synced.
    fn is_at_rest(&self) -> bool {
        self.writing.is_empty() && self.unsynced.is_empty()
    }
}

impl Tail {
    fn all(&self) -> impl Iterator<Item = &OpenShelf> {
        self.active.iter().chain(&self.next).chain(&self.sealed)
    }

    fn find(&mut self, number: FileNumber) -> Option<&mut OpenShelf> {
        let Tail { active, next, sealed, .. } = self;
        active.iter_mut().chain(next).chain(sealed).find(|shelf| shelf.number == number)
    }

    fn go_on_in(&mut self, next: OpenShelf) {
        self.sealed.extend(self.active.replace(next));
    }

    /// Gives out a unit of the active shelf, or of the next; none where neither has room.
    fn take_unit(&mut self, bytes: u64) -> Option<ValuePlace> {
        if !self.active.as_ref().is_some_and(OpenShelf::has_room) {
            let next = self.next.take()?;
            self.go_on_in(next);
        }
        let shelf = self.active.as_mut()?;
        shelf.last += 1;
        shelf.bytes += bytes;
        shelf.writing.insert(shelf.last);
        Some(ValuePlace { segment: shelf.number.0 as u32, unit: shelf.last })
    }
}

impl Shelves {
    /// None yet. A shelf is full with `bytes_max` at the latest.
    pub fn new(host: &Host, dir: &Path, bytes_max: u64, numbers: NumberSource) -> Shelves {
        Shelves {
            host: host.clone(),
            dir: dir.to_owned(),
            bytes_max,
            numbers,
            tail: Mutex::default(),
            poison: OnceLock::new(),
        }
    }

    /// Writes a record as an object and returns its place; none when there is no room, which [`Shelves::make`] and
    /// [`Shelves::adopt`] make.
    ///
    /// # Errors
    /// `NoSpace`: it is as if this had not been tried. `Poisoned`, `Closed`: see the kinds.
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
        let path = object_path(&self.dir, number, place.unit);
        let written = write(&*self.host.files, &path, record);
        let mut tail = self.tail.lock();
        let is_closed = tail.is_closed;
        if let Some(shelf) = tail.find(number) {
            shelf.writing.remove(&place.unit);
            match &written {
                Ok(()) if !is_closed => {
                    shelf.objects += 1;
                    shelf.unsynced.insert(place.unit);
                    shelf.unsynced_bytes += bytes;
                }
                _ => shelf.bytes -= bytes,
            }
        }
        drop(tail);
        if written.is_err() || is_closed {
            let _ = self.host.files.remove(&path); // what stays is dead, and goes when the shelf is looked through
        }
        match written {
            Ok(()) if is_closed => Err(closed()),
            Ok(()) => Ok(Some(place)),
            Err(error) if error.kind() == ErrorKind::NoSpace => Err(error),
            Err(error) => Err(self.poison(error.message())),
        }
    }

    /// Makes a shelf, for a value log that holds so many bytes: its directory is durable on return. Nothing is left on failure.
    ///
    /// # Errors
    /// `NoSpace`; any other failure of the operating system.
    pub fn make(&self, held_bytes: u64) -> Result<OpenShelf> {
        let number = (self.numbers)();
        if u32::try_from(number.0).is_err() {
            return Err(Error::invalid(format!(
                "the store has used up the numbers of its value segments at {number}"
            )));
        }
        let (files, path) = (&self.host.files, shelf_path(&self.dir, number));
        files.create_dir(&path).map_err(|error| Error::io("create the directory", &path, error))?;
        if let Err(error) = files.sync_dir(&self.dir) {
            let _ = files.remove_dir(&path);
            return Err(Error::io("sync", &self.dir, error));
        }
        Ok(OpenShelf {
            number,
            full_bytes: next_segment_bytes(held_bytes, self.bytes_max),
            last: 0,
            objects: 0,
            bytes: 0,
            writing: BTreeSet::new(),
            unsynced: BTreeSet::new(),
            unsynced_bytes: 0,
        })
    }

    /// Makes a long value that has ended the one object of a shelf that was made for it, durably. It takes no more.
    ///
    /// # Errors
    /// A failed call. Whoever made the shelf removes it then, with what is in it.
    pub fn shelve(&self, mut shelf: OpenShelf, value: &mut LongValue) -> Result<OpenShelf> {
        (shelf.last, shelf.objects, shelf.bytes) = (1, 1, value.record_bytes());
        value.rename_to(&object_path(&self.dir, shelf.number, 1))?;
        let path = shelf_path(&self.dir, shelf.number);
        self.host.files.sync_dir(&path).map_err(|error| Error::io("sync", &path, error))?;
        Ok(shelf)
    }

    /// Takes a full shelf over that is durably listed. The others that are open are full, too: what comes later lies on shelves of
    /// higher numbers.
    pub(crate) fn go_on_behind(&self, full: OpenShelf) {
        let mut tail = self.tail.lock();
        let Tail { active, next, sealed, .. } = &mut *tail;
        sealed.extend(active.take().into_iter().chain(next.take()).chain([full]));
    }

    /// Takes a shelf over that is durably listed. What was held ready for later still is.
    pub fn adopt(&self, shelf: OpenShelf) {
        let mut tail = self.tail.lock();
        let has_room = tail.active.as_ref().is_some_and(OpenShelf::has_room);
        if has_room && tail.next.is_none() {
            tail.next = Some(shelf);
        } else {
            tail.go_on_in(shelf);
        }
    }

    /// Removes a shelf that is not listed and was never handed over. What stays is harmless, and goes at the next opening.
    pub fn unmake(&self, shelf: OpenShelf) {
        let _ = self.host.files.remove_dir(&shelf_path(&self.dir, shelf.number));
    }

    /// Whether an object finds room.
    pub fn has_room(&self) -> bool {
        let tail = self.tail.lock();
        tail.active.iter().chain(&tail.next).any(OpenShelf::has_room)
    }

    /// Whether the next shelf should be made: the active one is half full.
    pub fn wants_next(&self) -> bool {
        let tail = self.tail.lock();
        let is_half_full =
            |shelf: &OpenShelf| shelf.last > OBJECTS_MAX / 2 || shelf.bytes > shelf.full_bytes / 2;
        let wants = tail.active.as_ref().is_some_and(is_half_full) && tail.next.is_none();
        wants && !tail.is_closed && self.poison.get().is_none()
    }

    /// Bytes of objects that were written since the last sync.
    pub fn unsynced_bytes(&self) -> u64 {
        self.tail.lock().all().map(|shelf| shelf.unsynced_bytes).sum()
    }

    /// Waits until all objects are durable that were there before the call, and their names. Costs next to nothing when they are.
    ///
    /// # Errors
    /// `Poisoned` when a sync failed, now or before.
    pub fn sync(&self) -> Result<()> {
        self.check_sound()?;
        let unsynced: Vec<(FileNumber, BTreeSet<u32>, u64)> = {
            let tail = self.tail.lock();
            let some = tail.all().filter(|shelf| !shelf.unsynced.is_empty());
            some.map(|shelf| (shelf.number, shelf.unsynced.clone(), shelf.unsynced_bytes)).collect()
        };
        for (number, units, bytes) in unsynced {
            self.sync_shelf(number, &units).map_err(|error| {
                self.poison(format_args!("cannot sync shelf {number} of values: {error}"))
            })?;
            if let Some(shelf) = self.tail.lock().find(number) {
                shelf.unsynced.retain(|unit| !units.contains(unit));
                let is_clean = shelf.unsynced.is_empty();
                shelf.unsynced_bytes = if is_clean { 0 } else { shelf.unsynced_bytes.saturating_sub(bytes) };
            }
        }
        Ok(())
    }

    fn sync_shelf(&self, number: FileNumber, units: &BTreeSet<u32>) -> std::io::Result<()> {
        let files = &self.host.files;
        for &unit in units {
            files.sync_file(&object_path(&self.dir, number, unit))?;
        }
        files.sync_dir(&shelf_path(&self.dir, number))
    }

    /// Full shelves that are durable. Each is named once.
    pub fn take_sealed(&self) -> Vec<ShelfEnd> {
        let mut tail = self.tail.lock();
        let (done, rest): (Vec<_>, Vec<_>) = tail.sealed.drain(..).partition(OpenShelf::is_at_rest);
        tail.sealed = rest;
        done.iter().map(OpenShelf::end).collect()
    }

    /// Bytes of the objects of shelves that are not sealed yet.
    pub fn open_bytes(&self) -> u64 {
        self.tail.lock().all().map(|shelf| shelf.bytes).sum()
    }

    /// Ends the active shelf, if it holds anything, so that it can be looked through soon.
    pub fn roll(&self) {
        let mut tail = self.tail.lock();
        if tail.active.as_ref().is_some_and(|shelf| shelf.last > 0) {
            let full = tail.active.take();
            tail.sealed.extend(full);
        }
    }

    /// What the shelves hold that are not sealed yet.
    pub fn ends(&self) -> Vec<ShelfEnd> {
        self.tail.lock().all().map(OpenShelf::end).collect()
    }

    /// Ends it: later objects are refused. Returns the shelves that hold something, all durable, and those that were never used.
    ///
    /// # Errors
    /// A sync failed, now or before.
    pub fn close(&self) -> Result<(Vec<ShelfEnd>, Vec<FileNumber>)> {
        self.tail.lock().is_closed = true;
        self.sync()?;
        let mut tail = self.tail.lock();
        let Tail { active, next, sealed, .. } = &mut *tail;
        let open = sealed.drain(..).chain(active.take()).chain(next.take());
        let (unused, used): (Vec<_>, Vec<_>) = open.partition(|shelf| shelf.last == 0);
        Ok((used.iter().map(OpenShelf::end).collect(), unused.iter().map(|shelf| shelf.number).collect()))
    }

    /// Forgets the shelves of a value log that is closed, or has failed. Later objects are refused.
    pub fn let_go(&self) {
        *self.tail.lock() = Tail { is_closed: true, ..Tail::default() };
    }

    fn check_sound(&self) -> Result<()> {
        match self.poison.get() {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    /// Lets nothing be written from now on, and returns why: the first cause, if there was one before.
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

// ---- names ----------------------------------------------------------------------------------------------

/// Where the shelf with this number lies.
pub fn shelf_path(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(FileName::Shelf(number).to_string())
}

/// Where an object lies.
pub fn object_path(dir: &Path, shelf: FileNumber, unit: u32) -> PathBuf {
    dir.join(FileName::Object(shelf, unit).to_string())
}

/// The units of the objects that are on a shelf, rising.
///
/// # Errors
/// The directory cannot be read.
pub fn objects_in(files: &dyn Files, dir: &Path, shelf: FileNumber) -> Result<Vec<u32>> {
    let path = shelf_path(dir, shelf);
    let names = files.list(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::corrupt(&path, 0, "it holds values, and it is not there"),
        _ => Error::io("list", &path, error),
    })?;
    let mut units: Vec<u32> = names.iter().filter_map(|name| parse_object(name)).collect();
    units.sort_unstable();
    Ok(units)
}

/// Counts what is on a shelf, file by file.
///
/// # Errors
/// The directory cannot be read.
pub fn count_objects(files: &dyn Files, dir: &Path, number: FileNumber) -> Result<ShelfEnd> {
    let mut end = ShelfEnd { number, bytes: 0, objects: 0 };
    for unit in objects_in(files, dir, number)? {
        let path = object_path(dir, number, unit);
        end.bytes += files.len_bytes(&path).map_err(|error| Error::io("read", &path, error))?;
        end.objects += 1;
    }
    Ok(end)
}

/// Removes a directory that is a shelf, with what is in it. What stays goes at the next opening.
pub fn remove_shelf(files: &dyn Files, path: &Path) {
    for name in files.list(path).unwrap_or_default() {
        let _ = files.remove(&path.join(name));
    }
    let _ = files.remove_dir(path);
}

#[cfg(test)]
#[path = "shelves/tests.rs"]
mod tests;
