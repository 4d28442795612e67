//! The read path of one key: memtable, sealed memtables, then runs, newest first, until nothing
//! older matters.

use std::cell::RefCell;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use folddb_base::bytes::Malformed;
use folddb_base::checksum::key_hash;
use folddb_base::{Error, ErrorKind, OpBuf, OpKind, Record, Result, Seq};
use folddb_memtable::{MemtableView, ReadAt};
use folddb_rules::State;
use folddb_rules::algebra::Decline;
use folddb_rules::resolve::Resolver;
use folddb_run::{Near, Part, Probe, Rank, Tally};

use crate::read::groups::read_in_groups;
use crate::read::together::{Ahead, Together, rank_of};
use crate::read::{buffer, hashed, pinned};
use crate::state::catalog::TableCore;
use crate::state::clock;
use crate::state::engine::Engine;
use crate::state::pinned_files::PinnedFiles;
use crate::state::snapshots::At;
use crate::state::timing;
use crate::state::view::{RunView, TableView};
use crate::values::load;
use folddb_value_log::SegmentMap;

/// A get finds its place in this many runs before it asks the filter of any: the waits for memory
/// then overlap.
const PROBED_TOGETHER: usize = 8;

thread_local! {
    /// The buffers of a get, kept from one to the next.
    static RESOLVER: RefCell<Resolver> = RefCell::new(Resolver::new());
}

/// Takes the value of a key with its place among the requested keys.
pub type TakeValue<'t> = dyn FnMut(usize, Option<&[u8]>) -> Result<()> + 't;

/// Passes the value of `key`, as a reader at `at` (or now) sees it, to `take`.
pub fn get<R>(
    engine: &Engine,
    table: &TableCore,
    key: &[u8],
    at: Option<At>,
    take: impl FnOnce(Option<&[u8]>) -> Result<R>,
) -> Result<R> {
    let began = timing::begin(engine, &engine.counters.gets);
    let got = match &table.hashed {
        Some(hashed) => hashed::get_hashed(engine, (table, hashed), key, at, take),
        None => {
            with_state(engine, table, key, at, |state, of| take_value(engine, (of, table), key, state, take))
        }
    };
    timing::end(engine, &engine.latencies.get, began);
    got
}

/// Passes the value of a state, which may be separated, to `take`.
#[inline]
fn take_value<R>(
    engine: &Engine,
    (of, table): (Option<&Arc<SegmentMap>>, &TableCore),
    key: &[u8],
    state: Option<State<'_>>,
    take: impl FnOnce(Option<&[u8]>) -> Result<R>,
) -> Result<R> {
    match state {
        None => take(None),
        Some(State::Value(value)) => take(Some(value)),
        Some(State::Separated(pointer)) => {
            take_apart(engine, (of.map(|of| &**of), table), key, pointer, take)
        }
    }
}

/// Passes the state of `key`, as a reader at `at` (or now) sees it, to `take`, with the files of
/// separated values. Reads no separated value, unless something was folded onto it.
#[inline]
pub(crate) fn with_state<R>(
    engine: &Engine,
    table: &TableCore,
    key: &[u8],
    at: Option<At>,
    take: impl FnOnce(Option<State<'_>>, Option<&Arc<SegmentMap>>) -> Result<R>,
) -> Result<R> {
    if let Some(hashed) = &table.hashed {
        return hashed::state_hashed(engine, (table, hashed), key, at, take);
    }
    with_resolver(|resolver| {
        if table.has_stamps {
            resolver.read_at(reading_ms(engine, at));
        }
        let of = search(engine, table, key, at, resolver)?;
        engine.counters.gets.add(1);
        take_state(engine, (of.as_ref(), table), key, resolver, take)
    })
}

/// Lends the buffers of a get; a nested read finds them lent, and gets its own.
#[inline]
fn with_resolver<R>(read: impl FnOnce(&mut Resolver) -> R) -> R {
    RESOLVER.with(|resolver| match resolver.try_borrow_mut() {
        Ok(mut resolver) => read(&mut resolver),
        Err(_) => read(&mut Resolver::new()),
    })
}

/// Passes the state of a resolver that was fed all records to `take`.
#[inline]
fn take_state<R>(
    engine: &Engine,
    (of, table): (Option<&Arc<SegmentMap>>, &TableCore),
    key: &[u8],
    resolver: &mut Resolver,
    take: impl FnOnce(Option<State<'_>>, Option<&Arc<SegmentMap>>) -> Result<R>,
) -> Result<R> {
    engine.counters.operands_visited_max.raise(resolver.visited() as u64);
    load_waiting(engine, of.map(|of| &**of), table, key, resolver)?;
    let state = resolver.state(&table.rules.fold, key);
    take(state.map_err(|cause| fold_failed(engine, table, key, &cause))?, of)
}

/// Passes the value of each key, as a reader at `at` (or now) sees it, to `take`, all as of one
/// moment, with the key's place in `keys`. The table is a sorted one, and the keys are in its
/// order. Returns false, and has read nothing, if `at` is that of an old snapshot with files of its
/// own.
pub(crate) fn get_each(
    engine: &Engine,
    table: &TableCore,
    keys: &[&[u8]],
    at: Option<At>,
    take: &mut TakeValue<'_>,
) -> Result<bool> {
    let Some((view, memory, of)) = state_at(engine, table, at)? else { return Ok(false) };
    // Later than the view: merges may have dropped some, but not all, of the values that have
    // expired by then.
    let time_ms = if table.has_stamps { reading_ms(engine, at) } else { 0 };
    let limit = limit_at(at);
    let (mut count, mut tally) = (0, Tally::default());
    let read = with_resolver(|resolver| {
        resolver.read_at(time_ms);
        let ask = |group: Range<usize>| ask_for_blocks(table, &view, &keys[group]);
        let mut read = |place: usize, ahead: Option<Ahead<'_, '_>>| {
            let key = keys[place];
            count += 1;
            let mut search = Search::of(table, key, limit, resolver);
            let is_done = search.all(&view, &memory, ahead, &mut tally)?;
            let runs_met = search.runs_met;
            note_joined(engine, table, runs_met);
            take_state(engine, (of.as_ref(), table), key, resolver, |state, of| {
                take_value(engine, (of, table), key, state, |value| take(place, value))
            })?;
            Ok(is_done)
        };
        let mut together = Together::new(table, &view, limit);
        read_in_groups(engine, keys.len(), &ask, &mut |group| together.read(group, keys, &mut read))
    });
    engine.counters.gets.add(count);
    engine.parts.count(&tally);
    read.map(|()| true)
}

/// Asks the system for the blocks in which these keys may be, and that are not in memory: first for
/// filters and leaves, then, with what these say, for blocks. A failure is left to the read.
#[cold]
pub(crate) fn ask_for_blocks(table: &TableCore, view: &TableView, keys: &[&[u8]]) {
    let mut visits = Vec::new();
    for &key in keys {
        for (number, run) in view.runs.iter().enumerate() {
            let Some(part) = run.part_of(&table.rules.order, key) else { continue };
            let rank = rank_of(number, view.runs.len());
            visits.push((&part.file.part, rank, key, key_hash(key)));
        }
    }
    for &(part, rank, key, hash) in &visits {
        part.ask_for_index(part.probe(key, hash, Seq::MAX), rank, hash);
    }
    for (part, rank, key, hash) in visits {
        let _ = part.ask_for_block(part.probe(key, hash, Seq::MAX), rank, key, hash);
    }
}

/// The state of a sorted table at `at` (or now), and the files of its separated values; none if
/// that has files of its own.
#[expect(clippy::type_complexity, reason = "three parts of one moment")]
fn state_at(
    engine: &Engine,
    table: &TableCore,
    at: Option<At>,
) -> Result<Option<(Arc<TableView>, MemtableView, Option<Arc<SegmentMap>>)>> {
    loop {
        let round = engine.values.files.round();
        let (view, memory) = view_with_memory(engine, table, read_at(engine, at))?;
        if pinned::pinned_files_at(engine, at)?.is_some() {
            return Ok(None);
        }
        let of = engine.values.files.segment_map_of(round);
        if of.is_some() || table.separate_from() == usize::MAX {
            note_chunks(engine, table, &memory);
            return Ok(Some((view, memory, of)));
        }
    }
}

/// Newer records are not seen by a reader at `at` (or now).
fn limit_at(at: Option<At>) -> Seq {
    at.map_or(Seq::MAX, |at| at.seq)
}

/// How a reader at `at` (or now) reads memtables.
fn read_at(engine: &Engine, at: Option<At>) -> ReadAt<'_> {
    at.map_or(ReadAt::Published(&engine.published), |at| ReadAt::Seq(at.seq))
}

/// The time that a reader reads at.
#[cold]
pub(crate) fn reading_ms(engine: &Engine, at: Option<At>) -> u64 {
    at.map_or_else(|| clock::now_ms(engine), |at| at.time_ms)
}

/// Passes the value of a pointer to `take`.
#[cold]
fn take_apart<R>(
    engine: &Engine,
    (of, table): (Option<&SegmentMap>, &TableCore),
    key: &[u8],
    pointer: &[u8],
    take: impl FnOnce(Option<&[u8]>) -> Result<R>,
) -> Result<R> {
    buffer::with_record(|record| take(Some(load::load_value(engine, of, table, key, pointer, record)?)))
}

/// Loads separated values if operands wait to be folded onto them.
#[inline]
pub(crate) fn load_waiting(
    engine: &Engine,
    of: Option<&SegmentMap>,
    table: &TableCore,
    key: &[u8],
    resolver: &mut Resolver,
) -> Result<()> {
    resolver.load(&table.rules.fold, key, |pointer, out| {
        let mut record = Vec::new();
        out.extend_from_slice(load::load_value(engine, of, table, key, pointer, &mut record)?);
        Ok(())
    })
}

/// True if `key` has a value, as a reader at `at` (or now) sees it.
pub fn contains(engine: &Engine, table: &TableCore, key: &[u8], at: Option<At>) -> Result<bool> {
    if let Some(hashed) = &table.hashed {
        return Ok(hashed::head_hashed(engine, (table, hashed), key, at)?.is_some());
    }
    with_state(engine, table, key, at, |state, _| Ok(state.is_some()))
}

/// The ops of `key` that would not fold into one, newest first: what a reader without the fold
/// gets.
pub fn operands(
    engine: &Engine,
    table: &TableCore,
    key: &[u8],
    at: Option<At>,
) -> Result<Vec<(OpKind, Vec<u8>)>> {
    if let Some(hashed) = &table.hashed {
        let only = |value: Option<&[u8]>| Ok(value.map(|value| (OpKind::Set, value.to_vec())));
        return Ok(hashed::get_hashed(engine, (table, hashed), key, at, only)?.into_iter().collect());
    }
    let mut resolver = Resolver::new();
    let of = search(engine, table, key, at, &mut resolver)?;
    resolver.settle(&table.rules.fold, key).map_err(|cause| damaged_record(table, cause))?;
    let inline = |op| inline_op(engine, of.as_deref(), table, key, op).map(|op| (op.kind, op.payload));
    resolver.operands().iter().map(inline).collect()
}

/// An op of `key` with its value inline, even if that is separated.
pub(crate) fn inline_op(
    engine: &Engine,
    of: Option<&SegmentMap>,
    table: &TableCore,
    key: &[u8],
    op: &OpBuf,
) -> Result<OpBuf> {
    let mut record = Vec::new();
    let payload = match op.kind.is_separated() {
        true => load::load_value(engine, of, table, key, &op.payload, &mut record)?,
        false => table.rules.fold.value_in(&op.payload),
    };
    Ok(OpBuf { kind: op.kind.inline(), payload: payload.to_vec() })
}

/// Feeds the records of `key` to the resolver, newest first. If one is separated, returns the files
/// of separated values.
#[inline]
pub fn search(
    engine: &Engine,
    table: &TableCore,
    key: &[u8],
    at: Option<At>,
    resolver: &mut Resolver,
) -> Result<Option<Arc<SegmentMap>>> {
    loop {
        let round = engine.values.files.round();
        let own = collect(engine, table, key, at, resolver)?;
        if !resolver.is_separated() {
            return Ok(None);
        }
        let of = match own {
            Some(own) => Some(Arc::clone(&own.segment_map)),
            None => engine.values.files.segment_map_of(round),
        };
        if of.is_some() {
            return Ok(of);
        }
    }
}

/// Feeds the records of `key` to the resolver, newest first. Returns the files that they are from,
/// if those are pinned.
fn collect(
    engine: &Engine,
    table: &TableCore,
    key: &[u8],
    at: Option<At>,
    resolver: &mut Resolver,
) -> Result<Option<Arc<PinnedFiles>>> {
    let mut search = Search::of(table, key, limit_at(at), resolver);
    let (view, memory) = view_with_memory(engine, table, read_at(engine, at))?;
    if let Some(own) = pinned::pinned_files_at(engine, at)? {
        search.pinned_runs(engine, &own)?;
        return Ok(Some(own));
    }
    note_chunks(engine, table, &memory);
    let mut tally = Tally::default();
    let searched = search.all(&view, &memory, None, &mut tally);
    engine.parts.count(&tally);
    note_joined(engine, table, search.runs_met);
    searched.map(|_| None)
}

/// A get has found its key in this many runs: see `state::repeats`.
#[inline]
fn note_joined(engine: &Engine, table: &TableCore, runs: usize) {
    if table.repeats.note_get(runs) {
        ask_for_merge(engine, table);
    }
}

#[cold]
fn ask_for_merge(engine: &Engine, table: &TableCore) {
    engine.work.stale.lock().insert(table.id);
    engine.bell.ring();
}

/// The view of a table, and its active memtable as of one moment, which is the view's.
fn view_with_memory(
    engine: &Engine,
    table: &TableCore,
    at: ReadAt<'_>,
) -> Result<(Arc<TableView>, MemtableView)> {
    table.view_with(|view| {
        engine.check_readable(table)?;
        Ok(view.active.at(at))
    })
}

/// Notes what a reader meets in memory.
#[inline]
pub(crate) fn note_chunks(engine: &Engine, table: &TableCore, memory: &MemtableView) {
    if table.chunk_reads.note(memory.chunks(), memory.chunk_records(), memory.chunk_bytes()) {
        ask_for_chunk_merge(engine, table);
    }
}

/// Readers have met chunks that should be merged.
#[cold]
fn ask_for_chunk_merge(engine: &Engine, table: &TableCore) {
    engine.work.chunked.lock().insert(table.id);
    engine.bell.ring();
}

/// The error of a key whose operands do not fold.
pub fn fold_failed(engine: &Engine, table: &TableCore, key: &[u8], cause: &Decline) -> Error {
    engine.counters.fold_failures.add(1);
    let key = table.rules.rules.key_codec().show_line(key);
    let message = format!(
        "the fold `{}` of table `{}` fails on key {key}: {cause}",
        table.rules.fold.spec(),
        table.name
    );
    Error::new(ErrorKind::FoldFailed, message)
}

/// The error of a record that does not match its kind.
pub fn damaged_record(table: &TableCore, cause: Malformed) -> Error {
    Error::new(ErrorKind::Corruption, format!("a record of table `{}`: {cause}", table.name))
}

#[inline]
fn cover_of(view: &TableView, table: &TableCore, key: &[u8], limit: Seq) -> Seq {
    view.range_deletes.newest_over(&table.rules.order, key, limit)
}

/// A search for the records of one key.
struct Search<'s> {
    table: &'s TableCore,
    key: &'s [u8],
    /// Newer records are not seen.
    limit: Seq,
    /// Older records are hidden by a range delete.
    cover: Seq,
    resolver: &'s mut Resolver,
    /// How many runs had records of the key.
    runs_met: usize,
    /// The present run has a record of the key, which may be hidden.
    has_record: bool,
    failure: Option<Error>,
}

impl<'s> Search<'s> {
    fn of(table: &'s TableCore, key: &'s [u8], limit: Seq, resolver: &'s mut Resolver) -> Search<'s> {
        resolver.clear();
        Search { table, key, limit, cover: 0, resolver, runs_met: 0, has_record: false, failure: None }
    }

    /// Takes the records of a view: in memory, and then in runs, of which a reader of several keys
    /// knows something beforehand. Returns whether those in memory were enough.
    #[inline]
    fn all(
        &mut self,
        view: &TableView,
        memory: &MemtableView,
        ahead: Option<Ahead<'_, '_>>,
        tally: &mut Tally,
    ) -> Result<bool> {
        let (order, key, seq) = (&self.table.rules.order, self.key, memory.seq());
        self.cover = cover_of(view, self.table, key, seq);
        let mut done = memory.get(order, key, &mut |record| self.take(record)).done;
        for sealed in &view.sealed {
            if done {
                break;
            }
            done = sealed.memtable.get(key, ReadAt::Seq(seq), |record| self.take(record)).done;
        }
        match self.failure.take() {
            Some(failure) => return Err(failure),
            None if done => return Ok(true),
            None => {}
        }
        match ahead {
            Some(Ahead { hash, probes, near_in, near }) => {
                let _ = self.look_through(probes, 0, (near_in, near), hash, tally)?;
            }
            None => self.runs(view, tally)?,
        }
        Ok(false)
    }

    /// Takes the next older record. Breaks when nothing older matters.
    #[inline]
    fn take(&mut self, record: Record<'_>) -> ControlFlow<()> {
        self.has_record = true;
        if record.seq > self.limit {
            return ControlFlow::Continue(());
        }
        if record.seq < self.cover {
            return ControlFlow::Break(());
        }
        match self.resolver.feed_older(&self.table.rules.fold, self.key, record.kind, record.payload) {
            Ok(false) => ControlFlow::Continue(()),
            Ok(true) => ControlFlow::Break(()),
            Err(cause) => {
                self.failure = Some(damaged_record(self.table, cause));
                ControlFlow::Break(())
            }
        }
    }

    /// Takes the records of pinned files.
    #[cold]
    fn pinned_runs(&mut self, engine: &Engine, own: &PinnedFiles) -> Result<()> {
        let view = own.view(self.table);
        engine.check_readable(self.table)?;
        self.cover = cover_of(&view, self.table, self.key, self.limit);
        let mut tally = Tally::default();
        let searched = self.runs(&view, &mut tally);
        engine.parts.count(&tally);
        searched
    }

    fn runs(&mut self, view: &TableView, tally: &mut Tally) -> Result<()> {
        if view.runs.is_empty() {
            return Ok(());
        }
        let hash = key_hash(self.key);
        for (number, runs) in view.runs.chunks(PROBED_TOGETHER).enumerate() {
            let mut probed: [Option<(&Part, Probe<'_>)>; PROBED_TOGETHER] = [None; PROBED_TOGETHER];
            for (slot, run) in probed.iter_mut().zip(runs) {
                *slot = self.probe(run, hash);
            }
            let older = view.runs.len() - number * PROBED_TOGETHER - runs.len();
            if self.look_through(&probed[..runs.len()], older, (0, None), hash, tally)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Takes the records of runs that were probed, and that are newer than so many others. The key
    /// may have come nearer to its block in one of them. Breaks when nothing older matters.
    fn look_through(
        &mut self,
        probed: &[Option<(&Part, Probe<'_>)>],
        older: usize,
        (near_in, mut near): (usize, Option<&mut Near<'_>>),
        hash: u64,
        tally: &mut Tally,
    ) -> Result<ControlFlow<()>> {
        for (number, slot) in probed.iter().enumerate() {
            let Some((part, probe)) = *slot else { continue };
            let rank = rank_of(number, probed.len() + older);
            let near = if number == near_in { near.take() } else { None };
            if self.look_into(part, (probe, near), rank, hash, tally)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The part of a run that may have the key, and its in-memory state for it.
    #[inline]
    fn probe<'v>(&self, run: &'v RunView, hash: u64) -> Option<(&'v Part, Probe<'v>)> {
        let part = &*run.part_of(&self.table.rules.order, self.key)?.file.part;
        Some((part, part.probe(self.key, hash, self.limit)))
    }

    /// Takes the records of a part. Breaks when nothing older matters.
    #[inline]
    fn look_into(
        &mut self,
        part: &Part,
        probed: (Probe<'_>, Option<&mut Near<'_>>),
        rank: Rank,
        hash: u64,
        tally: &mut Tally,
    ) -> Result<ControlFlow<()>> {
        let (key, limit) = (self.key, self.limit);
        let (visited, passes) = (self.resolver.visited(), tally.filter_passes());
        self.has_record = false;
        let mut take = |record: Record<'_>| Ok(self.take(record));
        let flow = part.get_probed(probed, rank, key, hash, limit, tally, &mut take)?;
        self.runs_met += usize::from(self.resolver.visited() > visited);
        if !self.has_record {
            tally.count_false_passes_since(passes);
        }
        self.failure.take().map_or(Ok(flow), Err)
    }
}
