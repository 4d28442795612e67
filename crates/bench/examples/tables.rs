//! What many tables cost: creating, opening, and one write with its flush beside them.
//!
//! ```text
//! cargo run --release -p folddb-bench --example tables -- 1 1000 100000
//! ```
//!
//! A line for each number: seconds to create and to open, milliseconds of a write and a flush beside them, before and after the
//! opening, bytes of memory for a table (resident, after opening), and bytes of the manifest for a table.

use std::error::Error;
use std::time::{Duration, Instant};

use folddb::{Options, Rules, Store};

fn main() -> Result<(), Box<dyn Error>> {
    let counts: Vec<usize> = std::env::args().skip(1).map(|count| count.parse()).collect::<Result<_, _>>()?;
    println!(
        "{:>8} {:>10} {:>10} {:>10} {:>10} {:>12} {:>12}",
        "tables", "create s", "open s", "flush ms", "again ms", "memory B", "manifest B"
    );
    counts.into_iter().try_for_each(measure)
}

fn measure(count: usize) -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("s.folddb");
    let store = Store::create(&path, Options::default())?;
    let started = Instant::now();
    for number in 0..count {
        store.table(&name(number), Rules::sorted::<u64, u64>())?;
    }
    let created = started.elapsed();
    let flushed = write_and_flush(&store, count / 2)?;
    store.close()?;
    let resident = resident_bytes()?;
    let started = Instant::now();
    let store = Store::open(&path, Options::default())?;
    let opened = started.elapsed();
    let memory = resident_bytes()?.saturating_sub(resident) / count as u64;
    let again = write_and_flush(&store, count / 3)?;
    let mut manifest = 0;
    for entry in std::fs::read_dir(&path)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("MANIFEST") {
            manifest += entry.metadata()?.len();
        }
    }
    println!(
        "{count:>8} {:>10.3} {:>10.3} {:>10.2} {:>10.2} {memory:>12} {:>12}",
        created.as_secs_f64(),
        opened.as_secs_f64(),
        flushed.as_secs_f64() * 1e3,
        again.as_secs_f64() * 1e3,
        manifest / count as u64,
    );
    Ok(())
}

fn name(number: usize) -> String {
    format!("table{number:06}")
}

/// The fastest of ten writes to one table, each with a flush.
fn write_and_flush(store: &Store, number: usize) -> Result<Duration, Box<dyn Error>> {
    let table = store.table(&name(number), Rules::sorted::<u64, u64>())?;
    let mut fastest = Duration::MAX;
    for key in 0..10 {
        let started = Instant::now();
        table.set(&key, &key)?;
        store.flush()?;
        fastest = fastest.min(started.elapsed());
    }
    Ok(fastest)
}

/// What the process has in memory.
fn resident_bytes() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS")).ok_or("no VmRSS")?;
    let kilobytes: u64 = line.split_whitespace().nth(1).ok_or("no figure")?.parse()?;
    Ok(kilobytes * 1024)
}
