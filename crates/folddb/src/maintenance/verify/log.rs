//! Checks the needed part of the log: its frames, its records, and what the next opening would cut.

use folddb_base::{Lsn, Result};
use folddb_journal::ReplayFrame;
use folddb_layout::file_name::FileName;
use folddb_layout::frame;
use folddb_manifest::{State, TableState};
use folddb_rules::table_rules::BoundRules;
use folddb_run::Depth;

use crate::maintenance::closed_index::{AtRest, is_hashed};
use crate::maintenance::finding::{Finding, Severity};
use crate::maintenance::survey::{Few, bind, log_findings};
use crate::maintenance::unfit::Unfit;
use crate::maintenance::verify::value_files::has_value_files;
use crate::maintenance::verify::verifier::Verifier;
use crate::maintenance::verify::{hashed, record};
use folddb_engine::recovery::replay::check_known;
use folddb_engine::values::at_rest::ValuesAtRest;
use folddb_engine::values::hashed_record::is_long;
use folddb_engine::values::load::rope_of;

pub(crate) fn check_log(verifier: &mut Verifier<'_>, state: &State) -> Result<()> {
    let (survey, options, depth) = (verifier.survey, verifier.options, verifier.depth);
    let rules: Vec<(&TableState, BoundRules)> =
        state.tables.values().filter_map(|table| Some((table, bind(table, options).ok()?))).collect();
    let values = &verifier.at_rest;
    let from = survey.vouched_start(options, state)?;
    let (mut lost, mut cut, mut few, mut unfit) = (None, 0, Few::default(), Unfit::default());
    let tables: Vec<&TableState> = state.tables.values().filter(|table| is_hashed(table)).collect();
    let at_rest = |table| {
        AtRest::open(&options.host.files, &survey.dir, state.store_id, table, depth == Depth::Records)
    };
    let hashed: Vec<AtRest> = tables.iter().copied().map(at_rest).collect();
    let leads_to_files = tables.iter().any(|table| has_value_files(state, table));
    let mut log = survey.read_log(options, &from, &mut |frame, _| {
        let known = check_known(&frame, state).map_err(|error| error.message().to_owned());
        if !frame.is_durable && lost.is_none() && known.is_ok() {
            lost = lost_value(&frame, values);
        }
        cut += u64::from(lost.is_some());
        let taken = match (depth == Depth::Records || leads_to_files) && lost.is_none() {
            true => hashed::take_hashed(&frame, &hashed),
            false => Ok(()),
        };
        let mut checked = || record::check_frame(&frame, &rules, depth, values, &mut unfit);
        few.pass(known.and(taken).and_then(|()| checked()))
    })?;
    few.add_to(&mut log);
    verifier.report.findings.extend(unfit.findings());
    for one in &hashed {
        hashed::check_index(verifier, state, one);
    }
    if let Some(torn) = &log.torn
        && lost.as_ref().is_none_or(|lost| torn.lsn < lost.lsn)
    {
        cut = log.batches_beyond;
    }
    verifier.report.findings.extend(lost.map(|lost| lost.finding(cut)));
    verifier.report.checked.batches_cut = cut;
    verifier.report.checked.segments = log.needed;
    verifier.report.checked.batches = log.batches + log.batches_beyond;
    (verifier.report.checked.log_start_lsn, verifier.report.checked.log_end_lsn) =
        (log.start_lsn, log.end_lsn);
    if let Some(torn) = log.torn {
        let what = format!(
            "a torn end: {} bytes from LSN {} on were being written and not acknowledged as durable; \
             the next opening removes them",
            torn.bytes, torn.lsn
        );
        verifier.report.findings.push(Finding::note(FileName::Log(torn.file).to_string(), what));
    }
    verifier.report.findings.extend(log_findings(&log, state));
    if !log.faults.is_empty() || verifier.is_missing_parts {
        suspect_manifest(verifier);
    }
    Ok(())
}

/// If something is missing, an incomplete edit may be the cause: it may have recorded that it is no
/// longer needed.
fn suspect_manifest(verifier: &mut Verifier<'_>) {
    let name = verifier.manifest_name();
    let is_cut = verifier.survey.listing.as_ref().is_some_and(|listing| listing.cut_bytes > 0);
    let cut = verifier.report.findings.iter_mut().find(|finding| is_cut && finding.file == name);
    if let Some(finding) = cut {
        finding.severity = Severity::Damage;
        finding.what.push_str("; and damaged, since something that the edits before it name is missing");
    }
}

/// A batch of the log that is not known to be durable, and that points to a damaged value.
struct LostValue {
    file: FileName,
    offset: u64,
    /// Where the batch begins.
    lsn: Lsn,
}

impl LostValue {
    pub(crate) fn finding(&self, cut: u64) -> Finding {
        let (offset, lsn) = (self.offset, self.lsn);
        let what = format!(
            "the value at offset {offset}, which the log points to at LSN {lsn}, is not whole, and was not acknowledged as durable: \
             the next opening removes it and the batches after it, {cut} in all"
        );
        Finding::note(self.file.to_string(), what)
    }
}

/// The first damaged value that a batch points to.
fn lost_value(frame: &ReplayFrame<'_>, values: &ValuesAtRest<'_>) -> Option<LostValue> {
    frame::records(frame.payload).flatten().find_map(|record| {
        rope_of(&record)?.pointers().filter(|pointer| !is_long(pointer.len)).find_map(|pointer| {
            let loaded = values.piece((record.table, record.key), &pointer);
            let file = values.name_of(pointer.place);
            let offset = if matches!(file, FileName::ValueFile(..)) { 0 } else { pointer.place.offset() };
            loaded.is_err().then_some(LostValue { file, offset, lsn: frame.lsn })
        })
    })
}
