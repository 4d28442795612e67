//! A file system in memory. Its power can fail, its disk can be full, and its calls can be made to
//! fail.

#![allow(dead_code)] // three crates test against it, and each needs its own half

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use folddb_host::files::{
    AppendFile, AppendMode, AppendSync, FileLock, Files, LockMode, ReadFile, WriteFile,
};
use folddb_host::{Host, chance::SystemChance, clock::SystemClock};

const SECTOR_BYTES: usize = 512;

/// The disk; clones share it.
#[derive(Clone, Default)]
pub(crate) struct World {
    disk: Arc<Mutex<Disk>>,
}

#[derive(Default)]
struct Disk {
    names: BTreeMap<PathBuf, Content>,
    durable_names: BTreeSet<PathBuf>,
    /// Bytes that writes may still take; half of what does not fit is written.
    space_bytes: Option<u64>,
    fails: Option<Fail>,
    syncs: u64,
    reads: u64,
}

type Content = Arc<Mutex<Bytes>>;

#[derive(Default)]
struct Bytes {
    seen: Vec<u8>,
    synced: Vec<u8>,
}

/// What fails from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fail {
    Sync,
    Write,
    /// A write, for a quota that is full.
    Quota,
    Read,
    /// The n-th read of all, counted from 1, and no other.
    NthRead(u64),
}

impl World {
    pub(crate) fn host(&self) -> Host {
        Host {
            files: Arc::new(self.clone()),
            clock: Arc::new(SystemClock::default()),
            chance: Arc::new(SystemChance::default()),
        }
    }

    pub(crate) fn fail(&self, fails: Option<Fail>) {
        self.disk.lock().unwrap().fails = fails;
    }

    pub(crate) fn set_space(&self, bytes: Option<u64>) {
        self.disk.lock().unwrap().space_bytes = bytes;
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.disk.lock().unwrap().syncs
    }

    /// Reads of files so far.
    pub(crate) fn reads(&self) -> u64 {
        self.disk.lock().unwrap().reads
    }

    /// What a process started after the death of this one sees: all that was handed to the kernel.
    pub(crate) fn after_kill(&self) -> World {
        let after = World::default();
        for (path, content) in &self.disk.lock().unwrap().names {
            after.put(path, &content.lock().unwrap().seen);
        }
        after
    }

    /// What exists after a power cut: `pick` decides for each unsynced sector and each unsynced
    /// name whether it reached the disk.
    pub(crate) fn after_power_cut(&self, pick: &mut dyn FnMut() -> bool) -> World {
        let after = World::default();
        let disk = self.disk.lock().unwrap();
        for (path, content) in &disk.names {
            if !disk.durable_names.contains(path) && !pick() {
                continue;
            }
            let content = content.lock().unwrap();
            let len = if pick() { content.seen.len() } else { content.synced.len() };
            let mut bytes = vec![0; len];
            for (index, sector) in bytes.chunks_mut(SECTOR_BYTES).enumerate() {
                let image = if pick() { &content.seen } else { &content.synced };
                let start = (index * SECTOR_BYTES).min(image.len());
                let end = (start + sector.len()).min(image.len());
                sector[..end - start].copy_from_slice(&image[start..end]);
            }
            after.put(path, &bytes);
        }
        after
    }

    pub(crate) fn get(&self, path: &Path) -> Vec<u8> {
        self.disk.lock().unwrap().names[path].lock().unwrap().seen.clone()
    }

    pub(crate) fn put(&self, path: &Path, bytes: &[u8]) {
        let content = Bytes { seen: bytes.to_vec(), synced: bytes.to_vec() };
        let mut disk = self.disk.lock().unwrap();
        disk.names.insert(path.to_owned(), Arc::new(Mutex::new(content)));
        disk.durable_names.insert(path.to_owned());
    }

    pub(crate) fn disk_remove(&self, path: &Path) {
        self.remove(path).unwrap();
    }

    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.disk.lock().unwrap().names.keys().cloned().collect()
    }

    fn create_content(&self, path: &Path) -> io::Result<Handle> {
        let mut disk = self.disk.lock().unwrap();
        disk.check(Fail::Write)?;
        if disk.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let content = Content::default();
        disk.names.insert(path.to_owned(), Arc::clone(&content));
        Ok(Handle { content, world: self.clone(), end: 0, is_preallocated: false })
    }
}

impl Disk {
    fn check(&self, fail: Fail) -> io::Result<()> {
        if self.fails == Some(fail) { Err(io::Error::other("made to fail")) } else { Ok(()) }
    }

    /// How many of `len` bytes fit.
    fn take_space(&mut self, len: usize) -> usize {
        match &mut self.space_bytes {
            Some(left) if (len as u64) > *left => len / 2,
            Some(left) => {
                *left -= len as u64;
                len
            }
            None => len,
        }
    }
}

/// An open file of any kind.
#[derive(Clone)]
struct Handle {
    content: Content,
    world: World,
    end: usize,
    is_preallocated: bool,
}

impl Handle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.world.disk.lock().unwrap();
        disk.check(Fail::Write)?;
        disk.check(Fail::Quota).map_err(|_| io::ErrorKind::QuotaExceeded)?;
        let fits = if self.is_preallocated { bytes.len() } else { disk.take_space(bytes.len()) };
        drop(disk);
        let seen = &mut self.content.lock().unwrap().seen;
        if seen.len() < self.end + fits {
            seen.resize(self.end + fits, 0);
        }
        seen[self.end..self.end + fits].copy_from_slice(&bytes[..fits]);
        if fits < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.end += fits;
        Ok(())
    }

    fn sync_now(&self) -> io::Result<()> {
        let mut disk = self.world.disk.lock().unwrap();
        disk.syncs += 1;
        disk.check(Fail::Sync)?;
        let mut content = self.content.lock().unwrap();
        content.synced = content.seen.clone();
        Ok(())
    }
}

impl ReadFile for Handle {
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let mut disk = self.world.disk.lock().unwrap();
        disk.reads += 1;
        disk.check(Fail::Read)?;
        disk.check(Fail::NthRead(disk.reads))?;
        drop(disk);
        let content = self.content.lock().unwrap();
        let start = usize::try_from(offset).unwrap();
        let bytes = content.seen.get(start..start + buf.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buf.copy_from_slice(bytes);
        Ok(())
    }
    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.content.lock().unwrap().seen.len() as u64)
    }
    fn will_need(&self, _offset: u64, _len_bytes: u64) {}
    fn wont_need(&self, _offset: u64, _len_bytes: u64) {}
}

impl WriteFile for Handle {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes)
    }
    fn start_writeback(&mut self) {}
    fn sync(&mut self) -> io::Result<()> {
        self.sync_now()
    }
}

impl AppendFile for Handle {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.end + bytes.len() > self.content.lock().unwrap().seen.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.write(bytes)
    }
    fn end(&self) -> u64 {
        self.end as u64
    }
    fn syncer(&self) -> Arc<dyn AppendSync> {
        Arc::new(self.clone())
    }
}

impl AppendSync for Handle {
    fn sync(&self) -> io::Result<()> {
        self.sync_now()
    }
    fn prepare(&self) -> io::Result<()> {
        Ok(())
    }
}

impl FileLock for Handle {}

impl Files for World {
    fn create_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let name = |path: &PathBuf| Some(path.strip_prefix(dir).ok()?.to_str()?.to_owned());
        Ok(self.disk.lock().unwrap().names.keys().filter_map(name).collect())
    }
    fn len_bytes(&self, path: &Path) -> io::Result<u64> {
        self.open(path)?.len_bytes()
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        Ok(Box::new(self.create_content(path)?))
    }
    fn create_append(
        &self,
        path: &Path,
        len_bytes: u64,
        mode: AppendMode,
    ) -> io::Result<Box<dyn AppendFile>> {
        let len = usize::try_from(len_bytes).unwrap();
        let is_preallocated = mode == AppendMode::Mapped;
        if is_preallocated && self.disk.lock().unwrap().take_space(len) < len {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let handle = Handle { is_preallocated, ..self.create_content(path)? };
        handle.content.lock().unwrap().seen.resize(len, 0);
        Ok(Box::new(handle))
    }
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let disk = self.disk.lock().unwrap();
        let content = Arc::clone(disk.names.get(path).ok_or(io::ErrorKind::NotFound)?);
        Ok(Arc::new(Handle { content, world: self.clone(), end: 0, is_preallocated: false }))
    }
    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        let removed = self.disk.lock().unwrap().names.remove(path);
        removed.map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
    fn sync_file(&self, path: &Path) -> io::Result<()> {
        let disk = self.disk.lock().unwrap();
        let content = Arc::clone(disk.names.get(path).ok_or(io::ErrorKind::NotFound)?);
        drop(disk);
        Handle { content, world: self.clone(), end: 0, is_preallocated: false }.sync_now()
    }
    fn link(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        let mut disk = self.disk.lock().unwrap();
        disk.syncs += 1;
        disk.check(Fail::Sync)?;
        disk.durable_names = disk.names.keys().cloned().collect();
        Ok(())
    }
    fn lock(&self, _path: &Path, _mode: LockMode) -> io::Result<Box<dyn FileLock>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn space_free_bytes(&self, _dir: &Path) -> io::Result<u64> {
        Ok(self.disk.lock().unwrap().space_bytes.unwrap_or(u64::MAX))
    }
}
