//! A rate that a thread keeps to: so many rows or gets a second, or as many as it can.

use std::time::{Duration, Instant};

/// A thread that is early sleeps for all but this, and waits awake for the rest: sleeps end late.
const AWAKE: Duration = Duration::from_micros(200);

/// Keeps to a rate. Who is late goes on at once, until it has caught up.
pub(super) struct Pace {
    per_s: Option<u64>,
    started: Instant,
    done: u64,
}

impl Pace {
    /// This many a second; as many as it can if there is no number.
    pub(super) fn of(per_s: Option<u64>) -> Pace {
        Pace { per_s, started: Instant::now(), done: 0 }
    }

    /// `count` more are done: waits until the next may begin.
    pub(super) fn done(&mut self, count: u64) {
        let Some(per_s) = self.per_s else { return };
        self.done += count;
        let due = Duration::from_secs_f64(self.done as f64 / per_s.max(1) as f64);
        while let Some(early) = due.checked_sub(self.started.elapsed()) {
            match early.checked_sub(AWAKE) {
                Some(asleep) => std::thread::sleep(asleep),
                None => std::hint::spin_loop(),
            }
        }
    }
}

#[cfg(test)]
#[path = "pace/tests.rs"]
mod tests;
