//! `commit`: values of 100 bytes, each commit synced, by one or several threads.

use std::time::Instant;

use anyhow::{Result, anyhow};
use folddb_bench::check::RowSum;
use folddb_bench::generate::{Chance, RandomRows};
use folddb_bench::measure::{Latencies, Phase};

use super::child::Child;
use crate::rival::{Durability, Meaning, Op, Rival, Sight};

const VALUE_BYTES: usize = 100;

pub(super) fn run(child: &mut Child<'_>) -> Result<()> {
    child.setup.durability = Durability::Sync;
    child.open(Meaning::Bytes)?;
    let (job, threads) = (child.job, child.job.threads.max(1));
    let rows = RandomRows::new(job.seed);
    let phase = Phase::start(job.rows);
    let store = child.store()?;
    let latencies = std::thread::scope(|scope| -> Result<Latencies> {
        let writing: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || write(store, rows, (thread..job.rows).step_by(threads as usize)))
            })
            .collect();
        let mut all = Latencies::new();
        for thread in writing {
            all.absorb(&thread.join().map_err(|_| anyhow!("a writer panicked"))??);
        }
        Ok(all)
    })?;
    child.put("load", phase.end());
    child.put("commits", latencies.to_json());
    let (found, expected) = (found(child.store()?)?, expected(rows, job.rows));
    child.check(found, expected);
    Ok(())
}

/// Writes the rows of some indexes, one by one.
fn write(store: &dyn Rival, rows: RandomRows, indexes: impl Iterator<Item = u64>) -> Result<Latencies> {
    let (mut writer, mut latencies) = (store.writer()?, Latencies::new());
    for index in indexes {
        let key = rows.key(index);
        let value = value(key);
        let before = Instant::now();
        writer.apply(Op::Put { key: &key.to_be_bytes(), value: &value })?;
        latencies.note(before.elapsed());
    }
    Ok(latencies)
}

fn value(key: u64) -> [u8; VALUE_BYTES] {
    let mut chance = Chance::new(key);
    std::array::from_fn(|_| chance.next() as u8)
}

/// The keys in the store; `None` if a value does not belong to its key.
fn found(store: &dyn Rival) -> Result<Option<RowSum>> {
    let (mut sum, mut right) = (RowSum::default(), true);
    let take = &mut |key: &[u8], found: &[u8]| {
        let key = key.try_into().map(u64::from_be_bytes).unwrap_or(0);
        right &= found == value(key);
        sum.add(key, 0);
    };
    store.reader(Sight::Still)?.scan(None, u64::MAX, take)?;
    Ok(right.then_some(sum))
}

fn expected(rows: RandomRows, count: u64) -> RowSum {
    let mut sum = RowSum::default();
    (0..count).for_each(|index| sum.add(rows.key(index), 0));
    sum
}
