//! Transactions: reads at one snapshot and writes that happen only if what was read still holds.
//!
//! They are optimistic: nothing is locked, and a commit whose reads were overtaken fails with [`ErrorKind::Conflict`] and writes nothing.
//! Whatever was not read does not count, so folds onto the same key never conflict with one another. After Kung and Robinson, "On
//! Optimistic Methods for Concurrency Control", 1981: backward validation of the read set, under the commit lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use folddb_base::{Error, ErrorKind, OpBuf, OpKind, Result, Seq, TableId};
use folddb_rules::codec::{AsKey, AsValue, Key, Value};

use crate::batch::Batch;
use crate::borders::HeldFor;
use crate::catalog::TableCore;
use crate::encode::{Lifetime, WriteOp};
use crate::engine::Engine;
use crate::options::Durability;
use crate::read::damaged_record;
use crate::reads::Reads;
use crate::snapshot::Snapshot;
use crate::table::{BytesTable, Table};

/// Reads at one snapshot, and writes that are committed together, if nobody has written to what was read since, and no value
/// that was read has expired. What a transaction writes it reads back; nobody else sees it before the commit. One that is
/// dropped does nothing. One that only reads needs no commit, and its commit never fails.
///
/// Reads are of single keys, of sorted tables; writes may be to any. What a scan of the snapshot has shown is not checked at the commit: read the keys that matter.
pub struct Transaction {
    engine: Arc<Engine>,
    past: Snapshot,
    reads: Reads,
    batch: Batch,
    /// What was written to each key, in order.
    own: BTreeMap<(TableId, Vec<u8>), Vec<OpBuf>>,
}

/// So often is a transaction begun anew by [`crate::Store::transact`].
pub(crate) const TRIES_MAX: usize = 1000;

impl Transaction {
    pub(crate) fn begin(engine: &Arc<Engine>) -> Transaction {
        let past = Snapshot::take(engine, HeldFor::Transaction);
        Transaction {
            engine: Arc::clone(engine),
            reads: Reads::new(past.seen()),
            past,
            batch: Batch::new(Arc::clone(engine)),
            own: BTreeMap::new(),
        }
    }

    /// The snapshot that it reads at.
    pub fn snapshot(&self) -> &Snapshot {
        &self.past
    }

    /// The value of `key`: at the snapshot, with what the transaction itself has written since.
    ///
    /// # Errors
    /// As [`Table::get`]; and a table of another store.
    pub fn get<K: Key, V: Value, Q: AsKey<K> + ?Sized>(
        &mut self,
        table: &Table<K, V>,
        key: &Q,
    ) -> Result<Option<V>> {
        let mut bytes = Vec::new();
        key.encode_key(&mut bytes);
        let value = self.get_bytes(table.as_bytes(), &bytes)?;
        value
            .map(|value| V::decode(&value).map_err(|cause| table.as_bytes().undecodable(&bytes, &cause)))
            .transpose()
    }

    /// The value of `key` as bytes.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn get_bytes(&mut self, table: &BytesTable, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let core = table.core();
        if core.hashed.is_some() {
            let message =
                format!("table `{}` is hashed; what a transaction reads lies in sorted tables", core.name);
            return Err(Error::invalid(message));
        }
        let past = self.past.get_bytes(table, key);
        let has_failed = past.as_ref().is_err_and(|error| error.kind() == ErrorKind::FoldFailed);
        if past.is_ok() || has_failed {
            self.reads.note(core, key); // that its fold fails is something to go by, too
        }
        let own = self.own.get(&(core.id, key.to_vec())).map_or(&[][..], |own| own);
        let is_own = own.first().is_some_and(|op| matches!(op.kind, OpKind::Set | OpKind::Delete));
        let mut state = if has_failed && is_own { None } else { past? };
        for op in own {
            let op = op.op().map_err(|cause| damaged_record(core, cause))?;
            // When it is written, and until when it lasts, is known at the commit.
            let applied = core.rules.fold.apply_unstamped(key, &mut state, op);
            applied.map_err(|cause| self.engine.fold_failed(core, key, &cause))?;
        }
        Ok(state)
    }

    /// Makes the value of `key` this one, whatever it was.
    pub fn set<K: Key, V: Value, Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &mut self,
        table: &Table<K, V>,
        key: &Q,
        value: &W,
    ) -> &mut Transaction {
        self.typed(table, WriteOp::Set, key, Some(value), None)
    }

    /// Gives `key` this value unless it has one. Reads nothing.
    pub fn insert<K: Key, V: Value, Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &mut self,
        table: &Table<K, V>,
        key: &Q,
        value: &W,
    ) -> &mut Transaction {
        self.typed(table, WriteOp::Insert, key, Some(value), None)
    }

    /// Folds `operand` onto the value of `key`. Reads nothing, and so never conflicts.
    pub fn fold<K: Key, V: Value, Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &mut self,
        table: &Table<K, V>,
        key: &Q,
        operand: &W,
    ) -> &mut Transaction {
        self.typed(table, WriteOp::Fold, key, Some(operand), None)
    }

    /// Makes the value of `key` this one, for so long: see [`Table::set_expiring`].
    pub fn set_expiring<K: Key, V: Value, Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &mut self,
        table: &Table<K, V>,
        key: &Q,
        value: &W,
        lifetime: Lifetime,
    ) -> &mut Transaction {
        self.typed(table, WriteOp::Set, key, Some(value), Some(lifetime))
    }

    /// Gives `key` this value unless it has one, for so long: see [`Table::insert_expiring`].
    pub fn insert_expiring<K: Key, V: Value, Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &mut self,
        table: &Table<K, V>,
        key: &Q,
        value: &W,
        lifetime: Lifetime,
    ) -> &mut Transaction {
        self.typed(table, WriteOp::Insert, key, Some(value), Some(lifetime))
    }

    /// Folds `operand` onto the value of `key`, which from now on lasts so long: see [`Table::fold_expiring`].
    pub fn fold_expiring<K: Key, V: Value, Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &mut self,
        table: &Table<K, V>,
        key: &Q,
        operand: &W,
        lifetime: Lifetime,
    ) -> &mut Transaction {
        self.typed(table, WriteOp::Fold, key, Some(operand), Some(lifetime))
    }

    /// Makes `key` absent.
    pub fn delete<K: Key, V: Value, Q: AsKey<K> + ?Sized>(
        &mut self,
        table: &Table<K, V>,
        key: &Q,
    ) -> &mut Transaction {
        self.typed(table, WriteOp::Delete, key, None::<&V>, None)
    }

    /// Folds `operand` onto the value of `key` and returns what that comes to: a counter that hands out numbers, say.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn fold_and_get<K: Key, V: Value, Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &mut self,
        table: &Table<K, V>,
        key: &Q,
        operand: &W,
    ) -> Result<Option<V>> {
        self.fold(table, key, operand).get(table, key)
    }

    fn typed<K: Key, V: Value, Q: AsKey<K> + ?Sized, W: AsValue<V> + ?Sized>(
        &mut self,
        table: &Table<K, V>,
        op: WriteOp,
        key: &Q,
        value: Option<&W>,
        lifetime: Option<Lifetime>,
    ) -> &mut Transaction {
        let (mut key_bytes, mut value_bytes) = (Vec::new(), Vec::new());
        key.encode_key(&mut key_bytes);
        if let Some(value) = value {
            value.encode(&mut value_bytes);
        }
        match lifetime {
            None => self.write(table.as_bytes(), op, &key_bytes, &value_bytes),
            Some(lifetime) => self.write_expiring(table.as_bytes(), op, &key_bytes, &value_bytes, lifetime),
        }
    }

    /// Any op on a table of bytes. Mistakes are remembered and returned by the commit, as in a [`Batch`].
    pub fn write(&mut self, table: &BytesTable, op: WriteOp, key: &[u8], value: &[u8]) -> &mut Transaction {
        self.batch.write(table, op, key, value);
        self.note_own(table.core(), key, OpBuf { kind: op.kind(), payload: value.to_vec() });
        self
    }

    /// Any op on a table of bytes, whose value lasts so long. What the transaction reads of its own writes does not know when
    /// they expire.
    pub fn write_expiring(
        &mut self,
        table: &BytesTable,
        op: WriteOp,
        key: &[u8],
        value: &[u8],
        lifetime: Lifetime,
    ) -> &mut Transaction {
        self.batch.write_expiring(table, op, key, value, lifetime);
        self.note_own(table.core(), key, OpBuf { kind: op.kind(), payload: value.to_vec() });
        self
    }

    fn note_own(&mut self, table: &Arc<TableCore>, key: &[u8], op: OpBuf) {
        let own = self.own.entry((table.id, key.to_vec())).or_default();
        if matches!(op.kind, OpKind::Set | OpKind::Delete) {
            own.clear(); // nothing earlier matters
        }
        own.push(op);
    }

    /// Commits what was written, if what was read still holds. Returns the seq of the last record.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`]: nothing is written, begin anew; otherwise as [`Batch::commit`].
    pub fn commit(self, durability: Durability) -> Result<Seq> {
        let Transaction { mut batch, reads, past, .. } = self;
        let committed = batch.commit_if(Some(&reads), durability);
        drop(past); // records that are newer than what was read stay apart from it until here
        committed
    }
}

/// Runs `work` in a transaction and commits it, again and again until no other has come between.
pub(crate) fn transact<R>(
    engine: &Arc<Engine>,
    durability: Durability,
    mut work: impl FnMut(&mut Transaction) -> Result<R>,
) -> Result<R> {
    for _ in 0..TRIES_MAX {
        let mut transaction = Transaction::begin(engine);
        let done = work(&mut transaction)?;
        match transaction.commit(durability) {
            Ok(_) => return Ok(done),
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::new(ErrorKind::Conflict, format!("a transaction was overtaken {TRIES_MAX} times in a row")))
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Transaction at seq {}, {} ops", self.past.seq(), self.batch.len())
    }
}
