//! Transactions: reads at one snapshot, and writes that are committed only if what was read still
//! holds.
//!
//! They are optimistic: nothing is locked, and a commit whose reads no longer hold fails with
//! [`ErrorKind::Conflict`] and writes nothing. Only reads count, so folds onto the same key never
//! conflict with one another. After Kung and Robinson, "On Optimistic Methods for Concurrency
//! Control", 1981: backward validation of the read set, under the commit lock.

mod take;

use std::sync::Arc;

use folddb_base::{Error, ErrorKind, OpBuf, OpKind, Result};
use folddb_host::sync::Mutex;
use folddb_rules::codec::{AsKey, AsValue, KeyPrefix};

use crate::batch::Batch;
use crate::batch::verbs::{Gather, Written, gather, gather_prefix, gather_range, gathering_verbs};
use crate::reader::table_at::BytesTableAt;
use crate::reader::{AnyTable, Reader};
use crate::snapshot::Snapshot;
use crate::table::bytes::BytesTable;
use crate::uncommitted::OwnWrites;
use folddb_engine::options::Durability;
use folddb_engine::seq::Seq;
use folddb_engine::state::engine::Engine;
use folddb_engine::write::encoded_batch::WriteOp;
use folddb_engine::write::read_set::Reads;

/// Reads at one snapshot, and writes that are committed together, if nobody has written to what was
/// read since, and no value that was read has expired. A transaction reads its own writes; nobody
/// else sees them before the commit. If it is dropped, it does nothing. One that only reads needs
/// no commit, and its commit never fails. Its own writes do not expire within it.
///
/// The read set has every key that was read, present or not, and every range that was scanned, as
/// far as the scan went: a new key in it is a conflict as well. So transactions are serializable:
/// the result is that of running them one after the other, in the order of their commits. Writes
/// read nothing, so they never conflict with one another.
#[must_use = "a transaction writes nothing until it is committed"]
pub struct Transaction {
    past: Snapshot,
    reads: Arc<Reads>,
    batch: Batch,
    /// The own writes to each key, for its reads and scans.
    own: Arc<Mutex<OwnWrites>>,
}

/// How often [`crate::Store::transact`] begins a transaction again.
pub(crate) const TRIES_MAX: usize = 1000;

impl Transaction {
    pub(crate) fn begin(engine: &Arc<Engine>) -> Transaction {
        let (past, reads) = Snapshot::take_noting(engine);
        Transaction { reads, past, batch: Batch::new(Arc::clone(engine)), own: Arc::default() }
    }

    /// The snapshot that it reads at, without the transaction's own writes. Reads at it count for
    /// the transaction, too: keys, scans as far as they go, aggregates, and finds, with all terms
    /// of their queries. To read without a conflict, take a snapshot of the store.
    pub fn snapshot(&self) -> &Snapshot {
        &self.past
    }

    /// A table in the transaction: as of its snapshot, with the transaction's own writes before
    /// each read. Reads through it count for the transaction. It does not see writes after the end
    /// of the transaction.
    pub fn table<T: AnyTable>(&self, table: &T) -> T::At {
        table.at(BytesTableAt::new(table.of_bytes(), &self.past, Some(&self.own)))
    }

    /// The value of `key`: `transaction.table(table).get(key)`.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn get<T: AnyTable, Q: AsKey<T::Key> + ?Sized>(
        &self,
        table: &T,
        key: &Q,
    ) -> Result<Option<T::Value>> {
        self.table(table).get(key)
    }

    /// A scan of a table: at the snapshot, with the transaction's own writes before its iteration
    /// begins. Others must not have written by the commit to the part that it has covered: from its
    /// beginning to the last row that it has returned, or its whole range if it reached its end. A
    /// scan of a hashed table covers all of it.
    ///
    /// ```
    /// # use folddb::{Durability, Options, Rules, Store};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = Store::create(dir.path().join("s.folddb"), Options::default())?;
    /// let shifts = store.table("shifts", Rules::sorted::<(String, String), u64>())?;
    /// shifts.put(&("monday", "ann"), &1)?;
    /// shifts.put(&("monday", "bob"), &1)?;
    /// // Whoever goes home checks that another one stays. If two do so at once, only one goes.
    /// store.transact(Durability::Process, |transaction| {
    ///     if transaction.scan(&shifts).prefix(&("monday",)).count()? > 1 {
    ///         transaction.delete(&shifts, &("monday", "ann"));
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), folddb::Error>(())
    /// ```
    pub fn scan<T: AnyTable>(&self, table: &T) -> <T::At as Reader>::Scan {
        self.table(table).scan()
    }

    /// Folds `operand` onto the value of `key` and returns the result: for example, for a counter
    /// of unique numbers.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn fold_and_get<T: AnyTable, Q: AsKey<T::Key> + ?Sized, W: AsValue<T::Value> + ?Sized>(
        &mut self,
        table: &T,
        key: &Q,
        operand: &W,
    ) -> Result<Option<T::Value>> {
        self.fold(table, key, operand).get(table, key)
    }

    /// Commits what was written, if what was read still holds. Returns the seq of the last record.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`]: nothing is written, begin again; otherwise as [`Batch::commit`].
    pub fn commit(self, durability: Durability) -> Result<Seq> {
        let Transaction { mut batch, reads, past, .. } = self;
        let committed = batch.commit_if(Some(&reads.take()), durability);
        drop(past); // records that are newer than what was read stay separate until here
        committed
    }
}

/// Runs `work` in a transaction and commits it, and repeats that until there is no conflict.
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

impl Gather for Transaction {
    fn buffers(&mut self) -> &mut (Vec<u8>, Vec<u8>) {
        self.batch.buffers()
    }

    fn take(&mut self, table: &BytesTable, op: Written<'_>, checked: Result<()>) {
        self.batch.take(table, op, checked);
        self.own.lock().note(table.core(), op.key, OpBuf { kind: op.kind, payload: op.value.to_vec() });
    }

    fn take_range(&mut self, table: &BytesTable, from: &[u8], to: &[u8]) {
        self.batch.take_range(table, from, to);
        self.own.lock().note_range(table.core(), from, to);
    }
}

gathering_verbs!(Transaction);

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Transaction at seq {}, {} ops", self.past.seq(), self.batch.len())
    }
}
