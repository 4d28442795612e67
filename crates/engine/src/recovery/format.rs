//! The directory of a store before anything in it is read: FORMAT, the lock, whether the store is
//! frozen.
//!
//! ```text
//!   create   directory, MANIFEST, FORMAT last: a creation that was cut short is no store
//!   open     lock, FORMAT, then the manifest
//! ```

use std::path::Path;

use folddb_base::{Error, ErrorKind, Result, error};
use folddb_host::files::FileLock;
use folddb_host::sync::thread;
use folddb_host::{Files, LockMode};
use folddb_layout::backup::{LIST_FILE, PLACE_FILE};
use folddb_layout::file_name::FileName;
use folddb_layout::version::{FORMAT_FILE_BYTES_MAX, Version};

use crate::options::Options;

/// An identity that no other store has.
pub fn new_store_id(options: &Options) -> u128 {
    let chance = &options.host.chance;
    (u128::from(chance.next_u64()) << 64) | u128::from(chance.next_u64())
}

/// Creates a directory, unless it exists and is empty.
pub fn make_empty_dir(files: &dyn Files, dir: &Path) -> Result<()> {
    match files.create_dir(dir) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let names = match files.list(dir) {
                Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Err(is_file(dir)),
                names => names.map_err(|error| Error::io("list", dir, error))?,
            };
            if !names.is_empty() {
                let message = format!("{} exists already and is not empty", dir.display());
                return Err(Error::new(ErrorKind::AlreadyExists, message));
            }
            Ok(())
        }
        Err(error) => Err(Error::io("create the directory", dir, error)),
    }
}

/// The error for creating a store where there is a file.
pub fn is_file(path: &Path) -> Error {
    let message = format!("{} is a file; a store needs a directory of its own", path.display());
    Error::new(ErrorKind::AlreadyExists, message).advise("choose another name")
}

/// Makes a directory a store, durably. FORMAT comes last: an interrupted creation is not a store.
/// It gets its name only when its bytes and the name of the directory are durable. Otherwise
/// another process could open the store after this one has died, and be promised durability for
/// data that a power cut then removes together with the whole directory.
pub fn write_format(files: &dyn Files, dir: &Path, version: &Version) -> Result<()> {
    sync_parent(files, dir)?;
    let (format, unfinished) = (dir.join(FileName::Format.to_string()), dir.join("FORMAT.new"));
    let mut file = files.create(&unfinished).map_err(|error| Error::io("create", &unfinished, error))?;
    file.append(&version.encode()).map_err(|error| Error::io("write", &unfinished, error))?;
    file.sync().map_err(|error| Error::io("sync", &unfinished, error))?;
    drop(file);
    files.rename(&unfinished, &format).map_err(|error| Error::io("rename", &unfinished, error))?;
    sync_dir(files, dir)
}

/// Makes the name of a directory durable.
pub fn sync_parent(files: &dyn Files, dir: &Path) -> Result<()> {
    match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => sync_dir(files, Path::new(".")),
        Some(parent) => sync_dir(files, parent),
        None => Ok(()),
    }
}

pub fn sync_dir(files: &dyn Files, dir: &Path) -> Result<()> {
    files.sync_dir(dir).map_err(|error| Error::io("sync the directory", dir, error))
}

pub fn check_format(dir: &Path, options: &Options) -> Result<()> {
    let version = read_version(dir, options)?;
    if !version.is_readable() {
        let message = format!(
            "{} was written in format {}, which this version cannot read",
            dir.display(),
            version.major
        );
        return Err(Error::new(ErrorKind::NewerFormat, message));
    }
    Ok(())
}

/// The error that a directory has no store, with what is there instead.
pub fn store_not_found(dir: &Path, options: &Options) -> Error {
    if options.host.files.len_bytes(&dir.join(PLACE_FILE)).is_ok() {
        let message = format!(
            "{} holds backups, each a store in a directory of its own: name one to read it, or restore one to write",
            dir.display()
        );
        return Error::new(ErrorKind::StoreNotFound, message).advise("");
    }
    Error::new(ErrorKind::StoreNotFound, format!("there is no FoldDB store at {}", dir.display()))
}

/// The contents of `FORMAT`, even if this version cannot read the store.
pub fn read_version(dir: &Path, options: &Options) -> Result<Version> {
    let path = dir.join(FileName::Format.to_string());
    let file = options.host.files.open(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => store_not_found(dir, options),
        _ => Error::io("open", &path, error),
    })?;
    let failed = |error| Error::io("read", &path, error);
    let len = file.len_bytes().map_err(failed)?.min(FORMAT_FILE_BYTES_MAX as u64);
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(0, &mut bytes).map_err(failed)?;
    Version::decode(&bytes).map_err(|cause| error::corrupt(&path, 0, cause))
}

/// Locks the store as its opening needs: not at all for a secondary, and a frozen store only if
/// that is possible.
pub fn lock_to_open(dir: &Path, options: &Options) -> Result<Option<Box<dyn FileLock>>> {
    if options.underlying.is_some() {
        return Ok(None);
    }
    match (is_frozen(&*options.host.files, dir), options.read_only) {
        (true, true) => Ok(lock(dir, options).ok()),
        (true, false) => Err(refuse(dir)),
        (false, _) => {
            let lock = lock(dir, options)?;
            // The previous holder of the lock may have frozen it.
            match !options.read_only && is_frozen(&*options.host.files, dir) {
                true => Err(refuse(dir)),
                false => Ok(Some(lock)),
            }
        }
    }
}

/// Locks the store; shared with other readers if it is opened for reading.
pub fn lock(dir: &Path, options: &Options) -> Result<Box<dyn FileLock>> {
    let path = dir.join(FileName::Lock.to_string());
    let mode = if options.read_only { LockMode::Shared } else { LockMode::Exclusive };
    let locked = lock_file(&*options.host.files, &path, mode);
    locked.map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            Error::new(ErrorKind::Locked, format!("the store {} is open elsewhere", dir.display()))
        }
        _ => Error::io("lock", &path, error),
    })
}

/// Locks a file. A child process holds a copy of every lock for a moment, until it has become
/// another program; this waits for that.
pub fn lock_file(files: &dyn Files, path: &Path, mode: LockMode) -> std::io::Result<Box<dyn FileLock>> {
    let mut locked = files.lock(path, mode);
    for _ in 0..20 {
        if !locked.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock) {
            break;
        }
        thread::sleep(std::time::Duration::from_millis(5));
        locked = files.lock(path, mode);
    }
    locked
}

/// A backup is restored, and never written to: it would no longer be a copy.
pub(crate) fn refuse_to_write_a_backup(dir: &Path, options: &Options) -> Result<()> {
    if options.read_only || options.host.files.len_bytes(&dir.join(LIST_FILE)).is_err() {
        return Ok(());
    }
    let message =
        format!("{} is a backup: restore it to a new store, or open it for reading only", dir.display());
    Err(Error::invalid(message))
}

pub fn is_frozen(files: &dyn Files, dir: &Path) -> bool {
    files.len_bytes(&dir.join(FileName::Frozen.to_string())).is_ok()
}

/// The error for writing to a frozen store.
pub fn refuse(dir: &Path) -> Error {
    let message = format!("the store {} is frozen", dir.display());
    Error::new(ErrorKind::ReadOnly, message).advise("open it for reading, or thaw it")
}
