//! Scans spread over threads: the range is cut where pieces of parts begin, and each thread takes the next piece.
//!
//! All pieces see the same snapshot. What is gathered of each is joined in the order of the keys, so the outcome does not depend
//! on who was faster.

use std::ops::{Bound, ControlFlow};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use folddb_base::stream::Direction;
use folddb_base::{Error, Result};
use folddb_host::sync::{Mutex, thread};
use folddb_rules::KeyOrder;
use folddb_rules::codec::{Key, Value};

use crate::scans::{BytesScan, LentRows, Scan, wrong_row};
use crate::snapshot::Snapshot;
use folddb_engine::read::pinned;
use folddb_engine::read::scan::ScanPlan;
use folddb_engine::state::snapshots::HeldFor;
use folddb_engine::values::head::Head;

/// So many pieces for each thread: one that meets dear keys does not keep the others waiting.
const PIECES_PER_THREAD: usize = 4;

/// So many keys are looked at for each piece, to cut about evenly.
const BOUNDARIES_PER_PIECE: usize = 32;

impl BytesScan {
    /// Cuts the scan into at most `pieces` scans of about as many bytes, which follow one another and see the same snapshot. They are
    /// cut where leaves of parts begin, so a table that is in memory only stays whole. A limit stays that of each piece.
    ///
    /// # Errors
    /// As [`BytesScan::rows`].
    pub fn split(self, pieces: usize) -> Result<Vec<BytesScan>> {
        let (scan, pieces) = (self.pinned()?, pieces.max(1));
        let cuts = cuts(boundaries(&scan, pieces)?, pieces);
        let mut lows = vec![scan.plan.low.clone()];
        lows.extend(cuts.iter().map(|key| Bound::Included(key.clone())));
        let mut highs: Vec<_> = cuts.into_iter().map(Bound::Excluded).collect();
        highs.push(scan.plan.high.clone());
        let piece =
            |(low, high)| BytesScan { plan: ScanPlan { low, high, ..scan.plan.clone() }, ..scan.clone() };
        let mut split: Vec<BytesScan> = lows.into_iter().zip(highs).map(piece).collect();
        if scan.plan.direction == Direction::Reversed {
            split.reverse();
        }
        Ok(split)
    }

    /// Folds all rows of the scan on `threads` threads: each piece of the range begins with `start`, takes its rows by `step`, and
    /// what the pieces come to is joined, in the order of the scan, by `join`. A `step` that breaks ends the work: what was
    /// gathered until then is joined. With [`BytesScan::keys_only`] the values that `step` sees are empty, and none that is separated is
    /// read.
    ///
    /// # Errors
    /// As [`BytesScan::rows`], of the first piece that fails; a fold that fails on a key is one. A scan with a limit is refused.
    ///
    /// # Panics
    /// Where `start`, `step` or `join` does.
    pub fn fold_rows<A: Send>(
        self,
        threads: usize,
        start: impl Fn() -> A + Sync,
        step: impl Fn(&mut A, &[u8], &[u8]) -> ControlFlow<()> + Sync,
        join: impl FnMut(A, A) -> A,
    ) -> Result<A> {
        let piece = |rows: &mut LentRows, sum: &mut A| {
            Ok(rows.next_row()?.map_or(ControlFlow::Break(None), |(key, value)| told(step(sum, key, value))))
        };
        self.spread(threads, &start, &piece, join)
    }

    /// The same with the heads of the values instead of these: no separated value is read, but for what [`Head`] says.
    ///
    /// # Errors
    /// As [`BytesScan::fold_rows`].
    ///
    /// # Panics
    /// Where `start`, `step` or `join` does.
    pub fn fold_heads<A: Send>(
        self,
        threads: usize,
        start: impl Fn() -> A + Sync,
        step: impl Fn(&mut A, &[u8], &Head) -> ControlFlow<()> + Sync,
        join: impl FnMut(A, A) -> A,
    ) -> Result<A> {
        let piece = |rows: &mut LentRows, sum: &mut A| {
            Ok(rows.next_head()?.map_or(ControlFlow::Break(None), |(key, head)| told(step(sum, key, &head))))
        };
        self.with_heads().spread(threads, &start, &piece, join)
    }

    pub(crate) fn spread<A: Send>(
        self,
        threads: usize,
        start: &(impl Fn() -> A + Sync),
        step: &(impl Fn(&mut LentRows, &mut A) -> Result<Step> + Sync),
        join: impl FnMut(A, A) -> A,
    ) -> Result<A> {
        if self.limit != usize::MAX {
            return Err(Error::invalid("a scan with a limit cannot be folded in pieces"));
        }
        let pieces = self.split(pieces_for(threads))?;
        fold_pieces(
            &pieces,
            threads,
            start,
            &|piece, start, is_over| fold_piece(piece, start, step, is_over),
            join,
        )
    }
}

/// Into how many pieces work is cut for so many threads.
pub(crate) fn pieces_for(threads: usize) -> usize {
    threads.max(1) * PIECES_PER_THREAD
}

/// Folds each piece on one of `threads` threads, and joins what they come to in the order of the pieces. `fold` is told by a flag
/// that all work is over, and tells it so.
pub(crate) fn fold_pieces<P: Sync, A: Send>(
    pieces: &[P],
    threads: usize,
    start: &(impl Fn() -> A + Sync),
    fold: &(impl Fn(&P, A, &AtomicBool) -> Result<A> + Sync),
    mut join: impl FnMut(A, A) -> A,
) -> Result<A> {
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let gathered: Vec<Mutex<Option<Result<A>>>> = pieces.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while !is_over.load(Relaxed) {
            let number = next.fetch_add(1, Relaxed);
            let Some(piece) = pieces.get(number) else { return };
            let folded = fold(piece, start(), &is_over);
            is_over.fetch_or(folded.is_err(), Relaxed);
            *gathered[number].lock() = Some(folded);
        }
    };
    thread::scope(|scope| {
        (1..threads.max(1).min(pieces.len())).for_each(|_| {
            scope.spawn(work);
        });
        work();
    });
    let mut all = gathered.iter().filter_map(|piece| piece.lock().take());
    let first = all.next().unwrap_or_else(|| Ok(start()))?;
    all.try_fold(first, |sum, piece| Ok(join(sum, piece?)))
}

impl<K: Key, V: Value> Scan<K, V> {
    /// Folds all rows of the scan on `threads` threads, as [`BytesScan::fold_rows`] does.
    ///
    /// # Errors
    /// As [`BytesScan::fold_rows`]; a row that is not of the type of its table.
    ///
    /// # Panics
    /// Where `start`, `step` or `join` does.
    pub fn fold_rows<A: Send>(
        self,
        threads: usize,
        start: impl Fn() -> A + Sync,
        step: impl Fn(&mut A, K, V) -> ControlFlow<()> + Sync,
        join: impl FnMut(A, A) -> A,
    ) -> Result<A> {
        let table = self.bytes.table.name.clone();
        let wrong = |cause| wrong_row(&table, &cause);
        let piece = |rows: &mut LentRows, sum: &mut A| {
            let Some((key, value)) = rows.next_row()? else { return Ok(ControlFlow::Break(None)) };
            Ok(told(step(sum, K::decode(key).map_err(wrong)?, V::decode(value).map_err(wrong)?)))
        };
        self.bytes.spread(threads, &start, &piece, join)
    }

    /// The same of the keys alone: no separated value is read.
    ///
    /// # Errors
    /// As [`Scan::fold_rows`].
    ///
    /// # Panics
    /// Where `start`, `step` or `join` does.
    pub fn fold_keys<A: Send>(
        self,
        threads: usize,
        start: impl Fn() -> A + Sync,
        step: impl Fn(&mut A, K) -> ControlFlow<()> + Sync,
        join: impl FnMut(A, A) -> A,
    ) -> Result<A> {
        let table = self.bytes.table.name.clone();
        let wrong = |cause| wrong_row(&table, &cause);
        let piece = |rows: &mut LentRows, sum: &mut A| {
            let Some((key, _)) = rows.next_row()? else { return Ok(ControlFlow::Break(None)) };
            Ok(told(step(sum, K::decode(key).map_err(wrong)?)))
        };
        self.bytes.keys_only().spread(threads, &start, &piece, join)
    }

    /// The same of keys and the heads of their values: no separated value is read.
    ///
    /// # Errors
    /// As [`Scan::fold_rows`].
    ///
    /// # Panics
    /// Where `start`, `step` or `join` does.
    pub fn fold_heads<A: Send>(
        self,
        threads: usize,
        start: impl Fn() -> A + Sync,
        step: impl Fn(&mut A, K, &Head) -> ControlFlow<()> + Sync,
        join: impl FnMut(A, A) -> A,
    ) -> Result<A> {
        let table = self.bytes.table.name.clone();
        let wrong = |cause| wrong_row(&table, &cause);
        let piece = |rows: &mut LentRows, sum: &mut A| {
            let Some((key, head)) = rows.next_head()? else { return Ok(ControlFlow::Break(None)) };
            Ok(told(step(sum, K::decode(key).map_err(wrong)?, &head)))
        };
        self.bytes.with_heads().spread(threads, &start, &piece, join)
    }
}

/// What a step says: go on; or that the piece is at its end (none), or that all work is over.
pub(crate) type Step = ControlFlow<Option<Over>>;

/// Nothing more is wanted of any piece.
pub(crate) struct Over;

/// The step took a row, and there may be more.
pub(crate) const GO_ON: Step = ControlFlow::Continue(());

/// The piece has no more rows.
pub(crate) const END: Step = ControlFlow::Break(None);

fn told(flow: ControlFlow<()>) -> Step {
    match flow {
        ControlFlow::Continue(()) => ControlFlow::Continue(()),
        ControlFlow::Break(()) => ControlFlow::Break(Some(Over)),
    }
}

/// Folds one piece; ends early where another has ended the work.
fn fold_piece<A>(
    piece: &BytesScan,
    start: A,
    step: &impl Fn(&mut LentRows, &mut A) -> Result<Step>,
    is_over: &AtomicBool,
) -> Result<A> {
    let mut gathered = start;
    let mut rows = piece.clone().rows()?;
    while !is_over.load(Relaxed) {
        piece.stop.check()?;
        if let ControlFlow::Break(over) = step(&mut rows, &mut gathered)? {
            is_over.fetch_or(over.is_some(), Relaxed);
            break;
        }
    }
    Ok(gathered)
}

impl BytesScan {
    /// The same scan, with a snapshot if it has none yet.
    pub(crate) fn pinned(mut self) -> Result<BytesScan> {
        if let Some(mistake) = self.mistake.take() {
            return Err(mistake);
        }
        if self.plan.at.is_none() {
            let held = Snapshot::take(&self.engine, HeldFor::Work).into_held();
            self.plan.at = Some(held.at);
            self.held = Some(held);
        }
        Ok(self)
    }
}

/// Keys inside the range between which about the same number of bytes lies, in order: enough of them for so many pieces.
fn boundaries(scan: &BytesScan, pieces: usize) -> Result<Vec<Vec<u8>>> {
    let order = &scan.table.rules.order;
    let view = pinned::view_at(&scan.engine, &scan.table, scan.plan.at)?;
    let parts = || view.runs.iter().flat_map(|run| &run.parts);
    let all: usize = parts().map(|part| part.file.part.boundaries().len()).sum();
    let step = (all / (pieces * BOUNDARIES_PER_PIECE)).max(1);
    let keys = parts().flat_map(|part| part.file.part.boundaries()).step_by(step);
    let within = keys.filter(|key| is_within(order, key, &scan.plan));
    let mut boundaries: Vec<Vec<u8>> = within.map(<[u8]>::to_vec).collect();
    boundaries.sort_by(|a, b| order.compare(a, b));
    boundaries.dedup();
    Ok(boundaries)
}

/// Whether a cut before `key` leaves something of the range on both sides.
fn is_within(order: &KeyOrder, key: &[u8], plan: &ScanPlan) -> bool {
    let behind_low = match &plan.low {
        Bound::Unbounded => true,
        Bound::Included(low) | Bound::Excluded(low) => order.compare(key, low).is_gt(),
    };
    let before_high = match &plan.high {
        Bound::Unbounded => true,
        Bound::Included(high) => order.compare(key, high).is_le(),
        Bound::Excluded(high) => order.compare(key, high).is_lt(),
    };
    behind_low && before_high
}

/// As many of the keys as make so many pieces with about as many keys in each.
fn cuts(boundaries: Vec<Vec<u8>>, pieces: usize) -> Vec<Vec<u8>> {
    let all = boundaries.len() + 1;
    let is_cut = |at: usize| at * pieces / all > (at - 1) * pieces / all;
    boundaries.into_iter().enumerate().filter(|(before, _)| is_cut(before + 1)).map(|(_, key)| key).collect()
}

#[cfg(test)]
mod tests;
