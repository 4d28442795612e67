//! What a reader holds of a memtable: its state at one moment, exact and unchanging.
//!
//! Chunks are shared; the tail is copied raw under the lock and sorted here, when a stream first asks for
//! it. A sorted copy is left with the memtable, so that the next capture of the same tail takes it from
//! there and copies only what came since.

use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, OnceLock};

use folddb_base::{Direction, Record, RecordStream, Result, Seq};
use folddb_host::sync::Mutex;
use folddb_rules::KeyOrder;

use crate::chunk::Chunk;
use crate::hash::key_hash;
use crate::kway::{Jump, KWay};
use crate::slices::{Cut, Slices};
use crate::tail::{RawTail, Tail};

/// A sorted copy of the first records of a tail.
#[derive(Clone, Debug)]
pub(crate) struct SortedTail {
    /// The tail it is a copy of.
    pub(crate) tail_id: u64,
    /// How many of its records.
    pub(crate) records: usize,
    pub(crate) chunk: Arc<Chunk>,
}

/// The newest sorted copy, shared by a memtable and its captures.
pub(crate) type SortedTailCell = Arc<Mutex<Option<SortedTail>>>;

/// A memtable as it was at one moment. Cheap to hold but for its memory: it pins chunks.
#[derive(Debug)]
pub struct Captured {
    pub(crate) order: KeyOrder,
    pub(crate) published: Seq,
    /// Oldest first.
    pub(crate) chunks: Arc<Vec<Arc<Chunk>>>,
    /// A full tail that was being sealed.
    pub(crate) sealing: Option<Arc<Tail>>,
    /// The tail, as far as it was sorted already.
    pub(crate) sorted: Option<Arc<Chunk>>,
    /// The rest of the tail. Taken by the first stream.
    pub(crate) raw: Mutex<RawTail>,
    /// Where to leave the sorted tail, when `raw` is all of it.
    pub(crate) leave: Option<(SortedTailCell, u64)>,
    /// The pieces of the tails, newest first, once they are sorted.
    pub(crate) pieces: OnceLock<Vec<Arc<Chunk>>>,
}

impl Captured {
    /// The published seq at the moment of the capture. Newer records may be in here; filter by seq.
    pub fn published(&self) -> Seq {
        self.published
    }

    /// The records from `from` on, in the total order or its mirror. Reversed, `from` is the highest key.
    /// Records of all seqs are given, also of those that are not yet published.
    pub fn stream(&self, direction: Direction, from: Bound<&[u8]>) -> MemStream {
        MemStream { merged: KWay::new(self.order.clone(), self.newest_first(), direction, from, None) }
    }

    /// The records from `from` on, in the total order, but for some that `jump` says are not needed.
    pub fn stream_jumping(&self, from: Bound<&[u8]>, jump: Jump<'_>) -> MemStream {
        let merged = KWay::new(self.order.clone(), self.newest_first(), Direction::Forward, from, Some(jump));
        MemStream { merged }
    }

    /// All records in the total order: what [`Captured::stream`] gives from the front, and cheaper where chunks are many.
    pub(crate) fn whole(&self) -> FlushStream {
        let newest_first: Vec<Arc<Chunk>> = self.newest_first().collect();
        FlushStream(match Slices::of(&self.order, &newest_first, Cut::default()) {
            Some(slices) => Whole::Slices(slices),
            None => {
                let order = self.order.clone();
                Whole::Tree(KWay::new(
                    order,
                    newest_first.into_iter(),
                    Direction::Forward,
                    Bound::Unbounded,
                    None,
                ))
            }
        })
    }

    /// Gives the records of a key with a seq up to `max_seq` to `visit`, newest first, as
    /// [`crate::Memtable::get`] does.
    pub fn get(
        &self,
        key: &[u8],
        max_seq: Seq,
        mut visit: impl FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let hash = key_hash(key);
        for chunk in self.newest_first() {
            visit_until_absorbed(chunk.find(&self.order, key, hash, max_seq), &mut visit)?;
        }
        ControlFlow::Continue(())
    }

    /// True when it holds no record.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.pieces().is_empty()
    }

    fn newest_first(&self) -> impl DoubleEndedIterator<Item = Arc<Chunk>> {
        self.pieces().iter().chain(self.chunks.iter().rev()).cloned()
    }

    fn pieces(&self) -> &[Arc<Chunk>] {
        self.pieces.get_or_init(|| self.sort_pieces())
    }

    fn sort_pieces(&self) -> Vec<Arc<Chunk>> {
        let raw = std::mem::take(&mut *self.raw.lock());
        let sealing = self.sealing.as_ref().map(|tail| {
            let mut raw = RawTail::default();
            tail.copy_from(0, &mut raw);
            raw
        });
        let sort = |raw: RawTail| Arc::new(Chunk::from_raw(&self.order, raw));
        let newest = Some(raw).filter(|raw| !raw.entries.is_empty()).map(sort);
        if let (Some((cell, tail_id)), Some(chunk)) = (&self.leave, &newest) {
            let copy = SortedTail { tail_id: *tail_id, records: chunk.len(), chunk: Arc::clone(chunk) };
            leave_newest(&mut cell.lock(), copy);
        }
        newest.into_iter().chain(self.sorted.clone()).chain(sealing.map(sort)).collect()
    }
}

/// Keeps the copy that covers more.
fn leave_newest(cell: &mut Option<SortedTail>, copy: SortedTail) {
    let age = |copy: &SortedTail| (copy.tail_id, copy.records);
    if cell.as_ref().is_none_or(|held| age(held) < age(&copy)) {
        *cell = Some(copy);
    }
}

/// Visits records of one key, newest first, up to and with the first that absorbs. `Break` when nothing
/// older is wanted.
#[inline]
pub(crate) fn visit_until_absorbed<'a>(
    records: impl Iterator<Item = Record<'a>>,
    visit: &mut impl FnMut(Record<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    for record in records {
        visit(record)?;
        if record.kind.absorbs() {
            return ControlFlow::Break(());
        }
    }
    ControlFlow::Continue(())
}

/// The records of a captured memtable; see [`Captured::stream`]. It needs nothing else to stay alive.
pub struct MemStream {
    merged: KWay,
}

impl RecordStream for MemStream {
    #[inline]
    fn record(&self) -> Option<Record<'_>> {
        self.merged.record()
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.merged.advance()
    }
}

/// All records of a memtable; see [`crate::Memtable::stream`]. It needs nothing else to stay alive.
pub struct FlushStream(Whole);

enum Whole {
    Slices(Slices),
    Tree(KWay),
}

impl RecordStream for FlushStream {
    #[inline]
    fn record(&self) -> Option<Record<'_>> {
        match &self.0 {
            Whole::Slices(slices) => slices.record(),
            Whole::Tree(tree) => tree.record(),
        }
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        match &mut self.0 {
            Whole::Slices(slices) => slices.advance(),
            Whole::Tree(tree) => tree.advance(),
        }
    }
}
