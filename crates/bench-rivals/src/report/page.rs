//! The tables of docs/BENCHMARKS.md: figures that belong together share a line, so that a reader
//! sees a page and not seventy lines; the JSON beside the page has every figure.

use anyhow::{Context, Result};
use serde_json::Value;

use super::table::number;

/// A line of a page: its name, and the figures that it shows, as the table of a contest names them.
struct Line(&'static str, &'static [&'static str]);

/// What a page shows; a table has the lines of which its workload has a figure.
const LINES: &[Line] = &[
    Line("load, rows/s", &["load, rows/s"]),
    Line("load and settle, rows/s", &["load and settle, rows/s"]),
    Line("CPU of both, µs a row", &["load and settle, CPU µs/row"]),
    Line("puts / deletes, rows/s", &["puts, rows/s", "deletes, rows/s"]),
    Line("commit p50 / p99 / p99.9, µs", &["commit p50, µs", "commit p99, µs", "commit p99.9, µs"]),
    Line("slowest commit, µs", &["commit max, µs"]),
    Line("bytes written for each byte", &["bytes written per byte"]),
    Line("disk / peak anonymous memory, bytes", &["disk, bytes", "peak memory, bytes"]),
    Line("the reader's get, p50 / p99, µs", &["reader: get p50, µs", "reader: get p99, µs"]),
    Line("the reader's select of 100 rows, p50, µs", &["reader: select p50, µs"]),
    Line("warm get that hits, p50 / p99, µs", &["warm hit p50, µs", "warm hit p99, µs"]),
    Line("warm get that misses, p50 / p99, µs", &["warm miss p50, µs", "warm miss p99, µs"]),
    Line("cold get that hits, p50 / p99, µs", &["cold hit p50, µs", "cold hit p99, µs"]),
    Line("cold get that misses, p50 / p99, µs", &["cold miss p50, µs", "cold miss p99, µs"]),
    Line("scan, warm / cold, rows/s", &["warm scan, rows/s", "cold scan, rows/s"]),
    Line("get after `compact`, hit / miss p50, µs", &["optimized hit p50, µs", "optimized miss p50, µs"]),
    Line("gets/s / scan after `compact`, rows/s", &["optimized gets/s", "optimized scan, rows/s"]),
    Line(
        "gets next to a writer flat out, p50 / p99, µs",
        &["get beside writes p50, µs", "get beside writes p99, µs"],
    ),
    Line("… while that writer does, rows/s", &["writes beside gets, rows/s"]),
    Line(
        "first get of all appended / second / settled, ms",
        &["first get of all appended, ms", "second get, ms", "get after settling, ms"],
    ),
    Line(
        "seek in an empty table / after deletes / settled, p50, µs",
        &["seek in an empty store p50, µs", "seek when drained p50, µs", "seek when settled p50, µs"],
    ),
    Line("fill, rows/s", &["fill, rows/s"]),
    Line("ops/s", &["ops/s"]),
    Line("get p50 / p99 / p99.9, µs", &["get p50, µs", "get p99, µs", "get p99.9, µs"]),
    Line("put p50 / p99 / p99.9, µs", &["put p50, µs", "put p99, µs", "put p99.9, µs"]),
    Line("slowest put, µs", &["put max, µs"]),
    Line("heads/s, warm / cold", &["heads/s, warm", "heads/s, cold"]),
    Line("gets/s, cold", &["gets/s as cold"]),
    Line("disk for each live byte", &["disk per live byte"]),
    Line("cold gets/s by all threads", &["gets/s by all threads, cold"]),
    Line("… p50 / p99, µs", &["get p50 by all threads, cold, µs", "get p99 by all threads, cold, µs"]),
    Line("… read from disk for each, bytes", &["read from disk per get, bytes"]),
    Line("cold opening, ms", &["cold open before them, ms"]),
    Line("cold opening, ms / first get, µs", &["cold open, ms", "first get, µs"]),
];

/// The table of kept results, in Markdown: a column for each rival, then how many times better
/// FoldDB is than the best of the others, and, if older results are given, how many times it was.
pub(super) fn render(results: &Value, before: Option<&Value>) -> Result<String> {
    let figures = results["figures"].as_object().context("these results have no `figures`")?;
    let rivals: Vec<&str> = figures.keys().map(String::as_str).collect();
    let rounds = results["contest"]["repeat"].as_u64().unwrap_or(1);
    let first = if rounds == 1 { "one round".to_owned() } else { format!("median of {rounds} rounds") };
    let names = rivals.iter().map(|rival| title(rival).to_owned());
    let mut head: Vec<String> = [first].into_iter().chain(names).collect();
    head.push("FoldDB to the best".to_owned());
    head.extend(before.map(|_| "before".to_owned()));
    let mut page = vec![row(&head), format!("|{}", "---|".repeat(head.len()))];
    for Line(name, measures) in LINES {
        let shown = |rival: &&str| joined(measures, |measure| median(&figures[*rival], measure));
        let cells: Vec<String> = rivals.iter().map(shown).collect();
        if cells.iter().all(|cell| cell.chars().all(|sign| "-/ ".contains(sign))) {
            continue;
        }
        let ratios = |of: &Value| joined(measures, |measure| ratio(of, measure));
        let line: Vec<String> = [(*name).to_owned()].into_iter().chain(cells).collect();
        page.push(row(&[line, vec![ratios(results)], before.map(ratios).into_iter().collect()].concat()));
    }
    Ok(page.join("\n"))
}

fn row(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

fn joined(measures: &[&str], of: impl Fn(&str) -> Option<String>) -> String {
    let parts: Vec<String> = measures.iter().map(|measure| of(measure).unwrap_or("-".to_owned())).collect();
    parts.join(" / ")
}

fn median(figures: &Value, measure: &str) -> Option<String> {
    Some(number(figures[measure]["median"].as_f64()?))
}

/// Two digits that count from 0.1 on; a ratio of thousands says no more than that.
fn ratio(results: &Value, measure: &str) -> Option<String> {
    let ratio = results["folddb_to_best"][measure]["ratio"].as_f64()?;
    Some(if ratio < 10.0 { format!("{ratio:.2}x") } else { format!("{ratio:.0}x") })
}

/// The name of a store as people write it.
fn title(rival: &str) -> &str {
    match rival {
        "folddb" => "FoldDB",
        "folddb-hashed" => "FoldDB, hashed",
        "rocksdb" => "RocksDB",
        "rocksdb-universal" => "RocksDB universal",
        "rocksdb-merge" => "RocksDB merge",
        "rocksdb-merge-eager" => "RocksDB eager",
        "rocksdb-universal-merge" => "RocksDB universal merge",
        "rocksdb-blob" => "BlobDB",
        "leveldb" => "LevelDB",
        "fjall-separated" => "fjall, separated",
        "pebble" => "Pebble",
        "pebble-separated" => "Pebble, separated",
        "lmdb" => "LMDB",
        "berkeleydb" => "Berkeley DB",
        "tokyocabinet" => "Tokyo Cabinet",
        "badger" => "Badger",
        "files" => "a file each",
        other => other,
    }
}

#[cfg(test)]
#[path = "page/tests.rs"]
mod tests;
