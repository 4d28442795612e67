//! Frames of the log as batches of a feed: the ops on covered tables, with their separated values.
//!
//! The reader of the log provides the tables and the places of values: the open store (`feed.rs`),
//! or the manifest that another process writes (`feed/secondary.rs`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use folddb_base::bytes::Malformed;
use folddb_base::limits::VALUE_BYTES_MAX;
use folddb_base::{Error, ErrorKind, OpKind, Piece, Pointer, Result, Rope, Seq, Stamp, TableId};
use folddb_journal::follow::Followed;
use folddb_layout::frame::{self, FrameRecord, LogOp};
use folddb_layout::hash_front::{FRONT_BYTES, Front};
use folddb_layout::values::{RECORD_HEAD_BYTES, RecordHead};
use folddb_manifest::TableNote;
use folddb_rules::table_rules::{StoredRules, TableKind, TableRules};
use folddb_rules::time::moment;

use crate::feed::event::{FeedBatch, FeedChange, FeedEvent, FeedOp, FeedOptions, FeedTable};
use folddb_engine::state::counters::Counter;
use folddb_engine::values::hashed_record::is_long;
use folddb_value_log::{SegmentMap, ValueFiles};

/// A table that was met.
#[derive(Clone)]
pub(crate) struct Met {
    pub(crate) table: Arc<FeedTable>,
    pub(crate) has_stamps: bool,
    /// Its values have fronts, as in hashed tables with times.
    pub(crate) has_fronts: bool,
}

/// The context for making a batch from a frame.
pub(crate) struct Reading<'a> {
    /// What the feed covers.
    pub(crate) options: &'a FeedOptions,
    /// The tables that were met; none for a table that it does not cover.
    pub(crate) tables: &'a mut BTreeMap<TableId, Option<Met>>,
    /// The name and the rules, as text, of a present table of the user.
    pub(crate) living: &'a dyn Fn(TableId) -> Option<(String, String)>,
    /// What has happened to tables since.
    pub(crate) notes: &'a VecDeque<TableNote>,
    /// Where separated values are.
    pub(crate) values: &'a ValueFiles,
    pub(crate) segment_map: Arc<SegmentMap>,
    pub(crate) value_reads: &'a Counter,
}

impl Reading<'_> {
    pub(crate) fn batch(&mut self, followed: &Followed<'_>) -> Result<FeedBatch> {
        let mut ops = Vec::new();
        for (seq, record) in (followed.first_seq..).zip(frame::records(followed.payload)) {
            let malformed =
                |cause| Error::new(ErrorKind::Corruption, format!("the record of seq {seq}: {cause}"));
            let record = record.map_err(malformed)?;
            let is_covered =
                matches!(record.op, LogOp::RangeDelete) || record.key.starts_with(&self.options.prefix);
            if let (true, Some(met)) = (is_covered, self.met(record.table)) {
                ops.extend(self.op(&met, seq, &record)?);
            }
        }
        let last_seq = followed.first_seq + u64::from(followed.count).saturating_sub(1);
        Ok(FeedBatch {
            first_seq: followed.first_seq.into(),
            last_seq: last_seq.into(),
            written: followed.time_ms.map(moment),
            ops,
        })
    }

    /// The table of this number; none if it is not covered.
    fn met(&mut self, id: TableId) -> Option<Met> {
        if let Some(met) = self.tables.get(&id) {
            return met.clone();
        }
        let noted = || self.notes.iter().find(|note| note.table == id);
        let noted = || noted().map(|note| (note.name.clone(), note.rules_text.clone()));
        let known = (self.living)(id).or_else(noted);
        let covered = known.filter(|(name, _)| self.options.table.as_ref().is_none_or(|only| only == name));
        let met = covered.map(|(name, rules_text)| met(id, &name, &rules_text));
        self.tables.insert(id, met.clone());
        met
    }

    fn op(&self, met: &Met, seq: Seq, record: &FrameRecord<'_>) -> Result<Option<FeedOp>> {
        let malformed =
            |cause| Error::new(ErrorKind::Corruption, format!("the record of seq {seq}: {cause}"));
        let (mut payload, mut stamp) = (record.payload, None);
        if let (LogOp::Op(kind), true) = (record.op, met.has_stamps) {
            stamp = Stamp::of(kind, payload).map_err(malformed)?;
            if !kind.is_separated() && kind != OpKind::Delete {
                payload = Stamp::split(payload).map_err(malformed)?.1;
            }
        }
        let inline = || payload.to_vec();
        let change = match record.op {
            LogOp::RangeDelete => FeedChange::DeleteRange(payload.to_vec()),
            LogOp::RemoveHashed if record.old_slot() == Some(0) => return Ok(None), // it had no effect
            LogOp::RemoveHashed | LogOp::Op(OpKind::Delete) => FeedChange::Delete,
            LogOp::Op(OpKind::Set) => FeedChange::Put(inline()),
            LogOp::Op(OpKind::Insert) => FeedChange::PutIfAbsent(inline()),
            LogOp::Op(OpKind::Fold) => FeedChange::Fold(inline()),
            LogOp::PutHashed if met.has_fronts => {
                let rope = Rope::decode(record.pointer().unwrap_or_default()).map_err(malformed)?;
                let (front, value) = self.with_front(record, &rope)?;
                stamp = Some(front.stamp);
                match value {
                    _ if front.is_deleted => FeedChange::Delete,
                    None => FeedChange::PutLong(rope.len - FRONT_BYTES as u64),
                    Some(value) => FeedChange::Put(value),
                }
            }
            LogOp::PutHashed | LogOp::Op(_) => {
                let pointer = record.pointer().unwrap_or_default();
                let rope = Rope::decode(pointer).map_err(malformed)?;
                match (self.value(record, &rope)?, record.op) {
                    (None, LogOp::Op(OpKind::InsertSeparated)) => FeedChange::PutIfAbsentLong(rope.len),
                    (None, LogOp::Op(OpKind::FoldSeparated)) => FeedChange::FoldLong(rope.len),
                    (None, _) => FeedChange::PutLong(rope.len),
                    (Some(value), LogOp::Op(OpKind::InsertSeparated)) => FeedChange::PutIfAbsent(value),
                    (Some(value), LogOp::Op(OpKind::FoldSeparated)) => FeedChange::Fold(value),
                    (Some(value), _) => FeedChange::Put(value),
                }
            }
        };
        let lasts = |stamp: &Stamp| stamp.deadline_ms < folddb_base::stamp::NEVER;
        let deadline = stamp.filter(lasts).map(|stamp| moment(stamp.deadline_ms));
        Ok(Some(FeedOp {
            table: Arc::clone(&met.table),
            seq: seq.into(),
            key: record.key.to_vec(),
            change,
            deadline,
        }))
    }

    /// A separated value; none if it is too long to be held.
    fn value(&self, record: &FrameRecord<'_>, rope: &Rope<'_>) -> Result<Option<Vec<u8>>> {
        if rope.len > VALUE_BYTES_MAX as u64 {
            return Ok(None);
        }
        if let Some(pointer) = rope.as_pointer() {
            return self.piece(record, &pointer).map(Some);
        }
        let mut value = Vec::new();
        for piece in rope.iter() {
            match (piece, piece.pointer()) {
                (_, Some(pointer)) => value.extend_from_slice(&self.piece(record, &pointer)?),
                (Piece::Inline(bytes), None) => value.extend_from_slice(bytes),
                (Piece::Separated { .. }, None) => {} // cannot be
            }
        }
        Ok(Some(value))
    }

    /// The front of a value of a hashed table, and the value; none if it is too long to be held.
    fn with_front(&self, of: &FrameRecord<'_>, rope: &Rope<'_>) -> Result<(Front, Option<Vec<u8>>)> {
        let malformed = |cause| Error::new(ErrorKind::Corruption, format!("the front of a value: {cause}"));
        let pointer = rope.as_pointer().ok_or_else(|| malformed(Malformed::Tag))?;
        let file = self.values.open(&self.segment_map, pointer.place.segment)?.at(pointer.place)?;
        self.value_reads.add(1);
        if is_long(rope.len) {
            // It follows a value that was written piece by piece.
            let (offset, len) = file.extent(of.key, &pointer)?;
            let (mut front, at) = ([0; FRONT_BYTES], offset + len - FRONT_BYTES as u64);
            file.read_exact_at(at, &mut front).map_err(|error| Error::io("read", file.path(), error))?;
            return Front::split(&front).map(|(front, _)| (front, None)).map_err(malformed);
        }
        let mut record = Vec::new();
        let len = file.value((of.table, of.key), &pointer, &mut record)?.len();
        let head_bytes = RECORD_HEAD_BYTES + of.key.len();
        let mut value = record.split_off(record.len() - len);
        let head = record.get(record.len().saturating_sub(head_bytes)..).unwrap_or_default();
        let head = RecordHead::decode(head).map_err(malformed)?;
        let behind = value.len().checked_sub(FRONT_BYTES).ok_or_else(|| malformed(Malformed::Short))?;
        let at = if head.front_is_behind { behind } else { 0 };
        let front: Vec<u8> = value.drain(at..at + FRONT_BYTES).collect();
        Front::split(&front).map(|(front, _)| (front, Some(value))).map_err(malformed)
    }

    fn piece(&self, of: &FrameRecord<'_>, pointer: &Pointer<'_>) -> Result<Vec<u8>> {
        self.value_reads.add(1);
        let mut record = Vec::new();
        let file = self.values.open(&self.segment_map, pointer.place.segment)?;
        let len = file.value((of.table, of.key), pointer, &mut record)?.len();
        record.drain(..record.len() - len);
        Ok(record)
    }
}

/// A table of this name and these rules, for feeds.
pub(crate) fn met(id: TableId, name: &str, rules_text: &str) -> Met {
    let rules = TableRules::from_stored(rules_text).ok();
    let has_stamps = rules.as_ref().is_some_and(|rules| rules.expire.has_stamps());
    let keeps_past = rules.as_ref().is_some_and(|rules| rules.keep.keeps_past());
    let is_hashed = rules.is_some_and(|rules| rules.kind == TableKind::Hashed);
    let has_fronts = is_hashed && (has_stamps || keeps_past);
    let table = FeedTable { id: id.0, name: name.to_owned(), rules_text: rules_text.to_owned() };
    Met { table: Arc::new(table), has_stamps, has_fronts }
}

/// The event of a note; none for a table that the feed does not cover. `tables` then includes it.
pub(crate) fn note_event(
    note: &TableNote,
    options: &FeedOptions,
    tables: &mut BTreeMap<TableId, Option<Met>>,
) -> Option<FeedEvent> {
    let is_covered = options.table.as_ref().is_none_or(|only| *only == note.name);
    let met = is_covered.then(|| met(note.table, &note.name, &note.rules_text));
    let table = met.as_ref().map(|met| Arc::clone(&met.table));
    tables.insert(note.table, met.filter(|_| !note.is_dropped));
    table.map(|table| match note.is_dropped {
        true => FeedEvent::TableDropped(table),
        false => FeedEvent::TableCreated(table),
    })
}
