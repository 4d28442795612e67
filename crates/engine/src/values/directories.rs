//! Values in files of their own, as the engine puts them there and takes away those that are dead.
//!
//! A shelf is a value segment that is a directory, an object a record of it that is a file (`folddb_value_log::shelves`). All that is
//! true of segments is true of shelves, and the same rooms see to it: they are listed before anything points to them, sealed,
//! fenced, settled, and go when nothing leads to them any more. But what is alive in a shelf never moves; what is dead goes by itself:
//!
//! ```text
//!   ask      what leads to objects of some shelves: parts, indexes, snapshots; as for reclaiming
//!   look     what is on those shelves; whatever nothing leads to is dead
//!   sweep    a roster begins without the dead, which go with the last reader that has an older one
//! ```
//!
//! No edit says so: an object that is dead is one that nothing leads to, before a crash and after it. The counts of the manifest are
//! those of when a shelf was sealed; what it holds since is kept in memory (`Swept`), and found out again after an opening.
//!
//! Called by `values` and `reclaim`.

use folddb_base::{ErrorKind, Result, ValuePlace};
use folddb_layout::file_name::FileName;

use crate::state::engine::Engine;
use crate::state::log_sync;
use crate::values::segments;

/// Writes a record as an object.
pub(crate) fn put_object(engine: &Engine, record: &[u8]) -> Result<ValuePlace> {
    let shelves = &engine.values.log.shelves;
    loop {
        let put = shelves.append(record).inspect_err(|error| log_sync::note_write_failure(engine, error))?;
        if let Some(place) = put {
            return Ok(place);
        }
        let _only = engine.values.making();
        if !shelves.has_room() {
            make_shelf(engine)?;
        }
    }
}

/// Makes a shelf. The caller holds the lock under which segments are made.
fn make_shelf(engine: &Engine) -> Result<()> {
    let shelves = &engine.values.log.shelves;
    let shelf = segments::make_numbered(
        engine,
        &|| shelves.make(engine.values.bytes()),
        &|shelf| shelf.number(),
        &|shelf| shelves.unmake(shelf),
    )?;
    match segments::list_values(engine, FileName::Shelf(shelf.number())) {
        Ok(()) => shelves.adopt(shelf),
        Err(error) => {
            if matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::Closed) {
                shelves.unmake(shelf); // after any other failure the edit may be on the disk
            }
            return Err(error);
        }
    }
    Ok(())
}

/// Makes the next shelf ahead.
pub(crate) fn keep_shelves_ready(engine: &Engine) -> Result<()> {
    let shelves = &engine.values.log.shelves;
    if shelves.wants_next() && engine.health.cause().is_none() && !engine.health.is_short() {
        let _only = engine.values.making();
        if shelves.wants_next() {
            make_shelf(engine)?;
        }
    }
    Ok(())
}
