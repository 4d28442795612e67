//! `steady`: no stalls. Fills a table, finds the rate that the store sustains, then writes at 95 %
//! of it; then a quiet table is written to, first alone, then while another table is loaded at full
//! speed.
//!
//! Writes come in an *open loop*: each is due at a moment that does not depend on how long earlier
//! writes took, and its latency counts from that moment. So a stall of a second shows in every
//! write that it delays, not only in one. Keys come in a random order that repeats, so the store
//! keeps its size after it was filled, and has old values to merge away.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use folddb::{Batch, Durability, Result, Rules, Store, StoreStats, Table};
use serde_json::{Value, json};

use crate::check::RowSum;
use crate::generate::mix;
use crate::measure::{Latencies, Phase, per_second, round};
use crate::options::{BenchOptions, Progress};
use crate::report::Report;
use crate::workplace::Workplace;

/// Keys at scale 1.
const KEYS: f64 = 100e6;
/// Seconds of the phase that holds the rate, at scale 1.
const HOLD_S: f64 = 600.0;
/// The phase that finds the rate, and each phase of the quiet table, take these shares of that
/// time.
const FIND_SHARE: f64 = 0.2;
const BESIDE_SHARE: f64 = 0.05;
/// The share of the sustained rate that is written.
const SHARE_OF_SUSTAINED: f64 = 0.95;
/// Writes a second to the quiet table.
const QUIET_PER_S: f64 = 1000.0;
/// Rows of a batch of the load next to the quiet table.
const LOAD_BATCH: usize = 1000;
const MEMORY_BYTES: usize = 160_000_000;
const ROW_BYTES: u64 = 16;
/// A sleep may last this much longer than requested. Shorter waits are spent without sleeping.
const SLEEP_SLACK: Duration = Duration::from_micros(150);

/// Runs the bench.
pub(crate) fn run(options: &BenchOptions, progress: &mut dyn FnMut(Progress)) -> Result<Report> {
    let keys = options.rows.unwrap_or_else(|| options.scaled(KEYS));
    let hold_s = options.seconds.unwrap_or(HOLD_S * options.scale).max(0.01);
    let batch = options.batch.unwrap_or(1).max(1);
    let mut report = Report::new("steady");
    report.put("keys", keys);
    Workplace::put_setting(&mut report, options, MEMORY_BYTES, batch);

    let work = Workplace::create("steady", options, MEMORY_BYTES)?;
    let durability = options.durability;
    let open = |name: &str, keys, batch, seed| -> Result<Writer> {
        let table = work.store.table(name, Rules::sorted::<u64, u64>())?.with_durability(durability);
        Ok(Writer {
            table,
            source: Rounds { offset: mix(seed), keys },
            batch: work.store.batch(),
            len: batch,
            durability,
            done: 0,
        })
    };
    let mut steady = open("steady", keys, LOAD_BATCH, options.seed)?;
    fill(&work.store, &mut steady, progress)?;
    steady.len = batch;
    progress(Progress { phase: "finding the rate", done: 0, total: 0 });
    let (found, sustained_per_s) = find_rate(&work.store, &mut steady, hold_s * FIND_SHARE)?;
    report.put("find", found);
    progress(Progress { phase: "holding it", done: 0, total: 0 });
    let rows_per_s = sustained_per_s * SHARE_OF_SUSTAINED;
    report.put("hold", hold(&work.store, &mut steady, rows_per_s, hold_s)?);
    work.put_written(&mut report, steady.done * ROW_BYTES);

    work.store.settle()?;
    let mut quiet = open("quiet", keys, 1, options.seed ^ 1)?;
    let mut loaded = open("loaded", keys, LOAD_BATCH, options.seed ^ 2)?;
    progress(Progress { phase: "a quiet table", done: 0, total: 0 });
    report.put("quiet", beside(&work.store, &mut quiet, None, hold_s * BESIDE_SHARE)?);
    progress(Progress { phase: "a quiet table beside a load", done: 0, total: 0 });
    report
        .put("quiet_beside_load", beside(&work.store, &mut quiet, Some(&mut loaded), hold_s * BESIDE_SHARE)?);
    work.put_process(&mut report);

    progress(Progress { phase: "checking", done: 0, total: 0 });
    let mut right = true;
    for writer in [&steady, &quiet, &loaded] {
        right &= writer.is_right()?;
    }
    report.verify(right);
    work.close(&mut report)?;
    Ok(report)
}

/// Keys in a random order that repeats in each round. The value says which round it is.
#[derive(Clone, Copy)]
struct Rounds {
    offset: u64,
    keys: u64,
}

impl Rounds {
    #[inline]
    fn row(&self, number: u64) -> (u64, u64) {
        let key = mix((number % self.keys).wrapping_add(self.offset));
        (key, mix(key ^ (number / self.keys)))
    }

    /// What a table holds after this many writes: the last of each key.
    fn expected(&self, writes: u64) -> RowSum {
        let mut sum = RowSum::default();
        for number in writes.saturating_sub(self.keys)..writes {
            let (key, value) = self.row(number);
            sum.add(key, value);
        }
        sum
    }
}

/// Writes the rows of a table, some in each commit.
struct Writer {
    table: Table<u64, u64>,
    source: Rounds,
    batch: Batch,
    len: usize,
    durability: Durability,
    done: u64,
}

impl Writer {
    /// The next commit.
    fn commit(&mut self) -> Result<()> {
        if self.len == 1 {
            let (key, value) = self.source.row(self.done);
            self.table.put(&key, &value)?;
        } else {
            for number in self.done..self.done + self.len as u64 {
                let (key, value) = self.source.row(number);
                self.batch.put(&self.table, &key, &value);
            }
            self.batch.commit(self.durability)?;
        }
        self.done += self.len as u64;
        Ok(())
    }

    /// Whether the table holds what was written last under each key.
    fn is_right(&self) -> Result<bool> {
        let mut found = RowSum::default();
        for row in self.table.scan() {
            let (key, value) = row?;
            found.add(key, value);
        }
        Ok(found == self.source.expected(self.done))
    }
}

/// Gives every key its first value.
fn fill(store: &Store, writer: &mut Writer, progress: &mut dyn FnMut(Progress)) -> Result<()> {
    let keys = writer.source.keys;
    while writer.done < keys {
        if writer.done.is_multiple_of(LOAD_BATCH as u64 * 1000) {
            progress(Progress { phase: "filling", done: writer.done, total: keys });
        }
        writer.commit()?;
    }
    store.settle()
}

/// Writes at full speed for some seconds, and settles. The sustained rate counts the time of both:
/// the work that a burst leaves behind is a part of its cost.
fn find_rate(store: &Store, writer: &mut Writer, seconds: f64) -> Result<(Value, f64)> {
    let (mut latencies, started, first) = (Latencies::new(), Instant::now(), writer.done);
    let (mut before, mut tenths, mut rows_before) = (started, Vec::new(), first);
    while tenths.len() < 10 {
        writer.commit()?;
        let now = Instant::now();
        latencies.note(now - before);
        before = now;
        if (now - started).as_secs_f64() >= seconds * (tenths.len() + 1) as f64 / 10.0 {
            tenths.push(writer.done - rows_before);
            rows_before = writer.done;
        }
    }
    let flat_out_s = started.elapsed().as_secs_f64();
    store.settle()?;
    let sustained = (writer.done - first) as f64 / started.elapsed().as_secs_f64().max(1e-9);
    let by_tenth: Vec<u64> = tenths.iter().map(|rows| (*rows as f64 * 10.0 / seconds) as u64).collect();
    let figures = json!({
        "seconds": round(flat_out_s, 3),
        "settle_s": round(started.elapsed().as_secs_f64() - flat_out_s, 3),
        "rows_per_s_by_tenth": by_tenth,
        "sustained_rows_per_s": sustained as u64,
        "commits_flat_out": latencies.to_json(),
    });
    Ok((figures, sustained))
}

/// When each of a sequence of events is due.
struct Schedule {
    started: Instant,
    interval_s: f64,
    next: u64,
}

impl Schedule {
    fn start(per_second: f64) -> Schedule {
        Schedule { started: Instant::now(), interval_s: 1.0 / per_second.max(1e-3), next: 0 }
    }

    /// Waits until the next event is due; it may be due already. Short waits are spent without
    /// sleeping.
    fn wait(&mut self) -> Instant {
        let due = self.started + Duration::from_secs_f64(self.next as f64 * self.interval_s);
        self.next += 1;
        loop {
            match due.checked_duration_since(Instant::now()) {
                None | Some(Duration::ZERO) => return due,
                Some(left) if left > 2 * SLEEP_SLACK => std::thread::sleep(left - SLEEP_SLACK),
                Some(_) => std::hint::spin_loop(),
            }
        }
    }
}

/// How long commits took: from when they were due, and from when they were called.
struct Waits {
    from_due: Latencies,
    calls: Latencies,
}

impl Waits {
    fn new() -> Waits {
        Waits { from_due: Latencies::new(), calls: Latencies::new() }
    }

    /// The next commit of a schedule.
    fn commit(&mut self, writer: &mut Writer, schedule: &mut Schedule) -> Result<(Duration, Instant)> {
        let due = schedule.wait();
        let called = Instant::now();
        writer.commit()?;
        let ended = Instant::now();
        self.calls.note(ended - called);
        self.from_due.note(ended - due);
        Ok((ended - due, ended))
    }

    fn to_json(&self) -> Value {
        json!({ "from_due": self.from_due.to_json(), "calls": self.calls.to_json() })
    }
}

/// Writes at a rate for some seconds.
fn hold(store: &Store, writer: &mut Writer, rows_per_s: f64, seconds: f64) -> Result<Value> {
    let rows_before = writer.done;
    let mut schedule = Schedule::start(rows_per_s / writer.len as f64);
    let (started, phase) = (schedule.started, Phase::start(0));
    let (mut waits, mut series) = (Waits::new(), Series::start(store));
    loop {
        let (waited, now) = waits.commit(writer, &mut schedule)?;
        series.note(store, waited, (now - started).as_secs_f64());
        if (now - started).as_secs_f64() >= seconds {
            break;
        }
    }
    let mut figures = waits.to_json();
    figures["seconds"] = json!(round(started.elapsed().as_secs_f64(), 3));
    figures["rows_per_s_asked"] = json!(rows_per_s as u64);
    figures["rows_per_s"] = json!(per_second(writer.done - rows_before, started.elapsed()));
    figures["cpu_s"] = phase.end()["cpu_s"].clone();
    series.end(store, &mut figures);
    Ok(figures)
}

/// What happened second by second.
struct Series {
    first: StoreStats,
    last: StoreStats,
    second: Latencies,
    seconds: Vec<Value>,
    debt_s_max: f64,
}

impl Series {
    fn start(store: &Store) -> Series {
        let stats = store.stats();
        Series {
            first: stats.clone(),
            last: stats,
            second: Latencies::new(),
            seconds: Vec::new(),
            debt_s_max: 0.0,
        }
    }

    /// Adds a wait that ended this many seconds after the start.
    #[inline]
    fn note(&mut self, store: &Store, waited: Duration, at_s: f64) {
        self.second.note(waited);
        if at_s >= (self.seconds.len() + 1) as f64 {
            self.end_second(store);
        }
    }

    fn end_second(&mut self, store: &Store) {
        let (now, before) = (store.stats(), &self.last);
        let waits = std::mem::take(&mut self.second).to_json();
        self.debt_s_max = self.debt_s_max.max(now.background.debt_s);
        self.seconds.push(json!({
            "commits": waits["count"],
            "p50_us": waits["p50_us"],
            "p99_us": waits["p99_us"],
            "p99_9_us": waits["p99_9_us"],
            "max_us": waits["max_us"],
            "flushes": now.background.flushes - before.background.flushes,
            "merges": now.background.merges - before.background.merges,
            "records_merged": now.background.records_merged - before.background.records_merged,
            "debt_s": round(now.background.debt_s, 3),
        }));
        self.last = now;
    }

    fn end(mut self, store: &Store, figures: &mut Value) {
        self.end_second(store);
        let (first, last) = (&self.first, &self.last);
        figures["flushes"] = json!(last.background.flushes - first.background.flushes);
        figures["merges"] = json!(last.background.merges - first.background.merges);
        figures["records_merged"] = json!(last.background.records_merged - first.background.records_merged);
        figures["stalls"] = json!(last.writes.stalls - first.writes.stalls);
        figures["writer_delay_s"] =
            json!(round((last.writes.delay_us - first.writes.delay_us) as f64 / 1e6, 3));
        figures["debt_s_max"] = json!(round(self.debt_s_max, 3));
        figures["by_second"] = Value::Array(self.seconds);
    }
}

/// Writes to a quiet table, alone or while another thread loads its table at full speed.
fn beside(store: &Store, quiet: &mut Writer, load: Option<&mut Writer>, seconds: f64) -> Result<Value> {
    let (stop, before) = (AtomicBool::new(false), store.stats());
    let loaded_before = load.as_ref().map_or(0, |load| load.done);
    let (waits, loaded) = std::thread::scope(|scope| {
        let loader = load.map(|load| {
            scope.spawn(|| -> Result<u64> {
                while !stop.load(Ordering::Relaxed) {
                    load.commit()?;
                }
                Ok(load.done)
            })
        });
        let waits = write_quietly(quiet, seconds);
        stop.store(true, Ordering::Relaxed);
        (waits, loader.map(|loader| loader.join()))
    });
    let mut figures = waits?.to_json();
    if let Some(loaded) = loaded {
        let panicked = |_| Err(folddb::Error::invalid("the loader of the bench panicked"));
        let rows = loaded.unwrap_or_else(panicked)? - loaded_before;
        let after = store.stats();
        figures["load_rows_per_s"] = json!(per_second(rows, Duration::from_secs_f64(seconds)));
        figures["flushes"] = json!(after.background.flushes - before.background.flushes);
        figures["merges"] = json!(after.background.merges - before.background.merges);
        figures["stalls"] = json!(after.writes.stalls - before.writes.stalls);
    }
    Ok(figures)
}

fn write_quietly(quiet: &mut Writer, seconds: f64) -> Result<Waits> {
    let (mut waits, mut schedule) = (Waits::new(), Schedule::start(QUIET_PER_S));
    while schedule.started.elapsed().as_secs_f64() < seconds {
        waits.commit(quiet, &mut schedule)?;
    }
    Ok(waits)
}

#[cfg(test)]
#[path = "steady/tests.rs"]
mod tests;
