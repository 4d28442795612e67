//! Files that run out of space and fail on command, over any other [`Files`].
//!
//! A [`FaultyFiles`] counts every call that a store makes, holds what is written to a quota, and
//! fails the calls that a [`Fault`] names: the n-th call of all, every sync, each append to a part.
//! A store over one gets refusals; after [`FaultyFiles::heal`] it works again.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use folddb_host::files::FileLock;
use folddb_host::{AppendFile, AppendMode, AppendSync, Files, LockMode, ReadFile, WriteFile};
use parking_lot::Mutex;

/// A call of the host's files, by what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Creates a directory.
    CreateDir,
    /// Lists a directory.
    List,
    /// Asks for the length of a file.
    Len,
    /// Creates a file to write.
    Create,
    /// Appends to a file that is written once: parts, manifests.
    Write,
    /// Syncs such a file.
    WriteSync,
    /// Overwrites bytes of a file.
    WriteOver,
    /// Creates a segment.
    CreateAppend,
    /// Appends to a segment.
    Append,
    /// Syncs a segment.
    AppendSync,
    /// Makes the next window of a segment ready.
    Prepare,
    /// Opens a file for reading.
    Open,
    /// Reads.
    Read,
    /// Renames.
    Rename,
    /// Removes.
    Remove,
    /// Removes a directory.
    RemoveDir,
    /// Cuts.
    Cut,
    /// Links.
    Link,
    /// Syncs a directory.
    SyncDir,
    /// Locks.
    Lock,
    /// Asks for the space that is left.
    SpaceFree,
    /// Asks whether the file system can be written.
    CheckWritable,
}

impl Call {
    /// True when the call may change what is on the disk.
    pub fn changes(self) -> bool {
        !matches!(
            self,
            Call::List
                | Call::Len
                | Call::Open
                | Call::Read
                | Call::Lock
                | Call::SpaceFree
                | Call::CheckWritable
        )
    }
}

/// The disk is full.
pub const ENOSPC: i32 = 28;

/// The file system has turned read-only.
pub const EROFS: i32 = 30;

/// A quota is full.
pub const EDQUOT: i32 = 122;

/// Which calls fail, and how.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Only calls of these kinds count; of any kind where there are none.
    pub calls: Vec<Call>,
    /// Only on files whose name contains this; on any where it is empty.
    pub name: String,
    /// How many such calls go through first.
    pub skip: u64,
    /// How many fail then.
    pub times: u64,
    /// The error of the operating system, by its number (5 is EIO, 28 is ENOSPC).
    pub os_error: i32,
    /// Whether a write that fails leaves the first half of its bytes behind.
    pub half: bool,
}

impl Fault {
    /// All calls of these kinds fail with EIO until healed.
    pub fn on(calls: &[Call]) -> Fault {
        Fault {
            calls: calls.to_vec(),
            name: String::new(),
            skip: 0,
            times: u64::MAX,
            os_error: 5,
            half: false,
        }
    }

    /// The n-th call, counted from 0, fails with EIO, and none after it.
    pub fn nth_call(n: u64) -> Fault {
        Fault { skip: n, times: 1, ..Fault::on(&[]) }
    }

    fn matches(&self, call: Call, path: &Path) -> bool {
        let is_kind = self.calls.is_empty() || self.calls.contains(&call);
        is_kind && path.file_name().is_none_or(|name| name.to_string_lossy().contains(&self.name))
    }
}

/// The faults of a world, and what they have hit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) list: Vec<Fault>,
    pub(crate) failed: Vec<(Call, PathBuf)>,
}

/// A call that was made to fail.
pub(crate) struct Failure {
    pub(crate) error: io::Error,
    pub(crate) half: bool,
}

impl Faults {
    /// Decides about a call, which the faults count.
    pub(crate) fn judge(&mut self, call: Call, path: &Path) -> Result<(), Failure> {
        for fault in &mut self.list {
            if !fault.matches(call, path) || fault.times == 0 {
                continue;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
                continue;
            }
            fault.times -= 1;
            self.failed.push((call, path.to_owned()));
            return Err(Failure { error: io::Error::from_raw_os_error(fault.os_error), half: fault.half });
        }
        Ok(())
    }
}

#[derive(Default)]
struct World {
    calls: u64,
    faults: Faults,
    quota_bytes: Option<u64>,
    bytes: HashMap<PathBuf, u64>,
    most_bytes: u64,
    read_takes: Option<Duration>,
    asked: u64,
}

impl World {
    /// Notes that a file has `more` bytes more.
    fn grow(&mut self, path: &Path, more: u64) {
        *self.bytes.entry(path.to_owned()).or_default() += more;
        self.most_bytes = self.most_bytes.max(self.used_bytes());
    }

    fn used_bytes(&self) -> u64 {
        self.bytes.values().sum()
    }

    fn check_space(&self, more: u64) -> io::Result<()> {
        match self.quota_bytes {
            Some(quota) if self.used_bytes() + more > quota => Err(io::Error::from_raw_os_error(ENOSPC)),
            _ => Ok(()),
        }
    }
}

type Shared = Arc<Mutex<World>>;

fn judge(world: &Shared, call: Call, path: &Path) -> Result<(), Failure> {
    let mut world = world.lock();
    world.calls += 1;
    world.faults.judge(call, path)
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> io::Error {
        failure.error
    }
}

/// Files over other files, with a quota and faults. Clones are of one world.
#[derive(Clone)]
pub struct FaultyFiles {
    inner: Arc<dyn Files>,
    world: Shared,
}

impl FaultyFiles {
    /// Files that work, over `inner`.
    pub fn new(inner: Arc<dyn Files>) -> FaultyFiles {
        FaultyFiles { inner, world: Shared::default() }
    }

    /// Adds a fault.
    pub fn break_on(&self, fault: Fault) {
        self.world.lock().faults.list.push(fault);
    }

    /// Removes all faults, and the quota.
    pub fn heal(&self) {
        let mut world = self.world.lock();
        world.faults.list.clear();
        world.quota_bytes = None;
    }

    /// Leaves this many bytes free from now on; `None` for as many as the disk has.
    pub fn leave_free(&self, bytes: Option<u64>) {
        let mut world = self.world.lock();
        world.quota_bytes = bytes.map(|bytes| world.used_bytes() + bytes);
    }

    /// The most bytes that all files ever took together, measured whenever one grew.
    pub fn most_bytes(&self) -> u64 {
        self.world.lock().most_bytes
    }

    /// Each read takes at least so long from now on, as on a disk.
    pub fn slow_reads(&self, took: Duration) {
        self.world.lock().read_takes = Some(took);
    }

    /// How often bytes were asked for before they were read.
    pub fn asked(&self) -> u64 {
        self.world.lock().asked
    }

    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        self.world.lock().calls
    }

    /// The calls that were made to fail.
    pub fn failed(&self) -> Vec<(Call, PathBuf)> {
        self.world.lock().faults.failed.clone()
    }

    fn check(&self, call: Call, path: &Path) -> io::Result<()> {
        Ok(judge(&self.world, call, path)?)
    }
}

impl Files for FaultyFiles {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.check(Call::CreateDir, dir)?;
        self.inner.create_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.check(Call::List, dir)?;
        self.inner.list(dir)
    }

    fn len_bytes(&self, path: &Path) -> io::Result<u64> {
        self.check(Call::Len, path)?;
        self.inner.len_bytes(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.check(Call::Create, path)?;
        let inner = self.inner.create(path)?;
        self.world.lock().bytes.insert(path.to_owned(), 0);
        Ok(Box::new(FaultyWrite { inner, world: Arc::clone(&self.world), path: path.to_owned() }))
    }

    fn create_append(
        &self,
        path: &Path,
        len_bytes: u64,
        mode: AppendMode,
    ) -> io::Result<Box<dyn AppendFile>> {
        self.check(Call::CreateAppend, path)?;
        self.world.lock().check_space(len_bytes)?;
        let inner = self.inner.create_append(path, len_bytes, mode)?;
        self.world.lock().grow(path, len_bytes);
        Ok(Box::new(FaultyAppend { inner, world: Arc::clone(&self.world), path: path.to_owned() }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.check(Call::Open, path)?;
        let inner = self.inner.open(path)?;
        Ok(Arc::new(FaultyRead { inner, world: Arc::clone(&self.world), path: path.to_owned() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check(Call::Rename, from)?;
        self.inner.rename(from, to)?;
        let mut world = self.world.lock();
        if let Some(bytes) = world.bytes.remove(from) {
            world.bytes.insert(to.to_owned(), bytes);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.check(Call::Remove, path)?;
        self.inner.remove(path)?;
        self.world.lock().bytes.remove(path);
        Ok(())
    }

    fn cut(&self, path: &Path, len_bytes: u64) -> io::Result<()> {
        self.check(Call::Cut, path)?;
        self.inner.cut(path, len_bytes)
    }

    fn write_over(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.check(Call::WriteOver, path)?;
        self.inner.write_over(path, offset, bytes)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.check(Call::WriteSync, path)?;
        self.inner.sync_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.check(Call::RemoveDir, dir)?;
        self.inner.remove_dir(dir)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check(Call::Link, from)?;
        self.inner.link(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.check(Call::SyncDir, dir)?;
        self.inner.sync_dir(dir)
    }

    fn lock(&self, path: &Path, mode: LockMode) -> io::Result<Box<dyn FileLock>> {
        self.check(Call::Lock, path)?;
        self.inner.lock(path, mode)
    }

    fn space_free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.check(Call::SpaceFree, dir)?;
        let free = self.inner.space_free_bytes(dir)?;
        let world = self.world.lock();
        Ok(world.quota_bytes.map_or(free, |quota| quota.saturating_sub(world.used_bytes()).min(free)))
    }

    fn check_writable(&self, path: &Path) -> io::Result<()> {
        self.check(Call::CheckWritable, path)?;
        self.inner.check_writable(path)
    }
}

struct FaultyWrite {
    inner: Box<dyn WriteFile>,
    world: Shared,
    path: PathBuf,
}

impl FaultyWrite {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.inner.append(bytes)?;
        self.world.lock().grow(&self.path, bytes.len() as u64);
        Ok(())
    }
}

impl WriteFile for FaultyWrite {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(failure) = judge(&self.world, Call::Write, &self.path) {
            if failure.half {
                self.put(&bytes[..bytes.len() / 2])?;
            }
            return Err(failure.error);
        }
        self.world.lock().check_space(bytes.len() as u64)?;
        self.put(bytes)
    }

    fn start_writeback(&mut self) {
        self.inner.start_writeback();
    }

    fn sync(&mut self) -> io::Result<()> {
        judge(&self.world, Call::WriteSync, &self.path)?;
        self.inner.sync()
    }
}

struct FaultyAppend {
    inner: Box<dyn AppendFile>,
    world: Shared,
    path: PathBuf,
}

impl AppendFile for FaultyAppend {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(failure) = judge(&self.world, Call::Append, &self.path) {
            if failure.half {
                self.inner.append(&bytes[..bytes.len() / 2])?;
            }
            return Err(failure.error);
        }
        self.inner.append(bytes)
    }

    fn end(&self) -> u64 {
        self.inner.end()
    }

    fn syncer(&self) -> Arc<dyn AppendSync> {
        Arc::new(FaultySync {
            inner: self.inner.syncer(),
            world: Arc::clone(&self.world),
            path: self.path.clone(),
        })
    }
}

struct FaultySync {
    inner: Arc<dyn AppendSync>,
    world: Shared,
    path: PathBuf,
}

impl AppendSync for FaultySync {
    fn sync(&self) -> io::Result<()> {
        judge(&self.world, Call::AppendSync, &self.path)?;
        self.inner.sync()
    }

    fn prepare(&self) -> io::Result<()> {
        judge(&self.world, Call::Prepare, &self.path)?;
        self.inner.prepare()
    }
}

struct FaultyRead {
    inner: Arc<dyn ReadFile>,
    world: Shared,
    path: PathBuf,
}

impl ReadFile for FaultyRead {
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        judge(&self.world, Call::Read, &self.path)?;
        let takes = self.world.lock().read_takes;
        takes.into_iter().for_each(std::thread::sleep);
        self.inner.read_exact_at(offset, buf)
    }

    fn len_bytes(&self) -> io::Result<u64> {
        judge(&self.world, Call::Len, &self.path)?;
        self.inner.len_bytes()
    }

    fn will_need(&self, offset: u64, len_bytes: u64) {
        self.world.lock().asked += 1;
        self.inner.will_need(offset, len_bytes);
    }

    fn wont_need(&self, offset: u64, len_bytes: u64) {
        self.inner.wont_need(offset, len_bytes);
    }
}
