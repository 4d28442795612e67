//! Which operations are measured for the histograms of a store ([`super::latency`]).
//!
//! A get takes less time than two looks at the clock may, so of gets, commits and scans one in
//! [`SAMPLED_EVERY`] is measured: the first, and then as their counters say, scattered, so that no
//! pattern of operations hides one kind of them. What takes longer is always measured: flushes,
//! merges, syncs, stalls. `docs/decisions/0058-latencies-are-sampled.md`
//! has the costs.

use std::time::Duration;

use crate::state::counters::Counter;
use crate::state::engine::Engine;
use crate::state::latency::Histogram;

/// One get, commit or scan in this many is measured.
pub const SAMPLED_EVERY: u64 = 64;

/// Whether the operation of this number is measured: multiples of the golden ratio are spread
/// evenly (Knuth, TAOCP 3, 6.4), also those of every second or fourth number.
#[inline]
fn is_sampled(number: u64) -> bool {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) < u64::MAX / SAMPLED_EVERY
}

/// When an operation began, if it is one to be measured; `counted` counts such operations.
#[inline]
pub fn begin(engine: &Engine, counted: &Counter) -> Option<Duration> {
    if is_sampled(counted.get()) { Some(begin_measured(engine)) } else { None }
}

#[cold]
pub fn begin_measured(engine: &Engine) -> Duration {
    engine.host.clock.monotonic()
}

/// Adds an operation that has ended, if it is measured.
#[inline]
pub fn end(engine: &Engine, histogram: &Histogram, began: Option<Duration>) {
    if let Some(began) = began {
        end_measured(engine, histogram, began);
    }
}

#[cold]
pub fn end_measured(engine: &Engine, histogram: &Histogram, began: Duration) {
    histogram.note(engine.host.clock.monotonic().saturating_sub(began));
}

#[cfg(test)]
#[path = "timing/tests.rs"]
mod tests;
