//! `more-than-ram`: objects of 4 to 20 KiB, each replaced fifteen times; together they are many
//! times larger than the memory: YDB's `more_than_ram2`. Dead values must not be kept, nor written
//! again and again.

use anyhow::Result;

use super::child::Child;
use super::objects::{Puts, Shelf, Versions};
use crate::rival::Meaning;

const KEY_BYTES: usize = 8;
const BYTES: (usize, usize) = (4 << 10, 20 << 10);

pub(super) fn run(child: &mut Child<'_>) -> Result<()> {
    let job = child.job;
    let keys = job.key_count().min(job.rows);
    child.put("keys", keys);
    let shelf = Shelf::new(job.seed, KEY_BYTES, BYTES.0, BYTES.1);
    child.open(Meaning::Objects)?;
    let mut puts = Puts::new(&shelf, keys);
    child.load(&mut puts)?;
    child.settle(puts.bytes)?;
    let versions = Versions::after(&shelf, job.rows, keys);
    child.put_space(versions.live_bytes())?;
    child.read_still(&versions, versions.sum())
}
