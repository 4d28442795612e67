//! The index of a hashed table in a store that is not open: from its checkpoint and the log after
//! it, or, if the checkpoint is lost, from the value segments.
//!
//! A record of the value log has its table and its key. Of two records of one key, the one at the
//! later place was written later, since a writer has the key locked while it puts the value. So the
//! segments from the first to the last give the last value of each key. They have no deletes: a key
//! that was deleted before the log begins reappears. Used by `verify`, `repair` and
//! `needed_values`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use folddb_base::pointer::VALUE_ALIGN;
use folddb_base::{Error, FileNumber, Pointer, Result, Seq, TableId};
use folddb_hash::{Change, IndexCursor, IndexOptions, Past, Point, Slot};
use folddb_host::Files;
use folddb_layout::file_name::FileName;
use folddb_layout::frame::{FrameRecord, LogOp};
use folddb_layout::values::{RECORD_HEAD_BYTES, RecordHead, VALUES_HEADER_BYTES};
use folddb_manifest::{State, TableState};
use folddb_rules::table_rules::StoredRules;
use folddb_value_log::directories::value_files_in;
use folddb_value_log::relocated::RelocatedFile;

use folddb_engine::state::hash_files::open_saved;
use folddb_engine::state::hash_index::{Hashed, RecordsOf, low_bits, new_salt, slot_of};
use folddb_engine::values::hashed_record::{Found, Reading, read_record};
use folddb_value_log::ValueFile;

/// Bytes of a segment that are searched at once.
const WINDOW_BYTES: u64 = 1 << 20;

/// The value segments that a manifest lists, opened as they are asked for.
pub(crate) struct ValueLogFiles<'a> {
    files: &'a Arc<dyn Files>,
    dir: &'a Path,
    /// By the low bits of their numbers.
    listed: BTreeMap<u32, Listed>,
    open: BTreeMap<u32, ValueFile>,
}

/// Where the values of a segment are.
#[derive(Clone, Copy)]
struct Listed {
    number: FileNumber,
    /// A file or directory of its own, or a file of relocated values.
    name: FileName,
    /// The valid bytes of a file of its own, if known.
    end: Option<u64>,
}

impl<'a> ValueLogFiles<'a> {
    pub(crate) fn new(files: &'a Arc<dyn Files>, dir: &'a Path, state: &State) -> ValueLogFiles<'a> {
        let own = state.values.iter().map(|(&number, &end)| Listed {
            number,
            name: state.values_name(number),
            end,
        });
        let moved = state.relocated.iter();
        let moved =
            moved.map(|(&number, &file)| Listed { number, name: FileName::Relocated(file), end: None });
        let listed = own.chain(moved).map(|listed| (low_bits(listed.number.0), listed));
        ValueLogFiles { files, dir, listed: listed.collect(), open: BTreeMap::new() }
    }

    fn open(&mut self, low: u32) -> Result<&ValueFile> {
        let Some(&listed) = self.listed.get(&low) else {
            return Err(Error::invalid(format!(
                "no value segment on the list has a number that ends in {low}"
            )));
        };
        if !self.open.contains_key(&low) {
            if self.open.len() >= 16 {
                self.open.pop_first();
            }
            self.open.insert(low, self.open_file(listed)?);
        }
        Ok(&self.open[&low])
    }

    fn open_file(&self, listed: Listed) -> Result<ValueFile> {
        match listed.name {
            FileName::Relocated(file) => {
                let file = RelocatedFile::open(&**self.files, self.dir, file)?;
                Ok(ValueFile::Relocated(Box::new(file), None))
            }
            name => ValueFile::named(self.files, self.dir, name),
        }
    }

    /// Reads the record that a slot points to.
    pub(crate) fn read(
        &mut self,
        of: RecordsOf,
        slot: Slot,
        key: Option<&[u8]>,
        record: &mut Vec<u8>,
    ) -> Result<Option<Found>> {
        let file = self.open(slot.segment())?;
        read_record(file, of, slot, key, Reading::Sound, record, &|| {})
    }

    /// Passes every intact record of a table to `visit`, with its slot and its key, in the order in
    /// which they were written.
    fn each(&mut self, table: TableId, visit: &mut VisitRecord<'_>) -> Result<()> {
        let mut by_number: Vec<Listed> = self.listed.values().copied().collect();
        by_number.sort_unstable_by_key(|listed| listed.number);
        for listed in by_number {
            let Ok(file) = self.open_file(listed) else { continue };
            let number = listed.number.0 as u32;
            if matches!(listed.name, FileName::ValueDirectory(_)) {
                self.each_value_file(table, (&file, number), visit)?;
                continue;
            }
            let of = RecordsOf { table, has_fronts: false };
            let mut window = Window { file: &file, start: 0, bytes: Vec::new() };
            let mut take = |at: u64, unit: u32| {
                let Some((head, key)) = window.record(at)? else { return Ok(None) };
                let slot = Slot::of_place(number, unit, head.record_bytes());
                if let (Some(slot), true) = (slot, head.table == table) {
                    let mut record = Vec::new();
                    let whole = read_record(&file, of, slot, Some(&key), Reading::Sound, &mut record, &|| {});
                    if let Ok(Some(_)) = whole {
                        visit(self, slot, &key)?;
                    }
                }
                Ok(Some(head.record_bytes()))
            };
            match &file {
                ValueFile::Relocated(moved, _) => {
                    let mut units = Vec::new();
                    // Records of a damaged page are skipped.
                    let _ = moved.moves(number, &mut |one| {
                        units.push((u64::from(one.new) * VALUE_ALIGN, one.old));
                        Ok(())
                    });
                    units.into_iter().try_for_each(|(at, unit)| take(at, unit).map(drop))?;
                }
                _ => each_offset(listed.end.unwrap_or(u64::MAX).min(file.len_bytes()), &mut take)?,
            }
        }
        Ok(())
    }
}

/// Tries every place of a segment at which a record may begin. `take` returns the length of one
/// that does.
fn each_offset(end: u64, take: &mut dyn FnMut(u64, u32) -> Result<Option<u64>>) -> Result<()> {
    let mut at = VALUES_HEADER_BYTES as u64;
    while at < end.saturating_sub(RECORD_HEAD_BYTES as u64) {
        let unit = u32::try_from(at / VALUE_ALIGN).unwrap_or(u32::MAX);
        at = at.saturating_add(take(at, unit)?.unwrap_or(VALUE_ALIGN));
    }
    Ok(())
}

impl ValueLogFiles<'_> {
    /// The same for a segment that is a directory: of two records of a key the one with the higher
    /// unit was written later.
    fn each_value_file(
        &mut self,
        table: TableId,
        (file, number): (&ValueFile, u32),
        visit: &mut VisitRecord<'_>,
    ) -> Result<()> {
        let directory = FileNumber(u64::from(number));
        for unit in value_files_in(&**self.files, self.dir, directory).unwrap_or_default() {
            let mut record = Vec::new();
            if file.front(unit, RECORD_HEAD_BYTES as u64, &mut record).is_err() {
                continue;
            }
            let Ok(head) = RecordHead::decode(&record) else { continue };
            let slot = Slot::of_place(number, unit, head.record_bytes()).filter(|_| head.table == table);
            let Some(slot) = slot else { continue };
            let of = RecordsOf { table, has_fronts: false };
            let read = read_record(file, of, slot, None, Reading::Sound, &mut record, &|| {});
            if let Ok(Some(found)) = read {
                let key = found.key(&record).to_vec();
                visit(self, slot, &key)?;
            }
        }
        Ok(())
    }
}

/// Takes a record of the value log, with its key.
type VisitRecord<'v> = dyn FnMut(&mut ValueLogFiles<'_>, Slot, &[u8]) -> Result<()> + 'v;

/// Takes a key of an index: its slot, and its record or the error of that.
type VisitKey<'v> = dyn FnMut(Point, Slot, Result<(Found, &[u8])>) -> Result<()> + 'v;

/// A piece of a segment.
struct Window<'f> {
    file: &'f ValueFile,
    start: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    /// The head and the key of the record that begins here, if one does.
    fn record(&mut self, at: u64) -> Result<Option<(RecordHead, Vec<u8>)>> {
        let longest = (RECORD_HEAD_BYTES + usize::from(u16::MAX)) as u64;
        let is_in = at >= self.start && at + longest <= self.start + self.bytes.len() as u64;
        if !is_in && (self.bytes.is_empty() || at < self.start || (self.bytes.len() as u64) >= WINDOW_BYTES) {
            self.start = at;
            let unit = u32::try_from(at / VALUE_ALIGN).unwrap_or(u32::MAX);
            self.file.front(unit, WINDOW_BYTES, &mut self.bytes)?;
        }
        let bytes = self.bytes.get((at - self.start) as usize..).unwrap_or(&[]);
        let Ok(head) = RecordHead::decode(bytes) else { return Ok(None) };
        let key = bytes.get(RECORD_HEAD_BYTES..RECORD_HEAD_BYTES + usize::from(head.key_len));
        Ok(key.filter(|key| head.is_of(key)).map(|key| (head, key.to_vec())))
    }
}

/// See the top of this file.
pub(crate) struct AtRest {
    pub(crate) table: TableId,
    of: RecordsOf,
    hashed: Hashed,
    flushed_seq: Seq,
    /// The errors of its checkpoint: if empty, everything that was saved can be read.
    pub(crate) faults: Vec<Error>,
}

impl AtRest {
    /// The saved index. `deep` reads every piece.
    pub(crate) fn open(
        files: &std::sync::Arc<dyn Files>,
        dir: &Path,
        store_id: u128,
        state: &TableState,
        deep: bool,
    ) -> AtRest {
        let options = IndexOptions::default();
        let new = || Hashed::new(new_salt(store_id, state.id), options);
        let opened = open_saved(files, dir, state).and_then(|saved| match saved {
            Some((file, changes)) => {
                let faults = if deep { file.checkpoint.faults() } else { Vec::new() };
                Ok((Hashed::open((file, &changes), state, options)?, faults))
            }
            None => Ok((new(), Vec::new())),
        });
        let (hashed, faults) = opened.unwrap_or_else(|error| (new(), vec![error]));
        AtRest { table: state.id, of: records_of(state), hashed, flushed_seq: state.flushed_seq, faults }
    }

    /// An empty index, to be rebuilt.
    pub(crate) fn empty(store_id: u128, state: &TableState) -> AtRest {
        let hashed = Hashed::new(new_salt(store_id, state.id), IndexOptions::default());
        let of = records_of(state);
        AtRest { table: state.id, of, hashed, flushed_seq: state.flushed_seq, faults: Vec::new() }
    }

    /// Applies a record of the log.
    pub(crate) fn take(&self, record: &FrameRecord<'_>, seq: Seq) -> Result<()> {
        if seq <= self.flushed_seq {
            return Ok(());
        }
        self.hashed.take(record, seq, Past::Forgotten).map(drop)
    }

    /// Takes the last record of each key from the value segments.
    pub(crate) fn rebuild(&self, value_log: &mut ValueLogFiles<'_>) -> Result<()> {
        value_log.each(self.table, &mut |value_log, slot, key| self.put(value_log, slot, key))
    }

    /// Applies a record of the log to a rebuilt index: the replaced entry is found by its key.
    pub(crate) fn take_by_key(
        &self,
        value_log: &mut ValueLogFiles<'_>,
        record: &FrameRecord<'_>,
    ) -> Result<()> {
        match record.op {
            LogOp::PutHashed => {
                let pointer = record.pointer().and_then(|bytes| Pointer::decode(bytes).ok());
                let slot = pointer.and_then(|pointer| slot_of(record.key, &pointer));
                slot.map_or(Ok(()), |slot| self.put(value_log, slot, record.key))
            }
            LogOp::RemoveHashed => match self.find(value_log, record.key)? {
                Some(old) => self
                    .hashed
                    .index
                    .change(self.point(record.key), Change::Remove(old), 1, Past::Forgotten)
                    .map(drop),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn put(&self, value_log: &mut ValueLogFiles<'_>, slot: Slot, key: &[u8]) -> Result<()> {
        let change = match self.find(value_log, key)? {
            Some(old) => Change::Replace { old, new: slot },
            None => Change::Insert(slot),
        };
        self.hashed.index.change(self.point(key), change, 1, Past::Forgotten).map(drop)
    }

    fn find(&self, value_log: &mut ValueLogFiles<'_>, key: &[u8]) -> Result<Option<Slot>> {
        let (mut slots, mut record) = (Vec::new(), Vec::new());
        self.hashed.index.candidates(self.point(key), None, &mut slots)?;
        let is_it =
            |slot: &Slot| matches!(value_log.read(self.of, *slot, Some(key), &mut record), Ok(Some(_)));
        Ok(slots.into_iter().find(is_it))
    }

    pub(crate) fn point(&self, key: &[u8]) -> Point {
        self.hashed.point(key)
    }

    /// The seed of the points of its keys.
    pub(crate) fn salt(&self) -> u64 {
        self.hashed.salt()
    }

    /// How many keys point to each segment, by the account of the index.
    pub(crate) fn quota(&self) -> BTreeMap<u32, u64> {
        let counted = self.hashed.segments().into_iter().map(|(low, used)| (low, used.tally.records));
        counted.filter(|(_, records)| *records > 0).collect()
    }

    /// How many records of the log did not match the checkpoint.
    pub(crate) fn misfits(&self) -> u64 {
        self.hashed.index.facts().misfits
    }

    /// Passes the place of every record that it points to to `add`: the low bits of its segment,
    /// and its unit.
    ///
    /// # Errors
    /// A piece of it cannot be read.
    pub(crate) fn each_place(&self, add: &mut dyn FnMut(u32, u32)) -> Result<()> {
        let mut at = Some(IndexCursor::default());
        while let Some(from) = at {
            let range = self.hashed.index.range(from, None)?;
            range.keys.iter().for_each(|(_, slot)| add(slot.segment(), slot.unit()));
            at = range.next;
        }
        Ok(())
    }

    /// Passes every key to `visit`: its slot, and its record or the error of that. Pieces that
    /// cannot be read are skipped.
    pub(crate) fn each(&self, value_log: &mut ValueLogFiles<'_>, visit: &mut VisitKey<'_>) -> Result<()> {
        let (mut at, mut record) = (Some(IndexCursor::default()), Vec::new());
        while let Some(from) = at {
            let Ok(range) = self.hashed.index.range(from, None) else {
                at = self.hashed.index.beyond(from);
                continue;
            };
            for (point, slot) in range.keys {
                let found = value_log.read(self.of, slot, None, &mut record);
                let found =
                    found.and_then(|found| found.ok_or_else(|| Error::invalid("it is of another key")));
                visit(point, slot, found.map(|found| (found, &record[..])))?;
            }
            at = range.next;
        }
        Ok(())
    }
}

/// Whether a table is hashed, by its stored rules.
pub(crate) fn is_hashed(table: &TableState) -> bool {
    let rules = folddb_rules::table_rules::TableRules::from_stored(&table.rules_text);
    rules.is_ok_and(|rules| rules.kind == folddb_rules::table_rules::TableKind::Hashed)
}

/// How the records of a table are read, by its stored rules.
fn records_of(table: &TableState) -> RecordsOf {
    let rules = folddb_rules::table_rules::TableRules::from_stored(&table.rules_text);
    let has_fronts = rules.is_ok_and(|rules| rules.keep.keeps_past() || rules.expire.has_stamps());
    RecordsOf { table: table.id, has_fronts }
}

/// The file of a checkpoint.
pub(crate) fn index_name(number: FileNumber) -> String {
    FileName::Index(number).to_string()
}
