//! What a backup costs writers meanwhile: `cargo run -p folddb-sim --release --example
//! backup_cost`.
//!
//! Two threads write flat out, first alone, then while one backup follows the other, linked and
//! copied. It prints commits a second, the longest commit, and how long backups kept writers out.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use folddb::maintenance::BackupOptions;
use folddb::{Options, Result, Rules, Store, Table};
use folddb_sim::chance::Seeded;

const WRITERS: u64 = 2;
const ROUND: Duration = Duration::from_secs(4);

/// What writing was like.
#[derive(Default)]
struct Felt {
    commits: u64,
    longest: Duration,
    lasted: Duration,
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::create(dir.path().join("store"), Options::default())?;
    let table = store.table("t", Rules::sorted::<u64, Vec<u8>>())?;
    write_while(&table, 1, || std::thread::sleep(ROUND)); // so that there is something to back up
    let felt = write_while(&table, 2, || std::thread::sleep(ROUND));
    println!("alone            {}", told(&felt));
    for (name, copy) in [("while linking    ", false), ("while copying    ", true)] {
        backups(&store, &table, dir.path(), name, copy)?;
    }
    Ok(())
}

fn backups(store: &Store, table: &Table<u64, Vec<u8>>, dir: &Path, name: &str, copy: bool) -> Result<()> {
    let place = dir.join(if copy { "copies" } else { "links" });
    let how = BackupOptions::default().copy(copy).keep(Some(2));
    let mut reports = Vec::new();
    let felt = write_while(table, 3, || {
        let began = Instant::now();
        while began.elapsed() < ROUND {
            let started = Instant::now();
            reports.push((store.backup(&place, &how), started.elapsed()));
        }
    });
    println!("{name}{}", told(&felt));
    let (mut held, mut took) = (Duration::ZERO, Duration::ZERO);
    let (mut copied, mut shared) = (0, 0);
    let count = reports.len();
    for (report, elapsed) in reports {
        let report = report?;
        (held, took) = (held.max(report.writers_held), took.max(elapsed));
        copied += report.copied.bytes + report.log.bytes;
        shared += report.linked.bytes + report.reused.bytes;
    }
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "                 {count} backups, {:.0} MiB copied, {:.0} MiB linked or reused; the longest took {took:.1?}, and kept writers out for {held:.1?}",
        mib(copied),
        mib(shared)
    );
    Ok(())
}

/// Writes in threads of their own until `work` is done.
fn write_while(table: &Table<u64, Vec<u8>>, seed: u64, work: impl FnOnce()) -> Felt {
    let stop = AtomicBool::new(false);
    let (mut all, began) = (Felt::default(), Instant::now());
    std::thread::scope(|scope| {
        let stop = &stop;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || write_until(table, Seeded::new(seed * 10 + writer), stop)))
            .collect();
        work();
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            let felt = writer.join().expect("a writer").expect("it writes");
            all.commits += felt.commits;
            all.longest = all.longest.max(felt.longest);
        }
    });
    all.lasted = began.elapsed();
    all
}

fn write_until(table: &Table<u64, Vec<u8>>, mut chance: Seeded, stop: &AtomicBool) -> Result<Felt> {
    let (mut felt, value) = (Felt::default(), vec![7u8; 100]);
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        table.put(&chance.next_u64(), &value)?;
        felt.longest = felt.longest.max(began.elapsed());
        felt.commits += 1;
    }
    Ok(felt)
}

fn told(felt: &Felt) -> String {
    let rate = felt.commits as f64 / felt.lasted.as_secs_f64();
    format!("{rate:>9.0} commits/s, the longest took {:.1?}", felt.longest)
}
