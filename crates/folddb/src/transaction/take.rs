//! Taking a value: a get and a delete of one key, in one transaction. Of all who take the same
//! value, one gets it, and nothing that is written meanwhile is deleted unseen.

use folddb_base::{OpKind, Result};
use folddb_rules::codec::{AsKey, Key, Value};

use crate::batch::verbs::gather;
use crate::reader::AnyTable;
use crate::table::bytes::BytesTable;
use crate::table::typed::Table;
use crate::transaction::{Transaction, transact};

impl Transaction {
    /// The value of `key`, which is deleted if there is one. The key counts as read.
    ///
    /// # Errors
    /// As [`crate::Reader::get`]; nothing is deleted then.
    pub fn take<T: AnyTable, Q: AsKey<T::Key> + ?Sized>(
        &mut self,
        table: &T,
        key: &Q,
    ) -> Result<Option<T::Value>> {
        let value = self.get(table, key)?;
        if value.is_some() {
            gather(self, table, OpKind::Delete, (key, None::<&T::Value>));
        }
        Ok(value)
    }
}

impl BytesTable {
    /// The value of `key`, which is deleted in the same moment: see [`Table::take`].
    ///
    /// # Errors
    /// As [`Table::take`].
    pub fn take(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        transact(self.engine(), self.durability, |transaction| transaction.take(self, key))
    }
}

impl<K: Key, V: Value> Table<K, V> {
    /// The value of `key`, which is deleted in the same moment. Of several threads that take one
    /// value, one gets it; what another writes to the key is in the value that is returned, or is
    /// there afterwards. An absent key is only read.
    ///
    /// It reads, unlike [`Table::delete`], and takes the time of a get and of a small transaction.
    ///
    /// ```
    /// # use folddb::{Options, Rules, Store};
    /// # let store = Store::in_memory(Options::default())?;
    /// let pending = store.table("pending", Rules::sorted::<String, u64>().fold("sum:u64"))?;
    /// pending.fold("ann", &3)?;
    /// pending.fold("ann", &4)?;
    /// assert_eq!(pending.take("ann")?, Some(7));
    /// assert_eq!(pending.take("ann")?, None);
    /// # Ok::<(), folddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`crate::Reader::get`] and [`Table::delete`]; [`crate::ErrorKind::Conflict`] if others
    /// wrote to the key during each of 1,000 tries. The value is there then.
    pub fn take<Q: AsKey<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>> {
        let durability = self.bytes.durability;
        transact(self.bytes.engine(), durability, |transaction| transaction.take(self, key))
    }
}
