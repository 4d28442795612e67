//! What the store asks of a file system, as traits. `real.rs` and `mapped.rs` answer with the
//! operating system; the crate `folddb-sim` with a simulated disk that loses and tears writes and
//! refuses calls.
//!
//! Three kinds of file, by how they are used: read at random ([`ReadFile`]), written once from
//! front to back ([`WriteFile`]: runs, manifests), and appended to while others sync
//! ([`AppendFile`]: segments of the log). All paths are absolute or relative to the process; names
//! in one directory are plain UTF-8.

use std::io;
use std::path::Path;
use std::sync::Arc;

/// A file system.
pub trait Files: Send + Sync {
    /// Creates a directory; its parent must exist. Fails with `AlreadyExists` if the path exists.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;

    /// The names in a directory, in no order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// The length of a file in bytes; `NotFound` if there is none.
    fn len_bytes(&self, path: &Path) -> io::Result<u64>;

    /// Creates a file to write from front to back. Fails with `AlreadyExists` if there is one.
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>>;

    /// Creates a preallocated file of `len_bytes` zeros to append to. Fails with `AlreadyExists`.
    fn create_append(&self, path: &Path, len_bytes: u64, mode: AppendMode)
    -> io::Result<Box<dyn AppendFile>>;

    /// Opens a file for reading at random.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>>;

    /// As [`Files::open`], with reads that bypass the page cache, if the file system has them.
    fn open_direct(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.open(path)
    }

    /// Renames a file or directory within one file system; replaces an existing file.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Shortens a file to its first `len_bytes` bytes. It is no longer appended to. This only frees
    /// space: a world without it keeps files longer than necessary.
    fn cut(&self, path: &Path, len_bytes: u64) -> io::Result<()> {
        let _ = (path, len_bytes);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Writes bytes over those that a file has at `offset`, within its length, and closes it. A
    /// world without it cannot recover values that its log does not vouch for.
    fn write_over(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let _ = (path, offset, bytes);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Makes a file durable that was written and closed, but not its name: see [`Files::sync_dir`].
    /// A world without it has no values in files of their own.
    fn sync_file(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes an empty directory: of backups, and of values in files of their own. A world without
    /// it keeps empty directories.
    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        let _ = dir;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Gives a file a second name (a hard link).
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Locks the file at `path`, creating it if necessary, until the returned guard is dropped.
    /// Fails with `WouldBlock` when another handle holds a lock that excludes this one.
    fn lock(&self, path: &Path, mode: LockMode) -> io::Result<Box<dyn FileLock>>;

    /// Bytes that can still be written to the file system that holds `dir`.
    fn space_free_bytes(&self, dir: &Path) -> io::Result<u64>;

    /// Fails with `ReadOnlyFilesystem` if the file system of the file at `path`, which exists, can
    /// no longer be written. An append to a map does not notice that. Changes nothing; a world
    /// that never turns read-only need not have it.
    fn check_writable(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Ok(())
    }

    /// Whether this process is a fork of the one that has the files: locks of other threads may be
    /// held forever in it, so what is dropped must take none.
    fn is_forked(&self) -> bool {
        false
    }
}

/// Holds a lock until it is dropped.
pub trait FileLock: Send + Sync {}

/// Who else may hold the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Nobody.
    Exclusive,
    /// Others that share it.
    Shared,
}

/// What the system knows an open file by: a file descriptor, or on Windows a handle.
#[cfg(unix)]
pub type SystemHandle<'a> = std::os::fd::BorrowedFd<'a>;

/// What the system knows an open file by: a handle, or on Unix a file descriptor.
#[cfg(windows)]
pub type SystemHandle<'a> = std::os::windows::io::BorrowedHandle<'a>;

/// A file to read at random. Reads never go through a memory map.
pub trait ReadFile: Send + Sync {
    /// Fills `buf` from `offset`; `UnexpectedEof` if the file ends first.
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()>;

    /// The length in bytes.
    fn len_bytes(&self) -> io::Result<u64>;

    /// Why the byte at `offset` is gone although it was there when the store was opened; none if it
    /// is there, or never was. Only secondaries have such files.
    fn taken_since(&self, offset: u64) -> Option<io::Error> {
        let _ = offset;
        None
    }

    /// What the operating system knows the file by, for callers that pass it to the system instead
    /// of reading; none in a simulated world.
    fn handle(&self) -> Option<SystemHandle<'_>> {
        None
    }

    /// Says that reads will be random, so that reading ahead is not worth the cost. A permanent
    /// hint.
    fn expect_scattered(&self) {}

    /// Says that `len_bytes` from `offset` will be read soon, in order. A hint.
    fn will_need(&self, offset: u64, len_bytes: u64);

    /// Says that `len_bytes` from `offset` will not be read again soon, so that the page cache may
    /// drop it. A hint.
    fn wont_need(&self, offset: u64, len_bytes: u64);
}

/// A file that is written once from front to back.
pub trait WriteFile: Send {
    /// Appends all of `bytes`.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Starts to write what has been appended so far to the disk, without waiting. A hint.
    fn start_writeback(&mut self);

    /// Waits until everything that was appended is durable. After a failure the file is useless.
    fn sync(&mut self) -> io::Result<()>;
}

/// How an [`AppendFile`] takes bytes. Both survive the death of the process once `append` has
/// returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AppendMode {
    /// Through a shared memory map of a preallocated file: no system call for a small append.
    #[default]
    Mapped,
    /// As [`AppendMode::Mapped`], with less of the file mapped at a time: for a process with many
    /// such files.
    MappedNarrow,
    /// Through `pwrite`: one system call per append, for file systems on which a map is unsafe.
    Written,
}

/// A preallocated file to append to. One thread appends; others sync and prepare through
/// [`AppendSync`].
pub trait AppendFile: Send {
    /// Appends all of `bytes`, within the length given at creation. When it returns, the bytes
    /// survive the death of the process. It never grows the file; `StorageFull` past the end.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Bytes appended so far.
    fn end(&self) -> u64;

    /// The handle through which other threads make the file durable.
    fn syncer(&self) -> Arc<dyn AppendSync>;
}

/// What other threads do with a file that one thread appends to.
pub trait AppendSync: Send + Sync {
    /// Waits until all bytes are durable that were appended by calls of `append` that had returned
    /// before this call.
    fn sync(&self) -> io::Result<()>;

    /// Makes the next window ready to be appended to, so that no append waits for it. Cheap when it
    /// is.
    fn prepare(&self) -> io::Result<()>;
}
