//! What the name of a file says about its content: the format of its rows, and whether it is
//! packed.
//!
//! Case does not matter.

use std::path::Path;

use crate::failure::Failure;

/// Endings of formats that hold rows, or pack files, and are not written here.
const FOREIGN: [&str; 25] = [
    "7z", "arrow", "avro", "br", "bz", "bz2", "feather", "lz", "lz4", "lzma", "lzo", "ods", "orc", "parquet",
    "rar", "snappy", "sqlite", "sz", "tar", "tgz", "xls", "xlsx", "xz", "z", "zip",
];

/// The last ending of a name, in lower case.
fn ending(name: &str) -> Option<String> {
    Some(Path::new(name).extension()?.to_str()?.to_ascii_lowercase())
}

/// How files are packed that are written here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Zstd,
}

/// How a file of this name is packed, if it is.
pub(crate) fn packing(name: &str) -> Option<Packing> {
    match ending(name)?.as_str() {
        "gz" => Some(Packing::Gzip),
        "zst" => Some(Packing::Zstd),
        _ => None,
    }
}

/// The ending of a name that says what is in the file: the one before that of the packing, if there
/// is one.
pub(crate) fn form(name: &str) -> Option<String> {
    let last = ending(name)?;
    if packing(name).is_some() { ending(&name[..name.len() - last.len() - 1]) } else { Some(last) }
}

/// Refuses to write a file if its name says that it has another format.
pub(crate) fn check_written(name: &str) -> Result<(), Failure> {
    let foreign = [ending(name), form(name)].into_iter().flatten();
    match foreign.into_iter().find(|ending| FOREIGN.contains(&ending.as_str())) {
        None => Ok(()),
        Some(ending) => Err(Failure::Usage(format!(
            "{name}: .{ending} files cannot be written; output is text, compressed if the name ends in .gz or .zst"
        ))),
    }
}

#[cfg(test)]
#[path = "file_names/tests.rs"]
mod tests;
