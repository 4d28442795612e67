//! What time it is.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A clock.
pub trait Clock: Send + Sync {
    /// Time since some fixed moment of this process; never goes back. For pacing and statistics.
    fn monotonic(&self) -> Duration;

    /// Seconds since 1970 by the wall clock; may jump.
    fn unix_seconds(&self) -> u64;

    /// Milliseconds since 1970 by the wall clock, as exactly as it knows them.
    fn unix_millis(&self) -> u64 {
        self.unix_seconds().saturating_mul(1000)
    }
}

/// The operating system's clock.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn unix_seconds(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
    }

    fn unix_millis(&self) -> u64 {
        #[cfg(folddb_sleeps)]
        crate::sync::pause(); // a millisecond ends between two looks
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as u64)
    }
}
