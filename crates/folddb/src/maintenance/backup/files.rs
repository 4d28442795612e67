//! The files of a generation: hard links if possible, otherwise copies, and the list of them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use folddb_base::pointer::VALUE_ALIGN;
use folddb_base::{Error, ErrorKind, FileNumber, Result, error};
use folddb_host::ReadFile;
use folddb_layout::backup::{ListedFile, Origin};
use folddb_layout::file_name::FileName;
use folddb_layout::segment::SegmentHeader;
use folddb_manifest::State;

use crate::maintenance::backup::capture::{Segment, segment_header};
use crate::maintenance::backup::making::Making;
use crate::maintenance::copying::{self, sync_dir, tail_hash};
use crate::maintenance::generation::read_version;
use crate::maintenance::manifest_file::write_manifest;
use crate::maintenance::needed_values::needed_units;
use folddb_engine::state::hash_files::listed_indexes;

/// Puts all files of the store into the generation.
pub(crate) fn fill(making: &mut Making<'_>) -> Result<()> {
    let state = Arc::clone(&making.capture.state);
    for directory in state.directories.keys().map(|&number| FileName::ValueDirectory(number).to_string()) {
        copying::make_directory(making.files(), &making.draft.join(directory))?;
    }
    let mut to_copy = link_parts(making, &state)?;
    check_space(making, &to_copy)?;
    copy_log(making)?;
    let cut = put_open_values(making)?;
    // First, before longer work: nothing keeps another writing process from removing these.
    to_copy.splice(..0, link_value_files(making, &state, &cut)?);
    check_space(making, &to_copy)?;
    for (name, bytes) in to_copy {
        copy_part(making, name, bytes)?;
        making.counter.check()?;
    }
    for directory in state.directories.keys().map(|&number| FileName::ValueDirectory(number).to_string()) {
        sync_dir(making.files(), &making.draft.join(directory))?;
    }
    write_list(making, &state)?;
    copy_format(making)?;
    copying::write(making.files(), &making.draft.join(FileName::Lock.to_string()), &[])
}

/// Hard-links the parts if possible; returns the others.
fn link_parts(making: &mut Making<'_>, state: &State) -> Result<Vec<(FileName, u64)>> {
    let mut to_copy = Vec::new();
    let parts = listed_parts(state).map(|(number, bytes)| (FileName::Part(number), bytes));
    let values = making.capture.values.clone();
    let values = values.iter().filter(|one| one.is_sealed);
    let values = values.map(|one| (FileName::Values(one.number), one.bytes));
    let indexes = listed_indexes(state).map(|(number, bytes)| (FileName::Index(number), bytes));
    let moved = state.relocated_files.iter().map(|(&file, &bytes)| (FileName::Relocated(file), bytes));
    for (name, bytes) in parts.chain(indexes).chain(values).chain(moved) {
        let tail_hash = tail_hash_of(making, &making.engine.path(&name.to_string()), bytes)?;
        if !link(making, name, (bytes, tail_hash), true) {
            to_copy.push((name, bytes));
        }
    }
    Ok(to_copy)
}

/// Copies the value segments that are appended to, or not cut to their ends yet. If another process
/// writes, it may cut one to its end during the copy, or before: these are returned, with the
/// lengths of their copies.
fn put_open_values(making: &mut Making<'_>) -> Result<Vec<(FileNumber, u64)>> {
    let mut cut = Vec::new();
    for index in 0..making.capture.values.len() {
        let one = making.capture.values[index];
        if one.is_sealed {
            continue;
        }
        let name = FileName::Values(one.number);
        let path = making.engine.path(&name.to_string());
        let file = open(making, name, &path)?;
        // The end of a cut segment cannot be read, so it cannot be compared with a previous
        // generation.
        let tail_hash = tail_hash(&*file, one.bytes).ok();
        if tail_hash.is_some_and(|tail_hash| link(making, name, (one.bytes, tail_hash), false)) {
            continue;
        }
        check_space(making, &[(name, one.bytes)])?;
        let bytes = copy_open_values(making, name, (&*file, &path), one.bytes)?;
        making.capture.values[index].bytes = bytes;
        cut.extend(file.taken_since(bytes).map(|_| (one.number, bytes)));
    }
    Ok(cut)
}

fn copy_open_values(
    making: &mut Making<'_>,
    name: FileName,
    (file, path): (&dyn ReadFile, &Path),
    bytes: u64,
) -> Result<u64> {
    let to = making.draft.join(name.to_string());
    let files = making.files();
    let range = (file, 0..bytes);
    let len_bytes = copying::copy_to_end(files, range, (path, &to), &mut |moved| making.advance(moved))?;
    let tail_hash = tail_hash_of(making, &to, len_bytes)?;
    making.list.push(ListedFile { name, len_bytes, tail_hash, origin: Origin::Copied });
    file.wont_need(0, bytes);
    making.copied.add(len_bytes);
    Ok(len_bytes)
}

/// The same for the values in files of their own that the parts, the saved indexes and the copied
/// log point to. Such files never change. Others are dead. Of segments that were cut, what is
/// needed must lie within the copies.
fn link_value_files(
    making: &mut Making<'_>,
    state: &State,
    cut: &[(FileNumber, u64)],
) -> Result<Vec<(FileName, u64)>> {
    let (host, dirs) = (&making.engine.host, (&*making.engine.dir, making.draft));
    let state = making.state_of_log(state);
    let segments = state.directories.keys().copied().chain(cut.iter().map(|&(segment, _)| segment));
    let mut needed = needed_units(host, dirs, &state, &making.engine.options.custom, segments)?;
    for &(segment, bytes) in cut {
        let units = needed.remove(&segment).unwrap_or_default();
        if units.last().is_some_and(|&unit| u64::from(unit) * VALUE_ALIGN >= bytes) {
            return Err(removed_by_writer(&making.engine.path(&FileName::Values(segment).to_string())));
        }
    }
    let names = needed
        .iter()
        .flat_map(|(&directory, units)| units.iter().map(move |&unit| FileName::ValueFile(directory, unit)));
    let mut to_copy = Vec::new();
    for name in names {
        let path = making.engine.path(&name.to_string());
        let file = open(making, name, &path)?;
        let failed = |error| Error::io("read", &path, error);
        let bytes = file.len_bytes().map_err(failed)?;
        let tail_hash = tail_hash(&*file, bytes).map_err(failed)?;
        making.counter.expect_more(2 * bytes);
        if !link(making, name, (bytes, tail_hash), true) {
            to_copy.push((name, bytes));
        }
    }
    Ok(to_copy)
}

/// Hard-links a file of the store, or its copy in the previous generation; false if neither is
/// possible.
fn link(making: &mut Making<'_>, name: FileName, (len_bytes, tail_hash): (u64, u64), may_link: bool) -> bool {
    let (from, to) = (making.engine.path(&name.to_string()), making.draft.join(name.to_string()));
    let may_link = may_link && !making.options.copy && is_durable(making, name, &from);
    let origin = if may_link && making.files().link(&from, &to).is_ok() {
        making.linked.add(len_bytes);
        Origin::Linked
    } else if reuse(making, name, len_bytes, tail_hash, &to) {
        making.reused.add(len_bytes);
        Origin::Copied
    } else {
        return false;
    };
    making.list.push(ListedFile { name, len_bytes, tail_hash, origin });
    making.advance(len_bytes);
    true
}

/// Opens a file of the store.
fn open(making: &Making<'_>, name: FileName, path: &Path) -> Result<Arc<dyn ReadFile>> {
    let is_gone = |error: &std::io::Error| {
        let kinds = [std::io::ErrorKind::NotFound, std::io::ErrorKind::StaleNetworkFileHandle];
        matches!(name, FileName::ValueFile(..)) && kinds.contains(&error.kind())
    };
    making.files().open(path).map_err(|error| match is_gone(&error) {
        true if making.engine.options.underlying.is_some() => removed_by_writer(path),
        true => error::missing(path, "a value is in it"),
        false => Error::io("open", path, error),
    })
}

/// Whether the present state of a file is durable. A value segment is cut when it is sealed, which
/// need not be durable: after a power cut it may be longer again, and so would be its link. A value
/// in a file of its own is as durable as the log that points to it, which a read-only store has not
/// synced.
fn is_durable(making: &Making<'_>, name: FileName, path: &Path) -> bool {
    let is_known = match name {
        FileName::Values(_) => false,
        FileName::ValueFile(..) => making.engine.journal.is_some(),
        _ => true,
    };
    is_known || making.files().sync_file(path).is_ok()
}

/// Hard-links the copy of a file in the previous generation. False if it has none with these
/// properties.
fn reuse(making: &Making<'_>, name: FileName, len_bytes: u64, tail_hash: u64, to: &Path) -> bool {
    let Some((dir, files)) = &making.before else { return false };
    let same = ListedFile { name, len_bytes, tail_hash, origin: Origin::Copied };
    let from = dir.join(name.to_string());
    files.get(&name) == Some(&same)
        && making.files().len_bytes(&from).is_ok_and(|len| len == len_bytes)
        && making.files().link(&from, to).is_ok()
}

fn tail_hash_of(making: &Making<'_>, path: &Path, len_bytes: u64) -> Result<u64> {
    let file = making.files().open(path).map_err(|error| Error::io("open", path, error))?;
    tail_hash(&*file, len_bytes).map_err(|error| Error::io("read", path, error))
}

/// Fails before anything large is written if it cannot fit.
fn check_space(making: &Making<'_>, to_copy: &[(FileName, u64)]) -> Result<()> {
    let parts = to_copy.iter().map(|(_, bytes)| bytes).sum::<u64>();
    let need = parts + making.log_bytes();
    let Ok(free) = making.files().space_free_bytes(making.draft) else { return Ok(()) };
    if need <= free {
        return Ok(());
    }
    let message =
        format!("the backup would copy {need} bytes to {}, and {free} are free", making.draft.display());
    Err(Error::new(ErrorKind::NoSpace, message))
}

fn copy_part(making: &mut Making<'_>, name: FileName, bytes: u64) -> Result<()> {
    let from = making.engine.path(&name.to_string());
    let file = open(making, name, &from)?;
    copy_file(making, name, (&[], &*file, 0..bytes), &from)?;
    file.wont_need(0, bytes);
    making.copied.add(bytes);
    Ok(())
}

fn copy_log(making: &mut Making<'_>) -> Result<()> {
    let segments = std::mem::take(&mut making.capture.segments);
    for (segment, needed) in segments.iter().zip(std::mem::take(&mut making.log_needed)) {
        let name = FileName::Log(segment.number);
        let from = making.engine.path(&name.to_string());
        let header = if needed.start == 0 { Vec::new() } else { cut_header(making, segment)? };
        let copied = copy_file(making, name, (&header, &*segment.file, needed), &from)?;
        making.log.add(copied);
    }
    Ok(())
}

/// The header for the copy of the segment in which the log begins. Frames before that are in runs,
/// and are not copied: a frame is valid at its LSN, wherever in a file it is. As the segment before
/// it the copy names itself, for frames are missing before its first one.
fn cut_header(making: &Making<'_>, segment: &Segment) -> Result<Vec<u8>> {
    let (number, start_lsn) = (segment.number, making.capture.state.log_start_lsn);
    let Some(header) = segment_header(making.engine, number, &*segment.file)? else {
        let path = making.engine.path(&FileName::Log(number).to_string());
        return Err(error::corrupt(&path, 0, "the header of the segment is not whole"));
    };
    let capacity_bytes = header.next_lsn().saturating_sub(start_lsn);
    let cut = SegmentHeader { first_lsn: start_lsn, capacity_bytes, previous: Some(number), ..header };
    Ok(cut.encode())
}

fn copy_file(
    making: &mut Making<'_>,
    name: FileName,
    (head, file, range): (&[u8], &dyn ReadFile, Range<u64>),
    path: &Path,
) -> Result<u64> {
    let to = making.draft.join(name.to_string());
    let files = making.files();
    let len_bytes = head.len() as u64 + (range.end - range.start);
    copying::copy(files, (head, file, range), (path, &to), &mut |moved| making.advance(moved))?;
    let tail_hash = tail_hash_of(making, &to, len_bytes)?;
    making.list.push(ListedFile { name, len_bytes, tail_hash, origin: Origin::Copied });
    Ok(len_bytes)
}

/// Writes the manifest: what lives, and the log from its needed start up to the end of the copy,
/// all of it durable.
fn write_list(making: &mut Making<'_>, state: &State) -> Result<()> {
    let mut state = State {
        values: making.capture.values.iter().map(|one| (one.number, Some(one.bytes))).collect(),
        directories: BTreeMap::new(),
        ..making.state_of_log(state)
    };
    for &directory in making.capture.state.directories.keys() {
        let of_directory =
            |file: &&ListedFile| matches!(file.name, FileName::ValueFile(one, _) if one == directory);
        let here = making.list.iter().filter(of_directory);
        state.directories.insert(directory, Some(here.clone().count() as u64));
        state.values.insert(directory, Some(here.map(|file| file.len_bytes).sum()));
    }
    let number = write_manifest(&making.engine.host, making.draft, state)?;
    list_small(making, FileName::Manifest(number))
}

fn copy_format(making: &mut Making<'_>) -> Result<()> {
    let name = FileName::Format;
    let version = read_version(&making.engine.host, &making.engine.dir)?;
    copying::write(making.files(), &making.draft.join(name.to_string()), &version.encode())?;
    list_small(making, name)
}

fn list_small(making: &mut Making<'_>, name: FileName) -> Result<()> {
    let path = making.draft.join(name.to_string());
    let len_bytes = making.files().len_bytes(&path).map_err(|error| Error::io("read", &path, error))?;
    let tail_hash = tail_hash_of(making, &path, len_bytes)?;
    making.list.push(ListedFile { name, len_bytes, tail_hash, origin: Origin::Copied });
    Ok(())
}

fn removed_by_writer(path: &Path) -> Error {
    let message = format!(
        "the backup needs {}, and the writer has removed it, or its end, since this secondary was opened",
        path.display()
    );
    let advice = "try again; or back up in the process that writes, or while none does, or to the same file \
                  system, where values are linked instead of copied";
    Error::new(ErrorKind::SnapshotTooOld, message).advise(advice)
}

/// The parts of a state, with their lengths.
pub(crate) fn listed_parts(state: &State) -> impl Iterator<Item = (FileNumber, u64)> + '_ {
    let runs = state.tables.values().flat_map(|table| &table.runs);
    runs.flat_map(|run| &run.parts).map(|part| (part.file, part.file_bytes))
}
