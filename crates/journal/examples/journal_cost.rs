//! Prints what the journal costs: `cargo run --release -p folddb-journal --example journal_cost
//! [dir]`.
//!
//! Batches of one and of a hundred 20-byte records, with background work every 5 ms as in a store,
//! then synced commits by one and by eight threads, then replay.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use folddb_base::{Error, FileNumber, Lsn, Result};
use folddb_host::{AppendMode, Host};
use folddb_journal::{Handover, Journal, JournalOptions, JournalStart, LogEnd, ReplayFrom, replay};
use parking_lot::Mutex;

const RECORD_BYTES: usize = 20;

fn main() -> Result<()> {
    let parent = std::env::args().nth(1).map_or_else(std::env::temp_dir, Into::into);
    let dir = parent.join(format!("journal_cost-{}", std::process::id()));
    std::fs::create_dir(&dir).map_err(|error| Error::io("create", &dir, error))?;
    let outcome =
        [AppendMode::Mapped, AppendMode::Written].into_iter().try_for_each(|mode| measure(&dir, mode));
    let _ = std::fs::remove_dir_all(&dir);
    outcome
}

fn measure(dir: &Path, mode: AppendMode) -> Result<()> {
    for (handover, records) in [(Handover::Process, 1), (Handover::Process, 100), (Handover::Buffered, 1)] {
        appends(dir, mode, handover, records)?;
    }
    for threads in [1, 8] {
        commits(dir, mode, threads)?;
    }
    Ok(())
}

/// Runs `work` with a journal of its own and a background thread, then prints what replay costs.
fn with_journal(dir: &Path, mode: AppendMode, work: impl FnOnce(&mut Journal) -> Result<()>) -> Result<()> {
    let host = Host::real();
    let next = AtomicU64::new(1);
    let numbers = Arc::new(move || FileNumber(next.fetch_add(1, Ordering::Relaxed)));
    let options = JournalOptions { append_mode: mode, ..JournalOptions::default() };
    let start = JournalStart { store_id: 1, first_lsn: 0, next_seq: 1 };
    let mut journal = Journal::start(&host, dir, start, options, numbers)?;
    let syncer = journal.syncer();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let _ = syncer.background(host.clock.monotonic());
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let outcome = work(&mut journal);
        done.store(true, Ordering::Relaxed);
        outcome
    })?;
    let end = journal.end_lsn();
    drop(journal);
    replayed(&host, dir, end)
}

fn replayed(host: &Host, dir: &Path, end: Lsn) -> Result<()> {
    let started = Instant::now();
    let from = ReplayFrom { store_id: 1, log_start_lsn: 0, durable_lsn: 0, is_open: false, end: LogEnd::Own };
    let found = replay(host, dir, &from, &mut |_| Ok(()))?;
    let took = started.elapsed();
    let each = took.as_nanos() as f64 / found.batches.max(1) as f64;
    println!("    replay of {:3} MB: {took:?}, {each:.0} ns a batch", end >> 20);
    for number in found.segments {
        let _ = std::fs::remove_file(dir.join(format!("{:06}.log", number.0)));
    }
    Ok(())
}

fn appends(dir: &Path, mode: AppendMode, handover: Handover, records: u32) -> Result<()> {
    let payload = vec![7u8; RECORD_BYTES * records as usize];
    let batches = (200 << 20) / (payload.len() as u64 + 27);
    with_journal(dir, mode, |journal| {
        let (mut seq, mut worst) = (1, Duration::ZERO);
        let cpu_before = cpu_ns();
        let started = Instant::now();
        let mut before = Duration::ZERO;
        for index in 0..batches {
            journal.append(seq, records, &payload, handover)?;
            seq += u64::from(records);
            if index % 16 == 0 {
                let now = started.elapsed();
                worst = worst.max(now - before);
                before = now;
            }
        }
        let each = started.elapsed().as_nanos() as f64 / batches as f64;
        let cpu = cpu_ns().saturating_sub(cpu_before) / batches;
        println!(
            "  {mode:?}, {handover:?}, {records} a batch: {each:.0} ns ({cpu} on a CPU), worst 16: {worst:?}"
        );
        Ok(())
    })
}

/// Nanoseconds that this thread has been on a processor, as Linux reports it; 0 on other systems.
fn cpu_ns() -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

fn commits(dir: &Path, mode: AppendMode, threads: usize) -> Result<()> {
    with_journal(dir, mode, |journal| {
        let syncer = journal.syncer();
        let appender = Mutex::new((journal, 1u64));
        let started = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while started.elapsed() < Duration::from_secs(1) {
                        let lsn = {
                            let (journal, next_seq) = &mut *appender.lock();
                            *next_seq += 1;
                            journal.append(*next_seq - 1, 1, &[7; 100], Handover::Process)
                        };
                        if lsn.and_then(|lsn| syncer.sync_to(lsn)).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        let rate = appender.lock().1 as f64 / started.elapsed().as_secs_f64();
        println!("  {mode:?}, synced, {threads} threads: {rate:.0} commits/s");
        Ok(())
    })
}
