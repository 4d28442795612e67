//! The cost of reading: gets that hit, gets that miss, short scans and a full one, of a store that
//! is kept.
//!
//! `cargo run --release -p folddb-bench --example read_cost -- DIRECTORY ROWS MEMORY_BYTES
//! [settled|compacted|hashed|sums] [ROUNDS] [PHASES] [BLOCK_BYTES]`
//!
//! The first call writes the store; later ones only read, so that two builds can be compared on the
//! same files, also with other memory. Each phase prints the median and the 99th percentile of a
//! call, and the pieces and bytes that it read from files. Phases are letters: `h` hits, `m`
//! misses, `x` both in turn, `g` hits 64 at once, `t` 64 hits one by one and 64 others at once, in
//! turn, `u` the same with misses, `e` heads, `s` scans of 100 rows, `a` one of all, `b` one of all
//! backward; and of a store that was just opened, with nothing of it in memory, `c` hits one by
//! one, `G` 64 at once.
//!
//! `sums` are those of `osmos`, single folds on a quarter as many keys by Zipf's law, settled: hot
//! keys are in every run. Only the scans `s`, `a` and `b` read them, and `r`, an aggregate.

use std::path::PathBuf;
use std::time::Instant;

use folddb::{BytesTable, Options, Result, Rules, Store, Table};
use folddb_bench::cold::forget_files;
use folddb_bench::generate::{UserKey, ZipfWrites};

const CALLS: u64 = 100_000;
/// How many keys are asked for at once, and how often a store is read cold, with so many keys each
/// time that few of them share a block.
const AT_ONCE: u64 = 64;
const COLD_OPENINGS: u64 = 10;
const COLD_CALLS: u64 = 4;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().unwrap_or_else(|| "read_cost.folddb".to_owned()));
    let rows: u64 = args.next().and_then(|rows| rows.parse().ok()).unwrap_or(1_000_000);
    let memory: usize = args.next().and_then(|bytes| bytes.parse().ok()).unwrap_or(64 << 20);
    let shape = args.next().unwrap_or_else(|| "settled".to_owned());
    let rounds: u64 = args.next().and_then(|rounds| rounds.parse().ok()).unwrap_or(2);
    let phases = args.next().unwrap_or_else(|| "hmsa".to_owned());

    if shape == "sums" {
        return read_sums(&dir, rows, memory, rounds, &phases);
    }
    let block_bytes: u32 = args.next().and_then(|bytes| bytes.parse().ok()).unwrap_or(4 << 10);
    let rules = match &*shape {
        "hashed" => Rules::hashed::<u64, u64>(),
        _ => Rules::sorted::<u64, u64>().block_bytes(block_bytes),
    };
    if !dir.exists() {
        write(&dir, rows, memory, shape == "compacted", rules.clone())?;
    }
    let open = || -> Result<(Store, Table<u64, u64>)> {
        let store = Store::open(&dir, Options::default().memory_bytes(memory))?;
        let table = store.table("numbers", rules.clone())?;
        Ok((store, table))
    };
    let before = Instant::now();
    let (store, table) = open()?;
    println!(
        "open {:.1} ms, {} runs",
        before.elapsed().as_secs_f64() * 1e3,
        store.bytes_table("numbers")?.stats()?.runs.len()
    );
    let mut chance = 1;
    for _ in 0..rounds {
        for phase in phases.chars().filter(|phase| !"cG".contains(*phase)) {
            measure(&store, &table, rows, phase, &mut chance)?;
        }
    }
    drop(table);
    store.close()?;
    for _ in 0..rounds {
        for phase in phases.chars().filter(|phase| "cG".contains(*phase)) {
            let mut took_ns = Vec::new();
            for _ in 0..COLD_OPENINGS {
                assert!(forget_files(&dir)?, "the system keeps the files in memory");
                let (store, table) = open()?;
                for _ in 0..COLD_CALLS {
                    let asked = spread(&mut chance, rows);
                    let started = Instant::now();
                    let right = read_together(&table, &asked, phase == 'G')?;
                    took_ns.push(started.elapsed().as_nanos() as u64 / AT_ONCE);
                    assert!(right, "a read gave a wrong answer");
                }
                drop(table);
                store.close()?;
            }
            took_ns.sort_unstable();
            let (mean, p50) =
                (took_ns.iter().sum::<u64>() / took_ns.len() as u64, took_ns[took_ns.len() / 2]);
            println!("{phase}: mean {:.1} p50 {:.1} us a key", mean as f64 / 1e3, p50 as f64 / 1e3);
        }
    }
    Ok(())
}

/// A row at random, and others at equal distances from it.
fn spread(chance: &mut u64, rows: u64) -> Vec<u64> {
    *chance = chance.wrapping_add(1);
    let row = ((u128::from(mix(!*chance)) * u128::from(rows)) >> 64) as u64;
    (0..AT_ONCE).map(|more| (row + more * (rows / AT_ONCE)) % rows).collect()
}

/// Whether the values of these rows are right, read at once or one by one.
fn read_together(table: &Table<u64, u64>, rows: &[u64], at_once: bool) -> Result<bool> {
    let keys: Vec<u64> = rows.iter().map(|row| mix(*row)).collect();
    let found = match at_once {
        true => table.get_many(&keys)?,
        false => keys.iter().map(|key| table.get(key)).collect::<Result<_>>()?,
    };
    Ok(found.into_iter().eq(rows.iter().map(|row| Some(*row))))
}

fn write(dir: &PathBuf, rows: u64, memory: usize, compacted: bool, rules: Rules<u64, u64>) -> Result<()> {
    let store = Store::create(dir, Options::default().memory_bytes(memory))?;
    let table = store.table("numbers", rules)?;
    let mut batch = store.batch();
    for row in 0..rows {
        batch.put(&table, &mix(row), &row);
        if batch.len() == 1000 {
            batch.commit(folddb::Durability::Process)?;
        }
    }
    batch.commit(folddb::Durability::Process)?;
    store.settle()?;
    if compacted {
        store.bytes_table("numbers")?.compact()?;
    }
    store.close()
}

fn measure(store: &Store, table: &Table<u64, u64>, rows: u64, phase: char, chance: &mut u64) -> Result<()> {
    let before = store.stats();
    let calls = match phase {
        's' => CALLS / 10,
        'g' => CALLS / AT_ONCE,
        _ => CALLS,
    };
    let mut took_ns = Vec::with_capacity(calls as usize);
    if "tu".contains(phase) {
        return compare_at_once(table, rows, phase, chance);
    }
    if "ab".contains(phase) {
        return scan_all(table.as_bytes(), phase).map(drop);
    }
    for call in 0..calls {
        *chance = chance.wrapping_add(1);
        let row = ((u128::from(mix(!*chance)) * u128::from(rows)) >> 64) as u64;
        let started = Instant::now();
        let right = match phase {
            's' => {
                table
                    .scan()
                    .from(&mix(row))
                    .limit(100)
                    .into_iter()
                    .try_fold(0, |n, row| row.map(|_| n + 1))?
                    > 0
            }
            'g' => read_together(table, &spread(chance, rows), true)?,
            'e' => table.head(&mix(row))?.is_some_and(|head| head.size_bytes == 8),
            'm' => table.get(&mix(rows + row))?.is_none(),
            'x' if call % 2 == 1 => table.get(&mix(rows + row))?.is_none(),
            _ => table.get(&mix(row))? == Some(row),
        };
        took_ns.push(started.elapsed().as_nanos() as u64);
        assert!(right, "a read gave a wrong answer");
    }
    let after = store.stats();
    println!(
        "{phase}: {}; pieces {:.2}, bytes {:.0} a call",
        latencies(took_ns),
        (after.reads.pieces - before.reads.pieces) as f64 / calls as f64,
        (after.reads.bytes - before.reads.bytes) as f64 / calls as f64,
    );
    Ok(())
}

/// Gets of 64 keys one by one, and of 64 others at once, in turn.
fn compare_at_once(table: &Table<u64, u64>, rows: u64, phase: char, chance: &mut u64) -> Result<()> {
    let mut took_ns = [Vec::new(), Vec::new()];
    for call in 0..2 * CALLS / AT_ONCE {
        let asked = spread(chance, rows);
        let at_once = call % 2 == 1;
        let started = Instant::now();
        let right = match phase {
            't' => read_together(table, &asked, at_once)?,
            _ => miss_together(table, &asked, rows, at_once)?,
        };
        took_ns[usize::from(at_once)].push(started.elapsed().as_nanos() as u64 / AT_ONCE);
        assert!(right, "a read gave a wrong answer");
    }
    let [one_by_one, at_once] = took_ns;
    let median = |took_ns: &[u64]| {
        let mut took_ns = took_ns.to_vec();
        took_ns.sort_unstable();
        took_ns[took_ns.len() / 2] as f64
    };
    println!("{phase}: {:.2}x at once, a key:", median(&one_by_one) / median(&at_once));
    println!("    one by one {}\n    at once    {}", latencies(one_by_one), latencies(at_once));
    Ok(())
}

/// Whether keys that are not there are not found, at once or one by one.
fn miss_together(table: &Table<u64, u64>, places: &[u64], rows: u64, at_once: bool) -> Result<bool> {
    let keys: Vec<u64> = places.iter().map(|place| mix(rows + place)).collect();
    let found = match at_once {
        true => table.get_many(&keys)?,
        false => keys.iter().map(|key| table.get(key)).collect::<Result<_>>()?,
    };
    Ok(found.iter().all(Option::is_none))
}

fn latencies(mut took_ns: Vec<u64>) -> String {
    let mean = took_ns.iter().sum::<u64>() as f64 / took_ns.len() as f64;
    took_ns.sort_unstable();
    let at = |q: f64| took_ns[(took_ns.len() as f64 * q) as usize] as f64 / 1e3;
    format!("mean {:.2} p50 {:.2} p99 {:.1} us", mean / 1e3, at(0.5), at(0.99))
}

/// Scans all rows, forward or backward, and returns what their values add up to.
fn scan_all(table: &BytesTable, phase: char) -> Result<u64> {
    let started = Instant::now();
    let scan = if phase == 'b' { table.scan().reverse() } else { table.scan() };
    let (mut rows, mut count, mut sum) = (scan.rows()?, 0u64, 0u64);
    while let Some((_, value)) = rows.next_row()? {
        count += 1;
        sum = sum.wrapping_add(number_of(value));
    }
    let took = started.elapsed().as_secs_f64();
    println!("{phase}: {:.2} M rows/s ({count} rows, sum {sum})", count as f64 / took / 1e6);
    Ok(sum)
}

/// The last eight bytes of a value as a number; 0 if it is shorter.
fn number_of(value: &[u8]) -> u64 {
    value.last_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Writes `sums` sums on a quarter as many keys, where there is no store yet, and scans them.
fn read_sums(dir: &PathBuf, sums: u64, memory: usize, rounds: u64, phases: &str) -> Result<()> {
    let (exists, keys) = (dir.exists(), (sums / 4).max(1));
    let options = Options::default().memory_bytes(memory);
    let store = if exists { Store::open(dir, options)? } else { Store::create(dir, options)? };
    let table = store.table("sums", Rules::sorted::<String, u64>().fold("sum:u64"))?;
    let (mut writes, mut expected) = (ZipfWrites::new(1, keys), 0);
    for _ in 0..sums {
        let (key, number) = (UserKey::new(writes.next_key()), writes.next_operand());
        expected += number;
        if !exists {
            table.fold(key.text(), &number)?;
        }
    }
    store.settle()?;
    let table = table.as_bytes().clone();
    let shape: Vec<String> = table.stats()?.runs.iter().map(|run| run.records().to_string()).collect();
    println!("{} runs, newest first, of {} records", shape.len(), shape.join(", "));
    let mut places = ZipfWrites::new(2, keys);
    for phase in (0..rounds).flat_map(|_| phases.chars()) {
        match phase {
            's' => select_sums(&table, &mut places)?,
            'r' => {
                let started = Instant::now();
                let found = table.scan().aggregate()?;
                let sum = found.value.as_deref().map_or(0, number_of);
                let took = started.elapsed().as_secs_f64();
                println!("r: {:.2} M rows/s (sum {sum})", found.rows as f64 / took / 1e6);
                assert_eq!(sum, expected, "an aggregate");
            }
            _ => assert_eq!(scan_all(&table, phase)?, expected, "the sum of a scan"),
        }
    }
    store.close()
}

/// Scans of 100 rows, from keys by Zipf's law on.
fn select_sums(table: &BytesTable, places: &mut ZipfWrites) -> Result<()> {
    let mut took_ns = Vec::new();
    for _ in 0..CALLS / 10 {
        let key = UserKey::new(places.next_key());
        let started = Instant::now();
        let mut rows = table.scan().from(key.text().as_bytes()).limit(100).rows()?;
        while rows.next_row()?.is_some() {}
        took_ns.push(started.elapsed().as_nanos() as u64);
    }
    println!("s: {}", latencies(took_ns));
    Ok(())
}

/// A pseudo-random number (the finisher of SplitMix64), different for each.
fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}
