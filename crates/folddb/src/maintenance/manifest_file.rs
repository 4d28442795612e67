//! Writes the manifest of a store that is made from another: of a backup, a restored store, or a
//! repaired one.

use std::path::Path;
use std::sync::Arc;

use folddb_base::{FileNumber, Result};
use folddb_host::Host;
use folddb_manifest::{Loaded, ManifestLog, State};

use folddb_engine::state::numbers::Numbers;

/// Writes a manifest with exactly this state. Returns its number.
pub(crate) fn write_manifest(host: &Host, dir: &Path, state: State) -> Result<FileNumber> {
    let (next_number, numbers) = (state.next_number, Numbers::starting_at(state.next_number));
    let loaded = Loaded { state, next_number, cut_bytes: 0, number: FileNumber(0), edits: 0 };
    ManifestLog::resume(host, dir, loaded, Arc::new(move || numbers.take()))?;
    Ok(FileNumber(next_number))
}
