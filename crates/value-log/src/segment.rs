//! A value segment as a file: its path, the length of the next one, and how a record of it is read.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use folddb_base::pointer::Pointer;
use folddb_base::{Error, FileNumber, Result, TableId, error};
use folddb_host::ReadFile;
use folddb_layout::file_name::FileName;
use folddb_layout::values::{self, RECORD_HEAD_BYTES};

/// A value segment, and where its valid bytes end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValuesEnd {
    /// The segment.
    pub number: FileNumber,
    /// The offset where its valid bytes end.
    pub end: u64,
}

/// The length of the shortest segment, in bytes: the disk space that the values of a small store
/// take.
const SEGMENT_BYTES_MIN: u64 = 256 << 10;

/// Segments are at most this long, in bytes, until the value log holds 32 times as much.
const SEGMENT_BYTES_SOON: u64 = 4 << 20;

/// The length of the next segment of a value log that holds this many bytes. Segments begin small
/// and grow with the value log: in a value log of 64 MiB and more, a segment is at most a sixteenth
/// of it. There are about a hundred segments before they are `max` long.
pub fn next_segment_bytes(held_bytes: u64, max: u64) -> u64 {
    let soon = held_bytes.clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_SOON);
    let wanted = soon.max(held_bytes / 16);
    (1 << wanted.ilog2()).min(max)
}

/// The path of the value segment with this number.
pub fn values_path(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(FileName::Values(number).to_string())
}

/// How many bytes [`read_value`] reads.
pub fn read_bytes(key: &[u8], pointer: &Pointer<'_>) -> u64 {
    (RECORD_HEAD_BYTES as u64 + key.len() as u64).saturating_add(pointer.len)
}

/// Reads the record that a pointer leads to into `record`, in one read, and returns its value.
/// `file_bytes` is how long the file was when it was opened.
///
/// # Errors
/// `Corruption`, which names file and offset, if it is not what the pointer says; a failed read.
pub fn read_value<'r>(
    (file, file_bytes): (&dyn ReadFile, u64),
    path: &Path,
    (table, key): (TableId, &[u8]),
    pointer: &Pointer<'_>,
    record: &'r mut Vec<u8>,
) -> Result<&'r [u8]> {
    let offset = pointer.place.offset();
    let ends_before = "the segment ends before the value that a pointer leads to";
    let len = read_bytes(key, pointer);
    // This is checked before any memory is allocated for it.
    if offset.checked_add(len).is_none_or(|end| end > file_bytes) {
        return Err(missing(file, path, offset, ends_before));
    }
    record.resize(len as usize, 0);
    file.read_exact_at(offset, record).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => missing(file, path, offset, ends_before),
        _ => Error::io("read", path, error),
    })?;
    values::value_in(record, table, key, pointer)
        .ok_or_else(|| error::corrupt(path, offset, "the value is not the one that was written there"))
}

/// The error for a record that is not at its offset: damage, unless the writer, in another process,
/// has freed that place.
#[cold]
pub(crate) fn missing(file: &dyn ReadFile, path: &Path, offset: u64, what: impl Display) -> Error {
    match file.taken_since(offset) {
        Some(taken) => Error::io("read", path, taken),
        None => error::corrupt(path, offset, what),
    }
}

/// Fills `buf` with the bytes at this offset.
pub(crate) fn read_at(file: &dyn ReadFile, path: &Path, offset: u64, buf: &mut [u8]) -> Result<()> {
    file.read_exact_at(offset, buf).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => error::corrupt(path, offset, "the file ends here"),
        _ => Error::io("read", path, error),
    })
}
