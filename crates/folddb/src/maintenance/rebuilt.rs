//! Tables whose runs a repair rebuilds from their archived logs: which, and what their logs hold.
//!
//! Called by `repair`.

use std::path::Path;

use folddb_base::{Error, Lsn, Result, SharedMap};
use folddb_host::Host;
use folddb_journal::ReplayFrame;
use folddb_journal::follow::Follower;
use folddb_manifest::State;

use crate::maintenance::finding::{Finding, Loss};
use folddb_engine::edit::feeds::history_in;
use folddb_engine::edit::log_archive::archived_log;
use folddb_engine::edit::{feeds, log_archive};
use folddb_engine::state::engine::Engine;

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
                    "table `{name}` cannot be rebuilt: its whole log is not archived. Only a table that was created in this \
                     store with archive_log=on (`create --archive-log`) can be, and not after a repair or a restore"
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
