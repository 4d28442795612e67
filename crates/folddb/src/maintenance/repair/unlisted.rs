//! Values that were put after the list of a repair was written: their files are not on it, and are
//! added.
//!
//! A record has its table and its key, so the index of a hashed table can be rebuilt from all
//! segments; others are found through the log. Values that no key points to are dead, and a reclaim
//! removes them.
//!
//! Called by `repair`.

use folddb_base::FileNumber;
use folddb_host::Files;
use folddb_layout::file_name::FileName;
use folddb_layout::values::{VALUES_HEADER_BYTES, check_header};
use folddb_manifest::State;
use folddb_value_log::relocated::{RelocatedFile, open_damaged};

use crate::maintenance::finding::Finding;
use crate::maintenance::survey::Survey;
use folddb_engine::state::hash_index::low_bits;

/// Adds every file of values that the list does not have: first segments, then files of relocated
/// values. Of two files with the same segment the newer counts, and a damaged one only if there is
/// no intact one. Returns its findings.
pub(super) fn enter_unlisted(survey: &Survey, files: &dyn Files, state: &mut State) -> Vec<Finding> {
    let mut findings = Vec::new();
    for &name in &survey.files {
        let (FileName::Values(number) | FileName::ValueDirectory(number)) = name else { continue };
        if !is_free(state, number) {
            continue;
        }
        match has_begun(survey, files, name, number) {
            Ok(true) => {
                state.values.insert(number, None);
                if matches!(name, FileName::ValueDirectory(_)) {
                    state.directories.insert(number, None);
                }
                findings.push(entered(name));
            }
            Ok(false) => {}
            Err(cause) => {
                let what = format!(
                    "the list does not have it, and it is left out: {cause}; values in it may be lost"
                );
                findings.push(Finding::damage(name.to_string(), None, what));
            }
        }
    }
    let mut moved: Vec<FileNumber> =
        survey.files.iter().filter_map(|name| number_of_relocated(*name)).collect();
    moved.reverse();
    let whole = |number: &FileNumber| RelocatedFile::open(files, &survey.dir, *number).ok();
    let damaged = |number: &FileNumber| match whole(number) {
        Some(_) => None,
        None => open_damaged(files, &survey.dir, *number).ok(),
    };
    for file in moved.iter().filter_map(whole).chain(moved.iter().filter_map(damaged)) {
        let segments = file.carried().iter().map(|one| FileNumber(u64::from(one.segment)));
        let free: Vec<FileNumber> = segments.filter(|&segment| is_free(state, segment)).collect();
        if free.is_empty() {
            continue;
        }
        state.relocated.extend(free.into_iter().map(|segment| (segment, file.number())));
        if state.relocated_files.insert(file.number(), file.file_bytes()).is_none() {
            findings.push(entered(FileName::Relocated(file.number())));
        }
    }
    findings
}

fn entered(name: FileName) -> Finding {
    Finding::note(name.to_string(), "the list does not have it: it is kept, with what its records say")
}

fn number_of_relocated(name: FileName) -> Option<FileNumber> {
    if let FileName::Relocated(number) = name { Some(number) } else { None }
}

/// Whether no live segment has this number, or one with the same low bits.
fn is_free(state: &State, number: FileNumber) -> bool {
    let mut listed = state.values.keys().chain(state.relocated.keys());
    u32::try_from(number.0).is_ok() && listed.all(|one| low_bits(one.0) != low_bits(number.0))
}

/// Whether values were ever put into a segment. One that was created ahead, and lost its header in
/// a power cut, has only zeros.
fn has_begun(survey: &Survey, files: &dyn Files, name: FileName, number: FileNumber) -> Result<bool, String> {
    if matches!(name, FileName::ValueDirectory(_)) {
        return Ok(true);
    }
    let mut header = vec![0; VALUES_HEADER_BYTES];
    let file = files.open(&survey.path(name)).map_err(|error| error.to_string())?;
    if file.len_bytes().map_err(|error| error.to_string())? <= header.len() as u64 {
        return Ok(false);
    }
    file.read_exact_at(0, &mut header).map_err(|error| error.to_string())?;
    match check_header(&header, number) {
        Ok(()) => Ok(true),
        Err(_) if header.iter().all(|&byte| byte == 0) => Ok(false),
        Err(cause) => Err(format!("its header is damaged: {cause}")),
    }
}
