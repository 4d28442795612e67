//! Checks that files listed in the manifest exist; unlisted files are leftovers.

use std::collections::BTreeSet;
use std::path::Path;

use folddb_base::{Error, FileNumber, Result, error};
use folddb_host::Files;
use folddb_layout::file_name::FileName;
use folddb_layout::values::{VALUES_HEADER_BYTES, check_header};
use folddb_manifest::State;
use folddb_value_log::directories::directory_path;
use folddb_value_log::relocated::RelocatedFile;
use folddb_value_log::segment::values_path;

use crate::options::Options;

/// Parts and files of values that the manifest does not list: from merges, flushes, reclaims and
/// bulk loads that a crash interrupted.
pub(crate) fn leftovers(dir: &Path, options: &Options, state: &State) -> Result<Vec<FileName>> {
    let names = options.host.files.list(dir).map_err(|error| Error::io("list", dir, error))?;
    let listed: BTreeSet<FileNumber> = state.part_files().chain(state.index_files()).collect();
    let is_leftover = |name: &FileName| match name {
        FileName::Part(number) | FileName::Index(number) => !listed.contains(number),
        FileName::Values(number) => !state.values.contains_key(number) || state.is_directory(*number),
        FileName::ValueDirectory(number) => !state.is_directory(*number),
        FileName::Relocated(number) => !state.relocated_files.contains_key(number),
        FileName::ArchivedLog(number) => state.feeds.archived().iter().all(|kept| kept.file != *number),
        _ => false,
    };
    let names = names.iter().filter_map(|name| FileName::parse(name));
    Ok(names.filter(is_leftover).collect())
}

/// What is said of a file that is newer than the manifest.
pub const NEWER: &str = "it was written after the last edit of the manifest, which says that the store was closed then: an \
                         older MANIFEST may have been put back. Copy the directory before anything changes it";

/// Unlisted files that were written after a store was closed, by its manifest, so that this
/// manifest is not its last. `has_log` if the log has batches that an opening replays: they may
/// hold what those files do.
///
/// The numbers tell: none is used twice, and from the first file of an opening until a clean close
/// the manifest says that the log is open. Seqs do not: a recovery may have written a part with
/// records that a power cut took from the log since, and the part may be back after another.
pub fn newer_files(
    state: &State,
    unlisted: impl Iterator<Item = FileName>,
    has_log: bool,
) -> impl Iterator<Item = FileName> {
    let is_closed = !state.log_open && !has_log;
    let next_number = state.next_number;
    let is_newer = move |name: &FileName| match *name {
        FileName::ArchivedLog(_) => false, // an opening may write one before the log is open
        name => name.number().is_some_and(|number| number.0 >= next_number),
    };
    unlisted.filter(move |name| is_closed && is_newer(name))
}

/// Refuses to write to a store that has such files: its opening would remove them.
pub(crate) fn refuse_newer(dir: &Path, state: &State, leftovers: &[FileName], has_log: bool) -> Result<()> {
    let Some(first) = newer_files(state, leftovers.iter().copied(), has_log).next() else { return Ok(()) };
    let what = format!("no manifest lists it, and {NEWER}");
    let error = error::corrupt(&dir.join(first.to_string()), 0, what);
    Err(error.advise("put the newest MANIFEST back; to go on with the older state, move such files away"))
}

/// Checks that every value segment in the manifest exists, and is one.
pub(crate) fn check_values(dir: &Path, files: &dyn Files, state: &State) -> Result<()> {
    for &number in state.directories.keys() {
        let path = directory_path(dir, number);
        if files.len_bytes(&path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            return Err(error::corrupt(&path, 0, "the manifest lists it, and it is not there"));
        }
    }
    for (&number, end) in state.values.iter().filter(|(number, _)| !state.is_directory(**number)) {
        let path = values_path(dir, number);
        let file = files.open(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                error::corrupt(&path, 0, "the manifest lists it, and it is not there")
            }
            _ => Error::io("open", &path, error),
        })?;
        let failed = |error| Error::io("read", &path, error);
        let len = file.len_bytes().map_err(failed)?;
        if len < end.unwrap_or(VALUES_HEADER_BYTES as u64).max(VALUES_HEADER_BYTES as u64) {
            return Err(error::corrupt(&path, len, "the segment ends before its values end"));
        }
        let mut header = vec![0; VALUES_HEADER_BYTES];
        file.read_exact_at(0, &mut header).map_err(failed)?;
        check_header(&header, number).map_err(|cause| error::corrupt(&path, 0, cause))?;
    }
    for (&number, &file_bytes) in &state.relocated_files {
        check_relocated(&RelocatedFile::open(files, dir, number)?, file_bytes, state.moved_in(number))?;
    }
    Ok(())
}

/// Checks that a file of relocated values is the listed one, and has the listed segments.
pub fn check_relocated(
    file: &RelocatedFile,
    file_bytes: u64,
    mut segments: impl Iterator<Item = FileNumber>,
) -> Result<()> {
    if file.file_bytes() != file_bytes {
        let what = format!("it has {} bytes instead of {file_bytes}", file.file_bytes());
        return Err(error::corrupt(file.path(), file_bytes.min(file.file_bytes()), what));
    }
    let carries = |segment: FileNumber| file.carried().iter().any(|one| u64::from(one.segment) == segment.0);
    match segments.find(|&segment| !carries(segment)) {
        None => Ok(()),
        Some(segment) => {
            let what = format!("the manifest says that it holds segment {segment}, but it does not");
            Err(error::corrupt(file.path(), 0, what))
        }
    }
}
