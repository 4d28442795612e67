//! `indexes`: what a write costs in a table with no index, with one and with four, and what a find
//! costs.
//!
//! The same records (JSON of some 110 bytes) are written to three tables in turn, each key twice
//! over on average, so that half of what is written overwrites; then the index by city is queried
//! while half of its entries are stale, and again once it is clean. No write reads before it
//! writes.

use std::time::Instant;

use folddb::{Result, Rules, Table};
use serde_json::{Value, json};

use crate::generate::Chance;
use crate::measure::{Latencies, Phase, cpu_since, round};
use crate::options::{BenchOptions, Progress};
use crate::process::cpu_seconds;
use crate::report::Report;
use crate::workplace::Workplace;

const MEMORY_BYTES: usize = 64 << 20;
const WRITES: f64 = 1_000_000.0;
const FINDS: u64 = 200;

/// The approximate number of records for each term of the index by city.
const PER_CITY: u64 = 100;

/// The indexes, in the order in which tables get them.
const INDEXES: [(&str, &str); 4] =
    [("by_city", "json:/city"), ("by_age", "json:/age"), ("by_tag", "json:/tags"), ("by_mail", "json:/mail")];

type People = Table<u64, Vec<u8>>;

pub(crate) fn run(options: &BenchOptions, progress: &mut dyn FnMut(Progress)) -> Result<Report> {
    let writes = options.rows.unwrap_or_else(|| options.scaled(WRITES));
    let mut report = Report::new("indexes");
    report.put("writes", writes);
    let batch_len = options.batch.unwrap_or(1).max(1);
    Workplace::put_setting(&mut report, options, MEMORY_BYTES, batch_len);
    let work = Workplace::create("indexes", options, MEMORY_BYTES)?;
    let mut right = true;
    for (name, count) in [("with_none", 0), ("with_one", 1), ("with_four", 4)] {
        let mut rules = Rules::sorted::<u64, Vec<u8>>();
        for (index, rule) in &INDEXES[..count] {
            rules = rules.index(index, rule);
        }
        let people = work.store.table(name, rules)?;
        let written = write(&work, &people, (writes, batch_len), options, progress)?;
        report.put(name, written);
        if count == 1 {
            let (found, is_right) = find(&people, &newest(writes, options.seed), writes)?;
            work.store.bytes_table(name)?.compact()?;
            let (clean, is_still_right) = find(&people, &newest(writes, options.seed), writes)?;
            report.put("find", json!({ "half_stale": found, "clean": clean }));
            right &= is_right && is_still_right;
        }
    }
    let stats = work.store.stats();
    report.put("entries_read", stats.reads.index_entries);
    report.put("entries_stale", stats.reads.index_entries_stale);
    work.put_process(&mut report);
    report.verify(right);
    work.close(&mut report)?;
    Ok(report)
}

/// The key and the city of each write, in order.
fn draws(writes: u64, seed: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut chance = Chance::new(seed);
    let (keys, cities) = ((writes / 2).max(1), (writes / 2 / PER_CITY).max(1));
    (0..writes).map(move |_| (chance.next() % keys, chance.next() % cities))
}

/// What each key has at the end.
fn newest(writes: u64, seed: u64) -> std::collections::HashMap<u64, u64> {
    draws(writes, seed).collect()
}

fn person(key: u64, city: u64, out: &mut Vec<u8>) {
    use std::io::Write;
    out.clear();
    let age = (key ^ city) % 100;
    // Writing to memory does not fail.
    let _ = write!(
        out,
        r#"{{"name":"n{key}","city":"city{city:06}","age":{age},"mail":"m{key}@c{city}","tags":["t{}","u{}"]}}"#,
        age % 7,
        key % 11
    );
}

fn write(
    work: &Workplace,
    people: &People,
    (writes, batch_len): (u64, usize),
    options: &BenchOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Value> {
    let (mut phase, cpu, mut commits) = (Phase::start(writes), cpu_seconds(), Latencies::new());
    let (mut batch, mut value, mut done) = (work.store.batch(), Vec::new(), 0);
    let mut before = Instant::now();
    for (key, city) in draws(writes, options.seed) {
        person(key, city, &mut value);
        batch.put(people, &key, &value);
        done += 1;
        if batch.len() >= batch_len || done == writes {
            batch.commit(options.durability)?;
            let now = Instant::now();
            commits.note(now - before);
            before = now;
            if phase.reached(done, now) {
                progress(Progress { phase: "writing", done, total: writes });
            }
        }
    }
    let load = phase.end();
    work.store.settle()?;
    let cpu_s = cpu_since(cpu);
    let per_write = cpu_s.map(|s| round(s * 1e6 / writes as f64, 3));
    Ok(
        json!({ "load": load, "commits": commits.to_json(), "settled_cpu_s": cpu_s, "cpu_us_per_write": per_write }),
    )
}

/// Queries terms. Also returns whether each query found the right number of records.
fn find(people: &People, newest: &std::collections::HashMap<u64, u64>, writes: u64) -> Result<(Value, bool)> {
    let cities = (writes / 2 / PER_CITY).max(1);
    let (mut latencies, mut hits, mut right, cpu) = (Latencies::new(), 0, true, cpu_seconds());
    for number in 0..FINDS {
        let city = number.wrapping_mul(0x9e37_79b9) % cities;
        let before = Instant::now();
        let found = people.find("by_city")?.term(format!("city{city:06}")).count()?;
        latencies.note(before.elapsed());
        hits += found;
        right &= found == newest.values().filter(|has| **has == city).count() as u64;
    }
    let figures =
        json!({ "finds": FINDS, "hits": hits, "latencies": latencies.to_json(), "cpu_s": cpu_since(cpu) });
    Ok((figures, right))
}
