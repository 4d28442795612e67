//! Prints what the index of a hashed table costs for each key, in memory and time: while it grows,
//! is saved, is loaded, and answers look-ups.
//!
//! `cargo run --release -p folddb-hash --example index_cost [keys [lock]]`. Compare by ratio:
//! machines are noisy. Times are CPU times, except for the longest. Memory is what the process
//! holds in addition, as the system counts it; `peak` is the most that it has held.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::hint::black_box;
use std::time::Instant;

use folddb_base::{FileNumber, Result};
use folddb_hash::{
    Change, Checkpoint, CheckpointWriter, HashIndex, IndexOptions, Past, Point, SizeClass, Slot,
    false_candidates,
};
use folddb_host::Host;

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn point(key: u64) -> Point {
    Point::of_hash(mix(key + 1))
}

fn slot(key: u64) -> Slot {
    Slot::new(key + 1, SizeClass::of(4500)).expect("an address of 44 bits")
}

/// Kilobytes that the system counts for this process under a name.
fn status_kib(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0.0)
}

/// Nanoseconds for which this thread has had a processor; elapsed nanoseconds if the system does
/// not report that.
fn processor_nanos(since: Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let told = told.split(' ').next().and_then(|nanos| nanos.parse().ok());
    told.unwrap_or(since.elapsed().as_nanos() as f64)
}

/// Nanoseconds of a processor for each of `count`, and the longest single one, in microseconds that
/// passed.
fn timed(count: u64, mut work: impl FnMut(u64)) -> (f64, f64) {
    let mut longest = 0;
    let start = Instant::now();
    let began = processor_nanos(start);
    let mut before = 0;
    for at in 0..count {
        work(at);
        let now = start.elapsed().as_nanos();
        longest = longest.max(now - before);
        before = now;
    }
    ((processor_nanos(start) - began) / count as f64, longest as f64 / 1000.0)
}

/// Nanoseconds of a processor for each of `count`.
fn plain(count: u64, mut work: impl FnMut(u64)) -> f64 {
    let start = Instant::now();
    let began = processor_nanos(start);
    (0..count).for_each(&mut work);
    (processor_nanos(start) - began) / count as f64
}

fn fill(keys: u64, options: IndexOptions) -> Result<HashIndex> {
    let before = status_kib("VmRSS") * 1024.0;
    let index = HashIndex::new(options);
    let tenth = (keys / 10).max(1);
    for part in 0..10 {
        let (nanos, longest) = timed(tenth, |at| {
            let key = part * tenth + at;
            let inserted = index.change(point(key), Change::Insert(slot(key)), key + 1, Past::Forgotten);
            assert!(matches!(inserted, Ok(true)));
        });
        let facts = index.facts();
        let bytes = facts.memory_bytes as f64 / facts.keys as f64;
        println!(
            "  {:>11} keys  {nanos:5.0} ns a key, longest {longest:6.0} us; {} shards, {bytes:.2} bytes a key; \
             process {:.2}, peak {:.2}",
            facts.keys,
            facts.loaded,
            (status_kib("VmRSS") * 1024.0 - before) / facts.keys as f64,
            (status_kib("VmHWM") * 1024.0 - before) / facts.keys as f64,
        );
    }
    let keys = index.facts().keys as f64;
    println!(
        "  process: {:.2} bytes a key, peak {:.2}; locked {:.2}",
        (status_kib("VmRSS") * 1024.0 - before) / keys,
        (status_kib("VmHWM") * 1024.0 - before) / keys,
        index.facts().locked_bytes as f64 / keys,
    );
    Ok(index)
}

fn look_up(index: &HashIndex, keys: u64) {
    let mut slots = Vec::new();
    let (mut found, mut others) = (0u64, 0u64);
    let count = keys.min(5_000_000);
    let hit = plain(count, |at| {
        let key = mix(at) % keys;
        slots.clear();
        assert!(index.candidates(point(key), None, &mut slots).is_ok());
        found += u64::from(slots.contains(&slot(key)));
        others += slots.len() as u64 - 1;
    });
    assert_eq!(found, count, "every key is found");
    let absent = plain(count, |at| {
        slots.clear();
        assert!(index.candidates(point(keys + at), None, &mut slots).is_ok());
        others += black_box(slots.len() as u64);
    });
    println!(
        "  look-up {hit:.0} ns, absent {absent:.0} ns; {others} false candidates in {}, expected {:.1}",
        2 * count,
        2.0 * count as f64 * false_candidates(keys)
    );
}

fn save_and_load(index: &HashIndex, keys: u64) -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("000001.hash");
    let files = Host::real().files;
    let file = files.create(&path).expect("a new file");
    let mut writer = CheckpointWriter::new(file, &path, FileNumber(1), 0);
    let start = Instant::now();
    while index.save_step(&mut writer, keys)? {}
    let facts = writer.finish()?;
    println!(
        "  saved in {:.0} ms: {:.2} bytes a key",
        start.elapsed().as_millis(),
        facts.file_bytes as f64 / facts.keys as f64
    );
    let start = Instant::now();
    let checkpoint = Checkpoint::open(&*files, &path, FileNumber(1))?;
    let loaded = HashIndex::open(&checkpoint, IndexOptions::default());
    let opened = start.elapsed();
    let mut slots = Vec::new();
    let (each, longest) = timed(keys.min(100_000), |at| {
        slots.clear();
        assert!(loaded.candidates(point(mix(at) % keys), None, &mut slots).is_ok());
    });
    let facts = loaded.facts();
    println!(
        "  opened in {opened:?}; first look-ups {each:.0} ns, longest {longest:.0} us; {} of {} shards loaded",
        facts.loads,
        facts.loaded + facts.saved
    );
    Ok(())
}

/// Takes the hash as it comes, as the index does.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// The map of the standard library from hash to slot, for comparison. It doubles all at once, and
/// loses keys with equal hashes.
fn yardstick(keys: u64) {
    let mut map: HashMap<u64, u64, BuildHasherDefault<AsItIs>> = HashMap::default();
    let (nanos, longest) = timed(keys, |key| {
        map.insert(mix(key + 1), slot(key).bits());
    });
    let count = keys.min(5_000_000);
    let hit = plain(count, |at| {
        black_box(map.get(&mix(mix(at) % keys + 1)));
    });
    let bytes = map.capacity() as f64 * 8.0 / 7.0 * 17.0 / keys as f64;
    println!(
        "a map of hash to slot: insert {nanos:.0} ns, longest {longest:.0} us; look-up {hit:.0} ns; {bytes:.1} bytes a key"
    );
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let keys: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let options = IndexOptions { lock_in_memory: arguments.next().is_some() };
    println!("{keys} keys, one by one");
    let index = fill(keys, options)?;
    look_up(&index, keys);
    save_and_load(&index, keys)?;
    drop(index);
    yardstick(keys);
    Ok(())
}
