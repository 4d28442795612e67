//! What the store counts. Relaxed counters of this store only; nothing is global and nothing is
//! printed.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that only grows, or a high-water mark.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds.
    #[inline]
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Adds, where a lock keeps out all others who add to this counter: without a locked
    /// instruction.
    #[inline]
    pub(crate) fn add_alone(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }

    /// Raises to `value` if it is lower.
    #[inline]
    pub fn raise(&self, value: u64) {
        if value > self.0.load(Ordering::Relaxed) {
            self.0.fetch_max(value, Ordering::Relaxed);
        }
    }

    /// The present value.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What each commit counts, under the commit lock. Alone in its cache lines: else each commit would
/// take from readers the line in which they count.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Written {
    pub commits: Counter,
    pub records: Counter,
    pub user_bytes: Counter,
    pub log_bytes: Counter,
}

/// All counters of a store.
#[derive(Debug, Default)]
pub struct Counters {
    pub written: Written,
    pub part_bytes_written: Counter,
    pub flushes: Counter,
    pub merges: Counter,
    pub records_merged: Counter,
    pub gets: Counter,
    pub scans: Counter,
    pub operands_visited_max: Counter,
    pub fold_failures: Counter,
    pub writer_delay_us: Counter,
    pub stalls: Counter,
    pub background_retries: Counter,
    pub value_reads: Counter,
    pub value_head_reads: Counter,
    pub indexes_saved: Counter,
    pub index_bytes_written: Counter,
    pub value_bytes_written: Counter,
    pub value_segments_reclaimed: Counter,
    pub reclaims: Counter,
    pub value_bytes_copied: Counter,
    pub value_bytes_given_back: Counter,
    pub records_expired: Counter,
    pub feeds_lost: Counter,
    pub entries_read: Counter,
    pub entries_stale: Counter,
    pub entries_cleaned: Counter,
}
