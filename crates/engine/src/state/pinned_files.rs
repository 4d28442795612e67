//! Files of the past: what old snapshots read, so that merges need not keep versions for them.
//!
//! A snapshot is a boundary, and as long as it is one, memtables and merges keep apart what lies
//! below and above it. Once it is older than `snapshot_files_after`, everything that it sees is
//! brought to runs, and it takes the runs, and the files of values that they lead to, as they are
//! then: those were made with its boundary in force. From then on it costs their space and nothing
//! else: merges go on without it, and the files go when it does. All snapshots that come of age
//! together share them.
//!
//! After `snapshot_age_max`, where there is one, it reads nothing any more.
//!
//! **Who reads at a moment looks first, and then asks whether it has aged**
//! (`read::pinned::pinned_files_at`). In the other order merges could come between that pass over
//! the boundary already.
//!
//! Called by `background`, with the flushes, and by `read`, `scan`, `aggregate` and `reads` for who
//! reads at a snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use folddb_base::TableId;
use folddb_host::sync::Mutex;
use folddb_memtable::Memtable;

use crate::state::catalog::{TableCore, new_memtable};
use crate::state::range_deletes::RangeDeletes;
use crate::state::view::{PartFile, RunView, TableView};
use folddb_value_log::SegmentMap;

/// See the top of this file.
#[derive(Default)]
pub struct PinnedFiles {
    /// What sorted tables have in runs; of those that have none, nothing.
    pub tables: Mutex<BTreeMap<TableId, InRuns>>,
    /// Where the values are that they lead to.
    pub segment_map: Arc<SegmentMap>,
}

impl std::fmt::Debug for PinnedFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PinnedFiles of {} tables", self.tables.lock().len())
    }
}

/// A table as far as it is in runs.
#[derive(Clone)]
pub struct InRuns {
    runs: Arc<Vec<RunView>>,
    range_deletes: Arc<RangeDeletes>,
    /// The view of it, once somebody has read it: there are many tables, and few are.
    view: Option<Arc<TableView>>,
}

impl InRuns {
    /// Nothing where it is hashed, or has nothing in runs.
    pub fn of(table: &TableCore) -> Option<InRuns> {
        let view = table.view();
        let has_none = table.hashed.is_some() || view.runs.is_empty() && view.range_deletes.is_empty();
        let (runs, range_deletes) = (Arc::clone(&view.runs), Arc::clone(&view.range_deletes));
        (!has_none).then_some(InRuns { runs, range_deletes, view: None })
    }

    fn view(&mut self, table: &TableCore) -> Arc<TableView> {
        let view = self.view.get_or_insert_with(|| {
            let (runs, range_deletes) = (Arc::clone(&self.runs), Arc::clone(&self.range_deletes));
            Arc::new(TableView { runs, range_deletes, ..TableView::of(empty_memtable(table)) })
        });
        Arc::clone(view)
    }
}

fn empty_memtable(table: &TableCore) -> Arc<Memtable> {
    new_memtable(&table.rules.order, &table.fold, table.keeps_past)
}

impl PinnedFiles {
    /// The view of a table. One that was created later is empty; one that is dropped, too, and
    /// its readers see to that. A table that was *loaded* later is there
    /// (`edit::old_snapshots`).
    pub fn view(&self, table: &TableCore) -> Arc<TableView> {
        match self.tables.lock().get_mut(&table.id) {
            Some(in_runs) => in_runs.view(table),
            None => Arc::new(TableView::of(empty_memtable(table))),
        }
    }

    /// Takes in a table that has come into being with rows.
    pub(crate) fn take_in(&self, table: TableId, in_runs: InRuns) {
        self.tables.lock().insert(table, in_runs);
    }

    /// The files of runs among them.
    pub fn part_files(&self) -> Vec<Arc<PartFile>> {
        let tables = self.tables.lock();
        let parts = tables.values().flat_map(|table| table.runs.iter()).flat_map(|run| &run.parts);
        parts.map(|part| Arc::clone(&part.file)).collect()
    }
}
