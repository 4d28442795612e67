//! The view of a reader at a moment: the present one, or that of an old snapshot with pinned files.
//!
//! **A reader at a moment takes the present view first, and then checks whether its snapshot has
//! pinned files** ([`pinned_files_at`]). In the other order, merges could in between already ignore
//! the snapshot.

use std::sync::Arc;

use folddb_base::{Error, ErrorKind, Result};

use crate::state::catalog::TableCore;
use crate::state::engine::Engine;
use crate::state::pinned_files::PinnedFiles;
use crate::state::snapshots::{At, TooOld};
use crate::state::view::TableView;

/// The pinned files of a reader at `at`, if it has some. Must be called after the present view and
/// its memtable are captured.
///
/// # Errors
/// [`ErrorKind::SnapshotTooOld`] if it is too old.
#[inline]
pub fn pinned_files_at(engine: &Engine, at: Option<At>) -> Result<Option<Arc<PinnedFiles>>> {
    match at {
        Some(at) if engine.boundaries.may_have_aged(at) => pinned_files_of_old(engine, at),
        _ => Ok(None),
    }
}

#[cold]
pub(crate) fn pinned_files_of_old(engine: &Engine, at: At) -> Result<Option<Arc<PinnedFiles>>> {
    engine.check_open()?; // it ends with the store, too
    engine.boundaries.files_of(at).map_err(|TooOld| {
        let max_s = engine.options.snapshot_age_max.unwrap_or_default().as_secs_f64();
        let message = format!("the snapshot at seq {} has become older than {max_s} s", at.seq);
        Error::new(ErrorKind::SnapshotTooOld, message)
    })
}

/// The view of `table` for a reader at `at`. Its memtables may be used only to find keys, not their
/// values: those may be folded by now.
///
/// # Errors
/// As [`pinned_files_at`]; the table is dropped.
pub fn view_at(engine: &Engine, table: &TableCore, at: Option<At>) -> Result<Arc<TableView>> {
    let view = table.view();
    let own = pinned_files_at(engine, at)?.map(|files| files.view(table));
    engine.check_readable(table)?;
    Ok(own.unwrap_or(view))
}
