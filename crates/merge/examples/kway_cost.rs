//! What the k-way stream, and folding on top of it, cost per record on columns of `u64` in memory.
//!
//! `cargo run --release -p folddb-merge --example kway_cost [records]`

use std::time::Instant;

use folddb_base::{Direction, OpKind, Record, RecordStream, Result};
use folddb_merge::KWay;
use folddb_rules::KeyOrder;

/// Keys and values of eight bytes, as a columnar block gives them.
struct Columns {
    keys: Vec<u8>,
    values: Vec<u8>,
    seq: u64,
    at: usize,
}

impl RecordStream for Columns {
    #[inline]
    fn record(&self) -> Option<Record<'_>> {
        let key = self.keys.get(self.at..self.at + 8)?;
        let payload = self.values.get(self.at..self.at + 8)?;
        Some(Record { key, seq: self.seq, kind: OpKind::Set, payload })
    }
    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.at = (self.at + 8).min(self.keys.len());
        Ok(())
    }
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn columns(records: usize, k: usize) -> Vec<Columns> {
    let mut state = 7;
    let source = |rank: usize| {
        let mut keys: Vec<u64> = (0..records / k).map(|_| random(&mut state)).collect();
        keys.sort_unstable();
        let keys: Vec<u8> = keys.iter().flat_map(|key| key.to_be_bytes()).collect();
        Columns { values: keys.clone(), keys, seq: (k - rank) as u64, at: 0 }
    };
    (0..k).map(source).collect()
}

fn main() -> Result<()> {
    let records = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(4_000_000);
    println!("ns per record, best of 3, {records} records of 8 + 8 bytes");
    for k in [1, 2, 4, 8, 16] {
        let mut best = f64::MAX;
        for _ in 0..3 {
            let mut kway = KWay::new(KeyOrder::Bytewise, Direction::Forward, 0, columns(records, k));
            let start = Instant::now();
            let (mut count, mut check) = (0u64, 0u64);
            while let Some(record) = kway.record() {
                count += 1;
                check = check.wrapping_add(u64::from(record.key[7]));
                kway.advance()?;
            }
            best = best.min(start.elapsed().as_nanos() as f64 / count as f64);
            std::hint::black_box(check);
        }
        println!("k = {k:2}: {best:5.1}");
    }
    Ok(())
}
