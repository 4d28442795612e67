//! Whether this process is a fork of the one that opened a store.
//!
//! A fork copies the memory of a process, but only one of its threads, and leaves locked what the
//! others had locked. The child has the files of the store open, and its log mapped: a commit there
//! would write over those of the parent. So a store has a mark, which every use of it looks at:
//!
//! ```text
//!   one page of memory    1 in the process that made it; Linux clears it in each child (MADV_WIPEONFORK)
//! ```
//!
//! Looking costs a load, where asking for the number of the process is a system call. It takes no
//! lock, and needs no handler that runs at a fork. A child of `vfork` shares the memory, and the
//! mark, until it runs another program. A system without such pages (before Linux 4.14, macOS) is
//! asked for the number of the process each time, and so is Windows, which has no forks.
//!
//! The page is in `forks/page.rs`.

use std::io;
use std::path::Path;
use std::sync::Arc;

use page::Page;

#[cfg(target_os = "linux")]
mod page;

use crate::Host;
use crate::files::{AppendFile, AppendMode, FileLock, Files, LockMode, ReadFile, WriteFile};

/// A mark that tells a process from those that are forked from it.
#[derive(Debug)]
pub struct ForkMark {
    page: Option<Page>,
    process: u32,
}

impl ForkMark {
    /// A mark of this process. Where there is no page, or no memory for one, it costs more to look
    /// at.
    pub fn new() -> ForkMark {
        ForkMark { page: Page::map().ok(), process: std::process::id() }
    }

    /// Whether this process is a fork of the one that made the mark.
    #[inline]
    pub fn is_forked(&self) -> bool {
        match &self.page {
            Some(page) => page.is_cleared(),
            None => self.process != std::process::id(),
        }
    }

    /// The host, with files that a fork of this process cannot change.
    pub fn guard(self: &Arc<ForkMark>, inner: &Host) -> Host {
        let files = Guarded { inner: Arc::clone(&inner.files), mark: Arc::clone(self) };
        Host { files: Arc::new(files), ..inner.clone() }
    }
}

impl Default for ForkMark {
    fn default() -> ForkMark {
        ForkMark::new()
    }
}

/// The page of a system that clears none: there is never one.
#[cfg(not(target_os = "linux"))]
mod page {
    use std::io;

    #[derive(Debug)]
    pub(super) enum Page {}

    impl Page {
        pub(super) fn map() -> io::Result<Page> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) fn is_cleared(&self) -> bool {
            match *self {}
        }
    }
}

// ---- files --------------------------------------------------------------------------------------

/// Files that a forked child reads and never changes. Files that are open for appending are not
/// guarded here: whoever appends looks at the mark.
struct Guarded {
    inner: Arc<dyn Files>,
    mark: Arc<ForkMark>,
}

impl Guarded {
    /// The files, if they may be changed.
    fn to_change(&self) -> io::Result<&dyn Files> {
        if self.mark.is_forked() {
            return Err(io::Error::other("this process was forked from the one that opened the store"));
        }
        Ok(&*self.inner)
    }
}

impl Files for Guarded {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.to_change()?.create_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn len_bytes(&self, path: &Path) -> io::Result<u64> {
        self.inner.len_bytes(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.to_change()?.create(path)
    }

    fn create_append(&self, path: &Path, len: u64, mode: AppendMode) -> io::Result<Box<dyn AppendFile>> {
        self.to_change()?.create_append(path, len, mode)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.inner.open(path)
    }

    fn open_direct(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.inner.open_direct(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.to_change()?.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.to_change()?.remove(path)
    }

    fn cut(&self, path: &Path, len_bytes: u64) -> io::Result<()> {
        self.to_change()?.cut(path, len_bytes)
    }

    fn write_over(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.to_change()?.write_over(path, offset, bytes)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.to_change()?.sync_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.to_change()?.remove_dir(dir)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.to_change()?.link(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.to_change()?.sync_dir(dir)
    }

    fn lock(&self, path: &Path, mode: LockMode) -> io::Result<Box<dyn FileLock>> {
        self.to_change()?.lock(path, mode)
    }

    fn space_free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.inner.space_free_bytes(dir)
    }

    fn check_writable(&self, path: &Path) -> io::Result<()> {
        self.to_change()?.check_writable(path)
    }

    fn is_forked(&self) -> bool {
        self.mark.is_forked()
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests;
