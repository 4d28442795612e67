//! What Linux and macOS have in common, through the standard library and `rustix`.
//!
//! Run on Linux by all tests. On macOS it was never run; what is different there is in
//! `macos.rs`, but for two facts. `F_FULLFSYNC`: where `fsync` of macOS leaves bytes in the
//! cache of the disk, [`File::sync_data`] and [`File::sync_all`] of the standard library ask for
//! `F_FULLFSYNC`, so nothing special is called here. And `flock`, which [`File::try_lock`] takes,
//! also takes directories there.
//!
//! One of the modules with `unsafe`: the two calls by which `resident.rs` keeps memory from being
//! swapped out.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr;

use crate::files::SystemHandle;

/// What the system knows the file by.
#[inline]
pub(crate) fn handle_of(file: &File) -> SystemHandle<'_> {
    file.as_fd()
}

/// Fills the front of `buf` from `offset`, and returns how many bytes.
#[inline]
pub(crate) fn read_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(buf, offset)
}

/// Fills `buf` from `offset`; `UnexpectedEof` if the file ends first.
#[inline]
pub(crate) fn read_exact_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(buf, offset)
}

/// Writes all of `bytes` at `offset`.
#[inline]
pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)
}

/// Makes a file durable that was written and closed.
pub(crate) fn sync_file(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_data()
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Bytes that a program without privileges can still write to the file system that holds `dir`.
pub(crate) fn space_free_bytes(dir: &Path) -> io::Result<u64> {
    let facts = rustix::fs::statvfs(dir)?;
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}

/// Keeps the pages of `item` from being swapped out, until [`let_swap`].
#[allow(unsafe_code)]
pub(crate) fn keep_from_swap<T>(item: &T) -> io::Result<()> {
    // SAFETY: the range is exactly this live value; locking it changes no byte of it and no right
    // to it. Tested by `what_is_kept_from_swap_counts_as_locked`.
    unsafe { rustix::mm::mlock(ptr::from_ref(item).cast_mut().cast(), size_of::<T>()) }
        .map_err(io::Error::from)
}

/// Undoes [`keep_from_swap`]. If that fails, the memory stays locked, which does no harm.
#[allow(unsafe_code)]
pub(crate) fn let_swap<T>(item: &T) {
    // SAFETY: the range is exactly this live value; unlocking it changes no byte of it and no right
    // to it. Tested by `what_is_kept_from_swap_counts_as_locked`.
    let _ = unsafe { rustix::mm::munlock(ptr::from_ref(item).cast_mut().cast(), size_of::<T>()) };
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests;
