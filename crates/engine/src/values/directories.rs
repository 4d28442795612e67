//! Values in files of their own: putting them there, and removing dead ones.
//!
//! A value directory is a value segment in the form of a directory, a value file one of its records
//! in the form of a file (`folddb_value_log::directories`). Everything about segments applies to
//! directories, in the same modules: they are listed before anything points to them, sealed,
//! fenced, settled, and removed when nothing points to them any more. But live values in a
//! directory never move; dead ones are removed individually:
//!
//! ```text
//!   ask      what leads to value files of some directories: parts, indexes, snapshots; as for reclaiming
//!   look     what is on those directories; what nothing leads to is dead
//!   sweep    a segment map begins without the dead, which go with the last reader that has an older one
//! ```
//!
//! No edit records it: a dead value file is one that nothing points to, before a crash and after
//! it. The counts in the manifest are those of the sealing of a directory; later counts are kept in
//! memory (`Swept`), and determined again after an opening.
//!
//! Called by `values` and `reclaim`.

use folddb_base::{ErrorKind, Result, ValuePlace};
use folddb_layout::file_name::FileName;

use crate::state::engine::Engine;
use crate::state::log_sync;
use crate::values::segments;

/// Writes a record as a value file.
pub(crate) fn put_value_file(engine: &Engine, record: &[u8]) -> Result<ValuePlace> {
    let directories = &engine.values.log.directories;
    loop {
        let put =
            directories.append(record).inspect_err(|error| log_sync::note_write_failure(engine, error))?;
        if let Some(place) = put {
            return Ok(place);
        }
        let _only = engine.values.making();
        if !directories.has_room() {
            make_directory(engine)?;
        }
    }
}

/// Creates a directory. The caller holds the lock for creating segments.
fn make_directory(engine: &Engine) -> Result<()> {
    let directories = &engine.values.log.directories;
    let directory = segments::make_numbered(
        engine,
        &|| directories.make(engine.values.bytes()),
        &|directory| directory.number(),
        &|directory| directories.unmake(directory),
    )?;
    match segments::list_values(engine, FileName::ValueDirectory(directory.number())) {
        Ok(()) => directories.adopt(directory),
        Err(error) => {
            if matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::Closed) {
                directories.unmake(directory); // after any other failure the edit may be on the disk
            }
            return Err(error);
        }
    }
    Ok(())
}

/// Creates the next directory ahead.
pub(crate) fn keep_directories_ready(engine: &Engine) -> Result<()> {
    let directories = &engine.values.log.directories;
    if directories.wants_next() && engine.health.cause().is_none() && !engine.health.is_short() {
        let _only = engine.values.making();
        if directories.wants_next() {
            make_directory(engine)?;
        }
    }
    Ok(())
}
