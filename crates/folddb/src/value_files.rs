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
//! Called by `values`, `read`, `scan`, `reclaim` and `backup`.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::pointer::VALUE_ALIGN;
use folddb_base::{Error, FileNumber, Pointer, Result, TableId, ValuePlace};
use folddb_hash::SEGMENT_BITS;
use folddb_host::sync::RwLock;
use folddb_host::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use folddb_host::{Files, ReadFile};
use folddb_journal::moved::{MovedFile, moved_path};
use folddb_journal::values::{read_bytes, read_value, values_path};
use folddb_manifest::State;
use folddb_run::Shared;

/// The files of an open store.
pub(crate) struct ValueFiles {
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
pub(crate) struct Roster {
    segments: RwLock<BTreeMap<u32, Arc<ListedFile>>>,
}

/// A file that holds values. It goes when it is retired and no roster that has it is held any more.
struct ListedFile {
    number: FileNumber,
    path: PathBuf,
    files: Arc<dyn Files>,
    /// Where it holds moved values: its number in the cache.
    cached_as: Option<u64>,
    retired: AtomicBool,
}

impl Drop for ListedFile {
    fn drop(&mut self) {
        if self.retired.load(Ordering::Acquire) {
            let _ = self.files.remove(&self.path); // one that stays behind is a leftover that the next opening removes
        }
    }
}

impl ValueFiles {
    /// Those of the store in `dir`, which are as the manifest says.
    pub(crate) fn new(
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
        state.values.keys().for_each(|&number| made.join(number));
        for &file in state.moved_files.keys() {
            let listed = made.listed_moved(file);
            let present = made.present.read();
            let mut segments = present.segments.write();
            segments.extend(state.moved_in(file).map(|segment| (segment.0 as u32, Arc::clone(&listed))));
        }
        made
    }

    fn listed(&self, number: FileNumber, path: PathBuf, cached_as: Option<u64>) -> Arc<ListedFile> {
        let files = Arc::clone(&self.files);
        Arc::new(ListedFile { number, path, files, cached_as, retired: AtomicBool::new(false) })
    }

    fn listed_moved(&self, file: FileNumber) -> Arc<ListedFile> {
        self.listed(file, moved_path(&self.dir, file), Some(self.cache.number_file()))
    }

    /// A segment begins: it is in the present roster before anything points to it.
    pub(crate) fn join(&self, number: FileNumber) {
        let file = self.listed(number, values_path(&self.dir, number), None);
        self.present.read().segments.write().insert(number.0 as u32, file);
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
    pub(crate) fn present(&self) -> Arc<Roster> {
        Arc::clone(&self.present.read())
    }

    /// The manifest, durably, no longer lists these segments: a roster without them begins, and what only they were in goes with
    /// the last that has them.
    pub(crate) fn retire(&self, gone: &[FileNumber]) {
        self.begin_round(&|segments| {
            gone.iter().filter_map(|number| segments.remove(&(number.0 as u32))).collect()
        });
    }

    /// The manifest, durably, says that the values of these segments lie in this file: a roster that says so begins, and the files
    /// in which they were go with the last that has them, unless others are in them still.
    pub(crate) fn moved(&self, moved: &[FileNumber], file: FileNumber) {
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
    pub(crate) fn let_go(&self) {
        self.open.write().clear();
    }

    /// The file that has the values of this segment, open for reading.
    pub(crate) fn open(&self, of: &Roster, segment: u32) -> Result<Arc<ValueFile>> {
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
            None => ValueFile::open_so(&*self.files, &self.dir, segment, self.is_direct)?,
            Some(cached_as) => ValueFile::Moved(
                Box::new(MovedFile::open_so(&*self.files, &self.dir, listed.number, self.is_direct)?),
                Some((Arc::clone(&self.cache), cached_as)),
            ),
        });
        opened.file().expect_scattered(); // values lie in the order of their writing, which no reader follows
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

impl Roster {
    /// The number of the segment with these low bits, if it has one.
    pub(crate) fn number_of(&self, low: u32) -> Option<u32> {
        let segments = self.segments.read();
        let last = *segments.last_key_value()?.0;
        (low..=last).step_by(1 << SEGMENT_BITS).find(|number| segments.contains_key(number))
    }
}

/// An open file that holds values.
pub(crate) enum ValueFile {
    /// A segment, in its own file.
    Segment { file: Arc<dyn ReadFile>, path: PathBuf, len_bytes: u64 },
    /// Moved values, with the cache for the pages of the map and the file's number there; without one each page is read.
    Moved(Box<MovedFile>, Option<(Arc<Shared>, u64)>),
}

impl ValueFile {
    /// Opens a segment of the store in `dir` that lies in its own file.
    ///
    /// # Errors
    /// Damage where it is not there; a failed call.
    pub(crate) fn open(files: &dyn Files, dir: &Path, segment: u32) -> Result<ValueFile> {
        ValueFile::open_so(files, dir, segment, false)
    }

    fn open_so(files: &dyn Files, dir: &Path, segment: u32, is_direct: bool) -> Result<ValueFile> {
        let path = values_path(dir, FileNumber(u64::from(segment)));
        let opened = if is_direct { files.open_direct(&path) } else { files.open(&path) };
        let file = opened.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::corrupt(&path, 0, "it holds values, and it is not there"),
            _ => Error::io("open", &path, error),
        })?;
        let len_bytes = file.len_bytes().map_err(|error| Error::io("read", &path, error))?;
        Ok(ValueFile::Segment { file, path, len_bytes })
    }

    /// Where the bytes of the value lie that a pointer of this key leads to, and how many they are.
    ///
    /// # Errors
    /// Damage, where the file ends before.
    pub(crate) fn extent(&self, key: &[u8], pointer: &Pointer<'_>) -> Result<(u64, u64)> {
        let (at, end) = match self {
            ValueFile::Segment { len_bytes, .. } => (pointer.place.offset(), *len_bytes),
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

    pub(crate) fn path(&self) -> &Path {
        match self {
            ValueFile::Segment { path, .. } => path,
            ValueFile::Moved(file, _) => file.path(),
        }
    }

    fn file(&self) -> &dyn ReadFile {
        match self {
            ValueFile::Segment { file, .. } => &**file,
            ValueFile::Moved(file, _) => file.file(),
        }
    }

    /// See [`ReadFile::fd`].
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.file().fd()
    }

    pub(crate) fn will_need(&self, offset: u64, len_bytes: u64) {
        self.file().will_need(offset, len_bytes);
    }

    pub(crate) fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
        self.file().read_exact_at(offset, buf)
    }

    /// Reads the front of the record that begins at a unit, so many bytes of it or as many as there are, into `record`. It is not
    /// looked at.
    pub(crate) fn front(&self, unit: u32, bytes: u64, record: &mut Vec<u8>) -> Result<()> {
        let (offset, path, file) = (u64::from(unit) * VALUE_ALIGN, self.path(), self.file());
        let mut file_bytes = self.len_bytes();
        if matches!(self, ValueFile::Moved(..)) {
            return Err(self.damaged(unit, "a hashed table leads there, and its values do not move"));
        }
        loop {
            record.resize(bytes.min(file_bytes.saturating_sub(offset)) as usize, 0);
            match file.read_exact_at(offset, record) {
                Ok(()) => return Ok(()),
                // It was cut to what counts since it was opened.
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
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
    pub(crate) fn len_bytes(&self) -> u64 {
        match self {
            ValueFile::Segment { len_bytes, .. } => *len_bytes,
            ValueFile::Moved(file, _) => file.file_bytes(),
        }
    }

    /// The error of a record that is not what it should be.
    pub(crate) fn damaged(&self, unit: u32, what: &str) -> Error {
        Error::corrupt(self.path(), u64::from(unit) * VALUE_ALIGN, what)
    }

    /// Reads the value that a pointer leads to, by one read into `record`, and one of a page of the map where values were moved
    /// and no cache has it.
    ///
    /// # Errors
    /// Damage, a failed read.
    pub(crate) fn value<'r>(
        &self,
        of: (TableId, &[u8]),
        pointer: &Pointer<'_>,
        record: &'r mut Vec<u8>,
    ) -> Result<&'r [u8]> {
        match self {
            ValueFile::Segment { file, path, len_bytes } => {
                read_value((&**file, *len_bytes), path, of, pointer, record)
            }
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
