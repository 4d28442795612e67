//! What only Linux has. Run by all tests.

use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{Advice, FallocateFlags, OFlags};
use rustix::io::Errno;

use super::{Hint, Space};
use crate::files::{AppendFile, AppendMode};
use crate::mapped::{MappedAppend, NARROW_WINDOW_BYTES, WINDOW_BYTES, maps_are_safe};

/// Gives the file its length, with space reserved if the file system can.
pub(crate) fn preallocate(file: &File, len_bytes: u64) -> io::Result<Space> {
    loop {
        match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, len_bytes) {
            Ok(()) => return Ok(Space::Reserved),
            Err(Errno::INTR) => continue,
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                file.set_len(len_bytes)?;
                return Ok(Space::LengthOnly);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Appends to an empty file, whose length is reserved, through a map; the file itself where the
/// mode or the file system wants none.
pub(crate) fn append_mapped(
    file: File,
    len_bytes: u64,
    mode: AppendMode,
) -> Result<Box<dyn AppendFile>, File> {
    let window_bytes = match mode {
        AppendMode::Mapped => WINDOW_BYTES,
        AppendMode::MappedNarrow => NARROW_WINDOW_BYTES,
        AppendMode::Written => return Err(file),
    };
    if !maps_are_safe(&file) {
        return Err(file);
    }
    Ok(Box::new(MappedAppend::new(file, len_bytes, window_bytes)))
}

/// Opens a file for reads that bypass the page cache.
///
/// # Errors
/// `InvalidInput` if the file system has no such reads; any failed call.
pub(crate) fn open_direct(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path)
}

/// Gives a hint. A length of zero means «to the end» to the system, so it is passed on only where
/// the hint is for the whole file.
///
/// `DONTNEED` first starts to write the dirty pages of the range, and does not wait; pages that are
/// being written are kept. So over new bytes it is `sync_file_range(WRITE)`.
pub(crate) fn advise(file: &File, offset: u64, len_bytes: u64, hint: Hint) {
    let len = NonZeroU64::new(len_bytes);
    let _ = match hint {
        Hint::Scattered => rustix::fs::fadvise(file, 0, None, Advice::Random),
        Hint::WillNeed | Hint::WontNeed if len.is_none() => Ok(()),
        Hint::WillNeed => rustix::fs::fadvise(file, offset, len, Advice::WillNeed),
        Hint::WontNeed => rustix::fs::fadvise(file, offset, len, Advice::DontNeed),
    };
}

/// Lowers the priority of the calling thread: nice values belong to threads here.
pub(crate) fn lower_thread(steps: i32) {
    let _ = rustix::process::nice(steps);
}
