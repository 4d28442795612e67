//! Directories that belong to FoldDB: a store, or a directory of backups. Nobody else writes into
//! them.
//!
//! Code that creates directories or files for a user checks here first: `backup_place`, `restore`
//! and `repair`, and programs that export files from a store, through [`Store::owns_directory`].

use std::path::Path;

use folddb_base::{Error, Result};
use folddb_host::Files;
use folddb_layout::backup::PLACE_FILE;
use folddb_layout::file_name::FileName;

use crate::maintenance::copying::read_small;
use crate::options::Options;
use crate::store::Store;

/// The beginning of the files that mark such directories: the first words of `FORMAT` and
/// `BACKUPS`.
const BEGINS: &[u8] = b"folddb ";

/// Longer files are not marks.
const MARK_BYTES_MAX: u64 = 4096;

impl Store {
    /// Whether a directory belongs to FoldDB: it is a store, a backup, or a directory of backups.
    /// Nothing else may be written into it or below it. A store is recognized by its file `FORMAT`,
    /// even if that is damaged.
    pub fn owns_directory(dir: impl AsRef<Path>, options: &Options) -> bool {
        what_is(&*options.engine.host.files, dir.as_ref()).is_some()
    }
}

/// What kind of FoldDB directory this is, if any.
fn what_is(files: &dyn Files, dir: &Path) -> Option<&'static str> {
    let is_locked = || files.len_bytes(&dir.join(FileName::Lock.to_string())).is_ok();
    // A foreign file may have the name by chance.
    let begins_so = |mark: &Path| {
        let bytes = read_small(files, mark, MARK_BYTES_MAX).ok().flatten();
        bytes.is_some_and(|bytes| bytes.starts_with(BEGINS))
    };
    let is_marked = |name: &str| {
        let mark = dir.join(name);
        files.len_bytes(&mark).is_ok() && (is_locked() || begins_so(&mark))
    };
    if is_marked(&FileName::Format.to_string()) {
        return Some("store");
    }
    is_marked(PLACE_FILE).then_some("place for backups")
}

/// Refuses to write into the directory of a store or of a backup.
pub(crate) fn refuse_inside_store(files: &dyn Files, dir: &Path, what: &str) -> Result<()> {
    let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    for above in absolute.ancestors().skip(1) {
        if let Some(is) = what_is(files, above) {
            return Err(Error::invalid(format!(
                "{} is inside the {is} {}; keep {what} elsewhere",
                dir.display(),
                above.display()
            )));
        }
    }
    Ok(())
}
