//! The cost of scans of prefixes over several runs: of prefixes that no run has, and that one has.
//!
//! `cargo run --release -p folddb-bench --example prefix_cost -- DIRECTORY USERS MEMORY_BYTES`
//!
//! The first call writes the store: eight runs, each with every sixteenth user, ten rows each.
//! Later calls only read, so that two builds can be compared on files of their own. Prints how long
//! the files of the runs are, the median and the 99th percentile of a scan, and the pieces that it
//! read from files; all of it twice, since the first round fills the cache.

use std::path::{Path, PathBuf};
use std::time::Instant;

use folddb::{BackgroundWork, Options, Result, Rules, Store, Table};

const RUNS: u64 = 8;
const ROWS: u64 = 10;
const CALLS: u64 = 100_000;

type Visits = Table<(String, u64), u64>;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().unwrap_or_else(|| "prefix_cost.folddb".to_owned()));
    let users: u64 = args.next().and_then(|users| users.parse().ok()).unwrap_or(400_000);
    let memory: usize = args.next().and_then(|bytes| bytes.parse().ok()).unwrap_or(256 << 20);
    let options = || Options::default().memory_bytes(memory).background(BackgroundWork::Manual);
    if !dir.exists() {
        write(&dir, users, options())?;
    }
    let store = Store::open(&dir, options())?;
    let visits = store.table("visits", Rules::sorted())?;
    let stats = store.bytes_table("visits")?.stats()?;
    println!("{} rows in {} runs, {} bytes", stats.records, stats.runs.len(), stats.disk_bytes);
    for _ in 0..2 {
        measure(&store, &visits, "absent", users, |n| n % (2 * RUNS) >= RUNS)?;
        measure(&store, &visits, "present", users, |n| n % (2 * RUNS) < RUNS)?;
    }
    store.close()
}

fn user(n: u64) -> String {
    format!("user{n:07}")
}

fn write(dir: &Path, users: u64, options: Options) -> Result<()> {
    let store = Store::create(dir, options)?;
    let visits: Visits = store.table("visits", Rules::sorted())?;
    let began = Instant::now();
    for run in 0..RUNS {
        let mut batch = store.batch();
        for n in (run..users).step_by(2 * RUNS as usize) {
            for time in 0..ROWS {
                batch.put(&visits, &(user(n), mix(time)), &n);
            }
            if batch.len() >= 1000 {
                batch.commit(folddb::Durability::Process)?;
            }
        }
        batch.commit(folddb::Durability::Process)?;
        store.flush()?;
    }
    println!("written in {:.2} s", began.elapsed().as_secs_f64());
    store.close()
}

fn measure(
    store: &Store,
    visits: &Visits,
    what: &str,
    users: u64,
    is_asked: impl Fn(u64) -> bool,
) -> Result<()> {
    let (mut chance, mut rows, mut took_ns) = (1, 0, Vec::new());
    let pieces = store.stats().reads.pieces;
    while took_ns.len() < CALLS as usize {
        chance = mix(chance);
        let n = chance % users;
        if !is_asked(n) {
            continue;
        }
        let user = user(n);
        let began = Instant::now();
        rows += visits.scan().prefix(&(user,)).count()?;
        took_ns.push(began.elapsed().as_nanos() as u64);
    }
    took_ns.sort_unstable();
    let at = |share: usize| took_ns[took_ns.len() * share / 100] as f64 / 1e3;
    let pieces = (store.stats().reads.pieces - pieces) as f64 / CALLS as f64;
    println!("{what:8} {rows:8} rows, p50 {:7.2} µs, p99 {:7.2} µs, {pieces:.3} pieces read", at(50), at(99));
    Ok(())
}

/// A pseudo-random number (the finisher of SplitMix64).
fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}
