//! What the name of a file says about its content: the format of its rows, and whether it is
//! packed.
//!
//! Case does not matter.

use std::path::Path;

use crate::failure::Failure;

/// Endings of formats that hold rows, or pack files, and are not written here.
const FOREIGN: [&str; 26] = [
    "7z", "arrow", "avro", "br", "bz", "bz2", "feather", "lz", "lz4", "lzma", "lzo", "ods", "orc", "parquet",
    "rar", "snappy", "sqlite", "sz", "tar", "tgz", "xls", "xlsx", "xz", "z", "zip", "zst",
];

/// The last ending of a name, in lower case.
fn ending(name: &str) -> Option<String> {
    Some(Path::new(name).extension()?.to_str()?.to_ascii_lowercase())
}

/// Whether a file of this name is packed with gzip.
pub(crate) fn is_packed(name: &str) -> bool {
    ending(name).is_some_and(|ending| ending == "gz")
}

/// The ending of a name that says what is in the file: the one before `.gz`, if that is the last.
pub(crate) fn form(name: &str) -> Option<String> {
    if is_packed(name) { ending(&name[..name.len() - ".gz".len()]) } else { ending(name) }
}

/// Refuses to write a file if its name says that it has another format.
pub(crate) fn check_written(name: &str) -> Result<(), Failure> {
    let foreign = [ending(name), form(name)].into_iter().flatten();
    match foreign.into_iter().find(|ending| FOREIGN.contains(&ending.as_str())) {
        None => Ok(()),
        Some(ending) => Err(Failure::Usage(format!(
            "{name}: .{ending} files cannot be written; output is text, compressed with gzip if the name ends in .gz"
        ))),
    }
}

#[cfg(test)]
#[path = "file_names/tests.rs"]
mod tests;
