//! What is left of windows that have fired: each has 200,000 rows in many key groups, and is
//! deleted by one range delete for each group, so that keys of other windows are between them.
//!
//! ```text
//! cargo run --release -p folddb --example covered_cost
//! ```
//!
//! For each number of groups, alone, next to one row of a later window, and next to two thirds as
//! many rows of it in every group: bytes of parts before and after the range deletes, records that
//! merges have moved for it, pieces and bytes that were read, and the time that background work
//! took.

use std::time::Instant;

use folddb::{BackgroundWork, Durability, Options, Result, Rules, Store, Table};

const ROWS: u64 = 200_000;

/// Key group, window, key.
type Key = (u64, u64, u64);

fn main() -> Result<()> {
    println!("groups  later rows  KB before  KB after  records merged  pieces read  KB read      ms");
    for groups in [1, 8, 128, 1024] {
        for later in [0, 1, 2 * ROWS / 3] {
            measure(groups, later)?;
        }
    }
    Ok(())
}

fn measure(groups: u64, later: u64) -> Result<()> {
    let dir = std::env::temp_dir().join(format!("folddb-covered-cost-{}", std::process::id()));
    let store = Store::create(&dir, Options::default().background(BackgroundWork::Manual))?;
    let table = store.table("t", Rules::sorted::<Key, u64>())?;
    fill(&store, &table, groups, later)?;
    let bytes = |store: &Store| -> Result<u64> {
        let stats = store.bytes_table("t")?.stats()?;
        Ok(stats.runs.iter().map(|run| run.bytes()).sum())
    };
    let (before, filled) = (store.stats(), bytes(&store)?);
    for group in 0..groups {
        table.delete_range(&(group, 1, 0), &(group, 2, 0))?;
    }
    let begun = Instant::now();
    store.flush()?;
    store.settle()?;
    let (took, after) = (begun.elapsed(), store.stats());
    println!(
        "{groups:6}  {later:10}  {:9}  {:8}  {:14}  {:11}  {:7}  {:6.1}",
        filled >> 10,
        bytes(&store)? >> 10,
        after.background.records_merged - before.background.records_merged,
        after.reads.pieces - before.reads.pieces,
        (after.reads.bytes - before.reads.bytes) >> 10,
        took.as_secs_f64() * 1e3,
    );
    drop((table, store));
    let _ = std::fs::remove_dir_all(&dir);
    Ok(())
}

/// The rows of a window and of a later one, in the same groups, as one run.
fn fill(store: &Store, table: &Table<Key, u64>, groups: u64, later: u64) -> Result<()> {
    let mut batch = store.batch();
    for n in 0..ROWS {
        batch.put(table, &(n % groups, 1, n), &n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    for n in 0..later {
        batch.put(table, &((n + groups / 2) % groups, 2, n), &n);
    }
    batch.commit(Durability::Buffered)?;
    store.flush()?;
    store.settle()
}
