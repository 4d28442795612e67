//! The state of a memtable at one moment, which a reader holds. It never changes.
//!
//! Chunks are shared, and so is the tail, up to its length at that moment. The tail is copied and
//! sorted when a stream first needs it. The sorted copy stays with the memtable, so that the next
//! capture of the same tail uses it and sorts only the records that came since. The first stream
//! over a tail sorts only the records that it returns first (see front.rs).

use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, OnceLock};

use folddb_base::{Direction, Record, RecordStream, Result, Seq};
use folddb_host::sync::Mutex;
use folddb_rules::KeyOrder;

use crate::chunk::Chunk;
use crate::front::front_of;
use crate::hash::key_hash;
use crate::kway::{Jump, KWay};
use crate::slices::{Cut, Slices};
use crate::tail::{RawTail, TAILS_SEQS_MAX, Tail};

/// A sorted copy of the first records of a tail.
#[derive(Clone, Debug)]
pub(crate) struct SortedTail {
    /// The tail it is a copy of.
    pub(crate) tail_id: u64,
    /// How many of its records are in the copy.
    pub(crate) records: usize,
    pub(crate) chunk: Arc<Chunk>,
}

/// What captures of a memtable share.
#[derive(Debug, Default)]
pub(crate) struct SortedTails {
    /// The newest sorted copy.
    pub(crate) copy: Option<SortedTail>,
    /// The last tail that a stream has begun to read.
    asked: Option<u64>,
}

impl SortedTails {
    /// True for the first stream over this tail.
    fn first_asked(&mut self, tail_id: u64) -> bool {
        let has_copy = self.copy.as_ref().is_some_and(|copy| copy.tail_id == tail_id);
        self.asked.replace(tail_id) != Some(tail_id) && !has_copy
    }
}

/// See [`SortedTails`].
pub(crate) type SortedTailCell = Arc<Mutex<SortedTails>>;

/// A memtable as it was at one moment. Cheap to hold except for its memory: it pins chunks.
#[derive(Debug)]
pub struct Captured {
    order: KeyOrder,
    published: Seq,
    /// Oldest first.
    chunks: Arc<Vec<Arc<Chunk>>>,
    has_tail: bool,
    /// The tail, until the first stream that sorts it takes it.
    tail: Mutex<Option<TailSeen>>,
    sorted_tail: SortedTailCell,
    /// The pieces of the tail, newest first, once they are sorted.
    pieces: OnceLock<Vec<Arc<Chunk>>>,
}

/// The tail, up to the length that a reader sees, after the full one where there is one: all
/// records that are not sorted, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct TailSeen {
    full: Option<Arc<Tail>>,
    tail: Arc<Tail>,
    /// Which tails of the memtable these are.
    pub(crate) id: u64,
    pub(crate) records: usize,
}

impl TailSeen {
    /// As much of these as is shown.
    pub(crate) fn of(full: Option<Arc<Tail>>, tail: Arc<Tail>, id: u64) -> TailSeen {
        let (mut of_full, mut of_tail) = (0, tail.len());
        if let Some(full) = &full {
            // What lies further ahead came after the full tail was sealed, and after this moment.
            of_tail = tail.count_up_to(full.base_seq().saturating_add(TAILS_SEQS_MAX), of_tail);
            of_full = full.len();
        }
        TailSeen { full, tail, id, records: of_full + of_tail }
    }

    /// Copies the records from the one of this number on.
    fn copy_from(&self, from: usize) -> RawTail {
        let Some(full) = &self.full else { return self.tail.copy_of(from..self.records) };
        let of_full = full.len();
        if from >= of_full {
            return self.tail.copy_of(from - of_full..self.records - of_full);
        }
        let mut raw = full.copy_of(from..of_full);
        raw.append(self.tail.copy_of(0..self.records - of_full));
        raw
    }
}

/// A tail of at most this many records is sorted as a whole.
const WHOLE_RECORDS_MAX: usize = 512;

/// Captures use a sorted copy of the tail until it lacks more than this many records.
const SORTED_TAIL_LAG_MAX: usize = 256;

impl Captured {
    pub(crate) fn new(
        order: KeyOrder,
        published: Seq,
        chunks: Arc<Vec<Arc<Chunk>>>,
        tail: TailSeen,
        sorted_tail: SortedTailCell,
    ) -> Captured {
        let has_tail = tail.records > 0;
        let (tail, pieces) = (Mutex::new(Some(tail).filter(|_| has_tail)), OnceLock::new());
        Captured { order, published, chunks, has_tail, tail, sorted_tail, pieces }
    }

    /// The published seq at the moment of the capture. It may also have newer records: the caller
    /// filters by seq.
    pub fn published(&self) -> Seq {
        self.published
    }

    /// The records from `from` on, in the total order or in its mirror; reversed, `from` is the
    /// highest key. The stream has records of all seqs, including those that are not yet published.
    pub fn stream(&self, direction: Direction, from: Bound<&[u8]>) -> MemStream {
        let by_front = (direction == Direction::Forward).then(|| self.by_front(from)).flatten();
        let whole = || KWay::new(self.order.clone(), self.newest_first(), direction, from, None);
        MemStream { merged: by_front.unwrap_or_else(whole) }
    }

    /// The records from `from` on, in the total order. It may leave out records that `jump` says
    /// are not needed.
    pub fn stream_jumping(&self, from: Bound<&[u8]>, jump: Jump<'_>) -> MemStream {
        let merged = KWay::new(self.order.clone(), self.newest_first(), Direction::Forward, from, Some(jump));
        MemStream { merged }
    }

    /// All records in the total order: the same as [`Captured::stream`] from the front, and cheaper
    /// with many chunks.
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

    /// Passes the records of a key with a seq up to `max_seq` to `visit`, newest first, as
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
        self.chunks.is_empty() && !self.has_tail
    }

    /// How many records the first stream has to sort.
    #[cfg(test)]
    pub(crate) fn to_sort(&self) -> usize {
        let Some(seen) = &*self.tail.lock() else { return 0 };
        seen.records - self.sorted_of(seen).map_or(0, |sorted| sorted.records)
    }

    /// The stream from `from` on by the front of the tail; none unless the tail is long and no
    /// stream has read it before.
    fn by_front(&self, from: Bound<&[u8]>) -> Option<KWay> {
        let seen = self.tail.lock().clone().filter(|seen| seen.records > WHOLE_RECORDS_MAX)?;
        let is_first = self.sorted_tail.try_lock()?.first_asked(seen.id);
        if !is_first {
            return None;
        }
        let raw = seen.copy_from(0);
        let older = self.chunks.iter().rev().cloned();
        Some(match front_of(&self.order, raw, from) {
            Some((front, Some(rest))) => KWay::with_rest(self.order.clone(), (front, rest), older, from),
            Some((front, None)) => {
                let newest_first = [Arc::new(front)].into_iter().chain(older);
                KWay::new(self.order.clone(), newest_first, Direction::Forward, from, None)
            }
            None => KWay::new(self.order.clone(), older, Direction::Forward, from, None),
        })
    }

    fn newest_first(&self) -> impl DoubleEndedIterator<Item = Arc<Chunk>> {
        self.pieces().iter().chain(self.chunks.iter().rev()).cloned()
    }

    fn pieces(&self) -> &[Arc<Chunk>] {
        self.pieces.get_or_init(|| self.sort_pieces())
    }

    fn sort_pieces(&self) -> Vec<Arc<Chunk>> {
        let Some(seen) = self.tail.lock().take() else { return Vec::new() };
        let sorted = self.sorted_of(&seen);
        let from = sorted.as_ref().map_or(0, |sorted| sorted.records);
        let raw = seen.copy_from(from);
        let newest = (!raw.entries.is_empty()).then(|| Arc::new(Chunk::from_raw(&self.order, raw)));
        if let (None, Some(chunk), Some(mut cell)) = (&sorted, &newest, self.sorted_tail.try_lock()) {
            let copy = SortedTail { tail_id: seen.id, records: seen.records, chunk: Arc::clone(chunk) };
            leave_newest(&mut cell.copy, copy);
        }
        newest.into_iter().chain(sorted.map(|sorted| sorted.chunk)).collect()
    }

    /// A sorted copy of the beginning of the tail, if there is one that is not too far behind.
    fn sorted_of(&self, seen: &TailSeen) -> Option<SortedTail> {
        let cell = self.sorted_tail.try_lock()?; // else sorting is faster than waiting
        let held = cell.copy.as_ref().filter(|held| held.tail_id == seen.id)?;
        let lag = seen.records.checked_sub(held.records)?;
        (lag <= SORTED_TAIL_LAG_MAX).then(|| held.clone())
    }
}

/// Keeps the copy that has more records.
fn leave_newest(cell: &mut Option<SortedTail>, copy: SortedTail) {
    let age = |copy: &SortedTail| (copy.tail_id, copy.records);
    if cell.as_ref().is_none_or(|held| age(held) < age(&copy)) {
        *cell = Some(copy);
    }
}

/// Visits records of one key, newest first, up to and including the first that absorbs. `Break`
/// when nothing older is wanted.
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

/// The records of a captured memtable; see [`Captured::stream`]. It keeps alive all that it needs.
pub struct MemStream {
    merged: KWay,
}

impl MemStream {
    /// How many leading bytes all its keys share, and a key that begins with these; none if it has
    /// no records.
    pub fn shared_prefix(&self) -> Option<(usize, &[u8])> {
        self.merged.shared_prefix()
    }
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

/// All records of a memtable; see [`crate::Memtable::stream`]. It keeps alive all that it needs.
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
