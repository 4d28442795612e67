//! Files in memory: for stores of tests, which leave nothing on the disk.
//!
//! They promise what `real.rs` promises to the callers of [`Files`], names and errors included, and
//! stay as long as a handle of them does: of the file system, or of an open file. Nothing is ever
//! lost here, so a sync has nothing to do. What fails is in `folddb-sim`.
//!
//! ```text
//!   names     path -> directory, or file; a hard link is a second name of a file
//!   file      bytes as far as they were written, zeros from there to its length
//! ```
//!
//! Two things differ from a disk. A directory is created with the missing ones above it, so that a
//! test can name its store as it likes. And a preallocated file takes no memory before it is
//! written to.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::files::{AppendFile, AppendMode, AppendSync, FileLock, Files, LockMode, ReadFile, WriteFile};
use crate::sync::{Mutex, RwLock};

/// What is free, in bytes: a number that stands for no bound, and to which callers can add.
const FREE_BYTES: u64 = 1 << 62;

/// A file system in memory.
#[derive(Default)]
pub struct MemoryFiles {
    names: Mutex<Names>,
}

/// All directories and files, by path. The root, and the directory of the process, always exist.
#[derive(Default)]
struct Names(BTreeMap<PathBuf, Node>);

#[derive(Clone)]
enum Node {
    Dir,
    File(Arc<Content>),
}

/// A file, under all of its names.
#[derive(Default)]
struct Content {
    data: RwLock<Data>,
    /// How many share its lock; -1 while one has it alone. No lock guards it: a forked child drops
    /// what it has.
    sharers: AtomicI64,
}

#[derive(Default)]
struct Data {
    /// What was written, from the front.
    bytes: Vec<u8>,
    /// The length; what is not in `bytes` is zeros.
    len_bytes: u64,
}

impl Data {
    /// Writes at `offset`, and makes the file as long as that needs.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let from = usize::try_from(offset).map_err(|_| io::ErrorKind::StorageFull)?;
        let end = from.checked_add(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[from..end].copy_from_slice(bytes);
        self.len_bytes = self.len_bytes.max(end as u64);
        Ok(())
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > self.len_bytes) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let from = usize::try_from(offset).map_or(self.bytes.len(), |from| from.min(self.bytes.len()));
        let written = (self.bytes.len() - from).min(buf.len());
        buf[..written].copy_from_slice(&self.bytes[from..from + written]);
        buf[written..].fill(0);
        Ok(())
    }

    fn cut(&mut self, len_bytes: u64) {
        self.bytes.truncate(usize::try_from(len_bytes).unwrap_or(usize::MAX));
        self.bytes.shrink_to_fit();
        self.len_bytes = len_bytes;
    }
}

/// A path without the parts that mean nothing.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

fn is_root(path: &Path) -> bool {
    path.as_os_str().is_empty() || path == Path::new("/")
}

impl Names {
    fn node(&self, path: &Path) -> io::Result<Node> {
        match self.0.get(path) {
            Some(node) => Ok(node.clone()),
            None if is_root(path) => Ok(Node::Dir),
            None => Err(self.missing(path)),
        }
    }

    /// Why there is nothing at a path: a file may be in the way.
    fn missing(&self, path: &Path) -> io::Error {
        let is_below_file = path.ancestors().any(|above| matches!(self.0.get(above), Some(Node::File(_))));
        if is_below_file { io::ErrorKind::NotADirectory.into() } else { io::ErrorKind::NotFound.into() }
    }

    fn file(&self, path: &Path) -> io::Result<Arc<Content>> {
        match self.node(path)? {
            Node::File(content) => Ok(content),
            Node::Dir => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn check_dir(&self, path: &Path) -> io::Result<()> {
        match self.node(path)? {
            Node::Dir => Ok(()),
            Node::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Gives a name that is free, in a directory that exists, to a file or directory.
    fn put_new(&mut self, path: &Path, node: Node) -> io::Result<()> {
        self.check_new(path)?;
        self.0.insert(path.to_owned(), node);
        Ok(())
    }

    /// Fails unless a name is free, in a directory that exists.
    fn check_new(&self, path: &Path) -> io::Result<()> {
        if self.node(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.check_dir(path.parent().unwrap_or(Path::new("")))
    }

    fn create_dir(&mut self, dir: &Path) -> io::Result<()> {
        if self.node(dir).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let above: Vec<&Path> = dir.ancestors().filter(|above| !is_root(above)).collect();
        for dir in above.into_iter().rev() {
            match self.node(dir) {
                Ok(_) => self.check_dir(dir)?,
                Err(_) => self.put_new(dir, Node::Dir)?,
            }
        }
        Ok(())
    }

    /// The paths directly in a directory.
    fn inside<'n>(&'n self, dir: &'n Path) -> impl Iterator<Item = &'n Path> {
        let from =
            self.0.range::<Path, _>((Bound::Included(dir), Bound::Unbounded)).map(|(path, _)| path.as_path());
        from.take_while(move |path| path.starts_with(dir)).filter(move |path| path.parent() == Some(dir))
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.check_dir(from.parent().unwrap_or(Path::new("")))?;
        self.check_dir(to.parent().unwrap_or(Path::new("")))?;
        let node = self.node(from)?;
        match (&node, self.node(to)) {
            _ if from == to => return Ok(()),
            (Node::Dir, _) if to.starts_with(from) => return Err(io::ErrorKind::InvalidInput.into()),
            (_, Ok(Node::Dir)) if from.starts_with(to) => return Err(io::ErrorKind::DirectoryNotEmpty.into()),
            (Node::File(_), Ok(Node::Dir)) => return Err(io::ErrorKind::IsADirectory.into()),
            (Node::Dir, Ok(Node::File(_))) => return Err(io::ErrorKind::NotADirectory.into()),
            (Node::Dir, Ok(Node::Dir)) if self.inside(to).next().is_some() => {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            // POSIX: two names of one file stay both.
            (Node::File(one), Ok(Node::File(other))) if Arc::ptr_eq(one, &other) => return Ok(()),
            _ => {}
        }
        let moved: Vec<PathBuf> = match node {
            Node::File(_) => vec![from.to_owned()],
            Node::Dir => self.0.keys().filter(|path| path.starts_with(from)).cloned().collect(),
        };
        for old in moved {
            let Some(node) = self.0.remove(&old) else { continue };
            let below = old.strip_prefix(from).unwrap_or(Path::new(""));
            let new = if below.as_os_str().is_empty() { to.to_owned() } else { to.join(below) };
            self.0.insert(new, node);
        }
        Ok(())
    }
}

impl Files for MemoryFiles {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.names.lock().create_dir(&plain(dir))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let (names, dir) = (self.names.lock(), plain(dir));
        names.check_dir(&dir)?;
        let files = names.inside(&dir).filter_map(Path::file_name);
        Ok(files.map(|name| name.to_string_lossy().into_owned()).collect())
    }

    fn len_bytes(&self, path: &Path) -> io::Result<u64> {
        match self.names.lock().node(&plain(path))? {
            Node::File(content) => Ok(content.data.read().len_bytes),
            Node::Dir => Ok(0),
        }
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let content = Arc::<Content>::default();
        self.names.lock().put_new(&plain(path), Node::File(Arc::clone(&content)))?;
        Ok(Box::new(Handle { content, end: 0 }))
    }

    fn create_append(
        &self,
        path: &Path,
        len_bytes: u64,
        _mode: AppendMode,
    ) -> io::Result<Box<dyn AppendFile>> {
        let content = Arc::<Content>::default();
        content.data.write().len_bytes = len_bytes;
        self.names.lock().put_new(&plain(path), Node::File(Arc::clone(&content)))?;
        Ok(Box::new(Handle { content, end: 0 }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let content = self.names.lock().file(&plain(path))?;
        Ok(Arc::new(Handle { content, end: 0 }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.names.lock().rename(&plain(from), &plain(to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let (mut names, path) = (self.names.lock(), plain(path));
        names.file(&path)?;
        names.0.remove(&path);
        Ok(())
    }

    fn cut(&self, path: &Path, len_bytes: u64) -> io::Result<()> {
        let content = self.names.lock().file(&plain(path))?;
        content.data.write().cut(len_bytes);
        Ok(())
    }

    fn write_over(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let content = self.names.lock().file(&plain(path))?;
        content.data.write().write(offset, bytes)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.names.lock().node(&plain(path)).map(drop)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        let (mut names, dir) = (self.names.lock(), plain(dir));
        names.check_dir(&dir)?;
        if names.inside(&dir).next().is_some() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        names.0.remove(&dir);
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut names = self.names.lock();
        let (node, to) = (names.node(&plain(from))?, plain(to));
        names.check_new(&to)?;
        match node {
            Node::Dir => Err(io::ErrorKind::PermissionDenied.into()), // as the system answers
            file => names.put_new(&to, file),
        }
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.names.lock().node(&plain(dir)).map(drop)
    }

    fn lock(&self, path: &Path, mode: LockMode) -> io::Result<Box<dyn FileLock>> {
        let (mut names, path) = (self.names.lock(), plain(path));
        let content = match names.file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let content = Arc::<Content>::default();
                names.put_new(&path, Node::File(Arc::clone(&content)))?;
                content
            }
            found => found?,
        };
        Ok(Box::new(Held::take(content, mode)?))
    }

    fn space_free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.names.lock().node(&plain(dir)).map(|_| FREE_BYTES)
    }
}

/// A lock that is held.
struct Held {
    content: Arc<Content>,
    mode: LockMode,
}

impl Held {
    fn take(content: Arc<Content>, mode: LockMode) -> io::Result<Held> {
        let taken = content.sharers.fetch_update(Ordering::AcqRel, Ordering::Acquire, |sharers| match mode {
            LockMode::Exclusive => (sharers == 0).then_some(-1),
            LockMode::Shared => (sharers >= 0).then_some(sharers + 1),
        });
        match taken {
            Ok(_) => Ok(Held { content, mode }),
            Err(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl FileLock for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        let change = if self.mode == LockMode::Exclusive { 1 } else { -1 };
        self.content.sharers.fetch_add(change, Ordering::AcqRel);
    }
}

/// An open file of any kind.
#[derive(Clone)]
struct Handle {
    content: Arc<Content>,
    /// Where the next append goes.
    end: u64,
}

impl ReadFile for Handle {
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.content.data.read().read(offset, buf)
    }

    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.content.data.read().len_bytes)
    }

    fn will_need(&self, _offset: u64, _len_bytes: u64) {}

    fn wont_need(&self, _offset: u64, _len_bytes: u64) {}
}

impl WriteFile for Handle {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.content.data.write().write(self.end, bytes)?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    fn start_writeback(&mut self) {}

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AppendFile for Handle {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut data = self.content.data.write();
        if bytes.len() as u64 > data.len_bytes.saturating_sub(self.end) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        data.write(self.end, bytes)?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn syncer(&self) -> Arc<dyn AppendSync> {
        Arc::new(self.clone())
    }
}

impl AppendSync for Handle {
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn prepare(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
