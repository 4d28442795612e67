//! Reading while writing: one writer with a source of its own, and one reader that gets existing
//! keys; each as fast as it can, or at a given rate. Of two stores the one with the faster reader
//! leaves its writer less of the machine: writers are compared at one rate of gets, and latencies
//! of gets at one rate of writes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use folddb_bench::generate::Chance;
use folddb_bench::measure::{Latencies, per_second};
use serde_json::json;

use super::load::{Source, write};
use super::pace::Pace;
use super::reads::{Found, Questions};
use crate::rival::{Reader, Rival, Sight};

/// How long it takes. It also ends when as many rows were written as were loaded: small runs stay
/// small. The bench of FoldDB alone (`crates/bench/src/reading.rs`) and the program in `go/` do the
/// same.
const SECONDS: Duration = Duration::from_secs(5);

/// What bounds the writes.
pub(super) struct Beside {
    pub(super) batch: u64,
    pub(super) loaded_rows: u64,
    pub(super) seed: u64,
    /// As fast as it can if none.
    pub(super) writes_per_s: Option<u64>,
    pub(super) gets_per_s: Option<u64>,
}

/// Writes and reads for some seconds, or until as many rows are written as were loaded.
pub(super) fn read_while_writing(
    rival: &dyn Rival,
    source: &mut (dyn Source + Send),
    questions: &dyn Questions,
    how: &Beside,
) -> Result<Found> {
    let stop = AtomicBool::new(false);
    let (written, read) = std::thread::scope(|scope| {
        let reading = scope.spawn(|| -> Result<(Latencies, bool)> {
            let mut reader = rival.reader(Sight::Fresh)?;
            get_until(&mut *reader, questions, how, &stop)
        });
        let written = write_for_a_while(rival, source, how);
        stop.store(true, Ordering::Relaxed);
        (written, reading.join())
    });
    let (rows, took) = written?;
    let (gets, right) = read.map_err(|_| anyhow!("the reader panicked"))??;
    let figures = json!({ "writes_per_s": per_second(rows, took), "gets": gets.to_json() });
    Ok(Found { figures, right })
}

fn write_for_a_while(
    rival: &dyn Rival,
    source: &mut (dyn Source + Send),
    how: &Beside,
) -> Result<(u64, Duration)> {
    let mut writer = rival.writer()?;
    let (started, mut rows) = (Instant::now(), 0);
    let batch = how.batch.max(1);
    let mut pace = Pace::of(how.writes_per_s);
    while rows < how.loaded_rows && started.elapsed() < SECONDS {
        write(&mut *writer, source, batch, batch)?;
        rows += batch;
        pace.done(batch);
    }
    Ok((rows, started.elapsed()))
}

fn get_until(
    reader: &mut dyn Reader,
    questions: &dyn Questions,
    how: &Beside,
    stop: &AtomicBool,
) -> Result<(Latencies, bool)> {
    let mut chance = Chance::new(how.seed ^ 0x6265_7369_6465);
    let (mut gets, mut right) = (Latencies::new(), true);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let mut pace = Pace::of(how.gets_per_s);
    while !stop.load(Ordering::Relaxed) {
        questions.hit(&mut chance, &mut key, &mut value);
        let mut is_right = false;
        let before = Instant::now();
        let take = &mut |found: Option<&[u8]>| {
            is_right = found.is_some_and(|found| questions.may_become(&value, found));
        };
        reader.get(&key, take)?;
        gets.note(before.elapsed());
        right &= is_right;
        pace.done(1);
    }
    Ok((gets, right))
}
