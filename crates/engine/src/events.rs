//! What a store reports to its program while it works: events and their listener.
//!
//! An event says what has happened, in numbers. It promises nothing about the future.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use folddb_base::ErrorKind;

/// Something that a store has done or met. See `Options::on_event`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A memtable has become a run.
    Flush(FlushEvent),
    /// Some runs of a table have become one.
    Merge(MergeEvent),
    /// Live values were copied together, and the files that they were in are gone.
    Reclaim(ReclaimEvent),
    /// A writer had to wait, and has continued.
    Stall(StallEvent),
    /// A write or a sync failed: the store writes no more until it is opened again.
    Poison(PoisonEvent),
    /// The listener was slower than the store, which has forgotten some events.
    Missed(MissedEvents),
}

/// A memtable has become a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlushEvent {
    /// The name of the table.
    pub table: String,
    /// Records of the new run.
    pub records: u64,
    /// Bytes of memory that are free now.
    pub memory_bytes: u64,
    /// How long it took.
    pub took: Duration,
}

/// Some runs of a table have become one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergeEvent {
    /// The name of the table.
    pub table: String,
    /// What was planned and why, for people to read.
    pub plan: String,
    /// How many runs were merged.
    pub runs: usize,
    /// Bytes of keys and values that were read.
    pub bytes_in: u64,
    /// Records that were read.
    pub records_in: u64,
    /// Records that were written.
    pub records_out: u64,
    /// How long its steps took together.
    pub took: Duration,
}

/// Live values were copied together, and the files that they were in are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReclaimEvent {
    /// Segments of values that were moved.
    pub segments: usize,
    /// Bytes of the new file.
    pub bytes_copied: u64,
    /// Bytes by which the files of values have shrunk.
    pub bytes_freed: u64,
    /// How long its steps took together, except the last.
    pub took: Duration,
}

/// Why a writer waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StallCause {
    /// Memtables that wait for their flush use all of the memory.
    MemoryFull,
    /// Range deletes arrive faster than merges remove them.
    RangeDeletes,
}

/// A writer had to wait, and has continued.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StallEvent {
    /// Why it waited.
    pub cause: StallCause,
    /// How long it waited.
    pub took: Duration,
}

/// A write or a sync failed: the store writes no more until it is opened again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoisonEvent {
    /// The kind of the failure.
    pub kind: ErrorKind,
    /// What failed.
    pub message: String,
}

/// The listener was slower than the store, which has forgotten some events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissedEvents {
    /// How many there were.
    pub events: u64,
}

/// A function of the program that is called with each event.
#[derive(Clone)]
pub(crate) struct Listener(pub(crate) Arc<dyn Fn(&Event) + Send + Sync>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a function")
    }
}
