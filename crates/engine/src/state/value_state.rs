//! The value log of an open store: its open segments, its files for reading, and what keeps
//! segments from being reclaimed.

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
    /// Held by whoever makes a segment: nobody makes a second one for the same want.
    pub making: Mutex<()>,
    pub files: ValueFiles,
    /// Held for reading from before values are put until what points to them is in a memtable: see
    /// `reclaim.rs`.
    pub placing: RwLock<()>,
    /// Of full segments that memtables may point to, where the log ended when everything that does
    /// was in it.
    pub fences: Mutex<BTreeMap<FileNumber, Lsn>>,
    /// Full segments that only parts point to.
    pub settled: Mutex<BTreeSet<FileNumber>>,
    /// Segments that hold pieces of values whose writers are not done, and how many writers; see
    /// `stream.rs`.
    pub pins: Mutex<BTreeMap<u32, usize>>,
    /// Full segments that were pinned when they were sealed, and have no fence yet.
    pub unfenced: Mutex<Vec<FileNumber>>,
    /// How often the parts of some table have changed, and as of when that was examined for
    /// segments that are dead.
    pub installs: AtomicU64,
    pub looked: AtomicU64,
    /// How long the files are of the segments that this opening has made.
    pub lens: Mutex<BTreeMap<FileNumber, u64>>,
    /// Whether the manifest says that there may be ropes, and long values of hashed tables.
    pub has_ropes: AtomicBool,
    pub has_long: AtomicBool,
    pub has_lasting_pieces: AtomicBool,
    /// What is known of directories since somebody looked through them.
    pub swept: Mutex<BTreeMap<FileNumber, Swept>>,
    /// The files of values that the manifest lists, and their bytes. Of their own, so that who asks
    /// waits for no edit that is being synced.
    pub listed: AtomicU64,
    pub listed_bytes: AtomicU64,
}

impl Values {
    /// The value_log of a store that is being opened.
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

    /// Bytes of the value segments: of those that are sealed, what counts, of the others their
    /// length; of open directories, what is in them.
    pub fn bytes(&self) -> u64 {
        self.listed_bytes.load(Ordering::Relaxed) + self.log.directories.open_bytes()
    }

    /// Held by whoever makes a segment.
    pub fn making(&self) -> MutexGuard<'_, ()> {
        self.making.lock()
    }

    /// Somebody has put a piece of a value into a segment, and nothing points to it yet.
    pub fn pin(&self, segment: u32) {
        *self.pins.lock().entry(segment).or_default() += 1;
    }

    /// That value is there, or never will be.
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

/// The cache of blocks, which keeps the pages of maps, too.
struct CachedPages(Arc<Shared>);

impl MapPages for CachedPages {
    fn number_file(&self) -> u64 {
        self.0.number_file()
    }

    fn page(&self, file: u64, offset: u64, read: &dyn Fn() -> Result<Arc<[u8]>>) -> Result<Arc<[u8]>> {
        self.0.page(file, offset, read)
    }
}

/// The files of values of the store in `dir`, as its manifest lists them: so many are kept open,
/// and they are read past the page cache where that is asked for.
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

/// What a directory held when it was looked through.
#[derive(Clone, Copy, Debug)]
pub struct Swept {
    /// ValueFiles that were left, and the bytes of their files.
    pub value_files: u64,
    pub bytes: u64,
    /// As many were alive then, but for snapshots.
    pub alive: u64,
    /// The snapshots of then.
    pub boundaries: u64,
}
