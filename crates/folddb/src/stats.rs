//! What the store says about itself in figures.

use std::sync::Arc;

use folddb_base::{FileNumber, Result, Seq};
use folddb_layout::values::VALUES_HEADER_BYTES;

use crate::store::Store;
use crate::table_stats;
use crate::table_stats::TableStats;
use folddb_engine::background::state::Background;
use folddb_engine::background::{live_values, merge, reclaim, unflushed};
use folddb_engine::edit::old_snapshots;
use folddb_engine::recovery::format::is_frozen;
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::engine::Engine;
use folddb_engine::state::pressure;
use folddb_engine::values::segments;

/// Figures of a store. Counters begin at the opening.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreStats {
    /// The last seq that readers see: records ever written.
    pub last_seq: Seq,
    /// Batches committed.
    pub commits: u64,
    /// Records written.
    pub records_written: u64,
    /// Bytes of the records as written by users, with a few bytes of framing each.
    pub user_bytes: u64,
    /// Bytes appended to the journal.
    pub journal_bytes: u64,
    /// Bytes of part files written by flushes and merges.
    pub part_bytes_written: u64,
    /// Memtables flushed.
    pub flushes: u64,
    /// Merges finished.
    pub merges: u64,
    /// Records that merges took in.
    pub records_merged: u64,
    /// Gets answered.
    pub gets: u64,
    /// The most records that one get has visited.
    pub operands_visited_max: u64,
    /// Times a fold failed on a key, in reads, flushes and merges.
    pub fold_failures: u64,
    /// Microseconds that writers were delayed by back pressure.
    pub writer_delay_us: u64,
    /// Times a writer waited because memory was full.
    pub stalls: u64,
    /// Background work that is owed now, in seconds of it. Writers are slowed from half a second on, smoothly.
    pub debt_s: f64,
    /// Times background work failed and tried again.
    pub background_retries: u64,
    /// Bytes in memtables, sealed ones included.
    pub memtable_bytes: u64,
    /// Bytes of blocks in the cache.
    pub cache_bytes: u64,
    /// Blocks and other pieces read from files.
    pub pieces_read: u64,
    /// Bytes read from files for gets and scans.
    pub bytes_read: u64,
    /// Bytes of part files and segments.
    pub disk_bytes: u64,
    /// Segments of the journal.
    pub segments: u64,
    /// Files of the value log.
    pub value_segments: u64,
    /// Bytes in them: of those that are full, what they hold, of the others their length.
    pub value_bytes: u64,
    /// As much of that as runs point to, and indexes of hashed tables, of these about: what memtables point to is not counted yet.
    pub value_live_bytes: u64,
    /// Values that were read from the value log. Keys, heads and what only counts them read none.
    pub value_reads: u64,
    /// Records of hashed tables of which only the front was read: by heads, by scans of keys, and by writes that looked for what
    /// they replace.
    pub value_head_reads: u64,
    /// Bytes written to the value log.
    pub value_bytes_written: u64,
    /// Memory of the indexes of hashed tables, in bytes.
    pub index_bytes: u64,
    /// As much of that as the system has promised not to swap out.
    pub index_locked_bytes: u64,
    /// Pieces of indexes that were read from their checkpoints.
    pub index_loads: u64,
    /// Indexes saved.
    pub indexes_saved: u64,
    /// Bytes of the checkpoints that were written.
    pub index_bytes_written: u64,
    /// Segments of the value log that were given back, since nothing pointed to them any more.
    pub value_segments_reclaimed: u64,
    /// Times that living values were moved together.
    pub reclaims: u64,
    /// Bytes written for that.
    pub value_bytes_copied: u64,
    /// Bytes of files of values that were given back, less what was written for it.
    pub value_bytes_given_back: u64,
    /// Records whose values had expired and that flushes and merges have swept away.
    pub records_expired: u64,
    /// Times that a feed has lost its place.
    pub feeds_lost: u64,
    /// Entries of indexes that finds have met.
    pub index_entries_met: u64,
    /// As many of those were stale: their records have other terms by now.
    pub index_entries_stale: u64,
    /// Stale entries that merges have left out.
    pub index_entries_cleaned: u64,
    /// Live snapshots.
    pub snapshots: u64,
    /// As many of them as read files of their own.
    pub snapshots_in_files: u64,
    /// Bytes of files, of runs and of values, that only those keep.
    pub snapshot_file_bytes: u64,
    /// Seconds since the oldest live snapshot was taken.
    pub oldest_snapshot_s: Option<f64>,
    /// Damage that merges have met, what sweeps and saves indexes, and what moves values: the tables and files that they leave alone since, and why.
    pub damage: Vec<String>,
    /// Why writes are refused for lack of space, if they are.
    pub short_of_space: Option<String>,
    /// The failure that has poisoned the store, if one has.
    pub poisoned_by: Option<String>,
    /// Whether the store is frozen, so that it is opened for reading only.
    pub is_frozen: bool,
}

/// A file of the value log: a segment, or values of segments that were moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueSegment {
    /// Its number: the higher, the younger.
    pub number: u64,
    /// Bytes of it that count; of one that is still added to, its length.
    pub bytes: u64,
    /// Values in it that runs or memtables point to, or indexes of hashed tables. Those that two runs
    /// or memtables point to count twice.
    pub live_values: u64,
    /// Bytes of the records of those.
    pub live_bytes: u64,
    /// Nothing is added to it any more.
    pub is_sealed: bool,
    /// It is a directory, and each value in it is a file.
    pub in_files: bool,
    /// The segments whose values lie in it: itself, or those that were moved into it.
    pub segments: Vec<u64>,
}

impl ValueSegment {
    /// Bytes of it that nothing points to, but for the header of its file: what reclaim gives back at most.
    pub fn dead_bytes(&self) -> u64 {
        let header_bytes = if self.in_files { 0 } else { VALUES_HEADER_BYTES as u64 };
        self.bytes.saturating_sub(self.live_bytes + header_bytes)
    }
}

impl Store {
    /// The store in figures.
    pub fn stats(&self) -> StoreStats {
        stats(self.background())
    }

    /// A table in figures, with the shape of its runs.
    ///
    /// # Errors
    /// [`crate::ErrorKind::TableNotFound`].
    pub fn table_stats(&self, table: &str) -> Result<TableStats> {
        let table = self.bytes_table(table)?;
        let stats = table_stats::table_stats(table.core());
        self.engine().check_readable(table.core())?;
        Ok(stats)
    }

    /// The files of the value log, oldest first.
    pub fn value_segments(&self) -> Vec<ValueSegment> {
        value_segments(self.engine())
    }
}

/// The segments, oldest first, with what parts point to in each. What two parts point to counts twice, but no more than there is.
fn value_segments(engine: &Engine) -> Vec<ValueSegment> {
    let mut used = live_values::alive(engine);
    unflushed::add_unflushed(engine, &mut used);
    let state = Arc::clone(engine.manifest.lock().state());
    let file = |number: u64, bytes: u64, is_sealed: bool, segments: Vec<u64>| {
        let alive = segments.iter().filter_map(|&segment| used.get(&(segment as u32)));
        let (live_values, live_bytes) =
            alive.fold((0, 0), |(values, bytes), one| (values + one.values, bytes + one.bytes));
        // A slot does not know how long a long value is, but a directory how many it has.
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
    let counters = &engine.counters;
    let reads = engine.parts.stats();
    let memtables = |table: &Arc<TableCore>| table_stats::table_stats(table).memtable_bytes;
    let snapshots = engine.boundaries.summary();
    let now = engine.host.clock.monotonic();
    let catalog = engine.catalog();
    let hashed = catalog.all().filter_map(|table| table.hashed.as_ref());
    let indexes: Vec<_> = hashed.map(|hashed| hashed.index.facts()).collect();
    let (value_segments, value_bytes) = (segments::value_segments_listed(engine), engine.values.bytes());
    StoreStats {
        last_seq: engine.published(),
        commits: counters.commits.get(),
        records_written: counters.records_written.get(),
        user_bytes: counters.user_bytes.get(),
        journal_bytes: counters.journal_bytes.get(),
        part_bytes_written: counters.part_bytes_written.get(),
        flushes: counters.flushes.get(),
        merges: counters.merges.get(),
        records_merged: counters.records_merged.get(),
        gets: counters.gets.get(),
        operands_visited_max: counters.operands_visited_max.get(),
        fold_failures: counters.fold_failures.get(),
        writer_delay_us: counters.writer_delay_us.get(),
        stalls: counters.stalls.get(),
        debt_s: pressure::debt_now(engine).seconds(),
        background_retries: counters.background_retries.get(),
        memtable_bytes: engine.catalog().all().map(memtables).sum(),
        cache_bytes: reads.cache_bytes,
        pieces_read: reads.pieces_read,
        bytes_read: reads.bytes_read,
        disk_bytes: pressure::used_bytes(engine),
        segments: engine.journal.as_ref().map_or(0, |journal| journal.segments().len() as u64),
        value_segments,
        value_bytes,
        value_live_bytes: live_values::value_live_bytes(engine),
        value_reads: counters.value_reads.get(),
        value_head_reads: counters.value_head_reads.get(),
        value_bytes_written: counters.value_bytes_written.get(),
        index_bytes: indexes.iter().map(|facts| facts.memory_bytes).sum(),
        index_locked_bytes: indexes.iter().map(|facts| facts.locked_bytes).sum(),
        index_loads: indexes.iter().map(|facts| facts.loads).sum(),
        indexes_saved: counters.indexes_saved.get(),
        index_bytes_written: counters.index_bytes_written.get(),
        value_segments_reclaimed: counters.value_segments_reclaimed.get(),
        reclaims: counters.reclaims.get(),
        value_bytes_copied: counters.value_bytes_copied.get(),
        value_bytes_given_back: counters.value_bytes_given_back.get(),
        records_expired: counters.records_expired.get(),
        feeds_lost: counters.feeds_lost.get(),
        index_entries_met: counters.entries_met.get(),
        index_entries_stale: counters.entries_stale.get(),
        index_entries_cleaned: counters.entries_cleaned.get(),
        snapshots: snapshots.holders as u64,
        snapshots_in_files: snapshots.in_files as u64,
        snapshot_file_bytes: old_snapshots::own_file_bytes(engine),
        oldest_snapshot_s: snapshots.since.map(|since| now.saturating_sub(since).as_secs_f64()),
        damage: merge::damage_met(background)
            .into_iter()
            .chain(reclaim::damaged_values(background))
            .collect(),
        short_of_space: engine.health.short_of_space(),
        poisoned_by: engine.health.cause().map(|cause| cause.message().to_owned()),
        is_frozen: engine.options.read_only && is_frozen(&*engine.host.files, &engine.dir),
    }
}
