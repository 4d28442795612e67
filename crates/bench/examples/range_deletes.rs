//! What an endless sequence of range deletes costs: a loop deletes one range after another, of a
//! table that is also written to, while background threads work.
//!
//! ```text
//! cargo run --release -p folddb-bench --example range_deletes -- 1000000 [queue|here|apart] [rows]
//! ```
//!
//! `queue` deletes everything older than the newest thousand rows, `here` ten keys at random
//! places, `apart` disjoint ranges of rows that are not written again. It prints a line after each
//! twentieth of the work: range deletes per second, the longest of them, the cost of a get and of a
//! row of a scan at the same time, the range deletes and runs of the table, bytes on the disk and
//! resident memory. Two more lines follow at the end, and once background work has nothing to do.

use std::error::Error;
use std::time::{Duration, Instant};

use folddb::{Options, Rules, Store, Table};

/// Rows that the table begins with, and keys that are written to again.
const ROWS: u64 = 200_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count: u64 = arguments.first().map_or(Ok(1_000_000), |count| count.parse())?;
    let way = arguments.get(1).map_or("here", String::as_str).to_owned();
    let rows: u64 = arguments.get(2).map_or(Ok(ROWS), |rows| rows.parse())?;
    let dir = tempfile::tempdir()?;
    let store = Store::create(dir.path().join("s.folddb"), Options::default())?;
    let table = store.table("t", Rules::sorted::<u64, u64>())?;
    for key in 0..rows {
        table.put(&key, &key)?;
    }
    store.settle()?;
    println!("     done  deletes/s  longest ms  get us  row us  ranges   runs  disk KB   RSS KB");
    let (begun, mut since, mut longest) = (Instant::now(), Instant::now(), Duration::ZERO);
    let step = (count / 20).max(1);
    look(&store, &table, (0, 0.0, longest), rows)?;
    for n in 1..=count {
        let (from, to) = match way.as_str() {
            "queue" => (0, n.saturating_sub(1000)),
            "apart" => (n * 10, n * 10 + 5),
            _ => (n * 7919 % rows, n * 7919 % rows + 10),
        };
        let at = Instant::now();
        if from < to {
            table.delete_range(&from, &to)?;
        }
        longest = longest.max(at.elapsed());
        match way.as_str() {
            "queue" => _ = table.put(&n, &n)?,
            _ => _ = table.put(&(n * 31 % rows), &n)?,
        }
        if n % step == 0 {
            let rate = step as f64 / since.elapsed().as_secs_f64();
            look(&store, &table, (n, rate, longest), rows)?;
            (since, longest) = (Instant::now(), Duration::ZERO);
        }
    }
    println!("{count} in {:.1} s", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    store.settle()?;
    println!("settled in {:.1} s", begun.elapsed().as_secs_f64());
    look(&store, &table, (count, 0.0, Duration::ZERO), rows)
}

fn look(
    store: &Store,
    table: &Table<u64, u64>,
    (done, rate, longest): (u64, f64, Duration),
    rows: u64,
) -> Result<(), Box<dyn Error>> {
    const GETS: u64 = 2_000;
    let begun = Instant::now();
    for n in 0..GETS {
        table.get(&(n * 104_729 % rows))?;
    }
    let get_us = begun.elapsed().as_secs_f64() * 1e6 / GETS as f64;
    let begun = Instant::now();
    let mut seen = 0;
    for row in table.scan() {
        row?;
        seen += 1;
    }
    let row_us = begun.elapsed().as_secs_f64() * 1e6 / f64::from(seen.max(1));
    let (stats, all) = (store.bytes_table("t")?.stats()?, store.stats());
    println!(
        "{done:>9} {rate:>10.0} {:>11.1} {get_us:>7.2} {row_us:>7.2} {:>7} {:>6} {:>8} {:>8}",
        longest.as_secs_f64() * 1e3,
        stats.range_deletes,
        stats.runs.len(),
        all.disk.bytes / 1024,
        resident_kilobytes()?,
    );
    Ok(())
}

fn resident_kilobytes() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS")).ok_or("no VmRSS")?;
    Ok(line.split_whitespace().nth(1).ok_or("no figure")?.parse()?)
}
