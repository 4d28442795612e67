//! A store obeys the limit on what background work writes, by a clock that is moved by hand: at any
//! time its merges and reclaim have written at most what the rate gives.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use folddb_engine::background::workers::{Duty, work_turn};
use folddb_engine::shared::Shared as EngineShared;
use folddb_engine::shared::pool::Turn;
use folddb_engine::shared::throttle::Throttle;
use folddb_host::clock::Clock;
use folddb_host::sync::Mutex;

use crate::{BackgroundJob, BackgroundWork, Options, Rules, Shared, Store};

const BYTES_PER_S: u64 = 100_000;

/// The time since an opening, which passes when it is told to.
#[derive(Clone, Default)]
struct ByHand(Arc<Mutex<Duration>>);

impl Clock for ByHand {
    fn monotonic(&self) -> Duration {
        *self.0.lock()
    }

    fn unix_seconds(&self) -> u64 {
        0
    }
}

/// What a store without threads shares, and the clock of the limit.
fn shared() -> (Shared, ByHand) {
    let clock = ByHand::default();
    let engine = EngineShared {
        throttle: Arc::new(Throttle::by(Box::new(clock.clone()))),
        ..EngineShared::new(8 << 20, 64)
    };
    (Shared { engine }, clock)
}

fn store(dir: &Path, shared: &Shared) -> Store {
    let options = Options::default().background(BackgroundWork::Manual).memory_bytes(8 << 20).shared(shared);
    let small = options.tuning(|t| {
        t.merge_factor(2).part_bytes(64 << 10).segment_bytes(1 << 20).value_segment_bytes(256 << 10)
    });
    Store::create(dir.join("s.folddb"), small).unwrap()
}

/// Bytes that no compression shortens.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|_| next()).collect()
}

/// What merges and reclaim have written, or flushes before them.
fn written(store: &Store) -> u64 {
    let counters = &store.engine().counters;
    counters.part_bytes_written.get() + counters.value_bytes_copied.get()
}

/// Takes turns of the thread that flushes until nothing is left to do.
fn flush_all(store: &Store) {
    while work_turn(store.background(), Duty::Flush, &mut None) == Turn::Done {}
}

/// Takes turns of the thread that merges until nothing is left to do, and lets time pass when it
/// waits. The bytes written, and the seconds.
fn merge_all(store: &Store, shared: &Shared, clock: &ByHand) -> (u64, f64) {
    let (before, mut failed) = (written(store), None);
    loop {
        let (so_far, now) = (written(store) - before, clock.monotonic());
        let due = shared.engine.throttle.due();
        match work_turn(store.background(), Duty::MergeAndReclaim, &mut failed) {
            Turn::Done => {
                let may = now.as_secs_f64() * BYTES_PER_S as f64 + 1.0;
                assert!(so_far as f64 <= may, "{so_far} bytes before a step after {now:?}");
            }
            _ if due.is_zero() => return (so_far, now.as_secs_f64()),
            _ => *clock.0.lock() += due,
        }
    }
}

#[test]
fn merges_write_no_more_than_the_limit_gives() {
    let (dir, (shared, clock)) = (tempfile::tempdir().unwrap(), shared());
    let store = store(dir.path(), &shared);
    let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).unwrap();
    let fill = |round: u64| {
        for key in 0..2000 {
            table.put(&(16 * key + round), &noise(key + round, 100)).unwrap();
        }
    };
    for round in 0..8 {
        fill(round);
        store.flush().unwrap();
    }
    shared.set_background_bytes_per_s(Some(BYTES_PER_S));
    let (bytes, seconds) = merge_all(&store, &shared, &clock);
    assert!(bytes > 10 * BYTES_PER_S, "{bytes}");
    assert!(seconds < 1.2 * bytes as f64 / BYTES_PER_S as f64, "it waits no longer: {bytes}, {seconds} s");

    // A flush does not wait, and what it writes delays merges.
    fill(9);
    assert!(store.background_step_of(BackgroundJob::Seal).unwrap().is_some());
    flush_all(&store);
    assert!(shared.engine.throttle.due() > Duration::from_secs(1), "{:?}", shared.engine.throttle.due());
}

#[test]
fn reclaim_writes_no_more_than_the_limit_gives() {
    let (dir, (shared, clock)) = (tempfile::tempdir().unwrap(), shared());
    let store = store(dir.path(), &shared);
    let table = store.table("t", Rules::hashed::<u64, Vec<u8>>()).unwrap();
    for round in 0..3 {
        for key in (0..2000).filter(|key| round == 0 || key % 3 == round) {
            table.put(&key, &noise(key + round, 4000)).unwrap();
        }
        store.background_step_of(BackgroundJob::Log).unwrap();
    }
    store.flush().unwrap();
    flush_all(&store);
    shared.set_background_bytes_per_s(Some(BYTES_PER_S));
    let (bytes, seconds) = merge_all(&store, &shared, &clock);
    assert!(store.stats().background.reclaims > 0);
    assert!(bytes > 5 * BYTES_PER_S, "{bytes}");
    assert!(seconds < 1.2 * bytes as f64 / BYTES_PER_S as f64, "it waits no longer: {bytes}, {seconds} s");
}
