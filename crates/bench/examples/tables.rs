//! What many tables cost: creating and opening them, and flushes and merges of one table next to
//! them.
//!
//! ```text
//! cargo run --release -p folddb-bench --example tables -- 1 1000 100000
//! ```
//!
//! It prints a line for each number of tables: seconds to create and to open them, and the CPU
//! seconds of that; CPU microseconds of the whole process for a write with its flush, and for the
//! merges of 64 of these, before the store is opened again and after; bytes of memory for a table
//! (resident, after opening), and of the manifest. Creating syncs an edit for each table: in a
//! directory in memory (`TMPDIR=/dev/shm`) the seconds are those of the store alone.

use std::error::Error;
use std::time::{Duration, Instant};

use folddb::{BackgroundWork, Options, Rules, Store, Table};

fn main() -> Result<(), Box<dyn Error>> {
    let counts: Vec<usize> = std::env::args().skip(1).map(|count| count.parse()).collect::<Result<_, _>>()?;
    println!(
        "{:>8} {:>9} {:>7} {:>7} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10}",
        "tables",
        "create s",
        "CPU s",
        "open s",
        "CPU s",
        "flush us",
        "merge us",
        "flush us",
        "merge us",
        "memory B",
        "manifest B"
    );
    counts.into_iter().try_for_each(measure)
}

/// This thread does all the work, so that nothing else is counted.
fn options() -> Options {
    Options::default().background(BackgroundWork::Manual)
}

fn measure(count: usize) -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("s.folddb");
    let store = Store::create(&path, options())?;
    let (started, cpu) = (Instant::now(), cpu_time()?);
    for number in 0..count {
        store.table(&name(number), Rules::sorted::<u64, u64>())?;
    }
    let (created, created_cpu) = (started.elapsed(), cpu_time()? - cpu);
    let before = flush_and_merge(&store, count / 2)?;
    store.close()?;
    let resident = resident_bytes()?;
    let (started, cpu) = (Instant::now(), cpu_time()?);
    let store = Store::open(&path, options())?;
    let (opened, opened_cpu) = (started.elapsed(), cpu_time()? - cpu);
    let memory = resident_bytes()?.saturating_sub(resident) / count as u64;
    let after = flush_and_merge(&store, count / 3)?;
    let mut manifest = 0;
    for entry in std::fs::read_dir(&path)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("MANIFEST") {
            manifest += entry.metadata()?.len();
        }
    }
    let us = |time: Duration| time.as_micros();
    println!(
        "{count:>8} {:>9.3} {:>7.2} {:>7.3} {:>7.2} {:>9} {:>9} {:>9} {:>9} {memory:>9} {:>10}",
        created.as_secs_f64(),
        created_cpu.as_secs_f64(),
        opened.as_secs_f64(),
        opened_cpu.as_secs_f64(),
        us(before.0),
        us(before.1),
        us(after.0),
        us(after.1),
        manifest / count as u64,
    );
    Ok(())
}

fn name(number: usize) -> String {
    format!("table{number:06}")
}

/// Writes to one table, of separated values and of others, each with a flush, and then the merges
/// that are due: returns the average time of a flush, and the time of all merges together.
fn flush_and_merge(store: &Store, number: usize) -> Result<(Duration, Duration), Box<dyn Error>> {
    const WRITES: u32 = 64;
    let table: Table<u64, u64> = store.table(&name(number), Rules::sorted())?;
    let separated = store.table("separated", Rules::sorted::<u64, Vec<u8>>().separate(100))?;
    store.settle()?; // what was made or opened is looked at once
    let (mut flushes, mut merges) = (Duration::ZERO, Duration::ZERO);
    for key in 0..u64::from(WRITES) {
        table.put(&key, &key)?;
        separated.put(&(key % 3), &vec![key as u8; 1000])?;
        let begun = cpu_time()?;
        store.flush()?;
        let flushed = cpu_time()?;
        while store.background_step()?.is_some() {}
        flushes += flushed - begun;
        merges += cpu_time()? - flushed;
    }
    Ok((flushes / WRITES, merges))
}

/// CPU time of all live threads of this process.
fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    let mut nanos = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let said = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        nanos += said.split_whitespace().next().ok_or("no figure")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanos))
}

/// The resident memory of the process.
fn resident_bytes() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS")).ok_or("no VmRSS")?;
    let kilobytes: u64 = line.split_whitespace().nth(1).ok_or("no figure")?.parse()?;
    Ok(kilobytes * 1024)
}
