//! What compression saves and costs on the lines of a file.
//!
//! `cargo run --release -p folddb-bench --features zstd --example compression -- FILE...`
//!
//! Each line is the value of its number, so each file makes a table of rows like its own. Each way
//! of compressing, with blocks of 4, 8 and 32 KiB, is written once from the beginning to a
//! compacted table, in turns over three rounds; the medians are printed: bytes on the disk for each
//! byte of the lines, and processor time of writing and compacting a row, of scanning one, and of a
//! get of a key from anywhere, with a cache of blocks that holds a part of them. Everything that is
//! read is compared.

use std::path::Path;

use folddb::table_rules::Compression;
use folddb::{BackgroundWork, Durability, Options, Result, Rules, Store, Table};
use folddb_bench::generate::Chance;
use folddb_bench::process::cpu_seconds;

const ROUNDS: usize = 3;
const SCANS: usize = 10;
const GETS: u64 = 20_000;
const MEMORY_BYTES: usize = 16_000_000;
const NAMES: [&str; 4] = ["bytes a byte", "write, ns a row", "scan, ns a row", "get, ns"];
type Figures = [f64; 4];

/// How the blocks above the bottom and at the bottom are compressed, and how long they are.
#[derive(Clone, Copy)]
struct Way {
    above: Compression,
    bottom: Compression,
    block_bytes: u32,
}

fn ways() -> Vec<Way> {
    use Compression::{Lz4, None, Zstd};
    let pairs = [(None, None), (Lz4, Lz4), (None, Zstd), (Lz4, Zstd), (Zstd, Zstd)];
    let of = |block_bytes| pairs.map(|(above, bottom)| Way { above, bottom, block_bytes });
    [of(4 << 10), of(8 << 10), of(32 << 10)].concat()
}

fn main() -> Result<()> {
    for file in std::env::args().skip(1) {
        let text = std::fs::read(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        println!("\n{file}: {} lines, {} bytes", lines.len(), text.len());
        println!("| above | bottom | block | {} |\n|---|---|---|---|---|---|---|", NAMES.join(" | "));
        let ways = ways();
        let mut all: Vec<Vec<Figures>> = vec![Vec::new(); ways.len()];
        for round in 0..ROUNDS {
            for turn in 0..ways.len() {
                let place = (turn + round) % ways.len();
                let dir = std::env::temp_dir().join(format!("compression-{}", std::process::id()));
                let figures = run(&dir, ways[place], &lines);
                let _ = std::fs::remove_dir_all(&dir);
                all[place].push(figures?);
            }
        }
        for (way, figures) in ways.iter().zip(&all) {
            let of = |at: usize| median(figures.iter().map(|figures| figures[at]).collect());
            let (above, bottom, kib) = (way.above, way.bottom, way.block_bytes >> 10);
            println!(
                "| {above} | {bottom} | {kib} KiB | {:.3} | {:.0} | {:.0} | {:.0} |",
                of(0),
                of(1),
                of(2),
                of(3)
            );
        }
    }
    Ok(())
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn cpu() -> f64 {
    cpu_seconds().unwrap_or(f64::NAN)
}

fn run(dir: &Path, way: Way, lines: &[&[u8]]) -> Result<Figures> {
    let options = Options::default().memory_bytes(MEMORY_BYTES).background(BackgroundWork::Threads);
    let store = Store::create(dir, options)?;
    let rules = Rules::sorted::<u64, Vec<u8>>().compression(way.above).block_bytes(way.block_bytes);
    let table = store.table("lines", rules.bottom_compression(Some(way.bottom)))?;
    let raw: usize = lines.iter().map(|line| line.len() + 1).sum();
    let per_row = 1e9 / lines.len() as f64;
    let began = cpu();
    write(&store, &table, lines)?;
    let write = (cpu() - began) * per_row;
    let disk_bytes = table.stats()?.disk_bytes as f64 / raw as f64;
    let began = cpu();
    (0..SCANS).try_for_each(|_| check_scan(&table, lines))?;
    let scan = (cpu() - began) * per_row / SCANS as f64;
    let mut chance = Chance::new(7);
    let began = cpu();
    for _ in 0..GETS {
        let key = chance.below(lines.len() as u64);
        assert!(table.get(&key)?.as_deref() == Some(lines[key as usize]), "key {key}");
    }
    let get = (cpu() - began) * 1e9 / GETS as f64;
    drop(table);
    store.close()?;
    Ok([disk_bytes, write, scan, get])
}

/// All rows are the lines, in order.
fn check_scan(table: &Table<u64, Vec<u8>>, lines: &[&[u8]]) -> Result<()> {
    let mut number = 0;
    for row in table.scan() {
        let (key, value) = row?;
        assert!(key == number && value == lines[number as usize], "row {number}");
        number += 1;
    }
    assert_eq!(number, lines.len() as u64);
    Ok(())
}

/// Writes all lines, in an order of its own, and makes one run of them.
fn write(store: &Store, table: &Table<u64, Vec<u8>>, lines: &[&[u8]]) -> Result<()> {
    let count = lines.len();
    // Far from any divisor of the count, so that each run has keys from everywhere.
    let step = (count * 382 / 1000..).find(|step| gcd(*step, count) == 1).unwrap_or(1);
    let mut batch = store.batch();
    for turn in 0..count {
        let number = turn * step % count;
        batch.put(table, &(number as u64), &lines[number].to_vec());
        if batch.len() >= 1000 {
            batch.commit(Durability::Process)?;
        }
    }
    batch.commit(Durability::Process)?;
    table.compact()?;
    store.settle()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
