//! The backlog of work, and how fast it has lately been done.

use folddb_host::sync::Mutex;
use folddb_host::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use folddb_merge::pace::OwedDelay;

/// What a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worker {
    Flush,
    Merge,
    Reclaim,
}

/// One count per worker.
#[derive(Debug, Default)]
pub struct PerWorker {
    flush: AtomicUsize,
    merge: AtomicUsize,
    reclaim: AtomicUsize,
}

impl PerWorker {
    /// The count of this worker.
    pub fn of(&self, worker: Worker) -> &AtomicUsize {
        match worker {
            Worker::Flush => &self.flush,
            Worker::Merge => &self.merge,
            Worker::Reclaim => &self.reclaim,
        }
    }
}

/// How many threads are taking a step of a merge.
#[derive(Debug, Default)]
pub struct Merging(AtomicU64);

/// One of them.
pub struct MergingNow<'a> {
    all: &'a AtomicU64,
    at_once: u64,
}

impl Merging {
    /// A step begins; it ends when the result is dropped.
    pub fn begin(&self) -> MergingNow<'_> {
        MergingNow { all: &self.0, at_once: self.0.fetch_add(1, Ordering::Relaxed) + 1 }
    }
}

impl MergingNow<'_> {
    /// How many there were when it began, itself included: all merges together are about as many
    /// times as fast as this one.
    pub fn at_once(&self) -> u64 {
        self.at_once
    }
}

impl Drop for MergingNow<'_> {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The backlog: increased by writers, reduced by background work, watched by both.
#[derive(Debug, Default)]
pub struct Debt {
    /// How much of a memtable has been written since the last was sealed, to a 256th of one.
    pub filling_bytes: AtomicUsize,
    /// Bytes of the runs of tier 0 that merges should have read already.
    pub overdue_bytes: AtomicU64,
    /// Runs of the fullest tier of any table.
    pub tier_runs_max: AtomicUsize,
    /// The highest tier of any table: how often bytes are merged until they are there.
    pub tier_max: AtomicUsize,
    /// The size of the value log in thousandths of its bound, while work on it is possible;
    /// otherwise 0.
    pub value_log_thousandths: AtomicU64,
    /// How fast reclaim has lately freed space, in bytes a second.
    pub reclaim_bytes_per_s: Rate,
    /// How fast flushes have lately been, in bytes of memtable a second.
    pub flush_bytes_per_s: Rate,
    /// How fast merges have lately been, all together, in bytes read a second.
    pub merge_bytes_per_s: Rate,
    /// How many threads merge at this moment.
    pub merging: Merging,
    /// Flushes that have begun, failed ones too.
    pub flushes_begun: AtomicU64,
    /// How many had begun when the last flush that failed for lack of space began.
    pub flush_refused: AtomicU64,
    /// How often each worker has failed since it last succeeded.
    pub failures_in_a_row: PerWorker,
    /// Whether the last flush step saved an index, so that it is a memtable's turn.
    pub saved_last: AtomicBool,
    /// Held during a flush: no memtable is flushed twice.
    pub flushing: Mutex<()>,
    /// Delay that writers owe and have not slept yet.
    pub owed: Mutex<OwedDelay>,
    /// Held by the sleeping writer: delays follow one another, or several writers would pay as one.
    pub sleeping: Mutex<()>,
}

impl Debt {
    /// Whether a flush that began after `begun` others has failed for lack of space. One that was
    /// already running says nothing about the present space.
    pub(crate) fn is_refused_since(&self, begun: u64) -> bool {
        self.flush_refused.load(Ordering::Acquire) > begun
    }
}

/// A speed as lately measured, in bytes a second: half of it is the newest measurement.
#[derive(Debug, Default)]
pub struct Rate(AtomicU64);

impl Rate {
    pub fn note(&self, bytes: u64, took: std::time::Duration) {
        let newest = bytes as f64 / took.as_secs_f64().max(1e-6);
        let before = self.get();
        let next = if before == 0.0 { newest } else { (before + newest) / 2.0 };
        self.0.store(next as u64, Ordering::Relaxed);
    }

    pub fn get(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64
    }
}

#[cfg(test)]
#[path = "debt/tests.rs"]
mod tests;
