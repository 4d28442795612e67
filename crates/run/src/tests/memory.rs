//! Files in memory, for tests: tests can damage them, and open ones are counted.

use std::collections::HashMap;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use folddb_host::files::FileLock;
use folddb_host::{AppendFile, AppendMode, Files, LockMode, ReadFile, WriteFile};
use parking_lot::Mutex;

#[derive(Default)]
pub(super) struct MemoryFiles {
    /// The synced files: a file that is not synced does not exist.
    files: Arc<Mutex<HashMap<PathBuf, Arc<Vec<u8>>>>>,
    open: Arc<AtomicUsize>,
    calls: Arc<Mutex<Vec<Call>>>,
}

/// What was called for a place of a file: its offset and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Read(u64, u64),
    WillNeed(u64, u64),
}

impl MemoryFiles {
    /// The calls since the last time.
    pub(super) fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut *self.calls.lock())
    }

    pub(super) fn bytes(&self, path: &Path) -> Vec<u8> {
        self.files.lock()[path].to_vec()
    }

    pub(super) fn put(&self, path: &Path, bytes: Vec<u8>) {
        self.files.lock().insert(path.to_owned(), Arc::new(bytes));
    }

    pub(super) fn open_now(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

fn unsupported<T>() -> Result<T> {
    Err(ErrorKind::Unsupported.into())
}

impl Files for MemoryFiles {
    fn create_dir(&self, _: &Path) -> Result<()> {
        unsupported()
    }
    fn list(&self, _: &Path) -> Result<Vec<String>> {
        unsupported()
    }
    fn len_bytes(&self, path: &Path) -> Result<u64> {
        self.files.lock().get(path).map(|bytes| bytes.len() as u64).ok_or(ErrorKind::NotFound.into())
    }
    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        Ok(Box::new(MemoryWrite { files: Arc::clone(&self.files), path: path.to_owned(), bytes: Vec::new() }))
    }
    fn create_append(&self, _: &Path, _: u64, _: AppendMode) -> Result<Box<dyn AppendFile>> {
        unsupported()
    }
    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        let bytes = self.files.lock().get(path).cloned().ok_or(Error::from(ErrorKind::NotFound))?;
        self.open.fetch_add(1, Ordering::SeqCst);
        Ok(Arc::new(MemoryRead { bytes, open: Arc::clone(&self.open), calls: Arc::clone(&self.calls) }))
    }
    fn rename(&self, _: &Path, _: &Path) -> Result<()> {
        unsupported()
    }
    fn remove(&self, path: &Path) -> Result<()> {
        self.files.lock().remove(path).map(|_| ()).ok_or(ErrorKind::NotFound.into())
    }
    fn link(&self, _: &Path, _: &Path) -> Result<()> {
        unsupported()
    }
    fn sync_dir(&self, _: &Path) -> Result<()> {
        unsupported()
    }
    fn lock(&self, _: &Path, _: LockMode) -> Result<Box<dyn FileLock>> {
        unsupported()
    }
    fn space_free_bytes(&self, _: &Path) -> Result<u64> {
        unsupported()
    }
}

struct MemoryWrite {
    files: Arc<Mutex<HashMap<PathBuf, Arc<Vec<u8>>>>>,
    path: PathBuf,
    bytes: Vec<u8>,
}

impl WriteFile for MemoryWrite {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
    fn start_writeback(&mut self) {}
    fn sync(&mut self) -> Result<()> {
        self.files.lock().insert(self.path.clone(), Arc::new(self.bytes.clone()));
        Ok(())
    }
}

struct MemoryRead {
    bytes: Arc<Vec<u8>>,
    open: Arc<AtomicUsize>,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl ReadFile for MemoryRead {
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.calls.lock().push(Call::Read(offset, buf.len() as u64));
        let start = usize::try_from(offset).map_err(|_| ErrorKind::UnexpectedEof)?;
        let end = start.checked_add(buf.len()).ok_or(ErrorKind::UnexpectedEof)?;
        buf.copy_from_slice(self.bytes.get(start..end).ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }
    fn len_bytes(&self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }
    fn will_need(&self, offset: u64, len_bytes: u64) {
        self.calls.lock().push(Call::WillNeed(offset, len_bytes));
        assert!(offset + len_bytes <= self.bytes.len() as u64);
    }
    fn wont_need(&self, offset: u64, len_bytes: u64) {
        assert!(offset + len_bytes <= self.bytes.len() as u64);
    }
}

impl Drop for MemoryRead {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}
