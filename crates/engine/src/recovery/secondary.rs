//! Reading a store that another process writes to: a secondary shows the state at its opening,
//! which does not change.
//!
//! No lock is taken, and the writer does not know about it. The files of the store are opened at
//! once and held, so files that the writer removes stay available while the store is open: a file
//! without a name keeps its bytes. Two things do not last, and reading them is an error that says
//! so, never another value: values in files of their own, which are opened when they are read; and
//! values that nothing pointed to when the writer was reopened, which cuts them off the end of
//! their segment.
//!
//! ```text
//!   hold      every file of the directory, by name
//!   load      the manifest, as far as it goes at that moment; a file that it names and that came since is held, too
//!   replay    the log from where that manifest says, up to its end, or up to a batch on what the manifest does not list yet
//! ```
//!
//! So it has everything that was acknowledged before the opening began, except `Buffered` batches,
//! and all or nothing of each batch. The writer's work between two of these steps may make them
//! inconsistent: then all steps are repeated, and only a persistent error is reported.
//!
//! Called by `primary::open`. `Store::refresh` opens such a store again.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use folddb_base::{Error, ErrorKind};
use folddb_host::files::FileLock;
use folddb_host::sync::Mutex;
use folddb_host::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use folddb_host::{AppendFile, AppendMode, Files, LockMode, ReadFile, SystemHandle, WriteFile};
use folddb_layout::file_name::FileName;
use folddb_layout::frame;
use folddb_manifest::State;

use crate::values::load::rope_of;

/// How often an opening that met a busy writer starts again.
pub const ATTEMPTS_MAX: u64 = 20;

/// The first wait before that.
pub const PAUSE: Duration = Duration::from_millis(2);

/// Whether an error may be caused by concurrent work of the writer.
pub fn may_pass(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Io)
}

/// Whether a batch names only what the manifest lists: the writer may have continued since that was
/// read.
pub fn is_known(payload: &[u8], state: &State) -> bool {
    frame::records(payload).flatten().all(|record| {
        let values = rope_of(&record);
        let has_values = |segment: u32| state.has_values(folddb_base::FileNumber(segment.into()));
        record.table.0 < state.next_table_id
            && values.is_none_or(|rope| rope.pointers().all(|pointer| has_values(pointer.place.segment)))
    })
}

/// The files of a directory, held open. Writes go to the underlying files: backups, in other
/// places.
pub struct Held {
    dir: PathBuf,
    beneath: Arc<dyn Files>,
    held: Mutex<BTreeMap<PathBuf, Arc<HeldFile>>>,
    /// The store is open: a missing file that is not held was removed after that.
    is_open: AtomicBool,
}

/// A file that is held, and the longest that it was seen.
struct HeldFile {
    file: Arc<dyn ReadFile>,
    longest_bytes: AtomicU64,
}

impl Held {
    pub fn new(dir: &Path, beneath: Arc<dyn Files>) -> Held {
        Held { dir: dir.to_owned(), beneath, held: Mutex::default(), is_open: AtomicBool::new(false) }
    }

    /// The store is open: everything it points to exists.
    pub fn set_open(&self) {
        self.is_open.store(true, Ordering::Release);
        self.held.lock().values().for_each(|file| file.look());
    }

    /// Whether a path is that of a file of the store: in its directory, or in a directory in it.
    fn is_own(&self, path: &Path) -> bool {
        let Ok(within) = path.strip_prefix(&self.dir) else { return false };
        within.components().all(|part| matches!(part, Component::Normal(_)))
    }

    fn held(&self, path: &Path) -> Option<Arc<HeldFile>> {
        self.held.lock().get(path).cloned()
    }

    fn hold(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        if let Some(file) = self.held(path) {
            return Ok(file);
        }
        let file = self.beneath.open(path)?;
        if path.parent() != Some(&*self.dir) {
            return Ok(file);
        }
        let file = Arc::new(HeldFile { file, longest_bytes: AtomicU64::new(0) });
        file.look();
        self.held.lock().insert(path.to_owned(), Arc::clone(&file));
        Ok(file)
    }
}

impl HeldFile {
    /// Notes how long the file is now.
    fn look(&self) {
        let _ = self.len_bytes(); // a failed read is reported when the file is needed
    }
}

impl ReadFile for HeldFile {
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(offset, buf)
    }

    fn len_bytes(&self) -> io::Result<u64> {
        let bytes = self.file.len_bytes()?;
        self.longest_bytes.fetch_max(bytes, Ordering::Relaxed);
        Ok(bytes)
    }

    fn taken_since(&self, offset: u64) -> Option<io::Error> {
        let now_bytes = self.file.len_bytes().ok()?;
        let is_taken = (now_bytes..self.longest_bytes.load(Ordering::Relaxed)).contains(&offset);
        is_taken.then(|| refresh("the writer has cut off its end"))
    }

    fn handle(&self) -> Option<SystemHandle<'_>> {
        self.file.handle()
    }

    fn expect_scattered(&self) {
        self.file.expect_scattered();
    }

    fn will_need(&self, offset: u64, len_bytes: u64) {
        self.file.will_need(offset, len_bytes);
    }

    fn wont_need(&self, offset: u64, len_bytes: u64) {
        self.file.wont_need(offset, len_bytes);
    }
}

/// The error for a file that the writer has removed while this store was reading.
fn refresh(why: &str) -> io::Error {
    let message = format!("{why} since this secondary was opened: refresh the store");
    io::Error::new(io::ErrorKind::StaleNetworkFileHandle, message)
}

/// Whether a store reads files of this name in its directory.
fn is_read(name: &str) -> bool {
    let name = FileName::parse(name);
    name.is_some_and(|name| !matches!(name, FileName::Lock | FileName::ValueDirectory(_)))
}

impl Files for Held {
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let names = self.beneath.list(dir)?;
        if dir != self.dir {
            return Ok(names);
        }
        for name in names.iter().filter(|name| is_read(name)) {
            match self.hold(&dir.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        let held = self.held.lock();
        let held = held.keys().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
        let others = names.into_iter().filter(|name| !is_read(name));
        let all: BTreeSet<String> = others.chain(held).collect();
        Ok(all.into_iter().collect())
    }

    fn len_bytes(&self, path: &Path) -> io::Result<u64> {
        self.held(path).map_or_else(|| self.beneath.len_bytes(path), |file| file.len_bytes())
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.hold(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if self.is_open.load(Ordering::Acquire) && self.is_own(path) => {
                refresh("the writer has removed it")
            }
            _ => error,
        })
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.beneath.create_dir(dir)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.beneath.create(path)
    }

    fn create_append(&self, path: &Path, len: u64, mode: AppendMode) -> io::Result<Box<dyn AppendFile>> {
        self.beneath.create_append(path, len, mode)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.beneath.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.beneath.remove(path)
    }

    fn cut(&self, path: &Path, len_bytes: u64) -> io::Result<()> {
        self.beneath.cut(path, len_bytes)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.beneath.sync_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.beneath.remove_dir(dir)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.beneath.link(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.beneath.sync_dir(dir)
    }

    fn lock(&self, path: &Path, mode: LockMode) -> io::Result<Box<dyn FileLock>> {
        self.beneath.lock(path, mode)
    }

    fn space_free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.beneath.space_free_bytes(dir)
    }

    fn check_writable(&self, path: &Path) -> io::Result<()> {
        self.beneath.check_writable(path)
    }
}
