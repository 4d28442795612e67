//! A clock that does not move unless a test moves it, for tests of expiry and of the past.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use folddb_host::clock::Clock;

/// When it begins, in milliseconds since 1970.
pub(crate) const START_MS: u64 = 1_800_000_000_000;

/// See the top of this file.
pub(crate) struct Moved(AtomicU64);

impl Moved {
    pub(crate) fn new() -> Moved {
        Moved(AtomicU64::new(START_MS))
    }

    /// Advances by this much.
    pub(crate) fn pass(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }

    /// Jumps to a time, which may be in the past.
    #[allow(dead_code, reason = "most tests let time go on only")]
    pub(crate) fn set(&self, unix_ms: u64) {
        self.0.store(unix_ms, Ordering::SeqCst);
    }
}

impl Clock for Moved {
    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.unix_millis())
    }

    fn unix_seconds(&self) -> u64 {
        self.unix_millis() / 1000
    }

    fn unix_millis(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}
