//! Makes a directory cold: the contents of its files are on the disk, and no longer in the page
//! cache of the system.

use std::fs::File;
use std::path::Path;

use folddb::{Error, Result};

/// Syncs the files of a directory and asks the system to drop their pages. False if it cannot do
/// that: then the figures are warm ones, and the report says so.
pub fn forget_files(dir: &Path) -> Result<bool> {
    let entries = std::fs::read_dir(dir).map_err(|error| Error::io("list", dir, error))?;
    let mut forgotten = true;
    for entry in entries.flatten() {
        let path = entry.path();
        if !path.is_file() {
            continue;
        }
        let file = File::open(&path).map_err(|error| Error::io("open", &path, error))?;
        file.sync_all().map_err(|error| Error::io("sync", &path, error))?; // dirty pages are not forgotten
        forgotten &= forget(&file);
    }
    Ok(forgotten)
}

#[cfg(target_os = "linux")]
fn forget(file: &File) -> bool {
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn forget(_: &File) -> bool {
    false
}
