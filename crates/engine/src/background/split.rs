//! A large merge that several threads work on, slice by slice. [`folddb_merge::slices`] decides
//! where it is cut and who does what; here are the locks, and the edits.
//!
//! ```text
//!   lock         guards                                       held while
//!   state        whose turn it is, and what is written        a moment
//!   installing   the order of the edits                       written slices are installed; before the manifest's lock
//! ```
//!
//! A slice writes parts that no manifest lists. When all slices before it are installed, one edit
//! adds them and takes the keys up to its upper border from the inputs. So at each moment the
//! inputs have lost exactly the keys before a border, and the output has exactly these: as for a
//! merge that is not cut, each key is in one place, and what is installed stays if the rest is
//! given up. Parts that are never installed are removed with the slice that wrote them.

use std::collections::HashSet;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use folddb_base::{Error, RecordStream, Result, Seq};
use folddb_host::sync::Mutex;
use folddb_merge::{Borders, Counts, FoldStep, Mark, Turns, cut};
use folddb_rules::codec::KeyRange;
use folddb_run::PartFacts;

use super::merge_base::{MergeBase, consumed};
use crate::edit::install;
use crate::edit::install::Installed;
use crate::state::engine::Engine;
use crate::state::view::{PartFile, PartView, RunView};

/// A merge that is cut into slices.
pub struct Split {
    pub base: Arc<MergeBase>,
    borders: Borders,
    /// How many slices may run at once.
    threads: usize,
    state: Mutex<State>,
    installing: Mutex<()>,
}

struct State {
    turns: Turns<Written>,
    /// What running slices have read and written by now, too.
    read_so_far: Counts,
    /// Of the installed slices.
    counts: Counts,
    took: Duration,
    sheltering: HashSet<Seq>,
    /// Why it was given up, if by a failure.
    error: Option<Error>,
    is_released: bool,
}

/// A slice that runs.
pub struct Slice {
    pub split: Arc<Split>,
    pub number: usize,
    pub written: Written,
}

/// What a slice has written.
#[derive(Default)]
pub struct Written {
    pub parts: Vec<(Arc<PartFile>, PartFacts)>,
    counts: Counts,
    took: Duration,
    sheltering: HashSet<Seq>,
}

/// How a merge in slices has ended.
pub(crate) enum End {
    Complete,
    GivenUp(Option<Error>),
}

impl Split {
    /// A merge that is cut at these borders, of which at most this many slices run at once.
    pub(crate) fn of(base: Arc<MergeBase>, borders: Borders, threads: usize) -> Arc<Split> {
        let state = State {
            turns: Turns::of(borders.slices()),
            read_so_far: Counts::default(),
            counts: Counts::default(),
            took: Duration::ZERO,
            sheltering: HashSet::new(),
            error: None,
            is_released: false,
        };
        Arc::new(Split { base, borders, threads, state: Mutex::new(state), installing: Mutex::default() })
    }

    /// The plan, and how it is cut.
    pub(crate) fn plan_text(&self) -> String {
        format!("{}, in {}", self.base.plan, self.borders)
    }

    /// Whether another slice may begin.
    pub(crate) fn may_begin(&self) -> bool {
        self.state.lock().turns.may_begin(self.threads)
    }

    /// Begins the next slice, if one may: the caller must let it go in the end.
    pub(crate) fn begin(self: &Arc<Split>) -> Option<Slice> {
        let number = self.state.lock().turns.begin(self.threads)?;
        Some(Slice { split: Arc::clone(self), number, written: Written::default() })
    }

    /// The keys of a slice.
    pub(crate) fn range_of(&self, slice: usize) -> KeyRange {
        let low = self.borders.low(slice).map_or(Bound::Unbounded, |key| Bound::Included(key.to_vec()));
        let high = self.borders.high(slice).map_or(Bound::Unbounded, |key| Bound::Excluded(key.to_vec()));
        KeyRange { low, high }
    }

    /// Notes what a step has read and written.
    pub(crate) fn note_step(&self, before: &Counts, after: &Counts) {
        let mut state = self.state.lock();
        let sum = &mut state.read_so_far;
        sum.bytes_in += after.bytes_in - before.bytes_in;
        sum.records_in += after.records_in - before.records_in;
        sum.records_out += after.records_out - before.records_out;
    }

    /// Bytes and records that all slices have read and written so far.
    pub(crate) fn read_so_far(&self) -> Counts {
        self.state.lock().read_so_far
    }

    /// Hands over a slice that is written, and installs all slices whose turn it is now.
    fn deliver(&self, engine: &Engine, slice: usize, written: Written) -> Result<()> {
        let _in_order = self.installing.lock();
        let unused = self.state.lock().turns.write(slice, written);
        drop(unused); // removes files, without the lock
        loop {
            let next = self.state.lock().turns.take_next();
            let Some((slice, written)) = next else { return Ok(()) };
            self.install(engine, slice, written)?;
        }
    }

    /// One edit adds the parts of a slice, and takes the keys before its upper border from the
    /// inputs: those of earlier slices are no longer there.
    fn install(&self, engine: &Engine, slice: usize, mut written: Written) -> Result<()> {
        let (base, high) = (&self.base, self.borders.high(slice));
        let parts = std::mem::take(&mut written.parts);
        let mut changes: Vec<_> = parts.iter().map(|(part, facts)| base.added(part, facts)).collect();
        changes.extend(consumed(&base.table, &base.plan.inputs, &KeyRange::all(), high));
        let sheltering = std::mem::take(&mut written.sheltering);
        let sheltering = {
            let mut state = self.state.lock();
            state.sheltering.extend(sheltering);
            state.sheltering.clone()
        };
        if high.is_none() {
            changes.extend(base.retired_range_deletes(engine, sheltering));
        }
        if !changes.is_empty() {
            let parts = parts.into_iter().map(|(part, _)| part).collect();
            install::install(engine, &base.table, changes, Installed { parts, ..Installed::default() })?;
        }
        let mut state = self.state.lock();
        state.counts = state.counts.and(&written.counts);
        state.took += written.took;
        state.turns.note_installed();
        Ok(())
    }

    /// Begins and installs no slice from now on; `error` says why, if something failed.
    pub(crate) fn stop(&self, error: Option<&Error>) {
        let unused = {
            let mut state = self.state.lock();
            state.error = state.error.take().or_else(|| error.cloned());
            state.turns.stop()
        };
        drop(unused); // removes files
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().turns.is_stopped()
    }

    /// A slice no longer runs.
    pub(crate) fn leave(&self) {
        self.state.lock().turns.leave();
    }

    /// True for one caller, once nothing of it runs or will: that one releases its inputs.
    pub(crate) fn is_to_release(&self) -> bool {
        let mut state = self.state.lock();
        state.turns.is_over() && !std::mem::replace(&mut state.is_released, true)
    }

    /// How it has ended, once it has.
    pub(crate) fn end(&self) -> Option<End> {
        let state = self.state.lock();
        match state.turns.is_over() {
            false => None,
            true if state.turns.is_complete() => Some(End::Complete),
            true => Some(End::GivenUp(state.error.clone())),
        }
    }

    /// What became of the records of the installed slices, and the time that they took.
    pub(crate) fn totals(&self) -> (Counts, Duration) {
        let state = self.state.lock();
        (state.counts, state.took)
    }
}

impl Slice {
    /// The keys that it merges.
    pub(crate) fn range(&self) -> KeyRange {
        self.split.range_of(self.number)
    }

    /// It is written to its end; its parts are installed when it is their turn.
    pub(crate) fn deliver<S: RecordStream>(
        &mut self,
        engine: &Engine,
        step: &FoldStep<S>,
        took: Duration,
    ) -> Result<()> {
        let mut written = std::mem::take(&mut self.written);
        (written.counts, written.took) = (*step.counts(), took);
        written.sheltering = step.sheltering().collect();
        self.split.deliver(engine, self.number, written)
    }
}

/// Parts that are not installed are of no use.
impl Drop for Written {
    fn drop(&mut self) {
        self.parts.iter().for_each(|(part, _)| part.retire());
    }
}

/// Places to cut a merge at, at most about this many.
const MARKS_MAX: usize = 1 << 16;

/// A slice gives up to this share of a part, so that it does not often need a second one.
const PART_SHARE: f64 = 7.0 / 8.0;

/// Where to cut a merge of these runs; nowhere if it is better done by one thread.
pub(crate) fn borders_of(engine: &Engine, base: &MergeBase, inputs: &[&RunView]) -> Borders {
    let options = &engine.options;
    // A full disk needs what takes the least space.
    if options.merge_threads < 2 || engine.health.is_short() || !options.has_space_for_slices() {
        return Borders::default();
    }
    let kept = (1.0 - base.repeated).max(1.0 / 16.0);
    let slice_bytes = (options.part_bytes as f64 * PART_SHARE / kept) as u64;
    let parts = || inputs.iter().flat_map(|run| &run.parts);
    let places: usize = parts().map(|part| part.file.part.boundaries().len()).sum();
    let stride = places.div_ceil(MARKS_MAX).max(1);
    let marks = parts().flat_map(|part| marks_of(base, part, stride)).collect();
    cut(&base.table.rules.order, marks, options.slice_bytes.unwrap_or(slice_bytes))
}

/// The keys of a part at which it may be cut, from its index in memory: its first one, and every
/// so many of its boundaries.
fn marks_of<'a>(base: &MergeBase, part: &'a PartView, stride: usize) -> Vec<Mark<'a>> {
    let order = &base.table.rules.order;
    let boundaries = part.file.part.boundaries();
    let bytes_each = part.file.part.facts().file_bytes / boundaries.len().max(1) as u64;
    let is_visible = |key: &&[u8]| order.compare(key, &part.low).is_gt();
    let visible = boundaries.filter(is_visible).collect::<Vec<_>>();
    let first = Mark { key: part.low.as_slice(), bytes: 0 };
    let pieces = visible
        .chunks(stride)
        .filter_map(|piece| Some(Mark { key: piece.last()?, bytes: bytes_each * piece.len() as u64 }));
    std::iter::once(first).chain(pieces).collect()
}
