//! What a transaction has read, and whether that still holds when it commits.
//!
//! ```text
//!   check         before any lock: may read runs
//!   check_rest    under the commit lock: what was written meanwhile, which is in memory, and what time it is
//! ```
//!
//! Only what was *read* counts: two transactions that fold onto the same key without looking at it do not meet. A conflict is told,
//! too, where what was written between the two checks has been flushed already, so that nobody waits for the disk under the lock.
//!
//! What is newer stays a record of its own as long as the snapshot is a border, which that of a transaction is until it ends. Where it
//! has ended for its age, a delete may be merged away that would be a conflict, and so the look does not count.
//!
//! A value that was read and has expired by the time of the commit does not hold either.
//!
//! Called by `transaction` and `commit`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use folddb_base::checksum::key_hash;
use folddb_base::stamp::NEVER;
use folddb_base::{Error, ErrorKind, Result, Seq, TableId};
use folddb_memtable::ReadAt;
use folddb_run::{Rank, Tally};

use crate::borders::At;
use crate::catalog::TableCore;
use crate::engine::Engine;
use crate::view::{TableView, covering_seq};

/// What is known of reads before the commit lock is taken.
#[derive(Clone, Copy)]
pub(crate) struct Checked {
    /// Nothing was written to what was read up to this seq.
    seq: Seq,
    /// Before this time all that was read lasts.
    lasts_until_ms: u64,
}

/// The keys that a transaction has read at a snapshot.
pub(crate) struct Reads {
    at: At,
    tables: BTreeMap<TableId, (Arc<TableCore>, BTreeSet<Vec<u8>>)>,
}

impl Reads {
    /// Nothing was read yet, at the snapshot `at`, which lives as long as this.
    pub(crate) fn new(at: At) -> Reads {
        Reads { at, tables: BTreeMap::new() }
    }

    /// Notes a key.
    pub(crate) fn note(&mut self, table: &Arc<TableCore>, key: &[u8]) {
        let (_, keys) = self.tables.entry(table.id).or_insert_with(|| (Arc::clone(table), BTreeSet::new()));
        if !keys.contains(key) {
            keys.insert(key.to_vec());
        }
    }

    /// Checks that nothing was written to these keys since they were read; returns up to when that is so.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`]; [`ErrorKind::SnapshotGone`]; [`ErrorKind::Closed`] for a table that was dropped; a failed read.
    pub(crate) fn check(&self, engine: &Engine) -> Result<Checked> {
        let checked = Checked { seq: engine.published(), lasts_until_ms: self.lasts_until_ms(engine)? };
        self.check_alive()?;
        if checked.seq == self.at.seq || self.tables.is_empty() {
            return Ok(checked);
        }
        for (table, keys) in self.tables.values() {
            let view = Arc::clone(&table.pinned_view());
            for key in keys {
                if is_in_memory(engine, table, &view, key, self.at.seq)
                    || is_in_runs(engine, table, &view, key, self.at.seq)?
                {
                    return Err(conflict(table, key));
                }
            }
        }
        engine.own_files_at(Some(self.at))?;
        Ok(checked)
    }

    /// When the first of the values that were read expires.
    fn lasts_until_ms(&self, engine: &Engine) -> Result<u64> {
        let mut until_ms = NEVER;
        for (table, keys) in self.tables.values().filter(|(table, _)| table.has_stamps) {
            for key in keys {
                match engine.head(table, key, Some(self.at)) {
                    Ok(head) => {
                        until_ms = until_ms.min(head.and_then(|head| head.deadline_ms).unwrap_or(NEVER))
                    }
                    Err(error) if error.kind() == ErrorKind::FoldFailed => {} // which no value lasts for
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(until_ms)
    }

    /// Of a table that is dropped nothing is known any more.
    fn check_alive(&self) -> Result<()> {
        self.tables.values().try_for_each(|(table, _)| table.check_alive())
    }

    /// The same of what was written since that, by the time of the commit. The caller holds the commit lock.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`]; [`ErrorKind::SnapshotGone`].
    pub(crate) fn check_rest(&self, engine: &Engine, by: Checked, time_ms: Option<u64>) -> Result<()> {
        self.check_alive()?; // a table goes without a seq
        if by.lasts_until_ms < NEVER && time_ms.unwrap_or_else(|| engine.now_ms()) >= by.lasts_until_ms {
            let message = "a value that the transaction read has expired since";
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let checked = by.seq;
        if checked == engine.published() || self.tables.is_empty() {
            return Ok(());
        }
        for (table, keys) in self.tables.values() {
            let view = Arc::clone(&table.pinned_view());
            let is_flushed = view.runs.iter().any(|run| run.max_seq() > checked);
            let changed = |key: &&Vec<u8>| is_flushed || is_in_memory(engine, table, &view, key, checked);
            if let Some(key) = keys.iter().find(changed) {
                return Err(conflict(table, key));
            }
        }
        engine.own_files_at(Some(self.at)).map(drop)
    }
}

/// Whether a memtable or a range delete has something of `key` that is newer than `since`.
fn is_in_memory(engine: &Engine, table: &TableCore, view: &TableView, key: &[u8], since: Seq) -> bool {
    let order = &table.rules.order;
    if covering_seq(&view.range_deletes, order, key, Seq::MAX) > since {
        return true;
    }
    let sealed = view.sealed.iter().filter(|sealed| sealed.last_seq > since).map(|sealed| &sealed.memtable);
    std::iter::once(&view.active).chain(sealed).any(|memtable| {
        let mut is_newer = false;
        memtable.get(key, ReadAt::Published(&engine.published), |newest| {
            is_newer = newest.seq > since;
            ControlFlow::Break(())
        });
        is_newer
    })
}

/// Whether a run has.
fn is_in_runs(engine: &Engine, table: &TableCore, view: &TableView, key: &[u8], since: Seq) -> Result<bool> {
    let (order, hash) = (&table.rules.order, key_hash(key));
    let mut is_newer = false;
    let mut tally = Tally::default();
    for run in view.runs.iter().filter(|run| run.max_seq() > since) {
        let at = run.parts.partition_point(|part| order.compare(&part.high, key).is_lt());
        let Some(part) = run.parts.get(at).filter(|part| order.compare(&part.low, key).is_le()) else {
            continue;
        };
        let _ = part.file.part.get_as(Rank::Young, key, hash, Seq::MAX, &mut tally, &mut |newest| {
            is_newer |= newest.seq > since;
            Ok(ControlFlow::Break(()))
        })?;
    }
    engine.parts.count(&tally);
    Ok(is_newer)
}

fn conflict(table: &TableCore, key: &[u8]) -> Error {
    let key = table.rules.rules.key_codec().show_line(key);
    let message = format!("key {key} of table `{}` was written to since the transaction read it", table.name);
    Error::new(ErrorKind::Conflict, message)
}
