//! Records in the form in which a commit passes them to the log, and the kinds of writes.
//!
//! Lengths are checked and ops normalized here, before any lock is taken.

use std::sync::Arc;

use folddb_base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use folddb_base::pointer::DEADLINE_BYTES;
use folddb_base::stamp::{NEVER, STAMP_BYTES};
use folddb_base::{Error, OpKind, Piece, Pointer, Result, Rope, RopeBuilder, Stamp, ValuePlace};
use folddb_hash::{Point, Slot};
use folddb_layout::frame::{self, LogOp, SLOT_BYTES};
use folddb_layout::hash_front::Front;
use folddb_layout::values::{self, RECORD_HEAD_BYTES};
use folddb_value_log::long_value::LongValue;

use crate::state::catalog::TableCore;
use crate::write::ops::{Derived, HashedOp, Lifetime, Separated, Stamped, ValueRecord};

/// Most bytes of a buffer that outlives a write.
pub const RECYCLED_BYTES_MAX: usize = 1 << 20;

/// What a write does to a key: the four ops, which are all that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOp {
    /// Sets the value.
    Put,
    /// Gives an absent key this value.
    PutIfAbsent,
    /// Folds this operand onto the value.
    Fold,
    /// Makes the key absent.
    Delete,
}

/// The kind of record that an op becomes.
pub fn kind_of(op: WriteOp) -> OpKind {
    match op {
        WriteOp::Put => OpKind::Set,
        WriteOp::PutIfAbsent => OpKind::Insert,
        WriteOp::Fold => OpKind::Fold,
        WriteOp::Delete => OpKind::Delete,
    }
}

/// The encoded records of a commit, as in the log.
#[derive(Default)]
pub struct Encoded {
    pub payload: Vec<u8>,
    pub count: u32,
    pub tables: Vec<Arc<TableCore>>,
    /// True if all ops are deletes: those are still allowed when space is short.
    pub frees_only: bool,
    pub has_range_delete: bool,
    /// True if operands are separated, which become ropes.
    pub has_ropes: bool,
    /// True if ropes have deadlines.
    pub has_lasting_ropes: bool,
    /// True if its ops point to values that are already in the value log.
    pub is_placed: bool,
    /// True if one of its tables needs the time.
    pub is_timed: bool,
    /// Stamps to be set when the batch gets its time.
    pub stamps: Vec<Stamped>,
    /// The ops whose values are separated, in the order of `values`.
    pub separated: Vec<Separated>,
    /// The records of their values, as in the value log.
    pub values: Vec<u8>,
    /// The ops on hashed tables, until they are resolved.
    pub hashed: Vec<HashedOp>,
    /// Keys and operands of those without a value.
    pub loose: Vec<u8>,
    /// The value of its only op, if that is a long one of a hashed table. Boxed, since a batch is
    /// moved with every write.
    pub long: Option<Box<LongValue>>,
    /// Their points, each with its table's place in the batch, once known.
    pub points: Vec<(usize, Point)>,
    /// The index entries of its records, once derived.
    pub derived: Derived,
}

impl Encoded {
    pub fn clear(&mut self) {
        self.payload.clear();
        self.tables.clear();
        self.count = 0;
        self.frees_only = true;
        self.has_range_delete = false;
        self.has_ropes = false;
        self.has_lasting_ropes = false;
        self.is_placed = false;
        self.is_timed = false;
        self.stamps.clear();
        self.separated.clear();
        self.values.clear();
        self.hashed.clear();
        self.loose.clear();
        self.long = None;
        self.points.clear();
        self.derived.clear();
    }

    /// Bytes that it takes in the log, including separated values.
    pub fn len_bytes(&self) -> usize {
        self.payload.len() + self.values.len() + self.loose.len()
    }

    /// Empties it for the next write; keeps its memory, except after an unusually large batch.
    pub fn recycle(&mut self) {
        self.clear();
        self.payload.shrink_to(RECYCLED_BYTES_MAX);
        self.values.shrink_to(RECYCLED_BYTES_MAX);
        self.loose.shrink_to(RECYCLED_BYTES_MAX);
    }

    /// Appends one op, normalized by the table's rules.
    #[inline]
    pub fn push(&mut self, table: &Arc<TableCore>, kind: OpKind, key: &[u8], value: &[u8]) -> Result<()> {
        check_lengths(table, key, value)?;
        if !table.takes_writes {
            table.check_takes_writes()?;
        }
        let kind = table.rules.fold.normalize(key, kind, value);
        let value = if kind == OpKind::Delete { &[][..] } else { value };
        let place = self.count_in(table, kind == OpKind::Delete);
        match (table.hashed.is_some(), table.has_stamps) {
            (false, false) => self.push_again(table, kind, key, value),
            (false, true) => self.push_stamped(table, kind, key, value, Lifetime::Default),
            (true, _) => self.push_hashed(place, kind, key, value, Lifetime::Default),
        }
        Ok(())
    }

    /// As [`Encoded::push`], for a value with this lifetime.
    #[inline]
    pub fn push_lasting(
        &mut self,
        table: &Arc<TableCore>,
        kind: OpKind,
        key: &[u8],
        value: &[u8],
        lifetime: Lifetime,
    ) -> Result<()> {
        match lifetime {
            Lifetime::Default => self.push(table, kind, key, value),
            said => self.push_expiring(table, (kind, key, value), said),
        }
    }

    #[cold]
    fn push_expiring(
        &mut self,
        table: &Arc<TableCore>,
        (kind, key, value): (OpKind, &[u8], &[u8]),
        lifetime: Lifetime,
    ) -> Result<()> {
        check_lengths(table, key, value)?;
        table.check_takes_writes()?;
        check_expires(table)?;
        let kind = table.rules.fold.normalize(key, kind, value);
        let value = if kind == OpKind::Delete { &[][..] } else { value };
        let place = self.count_in(table, kind == OpKind::Delete);
        match table.hashed.is_some() {
            true => self.push_hashed(place, kind, key, value, lifetime),
            false => self.push_stamped(table, kind, key, value, lifetime),
        }
        Ok(())
    }

    /// Appends an op with a stamp, which is set when the batch gets its time.
    #[cold]
    fn push_stamped(
        &mut self,
        table: &TableCore,
        kind: OpKind,
        key: &[u8],
        value: &[u8],
        lifetime: Lifetime,
    ) {
        let expire = table.expire();
        if kind == OpKind::Delete {
            return frame::put_record(&mut self.payload, table.id, kind, key, value);
        }
        if value.len() >= table.separate_from() && matches!(kind, OpKind::Set | OpKind::Insert) {
            self.put_separated(table, kind, key, value);
            let end = self.payload.len();
            let at = self.separated.last().map_or(end, |separated| separated.pointer_at);
            self.stamps.push(Stamped { at, deadline_at: Some(end - DEADLINE_BYTES), lifetime, expire });
            return;
        }
        let stamped = [&[0; STAMP_BYTES][..], value].concat();
        frame::put_record(&mut self.payload, table.id, kind, key, &stamped);
        let at = self.payload.len() - stamped.len();
        self.stamps.push(Stamped { at, deadline_at: None, lifetime, expire });
    }

    /// Sets the stamps, now that the time of the write is known.
    pub fn stamp(&mut self, write_ms: u64) {
        for stamped in &self.stamps {
            let deadline_ms = stamped.lifetime.deadline_ms(write_ms, stamped.expire);
            let payload = &mut self.payload;
            match stamped.deadline_at {
                None => {
                    let stamp = Stamp { write_ms, deadline_ms }.bytes();
                    payload[stamped.at..stamped.at + STAMP_BYTES].copy_from_slice(&stamp);
                }
                Some(deadline_at) => {
                    Pointer::date(&mut payload[stamped.at..], write_ms);
                    payload[deadline_at..deadline_at + DEADLINE_BYTES]
                        .copy_from_slice(&deadline_ms.to_le_bytes());
                }
            }
        }
    }

    /// Appends an op that was written before, already normalized.
    #[inline]
    pub(crate) fn push_again(&mut self, table: &TableCore, kind: OpKind, key: &[u8], value: &[u8]) {
        if value.len() >= table.separate_from() && table.separates(kind) {
            self.put_separated(table, kind, key, value);
        } else {
            frame::put_record(&mut self.payload, table.id, kind, key, value);
        }
    }

    /// Appends an op whose value is to be separated: `commit::put_values` sets its place.
    #[cold]
    fn put_separated(&mut self, table: &TableCore, kind: OpKind, key: &[u8], value: &[u8]) {
        let record_at = self.values.len();
        let hash = values::put_record(&mut self.values, table.id, key, value);
        let mut head = Vec::new();
        table.rules.heads.put(key, value, &mut head);
        let mut pointer = Vec::with_capacity(32 + head.len());
        Pointer { place: ValuePlace::default(), time_ms: 0, hash, len: value.len() as u64, head: &head }
            .put(&mut pointer);
        if table.has_stamps {
            pointer.extend_from_slice(&NEVER.to_le_bytes());
        }
        frame::put_record(&mut self.payload, table.id, kind.separated(), key, &pointer);
        self.has_ropes |= kind == OpKind::Fold;
        let record = record_at..self.values.len();
        let (pointer_at, value_placement) = (self.payload.len() - pointer.len(), table.value_placement());
        self.separated.push(Separated { pointer_at, record, is_timed: true, value_placement });
    }

    /// Appends an op whose value is already in the value log, at the place in its payload. The
    /// lifetime applies if its table has expiry.
    pub(crate) fn push_placed(
        &mut self,
        table: &Arc<TableCore>,
        (kind, key): (OpKind, &[u8]),
        rope: RopeBuilder,
        (time_ms, head): (u64, &[u8]),
        lifetime: Lifetime,
    ) {
        let mut payload = Vec::new();
        let deadline_ms = table.has_stamps.then_some(NEVER);
        let deadline_at = rope.put_until(time_ms, deadline_ms, head, &mut payload);
        frame::put_record(&mut self.payload, table.id, kind.separated(), key, &payload);
        let at = self.payload.len() - payload.len();
        if let Some(deadline_at) = deadline_at {
            let (deadline_at, expire) = (Some(at + deadline_at), table.expire());
            self.stamps.push(Stamped { at, deadline_at, lifetime, expire });
        }
        self.is_placed = true;
        self.count_in(table, false);
    }

    /// Appends an op whose value is separated in another store; `load` gets it piece by piece, so
    /// that it has the same pieces here.
    pub fn push_rope(
        &mut self,
        table: &TableCore,
        kind: OpKind,
        key: &[u8],
        rope: &Rope<'_>,
        load: &dyn Fn(&Pointer<'_>) -> Result<Vec<u8>>,
    ) -> Result<()> {
        let (mut again, mut places) = (RopeBuilder::default(), Vec::new());
        for piece in rope.iter() {
            let Some(pointer) = piece.pointer() else {
                again.push(piece);
                continue;
            };
            let value = load(&pointer)?;
            let record_at = self.values.len();
            let hash = values::put_record(&mut self.values, table.id, key, &value);
            places.push(record_at..self.values.len());
            again.push_separated(ValuePlace::default(), hash, pointer.len);
        }
        let mut payload = Vec::new();
        again.put_until(rope.time_ms, rope.deadline_ms, rope.head, &mut payload);
        frame::put_record(&mut self.payload, table.id, kind, key, &payload);
        let payload_at = self.payload.len() - payload.len();
        let again = Rope::decode(&payload).map_err(|cause| Error::invalid(cause.to_string()))?;
        let places = again
            .iter()
            .filter_map(|piece| match piece {
                Piece::Separated { at, .. } => Some(at),
                Piece::Inline(_) => None,
            })
            .zip(places);
        self.separated.extend(places.map(|(at, record)| Separated {
            pointer_at: payload_at + at,
            record,
            is_timed: false,
            value_placement: table.value_placement(),
        }));
        self.has_ropes |= again.as_pointer().is_none() || kind == OpKind::FoldSeparated;
        self.has_lasting_ropes |= again.as_pointer().is_none() && again.deadline_ms.is_some();
        Ok(())
    }

    /// Appends a range delete: all keys from `from` up to, but not including, `to`.
    pub fn push_range_delete(&mut self, table: &Arc<TableCore>, from: &[u8], to: &[u8]) -> Result<()> {
        check_lengths(table, from, &[])?;
        check_lengths(table, to, &[])?;
        if table.is_index() {
            table.check_takes_writes()?;
        }
        if table.hashed.is_some() {
            return Err(Error::invalid(format!(
                "table `{}` is hashed, and has no ranges of keys: delete its keys one by one, or drop it; or use a sorted table",
                table.name
            )));
        }
        if table.rules.order.compare(from, to).is_ge() {
            return Err(Error::invalid(format!(
                "a range delete in table `{}` must begin before it ends; swap its bounds",
                table.name
            )));
        }
        frame::put_record(&mut self.payload, table.id, LogOp::RangeDelete, from, to);
        self.count_in(table, true);
        self.has_range_delete = true;
        Ok(())
    }

    /// Counts an op, and returns the place of its table among those of the batch.
    #[inline]
    pub(crate) fn count_in(&mut self, table: &Arc<TableCore>, frees: bool) -> usize {
        self.count += 1;
        self.frees_only &= frees;
        if let Some(place) = self.tables.iter().position(|known| Arc::ptr_eq(known, table)) {
            return place;
        }
        self.tables.push(Arc::clone(table));
        self.is_timed |= table.is_timed;
        self.tables.len() - 1
    }
}

impl Encoded {
    /// Appends an op on the hashed table with this place in the batch.
    #[cold]
    pub(crate) fn push_hashed(
        &mut self,
        table: usize,
        kind: OpKind,
        key: &[u8],
        value: &[u8],
        lifetime: Lifetime,
    ) {
        let has_fronts = self.tables[table].records_of().has_fronts;
        let (bytes, record, key_at) = match kind {
            OpKind::Set | OpKind::Insert if !has_fronts => {
                let start = self.values.len();
                let hash = values::put_record(&mut self.values, self.tables[table].id, key, value);
                let record = ValueRecord { range: start..self.values.len(), hash };
                (&self.values, Some(record), start + RECORD_HEAD_BYTES)
            }
            _ => {
                let start = self.loose.len();
                self.loose.extend_from_slice(key);
                self.loose.extend_from_slice(value);
                (&self.loose, None, start)
            }
        };
        let value_at = key_at + key.len();
        debug_assert!(bytes.len() >= value_at + value.len());
        self.hashed.push(HashedOp {
            table,
            kind,
            key: key_at..value_at,
            value: value_at..value_at + value.len(),
            record,
            lifetime,
        });
    }

    /// Makes a long value, finished except for its front, the only op of an empty batch.
    pub fn put_long(
        &mut self,
        table: &Arc<TableCore>,
        (kind, key): (OpKind, &[u8]),
        value: LongValue,
        lifetime: Lifetime,
    ) {
        let place = self.count_in(table, false);
        self.push_hashed(place, kind, key, &[], lifetime);
        self.long = Some(Box::new(value));
    }

    pub(crate) fn bytes_of(&self, op: &HashedOp) -> &[u8] {
        if op.record.is_some() { &self.values } else { &self.loose }
    }

    pub fn key_of(&self, op: &HashedOp) -> &[u8] {
        &self.bytes_of(op)[op.key.clone()]
    }

    pub(crate) fn value_of(&self, op: &HashedOp) -> &[u8] {
        &self.bytes_of(op)[op.value.clone()]
    }

    /// Appends the log record that puts a value in place of another, or of none.
    pub(crate) fn put_hashed(
        &mut self,
        table: &TableCore,
        record: &ValueRecord,
        key_len: usize,
        old: Option<Slot>,
    ) {
        let key_at = record.range.start + RECORD_HEAD_BYTES;
        let len = u64::from_le_bytes(self.values[record.range.start..][..8].try_into().unwrap_or_default());
        let mut payload = old.map_or(0, Slot::bits).to_le_bytes().to_vec();
        Pointer { place: ValuePlace::default(), time_ms: 0, hash: record.hash, len, head: &[] }
            .put(&mut payload);
        let key = &self.values[key_at..key_at + key_len];
        frame::put_record(&mut self.payload, table.id, LogOp::PutHashed, key, &payload);
        let pointer_at = self.payload.len() - payload.len() + SLOT_BYTES;
        let value_placement = table.value_placement();
        self.separated.push(Separated {
            pointer_at,
            record: record.range.clone(),
            is_timed: true,
            value_placement,
        });
    }

    /// Appends the same record, for a value that has its place.
    pub(crate) fn put_placed(
        &mut self,
        table: &TableCore,
        key: &[u8],
        pointer: &Pointer<'_>,
        old: Option<Slot>,
    ) {
        let mut payload = old.map_or(0, Slot::bits).to_le_bytes().to_vec();
        pointer.put(&mut payload);
        frame::put_record(&mut self.payload, table.id, LogOp::PutHashed, key, &payload);
    }

    /// Builds the record of a value with a front.
    pub(crate) fn front_record(
        &mut self,
        table: &TableCore,
        key: &[u8],
        front: Front,
        value: &[u8],
    ) -> ValueRecord {
        let start = self.values.len();
        let value = [&front.bytes()[..], value].concat();
        let hash = values::put_record(&mut self.values, table.id, key, &value);
        ValueRecord { range: start..self.values.len(), hash }
    }

    /// Appends the log record that removes a key, or does nothing.
    pub(crate) fn remove_hashed(&mut self, table: &TableCore, op: &HashedOp, old: Option<Slot>) {
        let Encoded { payload, values, loose, .. } = self;
        let bytes = if op.record.is_some() { values } else { loose };
        let key = old.map_or(&[][..], |_| &bytes[op.key.clone()]);
        let slot = old.map_or(0, Slot::bits).to_le_bytes();
        frame::put_record(payload, table.id, LogOp::RemoveHashed, key, &slot);
    }
}

/// Fails if values of the table last forever.
pub(crate) fn check_expires(table: &TableCore) -> Result<()> {
    if table.expires {
        return Ok(());
    }
    let name = &table.name;
    let message =
        format!("the values of table `{name}` never expire: create it with expire=by-write, or with a time");
    Err(Error::invalid(message))
}

#[inline]
pub fn check_lengths(table: &TableCore, key: &[u8], value: &[u8]) -> Result<()> {
    if key.len() > KEY_BYTES_MAX {
        return Err(too_long(table, "key", key.len(), KEY_BYTES_MAX));
    }
    if value.len() > VALUE_BYTES_MAX {
        let error = too_long(table, "value", value.len(), VALUE_BYTES_MAX);
        return Err(error.context(format!("key {}", table.rules.rules.key_codec().show_line(key))));
    }
    Ok(())
}

#[cold]
fn too_long(table: &TableCore, what: &str, len: usize, limit: usize) -> Error {
    Error::invalid(format!(
        "a {what} of {len} bytes is too long for table `{}`: at most {limit} bytes",
        table.name
    ))
}
