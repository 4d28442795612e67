//! Memtables of replayed records, written to parts that the manifest does not list yet.

use std::sync::Arc;

use folddb_base::{Result, Seq};
use folddb_layout::manifest_edit::Change;

use crate::background::flush;
use crate::background::flush::Written;
use crate::background::ranges::new_range_deletes;
use crate::edit::install;
use crate::state::catalog::TableCore;
use crate::state::clock;
use crate::state::committer::Committer;
use crate::state::engine::Engine;
use crate::state::view::TableView;
use crate::write::commit;

/// Memtables of replayed records, as parts that the manifest does not list yet. A failed opening
/// removes them: it may be retried often, and each try would leave its own.
#[derive(Default)]
pub(crate) struct Rewrites(pub(crate) Vec<Rewritten>);

impl Rewrites {
    pub(crate) fn of<'a>(
        &'a self,
        table: &'a Arc<TableCore>,
    ) -> impl DoubleEndedIterator<Item = &'a Rewritten> {
        self.0.iter().filter(|one| Arc::ptr_eq(&one.table, table))
    }

    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        self.0.iter_mut().flat_map(|one| std::mem::take(&mut one.written.changes)).collect()
    }

    pub(crate) fn discard(&self) {
        self.0.iter().for_each(|one| one.written.discard());
    }
}

/// One such memtable.
pub(crate) struct Rewritten {
    pub(crate) table: Arc<TableCore>,
    pub(crate) last_seq: Seq,
    pub(crate) written: Written,
}

/// Writes the memtable of a table to parts that no manifest lists yet, and empties it. There are no
/// readers yet.
pub(crate) fn rewrite(
    engine: &Engine,
    committer: &mut Committer,
    table: &Arc<TableCore>,
    rewritten: &mut Rewrites,
) -> Result<()> {
    commit::seal(engine, committer, table);
    let view = table.view();
    let Some(sealed) = view.sealed.last() else { return Ok(()) };
    let before = rewritten.of(table).next_back();
    let is_bottom = view.runs.is_empty() && before.is_none();
    let flushed_seq = before.map_or_else(|| install::flushed_seq(engine, table), |earlier| earlier.last_seq);
    // Nothing is swept: further records of its keys in the log are not known yet.
    let times = clock::times_to_keep(engine, table);
    // A later flush removes those that hide nothing: the parts written here are in no view yet.
    let written = flush::write_sealed(engine, table, sealed, (is_bottom, times), &|applied, _| {
        new_range_deletes(applied, flushed_seq)
    })?;
    rewritten.0.push(Rewritten { table: Arc::clone(table), last_seq: sealed.last_seq, written });
    engine.memory.settle_sealed(sealed.bytes);
    table.change_view(|view| TableView {
        active: Arc::clone(&view.active),
        sealed: Vec::new(),
        runs: Arc::clone(&view.runs),
        range_deletes: Arc::clone(&view.range_deletes),
    });
    Ok(())
}

pub(crate) fn rewrite_all(engine: &Engine, rewritten: &mut Rewrites) -> Result<()> {
    // This takes the manifest's lock while the commit lock is held, against the lock order: there
    // are no other threads yet.
    let mut committer = engine.commit.lock();
    let written: Vec<_> = committer.written().map(|active| Arc::clone(&active.table)).collect();
    written.iter().try_for_each(|table| rewrite(engine, &mut committer, table, rewritten))
}
