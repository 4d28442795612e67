//! The budget of the disk: an account of every file of a store, asked before any of them grows.
//!
//! Each kind of writer leaves some of the budget free for those that it depends on. So a store at
//! its bound can always flush its memory, and deletes and merges can reduce it:
//!
//! ```text
//!   0 ........................................................... disk_bytes_max
//!   | writes, values | merges           | segments       | flushes, the manifest, opening
//!                    ^ stop_bytes       ^ merge keeps    ^ log keeps
//! ```
//!
//! A store that exceeds its budget when it is opened, because that was reduced, may grow by as much
//! as background work and deletes need; ordinary writes wait until it has shrunk.
//!
//! A file counts with its length; a segment with its full length from the beginning. Without a
//! budget nothing is counted. Called by `recovery`, which puts the quota between the store and its
//! files.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::{Error, Result};
use folddb_host::files::FileLock;
use folddb_host::sync::Mutex;
use folddb_host::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use folddb_host::{AppendFile, AppendMode, Files, Host, LockMode, ReadFile, WriteFile};
use folddb_layout::file_name::FileName;

use crate::options::Options;

/// How much of a budget is kept free for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// For everything in memory, and once more for a flush that a crash has interrupted.
    pub flush_bytes: u64,
    /// A segment.
    pub segment_bytes: u64,
    /// For the output of a merge before its inputs are removed.
    pub merge_bytes: u64,
}

impl Shares {
    pub fn of(options: &Options, max_bytes: u64) -> Shares {
        let memtables_bytes = options.memtables_bytes_max() as u64;
        let parts_bytes = options.part_bytes.saturating_mul(options.parts_of_merges());
        Shares {
            flush_bytes: memtables_bytes / 2 * 5 + (256 << 10),
            segment_bytes: options.segment_bytes,
            merge_bytes: parts_bytes.min(max_bytes / 4),
        }
    }

    /// What segments leave free.
    fn journal_keeps(&self) -> u64 {
        self.flush_bytes
    }

    /// What merges leave free: that much, and two segments for deletes.
    fn merge_keeps(&self) -> u64 {
        self.flush_bytes.saturating_add(self.segment_bytes.saturating_mul(2))
    }

    /// What ordinary writes leave free.
    pub(crate) fn writes_keep(&self) -> u64 {
        self.merge_keeps().saturating_add(self.merge_bytes)
    }

    /// The least budget with which anything can be written: two segments in addition to what is
    /// kept.
    fn least_bytes(&self) -> u64 {
        self.writes_keep().saturating_add(self.segment_bytes.saturating_mul(2))
    }
}

/// The bytes of a store's files, and their limit.
pub struct DiskQuota {
    dir: PathBuf,
    max_bytes: u64,
    shares: Shares,
    files: Mutex<HashMap<PathBuf, u64>>,
    used_bytes: AtomicU64,
    /// While a store is being opened, the whole budget may be used: nothing else needs it.
    is_open: AtomicBool,
    /// The limit of a store that exceeded its budget when it was opened, while it is over.
    over_bytes: u64,
    /// True until such a store has shrunk enough for ordinary writes.
    is_over: AtomicBool,
}

impl DiskQuota {
    /// The quota of the store in `dir` with its existing files; none if there is no budget.
    ///
    /// # Errors
    /// The budget is too small for these options; the directory cannot be read.
    pub fn open(dir: &Path, options: &Options) -> Result<Option<Arc<DiskQuota>>> {
        let Some(max_bytes) = options.disk_bytes_max.filter(|_| !options.read_only) else { return Ok(None) };
        let shares = Shares::of(options, max_bytes);
        if max_bytes < shares.least_bytes() {
            return Err(Error::invalid(format!(
                "a disk_bytes_max of {max_bytes} leaves no space for data: with this memory_bytes, segment_bytes and part_bytes \
                 it takes {} at least",
                shares.least_bytes()
            )));
        }
        let files = &options.host.files;
        let names = files.list(dir).map_err(|error| Error::io("list", dir, error))?;
        let mut there: HashMap<PathBuf, u64> = HashMap::new();
        for path in names.iter().map(|name| dir.join(name)) {
            let inside = if is_directory(&path) { files.list(&path).unwrap_or_default() } else { Vec::new() };
            let paths =
                inside.iter().map(|name| path.join(name)).chain((!is_directory(&path)).then(|| path.clone()));
            there.extend(paths.filter_map(|path| files.len_bytes(&path).ok().map(|len| (path, len))));
        }
        let used_bytes = there.values().sum();
        Ok(Some(Arc::new(DiskQuota {
            dir: dir.to_owned(),
            max_bytes,
            shares,
            files: Mutex::new(there),
            used_bytes: AtomicU64::new(used_bytes),
            is_open: AtomicBool::new(false),
            over_bytes: used_bytes.saturating_add(shares.writes_keep()),
            is_over: AtomicBool::new(used_bytes > max_bytes),
        })))
    }

    /// The store is open: from now on everyone leaves free what others need.
    pub(crate) fn set_open(&self) {
        self.is_open.store(true, Ordering::Release);
    }

    /// The bytes of all files.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Acquire)
    }

    /// What ordinary writes leave free.
    pub(crate) fn writes_keep(&self) -> u64 {
        self.shares.writes_keep()
    }

    /// Whether ordinary writes are allowed.
    pub(crate) fn takes_writes(&self) -> bool {
        self.used_bytes() <= self.max_bytes.saturating_sub(self.writes_keep())
    }

    /// How much may be written for this user before a write is refused.
    pub(crate) fn room_bytes(&self, who: SpaceUser) -> u64 {
        self.bound_bytes().saturating_sub(self.keeps(who)).saturating_sub(self.used_bytes())
    }

    fn keeps(&self, who: SpaceUser) -> u64 {
        match who {
            SpaceUser::Flush => 0,
            SpaceUser::Log => self.shares.journal_keeps(),
            SpaceUser::Values => self.shares.writes_keep(),
            SpaceUser::Merge => self.shares.merge_keeps(),
        }
    }

    /// The files of a host, through the quota.
    pub fn host(self: &Arc<DiskQuota>, inner: &Host, who: SpaceUser) -> Host {
        let keeps = self.keeps(who);
        let files = Accounted { inner: Arc::clone(&inner.files), quota: Arc::clone(self), keeps };
        Host { files: Arc::new(files), ..inner.clone() }
    }

    /// Books `more` bytes of a file, if the budget has them.
    fn take(&self, path: &Path, more: u64, keeps: u64) -> io::Result<()> {
        let mut files = self.files.lock();
        let used = self.used_bytes();
        let keeps = if self.is_open.load(Ordering::Acquire) { keeps } else { 0 };
        if used.saturating_add(more) > self.bound_bytes().saturating_sub(keeps) {
            let what = format!("the store uses {used} bytes of its budget of {}", self.max_bytes);
            return Err(io::Error::new(io::ErrorKind::StorageFull, what));
        }
        *files.entry(path.to_owned()).or_default() += more;
        self.used_bytes.store(used + more, Ordering::Release);
        Ok(())
    }

    fn bound_bytes(&self) -> u64 {
        if self.takes_writes() {
            self.is_over.store(false, Ordering::Release);
        }
        if self.is_over.load(Ordering::Acquire) { self.over_bytes } else { self.max_bytes }
    }

    fn forget(&self, path: &Path) {
        let mut files = self.files.lock();
        let bytes = files.remove(path).unwrap_or(0);
        self.used_bytes.fetch_sub(bytes, Ordering::AcqRel);
    }

    fn cut(&self, path: &Path, len_bytes: u64) {
        let mut files = self.files.lock();
        if let Some(bytes) = files.get_mut(path) {
            let less = bytes.saturating_sub(len_bytes);
            *bytes -= less;
            self.used_bytes.fetch_sub(less, Ordering::AcqRel);
        }
    }

    fn renamed(&self, from: &Path, to: &Path) {
        let mut files = self.files.lock();
        let replaced = files.remove(to).unwrap_or(0);
        let bytes = files.remove(from).unwrap_or(0);
        let kept = if self.is_own(to) { bytes } else { 0 };
        if kept > 0 {
            files.insert(to.to_owned(), kept);
        }
        self.used_bytes.fetch_sub(replaced + bytes - kept, Ordering::AcqRel);
    }

    /// Files in other places, such as those of a backup, are not the store's. Values in files of
    /// their own are one directory deeper.
    fn is_own(&self, path: &Path) -> bool {
        let is_in = |path: &Path| path.parent() == Some(&*self.dir);
        is_in(path) || path.parent().is_some_and(|dir| is_in(dir) && is_directory(dir))
    }
}

/// Whether this is a directory of values in files of their own.
fn is_directory(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(FileName::parse);
    matches!(name, Some(FileName::ValueDirectory(_)))
}

/// The kind of work for which a file grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceUser {
    /// Flushes, the manifest, opening: what everything else waits for.
    Flush,
    /// The log.
    Log,
    /// The value log, which only ordinary writes need.
    Values,
    /// Merges, and reclaim.
    Merge,
}

struct Accounted {
    inner: Arc<dyn Files>,
    quota: Arc<DiskQuota>,
    keeps: u64,
}

impl Files for Accounted {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.create_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn len_bytes(&self, path: &Path) -> io::Result<u64> {
        self.inner.len_bytes(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let inner = self.inner.create(path)?;
        if !self.quota.is_own(path) {
            return Ok(inner);
        }
        let (quota, path, keeps) = (Arc::clone(&self.quota), path.to_owned(), self.keeps);
        Ok(Box::new(AccountedWrite { inner, quota, path, keeps }))
    }

    fn create_append(&self, path: &Path, len: u64, mode: AppendMode) -> io::Result<Box<dyn AppendFile>> {
        if !self.quota.is_own(path) {
            return self.inner.create_append(path, len, mode);
        }
        self.quota.take(path, len, self.keeps)?;
        self.inner.create_append(path, len, mode).inspect_err(|_| self.quota.forget(path))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.inner.open(path)
    }

    fn open_direct(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.inner.open_direct(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)?;
        self.quota.renamed(from, to);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)?;
        self.quota.forget(path);
        Ok(())
    }

    fn cut(&self, path: &Path, len_bytes: u64) -> io::Result<()> {
        self.inner.cut(path, len_bytes)?;
        self.quota.cut(path, len_bytes);
        Ok(())
    }

    fn write_over(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.write_over(path, offset, bytes)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.inner.sync_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.remove_dir(dir)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.link(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.sync_dir(dir)
    }

    fn lock(&self, path: &Path, mode: LockMode) -> io::Result<Box<dyn FileLock>> {
        self.inner.lock(path, mode)
    }

    fn is_forked(&self) -> bool {
        self.inner.is_forked()
    }

    fn space_free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.inner.space_free_bytes(dir)
    }

    fn check_writable(&self, path: &Path) -> io::Result<()> {
        self.inner.check_writable(path)
    }
}

struct AccountedWrite {
    inner: Box<dyn WriteFile>,
    quota: Arc<DiskQuota>,
    path: PathBuf,
    keeps: u64,
}

impl WriteFile for AccountedWrite {
    /// Bytes that could not be written stay booked until the file is removed: some of them may be
    /// there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.quota.take(&self.path, bytes.len() as u64, self.keeps)?;
        self.inner.append(bytes)
    }

    fn start_writeback(&mut self) {
        self.inner.start_writeback();
    }

    fn sync(&mut self) -> io::Result<()> {
        self.inner.sync()
    }
}

#[cfg(test)]
mod tests;
