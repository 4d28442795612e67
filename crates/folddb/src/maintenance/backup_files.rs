//! The files of a backup, with their roles: for whoever keeps backups elsewhere than in a
//! directory, such as in an object store, and sends each file there once.
//!
//! ```text
//!   a generation              its files, by their roles
//!   BACKUP                    List
//!   FORMAT                    Format
//!   MANIFEST-000012           Manifest
//!   000011.log                Log
//!   000009.part               Part         the same in every backup of this store
//!   000010.values             Values       the same, if length and hash are: it grows until it is full
//! ```

use std::path::Path;

use folddb_base::Result;
use folddb_base::checksum::hash64;
use folddb_layout::backup::{LIST_FILE, LIST_FILE_BYTES_MAX, ListedFile, TAIL_BYTES_MAX};
use folddb_layout::file_name::FileName;

use crate::maintenance::backup_place::read_list;
use crate::maintenance::copying::read_small;
use crate::options::Options;
use crate::store::Store;

/// What a file of a backup is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BackupFileRole {
    /// The list of the files of the backup.
    List,
    /// The format of the store.
    Format,
    /// What lives: tables, runs, where the log begins.
    Manifest,
    /// A piece of the log.
    Log,
    /// A part of a sorted run.
    Part,
    /// Separated values.
    Values,
    /// A saved index of a hashed table.
    Index,
}

impl BackupFileRole {
    /// Whether the bytes of such a file never change: if another backup of the same store has a
    /// file of the same name, length and hash, it is the same file.
    pub fn is_immutable(self) -> bool {
        matches!(self, BackupFileRole::Part | BackupFileRole::Values | BackupFileRole::Index)
    }
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupFile {
    /// Its path within the directory of the backup.
    pub name: String,
    /// What it is.
    pub role: BackupFileRole,
    /// Its length in bytes.
    pub bytes: u64,
    /// XXH3 of its last 64 KiB, which tells it from another file of this name.
    pub hash: u64,
}

impl Store {
    /// The files of one backup, which is the directory at [`BackupReport::path`] or
    /// [`Generation::path`]. A directory with copies of these files, and nothing else, is a backup
    /// too: [`Store::restore`] makes a store of it. [`Store::open_read_only`] reads it, unless
    /// values are in files of their own: their directories may be empty, and are needed then.
    ///
    /// Files that are immutable are worth sending once: see [`BackupFileRole::is_immutable`].
    ///
    /// [`BackupReport::path`]: crate::maintenance::BackupReport::path
    /// [`Generation::path`]: crate::maintenance::Generation::path
    ///
    /// # Errors
    /// [`StoreNotFound`](crate::ErrorKind::StoreNotFound) if there is no backup;
    /// [`Corruption`](crate::ErrorKind::Corruption) or
    /// [`NewerFormat`](crate::ErrorKind::NewerFormat) if its list cannot be read; a failed read.
    pub fn backup_files(backup: impl AsRef<Path>, options: &Options) -> Result<Vec<BackupFile>> {
        let (files, dir) = (&*options.engine.host.files, backup.as_ref());
        let list = read_list(files, dir)?;
        let text = read_small(files, &dir.join(LIST_FILE), LIST_FILE_BYTES_MAX)?.unwrap_or_default();
        let hash = hash64(0, &text[text.len().saturating_sub(TAIL_BYTES_MAX as usize)..]);
        let (name, role) = (LIST_FILE.to_owned(), BackupFileRole::List);
        let list_file = BackupFile { name, role, bytes: text.len() as u64, hash };
        Ok(list.files.iter().filter_map(described).chain([list_file]).collect())
    }
}

/// A file of the list; none for one that is made by whoever opens the backup.
fn described(file: &ListedFile) -> Option<BackupFile> {
    let role = match file.name {
        FileName::Lock | FileName::ValueDirectory(_) => return None,
        FileName::Format | FileName::Frozen => BackupFileRole::Format,
        FileName::Manifest(_) => BackupFileRole::Manifest,
        FileName::Log(_) | FileName::ArchivedLog(_) => BackupFileRole::Log,
        FileName::Part(_) => BackupFileRole::Part,
        FileName::Values(_) | FileName::ValueFile(..) | FileName::Relocated(_) => BackupFileRole::Values,
        FileName::Index(_) => BackupFileRole::Index,
    };
    Some(BackupFile { name: file.name.to_string(), role, bytes: file.len_bytes, hash: file.tail_hash })
}
