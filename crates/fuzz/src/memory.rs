//! Files in memory, to be read: what a target makes of its input for decoders that read whole
//! files.
//!
//! Writers can be made too, since seeds come from the real encoders. All else a store asks of a
//! file system is refused.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use folddb_host::files::{AppendFile, AppendMode, FileLock, Files, LockMode, ReadFile, WriteFile};
use folddb_host::{Host, chance::SystemChance, clock::SystemClock};

type Content = Arc<Mutex<Vec<u8>>>;

/// A directory in memory.
#[derive(Default)]
pub struct MemoryFiles {
    contents: Mutex<BTreeMap<PathBuf, Content>>,
}

impl MemoryFiles {
    /// A host with these files, by name, in the directory [`dir`].
    pub fn host(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Host {
        let memory = MemoryFiles::default();
        for (name, bytes) in files {
            memory.lock().insert(dir().join(name), Arc::new(Mutex::new(bytes)));
        }
        Host {
            files: Arc::new(memory),
            clock: Arc::new(SystemClock::default()),
            chance: Arc::new(SystemChance::default()),
        }
    }

    /// The bytes of a file; nothing where there is none.
    pub fn bytes(&self, path: &Path) -> Vec<u8> {
        self.lock().get(path).map(|content| held(content).clone()).unwrap_or_default()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<PathBuf, Content>> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, path: &Path) -> io::Result<Content> {
        self.lock().get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// The directory in which all files are.
pub fn dir() -> &'static Path {
    Path::new("/store")
}

fn held(content: &Content) -> std::sync::MutexGuard<'_, Vec<u8>> {
    content.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Handle(Content);

impl ReadFile for Handle {
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let bytes = held(&self.0);
        let from = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)?.get(..buf.len()));
        buf.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
    fn len_bytes(&self) -> io::Result<u64> {
        Ok(held(&self.0).len() as u64)
    }
    fn will_need(&self, _offset: u64, _len_bytes: u64) {}
    fn wont_need(&self, _offset: u64, _len_bytes: u64) {}
}

impl WriteFile for Handle {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        held(&self.0).extend_from_slice(bytes);
        Ok(())
    }
    fn start_writeback(&mut self) {}
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Files for MemoryFiles {
    fn create_dir(&self, _dir: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let names = self.lock();
        let inside = names.keys().filter_map(|path| path.strip_prefix(dir).ok());
        Ok(inside.map(|name| name.to_string_lossy().into_owned()).collect())
    }
    fn len_bytes(&self, path: &Path) -> io::Result<u64> {
        Ok(held(&self.find(path)?).len() as u64)
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let content = Content::default();
        self.lock().insert(path.to_owned(), Arc::clone(&content));
        Ok(Box::new(Handle(content)))
    }
    fn create_append(&self, _path: &Path, _len: u64, _mode: AppendMode) -> io::Result<Box<dyn AppendFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        Ok(Arc::new(Handle(self.find(path)?)))
    }
    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.lock().remove(path).map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
    fn link(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }
    fn lock(&self, _path: &Path, _mode: LockMode) -> io::Result<Box<dyn FileLock>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn space_free_bytes(&self, _dir: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}
