//! The inputs that are kept: `corpus/TARGET/`, a file each.
//!
//! `seed-00` and so on come from the real encoders, see the example `seeds`; what has another name
//! was found by a search and is there because it reaches code that the others do not, or because it
//! was a bug once (`bug-...`).

use std::io;
use std::path::{Path, PathBuf};

use folddb_base::checksum::hash64;

use crate::target::Target;

/// Where the kept inputs of a target are.
pub fn folder(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name)
}

/// Where an input that failed is put.
pub fn failing_path(target: &Target, input: &[u8]) -> PathBuf {
    let name = format!("{:016x}", hash64(0, input));
    Path::new(env!("CARGO_MANIFEST_DIR")).join("failing").join(target.name).join(name)
}

/// The kept inputs of a target, in the order of their names.
///
/// # Errors
/// A file cannot be read. A folder that is not there holds nothing.
pub fn load(target: &Target) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let entries = match std::fs::read_dir(folder(target)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    paths.into_iter().map(|path| Ok((path.clone(), std::fs::read(path)?))).collect()
}

/// Writes an input to a file, and the folders above it.
///
/// # Errors
/// The file cannot be written.
pub fn save(path: &Path, input: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, input)
}
