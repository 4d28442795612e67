//! What is different on Windows. **Compiled by `.ci/portable`, and never run.**
//!
//! Three things are less than elsewhere. Names: no call waits until the name of a file is durable
//! ([`sync_dir`]), so nothing is promised of power cuts. Locks: only the lock file is locked, so
//! whoever removes it lets a second writer in. And files that are open can be renamed and removed,
//! as the store does while readers have them, only from Windows 10 1809 on.
//!
//! One of the modules with `unsafe`: the call that tells how much space is free.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::FileExt;
use std::os::windows::io::AsHandle;
use std::path::Path;
use std::ptr;

use super::{Hint, Space};
use crate::files::{AppendFile, AppendMode, SystemHandle};

/// What the system knows the file by.
pub(crate) fn handle_of(file: &File) -> SystemHandle<'_> {
    file.as_handle()
}

/// Fills the front of `buf` from `offset`, and returns how many bytes. It moves the position of the
/// file, which nobody uses who reads at offsets.
pub(crate) fn read_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(buf, offset)
}

/// Fills `buf` from `offset`; `UnexpectedEof` if the file ends first.
pub(crate) fn read_exact_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < buf.len() {
        match file.seek_read(&mut buf[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of `bytes` at `offset`. As with [`read_at`], the position of the file moves.
pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match file.seek_write(&bytes[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => done += written,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Gives the file its length. NTFS takes the space for it, other file systems may not.
pub(crate) fn preallocate(file: &File, len_bytes: u64) -> io::Result<Space> {
    file.set_len(len_bytes)?;
    Ok(Space::LengthOnly)
}

/// No appends go through a map: nothing promises space ([`preallocate`]).
pub(crate) fn append_mapped(file: File, _: u64, _: AppendMode) -> Result<Box<dyn AppendFile>, File> {
    Err(file)
}

/// Makes a file durable that was written and closed: the system takes that only from who may write.
pub(crate) fn sync_file(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.sync_data()
}

/// Does nothing, and cannot: the system has no sync of a directory. It fails if there is none.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    if std::fs::metadata(dir)?.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

/// Reads that bypass the page cache want sectors of a size that the system does not tell here.
///
/// # Errors
/// `Unsupported`: reads go through the cache instead.
pub(crate) fn open_direct(_: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Does nothing: the system takes hints only when a file is opened.
pub(crate) fn advise(_: &File, _: u64, _: u64, _: Hint) {}

/// Does nothing: threads keep their priority.
pub(crate) fn lower_thread(_: i32) {}

/// Bytes that this user can still write to the file system that holds `dir`.
#[allow(unsafe_code)]
pub(crate) fn space_free_bytes(dir: &Path) -> io::Result<u64> {
    let path: Vec<u16> = dir.as_os_str().encode_wide().chain([0]).collect();
    let mut free = 0;
    // SAFETY: `path` ends with a zero; the call writes one number, which `free` is, and neither of
    // the two that it is not asked for. Tested by `free_space_is_told_of_what_is_there`.
    let told = unsafe { GetDiskFreeSpaceExW(path.as_ptr(), &mut free, ptr::null_mut(), ptr::null_mut()) };
    if told == 0 { Err(io::Error::last_os_error()) } else { Ok(free) }
}

// SAFETY: as the system declares it: `BOOL GetDiskFreeSpaceExW(LPCWSTR lpDirectoryName,
// PULARGE_INTEGER lpFreeBytesAvailableToCaller, PULARGE_INTEGER lpTotalNumberOfBytes,
// PULARGE_INTEGER lpTotalNumberOfFreeBytes)`. Tested by `free_space_is_told_of_what_is_there`.
#[allow(unsafe_code)]
#[link(name = "kernel32")]
unsafe extern "system" {
    fn GetDiskFreeSpaceExW(dir: *const u16, free_to_caller: *mut u64, all: *mut u64, free: *mut u64) -> i32;
}

/// Memory is not kept from being swapped out.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn keep_from_swap<T>(_: &T) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Undoes nothing: see [`keep_from_swap`].
pub(crate) fn let_swap<T>(_: &T) {}

#[cfg(test)]
mod tests;
