//! Operations on one table through its handle: compaction, indexes, and figures.

use std::cell::Cell;
use std::ops::ControlFlow;

use folddb_base::Result;
use folddb_rules::IndexRule;
use folddb_rules::codec::{Key, Value};

use crate::bytes_table::BytesTable;
use crate::indexing::{self, IndexInfo, IndexProgress};
use crate::table::Table;
use crate::table_stats::{self, TableStats};
use folddb_engine::background::compact;
use folddb_engine::background::merge_job::CompactProgress;

impl BytesTable {
    /// Merges all runs of the table into one, step by step, at once, and then those of its indexes,
    /// without stale entries.
    ///
    /// # Errors
    /// [`crate::ErrorKind::TableNotFound`] if it was dropped; [`crate::ErrorKind::NoSpace`]; a
    /// failed read or write.
    pub fn compact(&self) -> Result<()> {
        self.compact_with(|_| ControlFlow::Continue(()))
    }

    /// The same. `progress` is called after every few thousand keys and may stop it; what is merged
    /// by then stays merged, and a later call resumes it.
    ///
    /// # Errors
    /// As [`BytesTable::compact`].
    pub fn compact_with(&self, mut progress: impl FnMut(CompactProgress) -> ControlFlow<()>) -> Result<()> {
        self.engine().check_not_read_only()?;
        let is_broken_off = Cell::new(false);
        let mut report = |at: CompactProgress| {
            let flow = progress(at);
            is_broken_off.set(is_broken_off.get() | flow.is_break());
            flow
        };
        compact::compact(self.background(), self.core(), &mut report)?;
        for index in self.core().indexes().iter() {
            if !is_broken_off.get() {
                compact::compact(self.background(), &index.table, &mut report)?;
            }
        }
        Ok(())
    }

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
        indexing::add_index(self.background(), self.core(), rule, &mut progress)
    }

    /// Removes an index of the table, and its entries.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if the table has no such index; a failed write.
    pub fn drop_index(&self, index: &str) -> Result<()> {
        indexing::drop_index(self.background(), self.core(), index)
    }

    /// The indexes of the table, by name.
    pub fn indexes(&self) -> Vec<IndexInfo> {
        indexing::infos(self.core())
    }

    /// The figures of the table, with the shape of its runs.
    ///
    /// # Errors
    /// [`crate::ErrorKind::TableNotFound`] if it was dropped.
    pub fn stats(&self) -> Result<TableStats> {
        let stats = table_stats::table_stats(self.core());
        self.engine().check_readable(self.core())?;
        Ok(stats)
    }
}

impl<K: Key, V: Value> Table<K, V> {
    /// Merges all runs of the table into one: see [`BytesTable::compact`].
    ///
    /// ```
    /// # use folddb::{Options, Rules, Store};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = Store::create(dir.path().join("s.folddb"), Options::default())?;
    /// let names = store.table("names", Rules::sorted::<String, String>())?;
    /// names.put("UA", "United")?;
    /// names.compact()?;
    /// assert_eq!(names.stats()?.runs.len(), 1);
    ///
    /// names.add_index(&"by_name:value".parse()?)?;
    /// assert_eq!(names.find("by_name")?.term("United").count()?, 1);
    /// # Ok::<(), folddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`BytesTable::compact`].
    pub fn compact(&self) -> Result<()> {
        self.bytes.compact()
    }

    /// The same; `progress` is called with the progress, and may stop it: see
    /// [`BytesTable::compact_with`].
    ///
    /// # Errors
    /// As [`BytesTable::compact`].
    pub fn compact_with(&self, progress: impl FnMut(CompactProgress) -> ControlFlow<()>) -> Result<()> {
        self.bytes.compact_with(progress)
    }

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

    /// The figures of the table, with the shape of its runs.
    ///
    /// # Errors
    /// As [`BytesTable::stats`].
    pub fn stats(&self) -> Result<TableStats> {
        self.bytes.stats()
    }
}
