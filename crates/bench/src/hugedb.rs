//! `hugedb`: HugeDB's benchmark. 100 million random pairs of numbers within 200 MB, then settled, then
//! merged into one run, then read.

use std::ops::ControlFlow;
use std::time::Instant;

use folddb::{Durability, Result, Rules, Store, Table};
use serde_json::{Value, json};

use crate::check::{Ascending, RowSum};
use crate::generate::{Chance, RandomRows};
use crate::measure::{Latencies, Phase};
use crate::report::Report;
use crate::workplace::Workplace;
use crate::{BenchOptions, Progress};

/// Rows at scale 1.
const ROWS: f64 = 100e6;
const TABLE: &str = "numbers";
/// The budget of the store, which leaves room for the rest of a process of 200 MB.
const MEMORY_BYTES: usize = 160_000_000;
const BATCH: usize = 1000;
const GETS: u64 = 20_000;
const ROW_BYTES: u64 = 16;

/// Runs the bench.
pub(crate) fn run(options: &BenchOptions, progress: &mut dyn FnMut(Progress)) -> Result<Report> {
    let rows = options.scaled(ROWS);
    let batch = options.batch.unwrap_or(BATCH).max(1);
    let source = RandomRows::new(options.seed);
    let mut report = Report::new("hugedb");
    report.put("rows", rows);
    Workplace::put_setting(&mut report, options, MEMORY_BYTES, batch);

    let work = Workplace::create("hugedb", options, MEMORY_BYTES)?;
    let table = work.store.table(TABLE, Rules::sorted::<u64, u64>())?;
    let load = Load { table: &table, source, rows, batch, durability: options.durability };
    let (phase, latencies) = load.run(&work.store, progress)?;
    report.put("load", phase);
    report.put("commits", latencies.to_json());

    let settle = Phase::start(rows);
    progress(Progress { phase: "settling", done: 0, total: 0 });
    work.store.settle()?;
    report.put("settle", seconds_of(settle.end()));
    work.put_written(&mut report, rows * ROW_BYTES);
    report.put("settled", work.disk(TABLE)?);

    report.put("optimize", seconds_of(optimize(&work.store, rows, progress)?));
    report.put("optimized", work.disk(TABLE)?);

    let (gets, gets_right) = random_gets(&table, source, rows, options.seed, progress)?;
    report.put("gets", gets);
    let (scan, found, ascending) = full_scan(&table, rows, progress)?;
    report.put("scan", scan);
    work.put_process(&mut report);

    progress(Progress { phase: "checking", done: 0, total: rows });
    let expected = expected(source, rows);
    report.put("checksum", format!("{:016x}", found.sum));
    report.put("checksum_expected", format!("{:016x}", expected.sum));
    report.put("rows_found", found.rows);
    report.verify(found == expected && ascending && gets_right);
    work.close(&mut report)?;
    Ok(report)
}

struct Load<'a> {
    table: &'a Table<u64, u64>,
    source: RandomRows,
    rows: u64,
    batch: usize,
    durability: Durability,
}

impl Load<'_> {
    /// Writes all rows. A commit's latency is the time from the end of the one before to its own end: the few
    /// nanoseconds of generating keys are in it, and one reading of the clock.
    fn run(&self, store: &Store, progress: &mut dyn FnMut(Progress)) -> Result<(Value, Latencies)> {
        let (mut latencies, mut batch) = (Latencies::new(), store.batch());
        let mut phase = Phase::start(self.rows);
        let (mut done, mut before) = (0, Instant::now());
        while done < self.rows {
            if self.batch == 1 {
                let key = self.source.key(done);
                self.table.set(&key, &self.source.value(key))?;
                done += 1;
            } else {
                let end = self.rows.min(done + self.batch as u64);
                for index in done..end {
                    let key = self.source.key(index);
                    batch.set(self.table, &key, &self.source.value(key));
                }
                batch.commit(self.durability)?;
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

fn optimize(store: &Store, rows: u64, progress: &mut dyn FnMut(Progress)) -> Result<Value> {
    let phase = Phase::start(rows);
    let mut next_at = 0;
    store.optimize(TABLE, |at| {
        if at.bytes_done >= next_at {
            next_at = at.bytes_done + at.bytes_total / 20;
            progress(Progress { phase: "optimizing", done: at.bytes_done, total: at.bytes_total });
        }
        ControlFlow::Continue(())
    })?;
    Ok(phase.end())
}

/// Gets that hit and gets that miss, in turn. True when each answer is right.
fn random_gets(
    table: &Table<u64, u64>,
    source: RandomRows,
    rows: u64,
    seed: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Value, bool)> {
    progress(Progress { phase: "reading keys", done: 0, total: GETS });
    let mut chance = Chance::new(seed ^ 0x6e75_6d62_6572_7321);
    let (mut hits, mut misses) = (Latencies::new(), Latencies::new());
    let mut right = true;
    for index in 0..GETS {
        let is_hit = index % 2 == 0;
        let key = source.key(chance.below(rows) + if is_hit { 0 } else { rows });
        let before = Instant::now();
        let value = table.get(&key)?;
        let latencies = if is_hit { &mut hits } else { &mut misses };
        latencies.note(before.elapsed());
        right &= value == is_hit.then(|| source.value(key));
    }
    Ok((json!({ "hits": hits.to_json(), "misses": misses.to_json() }), right))
}

fn full_scan(
    table: &Table<u64, u64>,
    rows: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Value, RowSum, bool)> {
    progress(Progress { phase: "scanning", done: 0, total: rows });
    let phase = Phase::start(rows);
    let (mut found, mut ascending) = (RowSum::default(), Ascending::default());
    let mut scan = table.as_bytes().scan().rows()?;
    while let Some((key, value)) = scan.next_row()? {
        let (Ok(key), Ok(value)) = (key.try_into(), value.try_into()) else {
            return Err(folddb::Error::invalid("a row of the bench is not a pair of 8-byte numbers"));
        };
        let key = u64::from_be_bytes(key);
        ascending.next(key);
        found.add(key, u64::from_le_bytes(value));
    }
    Ok((phase.end(), found, ascending.holds()))
}

/// What must be in the table, from the generator alone.
fn expected(source: RandomRows, rows: u64) -> RowSum {
    let mut sum = RowSum::default();
    for index in 0..rows {
        let key = source.key(index);
        sum.add(key, source.value(key));
    }
    sum
}

/// The figures of a phase in which rows a second say nothing.
fn seconds_of(mut phase: Value) -> Value {
    if let Some(figures) = phase.as_object_mut() {
        figures.remove("rows_per_s");
    }
    phase
}
