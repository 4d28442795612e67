//! HEAD compared with GET: the size of a value, without the value if the store can do that. There
//! are as many heads of random objects as gets of whole ones, each time with nothing of the store
//! in memory at first.

use std::time::Instant;

use anyhow::Result;
use folddb_bench::generate::Chance;
use folddb_bench::measure::{Latencies, per_second, round};
use serde_json::{Value, json};

use super::child::Child;
use super::files;
use super::objects::Versions;
use super::reads::Questions;
use crate::rival::{Reader, Sight};

/// No more than a third of the objects, so that few are read twice.
const ASKED_MAX: u64 = 100_000;

/// Heads, cold and then warm; then gets, cold.
pub(super) fn heads_beside_gets(child: &mut Child<'_>, versions: &Versions<'_>) -> Result<()> {
    child.reopen_cold()?;
    let cold = ask(child, versions, head)?;
    let warm = ask(child, versions, head)?;
    child.reopen_cold()?;
    let gets = ask(child, versions, get)?;
    let ratio = cold["per_s"].as_f64().unwrap_or(0.0) / gets["per_s"].as_f64().unwrap_or(1.0).max(1.0);
    child.put(
        "heads",
        json!({ "warm": warm, "cold": cold, "cold_gets": gets, "cold_to_cold_gets": round(ratio, 2) }),
    );
    Ok(())
}

/// Whether what a store says of a key agrees with the value.
type Question = fn(&mut dyn Reader, &[u8], &[u8]) -> Result<bool>;

fn head(reader: &mut dyn Reader, key: &[u8], value: &[u8]) -> Result<bool> {
    Ok(reader.size_bytes(key)? == Some(value.len() as u64))
}

fn get(reader: &mut dyn Reader, key: &[u8], value: &[u8]) -> Result<bool> {
    let mut is_right = false;
    reader.get(key, &mut |found| is_right = found == Some(value))?;
    Ok(is_right)
}

fn ask(child: &mut Child<'_>, versions: &Versions<'_>, question: Question) -> Result<Value> {
    let count = ASKED_MAX.min(versions.last.len() as u64 / 3).max(1);
    let (mut chance, mut latencies, mut right) = (Chance::new(child.job.seed), Latencies::new(), true);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let mut took = std::time::Duration::ZERO;
    let read_before = files::read_bytes();
    {
        let mut reader = child.store()?.reader(Sight::Still)?;
        for _ in 0..count {
            versions.hit(&mut chance, &mut key, &mut value);
            let before = Instant::now();
            right &= question(&mut *reader, &key, &value)?;
            let this = before.elapsed();
            latencies.note(this);
            took += this;
        }
    }
    child.judge(right);
    let read_bytes = files::read_bytes().saturating_sub(read_before) as f64 / count as f64;
    let mut figures = latencies.to_json();
    figures["per_s"] = json!(per_second(count, took));
    figures["read_bytes_each"] = json!(round(read_bytes, 0));
    Ok(figures)
}
