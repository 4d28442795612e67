//! About how much a range holds, without reading it.

use folddb_base::Result;
use folddb_rules::codec::{Key, Value};

use crate::scan::bytes::BytesScan;
use crate::scan::typed::Scan;
use folddb_engine::read::estimate::{self, RangeEstimate};

impl BytesScan {
    /// About how many rows and bytes the range has, now: no block is read, only the index of each
    /// file that the range cuts, and what is in memory is counted. The limit, the direction and the
    /// moment of the scan do not matter, nor what a transaction has written.
    ///
    /// In each file that the range cuts, two blocks at most are in doubt, and the bytes are between
    /// two bounds that the estimate has. Files that are inside of the range count exactly,
    /// but for a block where a merge has taken keys of a file away.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if the table is hashed;
    /// [`crate::ErrorKind::TableNotFound`] if it was dropped; a failed read.
    pub fn estimate(&self) -> Result<RangeEstimate> {
        estimate::estimate(&self.engine, &self.table, &self.chosen_range()?)
    }
}

impl<K: Key, V: Value> Scan<K, V> {
    /// About how many rows and bytes the range has: see [`BytesScan::estimate`].
    ///
    /// ```
    /// # use folddb::{Options, Rules, Store};
    /// # let store = Store::in_memory(Options::default())?;
    /// let delays = store.table("delays", Rules::sorted::<(String, u64), f64>())?;
    /// (0..1000).try_for_each(|i| delays.put(&("UA", i), &0.5).map(drop))?;
    /// store.flush()?;
    /// let estimate = delays.scan().prefix(&("UA",)).estimate()?;
    /// assert_eq!(estimate.rows, 1000); // exactly, as the whole file is of this prefix
    /// assert_eq!(delays.scan().prefix(&("DL",)).estimate()?.rows, 0);
    /// # Ok::<(), folddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`BytesScan::estimate`].
    pub fn estimate(&self) -> Result<RangeEstimate> {
        self.bytes.estimate()
    }
}
