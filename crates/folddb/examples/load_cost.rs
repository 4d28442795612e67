//! The costs of ways of loading, and the costs and benefits of block summaries: processor time of
//! single writes, of batches and of a bulk load of the same rows in order, until all is in one run;
//! and of sums and counts of ranges with summaries and without. `cargo run --release -p folddb
//! --example load_cost`.

use std::path::PathBuf;
use std::time::Instant;

use folddb::{Durability, Options, Result, Rules, Store, Table};

const ROWS: u64 = 2_000_000;
const RANGES: u64 = 200;

fn main() -> Result<()> {
    println!("{ROWS} rows of two numbers, in the order of the keys");
    println!("way                    ns a row  wall s  bytes written for each");
    for way in [Way::Single, Way::Batches, Way::Bulk, Way::BulkWithSummaries] {
        load(way)?;
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Single,
    Batches,
    Bulk,
    BulkWithSummaries,
}

fn load(way: Way) -> Result<()> {
    let dir = place(way);
    let store = Store::create(&dir, Options::default())?;
    let rules = Rules::sorted::<u64, u64>().fold("sum:u64").summaries(way == Way::BulkWithSummaries);
    let (before, started, written) = (cpu_s(), Instant::now(), written_bytes());
    let table = match way {
        Way::Single | Way::Batches => {
            let table = store.table("t", rules)?;
            let mut batch = store.batch();
            for row in 0..ROWS {
                if way == Way::Single {
                    table.put(&row, &(row / 7))?;
                    continue;
                }
                batch.put(&table, &row, &(row / 7));
                if row % 1000 == 999 {
                    batch.commit(Durability::Process)?;
                }
            }
            batch.commit(Durability::Process)?;
            store.bytes_table("t")?.compact()?;
            table
        }
        Way::Bulk | Way::BulkWithSummaries => {
            let mut load = store.bulk_load("t", rules)?;
            for row in 0..ROWS {
                load.put(&row, &(row / 7))?;
            }
            load.finish()?
        }
    };
    store.sync()?;
    let payload = ROWS * 16;
    println!(
        "{:21}  {:8.0}  {:6.2}  {:22.2}",
        format!("{way:?}"),
        (cpu_s() - before) * 1e9 / ROWS as f64,
        started.elapsed().as_secs_f64(),
        (written_bytes() - written) as f64 / payload as f64
    );
    if matches!(way, Way::Bulk | Way::BulkWithSummaries) {
        ask(&table)?;
    }
    drop((table, store));
    let _ = std::fs::remove_dir_all(&dir);
    Ok(())
}

/// Sums and counts of ranges of a tenth of the rows.
fn ask(table: &Table<u64, u64>) -> Result<()> {
    let started = Instant::now();
    for range in 0..RANGES {
        let from = range * (ROWS - ROWS / 10) / RANGES;
        let to = from + ROWS / 10;
        let found = table.scan().from(&from).before(&to).aggregate()?;
        let sum = (from..to).map(|row| row / 7).sum::<u64>();
        assert_eq!((found.rows, found.value), (to - from, Some(sum)));
    }
    println!("    sum of a tenth of it: {:.3} ms", started.elapsed().as_secs_f64() * 1e3 / RANGES as f64);
    Ok(())
}

fn place(way: Way) -> PathBuf {
    std::env::temp_dir().join(format!("folddb-load-cost-{}-{way:?}", std::process::id()))
}

/// Processor time of the process, in seconds.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

/// The bytes that the process has caused to be written to the disk.
fn written_bytes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let of =
        |name: &str| io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0u64);
    of("write_bytes:").saturating_sub(of("cancelled_write_bytes:"))
}
