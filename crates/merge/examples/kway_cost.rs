//! Prints what the k-way stream and folding on top of it cost for each record, on columns of `u64`
//! in memory.
//!
//! `cargo run --release -p folddb-merge --example kway_cost [records]`

use std::sync::Arc;
use std::time::Instant;

use folddb_base::{Direction, OpKind, Record, RecordSink, RecordStream, Result};
use folddb_merge::{BottomRule, Budget, FoldStep, KWay, StepRules};
use folddb_rules::{Fold, FoldFailure, FoldRules, KeyOrder, Outcome};

/// Keys and values of eight bytes, as a columnar block gives them.
struct Columns {
    keys: Vec<u8>,
    values: Vec<u8>,
    kind: OpKind,
    seq: u64,
    at: usize,
}

impl RecordStream for Columns {
    #[inline]
    fn record(&self) -> Option<Record<'_>> {
        let key = self.keys.get(self.at..self.at + 8)?;
        let payload = self.values.get(self.at..self.at + 8)?;
        Some(Record { key, seq: self.seq, kind: self.kind, payload })
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

/// `k` sorted sources; their keys are drawn from `distinct` ones.
fn columns(records: usize, k: usize, kind: OpKind, distinct: u64) -> Vec<Columns> {
    let mut state = 7;
    let source = |rank: usize| {
        let mut key = || (random(&mut state) % distinct).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut keys: Vec<u64> = (0..records / k).map(|_| key()).collect();
        keys.sort_unstable();
        keys.dedup();
        let keys: Vec<u8> = keys.iter().flat_map(|key| key.to_be_bytes()).collect();
        Columns { values: keys.clone(), keys, kind, seq: (k - rank) as u64, at: 0 }
    };
    (0..k).map(source).collect()
}

fn kway(records: usize, k: usize, kind: OpKind, distinct: u64) -> KWay<Columns> {
    KWay::new(KeyOrder::Bytewise, Direction::Forward, 0, columns(records, k, kind, distinct))
}

/// Adds numbers of eight bytes.
struct Sum;

impl Fold for Sum {
    fn spec(&self) -> String {
        "sum".to_owned()
    }
    fn fold(&self, _: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).unwrap_or_default();
        out.extend_from_slice(&number(a).wrapping_add(number(b)).to_le_bytes());
        Ok(Outcome::Value)
    }
}

/// Reads each record, so that the compiler leaves none out.
#[derive(Default)]
struct Checksum(u64);

impl RecordSink for Checksum {
    #[inline]
    fn push(&mut self, record: Record<'_>) -> Result<()> {
        self.0 = self.0.wrapping_add(u64::from(record.key[7]) + u64::from(record.payload[0]));
        Ok(())
    }
}

/// Nanoseconds for each input record, in the best of three rounds.
fn best(mut work: impl FnMut() -> Result<(u64, u128)>) -> Result<f64> {
    let mut best = f64::MAX;
    for _ in 0..3 {
        let (records, nanos) = work()?;
        best = best.min(nanos as f64 / records as f64);
    }
    Ok(best)
}

fn merge_only(mut kway: KWay<Columns>) -> Result<(u64, u128)> {
    let start = Instant::now();
    let (mut records, mut sink) = (0, Checksum::default());
    while let Some(record) = kway.record() {
        records += 1;
        sink.push(record)?;
        kway.advance()?;
    }
    std::hint::black_box(sink.0);
    Ok((records, start.elapsed().as_nanos()))
}

fn merge_and_fold(kway: KWay<Columns>) -> Result<(u64, u128)> {
    let rules = StepRules {
        order: KeyOrder::Bytewise,
        fold: FoldRules::new(Arc::new(Sum)),
        boundaries: Vec::new(),
        range_deletes: Vec::new(),
        bottom: BottomRule::Never,
    };
    let start = Instant::now();
    let (mut step, mut sink) = (FoldStep::new(kway, rules), Checksum::default());
    step.step(Budget::UNBOUNDED, &mut sink)?;
    std::hint::black_box(sink.0);
    Ok((step.counts().records_in, start.elapsed().as_nanos()))
}

fn main() -> Result<()> {
    let records = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(4_000_000);
    let few = records as u64 / 4;
    println!("ns per record in, best of 3, {records} records of 8 + 8 bytes");
    println!("          k-way   step on top of it:  sets   folds   folds on few keys");
    for k in [1, 2, 4, 8, 16] {
        let plain = best(|| merge_only(kway(records, k, OpKind::Set, u64::MAX)))?;
        let sets = best(|| merge_and_fold(kway(records, k, OpKind::Set, u64::MAX)))?;
        let folds = best(|| merge_and_fold(kway(records, k, OpKind::Fold, u64::MAX)))?;
        let few = best(|| merge_and_fold(kway(records, k, OpKind::Fold, few)))?;
        println!("k = {k:2}:  {plain:6.1}  {sets:22.1}  {folds:6.1}  {few:18.1}");
    }
    Ok(())
}
