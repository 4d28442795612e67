//! Pinned files: what old snapshots read, so that merges need not keep versions for them.
//!
//! A snapshot is a boundary, and while it is one, memtables and merges keep records below and above
//! it separate. Once it is older than `snapshot_files_after`, everything that it sees is flushed to
//! runs, and it pins the present runs and their files of values: those were written with its
//! boundary in force. From then on it costs only their space: merges continue without it, and the
//! files are removed with it. All snapshots that reach the age together share them.
//!
//! After `snapshot_age_max`, if set, its reads fail.
//!
//! **A reader at a moment takes the view first, and then checks for pinned files**
//! (`read::pinned::pinned_files_at`). In the other order, merges could in between already ignore
//! the boundary.
//!
//! Called by `background`, with the flushes, and by `read`, `scan`, `aggregate` and `read_set` for
//! readers at a snapshot.

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
    /// The runs of sorted tables; tables without runs are left out.
    pub tables: Mutex<BTreeMap<TableId, InRuns>>,
    /// Where their separated values are.
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
    /// The view of it, once it is read: there may be many tables, of which few are read.
    view: Option<Arc<TableView>>,
}

impl InRuns {
    /// None if it is hashed, or has no runs.
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
    /// The view of a table. A table that was created later is empty; so is a dropped one, which its
    /// readers check. A table that was *loaded* later is there (`edit::old_snapshots`).
    pub fn view(&self, table: &TableCore) -> Arc<TableView> {
        match self.tables.lock().get_mut(&table.id) {
            Some(in_runs) => in_runs.view(table),
            None => Arc::new(TableView::of(empty_memtable(table))),
        }
    }

    /// Adds a table that was created with rows.
    pub(crate) fn take_in(&self, table: TableId, in_runs: InRuns) {
        self.tables.lock().insert(table, in_runs);
    }

    /// The part files among them.
    pub fn part_files(&self) -> Vec<Arc<PartFile>> {
        let tables = self.tables.lock();
        let parts = tables.values().flat_map(|table| table.runs.iter()).flat_map(|run| &run.parts);
        parts.map(|part| Arc::clone(&part.file)).collect()
    }
}
