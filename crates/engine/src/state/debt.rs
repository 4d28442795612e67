//! Work that is owed, and how fast it has lately been done.

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

/// A count for each worker.
#[derive(Debug, Default)]
pub struct PerWorker {
    flush: AtomicUsize,
    merge: AtomicUsize,
    reclaim: AtomicUsize,
}

impl PerWorker {
    /// That of this one.
    pub fn of(&self, worker: Worker) -> &AtomicUsize {
        match worker {
            Worker::Flush => &self.flush,
            Worker::Merge => &self.merge,
            Worker::Reclaim => &self.reclaim,
        }
    }
}

/// Work that is owed: raised by writers, paid by background work, watched by both.
#[derive(Debug, Default)]
pub struct Debt {
    /// How much of a memtable has been written since the last was sealed, as far as the last commit
    /// can tell.
    pub filling_bytes: AtomicUsize,
    /// Bytes that merges should have taken in already of the runs of tier 0.
    pub overdue_bytes: AtomicU64,
    /// Runs of the fullest tier of any table.
    pub tier_runs_max: AtomicUsize,
    /// The highest tier of any table: so often are bytes merged until they are there.
    pub tier_max: AtomicUsize,
    /// What the value log takes, in thousandths of its bound, while that is being worked at; else
    /// 0.
    pub value_log_thousandths: AtomicU64,
    /// How fast reclaiming has lately given back, in bytes a second.
    pub reclaim_bytes_per_s: Rate,
    /// How fast flushes have lately been, in bytes of memtable a second.
    pub flush_bytes_per_s: Rate,
    /// How fast merges have lately been, in bytes taken in a second.
    pub merge_bytes_per_s: Rate,
    /// Flushes that have begun, failed ones too.
    pub flushes_begun: AtomicU64,
    /// How many had begun when the last one began that failed for lack of space.
    pub flush_refused: AtomicU64,
    /// How often each worker has failed since it last succeeded.
    pub failures_in_a_row: PerWorker,
    /// Whether the last step of a flush saved an index, and a memtable has its turn now.
    pub saved_last: AtomicBool,
    /// Held by whoever flushes: no memtable is flushed twice.
    pub flushing: Mutex<()>,
    /// Delay that writers owe and have not slept yet.
    pub owed: Mutex<OwedDelay>,
    /// Held by the writer who sleeps: delays follow one another, or several writers would pay as
    /// one.
    pub sleeping: Mutex<()>,
}

impl Debt {
    /// Whether a flush has failed for lack of space that began after `begun` others had. One that
    /// was under way before says nothing about the space there is now.
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
