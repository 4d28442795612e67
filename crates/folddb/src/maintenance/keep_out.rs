//! Directories that are FoldDB's own: a store, or a place for backups. Nobody else writes into
//! them.
//!
//! Whoever makes a directory or a file somewhere for somebody asks here first: `place`, `restore`
//! and `repair`, and programs that write files out of a store, which are told by [`Store::keeps`].

use std::path::Path;

use folddb_base::{Error, Result};
use folddb_host::Files;
use folddb_layout::backup::PLACE_FILE;
use folddb_layout::file_name::FileName;

use crate::maintenance::copying::read_small;
use crate::options::Options;
use crate::store::Store;

/// What the files begin with that make a directory one of these: the words that come first in
/// `FORMAT` and `BACKUPS`.
const BEGINS: &[u8] = b"folddb ";

/// Longer files are none of these.
const MARK_BYTES_MAX: u64 = 4096;

impl Store {
    /// Whether a directory is kept by FoldDB: it is a store, one in a place for backups, or such a
    /// place. Nothing else may be written into it, nor into what lies below it. A store is told by
    /// its file `FORMAT`, also by a damaged one.
    pub fn keeps(dir: impl AsRef<Path>, options: &Options) -> bool {
        what_is(&*options.engine.host.files, dir.as_ref()).is_some()
    }
}

/// What a directory is that FoldDB keeps.
fn what_is(files: &dyn Files, dir: &Path) -> Option<&'static str> {
    let is_locked = || files.len_bytes(&dir.join(FileName::Lock.to_string())).is_ok();
    // A file of somebody else may have the name by chance.
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

/// Nothing but the store itself writes into a store's directory, nor into a backup's.
pub(crate) fn refuse_inside_store(files: &dyn Files, dir: &Path, what: &str) -> Result<()> {
    let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    for above in absolute.ancestors().skip(1) {
        if let Some(is) = what_is(files, above) {
            return Err(Error::invalid(format!(
                "{} lies inside the {is} {}; keep {what} elsewhere",
                dir.display(),
                above.display()
            )));
        }
    }
    Ok(())
}
