//! Latencies of one writer's commits, as a whole and by the second.

use std::time::{Duration, Instant};

use folddb_bench::measure::Latencies;
use serde_json::{Value, json};

/// The latency of a commit is the time from the end of the commit before it to its own end. It
/// includes the few nanoseconds of the generator, and one reading of the clock.
pub(super) struct Commits {
    /// Those of past seconds, so that each commit is noted only once.
    past: Latencies,
    current: Latencies,
    started: Instant,
    before: Instant,
    second_ends: Instant,
    rows: u64,
    by_second: Vec<Value>,
}

impl Commits {
    pub(super) fn start() -> Commits {
        let now = Instant::now();
        Commits {
            past: Latencies::new(),
            current: Latencies::new(),
            started: now,
            before: now,
            second_ends: now + Duration::from_secs(1),
            rows: 0,
            by_second: Vec::new(),
        }
    }

    /// Adds a commit of this many rows that has just ended, and returns the time of its end.
    #[inline]
    pub(super) fn note(&mut self, rows: u64) -> Instant {
        let now = Instant::now();
        self.current.note(now - self.before);
        self.rows += rows;
        self.before = now;
        if now >= self.second_ends {
            self.end_second(now);
        }
        now
    }

    #[cold]
    fn end_second(&mut self, now: Instant) {
        let second = (self.second_ends - self.started).as_secs() - 1;
        let quantiles = self.current.to_json();
        self.by_second.push(json!({
            "second": second,
            "p50_us": quantiles["p50_us"],
            "p99_us": quantiles["p99_us"],
            "max_us": quantiles["max_us"],
            "rows": self.rows,
        }));
        let current = std::mem::take(&mut self.current);
        self.past.absorb(&current);
        self.rows = 0;
        while self.second_ends <= now {
            self.second_ends += Duration::from_secs(1);
        }
    }

    /// The latencies of all commits, and those of each second.
    pub(super) fn end(mut self) -> (Value, Value) {
        if self.rows > 0 {
            self.end_second(self.before);
        }
        (self.past.to_json(), Value::Array(self.by_second))
    }
}

#[cfg(test)]
#[path = "commits/tests.rs"]
mod tests;
