//! A manifest that may have lost its end, and the errors that this may cause.

use std::path::Path;

use folddb_base::{Error, ErrorKind};
use folddb_layout::file_name::FileName;
use folddb_manifest::Loaded;

use crate::options::Options;

/// A manifest that may have lost its end, for errors that this may cause.
pub(crate) struct TornManifest {
    named: String,
    /// It ends in half an edit. A crash during the writing of an edit leaves one, too, which by
    /// itself is not damage: it was never acknowledged.
    is_cut: bool,
}

pub(crate) fn torn_manifest(dir: &Path, options: &Options, loaded: &Loaded) -> Option<TornManifest> {
    let path = dir.join(FileName::Manifest(loaded.number).to_string());
    let end = options.host.files.len_bytes(&path).ok()?.saturating_sub(loaded.cut_bytes);
    let named = format!(
        "{} ends its last whole edit at offset {end}, and may have lost what came after",
        path.display()
    );
    let is_cut = loaded.cut_bytes > 0;
    (is_cut || loaded.state.log_open).then_some(TornManifest { named, is_cut })
}

/// Damage, with the manifest as its possible cause. A manifest that ends with a whole edit may have
/// lost others, which shows in missing things; wrong bytes do not come from it.
pub(crate) fn blame_manifest(torn: &Option<TornManifest>, error: Error) -> Error {
    match torn {
        Some(torn) if error.kind() == ErrorKind::Corruption && (torn.is_cut || error.is_lacking()) => {
            error.context(&torn.named)
        }
        _ => error,
    }
}
