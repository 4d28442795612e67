//! The files of any store: syncing them, dropping them from the page cache, and their size.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{Advice, fadvise};

/// All files below a directory.
fn files_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut dirs) = (Vec::new(), vec![dir.to_path_buf()]);
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).with_context(|| format!("list {}", dir.display()))? {
            let path = entry?.path();
            if path.is_dir() { dirs.push(path) } else { files.push(path) }
        }
    }
    Ok(files)
}

/// Opens a file; none if it is gone: files of a store in use may be removed at any time.
fn open(path: &Path) -> Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        opened => Ok(Some(opened.with_context(|| format!("open {}", path.display()))?)),
    }
}

/// Syncs every file.
pub(super) fn sync(dir: &Path) -> Result<()> {
    for path in files_below(dir)? {
        if let Some(file) = open(&path)? {
            file.sync_all().with_context(|| format!("sync {}", path.display()))?;
        }
    }
    Ok(())
}

/// Syncs every file and drops it from the page cache. The store is closed: pages that are mapped
/// would stay.
pub(super) fn drop_from_page_cache(dir: &Path) -> Result<()> {
    sync(dir)?;
    for path in files_below(dir)? {
        if let Some(file) = open(&path)? {
            fadvise(&file, 0, None, Advice::DontNeed).with_context(|| format!("drop {}", path.display()))?;
        }
    }
    Ok(())
}

/// What the files take on the disk. Holes do not count; reserved space counts if the file system
/// has allocated it.
pub(super) fn allocated_bytes(dir: &Path) -> Result<u64> {
    let files = files_below(dir)?;
    Ok(files.iter().filter_map(|path| path.metadata().ok()).map(|file| file.blocks() * 512).sum())
}

/// Bytes that this process has caused to be written to the disk, without those that were canceled
/// before.
pub(super) fn device_bytes() -> u64 {
    io_bytes("write_bytes").saturating_sub(io_bytes("cancelled_write_bytes"))
}

/// Bytes that this process has caused to be read from the disk.
pub(super) fn read_bytes() -> u64 {
    io_bytes("read_bytes")
}

/// A field of what the system counts for this process.
fn io_bytes(name: &str) -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let value = io.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
#[path = "files/tests.rs"]
mod tests;
