//! A clock that is read between actions and does not move during one: so store and model have the
//! same time, also where the machine's clock jumps. By default a player has the machine's own,
//! since then a millisecond also ends in the middle of an action, as in normal use.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use folddb_host::Clock;
use folddb_host::clock::SystemClock;

/// See the top of this file.
#[derive(Default)]
pub(super) struct HeldClock {
    machine: SystemClock,
    wall_ms: AtomicU64,
}

impl HeldClock {
    /// A clock that shows what the machine's shows now.
    pub(super) fn new() -> HeldClock {
        let clock = HeldClock::default();
        clock.read();
        clock
    }

    /// From now on it shows the machine's present time.
    pub(super) fn read(&self) {
        self.wall_ms.store(self.machine.unix_millis(), Ordering::Relaxed);
    }
}

impl Clock for HeldClock {
    fn monotonic(&self) -> Duration {
        self.machine.monotonic()
    }

    fn unix_seconds(&self) -> u64 {
        self.unix_millis() / 1000
    }

    fn unix_millis(&self) -> u64 {
        self.wall_ms.load(Ordering::Relaxed)
    }
}
