//! Adding, dropping and listing the indexes of a table, through its handle.

use std::ops::ControlFlow;

use folddb_base::Result;
use folddb_rules::IndexRule;
use folddb_rules::codec::{Key, Value};

use crate::index::build::{self, IndexInfo, IndexProgress};
use crate::table::bytes::BytesTable;
use crate::table::typed::Table;

impl BytesTable {
    /// Adds an index to the table, and builds it from the table's records, at once, during writes.
    /// Adding it again resumes a build that was stopped, or ended by a crash.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] for a rule that breaks the law of terms with the table's
    /// fold, with a counter-example; for a table that has another index of this name, or is hashed;
    /// for a table with a key that is too long for an index, which is then not added; a failed
    /// write.
    pub fn add_index(&self, rule: &IndexRule) -> Result<()> {
        self.add_index_with(rule, |_| ControlFlow::Continue(()))
    }

    /// The same. `progress` is called after every few thousand keys and may stop it: then the index
    /// exists, gets entries of all writes, and refuses queries until it is built.
    ///
    /// # Errors
    /// As [`BytesTable::add_index`].
    pub fn add_index_with(
        &self,
        rule: &IndexRule,
        mut progress: impl FnMut(IndexProgress) -> ControlFlow<()>,
    ) -> Result<()> {
        build::add_index(self.background(), self.core(), rule, &mut progress)
    }

    /// Removes an index of the table, and its entries.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if the table has no such index; a failed write.
    pub fn drop_index(&self, index: &str) -> Result<()> {
        build::drop_index(self.background(), self.core(), index)
    }

    /// The indexes of the table, by name.
    pub fn indexes(&self) -> Vec<IndexInfo> {
        match self.background().engine.check_here() {
            Ok(()) => build::infos(self.core()),
            Err(_) => Vec::new(),
        }
    }
}

impl<K: Key, V: Value> Table<K, V> {
    /// Adds an index to the table, and builds it: see [`BytesTable::add_index`].
    ///
    /// # Errors
    /// As [`BytesTable::add_index`].
    pub fn add_index(&self, rule: &IndexRule) -> Result<()> {
        self.bytes.add_index(rule)
    }

    /// The same; `progress` is called with the progress, and may stop it: see
    /// [`BytesTable::add_index_with`].
    ///
    /// # Errors
    /// As [`BytesTable::add_index`].
    pub fn add_index_with(
        &self,
        rule: &IndexRule,
        progress: impl FnMut(IndexProgress) -> ControlFlow<()>,
    ) -> Result<()> {
        self.bytes.add_index_with(rule, progress)
    }

    /// Removes an index of the table, and its entries.
    ///
    /// # Errors
    /// As [`BytesTable::drop_index`].
    pub fn drop_index(&self, index: &str) -> Result<()> {
        self.bytes.drop_index(index)
    }

    /// The indexes of the table, by name.
    pub fn indexes(&self) -> Vec<IndexInfo> {
        self.bytes.indexes()
    }
}
