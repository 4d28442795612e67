//! The cost of expiry: processor time of writes, of gets and of merges, and space, of a table whose
//! values never expire, of one whose values last an hour, and of one whose values have all expired
//! when they are merged. `cargo run --release -p folddb --example expiry_cost`.

use std::time::Duration;

use folddb::{BackgroundWork, Durability, Expire, Options, Result, Rules, Store};

const KEYS: u64 = 200_000;
const WRITES: u64 = 1_000_000;

fn main() -> Result<()> {
    println!("values last    write ns  get ns  merge ms  records  bytes a record");
    measure("for ever", None)?;
    measure("an hour", Some(3_600_000))?;
    measure("a millisecond", Some(1))
}

fn measure(name: &str, last_ms: Option<u64>) -> Result<()> {
    let dir = std::env::temp_dir().join(format!(
        "folddb-expiry-cost-{}-{}",
        std::process::id(),
        last_ms.unwrap_or(0)
    ));
    let store = Store::create(&dir, Options::default().background(BackgroundWork::Manual))?;
    let rules = Rules::sorted::<u64, u64>();
    let table = store.table(
        "t",
        last_ms.map_or(rules.clone(), |ms| rules.expire(Expire::After(Duration::from_millis(ms)))),
    )?;
    let before = cpu();
    for n in 0..WRITES / 100 {
        let mut batch = store.batch();
        (0..100).for_each(|of| {
            batch.put(&table, &((n * 100 + of).wrapping_mul(0x9e37_79b9_7f4a_7c15) % KEYS), &n);
        });
        batch.commit(Durability::Buffered)?;
        while store.background_step()?.is_some() {}
    }
    store.flush()?;
    let written = cpu();
    for key in 0..KEYS {
        table.get(&key)?;
    }
    let got = cpu();
    std::thread::sleep(Duration::from_secs(3));
    store.bytes_table("t")?.compact()?;
    let merged = cpu();
    let of_table = store.bytes_table("t")?.stats()?;
    println!(
        "{name:13}  {:8.0}  {:6.0}  {:8.0}  {:7}  {:14.1}",
        (written - before) * 1e9 / WRITES as f64,
        (got - written) * 1e9 / KEYS as f64,
        (merged - got) * 1e3,
        of_table.records,
        of_table.disk_bytes as f64 / of_table.records.max(1) as f64,
    );
    drop((table, store));
    let _ = std::fs::remove_dir_all(&dir);
    Ok(())
}

/// Processor time of the process, in seconds.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}
