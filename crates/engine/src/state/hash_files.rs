//! The files in which the index of a hashed table is saved: its checkpoint, and after a crash the
//! changes after it.
//!
//! ```text
//!   000015.index   checkpoint                 written during reads and writes, 10 bytes a key
//!   000021.index   changes, by an opening     21 bytes for each that was replayed; the next checkpoint has them
//! ```
//!
//! A file is removed when the durable manifest no longer lists it, and nobody reads it any more.
//! Used by `hash_index`, `background/hash_checkpoint`, `recovery` and the modules of `maintenance`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::{FileNumber, Result, error};
use folddb_hash::{Checkpoint, Made, changes_bytes, load_changes};
use folddb_host::Files;
use folddb_host::sync::Mutex;
use folddb_host::sync::atomic::{AtomicBool, Ordering};
use folddb_layout::file_name::FileName;
use folddb_manifest::{IndexState, State, TableState};

/// Changes are saved by themselves while the checkpoint is this many times larger: otherwise the
/// whole index is saved, which then costs at most this many times what was replayed.
const CHECKPOINT_PER_CHANGES: u64 = 8;

/// Up to this many changes are always saved by themselves: an empty checkpoint takes as much space.
const CHANGES_AT_LEAST: usize = 64;

/// A file of an index. It is removed when it is retired and nobody holds it any more.
pub struct SavedFile {
    pub bytes: u64,
    path: PathBuf,
    files: Arc<dyn Files>,
    obsolete: AtomicBool,
}

impl SavedFile {
    pub fn new(bytes: u64, path: PathBuf, files: Arc<dyn Files>) -> SavedFile {
        SavedFile { bytes, path, files, obsolete: AtomicBool::new(false) }
    }

    /// Called when the durable manifest no longer lists the file, or never will.
    pub fn retire(&self) {
        self.obsolete.store(true, Ordering::Release);
    }
}

impl Drop for SavedFile {
    fn drop(&mut self) {
        if self.obsolete.load(Ordering::Acquire) {
            let _ = self.files.remove(&self.path); // the next opening removes a leftover
        }
    }
}

/// A checkpoint with its file, and the file of the changes after it.
pub struct IndexFile {
    pub checkpoint: Arc<Checkpoint>,
    file: SavedFile,
    changes: Mutex<Option<Arc<SavedFile>>>,
}

impl IndexFile {
    pub fn new(checkpoint: Arc<Checkpoint>, file: SavedFile) -> Arc<IndexFile> {
        Arc::new(IndexFile { checkpoint, file, changes: Mutex::default() })
    }

    /// Bytes of both.
    pub fn bytes(&self) -> u64 {
        self.file.bytes + self.changes.lock().as_ref().map_or(0, |changes| changes.bytes)
    }

    /// Called when the durable manifest no longer lists them.
    pub fn retire(&self) {
        self.file.retire();
        self.changes.lock().iter().for_each(|changes| changes.retire());
    }

    /// Called when the durable manifest lists exactly these changes after it.
    pub fn follow(&self, changes: Arc<SavedFile>) {
        if let Some(before) = self.changes.lock().replace(changes) {
            before.retire();
        }
    }

    /// Whether there are changes after it that no checkpoint has.
    pub(crate) fn is_followed(&self) -> bool {
        self.changes.lock().is_some()
    }

    /// How many changes may be saved by themselves.
    pub(crate) fn changes_max(&self) -> usize {
        let fit = (self.file.bytes / CHECKPOINT_PER_CHANGES / changes_bytes(1)) as usize;
        fit.max(CHANGES_AT_LEAST)
    }
}

/// Opens the files of an index: reads the footer and directory of its checkpoint, and the changes
/// after it; none if it has no checkpoint.
///
/// # Errors
/// One of them is missing or damaged; a failed read.
pub fn open_saved(
    files: &Arc<dyn Files>,
    dir: &Path,
    state: &TableState,
) -> Result<Option<(Arc<IndexFile>, Vec<Made>)>> {
    let Some(index) = &state.index else { return Ok(None) };
    let path = path_of(&**files, dir, index)?;
    let checkpoint = Checkpoint::open(&**files, &path, index.file)?;
    let file = IndexFile::new(checkpoint, SavedFile::new(index.file_bytes, path, Arc::clone(files)));
    let Some(changes) = &state.changes else { return Ok(Some((file, Vec::new()))) };
    let path = path_of(&**files, dir, changes)?;
    let made = load_changes(&**files, &path, changes.file, &file.checkpoint)?;
    file.follow(Arc::new(SavedFile::new(changes.file_bytes, path, Arc::clone(files))));
    Ok(Some((file, made)))
}

/// The path of a listed file, if it exists with the listed length.
fn path_of(files: &dyn Files, dir: &Path, saved: &IndexState) -> Result<PathBuf> {
    let path = dir.join(FileName::Index(saved.file).to_string());
    match files.len_bytes(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(error::missing(&path, "the manifest lists it"))
        }
        Ok(bytes) if bytes != saved.file_bytes => {
            Err(error::corrupt(&path, 0, format!("it has {bytes} bytes instead of {}", saved.file_bytes)))
        }
        _ => Ok(path),
    }
}

/// The files of indexes that a manifest lists, with their lengths.
pub fn listed_indexes(state: &State) -> impl Iterator<Item = (FileNumber, u64)> + '_ {
    state.tables.values().flat_map(TableState::saved_index).map(|saved| (saved.file, saved.file_bytes))
}
