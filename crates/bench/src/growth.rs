//! `growth`: what a row costs as the store grows. `hugedb` and `osmos` at several sizes, compared
//! with what the model predicts.
//!
//! # The model
//! A flush makes a run of tier 0; T runs of a tier become one of the next. After R flushes of equal
//! size, with no folding and no other merges, tier i ≥ 1 has taken in ⌊R / Tⁱ⌋ · Tⁱ flushes, so
//! that each byte was written
//!
//! ```text
//!   writes = 1 + Σ ⌊R / Tⁱ⌋ · Tⁱ / R   ≤ 1 + log_T(R)      i = 1, 2, .. while Tⁱ ≤ R
//! ```
//!
//! times to parts, and the runs that are left are the digits of R in base T, summed. If ops of one
//! key are folded together, fewer bytes are written. Merges that are made early, for reads, write
//! more; merges that are late, because the load is faster, write fewer.

use folddb::Result;
use serde_json::{Value, json};

use crate::measure::round;
use crate::report::Report;
use crate::workplace::Workplace;
use crate::{BenchOptions, Progress, hugedb, osmos};

/// Rows at scale 1.
const SIZES: [f64; 3] = [1e6, 10e6, 100e6];
/// The merge factor that stores have by default.
const MERGE_FACTOR: u64 = 8;
/// The budget of both benches here, so that their sizes are in the same relation to it.
const MEMORY_BYTES: usize = 160_000_000;

/// Runs the bench.
pub(crate) fn run(options: &BenchOptions, progress: &mut dyn FnMut(Progress)) -> Result<Report> {
    let sizes: Vec<u64> = match options.rows {
        Some(rows) => vec![rows],
        None => SIZES.iter().map(|rows| options.scaled(*rows)).collect(),
    };
    let mut report = Report::new("growth");
    Workplace::put_setting(&mut report, options, MEMORY_BYTES, options.batch.unwrap_or(0));
    let (mut verified, mut of_hugedb, mut of_osmos) = (true, Vec::new(), Vec::new());
    for rows in sizes {
        let options = BenchOptions {
            rows: Some(rows),
            memory_bytes: Some(options.memory_bytes.unwrap_or(MEMORY_BYTES)),
            ..options.clone()
        };
        let done = hugedb::run(&options, progress)?;
        verified &= done.verified();
        of_hugedb.push(line(&done, rows, &["reads", "settled", "warm"]));
        let done = osmos::run(&options, progress)?;
        verified &= done.verified();
        of_osmos.push(line(&done, rows, &["reads"]));
    }
    report.put("hugedb", of_hugedb);
    report.put("osmos", of_osmos);
    report.verify(verified);
    Ok(report)
}

/// What one size has cost; `reads` is the place of its reads in the report.
fn line(report: &Report, rows: u64, reads: &[&str]) -> Value {
    let figure = |path: &[&str]| report.figure(path).cloned().unwrap_or(Value::Null);
    let number = |path: &[&str]| figure(path).as_f64().unwrap_or(0.0);
    let per_row = |seconds: f64| round(seconds * 1e9 / rows as f64, 1);
    let read = |path: &[&str]| figure(&[reads, path].concat());
    let flushes = number(&["background", "flushes"]) as u64;
    json!({
        "rows": rows,
        "wall_ns_per_row": per_row(number(&["load", "seconds"]) + number(&["settle", "seconds"])),
        "cpu_ns_per_row": per_row(number(&["load", "cpu_s"]) + number(&["settle", "cpu_s"])),
        "parts_written_per_byte": figure(&["written", "amplification_of_parts"]),
        "written_per_byte": figure(&["written", "amplification"]),
        "flushes": flushes,
        "merges": figure(&["background", "merges"]),
        "runs": figure(&["settled", "runs"]),
        "model": model(flushes, MERGE_FACTOR),
        "get_p50_us": read(&["hits", "p50_us"]),
        "scan_rows_per_s": read(&["scan", "rows_per_s"]),
        "peak_resident_bytes": figure(&["peak_resident_bytes"]),
        "memory_budget_bytes": figure(&["memory_budget_bytes"]),
        "verified": report.verified(),
    })
}

/// How often a byte is written to parts, and how many runs are left, after this many flushes.
fn model(flushes: u64, factor: u64) -> Value {
    let (mut taken, mut runs, mut tiers) = (flushes, 0, 0);
    let (mut rest, mut size) = (flushes, 1u64);
    while rest > 0 {
        runs += rest % factor;
        rest /= factor;
        size = size.saturating_mul(factor);
        taken += rest * size;
        tiers += u64::from(rest > 0);
    }
    json!({
        "log_t_of_flushes": round((flushes.max(1) as f64).log(factor as f64), 2),
        "tiers_merged": tiers,
        "writes_to_parts": round(taken as f64 / flushes.max(1) as f64, 3),
        "runs": runs,
    })
}

#[cfg(test)]
#[path = "growth/tests.rs"]
mod tests;
