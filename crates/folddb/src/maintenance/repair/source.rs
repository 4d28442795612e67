//! The source of a repair: the list of what lives, and whether the log after it exists.

use std::collections::BTreeMap;

use folddb_base::{Error, ErrorKind, Result, TableId};
use folddb_journal::LogFault;
use folddb_layout::file_name::FileName;
use folddb_manifest::{PartState, State, TableState};
use folddb_rules::table_rules::BoundRules;

use crate::maintenance::finding::{Finding, Loss, Severity};
use crate::maintenance::repair::report::RepairOptions;
use crate::maintenance::survey::{Listing, Survey, bind};
use folddb_engine::options::Options;

/// The parts of a table.
pub(crate) fn parts_of(table: &TableState) -> impl Iterator<Item = &PartState> {
    table.runs.iter().flat_map(|run| &run.parts)
}

/// What lives, by the store's own manifest or the given one.
pub(crate) fn list(survey: &Survey, how: &RepairOptions, options: &Options) -> Result<Listing> {
    let Some(from) = &how.list_from else {
        return survey.listing.clone().ok_or_else(|| no_list(survey));
    };
    let other = Survey::take(from, options)?;
    let listing = other.listing.clone().ok_or_else(|| {
        let message = format!("no manifest in {} can be read either", from.display());
        Error::new(ErrorKind::Corruption, message).advise("name another backup")
    })?;
    let own_id = survey.version.as_ref().ok().map(|version| version.store_id);
    if own_id.is_some_and(|store_id| store_id != listing.state.store_id) {
        let message = format!("{} is not a backup of {}", from.display(), survey.dir.display());
        return Err(Error::invalid(message));
    }
    Ok(Listing { is_whole: false, ..listing })
}

fn no_list(survey: &Survey) -> Error {
    let lost = survey.lost_list.iter();
    let words = lost.clone().flat_map(|lost| lost.found()).map(|found| format!("; {found}"));
    let losses: Vec<String> = lost.flat_map(|lost| lost.tables()).map(|loss| loss.to_string()).collect();
    let message = format!(
        "no manifest in {} can be read{}; lost without a list: {}; name a backup \
         of the store that lists them (--list-from)",
        survey.dir.display(),
        words.collect::<String>(),
        losses.join(", "),
    );
    Error::new(ErrorKind::Corruption, message).advise("")
}

pub(crate) fn rules_of(state: &State, options: &Options) -> Result<BTreeMap<TableId, BoundRules>> {
    state.tables.values().map(|table| Ok((table.id, bind(table, options)?))).collect()
}

/// FORMAT and the manifests are rewritten, so their damage alone loses nothing; other losses are
/// reported separately, also those of a list that comes from elsewhere. A file that is newer than
/// the list is left out.
pub(crate) fn without_loss(findings: Vec<Finding>, listing: &Listing, how: &RepairOptions) -> Vec<Finding> {
    let manifest = FileName::Manifest(listing.number).to_string();
    let weigh = |mut finding: Finding| {
        if finding.is_newer_file && how.list_from.is_none() {
            finding.what.push_str(
                ". It is left out, since no list says to which table it belongs: name one that does (--list-from)",
            );
        } else if how.list_from.is_some() {
            finding.severity = Severity::Note;
            finding.losses.clear();
        } else if finding.file == manifest && finding.severity == Severity::Damage {
            if finding.losses.is_empty() {
                let tables = listing.state.tables.values();
                let named = tables.map(|table| Loss::whole_table(&table.name));
                finding.losses = named.chain([Loss::unnamed_tables()]).collect();
            }
        } else {
            finding.severity = Severity::Note;
        }
        finding
    };
    findings.into_iter().map(weigh).collect()
}

/// Whether the first files of the log are missing that were needed when the list was written: then
/// the list is older than the store. Values that its indexes point to may be gone since; only
/// segments show what replaced them.
pub(crate) fn is_log_lost(survey: &Survey, options: &Options, state: &State) -> Result<bool> {
    let log = survey.read_log(options, &survey.log_start(state), &mut |_, _| Ok(()))?;
    let is_gone = |fault: &LogFault| fault.file.is_none() && fault.lsn <= log.start_lsn;
    Ok(log.batches == 0 && log.faults.iter().any(is_gone))
}

pub(crate) fn next_number(survey: &Survey, state: &State) -> u64 {
    let largest =
        survey.files.iter().filter_map(|file| file.number()).map(|number| number.0).max().unwrap_or(0);
    state.next_number.max(largest.saturating_add(1))
}

/// Records in a part are flushed, even if the edit that recorded it is lost and the merge that
/// wrote the part is not: the log must not be folded onto them again.
pub(crate) fn note_flushed(state: &mut State) {
    let ids: Vec<TableId> = state.tables.iter().map(|(id, _)| id).collect();
    for id in ids {
        let Some(table) = state.tables.get_mut(&id) else { continue };
        let newest = parts_of(table).map(|part| part.max_seq).max().unwrap_or(0);
        table.flushed_seq = table.flushed_seq.max(newest);
    }
}
