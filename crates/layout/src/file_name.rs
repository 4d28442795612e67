//! The names of a store's files. One counter numbers them all, so a number never means two files.
//!
//! ```text
//!   FORMAT            what wrote the store (version.rs)
//!   LOCK              locked while the store is open
//!   SEALED            there while the store is frozen
//!   MANIFEST-000012   the list of what lives (manifest_edit.rs)
//!   000007.log        a segment of the log (segment.rs)
//!   000008.kept       an archived part of the log, rewritten for feeds: the end that a crash left, or small files joined (segment.rs)
//!   000012.values     a segment of the value log (values.rs)
//!   000044.moved      relocated values: those of some segments, copied together (relocated.rs)
//!   000031.shelf      a value directory: a segment of the value log in which each record is a file:
//!   000031.shelf/000007.value       the seventh, by its record alone (values.rs)
//!   000009.part       a part of a sorted run
//!   000015.index      a checkpoint of the index of a hashed table (hash_checkpoint.rs), or the changes after one (hash_changes.rs)
//! ```
//!
//! Some of these names are older than the words: files that exist are never renamed. A file with
//! another name does not belong to the store, and is left alone.

use std::fmt;

use folddb_base::FileNumber;

/// A file of a store, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileName {
    /// The format of the store.
    Format,
    /// Locked while the store is open.
    Lock,
    /// Marks the store as read-only.
    Frozen,
    /// A list of what lives.
    Manifest(FileNumber),
    /// A segment of the log.
    Log(FileNumber),
    /// The end of a log that a crash left, for feeds.
    ArchivedLog(FileNumber),
    /// A segment of the value log.
    Values(FileNumber),
    /// Relocated values of segments.
    Relocated(FileNumber),
    /// A segment of the value log that is a directory.
    ValueDirectory(FileNumber),
    /// A record of such a directory.
    ValueFile(FileNumber, u32),
    /// A part of a sorted run.
    Part(FileNumber),
    /// A checkpoint of the index of a hashed table.
    Index(FileNumber),
}

impl FileName {
    /// The file with this name; none when the store has no such name. Only what [`FileName`] prints
    /// is read, so that two names never mean one file.
    pub fn parse(name: &str) -> Option<FileName> {
        let file = match name {
            "FORMAT" => FileName::Format,
            "LOCK" => FileName::Lock,
            "SEALED" => FileName::Frozen,
            _ => parse_numbered(name)?,
        };
        Some(file)
    }

    /// Its number, if it has one.
    pub fn number(self) -> Option<FileNumber> {
        match self {
            FileName::Format | FileName::Lock | FileName::Frozen => None,
            FileName::Manifest(number)
            | FileName::Log(number)
            | FileName::ArchivedLog(number)
            | FileName::Values(number)
            | FileName::Relocated(number)
            | FileName::ValueDirectory(number)
            | FileName::ValueFile(number, _)
            | FileName::Part(number)
            | FileName::Index(number) => Some(number),
        }
    }
}

fn parse_numbered(name: &str) -> Option<FileName> {
    if let Some(digits) = name.strip_prefix("MANIFEST-") {
        return parse_number(digits).map(FileName::Manifest);
    }
    if let Some((directory, value_file)) = name.split_once('/') {
        let FileName::ValueDirectory(directory) = parse_numbered(directory)? else { return None };
        return parse_value_file(value_file).map(|unit| FileName::ValueFile(directory, unit));
    }
    let (digits, kind) = name.split_once('.')?;
    let number = parse_number(digits)?;
    match kind {
        "log" => Some(FileName::Log(number)),
        "kept" => Some(FileName::ArchivedLog(number)),
        "values" => Some(FileName::Values(number)),
        "moved" => Some(FileName::Relocated(number)),
        "shelf" => Some(FileName::ValueDirectory(number)),
        "part" => Some(FileName::Part(number)),
        "index" => Some(FileName::Index(number)),
        _ => None,
    }
}

/// The name of a value file in its directory.
pub fn value_file_name(unit: u32) -> String {
    format!("{unit:06}.value")
}

/// The value file with this name in its directory; none if no value file has such a name.
pub fn parse_value_file(name: &str) -> Option<u32> {
    let number = parse_number(name.strip_suffix(".value")?)?;
    u32::try_from(number.0).ok()
}

/// Six digits, or more without a leading zero.
fn parse_number(digits: &str) -> Option<FileNumber> {
    let plain = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let padded_too_far = digits.len() > 6 && digits.starts_with('0');
    if !plain || padded_too_far {
        return None;
    }
    digits.parse().ok().map(FileNumber)
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileName::Format => f.write_str("FORMAT"),
            FileName::Lock => f.write_str("LOCK"),
            FileName::Frozen => f.write_str("SEALED"),
            FileName::Manifest(number) => write!(f, "MANIFEST-{:06}", number.0),
            FileName::Log(number) => write!(f, "{:06}.log", number.0),
            FileName::ArchivedLog(number) => write!(f, "{:06}.kept", number.0),
            FileName::Values(number) => write!(f, "{:06}.values", number.0),
            FileName::Relocated(number) => write!(f, "{:06}.moved", number.0),
            FileName::ValueDirectory(number) => write!(f, "{:06}.shelf", number.0),
            FileName::ValueFile(directory, unit) => {
                write!(f, "{:06}.shelf/{}", directory.0, value_file_name(*unit))
            }
            FileName::Part(number) => write!(f, "{:06}.part", number.0),
            FileName::Index(number) => write!(f, "{:06}.index", number.0),
        }
    }
}

#[cfg(test)]
#[path = "file_name/tests.rs"]
mod tests;
