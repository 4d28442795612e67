//! Batches: ops on any tables of a store that happen together or not at all.

use std::sync::Arc;

use folddb_base::limits::BATCH_BYTES_MAX;
use folddb_base::{Error, OpKind, Result, Seq};
use folddb_rules::codec::{AsKey, AsValue, Key, Value};

use crate::table::{BytesTable, Table};
use folddb_engine::options::Durability;
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::engine::Engine;
use folddb_engine::write::commit;
use folddb_engine::write::encoded_batch::{Encoded, WriteOp};
use folddb_engine::write::ops::Lifetime;
use folddb_engine::write::read_set::ReadSet;

/// Ops that are committed together: after a crash all of them are there or none, and no reader ever sees
/// only some. A batch that is dropped without [`Batch::commit`] does nothing.
///
/// Mistakes (a key too long, a table of another store) are remembered and returned by `commit`, so that
/// calls can be chained.
pub struct Batch {
    engine: Arc<Engine>,
    encoded: Encoded,
    key: Vec<u8>,
    value: Vec<u8>,
    mistake: Option<Error>,
}

impl Batch {
    pub(crate) fn new(engine: Arc<Engine>) -> Batch {
        let mut encoded = Encoded::default();
        encoded.clear();
        Batch { engine, encoded, key: Vec::new(), value: Vec::new(), mistake: None }
    }

    /// Makes the value of `key` this one, whatever it was.
    pub fn put<K: Key, V: Value, Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &mut self,
        table: &Table<K, V>,
        key: &Q,
        value: &W,
    ) -> &mut Batch {
        self.typed(table, OpKind::Set, key, Some(value), None)
    }

    /// Makes the value of `key` this one, for so long. As in [`Table::put_expiring`], the values of the table may expire.
    pub fn put_expiring<K: Key, V: Value, Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &mut self,
        table: &Table<K, V>,
        key: &Q,
        value: &W,
        lifetime: Lifetime,
    ) -> &mut Batch {
        self.typed(table, OpKind::Set, key, Some(value), Some(lifetime))
    }

    /// Gives `key` this value unless it has one.
    pub fn put_if_absent<K: Key, V: Value, Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &mut self,
        table: &Table<K, V>,
        key: &Q,
        value: &W,
    ) -> &mut Batch {
        self.typed(table, OpKind::Insert, key, Some(value), None)
    }

    /// Gives `key` this value unless it has one, for so long: see [`Table::put_if_absent_expiring`].
    pub fn put_if_absent_expiring<K: Key, V: Value, Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &mut self,
        table: &Table<K, V>,
        key: &Q,
        value: &W,
        lifetime: Lifetime,
    ) -> &mut Batch {
        self.typed(table, OpKind::Insert, key, Some(value), Some(lifetime))
    }

    /// Folds `operand` onto the value of `key`. Reads nothing.
    pub fn fold<K: Key, V: Value, Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &mut self,
        table: &Table<K, V>,
        key: &Q,
        operand: &W,
    ) -> &mut Batch {
        self.typed(table, OpKind::Fold, key, Some(operand), None)
    }

    /// Folds `operand` onto the value of `key`, which from now on lasts so long: see [`Table::fold_expiring`].
    pub fn fold_expiring<K: Key, V: Value, Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &mut self,
        table: &Table<K, V>,
        key: &Q,
        operand: &W,
        lifetime: Lifetime,
    ) -> &mut Batch {
        self.typed(table, OpKind::Fold, key, Some(operand), Some(lifetime))
    }

    /// Makes `key` absent.
    pub fn delete<K: Key, V: Value, Q: AsKey<K> + ?Sized>(
        &mut self,
        table: &Table<K, V>,
        key: &Q,
    ) -> &mut Batch {
        self.typed(table, OpKind::Delete, key, None::<&V>, None)
    }

    fn typed<K: Key, V: Value, Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &mut self,
        table: &Table<K, V>,
        kind: OpKind,
        key: &Q,
        value: Option<&W>,
        lifetime: Option<Lifetime>,
    ) -> &mut Batch {
        let (mut key_bytes, mut value_bytes) =
            (std::mem::take(&mut self.key), std::mem::take(&mut self.value));
        key_bytes.clear();
        value_bytes.clear();
        key.encode_key(&mut key_bytes);
        if let Some(value) = value {
            value.encode(&mut value_bytes);
        }
        match table.check_written(kind, &value_bytes) {
            Ok(()) => self.push((table.core(), table.engine()), kind, &key_bytes, &value_bytes, lifetime),
            Err(mistake) => self.remember(Err(mistake)),
        }
        (self.key, self.value) = (key_bytes, value_bytes);
        self
    }

    /// Any op on a table of bytes. `value` is ignored by a delete. A key or value that is not of the table's types is a
    /// mistake, as in [`BytesTable::write`].
    pub fn write(&mut self, table: &BytesTable, op: WriteOp, key: &[u8], value: &[u8]) -> &mut Batch {
        self.checked(table, op, key, value, None)
    }

    /// Any op on a table of bytes, whose value lasts so long.
    pub fn write_expiring(
        &mut self,
        table: &BytesTable,
        op: WriteOp,
        key: &[u8],
        value: &[u8],
        lifetime: Lifetime,
    ) -> &mut Batch {
        self.checked(table, op, key, value, Some(lifetime))
    }

    fn checked(
        &mut self,
        table: &BytesTable,
        op: WriteOp,
        key: &[u8],
        value: &[u8],
        lifetime: Option<Lifetime>,
    ) -> &mut Batch {
        let value = if op == WriteOp::Delete { &[][..] } else { value };
        match table.check(op, key, value) {
            Ok(()) => self.push((table.core(), table.engine()), op.kind(), key, value, lifetime),
            Err(mistake) => self.remember(Err(mistake)),
        }
        self
    }

    /// Makes all keys from `from` on and below `to`, in the order of the table, absent. Costs as much as one write.
    pub fn delete_range(&mut self, table: &BytesTable, from: &[u8], to: &[u8]) -> &mut Batch {
        if self.accepts(table.engine()) {
            let pushed = self.encoded.push_range_delete(table.core(), from, to);
            self.remember(pushed);
        }
        self
    }

    #[inline]
    fn push(
        &mut self,
        (table, engine): (&Arc<TableCore>, &Arc<Engine>),
        kind: OpKind,
        key: &[u8],
        value: &[u8],
        lifetime: Option<Lifetime>,
    ) {
        if self.accepts(engine) {
            let pushed = match lifetime {
                None => self.encoded.push(table, kind, key, value),
                Some(lifetime) => self.encoded.push_lasting(table, kind, key, value, lifetime),
            };
            self.remember(pushed);
        }
    }

    fn accepts(&mut self, engine: &Arc<Engine>) -> bool {
        if !Arc::ptr_eq(engine, &self.engine) {
            self.remember(Err(Error::invalid("a batch takes tables of its own store only")));
        } else if self.encoded.len_bytes() > BATCH_BYTES_MAX {
            let message = format!("a batch holds at most {BATCH_BYTES_MAX} bytes; commit it in several");
            self.remember(Err(Error::invalid(message)));
        }
        self.mistake.is_none()
    }

    fn remember(&mut self, pushed: Result<()>) {
        if let (Err(error), None) = (pushed, &self.mistake) {
            self.mistake = Some(error);
        }
    }

    /// How many ops are in the batch.
    pub fn len(&self) -> usize {
        self.encoded.count as usize
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.encoded.count == 0
    }

    /// Bytes of the batch as the journal will hold it.
    pub fn len_bytes(&self) -> usize {
        self.encoded.len_bytes()
    }

    /// Commits what the batch holds and empties it, so that it can be used again. Returns the sequence number of
    /// its last record.
    ///
    /// # Errors
    /// The first mistake made while filling it (nothing is written then); [`crate::ErrorKind::NoSpace`] when the
    /// disk is full; [`crate::ErrorKind::Poisoned`] after an earlier failed write; any failure of the
    /// operating system. Whatever fails, the batch is emptied.
    pub fn commit(&mut self, durability: Durability) -> Result<Seq> {
        self.commit_if(None, durability)
    }

    /// The same, if what was read still holds.
    pub(crate) fn commit_if(&mut self, reads: Option<&ReadSet>, durability: Durability) -> Result<Seq> {
        let result = match self.mistake.take() {
            Some(mistake) => Err(mistake),
            None if self.encoded.len_bytes() > BATCH_BYTES_MAX => Err(Error::invalid(format!(
                "a batch holds at most {BATCH_BYTES_MAX} bytes; commit it in several"
            ))),
            None => commit::commit_if(&self.engine, &mut self.encoded, reads, durability),
        };
        self.encoded.clear();
        result
    }
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Batch({} ops)", self.len())
    }
}
