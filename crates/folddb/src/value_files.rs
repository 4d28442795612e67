//! The files of the value lane as readers use them, and which of these a reader can count on.
//!
//! A *roster* is the list of the segments between two edits that took some of them away. Who holds one finds every value that
//! the pictures of its time lead to: a file goes when the manifest, durably, no longer lists it, and nobody holds a roster that
//! has it.
//!
//! ```text
//!   round r       roster r: 12 31 44, and 57 as soon as it begins
//!   a get         notes r, searches; finds a pointer, and takes the present roster; when that is not r, searches again
//!   a scan        the same, before its first row, and holds the roster to its end
//! ```
//!
//! So a search that meets no pointer costs one load of a number. Called by `values`, `read`, `scan`, `reclaim` and `backup`.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::pointer::VALUE_ALIGN;
use folddb_base::{Error, FileNumber, Pointer, Result, TableId};
use folddb_hash::SEGMENT_BITS;
use folddb_host::sync::RwLock;
use folddb_host::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use folddb_host::{Files, ReadFile};
use folddb_journal::values::{read_bytes, read_value, values_path};

/// The files of an open store.
pub(crate) struct ValueFiles {
    dir: PathBuf,
    files: Arc<dyn Files>,
    present: RwLock<Arc<Roster>>,
    /// How often a roster has taken the place of another.
    rounds: AtomicU64,
    /// Those that are open for reading.
    open: RwLock<BTreeMap<u32, Arc<ValueFile>>>,
    open_max: usize,
    /// Whether they are read past the page cache.
    is_direct: bool,
}

/// The segments between two edits that took some away. Those that begin meanwhile join it.
#[derive(Default)]
pub(crate) struct Roster {
    segments: RwLock<BTreeMap<u32, Arc<SegmentFile>>>,
}

/// A segment's file, which goes when it is retired and no roster that has it is held any more.
struct SegmentFile {
    path: PathBuf,
    files: Arc<dyn Files>,
    retired: AtomicBool,
}

impl Drop for SegmentFile {
    fn drop(&mut self) {
        if self.retired.load(Ordering::Acquire) {
            let _ = self.files.remove(&self.path); // one that stays behind is a leftover that the next opening removes
        }
    }
}

impl ValueFiles {
    /// Those of the store in `dir`, which has these segments.
    pub(crate) fn new(
        dir: &Path,
        files: Arc<dyn Files>,
        segments: impl IntoIterator<Item = FileNumber>,
        (open_max, is_direct): (usize, bool),
    ) -> ValueFiles {
        let made = ValueFiles {
            dir: dir.to_owned(),
            files,
            present: RwLock::default(),
            rounds: AtomicU64::new(0),
            open: RwLock::default(),
            open_max,
            is_direct,
        };
        segments.into_iter().for_each(|number| made.join(number));
        made
    }

    /// A segment begins: it is in the present roster before anything points to it.
    pub(crate) fn join(&self, number: FileNumber) {
        let path = values_path(&self.dir, number);
        let file = SegmentFile { path, files: Arc::clone(&self.files), retired: AtomicBool::new(false) };
        self.present.read().segments.write().insert(number.0 as u32, Arc::new(file));
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

    /// The manifest, durably, no longer lists these: a roster without them begins, and they go with the last that has them.
    pub(crate) fn retire(&self, numbers: &[FileNumber]) {
        let mut present = self.present.write();
        let mut segments = present.segments.read().clone();
        for number in numbers {
            if let Some(file) = segments.remove(&(number.0 as u32)) {
                file.retired.store(true, Ordering::Release);
            }
            self.open.write().remove(&(number.0 as u32));
        }
        let before = std::mem::replace(&mut *present, Arc::new(Roster { segments: RwLock::new(segments) }));
        self.rounds.fetch_add(1, Ordering::AcqRel);
        drop(present);
        drop(before); // files go without the lock
    }

    /// The segment with these low bits of its number, open for reading.
    pub(crate) fn open_low(&self, of: &Roster, low: u32) -> Result<Arc<ValueFile>> {
        self.open(of, of.number_of(low).unwrap_or(low))
    }

    /// Closes all files: the store is closed.
    pub(crate) fn let_go(&self) {
        self.open.write().clear();
    }

    /// The segment with this number, open for reading.
    pub(crate) fn open(&self, of: &Roster, number: u32) -> Result<Arc<ValueFile>> {
        if let Some(opened) = self.open.read().get(&number) {
            return Ok(Arc::clone(opened));
        }
        let path = values_path(&self.dir, FileNumber(u64::from(number)));
        if !of.segments.read().contains_key(&number) {
            return Err(Error::corrupt(
                &path,
                0,
                "a value is said to be in it, and the manifest does not list it",
            ));
        }
        let opened = Arc::new(ValueFile::open_so(&*self.files, &self.dir, number, self.is_direct)?);
        opened.file.expect_scattered(); // values lie in the order of their writing, which no reader follows
        let present = self.present.read();
        if !present.segments.read().contains_key(&number) {
            return Ok(opened); // retired meanwhile: kept open it would keep its space
        }
        let mut open = self.open.write();
        if open.len() >= self.open_max {
            open.pop_first(); // the oldest, which reads of fresh values ask least for
        }
        open.insert(number, Arc::clone(&opened));
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

/// An open value segment.
pub(crate) struct ValueFile {
    file: Arc<dyn ReadFile>,
    path: PathBuf,
    len_bytes: u64,
}

impl ValueFile {
    /// Opens a segment of the store in `dir`.
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
        Ok(ValueFile { file, path, len_bytes })
    }

    /// Where the bytes of the value lie that a pointer of this key leads to, and how many they are.
    ///
    /// # Errors
    /// Damage, where the file ends before.
    pub(crate) fn extent(&self, key: &[u8], pointer: &Pointer<'_>) -> Result<(u64, u64)> {
        let at = pointer.place.offset();
        match at.checked_add(read_bytes(key, pointer)) {
            Some(end) if end <= self.len_bytes => Ok((end - pointer.len, pointer.len)),
            _ => Err(Error::corrupt(
                &self.path,
                at,
                "the segment ends before the value that a pointer leads to",
            )),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// See [`ReadFile::fd`].
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.file.fd()
    }

    pub(crate) fn will_need(&self, offset: u64, len_bytes: u64) {
        self.file.will_need(offset, len_bytes);
    }

    pub(crate) fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
        self.file.read_exact_at(offset, buf)
    }

    /// Reads the front of the record that begins at a unit, so many bytes of it or as many as there are, into `record`. It is not
    /// looked at.
    pub(crate) fn front(&self, unit: u32, bytes: u64, record: &mut Vec<u8>) -> Result<()> {
        let offset = u64::from(unit) * VALUE_ALIGN;
        let mut file_bytes = self.len_bytes;
        loop {
            record.resize(bytes.min(file_bytes.saturating_sub(offset)) as usize, 0);
            match self.file.read_exact_at(offset, record) {
                Ok(()) => return Ok(()),
                // It was cut to what counts since it was opened.
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                    let now = self.file.len_bytes().map_err(|error| Error::io("read", &self.path, error))?;
                    if now >= file_bytes {
                        return Err(Error::io("read", &self.path, error));
                    }
                    file_bytes = now;
                }
                Err(error) => return Err(Error::io("read", &self.path, error)),
            }
        }
    }

    /// Its length when it was opened.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// The error of a record that is not what it should be.
    pub(crate) fn damaged(&self, unit: u32, what: &str) -> Error {
        Error::corrupt(&self.path, u64::from(unit) * VALUE_ALIGN, what)
    }

    /// Reads the value that a pointer leads to, by one read into `record`.
    ///
    /// # Errors
    /// Damage, a failed read.
    pub(crate) fn value<'r>(
        &self,
        of: (TableId, &[u8]),
        pointer: &Pointer<'_>,
        record: &'r mut Vec<u8>,
    ) -> Result<&'r [u8]> {
        read_value((&*self.file, self.len_bytes), &self.path, of, pointer, record)
    }
}
