//! How long operations take: histograms whose buckets are powers of two.
//!
//! ```text
//!   bucket   0        1             2               27                     28
//!   took     ≤ 256 ns ≤ 512 ns      ≤ 1024 ns  ...  ≤ 2^35 ns, 34 s        longer
//! ```
//!
//! Adding to one takes no lock. `timing.rs` says which operations are measured.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The first bucket has what took at most 2 to this many nanoseconds.
const FIRST_BITS: u32 = 8;

/// Buckets, the one without a bound included.
const BUCKETS: usize = 29;

/// A histogram that threads add to.
#[derive(Debug)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { buckets: [const { AtomicU64::new(0) }; BUCKETS], sum_ns: AtomicU64::new(0) }
    }
}

impl Histogram {
    /// Adds one operation.
    pub fn note(&self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket_of(ns)].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// What has been added so far.
    pub fn now(&self) -> LatencyHistogram {
        LatencyHistogram {
            counts: self.buckets.iter().map(|count| count.load(Ordering::Relaxed)).collect(),
            sum: Duration::from_nanos(self.sum_ns.load(Ordering::Relaxed)),
        }
    }
}

fn bucket_of(ns: u64) -> usize {
    let bits = u64::BITS - ns.saturating_sub(1).leading_zeros();
    (bits.saturating_sub(FIRST_BITS) as usize).min(BUCKETS - 1)
}

/// How long operations of one kind took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyHistogram {
    counts: Vec<u64>,
    sum: Duration,
}

impl LatencyHistogram {
    /// Operations that were measured.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The time that they took together.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// The buckets, ascending: the longest time of each, and how many operations took that long or
    /// less. Longer ones than the last are only in [`LatencyHistogram::count`].
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let mut so_far = 0;
        self.counts.iter().take(BUCKETS - 1).enumerate().map(move |(bucket, count)| {
            so_far += count;
            (bound_of(bucket), so_far)
        })
    }

    /// The time that this share of the operations, from 0 to 1, took at most: the bound of a
    /// bucket, so up to twice as much as was measured. None if nothing was measured, or if it is
    /// longer than the last bound.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let wanted = (self.count() as f64 * share.clamp(0.0, 1.0)).ceil().max(1.0);
        self.buckets().find(|(_, so_far)| *so_far as f64 >= wanted).map(|(bound, _)| bound)
    }
}

fn bound_of(bucket: usize) -> Duration {
    Duration::from_nanos(1 << (FIRST_BITS as usize + bucket))
}

/// The histograms of a store.
#[derive(Debug, Default)]
pub struct Latencies {
    pub get: Histogram,
    pub write: Histogram,
    pub commit: Histogram,
    pub scan: Histogram,
    pub sync: Histogram,
    pub stall: Histogram,
    pub flush: Histogram,
    pub merge: Histogram,
}

#[cfg(test)]
mod tests;
