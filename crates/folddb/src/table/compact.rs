//! Compacting a table and its indexes, through its handle.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;

use folddb_base::{Error, Result};
use folddb_rules::codec::{Key, Value};

use crate::scan::bytes::BytesScan;
use crate::scan::typed::Scan;
use crate::table::bytes::BytesTable;
use crate::table::typed::Table;
use folddb_engine::background::merge_job::CompactProgress;
use folddb_engine::background::{compact, compact_range};

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

    /// Merges the keys of a range, at once: afterwards one run has all of them, without deleted
    /// ones. It reads and writes the range, and in each run at most the file in which the range
    /// begins. Indexes stay as they are, and so do range deletes. What is written after the call
    /// has begun stays apart. Only the range of the scan matters.
    ///
    /// ```
    /// # use folddb::{Options, Store};
    /// # let store = Store::in_memory(Options::default())?;
    /// let visits = store.create_bytes_table("visits", "fold=sum:u64".parse()?)?;
    /// visits.fold(b"2026-11-27", &1u64.to_le_bytes())?;
    /// visits.compact_range(&visits.scan().prefix(b"2026-11"))?;
    /// # Ok::<(), folddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if the table is hashed, or the scan is of another table;
    /// otherwise as [`BytesTable::compact`].
    pub fn compact_range(&self, range: &BytesScan) -> Result<()> {
        self.compact_range_with(range, |_| ControlFlow::Continue(()))
    }

    /// The same. `progress` is called after every few thousand keys and may stop it: see
    /// [`BytesTable::compact_with`].
    ///
    /// # Errors
    /// As [`BytesTable::compact_range`].
    pub fn compact_range_with(
        &self,
        range: &BytesScan,
        mut progress: impl FnMut(CompactProgress) -> ControlFlow<()>,
    ) -> Result<()> {
        self.engine().check_not_read_only()?;
        if !Arc::ptr_eq(&range.table, self.core()) {
            let message = format!("{range:?} has no range of table `{}`", self.name());
            return Err(Error::invalid(message));
        }
        compact_range::compact_range(self.background(), self.core(), &range.chosen_range()?, &mut progress)
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
    /// Merges the keys of a range, at once: see [`BytesTable::compact_range`].
    ///
    /// ```
    /// # use folddb::{Options, Rules, Store};
    /// # let store = Store::in_memory(Options::default())?;
    /// let delays = store.table("delays", Rules::sorted::<(String, u64), f64>())?;
    /// delays.put(&("UA", 1), &12.5)?;
    /// delays.compact_range(&delays.scan().prefix(&("UA",)))?;
    /// # Ok::<(), folddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`BytesTable::compact_range`].
    pub fn compact_range(&self, range: &Scan<K, V>) -> Result<()> {
        self.bytes.compact_range(&range.bytes)
    }
}
