//! Compacting a table and its indexes, through its handle.

use std::cell::Cell;
use std::ops::ControlFlow;

use folddb_base::Result;
use folddb_rules::codec::{Key, Value};

use crate::table::bytes::BytesTable;
use crate::table::typed::Table;
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
}
