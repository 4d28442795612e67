//! Applies the records of the log that are not in runs, frame by frame, through the same call as a
//! write.
//!
//! Nothing of it is trusted to be durable: after a failed sync the page cache may show bytes that
//! the disk does not have. So values are rewritten in place, and memtables that fill up are written
//! to parts (`rewrites.rs`), which one edit lists in the end (`install.rs`). If a store is opened
//! for reading, everything must fit in memory.

use std::sync::Arc;

use folddb_base::{Error, FileNumber, Lsn, Result, Seq, TableId, error};
use folddb_host::sync::atomic::Ordering;
use folddb_journal::{LogEnd, ReplayFrame, ReplayFrom};
use folddb_manifest::{ArchivedLog, State, TableState};

use crate::recovery::archived_tail::Tail;
use crate::recovery::rewrites::{Rewrites, rewrite};
use crate::recovery::secondary;
use crate::state::catalog::TableCore;
use crate::state::committer::{Active, Committer};
use crate::state::engine::Engine;
use crate::values::at_rest::ValuesAtRest;
use crate::values::load::rope_of;
use crate::values::repair::ValueRepair;
use crate::write::commit;

/// The result of replaying the log.
pub(crate) struct Replay {
    pub(crate) end_lsn: Lsn,
    /// Whether it had any batch.
    pub(crate) has_batches: bool,
    /// The end of the part that was read.
    pub(crate) read_to_lsn: Lsn,
    pub(crate) old_segments: Vec<FileNumber>,
    /// The end of the log, rewritten if feeds are to give it.
    pub(crate) kept: Option<ArchivedLog>,
    /// Memtables that filled up during replay.
    pub(crate) rewritten: Rewrites,
}

/// How much of a log fits in memory when it is opened for reading.
#[derive(Default)]
struct ReadOnlyRoom {
    /// Bytes of the batches so far.
    log_bytes: u64,
    /// Bytes of the memtables and of the batches when there was no more room.
    overflow: Option<(u64, u64)>,
}

impl ReadOnlyRoom {
    /// About how many bytes of memtables the whole log takes, if it did not fit.
    fn needed_bytes(&self) -> Option<u64> {
        let (memtable_bytes, log_bytes) = self.overflow?;
        let needed = u128::from(self.log_bytes) * u128::from(memtable_bytes) / u128::from(log_bytes.max(1));
        Some(u64::try_from(needed).unwrap_or(u64::MAX))
    }
}

/// Applies the records of the log that are not in runs, frame by frame, through the same call as a
/// write.
pub(crate) fn replay(engine: &Engine, state: &State, edits: u64) -> Result<Replay> {
    let mut committer = engine.commit.lock();
    committer.next_seq = state.last_seq + 1;
    let mut from = replay_from(state, edits);
    if engine.options.underlying.is_some() && from.end == LogEnd::Own {
        from.end = LogEnd::Growing;
    }
    let mut rewritten = Rewrites::default();
    let mut room = ReadOnlyRoom::default();
    let mut value_repair = ValueRepair::new(&*engine.host.files, &engine.dir, state);
    let mut tail = Tail::begin(engine, state)?;
    let values = ValuesAtRest::new(&engine.host.files, &engine.dir, state);
    let (mut is_beyond, mut known_to_lsn) = (false, state.log_start_lsn);
    let visit = &mut |frame: ReplayFrame<'_>| {
        is_beyond |= engine.options.underlying.is_some() && !secondary::is_known(frame.payload, state);
        if is_beyond {
            return Ok(()); // the writer has continued since the manifest was read
        }
        known_to_lsn = frame.end_lsn;
        check_known(&frame, state)?;
        if engine.options.read_only {
            return apply_in_room(engine, &mut committer, &mut room, &frame);
        }
        if !frame.is_durable {
            value_repair.take(&values, &frame)?;
        }
        apply_replayed(engine, &mut committer, &frame)?;
        tail.put(engine, &frame)?;
        // A log may hold more than fits in memory.
        let limits = (engine.options.memtable_bytes(), engine.options.range_deletes_per_flush());
        for table in full_tables(&committer, &frame, limits) {
            rewrite(engine, &mut committer, &table, &mut rewritten)?;
        }
        Ok(())
    };
    let has_values = &mut |frame: &ReplayFrame<'_>| {
        if engine.options.underlying.is_none() {
            check_known(frame, state)?; // an unlisted table or segment is no sign of a torn batch
        }
        values.has(frame)
    };
    let replayed = match state.values.is_empty() {
        true => folddb_journal::replay(&engine.host, &engine.dir, &from, visit),
        false => folddb_journal::replay_checked(&engine.host, &engine.dir, &from, has_values, visit),
    };
    let renewed = replayed.and_then(|replayed| value_repair.finish().map(|()| replayed));
    let replayed = renewed.inspect_err(|_| {
        rewritten.discard();
        tail.discard(engine);
    })?;
    if let Some(needed_bytes) = room.needed_bytes() {
        return Err(too_long_to_read(engine, needed_bytes));
    }
    if engine.options.read_only {
        with_stripes(engine, &mut committer, |active, stripes| active.memtable.freeze(stripes));
    }
    grow_cache(engine, &committer);
    // An interrupted recovery may have flushed records that the log has lost since: their seqs are
    // used. Also, times in the manifest for later seqs must not apply to earlier records.
    let flushed_seq = state.tables.values().map(TableState::last_seq).max().unwrap_or(0);
    let next_seq = (state.last_seq.max(flushed_seq) + 1).max(state.times.newest_seq());
    committer.next_seq = committer.next_seq.max(next_seq);
    engine.published.store(committer.next_seq - 1, Ordering::Release);
    let kept = tail.finish(engine, &replayed);
    let kept = kept.inspect_err(|_| rewritten.discard())?;
    let read_to_lsn = if is_beyond { known_to_lsn } else { replayed.cut_lsn };
    let (end_lsn, old_segments) = (replayed.end_lsn, replayed.segments);
    let has_batches = known_to_lsn > state.log_start_lsn;
    Ok(Replay { end_lsn, has_batches, read_to_lsn, old_segments, kept, rewritten })
}

/// A store in which nothing will be written gives its cache some of the unused share of memtables,
/// unless it is a secondary, which exists twice while it is refreshed.
fn grow_cache(engine: &Engine, committer: &Committer) {
    let options = &engine.options;
    if options.read_only && options.underlying.is_none() && options.shared.is_none() {
        let cache_bytes = options.cache_bytes_beside(committer.active_memtable_bytes());
        engine.parts.grow_cache(cache_bytes as u64);
    }
}

fn apply_replayed(engine: &Engine, committer: &mut Committer, frame: &ReplayFrame<'_>) -> Result<()> {
    committer.next_seq = frame.first_seq;
    if let Some(time_ms) = frame.time_ms {
        engine.times.note(frame.first_seq, time_ms);
    }
    commit::refresh_stripes(engine, committer);
    if let Some(published) = committer.stripes.last_mut() {
        *published = (*published).max(frame.first_seq.saturating_sub(1));
    }
    commit::apply(engine, committer, frame.first_seq, frame.lsn, frame.payload, &mut |table, range| {
        table.change_view(|view| view.with_range_delete(&table.rules.order, range));
    })?;
    let last_seq = frame.first_seq + u64::from(frame.count) - 1;
    committer.next_seq = last_seq + 1;
    commit::publish(engine, committer, last_seq);
    let full = std::mem::take(&mut committer.full);
    if !full.is_empty() {
        commit::seal_tails(engine, &full);
        committer.recount(&full);
    }
    tables_of(frame).for_each(|table| committer.count_bytes(table));
    Ok(())
}

/// Calls `act` on all active memtables. It may fold records together, so it needs the stripes:
/// range deletes that are only in the log are boundaries, too.
fn with_stripes(engine: &Engine, committer: &mut Committer, mut act: impl FnMut(&mut Active, &[Seq])) {
    committer.stripes_version = u64::MAX;
    commit::refresh_stripes(engine, committer);
    let Committer { active, stripes, .. } = committer;
    active.iter_mut().flatten().for_each(|active| act(active, stripes));
}

/// Replays into memory alone, as far as it has room: without writes, nothing can make room. The
/// rest is only measured.
fn apply_in_room(
    engine: &Engine,
    committer: &mut Committer,
    room: &mut ReadOnlyRoom,
    frame: &ReplayFrame<'_>,
) -> Result<()> {
    room.log_bytes += frame.payload.len() as u64;
    if room.overflow.is_some() {
        return Ok(());
    }
    apply_replayed(engine, committer, frame)?;
    let max = engine.options.replayed_bytes_max();
    if committer.active_bytes <= max {
        return Ok(());
    }
    with_stripes(engine, committer, |active, stripes| {
        active.memtable.freeze(stripes); // drops what only writing needs
        while active.memtable.merge_step(stripes) {}
        active.bytes = active.memtable.bytes();
    });
    let bytes = committer.active_memtable_bytes();
    if bytes > max / 8 * 7 {
        room.overflow = Some((bytes as u64, room.log_bytes));
        committer.active.clear();
        committer.written.clear();
    }
    Ok(())
}

fn too_long_to_read(engine: &Engine, needed_bytes: u64) -> Error {
    let needed = engine.options.memory_bytes_for_replayed(needed_bytes);
    Error::invalid(format!(
        "the log of {} holds more than fits a memory of {} bytes, and a store opened for reading cannot flush it: \
             open the store for writing once, or give it {needed} bytes of memory",
        engine.dir.display(),
        engine.options.memory_bytes,
    ))
}

/// The log names only tables and value segments that the manifest has listed: if it names others,
/// the end of the manifest is lost.
///
/// # Errors
/// It names another one.
pub fn check_known(frame: &ReplayFrame<'_>, state: &State) -> Result<()> {
    let lacks = |what: String| {
        error::lacking(format!(
            "the log at LSN {} {what} that the manifest does not have: its end is lost",
            frame.lsn
        ))
    };
    for record in folddb_layout::frame::records(frame.payload).flatten() {
        if record.table.0 >= state.next_table_id {
            return Err(lacks("names a table".to_owned()));
        }
        let Some(rope) = rope_of(&record) else { continue };
        let mut segments = rope.pointers().map(|pointer| FileNumber(pointer.place.segment.into()));
        if let Some(segment) = segments.find(|segment| !state.has_values(*segment)) {
            return Err(lacks(format!("leads to segment {segment} of values")));
        }
    }
    Ok(())
}

/// The tables to write out while replaying: those of a frame whose memtables are full, and all of
/// them when together they take twice as many bytes as one may.
fn full_tables(
    committer: &Committer,
    frame: &ReplayFrame<'_>,
    (bytes_max, range_deletes_max): (usize, usize),
) -> Vec<Arc<TableCore>> {
    let table = |active: &Active| Arc::clone(&active.table);
    if committer.active_bytes >= 2 * bytes_max {
        return committer.written().filter(|active| active.bytes > 0).map(table).collect();
    }
    let active = tables_of(frame).filter_map(|id| committer.active.get(id.0 as usize)?.as_ref());
    active.filter(|active| active.is_full(bytes_max, range_deletes_max)).map(table).collect()
}

/// The tables of the records in a frame; neighboring records of one table count once.
fn tables_of<'f>(frame: &ReplayFrame<'f>) -> impl Iterator<Item = TableId> + use<'f> {
    let mut before = None;
    let records = folddb_layout::frame::records(frame.payload);
    let ids = records.map_while(|record| record.ok().map(|record| record.table));
    ids.filter(move |id| before.replace(*id) != Some(*id))
}

/// Where the log begins and what is known of it, from a manifest of this many edits.
pub fn replay_from(state: &State, edits: u64) -> ReplayFrom {
    ReplayFrom {
        store_id: state.store_id,
        log_start_lsn: state.log_start_lsn,
        durable_lsn: state.feeds.all().map(|feed| feed.lsn).fold(state.durable_lsn, Lsn::max), // what feeds gave is
        is_open: state.log_open,
        end: if is_copied(state, edits) { LogEnd::Copied } else { LogEnd::Own },
    }
}

/// Whether the log is a copy up to where it was durable, in a backup or restored from one.
/// Manifests of older versions do not say it: there, a manifest that is only a snapshot and yet
/// names a log is that of a copy, or of an interrupted opening by such a version.
pub(crate) fn is_copied(state: &State, edits: u64) -> bool {
    state.log_copied.unwrap_or(edits == 1 && state.durable_lsn > state.log_start_lsn)
}
