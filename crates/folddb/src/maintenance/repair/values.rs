//! The value log of a store that is salvaged: its files are copied with every value in its place;
//! damaged headers and maps are rewritten. Lost values are found through pointers.
//!
//! ```text
//!   .values   copied, with a new header; a missing one becomes an empty one
//!   .shelf    file by file
//!   .moved    copied if intact; otherwise with a map rebuilt from its intact pages
//! ```
//!
//! Unreadable bytes become zeros in the copy.
//!
//! Called by `repair`.

use std::collections::BTreeSet;

use folddb_base::{Error, FileNumber, Result};
use folddb_host::Files;
use folddb_layout::file_name::FileName;
use folddb_layout::values::{check_header, header};
use folddb_manifest::State;
use folddb_value_log::directories::{DirectoryEnd, value_files_in};
use folddb_value_log::relocated::{RelocatedFile, open_damaged, write_salvaged};

use crate::maintenance::copying;
use crate::maintenance::finding::Finding;
use crate::maintenance::repair::repairer::Repairer;
use crate::maintenance::survey::{Survey, in_words};

// ---- where values lie ---------------------------------------------------------------------------

/// If the list is older than the store, values may have been relocated since: a segment that is not
/// at its listed place is searched for in the files of relocated values, which list their segments.
/// Of two files with a segment the newer counts: what only the older one has was dead. A damaged
/// file counts only for segments without an intact one.
pub(super) fn find_values(survey: &Survey, files: &dyn Files, state: &mut State) {
    let whole = |number: FileNumber| RelocatedFile::open(files, &survey.dir, number).ok();
    let damaged = |number: FileNumber| match whole(number) {
        Some(_) => None,
        None => open_damaged(files, &survey.dir, number).ok(),
    };
    let is_there = |segment: FileNumber| match state.relocated.get(&segment) {
        Some(&file) => whole(file).or_else(|| damaged(file)).is_some(),
        None => files.len_bytes(&survey.path(FileName::Values(segment))).is_ok(),
    };
    let listed =
        state.values.keys().chain(state.relocated.keys()).filter(|&&segment| !state.is_directory(segment));
    let gone: Vec<FileNumber> = listed.copied().filter(|&segment| !is_there(segment)).collect();
    if gone.is_empty() {
        return;
    }
    let numbers = || {
        survey.files.iter().filter_map(|name| match name {
            FileName::Relocated(number) => Some(*number),
            _ => None,
        })
    };
    for file in numbers().filter_map(damaged).chain(numbers().filter_map(whole)) {
        let carries =
            |segment: &&FileNumber| file.carried().iter().any(|one| u64::from(one.segment) == segment.0);
        for &segment in gone.iter().filter(carries) {
            state.values.remove(&segment);
            state.relocated.insert(segment, file.number());
            state.relocated_files.insert(file.number(), file.file_bytes());
        }
    }
    for segment in gone {
        let is_in_own = files.len_bytes(&survey.path(FileName::Values(segment))).is_ok();
        let is_moved = state
            .relocated
            .get(&segment)
            .is_some_and(|&file| whole(file).or_else(|| damaged(file)).is_some());
        if is_in_own && !is_moved {
            state.relocated.remove(&segment);
            state.values.insert(segment, None);
        }
    }
    let used: BTreeSet<FileNumber> = state.relocated.values().copied().collect();
    state.relocated_files.retain(|file, _| used.contains(file));
}

/// Copies the values unchanged. Missing segments are written as empty ones, so that the store opens
/// and only their values are missing.
pub(super) fn take_over(repairer: &mut Repairer<'_>, state: &mut State) -> Result<()> {
    let directories: Vec<FileNumber> = state.directories.keys().copied().collect();
    for &number in &directories {
        directory(repairer, state, number)?;
    }
    for (&number, end) in state.values.iter_mut().filter(|(number, _)| !directories.contains(number)) {
        segment(repairer, number, end)?;
    }
    for file in std::mem::take(&mut state.relocated_files).into_keys() {
        relocated_values(repairer, state, file)?;
    }
    Ok(())
}

fn segment(repairer: &mut Repairer<'_>, number: FileNumber, end: &mut Option<u64>) -> Result<()> {
    let files = &*repairer.options.host.files;
    let name = FileName::Values(number);
    let (path, to) = (repairer.survey.path(name), repairer.draft.join(name.to_string()));
    let opened = files.open(&path).and_then(|file| Ok((file.len_bytes()?, file)));
    let new_header = header(number);
    let from = new_header.len() as u64;
    match opened {
        Ok((len, file)) if len >= from => {
            let mut old_header = vec![0; new_header.len()];
            let read = file.read_exact_at(0, &mut old_header).map_err(|error| error.to_string());
            let checked =
                read.and_then(|()| check_header(&old_header, number).map_err(|cause| cause.to_string()));
            if let Err(cause) = checked {
                let what = format!("its header was damaged, and is written again: {cause}");
                repairer.report.findings.push(Finding::note(name.to_string(), what));
            }
            if let Some(end) = end.filter(|end| *end > len) {
                let what = format!(
                    "it has {len} bytes, and its values need {end}: reading a value shows whether it is lost"
                );
                repairer.report.findings.push(Finding::note(name.to_string(), what));
            }
            let len = end.map_or(len, |end| end.min(len));
            let unread = copying::copy_past_errors(files, (&new_header, &*file, from..len), &to)?;
            report_unread(repairer, &name.to_string(), unread);
            *end = Some(len);
        }
        lost => {
            copying::write(files, &to, &new_header)?;
            *end = Some(from);
            let why = lost.err().map_or_else(|| "it is cut short".to_owned(), |error| error.to_string());
            let what = format!("the values in it are lost: {why}");
            repairer.report.findings.push(Finding::damage(name.to_string(), None, what));
        }
    }
    Ok(())
}

/// Reports that unreadable bytes became zeros. The lost values are found through pointers.
fn report_unread(repairer: &mut Repairer<'_>, file: &str, bytes: u64) {
    if bytes > 0 {
        let what = format!("{bytes} bytes of it cannot be read, and are zeros in the new store");
        repairer.report.findings.push(Finding::note(file, what));
    }
}

/// Copies values in files of their own unchanged. A lost directory becomes an empty one.
fn directory(repairer: &mut Repairer<'_>, state: &mut State, number: FileNumber) -> Result<()> {
    let files = &*repairer.options.host.files;
    let name = FileName::ValueDirectory(number).to_string();
    copying::make_directory(files, &repairer.draft.join(&name))?;
    let there = value_files_in(files, &repairer.survey.dir, number);
    if let Err(error) = &there {
        let what = format!("the values in it are lost: {}", in_words(error));
        repairer.report.findings.push(Finding::damage(name.clone(), None, what));
    }
    let mut end = DirectoryEnd { number, bytes: 0, value_files: 0 };
    for unit in there.unwrap_or_default() {
        let value_file = FileName::ValueFile(number, unit).to_string();
        let (path, to) = (repairer.survey.dir.join(&value_file), repairer.draft.join(&value_file));
        let opened = files.open(&path).and_then(|file| Ok((file.len_bytes()?, file)));
        match opened {
            Ok((len, file)) => {
                let unread = copying::copy_past_errors(files, (&[], &*file, 0..len), &to)?;
                report_unread(repairer, &value_file, unread);
                (end.bytes, end.value_files) = (end.bytes + len, end.value_files + 1);
            }
            Err(error) => {
                let what = format!("the value in it is lost: {error}");
                repairer.report.findings.push(Finding::damage(value_file, None, what));
            }
        }
    }
    copying::sync_dir(files, &repairer.draft.join(&name))?;
    state.values.insert(number, Some(end.bytes));
    state.directories.insert(number, Some(end.value_files));
    Ok(())
}

/// Copies a file of relocated values. A damaged map is rewritten; if all of it is lost, its
/// segments become empty ones.
fn relocated_values(repairer: &mut Repairer<'_>, state: &mut State, number: FileNumber) -> Result<()> {
    let files = &*repairer.options.host.files;
    let name = FileName::Relocated(number);
    let dir = &repairer.survey.dir;
    let opened = RelocatedFile::open(files, dir, number).and_then(|file| {
        file.carried().iter().try_for_each(|one| file.moves(one.segment, &mut |_| Ok(())))?;
        Ok(file)
    });
    match (opened, open_damaged(files, dir, number)) {
        (Ok(moved), _) => {
            let (mut bytes, to) = (moved.file_bytes(), repairer.draft.join(name.to_string()));
            let unread = copying::copy_past_errors(files, (&[], moved.file(), 0..bytes), &to)?;
            if unread > 0 {
                // Unreadable parts of the map are zeros, too, but most of its contents are known.
                files.remove(&to).map_err(|error| Error::io("remove", &to, error))?;
                (bytes, _) = write_salvaged(&moved, files, repairer.draft)?;
            }
            report_unread(repairer, &name.to_string(), unread);
            state.relocated_files.insert(number, bytes);
        }
        (Err(error), Ok(damaged)) => {
            let (bytes, lost) = write_salvaged(&damaged, files, repairer.draft)?;
            state.relocated_files.insert(number, bytes);
            let pages = match lost {
                0 => String::new(),
                lost => format!("; {lost} pages of its map are lost"),
            };
            let what = format!("the map to its values is written again: {}{pages}", in_words(&error));
            repairer.report.findings.push(Finding::note(name.to_string(), what));
            leave_out_what_is_not_carried(repairer, state, &damaged)?;
        }
        (Err(_), Err(error)) => {
            let segments: Vec<FileNumber> = state.moved_in(number).collect();
            segments.into_iter().try_for_each(|segment| empty_segment(repairer, state, segment))?;
            let what = format!("the values in it are lost: {}", in_words(&error));
            repairer.report.findings.push(Finding::damage(name.to_string(), None, what));
        }
    }
    Ok(())
}

/// Segments of which all pages are lost become empty ones.
fn leave_out_what_is_not_carried(
    repairer: &mut Repairer<'_>,
    state: &mut State,
    file: &RelocatedFile,
) -> Result<()> {
    let is_carried =
        |segment: &FileNumber| file.carried().iter().any(|one| u64::from(one.segment) == segment.0);
    let listed: Vec<FileNumber> = state.moved_in(file.number()).collect();
    for segment in listed.into_iter().filter(|segment| !is_carried(segment)) {
        empty_segment(repairer, state, segment)?;
        let what = format!("the values of segment {segment} are lost: no page of its map is whole");
        let name = FileName::Relocated(file.number()).to_string();
        repairer.report.findings.push(Finding::damage(name, None, what));
    }
    Ok(())
}

fn empty_segment(repairer: &Repairer<'_>, state: &mut State, segment: FileNumber) -> Result<()> {
    let header = header(segment);
    let to = repairer.draft.join(FileName::Values(segment).to_string());
    copying::write(&*repairer.options.host.files, &to, &header)?;
    state.relocated.remove(&segment);
    state.values.insert(segment, Some(header.len() as u64));
    Ok(())
}
