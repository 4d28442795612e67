//! `commit`: values of a hundred bytes, every commit synced, by one thread and by eight, which
//! share syncs.

use std::time::{Duration, Instant};

use folddb::{Durability, Error, Result, Rules, Table};
use serde_json::{Value, json};

use crate::check::RowSum;
use crate::generate::mix;
use crate::measure::{Latencies, per_second, round};
use crate::options::{BenchOptions, Progress};
use crate::report::Report;
use crate::workplace::Workplace;

/// Commits of all threads together, at scale 1.
const COMMITS: f64 = 100e3;
const THREADS: [u64; 2] = [1, 8];
const VALUE_BYTES: usize = 100;
const MEMORY_BYTES: usize = 64 << 20;

/// Runs the bench.
pub(crate) fn run(options: &BenchOptions, progress: &mut dyn FnMut(Progress)) -> Result<Report> {
    let options = BenchOptions { durability: Durability::Sync, batch: None, ..options.clone() };
    let commits = options.scaled(COMMITS);
    let mut report = Report::new("commit");
    report.put("commits", commits);
    Workplace::put_setting(&mut report, &options, MEMORY_BYTES, 1);
    let work = Workplace::create("commit", &options, MEMORY_BYTES)?;
    let mut right = true;
    for threads in THREADS {
        progress(Progress { phase: "committing", done: 0, total: commits });
        let table = work.store.table(&format!("by-{threads}"), Rules::sorted::<u64, Vec<u8>>())?;
        let table = table.with_durability(Durability::Sync);
        let each = commits / threads;
        report.put(&format!("threads_{threads}"), by_threads(&table, threads, each, options.seed)?);
        right &= is_right(&table, threads * each, options.seed)?;
    }
    work.put_written(&mut report, THREADS.iter().map(|n| commits / n * n).sum::<u64>() * 108);
    work.put_process(&mut report);
    report.verify(right);
    work.close(&mut report)?;
    Ok(report)
}

/// `each` commits by each of some threads at once.
fn by_threads(table: &Table<u64, Vec<u8>>, threads: u64, each: u64, seed: u64) -> Result<Value> {
    let started = Instant::now();
    let waits: Vec<Result<Vec<Duration>>> = std::thread::scope(|scope| {
        let write = |thread: u64| move || commit_all(table, thread * each..(thread + 1) * each, seed);
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(write(thread))).collect();
        let panicked = |_| Err(Error::invalid("a writer of the bench panicked"));
        running.into_iter().map(|writer| writer.join().unwrap_or_else(panicked)).collect()
    });
    let took = started.elapsed();
    let mut latencies = Latencies::new();
    for of_thread in waits {
        of_thread?.into_iter().for_each(|wait| latencies.note(wait));
    }
    Ok(json!({
        "seconds": round(took.as_secs_f64(), 3),
        "commits_per_s": per_second(threads * each, took),
        "latencies": latencies.to_json(),
    }))
}

fn commit_all(
    table: &Table<u64, Vec<u8>>,
    numbers: std::ops::Range<u64>,
    seed: u64,
) -> Result<Vec<Duration>> {
    numbers
        .map(|number| {
            let (key, value) = row(number, seed);
            let before = Instant::now();
            table.put(&key, &value)?;
            Ok(before.elapsed())
        })
        .collect()
}

/// The row of a number: its hundred bytes follow from the number.
fn row(number: u64, seed: u64) -> (u64, [u8; VALUE_BYTES]) {
    let key = mix(number ^ mix(seed));
    (key, std::array::from_fn(|at| mix(key.wrapping_add(at as u64)) as u8))
}

/// A value as a number, for sums.
fn digest(value: &[u8]) -> u64 {
    value.iter().fold(value.len() as u64, |sum, byte| mix(sum ^ u64::from(*byte)))
}

fn is_right(table: &Table<u64, Vec<u8>>, rows: u64, seed: u64) -> Result<bool> {
    let (mut found, mut expected) = (RowSum::default(), RowSum::default());
    for row in table.scan() {
        let (key, value) = row?;
        found.add(key, digest(&value));
    }
    for number in 0..rows {
        let (key, value) = row(number, seed);
        expected.add(key, digest(&value));
    }
    Ok(found == expected)
}
