//! The cost of change feeds: processor time of a write with no feed, one and four that nobody
//! reads, and how fast one is read, its rows and its batches. `cargo run --release -p folddb
//! --example feed_cost`.

use std::time::{Duration, Instant};

use folddb::{Durability, FeedEvent, FeedOptions, Options, Result, Rules, Store};

const ROWS: u64 = 500_000;
const PER_BATCH: u64 = 10;

fn main() -> Result<()> {
    println!("feeds  ns a write  rows/s read  batches/s read  ops/s read  bytes held");
    [0, 1, 4].into_iter().try_for_each(measure)
}

fn measure(feeds: usize) -> Result<()> {
    let dir = std::env::temp_dir().join(format!("folddb-feed-cost-{}-{feeds}", std::process::id()));
    let store = Store::create(&dir, Options::default())?;
    let table = store.table("t", Rules::sorted::<u64, u64>().fold("sum:u64"))?;
    let write = |store: &Store| -> Result<()> {
        let mut batch = store.batch();
        for row in 0..ROWS {
            batch.fold(&table, &(row.wrapping_mul(0x9e37_79b9_7f4a_7c15) % ROWS), &1);
            if row % PER_BATCH == PER_BATCH - 1 {
                batch.commit(Durability::Process)?;
            }
        }
        Ok(())
    };
    write(&store)?;
    store.sync()?;
    let mut rows_per_s = 0.0;
    for number in 0..feeds {
        let mut feed = store.feed(&format!("f{number}"), FeedOptions::default())?;
        let (started, mut rows) = (Instant::now(), 0);
        while let Some(event) = feed.next(Duration::ZERO)? {
            rows += u64::from(matches!(event, FeedEvent::Row(_)));
            if event == FeedEvent::RowsEnd {
                break;
            }
        }
        rows_per_s = rows as f64 / started.elapsed().as_secs_f64();
        feed.acknowledge(feed.position())?;
    }
    let before = cpu_s();
    write(&store)?;
    let cost_ns = (cpu_s() - before) * 1e9 / ROWS as f64;
    store.sync()?;
    let held_bytes: u64 = store.feeds().iter().map(|feed| feed.held_bytes).max().unwrap_or(0);
    let (mut batches, mut ops, started) = (0u64, 0u64, Instant::now());
    if feeds > 0 {
        let mut feed = store.feed("f0", FeedOptions::default())?;
        while ops < ROWS {
            let Some(event) = feed.next(Duration::from_secs(5))? else { break };
            if let FeedEvent::Batch(batch) = event {
                batches += 1;
                ops += batch.ops.len() as u64;
            }
        }
        feed.acknowledge(feed.position())?;
    }
    let took = started.elapsed().as_secs_f64();
    println!(
        "{feeds:5}  {cost_ns:10.0}  {rows_per_s:11.0}  {:14.0}  {:10.0}  {held_bytes:10}",
        batches as f64 / took,
        ops as f64 / took
    );
    drop((table, store));
    let _ = std::fs::remove_dir_all(&dir);
    Ok(())
}

/// Processor time of the process, in seconds.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}
