//! `elliptics`: blobs of some kilobytes under ids of 64 bytes, put once, in a hashed table or a
//! sorted one; then a cold opening and gets of random ones by eight threads.

use std::time::Instant;

use folddb::codec::KeyCodec;
use folddb::table_rules::{TableKind, TableRules};
use folddb::{BytesTable, Result, WriteOp};
use serde_json::{Value, json};

use crate::generate::{Chance, Objects, mix};
use crate::measure::{Latencies, Phase, per_second, round};
use crate::options::{BenchOptions, Progress};
use crate::process::read_bytes;
use crate::report::Report;
use crate::workplace::Workplace;

/// Blobs at scale 1.
const ROWS: f64 = 3e6;
const BYTES: (usize, usize) = (4000, 4800);
const TABLE: &str = "blobs";
const MEMORY_BYTES: usize = 64 << 20;
const THREADS: u64 = 8;
/// Gets of all threads; no more than a third of the blobs, so that few are read twice.
const GETS_MAX: u64 = 100_000;
/// From how many bytes on the values of the sorted table are separated.
const SEPARATE_BYTES: u32 = 32;

/// Runs the bench.
pub(crate) fn run(options: &BenchOptions, progress: &mut dyn FnMut(Progress)) -> Result<Report> {
    let rows = options.rows.unwrap_or_else(|| options.scaled(ROWS));
    let (least, most) = options.value_bytes.map_or(BYTES, |bytes| (bytes, bytes));
    let objects = Objects::new(options.seed, least, most);
    let mut report = Report::new("elliptics");
    report.put("rows", rows);
    report.put("kind", options.kind.name());
    report.put("value_placement", options.value_placement.name());
    Workplace::put_setting(&mut report, options, MEMORY_BYTES, options.batch.unwrap_or(1));
    let work = Workplace::create("elliptics", options, MEMORY_BYTES)?;
    let rules = TableRules::new(KeyCodec::Bytes).kind(options.kind).value_placement(options.value_placement);
    let separate = (options.kind == TableKind::Sorted).then_some(SEPARATE_BYTES);
    let table = work.store.create_bytes_table(TABLE, rules.separate(separate))?;

    let user_bytes = load(&work, &table, &objects, rows, options, &mut report, progress)?;
    let stats = work.store.stats();
    report.put(
        "index",
        json!({
            "bytes": stats.memory.index_bytes,
            "bytes_per_key": round(stats.memory.index_bytes as f64 / rows as f64, 2),
            "saved": stats.background.indexes_saved,
            "written_bytes": stats.background.index_bytes,
        }),
    );
    let written = stats.writes.log_bytes
        + stats.background.part_bytes
        + stats.writes.value_bytes
        + stats.background.index_bytes;
    report.put("amplification", round(written as f64 / user_bytes.max(1) as f64, 3));
    report.put("disk", work.disk(TABLE)?);

    progress(Progress { phase: "opening", done: 0, total: 0 });
    drop(table);
    let work = work.reopen_cold()?;
    let (cold, first_right) = gets(&work, &objects, rows, options.seed)?;
    report.put("cold", cold);
    let (warm, second_right) = gets(&work, &objects, rows, options.seed)?;
    report.put("again", warm);
    work.put_process(&mut report);

    let work = change_a_hundredth(work, &objects, rows)?;
    report.put("open_ms_after_leaving", work.open_ms);
    let count = work.store.bytes_table(TABLE)?.scan().count()?;
    report.verify(first_right && second_right && count == rows);
    work.close(&mut report)?;
    Ok(report)
}

/// The id of a blob.
fn id(number: u64) -> [u8; 64] {
    let mut id = [0; 64];
    for (word, at) in id.chunks_mut(8).zip(1u64..) {
        word.copy_from_slice(&mix(number.wrapping_mul(9) ^ at << 56).to_le_bytes());
    }
    id
}

fn load(
    work: &Workplace,
    table: &BytesTable,
    objects: &Objects,
    rows: u64,
    options: &BenchOptions,
    report: &mut Report,
    progress: &mut dyn FnMut(Progress),
) -> Result<u64> {
    let batch_ops = options.batch.unwrap_or(1).max(1);
    let (mut phase, mut latencies) = (Phase::start(rows), Latencies::new());
    let (mut batch, mut value, mut user_bytes) = (work.store.batch(), Vec::new(), 0);
    let mut before = Instant::now();
    for number in 0..rows {
        objects.fill(number, 0, &mut value);
        user_bytes += 64 + value.len() as u64;
        batch.write(table, WriteOp::Put, &id(number), &value);
        if batch.len() >= batch_ops || number + 1 == rows {
            batch.commit(options.durability)?;
        }
        let now = Instant::now();
        latencies.note(now - before);
        before = now;
        if phase.reached(number + 1, now) {
            progress(Progress { phase: "loading", done: number + 1, total: rows });
        }
    }
    let mut figures = phase.end();
    figures["put"] = latencies.to_json();
    report.put("load", figures);
    let settling = Phase::start(rows);
    work.store.settle()?;
    report.put("settle", settling.end_of_work());
    Ok(user_bytes)
}

/// Gets of random blobs by all threads, and whether each answer was right.
fn gets(work: &Workplace, objects: &Objects, rows: u64, seed: u64) -> Result<(Value, bool)> {
    let gets = GETS_MAX.min(rows / 3).max(1);
    let (before, bytes_before, started) = (work.store.stats(), read_bytes(), Instant::now());
    let table = work.store.bytes_table(TABLE)?;
    let answers: Vec<Result<(Latencies, bool)>> = std::thread::scope(|scope| {
        let threads = (0..THREADS).map(|thread| {
            let table = table.clone();
            let count = gets / THREADS + u64::from(thread < gets % THREADS);
            scope.spawn(move || get(&table, objects, rows, count, seed ^ (thread + 1) << 40))
        });
        let threads: Vec<_> = threads.collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Ok((Latencies::new(), false))))
            .collect()
    });
    let took = started.elapsed();
    let (mut all, mut right) = (Latencies::new(), true);
    for answer in answers {
        let (latencies, was_right) = answer?;
        all.absorb(&latencies);
        right &= was_right;
    }
    let reads = work.store.stats().reads.values - before.reads.values;
    let bytes = read_bytes().zip(bytes_before).map(|(after, before)| after - before);
    let figures = json!({
        "open_ms": work.open_ms,
        "is_cold": work.is_cold,
        "gets_per_s": per_second(gets, took),
        "gets": all.to_json(),
        "value_reads_per_get": round(reads as f64 / gets as f64, 4),
        "bytes_from_disk_per_get": bytes.map(|bytes| round(bytes as f64 / gets as f64, 0)),
        "index_loads": work.store.stats().reads.index_loads,
    });
    Ok((figures, right))
}

fn get(table: &BytesTable, objects: &Objects, rows: u64, count: u64, seed: u64) -> Result<(Latencies, bool)> {
    let (mut chance, mut latencies, mut right) = (Chance::new(seed), Latencies::new(), true);
    for _ in 0..count {
        let number = chance.below(rows);
        let started = Instant::now();
        let found = table.get_with(&id(number), |value| value.and_then(|value| objects.read(value)))?;
        latencies.note(started.elapsed());
        right &= found == Some((number, 0));
    }
    Ok((latencies, right))
}

/// Puts one blob in a hundred again, leaves the store without closing it, and opens it.
fn change_a_hundredth(work: Workplace, objects: &Objects, rows: u64) -> Result<Workplace> {
    let (table, mut value) = (work.store.bytes_table(TABLE)?, Vec::new());
    for number in (0..rows).step_by(100) {
        objects.fill(number, 1, &mut value);
        table.write(WriteOp::Put, &id(number), &value)?;
    }
    drop(table);
    work.leave_and_reopen_cold()
}
