//! Value files: that each to which something points is there with its length, without reading its
//! value. Without `--deep` nothing else would miss one.
//!
//! ```text
//!   a part           its liveness says which files it points to, and how many bytes they are together
//!   a hashed table   its index, with the log after it, says which; that they are not empty is all that is checked
//! ```
//!
//! What only the log points to is checked when its values are read.

use std::collections::BTreeMap;

use folddb_base::{FileNumber, counted};
use folddb_layout::file_name::FileName;
use folddb_layout::values::{RECORD_HEAD_BYTES, RecordHead};
use folddb_manifest::{State, TableState};
use folddb_run::Part;

use crate::maintenance::closed_index::AtRest;
use crate::maintenance::finding::{Finding, Loss};
use crate::maintenance::verify::verifier::Verifier;
use folddb_engine::state::hash_index::low_bits;

/// Value files that are not as they should be.
#[derive(Default)]
struct Lacking {
    files: u64,
    first: Option<(FileName, String)>,
}

impl Lacking {
    fn add(&mut self, name: FileName, what: String) {
        self.files += 1;
        self.first.get_or_insert((name, what));
    }

    fn finding(self, who: &str, loss: Loss) -> Option<Finding> {
        let (name, what) = self.first?;
        let more = match self.files - 1 {
            0 => String::new(),
            more => format!("; and {} more that {who} points to", counted(more, "value file")),
        };
        let what = format!("{what}, and {who} points to it{more}");
        Some(Finding::damage(name.to_string(), None, what).costs(Loss { records: Some(self.files), ..loss }))
    }
}

/// Checks the value files that a part points to.
pub(crate) fn check_those_of_part(
    verifier: &mut Verifier<'_>,
    state: &State,
    part: &Part,
    (name, loss): (&str, Loss),
) {
    let is_directory = |segment| state.is_directory(FileNumber(u64::from(segment)));
    if !part.facts().values.iter().any(|used| is_directory(used.segment)) {
        return;
    }
    let Ok(liveness) = part.liveness() else { return }; // reported with the part
    let mut lacking = Lacking::default();
    for used in liveness.uses().into_iter().filter(|used| is_directory(used.segment)) {
        let directory = FileNumber(u64::from(used.segment));
        check(verifier, &mut lacking, (directory, liveness.units(used.segment)), Some(used.bytes));
    }
    verifier.report.findings.extend(lacking.finding(name, loss));
}

/// Whether a hashed table has values in files of their own.
pub(crate) fn has_value_files(state: &State, table: &TableState) -> bool {
    let lows = table.saved_index().flat_map(|saved| &saved.segments).map(|one| one.segment);
    lows.into_iter().any(|low| state.directories.keys().any(|number| u64::from(low_bits(number.0)) == low))
}

/// Checks the value files that the index of a hashed table leads to. It has taken the log.
pub(crate) fn check_those_of_index(
    verifier: &mut Verifier<'_>,
    state: &State,
    index: &AtRest,
    (name, loss): (&str, Loss),
) {
    let directories: BTreeMap<u32, FileNumber> =
        state.directories.keys().map(|&number| (low_bits(number.0), number)).collect();
    let mut units: BTreeMap<FileNumber, Vec<u32>> = BTreeMap::new();
    let walked = index.each_place(&mut |low, unit| {
        if let Some(&directory) = directories.get(&low) {
            units.entry(directory).or_default().push(unit);
        }
    });
    let mut lacking = Lacking::default();
    for (directory, units) in &units {
        check(verifier, &mut lacking, (*directory, units), None);
    }
    verifier.report.findings.extend(lacking.finding(name, loss.clone()));
    if let Err(error) = walked {
        verifier.report.findings.push(Finding::damage(name, None, error.message()).costs(loss));
    }
}

/// Checks some files of a directory; `bytes` is how many they have together, if that is known.
fn check(
    verifier: &Verifier<'_>,
    lacking: &mut Lacking,
    (directory, units): (FileNumber, &[u32]),
    bytes: Option<u64>,
) {
    let before = lacking.files;
    let mut found = 0;
    for &unit in units {
        let name = FileName::ValueFile(directory, unit);
        match verifier.options.host.files.len_bytes(&verifier.survey.path(name)) {
            Ok(0) => lacking.add(name, "it is empty".to_owned()),
            Ok(len) => found += len,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                lacking.add(name, "it is not there".to_owned());
            }
            Err(error) => lacking.add(name, format!("it cannot be read: {error}")),
        }
    }
    if lacking.files == before && bytes.is_some_and(|bytes| bytes != found) {
        // Some are longer or shorter than their records.
        for &unit in units {
            let name = FileName::ValueFile(directory, unit);
            if let Some(what) = false_length(verifier, name) {
                lacking.add(name, what);
            }
        }
    }
}

/// How the length of a value file differs from that of its record.
fn false_length(verifier: &Verifier<'_>, name: FileName) -> Option<String> {
    let mut head = [0; RECORD_HEAD_BYTES];
    let file = verifier.options.host.files.open(&verifier.survey.path(name));
    let read = file.and_then(|file| {
        file.read_exact_at(0, &mut head)?;
        file.len_bytes()
    });
    let wanted = RecordHead::decode(&head).map(|head| head.record_bytes());
    match (read, wanted) {
        (Ok(len), Ok(wanted)) if len == wanted => None,
        (Ok(len), Ok(wanted)) => Some(format!("it has {len} bytes instead of {wanted}")),
        (Ok(_), Err(cause)) => Some(format!("its head is damaged: {cause}")),
        (Err(error), _) => Some(format!("its head cannot be read: {error}")),
    }
}
