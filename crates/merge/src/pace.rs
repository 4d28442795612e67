//! Back pressure: how long a commit waits so that background work keeps up. A pure function of the
//! debt.
//!
//! # The law
//! *Debt* is the outstanding background work, in seconds at the measured rates: sealed memtables
//! that wait for their flush, and the runs of tier 0 beyond the merge factor that wait for their
//! merge. With x = (debt - d0) / (d1 - d0), at least 0, a commit of b bytes waits
//!
//! ```text
//!   delay = min( x², s ) · b / sustainable rate
//!
//!   delay │                        ______ s · b / rate      b / rate is what the commit costs in background
//!         │                      ,'                         work: at x = 1 (debt d1) writers are slowed to
//!  b/rate │. . . . . . . . . _,-'                           what background work sustains, at x = 2 to a quarter of it,
//!         │           __,,-''.                              so the debt settles near d1 under any load.
//!       0 │_______,,-'       .
//!         └──────┬───────────┬─────────── debt
//!                d0          d1
//! ```
//!
//! Two more quantities rise if writers are too fast. Each has the same curve, and the longest of
//! the delays counts:
//!
//! - *Runs*. With small memtables a second of merging is hundreds of runs, and a read visits each
//!   of them. x depends on the number of runs of the fullest tier as a multiple of the merge
//!   factor: x = (runs / factor - r0) / (r1 - r0).
//! - *Memory*. With a small budget or fast background work, memory fills long before there is a
//!   debt that counts: two memtables may be a tenth of a second of flushing. x = (filled / memory -
//!   m0) / (m1 - m0), with the cost of flushing alone.
//!
//! One more is for separated values: the size of the value log as a multiple of its bound, while
//! reclaim is shrinking it. x = (value log - v0) / (v1 - v0), and b bytes of values cost the time
//! in which reclaim frees as many bytes.
//!
//! The delay rises smoothly from 0, without steps, and there is no state: a rate that is remembered
//! only falls (RocksDB #1966), and an estimate with steps skips the slow part and stalls (RocksDB
//! #9423).
//!
//! A writer sleeps a long delay in pieces, and examines the debt again after each ([`Toll`]), so
//! that changes by others or by background work count. Several writers sleep one after the other,
//! since they share the rate. No commit waits longer than s times its cost, plus the waits of those
//! before it. This file does not guarantee that memory stays within its budget: when sealed
//! memtables have used it up, the engine makes a writer wait for a flush. The delay for memory is
//! there so that writers do not reach that limit.

use std::fmt;
use std::time::Duration;

use folddb_base::size_text;

/// The constants of the law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaceOptions {
    /// The debt below which no commit waits, in seconds. Default 0.5.
    pub debt_free_s: f64,
    /// The debt at which writers are slowed to what background work sustains, in seconds. Default
    /// 2.
    pub debt_full_s: f64,
    /// The runs of a tier below which no commit waits, as a multiple of the merge factor. Default
    /// 2: while the runs of a full tier are merged, the same number of new ones may come.
    pub runs_free: f64,
    /// The runs of a tier at which writers are slowed to what background work sustains, as a
    /// multiple of the merge factor. Default 3.
    pub runs_full: f64,
    /// The filled share of the memory below which no commit waits. Default 0.55: half is normal, if
    /// one memtable is flushed while the next one fills.
    pub memory_free: f64,
    /// The filled share of the memory at which writers are slowed to what flushes sustain. Default
    /// 0.75.
    pub memory_full: f64,
    /// The size of the value log below which no value waits, as a multiple of its bound. Default
    /// 1.05.
    pub value_log_free: f64,
    /// The size at which values are written no faster than dead ones are removed, as a multiple of
    /// its bound. Default 1.25.
    pub value_log_full: f64,
    /// The most that a commit waits, as a multiple of what it costs in background work. Default 8.
    pub slowdown_max: f64,
    /// The longest sleep before the debt is examined again. Default 2 ms.
    pub sleep_max: Duration,
}

impl Default for PaceOptions {
    fn default() -> PaceOptions {
        PaceOptions {
            debt_free_s: 0.5,
            debt_full_s: 2.0,
            runs_free: 2.0,
            runs_full: 3.0,
            memory_free: 0.55,
            memory_full: 0.75,
            value_log_free: 1.05,
            value_log_full: 1.25,
            slowdown_max: 8.0,
            sleep_max: Duration::from_millis(2),
        }
    }
}

/// The outstanding background work, as it was last measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Debt {
    /// Bytes of sealed memtables that wait for their flush.
    pub sealed_bytes: u64,
    /// Bytes of memory in use: of sealed memtables, less what the running flush has written, and of
    /// the memtable that is being filled.
    pub filled_bytes: u64,
    /// The most bytes of memory, at which writers must wait for a flush; 0 if there is no limit.
    pub filled_bytes_max: u64,
    /// Bytes of the runs of tier 0 beyond the merge factor, which merges must still read, of all
    /// tables.
    pub overdue_bytes: u64,
    /// Runs of the fullest tier of any table, as a multiple of the merge factor.
    pub crowding: f64,
    /// The size of the value log, as a multiple of its bound; 0 while nothing shrinks it.
    pub value_log: f64,
    /// Bytes that reclaim frees per second, as measured; 0 while unknown.
    pub reclaim_bytes_per_s: f64,
    /// Bytes of memtables that flushes take in per second, as measured; 0 while unknown.
    pub flush_bytes_per_s: f64,
    /// Bytes that merges take in per second, as measured; 0 while unknown.
    pub merge_bytes_per_s: f64,
    /// Bytes that merges read for each byte flushed: the number of tiers above the first, at least
    /// 1.
    pub merge_amplification: f64,
}

impl Debt {
    /// Bytes of tier-0 runs beyond the merge factor: what to add to `overdue_bytes` for one table.
    pub fn overdue(tier0_runs: usize, tier0_bytes: u64, merge_factor: usize) -> u64 {
        let beyond = tier0_runs.saturating_sub(merge_factor);
        if beyond == 0 { 0 } else { (tier0_bytes as f64 * beyond as f64 / tier0_runs as f64) as u64 }
    }

    /// The outstanding work, in seconds. Work with an unknown rate does not count.
    pub fn seconds(&self) -> f64 {
        seconds_for(self.sealed_bytes, self.flush_bytes_per_s)
            + seconds_for(self.overdue_bytes, self.merge_bytes_per_s)
    }

    /// The share of the memory that is filled.
    fn filled(&self) -> f64 {
        if self.filled_bytes_max > 0 { self.filled_bytes as f64 / self.filled_bytes_max as f64 } else { 0.0 }
    }

    /// The seconds of background work that writing `bytes` causes.
    pub fn cost_s(&self, bytes: u64) -> f64 {
        let merged = bytes as f64 * self.merge_amplification.max(1.0);
        seconds_for(bytes, self.flush_bytes_per_s) + seconds_for(merged as u64, self.merge_bytes_per_s)
    }
}

fn seconds_for(bytes: u64, bytes_per_s: f64) -> f64 {
    if bytes_per_s > 0.0 { bytes as f64 / bytes_per_s } else { 0.0 }
}

/// How long a commit of this many bytes waits: see the law at the head of this file.
pub fn delay(debt: &Debt, bytes: u64, options: &PaceOptions) -> Duration {
    let behind = slowdown(debt.seconds(), options.debt_free_s, options.debt_full_s);
    let crowded = slowdown(debt.crowding, options.runs_free, options.runs_full);
    let filled = slowdown(debt.filled(), options.memory_free, options.memory_full);
    let behind_s = behind.max(crowded).min(options.slowdown_max) * debt.cost_s(bytes);
    let filled_s = filled.min(options.slowdown_max) * seconds_for(bytes, debt.flush_bytes_per_s);
    // A value that is not a finite number is no wait.
    Duration::try_from_secs_f64(behind_s.max(filled_s)).unwrap_or_default()
}

/// How long this many bytes of separated values wait for the value log.
pub fn delay_of_values(debt: &Debt, value_bytes: u64, options: &PaceOptions) -> Duration {
    let over =
        slowdown(debt.value_log, options.value_log_free, options.value_log_full).min(options.slowdown_max);
    Duration::try_from_secs_f64(over * seconds_for(value_bytes, debt.reclaim_bytes_per_s)).unwrap_or_default()
}

/// How long a commit waits, as a multiple of what it costs: a parabola that is 0 up to `free` and 1
/// at `full`.
fn slowdown(value: f64, free: f64, full: f64) -> f64 {
    let x = ((value - free) / (full - free).max(f64::MIN_POSITIVE)).max(0.0);
    x * x
}

/// `debt 1.25 s: 48.0 MiB wait for a flush, 0 B of tier 0 are overdue`
impl fmt::Display for Debt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sealed, overdue) = (size_text(self.sealed_bytes), size_text(self.overdue_bytes));
        write!(f, "debt {:.2} s: {sealed} wait for a flush, {overdue} of tier 0 are overdue", self.seconds())
    }
}

/// The bytes of a commit that have not waited yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Toll {
    bytes: u64,
    value_bytes: u64,
}

impl Toll {
    /// A commit of `bytes`, with `value_bytes` of separated values.
    pub fn of(bytes: u64, value_bytes: u64) -> Toll {
        Toll { bytes, value_bytes }
    }

    /// How long the next piece waits, at this debt; none if all of the commit has waited.
    pub fn next(&mut self, debt: &Debt, options: &PaceOptions) -> Option<Duration> {
        if self.bytes == 0 && self.value_bytes == 0 {
            return None;
        }
        let all = delay(debt, self.bytes, options).max(delay_of_values(debt, self.value_bytes, options));
        if all <= options.sleep_max {
            (self.bytes, self.value_bytes) = (0, 0);
            return Some(all);
        }
        let share = options.sleep_max.as_secs_f64() / all.as_secs_f64();
        let rest = |bytes: u64| bytes - ((bytes as f64 * share) as u64).clamp(1.min(bytes), bytes);
        (self.bytes, self.value_bytes) = (rest(self.bytes), rest(self.value_bytes));
        Some(options.sleep_max)
    }
}

/// Adds up delays that are too short, until their sum is worth a sleep: a sleep of one microsecond
/// takes fifty. All writers share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwedDelay {
    owed: Duration,
}

impl OwedDelay {
    /// The shortest sleep.
    pub const SLEEP_MIN: Duration = Duration::from_micros(200);

    /// Adds a delay. Returns how long to sleep now; none until the sum reaches
    /// [`OwedDelay::SLEEP_MIN`].
    pub fn add(&mut self, delay: Duration) -> Option<Duration> {
        self.owed += delay;
        (self.owed >= OwedDelay::SLEEP_MIN).then(|| std::mem::take(&mut self.owed))
    }
}

#[cfg(test)]
#[path = "pace/tests.rs"]
mod tests;
