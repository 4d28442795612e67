//! Known problems of other stores: `append-one`, very many operands on one key, and `drain`, a
//! queue that has been emptied. As in the benches of these names.

use std::time::Instant;

use anyhow::Result;
use folddb_bench::check::RowSum;
use folddb_bench::generate::{Chance, mix};
use folddb_bench::measure::{Latencies, round};
use serde_json::json;

use super::child::Child;
use super::load::{Source, load};
use crate::rival::{Meaning, Op, Rival, Sight, number};

const APPEND_BYTES: usize = 72;
const ONE: &[u8] = b"one";
const SEEKS: usize = 100;

/// `append-one`: appends of 72 bytes to one key, then gets of it.
pub(super) fn append_one(child: &mut Child<'_>) -> Result<()> {
    child.open(Meaning::Append)?;
    let rows = child.job.rows;
    let mut appends =
        Appends { chance: Chance::new(child.job.seed), operand: [0; APPEND_BYTES], written: Vec::new() };
    child.load(&mut appends)?;
    let expected = appends.written;
    let (first, _) = timed_get(child)?;
    let (second, _) = timed_get(child)?;
    child.settle(rows * (ONE.len() + APPEND_BYTES) as u64)?;
    let (after_flush, found) = timed_get(child)?;
    child.put("get_ms", json!({ "first": first, "second": second, "after_flush": after_flush }));
    child.check(found, words(&expected));
    Ok(())
}

/// Milliseconds that a get took, and what it found.
fn timed_get(child: &Child<'_>) -> Result<(f64, Option<RowSum>)> {
    let mut reader = child.store()?.reader(Sight::Fresh)?;
    let (mut value, before) = (None, Instant::now());
    reader.get(ONE, &mut |found| value = found.map(<[u8]>::to_vec))?;
    let took_ms = round(before.elapsed().as_secs_f64() * 1e3, 3);
    Ok((took_ms, value.map(|value| words(&value))))
}

/// A checksum of bytes that depends on their order: over words with their places.
fn words(bytes: &[u8]) -> RowSum {
    let mut sum = RowSum::default();
    for (place, word) in bytes.chunks(8).enumerate() {
        let mut padded = [0; 8];
        padded[..word.len()].copy_from_slice(word);
        sum.add(place as u64, u64::from_le_bytes(padded));
    }
    sum
}

struct Appends {
    chance: Chance,
    operand: [u8; APPEND_BYTES],
    written: Vec<u8>,
}

impl Source for Appends {
    fn next(&mut self) -> Op<'_> {
        self.operand = std::array::from_fn(|_| self.chance.next() as u8);
        self.written.extend_from_slice(&self.operand);
        Op::Fold { key: ONE, operand: &self.operand }
    }
}

/// `drain`: puts, then deletes of all of them, then seeks, compared with seeks in a store that was
/// always empty.
pub(super) fn drain(child: &mut Child<'_>) -> Result<()> {
    let empty = child.open_beside("empty")?;
    let of_an_empty_table = seeks(&*empty)?;
    empty.close()?;
    child.open(Meaning::Numbers)?;
    let (rows, batch) = (child.job.rows, child.job.batch);
    for (name, deletes) in [("puts", false), ("deletes", true)] {
        let mut items = Items { next: 0, deletes, key: [0; 8], value: [0; 8] };
        let loaded = load(&mut *child.store()?.writer()?, &mut items, rows, batch)?;
        child.put(name, loaded.phase);
        child.put("commits", loaded.commits);
    }
    let drained = seeks(child.store()?)?;
    child.settle(rows * 24)?;
    let settled = seeks(child.store()?)?;
    child.put(
        "seeks",
        json!({
            "of_an_empty_table": of_an_empty_table.0.to_json(),
            "drained": drained.0.to_json(),
            "settled": settled.0.to_json(),
        }),
    );
    child.judge(of_an_empty_table.1 && drained.1 && settled.1);
    canary(child)
}

/// Seeks to the first row. Also returns whether none was ever found.
fn seeks(store: &dyn Rival) -> Result<(Latencies, bool)> {
    let (mut latencies, mut none) = (Latencies::new(), true);
    let mut reader = store.reader(Sight::Fresh)?;
    for _ in 0..SEEKS {
        let before = Instant::now();
        reader.scan(None, 1, &mut |_, _| none = false)?;
        latencies.note(before.elapsed());
    }
    Ok((latencies, none))
}

/// A seek that finds nothing proves little: so a new item is put into the drained store, and must
/// be found.
fn canary(child: &mut Child<'_>) -> Result<()> {
    let op = Op::Put { key: &7u64.to_be_bytes(), value: &77u64.to_le_bytes() };
    child.store()?.writer()?.apply(op)?;
    let (mut found, mut expected) = (RowSum::default(), RowSum::default());
    let take = &mut |key: &[u8], value: &[u8]| {
        found.add(key.try_into().map(u64::from_be_bytes).unwrap_or(0), number(value));
    };
    child.store()?.reader(Sight::Fresh)?.scan(None, u64::MAX, take)?;
    expected.add(7, 77);
    child.check(Some(found), expected);
    Ok(())
}

struct Items {
    next: u64,
    deletes: bool,
    key: [u8; 8],
    value: [u8; 8],
}

impl Source for Items {
    fn next(&mut self) -> Op<'_> {
        (self.key, self.value) = (self.next.to_be_bytes(), mix(self.next).to_le_bytes());
        self.next += 1;
        match self.deletes {
            false => Op::Put { key: &self.key, value: &self.value },
            true => Op::Delete { key: &self.key },
        }
    }
}
