//! When free memory that the allocator keeps is given back to the system.
//!
//! Chunks of memtables, blocks of the cache and what merges use are allocated by one thread and
//! freed by another, so the heaps of threads fill with holes: at 160 MB they held 50 MB more than
//! was ever in use (decision 20). While stores work, their threads give free pages back four times
//! a second, and take at most a hundredth of a processor for that, however much the program around
//! them holds.

use std::time::Duration;

use folddb_host::clock::{Clock, SystemClock};
use folddb_host::sync::Mutex;

/// The time between two trims at least.
const EVERY: Duration = Duration::from_millis(250);

/// A trim is followed by this many times the processor time that it took without one.
const REST: u32 = 100;

/// The trims of the stores that share memory.
pub struct Trims {
    /// Its own: the clocks of stores need not agree.
    clock: Box<dyn Clock>,
    next_at: Mutex<Duration>,
}

impl Default for Trims {
    fn default() -> Trims {
        Trims::by(Box::new(SystemClock::default()))
    }
}

impl Trims {
    /// None yet, by this clock.
    fn by(clock: Box<dyn Clock>) -> Trims {
        Trims { clock, next_at: Mutex::default() }
    }

    /// Trims, if that is due, which says what processor time it took; another thread that does so
    /// is not waited for.
    pub fn trim_if_due(&self, trim: impl FnOnce() -> Duration) {
        let Some(mut next_at) = self.next_at.try_lock() else { return };
        if self.clock.monotonic() >= *next_at {
            let took = trim();
            *next_at = self.clock.monotonic() + rest_after(took);
        }
    }
}

/// How long there is none after one that took this processor time.
fn rest_after(took: Duration) -> Duration {
    (took * REST).max(EVERY)
}

#[cfg(test)]
mod tests;
