//! Checks that a store is intact. Reads all of it, past all errors, and lists these.
//!
//! ```text
//!   always    FORMAT, every edit of the manifests, the log's frames and chain; of each part that is
//!             listed: that it is there, its length, footer, facts, index; that each value file is
//!             there; that parts of a run are disjoint; files that nobody lists; the values of
//!             batches for whose durability nothing vouches, as an opening reads them, since it
//!             cuts the log at the first that is not whole
//!   deep      every block, the order of keys and seqs, filters, and that each key and value is one
//!             of its table; the log that feeds have not given yet, and that tables archive, with
//!             the values that archives lead to
//! ```
//!
//! It takes the lock like a reader, changes nothing, and works on stores that do not open.

mod report;
mod verifier;
mod record;
mod values;
mod value_files;
mod parts;
mod hashed;
mod log;

use crate::maintenance::progress::{ByteProgress, Counter, Report, unreported};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

use folddb_base::Result;
use folddb_manifest::{PartState, TableState};
use folddb_run::{Depth, Shared};

use crate::maintenance::held_log::{Holders, damage_of_held_log};
use crate::maintenance::indexes;
use crate::maintenance::survey::{Survey, bind};
use crate::maintenance::verify::verifier::Verifier;
use crate::options::Options;
use crate::store::Store;
use folddb_engine::options::Options as EngineOptions;
use folddb_engine::values::at_rest::ValuesAtRest;

pub(crate) use record::check_value;
pub use report::{Checked, VerifyOptions, VerifyReport};

/// Memory for the index of one part and some blocks.
const CACHE_BYTES: u64 = 1 << 20;

const OPEN_FILES: usize = 8;

impl Store {
    /// Checks the files of a store that nobody is writing to. It need not be possible to open the
    /// store.
    ///
    /// # Errors
    /// [`crate::ErrorKind::StoreNotFound`], [`crate::ErrorKind::Locked`]; a directory that cannot
    /// be listed. Everything else is a finding of the report.
    pub fn verify(path: impl AsRef<Path>, how: &VerifyOptions, options: &Options) -> Result<VerifyReport> {
        Store::verify_with(path, how, options, unreported)
    }

    /// The same. `progress` is called as bytes are read, and may stop it.
    ///
    /// # Errors
    /// As [`Store::verify`]; [`crate::ErrorKind::Stopped`] if `progress` broke it off.
    pub fn verify_with(
        path: impl AsRef<Path>,
        how: &VerifyOptions,
        options: &Options,
        mut progress: impl FnMut(ByteProgress) -> ControlFlow<()>,
    ) -> Result<VerifyReport> {
        let survey = Survey::take(path.as_ref(), &options.engine)?;
        verify(&survey, &options.engine, how.deep, &mut progress)
    }
}

/// Checks the files of a survey.
pub(crate) fn verify(
    survey: &Survey,
    options: &EngineOptions,
    deep: bool,
    report_to: Report<'_>,
) -> Result<VerifyReport> {
    let mut report = VerifyReport { deep, findings: survey.findings(), ..VerifyReport::default() };
    if let Some(listing) = &survey.listing {
        report.store_id = Some(listing.state.store_id);
        report.checked.edits = listing.edits;
        let mut verifier = Verifier {
            survey,
            options,
            at_rest: ValuesAtRest::new(&options.host.files, &survey.dir, &listing.state),
            depth: if deep { Depth::Records } else { Depth::Index },
            shared: Shared::new(CACHE_BYTES, OPEN_FILES),
            report: &mut report,
            seen: BTreeSet::new(),
            is_missing_parts: false,
            counter: Counter::new(
                report_to,
                listing.state.tables.values().flat_map(parts_of).map(|part| part.file_bytes).sum(),
            ),
        };
        values::check_files(&mut verifier, &listing.state);
        parts::check_tables(&mut verifier, &listing.state);
        verifier.counter.check()?;
        log::check_log(&mut verifier, &listing.state)?;
        let (host, state, held) = (&options.host, &listing.state, (Holders::All, verifier.depth));
        let damage_of_held = damage_of_held_log(host, &survey.dir, state, &verifier.at_rest, held)?;
        let has_indexes = listing.state.tables.values().any(|table| is_index(table, options));
        if deep && has_indexes && report.damage().next().is_none() {
            report.findings.extend(indexes::findings(&survey.dir, options, &verifier::manifest_name(survey)));
        }
        report.findings.extend(damage_of_held);
    }
    report.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(report)
}

/// Whether a table is an index of another.
fn is_index(table: &TableState, options: &EngineOptions) -> bool {
    bind(table, options).is_ok_and(|rules| rules.rules.index_of.is_some())
}

fn parts_of(table: &TableState) -> impl Iterator<Item = &PartState> {
    table.runs.iter().flat_map(|run| &run.parts)
}
