//! `hugedb`: HugeDB's benchmark. 100 million random pairs of numbers within 200 MB, then settled,
//! then merged into one run, then read.

use std::ops::ControlFlow;
use std::time::Instant;

use folddb::{Result, Rules, Store, Table};
use serde_json::{Value, json};

use crate::generate::RandomRows;
use crate::measure::{Latencies, Phase};
use crate::options::{BenchOptions, Progress};
use crate::reading::Reading;
use crate::report::Report;
use crate::workplace::Workplace;

/// Rows at scale 1.
const ROWS: f64 = 100e6;
const TABLE: &str = "numbers";
/// The memory budget of the store. It leaves room for the rest of a process of 200 MB.
const MEMORY_BYTES: usize = 160_000_000;
const BATCH: usize = 1000;
const ROW_BYTES: u64 = 16;

/// Runs the bench.
pub(crate) fn run(options: &BenchOptions, progress: &mut dyn FnMut(Progress)) -> Result<Report> {
    let rows = options.rows.unwrap_or_else(|| options.scaled(ROWS));
    let batch = options.batch.unwrap_or(BATCH).max(1);
    let source = RandomRows::new(options.seed);
    let mut report = Report::new("hugedb");
    report.put("rows", rows);
    Workplace::put_setting(&mut report, options, MEMORY_BYTES, batch);
    report.put("op", if options.inserts { "insert" } else { "put" });

    let work = Workplace::create("hugedb", options, MEMORY_BYTES)?;
    let table = open(&work)?;
    let load = Load { table: &table, source, rows, batch, options };
    let (phase, latencies) = load.run(&work.store, progress)?;
    report.put("load", phase);
    report.put("commits", latencies.to_json());

    let settle = Phase::start(rows);
    progress(Progress { phase: "settling", done: 0, total: 0 });
    work.store.settle()?;
    report.put("settle", settle.end_of_work());
    work.put_written(&mut report, rows * ROW_BYTES);
    report.put("settled", work.disk(TABLE)?);
    work.put_process(&mut report);

    let mut reading = Reading::new(source, rows, options.seed);
    let mut reads = json!({});
    let (work, settled, settled_right) = read_all(work, &reading, progress)?;
    reads["settled"] = settled;
    let (beside, beside_right) =
        reading.gets_while_writing(&work.store, &open(&work)?, options.durability, progress)?;
    reads["while_writing"] = beside;

    work.store.settle()?;
    report.put("compact", compact(&work.store, reading.rows, progress)?);
    report.put("compacted", work.disk(TABLE)?);
    let (work, compacted, compacted_right) = read_all(work, &reading, progress)?;
    reads["compacted"] = compacted;
    report.put("reads", reads);
    report.put("checksum_expected", format!("{:016x}", reading.expected.sum));
    report.put("peak_resident_bytes_with_reads", work.peak_resident_bytes());
    report.verify(settled_right && beside_right && compacted_right);
    work.close(&mut report)?;
    Ok(report)
}

fn open(work: &Workplace) -> Result<Table<u64, u64>> {
    work.store.table(TABLE, Rules::sorted::<u64, u64>())
}

/// Gets and a scan, warm and cold. True when every answer is right.
fn read_all(
    work: Workplace,
    reading: &Reading,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Workplace, Value, bool)> {
    progress(Progress { phase: "reading", done: 0, total: 0 });
    let table = open(&work)?;
    let (mut warm, warm_right) = reading.warm_gets(&table)?;
    reading.scan(&table)?;
    let (scan, scan_right) = reading.scan(&table)?;
    warm["scan"] = scan;

    progress(Progress { phase: "reading cold", done: 0, total: 0 });
    let work = work.reopen_cold()?;
    let open_ms = work.open_ms;
    let (mut cold, cold_right) = reading.gets(&open(&work)?)?;
    let work = work.reopen_cold()?;
    let (scan, cold_scan_right) = reading.scan(&open(&work)?)?;
    cold["scan"] = scan;
    cold["open_ms"] = json!(open_ms);
    cold["is_cold"] = json!(work.is_cold);
    let right = warm_right && scan_right && cold_right && cold_scan_right;
    Ok((work, json!({ "warm": warm, "cold": cold }), right))
}

struct Load<'a> {
    table: &'a Table<u64, u64>,
    source: RandomRows,
    rows: u64,
    batch: usize,
    options: &'a BenchOptions,
}

impl Load<'_> {
    /// Writes all rows. The latency of a commit is the time from the end of the commit before it to
    /// its own end. It includes the few nanoseconds of generating keys, and one reading of the
    /// clock.
    fn run(&self, store: &Store, progress: &mut dyn FnMut(Progress)) -> Result<(Value, Latencies)> {
        let (mut latencies, mut batch) = (Latencies::new(), store.batch());
        let mut phase = Phase::start(self.rows);
        let (mut done, mut before) = (0, Instant::now());
        while done < self.rows {
            if self.batch == 1 {
                let key = self.source.key(done);
                match self.options.inserts {
                    true => self.table.put_if_absent(&key, &self.source.value(key))?,
                    false => self.table.put(&key, &self.source.value(key))?,
                };
                done += 1;
            } else {
                let end = self.rows.min(done + self.batch as u64);
                for index in done..end {
                    let key = self.source.key(index);
                    match self.options.inserts {
                        true => batch.put_if_absent(self.table, &key, &self.source.value(key)),
                        false => batch.put(self.table, &key, &self.source.value(key)),
                    };
                }
                batch.commit(self.options.durability)?;
                done = end;
            }
            let now = Instant::now();
            latencies.note(now - before);
            before = now;
            if phase.reached(done, now) {
                progress(Progress { phase: "writing", done, total: self.rows });
            }
        }
        Ok((phase.end(), latencies))
    }
}

fn compact(store: &Store, rows: u64, progress: &mut dyn FnMut(Progress)) -> Result<Value> {
    let phase = Phase::start(rows);
    let mut next_at = 0;
    store.bytes_table(TABLE)?.compact_with(|at| {
        if at.bytes_done >= next_at {
            next_at = at.bytes_done + at.bytes_total / 20;
            progress(Progress { phase: "compacting", done: at.bytes_done, total: at.bytes_total });
        }
        ControlFlow::Continue(())
    })?;
    Ok(phase.end_of_work())
}
