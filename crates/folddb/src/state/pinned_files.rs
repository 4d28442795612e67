//! Files of the past: what old snapshots read, so that merges need not keep versions for them.
//!
//! A snapshot is a border, and as long as it is one, memtables and merges keep apart what lies below and above it. Once it is older
//! than `snapshot_files_after`, everything that it sees is brought to runs, and it takes the runs, and the files of values that they
//! lead to, as they are then: those were made with its border in force. From then on it costs their space and nothing else: merges
//! go on without it, and the files go when it does. All snapshots that come of age together share them.
//!
//! After `snapshot_age_max`, where there is one, it reads nothing any more.
//!
//! **Who reads at a moment looks first, and then asks whether it has aged** ([`own_files_at`]). In the other order merges
//! could come between that pass over the border already.
//!
//! Called by `upkeep`, with the flushes, and by `read`, `scan`, `aggregate` and `reads` for who reads at a snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use folddb_base::{Error, ErrorKind, Result, Seq, TableId};
use folddb_host::sync::Mutex;
use folddb_manifest::State;
use folddb_memtable::Memtable;

use crate::state::catalog::{TableCore, new_memtable};
use crate::state::engine::{Committer, Engine};
use crate::state::range_deletes::RangeDeletes;
use crate::state::snapshots::At;
use crate::state::value_files::Roster;
use crate::state::view::{PartFile, RunView, TableView};
use crate::write::commit;

/// See the top of this file.
#[derive(Default)]
pub(crate) struct OwnFiles {
    /// What sorted tables have in runs; of those that have none, nothing.
    tables: Mutex<BTreeMap<TableId, InRuns>>,
    /// Where the values are that they lead to.
    pub(crate) roster: Arc<Roster>,
}

impl std::fmt::Debug for OwnFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OwnFiles of {} tables", self.tables.lock().len())
    }
}

/// A table as far as it is in runs.
#[derive(Clone)]
struct InRuns {
    runs: Arc<Vec<RunView>>,
    range_deletes: Arc<RangeDeletes>,
    /// The picture of it, once somebody has read it: there are many tables, and few are.
    view: Option<Arc<TableView>>,
}

impl InRuns {
    /// Nothing where it is hashed, or has nothing in runs.
    fn of(table: &TableCore) -> Option<InRuns> {
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

impl OwnFiles {
    /// The picture of a table. One that was created later is empty; one that is dropped, too, and
    /// its readers see to that. A table that was *loaded* later is there
    /// ([`Engine::show_to_old_snapshots`]).
    pub(crate) fn view(&self, table: &TableCore) -> Arc<TableView> {
        match self.tables.lock().get_mut(&table.id) {
            Some(in_runs) => in_runs.view(table),
            None => Arc::new(TableView::of(empty_memtable(table))),
        }
    }

    /// Takes in a table that has come into being with rows.
    fn take_in(&self, table: TableId, in_runs: InRuns) {
        self.tables.lock().insert(table, in_runs);
    }

    /// The files of runs among them.
    fn part_files(&self) -> Vec<Arc<PartFile>> {
        let tables = self.tables.lock();
        let parts = tables.values().flat_map(|table| table.runs.iter()).flat_map(|run| &run.parts);
        parts.map(|part| Arc::clone(&part.file)).collect()
    }
}

/// The files that a reader at `at` reads, where those are its own. To be asked once the picture of everybody, and what is in its
/// memtable, is taken.
///
/// # Errors
/// [`ErrorKind::SnapshotGone`] where it is too old.
#[inline]
pub(crate) fn own_files_at(engine: &Engine, at: Option<At>) -> Result<Option<Arc<OwnFiles>>> {
    match at {
        Some(at) if engine.borders.may_have_aged(at) => own_files_of_old(engine, at),
        _ => Ok(None),
    }
}

#[cold]
fn own_files_of_old(engine: &Engine, at: At) -> Result<Option<Arc<OwnFiles>>> {
    engine.check_open()?; // it ends with the store, too
    engine.borders.files_of(at).map_err(|()| {
        let max_s = engine.options.snapshot_age_max.unwrap_or_default().as_secs_f64();
        let message = format!("the snapshot at seq {} has become older than {max_s} s", at.seq);
        Error::new(ErrorKind::SnapshotGone, message)
    })
}

/// The picture of `table` that a reader at `at` reads. What is in memory there is only to be asked where keys are, not what they
/// have: that may be folded by now.
///
/// # Errors
/// As [`own_files_at`]; the table is dropped.
pub(crate) fn view_at(engine: &Engine, table: &TableCore, at: Option<At>) -> Result<Arc<TableView>> {
    let view = Arc::clone(&table.pinned_view());
    let own = own_files_at(engine, at)?.map(|files| files.view(table));
    engine.check_readable(table)?;
    Ok(own.unwrap_or(view))
}

// ---- growing old -------------------------------------------------------------------------------------

/// Gives snapshots that have come of age files of their own, once all that they see is in runs, and lets go of those that are too
/// old.
pub(crate) fn age_snapshots(engine: &Engine) {
    if engine.borders.is_empty() {
        return;
    }
    let now = engine.host.clock.monotonic();
    if let Some(max) = engine.options.snapshot_age_max {
        engine.borders.end_of_age(now, max);
    }
    let aging = engine.borders.of_age(now, engine.options.snapshot_files_after);
    let Some(newest) = aging.last().map(|at| at.seq) else { return };
    let manifest = engine.manifest.lock(); // no part is installed meanwhile
    let mut committer = engine.commit.lock(); // and no memtable begins
    if is_in_runs(engine, manifest.state(), &mut committer, newest) {
        let files = Arc::new(present_files(engine));
        engine.borders.give_files(&aging, &files);
    }
}

/// Whether all that sorted tables have up to `seq` is in runs. What is in memory still is sealed: the flushes come next.
fn is_in_runs(engine: &Engine, state: &State, committer: &mut Committer, seq: Seq) -> bool {
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

/// What sorted tables have in runs, as it is now. The caller holds the manifest's lock.
fn present_files(engine: &Engine) -> OwnFiles {
    let catalog = engine.catalog();
    let in_runs = catalog.all().filter_map(|table| Some((table.id, InRuns::of(table)?)));
    let files = OwnFiles { tables: Mutex::new(in_runs.collect()), roster: Arc::default() };
    let parts = files.part_files();
    let led_to = parts.iter().flat_map(|file| &file.part.facts().values).map(|used| used.segment);
    let roster = engine.values.files.present().only(&led_to.collect());
    OwnFiles { roster: Arc::new(roster), ..files }
}

/// A table was loaded, with rows of `seq`: they are as old as that seq, so old snapshots that
/// are not older than them see the table as young ones do. The caller holds the manifest's lock
/// since before the table was there, so that no snapshot comes of age meanwhile.
pub(crate) fn show_to_old_snapshots(engine: &Engine, table: &TableCore, seq: Seq) {
    let files = engine.borders.files_since(seq);
    if files.is_empty() {
        return;
    }
    let in_runs = InRuns::of(table);
    let of_each = files.iter().zip(std::iter::repeat(in_runs));
    of_each.for_each(|(files, in_runs)| in_runs.into_iter().for_each(|one| files.take_in(table.id, one)));
}

/// A table is dropped, and so nobody reads what old snapshots have of it.
pub(crate) fn forget_own_files(engine: &Engine, table: &TableCore) {
    engine.borders.all_files().iter().for_each(|files| {
        let gone = files.tables.lock().remove(&table.id);
        drop(gone);
    });
}

/// Bytes of files, of runs and of values, that only snapshots keep.
pub(crate) fn own_file_bytes(engine: &Engine) -> u64 {
    let (mut parts, mut values) = (BTreeSet::new(), BTreeSet::new());
    let mut bytes = 0;
    for files in engine.borders.all_files() {
        let retired = files.part_files().into_iter().filter(|file| file.is_retired());
        let new = retired.filter(|file| parts.insert(file.number));
        bytes += new.map(|file| file.part.facts().file_bytes).sum::<u64>();
        bytes += files.roster.retired_bytes(&mut values);
    }
    bytes
}
