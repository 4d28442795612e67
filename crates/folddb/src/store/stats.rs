//! `Store::stats`: collects the figures of a store.

use std::sync::Arc;

use folddb_base::FileNumber;
use folddb_hash::IndexFacts;
use folddb_layout::file_name::FileName;
use folddb_layout::values::VALUES_HEADER_BYTES;

use crate::store::Store;
use crate::store::metrics::{
    BackgroundStats, DiskStats, MemoryStats, ReadStats, SnapshotStats, StoreStats, WriteStats,
};
use crate::table::stats;
use folddb_engine::background::state::Background;
use folddb_engine::background::{live_values, merge, reclaim, unflushed};
use folddb_engine::edit::old_snapshots;
use folddb_engine::recovery::format::is_frozen;
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::engine::Engine;
use folddb_engine::state::pressure;
use folddb_engine::values::segments;

/// A file of the value log: a segment, or relocated values of segments.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueSegment {
    /// Its number: the higher, the younger.
    pub number: u64,
    /// Its valid bytes; for one that is still written, its length.
    pub bytes: u64,
    /// Values in it that runs, memtables, or indexes of hashed tables point to. Those that two runs
    /// or memtables point to count twice.
    pub live_values: u64,
    /// Bytes of the records of those.
    pub live_bytes: u64,
    /// It is complete.
    pub is_sealed: bool,
    /// It is a directory, and each value in it is a file.
    pub in_files: bool,
    /// The segments whose values are in it: itself, or those that were relocated to it.
    pub segments: Vec<u64>,
}

impl ValueSegment {
    /// Bytes of it that nothing points to, without the header of its file: the most that reclaim
    /// can free.
    pub fn dead_bytes(&self) -> u64 {
        let header_bytes = if self.in_files { 0 } else { VALUES_HEADER_BYTES as u64 };
        self.bytes.saturating_sub(self.live_bytes + header_bytes)
    }
}

impl Store {
    /// The figures of the store.
    pub fn stats(&self) -> StoreStats {
        match self.engine().check_here() {
            Ok(()) => stats(self.background()),
            Err(_) => StoreStats::default(),
        }
    }

    /// The files of the value log, oldest first.
    pub fn value_segments(&self) -> Vec<ValueSegment> {
        match self.engine().check_here() {
            Ok(()) => value_segments(self.engine()),
            Err(_) => Vec::new(),
        }
    }
}

/// The segments, oldest first, with what parts point to in each. Values that two parts point to
/// count twice, but at most all bytes of the file count.
fn value_segments(engine: &Engine) -> Vec<ValueSegment> {
    let mut used = live_values::alive(engine);
    unflushed::add_unflushed(engine, &mut used);
    let state = Arc::clone(engine.manifest.lock().state());
    let file = |number: u64, bytes: u64, is_sealed: bool, segments: Vec<u64>| {
        let alive = segments.iter().filter_map(|&segment| used.get(&(segment as u32)));
        let (live_values, live_bytes) =
            alive.fold((0, 0), |(values, bytes), one| (values + one.values, bytes + one.bytes));
        // A slot does not have the length of a long value, but a directory has its number of files.
        let is_all_alive =
            state.directories.get(&FileNumber(number)).is_some_and(|had| *had == Some(live_values));
        let live_bytes = if is_all_alive { bytes } else { live_bytes };
        ValueSegment {
            number,
            bytes,
            live_values,
            live_bytes: live_bytes.min(bytes),
            is_sealed,
            in_files: state.is_directory(FileNumber(number)),
            segments,
        }
    };
    let own = state.values.iter().map(|(&FileNumber(number), end)| {
        file(number, segments::segment_bytes(engine, &state, FileNumber(number)), end.is_some(), vec![number])
    });
    let moved = state.relocated_files.iter().map(|(&number, &bytes)| {
        file(number.0, bytes, true, state.moved_in(number).map(|segment| segment.0).collect())
    });
    let mut files: Vec<ValueSegment> = own.chain(moved).collect();
    files.sort_by_key(|file| file.number);
    files
}

fn stats(background: &Background) -> StoreStats {
    let engine = &background.engine;
    let indexes = indexes_of(engine);
    StoreStats {
        writes: write_stats(engine),
        reads: read_stats(engine, &indexes),
        memory: memory_stats(engine, &indexes),
        disk: disk_stats(engine),
        background: background_stats(engine),
        snapshots: snapshot_stats(engine),
        last_seq: engine.published().into(),
        damage: merge::damage_met(background)
            .into_iter()
            .chain(reclaim::damaged_values(background))
            .collect(),
        short_of_space: engine.health.short_of_space(),
        poisoned_by: engine.health.cause().map(|cause| cause.message().to_owned()),
        is_frozen: engine.options.read_only && is_frozen(&*engine.host.files, &engine.dir),
    }
}

/// The facts of the indexes of all hashed tables.
fn indexes_of(engine: &Engine) -> Vec<IndexFacts> {
    let catalog = engine.catalog();
    let hashed = catalog.all().filter_map(|table| table.hashed.as_ref());
    hashed.map(|hashed| hashed.index.facts()).collect()
}

fn write_stats(engine: &Engine) -> WriteStats {
    let counters = &engine.counters;
    WriteStats {
        commits: counters.written.commits.get(),
        records: counters.written.records.get(),
        user_bytes: counters.written.user_bytes.get(),
        log_bytes: counters.written.log_bytes.get(),
        value_bytes: counters.value_bytes_written.get(),
        delay_us: counters.writer_delay_us.get(),
        stalls: counters.stalls.get(),
    }
}

fn read_stats(engine: &Engine, indexes: &[IndexFacts]) -> ReadStats {
    let (counters, parts) = (&engine.counters, engine.parts.stats());
    ReadStats {
        gets: counters.gets.get(),
        operands_visited_max: counters.operands_visited_max.get(),
        fold_failures: counters.fold_failures.get(),
        pieces: parts.pieces_read,
        bytes: parts.bytes_read,
        values: counters.value_reads.get(),
        value_heads: counters.value_head_reads.get(),
        index_loads: indexes.iter().map(|facts| facts.loads).sum(),
        index_entries: counters.entries_read.get(),
        index_entries_stale: counters.entries_stale.get(),
    }
}

fn memory_stats(engine: &Engine, indexes: &[IndexFacts]) -> MemoryStats {
    let memtables = |table: &Arc<TableCore>| stats::table_stats(table).memtable_bytes;
    MemoryStats {
        memtable_bytes: engine.catalog().all().map(memtables).sum(),
        cache_bytes: engine.parts.stats().cache_bytes,
        index_bytes: indexes.iter().map(|facts| facts.memory_bytes).sum(),
        index_locked_bytes: indexes.iter().map(|facts| facts.locked_bytes).sum(),
    }
}

fn disk_stats(engine: &Engine) -> DiskStats {
    let (value_segments, value_bytes) = (segments::value_segments_listed(engine), engine.values.bytes());
    let (log_segments, unopened_log_bytes) = match &engine.journal {
        Some(journal) => (journal.segments().len() as u64, 0),
        None => log_on_disk(engine),
    };
    DiskStats {
        bytes: pressure::used_bytes(engine) + unopened_log_bytes,
        log_segments,
        value_segments,
        value_bytes,
        value_live_bytes: live_values::value_live_bytes(engine),
        snapshot_file_bytes: old_snapshots::own_file_bytes(engine),
    }
}

/// How many files the log of a store has that is opened for reading, and their bytes: such an
/// engine reads the log and does not keep it open, but it takes space nevertheless.
fn log_on_disk(engine: &Engine) -> (u64, u64) {
    let files = &*engine.host.files;
    let names = files.list(&engine.dir).unwrap_or_default();
    let logs = names.iter().filter(|name| matches!(FileName::parse(name), Some(FileName::Log(_))));
    let bytes = logs.filter_map(|name| files.len_bytes(&engine.dir.join(name)).ok());
    bytes.fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes))
}

fn background_stats(engine: &Engine) -> BackgroundStats {
    let counters = &engine.counters;
    BackgroundStats {
        flushes: counters.flushes.get(),
        merges: counters.merges.get(),
        records_merged: counters.records_merged.get(),
        part_bytes: counters.part_bytes_written.get(),
        indexes_saved: counters.indexes_saved.get(),
        index_bytes: counters.index_bytes_written.get(),
        reclaims: counters.reclaims.get(),
        value_bytes_copied: counters.value_bytes_copied.get(),
        value_bytes_given_back: counters.value_bytes_given_back.get(),
        value_segments_reclaimed: counters.value_segments_reclaimed.get(),
        records_expired: counters.records_expired.get(),
        index_entries_cleaned: counters.entries_cleaned.get(),
        debt_s: pressure::debt_now(engine).seconds(),
        retries: counters.background_retries.get(),
        feeds_lost: counters.feeds_lost.get(),
    }
}

fn snapshot_stats(engine: &Engine) -> SnapshotStats {
    let snapshots = engine.boundaries.summary();
    let now = engine.host.clock.monotonic();
    SnapshotStats {
        live: snapshots.holders as u64,
        in_files: snapshots.in_files as u64,
        oldest_s: snapshots.since.map(|since| now.saturating_sub(since).as_secs_f64()),
    }
}
