//! One running reclaim: the live values of some files are copied into one, in steps, and one edit
//! swaps it in.
//!
//! ```text
//!   ask      each source of pointers into the files: which units
//!   copy     segment by segment, in the order of the old files; each record is checked on its way
//!   install  the new file is synced, its name too; one edit; a new segment map
//! ```
//!
//! **Why nothing is lost.** The files are settled when the job begins: only parts and the indexes
//! of hashed tables point into them, and all parts listed at that time are read. Parts listed later
//! were merged from those and point to no other units. An index is read shard by shard, and last
//! what it keeps for snapshots: an entry that was replaced after its shard was read, or is being
//! replaced, is there as long as a snapshot needs it. Readers with a view from before the edit also
//! have a segment map from before it, and with it the complete old files; those with a later view
//! find every unit that its parts point to in the new file. Nothing else is affected: no index
//! changes, no writer waits.
//!
//! **In memory** it holds at most twenty bytes for each live value of its files (the units, and the
//! map), a window for each file with several segments, and a buffer.
//!
//! Stepped by `reclaim.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use folddb_base::{Error, ErrorKind, FileNumber, Result, TableId, error};
use folddb_hash::SegmentTally;
use folddb_layout::relocated::Move;
use folddb_manifest::{Change, State};
use folddb_merge::ReclaimPlan;
use folddb_value_log::ValuesEnd;
use folddb_value_log::relocated::{CopyFault, RelocatedFile, RelocatedWriter, Source, relocated_path};

use crate::background::live_values;
use crate::background::live_values::Holder;
use crate::edit::install;
use crate::events::{Event, ReclaimEvent};
use crate::state::disk_quota::SpaceUser;
use crate::state::engine::Engine;
use crate::state::hash_index::low_bits;
use crate::state::log_sync;
use crate::values::segments;
use folddb_value_log::SegmentMap;

/// See the top of this file.
pub struct ReclaimJob {
    pub plan: ReclaimPlan,
    /// Keeps the files that are copied from.
    _segment_map: Arc<SegmentMap>,
    /// The sources of pointers that have not been read yet.
    holders: Vec<Holder>,
    /// The live units, by segment.
    units: BTreeMap<u32, Vec<u32>>,
    /// Where each segment is.
    places: BTreeMap<u32, Place>,
    /// The files that are copied from, opened when their turn comes.
    sources: BTreeMap<FileNumber, From>,
    /// The segment that is being copied, with the rest of its records by their places in the old
    /// file, the next one last.
    current: Option<(u32, Vec<Move>)>,
    /// Segments that are still to be copied, the next one last.
    left: Vec<u32>,
    writer: Option<RelocatedWriter>,
    number: FileNumber,
    /// The new file exists, and no edit can have listed it.
    is_unlisted: bool,
    /// The time of its steps, except the last.
    took: Duration,
    /// What was copied of each segment, and of each table in it.
    copied_of: BTreeMap<(u32, TableId), SegmentTally>,
    /// Bytes of records copied.
    copied: u64,
    dropped: u64,
}

/// Where a segment is.
#[derive(Clone, Copy)]
enum Place {
    /// In its own file, which is sealed at this end.
    Own(u64),
    /// In this file of relocated values.
    Relocated(FileNumber),
}

/// A file that is copied from.
struct From {
    source: Source,
    map: Option<RelocatedFile>,
    /// How many segments of it are still to be copied.
    left: usize,
}

/// Why a step failed.
pub enum StepFault {
    /// A file of values is damaged, or cannot be read: it is left alone from now on.
    File(FileNumber, Error),
    /// A source of pointers is damaged, so it is not known which values are live: the whole plan is
    /// left alone.
    Holder(Error),
    /// Anything else.
    Other(Error),
}

impl std::convert::From<Error> for StepFault {
    fn from(error: Error) -> StepFault {
        StepFault::Other(error)
    }
}

/// The fault of a source of pointers.
fn at_holder(error: Error) -> StepFault {
    match error.kind() {
        ErrorKind::Corruption => StepFault::Holder(error),
        _ => StepFault::Other(error),
    }
}

impl ReclaimJob {
    /// Begins a plan. The caller holds the manifest's lock, and the plan was made under it.
    pub fn begin(engine: &Engine, state: &State, plan: ReclaimPlan) -> ReclaimJob {
        let place = |&segment: &u32| {
            let number = FileNumber(u64::from(segment));
            let own = state.values.get(&number).copied().flatten().map(Place::Own);
            Some((segment, own.or_else(|| state.relocated.get(&number).copied().map(Place::Relocated))?))
        };
        let places: BTreeMap<u32, Place> = plan.segments.iter().filter_map(place).collect();
        let holders = live_values::holders(engine, &places.keys().copied().collect());
        ReclaimJob {
            _segment_map: engine.values.files.present(),
            holders,
            units: places.keys().map(|&segment| (segment, Vec::new())).collect(),
            left: places.keys().rev().copied().collect(),
            places,
            sources: BTreeMap::new(),
            current: None,
            writer: None,
            number: engine.numbers.take(),
            is_unlisted: false,
            took: Duration::ZERO,
            copied_of: BTreeMap::new(),
            copied: 0,
            dropped: 0,
            plan,
        }
    }

    /// Copies about this many bytes. True when it is done and installed.
    pub fn step(&mut self, engine: &Engine, budget_bytes: u64) -> Result<bool, StepFault> {
        let began = engine.host.clock.monotonic();
        engine.check_open()?; // a closed store gets no more files
        let is_done = self.take(engine, budget_bytes, began)?;
        self.took += engine.host.clock.monotonic().saturating_sub(began);
        Ok(is_done)
    }

    fn take(&mut self, engine: &Engine, budget_bytes: u64, began: Duration) -> Result<bool, StepFault> {
        let mut taken = 0;
        while taken < budget_bytes {
            if let Some(holder) = self.holders.pop() {
                self.holders.extend(holder.add_to(&mut self.units).map_err(at_holder)?);
                taken += budget_bytes / 16;
            } else if let Some((segment, mut moves)) = self.current.take() {
                let copied = self.copy(segment, &mut moves, budget_bytes - taken)?;
                engine.shared.throttle.take(copied);
                taken += copied;
                if moves.is_empty() {
                    self.end_segment(segment);
                } else {
                    self.current = Some((segment, moves));
                }
            } else if let Some(segment) = self.left.pop() {
                let moves = self.begin_segment(engine, segment)?;
                self.current = Some((segment, moves));
            } else {
                self.took += engine.host.clock.monotonic().saturating_sub(began);
                return self.install(engine).map(|()| true).map_err(StepFault::Other);
            }
        }
        Ok(false)
    }

    fn file_of(&self, segment: u32) -> FileNumber {
        match self.places.get(&segment) {
            Some(Place::Relocated(file)) => *file,
            _ => FileNumber(u64::from(segment)),
        }
    }

    /// Opens the file of the segment, unless it is open, and returns the places of the live records
    /// in it, the first last.
    fn begin_segment(&mut self, engine: &Engine, segment: u32) -> Result<Vec<Move>, StepFault> {
        if self.writer.is_none() {
            let files = engine.host_for(SpaceUser::Merge).files;
            self.is_unlisted = true; // also removes what a failed creation leaves
            self.writer = Some(RelocatedWriter::create(&*files, &engine.dir, self.number)?);
        }
        let file = self.file_of(segment);
        let at_fault = |error| StepFault::File(file, error);
        self.open(engine, segment, file).map_err(at_fault)?;
        let units = self.units.get_mut(&segment).map(std::mem::take).unwrap_or_default();
        let mut units = units;
        units.sort_unstable();
        units.dedup();
        let map = self.sources.get(&file).and_then(|from| from.map.as_ref());
        let mut moves = match map {
            None => units.iter().map(|&unit| Move { old: unit, new: unit }).collect(),
            Some(map) => moves_of(map, segment, &units).map_err(at_fault)?,
        };
        if cfg!(debug_assertions) {
            self.units.insert(segment, units); // examined once more before the edit
        }
        if let Some(writer) = &mut self.writer {
            writer.begin_segment(segment);
        }
        moves.reverse();
        Ok(moves)
    }

    fn open(&mut self, engine: &Engine, segment: u32, file: FileNumber) -> Result<()> {
        if self.sources.contains_key(&file) {
            return Ok(());
        }
        let files = &*engine.host.files;
        let (source, map) = match self.places.get(&segment) {
            Some(Place::Own(end)) => {
                (Source::segment(files, &engine.dir, ValuesEnd { number: file, end: *end })?, None)
            }
            _ => {
                let map = RelocatedFile::open(files, &engine.dir, file)?;
                (map.source(), Some(map))
            }
        };
        let left = self.places.keys().filter(|&&other| self.file_of(other) == file).count();
        self.sources.insert(file, From { source, map, left });
        Ok(())
    }

    /// Copies records of a segment up to this many bytes; returns how many bytes.
    fn copy(&mut self, segment: u32, moves: &mut Vec<Move>, budget_bytes: u64) -> Result<u64, StepFault> {
        let file = self.file_of(segment);
        let (Some(from), Some(writer)) = (self.sources.get_mut(&file), &mut self.writer) else {
            return Ok(0);
        };
        let mut taken_bytes = 0;
        while taken_bytes < budget_bytes {
            let Some(next) = moves.pop() else { break };
            let copied = from.source.copy(next.new, next.old, writer);
            let (bytes, table) = copied.map_err(|fault| match fault {
                CopyFault::Source(error) => StepFault::File(file, error),
                CopyFault::Target(error) => StepFault::Other(error),
            })?;
            let of = self.copied_of.entry((segment, table)).or_default();
            (of.records, of.bytes) = (of.records + 1, of.bytes + bytes);
            taken_bytes += bytes;
        }
        Ok(taken_bytes)
    }

    fn end_segment(&mut self, segment: u32) {
        let file = self.file_of(segment);
        let Some(from) = self.sources.get_mut(&file) else { return };
        from.left -= 1;
        from.source.rest();
        if from.left == 0
            && let Some(from) = self.sources.remove(&file)
        {
            let (copied, dropped) = from.source.finish();
            (self.copied, self.dropped) = (self.copied + copied, self.dropped + dropped);
        }
    }

    /// Makes the new file durable and swaps it in with one edit. Segments that have become dead in
    /// the meantime are not listed.
    fn install(&mut self, engine: &Engine) -> Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let file_bytes = writer.finish()?;
        engine.shared.throttle.take(file_bytes.saturating_sub(self.copied)); // its header, and its map
        install::sync_dir(engine)?;
        log_sync::sync_for_hashed(engine)?;
        let mut manifest = engine.manifest.lock();
        engine.check_open()?;
        let state = Arc::clone(manifest.state());
        let listed = self.places.keys().map(|&segment| FileNumber(u64::from(segment)));
        let segments: Vec<FileNumber> = listed.filter(|&segment| state.has_values(segment)).collect();
        if segments.is_empty() {
            drop(manifest);
            self.remove(engine);
            return Ok(());
        }
        self.look_again(engine)?;
        let mut changes =
            vec![Change::MoveValues { file: self.number, file_bytes, segments: segments.clone() }];
        changes.extend(install::numbers_change(engine, &state));
        manifest.append(&changes).inspect_err(|error| {
            self.is_unlisted = error.kind() == ErrorKind::NoSpace; // after any other failure the edit may be on the disk
            log_sync::note_write_failure(engine, error);
        })?;
        self.is_unlisted = false;
        segments::note_listed_values(engine, &manifest);
        engine.values.files.relocated(&segments, self.number);
        self.note_copied(engine);
        let gone: u64 = freed_bytes(&state, manifest.state());
        drop(manifest);
        let counters = &engine.counters;
        engine.debt.reclaim_bytes_per_s.note(gone.saturating_sub(file_bytes), self.took);
        counters.reclaims.add(1);
        engine.events.note(|| {
            let (bytes_copied, bytes_freed) = (file_bytes, gone.saturating_sub(file_bytes));
            Event::Reclaim(ReclaimEvent {
                segments: segments.len(),
                bytes_copied,
                bytes_freed,
                took: self.took,
            })
        });
        counters.value_bytes_copied.add(file_bytes);
        counters.value_bytes_given_back.add(gone.saturating_sub(file_bytes));
        Ok(())
    }

    /// Tells hashed tables what their records take.
    fn note_copied(&self, engine: &Engine) {
        let catalog = engine.catalog();
        let hashed: BTreeMap<TableId, _> =
            catalog.hashed().map(|(table, hashed)| (table.id, hashed)).collect();
        for (&(segment, table), &copied) in &self.copied_of {
            if let Some(hashed) = hashed.get(&table) {
                hashed.note_copied(low_bits(u64::from(segment)), copied);
            }
        }
    }

    /// In debug builds: reads everything that points into the segments now, and checks that all of
    /// it was copied.
    fn look_again(&self, engine: &Engine) -> Result<()> {
        if !cfg!(debug_assertions) {
            return Ok(());
        }
        let mut now: BTreeMap<u32, Vec<u32>> =
            self.places.keys().map(|&segment| (segment, Vec::new())).collect();
        for holder in live_values::holders(engine, &self.places.keys().copied().collect()) {
            holder.add_all_to(&mut now)?;
        }
        for (segment, units) in now {
            let copied: BTreeSet<u32> = self.units.get(&segment).into_iter().flatten().copied().collect();
            let missed = units.iter().find(|unit| !copied.contains(unit));
            assert_eq!(missed, None, "a unit of segment {segment} that is pointed to was copied");
        }
        Ok(())
    }

    /// Gives it up: removes what it has written, unless the manifest may list it.
    pub fn discard(mut self, engine: &Engine) {
        self.remove(engine);
    }

    /// The next opening removes a file that stays.
    fn remove(&mut self, engine: &Engine) {
        self.writer = None;
        if std::mem::take(&mut self.is_unlisted) {
            let _ = engine.host.files.remove(&relocated_path(&engine.dir, self.number));
        }
    }
}

/// Where these units of a segment are in a file of relocated values.
fn moves_of(map: &RelocatedFile, segment: u32, units: &[u32]) -> Result<Vec<Move>> {
    let mut moves = Vec::with_capacity(units.len());
    let mut wanted = units.iter().peekable();
    map.moves(segment, &mut |one| {
        if wanted.next_if_eq(&&one.old).is_some() {
            moves.push(one);
        }
        Ok(())
    })?;
    match wanted.next() {
        None => Ok(moves),
        Some(unit) => {
            let what =
                format!("its map does not have unit {unit} of segment {segment}, and a part points there");
            Err(error::corrupt(map.path(), 0, what))
        }
    }
}

/// Bytes of the files of values that are listed in one state and not in the other.
pub(crate) fn freed_bytes(before: &State, after: &State) -> u64 {
    let segments = before.values.iter().filter(|(number, _)| !after.values.contains_key(number));
    let moved =
        before.relocated_files.iter().filter(|(number, _)| !after.relocated_files.contains_key(number));
    segments.filter_map(|(_, end)| *end).sum::<u64>() + moved.map(|(_, bytes)| *bytes).sum::<u64>()
}
