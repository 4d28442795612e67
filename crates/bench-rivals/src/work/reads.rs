//! The phases that only read: gets that hit and gets that miss, timed singly, and a scan of all.

use std::time::{Duration, Instant};

use anyhow::Result;
use folddb_bench::check::{Ascending, RowSum};
use folddb_bench::generate::Chance;
use folddb_bench::measure::{Latencies, per_second, round};
use serde_json::{Value, json};

use crate::rival::Reader;

/// Gets of a phase; half of them hit.
pub(super) const GETS: u64 = 100_000;

/// What is read from a store, and the right answers.
pub(super) trait Questions: Sync {
    /// A key that exists, with its value.
    fn hit(&self, chance: &mut Chance, key: &mut Vec<u8>, value: &mut Vec<u8>);

    /// A key that does not exist.
    fn miss(&self, chance: &mut Chance, key: &mut Vec<u8>);

    /// Whether a found value is right while others write. By default it must be unchanged.
    fn may_become(&self, was: &[u8], found: &[u8]) -> bool {
        was == found
    }

    /// A row as two numbers, for the checksum; `None` if it is not a row of the workload.
    fn numbers(&self, key: &[u8], value: &[u8]) -> Option<(u64, u64)>;
}

/// The results of a read phase.
pub(super) struct Found {
    pub(super) figures: Value,
    pub(super) right: bool,
}

/// Gets, half of them hits, in turn. Generating a key is not timed.
pub(super) fn gets(
    reader: &mut dyn Reader,
    questions: &dyn Questions,
    count: u64,
    seed: u64,
) -> Result<Found> {
    let mut chance = Chance::new(seed ^ 0x6e75_6d62_6572_7321);
    let (mut hits, mut misses) = (Latencies::new(), Latencies::new());
    let (mut key, mut value, mut right, mut whole) = (Vec::new(), Vec::new(), true, Duration::ZERO);
    for index in 0..count {
        let is_hit = index % 2 == 0;
        match is_hit {
            true => questions.hit(&mut chance, &mut key, &mut value),
            false => questions.miss(&mut chance, &mut key),
        }
        let mut is_right = false;
        let before = Instant::now();
        reader.get(&key, &mut |found| is_right = found == is_hit.then_some(value.as_slice()))?;
        let took = before.elapsed();
        (if is_hit { &mut hits } else { &mut misses }).note(took);
        whole += took;
        right &= is_right;
    }
    let figures = json!({
        "hits": hits.to_json(), "misses": misses.to_json(), "gets_per_s": per_second(count, whole),
    });
    Ok(Found { figures, right })
}

/// A scan of all rows, with their checksum; `None` instead of it if a row does not belong to the
/// workload, or keys did not ascend although the store `is_ordered`.
pub(super) fn scan(
    reader: &mut dyn Reader,
    questions: &dyn Questions,
    is_ordered: bool,
) -> Result<(Value, Option<RowSum>)> {
    let (mut sum, mut ascending, mut strange) = (RowSum::default(), Ascending::default(), 0u64);
    let before = Instant::now();
    reader.scan(None, u64::MAX, &mut |key, value| match questions.numbers(key, value) {
        Some((key, value)) => {
            ascending.next(key);
            sum.add(key, value);
        }
        None => strange += 1,
    })?;
    let took = before.elapsed();
    let figures =
        json!({ "seconds": round(took.as_secs_f64(), 3), "rows_per_s": per_second(sum.rows, took) });
    Ok((figures, ((ascending.holds() || !is_ordered) && strange == 0).then_some(sum)))
}
