//! Puts values into the value log, before the batch that points to them takes the commit lock.
//!
//! ```text
//!   put     the record into an open segment; its place goes into the batch
//!   room    if no segment has room: one is created, listed in the manifest, and only then used
//! ```
//!
//! A batch that fails after its values were put leaves dead bytes behind.

use folddb_base::{ErrorKind, Result, ValuePlace};
use folddb_host::sync::atomic::{AtomicBool, Ordering};
use folddb_layout::file_name::FileName;
use folddb_manifest::{Change, FEATURE_LASTING_PIECES, FEATURE_ROPES};
use folddb_rules::value_placement::ValuePlacement;

use crate::state::engine::Engine;
use crate::state::log_sync;
use crate::values::{directories, segments};

/// Records durably, before the first rope, that versions which do not know ropes must not open the
/// store.
#[cold]
pub(crate) fn begin_ropes(engine: &Engine, have_deadlines: bool) -> Result<()> {
    if have_deadlines {
        require(engine, FEATURE_LASTING_PIECES, &engine.values.has_lasting_pieces)?;
    }
    require(engine, FEATURE_ROPES, &engine.values.has_ropes)
}

/// Records durably that readers of the store must know a feature; `is_said` notes that it is
/// recorded.
pub(crate) fn require(engine: &Engine, feature: u64, is_said: &AtomicBool) -> Result<()> {
    if is_said.load(Ordering::Acquire) {
        return Ok(());
    }
    let mut manifest = engine.manifest.lock();
    if manifest.state().features & feature == 0 {
        engine.check_open()?;
        let said = manifest.append(&[Change::Require { features: feature }]);
        said.inspect_err(|error| log_sync::note_write_failure(engine, error))?;
    }
    is_said.store(true, Ordering::Release);
    Ok(())
}

/// Puts one record of a value into the value log.
pub fn put_value(engine: &Engine, value_placement: ValuePlacement, record: &[u8]) -> Result<ValuePlace> {
    if value_placement == ValuePlacement::Files {
        return directories::put_value_file(engine, record);
    }
    loop {
        let put = engine
            .values
            .log
            .append(record)
            .inspect_err(|error| log_sync::note_write_failure(engine, error))?;
        if let Some(place) = put {
            return Ok(place);
        }
        make_room(engine, record.len() as u64)?;
    }
}

/// Creates a segment for a record of this many bytes, unless another thread just has. It is listed
/// before anything points to it.
pub(crate) fn make_room(engine: &Engine, record_bytes: u64) -> Result<()> {
    let values = &engine.values;
    let _only = values.making.lock();
    if values.log.has_room(record_bytes) {
        return Ok(());
    }
    make_segment(engine, record_bytes)
}

pub(crate) fn make_segment(engine: &Engine, record_bytes: u64) -> Result<()> {
    let values = &engine.values;
    let segment = segments::make_numbered(
        engine,
        &|| values.log.make(record_bytes, engine.values.bytes()),
        &|segment| segment.number(),
        &|segment| values.log.unmake(segment),
    )?;
    values.lens.lock().insert(segment.number(), segment.len_bytes());
    match segments::list_values(engine, FileName::Values(segment.number())) {
        Ok(()) => values.log.adopt(segment, record_bytes),
        Err(error) => {
            // After any other failure the edit may be on the disk, and the segment that it lists
            // must stay.
            if matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::Closed) {
                values.log.unmake(segment);
            }
            return Err(error);
        }
    }
    Ok(())
}
