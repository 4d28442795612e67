//! The operating system's files, through the standard library and `system.rs`, which holds what
//! differs between systems.
//!
//! Every call does what its trait in `files.rs` says and nothing else: no retry, no cache, no
//! buffer of its own. The writer of a run gathers blocks before it appends. Segments of the log
//! come from here too: [`RealFiles::create_append`] preallocates, and then picks the mapped or the
//! written way to append.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use crate::direct::DirectRead;
use crate::files::{
    AppendFile, AppendMode, AppendSync, FileLock, Files, LockMode, ReadFile, SystemHandle, WriteFile,
};
use crate::system::{self, Hint, Space};

/// The operating system's files.
#[derive(Debug, Default)]
pub struct RealFiles {}

impl Files for RealFiles {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        Ok(names)
    }

    fn len_bytes(&self, path: &Path) -> io::Result<u64> {
        fs::metadata(path).map(|facts| facts.len())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(Box::new(RealWrite { file, end: 0, sent: 0 }))
    }

    fn create_append(
        &self,
        path: &Path,
        len_bytes: u64,
        mode: AppendMode,
    ) -> io::Result<Box<dyn AppendFile>> {
        // Read access too: a shared map that is written to needs it.
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        let space = system::preallocate(&file, len_bytes).inspect_err(|_| {
            // An empty or half-allocated file is useless. Its number is never used again.
            let _ = fs::remove_file(path);
        })?;
        let written = |file| -> Box<dyn AppendFile> {
            Box::new(WrittenAppend { file: Arc::new(WrittenSync { file }), end: 0, len_bytes })
        };
        Ok(match space {
            Space::Reserved => system::append_mapped(file, len_bytes, mode).unwrap_or_else(written),
            Space::LengthOnly => written(file),
        })
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        Ok(Arc::new(RealRead { file: File::open(path)? }))
    }

    fn open_direct(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        match DirectRead::open(path) {
            Ok(file) => Ok(Arc::new(file)),
            // A file system without such reads.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
            {
                self.open(path)
            }
            Err(error) => Err(error),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn cut(&self, path: &Path, len_bytes: u64) -> io::Result<()> {
        OpenOptions::new().write(true).open(path)?.set_len(len_bytes)
    }

    fn write_over(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        system::write_all_at(&OpenOptions::new().write(true).open(path)?, bytes, offset)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        system::sync_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        fs::remove_dir(dir)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        system::sync_dir(dir)
    }

    fn lock(&self, path: &Path, mode: LockMode) -> io::Result<Box<dyn FileLock>> {
        Ok(Box::new(RealLock::take(path, mode)?))
    }

    fn space_free_bytes(&self, dir: &Path) -> io::Result<u64> {
        system::space_free_bytes(dir)
    }

    // Facts of the file system do not tell: after an error, ext4 refuses writes without its flag.
    fn check_writable(&self, path: &Path) -> io::Result<()> {
        OpenOptions::new().write(true).open(path).map(drop)
    }
}

/// Opens the lock file. A sharer may have no right to write: a store on read-only media can still
/// be read.
fn open_to_lock(path: &Path, mode: LockMode) -> io::Result<File> {
    let writable = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    match (writable, mode) {
        (Ok(file), _) => Ok(file),
        (Err(_), LockMode::Shared) => File::open(path),
        (Err(error), LockMode::Exclusive) => Err(error),
    }
}

fn try_lock(file: &File, mode: LockMode) -> io::Result<()> {
    let taken = match mode {
        LockMode::Exclusive => file.try_lock(),
        LockMode::Shared => file.try_lock_shared(),
    };
    taken.map_err(|error| match error {
        TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
        TryLockError::Error(error) => error,
    })
}

/// Locks the directory of a lock file as well: people remove lock files, and the process that makes
/// the next one would be a second writer. None if the file system cannot lock directories.
fn lock_dir_of(path: &Path, mode: LockMode) -> io::Result<Option<File>> {
    let Some(Ok(dir)) = path.parent().map(File::open) else { return Ok(None) };
    match try_lock(&dir, mode) {
        Ok(()) => Ok(Some(dir)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
        Err(_) => Ok(None),
    }
}

/// The system releases the locks when the last descriptor is closed. A child that was forked in
/// between has one, too. So they are released explicitly, and only by the process that took them.
struct RealLock {
    file: File,
    dir: Option<File>,
    process: u32,
}

impl RealLock {
    fn take(path: &Path, mode: LockMode) -> io::Result<RealLock> {
        let file = open_to_lock(path, mode)?;
        try_lock(&file, mode)?;
        Ok(RealLock { file, dir: lock_dir_of(path, mode)?, process: std::process::id() })
    }
}

impl Drop for RealLock {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            let _ = self.file.unlock();
            let _ = self.dir.as_ref().map(File::unlock);
        }
    }
}

impl FileLock for RealLock {}

struct RealRead {
    file: File,
}

impl ReadFile for RealRead {
    #[inline]
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        system::read_exact_at(&self.file, buf, offset)
    }

    fn len_bytes(&self) -> io::Result<u64> {
        self.file.metadata().map(|facts| facts.len())
    }

    fn handle(&self) -> Option<SystemHandle<'_>> {
        Some(system::handle_of(&self.file))
    }

    fn expect_scattered(&self) {
        system::advise(&self.file, 0, 0, Hint::Scattered);
    }

    fn will_need(&self, offset: u64, len_bytes: u64) {
        system::advise(&self.file, offset, len_bytes, Hint::WillNeed);
    }

    fn wont_need(&self, offset: u64, len_bytes: u64) {
        system::advise(&self.file, offset, len_bytes, Hint::WontNeed);
    }
}

struct RealWrite {
    file: File,
    end: u64,
    /// Writeback was started for the bytes up to here.
    sent: u64,
}

impl WriteFile for RealWrite {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    fn start_writeback(&mut self) {
        system::advise(&self.file, self.sent, self.end - self.sent, Hint::WontNeed);
        self.sent = self.end;
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Appends with one call of the system each.
struct WrittenAppend {
    file: Arc<WrittenSync>,
    end: u64,
    len_bytes: u64,
}

struct WrittenSync {
    file: File,
}

impl AppendFile for WrittenAppend {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() as u64 > self.len_bytes - self.end {
            return Err(io::ErrorKind::StorageFull.into());
        }
        system::write_all_at(&self.file.file, bytes, self.end)?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn syncer(&self) -> Arc<dyn AppendSync> {
        Arc::clone(&self.file) as Arc<dyn AppendSync>
    }
}

impl AppendSync for WrittenSync {
    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn prepare(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[path = "real/tests.rs"]
mod tests;
