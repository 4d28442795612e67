//! What is different on macOS. **Never run**: no machine with macOS has seen it; `.ci/portable`
//! compiles it where it can. `unix.rs` says how files are synced there (`F_FULLFSYNC`).

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::{Hint, Space};
use crate::files::{AppendFile, AppendMode};

/// Gives the file its length, and asks for the space of it (`F_PREALLOCATE`): a full disk is
/// noticed here, and not in the middle of the file. APFS writes blocks that a clone or a snapshot
/// shares to other places, so it is no promise for later writes.
pub(crate) fn preallocate(file: &File, len_bytes: u64) -> io::Result<Space> {
    loop {
        match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, len_bytes) {
            Ok(()) => return Ok(Space::LengthOnly),
            Err(Errno::INTR) => continue,
            Err(Errno::OPNOTSUPP | Errno::NOTSUP | Errno::NOTTY | Errno::INVAL) => {
                file.set_len(len_bytes)?;
                return Ok(Space::LengthOnly);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// No appends go through a map: a store to a page of a full disk would kill the process, and
/// nothing here promises space ([`preallocate`]).
pub(crate) fn append_mapped(file: File, _: u64, _: AppendMode) -> Result<Box<dyn AppendFile>, File> {
    Err(file)
}

/// Opens a file for reads that leave nothing in the page cache (`F_NOCACHE`). Reads take what
/// already is there.
pub(crate) fn open_direct(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    rustix::fs::fcntl_nocache(&file, true)?;
    Ok(file)
}

/// Gives a hint. The system has no `posix_fadvise`: what will be needed soon is asked for with
/// `F_RDADVISE`, and the other hints do nothing. Pages that are no longer needed leave the cache
/// when others need their place, and new bytes go to the disk when the system wants it or at the
/// next sync, which then takes longer.
pub(crate) fn advise(file: &File, offset: u64, len_bytes: u64, hint: Hint) {
    if hint == Hint::WillNeed && len_bytes > 0 {
        let _ = rustix::fs::fcntl_rdadvise(file, offset, len_bytes);
    }
}

/// Does nothing: nice values belong to processes here.
pub(crate) fn lower_thread(_: i32) {}
