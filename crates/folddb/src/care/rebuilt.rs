//! Tables whose runs a repair makes anew from the log that they keep for ever: which, and what their logs hold.
//!
//! Called by `repair`.

use std::path::Path;

use folddb_base::{Error, Lsn, Result};
use folddb_host::Host;
use folddb_journal::ReplayFrame;
use folddb_journal::follow::Follower;
use folddb_manifest::State;

use crate::care::finding::{Finding, Loss};
use crate::engine::Engine;
use crate::feeds::history_in;
use crate::kept_logs::kept_log;

/// The tables that are made anew.
#[derive(Default)]
pub(crate) struct Rebuilt {
    pub(crate) logs: Vec<RebuiltLog>,
}

/// What one of them is made from.
pub(crate) struct RebuiltLog {
    /// The table.
    pub(crate) table: String,
    /// Its log begins here.
    from_lsn: Lsn,
    /// And here goes on in what is replayed anyway.
    to_lsn: Lsn,
}

impl Rebuilt {
    /// Takes the runs of these tables out of `state`, so that nothing of them is taken over: all of their log is new then.
    ///
    /// # Errors
    /// There is no such table, or it does not keep its log.
    pub(crate) fn prepare(state: &mut State, names: &[String]) -> Result<Rebuilt> {
        let mut rebuilt = Rebuilt::default();
        for name in names {
            let log = kept_log(state, name).map(|feed| feed.lsn);
            let to_lsn = state.log_start_lsn;
            let table = state.tables.values_mut().find(|table| table.name == *name);
            let table =
                table.ok_or_else(|| Error::invalid(format!("the store has no table `{name}` to rebuild")))?;
            let from_lsn = log.ok_or_else(|| {
                Error::invalid(format!(
                    "table `{name}` cannot be rebuilt: nothing keeps all of its log; that takes a table that was created with \
                     log=forever in this store, and is not one that was repaired, or restored from a backup"
                ))
            })?;
            table.runs.clear();
            table.range_deletes.clear();
            table.flushed_seq = 0;
            if rebuilt.logs.iter().all(|log| log.table != *name) {
                rebuilt.logs.push(RebuiltLog { table: name.clone(), from_lsn, to_lsn });
            }
        }
        Ok(rebuilt)
    }

    /// Says of the new tables that they keep their logs, too, before anything is written to them.
    pub(crate) fn keep_logs(&self, engine: &Engine) -> Result<()> {
        for log in &self.logs {
            let mut manifest = engine.manifest.lock();
            let kept = engine.keep_log(manifest.state(), &log.table)?;
            engine.edit_feeds(&mut manifest, &[kept])?;
        }
        Ok(())
    }
}

impl RebuiltLog {
    /// Hands out the batches of the log, oldest first.
    ///
    /// # Errors
    /// Damage of the log, for which there is no help here; what `visit` returns.
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
                .context(format!("table `{}` cannot be rebuilt: its log", self.table))
                .advise("repair without it")
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

/// Batches of the log of a table that its new runs lack. Of many the first says what is wrong.
#[derive(Default)]
pub(crate) struct LostBatches {
    count: u64,
    first: Option<(Lsn, String)>,
}

impl LostBatches {
    /// Takes note of one.
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
        let what = format!("a batch that table `{table}` is made anew from, at LSN {lsn}: {why}{more}");
        Some(Finding::damage("the log", None, what).costs(Loss::whole_table(table)))
    }
}
