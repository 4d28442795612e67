//! Transactions: reads at one snapshot and writes that happen only if what was read still holds.
//!
//! They are optimistic: nothing is locked, and a commit whose reads were overtaken fails with
//! [`ErrorKind::Conflict`] and writes nothing. Whatever was not read does not count, so folds onto
//! the same key never conflict with one another. After Kung and Robinson, "On Optimistic Methods
//! for Concurrency Control", 1981: backward validation of the read set, under the commit lock.

use std::sync::Arc;

use folddb_base::{Error, ErrorKind, OpBuf, OpKind, Result};
use folddb_host::sync::Mutex;
use folddb_rules::codec::{AsKey, AsValue, KeyPrefix};

use crate::batch::Batch;
use crate::bytes_table::BytesTable;
use crate::gathered::{Gather, Written, gather, gather_prefix, gather_range, gathering_verbs};
use crate::own_writes::OwnWrites;
use crate::reader::{AnyTable, Reader};
use crate::snapshot::Snapshot;
use crate::table_at::BytesTableAt;
use folddb_engine::options::Durability;
use folddb_engine::seq::Seq;
use folddb_engine::state::engine::Engine;
use folddb_engine::write::encoded_batch::WriteOp;
use folddb_engine::write::read_set::Reads;

/// Reads at one snapshot, and writes that are committed together, if nobody has written to what was
/// read since, and no value that was read has expired. What a transaction writes it reads back;
/// nobody else sees it before the commit. One that is dropped does nothing. One that only reads
/// needs no commit, and its commit never fails. Of its own writes it does not know when they
/// expire.
///
/// What was read is every key that was got, whether it was there or not, and every range that was
/// scanned, as far as the scan came: a key that came into it is a conflict as well. So transactions
/// are serialisable: what was committed is what they would have done one after the other, in the
/// order of their commits. Writes read nothing, and so never conflict with one another.
#[must_use = "a transaction writes nothing until it is committed"]
pub struct Transaction {
    past: Snapshot,
    reads: Arc<Reads>,
    batch: Batch,
    /// What was written to each key, for reads and scans of its own.
    own: Arc<Mutex<OwnWrites>>,
}

/// How often a transaction is begun again by [`crate::Store::transact`].
pub(crate) const TRIES_MAX: usize = 1000;

impl Transaction {
    pub(crate) fn begin(engine: &Arc<Engine>) -> Transaction {
        let (past, reads) = Snapshot::take_noting(engine);
        Transaction { reads, past, batch: Batch::new(Arc::clone(engine)), own: Arc::default() }
    }

    /// The snapshot that it reads at, without what the transaction has written. What is read at it
    /// counts as read by the transaction, too: keys, scans as far as they come, aggregates, and
    /// finds, with all the terms that they ask for. Who wants to read what others may change takes
    /// a snapshot of the store.
    pub fn snapshot(&self) -> &Snapshot {
        &self.past
    }

    /// A table in the transaction: as of its snapshot, with what the transaction has written to it
    /// before each read. What is read by it counts as read. It does not see what is written once
    /// the transaction has ended.
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

    /// A scan of a table: at the snapshot, with what the transaction itself has written before its
    /// iteration begins. At the commit nobody may have written to what it has gone over: from its
    /// beginning to the last row that it has shown, or all of its range where it came to its end. A
    /// scan of a hashed table goes over all of it.
    ///
    /// ```
    /// # use folddb::{Durability, Options, Rules, Store};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = Store::create(dir.path().join("s.folddb"), Options::default())?;
    /// let shifts = store.table("shifts", Rules::sorted::<(String, String), u64>())?;
    /// shifts.put(&("monday", "ann"), &1)?;
    /// shifts.put(&("monday", "bob"), &1)?;
    /// // Whoever goes home looks whether another one stays. Two who do it at once do not both go.
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

    /// Folds `operand` onto the value of `key` and returns the result: a counter that hands
    /// out numbers, say.
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
