//! The write path of a hashed table: the effect of an op on its key is determined before the batch
//! is written.
//!
//! ```text
//!   lock      the points of the batch, in order                     nobody else writes these keys
//!   look      whether the key exists, and where: reads nothing if it does not, otherwise the head of its record;
//!             a value that is folded onto is read whole
//!   resolve   all ops of the batch on one key, one after the other: a value to put, a value to remove, or nothing to do
//!   encode    one record of the log each, with the slot that it replaces
//! ```
//!
//! If the table keeps versions, the replaced slot is that of the oldest, once all versions exist,
//! and a delete of an existing value is a version of its own. If values have fronts, their times
//! are set here, before the commit lock: those of one key do not go back, since it is locked.
//!
//! Then the batch continues like any other (`commit.rs`), and the locks are released when it is
//! published. Each op has its seq, even without an effect. A fold that fails makes the commit fail:
//! nothing of the batch is written.

use std::sync::Arc;

use folddb_base::limits::VALUE_BYTES_MAX;
use folddb_base::stamp::NEVER;
use folddb_base::{Error, Op, OpKind, Result, Stamp};
use folddb_hash::{Point, Slot};
use folddb_host::sync::MutexGuard;
use folddb_layout::hash_front::Front;
use folddb_layout::values::{self};

use crate::read::hashed::As;
use crate::read::{get, hashed};
use crate::state::catalog::TableCore;
use crate::state::clock;
use crate::state::engine::Engine;
use crate::state::hash_index::Hashed;
use crate::values::hashed_record::{Found, Reading};
use crate::values::long;
use crate::write::encoded_batch::Encoded;
use crate::write::ops::{HashedOp, ValueRecord};

/// The new state of a key.
enum Outcome {
    /// As before.
    Unchanged,
    /// Absent.
    Absent,
    /// The value of this op.
    Brought(usize),
    /// The result of folding, with this op last.
    Folded(Vec<u8>, usize),
}

/// A key of a batch that is being resolved.
struct Key<'a> {
    engine: &'a Engine,
    table: &'a TableCore,
    hashed: &'a Hashed,
    key: &'a [u8],
    now_ms: u64,
    /// The newest record in the index, once looked up, even if it is no longer a live value.
    found: Option<Option<Found>>,
    /// The bytes of that record, as far as they were read.
    record: Vec<u8>,
}

impl Key<'_> {
    fn look(&mut self, reading: Reading) -> Result<Option<Found>> {
        if let (Some(found), Reading::Head) = (self.found, reading) {
            return Ok(found);
        }
        let of = (self.table, self.hashed);
        let found = hashed::look_up(self.engine, of, self.key, As::Writer, reading, &mut self.record)?;
        self.found = Some(found);
        Ok(found)
    }

    /// Whether the key has a value now.
    fn is_there(&mut self) -> Result<bool> {
        let now_ms = self.now_ms;
        Ok(self.look(Reading::Head)?.is_some_and(|found| found.is_alive(now_ms)))
    }

    /// The present value of the key.
    fn load(&mut self) -> Result<Option<Vec<u8>>> {
        let now_ms = self.now_ms;
        let found = self.look(Reading::Whole)?.filter(|found| found.is_alive(now_ms));
        Ok(found.map(|found| found.value(&self.record).to_vec()))
    }

    /// The slot that a new value replaces: the present one, or the oldest if all versions exist.
    fn replaced(&mut self) -> Result<Option<Slot>> {
        let versions = self.table.versions();
        if versions == 1 {
            return Ok(self.look(Reading::Head)?.map(|found| found.slot));
        }
        let mut slots = Vec::new();
        self.hashed.index.candidates(self.hashed.point(self.key), None, &mut slots)?;
        if slots.len() < versions {
            return Ok(None); // other keys may be among them, which adds no versions
        }
        slots.clear();
        let of = (self.table, self.hashed);
        let mut take = |found: Found, _: &[u8]| slots.push(found.slot);
        hashed::each_version(self.engine, of, self.key, As::Writer, Reading::Head, &mut take)?;
        Ok(slots.get(versions - 1).copied())
    }

    /// The front of an op's value.
    fn front(&self, op: &HashedOp) -> Front {
        let deadline_ms = op.lifetime.deadline_ms(self.now_ms, self.table.expire());
        Front { is_deleted: false, stamp: Stamp { write_ms: self.now_ms, deadline_ms } }
    }

    /// Whether the value of an op has not expired for the next op of the batch.
    fn lasts(&self, op: &HashedOp) -> bool {
        !self.table.expires || self.front(op).is_alive(self.now_ms)
    }
}

/// Resolves the ops of a batch on hashed tables, and makes log records of them. The keys stay
/// locked while the guards live.
///
/// # Errors
/// A fold that fails; damage or a failed read of a present value.
pub(crate) fn resolve_hashed<'e>(engine: &'e Engine, batch: &mut Encoded) -> Result<Vec<MutexGuard<'e, ()>>> {
    let ops = std::mem::take(&mut batch.hashed);
    let tables = batch.tables.clone();
    let point = |op: &HashedOp| {
        let hashed = tables[op.table].hashed.as_ref();
        hashed.map(|hashed| (op.table, hashed.point(batch.key_of(op))))
    };
    let points: Vec<(usize, Point)> = ops.iter().filter_map(point).collect();
    let guards = engine.points.hold(points.iter().map(|&(table, point)| (tables[table].id, point)));
    // The ops of one key together, in their order.
    let mut order: Vec<usize> = (0..ops.len()).collect();
    order.sort_by_key(|&at| (points[at], batch.key_of(&ops[at])));
    let same = |&one: &usize, &other: &usize| {
        ops[one].table == ops[other].table && batch.key_of(&ops[one]) == batch.key_of(&ops[other])
    };
    let keys: Vec<Vec<usize>> = order.chunk_by(same).map(<[usize]>::to_vec).collect();
    for of_key in &keys {
        resolve_key(engine, batch, &ops, of_key, &tables)?;
    }
    batch.points = points;
    Ok(guards)
}

fn resolve_key(
    engine: &Engine,
    batch: &mut Encoded,
    ops: &[HashedOp],
    of_key: &[usize],
    tables: &[Arc<TableCore>],
) -> Result<()> {
    let first = &ops[of_key[0]];
    let table = &tables[first.table];
    let Some(hashed) = &table.hashed else { return Ok(()) };
    let key_bytes = batch.key_of(first).to_vec();
    let has_fronts = table.records_of().has_fronts;
    let now_ms = if has_fronts { clock::now_ms(engine) } else { 0 };
    let mut key = Key { engine, table, hashed, key: &key_bytes, now_ms, found: None, record: Vec::new() };
    let outcome = outcome(engine, batch, ops, of_key, &mut key)?;
    match outcome {
        Outcome::Absent if table.versions() > 1 => match key.is_there()? {
            true => {
                let stamp = Stamp { write_ms: now_ms, deadline_ms: NEVER };
                put_with_front(batch, &mut key, Front { is_deleted: true, stamp }, &[])?;
            }
            false => batch.remove_hashed(table, first, None),
        },
        Outcome::Brought(at) if batch.long.is_some() => {
            let old = key.replaced()?;
            let front = has_fronts.then(|| key.front(&ops[at]));
            let long = batch.long.as_mut().map(|value| long::put_long(engine, value, front)).transpose()?;
            long.iter().for_each(|pointer| batch.put_placed(table, &key_bytes, pointer, old));
        }
        Outcome::Brought(at) if has_fronts => {
            let (front, value) = (key.front(&ops[at]), batch.value_of(&ops[at]).to_vec());
            put_with_front(batch, &mut key, front, &value)?;
        }
        Outcome::Folded(value, at) if has_fronts => {
            let front = key.front(&ops[at]);
            put_with_front(batch, &mut key, front, &value)?;
        }
        Outcome::Unchanged => batch.remove_hashed(table, first, None),
        Outcome::Absent => {
            let old = key.look(Reading::Head)?.map(|found| found.slot);
            batch.remove_hashed(table, first, old);
        }
        Outcome::Brought(at) => {
            let old = key.look(Reading::Head)?.map(|found| found.slot);
            if let Some(record) = &ops[at].record {
                batch.put_hashed(table, record, key_bytes.len(), old);
            }
        }
        Outcome::Folded(value, _) => {
            let old = key.look(Reading::Head)?.map(|found| found.slot);
            let start = batch.values.len();
            let hash = values::put_record(&mut batch.values, table.id, &key_bytes, &value);
            let record = ValueRecord { range: start..batch.values.len(), hash };
            batch.put_hashed(table, &record, key_bytes.len(), old);
        }
    }
    // Every op has its seq.
    of_key[1..].iter().for_each(|&at| batch.remove_hashed(table, &ops[at], None));
    Ok(())
}

/// Puts a record whose value has a front.
fn put_with_front(batch: &mut Encoded, key: &mut Key<'_>, front: Front, value: &[u8]) -> Result<()> {
    let record = batch.front_record(key.table, key.key, front, value);
    batch.put_hashed(key.table, &record, key.key.len(), key.replaced()?);
    Ok(())
}

/// The state of a key after all ops of a batch on it.
fn outcome(
    engine: &Engine,
    batch: &Encoded,
    ops: &[HashedOp],
    of_key: &[usize],
    key: &mut Key<'_>,
) -> Result<Outcome> {
    let rules = &key.table.fold;
    let mut outcome = Outcome::Unchanged;
    for &at in of_key {
        let value = batch.value_of(&ops[at]);
        outcome = match (ops[at].kind, outcome) {
            (OpKind::Set, _) => Outcome::Brought(at),
            (OpKind::Delete, _) => Outcome::Absent,
            (OpKind::Insert, Outcome::Unchanged) if key.is_there()? => Outcome::Unchanged,
            (OpKind::Insert, Outcome::Brought(last)) if key.lasts(&ops[last]) => Outcome::Brought(last),
            (OpKind::Insert, Outcome::Folded(value, last)) if key.lasts(&ops[last]) => {
                Outcome::Folded(value, last)
            }
            (OpKind::Insert, _) => match rules.is_deleted(key.key, value) {
                true => Outcome::Absent,
                false => Outcome::Brought(at),
            },
            (_, before) => {
                let mut state = match before {
                    Outcome::Unchanged => key.load()?,
                    Outcome::Absent => None,
                    Outcome::Brought(last) => {
                        key.lasts(&ops[last]).then(|| batch.value_of(&ops[last]).to_vec())
                    }
                    Outcome::Folded(value, last) => key.lasts(&ops[last]).then_some(value),
                };
                let folded = rules.apply(key.key, &mut state, Op::Fold(value));
                folded.map_err(|cause| get::fold_failed(engine, key.table, key.key, &cause))?;
                state.map_or(Outcome::Absent, |value| Outcome::Folded(value, at))
            }
        };
    }
    match &outcome {
        Outcome::Folded(value, _) if value.len() > VALUE_BYTES_MAX => Err(Error::invalid(format!(
            "folding gives a value of {} bytes in table `{}`: at most {VALUE_BYTES_MAX} bytes",
            value.len(),
            key.table.name
        ))),
        _ => Ok(outcome),
    }
}
