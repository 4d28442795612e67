//! `elliptics`: blobs of about 4.4 KB under ids of 64 bytes, put once; then a cold opening, and
//! gets of random ones by several threads, with nothing of them in memory.

use std::time::Instant;

use anyhow::{Result, anyhow};
use folddb_bench::generate::Chance;
use folddb_bench::measure::{Latencies, per_second, round};
use serde_json::json;

use super::child::Child;
use super::files;
use super::objects::{Puts, Shelf, Versions};
use super::reads::Questions;
use crate::rival::{Meaning, Rival, Sight};

const ID_BYTES: usize = 64;
const BYTES: (usize, usize) = (4000, 4800);
/// Gets of all threads; no more than a third of the blobs, so that few are read twice.
const GETS_MAX: u64 = 100_000;

pub(super) fn run(child: &mut Child<'_>) -> Result<()> {
    let job = child.job;
    let shelf = Shelf::new(job.seed, ID_BYTES, BYTES.0, BYTES.1);
    child.open(Meaning::Objects)?;
    let mut puts = Puts::new(&shelf, job.rows);
    child.load(&mut puts)?;
    child.settle(puts.bytes)?;
    let versions = Versions::after(&shelf, job.rows, job.rows);
    child.put_space(versions.live_bytes())?;

    let open_ms = child.reopen_cold()?;
    let (gets, threads) = (GETS_MAX.min(job.rows / 3).max(1), job.threads.max(1));
    let (read_before, started) = (files::read_bytes(), Instant::now());
    let (latencies, right) = cold_gets(child.store()?, &versions, gets, threads, job.seed)?;
    let took = started.elapsed();
    let read_bytes = files::read_bytes().saturating_sub(read_before);
    child.judge(right);
    child.put(
        "cold_gets",
        json!({
            "open_ms": open_ms,
            "gets_per_s": per_second(gets, took),
            "gets": latencies.to_json(),
            "read_bytes_per_get": round(read_bytes as f64 / gets as f64, 0),
        }),
    );
    let found = versions.found(child.store()?)?;
    child.check(found, versions.sum());
    Ok(())
}

/// Gets of random blobs by this many threads. True when each answer was right.
fn cold_gets(
    store: &dyn Rival,
    versions: &Versions<'_>,
    gets: u64,
    threads: u64,
    seed: u64,
) -> Result<(Latencies, bool)> {
    std::thread::scope(|scope| {
        let reading: Vec<_> = (0..threads)
            .map(|thread| {
                let count = gets / threads + u64::from(thread < gets % threads);
                scope.spawn(move || get(store, versions, count, seed ^ (thread + 1) << 40))
            })
            .collect();
        let (mut all, mut right) = (Latencies::new(), true);
        for thread in reading {
            let (latencies, was_right) = thread.join().map_err(|_| anyhow!("a reader panicked"))??;
            all.absorb(&latencies);
            right &= was_right;
        }
        Ok((all, right))
    })
}

fn get(store: &dyn Rival, versions: &Versions<'_>, count: u64, seed: u64) -> Result<(Latencies, bool)> {
    let (mut reader, mut chance) = (store.reader(Sight::Still)?, Chance::new(seed));
    let (mut latencies, mut right) = (Latencies::new(), true);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for _ in 0..count {
        versions.hit(&mut chance, &mut key, &mut value);
        let mut is_right = false;
        let before = Instant::now();
        reader.get(&key, &mut |found| is_right = found == Some(value.as_slice()))?;
        latencies.note(before.elapsed());
        right &= is_right;
    }
    Ok((latencies, right))
}
