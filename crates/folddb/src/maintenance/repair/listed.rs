//! Reports what the list of a backup may lack, if a repair uses it instead of the store's own.
//!
//! ```text
//!   log     whole from where the list begins it      all batches since are there, no matter what flushes and merges made of them
//!   parts   that the list does not have              from a flush: its records are in that log. From anything else: they may be lost
//!   tables  that the log, values or manifests name   and the list does not have: they are lost
//! ```
//!
//! Damage to the store's own manifest then costs nothing; what the backup's list lacks does. Called
//! by `repair`.

use std::ops::RangeInclusive;
use std::path::Path;

use folddb_base::{Result, Seq, counted};
use folddb_layout::file_name::FileName;
use folddb_manifest::State;

use crate::maintenance::closed_index::is_hashed;
use crate::maintenance::finding::{Finding, Loss};
use crate::maintenance::survey::Survey;
use folddb_engine::options::Options;

/// Reports what the survey has found and the list from there, now in `state`, lacks.
pub(super) fn lacks(survey: &Survey, state: &State, from: &Path, options: &Options) -> Result<Finding> {
    let log = Log::read(survey, state, options)?;
    let lost = survey.tables_beyond(state, options)?;
    let (mut files, mut records) = (0, 0);
    for file in survey.unlisted(state) {
        let FileName::Part(number) = file else { continue };
        let facts = survey.facts_of(number, options);
        if !facts.as_ref().is_some_and(|(seqs, records)| log.has(seqs, *records)) {
            files += 1;
            records += facts.map_or(0, |(_, records)| records);
        }
    }
    let indexes = unexplained_indexes(survey, state, &log);
    let list = from.display().to_string();
    if files + indexes == 0 && lost.is_empty() {
        let what = "this list was used instead of that of the store. Nothing that was written since it was made is missing; tables \
                    that were created since and never written to are not on it";
        return Ok(Finding::note(list, what));
    }
    let since = |name: &str| Loss {
        keys: "what was written since the list was made".to_owned(),
        ..Loss::whole_table(name)
    };
    let named = state.tables.values().filter(|_| files + indexes > 0).map(|table| since(&table.name));
    let what = format!(
        "this list was used instead of that of the store, and it does not have {} with {} in parts",
        counted(files + indexes, "file"),
        counted(records, "record"),
    );
    let losses = named.chain(lost).collect();
    Ok(Finding { losses, ..Finding::damage(list, None, what) })
}

/// The log from where a list begins it.
struct Log {
    is_whole: bool,
    /// The seqs of its records.
    seqs: Option<RangeInclusive<Seq>>,
}

impl Log {
    fn read(survey: &Survey, state: &State, options: &Options) -> Result<Log> {
        let mut seqs: Option<RangeInclusive<Seq>> = None;
        let log = survey.read_log(options, &survey.log_start(state), &mut |frame, _| {
            let last = frame.first_seq + u64::from(frame.count.saturating_sub(1));
            let (low, high) = seqs.take().map_or((frame.first_seq, last), RangeInclusive::into_inner);
            seqs = Some(low.min(frame.first_seq)..=high.max(last));
            Ok(())
        })?;
        Ok(Log { is_whole: log.faults.is_empty(), seqs })
    }

    /// Whether a part may be from a flush of these batches: their records have distinct seqs, while
    /// those of a bulk load share one.
    fn has(&self, part: &RangeInclusive<Seq>, records: u64) -> bool {
        let (low, high) = (*part.start(), *part.end());
        let are_of_batches = low < high && records <= high - low + 1;
        let are_in = self.seqs.as_ref().is_some_and(|seqs| seqs.contains(&low) && seqs.contains(&high));
        self.is_whole && are_of_batches && are_in
    }
}

/// Saved indexes that the list does not have. If the log is complete since the list, those of its
/// own tables add nothing to it.
fn unexplained_indexes(survey: &Survey, state: &State, log: &Log) -> u64 {
    let has_hashed = state.tables.values().any(is_hashed);
    let unlisted = survey.unlisted(state).filter(|file| matches!(file, FileName::Index(_))).count() as u64;
    if log.is_whole && log.seqs.is_some() && has_hashed { 0 } else { unlisted }
}
