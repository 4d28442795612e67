//! `open`: how long it takes until a large store answers, with none of its files in memory: after a
//! close, and after a drop without a close, so that its log is replayed.

use std::time::Instant;

use folddb::{Result, Rules, Table};
use serde_json::{Value, json};

use crate::generate::RandomRows;
use crate::measure::round;
use crate::options::{BenchOptions, Progress};
use crate::reading::Reading;
use crate::report::Report;
use crate::workplace::Workplace;

/// Rows at scale 1.
const ROWS: f64 = 100e6;
/// One in this many rows is written again before the store is dropped.
const UNFLUSHED_SHARE: u64 = 100;
const TABLE: &str = "numbers";
const MEMORY_BYTES: usize = 160_000_000;
const BATCH: u64 = 1000;

/// Runs the bench.
pub(crate) fn run(options: &BenchOptions, progress: &mut dyn FnMut(Progress)) -> Result<Report> {
    let rows = options.rows.unwrap_or_else(|| options.scaled(ROWS));
    let source = RandomRows::new(options.seed);
    let mut report = Report::new("open");
    report.put("rows", rows);
    Workplace::put_setting(&mut report, options, MEMORY_BYTES, BATCH as usize);
    let work = Workplace::create("open", options, MEMORY_BYTES)?;
    let mut reading = Reading::new(source, rows, options.seed);

    progress(Progress { phase: "writing", done: 0, total: rows });
    write(&work, source, 0..rows, options)?;
    work.store.settle()?;
    report.put("settled", work.disk(TABLE)?);
    progress(Progress { phase: "opening", done: 0, total: 0 });
    let work = work.reopen_cold()?;
    let (closed, first_right) = opened(&work, &reading)?;
    report.put("after_close", closed);

    progress(Progress { phase: "writing more", done: 0, total: 0 });
    let more = (rows / UNFLUSHED_SHARE).max(1);
    write(&work, source, rows..rows + more, options)?;
    let memtable_bytes = work.store.stats().memory.memtable_bytes;
    reading.expect(more);
    progress(Progress { phase: "opening", done: 0, total: 0 });
    let work = work.leave_and_reopen_cold()?;
    let (mut left, second_right) = opened(&work, &reading)?;
    left["rows_written_since"] = json!(more);
    left["memtable_bytes_before"] = json!(memtable_bytes);
    report.put("after_leaving", left);
    work.put_process(&mut report);

    progress(Progress { phase: "checking", done: 0, total: rows });
    let (_, all_right) = reading.scan(&table(&work)?)?;
    report.verify(first_right && second_right && all_right);
    work.close(&mut report)?;
    Ok(report)
}

fn table(work: &Workplace) -> Result<Table<u64, u64>> {
    work.store.table(TABLE, Rules::sorted::<u64, u64>())
}

fn write(
    work: &Workplace,
    source: RandomRows,
    indexes: std::ops::Range<u64>,
    options: &BenchOptions,
) -> Result<()> {
    let (table, mut batch) = (table(work)?, work.store.batch());
    for index in indexes {
        let key = source.key(index);
        batch.put(&table, &key, &source.value(key));
        if batch.len() as u64 == BATCH {
            batch.commit(options.durability)?;
        }
    }
    batch.commit(options.durability)?;
    Ok(())
}

/// What the opening took, and the first get.
fn opened(work: &Workplace, reading: &Reading) -> Result<(Value, bool)> {
    let started = Instant::now();
    let key = reading.source.key(reading.rows - 1);
    let value = table(work)?.get(&key)?;
    let figures = json!({
        "open_ms": work.open_ms,
        "first_get_ms": round(started.elapsed().as_secs_f64() * 1e3, 3),
        "cold": work.is_cold,
    });
    Ok((figures, value == Some(reading.source.value(key))))
}
