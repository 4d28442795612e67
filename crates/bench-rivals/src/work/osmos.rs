//! `osmos`: sums on keys by Zipf's law, written at full speed by one thread, while another reads a
//! key or a range every ten milliseconds, as in the bench of that name.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use folddb_bench::check::{Ascending, RowSum};
use folddb_bench::generate::{Chance, USER_KEY_BYTES, UserKey, ZipfWrites};
use folddb_bench::measure::Latencies;
use serde_json::json;

use super::child::Child;
use super::load::{Source, load};
use super::reads::Questions;
use crate::rival::{Meaning, Op, Rival, Sight, number};

const READ_PAUSE: Duration = Duration::from_millis(10);
/// One read in this many is a select over a range.
const SELECT_EVERY: u64 = 8;
const SELECT_ROWS: u64 = 100;
const WRITE_BYTES: u64 = USER_KEY_BYTES as u64 + 8;

pub(super) fn run(child: &mut Child<'_>) -> Result<()> {
    let (job, keys) = (child.job, child.job.key_count());
    child.put("keys", keys);
    child.open(Meaning::Sum)?;
    let writes = || Sums::new(ZipfWrites::new(job.seed, keys));
    let read = load_beside_reader(child, &mut writes())?;
    child.settle(job.rows * WRITE_BYTES)?;
    let sums = expected(ZipfWrites::new(job.seed, keys), job.rows, keys);
    child.put("reader", json!({ "gets": read.gets.to_json(), "selects": read.selects.to_json() }));
    child.judge(read.agrees_with(&sums));
    let questions = SumQuestions { sums };
    child.read_all(&questions, questions.sum(), &mut writes())
}

fn load_beside_reader(child: &mut Child<'_>, source: &mut Sums) -> Result<Read> {
    let (store, job, stop) = (child.store()?, child.job, AtomicBool::new(false));
    let (loaded, read) = std::thread::scope(|scope| {
        let of_reader = ZipfWrites::new(job.seed ^ 0x7265_6164, job.key_count());
        let reading = scope.spawn(|| read_until(store, of_reader, &stop));
        let loaded = store.writer().and_then(|mut writer| load(&mut *writer, source, job.rows, job.batch));
        stop.store(true, Ordering::Relaxed);
        (loaded, reading.join())
    });
    let loaded = loaded?;
    child.put_load(loaded);
    read.map_err(|_| anyhow!("the reader panicked"))?
}

/// What the reader saw.
struct Read {
    gets: Latencies,
    selects: Latencies,
    /// Keys and their sums, in the order of reading.
    seen: Vec<(u64, u64)>,
    are_selects_right: bool,
}

impl Read {
    /// Sums only grow, and none is larger than it is in the end.
    fn agrees_with(&self, sums: &[u64]) -> bool {
        let mut last = HashMap::new();
        let grow = self.seen.iter().all(|&(key, sum)| {
            let before = last.insert(key, sum).unwrap_or(0);
            before <= sum && sums.get(key as usize).is_some_and(|end| sum <= *end)
        });
        grow && self.are_selects_right
    }
}

fn read_until(store: &dyn Rival, mut source: ZipfWrites, stop: &AtomicBool) -> Result<Read> {
    let mut reader = store.reader(Sight::Fresh)?;
    let mut read =
        Read { gets: Latencies::new(), selects: Latencies::new(), seen: Vec::new(), are_selects_right: true };
    for count in 1u64.. {
        let key = source.next_key();
        let text = UserKey::new(key);
        let before = Instant::now();
        if count.is_multiple_of(SELECT_EVERY) {
            let mut ascending = Ascending::default();
            let mut take =
                |key: &[u8], _: &[u8]| user_number(key).into_iter().for_each(|key| ascending.next(key));
            reader.scan(Some(text.text().as_bytes()), SELECT_ROWS, &mut take)?;
            read.selects.note(before.elapsed());
            read.are_selects_right &= ascending.holds();
        } else {
            let mut sum = 0;
            reader.get(text.text().as_bytes(), &mut |found| sum = number(found.unwrap_or_default()))?;
            read.gets.note(before.elapsed());
            read.seen.push((key, sum));
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(READ_PAUSE);
    }
    Ok(read)
}

/// The sum of every key, from the generator alone.
fn expected(mut source: ZipfWrites, writes: u64, keys: u64) -> Vec<u64> {
    let mut sums = vec![0u64; keys as usize];
    for _ in 0..writes {
        let key = source.next_key();
        sums[key as usize] += source.next_operand();
    }
    sums
}

fn user_number(key: &[u8]) -> Option<u64> {
    UserKey::parse(std::str::from_utf8(key).ok()?)
}

struct SumQuestions {
    sums: Vec<u64>,
}

impl SumQuestions {
    /// What must be in the store.
    fn sum(&self) -> RowSum {
        let mut sum = RowSum::default();
        let written = self.sums.iter().enumerate().filter(|(_, sum)| **sum > 0);
        written.for_each(|(key, value)| sum.add(key as u64, *value));
        sum
    }
}

impl Questions for SumQuestions {
    fn hit(&self, chance: &mut Chance, key: &mut Vec<u8>, value: &mut Vec<u8>) {
        let start = chance.below(self.sums.len() as u64) as usize;
        let around = (start..self.sums.len()).chain(0..start);
        let number = around.into_iter().find(|&number| self.sums[number] > 0).unwrap_or(0);
        key.clear();
        key.extend_from_slice(UserKey::new(number as u64).text().as_bytes());
        value.clear();
        value.extend_from_slice(&self.sums[number].to_le_bytes());
    }

    fn miss(&self, chance: &mut Chance, key: &mut Vec<u8>) {
        let keys = self.sums.len() as u64;
        key.clear();
        key.extend_from_slice(UserKey::new(keys + chance.below(keys)).text().as_bytes());
    }

    fn may_become(&self, was: &[u8], found: &[u8]) -> bool {
        number(was) <= number(found)
    }

    fn numbers(&self, key: &[u8], value: &[u8]) -> Option<(u64, u64)> {
        Some((user_number(key)?, number(value)))
    }
}

struct Sums {
    writes: ZipfWrites,
    key: [u8; USER_KEY_BYTES],
    operand: [u8; 8],
}

impl Sums {
    fn new(writes: ZipfWrites) -> Sums {
        Sums { writes, key: [0; USER_KEY_BYTES], operand: [0; 8] }
    }
}

impl Source for Sums {
    #[inline]
    fn next(&mut self) -> Op<'_> {
        let key = UserKey::new(self.writes.next_key());
        self.key.copy_from_slice(key.text().as_bytes());
        self.operand = self.writes.next_operand().to_le_bytes();
        Op::Fold { key: &self.key, operand: &self.operand }
    }
}
