//! Value segments and directories in the manifest: which exist, how long they are, when they are
//! listed, and when they are removed.

use std::path::Path;

use folddb_base::{Error, FileNumber, Result};
use folddb_host::Files;
use folddb_host::sync::atomic::Ordering;
use folddb_layout::file_name::FileName;
use folddb_manifest::{Change, State};
use folddb_value_log::ValuesEnd;
use folddb_value_log::directories::{DirectoryEnd, remove_directory};
use folddb_value_log::segment::values_path;

use crate::edit::install;
use crate::state::engine::Engine;
use crate::state::hash_index::low_bits;
use crate::state::log_sync;
use crate::state::manifest::Manifest;

/// Most numbers that are skipped before a new segment is refused.
pub(crate) const SEGMENTS_PASSED_MAX: usize = 64;

/// Creates a segment whose number differs from all others in its low bits: the slots of hashed
/// tables hold only these bits.
pub(crate) fn make_numbered<S>(
    engine: &Engine,
    make: &dyn Fn() -> Result<S>,
    number_of: &dyn Fn(&S) -> FileNumber,
    unmake: &dyn Fn(S),
) -> Result<S> {
    for _ in 0..=SEGMENTS_PASSED_MAX {
        let segment = make().inspect_err(|error| log_sync::note_write_failure(engine, error))?;
        if engine.values.files.present().number_of(low_bits(number_of(&segment).0)).is_none() {
            return Ok(segment);
        }
        unmake(segment);
    }
    Err(Error::invalid("the store has too many value segments: no number is free for another"))
}

/// Lists a new segment durably: pointers may lead to it from now on.
pub(crate) fn list_values(engine: &Engine, name: FileName) -> Result<()> {
    let values = &engine.values;
    let mut manifest = engine.manifest.lock();
    let mut changes: Vec<Change> = add_change(name).into_iter().collect();
    changes.extend(install::numbers_change(engine, manifest.state()));
    let listed = engine.check_open().and_then(|()| manifest.append(&changes));
    note_listed_values(engine, &manifest);
    drop(manifest);
    listed.inspect_err(|error| log_sync::note_write_failure(engine, error))?;
    values.files.join(name);
    Ok(())
}

/// Removes segments that a durable edit no longer lists.
pub(crate) fn remove_values(engine: &Engine, names: &[FileName]) {
    names.iter().for_each(|&name| remove_leftover(&*engine.host.files, &engine.dir, name));
}

pub(crate) fn edit_values(engine: &Engine, changes: &[Change]) -> Result<()> {
    let mut manifest = engine.manifest.lock();
    let appended = manifest.append(changes);
    note_listed_values(engine, &manifest);
    appended
}

/// Notes which segments the manifest lists now.
pub(crate) fn note_listed_values(engine: &Engine, manifest: &Manifest) {
    let state = manifest.state();
    let segments: u64 = state.values.keys().map(|&number| segment_bytes(engine, state, number)).sum();
    let listed_bytes = segments + state.relocated_files.values().sum::<u64>();
    engine.values.listed_bytes.store(listed_bytes, Ordering::Relaxed);
    engine.values.listed.store((state.values.len() + state.relocated_files.len()) as u64, Ordering::Relaxed);
    engine.values.lens.lock().retain(|number, _| {
        let is_open = state.values.get(number).is_none_or(Option::is_none); // a sealed one has its end in the manifest
        is_open && !state.relocated.contains_key(number)
    });
}

/// Bytes of a segment: the valid bytes if it is sealed, otherwise its length.
pub fn segment_bytes(engine: &Engine, state: &State, number: FileNumber) -> u64 {
    let sealed_end = state.values.get(&number).copied().flatten();
    if state.is_directory(number) {
        return directory_bytes(engine, number, sealed_end);
    }
    let made = || engine.values.lens.lock().get(&number).copied();
    let there = || engine.host.files.len_bytes(&values_path(&engine.dir, number)).ok();
    sealed_end.or_else(made).or_else(there).unwrap_or(0)
}

/// How many files of values there are.
pub fn value_segments_listed(engine: &Engine) -> u64 {
    engine.values.listed.load(Ordering::Relaxed)
}

/// The change that seals a segment.
pub(crate) fn seal_change(end: &ValuesEnd) -> Change {
    Change::SealValues { segment: end.number, end: end.end }
}

/// The same for a directory.
pub(crate) fn seal_directory_change(end: &DirectoryEnd) -> Change {
    Change::SealDirectory { segment: end.number, bytes: end.bytes, value_files: end.value_files }
}

/// The change that lists a segment of this name.
pub(crate) fn add_change(name: FileName) -> Option<Change> {
    match name {
        FileName::Values(segment) => Some(Change::AddValues { segment }),
        FileName::ValueDirectory(segment) => Some(Change::AddDirectory { segment }),
        _ => None,
    }
}

/// Removes an unlisted file. If it stays, the next opening removes it.
pub(crate) fn remove_leftover(files: &dyn Files, dir: &Path, name: FileName) {
    let path = dir.join(name.to_string());
    match name {
        FileName::ValueDirectory(_) => remove_directory(files, &path),
        _ => drop(files.remove(&path)),
    }
}

/// Known bytes of a sealed directory; the value log knows those of an open one.
pub(crate) fn directory_bytes(engine: &Engine, number: FileNumber, sealed_bytes: Option<u64>) -> u64 {
    let swept = engine.values.swept.lock().get(&number).map(|swept| swept.bytes);
    swept.or(sealed_bytes).unwrap_or(0)
}

/// Notes that from now on only parts point to these segments.
pub(crate) fn note_settled(engine: &Engine, state: &State) {
    let mut settled = engine.values.settled.lock();
    let needed_from = engine.feeds.held_from(state.log_start_lsn);
    engine.values.fences.lock().retain(|&number, &mut fence| {
        let is_flushed = fence <= needed_from;
        if is_flushed {
            settled.insert(number);
        }
        !is_flushed
    });
}

/// Begins a segment map without these. `_manifest` is held, so that a caller that captures a state
/// with the map finds its files.
pub(crate) fn begin_without(engine: &Engine, _manifest: &Manifest, gone: &[FileNumber]) {
    engine.values.files.retire(gone);
    for (_, hashed) in engine.catalog().hashed() {
        gone.iter().for_each(|&number| hashed.forget_segment(number));
    }
    let mut settled = engine.values.settled.lock();
    gone.iter().for_each(|number| {
        settled.remove(number);
    });
}
