//! Old snapshots get pinned files, once everything that they see is in runs: then merges need not
//! keep anything for them. See `state::pinned_files`.

use std::sync::Arc;

use folddb_base::Seq;
use folddb_host::sync::Mutex;
use folddb_manifest::State;

use crate::state::catalog::TableCore;
use crate::state::committer::Committer;
use crate::state::engine::Engine;
use crate::state::pinned_files::{InRuns, PinnedFiles};
use crate::write::commit;

// ---- growing old --------------------------------------------------------------------------------

/// Gives snapshots that are old enough pinned files, once everything that they see is in runs, and
/// ends those that are too old.
pub(crate) fn age_snapshots(engine: &Engine) {
    if engine.boundaries.is_empty() {
        return;
    }
    let now = engine.host.clock.monotonic();
    if let Some(max) = engine.options.snapshot_age_max {
        engine.boundaries.end_of_age(now, max);
    }
    let aging = engine.boundaries.of_age(now, engine.options.snapshot_files_after);
    let Some(newest) = aging.last().map(|at| at.seq) else { return };
    let manifest = engine.manifest.lock(); // no part is installed in between
    let mut committer = engine.commit.lock(); // and no memtable begins
    if is_in_runs(engine, manifest.state(), &mut committer, newest) {
        let files = Arc::new(present_files(engine));
        engine.boundaries.give_files(&aging, &files);
    }
}

/// Whether everything in sorted tables up to `seq` is in runs. Memtables that still have some of it
/// are sealed: their flushes come next.
pub(crate) fn is_in_runs(engine: &Engine, state: &State, committer: &mut Committer, seq: Seq) -> bool {
    let is_behind = |table: &Arc<TableCore>| {
        let flushed_seq = state.tables.get(&table.id).map_or(0, |state| state.flushed_seq);
        table.hashed.is_none() && flushed_seq < seq
    };
    let written: Vec<_> = committer.written().map(|active| Arc::clone(&active.table)).collect();
    for table in written.iter().filter(|table| is_behind(table)) {
        let sealed_to = table.view().sealed.first().map(|sealed| sealed.last_seq);
        if sealed_to.is_none_or(|last_seq| last_seq < seq) {
            commit::seal(engine, committer, table);
        }
    }
    !engine.tables_sealed().iter().any(is_behind)
}

/// The present runs of sorted tables. The caller holds the manifest's lock.
pub(crate) fn present_files(engine: &Engine) -> PinnedFiles {
    let catalog = engine.catalog();
    let in_runs = catalog.all().filter_map(|table| Some((table.id, InRuns::of(table)?)));
    let files = PinnedFiles { tables: Mutex::new(in_runs.collect()), segment_map: Arc::default() };
    let parts = files.part_files();
    let led_to = parts.iter().flat_map(|file| &file.part.facts().values).map(|used| used.segment);
    let segment_map = engine.values.files.present().only(&led_to.collect());
    PinnedFiles { segment_map: Arc::new(segment_map), ..files }
}
