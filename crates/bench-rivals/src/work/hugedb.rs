//! `hugedb`: random pairs of numbers, as in the bench of that name; and `open`, which opens what
//! such a load has left.

use std::time::Instant;

use anyhow::Result;
use folddb_bench::check::RowSum;
use folddb_bench::generate::{Chance, RandomRows};
use folddb_bench::measure::round;
use serde_json::json;

use super::child::Child;
use super::load::Source;
use super::reads::{self, Questions};
use crate::rival::{Meaning, Op, Sight, number};

const ROW_BYTES: u64 = 16;

pub(super) fn run(child: &mut Child<'_>) -> Result<()> {
    let pairs = Pairs { rows: RandomRows::new(child.job.seed), count: child.job.rows };
    child.open(Meaning::Numbers)?;
    child.load(&mut pairs.from(0))?;
    child.settle(pairs.count * ROW_BYTES)?;
    // Misses ask for the indexes after the last row: new rows begin after them.
    child.read_all(&pairs, pairs.sum(), &mut pairs.from(2 * pairs.count))
}

pub(super) fn open(child: &mut Child<'_>) -> Result<()> {
    let pairs = Pairs { rows: RandomRows::new(child.job.seed), count: child.job.rows };
    child.open(Meaning::Numbers)?;
    child.load(&mut pairs.from(0))?;
    child.settle(pairs.count * ROW_BYTES)?;
    let open_ms = child.reopen_cold()?;
    let (mut key, mut value) = (Vec::new(), Vec::new());
    pairs.hit(&mut Chance::new(child.job.seed), &mut key, &mut value);
    let mut is_right = false;
    let before = Instant::now();
    child
        .store()?
        .reader(Sight::Still)?
        .get(&key, &mut |found| is_right = found == Some(value.as_slice()))?;
    let first_get_us = round(before.elapsed().as_secs_f64() * 1e6, 1);
    child.put("open", json!({ "open_ms": open_ms, "first_get_us": first_get_us }));
    child.judge(is_right);
    let (_, found) = reads::scan(&mut *child.store()?.reader(Sight::Still)?, &pairs, true)?;
    child.check(found, pairs.sum());
    Ok(())
}

/// The rows of a seed: big-endian keys, so that bytes order as numbers, and little-endian values.
struct Pairs {
    rows: RandomRows,
    count: u64,
}

impl Pairs {
    /// The rows from an index on.
    fn from(&self, index: u64) -> PairSource {
        PairSource { rows: self.rows, index, key: [0; 8], value: [0; 8] }
    }

    /// What must be in the store.
    fn sum(&self) -> RowSum {
        let mut sum = RowSum::default();
        for index in 0..self.count {
            let key = self.rows.key(index);
            sum.add(key, self.rows.value(key));
        }
        sum
    }
}

impl Questions for Pairs {
    fn hit(&self, chance: &mut Chance, key: &mut Vec<u8>, value: &mut Vec<u8>) {
        let number = self.rows.key(chance.below(self.count));
        replace(key, &number.to_be_bytes());
        replace(value, &self.rows.value(number).to_le_bytes());
    }

    fn miss(&self, chance: &mut Chance, key: &mut Vec<u8>) {
        replace(key, &self.rows.key(self.count + chance.below(self.count)).to_be_bytes());
    }

    fn numbers(&self, key: &[u8], value: &[u8]) -> Option<(u64, u64)> {
        let key = key.try_into().ok().map(u64::from_be_bytes)?;
        (value.len() == 8).then(|| (key, number(value)))
    }
}

fn replace(buffer: &mut Vec<u8>, bytes: &[u8]) {
    buffer.clear();
    buffer.extend_from_slice(bytes);
}

struct PairSource {
    rows: RandomRows,
    index: u64,
    key: [u8; 8],
    value: [u8; 8],
}

impl Source for PairSource {
    #[inline]
    fn next(&mut self) -> Op<'_> {
        let key = self.rows.key(self.index);
        self.index += 1;
        (self.key, self.value) = (key.to_be_bytes(), self.rows.value(key).to_le_bytes());
        Op::Put { key: &self.key, value: &self.value }
    }
}
