//! Prints what an append to a segment of the log costs: `cargo run --release -p folddb-host
//! --example append_cost [dir]`.
//!
//! Appends 40 bytes at a time to fresh 64 MiB segments, mapped and written, with and without a
//! thread that prepares windows ahead; then commits of 100 bytes, each synced.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use folddb_host::real::RealFiles;
use folddb_host::{AppendFile, AppendMode, Files};

const SEGMENT_BYTES: u64 = 64 << 20;

fn main() -> io::Result<()> {
    let dir = std::env::args().nth(1).map_or_else(std::env::temp_dir, Into::into);
    let path = dir.join(format!("append_cost-{}.log", std::process::id()));
    for round in 1..=3 {
        println!("round {round}");
        for (name, mode, prepared) in [
            ("written", AppendMode::Written, false),
            ("mapped", AppendMode::Mapped, false),
            ("mapped, prepared", AppendMode::Mapped, true),
        ] {
            appends(&path, name, mode, prepared)?;
        }
        for (name, mode) in [("written", AppendMode::Written), ("mapped", AppendMode::Mapped)] {
            commits(&path, name, mode)?;
        }
    }
    Ok(())
}

/// Fills a segment and prints the mean and the worst append.
fn appends(path: &Path, name: &str, mode: AppendMode, prepared: bool) -> io::Result<()> {
    let files = RealFiles::default();
    let mut file = files.create_append(path, SEGMENT_BYTES, mode)?;
    let done = AtomicBool::new(false);
    let syncer = file.syncer();
    if prepared {
        syncer.prepare()?;
    }
    std::thread::scope(|scope| {
        if prepared {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let _ = syncer.prepare();
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
        }
        let outcome = fill(name, file.as_mut());
        done.store(true, Ordering::Relaxed);
        outcome
    })?;
    files.remove(path)
}

fn fill(name: &str, file: &mut dyn AppendFile) -> io::Result<()> {
    let record = [7u8; 40];
    let count = SEGMENT_BYTES / 40;
    let started = Instant::now();
    let (mut worst, mut before) = (Duration::ZERO, Duration::ZERO);
    for index in 0..count {
        file.append(&record)?;
        if index % 16 == 0 {
            let now = started.elapsed(); // reading the clock takes longer than an append
            worst = worst.max(now - before);
            before = now;
        }
    }
    let each = started.elapsed().as_nanos() as f64 / count as f64;
    println!("  append 40 B, {name:18} {each:8.1} ns each, worst 16: {worst:?}");
    Ok(())
}

/// Commits of 100 bytes, each synced, for a second.
fn commits(path: &Path, name: &str, mode: AppendMode) -> io::Result<()> {
    let files = RealFiles::default();
    let mut file = files.create_append(path, SEGMENT_BYTES, mode)?;
    let syncer = Arc::clone(&file.syncer());
    let record = [7u8; 100];
    let started = Instant::now();
    let mut count = 0u64;
    while started.elapsed() < Duration::from_secs(1) {
        file.append(&record)?;
        syncer.sync()?;
        count += 1;
    }
    let rate = count as f64 / started.elapsed().as_secs_f64();
    println!("  commit 100 B, synced, {name:9} {rate:8.0} commits/s");
    files.remove(path)
}
