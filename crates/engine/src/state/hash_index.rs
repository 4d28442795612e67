//! The index of a hashed table in the engine: records of the log are applied here, at commit and at
//! replay.
//!
//! ```text
//!   key ──> point ──> index (crate `hash`) ──> slot: segment, unit, size class ──> record in the value log, with its key
//!
//!   a log record   slot that it replaces, or none | pointer to the new value        so replay reads nothing
//! ```
//!
//! In addition to the index there is an account: how many keys point to each value segment. It is
//! exact, since it is changed with the index and saved with its checkpoint, and it shows when a
//! segment is dead (`reclaim.rs`).
//!
//! **Batches and snapshots.** The index has the present state. The old state of a change is noted,
//! with its seq, while a reader may need it: readers of the present read at the published seq, so
//! they see nothing of a batch that is being applied. Once a batch is published its notes are
//! dropped, unless a snapshot lives.
//!
//! Used by `read/hashed`, `read/hashed_scan`, `write/hashed` and `commit`, by
//! `background/hash_checkpoint` and `reclaim`, and by `recovery`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use folddb_base::bytes::Malformed;
use folddb_base::checksum::hash64;
use folddb_base::{Error, FileNumber, Lsn, Pointer, Result, Seq, TableId};
use folddb_hash::{
    Change, CheckpointWriter, HashIndex, IndexCursor, IndexOptions, Made, Past, Point, SegmentTally, Slot,
};
use folddb_host::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use folddb_host::sync::{Mutex, MutexGuard};
use folddb_layout::frame::{FrameRecord, LogOp};
use folddb_layout::hash_checkpoint::SEGMENT_BITS;
use folddb_layout::values::record_bytes;
use folddb_manifest::{IndexSegment, IndexState, TableState};

use crate::state::hash_files::IndexFile;

/// What a hashed table has instead of memtables and runs.
pub struct Hashed {
    pub index: HashIndex,
    /// What the hashes of its keys are seeded with.
    salt: u64,
    segments: Mutex<BTreeMap<u32, SegmentUse>>,
    /// The checkpoint that the manifest lists.
    pub file: Mutex<Option<Arc<IndexFile>>>,
    /// It is to be saved.
    pub wants_save: AtomicBool,
    /// The checkpoint that is being written.
    pub saving: Mutex<Option<Saving>>,
    /// The start of the log that the index needs until that checkpoint is listed; [`NOT_SAVING`]
    /// while none is written.
    pub saving_from: AtomicU64,
    /// Something was kept for a snapshot since the last check.
    has_undone: AtomicBool,
    /// Bytes of values put since it was saved.
    pub put_bytes: AtomicU64,
    /// The progress of the sweep of expired values, which alone locks it; and what it has removed.
    pub sweep: Mutex<Sweep>,
    pub taken: Mutex<Taken>,
    /// The first damage to its checkpoint that background work has met.
    damage: Mutex<Option<Error>>,
    /// While a store is opened for writing: what was replayed so far.
    pub replayed: Mutex<Option<Replayed>>,
}

/// The progress of a pass over a table.
#[derive(Default)]
pub struct Sweep {
    pub at: Option<IndexCursor>,
    /// When the last pass ended, or the table was first examined.
    pub since_ms: Option<u64>,
}

/// Slots that were removed from an index, but are still in its checkpoint.
#[derive(Default)]
pub struct Taken {
    fresh: Vec<Slot>,
    /// Those that the checkpoint being written does not have.
    saving: Vec<Slot>,
}

impl Taken {
    /// All of them.
    pub fn each(&self, visit: &mut dyn FnMut(Slot)) {
        self.fresh.iter().chain(&self.saving).for_each(|slot| visit(*slot));
    }

    /// One more was removed.
    pub fn push(&mut self, slot: Slot) {
        self.fresh.push(slot);
    }

    /// How many wait for the begin of a checkpoint without them.
    pub fn waiting(&self) -> usize {
        self.fresh.len()
    }

    /// A checkpoint is begun.
    pub(crate) fn begin_saving(&mut self) {
        self.saving.append(&mut self.fresh);
    }

    /// The checkpoint is listed, and these are gone for good; or it failed.
    pub(crate) fn end_saving(&mut self, is_listed: bool) -> Vec<Slot> {
        let saved = std::mem::take(&mut self.saving);
        if is_listed {
            return saved;
        }
        self.fresh.extend(saved);
        Vec::new()
    }
}

/// How the records of a table in the value log are read.
#[derive(Clone, Copy, Debug)]
pub struct RecordsOf {
    pub table: TableId,
    /// Whether its values have fronts.
    pub has_fronts: bool,
}

/// See [`Hashed::saving_from`].
pub const NOT_SAVING: Lsn = Lsn::MAX;

/// What the keys of a table point to in one segment.
#[derive(Clone, Copy, Debug, Default)]
pub struct SegmentUse {
    /// How many they are, and their bytes by size classes.
    pub tally: SegmentTally,
    /// Where the last record ends that the table ever had in it.
    pub end: u64,
    /// How much less their records take than that.
    fill: Fill,
}

/// What records take, beside what the size classes of their slots say: these are up to a quarter
/// too large, and reclaim keeps to a bound on bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Fill {
    class_bytes: u64,
    bytes: u64,
}

impl Fill {
    /// Of a segment of which only the size classes are known.
    fn unknown(class_bytes: u64) -> Fill {
        Fill { class_bytes, bytes: class_bytes }
    }

    fn add(&mut self, slot: Slot, bytes: u64) {
        self.class_bytes = self.class_bytes.saturating_add(slot.class().about_bytes());
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// About what records take whose size classes add up to this.
    fn of(self, class_bytes: u64) -> u64 {
        let scaled = u128::from(class_bytes) * u128::from(self.bytes) / u128::from(self.class_bytes.max(1));
        if self.class_bytes == 0 { class_bytes } else { u64::try_from(scaled).unwrap_or(u64::MAX) }
    }
}

/// A checkpoint under way.
pub struct Saving {
    pub writer: CheckpointWriter,
    pub number: FileNumber,
    pub path: PathBuf,
    /// All changes up to here are in it.
    pub seq: Seq,
}

/// The replayed changes of an opening, while they are few enough to be saved by themselves.
#[derive(Default)]
pub struct Replayed {
    /// Those that the manifest lists, and those of the log.
    pub changes: Vec<Made>,
    /// How many of them are in no file.
    pub fresh: usize,
}

/// The seed of the points of a new table. A saved table has its seed in its checkpoint.
pub fn new_salt(store_id: u128, table: TableId) -> u64 {
    hash64(u64::from(table.0), &store_id.to_le_bytes())
}

/// The bits of a segment's number that an address has.
pub fn low_bits(segment: u64) -> u32 {
    (segment & ((1 << SEGMENT_BITS) - 1)) as u32
}

/// The slot of the record that a pointer leads to, of this key; none if no slot can represent it.
pub fn slot_of(key: &[u8], pointer: &Pointer<'_>) -> Option<Slot> {
    Slot::of_place(pointer.place.segment, pointer.place.unit, record_bytes(key.len(), pointer.len))
}

impl Hashed {
    /// The index of a new table.
    pub fn new(salt: u64, options: IndexOptions) -> Hashed {
        Hashed::of(HashIndex::new(options), salt, BTreeMap::new(), None)
    }

    /// The index of a checkpoint and of the changes after it, with its account from the manifest.
    ///
    /// # Errors
    /// A shard with many of the changes cannot be read.
    pub fn open(
        (file, changes): (Arc<IndexFile>, &[Made]),
        state: &TableState,
        options: IndexOptions,
    ) -> Result<Hashed> {
        let one = |one: &IndexSegment| {
            let tally = SegmentTally { records: one.records, bytes: one.bytes };
            (low_bits(one.segment), SegmentUse { tally, end: one.end, fill: Fill::unknown(one.bytes) })
        };
        let counted = state.saved_index().last().map_or(&[][..], |last| &last.segments);
        let segments = counted.iter().map(one).collect();
        let index = HashIndex::open(&file.checkpoint, options);
        let salt = file.checkpoint.salt();
        for made in changes {
            index.replay(made.point, made.change, made.seq)?;
        }
        Ok(Hashed::of(index, salt, segments, Some(file)))
    }

    fn of(
        index: HashIndex,
        salt: u64,
        segments: BTreeMap<u32, SegmentUse>,
        file: Option<Arc<IndexFile>>,
    ) -> Hashed {
        Hashed {
            index,
            salt,
            segments: Mutex::new(segments),
            file: Mutex::new(file),
            wants_save: AtomicBool::new(false),
            saving: Mutex::default(),
            saving_from: AtomicU64::new(NOT_SAVING),
            has_undone: AtomicBool::new(false),
            put_bytes: AtomicU64::new(0),
            sweep: Mutex::default(),
            taken: Mutex::default(),
            damage: Mutex::default(),
            replayed: Mutex::default(),
        }
    }

    /// From now on replayed changes are kept to be saved, together with these, which the manifest
    /// lists.
    pub(crate) fn begin_replay(&self, changes: Vec<Made>) {
        *self.replayed.lock() = Some(Replayed { changes, fresh: 0 });
    }

    fn note_replayed(&self, made: Made) {
        if let Some(replayed) = &mut *self.replayed.lock() {
            replayed.changes.push(made);
            replayed.fresh += 1;
        }
    }

    /// The point of a key.
    #[inline]
    pub fn point(&self, key: &[u8]) -> Point {
        Point::of_hash(hash64(self.salt, key))
    }

    /// The seed of the points of its keys.
    pub fn salt(&self) -> u64 {
        self.salt
    }

    /// Applies a record of the log. True when a segment is no longer pointed to, except by
    /// snapshots.
    ///
    /// # Errors
    /// The record does not belong to a hashed table; a shard that is not in memory cannot be read.
    pub fn take(&self, record: &FrameRecord<'_>, seq: Seq, past: Past) -> Result<bool> {
        let (change, Range { start, end }) = match change_of(record) {
            Ok(Some(change)) => change,
            Ok(None) => return Ok(false),
            Err(cause) => return Err(malformed(record, cause)),
        };
        let point = self.point(record.key);
        let is_new = self.index.apply(point, change, seq, past)?;
        if is_new && past == Past::Forgotten {
            self.note_replayed(Made { point, change, seq });
        }
        let mut segments = self.segments.lock();
        let mut emptied = false;
        if let (Change::Replace { old, .. } | Change::Remove(old), true) = (change, is_new) {
            let used = segments.entry(old.segment()).or_default();
            used.tally.remove(old);
            emptied = used.tally.records == 0;
        }
        if let Change::Replace { new, .. } | Change::Insert(new) = change {
            let used = segments.entry(new.segment()).or_default();
            used.end = used.end.max(end);
            let bytes = end.saturating_sub(start);
            if is_new {
                used.tally.add(new);
                used.fill.add(new, bytes);
            }
            // The size class of a long value says little about its length.
            let bytes = new.class().about_bytes().max(bytes);
            self.put_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(emptied)
    }

    /// A batch with records of these points is published, the last at `seq`. The notes for readers
    /// are dropped, unless a snapshot lives. Called under the commit lock, under which snapshots
    /// are taken.
    pub fn settle(&self, point: Point, seq: Seq, has_snapshots: bool) {
        if has_snapshots {
            self.has_undone.store(true, Ordering::Release);
        } else {
            self.index.forget_at(point, seq);
        }
    }

    /// Drops notes that no snapshot needs any more: the oldest live one reads at `oldest`, and one
    /// that is taken now at `published` or later.
    pub fn forget(&self, oldest: Option<Seq>, published: Seq) {
        if self.has_undone.swap(oldest.is_some(), Ordering::AcqRel) {
            self.index.forget(Some(oldest.unwrap_or(published).min(published)));
        }
    }

    /// What its keys point to, by the low bits of the segments' numbers.
    pub fn segments(&self) -> BTreeMap<u32, SegmentUse> {
        self.segments.lock().clone()
    }

    /// The low bits of the segments that may still be read: through the present keys, or a
    /// snapshot. None if that is not known, since a log record did not match the index.
    pub(crate) fn referenced_segments(&self) -> Option<BTreeSet<u32>> {
        let mut live: BTreeSet<u32> = BTreeSet::new();
        // In this order: the second look finds what is replaced between the two.
        live.extend(self.segments().iter().filter(|(_, used)| used.tally.records > 0).map(|(&low, _)| low));
        self.index.each_undone(&mut |slot| {
            live.insert(slot.segment());
        });
        (self.index.facts().misfits == 0).then_some(live)
    }

    /// Adds the units of records that may still be read, through the present keys or a snapshot, to
    /// those of the given segments, by the low bits of their numbers. In a complete segment no unit
    /// is missed: they only become fewer. Shards that are not in memory are read, but not kept.
    ///
    /// Other units are dead as of now, by changes that may not be durable yet: a caller that
    /// removes such values must sync the log after this and before its edit, or a power cut brings
    /// back an index that points there.
    ///
    /// # Errors
    /// A shard cannot be read; a log record did not match the index, so that nothing may be
    /// removed.
    pub fn add_units(&self, units: &mut BTreeMap<u32, Vec<u32>>) -> Result<()> {
        let mut next = Some(IndexCursor::default());
        while let Some(from) = next {
            next = self.add_units_from(from, &mut |low, unit| {
                units.get_mut(&low).into_iter().for_each(|units| units.push(unit));
            })?;
        }
        Ok(())
    }

    /// The same for one shard, and returns the next place; after the last shard come units that
    /// only snapshots need. Passes them to `add`, with the low bits of their segments.
    ///
    /// # Errors
    /// As [`Hashed::add_units`].
    pub(crate) fn add_units_from(
        &self,
        from: IndexCursor,
        add: &mut dyn FnMut(u32, u32),
    ) -> Result<Option<IndexCursor>> {
        let range = self.index.range(from, None)?;
        range.keys.iter().for_each(|(_, slot)| add(slot.segment(), slot.unit()));
        if range.next.is_none() {
            // Last: these include entries that were replaced after their shard was read, and that a
            // crash may bring back.
            self.index.each_undone(&mut |slot| add(slot.segment(), slot.unit()));
            self.taken.lock().each(&mut |slot| add(slot.segment(), slot.unit()));
            self.check_sure()?;
        }
        Ok(range.next)
    }

    /// What may still be read, by the low bits of the segments' numbers: what its keys point to,
    /// and what is kept for snapshots. Bytes are those of the records, as far as these were put
    /// since the store was opened; of others they are up to a quarter too many.
    pub(crate) fn read_segments(&self) -> BTreeMap<u32, SegmentTally> {
        let mut segments = self.segments();
        self.index.each_replaced(&mut |slot| segments.entry(slot.segment()).or_default().tally.add(slot));
        let bytes_of =
            |used: SegmentUse| SegmentTally { bytes: used.fill.of(used.tally.bytes), ..used.tally };
        segments.into_iter().map(|(low, used)| (low, bytes_of(used))).collect()
    }

    /// Reclaim has copied all of the table that is read of a segment, this many records of this
    /// many bytes. If these are what the table has in it, its bytes are known exactly from now on.
    /// If there were others, of snapshots, they count as long as the average, or by size classes if
    /// these say more: only that of values of megabytes may be too small. So what was copied once
    /// does not look as if a part of it were dead, and is not copied again for that.
    pub(crate) fn note_copied(&self, low: u32, copied: SegmentTally) {
        if let Some(used) = self.segments.lock().get_mut(&low) {
            let class_bytes = used.tally.bytes;
            used.fill = match used.tally.records == copied.records {
                true => Fill { class_bytes, bytes: copied.bytes },
                false => {
                    let average = copied.bytes / copied.records.max(1);
                    Fill { class_bytes, bytes: class_bytes.max(average.saturating_mul(used.tally.records)) }
                }
            };
        }
    }

    /// Whether the log named something that the index does not have: then it is not known what it
    /// points to.
    pub(crate) fn is_unsure(&self) -> bool {
        self.index.facts().misfits > 0
    }

    fn check_sure(&self) -> Result<()> {
        match self.index.facts().misfits {
            0 => Ok(()),
            misfits => {
                let say = format!(
                    "the log and the index of a hashed table disagree on {}",
                    folddb_base::counted(misfits, "key")
                );
                Err(folddb_base::Error::new(folddb_base::ErrorKind::Corruption, say))
            }
        }
    }

    /// Notes damage to its checkpoint: those shards are left out of work on all others.
    pub(crate) fn note_damage(&self, damage: &Error) {
        self.damage.lock().get_or_insert_with(|| damage.clone());
    }

    /// The first damage that was noted.
    pub fn damage(&self) -> Option<Error> {
        self.damage.lock().clone()
    }

    /// The manifest's entry of a checkpoint. The account is that of its pieces, each of which is of
    /// a different moment.
    pub(crate) fn state_of(
        &self,
        number: FileNumber,
        facts: &folddb_hash::CheckpointFacts,
        is_listed: impl Fn(u32) -> bool,
    ) -> IndexState {
        let (file_bytes, keys, max_seq) = (facts.file_bytes, facts.keys, facts.max_seq);
        let mut tallies = facts.segments.clone();
        self.add_unreadable(facts.unreadable_keys, &mut tallies);
        let segments = self.account_of(&tallies, is_listed);
        IndexState { file: number, file_bytes, keys, max_seq, segments }
    }

    /// The manifest's entry of changes that an opening saves: its account is that of the index with
    /// them, which nobody changes in the meantime.
    pub(crate) fn state_of_changes(
        &self,
        file: FileNumber,
        file_bytes: u64,
        changes: &[Made],
        is_listed: impl Fn(u32) -> bool,
    ) -> IndexState {
        let now = self.segments();
        let led_to = now.iter().filter(|(_, used)| used.tally.records > 0);
        let tallies = led_to.map(|(&low, used)| (low, used.tally)).collect();
        let (keys, max_seq) = (changes.len() as u64, changes.last().map_or(0, |last| last.seq));
        let segments = self.account_of(&tallies, is_listed);
        IndexState { file, file_bytes, keys, max_seq, segments }
    }

    /// Adds keys with unknown places: all of them may point into any segment that is pointed to,
    /// but at most as many as point anywhere. So none of their values is taken for dead.
    fn add_unreadable(&self, keys: u64, tallies: &mut BTreeMap<u32, SegmentTally>) {
        if keys == 0 {
            return;
        }
        for (low, used) in self.segments() {
            let (records, all) = (used.tally.records.min(keys), used.tally.records.max(1));
            let bytes = u128::from(used.tally.bytes) * u128::from(records) / u128::from(all);
            if records > 0 {
                let tally = tallies.entry(low).or_default();
                (tally.records, tally.bytes) = (tally.records + records, tally.bytes + bytes as u64);
            }
        }
    }

    /// An account for the manifest, with the end of the last record in each segment.
    fn account_of(
        &self,
        tallies: &BTreeMap<u32, SegmentTally>,
        is_listed: impl Fn(u32) -> bool,
    ) -> Vec<IndexSegment> {
        let mut ends = self.segments();
        let mut segments = Vec::new();
        for (&low, &tally) in tallies {
            let end = ends.remove(&low).map_or(0, |used| used.end);
            segments.push(IndexSegment {
                segment: low.into(),
                records: tally.records,
                bytes: tally.bytes,
                end,
            });
        }
        // The end of the last record matters even in segments that nothing points to now.
        for (low, used) in ends.into_iter().filter(|(low, _)| is_listed(*low)) {
            segments.push(IndexSegment { segment: low.into(), records: 0, bytes: 0, end: used.end });
        }
        segments
    }

    /// The checkpoint is listed, and what was swept before it is gone for good; or it failed.
    pub(crate) fn end_saving(&self, is_listed: bool) {
        let gone = self.taken.lock().end_saving(is_listed);
        let mut segments = self.segments.lock();
        for slot in gone {
            segments.entry(slot.segment()).or_default().tally.remove(slot);
        }
    }

    /// A segment is gone; another one may get its low bits later.
    pub(crate) fn forget_segment(&self, segment: FileNumber) {
        self.segments.lock().remove(&low_bits(segment.0));
    }

    /// Whether a requested checkpoint is still to be written.
    pub(crate) fn is_to_be_saved(&self) -> bool {
        self.wants_save.load(Ordering::Acquire) || self.saving_from.load(Ordering::Acquire) != NOT_SAVING
    }

    /// Releases everything: the table is dropped, or the store closed.
    pub fn let_go(&self) {
        self.index.clear();
        *self.file.lock() = None;
    }
}

/// The change that a record of the log makes, and the place of its value's record in the segment;
/// none if it makes no change.
fn change_of(record: &FrameRecord<'_>) -> std::result::Result<Option<(Change, Range<u64>)>, Malformed> {
    let old = match record.old_slot().ok_or(Malformed::Tag)? {
        0 => None,
        number => Some(Slot::from_number(number).ok_or(Malformed::Bounds)?),
    };
    if record.op == LogOp::RemoveHashed {
        return Ok(old.map(|old| (Change::Remove(old), 0..0)));
    }
    let pointer = Pointer::decode(record.pointer().ok_or(Malformed::Short)?)?;
    let new = slot_of(record.key, &pointer).ok_or(Malformed::Bounds)?;
    let start = pointer.place.offset();
    let at = start..start.saturating_add(record_bytes(record.key.len(), pointer.len));
    Ok(Some(match old {
        Some(old) => (Change::Replace { old, new }, at),
        None => (Change::Insert(new), at),
    }))
}

fn malformed(record: &FrameRecord<'_>, cause: Malformed) -> folddb_base::Error {
    folddb_base::Error::new(
        folddb_base::ErrorKind::Corruption,
        format!("a record of the log of hashed table {}: {cause}", record.table),
    )
}

/// Locks over points: a writer of a key holds one from its first look at the index until its batch
/// is published.
pub struct PointLocks([Mutex<()>; POINT_LOCKS]);

/// How many there are; two keys may share one by chance.
const POINT_LOCKS: usize = 256;

impl Default for PointLocks {
    fn default() -> PointLocks {
        PointLocks(std::array::from_fn(|_| Mutex::default()))
    }
}

impl PointLocks {
    /// Locks these points of these tables, in one global order, so there is no deadlock.
    pub fn hold(&self, points: impl Iterator<Item = (TableId, Point)>) -> Vec<MutexGuard<'_, ()>> {
        let number =
            |(table, point): (TableId, Point)| (point.bits() ^ u64::from(table.0)) as usize % POINT_LOCKS;
        let numbers: BTreeSet<usize> = points.map(number).collect();
        numbers.into_iter().map(|number| self.0[number].lock()).collect()
    }
}

#[cfg(test)]
mod tests;
