//! When free memory that the allocator keeps is given back to the system.
//!
//! Chunks of memtables, blocks of the cache and what merges use are allocated by one thread and
//! freed by another, so the heaps of threads fill with holes: at 160 MB they held 50 MB more than
//! was ever in use (decision 20). While stores work, their threads give free pages back four times
//! a second, and take at most a hundredth of the time for that, however much the program around
//! them holds.

use std::time::Duration;

use folddb_host::clock::{Clock, SystemClock};
use folddb_host::sync::Mutex;

/// The time between two trims at least.
const EVERY: Duration = Duration::from_millis(250);

/// A trim is followed by this many times the time that it took without one.
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

    /// Trims, if that is due; another thread that does so is not waited for.
    pub fn trim_if_due(&self, trim: impl FnOnce()) {
        let Some(mut next_at) = self.next_at.try_lock() else { return };
        let began = self.clock.monotonic();
        if began >= *next_at {
            trim();
            *next_at = after(began, self.clock.monotonic());
        }
    }
}

/// When the next trim is due.
fn after(began: Duration, ended: Duration) -> Duration {
    ended + (ended.saturating_sub(began) * REST).max(EVERY)
}

#[cfg(test)]
mod tests;
