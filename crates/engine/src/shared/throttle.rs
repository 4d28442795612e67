//! A limit on what background work writes, in bytes a second, over all stores that share it.
//!
//! A bucket of tokens: it fills at the set rate, up to one second's worth. Flushes take from it and
//! never wait, since memory waits for them; merges and reclaim wait until it is positive.

use std::time::Duration;

use folddb_host::clock::{Clock, SystemClock};
use folddb_host::sync::Mutex;

/// The bucket.
pub struct Throttle {
    /// Its own: the clocks of stores need not agree.
    clock: Box<dyn Clock>,
    bucket: Mutex<Bucket>,
}

impl Default for Throttle {
    fn default() -> Throttle {
        Throttle::by(Box::new(SystemClock::default()))
    }
}

#[derive(Default)]
struct Bucket {
    bytes_per_s: Option<u64>,
    /// What may be written now; negative if more was written.
    tokens: f64,
    /// The time of that state.
    at: Duration,
}

impl Throttle {
    /// No limit yet, and the time of this clock.
    pub fn by(clock: Box<dyn Clock>) -> Throttle {
        Throttle { clock, bucket: Mutex::default() }
    }

    /// Sets the limit; none for no limit.
    pub fn set(&self, bytes_per_s: Option<u64>) {
        let at = self.clock.monotonic();
        *self.bucket.lock() = Bucket { bytes_per_s: bytes_per_s.map(|bytes| bytes.max(1)), tokens: 0.0, at };
    }

    /// The limit.
    pub fn bytes_per_s(&self) -> Option<u64> {
        self.bucket.lock().bytes_per_s
    }

    /// Notes bytes that background work has written.
    pub fn take(&self, bytes: u64) {
        let mut bucket = self.bucket.lock();
        if bucket.bytes_per_s.is_some() {
            bucket.take(bytes, self.clock.monotonic());
        }
    }

    /// How long work that can wait must wait now.
    pub fn due(&self) -> Duration {
        let mut bucket = self.bucket.lock();
        match bucket.bytes_per_s {
            Some(_) => bucket.due(self.clock.monotonic()),
            None => Duration::ZERO,
        }
    }
}

impl Bucket {
    /// Adds the tokens of the time since then.
    fn fill(&mut self, now: Duration) {
        let Some(rate) = self.bytes_per_s else { return };
        let gained = now.saturating_sub(self.at).as_secs_f64() * rate as f64;
        self.tokens = (self.tokens + gained).min(rate as f64);
        self.at = now.max(self.at);
    }

    fn take(&mut self, bytes: u64, now: Duration) {
        self.fill(now);
        self.tokens -= bytes as f64;
    }

    fn due(&mut self, now: Duration) -> Duration {
        self.fill(now);
        match self.bytes_per_s {
            Some(rate) if self.tokens < 0.0 => Duration::from_secs_f64(-self.tokens / rate as f64),
            _ => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests;
