//! The cost of lists that grow by appends: how much merges write for each byte, and how long gets
//! take. For comparing two builds in turns.
//!
//! ```text
//! cargo run --release -p folddb-bench --example appends -- [rows [keys [bytes]]]
//! ```
//!
//! One thread appends `bytes` (24) to random keys out of `keys` (a fiftieth of the rows), `rows`
//! (5,000,000) times in all, in batches of 1,000, with 64 MB of memory. Then random lists are read,
//! a hundredth of the number of rows. They are read twice, with the merges that are due in between.

use std::time::Instant;

use folddb::{Durability, Options, Result, Rules, Store, Table};
use folddb_bench::generate::Chance;
use folddb_bench::measure::Latencies;

const BATCH: u64 = 1000;
const MEMORY_BYTES: usize = 64 << 20;

fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<u64>().expect("a number"));
    let rows = numbers.next().unwrap_or(5_000_000);
    let keys = numbers.next().unwrap_or(rows / 50).max(1);
    let bytes = numbers.next().unwrap_or(24) as usize;
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::open_or_create(dir.path(), Options::default().memory_bytes(MEMORY_BYTES))?;
    let table = store.table("lists", Rules::sorted::<u64, Vec<u8>>().fold("append"))?;
    let (started, mut batch, mut random) = (Instant::now(), store.batch(), Chance::new(1));
    let value = vec![b'v'; bytes];
    for _ in 0..rows / BATCH {
        for _ in 0..BATCH {
            batch.fold(&table, &random.below(keys), &value);
        }
        batch.commit(Durability::Process)?;
    }
    store.settle()?;
    let written = rows * (8 + bytes as u64);
    let times = |store: &Store| store.stats().background.part_bytes as f64 / written as f64;
    println!(
        "settled {:.1} s, {:.2} bytes of parts for each",
        started.elapsed().as_secs_f64(),
        times(&store)
    );
    for _ in 0..2 {
        let read = read(&table, keys, rows / 100, &mut random)?;
        store.settle()?;
        println!("gets    {}", read.to_json());
        println!("        {:.2} bytes of parts for each", times(&store));
    }
    Ok(())
}

fn read(table: &Table<u64, Vec<u8>>, keys: u64, count: u64, random: &mut Chance) -> Result<Latencies> {
    let mut gets = Latencies::new();
    for _ in 0..count {
        let (key, started) = (random.below(keys), Instant::now());
        std::hint::black_box(table.get(&key)?);
        gets.note(started.elapsed());
    }
    Ok(gets)
}
