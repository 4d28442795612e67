//! The index entries of a batch: one for each term of its records. No lookups are needed.
//!
//! An entry is a record of the table that is the index: a `Set` of term and key, without a value.
//! The entries of a batch follow its own records and have their own seqs, so they are in the log,
//! in memory and on the disk like all records, and a batch and its entries exist together or not at
//! all. `Set`, `Insert` and `Fold` add the terms of their values and operands; a delete adds none,
//! and old entries in an index become stale: queries check them (`find.rs`), and merges clean them
//! (`background/clean.rs`).
//!
//! They are derived right before the batch is appended, and again if an index was added or dropped
//! by then, so no batch lacks the entries of an older index. Called by `commit`.

use std::sync::Arc;

use folddb_base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use folddb_base::{Error, ErrorKind, OpKind, Piece, Result, Rope};
use folddb_host::sync::atomic::Ordering;
use folddb_layout::frame::{self, FrameRecord, LogOp};
use folddb_layout::values::{RECORD_HEAD_BYTES, RecordHead};
use folddb_rules::terms::{ENTRY_OVERHEAD_BYTES_MAX, put_entry};

use crate::read::terms;
use crate::read::terms::Taken;
use crate::state::catalog::{IndexCore, TableCore};
use crate::state::engine::Engine;
use crate::values::load;
use crate::write::encoded_batch::Encoded;
use crate::write::ops::{Derived, Own, Separated};

/// A table with indexes, for one batch.
struct Indexed {
    table: Arc<TableCore>,
    indexes: Arc<Vec<Arc<IndexCore>>>,
    /// The number of its first index among all indexes of the batch.
    first: usize,
}

/// Adds the entries of the present indexes to a batch, unless it has them.
#[inline]
pub fn derive(engine: &Engine, batch: &mut Encoded) -> Result<()> {
    let epoch = engine.index_epoch.load(Ordering::Acquire);
    if batch.derived.epoch == epoch { Ok(()) } else { derive_as_of(engine, batch, epoch) }
}

fn derive_as_of(engine: &Engine, batch: &mut Encoded, epoch: u64) -> Result<()> {
    batch.take_back_derived();
    batch.derived.epoch = epoch;
    let mut indexed = Vec::new();
    let mut first = 0;
    for table in &batch.tables {
        let indexes = table.indexes();
        if !indexes.is_empty() {
            indexed.push(Indexed { table: Arc::clone(table), first, indexes });
            first += indexed.last().map_or(0, |one| one.indexes.len());
        }
    }
    if indexed.is_empty() {
        return Ok(());
    }
    let mut derived = std::mem::take(&mut batch.derived);
    let put = put_entries(engine, batch, &indexed, &mut derived);
    batch.derived = derived;
    batch.derived.own =
        Some(Own { payload_bytes: batch.payload.len(), count: batch.count, tables: batch.tables.len() });
    put?;
    batch.append_derived(&indexed);
    Ok(())
}

/// Puts the entries of all records into the frames of their indexes.
fn put_entries(engine: &Engine, batch: &Encoded, indexed: &[Indexed], derived: &mut Derived) -> Result<()> {
    let Derived { terms, entry, value, frames, .. } = derived;
    let wanted = indexed.last().map_or(0, |last| last.first + last.indexes.len());
    frames.iter_mut().for_each(Vec::clear);
    frames.resize_with(wanted.max(frames.len()), Vec::new);
    for record in frame::records(&batch.payload) {
        let record = record.map_err(|cause| Error::invalid(format!("a batch: {cause}")))?;
        let (LogOp::Op(kind), Some(one)) =
            (record.op, indexed.iter().find(|one| one.table.id == record.table))
        else {
            continue;
        };
        if kind == OpKind::Delete {
            continue;
        }
        if record.key.len() + ENTRY_OVERHEAD_BYTES_MAX > KEY_BYTES_MAX {
            return Err(too_long(&one.table, record.key.len()));
        }
        let taken = value_of(engine, batch, &one.table, kind, &record, value)?;
        for (index, frame) in one.indexes.iter().zip(&mut frames[one.first..]) {
            let extractor = index.extractor.as_ref().map_err(|why| not_at_hand(&one.table, index, why))?;
            terms.clear();
            terms::take_terms(extractor, &one.table, record.key, taken, terms);
            for term in terms.iter() {
                entry.clear();
                put_entry(entry, term, record.key);
                frame::put_record(frame, index.table.id, OpKind::Set, entry, &[]);
            }
        }
    }
    Ok(())
}

/// The value or operand in a record of a batch.
#[inline]
fn value_of<'v>(
    engine: &Engine,
    batch: &'v Encoded,
    table: &TableCore,
    kind: OpKind,
    record: &FrameRecord<'v>,
    value: &'v mut Vec<u8>,
) -> Result<Taken<'v>> {
    if !kind.is_separated() {
        return Ok(Taken::Value(table.rules.fold.value_in(record.payload)));
    }
    let rope = load::rope(table, record.key, record.payload)?;
    if rope.len > VALUE_BYTES_MAX as u64 {
        return Ok(Taken::Head(rope.head));
    }
    if !batch.gather(&rope, record.payload, value) {
        // It was streamed, and is in the value log.
        let mut read = Vec::new();
        value.clear();
        value.extend_from_slice(load::load_value(
            engine,
            None,
            table,
            record.key,
            record.payload,
            &mut read,
        )?);
    }
    Ok(Taken::Value(value))
}

impl Encoded {
    /// Removes the derived entries.
    fn take_back_derived(&mut self) {
        if let Some(own) = self.derived.own.take() {
            self.payload.truncate(own.payload_bytes);
            self.count = own.count;
            self.tables.truncate(own.tables);
        }
    }

    /// Appends the records of each index.
    fn append_derived(&mut self, indexed: &[Indexed]) {
        for one in indexed {
            for (index, frame) in one.indexes.iter().zip(&self.derived.frames[one.first..]) {
                if frame.is_empty() {
                    continue;
                }
                self.payload.extend_from_slice(frame);
                self.count += frame::records(frame).count() as u32;
                if !self.tables.iter().any(|table| Arc::ptr_eq(table, &index.table)) {
                    self.tables.push(Arc::clone(&index.table));
                }
            }
        }
    }

    /// Appends a single entry of an index, for a record that is older than the index.
    pub fn push_entry(&mut self, index: &Arc<TableCore>, entry: &[u8]) {
        frame::put_record(&mut self.payload, index.id, OpKind::Set, entry, &[]);
        self.count_in(index, false);
    }

    /// Appends a record to an index that only takes a seq: the delete of a key that no entry has.
    pub fn push_no_entry(&mut self, index: &Arc<TableCore>) {
        frame::put_record(&mut self.payload, index.id, OpKind::Delete, &[], &[]);
        self.count_in(index, true);
    }

    /// Assembles a value whose pieces are in the batch. False if they are not.
    fn gather(&self, rope: &Rope<'_>, payload: &[u8], value: &mut Vec<u8>) -> bool {
        let at = payload.as_ptr() as usize - self.payload.as_ptr() as usize;
        let first = self.separated.partition_point(|separated| separated.pointer_at < at);
        let pieces =
            self.separated[first..].iter().take_while(|separated| separated.pointer_at < at + payload.len());
        let mut pieces = pieces.map(|separated| self.piece(separated));
        value.clear();
        for piece in rope.iter() {
            match piece {
                Piece::Inline(bytes) => value.extend_from_slice(bytes),
                Piece::Separated { .. } => match pieces.next().flatten() {
                    Some(bytes) => value.extend_from_slice(bytes),
                    None => return false,
                },
            }
        }
        true
    }

    /// The value in a record of the value log.
    fn piece(&self, separated: &Separated) -> Option<&[u8]> {
        let record = self.values.get(separated.record.clone())?;
        let head = RecordHead::decode(record).ok()?;
        let from = RECORD_HEAD_BYTES + usize::from(head.key_len);
        record.get(from..from + head.len as usize)
    }
}

#[cold]
fn too_long(table: &TableCore, key_bytes: usize) -> Error {
    let most = KEY_BYTES_MAX - ENTRY_OVERHEAD_BYTES_MAX;
    Error::invalid(format!(
        "a key of {key_bytes} bytes is too long for table `{}`, which has indexes: at most {most} bytes",
        table.name
    ))
}

/// The error for an index whose terms cannot be taken.
#[cold]
pub fn not_at_hand(table: &TableCore, index: &IndexCore, why: &str) -> Error {
    let message = format!("index `{}` of table `{}`: {why}", index.name, table.name);
    Error::new(ErrorKind::RulesMismatch, message)
}
