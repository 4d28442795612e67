//! `osmos`: the benchmark of osmos. Sums on keys by Zipf's law, written at full speed by one
//! thread, while another reads a key or a range of the table every ten milliseconds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use folddb::{Durability, Result, Rules, Store, Table};
use serde_json::{Value, json};

use crate::check::{Ascending, RowSum};
use crate::generate::{USER_KEY_BYTES, UserKey, ZipfWrites};
use crate::measure::{Latencies, Phase};
use crate::options::{BenchOptions, Progress};
use crate::report::Report;
use crate::workplace::Workplace;

/// Writes at scale 1.
const WRITES: f64 = 50e6;
/// Keys at scale 1.
const KEYS: f64 = 10e6;
const TABLE: &str = "visits";
const MEMORY_BYTES: usize = 64 << 20;
const READ_PAUSE: Duration = Duration::from_millis(10);
/// One read in this many is a select over a range.
const SELECT_EVERY: u64 = 8;
const SELECT_ROWS: usize = 100;
const CHUNK_ROWS: usize = 25;
const WRITE_BYTES: u64 = USER_KEY_BYTES as u64 + 8;

/// Runs the bench.
pub(crate) fn run(options: &BenchOptions, progress: &mut dyn FnMut(Progress)) -> Result<Report> {
    let scaled = (options.scaled(WRITES), options.scaled(KEYS));
    let (writes, keys) = options.rows.map_or(scaled, |rows| (rows, (rows / 5).max(100)));
    let batch = options.batch.unwrap_or(1).max(1);
    let mut report = Report::new("osmos");
    report.put("writes", writes);
    report.put("keys", keys);
    Workplace::put_setting(&mut report, options, MEMORY_BYTES, batch);
    report.put("has_reader", options.reader);

    let work = Workplace::create("osmos", options, MEMORY_BYTES)?;
    let table = work.store.table(TABLE, Rules::sorted::<String, u64>().fold("sum:u64"))?;
    let stop = AtomicBool::new(false);
    let source = ZipfWrites::new(options.seed, keys);
    let (written, read) = std::thread::scope(|scope| {
        let reader = options.reader.then(|| {
            scope.spawn(|| {
                let source = ZipfWrites::new(options.seed ^ 0x7265_6164, keys);
                Reader { store: &work.store, table: &table, source }.run(&stop)
            })
        });
        let writer =
            Writer { table: &table, source: source.clone(), writes, batch, durability: options.durability };
        let written = writer.run(&work.store, progress);
        stop.store(true, Ordering::Relaxed);
        (written, reader.map_or(Ok(Ok(Read::nothing())), |reader| reader.join()))
    });
    let (phase, latencies) = written?;
    let read = read.unwrap_or_else(|_| Err(folddb::Error::invalid("the reader of the bench panicked")))?;
    report.put("load", phase);
    report.put("commits", latencies.to_json());
    report.put("gets", read.gets.to_json());
    report.put("selects", read.selects.to_json());

    progress(Progress { phase: "settling", done: 0, total: 0 });
    let settle = Phase::start(writes);
    work.store.settle()?;
    report.put("settle", settle.end_of_work());
    work.put_written(&mut report, writes * WRITE_BYTES);
    report.put("settled", work.disk(TABLE)?);
    report.put("reads", settled_reads(&table, options.seed, writes, keys)?);
    work.store.bytes_table(TABLE)?.compact()?;
    report.put("compacted", work.disk(TABLE)?);
    work.put_process(&mut report);

    progress(Progress { phase: "checking", done: 0, total: writes });
    let generating = Instant::now();
    let sums = expected(source, writes, keys);
    let generate_ns = generating.elapsed().as_nanos() as f64 / writes as f64;
    report.put("generator_ns_per_write", crate::measure::round(generate_ns, 1));
    let (found, ascending) = scan(&table)?;
    let mut wanted = RowSum::default();
    sums.iter().enumerate().filter(|(_, sum)| **sum > 0).for_each(|(key, sum)| wanted.add(key as u64, *sum));
    report.put("checksum", format!("{:016x}", found.sum));
    report.put("checksum_expected", format!("{:016x}", wanted.sum));
    report.put("rows_found", found.rows);
    report.verify(found == wanted && ascending && read.agrees_with(&sums));
    work.close(&mut report)?;
    Ok(report)
}

struct Writer<'a> {
    table: &'a Table<String, u64>,
    source: ZipfWrites,
    writes: u64,
    batch: usize,
    durability: Durability,
}

impl Writer<'_> {
    /// Writes at full speed. The latency of a commit is the time from the end of the commit before
    /// it to its own end, so it includes the time of the generator; the report has that time, too.
    fn run(mut self, store: &Store, progress: &mut dyn FnMut(Progress)) -> Result<(Value, Latencies)> {
        let (mut latencies, mut batch) = (Latencies::new(), store.batch());
        let mut phase = Phase::start(self.writes);
        let (mut done, mut before) = (0, Instant::now());
        while done < self.writes {
            if self.batch == 1 {
                let key = UserKey::new(self.source.next_key());
                self.table.fold(key.text(), &self.source.next_operand())?;
                done += 1;
            } else {
                let end = self.writes.min(done + self.batch as u64);
                for _ in done..end {
                    let key = UserKey::new(self.source.next_key());
                    batch.fold(self.table, key.text(), &self.source.next_operand());
                }
                batch.commit(self.durability)?;
                done = end;
            }
            let now = Instant::now();
            latencies.note(now - before);
            before = now;
            if phase.reached(done, now) {
                progress(Progress { phase: "writing", done, total: self.writes });
            }
        }
        Ok((phase.end(), latencies))
    }
}

/// What the reader saw.
struct Read {
    gets: Latencies,
    selects: Latencies,
    /// Keys and their sums, in the order of reading.
    seen: Vec<(u64, u64)>,
    /// Selects with rows out of order, or not of the snapshot.
    wrong: u64,
}

impl Read {
    fn nothing() -> Read {
        Read { gets: Latencies::new(), selects: Latencies::new(), seen: Vec::new(), wrong: 0 }
    }

    /// Sums only grow, and none is larger than it is in the end.
    fn agrees_with(&self, sums: &[u64]) -> bool {
        let mut last = std::collections::HashMap::new();
        let grows = self.seen.iter().all(|&(key, sum)| {
            let before = last.insert(key, sum).unwrap_or(0);
            before <= sum && sums.get(key as usize).is_some_and(|end| sum <= *end)
        });
        grows && self.wrong == 0
    }
}

struct Reader<'a> {
    store: &'a Store,
    table: &'a Table<String, u64>,
    source: ZipfWrites,
}

impl Reader<'_> {
    fn run(mut self, stop: &AtomicBool) -> Result<Read> {
        let mut read = Read::nothing();
        for count in 1.. {
            let number = self.source.next_key();
            let before = Instant::now();
            if count % SELECT_EVERY == 0 {
                let in_order = self.select(number)?;
                read.selects.note(before.elapsed());
                read.wrong += u64::from(!in_order);
            } else {
                let sum = self.table.get(UserKey::new(number).text())?;
                read.gets.note(before.elapsed());
                read.seen.push((number, sum.unwrap_or(0)));
            }
            if stop.load(Ordering::Relaxed) {
                break;
            }
            std::thread::sleep(READ_PAUSE);
        }
        Ok(read)
    }

    /// A hundred rows of one snapshot, from a key on, in chunks. Each chunk continues after the
    /// last one.
    fn select(&self, number: u64) -> Result<bool> {
        let snapshot = self.store.snapshot();
        let mut ascending = Ascending::default();
        let mut after: Option<String> = None;
        let mut rows = 0;
        while rows < SELECT_ROWS {
            let scan = snapshot.scan(self.table).limit(CHUNK_ROWS);
            let scan = match &after {
                None => scan.from(UserKey::new(number).text()),
                Some(last) => scan.after(last),
            };
            let before = rows;
            for row in scan {
                let (key, _) = row?;
                UserKey::parse(&key).into_iter().for_each(|number| ascending.next(number));
                rows += 1;
                after = Some(key);
            }
            if rows - before < CHUNK_ROWS {
                break;
            }
        }
        Ok(ascending.holds())
    }
}

/// Gets and a scan, once no merge is due.
fn settled_reads(table: &Table<String, u64>, seed: u64, writes: u64, keys: u64) -> Result<Value> {
    let (mut source, mut hits) = (ZipfWrites::new(seed ^ 0x6765_7473, keys), Latencies::new());
    for _ in 0..(writes / 100).clamp(100, 100_000) {
        let key = UserKey::new(source.next_key());
        let before = Instant::now();
        table.get(key.text())?;
        hits.note(before.elapsed());
    }
    let started = Instant::now();
    let rows = scan(table)?.0.rows;
    let rows_per_s = crate::measure::per_second(rows, started.elapsed());
    Ok(json!({ "hits": hits.to_json(), "scan": { "rows_found": rows, "rows_per_s": rows_per_s } }))
}

/// The sum of every key, from the generator alone: an array of counters.
fn expected(mut source: ZipfWrites, writes: u64, keys: u64) -> Vec<u64> {
    let mut sums = vec![0u64; keys as usize];
    for _ in 0..writes {
        let key = source.next_key();
        sums[key as usize] += source.next_operand();
    }
    sums
}

fn scan(table: &Table<String, u64>) -> Result<(RowSum, bool)> {
    let (mut found, mut ascending) = (RowSum::default(), Ascending::default());
    for row in table.scan() {
        let (key, sum) = row?;
        let number = UserKey::parse(&key).unwrap_or(u64::MAX); // else the checksum differs
        ascending.next(number);
        found.add(number, sum);
    }
    Ok((found, ascending.holds()))
}
