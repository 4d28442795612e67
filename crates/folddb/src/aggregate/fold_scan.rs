//! Folds over scans on several threads (`parallel.rs`): the range is divided where pieces of parts
//! begin.
//!
//! All pieces see the same snapshot, and are joined in the order of the keys.

use std::ops::{Bound, ControlFlow};

use folddb_base::Result;
use folddb_base::stream::Direction;
use folddb_rules::KeyOrder;
use folddb_rules::codec::{Key, Value};

use crate::aggregate::parallel::{END, Step, fold_pieces, pieces_for, step_of};
use crate::scan::bytes::{BytesScan, LentRows};
use crate::scan::typed::{Scan, wrong_row};
use crate::snapshot::Snapshot;
use folddb_engine::read::pinned;
use folddb_engine::read::scan::ScanPlan;
use folddb_engine::state::snapshots::HeldFor;
use folddb_engine::values::head::Head;

/// How many keys are examined for each piece, to divide about evenly.
const BOUNDARIES_PER_PIECE: usize = 32;

impl BytesScan {
    /// Divides the scan into at most `pieces` consecutive scans of about as many bytes each, with
    /// the same snapshot. They are divided where leaves of parts begin, so a table that is only in
    /// memory is not divided. A limit applies to each piece.
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

    /// Folds all rows of the scan on `threads` threads: each piece of the range begins with
    /// `start`, takes its rows by `step`, and the results are joined, in the order of the scan, by
    /// `join`. A `step` that breaks ends the work: the results until then are joined. With
    /// [`BytesScan::keys_only`] the values that `step` sees are empty, and none that is separated
    /// is read.
    ///
    /// # Errors
    /// As [`BytesScan::rows`], of the first piece that fails, also by a fold that fails on a key. A
    /// scan with a limit is refused.
    ///
    /// # Panics
    /// If `start`, `step` or `join` does.
    pub fn fold_rows<A: Send>(
        self,
        threads: usize,
        start: impl Fn() -> A + Sync,
        step: impl Fn(&mut A, &[u8], &[u8]) -> ControlFlow<()> + Sync,
        join: impl FnMut(A, A) -> A,
    ) -> Result<A> {
        let piece = |rows: &mut LentRows, sum: &mut A| {
            Ok(rows.next_row()?.map_or(END, |(key, value)| step_of(step(sum, key, value))))
        };
        self.fold_parallel(threads, &start, &piece, join)
    }

    /// The same with the heads of the values instead of these: no separated value is read, except
    /// as [`Head`] says.
    ///
    /// # Errors
    /// As [`BytesScan::fold_rows`].
    ///
    /// # Panics
    /// If `start`, `step` or `join` does.
    pub fn fold_heads<A: Send>(
        self,
        threads: usize,
        start: impl Fn() -> A + Sync,
        step: impl Fn(&mut A, &[u8], &Head) -> ControlFlow<()> + Sync,
        join: impl FnMut(A, A) -> A,
    ) -> Result<A> {
        let piece = |rows: &mut LentRows, sum: &mut A| {
            Ok(rows.next_head()?.map_or(END, |(key, head)| step_of(step(sum, key, &head))))
        };
        self.with_heads().fold_parallel(threads, &start, &piece, join)
    }

    /// Folds the scan in pieces.
    pub(crate) fn fold_parallel<A: Send>(
        self,
        threads: usize,
        start: &(impl Fn() -> A + Sync),
        step: &(impl Fn(&mut LentRows, &mut A) -> Result<Step> + Sync),
        join: impl FnMut(A, A) -> A,
    ) -> Result<A> {
        let stop = self.stop.clone();
        let count = pieces_for(threads, "scan", self.limit)?;
        let step = |rows: &mut LentRows, sum: &mut A| stop.check().and_then(|()| step(rows, sum));
        fold_pieces(
            &self.split(count)?,
            threads,
            start,
            &|piece: &BytesScan| piece.clone().rows(),
            &step,
            join,
        )
    }
}

impl<K: Key, V: Value> Scan<K, V> {
    /// Folds all rows of the scan on `threads` threads, as [`BytesScan::fold_rows`] does.
    ///
    /// # Errors
    /// As [`BytesScan::fold_rows`]; a row that is not of the type of its table.
    ///
    /// # Panics
    /// If `start`, `step` or `join` does.
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
            let Some((key, value)) = rows.next_row()? else { return Ok(END) };
            Ok(step_of(step(sum, K::decode(key).map_err(wrong)?, V::decode(value).map_err(wrong)?)))
        };
        self.bytes.fold_parallel(threads, &start, &piece, join)
    }

    /// The same for the keys alone: no separated value is read.
    ///
    /// # Errors
    /// As [`Scan::fold_rows`].
    ///
    /// # Panics
    /// If `start`, `step` or `join` does.
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
            let Some((key, _)) = rows.next_row()? else { return Ok(END) };
            Ok(step_of(step(sum, K::decode(key).map_err(wrong)?)))
        };
        self.bytes.keys_only().fold_parallel(threads, &start, &piece, join)
    }

    /// The same for keys and the heads of their values: no separated value is read.
    ///
    /// # Errors
    /// As [`Scan::fold_rows`].
    ///
    /// # Panics
    /// If `start`, `step` or `join` does.
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
            let Some((key, head)) = rows.next_head()? else { return Ok(END) };
            Ok(step_of(step(sum, K::decode(key).map_err(wrong)?, &head)))
        };
        self.bytes.with_heads().fold_parallel(threads, &start, &piece, join)
    }
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

/// Keys inside the range with about the same number of bytes between them, in order: enough for
/// this many pieces.
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

/// Selects the keys that make this many pieces, with about as many keys in each.
fn cuts(boundaries: Vec<Vec<u8>>, pieces: usize) -> Vec<Vec<u8>> {
    let all = boundaries.len() + 1;
    let is_cut = |at: usize| at * pieces / all > (at - 1) * pieces / all;
    boundaries.into_iter().enumerate().filter(|(before, _)| is_cut(before + 1)).map(|(_, key)| key).collect()
}

#[cfg(test)]
mod tests;
