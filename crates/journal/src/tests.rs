//! The journal against a disk in memory that fails on demand, and a little against the real one.

pub(crate) mod world;

mod appending;
mod examining;
mod following;
mod recovering;
mod searching;
#[cfg(folddb_schedules)]
mod schedules;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use folddb_base::{FileNumber, Lsn, NumberSource, Result, Seq};
use folddb_host::{AppendMode, Host};

use crate::{Handover, Journal, JournalOptions, JournalStart, LogEnd, ReplayFrom, Replayed, replay};

const STORE: u128 = 0x0123_4567;
const SEGMENT_BYTES: u64 = 8192; // 4096 for frames

fn dir() -> &'static Path {
    Path::new("store")
}

fn options(append_mode: AppendMode) -> JournalOptions {
    JournalOptions {
        segment_bytes: SEGMENT_BYTES,
        append_mode,
        buffer_bytes_max: 300,
        ..JournalOptions::default()
    }
}

fn numbers(first: u64) -> NumberSource {
    let next = AtomicU64::new(first);
    Arc::new(move || FileNumber(next.fetch_add(1, Ordering::Relaxed)))
}

fn start_at(
    host: &Host,
    dir: &Path,
    mode: AppendMode,
    first_lsn: Lsn,
    next_seq: Seq,
    number: u64,
) -> Journal {
    let start = JournalStart { store_id: STORE, first_lsn, next_seq };
    Journal::start(host, dir, start, options(mode), numbers(number)).unwrap()
}

fn start(host: &Host) -> Journal {
    start_at(host, dir(), AppendMode::Mapped, 0, 1, 1)
}

/// The payload of the batch that begins at a seq, different from all others.
fn payload(first_seq: Seq, len: usize) -> Vec<u8> {
    (0..len).map(|at| (first_seq as usize * 31 + at * 7 + 1) as u8).collect()
}

/// Appends batches of one record, from `seqs`, and returns the LSN after each.
fn append(journal: &mut Journal, seqs: std::ops::Range<Seq>, len: usize) -> Vec<Lsn> {
    seqs.map(|seq| journal.append(seq, 1, &payload(seq, len), Handover::Process).unwrap()).collect()
}

/// A replayed batch: LSN after it, first seq, count, payload.
type Batch = (Lsn, Seq, u32, Vec<u8>);

fn replay_from(
    host: &Host,
    dir: &Path,
    log_start_lsn: Lsn,
    durable_lsn: Lsn,
) -> (Vec<Batch>, Result<Replayed>) {
    let mut batches = Vec::new();
    let from = ReplayFrom { store_id: STORE, log_start_lsn, durable_lsn, is_open: false, end: LogEnd::Own };
    let outcome = replay(host, dir, &from, &mut |frame| {
        batches.push((frame.end_lsn, frame.first_seq, frame.count, frame.payload.to_vec()));
        Ok(())
    });
    (batches, outcome)
}

fn seqs(batches: &[Batch]) -> Vec<Seq> {
    batches.iter().map(|batch| batch.1).collect()
}
