//! Prints how long it takes to push, find, merge and stream a record of the memtable.
//!
//! `cargo run --release -p folddb-memtable --example push_cost [records [name]]`. Compare ratios,
//! not times: other work on the machine changes the times.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use folddb_base::{OpKind, Record, RecordStream, Seq};
use folddb_memtable::{Memtable, MemtableLimits, ReadAt};
use folddb_rules::{Fold, FoldFailure, FoldRules, KeyOrder, Outcome};

struct Sum;

impl Fold for Sum {
    fn spec(&self) -> String {
        "sum".to_owned()
    }
    fn fold(
        &self,
        _: &[u8],
        earlier: &[u8],
        later: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, FoldFailure> {
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).unwrap_or(0);
        out.extend_from_slice(&number(earlier).wrapping_add(number(later)).to_le_bytes());
        Ok(Outcome::Value)
    }
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Nanoseconds for each of `count`, in the best of some rounds.
fn best(rounds: usize, count: u64, mut work: impl FnMut()) -> f64 {
    let round = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_nanos() as f64 / count as f64
    };
    (0..rounds).map(round).fold(f64::INFINITY, f64::min)
}

fn filled(records: u64, per_batch: u64, kind: OpKind, key: &dyn Fn(u64, &mut Vec<u8>)) -> Memtable {
    let rules = Arc::new(FoldRules::new(Arc::new(Sum)));
    let memtable = Memtable::new(KeyOrder::Bytewise, rules, MemtableLimits::default());
    let mut buffer = Vec::new();
    let mut seq: Seq = 0;
    while seq < records {
        let boundaries = [seq];
        let mut writer = memtable.apply();
        for _ in 0..per_batch {
            seq += 1;
            buffer.clear();
            key(seq, &mut buffer);
            writer.push(Record { key: &buffer, seq, kind, payload: &seq.to_le_bytes() }, &boundaries);
        }
    }
    memtable
}

fn measure(name: &str, records: u64, kind: OpKind, key: &dyn Fn(u64, &mut Vec<u8>)) {
    let mut buffer = Vec::new();
    let keys_alone = best(5, records, || {
        for seq in 0..records {
            buffer.clear();
            key(seq, &mut buffer);
            black_box(&buffer);
        }
    });
    let batched = best(5, records, || drop(black_box(filled(records, 1000, kind, key)))) - keys_alone;
    let single = best(3, records, || drop(black_box(filled(records, 1, kind, key)))) - keys_alone;
    let memtable = filled(records, 1000, kind, key);
    let held = memtable.records();
    let gets = records.min(20_000);
    let get = |memtable: &Memtable, from: u64| {
        let mut buffer = Vec::new();
        best(3, gets, || {
            for seq in 0..gets {
                buffer.clear();
                key(mix(seq) % records + from, &mut buffer);
                memtable.get(&buffer, ReadAt::Seq(Seq::MAX), |record| {
                    black_box(record.payload);
                    ControlFlow::Continue(())
                });
            }
        })
    };
    let stream = |memtable: &Memtable| {
        best(3, held, || {
            let mut stream = memtable.stream();
            while let Some(record) = stream.record() {
                black_box(record);
                let _ = stream.advance();
            }
        })
    };
    let (chunks, hit, miss, streamed) =
        (memtable.chunks(), get(&memtable, 1), get(&memtable, records * 2), stream(&memtable));
    let bytes = memtable.bytes() as f64 / held as f64;
    memtable.freeze(&[records]);
    let start = Instant::now();
    while memtable.merge_step(&[records]) {}
    let merged = start.elapsed().as_nanos() as f64 / held as f64;
    println!("{name}: {records} records, {held} held, {bytes:.1} bytes each");
    println!("  push        {batched:6.1} ns in batches of 1000, {single:.1} one by one");
    println!("  {chunks:3} chunks  get {hit:.0} ns, absent {miss:.0} ns; stream {streamed:.1} ns a record");
    println!("  merge steps {merged:6.1} ns a record in all");
    let read = || {
        let (hit, miss, streamed) = (get(&memtable, 1), get(&memtable, records * 2), stream(&memtable));
        let chunks = memtable.chunks();
        println!(
            "  {chunks:3} chunks  get {hit:.0} ns, absent {miss:.0} ns; stream {streamed:.1} ns a record"
        );
    };
    read();
    let start = Instant::now();
    memtable.merge_whole(&[records]);
    println!("  whole merge {:6.1} ns a record", start.elapsed().as_nanos() as f64 / held as f64);
    read();
}

/// What sorting alone costs on this machine now: pairs of numbers, without keys, filters and locks.
/// The other numbers are compared with it.
fn yardstick() -> f64 {
    best(5, 1_000_000, || {
        let chunk = |number: u64| {
            let mut pairs: Vec<(u64, u64)> = (0..4096).map(|at| (mix(number * 4096 + at), at)).collect();
            pairs.sort_unstable();
            pairs
        };
        drop(black_box((0..244).map(chunk).collect::<Vec<_>>()));
    })
}

fn main() {
    println!("yardstick: pairs of u64 appended and sorted by 4096: {:.1} ns", yardstick());
    let records: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let only = std::env::args().nth(2).unwrap_or_default();
    let measure = |name: &str, records, kind, key: &dyn Fn(u64, &mut Vec<u8>)| {
        if name.contains(&only) {
            measure(name, records, kind, key);
        }
    };
    measure("random u64 keys, set", records, OpKind::Set, &|seq, out| {
        out.extend_from_slice(&mix(seq).to_be_bytes());
    });
    measure("ascending u64 keys, set", records, OpKind::Set, &|seq, out| {
        out.extend_from_slice(&seq.to_be_bytes());
    });
    // Roughly a Zipf distribution: the logarithm of the rank is uniform.
    measure("skewed text keys, fold", records, OpKind::Fold, &|seq, out| {
        let uniform = (mix(seq) >> 11) as f64 / (1u64 << 53) as f64;
        let rank = (uniform * (10_000_000f64).ln()).exp() as u64;
        out.extend_from_slice(b"user/");
        let digits = mix(rank) % 10_000_000_000;
        (0..10).rev().for_each(|place| out.push(b'0' + (digits / 10u64.pow(place) % 10) as u8));
    });
}
