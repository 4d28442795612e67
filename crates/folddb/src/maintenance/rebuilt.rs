//! Tables whose runs a repair rebuilds from their archived logs: which, what their logs hold, and
//! whether these are intact.
//!
//! Called by `repair`, and by a deep `verify`.

use std::collections::BTreeMap;
use std::path::Path;

use folddb_base::{Error, Lsn, Result, SharedMap, TableId};
use folddb_host::Host;
use folddb_journal::ReplayFrame;
use folddb_journal::follow::{Follower, HistoryFile};
use folddb_layout::file_name::FileName;
use folddb_layout::frame;
use folddb_manifest::{State, TableState};

use crate::maintenance::finding::{Finding, Loss, Misfits};
use crate::maintenance::survey::in_words;
use folddb_engine::edit::feeds::history_in;
use folddb_engine::edit::log_archive::archived_log;
use folddb_engine::edit::{feeds, log_archive};
use folddb_engine::state::engine::Engine;
use folddb_engine::values::at_rest::ValuesAtRest;
use folddb_engine::values::load::rope_of;

/// The tables that are rebuilt.
#[derive(Default)]
pub(crate) struct Rebuilt {
    pub(crate) logs: Vec<RebuiltLog>,
}

/// The log of one of them.
pub(crate) struct RebuiltLog {
    /// The table.
    pub(crate) table: String,
    /// Its log begins here.
    from_lsn: Lsn,
    /// It ends here; the rest is replayed anyway.
    to_lsn: Lsn,
}

impl Rebuilt {
    /// Removes the runs of these tables from `state`, so that all of their log is new.
    ///
    /// # Errors
    /// There is no such table, or it does not archive its log.
    pub(crate) fn prepare(state: &mut State, names: &[String]) -> Result<Rebuilt> {
        let mut rebuilt = Rebuilt::default();
        for name in names {
            let log = archived_log(state, name).map(|feed| feed.lsn);
            let to_lsn = state.log_start_lsn;
            let id = state.table_by_name(name).map(|table| table.id);
            let table = id.and_then(|id| state.tables.get_mut(&id));
            let table =
                table.ok_or_else(|| Error::invalid(format!("the store has no table `{name}` to rebuild")))?;
            let from_lsn = log.ok_or_else(|| {
                Error::invalid(format!(
                    "table `{name}` cannot be rebuilt: nothing keeps all of its log; that takes a table that was created with \
                     log=forever (`create --archive-log`) in this store, and is not one that was repaired, or restored from a backup"
                ))
            })?;
            table.runs.clear();
            table.range_deletes = SharedMap::default();
            table.flushed_seq = 0;
            if rebuilt.logs.iter().all(|log| log.table != *name) {
                rebuilt.logs.push(RebuiltLog { table: name.clone(), from_lsn, to_lsn });
            }
        }
        Ok(rebuilt)
    }

    /// Makes the new tables archive their logs, too, before anything is written to them.
    pub(crate) fn archive_logs(&self, engine: &Engine) -> Result<()> {
        for log in &self.logs {
            let mut manifest = engine.manifest.lock();
            let kept = log_archive::archive_log(engine, manifest.state(), &log.table)?;
            feeds::edit_feeds(engine, &mut manifest, &[kept])?;
        }
        Ok(())
    }
}

impl RebuiltLog {
    /// Passes the batches of the log to `visit`, oldest first.
    ///
    /// # Errors
    /// Damage of the log, which cannot be repaired here; errors of `visit`.
    pub(crate) fn each(
        &self,
        host: &Host,
        dir: &Path,
        state: &State,
        visit: &mut dyn FnMut(&ReplayFrame<'_>) -> Result<()>,
    ) -> Result<()> {
        let files = history_in(host, dir, state)?;
        let mut follower = Follower::at(host, dir, self.from_lsn);
        let in_log = |error: Error| {
            error
                .context(format!(
                    "table `{}` cannot be rebuilt: the log that it keeps is damaged",
                    self.table
                ))
                .advise("repair without --rebuild-index keeps what is whole of its runs")
        };
        loop {
            let lsn = follower.lsn();
            let file_at = |lsn: Lsn| files.iter().find(|file| file.covers(lsn)).copied();
            let Some(batch) = follower.next(self.to_lsn, &file_at).map_err(in_log)? else { return Ok(()) };
            let (end_lsn, first_seq, count, time_ms) =
                (batch.end_lsn, batch.first_seq, batch.count, batch.time_ms);
            let payload = batch.payload;
            visit(&ReplayFrame { lsn, end_lsn, first_seq, count, time_ms, payload, is_durable: true })?;
        }
    }
}

/// Damage in the archived logs of tables, up to the start of the common log, which is read anyway.
/// All runs may be intact: the loss only matters when they must be rebuilt.
///
/// # Errors
/// A directory that cannot be listed.
pub(crate) fn damage_of_archived_logs(
    host: &Host,
    dir: &Path,
    state: &State,
    values: &ValuesAtRest<'_>,
) -> Result<Vec<Finding>> {
    let kept =
        |table: &TableState| Some((table.id, (table.name.clone(), archived_log(state, &table.name)?.lsn)));
    let tables: BTreeMap<TableId, (String, Lsn)> = state.tables.values().filter_map(kept).collect();
    let Some(from_lsn) = tables.values().map(|(_, from_lsn)| *from_lsn).min() else { return Ok(Vec::new()) };
    let files = history_in(host, dir, state)?;
    let walk = ArchivedLogs { dir, tables, values };
    let (mut findings, mut misfits) = (Vec::new(), Misfits::default());
    let mut follower = Follower::at(host, dir, from_lsn);
    loop {
        let lsn = follower.lsn();
        let file = files.iter().find(|file| file.covers(lsn)).copied();
        let file_at = |lsn: Lsn| files.iter().find(|file| file.covers(lsn)).copied();
        match follower.next(state.log_start_lsn, &file_at) {
            Ok(None) => break,
            Ok(Some(batch)) => {
                // Marks and seals before it were skipped.
                let file = file_at(batch.end_lsn.saturating_sub(1)).or(file);
                walk.batch(batch.end_lsn, file.as_ref(), batch.payload, &mut misfits);
            }
            Err(error) => {
                let at = follower.lsn();
                findings.push(walk.hole(&error));
                // The rest is examined, too.
                let Some(next) = next_file(&files, at) else { break };
                follower = Follower::at(host, dir, next);
            }
        }
    }
    findings.extend(misfits.findings().map(|(finding, _)| walk.telling(finding)));
    Ok(findings)
}

/// Where the next file with history after a place begins.
fn next_file(files: &[HistoryFile], lsn: Lsn) -> Option<Lsn> {
    files.iter().map(|file| file.first_lsn).find(|first_lsn| *first_lsn > lsn)
}

/// A check of archived logs.
struct ArchivedLogs<'a> {
    dir: &'a Path,
    /// The tables with archived logs, and where these begin.
    tables: BTreeMap<TableId, (String, Lsn)>,
    values: &'a ValuesAtRest<'a>,
}

impl ArchivedLogs<'_> {
    /// Checks a batch that ends there.
    fn batch(&self, end_lsn: Lsn, file: Option<&HistoryFile>, payload: &[u8], misfits: &mut Misfits) {
        let own_file = file.map_or_else(|| "the log".to_owned(), name_of);
        for record in frame::records(payload) {
            let record = match record {
                Ok(record) => record,
                Err(cause) => {
                    return misfits.add(
                        &own_file,
                        None,
                        None,
                        format!("the batch before LSN {end_lsn}: {cause}"),
                    );
                }
            };
            let is_kept = self.tables.get(&record.table).is_some_and(|(_, from_lsn)| *from_lsn < end_lsn);
            let rope = rope_of(&record).filter(|_| is_kept);
            for pointer in rope.iter().flat_map(|rope| rope.pointers()) {
                if let Err(error) = self.values.piece((record.table, record.key), &pointer) {
                    let said = "a value that the archived log leads to";
                    misfits.add_value(self.dir, &own_file, record.key, &error, said);
                }
            }
        }
    }

    fn hole(&self, error: &Error) -> Finding {
        let file = error.damage().and_then(|damage| damage.file.file_name());
        let file = file.map_or_else(|| "the log".to_owned(), |name| name.to_string_lossy().into_owned());
        let offset = error.damage().and_then(|damage| damage.offset);
        self.telling(Finding::damage(file, offset, in_words(error)))
    }

    /// The same finding, with what may be lost.
    fn telling(&self, finding: Finding) -> Finding {
        let names: Vec<String> = self.tables.values().map(|(name, _)| format!("`{name}`")).collect();
        let what = format!(
            "{}: the runs of tables that archive their logs ({}) can no longer be rebuilt from it",
            finding.what,
            names.join(", ")
        );
        Finding { what, ..finding }
    }
}

fn name_of(file: &HistoryFile) -> String {
    let name = if file.is_kept { FileName::Kept(file.number) } else { FileName::Log(file.number) };
    name.to_string()
}

/// Batches in the log of a table that its new runs lack. The first one gives the reason.
#[derive(Default)]
pub(crate) struct LostBatches {
    count: u64,
    first: Option<(Lsn, String)>,
}

impl LostBatches {
    /// Notes one.
    pub(crate) fn add(&mut self, frame: &ReplayFrame<'_>, why: String) {
        self.count += 1;
        self.first.get_or_insert((frame.lsn, why));
    }

    /// What is lost, if anything is.
    pub(crate) fn finding(self, table: &str) -> Option<Finding> {
        let (lsn, why) = self.first?;
        let more = match self.count {
            1 => String::new(),
            count => format!(", and {} more", count - 1),
        };
        let what = format!("a batch that table `{table}` is rebuilt from, at LSN {lsn}: {why}{more}");
        Some(Finding::damage("the log", None, what).costs(Loss::whole_table(table)))
    }
}
