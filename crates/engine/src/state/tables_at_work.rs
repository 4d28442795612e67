//! Which tables have background work.

use std::collections::BTreeSet;

use folddb_base::TableId;
use folddb_host::sync::Mutex;
use folddb_host::sync::atomic::AtomicU64;

/// The tables that background work must examine, so that it need not examine all. Each lock is held
/// for a moment, and the only lock taken under it is that of a table's view.
#[derive(Debug, Default)]
pub struct TablesAtWork {
    /// Those with sealed memtables; some may no longer have any.
    pub sealed: Mutex<BTreeSet<TableId>>,
    /// Those whose runs have changed since merges were planned for them.
    pub changed: Mutex<BTreeSet<TableId>>,
    /// Indexes of which readers have met too many stale entries, and tables whose gets have paid
    /// for a merge.
    pub stale: Mutex<BTreeSet<TableId>>,
    /// Those in which a reader has met many chunks.
    pub chunked: Mutex<BTreeSet<TableId>>,
    /// Those whose parts point to separated values. Changed with the parts, under the manifest's
    /// lock.
    pub leading: Mutex<BTreeSet<TableId>>,
    /// Bytes of the parts of all tables.
    pub part_bytes: AtomicU64,
}
