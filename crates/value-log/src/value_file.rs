//! An open file of any kind that holds values: it reads what a pointer, or a slot of a hashed
//! table, leads to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::checksum::{GrowingHash, key_hash};
use folddb_base::pointer::VALUE_ALIGN;
use folddb_base::{Error, FileNumber, Pointer, Result, TableId, ValuePlace, error};
use folddb_host::{Files, ReadFile, SystemHandle};
use folddb_layout::file_name::FileName;
use folddb_layout::hash_checkpoint::SEGMENT_BITS;

use crate::directories::{directory_path, value_file_path};
use crate::relocated::RelocatedFile;
use crate::segment::{missing, read_bytes, read_value, values_path};

/// Where a slot of a hashed table leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortPlace {
    /// The low [`SEGMENT_BITS`] bits of the number of the segment.
    pub segment_low: u32,
    /// The unit of 16 bytes at which the record begins; in a directory, the number of the value
    /// file.
    pub unit: u32,
}

/// A cache for pages of the maps of relocated values.
pub trait MapPages: Send + Sync {
    /// A number for one more file with pages in it.
    fn number_file(&self) -> u64;

    /// The page at an offset of the file with this number, from memory or by `read`.
    ///
    /// # Errors
    /// What `read` returns.
    fn page(&self, file: u64, offset: u64, read: &dyn Fn() -> Result<Arc<[u8]>>) -> Result<Arc<[u8]>>;
}

/// An open file that holds values.
pub enum ValueFile {
    /// A segment, in its own file.
    Segment(PlainFile),
    /// A segment that is a directory.
    ValueDirectory(ValueDirectory),
    /// A value file: one record.
    ValueFile(PlainFile),
    /// Relocated values, with the cache for pages of the map and the number of the file in the
    /// cache. Without a cache, each page is read from the file.
    Relocated(Box<RelocatedFile>, Option<(Arc<dyn MapPages>, u64)>),
}

/// An open file of records.
pub struct PlainFile {
    file: Arc<dyn ReadFile>,
    path: PathBuf,
    /// Its length when it was opened.
    len_bytes: u64,
}

/// A segment that is a directory. Its files are opened one by one.
pub struct ValueDirectory {
    files: Arc<dyn Files>,
    dir: PathBuf,
    path: PathBuf,
    number: FileNumber,
    is_direct: bool,
}

impl ValueDirectory {
    /// The directory with this number in the store in `dir`.
    pub(crate) fn new(
        files: &Arc<dyn Files>,
        dir: &Path,
        number: FileNumber,
        is_direct: bool,
    ) -> ValueDirectory {
        let path = directory_path(dir, number);
        ValueDirectory { files: Arc::clone(files), dir: dir.to_owned(), path, number, is_direct }
    }

    /// The value file that is this unit, open for reading.
    fn value_file(&self, unit: u32) -> Result<ValueFile> {
        let path = value_file_path(&self.dir, self.number, unit);
        PlainFile::open(&*self.files, path, self.is_direct).map(ValueFile::ValueFile)
    }
}

/// Bytes of a value that are read at a time to hash it.
const WINDOW_BYTES: u64 = 256 << 10;

impl PlainFile {
    fn open(files: &dyn Files, path: PathBuf, is_direct: bool) -> Result<PlainFile> {
        let opened = if is_direct { files.open_direct(&path) } else { files.open(&path) };
        let file = opened.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => error::corrupt(&path, 0, "it holds values, and it is not there"),
            _ => Error::io("open", &path, error),
        })?;
        let len_bytes = file.len_bytes().map_err(|error| Error::io("read", &path, error))?;
        Ok(PlainFile { file, path, len_bytes })
    }

    fn value<'r>(
        &self,
        of: (TableId, &[u8]),
        pointer: &Pointer<'_>,
        record: &'r mut Vec<u8>,
    ) -> Result<&'r [u8]> {
        read_value((&*self.file, self.len_bytes), &self.path, of, pointer, record)
    }
}

/// The pointer within a value file: its record begins at unit 0.
fn of_value_file<'p>(pointer: &Pointer<'p>) -> Pointer<'p> {
    Pointer { place: ValuePlace { unit: 0, ..pointer.place }, ..*pointer }
}

impl ValueFile {
    /// The segment of this name in the store in `dir`, in its own file or directory.
    ///
    /// # Errors
    /// Damage if the file is missing; a failed call.
    pub fn named(files: &Arc<dyn Files>, dir: &Path, name: FileName) -> Result<ValueFile> {
        let number = name.number().unwrap_or(FileNumber(0));
        match name {
            FileName::ValueDirectory(_) => {
                Ok(ValueFile::ValueDirectory(ValueDirectory::new(files, dir, number, false)))
            }
            _ => ValueFile::open(&**files, dir, number.0 as u32),
        }
    }

    /// The file that has the record at this place: this one, or a value file of this directory.
    ///
    /// # Errors
    /// Damage if it is missing; a failed call.
    pub fn at(self: &Arc<ValueFile>, place: ValuePlace) -> Result<Arc<ValueFile>> {
        match &**self {
            ValueFile::ValueDirectory(directory) => directory.value_file(place.unit).map(Arc::new),
            _ => Ok(Arc::clone(self)),
        }
    }

    /// Opens a segment of the store in `dir` that is in its own file.
    ///
    /// # Errors
    /// Damage if it is missing; a failed call.
    pub fn open(files: &dyn Files, dir: &Path, segment: u32) -> Result<ValueFile> {
        ValueFile::open_so(files, dir, segment, false)
    }

    pub(crate) fn open_so(files: &dyn Files, dir: &Path, segment: u32, is_direct: bool) -> Result<ValueFile> {
        let path = values_path(dir, FileNumber(u64::from(segment)));
        PlainFile::open(files, path, is_direct).map(ValueFile::Segment)
    }

    /// The offset and the number of the bytes of the value that a pointer of this key leads to.
    ///
    /// # Errors
    /// Damage if the file ends too soon; a failed call.
    pub fn extent(&self, key: &[u8], pointer: &Pointer<'_>) -> Result<(u64, u64)> {
        let (at, end) = match self {
            ValueFile::Segment(open) => (pointer.place.offset(), open.len_bytes),
            ValueFile::ValueFile(open) => (0, open.len_bytes),
            ValueFile::ValueDirectory(directory) => {
                return directory.value_file(pointer.place.unit)?.extent(key, pointer);
            }
            ValueFile::Relocated(file, cache) => {
                let unit = file.find(pointer.place, |at| page(file, cache, at))?;
                (ValuePlace { unit, ..pointer.place }.offset(), file.records_end())
            }
        };
        match at.checked_add(read_bytes(key, pointer)) {
            Some(upto) if upto <= end => Ok((upto - pointer.len, pointer.len)),
            _ => {
                Err(error::corrupt(self.path(), at, "the file ends before the value that a pointer leads to"))
            }
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        match self {
            ValueFile::Segment(open) | ValueFile::ValueFile(open) => &open.path,
            ValueFile::ValueDirectory(directory) => &directory.path,
            ValueFile::Relocated(file, _) => file.path(),
        }
    }

    /// Its file; none for a directory.
    pub(crate) fn file(&self) -> Option<&dyn ReadFile> {
        match self {
            ValueFile::Segment(open) | ValueFile::ValueFile(open) => Some(&*open.file),
            ValueFile::ValueDirectory(_) => None,
            ValueFile::Relocated(file, _) => Some(file.file()),
        }
    }

    /// See [`ReadFile::handle`].
    pub fn handle(&self) -> Option<SystemHandle<'_>> {
        self.file().and_then(ReadFile::handle)
    }

    /// See [`ReadFile::will_need`].
    pub fn will_need(&self, offset: u64, len_bytes: u64) {
        self.file().into_iter().for_each(|file| file.will_need(offset, len_bytes));
    }

    /// Asks the system for so many bytes of the record that a slot leads to, and does not wait for
    /// them. Nothing happens if it is not known where they are, or in a directory, whose files
    /// would have to be opened for it.
    pub fn ask_for(&self, place: ShortPlace, len_bytes: u64) {
        if let (Some(file), Ok(unit)) = (self.file(), self.unit_of(place)) {
            let from = u64::from(unit) * VALUE_ALIGN;
            file.will_need(from, len_bytes.min(self.len_bytes().saturating_sub(from)));
        }
    }

    /// Fills `buf` with the bytes at this offset.
    ///
    /// # Errors
    /// See [`ReadFile::read_exact_at`]; it is an error for a directory.
    pub fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
        let file = self.file().ok_or(std::io::ErrorKind::IsADirectory)?;
        file.read_exact_at(offset, buf)
    }

    /// Reads the front of the record that a slot leads to, as [`ValueFile::front`] does.
    pub fn front_of(&self, place: ShortPlace, bytes: u64, record: &mut Vec<u8>) -> Result<()> {
        self.front(self.unit_of(place)?, bytes, record)
    }

    /// The hash that a value of this key would have if it were the `len` bytes that begin `from`
    /// bytes after the beginning of the record that a slot leads to.
    pub fn hash_of(&self, place: ShortPlace, (from, len): (u64, u64), key: &[u8]) -> Result<u32> {
        match self {
            ValueFile::ValueDirectory(directory) => {
                directory.value_file(place.unit)?.hash_range((from, len), key)
            }
            _ => self.hash_range((u64::from(self.unit_of(place)?) * VALUE_ALIGN + from, len), key),
        }
    }

    /// Fills `buf` with the bytes that begin `from` bytes after the beginning of the record that a
    /// slot leads to.
    ///
    /// # Errors
    /// Damage if the file ends too soon; a failed read.
    pub fn bytes_behind(&self, place: ShortPlace, from: u64, buf: &mut [u8]) -> Result<()> {
        if let ValueFile::ValueDirectory(directory) = self {
            return directory.value_file(place.unit)?.read_all_at(from, buf);
        }
        self.read_all_at(u64::from(self.unit_of(place)?) * VALUE_ALIGN + from, buf)
    }

    fn read_all_at(&self, from: u64, buf: &mut [u8]) -> Result<()> {
        self.read_exact_at(from, buf).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => self.missing(from, "the file ends before the value"),
            _ => Error::io("read", self.path(), error),
        })
    }

    /// The same hash as that of [`ValueFile::hash_of`], of a range of the file. It is read through
    /// a window.
    pub fn hash_range(&self, (from, len): (u64, u64), key: &[u8]) -> Result<u32> {
        let mut hash = GrowingHash::new(key_hash(key));
        let mut window = vec![0; len.min(WINDOW_BYTES) as usize];
        let mut done = 0;
        while done < len {
            let now = &mut window[..(len - done).min(WINDOW_BYTES) as usize];
            self.read_all_at(from + done, now)?;
            hash.push(now);
            done += now.len() as u64;
        }
        Ok(hash.hash32())
    }

    /// The unit in this file of the record that a slot leads to.
    fn unit_of(&self, place: ShortPlace) -> Result<u32> {
        let ValueFile::Relocated(file, cache) = self else { return Ok(place.unit) };
        let Some(segment) = file.segment_of_low(place.segment_low, SEGMENT_BITS) else {
            let what = "a hashed table leads to a segment that it does not carry";
            return Err(error::corrupt(self.path(), 0, what));
        };
        file.find(ValuePlace { segment, unit: place.unit }, |at| page(file, cache, at))
    }

    /// Reads the front of the record at a unit of the file into `record`: this many bytes, or fewer
    /// if the file ends before. It is not checked.
    pub fn front(&self, unit: u32, bytes: u64, record: &mut Vec<u8>) -> Result<()> {
        let (offset, path, file) = match (self, self.file()) {
            (ValueFile::ValueDirectory(directory), _) => {
                return directory.value_file(unit)?.front(0, bytes, record);
            }
            (_, Some(file)) => (u64::from(unit) * VALUE_ALIGN, self.path(), file),
            (_, None) => return Ok(()), // never happens
        };
        let (mut file_bytes, may_be_cut) = match self {
            ValueFile::Relocated(file, _) => (file.records_end(), false),
            _ => (self.len_bytes(), true),
        };
        loop {
            record.resize(bytes.min(file_bytes.saturating_sub(offset)) as usize, 0);
            match file.read_exact_at(offset, record) {
                Ok(()) => return Ok(()),
                // The file was cut to its valid bytes after it was opened.
                Err(error) if may_be_cut && error.kind() == std::io::ErrorKind::UnexpectedEof => {
                    let now = file.len_bytes().map_err(|error| Error::io("read", path, error))?;
                    if now >= file_bytes {
                        return Err(Error::io("read", path, error));
                    }
                    file_bytes = now;
                }
                Err(error) => return Err(Error::io("read", path, error)),
            }
        }
    }

    /// Its length when it was opened; 0 for a directory.
    pub fn len_bytes(&self) -> u64 {
        match self {
            ValueFile::Segment(open) | ValueFile::ValueFile(open) => open.len_bytes,
            ValueFile::ValueDirectory(_) => 0,
            ValueFile::Relocated(file, _) => file.file_bytes(),
        }
    }

    /// Whether the file has this many bytes from the beginning of the record on that a slot leads
    /// to.
    ///
    /// # Errors
    /// Damage; a failed call.
    pub fn holds(&self, place: ShortPlace, bytes: u64) -> Result<bool> {
        let (from, end) = match self {
            ValueFile::ValueDirectory(directory) => (0, directory.value_file(place.unit)?.len_bytes()),
            ValueFile::Relocated(file, _) => {
                (u64::from(self.unit_of(place)?) * VALUE_ALIGN, file.records_end())
            }
            _ => (u64::from(self.unit_of(place)?) * VALUE_ALIGN, self.len_bytes()),
        };
        Ok(from.checked_add(bytes).is_some_and(|upto| upto <= end))
    }

    /// The error for a record that a slot leads to, if it is not what it should be.
    pub fn damaged(&self, place: ShortPlace, what: impl std::fmt::Display) -> Error {
        match (self, self.unit_of(place)) {
            (ValueFile::ValueDirectory(directory), _) => {
                error::corrupt(&value_file_path(&directory.dir, directory.number, place.unit), 0, what)
            }
            (_, Ok(unit)) => self.missing(u64::from(unit) * VALUE_ALIGN, what),
            (_, Err(error)) => error,
        }
    }

    fn missing(&self, offset: u64, what: impl std::fmt::Display) -> Error {
        match self.file() {
            Some(file) => missing(file, self.path(), offset, what),
            None => error::corrupt(self.path(), offset, what),
        }
    }

    /// Reads the value that a pointer leads to, in one read into `record`. For relocated values, it
    /// first reads a page of the map, if that is not cached.
    ///
    /// # Errors
    /// Damage; a failed read.
    pub fn value<'r>(
        &self,
        of: (TableId, &[u8]),
        pointer: &Pointer<'_>,
        record: &'r mut Vec<u8>,
    ) -> Result<&'r [u8]> {
        match self {
            ValueFile::Segment(open) => open.value(of, pointer, record),
            ValueFile::ValueFile(open) => open.value(of, &of_value_file(pointer), record),
            ValueFile::ValueDirectory(directory) => {
                directory.value_file(pointer.place.unit)?.value(of, pointer, record)
            }
            ValueFile::Relocated(file, cache) => file.value(of, pointer, record, |at| page(file, cache, at)),
        }
    }
}

/// A page of the map of a file of relocated values.
fn page(file: &RelocatedFile, cache: &Option<(Arc<dyn MapPages>, u64)>, at: u64) -> Result<Arc<[u8]>> {
    match cache {
        Some((cache, cached_as)) => cache.page(*cached_as, at, &|| file.read_page(at)),
        None => file.read_page(at),
    }
}
