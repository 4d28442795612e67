//! Values of hashed tables that are too long to hold in memory: written piece by piece, each as one
//! record in a file of its own.
//!
//! ```text
//!   begin    a draft, once a stream has brought more than is held of one          no manifest lists it
//!   finish   durable; then, with the key locked (`write/hashed.rs`):
//!   place    the one value file of a directory of its own, whose number is the highest so far; later values go after it
//! ```
//!
//! If the values of a table have fronts (`hash_front.rs`), that of a long one follows it, since its
//! times are known only when its key is locked: the draft is durable except for the front, which
//! ends it.
//!
//! So for the index, the account of live values, reclaim, backups and repair it is a value file
//! like any other. Of two values of one key, the one at the later place was written later;
//! `maintenance/closed_index.rs` relies on that, so values that are put after it must not go into
//! an existing segment. It is durable before the log points to it, so an opening need not check
//! whether it is whole.
//!
//! Called by `write/stream` and `write/hashed`.

use folddb_base::{ErrorKind, Pointer, Result};
use folddb_layout::file_name::FileName;
use folddb_layout::hash_front::Front;
use folddb_manifest::{FEATURE_LASTING_PIECES, FEATURE_LONG_VALUES};
use folddb_value_log::directories::{directory_path, remove_directory};
use folddb_value_log::long_value::LongValue;

use crate::edit::install;
use crate::state::catalog::TableCore;
use crate::state::disk_quota::SpaceUser;
use crate::state::engine::Engine;
use crate::state::log_sync;
use crate::values::{put, segments};

/// How many pieces of a stream are held before the value is written as a long one.
const PIECES_HELD: usize = 4;

/// How many bytes of an incoming value are held. A value up to this length is put like any other.
pub(crate) fn long_from_bytes(engine: &Engine) -> usize {
    (engine.options.stream_piece_bytes_now() * PIECES_HELD).min(folddb_base::limits::VALUE_BYTES_MAX)
}

/// Begins a long value.
pub(crate) fn begin_long(engine: &Engine, table: &TableCore, key: &[u8]) -> Result<LongValue> {
    put::require(engine, FEATURE_LONG_VALUES, &engine.values.has_long)?;
    install::reserve_numbers(engine)?;
    LongValue::begin(&engine.host_for(SpaceUser::Values), &engine.dir, engine.numbers.take(), table.id, key)
}

/// Puts a long value, finished except for a front, where readers will find it. The caller has
/// locked its key.
pub fn put_long(engine: &Engine, value: &mut LongValue, front: Option<Front>) -> Result<Pointer<'static>> {
    if let Some(front) = front {
        put::require(engine, FEATURE_LASTING_PIECES, &engine.values.has_lasting_pieces)?;
        value.finish(&front.bytes()).inspect_err(|error| log_sync::note_lack(engine, error))?;
    }
    let value_log = &engine.values.log;
    let _only = engine.values.making();
    let directory = segments::make_numbered(
        engine,
        &|| value_log.directories.make(value.record_bytes()),
        &|directory| directory.number(),
        &|directory| value_log.directories.unmake(directory),
    )?;
    let number = directory.number();
    let gone = || remove_directory(&*engine.host.files, &directory_path(&engine.dir, number));
    let directory = value_log.directories.shelve(directory, value).inspect_err(|error| {
        gone();
        log_sync::note_write_failure(engine, error);
    })?;
    segments::list_values(engine, FileName::ValueDirectory(number)).inspect_err(|error| {
        if matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::Closed) {
            gone(); // after any other failure the edit may be on the disk
        }
    })?;
    value_log.continue_after(directory);
    engine.counters.value_bytes_written.add(value.record_bytes());
    let place = folddb_base::ValuePlace { segment: number.0 as u32, unit: 1 };
    let time_ms = engine.host.clock.unix_millis();
    Ok(Pointer { place, time_ms, hash: value.hash(), len: value.len(), head: &[] })
}
