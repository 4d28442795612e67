//! Which operations are measured for the histograms of a store ([`super::latency`]).
//!
//! A get takes less time than two looks at the clock may, so of gets, commits and scans one in
//! [`SAMPLED_EVERY`] is measured: the first, and then as their counters say. What takes longer is
//! always measured: flushes, merges, syncs, stalls. `docs/decisions/0058-latencies-are-sampled.md`
//! has the costs.

use std::time::Duration;

use crate::state::counters::Counter;
use crate::state::engine::Engine;
use crate::state::latency::Histogram;

/// One get, commit or scan in this many is measured.
pub const SAMPLED_EVERY: u64 = 64;

/// When an operation began, if it is one to be measured; `counted` counts such operations.
#[inline]
pub fn begin(engine: &Engine, counted: &Counter) -> Option<Duration> {
    if counted.get().is_multiple_of(SAMPLED_EVERY) { Some(begin_measured(engine)) } else { None }
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
