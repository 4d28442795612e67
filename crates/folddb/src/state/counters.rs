//! What the store counts. Relaxed counters of this store only; nothing is global and nothing is printed.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that only grows, or a high-water mark.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds.
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Raises to `value` if it is lower.
    #[inline]
    pub(crate) fn raise(&self, value: u64) {
        if value > self.0.load(Ordering::Relaxed) {
            self.0.fetch_max(value, Ordering::Relaxed);
        }
    }

    /// The present value.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// All counters of a store.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commits: Counter,
    pub(crate) records_written: Counter,
    pub(crate) user_bytes: Counter,
    pub(crate) journal_bytes: Counter,
    pub(crate) part_bytes_written: Counter,
    pub(crate) flushes: Counter,
    pub(crate) merges: Counter,
    pub(crate) records_merged: Counter,
    pub(crate) gets: Counter,
    pub(crate) operands_visited_max: Counter,
    pub(crate) fold_failures: Counter,
    pub(crate) writer_delay_us: Counter,
    pub(crate) stalls: Counter,
    pub(crate) upkeep_retries: Counter,
    pub(crate) value_reads: Counter,
    pub(crate) value_head_reads: Counter,
    pub(crate) indexes_saved: Counter,
    pub(crate) index_bytes_written: Counter,
    pub(crate) value_bytes_written: Counter,
    pub(crate) value_segments_reclaimed: Counter,
    pub(crate) reclaims: Counter,
    pub(crate) value_bytes_copied: Counter,
    pub(crate) value_bytes_given_back: Counter,
    pub(crate) records_expired: Counter,
    pub(crate) feeds_lost: Counter,
    pub(crate) entries_met: Counter,
    pub(crate) entries_stale: Counter,
    pub(crate) entries_cleaned: Counter,
}
