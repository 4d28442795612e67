use proptest::prelude::*;

use super::*;

fn debt_of(sealed_bytes: u64) -> Debt {
    Debt { sealed_bytes, flush_bytes_per_s: 100e6, merge_bytes_per_s: 200e6, ..Debt::default() }
}

proptest! {
    #[test]
    fn monotone_and_bounded(
        sealed in 0u64..1 << 33,
        filled in 0u64..1 << 33,
        overdue in 0u64..1 << 33,
        crowding in 0.0..10.0f64,
        more in 0u64..1 << 30,
        rate in 0.0..1e10f64,
        amplification in 0.0..10.0f64,
        bytes in 0u64..1 << 26,
    ) {
        let options = PaceOptions::default();
        let debt = Debt {
            sealed_bytes: sealed,
            filled_bytes: filled,
            filled_bytes_max: 1 << 32,
            overdue_bytes: overdue,
            crowding,
            flush_bytes_per_s: rate,
            merge_bytes_per_s: 2.0 * rate,
            merge_amplification: amplification,
            ..Debt::default()
        };
        let now = delay(&debt, bytes, &options);
        prop_assert!(now.as_secs_f64() <= options.slowdown_max * debt.cost_s(bytes) + 2e-9);
        let more_sealed = Debt { sealed_bytes: sealed + more, ..debt };
        let more_filled = Debt { filled_bytes: filled + more, ..debt };
        prop_assert!(now <= delay(&more_filled, bytes, &options));
        let more_overdue = Debt { overdue_bytes: overdue + more, ..debt };
        let more_runs = Debt { crowding: crowding + 0.5, ..debt };
        prop_assert!(now <= delay(&more_runs, bytes, &options));
        prop_assert!(now <= delay(&more_sealed, bytes, &options));
        prop_assert!(now <= delay(&more_overdue, bytes, &options));
        prop_assert!(now <= delay(&debt, bytes + more, &options));
    }

    #[test]
    fn continuous(sealed in 0u64..1 << 30, bytes in 0u64..1 << 20) {
        // 1 ms more of debt changes the delay of a commit by a small part of what the commit costs.
        let options = PaceOptions::default();
        let (now, then) = (debt_of(sealed), debt_of(sealed + 100_000));
        let step = delay(&then, bytes, &options) - delay(&now, bytes, &options);
        prop_assert!(step.as_secs_f64() <= 0.02 * now.cost_s(bytes) + 2e-9, "{step:?}");
    }
}

#[test]
fn no_debt_no_delay_and_full_debt_the_sustainable_rate() {
    let options = PaceOptions::default();
    assert_eq!(delay(&debt_of(0), 1 << 20, &options), Duration::ZERO);
    assert_eq!(delay(&debt_of(50_000_000), 1 << 20, &options), Duration::ZERO);
    // Debt of 2 s: 1 MB costs 10 ms of flushing and 5 ms of merging.
    assert_eq!(delay(&debt_of(200_000_000), 1_000_000, &options), Duration::from_millis(15));
    // Ten times as much waits ten times as long, and never longer than eight times what it costs.
    assert_eq!(delay(&debt_of(200_000_000), 10_000_000, &options), Duration::from_millis(150));
    assert_eq!(delay(&debt_of(u64::MAX), 1_000_000, &options), Duration::from_millis(120));
}

#[test]
fn runs_slow_writers_whatever_their_bytes() {
    let runs = |runs| Debt { crowding: runs / 8.0, ..debt_of(0) };
    let delays = [16.0, 20.0, 24.0].map(|count| delay(&runs(count), 1_000_000, &PaceOptions::default()));
    assert_eq!(delays, [Duration::ZERO, Duration::from_micros(3750), Duration::from_millis(15)]);
}

#[test]
fn a_long_delay_is_waited_in_pieces_each_at_the_debt_of_its_moment() {
    let options = PaceOptions::default();
    let mut toll = Toll::of(1_000_000, 0); // 15 ms of work
    let pieces: Vec<_> = std::iter::from_fn(|| toll.next(&debt_of(200_000_000), &options)).collect();
    assert_eq!(pieces.len(), 8);
    assert!(pieces[..7].iter().all(|piece| *piece == options.sleep_max) && pieces[7] < options.sleep_max);
    let mut toll = Toll::of(1_000_000, 0);
    assert_eq!(toll.next(&debt_of(200_000_000), &options), Some(options.sleep_max));
    assert_eq!(toll.next(&debt_of(0), &options), Some(Duration::ZERO), "the debt is paid meanwhile");
    assert_eq!(toll.next(&debt_of(200_000_000), &options), None);
}

#[test]
fn unknown_rates_never_slow_a_writer() {
    let unknown = Debt { sealed_bytes: u64::MAX, overdue_bytes: u64::MAX, ..Debt::default() };
    assert_eq!(delay(&unknown, u64::MAX, &PaceOptions::default()), Duration::ZERO);
    let nonsense = Debt { flush_bytes_per_s: f64::NAN, ..unknown };
    assert_eq!(delay(&nonsense, u64::MAX, &PaceOptions::default()), Duration::ZERO);
}

#[test]
fn writers_settle_at_what_background_work_sustains() {
    // Writers offer ten times what background work can flush, in commits of 64 KB; time in steps of
    // a commit.
    let options = PaceOptions::default();
    let (rate, bytes) = (100e6, 65_536u64);
    let (mut sealed, mut elapsed_s, mut longest_s) = (0.0f64, 0.0f64, 0.0f64);
    for _ in 0..100_000 {
        let debt = Debt { sealed_bytes: sealed as u64, flush_bytes_per_s: rate, ..Debt::default() };
        let wait_s = delay(&debt, bytes, &options).as_secs_f64();
        let took_s = bytes as f64 / (10.0 * rate) + wait_s;
        sealed = (sealed + bytes as f64 - took_s * rate).max(0.0);
        elapsed_s += took_s;
        longest_s = longest_s.max(wait_s);
    }
    assert!(sealed / rate <= 2.0, "the debt stays below the full one: {} s", sealed / rate);
    assert!(longest_s < 0.002, "no commit waits longer than it costs");
    let reached = 100_000.0 * bytes as f64 / elapsed_s;
    assert!(reached >= rate, "background work is never idle: {reached}");
}

#[test]
fn memory_that_fills_slows_writers_to_what_flushes_sustain() {
    let options = PaceOptions::default();
    let filled = |filled_bytes| Debt { filled_bytes, filled_bytes_max: 40_000_000, ..debt_of(1) };
    assert_eq!(delay(&filled(22_000_000), 1_000_000, &options), Duration::ZERO);
    // 1 MB costs 10 ms of flushing.
    assert_eq!(delay(&filled(30_000_000), 1_000_000, &options), Duration::from_millis(10));
    assert_eq!(delay(&filled(38_000_000), 1_000_000, &options), Duration::from_millis(40));
}

const MERGE_FACTOR: usize = 8;

/// A store with writers that offer more than its background work takes: one thread flushes, one
/// merges, writers commit one at a time and sleep one after the other. Times in seconds, sizes in
/// bytes.
struct World {
    memtable: f64,
    flush_rate: f64,
    merge_rate: f64,
    /// Memtables that wait, the oldest first; what of the oldest is flushed; and what is in the one
    /// that fills.
    sealed: Vec<f64>,
    flushed: f64,
    filling: f64,
    /// Runs of tier 0, the oldest first, and what a merge of the first `merging` has taken in.
    runs: Vec<f64>,
    merging: usize,
    merged: f64,
    now: f64,
    runs_max: usize,
}

impl World {
    fn new(memtable: f64, flush_rate: f64, merge_rate: f64) -> World {
        World {
            memtable,
            flush_rate,
            merge_rate,
            sealed: Vec::new(),
            flushed: 0.0,
            filling: 0.0,
            runs: Vec::new(),
            merging: 0,
            merged: 0.0,
            now: 0.0,
            runs_max: 0,
        }
    }

    /// Background work works until `then`.
    fn go_on_to(&mut self, then: f64) {
        while self.now < then {
            let flush_left = self.sealed.first().map(|bytes| (bytes - self.flushed) / self.flush_rate);
            if self.merging == 0 && self.runs.len() >= MERGE_FACTOR {
                self.merging = self.runs.len().min(2 * MERGE_FACTOR);
            }
            let merge_bytes: f64 = self.runs[..self.merging].iter().sum();
            let merge_left = (self.merging > 0).then(|| (merge_bytes - self.merged) / self.merge_rate);
            let step =
                (then - self.now).min(flush_left.unwrap_or(f64::MAX)).min(merge_left.unwrap_or(f64::MAX));
            self.now = if step >= then - self.now { then } else { self.now + step };
            if let Some(left) = flush_left {
                self.flushed += step * self.flush_rate;
                if step >= left {
                    self.runs.push(self.sealed.remove(0));
                    self.flushed = 0.0;
                }
            }
            if let Some(left) = merge_left {
                self.merged += step * self.merge_rate;
                if step >= left {
                    self.runs.drain(..self.merging);
                    (self.merging, self.merged) = (0, 0.0);
                }
            }
            self.runs_max = self.runs_max.max(self.runs.len());
        }
    }

    fn debt(&self) -> Debt {
        let sealed: f64 = self.sealed.iter().sum::<f64>() - self.flushed;
        let runs_bytes: f64 = self.runs.iter().sum();
        Debt {
            sealed_bytes: sealed as u64,
            filled_bytes: (sealed + self.filling) as u64,
            filled_bytes_max: (2.0 * self.memtable) as u64,
            overdue_bytes: Debt::overdue(self.runs.len(), runs_bytes as u64, MERGE_FACTOR),
            crowding: self.runs.len() as f64 / MERGE_FACTOR as f64,
            flush_bytes_per_s: self.flush_rate,
            merge_bytes_per_s: self.merge_rate,
            merge_amplification: 1.0,
            ..Debt::default()
        }
    }

    fn is_full(&self) -> bool {
        // A memtable is sealed once it is full: two hold a little more than two.
        self.sealed.iter().sum::<f64>() > 2.25 * self.memtable
    }

    fn commit(&mut self, bytes: f64) {
        self.filling += bytes;
        if self.filling >= self.memtable {
            self.sealed.push(std::mem::take(&mut self.filling));
        }
    }

    /// A number of writers commit batches of a given size until a total is written. Returns the
    /// stalls, and the bytes a second.
    fn write(
        &mut self,
        writers: usize,
        batch: f64,
        payload_share: f64,
        offered: f64,
        total: f64,
    ) -> (usize, f64) {
        let options = PaceOptions::default();
        let mut at: Vec<(f64, Toll)> = vec![(0.0, Toll::of((batch * payload_share) as u64, 0)); writers];
        let (mut owed, mut turn_over, mut lock_free) = (OwedDelay::default(), 0.0f64, 0.0f64);
        let (mut written, mut stalls) = (0.0, 0);
        while written < total {
            let next = (0..writers).min_by(|&a, &b| at[a].0.total_cmp(&at[b].0)).unwrap();
            let (time, toll) = &mut at[next];
            self.go_on_to(*time);
            let may_wait = !self.sealed.is_empty() || self.runs.len() > MERGE_FACTOR;
            if may_wait && let Some(delay) = toll.next(&self.debt(), &options) {
                if let Some(delay) = owed.add(delay) {
                    turn_over = turn_over.max(*time) + delay.as_secs_f64();
                    *time = turn_over;
                }
                continue;
            }
            stalls += usize::from(self.is_full());
            while self.is_full() {
                self.go_on_to(self.now + 1e-3);
            }
            lock_free = lock_free.max(self.now) + batch / offered;
            *time = lock_free;
            *toll = Toll::of((batch * payload_share) as u64, 0);
            self.commit(batch);
            written += batch;
        }
        (stalls, written / self.now)
    }
}

const FLUSH_RATE: f64 = 250e6;

/// How many bytes of memory writers offer per second, and the share of these that their commits
/// have.
const OFFERS: [(f64, f64); 4] = [(260e6, 1.0), (500e6, 0.4), (1500e6, 0.4), (1500e6, 1.0)];

/// Batches of one row to twenty thousand, of sixty bytes each in memory, by one, four and eight
/// writers.
fn each_load(memtable: f64, memtables: f64, merge_rate: f64, check: impl Fn(&str, &World, usize, f64)) {
    for (rows, writers) in
        [1.0, 100.0, 1000.0, 20_000.0].into_iter().flat_map(|rows| [1, 4, 8].map(|n| (rows, n)))
    {
        for (offered, payload_share) in OFFERS {
            let batch = rows * 60.0;
            let total = if rows == 1.0 { 3.0 * memtable } else { memtables * memtable.max(batch) };
            let mut world = World::new(memtable, FLUSH_RATE, merge_rate);
            let (stalls, rate) = world.write(writers, batch, payload_share, offered, total);
            check(&format!("{writers} x {rows} rows at {offered} B/s"), &world, stalls, rate);
        }
    }
}

#[test]
fn no_writer_has_to_wait_for_memory() {
    each_load(10e6, 30.0, f64::MAX, |load, _, stalls, rate| {
        assert_eq!(stalls, 0, "{load}");
        assert!(rate >= 0.9 * FLUSH_RATE, "{load}: flushes are idle, {rate}");
    });
}

/// With small memtables, seconds of merging are hundreds of runs.
#[test]
fn runs_stay_few_however_small_they_are() {
    each_load(1e6, 150.0, 100e6, |load, world, _, rate| {
        assert!(world.runs_max <= 5 * MERGE_FACTOR, "{load}: {} runs", world.runs_max);
        assert!(rate >= 100e6, "{load}: merges are idle, {rate}");
    });
}

#[test]
fn overdue_counts_what_is_beyond_the_merge_factor() {
    assert_eq!(Debt::overdue(0, 0, 8), 0);
    assert_eq!(Debt::overdue(8, 800, 8), 0);
    assert_eq!(Debt::overdue(10, 1000, 8), 200);
}

#[test]
fn short_delays_add_up_to_a_sleep() {
    let mut owed = OwedDelay::default();
    let slept: Vec<_> = (0..10).filter_map(|_| owed.add(Duration::from_micros(45))).collect();
    assert_eq!(slept, [Duration::from_micros(225); 2]);
}

#[test]
fn prints() {
    let debt = Debt { overdue_bytes: 512, ..debt_of(48_000_000) };
    assert_eq!(debt.to_string(), "debt 0.48 s: 45.8 MiB wait for a flush, 512 B of tier 0 are overdue");
}

/// Values come more and more slowly as the value log exceeds its bound, and no faster than dead
/// ones are removed when it is full.
#[test]
fn a_value_log_over_its_bound_slows_values_down_and_nothing_else() {
    let options = PaceOptions::default();
    let at = |value_log: f64| {
        let debt = Debt { value_log, reclaim_bytes_per_s: 100e6, ..Debt::default() };
        delay_of_values(&debt, 1_000_000, &options).as_secs_f64()
    };
    assert_eq!((at(0.0), at(1.0), at(options.value_log_free)), (0.0, 0.0, 0.0));
    assert!((at(options.value_log_full) - 0.01).abs() < 1e-6, "as long as giving back as much takes");
    assert!(at(1.1) > 0.0 && at(1.1) < at(1.2) && at(9.0) <= 0.08 + 1e-9);
    let debt = Debt { value_log: 1.25, ..Debt::default() };
    assert_eq!(delay_of_values(&debt, 1_000_000, &options), Duration::ZERO, "at a rate that is not known");
    let debt = Debt { reclaim_bytes_per_s: 100e6, ..debt };
    assert_eq!(Toll::of(1000, 0).next(&debt, &options), Some(Duration::ZERO));
    let mut toll = Toll::of(1000, 1_000_000);
    let mut slept = Duration::ZERO;
    while let Some(piece) = toll.next(&debt, &options) {
        assert!(piece <= options.sleep_max);
        slept += piece;
    }
    assert!((slept.as_secs_f64() - 0.01).abs() < 1e-4, "{slept:?}");
}
