//! Prints what a part costs for several kinds of records: bytes per record, and nanoseconds to
//! write, read in order and find one.
//!
//! `cargo run --release -p folddb-run --example part_cost -- [directory] [records]`

use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use folddb_base::checksum::key_hash;
use folddb_base::{Direction, FileNumber, OpKind, Record, RecordSink, RecordStream, Result};
use folddb_host::{Files, Host};
use folddb_rules::KeyOrder;
use folddb_run::{Part, PartWriter, ReadMode, Shared, WriteOptions, verify};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let count = args.next().and_then(|count| count.parse().ok()).unwrap_or(1_000_000u64);
    let files = Host::real().files;

    let mut keys: Vec<u64> = (1..=count).map(mix).collect();
    keys.sort_unstable();
    let pairs: Vec<_> =
        keys.iter().map(|key| (key.to_be_bytes().to_vec(), small(*key).to_le_bytes().to_vec())).collect();
    for (filter_bits, keep_seqs) in [(10, false), (0, false), (10, true)] {
        let options = WriteOptions { filter_bits, keep_seqs, ..WriteOptions::default() };
        measure(
            &format!("u64 to u64 (filter {filter_bits} bits, seqs {keep_seqs})"),
            &files,
            &dir,
            &pairs,
            options,
        )?;
    }
    let mut texts: Vec<_> = (0..count)
        .map(|n| {
            (
                format!("carrier{:02}/{:012}", mix(n) % 50, mix(n) >> 30).into_bytes(),
                vec![b'v'; (mix(n) % 30) as usize],
            )
        })
        .collect();
    texts.sort();
    texts.dedup_by(|a, b| a.0 == b.0);
    measure(
        "text to 0-30 bytes",
        &files,
        &dir,
        &texts,
        WriteOptions { keep_seqs: false, ..WriteOptions::default() },
    )
}

/// A pseudo-random number (the finisher of SplitMix64).
fn mix(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

fn small(key: u64) -> u64 {
    mix(key) & 0x7ff_ffff
}

/// Measures the time that this thread was on a processor, if Linux reports it, so that other work
/// does not matter.
struct Watch {
    started: Instant,
    on_cpu: Option<u64>,
}

impl Watch {
    fn start() -> Watch {
        Watch { started: Instant::now(), on_cpu: Watch::on_cpu() }
    }

    fn on_cpu() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split(' ').next()?.parse().ok()
    }

    fn ns_per(&self, count: usize) -> f64 {
        let elapsed = match (self.on_cpu, Watch::on_cpu()) {
            (Some(from), Some(to)) => to - from,
            _ => self.started.elapsed().as_nanos() as u64,
        };
        elapsed as f64 / count as f64
    }
}

type Pair = (Vec<u8>, Vec<u8>);

fn measure(
    name: &str,
    files: &Arc<dyn Files>,
    dir: &Path,
    pairs: &[Pair],
    options: WriteOptions,
) -> Result<()> {
    let path = dir.join(format!("part_cost.{}.part", std::process::id()));
    let _ = files.remove(&path);
    let fail = |error| folddb_base::Error::io("create", &path, error);

    let started = Watch::start();
    let mut writer = PartWriter::new(files.create(&path).map_err(fail)?, &path, FileNumber(1), options);
    for (seq, (key, payload)) in pairs.iter().enumerate() {
        let seq = 1 + mix(seq as u64) % (1 << 20);
        writer.push(Record { key, seq, kind: OpKind::Set, payload })?;
    }
    let push = started.ns_per(pairs.len());
    let facts = writer.finish()?;
    let synced = started.ns_per(pairs.len());
    println!("{name}: {:.2} bytes a record", facts.file_bytes as f64 / facts.records as f64);
    println!("  write {push:6.1} ns, with sync {synced:.1} ns");

    let shared = Shared::new(512 << 20, 16);
    let part = Part::open(files, &path, FileNumber(1), &KeyOrder::Bytewise, &shared)?;
    for (direction, mode) in [
        (Direction::Forward, ReadMode::ReadAhead),
        (Direction::Reversed, ReadMode::ReadAhead),
        (Direction::Forward, ReadMode::Cached),
        (Direction::Forward, ReadMode::Cached),
    ] {
        let started = Watch::start();
        let mut cursor = part.cursor(direction, mode, None);
        cursor.seek_start()?;
        let mut sum = 0u64;
        while let Some(record) = cursor.record() {
            sum = sum.wrapping_add(record.key.len() as u64 + record.seq + record.payload.len() as u64);
            cursor.advance()?;
        }
        black_box(sum);
        println!("  walk  {:6.1} ns, {direction:?} {mode:?}", started.ns_per(pairs.len()));
    }

    let gets = 300_000.min(pairs.len());
    for (what, absent) in [("present", 0u8), ("absent", 1)] {
        let wanted: Vec<Vec<u8>> = (0..gets as u64)
            .map(|n| {
                let mut key = pairs[(mix(n) % pairs.len() as u64) as usize].0.clone();
                if let Some(last) = key.last_mut() {
                    *last ^= absent;
                }
                key
            })
            .collect();
        let started = Watch::start();
        let mut found = 0;
        for key in &wanted {
            let flow = part.get(key, key_hash(key), u64::MAX, &mut |record| {
                black_box(record.payload);
                found += 1;
                Ok(ControlFlow::Break(()))
            })?;
            black_box(flow.is_break());
        }
        println!("  get   {:6.1} ns, {what} ({found} found), cached", started.ns_per(gets));
    }
    let uncached = Shared::new(1 << 20, 16);
    let cold = Part::open(files, &path, FileNumber(1), &KeyOrder::Bytewise, &uncached)?;
    let started = Watch::start();
    for n in 0..20_000u64 {
        let key = &pairs[(mix(n) % pairs.len() as u64) as usize].0;
        let _ = cold.get(key, key_hash(key), u64::MAX, &mut |_| Ok(ControlFlow::Break(())))?;
    }
    println!("  get   {:6.1} ns, present, blocks from the page cache", started.ns_per(20_000));
    let started = Watch::start();
    verify(&part)?;
    println!("  verify {:5.1} ns", started.ns_per(pairs.len()));
    files.remove(&path).map_err(fail)
}
