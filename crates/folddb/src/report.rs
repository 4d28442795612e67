//! What the store says about itself: figures, the shape of its runs, and where the records of a key lie.

use std::sync::Arc;

use folddb_base::checksum::key_hash;
use folddb_base::ids::RunId;
use folddb_base::pointer::VALUE_ALIGN;
use folddb_base::stamp::NEVER;
use folddb_base::{FileNumber, OpKind, Result, Seq, Stamp};
use folddb_engine::background::jobs::Background;
use folddb_engine::background::{live_values, merge, reclaim, unflushed};
use folddb_engine::edit::old_snapshots;
use folddb_engine::read::hashed;
use folddb_engine::read::hashed::As;
use folddb_engine::recovery::format::is_frozen;
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::engine::Engine;
use folddb_engine::state::hash_index::Hashed;
use folddb_engine::state::{clock, pressure};
use folddb_engine::values::hashed_record::Reading;
use folddb_engine::values::segments;
use folddb_layout::values::VALUES_HEADER_BYTES;
use folddb_merge::Times as MergeTimes;
use folddb_rules::Keep;

use crate::store::Store;
use crate::table::BytesTable;
use crate::table_stats;
use crate::table_stats::TableStats;

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

/// One record of a key, and where it lies.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// Where: a part of a memtable, or run and file.
    pub place: Place,
    /// Its seq. Where a run keeps none, the newest seq of its part; 0 in a hashed table, which keeps none.
    pub seq: Seq,
    /// What it does.
    pub kind: OpKind,
    /// Its payload, as stored.
    pub payload: Vec<u8>,
    /// When it was written, in milliseconds since 1970, as far as its table keeps that.
    pub written_ms: Option<u64>,
    /// Until when what it brings lasts, in milliseconds since 1970; none where that is for ever.
    pub deadline_ms: Option<u64>,
    /// Why it is still there.
    pub why: String,
}

/// Where a record lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the memtable that is written to: the tail or a chunk.
    Memtable(String),
    /// In a memtable that waits for its flush.
    Sealed(String),
    /// In the value log, where the index of a hashed table leads.
    Values {
        /// The segment.
        segment: u32,
        /// Where its record begins, in bytes.
        offset: u64,
    },
    /// In a run.
    Run {
        /// The run.
        run: RunId,
        /// Its tier.
        tier: u8,
        /// The file.
        file: FileNumber,
    },
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Memtable(part) => write!(f, "memtable, {part}"),
            Place::Sealed(part) => write!(f, "sealed memtable, {part}"),
            Place::Values { segment, offset } => write!(f, "value segment {segment}, offset {offset}"),
            Place::Run { run, tier, file } => write!(f, "tier {tier}, run {run}, file {file}"),
        }
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

impl BytesTable {
    /// Every record of `key`, newest first: where it lies and why it is still there.
    ///
    /// # Errors
    /// Damage, or a failed read.
    pub fn explain(&self, key: &[u8]) -> Result<Vec<Explained>> {
        if let Some(hashed) = &self.core.hashed {
            return self.explain_hashed(hashed, key);
        }
        let mut found = Vec::new();
        let view = self.core.view();
        self.engine.check_readable(&self.core)?;
        view.active
            .explain(key, |at, record| found.push(self.explained(Place::Memtable(at.to_string()), &record)));
        for sealed in &view.sealed {
            sealed.memtable.explain(key, |at, record| {
                found.push(self.explained(Place::Sealed(at.to_string()), &record))
            });
        }
        let hash = key_hash(key);
        let order = &self.core.rules.order;
        for run in view.runs.iter() {
            for part in &run.parts {
                if order.compare(key, &part.low).is_lt() || order.compare(key, &part.high).is_gt() {
                    continue;
                }
                let place = Place::Run { run: run.id, tier: run.tier, file: part.file.number };
                let _all = part.file.part.get(key, hash, Seq::MAX, &mut |record| {
                    found.push(self.explained(place.clone(), &record));
                    Ok(std::ops::ControlFlow::Continue(()))
                })?;
            }
        }
        found.sort_by_key(|record| std::cmp::Reverse(record.seq));
        let ranges = view.range_deletes.all_over(order, key);
        let kept = Kept {
            boundaries: self.engine.boundaries.all(),
            times: clock::times_to_keep(&self.engine, &self.core),
            keep: self.core.rules.rules.keep,
            ranges,
        };
        for index in 0..found.len() {
            found[index].why = kept.why(&found, index);
        }
        Ok(found)
    }
}

impl BytesTable {
    /// A record, but for why it is there. Its times are those of its stamp; where it has none, that of its seq.
    fn explained(&self, place: Place, record: &folddb_base::Record<'_>) -> Explained {
        let has_stamps = self.core.rules.fold.has_stamps();
        let stamp = if has_stamps { Stamp::of(record.kind, record.payload).ok().flatten() } else { None };
        let noted_ms = || if self.core.is_timed { clock::time_of(&self.engine, record.seq) } else { None };
        Explained {
            place,
            seq: record.seq,
            kind: record.kind,
            payload: record.payload.to_vec(),
            written_ms: stamp.map(|stamp| stamp.write_ms).or_else(noted_ms),
            deadline_ms: stamp.map(|stamp| stamp.deadline_ms).filter(|&deadline_ms| deadline_ms < NEVER),
            why: String::new(),
        }
    }

    /// The newest record of a key of a hashed table; older versions are its history.
    fn explain_hashed(&self, hashed: &Hashed, key: &[u8]) -> Result<Vec<Explained>> {
        let (engine, core) = (&self.engine, &*self.core);
        let mut record = Vec::new();
        let found = hashed::look_up(engine, (core, hashed), key, As::Reader, Reading::Short, &mut record)?;
        let of = engine.values.files.present();
        let explained = |found: folddb_engine::values::hashed_record::Found| Explained {
            place: Place::Values {
                segment: of.number_of(found.slot.segment()).unwrap_or(found.slot.segment()),
                offset: u64::from(found.slot.unit()) * VALUE_ALIGN,
            },
            seq: 0,
            kind: OpKind::Set,
            payload: found.value(&record).to_vec(),
            written_ms: found.front.map(|front| front.stamp.write_ms),
            deadline_ms: found.deadline_ms(),
            why:
                "it is what the key has: a hashed table resolves each op when it is written, and keeps no seq"
                    .to_owned(),
        };
        Ok(found.map(explained).into_iter().collect())
    }
}

/// What keeps the records of a key apart.
struct Kept {
    /// The seqs of the live snapshots, rising.
    boundaries: Vec<Seq>,
    /// What merges keep of the past, and the rule that says so.
    times: MergeTimes,
    keep: Keep,
    /// The seqs of the range deletes over the key.
    ranges: Vec<Seq>,
}

impl Kept {
    /// Why a record has not been folded into its neighbour yet.
    fn why(&self, records: &[Explained], index: usize) -> String {
        let Some(newer) = index.checked_sub(1).map(|newer| &records[newer]) else {
            return "it is the newest".to_owned();
        };
        let record = &records[index];
        let boundary =
            self.boundaries.iter().find(|&&boundary| record.seq <= boundary && boundary < newer.seq);
        match boundary {
            _ if self.is_kept_as_it_is(newer.seq, index) => {
                let keep = self.keep;
                format!(
                    "the table keeps its past (keep={keep}), so no merge folds it into the next newer one"
                )
            }
            Some(boundary) => format!("a snapshot at {boundary} sees it without the newer ones"),
            None if newer.place == record.place => "it does not compose with the next newer one".to_owned(),
            None => "no merge has met it together with the newer ones yet".to_owned(),
        }
    }

    /// Whether merges leave the record of this seq as it is, so many of the records of its key being as new as that.
    fn is_kept_as_it_is(&self, seq: Seq, records: usize) -> bool {
        let events = records + self.ranges.iter().filter(|&&range| range > seq).count();
        events < self.times.newest as usize || seq > self.times.since
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
