//! The cost of open snapshots: processor time of writes, of gets and of a merge, memory and space,
//! with none, one and a thousand of them: as boundaries, with pinned files, and ended. Each in a
//! process of its own, for its memory. `cargo run --release -p folddb --example snapshot_cost`.

use std::time::Duration;

use folddb::{BackgroundWork, Durability, Options, Result, Rules, Store};

const KEYS: u64 = 20_000;
const WRITES: u64 = 1_000_000;

/// Their name and number, and the ages in milliseconds at which they get pinned files and end.
const CASES: [(&str, u64, u64, u64); 6] = [
    ("none", 0, NEVER, NEVER),
    ("a boundary", 1, NEVER, NEVER),
    ("boundaries", 1000, NEVER, NEVER),
    ("files, after 200 ms", 1000, 200, NEVER),
    ("files, each at once", 1000, 0, NEVER),
    ("ended after 200 ms", 1000, NEVER, 200),
];

const NEVER: u64 = u64::MAX;

fn main() -> Result<()> {
    if let Some(case) = std::env::args().nth(1).and_then(|case| case.parse::<usize>().ok()) {
        return measure(CASES[case]);
    }
    println!(
        "snapshots              live  in files  write ns  get ns  merge ms  records  disk MB  kept MB  memory MB"
    );
    for case in 0..CASES.len() {
        let own = std::env::current_exe().map(std::process::Command::new);
        let _ = own.and_then(|mut own| own.arg(case.to_string()).status());
    }
    Ok(())
}

/// Writes with snapshots taken at even distances, then gets of the present, then one merge of all.
fn measure((name, count, files_after_ms, age_max_ms): (&str, u64, u64, u64)) -> Result<()> {
    let dir = std::env::temp_dir().join(format!("folddb-snapshot-cost-{}", std::process::id()));
    let age_max = (age_max_ms < NEVER).then(|| Duration::from_millis(age_max_ms));
    let options = Options::default().background(BackgroundWork::Manual).snapshot_age_max(age_max);
    let options = options.tuning(|t| t.snapshot_files_after(Duration::from_millis(files_after_ms)));
    let store = Store::create(&dir, options)?;
    let table = store.table("sums", Rules::sorted::<u64, u64>().fold("sum:u64"))?;
    let mut snapshots = Vec::new();
    let before = cpu();
    let mut batch = store.batch();
    for n in 0..WRITES {
        batch.fold(&table, &(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % KEYS), &1);
        if n % 100 == 99 {
            std::mem::replace(&mut batch, store.batch()).commit(Durability::Buffered)?;
            while store.background_step()?.is_some() {}
        }
        if count > 0 && n % (WRITES / count) == WRITES / count / 2 {
            snapshots.push(store.snapshot());
        }
    }
    store.flush()?;
    let written = cpu();
    for key in 0..KEYS {
        table.get(&key)?;
    }
    let got = cpu();
    store.bytes_table("sums")?.compact()?;
    let merged = cpu();
    let (stats, of_table) = (store.stats(), store.bytes_table("sums")?.stats()?);
    println!(
        "{name:21}  {:4}  {:8}  {:8.0}  {:6.0}  {:8.0}  {:7}  {:7.1}  {:7.1}  {:9.1}",
        stats.snapshots.live,
        stats.snapshots.in_files,
        (written - before) * 1e9 / WRITES as f64,
        (got - written) * 1e9 / KEYS as f64,
        (merged - got) * 1e3,
        of_table.records,
        of_table.disk_bytes as f64 / 1e6,
        stats.disk.snapshot_file_bytes as f64 / 1e6,
        resident_bytes() as f64 / 1e6,
    );
    drop((snapshots, table));
    store.close()?;
    std::fs::remove_dir_all(&dir).ok();
    Ok(())
}

/// Processor time of this process, in seconds; the system counts in hundredths.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}
