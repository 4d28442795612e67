//! Salvages the intact data of a damaged store into a new one, and reports what is lost. The old
//! store is only read.
//!
//! ```text
//!   manifest   the newest, as far as it is intact, and intact edits beyond; or the list of a backup
//!   parts      copied if every record can be read; otherwise their intact blocks are rewritten
//!   indexes    of hashed tables, from the checkpoint and the log, or else from the value segments; saved again
//!   values     copied as they are, damaged headers and maps are rewritten; a record whose value is lost is
//!              left out
//!   log        whole batches up to the first hole, or with `past_holes` all that can be found
//!   new store  built under another name, verified in every record, then given its own
//! ```
//!
//! The new store has its own identity, and batches of the log get new seqs. A key whose newest
//! records are lost shows the older ones: the report lists which keys these may be.

mod report;
mod repairer;
mod source;
mod lost_values;
mod values;
mod unlisted;
mod listed;
mod parts;
mod hashed;
mod secondary;
mod log;
mod build;

use crate::maintenance::progress::{ByteProgress, Counter, Report, unreported};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use folddb_base::{Error, ErrorKind, Result};
use folddb_run::{Depth, Shared};

use crate::maintenance::copying;
use crate::maintenance::held_log::{Holders, damage_of_held_log, feeds_left_out};
use crate::maintenance::owned_directory::refuse_inside_store;
use crate::maintenance::rebuilt::Rebuilt;
use crate::maintenance::repair::repairer::Repairer;
use crate::maintenance::repair::unlisted::enter_unlisted;
use crate::maintenance::repair::values::find_values;
use crate::maintenance::survey::Survey;
use crate::maintenance::verify::{VerifyReport, verify};
use crate::options::Options;
use crate::store::Store;
use folddb_engine::options::Options as EngineOptions;
use folddb_engine::recovery::format;
use folddb_engine::state::numbers::Numbers;
use folddb_engine::values::at_rest::ValuesAtRest;

pub use report::{RepairOptions, RepairReport};

impl Store {
    /// Salvages the intact data of the store at `path` into a new one at `to`, which must not exist
    /// yet or be empty. The old store is only read; it need not be possible to open it.
    ///
    /// # Errors
    /// [`ErrorKind::StoreNotFound`], [`ErrorKind::Locked`], [`ErrorKind::AlreadyExists`];
    /// [`ErrorKind::Corruption`] if no manifest lists what lives; [`ErrorKind::RulesMismatch`] if
    /// the custom order of a table is not available; a failed write. An unfinished new store is
    /// removed.
    pub fn repair(
        path: impl AsRef<Path>,
        to: impl AsRef<Path>,
        how: &RepairOptions,
        options: &Options,
    ) -> Result<RepairReport> {
        Store::repair_with(path, to, how, options, unreported)
    }

    /// The same. `progress` is called with the bytes of parts that are salvaged, then with those
    /// that are read back, and may stop it.
    ///
    /// # Errors
    /// As [`Store::repair`]; [`ErrorKind::Stopped`] if `progress` broke it off.
    pub fn repair_with(
        path: impl AsRef<Path>,
        to: impl AsRef<Path>,
        how: &RepairOptions,
        options: &Options,
        mut progress: impl FnMut(ByteProgress) -> ControlFlow<()>,
    ) -> Result<RepairReport> {
        repair(path.as_ref(), to.as_ref(), how, &options.engine, &mut progress)
    }
}

fn repair(
    path: &Path,
    to: &Path,
    how: &RepairOptions,
    options: &EngineOptions,
    report_to: Report<'_>,
) -> Result<RepairReport> {
    let files = &*options.host.files;
    let survey = Survey::take(path, options)?;
    refuse_inside_store(files, to, "the new store")?;
    check_free(options, to)?;
    let mut listing = source::list(&survey, how, options)?;
    let mut findings = source::without_loss(survey.findings(), &listing, how);
    if let Some(from) = &how.list_from {
        findings.push(listed::lacks(&survey, &listing.state, from, options)?);
    }
    let at_rest = ValuesAtRest::new(&options.host.files, path, &listing.state);
    let held = (Holders::Feeds, Depth::Records);
    findings.extend(damage_of_held_log(&options.host, path, &listing.state, &at_rest, held)?);
    findings.extend(feeds_left_out(&listing.state, "the list of tables"));
    find_values(&survey, files, &mut listing.state);
    source::note_flushed(&mut listing.state);
    if !listing.is_whole || source::is_log_lost(&survey, options, &listing.state)? {
        findings.extend(enter_unlisted(&survey, files, &mut listing.state));
    }
    let rebuilt = Rebuilt::prepare(&mut listing.state, &how.rebuilt)?;
    let rules = source::rules_of(&listing.state, options)?;
    let draft = draft_of(to)?;
    copying::remove_all(files, &draft); // of an interrupted repair
    format::make_empty_dir(files, &draft)?;
    let mut repairer = Repairer {
        survey: &survey,
        options,
        draft: &draft,
        numbers: Numbers::starting_at(source::next_number(&survey, &listing.state)),
        shared: Shared::new(1 << 20, 8),
        report: RepairReport { findings, ..RepairReport::default() },
        counter: Counter::new(
            report_to,
            2 * listing
                .state
                .tables
                .values()
                .flat_map(source::parts_of)
                .map(|part| part.file_bytes)
                .sum::<u64>(),
        ),
    };
    let mended = build::build(&mut repairer, &listing.state, &rules, &rebuilt, how.past_holes);
    let Repairer { mut report, mut counter, .. } = repairer;
    let verified = mended.and_then(|()| verify_draft(&draft, options, &mut counter));
    let named = verified.and_then(|verified| {
        report.verified = verified;
        files.rename(&draft, to).map_err(|error| Error::io("rename", &draft, error))?;
        format::sync_parent(files, to)
    });
    named.inspect_err(|_| copying::remove_all(files, &draft))?;
    report.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(report)
}

/// Reads all of the new store back before it gets its name.
fn verify_draft(draft: &Path, options: &EngineOptions, counter: &mut Counter<'_>) -> Result<VerifyReport> {
    let mut bytes_seen = 0;
    verify(&Survey::take(draft, options)?, options, true, &mut |at| {
        counter.add(at.bytes_done - std::mem::replace(&mut bytes_seen, at.bytes_done));
        counter.flow()
    })
}

fn check_free(options: &EngineOptions, to: &Path) -> Result<()> {
    match options.host.files.list(to) {
        Ok(names) if names.is_empty() => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Err(format::is_file(to)),
        _ => {
            let message = format!("{} exists already and is not empty", to.display());
            Err(Error::new(ErrorKind::AlreadyExists, message))
        }
    }
}

/// Where the new store is built, next to its final place.
fn draft_of(to: &Path) -> Result<PathBuf> {
    let Some(name) = to.file_name() else {
        return Err(Error::invalid(format!("{} cannot be the name of a new store", to.display())));
    };
    let mut name = name.to_owned();
    name.push(".repairing");
    Ok(to.with_file_name(name))
}
