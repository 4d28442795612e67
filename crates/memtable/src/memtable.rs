//! The memtable itself: a tail, chunks, and who may touch what when.
//!
//! 1. One applier at a time appends, seals and freezes (the store's commit lock sees to that), through a
//!    [`Writer`], which holds the lock `state` for writing, and lets readers in between two records.
//! 2. Readers take `state` for reading, for as long as it takes to look into the tail or copy it. What they
//!    take away (chunks, a full tail) never changes.
//! 3. A full tail moves to `sealing`, where readers still see it, and is sorted and folded *without* the
//!    lock; then a chunk takes its place under the lock. User code never runs under a lock that readers
//!    want.
//! 4. [`Memtable::merge_step`] is serialised by the lock `merging`. Chunks are only ever added at the new
//!    end by others, so the indexes of a plan stay valid while it is carried out.
//!
//! **Folding and readers.** A fold keeps only the newest seq of what it folded, so it must not cross a seq
//! that anybody reads at. Those are the live snapshots and the published seq: the caller passes them as
//! *boundaries*, ascending, the published seq last. A reader without a snapshot loads the published seq inside
//! of the lock, together with the list of chunks, so no later fold can reach what it holds.

use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, OnceLock};

use folddb_base::{Direction, Record, Seq};
use folddb_host::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use folddb_host::sync::{Mutex, RwLockWriteGuard};
use folddb_rules::{FoldRules, KeyOrder};

use crate::capture::{Captured, FlushStream, SortedTailCell, visit_until_absorbed};
use crate::chunk::{Chunk, LANES, counts_before};
use crate::fold_stack::Incoming;
use crate::gate::Gate;
use crate::hash::key_hash;
use crate::kway::KWay;
use crate::merge_plan::{ChunkFacts, MergePlan, plan_merge};
use crate::seal::{SealScratch, Sealer, seal_tail};
use crate::tail::{Copied, RawTail, Tail, TailLimits};

/// Bounds of a memtable. Those of its whole size are the caller's: see [`Memtable::bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemtableLimits {
    /// When a tail is full.
    pub tail: TailLimits,
    /// How many chunks of one generation are merged into one of the next. Default 8.
    pub merge_factor: usize,
    /// Whether all records stay as they are, so that the past can be read. Default false.
    pub keeps_all: bool,
}

impl Default for MemtableLimits {
    fn default() -> MemtableLimits {
        MemtableLimits { tail: TailLimits::default(), merge_factor: 8, keeps_all: false }
    }
}

/// A sorted copy of the tail serves captures until so many records have come since.
const SORTED_TAIL_LAG_MAX: usize = 256;

/// A table's newest records. See the module for who may do what when.
#[derive(Debug)]
pub struct Memtable {
    order: KeyOrder,
    rules: Arc<FoldRules>,
    limits: MemtableLimits,
    state: Gate<State>,
    merging: Mutex<()>,
    scratch: Mutex<SealScratch>,
    sorted_tail: SortedTailCell,
    /// Bytes of `scratch`.
    scratch_bytes: AtomicUsize,
    /// Bytes that a merge under way is building.
    merging_bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    tail: Tail,
    /// Rises with each tail.
    tail_id: u64,
    sealing: Option<Arc<Tail>>,
    /// Oldest first.
    chunks: Arc<Vec<Arc<Chunk>>>,
    chunk_records: usize,
    chunk_bytes: usize,
    /// An emptied tail, kept for its memory.
    spare: Option<Tail>,
    pushed: u64,
    folded: u64,
    min_seq: Seq,
    max_seq: Seq,
}

/// Records that came and what became of them: `pushed = held + folded`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Records pushed.
    pub pushed: u64,
    /// Records held now.
    pub held: u64,
    /// Records that folding made superfluous.
    pub folded: u64,
}

/// Up to which seq a read sees.
#[derive(Clone, Copy, Debug)]
pub enum ReadAt<'a> {
    /// A registered snapshot, or any seq at which nothing can have been folded across.
    Seq(Seq),
    /// What is published; loaded under the lock.
    Published(&'a AtomicU64),
}

/// What a get has seen of this memtable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Up to which seq.
    pub at: Seq,
    /// True when nothing older can matter: an absorbing record was met, or the visitor broke off.
    pub done: bool,
}

/// Where [`Memtable::explain`] found a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whereabouts {
    /// In the tail.
    Tail,
    /// In a full tail that is being sealed.
    Sealing,
    /// In a chunk: 0 is the newest.
    Chunk(usize),
}

impl std::fmt::Display for Whereabouts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Whereabouts::Tail => f.write_str("tail"),
            Whereabouts::Sealing => f.write_str("tail, being sealed"),
            Whereabouts::Chunk(index) => write!(f, "chunk {index}"),
        }
    }
}

impl Memtable {
    /// An empty memtable of a table with this order and this fold.
    pub fn new(order: KeyOrder, rules: Arc<FoldRules>, limits: MemtableLimits) -> Memtable {
        Memtable {
            order,
            rules,
            limits,
            state: Gate::default(),
            merging: Mutex::new(()),
            scratch: Mutex::default(),
            sorted_tail: SortedTailCell::default(),
            scratch_bytes: AtomicUsize::new(0),
            merging_bytes: AtomicUsize::new(0),
        }
    }

    /// The way in for records; holds the lock, so keep it for a batch and no longer. One applier at a time.
    #[inline]
    pub fn apply(&self) -> Writer<'_> {
        Writer { memtable: self, state: self.state.write(), pushed: 0 }
    }

    /// Gives the records of `key` up to `at` to `visit`, newest first, until one absorbs (and that one too)
    /// or `visit` breaks off. `visit` runs without a lock.
    pub fn get(
        &self,
        key: &[u8],
        at: ReadAt<'_>,
        mut visit: impl FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> Seen {
        self.find(key, at).visit(&self.order, key, &mut visit)
    }

    /// Takes hold of what [`Memtable::get`] visits, without calling anybody: of use where a lock of the caller's is to
    /// be let go before user code runs.
    pub fn find(&self, key: &[u8], at: ReadAt<'_>) -> Found {
        let hash = key_hash(key);
        let mut copied = Copied::default();
        let state = self.state.read();
        let at = at.load();
        state.tail.copy_found(key, hash, at, &mut copied);
        let (sealing, chunks) = state.sealed();
        drop(state);
        Found { at, hash, copied, sealing, chunks }
    }

    /// Gives the records that are newer than `since`, in no order of keys, until `visit` breaks off; true when it did. What is
    /// wholly older is not looked at. `visit` runs without a lock.
    pub fn visit_newer(&self, since: Seq, mut visit: impl FnMut(Record<'_>) -> ControlFlow<()>) -> bool {
        let mut raw = RawTail::default();
        let state = self.state.read();
        state.tail.copy_from(state.tail.count_up_to(since), &mut raw);
        let (sealing, chunks) = state.sealed();
        drop(state);

        let mut look = || {
            raw.records().try_for_each(&mut visit)?;
            sealing.iter().try_for_each(|tail| tail.newer_than(since).try_for_each(&mut visit))?;
            let newer = chunks.iter().rev().filter(|chunk| chunk.max_seq > since);
            newer.flat_map(|chunk| chunk.newer_than(since)).try_for_each(&mut visit)
        };
        look().is_break()
    }

    /// Gives every record of `key`, newest first, with where it lies.
    pub fn explain(&self, key: &[u8], mut visit: impl FnMut(Whereabouts, Record<'_>)) {
        let hash = key_hash(key);
        let mut raw = RawTail::default();
        let state = self.state.read();
        state.tail.copy_from(0, &mut raw);
        let (sealing, chunks) = state.sealed();
        drop(state);

        let tail = Chunk::from_raw(&self.order, raw);
        tail.find(&self.order, key, hash, Seq::MAX).for_each(|record| visit(Whereabouts::Tail, record));
        if let Some(tail) = &sealing {
            tail.records_of(key, hash, Seq::MAX).for_each(|record| visit(Whereabouts::Sealing, record));
        }
        for (index, chunk) in chunks.iter().rev().enumerate() {
            let found = chunk.find(&self.order, key, hash, Seq::MAX);
            found.for_each(|record| visit(Whereabouts::Chunk(index), record));
        }
    }

    /// Takes the state as it is now, with the published seq that belongs to it.
    pub fn capture(&self, published: &AtomicU64) -> Captured {
        self.capture_at(ReadAt::Published(published))
    }

    /// Takes the state as it is now, to be read at a snapshot.
    pub fn capture_at(&self, at: ReadAt<'_>) -> Captured {
        let mut raw = self.room_for_tail();
        let state = self.state.read();
        let published = at.load();
        let held = self.sorted_of(&state);
        let from = held.as_ref().map_or(0, |held| held.1);
        state.tail.copy_from(from, &mut raw);
        let (sealing, chunks) = state.sealed();
        let tail_id = state.tail_id;
        drop(state);

        Captured {
            order: self.order.clone(),
            published,
            chunks,
            sealing,
            sorted: held.map(|held| held.0),
            leave: (from == 0).then(|| (Arc::clone(&self.sorted_tail), tail_id)),
            raw: Mutex::new(raw),
            pieces: OnceLock::new(),
        }
    }

    /// The sorted copy of the tail and how much it covers, if it is of this tail and not too far behind.
    fn sorted_of(&self, state: &State) -> Option<(Arc<Chunk>, usize)> {
        let cell = self.sorted_tail.lock();
        let held = cell.as_ref().filter(|held| held.tail_id == state.tail_id)?;
        let close = state.tail.len() - held.records <= SORTED_TAIL_LAG_MAX;
        close.then(|| (Arc::clone(&held.chunk), held.records))
    }

    /// Buffers large enough for a copy of the tail, their pages touched, so that no page fault is met under
    /// the lock.
    fn room_for_tail(&self) -> RawTail {
        let state = self.state.read();
        let from = self.sorted_of(&state).map_or(0, |held| held.1);
        let (records, bytes) = (state.tail.len() - from, state.tail.bytes_from(from));
        drop(state);
        let mut raw = RawTail::default();
        raw.arena.resize(bytes + bytes / 8, 0xff);
        raw.entries.resize(records + records / 8, (u32::MAX, u32::MAX));
        raw.arena.clear();
        raw.entries.clear();
        raw
    }

    /// Everything in the total order; what a flush takes from a frozen memtable. Records of one key may
    /// still be several: whoever merges folds them.
    pub fn stream(&self) -> FlushStream {
        self.capture_at(ReadAt::Seq(Seq::MAX)).whole()
    }

    /// Seals the tail and gives back what only writing needs. Belongs to the applier, between batches.
    ///
    /// A memtable that is frozen takes no more records; if it did, none would be lost: a new tail begins.
    pub fn freeze(&self, boundaries: &[Seq]) {
        let mut writer = self.apply();
        while !writer.state.tail.is_empty() || writer.state.sealing.is_some() {
            writer.seal(boundaries);
        }
        writer.state.spare = None;
        writer.state.tail = Tail::default();
        *self.sorted_tail.lock() = None;
        *self.scratch.lock() = SealScratch::default();
        self.scratch_bytes.store(0, Ordering::Relaxed);
    }

    /// True when [`Memtable::merge_step`] would find work, whatever the boundaries.
    #[cfg(test)]
    pub(crate) fn wants_merge(&self) -> bool {
        let (_, chunks) = self.state.read().sealed();
        plan_merge(&facts_of(&chunks), self.limits.merge_factor, Seq::MAX).is_some()
    }

    /// Merges some chunks into one, off the commit path, and folds within stripes. True when it did; call it
    /// again until it is false. A second caller at the same time gets false at once.
    ///
    /// Merging is for reads: it costs about as much as pushing did and makes gets several times faster. A
    /// table that is only written is flushed from its many chunks sooner than it is merged and then flushed.
    ///
    /// `boundaries` as for [`Writer::push`]. Only chunks that are wholly published, as far as the last boundary
    /// knows, are touched.
    pub fn merge_step(&self, boundaries: &[Seq]) -> bool {
        let Some(_only) = self.merging.try_lock() else { return false };
        let (_, chunks) = self.state.read().sealed();
        let last_boundary = boundaries.last().copied().unwrap_or(Seq::MAX);
        let Some(plan) = plan_merge(&facts_of(&chunks), self.limits.merge_factor, last_boundary) else {
            return false;
        };
        let inputs = &chunks[plan.range.clone()];
        self.merging_bytes.store(plan.bytes, Ordering::Relaxed);
        let mut scratch = SealScratch::default();
        scratch.keeps_all = self.limits.keeps_all;
        let merged = merge_chunks(&self.order, &self.rules, boundaries, inputs, &plan, scratch);
        self.merging_bytes.store(0, Ordering::Relaxed);
        let mut state = self.state.write();
        state.replace(plan, merged);
        true
    }

    /// Every byte that it takes: records, entries, filters, spare buffers, scratch, merges under way.
    /// Captures that outlive what they hold are not counted.
    pub fn bytes(&self) -> usize {
        self.state.read().bytes() + self.working_bytes()
    }

    #[inline]
    fn working_bytes(&self) -> usize {
        self.scratch_bytes.load(Ordering::Relaxed) + self.merging_bytes.load(Ordering::Relaxed)
    }

    /// Records held: pushed and not folded away.
    pub fn records(&self) -> u64 {
        self.counts().held
    }

    /// Records that came and what became of them.
    pub fn counts(&self) -> Counts {
        let state = self.state.read();
        let held =
            state.chunk_records + state.tail.len() + state.sealing.as_ref().map_or(0, |tail| tail.len());
        Counts { pushed: state.pushed, held: held as u64, folded: state.folded }
    }

    /// Chunks: what a get may have to ask besides the tail.
    pub fn chunks(&self) -> usize {
        self.state.read().chunks.len()
    }

    /// True when nothing was ever pushed.
    pub fn is_empty(&self) -> bool {
        self.state.read().pushed == 0
    }

    /// The lowest and the highest seq ever pushed; none when it is empty.
    pub fn seqs(&self) -> Option<(Seq, Seq)> {
        let state = self.state.read();
        (state.pushed > 0).then_some((state.min_seq, state.max_seq))
    }
}

/// Where the records of a key may be, as of one moment; see [`Memtable::find`].
#[derive(Debug)]
pub struct Found {
    at: Seq,
    hash: u32,
    copied: Copied,
    sealing: Option<Arc<Tail>>,
    /// Oldest first.
    chunks: Arc<Vec<Arc<Chunk>>>,
}

impl Found {
    /// How many chunks there are to look through.
    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Visits the records of `key`, newest first, until one absorbs or `visit` breaks. `key` and `order` are those of
    /// the [`Memtable::find`] that made it.
    pub fn visit(
        &self,
        order: &KeyOrder,
        key: &[u8],
        visit: &mut impl FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> Seen {
        let Found { at, hash, .. } = *self;
        let mut look = || {
            visit_until_absorbed(self.copied.records(), &mut *visit)?;
            if let Some(tail) = &self.sealing {
                visit_until_absorbed(tail.records_of(key, hash, at), &mut *visit)?;
            }
            self.visit_chunks(order, key, &mut *visit)
        };
        Seen { at, done: look().is_break() }
    }

    /// Visits the chunks that may hold the key, newest first: the newest alone, which often is enough, the others
    /// searched side by side.
    fn visit_chunks(
        &self,
        order: &KeyOrder,
        key: &[u8],
        visit: &mut impl FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let newest_first = self.chunks.iter().rev();
        let mut admitted = newest_first.filter(|chunk| chunk.may_hold(self.hash, self.at));
        let mut together = 1;
        while let Some(first) = admitted.next() {
            let (mut lanes, mut count): ([&Chunk; LANES], _) = ([first; LANES], 1);
            for chunk in admitted.by_ref().take(together - 1) {
                lanes[count] = chunk;
                count += 1;
            }
            let starts = counts_before(order, &lanes[..count], key);
            for (chunk, start) in lanes[..count].iter().zip(starts) {
                visit_until_absorbed(chunk.records_from(start, key, self.at), &mut *visit)?;
            }
            together = LANES;
        }
        ControlFlow::Continue(())
    }
}

impl ReadAt<'_> {
    #[inline]
    fn load(self) -> Seq {
        match self {
            ReadAt::Seq(seq) => seq,
            ReadAt::Published(published) => published.load(Ordering::Acquire),
        }
    }
}

impl State {
    /// What never changes, to be examined without the lock.
    #[inline]
    fn sealed(&self) -> (Option<Arc<Tail>>, Arc<Vec<Arc<Chunk>>>) {
        (self.sealing.clone(), Arc::clone(&self.chunks))
    }

    fn bytes(&self) -> usize {
        let tails = self.spare.iter().chain(self.sealing.as_deref()).map(Tail::bytes);
        size_of::<Memtable>() + self.chunk_bytes + self.tail.bytes() + tails.sum::<usize>()
    }

    /// Puts the full tail aside, unless one stands aside already, and gives the one to seal.
    fn set_tail_aside(&mut self) -> Arc<Tail> {
        if let Some(tail) = &self.sealing {
            return Arc::clone(tail);
        }
        let empty = self.spare.take().unwrap_or_default();
        let full = Arc::new(std::mem::replace(&mut self.tail, empty));
        self.tail_id += 1;
        self.sealing = Some(Arc::clone(&full));
        full
    }

    /// Puts a chunk in the place of the tail that it was sealed from.
    fn install(&mut self, tail: Arc<Tail>, chunk: Chunk) {
        if !self.sealing.as_ref().is_some_and(|sealing| Arc::ptr_eq(sealing, &tail)) {
            return;
        }
        self.sealing = None;
        self.folded += (tail.len() - chunk.len()) as u64;
        self.chunk_records += chunk.len();
        self.chunk_bytes += chunk.bytes();
        Arc::make_mut(&mut self.chunks).push(Arc::new(chunk));
        if let Some(mut tail) = Arc::into_inner(tail) {
            tail.clear();
            self.spare = Some(tail);
        }
    }

    /// Puts a merged chunk in the place of its inputs.
    fn replace(&mut self, plan: MergePlan, merged: Chunk) {
        let inputs = &self.chunks[plan.range.clone()];
        self.chunk_bytes -= inputs.iter().map(|chunk| chunk.bytes()).sum::<usize>();
        self.chunk_bytes += merged.bytes();
        self.chunk_records -= plan.records - merged.len();
        self.folded += (plan.records - merged.len()) as u64;
        Arc::make_mut(&mut self.chunks).splice(plan.range, [Arc::new(merged)]);
    }
}

fn facts_of(chunks: &[Arc<Chunk>]) -> Vec<ChunkFacts> {
    let facts = |chunk: &Arc<Chunk>| ChunkFacts {
        generation: chunk.generation,
        records: chunk.len(),
        bytes: chunk.arena.len(),
        base_seq: chunk.base_seq,
        max_seq: chunk.max_seq,
    };
    chunks.iter().map(facts).collect()
}

/// Merges neighbouring chunks, oldest first, as `plan` says.
fn merge_chunks(
    order: &KeyOrder,
    rules: &FoldRules,
    boundaries: &[Seq],
    inputs: &[Arc<Chunk>],
    plan: &MergePlan,
    mut scratch: SealScratch,
) -> Chunk {
    let base_seq = inputs.iter().map(|chunk| chunk.base_seq).min().unwrap_or(0);
    let max_seq = inputs.iter().map(|chunk| chunk.max_seq).max().unwrap_or(0);
    let newest_first = inputs.iter().rev().cloned();
    let mut merged = KWay::new(order.clone(), newest_first, Direction::Forward, Bound::Unbounded, None);
    let arenas: Vec<&[u8]> = inputs.iter().rev().map(|chunk| &chunk.arena[..]).collect();
    let mut sealer =
        Sealer::new(rules, boundaries, &arenas, base_seq, plan.records, plan.bytes, &mut scratch);
    let skip = merged.skip();
    let incoming = std::iter::from_fn(|| {
        let (source, chunk, entry, prefix) = merged.current()?;
        let incoming = Incoming { prefix, seq: chunk.seq(entry), source, offset: entry.offset };
        merged.step();
        Some(incoming)
    });
    sealer.take_all(incoming, false);
    sealer.finish(skip, max_seq, plan.generation)
}

/// After so many records does a batch look whether a reader waits: about every microsecond.
const PUSHED_TOGETHER: usize = 16;

/// Appends records; see [`Memtable::apply`]. Readers wait while it lives, but for sealing and between some records.
#[derive(Debug)]
pub struct Writer<'a> {
    memtable: &'a Memtable,
    state: RwLockWriteGuard<'a, State>,
    /// Records so far.
    pushed: usize,
}

impl Writer<'_> {
    /// Appends a record. Seqs rise from call to call, gaps are allowed; key and payload are within the
    /// limits of the store.
    ///
    /// `boundaries` are the seqs at which anybody may read, ascending, the published one last: when the tail is
    /// full it is sealed, and records fold only where no boundary S has older <= S < newer. Records newer than
    /// the last boundary fold among themselves: they are to be published together.
    #[inline]
    pub fn push(&mut self, record: Record<'_>, boundaries: &[Seq]) {
        self.pushed += 1;
        if self.pushed.is_multiple_of(PUSHED_TOGETHER) {
            self.memtable.state.let_in(&mut self.state);
        }
        while !self.state.tail.has_room(&record, &self.memtable.limits.tail) {
            self.seal(boundaries);
        }
        let state = &mut *self.state;
        if state.pushed == 0 {
            state.min_seq = record.seq;
        }
        state.pushed += 1;
        state.max_seq = record.seq;
        state.tail.push(record);
    }

    /// Every byte that the memtable takes, as [`Memtable::bytes`].
    #[inline]
    pub fn bytes(&self) -> usize {
        self.state.bytes() + self.memtable.working_bytes()
    }

    /// Makes a chunk of the tail. Sorting and folding happen without the lock.
    #[cold]
    #[inline(never)]
    fn seal(&mut self, boundaries: &[Seq]) {
        let memtable = self.memtable;
        let tail = self.state.set_tail_aside();
        let chunk = RwLockWriteGuard::unlocked(&mut self.state, || {
            let mut scratch = memtable.scratch.lock();
            scratch.keeps_all = memtable.limits.keeps_all;
            let chunk = seal_tail(&memtable.order, &memtable.rules, boundaries, &tail, &mut scratch);
            memtable.scratch_bytes.store(scratch.bytes(), Ordering::Relaxed);
            chunk
        });
        self.state.install(tail, chunk);
    }
}

#[cfg(test)]
#[path = "memtable/tests.rs"]
mod tests;
