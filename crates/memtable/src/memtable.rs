//! The memtable itself: a tail and chunks, and which thread may do what.
//!
//! 1. One applier at a time appends, seals and freezes (the store's commit lock ensures that),
//!    through a [`Writer`].
//! 2. Readers take no lock that is held during any work. They take the *layers*, the tail and the
//!    chunks of one moment, and read in the tail what has been published (see tail.rs). Layers are
//!    never changed: new ones replace them (see `folddb_host::sync::Swap`).
//! 3. A full tail steps aside: an empty one takes its place in the layers, and the full one stays
//!    beside it, with the boundaries of that moment. [`Memtable::seal_full_tail`] sorts and folds
//!    it while readers still see it, after the applier has unlocked; then layers with a chunk in
//!    its place are swapped in. If the next tail is full before that, the applier does it. The lock
//!    `sealing` serializes this.
//! 4. [`Memtable::merge_step`] is serialized by the lock `merging`. Others only add chunks at the
//!    new end, so the indexes of a plan stay valid while it is carried out.
//!
//! **Folding and readers.** A folded record has only the newest of the seqs, so a fold must not
//! cross a seq at which somebody reads. These are the live snapshots and the published seq: the
//! caller passes them as *boundaries*, ascending, the published seq last. A reader without a
//! snapshot takes the layers, loads the published seq, and checks that the layers are still the
//! present ones. If so, they have everything that is published, and no fold in them has crossed
//! that seq; if not, it starts again. An applier replaces the layers once in a few thousand
//! records.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use folddb_base::{Direction, Record, Seq};
use folddb_host::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use folddb_host::sync::{Mutex, MutexGuard, Swap};
use folddb_rules::{FoldRules, KeyOrder};

use crate::capture::{Captured, FlushStream, SortedTailCell, SortedTails, TailSeen, visit_until_absorbed};
use crate::chunk::{Chunk, LANES, counts_before};
use crate::fold_stack::Incoming;
use crate::hash::key_hash;
use crate::kway::KWay;
use crate::merge_plan::{ChunkFacts, MergePlan, plan_merge, plan_whole};
use crate::seal::{SealScratch, Sealer, seal_tail};
use crate::tail::{Appender, TAILS_SEQS_MAX, Tail, TailLimits};

/// Bounds of a memtable. The caller bounds its total size: see [`Memtable::bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemtableLimits {
    /// The bounds of a tail.
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

/// A table's newest records. The module says which thread may do what, and when.
#[derive(Debug)]
pub struct Memtable {
    order: KeyOrder,
    rules: Arc<FoldRules>,
    limits: MemtableLimits,
    layers: Swap<Layers>,
    applying: Mutex<Applying>,
    sealing: Mutex<Sealing>,
    merging: Mutex<()>,
    sorted_tail: SortedTailCell,
    /// Bytes of the chunks in the present layers.
    chunk_bytes: AtomicUsize,
    /// Bytes of the tail, and of the full one.
    tail_bytes: AtomicUsize,
    /// Bytes of the spare tail.
    spare_bytes: AtomicUsize,
    /// Bytes of the applier's scratch.
    scratch_bytes: AtomicUsize,
    /// Bytes that a running merge is building.
    merging_bytes: AtomicUsize,
}

/// All records of one moment; the tail also has the records that came since.
#[derive(Clone, Debug, Default)]
struct Layers {
    tail: Arc<Tail>,
    /// The tail before, which is full and not sealed yet.
    full: Option<Full>,
    /// Rises with each tail, and with each that is sealed.
    tail_id: u64,
    /// Oldest first.
    chunks: Arc<Vec<Arc<Chunk>>>,
    chunk_records: usize,
    chunk_bytes: usize,
    folded: u64,
}

/// A tail to which nothing is appended any more.
#[derive(Clone, Debug)]
struct Full {
    tail: Arc<Tail>,
    /// Those that it was filled under. A reader that comes later reads at a seq that is not lower
    /// than the last of them, and than all that was published when it came.
    boundaries: Arc<[Seq]>,
}

/// What only the applier uses.
#[derive(Debug, Default)]
struct Applying {
    appender: Appender,
    /// The first seq of the last tail that stepped aside, while it may still be there.
    full_from: Option<Seq>,
}

/// What only who seals uses.
#[derive(Debug, Default)]
struct Sealing {
    /// The tail that was sealed last, kept for its memory. Readers may still read it.
    spare: Option<Arc<Tail>>,
    scratch: SealScratch,
}

/// How many records were pushed, and what became of them: `pushed = held + folded`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Records pushed.
    pub pushed: u64,
    /// Records held now.
    pub held: u64,
    /// Records that folding made superfluous.
    pub folded: u64,
}

/// The seq up to which a read sees records.
#[derive(Clone, Copy, Debug)]
pub enum ReadAt<'a> {
    /// A registered snapshot, or any seq that no fold can have crossed.
    Seq(Seq),
    /// The published seq, loaded when the layers are taken.
    Published(&'a AtomicU64),
}

/// What a get has seen of this memtable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The seq up to which it saw records.
    pub at: Seq,
    /// True if older records do not matter: it met an absorbing record, or the visitor stopped.
    pub done: bool,
}

/// Where [`Memtable::explain`] found a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whereabouts {
    /// In the tail.
    Tail,
    /// In a chunk: 0 is the newest.
    Chunk(usize),
}

impl std::fmt::Display for Whereabouts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Whereabouts::Tail => f.write_str("tail"),
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
            layers: Swap::new(Arc::default()),
            applying: Mutex::default(),
            sealing: Mutex::default(),
            merging: Mutex::new(()),
            sorted_tail: SortedTailCell::default(),
            chunk_bytes: AtomicUsize::new(0),
            tail_bytes: AtomicUsize::new(0),
            spare_bytes: AtomicUsize::new(0),
            scratch_bytes: AtomicUsize::new(0),
            merging_bytes: AtomicUsize::new(0),
        }
    }

    /// A writer for records; keep it for one batch and no longer. One applier at a time.
    #[inline]
    pub fn apply(&self) -> Writer<'_> {
        Writer { memtable: self, applying: self.applying.lock(), has_stepped_aside: false }
    }

    /// Passes the records of `key` up to `at` to `visit`, newest first, up to and including the
    /// first that absorbs, or until `visit` stops.
    pub fn get(
        &self,
        key: &[u8],
        at: ReadAt<'_>,
        mut visit: impl FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> Seen {
        self.at(at).get(&self.order, key, &mut visit)
    }

    /// Its state at this moment. This calls no code of the caller, so the caller can check
    /// afterwards whether this was still the right memtable.
    #[inline]
    pub fn at(&self, at: ReadAt<'_>) -> MemtableView {
        let (layers, at) = self.layers_at(at);
        MemtableView { at, layers }
    }

    /// The layers, and the seq up to which to read them.
    #[inline]
    fn layers_at(&self, at: ReadAt<'_>) -> (Arc<Layers>, Seq) {
        let published = match at {
            ReadAt::Seq(seq) => return (self.layers.load(), seq),
            ReadAt::Published(published) => published,
        };
        loop {
            let (layers, version) = self.layers.load_with_version();
            let seq = published.load(Ordering::Acquire);
            if self.layers.is_at(version) {
                return (layers, seq);
            }
        }
    }

    /// Passes the records that are newer than `since` to `visit`, in no order of keys, until
    /// `visit` stops; true when it did. Chunks that are entirely older are skipped.
    pub fn visit_newer(&self, since: Seq, mut visit: impl FnMut(Record<'_>) -> ControlFlow<()>) -> bool {
        let layers = self.layers.load();
        let mut look = || {
            for tail in layers.tails() {
                let len = tail.len();
                tail.records(tail.count_up_to(since, len)..len).try_for_each(&mut visit)?;
            }
            let newer = layers.chunks.iter().rev().filter(|chunk| chunk.max_seq > since);
            newer.flat_map(|chunk| chunk.newer_than(since)).try_for_each(&mut visit)
        };
        look().is_break()
    }

    /// Passes on every record of `key`, newest first, with its place.
    pub fn explain(&self, key: &[u8], mut visit: impl FnMut(Whereabouts, Record<'_>)) {
        let hash = key_hash(key);
        let layers = self.layers.load();
        let in_tails = layers.tails().flat_map(|tail| tail.find(key, hash, Seq::MAX));
        in_tails.for_each(|record| visit(Whereabouts::Tail, record));
        for (index, chunk) in layers.chunks.iter().rev().enumerate() {
            let found = chunk.find(&self.order, key, hash, Seq::MAX);
            found.for_each(|record| visit(Whereabouts::Chunk(index), record));
        }
    }

    /// Captures the state of this moment, with the published seq that belongs to it.
    pub fn capture(&self, published: &AtomicU64) -> Captured {
        self.capture_at(ReadAt::Published(published))
    }

    /// Captures the state of this moment, to be read at `at`.
    pub fn capture_at(&self, at: ReadAt<'_>) -> Captured {
        let (layers, published) = self.layers_at(at);
        let full = layers.full.as_ref().map(|full| Arc::clone(&full.tail));
        let tail = TailSeen::of(full, Arc::clone(&layers.tail), layers.tail_id);
        let (order, chunks) = (self.order.clone(), Arc::clone(&layers.chunks));
        Captured::new(order, published, chunks, tail, Arc::clone(&self.sorted_tail))
    }

    /// All records in the total order; a flush reads a frozen memtable this way. A key may still
    /// have several records, which the caller folds.
    pub fn stream(&self) -> FlushStream {
        self.capture_at(ReadAt::Seq(Seq::MAX)).whole()
    }

    /// Seals the tail and frees what only writing needs. Called by the applier, between batches.
    ///
    /// Nothing is pushed to a frozen memtable. If a caller does, no record is lost: a new tail
    /// begins.
    pub fn freeze(&self, boundaries: &[Seq]) {
        let mut writer = self.apply();
        if writer.applying.appender.len() > 0 {
            writer.step_aside(boundaries);
        }
        self.seal_full_tail();
        *writer.applying = Applying::default();
        *self.sealing.lock() = Sealing::default();
        let empty = Arc::clone(writer.applying.appender.tail());
        self.change(|layers| Layers { tail: empty, ..layers.clone() });
        self.scratch_bytes.store(0, Ordering::Relaxed);
        self.spare_bytes.store(0, Ordering::Relaxed);
        *self.sorted_tail.lock() = SortedTails::default();
    }

    /// Makes a chunk from the full tail, if there is one. Readers see the tail until it is there,
    /// and appliers go on meanwhile. It takes no lock of the caller's, and needs none.
    #[cold]
    pub fn seal_full_tail(&self) {
        let sealing = &mut *self.sealing.lock();
        let Some(Full { tail, boundaries }) = self.layers.load().full.clone() else { return };
        sealing.scratch.keeps_all = self.limits.keeps_all;
        let chunk = seal_tail(&self.order, &self.rules, &boundaries, &tail, &mut sealing.scratch);
        self.scratch_bytes.store(sealing.scratch.bytes(), Ordering::Relaxed);
        self.spare_bytes.store(tail.bytes(), Ordering::Relaxed);
        let pushed = tail.len();
        sealing.spare = Some(tail);
        self.change(|layers| layers.with_sealed(chunk, pushed));
    }

    /// True if [`Memtable::merge_step`] would find work with any boundaries.
    #[cfg(test)]
    pub(crate) fn wants_merge(&self) -> bool {
        plan_merge(&facts_of(&self.layers.load().chunks), self.limits.merge_factor, Seq::MAX).is_some()
    }

    /// Merges some chunks into one, without the commit lock, and folds within stripes. True if it
    /// merged some; call it again until it returns false. A second caller at the same time gets
    /// false at once.
    ///
    /// Merging is for reads: it costs about as much as pushing and makes gets several times faster.
    /// If a table is only written, it is cheaper to flush many chunks without merging them first.
    ///
    /// `boundaries` are as for [`Writer::push`]. It merges only chunks without records after the
    /// last boundary: all their records are published.
    pub fn merge_step(&self, boundaries: &[Seq]) -> bool {
        self.merge(boundaries, |chunks, last| plan_merge(chunks, self.limits.merge_factor, last))
    }

    /// As [`Memtable::merge_step`], but merges all chunks into one. For a table that is read much
    /// more than it is written to.
    pub fn merge_whole(&self, boundaries: &[Seq]) -> bool {
        self.merge(boundaries, plan_whole)
    }

    fn merge(&self, boundaries: &[Seq], plan: impl FnOnce(&[ChunkFacts], Seq) -> Option<MergePlan>) -> bool {
        let Some(_only) = self.merging.try_lock() else { return false };
        let chunks = Arc::clone(&self.layers.load().chunks);
        let last_boundary = boundaries.last().copied().unwrap_or(Seq::MAX);
        let Some(plan) = plan(&facts_of(&chunks), last_boundary) else { return false };
        let inputs = &chunks[plan.range.clone()];
        self.merging_bytes.store(plan.bytes, Ordering::Relaxed);
        let mut scratch = SealScratch::default();
        scratch.keeps_all = self.limits.keeps_all;
        let merged = merge_chunks(&self.order, &self.rules, boundaries, inputs, &plan, scratch);
        self.merging_bytes.store(0, Ordering::Relaxed);
        let merged = Arc::new(merged);
        self.change(|layers| layers.with_merged(&plan, merged));
        true
    }

    /// Swaps in the next layers.
    fn change(&self, next: impl FnOnce(&Layers) -> Layers) {
        self.layers.replace(|layers| {
            let next = next(layers);
            self.chunk_bytes.store(next.chunk_bytes, Ordering::Relaxed);
            self.tail_bytes.store(next.tails().map(|tail| tail.bytes()).sum(), Ordering::Relaxed);
            Arc::new(next)
        });
    }

    /// All bytes that it takes: records, entries, filters, the spare tail, scratch, and the merge
    /// that is running. Captures that outlive their memtable are not counted.
    #[inline]
    pub fn bytes(&self) -> usize {
        let parts = [
            &self.chunk_bytes,
            &self.tail_bytes,
            &self.spare_bytes,
            &self.scratch_bytes,
            &self.merging_bytes,
        ];
        size_of::<Memtable>() + parts.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum::<usize>()
    }

    /// How many records it holds.
    pub fn records(&self) -> u64 {
        self.counts().held
    }

    /// See [`Counts`].
    pub fn counts(&self) -> Counts {
        let layers = self.layers.load();
        let in_tails: usize = layers.tails().map(|tail| tail.len()).sum();
        let held = (layers.chunk_records + in_tails) as u64;
        Counts { pushed: held + layers.folded, held, folded: layers.folded }
    }

    /// How many chunks it has: a get may have to search each of them after the tail.
    pub fn chunks(&self) -> usize {
        self.layers.load().chunks.len()
    }

    /// True when nothing was ever pushed.
    pub fn is_empty(&self) -> bool {
        self.records() == 0
    }

    /// The lowest and the highest seq ever pushed; none when it is empty.
    pub fn seqs(&self) -> Option<(Seq, Seq)> {
        let layers = self.layers.load();
        let of_chunks = layers.chunks.iter().map(|chunk| (chunk.base_seq, chunk.max_seq));
        let seqs_of = |tail: &Tail| Some((tail.base_seq(), tail.seq(tail.len().checked_sub(1)?)));
        let of_tails = layers.tails().filter_map(|tail| seqs_of(tail));
        of_chunks.chain(of_tails).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }
}

/// A memtable as of one moment, for gets; see [`Memtable::at`].
#[derive(Debug)]
pub struct MemtableView {
    at: Seq,
    layers: Arc<Layers>,
}

impl MemtableView {
    /// Up to which seq it sees.
    #[inline]
    pub fn seq(&self) -> Seq {
        self.at
    }

    /// How many chunks there are to search.
    #[inline]
    pub fn chunks(&self) -> usize {
        self.layers.chunks.len()
    }

    /// How many records these have.
    #[inline]
    pub fn chunk_records(&self) -> usize {
        self.layers.chunk_records
    }

    /// How many bytes they take.
    #[inline]
    pub fn chunk_bytes(&self) -> usize {
        self.layers.chunk_bytes
    }

    /// Visits the records of `key`, newest first, until one absorbs or `visit` stops. `order` is
    /// that of the memtable.
    pub fn get(
        &self,
        order: &KeyOrder,
        key: &[u8],
        visit: &mut impl FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> Seen {
        let hash = key_hash(key);
        let mut look = || {
            visit_until_absorbed(self.layers.tail.find(key, hash, self.at), &mut *visit)?;
            if let Some(full) = &self.layers.full {
                visit_until_absorbed(full.tail.find(key, hash, self.at), &mut *visit)?;
            }
            self.visit_chunks(order, (key, hash), &mut *visit)
        };
        Seen { at: self.at, done: look().is_break() }
    }

    /// Visits the chunks that may hold the key, newest first: the newest alone, which is often
    /// enough, then the others, searched side by side.
    fn visit_chunks(
        &self,
        order: &KeyOrder,
        (key, hash): (&[u8], u32),
        visit: &mut impl FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut alone = 1;
        for oldest_first in self.layers.chunks.rchunks(LANES) {
            let (lanes, count) = self.admitted(oldest_first, hash);
            let (newest, others) = lanes[..count].split_at(alone.min(count));
            for together in [newest, others].into_iter().filter(|lanes| !lanes.is_empty()) {
                let starts = counts_before(order, together, key);
                for (chunk, start) in together.iter().zip(starts) {
                    visit_until_absorbed(chunk.records_from(start, key, self.at), &mut *visit)?;
                }
            }
            alone -= newest.len();
        }
        ControlFlow::Continue(())
    }

    /// The chunks, of up to [`LANES`], that may hold a key of this hash, newest first, and their
    /// number. It does not branch on the answers of the filters, so that the waits for their memory
    /// overlap.
    #[inline]
    fn admitted<'c>(&self, oldest_first: &'c [Arc<Chunk>], hash: u32) -> ([&'c Chunk; LANES], usize) {
        let (mut lanes, mut count) = ([&*oldest_first[0]; LANES], 0);
        for chunk in oldest_first.iter().rev() {
            lanes[count] = chunk;
            count += usize::from(chunk.may_hold(hash, self.at));
        }
        (lanes, count)
    }
}

impl Layers {
    /// The tail, and the full one: newest first.
    #[inline]
    fn tails(&self) -> impl Iterator<Item = &Arc<Tail>> {
        [Some(&self.tail), self.full.as_ref().map(|full| &full.tail)].into_iter().flatten()
    }

    /// Lets the tail step aside, for an empty one.
    fn with_full(&self, full: Full, tail: Arc<Tail>) -> Layers {
        debug_assert!(self.full.is_none(), "one steps aside at a time");
        Layers { tail, full: Some(full), tail_id: self.tail_id + 1, ..self.clone() }
    }

    /// Replaces the full tail with the chunk sealed from its `pushed` records.
    fn with_sealed(&self, chunk: Chunk, pushed: usize) -> Layers {
        let mut chunks = Vec::with_capacity(self.chunks.len() + 1);
        chunks.extend(self.chunks.iter().cloned());
        let (records, bytes) = (chunk.len(), chunk.bytes());
        chunks.push(Arc::new(chunk));
        Layers {
            tail: Arc::clone(&self.tail),
            full: None,
            tail_id: self.tail_id + 1,
            chunks: Arc::new(chunks),
            chunk_records: self.chunk_records + records,
            chunk_bytes: self.chunk_bytes + bytes,
            folded: self.folded + (pushed - records) as u64,
        }
    }

    /// Replaces chunks with the one that was merged from them.
    fn with_merged(&self, plan: &MergePlan, merged: Arc<Chunk>) -> Layers {
        let mut next = self.clone();
        let inputs = &self.chunks[plan.range.clone()];
        next.chunk_bytes -= inputs.iter().map(|chunk| chunk.bytes()).sum::<usize>();
        next.chunk_bytes += merged.bytes();
        next.chunk_records -= plan.records - merged.len();
        next.folded += (plan.records - merged.len()) as u64;
        Arc::make_mut(&mut next.chunks).splice(plan.range.clone(), [merged]);
        next
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

/// Merges neighboring chunks, oldest first, as `plan` says.
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

/// Appends records; see [`Memtable::apply`]. Readers see them when it is dropped, so that must be
/// before their seqs are published.
#[derive(Debug)]
pub struct Writer<'a> {
    memtable: &'a Memtable,
    applying: MutexGuard<'a, Applying>,
    has_stepped_aside: bool,
}

impl Writer<'_> {
    /// Whether a tail became full: once this is dropped, and no lock is held any more, the caller
    /// makes a chunk of it, with [`Memtable::seal_full_tail`].
    #[inline]
    pub fn has_full(&self) -> bool {
        self.has_stepped_aside
    }

    /// Appends a record. Seqs ascend from call to call, gaps are allowed; key and payload are
    /// within the limits of the store.
    ///
    /// `boundaries` are the seqs at which there may be readers, ascending, the published one last.
    /// If the tail is full, it is sealed, and two records fold only if no boundary S has older <= S
    /// < newer. Records newer than the last boundary fold with one another: they will be published
    /// together.
    #[inline]
    pub fn push(&mut self, record: Record<'_>, boundaries: &[Seq]) {
        if !self.applying.appender.has_room(&record, &self.memtable.limits.tail) {
            self.step_aside(boundaries);
        }
        if self.applying.full_from.is_some_and(|from| record.seq.saturating_sub(from) > TAILS_SEQS_MAX) {
            self.memtable.seal_full_tail(); // those who sort both tails count seqs from its first
            self.applying.full_from = None;
        }
        if !self.applying.appender.try_push(record) {
            self.grow(&record);
            let pushed = self.applying.appender.try_push(record);
            debug_assert!(pushed, "the larger tail has room for it");
        }
    }

    /// See [`Memtable::bytes`].
    #[inline]
    pub fn bytes(&self) -> usize {
        self.memtable.bytes()
    }

    /// Continues in a larger tail.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, record: &Record<'_>) {
        self.applying.appender.grow(record, &self.memtable.limits.tail);
        let tail = Arc::clone(self.applying.appender.tail());
        self.memtable.change(|layers| Layers { tail, ..layers.clone() });
    }

    /// Lets the tail step aside, and continues in an empty one.
    #[cold]
    #[inline(never)]
    fn step_aside(&mut self, boundaries: &[Seq]) {
        let memtable = self.memtable;
        memtable.seal_full_tail(); // the one before this, if that was not done yet
        let appender = &mut self.applying.appender;
        appender.show();
        let spare = memtable.sealing.try_lock().and_then(|mut sealing| sealing.spare.take());
        if spare.is_some() {
            memtable.spare_bytes.store(0, Ordering::Relaxed);
        }
        let full = appender.begin(spare, &memtable.limits.tail);
        self.applying.full_from = Some(full.base_seq());
        self.has_stepped_aside = true;
        let (full, tail) =
            (Full { tail: full, boundaries: boundaries.into() }, Arc::clone(self.applying.appender.tail()));
        memtable.change(|layers| layers.with_full(full, tail));
    }
}

impl Drop for Writer<'_> {
    #[inline]
    fn drop(&mut self) {
        self.applying.appender.show();
    }
}

#[cfg(test)]
#[path = "memtable/tests.rs"]
mod tests;
