//! The copy of the workspace that faults are put into. The workspace itself is never touched.
//!
//! It is in the target directory, always at the same place, and is brought up to date rather than
//! rebuilt: cargo then builds only what has changed since the last run.
//!
//! ```text
//!   target/mutations/tree     the copy
//!   target/mutations/build    what cargo builds of it
//! ```
//!
//! It has a target directory of its own, since cargo distinguishes crates of two workspaces by
//! their names only: a build with a fault in it would be taken for the crate of the workspace
//! itself.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A copy of the workspace's files. No other run uses it meanwhile.
pub(crate) struct Tree {
    /// Its root.
    pub(crate) root: PathBuf,
    /// Where cargo puts what it builds of it.
    pub(crate) build_dir: PathBuf,
    _lock: File,
}

impl Tree {
    /// Copies every file of the workspace at `from` that git tracks, or would.
    ///
    /// # Errors
    /// Git does not answer, another run has not ended, or a file cannot be copied.
    pub(crate) fn copy_of(from: &Path, target_dir: &Path) -> Result<Tree, String> {
        let place = target_dir.join("mutations");
        let root = place.join("tree");
        let told = |error: io::Error| format!("cannot copy the workspace to {}: {error}", root.display());
        fs::create_dir_all(&root).map_err(told)?;
        let lock = File::create(place.join("lock")).map_err(told)?;
        if lock.try_lock().is_err() {
            return Err(format!("another run uses {}", root.display()));
        }
        let wanted = files_of(from)?;
        for name in files_below(&root, Path::new("")).map_err(told)? {
            if !wanted.contains(&name) {
                fs::remove_file(root.join(name)).map_err(told)?;
            }
        }
        let tree = Tree { root: root.clone(), build_dir: place.join("build"), _lock: lock };
        for name in &wanted {
            let bytes = fs::read(from.join(name)).map_err(told)?;
            tree.put(name, &bytes).map_err(told)?;
        }
        Ok(tree)
    }

    /// Writes a file, unless it is so already: cargo goes by the times of files.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn put(&self, name: &Path, bytes: &[u8]) -> io::Result<()> {
        let path = self.root.join(name);
        if fs::read(&path).is_ok_and(|present| present == bytes) {
            return Ok(());
        }
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        fs::write(path, bytes)
    }
}

/// The files that git tracks or would, and that exist.
fn files_of(workspace: &Path) -> Result<BTreeSet<PathBuf>, String> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let told = Command::new("git").args(list).current_dir(workspace).output();
    let told = told.map_err(|error| format!("cannot ask git for the files of the workspace: {error}"))?;
    if !told.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&told.stderr).trim()));
    }
    let names = String::from_utf8_lossy(&told.stdout).into_owned();
    let names = names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from);
    Ok(names.filter(|name| workspace.join(name).is_file()).collect())
}

fn files_below(root: &Path, within: &Path) -> io::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join(within))? {
        let entry = entry?;
        let name = within.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            names.extend(files_below(root, &name)?);
        } else {
            names.push(name);
        }
    }
    Ok(names)
}
