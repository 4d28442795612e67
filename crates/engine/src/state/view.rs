//! The view of readers of one table: its memtables, its runs and its range deletes, immutable.
//!
//! A change of the table (the committer that seals a memtable, a flush, a merge) builds the next
//! view and swaps it in as a whole. A reader takes the view once and needs no lock after that. A
//! record is in a memtable or in the run that it was flushed to, never in both and never in
//! neither.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;

use folddb_base::ids::RunId;
use folddb_base::{FileNumber, Lsn, Seq};
use folddb_host::Files;
use folddb_host::sync::Mutex;
use folddb_host::sync::atomic::{AtomicBool, Ordering};
use folddb_manifest::{RangeDelete, RunState, TableState};
use folddb_memtable::Memtable;
use folddb_rules::KeyOrder;
use folddb_run::{Part, Spans};

use crate::state::coverage::Coverage;
use crate::state::range_deletes::RangeDeletes;

/// One immutable view of a table.
pub struct TableView {
    /// The memtable that is being written to.
    pub active: Arc<Memtable>,
    /// Memtables that wait to be flushed, newest first.
    pub sealed: Vec<Sealed>,
    /// The runs, newest first.
    pub runs: Arc<Vec<RunView>>,
    /// The range deletes: those of the manifest and those that are only in the log yet.
    pub range_deletes: Arc<RangeDeletes>,
}

impl TableView {
    /// The view of an empty table.
    pub fn of(active: Arc<Memtable>) -> TableView {
        TableView { active, sealed: Vec::new(), runs: Arc::default(), range_deletes: Arc::default() }
    }

    /// The seq up to which its past has been folded. (Old bulk loads recorded the highest seq
    /// here.)
    pub(crate) fn folded_up_to(&self) -> Seq {
        let parts = self.runs.iter().flat_map(|run| &run.parts);
        let folded = parts.map(|part| part.file.part.facts().kept_since);
        folded.filter(|since| *since < Seq::MAX).max().unwrap_or(0)
    }

    /// Records in memory and in runs.
    pub fn records(&self) -> u64 {
        let memtables =
            std::iter::once(&self.active).chain(self.sealed.iter().map(|sealed| &sealed.memtable));
        let parts = self.runs.iter().flat_map(|run| &run.parts).map(|part| part.file.part.facts().records);
        memtables.map(|memtable| memtable.records()).sum::<u64>() + parts.sum::<u64>()
    }

    /// The same view with one more range delete, the newest of all.
    pub(crate) fn with_range_delete(&self, order: &KeyOrder, range: RangeDelete) -> TableView {
        let mut range_deletes = self.range_deletes.as_ref().clone();
        range_deletes.add(order, Arc::new(range));
        TableView {
            active: Arc::clone(&self.active),
            sealed: self.sealed.clone(),
            runs: Arc::clone(&self.runs),
            range_deletes: Arc::new(range_deletes),
        }
    }
}

/// A memtable that takes no more records.
#[derive(Clone)]
pub struct Sealed {
    pub memtable: Arc<Memtable>,
    /// The start of the log that is needed until the memtable is flushed.
    pub first_lsn: Lsn,
    /// Its bytes, as counted in the debt.
    pub bytes: usize,
    /// Where the log ended when it was sealed.
    pub end_lsn: Lsn,
    /// The last seq of the history when it was sealed: records of the table up to here are in it or
    /// below it.
    pub last_seq: Seq,
    /// No record in it was written before this time, if the table needs it.
    pub since_ms: u64,
}

/// A run, for readers.
pub struct RunView {
    pub id: RunId,
    pub tier: u8,
    pub age: Seq,
    /// In key order, disjoint.
    pub parts: Vec<PartView>,
    /// The key ranges of the parts.
    spans: Spans,
}

impl RunView {
    /// The one part that may have `key`.
    #[inline]
    pub fn part_of(&self, order: &KeyOrder, key: &[u8]) -> Option<&PartView> {
        self.spans.find(order, key).and_then(|at| self.parts.get(at))
    }

    /// The parts that may have keys between two bounds, in the order of the table.
    pub fn parts_between(&self, order: &KeyOrder, (low, high): (Bound<&[u8]>, Bound<&[u8]>)) -> &[PartView] {
        let is_below = |part: &PartView| match low {
            Bound::Included(key) => order.compare(&part.high, key).is_lt(),
            Bound::Excluded(key) => order.compare(&part.high, key).is_le(),
            Bound::Unbounded => false,
        };
        let begins_within = |part: &PartView| match high {
            Bound::Included(key) => order.compare(&part.low, key).is_le(),
            Bound::Excluded(key) => order.compare(&part.low, key).is_lt(),
            Bound::Unbounded => true,
        };
        let from = self.parts.partition_point(is_below);
        let rest = self.parts.get(from..).unwrap_or(&[]);
        &rest[..rest.partition_point(begins_within)]
    }

    /// The newest seq that a record of it may have.
    pub fn max_seq(&self) -> Seq {
        self.parts.iter().map(|part| part.file.part.facts().max_seq).max().unwrap_or(0)
    }

    /// Whether a part has keys between the first and the last of the run.
    pub fn overlaps(&self, part: &PartView, order: &KeyOrder) -> bool {
        let (Some(first), Some(last)) = (self.parts.first(), self.parts.last()) else { return false };
        order.compare(&first.low, &part.high).is_le() && order.compare(&part.low, &last.high).is_le()
    }
}

/// The visible part of a part file: a running merge has taken over the keys below `low`.
#[derive(Clone)]
pub struct PartView {
    pub file: Arc<PartFile>,
    pub low: Vec<u8>,
    pub high: Vec<u8>,
    pub trimmed: bool,
}

impl PartView {
    /// Whether some key may be in both.
    pub fn overlaps(&self, other: &PartView, order: &KeyOrder) -> bool {
        order.compare(&self.low, &other.high).is_le() && order.compare(&other.low, &self.high).is_le()
    }

    /// The lowest visible key, if that is not the lowest key of the file.
    pub(crate) fn trim(&self) -> Option<&[u8]> {
        self.trimmed.then_some(self.low.as_slice())
    }
}

/// A part's file, which is removed when the manifest no longer lists it and nobody reads it any
/// more.
pub struct PartFile {
    pub part: Arc<Part>,
    pub number: FileNumber,
    path: PathBuf,
    files: Arc<dyn Files>,
    obsolete: AtomicBool,
    /// What background work last found out about the range deletes over it.
    pub(crate) coverage: Mutex<Coverage>,
}

impl PartFile {
    pub fn new(part: Arc<Part>, number: FileNumber, path: PathBuf, files: Arc<dyn Files>) -> Arc<PartFile> {
        let (obsolete, coverage) = (AtomicBool::new(false), Mutex::default());
        Arc::new(PartFile { part, number, path, files, obsolete, coverage })
    }

    /// Called when the durable manifest no longer lists the file: it is removed with its last
    /// reader.
    pub fn retire(&self) {
        self.obsolete.store(true, Ordering::Release);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.obsolete.load(Ordering::Acquire)
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if self.is_retired() {
            self.part.forget();
            // The next opening removes a file that stays.
            let _ = self.files.remove(&self.path);
        }
    }
}

/// The open part files of a table, by number, which makes their order reproducible.
pub type PartFiles = BTreeMap<FileNumber, Arc<PartFile>>;

/// The runs of a table, from its state in the manifest. `files` has every listed part.
pub(crate) fn runs_of(state: &TableState, files: &PartFiles, order: &KeyOrder) -> Vec<RunView> {
    state.runs.iter().map(|run| run_of(run, files, order)).collect()
}

fn run_of(run: &RunState, files: &PartFiles, order: &KeyOrder) -> RunView {
    let part = |part: &folddb_manifest::PartState| {
        Some(PartView {
            file: Arc::clone(files.get(&part.file)?),
            low: part.low.clone(),
            high: part.high.clone(),
            trimmed: part.trimmed,
        })
    };
    let parts: Vec<PartView> = run.parts.iter().filter_map(part).collect();
    assert_eq!(parts.len(), run.parts.len(), "every part that the manifest lists is open");
    let spans = Spans::of(parts.iter().map(|part| (&part.low[..], &part.high[..])), order);
    RunView { id: run.id, tier: run.tier, age: run.age, parts, spans }
}
