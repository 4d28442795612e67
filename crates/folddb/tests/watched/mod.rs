//! The operating system's files, except that a test is called before a part is created: to do
//! something meanwhile, or to refuse it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use folddb_host::files::FileLock;
use folddb_host::{AppendFile, AppendMode, Files, Host, LockMode, ReadFile, WriteFile};

type BeforePart = Box<dyn Fn() -> io::Result<()> + Send + Sync>;

struct Watched {
    inner: Arc<dyn Files>,
    before_part: BeforePart,
}

/// The operating system, in which no part is created before `before_part` has agreed.
pub(crate) fn host(before_part: impl Fn() -> io::Result<()> + Send + Sync + 'static) -> Host {
    let host = Host::real();
    let files = Watched { inner: Arc::clone(&host.files), before_part: Box::new(before_part) };
    Host { files: Arc::new(files), ..host }
}

impl Files for Watched {
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
        if path.extension().is_some_and(|extension| extension == "part") {
            (self.before_part)()?;
        }
        self.inner.create(path)
    }
    fn create_append(&self, path: &Path, len: u64, mode: AppendMode) -> io::Result<Box<dyn AppendFile>> {
        self.inner.create_append(path, len, mode)
    }
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.inner.open(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
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
    fn space_free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.inner.space_free_bytes(dir)
    }
}
