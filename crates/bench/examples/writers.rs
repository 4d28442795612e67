//! What writers who share one table cost each other: one thread, and then more, at full rate.
//!
//! ```text
//! cargo run --release -p folddb-bench --example writers -- [rounds [rows [batch [threads]]]]
//! ```
//!
//! In each of the `rounds` (5), a store of its own gets `rows` (2,000,000) sums on keys by Zipf's
//! law, of as many keys, in commits of `batch` (1): first from one thread, then from two, and so on
//! up to `threads` (2). The sum of all values is then compared with what was written. Printed are
//! medians: rows a second, their ratio to one thread, and the processor time of the process for
//! each row, background work included.

use std::time::Instant;

use folddb::{Durability, Options, Result, Rules, Store, Table};
use folddb_bench::generate::{UserKey, ZipfWrites};
use folddb_bench::process;

const MEMORY_BYTES: usize = 64 << 20;

struct Plan {
    rows: u64,
    batch: u64,
}

/// What one run took.
#[derive(Clone, Copy)]
struct Run {
    rows_per_s: f64,
    cpu_ns_per_row: f64,
}

fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<u64>().expect("a number"));
    let mut next = |usual| numbers.next().unwrap_or(usual).max(1);
    let (rounds, plan) = (next(5), Plan { rows: next(2_000_000), batch: next(1) });
    let threads = next(2);
    let mut runs = vec![Vec::new(); threads as usize];
    for round in 0..rounds {
        for (count, runs) in (1..).zip(&mut runs) {
            runs.push(run(&plan, count, round)?);
        }
    }
    println!("threads  rows/s      of one  CPU ns a row");
    let of_one = median(&runs[0], |run| run.rows_per_s);
    for (count, runs) in (1..).zip(&runs) {
        let rate = median(runs, |run| run.rows_per_s);
        let cpu_ns = median(runs, |run| run.cpu_ns_per_row);
        println!("{count:>7}  {rate:<10.0}  {:<6.2}  {cpu_ns:.1}", rate / of_one);
    }
    Ok(())
}

fn median(runs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(of).collect();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn run(plan: &Plan, threads: u64, round: u64) -> Result<Run> {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::open_or_create(dir.path(), Options::default().memory_bytes(MEMORY_BYTES))?;
    let table = store.table("visits", Rules::sorted::<String, u64>().fold("sum:u64"))?;
    let (started, cpu) = (Instant::now(), process::cpu_seconds());
    let written = std::thread::scope(|scope| {
        let writers = (0..threads).map(|number| {
            let (store, table) = (&store, &table);
            let rows = plan.rows / threads + u64::from(number < plan.rows % threads);
            scope.spawn(move || write(store, table, (rows, plan), round << 8 | number))
        });
        let writers: Vec<_> = writers.collect();
        writers.into_iter().map(|writer| writer.join().expect("a writer lives")).sum::<Result<u64>>()
    })?;
    let took = started.elapsed();
    let cpu_s = process::cpu_seconds().zip(cpu).map_or(0.0, |(now, before)| now - before);
    let mut sum = 0u64;
    for row in table.scan() {
        sum += row?.1;
    }
    assert_eq!(sum, written, "the sum of all values is that of all operands");
    Ok(Run {
        rows_per_s: plan.rows as f64 / took.as_secs_f64(),
        cpu_ns_per_row: cpu_s * 1e9 / plan.rows as f64,
    })
}

/// Writes so many rows. Returns the sum of their operands.
fn write(store: &Store, table: &Table<String, u64>, (rows, plan): (u64, &Plan), seed: u64) -> Result<u64> {
    let (mut source, mut batch, mut sum) = (ZipfWrites::new(seed, plan.rows), store.batch(), 0);
    for done in 1..=rows {
        let (key, operand) = (UserKey::new(source.next_key()), source.next_operand());
        sum += operand;
        if plan.batch == 1 {
            table.fold(key.text(), &operand)?;
            continue;
        }
        batch.fold(table, key.text(), &operand);
        if done % plan.batch == 0 || done == rows {
            batch.commit(Durability::Process)?;
        }
    }
    Ok(sum)
}
