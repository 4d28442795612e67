//! The files of the value lane as readers use them, and which of these a reader can count on.
//!
//! A *roster* says in which file the values of each segment lie, between two edits that changed that. Who holds one finds every
//! value that the pictures of its time lead to: a file goes when the manifest, durably, no longer lists it, and nobody holds a
//! roster that has it.
//!
//! ```text
//!   round r       roster r: 12 31 44, each in a file of its own, and 57 as soon as it begins
//!   a get         notes r, searches; finds a pointer, and takes the present roster; when that is not r, searches again
//!   a scan        the same, before its first row, and holds the roster to its end
//!   round r+1     roster r+1: 44 57, and 12 and 31 in file 60, which holds what was alive of them
//! ```
//!
//! So a search that meets no pointer costs one load of a number. And nobody looks into file 60 for what it does not hold: who
//! has a picture of before round r+1 has an older roster too, whose files are whole.
//!
//! Called by `values`, `read`, `scan`, `own_files`, `reclaim` and `backup`.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::checksum::{GrowingHash, key_hash};
use folddb_base::pointer::VALUE_ALIGN;
use folddb_base::{Error, FileNumber, Pointer, Result, TableId, ValuePlace};
use folddb_hash::{SEGMENT_BITS, Slot};
use folddb_host::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use folddb_host::sync::{Mutex, RwLock};
use folddb_host::{Files, ReadFile};
use folddb_layout::file_name::{FileName, object_name};
use folddb_manifest::State;
use folddb_run::Shared;
use folddb_value_log::moved::MovedFile;
use folddb_value_log::segment::{read_bytes, read_value, values_path};
use folddb_value_log::shelves::{object_path, objects_in, remove_shelf, shelf_path};

/// The files of an open store.
pub struct ValueFiles {
    dir: PathBuf,
    files: Arc<dyn Files>,
    /// Pages of maps come by way of it.
    cache: Arc<Shared>,
    present: RwLock<Arc<Roster>>,
    /// How often a roster has taken the place of another.
    rounds: AtomicU64,
    /// Those that are open for reading, by their numbers.
    open: RwLock<BTreeMap<FileNumber, Arc<ValueFile>>>,
    open_max: usize,
    /// Whether they are read past the page cache.
    is_direct: bool,
}

/// Which file has the values of a segment, between two edits that changed that. Segments that begin meanwhile join it.
#[derive(Default)]
pub struct Roster {
    segments: RwLock<BTreeMap<u32, Arc<ListedFile>>>,
}

/// A file that holds values. It goes when it is retired and no roster that has it is held any more.
struct ListedFile {
    number: FileNumber,
    path: PathBuf,
    files: Arc<dyn Files>,
    /// Where it holds moved values: its number in the cache.
    cached_as: Option<u64>,
    is_shelf: bool,
    retired: AtomicBool,
    /// Of a shelf that has been looked through: the units that later rosters do not have, and the shelf as those have it, which so
    /// stays as long as this. What is dead for both goes with the older.
    swept: Mutex<Option<(Vec<u32>, Arc<ListedFile>)>>,
}

impl ListedFile {
    /// Bytes that go with it.
    fn retired_bytes(&self) -> u64 {
        let len = |path: &Path| self.files.len_bytes(path).unwrap_or(0);
        let objects = |units: &[u32]| units.iter().map(|&unit| len(&self.path.join(object_name(unit)))).sum();
        match (self.retired.load(Ordering::Acquire), self.is_shelf) {
            (true, true) => objects(&self.dir_units()),
            (true, false) => len(&self.path),
            (false, _) => self.swept.lock().as_ref().map_or(0, |(units, _)| objects(units)),
        }
    }

    /// The objects of a shelf.
    fn dir_units(&self) -> Vec<u32> {
        let dir = self.path.parent().unwrap_or(&self.path);
        objects_in(&*self.files, dir, self.number).unwrap_or_default()
    }
}

impl Drop for ListedFile {
    fn drop(&mut self) {
        // What stays behind is a leftover that the next opening removes, or the next look through a shelf.
        match (self.retired.load(Ordering::Acquire), self.is_shelf) {
            (true, true) => remove_shelf(&*self.files, &self.path),
            (true, false) => drop(self.files.remove(&self.path)),
            (false, _) => {
                let dead = self.swept.lock().take();
                for name in dead.iter().flat_map(|(units, _)| units).map(|&unit| object_name(unit)) {
                    let _ = self.files.remove(&self.path.join(name));
                }
            }
        }
    }
}

impl ValueFiles {
    /// Those of the store in `dir`, which are as the manifest says.
    pub fn new(
        dir: &Path,
        files: Arc<dyn Files>,
        cache: Arc<Shared>,
        state: &State,
        (open_max, is_direct): (usize, bool),
    ) -> ValueFiles {
        let made = ValueFiles {
            dir: dir.to_owned(),
            files,
            cache,
            present: RwLock::default(),
            rounds: AtomicU64::new(0),
            open: RwLock::default(),
            open_max,
            is_direct,
        };
        state.values.keys().for_each(|&number| made.join(state.values_name(number)));
        for &file in state.moved_files.keys() {
            let listed = made.listed_moved(file);
            let present = made.present.read();
            let mut segments = present.segments.write();
            segments.extend(state.moved_in(file).map(|segment| (segment.0 as u32, Arc::clone(&listed))));
        }
        made
    }

    fn listed(&self, name: FileName, number: FileNumber, cached_as: Option<u64>) -> Arc<ListedFile> {
        Arc::new(ListedFile {
            number,
            path: self.dir.join(name.to_string()),
            files: Arc::clone(&self.files),
            cached_as,
            is_shelf: matches!(name, FileName::Shelf(_)),
            retired: AtomicBool::new(false),
            swept: Mutex::default(),
        })
    }

    fn listed_moved(&self, file: FileNumber) -> Arc<ListedFile> {
        self.listed(FileName::Moved(file), file, Some(self.cache.number_file()))
    }

    /// A segment begins: it is in the present roster before anything points to it.
    pub fn join(&self, name: FileName) {
        if let Some(number) = name.number() {
            let file = self.listed(name, number, None);
            self.present.read().segments.write().insert(number.0 as u32, file);
        }
    }

    /// Nothing leads any more to these objects: a roster without them begins, and they go with the last that has them.
    pub fn swept(&self, dead: Vec<(FileNumber, Vec<u32>)>) {
        let dead = Mutex::new(dead);
        self.begin_round(&|segments| {
            for (number, units) in dead.lock().drain(..) {
                if let Some(present) = segments.get_mut(&(number.0 as u32)) {
                    let after = self.listed(FileName::Shelf(number), number, None);
                    let before = std::mem::replace(present, Arc::clone(&after));
                    *before.swept.lock() = Some((units, after));
                }
            }
            Vec::new()
        });
    }

    /// How many rosters there have been. Note it before a search whose pointers are to be followed.
    #[inline]
    pub(crate) fn round(&self) -> u64 {
        self.rounds.load(Ordering::Acquire)
    }

    /// The roster of a search that began in this round; none when another has come, and the search is to be done again.
    pub(crate) fn roster_of(&self, round: u64) -> Option<Arc<Roster>> {
        let present = self.present.read();
        (self.round() == round).then(|| Arc::clone(&present))
    }

    /// The present roster, for who holds the manifest's lock or is alone.
    pub fn present(&self) -> Arc<Roster> {
        Arc::clone(&self.present.read())
    }

    /// The manifest, durably, no longer lists these segments: a roster without them begins, and what only they were in goes with
    /// the last that has them.
    pub fn retire(&self, gone: &[FileNumber]) {
        self.begin_round(&|segments| {
            gone.iter().filter_map(|number| segments.remove(&(number.0 as u32))).collect()
        });
    }

    /// The manifest, durably, says that the values of these segments lie in this file: a roster that says so begins, and the files
    /// in which they were go with the last that has them, unless others are in them still.
    pub fn moved(&self, moved: &[FileNumber], file: FileNumber) {
        let listed = self.listed_moved(file);
        self.begin_round(&|segments| {
            let to = |number: &FileNumber| segments.insert(number.0 as u32, Arc::clone(&listed));
            moved.iter().filter_map(to).collect()
        });
    }

    /// A roster takes the place of the present one. `change` makes it, and returns the files that some segment has left.
    #[allow(clippy::type_complexity)]
    fn begin_round(&self, change: &dyn Fn(&mut BTreeMap<u32, Arc<ListedFile>>) -> Vec<Arc<ListedFile>>) {
        let mut present = self.present.write();
        let mut segments = present.segments.read().clone();
        let left = change(&mut segments);
        for file in &left {
            if !segments.values().any(|other| Arc::ptr_eq(other, file)) {
                file.retired.store(true, Ordering::Release);
                self.open.write().remove(&file.number);
            }
        }
        let before = std::mem::replace(&mut *present, Arc::new(Roster { segments: RwLock::new(segments) }));
        self.rounds.fetch_add(1, Ordering::AcqRel);
        drop(present);
        drop((before, left)); // files go without the lock
    }

    /// The segment with these low bits of its number, open for reading.
    pub(crate) fn open_low(&self, of: &Roster, low: u32) -> Result<Arc<ValueFile>> {
        self.open(of, of.number_of(low).unwrap_or(low))
    }

    /// Closes all files: the store is closed.
    pub fn let_go(&self) {
        self.open.write().clear();
    }

    /// The file that has the values of this segment, open for reading.
    pub fn open(&self, of: &Roster, segment: u32) -> Result<Arc<ValueFile>> {
        let Some(listed) = of.segments.read().get(&segment).cloned() else {
            return Err(Error::corrupt(
                &values_path(&self.dir, FileNumber(u64::from(segment))),
                0,
                "a value is said to be in it, and the manifest does not list it",
            ));
        };
        if let Some(opened) = self.open.read().get(&listed.number) {
            return Ok(Arc::clone(opened));
        }
        let opened = Arc::new(match listed.cached_as {
            None if listed.is_shelf => return Ok(Arc::new(self.shelf(listed.number))),
            None => ValueFile::open_so(&*self.files, &self.dir, segment, self.is_direct)?,
            Some(cached_as) => ValueFile::Moved(
                Box::new(MovedFile::open_so(&*self.files, &self.dir, listed.number, self.is_direct)?),
                Some((Arc::clone(&self.cache), cached_as)),
            ),
        });
        if let Some(file) = opened.file() {
            file.expect_scattered(); // values lie in the order of their writing, which no reader follows
        }
        let _present = self.present.read(); // whoever retires it holds this for writing
        if listed.retired.load(Ordering::Acquire) {
            return Ok(opened); // kept open it would keep its space
        }
        let mut open = self.open.write();
        if open.len() >= self.open_max {
            open.pop_first(); // the oldest, which reads of fresh values ask least for
        }
        open.insert(listed.number, Arc::clone(&opened));
        Ok(opened)
    }
}

impl ValueFiles {
    fn shelf(&self, number: FileNumber) -> ValueFile {
        let (files, dir) = (Arc::clone(&self.files), self.dir.clone());
        ValueFile::Shelf(Shelf {
            path: shelf_path(&dir, number),
            files,
            dir,
            number,
            is_direct: self.is_direct,
        })
    }
}

impl Roster {
    /// The files of these segments alone.
    pub fn only(&self, segments: &BTreeSet<u32>) -> Roster {
        let all = self.segments.read();
        let listed = |number: &u32| Some((*number, Arc::clone(all.get(number)?)));
        Roster { segments: RwLock::new(segments.iter().filter_map(listed).collect()) }
    }

    /// Bytes that later rosters do not have, of files that are not among `seen` yet.
    pub(crate) fn retired_bytes(&self, seen: &mut BTreeSet<FileNumber>) -> u64 {
        let segments = self.segments.read();
        segments.values().filter(|file| seen.insert(file.number)).map(|file| file.retired_bytes()).sum()
    }

    /// The number of the segment with these low bits, if it has one.
    pub fn number_of(&self, low: u32) -> Option<u32> {
        let segments = self.segments.read();
        let last = *segments.last_key_value()?.0;
        (low..=last).step_by(1 << SEGMENT_BITS).find(|number| segments.contains_key(number))
    }
}

/// An open file that holds values.
pub enum ValueFile {
    /// A segment, in its own file.
    Segment { file: Arc<dyn ReadFile>, path: PathBuf, len_bytes: u64 },
    /// A segment that is a directory.
    Shelf(Shelf),
    /// A file of it: one record.
    Object { file: Arc<dyn ReadFile>, path: PathBuf, len_bytes: u64 },
    /// Moved values, with the cache for the pages of the map and the file's number there; without one each page is read.
    Moved(Box<MovedFile>, Option<(Arc<Shared>, u64)>),
}

/// A segment that is a directory. Its files are opened one by one.
pub struct Shelf {
    files: Arc<dyn Files>,
    dir: PathBuf,
    path: PathBuf,
    number: FileNumber,
    is_direct: bool,
}

impl Shelf {
    /// The object that is this unit, open for reading.
    fn object(&self, unit: u32) -> Result<ValueFile> {
        let path = object_path(&self.dir, self.number, unit);
        let (file, len_bytes) = open_values(&*self.files, &path, self.is_direct)?;
        Ok(ValueFile::Object { file, path, len_bytes })
    }
}

/// Bytes of a long value that are read at a time to see that it is whole.
const WINDOW_BYTES: u64 = 256 << 10;

/// Opens a file that holds values.
fn open_values(files: &dyn Files, path: &Path, is_direct: bool) -> Result<(Arc<dyn ReadFile>, u64)> {
    let opened = if is_direct { files.open_direct(path) } else { files.open(path) };
    let file = opened.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::corrupt(path, 0, "it holds values, and it is not there"),
        _ => Error::io("open", path, error),
    })?;
    let len_bytes = file.len_bytes().map_err(|error| Error::io("read", path, error))?;
    Ok((file, len_bytes))
}

/// Where in the file of an object its record begins.
fn of_object<'p>(pointer: &Pointer<'p>) -> Pointer<'p> {
    Pointer { place: ValuePlace { unit: 0, ..pointer.place }, ..*pointer }
}

impl ValueFile {
    /// The segment of this name in the store in `dir`, as it lies in its own file or directory.
    ///
    /// # Errors
    /// Damage where the file is not there; a failed call.
    pub fn named(files: &Arc<dyn Files>, dir: &Path, name: FileName) -> Result<ValueFile> {
        let number = name.number().unwrap_or(FileNumber(0));
        match name {
            FileName::Shelf(_) => Ok(ValueFile::Shelf(Shelf {
                files: Arc::clone(files),
                dir: dir.to_owned(),
                path: shelf_path(dir, number),
                number,
                is_direct: false,
            })),
            _ => ValueFile::open(&**files, dir, number.0 as u32),
        }
    }

    /// The file in which the record at this place is: this one, or one of a directory.
    ///
    /// # Errors
    /// Damage where it is not there; a failed call.
    pub fn at(self: &Arc<ValueFile>, place: ValuePlace) -> Result<Arc<ValueFile>> {
        match &**self {
            ValueFile::Shelf(shelf) => shelf.object(place.unit).map(Arc::new),
            _ => Ok(Arc::clone(self)),
        }
    }

    /// Opens a segment of the store in `dir` that lies in its own file.
    ///
    /// # Errors
    /// Damage where it is not there; a failed call.
    pub fn open(files: &dyn Files, dir: &Path, segment: u32) -> Result<ValueFile> {
        ValueFile::open_so(files, dir, segment, false)
    }

    fn open_so(files: &dyn Files, dir: &Path, segment: u32, is_direct: bool) -> Result<ValueFile> {
        let path = values_path(dir, FileNumber(u64::from(segment)));
        let (file, len_bytes) = open_values(files, &path, is_direct)?;
        Ok(ValueFile::Segment { file, path, len_bytes })
    }

    /// Where the bytes of the value lie that a pointer of this key leads to, and how many they are.
    ///
    /// # Errors
    /// Damage, where the file ends before.
    pub fn extent(&self, key: &[u8], pointer: &Pointer<'_>) -> Result<(u64, u64)> {
        let (at, end) = match self {
            ValueFile::Segment { len_bytes, .. } => (pointer.place.offset(), *len_bytes),
            ValueFile::Object { len_bytes, .. } => (0, *len_bytes),
            ValueFile::Shelf(shelf) => return shelf.object(pointer.place.unit)?.extent(key, pointer),
            ValueFile::Moved(file, cache) => {
                let unit = file.find(pointer.place, |at| page(file, cache, at))?;
                (ValuePlace { unit, ..pointer.place }.offset(), file.records_end())
            }
        };
        match at.checked_add(read_bytes(key, pointer)) {
            Some(upto) if upto <= end => Ok((upto - pointer.len, pointer.len)),
            _ => {
                Err(Error::corrupt(self.path(), at, "the file ends before the value that a pointer leads to"))
            }
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            ValueFile::Segment { path, .. } | ValueFile::Object { path, .. } => path,
            ValueFile::Shelf(shelf) => &shelf.path,
            ValueFile::Moved(file, _) => file.path(),
        }
    }

    /// The one file that it is; a directory is none.
    fn file(&self) -> Option<&dyn ReadFile> {
        match self {
            ValueFile::Segment { file, .. } | ValueFile::Object { file, .. } => Some(&**file),
            ValueFile::Shelf(_) => None,
            ValueFile::Moved(file, _) => Some(file.file()),
        }
    }

    /// See [`ReadFile::fd`].
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.file().and_then(ReadFile::fd)
    }

    pub fn will_need(&self, offset: u64, len_bytes: u64) {
        self.file().into_iter().for_each(|file| file.will_need(offset, len_bytes));
    }

    pub fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
        let file = self.file().ok_or(std::io::ErrorKind::IsADirectory)?;
        file.read_exact_at(offset, buf)
    }

    /// Reads the front of the record that a slot leads to, as [`ValueFile::front`] does.
    pub(crate) fn front_of(&self, slot: Slot, bytes: u64, record: &mut Vec<u8>) -> Result<()> {
        self.front(self.unit_of(slot)?, bytes, record)
    }

    /// The hash, as one of a value of this key, of so many bytes that stand `from` bytes behind the beginning of the record that a
    /// slot leads to.
    pub(crate) fn hash_of(&self, slot: Slot, (from, len): (u64, u64), key: &[u8]) -> Result<u32> {
        match self {
            ValueFile::Shelf(shelf) => shelf.object(slot.unit())?.hash_stretch((from, len), key),
            _ => self.hash_stretch((u64::from(self.unit_of(slot)?) * VALUE_ALIGN + from, len), key),
        }
    }

    /// Fills `buf` with what stands `from` bytes behind the beginning of the record that a slot
    /// leads to.
    ///
    /// # Errors
    /// Damage where the file ends before; a failed read.
    pub(crate) fn bytes_of(&self, slot: Slot, from: u64, buf: &mut [u8]) -> Result<()> {
        if let ValueFile::Shelf(shelf) = self {
            return shelf.object(slot.unit())?.read_all_at(from, buf);
        }
        self.read_all_at(u64::from(self.unit_of(slot)?) * VALUE_ALIGN + from, buf)
    }

    fn read_all_at(&self, from: u64, buf: &mut [u8]) -> Result<()> {
        self.read_exact_at(from, buf).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                Error::corrupt(self.path(), from, "the file ends before the value does")
            }
            _ => Error::io("read", self.path(), error),
        })
    }

    /// The hash, as [`ValueFile::hash_of`] gives it, of a stretch of the file, which is read
    /// through a window.
    pub(crate) fn hash_stretch(&self, (from, len): (u64, u64), key: &[u8]) -> Result<u32> {
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

    /// Where in this file the record begins that a slot leads to.
    fn unit_of(&self, slot: Slot) -> Result<u32> {
        let ValueFile::Moved(file, cache) = self else { return Ok(slot.unit()) };
        let Some(segment) = file.segment_of_low(slot.segment(), SEGMENT_BITS) else {
            let what = "a hashed table leads to a segment that it does not carry";
            return Err(Error::corrupt(self.path(), 0, what));
        };
        file.find(ValuePlace { segment, unit: slot.unit() }, |at| page(file, cache, at))
    }

    /// Reads the front of the record that begins at a unit of the file, so many bytes of it or as many as there are, into `record`. It is
    /// not looked at.
    pub fn front(&self, unit: u32, bytes: u64, record: &mut Vec<u8>) -> Result<()> {
        let (offset, path, file) = match (self, self.file()) {
            (ValueFile::Shelf(shelf), _) => return shelf.object(unit)?.front(0, bytes, record),
            (_, Some(file)) => (u64::from(unit) * VALUE_ALIGN, self.path(), file),
            (_, None) => return Ok(()), // cannot be
        };
        let (mut file_bytes, may_be_cut) = match self {
            ValueFile::Moved(file, _) => (file.records_end(), false),
            _ => (self.len_bytes(), true),
        };
        loop {
            record.resize(bytes.min(file_bytes.saturating_sub(offset)) as usize, 0);
            match file.read_exact_at(offset, record) {
                Ok(()) => return Ok(()),
                // It was cut to what counts since it was opened.
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

    /// Its length when it was opened.
    pub fn len_bytes(&self) -> u64 {
        match self {
            ValueFile::Segment { len_bytes, .. } | ValueFile::Object { len_bytes, .. } => *len_bytes,
            ValueFile::Shelf(_) => 0,
            ValueFile::Moved(file, _) => file.file_bytes(),
        }
    }

    /// Whether so many bytes stand in the file from where the record begins that a slot leads to.
    ///
    /// # Errors
    /// Damage; a failed call.
    pub fn holds(&self, slot: Slot, bytes: u64) -> Result<bool> {
        let (from, end) = match self {
            ValueFile::Shelf(shelf) => (0, shelf.object(slot.unit())?.len_bytes()),
            ValueFile::Moved(file, _) => (u64::from(self.unit_of(slot)?) * VALUE_ALIGN, file.records_end()),
            _ => (u64::from(self.unit_of(slot)?) * VALUE_ALIGN, self.len_bytes()),
        };
        Ok(from.checked_add(bytes).is_some_and(|upto| upto <= end))
    }

    /// The error of a record that a slot leads to and that is not what it should be.
    pub fn damaged(&self, slot: Slot, what: impl std::fmt::Display) -> Error {
        match (self, self.unit_of(slot)) {
            (ValueFile::Shelf(shelf), _) => {
                Error::corrupt(&object_path(&shelf.dir, shelf.number, slot.unit()), 0, what)
            }
            (_, Ok(unit)) => Error::corrupt(self.path(), u64::from(unit) * VALUE_ALIGN, what),
            (_, Err(error)) => error,
        }
    }

    /// Reads the value that a pointer leads to, by one read into `record`, and one of a page of the map where values were moved
    /// and no cache has it.
    ///
    /// # Errors
    /// Damage, a failed read.
    pub fn value<'r>(
        &self,
        of: (TableId, &[u8]),
        pointer: &Pointer<'_>,
        record: &'r mut Vec<u8>,
    ) -> Result<&'r [u8]> {
        match self {
            ValueFile::Segment { file, path, len_bytes } => {
                read_value((&**file, *len_bytes), path, of, pointer, record)
            }
            ValueFile::Object { file, path, len_bytes } => {
                read_value((&**file, *len_bytes), path, of, &of_object(pointer), record)
            }
            ValueFile::Shelf(shelf) => shelf.object(pointer.place.unit)?.value(of, pointer, record),
            ValueFile::Moved(file, cache) => file.value(of, pointer, record, |at| page(file, cache, at)),
        }
    }
}

/// A page of the map of a file of moved values.
fn page(file: &MovedFile, cache: &Option<(Arc<Shared>, u64)>, at: u64) -> Result<Arc<[u8]>> {
    match cache {
        Some((cache, cached_as)) => cache.page(*cached_as, at, || file.read_page(at)),
        None => file.read_page(at),
    }
}
