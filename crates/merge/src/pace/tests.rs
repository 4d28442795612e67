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
            flush_bytes_per_s: rate,
            merge_bytes_per_s: 2.0 * rate,
            merge_amplification: amplification,
        };
        let now = delay(&debt, bytes, &options);
        prop_assert!(now <= options.delay_max);
        let more_sealed = Debt { sealed_bytes: sealed + more, ..debt };
        let more_filled = Debt { filled_bytes: filled + more, ..debt };
        prop_assert!(now <= delay(&more_filled, bytes, &options));
        let more_overdue = Debt { overdue_bytes: overdue + more, ..debt };
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
    let options = PaceOptions { delay_max: Duration::from_secs(1), ..PaceOptions::default() };
    assert_eq!(delay(&debt_of(0), 1 << 20, &options), Duration::ZERO);
    assert_eq!(delay(&debt_of(50_000_000), 1 << 20, &options), Duration::ZERO);
    // Debt of 2 s: 1 MB costs 10 ms of flushing and 5 ms of merging.
    assert_eq!(delay(&debt_of(200_000_000), 1_000_000, &options), Duration::from_millis(15));
    assert_eq!(delay(&debt_of(u64::MAX), 1_000_000, &options), options.delay_max);
}

#[test]
fn unknown_rates_never_slow_a_writer() {
    let unknown = Debt { sealed_bytes: u64::MAX, overdue_bytes: u64::MAX, ..Debt::default() };
    assert_eq!(delay(&unknown, u64::MAX, &PaceOptions::default()), Duration::ZERO);
    let nonsense = Debt { flush_bytes_per_s: f64::NAN, ..unknown };
    assert_eq!(delay(&nonsense, u64::MAX, &PaceOptions::default()), Duration::ZERO);
}

#[test]
fn writers_settle_at_what_upkeep_sustains() {
    // Writers offer ten times what upkeep can flush, in commits of 64 KB; time in steps of a commit.
    let options = PaceOptions { delay_max: Duration::from_millis(5), ..PaceOptions::default() };
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
    assert!(reached >= rate, "upkeep is never idle: {reached}");
}

#[test]
fn memory_that_fills_slows_writers_to_what_flushes_sustain() {
    let options = PaceOptions { delay_max: Duration::from_secs(1), ..PaceOptions::default() };
    let filled = |filled_bytes| Debt { filled_bytes, filled_bytes_max: 40_000_000, ..debt_of(1) };
    assert_eq!(delay(&filled(22_000_000), 1_000_000, &options), Duration::ZERO);
    // 1 MB costs 10 ms of flushing.
    assert_eq!(delay(&filled(30_000_000), 1_000_000, &options), Duration::from_millis(10));
    assert_eq!(delay(&filled(38_000_000), 1_000_000, &options), Duration::from_millis(40));
}

/// Writers offer several times what flushes take. A memtable is sealed when it holds `memtable` bytes; two may wait.
#[test]
fn nobody_comes_to_the_wall_of_memory() {
    let options = PaceOptions::default();
    let (flush_rate, memtable, bytes) = (250e6, 28e6, 38_000.0);
    for (offered_rate, payload_share) in [(260e6, 1.0), (500e6, 0.5), (1500e6, 0.5), (1500e6, 1.0)] {
        let (mut sealed, mut flushed, mut filling, mut fullest) = (0.0f64, 0.0f64, 0.0f64, 0.0f64);
        let (mut written, mut elapsed_s) = (0.0, 0.0);
        for _ in 0..50_000 {
            let debt = Debt {
                sealed_bytes: (sealed - flushed) as u64,
                filled_bytes: (sealed - flushed + filling) as u64,
                filled_bytes_max: (2.0 * memtable) as u64,
                flush_bytes_per_s: flush_rate,
                ..Debt::default()
            };
            let wait_s = delay(&debt, (bytes * payload_share) as u64, &options).as_secs_f64();
            let took_s = bytes / offered_rate + if sealed > 0.0 { wait_s } else { 0.0 };
            filling += bytes;
            flushed += if sealed > 0.0 { took_s * flush_rate } else { 0.0 };
            if flushed >= memtable {
                (sealed, flushed) =
                    (sealed - memtable, if sealed > memtable { flushed - memtable } else { 0.0 });
            }
            if filling >= memtable {
                (sealed, filling) = (sealed + memtable, filling - memtable);
            }
            fullest = fullest.max(sealed);
            (written, elapsed_s) = (written + bytes, elapsed_s + took_s);
        }
        assert!(fullest <= 2.0 * memtable, "offered {offered_rate}: {fullest} bytes were sealed");
        let reached = written / elapsed_s;
        assert!(reached >= 0.9 * flush_rate, "offered {offered_rate}: flushes are idle, {reached}");
    }
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
    assert_eq!(debt.to_string(), "debt 0.48 s: 48.0 MB wait for a flush, 512 B of tier 0 are overdue");
    let shown =
        [999, 1_000, 1_234_567, 1_200_000_000, 3_000_000_000_000].map(|bytes| Bytes(bytes).to_string());
    assert_eq!(shown, ["999 B", "1.0 KB", "1.2 MB", "1.2 GB", "3.0 TB"]);
}
