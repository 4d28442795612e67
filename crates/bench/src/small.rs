//! Two small benches of known problems of other stores: `append-one`, very many operands on one
//! key, and `drain`, a queue that has been emptied.

use std::time::Instant;

use folddb::{Durability, Result, Rules, Table};
use serde_json::json;

use crate::generate::{Chance, mix};
use crate::measure::{Latencies, Phase, round};
use crate::options::{BenchOptions, Progress};
use crate::report::Report;
use crate::workplace::Workplace;

const MEMORY_BYTES: usize = 64 << 20;
const APPENDS: f64 = 50_000.0;
const APPEND_BYTES: usize = 72;
const ITEMS: f64 = 100_000.0;
const SEEKS: usize = 100;

/// `append-one`: appends of 72 bytes to one key, then gets of it.
pub(crate) fn append_one(options: &BenchOptions, progress: &mut dyn FnMut(Progress)) -> Result<Report> {
    let appends = options.scaled(APPENDS);
    let mut report = Report::new("append-one");
    report.put("appends", appends);
    Workplace::put_setting(&mut report, options, MEMORY_BYTES, 1);
    let work = Workplace::create("append-one", options, MEMORY_BYTES)?;
    let table = work.store.table("log", Rules::sorted::<String, Vec<u8>>().fold("append"))?;

    let mut chance = Chance::new(options.seed);
    let mut expected = Vec::with_capacity(appends as usize * APPEND_BYTES);
    let (mut phase, mut commits) = (Phase::start(appends), Latencies::new());
    let mut before = Instant::now();
    for done in 1..=appends {
        let operand: [u8; APPEND_BYTES] = std::array::from_fn(|_| chance.next() as u8);
        table.fold("one", &operand)?;
        expected.extend_from_slice(&operand);
        let now = Instant::now();
        commits.note(now - before);
        before = now;
        if phase.reached(done, now) {
            progress(Progress { phase: "appending", done, total: appends });
        }
    }
    report.put("load", phase.end());
    report.put("commits", commits.to_json());
    let (first, first_right) = timed_get(&table, &expected)?;
    let (second, second_right) = timed_get(&table, &expected)?;
    work.store.flush()?;
    let (flushed, flushed_right) = timed_get(&table, &expected)?;
    report.put("get_ms", json!({ "first": first, "second": second, "after_flush": flushed }));
    work.put_written(&mut report, appends * (3 + APPEND_BYTES as u64));
    work.put_process(&mut report);
    report.verify(first_right && second_right && flushed_right);
    work.close(&mut report)?;
    Ok(report)
}

/// Milliseconds that a get took, and whether its answer was right.
fn timed_get(table: &Table<String, Vec<u8>>, expected: &[u8]) -> Result<(f64, bool)> {
    let before = Instant::now();
    let value = table.get("one")?;
    let took_ms = round(before.elapsed().as_secs_f64() * 1e3, 3);
    Ok((took_ms, value.as_deref() == Some(expected)))
}

/// `drain`: puts, then deletes of all of them, then seeks, compared with seeks in a table that was
/// always empty.
pub(crate) fn drain(options: &BenchOptions, progress: &mut dyn FnMut(Progress)) -> Result<Report> {
    let items = options.scaled(ITEMS);
    let mut report = Report::new("drain");
    report.put("items", items);
    let batch_len = options.batch.unwrap_or(1).max(1);
    Workplace::put_setting(&mut report, options, MEMORY_BYTES, batch_len);
    let work = Workplace::create("drain", options, MEMORY_BYTES)?;
    let queue = work.store.table("queue", Rules::sorted::<u64, u64>())?;
    let empty = work.store.table("empty", Rules::sorted::<u64, u64>())?;

    let mut batch = work.store.batch();
    for (name, deletes) in [("puts", false), ("deletes", true)] {
        progress(Progress { phase: name, done: 0, total: items });
        let mut phase = Phase::start(items);
        for item in 0..items {
            match deletes {
                false => batch.put(&queue, &item, &mix(item)),
                true => batch.delete(&queue, &item),
            };
            if batch.len() == batch_len {
                batch.commit(options.durability)?;
            }
            phase.reached(item + 1, Instant::now());
        }
        batch.commit(options.durability)?;
        report.put(name, phase.end());
    }
    let never = seeks(&empty)?;
    let drained = seeks(&queue)?;
    work.store.settle()?;
    let settled = seeks(&queue)?;
    report.put(
        "seeks",
        json!({ "of_an_empty_table": never.0.to_json(), "drained": drained.0.to_json(), "settled": settled.0.to_json() }),
    );
    work.put_written(&mut report, items * 24);
    work.put_process(&mut report);
    let alive = canary(&queue, options.durability)?;
    report.verify(never.1 && drained.1 && settled.1 && alive);
    work.close(&mut report)?;
    Ok(report)
}

/// Seeks to the first row. Also returns whether none was ever found.
fn seeks(table: &Table<u64, u64>) -> Result<(Latencies, bool)> {
    let (mut latencies, mut none) = (Latencies::new(), true);
    for _ in 0..SEEKS {
        let before = Instant::now();
        let first = table.scan().limit(1).into_iter().next().transpose()?;
        latencies.note(before.elapsed());
        none &= first.is_none();
    }
    Ok((latencies, none))
}

/// Whether a drained table takes a new item and shows it: a seek that finds nothing alone proves
/// little.
fn canary(table: &Table<u64, u64>, durability: Durability) -> Result<bool> {
    let table = table.clone().with_durability(durability);
    table.put(&7, &77)?;
    let rows: Vec<(u64, u64)> = table.scan().into_iter().collect::<Result<_>>()?;
    Ok(rows == [(7, 77)])
}
