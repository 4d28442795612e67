//! `indexed`: records of 112 bytes with `--indexes` numbers that they are found by, each record
//! written twice on average. FoldDB declares the indexes and writes blindly. If a store has no
//! indexes, the program keeps them: it reads the old record, deletes the entries that no longer
//! hold, and puts the new ones with the record, in one batch. Then terms are queried.

use std::collections::BTreeMap;

use anyhow::Result;
use folddb_bench::generate::{Chance, mix};
use folddb_bench::measure::{Latencies, Phase};
use serde_json::json;

use super::child::Child;
use super::commits::Commits;
use super::load::Loaded;
use crate::rival::{Meaning, Op, Reader, Rival, Sight, Writer};

const VALUE_BYTES: usize = 112;
const KEY_BYTES: usize = 8;

/// The approximate number of records for each term.
const PER_TERM: u64 = 100;

/// How many terms are queried.
const FINDS: u64 = 1000;

/// First bytes of index entries that a program keeps: above the first bytes of all records.
const ENTRIES: u8 = 0xf0;

pub(super) fn run(child: &mut Child<'_>) -> Result<()> {
    let (job, keys) = (child.job, child.job.key_count());
    child.put("keys", keys);
    child.put("indexes", job.indexes);
    child.open(Meaning::Indexed(job.indexes))?;
    let records = Records { keys, seed: job.seed };
    let loaded = write(child.store()?, &records, job.rows, job.indexes)?;
    child.put_load(loaded);
    child.settle(job.rows * (KEY_BYTES + VALUE_BYTES) as u64)?;
    if job.indexes > 0 {
        let (found, right) = find(child.store()?, &records, job.rows)?;
        child.put("finds", found);
        child.judge(right);
    }
    Ok(())
}

/// What is written: a function of the number of the write.
struct Records {
    keys: u64,
    seed: u64,
}

impl Records {
    fn key(&self, write: u64) -> u64 {
        mix(write ^ self.seed.rotate_left(17)) % self.keys
    }

    fn terms(&self) -> u64 {
        (self.keys / PER_TERM).max(1)
    }

    fn value(&self, write: u64, value: &mut Vec<u8>) {
        value.clear();
        for place in 0..VALUE_BYTES as u64 / 4 {
            let number = mix(write.wrapping_mul(31).wrapping_add(place) ^ self.seed);
            let number = if place < 4 { number % self.terms() } else { number };
            value.extend_from_slice(&(number as u32).to_le_bytes());
        }
    }
}

fn term_of(value: &[u8], index: u8) -> u32 {
    let at = usize::from(index) * 4;
    value.get(at..).and_then(|rest| rest.first_chunk::<4>()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn write(store: &dyn Rival, records: &Records, rows: u64, indexes: u8) -> Result<Loaded> {
    let reads_first = indexes > 0 && !store.keeps_indexes();
    let (mut writer, mut reader) = (store.writer()?, store.reader(Sight::Fresh)?);
    let (mut phase, mut commits) = (Phase::start(rows), Commits::start());
    let mut value = Vec::with_capacity(VALUE_BYTES);
    for number in 0..rows {
        let key = records.key(number).to_be_bytes();
        records.value(number, &mut value);
        match reads_first {
            true => write_with_entries(&mut *writer, &mut *reader, &key, &value, indexes)?,
            false => writer.apply(Op::Put { key: &key, value: &value })?,
        }
        let now = commits.note(1);
        phase.reached(number + 1, now);
    }
    Ok(Loaded::new(phase, commits))
}

fn write_with_entries(
    writer: &mut dyn Writer,
    reader: &mut dyn Reader,
    key: &[u8],
    value: &[u8],
    indexes: u8,
) -> Result<()> {
    let mut before = None;
    reader.get(key, &mut |found| before = found.map(<[u8]>::to_vec))?;
    for index in 0..indexes {
        let (was, is) = (before.as_deref().map(|before| term_of(before, index)), term_of(value, index));
        if let Some(was) = was.filter(|was| *was != is) {
            writer.collect(Op::Delete { key: &entry(index, was, key) })?;
        }
        if was != Some(is) {
            writer.collect(Op::Put { key: &entry(index, is, key), value: &[] })?;
        }
    }
    writer.collect(Op::Put { key, value })?;
    writer.commit()
}

fn entry(index: u8, term: u32, key: &[u8]) -> Vec<u8> {
    let mut entry = vec![ENTRIES + index];
    entry.extend_from_slice(&term.to_be_bytes());
    entry.extend_from_slice(key);
    entry
}

/// Queries terms. Also returns whether as many records were found as the generator says.
fn find(store: &dyn Rival, records: &Records, rows: u64) -> Result<(serde_json::Value, bool)> {
    let mut newest = BTreeMap::new();
    newest.extend((0..rows).map(|number| (records.key(number), number)));
    let (mut expected, mut value) = (vec![0_u64; records.terms() as usize], Vec::new());
    for number in newest.values() {
        records.value(*number, &mut value);
        expected[term_of(&value, 0) as usize] += 1;
    }
    let mut reader = store.reader(Sight::Still)?;
    let (mut chance, mut latencies) = (Chance::new(records.seed), Latencies::new());
    let (mut found_all, mut right) = (0, true);
    for _ in 0..FINDS {
        let term = chance.below(records.terms()) as u32;
        let before = std::time::Instant::now();
        let found = match store.keeps_indexes() {
            true => store.find(term)?,
            false => entries_of(&mut *reader, term)?,
        };
        latencies.note(before.elapsed());
        found_all += found;
        right &= found == expected[term as usize];
    }
    Ok((json!({ "count": FINDS, "records": found_all, "latency": latencies.to_json() }), right))
}

/// How many entries of index 0 have a term. Reads them in pieces; mostly one piece is enough.
fn entries_of(reader: &mut dyn Reader, term: u32) -> Result<u64> {
    let prefix = entry(0, term, &[]);
    let (mut from, mut count) = (prefix.clone(), 0);
    loop {
        let (mut last, mut rows) = (Vec::new(), 0);
        reader.scan(Some(&from), 2 * PER_TERM, &mut |key, _| {
            rows += 1;
            count += u64::from(key.starts_with(&prefix));
            last = key.to_vec();
        })?;
        if rows < 2 * PER_TERM || !last.starts_with(&prefix) {
            return Ok(count);
        }
        from = last;
        from.push(0);
    }
}
