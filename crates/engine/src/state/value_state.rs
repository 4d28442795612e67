//! The value log of an open store: its open segments, its files for reading, and what prevents the
//! reclaim of segments.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use folddb_base::NumberSource;
use folddb_base::{FileNumber, Lsn, Result};
use folddb_host::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use folddb_host::sync::{Mutex, MutexGuard, RwLock};
use folddb_host::{Files, Host};
use folddb_manifest::State;
use folddb_run::Shared;
use folddb_value_log::ValueLog;
use folddb_value_log::ValueOptions;
use folddb_value_log::value_file::MapPages;

use folddb_value_log::ValueFiles;

/// The value log of an open store, and its files for reading.
pub struct Values {
    pub log: Arc<ValueLog>,
    /// Held while a segment is created: nobody creates a second one for the same need.
    pub making: Mutex<()>,
    pub files: ValueFiles,
    /// Held for reading from before values are put until their pointers are in a memtable: see
    /// `reclaim.rs`.
    pub placing: RwLock<()>,
    /// Full segments that memtables may point to, with the end of the log when all such pointers
    /// were in it.
    pub fences: Mutex<BTreeMap<FileNumber, Lsn>>,
    /// Full segments that only parts point to.
    pub settled: Mutex<BTreeSet<FileNumber>>,
    /// Segments with pieces of unfinished streams, and how many writers each has; see `stream.rs`.
    pub pins: Mutex<BTreeMap<u32, usize>>,
    /// Full segments that were pinned when they were sealed, and have no fence yet.
    pub unfenced: Mutex<Vec<FileNumber>>,
    /// How often parts have changed, and the count at the last search for dead segments.
    pub installs: AtomicU64,
    pub looked: AtomicU64,
    /// The file lengths of the segments that this opening has created.
    pub lens: Mutex<BTreeMap<FileNumber, u64>>,
    /// Whether the manifest requires the features for ropes, and for long values of hashed tables.
    pub has_ropes: AtomicBool,
    pub has_long: AtomicBool,
    pub has_lasting_pieces: AtomicBool,
    /// The state of directories at their last sweep.
    pub swept: Mutex<BTreeMap<FileNumber, Swept>>,
    /// The listed files of values, and their bytes. Kept separately, so that readers of these do
    /// not wait for an edit that is being synced.
    pub listed: AtomicU64,
    pub listed_bytes: AtomicU64,
}

impl Values {
    /// The value log of a store that is being opened.
    pub fn new(
        host: &Host,
        dir: &Path,
        options: ValueOptions,
        numbers: NumberSource,
        files: ValueFiles,
    ) -> Values {
        Values {
            log: Arc::new(ValueLog::new(host, dir, options, numbers)),
            making: Mutex::default(),
            files,
            placing: RwLock::default(),
            fences: Mutex::default(),
            settled: Mutex::default(),
            pins: Mutex::default(),
            unfenced: Mutex::default(),
            installs: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            lens: Mutex::default(),
            has_ropes: AtomicBool::new(false),
            has_long: AtomicBool::new(false),
            has_lasting_pieces: AtomicBool::new(false),
            swept: Mutex::default(),
            listed: AtomicU64::new(0),
            listed_bytes: AtomicU64::new(0),
        }
    }

    /// Closes all files: the store is closed.
    pub fn let_go(&self) {
        self.files.let_go();
        self.log.let_go();
    }

    /// Bytes of the value segments: the valid bytes of sealed ones, the lengths of the others, and
    /// the contents of open directories.
    pub fn bytes(&self) -> u64 {
        self.listed_bytes.load(Ordering::Relaxed) + self.log.directories.open_bytes()
    }

    /// The lock for creating a segment.
    pub fn making(&self) -> MutexGuard<'_, ()> {
        self.making.lock()
    }

    /// A piece of a value was put into a segment, and nothing points to it yet.
    pub fn pin(&self, segment: u32) {
        *self.pins.lock().entry(segment).or_default() += 1;
    }

    /// That value is complete, or never will be.
    pub(crate) fn unpin(&self, segment: u32) {
        let mut pins = self.pins.lock();
        if let Some(count) = pins.get_mut(&segment) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&segment);
            }
        }
    }
}

/// The block cache, which also keeps the pages of segment maps.
struct CachedPages(Arc<Shared>);

impl MapPages for CachedPages {
    fn number_file(&self) -> u64 {
        self.0.number_file()
    }

    fn page(&self, file: u64, offset: u64, read: &dyn Fn() -> Result<Arc<[u8]>>) -> Result<Arc<[u8]>> {
        self.0.page(file, offset, read)
    }
}

/// The value files of the store in `dir`, as its manifest lists them. A limited number is kept
/// open; reads bypass the page cache if the options say so.
pub fn value_files(
    dir: &Path,
    files: Arc<dyn Files>,
    cache: Arc<Shared>,
    state: &State,
    open_max_and_is_direct: (usize, bool),
) -> ValueFiles {
    let listed = state.values.keys().map(|&number| state.values_name(number));
    let moved = state.relocated_files.keys().map(|&file| (file, state.moved_in(file).collect()));
    ValueFiles::new(dir, files, Arc::new(CachedPages(cache)), listed, moved, open_max_and_is_direct)
}

/// The contents of a directory at its last sweep.
#[derive(Clone, Copy, Debug)]
pub struct Swept {
    /// Value files that were left, and their bytes.
    pub value_files: u64,
    pub bytes: u64,
    /// How many were live then, without snapshots.
    pub alive: u64,
    /// The version of the snapshots then.
    pub boundaries: u64,
}
