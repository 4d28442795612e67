//! Stopwatches: latencies in a histogram, and the speed in each tenth of a run.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::process::cpu_seconds;

/// How long calls took.
pub struct Latencies {
    histogram: Histogram<u64>,
    sum_ns: u128,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies::new()
    }
}

impl Latencies {
    /// No latencies yet.
    pub fn new() -> Latencies {
        let histogram = Histogram::new_with_bounds(1, 600_000_000_000, 3).unwrap_or_else(|_| {
            unreachable!("from a nanosecond to ten minutes with three digits is a histogram")
        });
        Latencies { histogram, sum_ns: 0 }
    }

    /// Adds the time that a call took.
    #[inline]
    pub fn note(&mut self, took: Duration) {
        let took_ns = took.as_nanos() as u64;
        self.sum_ns += u128::from(took_ns);
        self.histogram.saturating_record(took_ns.max(1));
    }

    /// Adds all latencies of another.
    pub fn absorb(&mut self, other: &Latencies) {
        self.sum_ns += other.sum_ns;
        self.histogram += &other.histogram;
    }

    /// The quantiles, in microseconds.
    pub fn to_json(&self) -> Value {
        let us = |ns: u64| round(ns as f64 / 1000.0, 2);
        let at = |quantile| us(self.histogram.value_at_quantile(quantile));
        let mean = self.sum_ns.checked_div(u128::from(self.histogram.len())).unwrap_or(0);
        json!({
            "count": self.histogram.len(),
            "mean_us": us(mean as u64),
            "p50_us": at(0.50),
            "p90_us": at(0.90),
            "p99_us": at(0.99),
            "p99_9_us": at(0.999),
            "max_us": us(self.histogram.max()),
        })
    }
}

/// Rounds to this many digits after the point.
pub fn round(value: f64, digits: i32) -> f64 {
    let unit = 10f64.powi(digits);
    (value * unit).round() / unit
}

/// Times a phase: wall clock, CPU, and the speed of each tenth.
pub struct Phase {
    started: Instant,
    cpu_started: Option<f64>,
    rows: u64,
    tenths: Vec<u64>,
    tenth_started: Instant,
    tenth_row: u64,
}

impl Phase {
    /// Begins a phase of this many rows.
    pub fn start(rows: u64) -> Phase {
        let now = Instant::now();
        Phase {
            started: now,
            cpu_started: cpu_seconds(),
            rows,
            tenths: Vec::new(),
            tenth_started: now,
            tenth_row: 0,
        }
    }

    /// Notes that `done` rows are done at `now`. True when that ends a tenth.
    #[inline]
    pub fn reached(&mut self, done: u64, now: Instant) -> bool {
        let due = self.rows * (self.tenths.len() as u64 + 1) / 10;
        if done < due || self.tenths.len() == 10 {
            return false;
        }
        self.tenths.push(per_second(done - self.tenth_row, now - self.tenth_started));
        (self.tenth_row, self.tenth_started) = (done, now);
        true
    }

    /// Ends the phase.
    pub fn end(self) -> Value {
        let took = self.started.elapsed();
        let mut figures = json!({
            "seconds": round(took.as_secs_f64(), 3),
            "rows_per_s": per_second(self.rows, took),
        });
        if !self.tenths.is_empty() {
            figures["rows_per_s_by_tenth"] = json!(self.tenths);
        }
        figures["cpu_s"] = json!(cpu_since(self.cpu_started));
        figures
    }

    /// Ends a phase without a meaningful number of rows per second.
    pub fn end_of_work(self) -> Value {
        let mut figures = self.end();
        if let Some(figures) = figures.as_object_mut() {
            figures.remove("rows_per_s");
        }
        figures
    }
}

/// CPU seconds since an earlier reading, if the system reports them.
pub fn cpu_since(earlier: Option<f64>) -> Option<f64> {
    Some(round(cpu_seconds()? - earlier?, 2))
}

/// Events a second.
pub fn per_second(events: u64, took: Duration) -> u64 {
    (events as f64 / took.as_secs_f64().max(1e-9)) as u64
}
