//! What it costs to fold, beside replacing: the same keys and numbers, once with `replace`, where
//! the last one stays, and once with each of several folds.
//!
//! `cargo run --release -p folddb-bench --example fold_cost -- ROWS KEYS MEMORY_BYTES [ROUNDS]
//! [BATCH]`
//!
//! Keys are drawn by Zipf's law, as in `osmos`. Each round writes all of them once for each fold,
//! until no background work is left, and begins with another fold. Prints the median over the
//! rounds: nanoseconds a row by the clock and on all processors, both with settling, and of a get;
//! each also in relation to `replace`. The whole final state is compared with that of a map.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use folddb::{BackgroundWork, Durability, Options, Result, Rules, Store, Table};
use folddb_bench::generate::{Chance, ZipfWrites};
use folddb_bench::process::cpu_seconds;

const FOLDS: [&str; 5] = ["replace", "first", "sum:u64", "min:u64", "max:u64"];
const GETS: u64 = 100_000;

/// Figures of one run, in the order of their names.
type Figures = [f64; 3];
const NAMES: [&str; 3] = ["clock, ns a row", "processors, ns a row", "get, ns"];

struct Work {
    rows: u64,
    keys: u64,
    memory: usize,
    batch: usize,
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let mut next = |default: u64| args.next().and_then(std::result::Result::ok).unwrap_or(default);
    let (rows, keys, memory, rounds, batch) =
        (next(2_000_000), next(2_000_000), next(64_000_000), next(3), next(1000));
    let work = Work { rows, keys, memory: memory as usize, batch: (batch as usize).max(1) };
    let mut all: Vec<Vec<Figures>> = vec![Vec::new(); FOLDS.len()];
    for round in 0..rounds.max(1) as usize {
        for turn in 0..FOLDS.len() {
            let place = (turn + round) % FOLDS.len();
            let dir = std::env::temp_dir().join(format!("fold_cost-{}", std::process::id()));
            let figures = run(&dir, FOLDS[place], &work);
            let _ = std::fs::remove_dir_all(&dir);
            all[place].push(figures?);
        }
    }
    for (name, number) in NAMES.iter().zip(0..) {
        let of = |place: usize| median(all[place].iter().map(|figures| figures[number]).collect());
        let base = of(0);
        let line: Vec<String> = (0..FOLDS.len())
            .map(|place| format!("{} {:.2} ({:.2}x)", FOLDS[place], of(place), of(place) / base))
            .collect();
        println!("{name}: {}", line.join(", "));
    }
    Ok(())
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn run(dir: &Path, fold: &str, work: &Work) -> Result<Figures> {
    let options = Options::default().memory_bytes(work.memory).background(BackgroundWork::Threads);
    let store = Store::create(dir, options)?;
    let table: Table<u64, u64> = store.table("numbers", Rules::sorted().fold(fold))?;
    let mut writes = ZipfWrites::new(1, work.keys);
    let (began, cpu) = (Instant::now(), cpu_seconds().unwrap_or(f64::NAN));
    let mut batch = store.batch();
    for _ in 0..work.rows {
        let (key, number) = (writes.next_key(), writes.next_operand());
        match fold {
            "replace" => batch.put(&table, &key, &number),
            _ => batch.fold(&table, &key, &number),
        };
        if batch.len() >= work.batch {
            batch.commit(Durability::Process)?;
        }
    }
    batch.commit(Durability::Process)?;
    store.settle()?;
    let per_row = 1e9 / work.rows as f64;
    let clock = began.elapsed().as_secs_f64() * per_row;
    let processors = (cpu_seconds().unwrap_or(f64::NAN) - cpu) * per_row;
    let mut chance = Chance::new(7);
    let began = Instant::now();
    for _ in 0..GETS {
        table.get(&chance.below(work.keys))?;
    }
    let get = began.elapsed().as_secs_f64() * 1e9 / GETS as f64;
    check(&table, fold, work)?;
    drop(table);
    store.close()?;
    Ok([clock, processors, get])
}

/// Compares all of the table with what a map has after the same writes.
fn check(table: &Table<u64, u64>, fold: &str, work: &Work) -> Result<()> {
    let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
    let mut writes = ZipfWrites::new(1, work.keys);
    for _ in 0..work.rows {
        let (key, number) = (writes.next_key(), writes.next_operand());
        let value = expected.entry(key);
        value
            .and_modify(|value| match fold {
                "replace" => *value = number,
                "sum:u64" => *value += number,
                "min:u64" => *value = number.min(*value),
                "max:u64" => *value = number.max(*value),
                _ => {}
            })
            .or_insert(number);
    }
    let mut rows = 0;
    for row in table.scan() {
        let (key, value) = row?;
        assert_eq!(expected.get(&key), Some(&value), "key {key} under `{fold}`");
        rows += 1;
    }
    assert_eq!(rows, expected.len(), "rows under `{fold}`");
    Ok(())
}
