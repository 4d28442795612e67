//! Checks the listed files of values: existence, length and framing.

use folddb_base::{Error, FileNumber, Result, error};
use folddb_layout::file_name::FileName;
use folddb_layout::values::{VALUES_HEADER_BYTES, check_header};
use folddb_manifest::State;
use folddb_run::Depth;
use folddb_value_log::relocated::RelocatedFile;

use crate::maintenance::finding::{Finding, Loss};
use crate::maintenance::survey::in_words;
use crate::maintenance::verify::verifier::Verifier;
use folddb_engine::recovery::listed::check_relocated;

/// Checks that each listed value segment exists with its length. Its values are checked through
/// pointers.
pub(crate) fn check_files(verifier: &mut Verifier<'_>, state: &State) {
    for (&number, end) in &state.values {
        let name = state.values_name(number);
        let what = match verifier.options.host.files.len_bytes(&verifier.survey.path(name)) {
            Err(error) if state.is_directory(number) && error.kind() == std::io::ErrorKind::IsADirectory => {
                continue;
            }
            Ok(_) if state.is_directory(number) => continue,
            Ok(len) if end.is_none_or(|end| len >= end) => match check_own_header(verifier, number) {
                Ok(()) => continue,
                Err(error) => in_words(&error),
            },
            Ok(len) => format!("it has {len} bytes, and its values need {}", end.unwrap_or(0)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                "the manifest lists it, and it is not there".to_owned()
            }
            Err(error) => format!("cannot be read: {error}"),
        };
        push_lost_values(verifier, state, Finding::damage(name.to_string(), None, what));
    }
    check_moved_files(verifier, state);
}

/// Checks that the header of a value segment belongs to it.
fn check_own_header(verifier: &Verifier<'_>, number: FileNumber) -> Result<()> {
    let path = verifier.survey.path(FileName::Values(number));
    let mut header = vec![0; VALUES_HEADER_BYTES];
    let read = verifier.options.host.files.open(&path).and_then(|file| file.read_exact_at(0, &mut header));
    read.map_err(|error| Error::io("read", &path, error))?;
    check_header(&header, number).map_err(|cause| error::corrupt(&path, 0, cause))
}

/// Checks header, top and footer of each listed file of relocated values; if deep, also every page
/// of its map.
fn check_moved_files(verifier: &mut Verifier<'_>, state: &State) {
    let files = &*verifier.options.host.files;
    for (&number, &file_bytes) in &state.relocated_files {
        let looked = RelocatedFile::open(files, &verifier.survey.dir, number).and_then(|file| {
            check_relocated(&file, file_bytes, state.moved_in(number))?;
            let carried = file.carried().iter().filter(|_| verifier.depth == Depth::Records);
            carried.map(|one| one.segment).try_for_each(|segment| file.moves(segment, &mut |_| Ok(())))
        });
        if let Err(error) = looked {
            let offset = error.damage().and_then(|damage| damage.offset);
            let name = FileName::Relocated(number).to_string();
            push_lost_values(verifier, state, Finding::damage(name, offset, in_words(&error)));
        }
    }
}

fn push_lost_values(verifier: &mut Verifier<'_>, state: &State, finding: Finding) {
    let losses = state.tables.values().map(|table| Loss {
        records: None,
        keys: "keys with values in it".to_owned(),
        ..Loss::whole_table(&table.name)
    });
    verifier.report.findings.push(Finding { losses: losses.collect(), ..finding });
}
