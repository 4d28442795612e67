//! Numbered batches over two tables. The ops of batch `i` are known, so the state after the batches
//! 1 to n is known for every n. A store alone shows which n it holds, or that it holds no such
//! state.
//!
//! A batch sets its key of the log, in turn, to its number and some bytes that follow from it, and
//! adds its number to one of a few sums, under a long name. A lost, doubled, torn or misordered
//! batch shows. Both tables fill their memtables at about the same speed, so that now one is
//! flushed and now the other.

use std::collections::BTreeMap;

use folddb::folds::Counters;
use folddb::{Batch, Result, Rules, Store, Table};

use crate::chance::Seeded;

const LOG_KEYS: u64 = 512;
const SUM_KEYS: u64 = 7;

/// The two tables.
pub struct Numbered {
    log: Table<u64, Vec<u8>>,
    sums: Table<u64, Counters>,
}

impl Numbered {
    /// Opens the two tables, or creates them.
    ///
    /// # Errors
    /// As [`Store::table`].
    pub fn open(store: &Store) -> Result<Numbered> {
        let log = store.table("log", Rules::sorted::<u64, Vec<u8>>())?;
        Ok(Numbered { log, sums: store.table("sums", Rules::sorted::<u64, Counters>().fold("counters"))? })
    }

    /// Puts batch `i`, counted from 1, into a batch.
    pub fn fill(&self, batch: &mut Batch, i: u64) {
        batch.put(&self.log, &(i % LOG_KEYS), &log_value(i)).fold(&self.sums, &(i % SUM_KEYS), &operand(i));
    }

    /// The number of the last batch, given that the store holds exactly the batches 1 to n, each
    /// whole.
    ///
    /// # Errors
    /// Says what it holds instead, or why it cannot be read.
    pub fn last(&self) -> Result<u64, String> {
        self.rows().map_err(|error| format!("cannot read: {error:?}"))?.last()
    }

    /// Everything in the two tables.
    ///
    /// # Errors
    /// The first failed read.
    pub fn rows(&self) -> Result<NumberedRows> {
        let log = self.log.scan().into_iter().collect::<Result<_>>()?;
        let sums = self.sums.scan().into_iter().map(|row| row.map(|(key, sum)| (key, sum_of(key, &sum))));
        Ok(NumberedRows { log, sums: sums.collect::<Result<_>>()? })
    }
}

/// What the two tables hold.
pub struct NumberedRows {
    log: BTreeMap<u64, Vec<u8>>,
    sums: BTreeMap<u64, u64>,
}

impl NumberedRows {
    /// The number of the last batch, given that the store holds exactly the batches 1 to n, each
    /// whole.
    ///
    /// # Errors
    /// Says what it holds instead.
    pub fn last(&self) -> Result<u64, String> {
        let NumberedRows { log, sums } = self;
        let last = log.values().map(|value| number(value)).max().unwrap_or(0);
        let first = last.saturating_sub(LOG_KEYS - 1).max(1);
        let wanted_log: BTreeMap<u64, Vec<u8>> =
            (first..=last).map(|i| (i % LOG_KEYS, log_value(i))).collect();
        if let Some(key) = (0..LOG_KEYS).find(|key| log.get(key) != wanted_log.get(key)) {
            let show = |value: Option<&Vec<u8>>| value.map(|value| (number(value), value.len()));
            return Err(format!(
                "the last batch is {last}, but key {key} of the log has number and length {:?} and not {:?}",
                show(log.get(&key)),
                show(wanted_log.get(&key))
            ));
        }
        let wanted_sums = sums_after(last);
        if *sums != wanted_sums {
            return Err(format!(
                "the last batch is {last}, but the sums are {sums:?} and not {wanted_sums:?}"
            ));
        }
        Ok(last)
    }
}

fn log_value(i: u64) -> Vec<u8> {
    let mut chance = Seeded::new(i);
    let mut value = i.to_le_bytes().to_vec();
    value.resize(8 + chance.below(1500) as usize, chance.next_u64() as u8);
    value
}

/// The long name of the sum of a key.
fn name(key: u64) -> Vec<u8> {
    vec![b'a' + key as u8; 700]
}

fn operand(i: u64) -> Counters {
    Counters::of(name(i % SUM_KEYS), i as i64)
}

/// The sum of a key; where there is another counter, too, a sum that no batch gives.
fn sum_of(key: u64, counters: &Counters) -> u64 {
    if counters.len() == 1 { counters.get(&name(key)) as u64 } else { u64::MAX }
}

fn number(value: &[u8]) -> u64 {
    value.get(..8).and_then(|head| head.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// The sums after the batches 1 to `last`: of first, first + 7, first + 14, ...
fn sums_after(last: u64) -> BTreeMap<u64, u64> {
    let sum = |key: u64| {
        let first = if key == 0 { SUM_KEYS } else { key };
        let count = (last.checked_sub(first)?) / SUM_KEYS + 1;
        Some((key, count * first + SUM_KEYS * (count * (count - 1) / 2)))
    };
    (0..SUM_KEYS).filter_map(sum).collect()
}

#[cfg(test)]
#[path = "numbered/tests.rs"]
mod tests;
