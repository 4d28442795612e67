//! Folds over the hits of an index on several threads (`parallel.rs`): the range of its entries is
//! divided.
//!
//! All pieces see the same snapshot, and are joined in the order of the terms.

use std::ops::ControlFlow;
use std::sync::Arc;

use folddb_base::Result;
use folddb_base::stream::Direction;
use folddb_rules::codec::{Key, Value};

use crate::aggregate::parallel::{END, fold_pieces, pieces_for, step_of};
use crate::index::find::BytesFind;
use crate::index::hits::{Hit, Hits};
use crate::index::typed_find::{Find, decoded_key};
use crate::scan::bytes::BytesScan;
use crate::snapshot::Snapshot;
use folddb_engine::read::scan::{ScanPlan, Wanted};
use folddb_engine::state::snapshots::HeldFor;

impl BytesFind {
    /// Divides the query into at most `pieces` consecutive finds over about as many entries each,
    /// with the same snapshot. An index that is only in memory is not divided. A limit applies to
    /// each piece.
    ///
    /// # Errors
    /// As the iterators'.
    pub fn split(mut self, pieces: usize) -> Result<Vec<BytesFind>> {
        if let Some(mistake) = self.mistake.take() {
            return Err(mistake);
        }
        let engine = self.table.engine().clone();
        let (held, is_past) =
            self.seen.take().unwrap_or_else(|| (Snapshot::take(&engine, HeldFor::Work).into_held(), false));
        self.seen = Some((Arc::clone(&held), is_past));
        self.own = self.settle_own(held.at)?;
        let mut ranges = self.ranges.clone();
        if self.direction == Direction::Reversed {
            ranges.reverse();
        }
        if ranges.is_empty() || pieces < ranges.len() {
            return Ok(vec![self]);
        }
        let mut finds = Vec::new();
        for (low, high) in &ranges {
            let plan = ScanPlan {
                low: low.clone(),
                high: high.clone(),
                direction: self.direction,
                wanted: Wanted::Nothing,
                ..ScanPlan::everything((!is_past).then_some(held.at))
            };
            let entries = BytesScan::new(&engine, &self.index.table, plan).split(pieces / ranges.len())?;
            let piece =
                |scan: BytesScan| BytesFind { ranges: vec![(scan.plan.low, scan.plan.high)], ..self.clone() };
            finds.extend(entries.into_iter().map(piece));
        }
        Ok(finds)
    }

    /// Folds all hits on `threads` threads: each piece of the range of terms begins with `start`,
    /// takes its hits by `step`, and the results are joined, in the order of the terms, by `join`.
    /// A `step` that breaks ends the work: the results until then are joined. The values that
    /// `step` sees are empty unless it is `with_values`.
    ///
    /// # Errors
    /// As the iterators', of the first piece that fails; a find with a limit is refused.
    ///
    /// # Panics
    /// If `start`, `step` or `join` does.
    pub fn fold_hits<A: Send>(
        self,
        threads: usize,
        with_values: bool,
        start: impl Fn() -> A + Sync,
        step: impl Fn(&mut A, Hit) -> ControlFlow<()> + Sync,
        join: impl FnMut(A, A) -> A,
    ) -> Result<A> {
        self.fold_parallel(
            threads,
            &start,
            &|find| find.hits(with_values),
            &|sum, hit| Ok(step(sum, hit)),
            join,
        )
    }

    /// The same with the heads of the values ([`Hit::head`]) instead of the values: no separated
    /// value is read if heads or keys have the terms.
    ///
    /// # Errors
    /// As [`BytesFind::fold_hits`].
    ///
    /// # Panics
    /// If `start`, `step` or `join` does.
    pub fn fold_heads<A: Send>(
        self,
        threads: usize,
        start: impl Fn() -> A + Sync,
        step: impl Fn(&mut A, Hit) -> ControlFlow<()> + Sync,
        join: impl FnMut(A, A) -> A,
    ) -> Result<A> {
        self.fold_parallel(threads, &start, &BytesFind::hits_with_heads, &|sum, hit| Ok(step(sum, hit)), join)
    }

    /// Folds the find in pieces.
    fn fold_parallel<A: Send>(
        self,
        threads: usize,
        start: &(impl Fn() -> A + Sync),
        hits: &(impl Fn(BytesFind) -> Hits + Sync),
        step: &(impl Fn(&mut A, Hit) -> Result<ControlFlow<()>> + Sync),
        join: impl FnMut(A, A) -> A,
    ) -> Result<A> {
        let count = pieces_for(threads, "find", self.limit)?;
        let step = |hits: &mut Hits, sum: &mut A| match hits.next() {
            Some(hit) => Ok(step_of(step(sum, hit?)?)),
            None => Ok(END),
        };
        let open = |piece: &BytesFind| Ok(hits(piece.clone()));
        fold_pieces(&self.split(count)?, threads, start, &open, &step, join)
    }
}

impl<K: Key, V: Value> Find<K, V> {
    /// Folds keys and values of all hits on `threads` threads, as [`BytesFind::fold_hits`] does.
    ///
    /// # Errors
    /// As [`BytesFind::fold_hits`]; a record that is not of the type of its table.
    ///
    /// # Panics
    /// If `start`, `step` or `join` does.
    pub fn fold_values<A: Send>(
        self,
        threads: usize,
        start: impl Fn() -> A + Sync,
        step: impl Fn(&mut A, K, V) -> ControlFlow<()> + Sync,
        join: impl FnMut(A, A) -> A,
    ) -> Result<A> {
        let table = self.bytes.table.clone();
        let typed = |sum: &mut A, hit: Hit| {
            let value = V::decode(&hit.value).map_err(|cause| table.undecodable(&hit.key, &cause))?;
            Ok(step(sum, decoded_key(&table, &hit.key)?, value))
        };
        self.bytes.fold_parallel(threads, &start, &|find| find.hits(true), &typed, join)
    }

    /// The same for the keys alone.
    ///
    /// # Errors
    /// As [`Find::fold_values`].
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
        let table = self.bytes.table.clone();
        let typed = |sum: &mut A, hit: Hit| Ok(step(sum, decoded_key(&table, &hit.key)?));
        self.bytes.fold_parallel(threads, &start, &|find| find.hits(false), &typed, join)
    }
}
