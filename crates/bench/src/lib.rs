//! Beside the floors of FoldDB: the benchmark programs of the systems that it unites, run in process.
//! Internal, no promises: `folddb` is the public API.
//!
//! `folddb bench NAME` is the door. Every bench works on a fresh store, prints speed by the tenth of the run,
//! latencies, memory, bytes written and disk space, and *verifies* the state that it leaves against a
//! computation of its own. The same seed gives the same data.
//!
//! | name | what it does at scale 1 |
//! |---|---|
//! | `hugedb` | 100 M random u64 → u64 in batches of 1,000; settle; reads warm, cold and while writing; compact; the reads again |
//! | `osmos` | 50 M sums on 10 M keys by Zipf's law, in single writes, beside a reader |
//! | `append-one` | 50,000 appends of 72 bytes to one key, then gets of it |
//! | `drain` | 100,000 puts, as many deletes, then seeks |
//! | `commit` | 100,000 synced commits of 100 bytes, by one thread and by eight |
//! | `open` | opening a store of 100 M rows, cold, closed in order and not |
//! | `elliptics` | 3 M blobs of 4.4 KB under ids of 64 bytes, hashed or sorted; a cold opening; gets by eight threads |
//! | `steady` | no stalls: ten minutes at 95 % of the rate that is sustained; a quiet table beside a load |
//! | `indexes` | 1 M records of JSON to tables with 0, 1 and 4 indexes; finds while half of the entries are stale, and when none is |
//! | `growth` | `hugedb` and `osmos` at 1, 10 and 100 M rows: what a row costs, beside the model |
//!
//! ```
//! let options = folddb_bench::BenchOptions { scale: 0.0001, ..Default::default() };
//! let report = folddb_bench::run("hugedb", &options, &mut |_| {})?;
//! assert!(report.verified());
//! println!("{report}");
//! # Ok::<(), folddb::Error>(())
//! ```
//!
//! Figures of the process come from `/proc`; on systems without it they are absent. What generates, checks and measures
//! is public for `bench-rivals`, which does the same work on other stores.

#![forbid(unsafe_code)]

pub mod generate;
pub mod check;
pub mod process;
mod report;
pub mod measure;
pub mod cold;
mod workplace;
mod reading;
mod hugedb;
mod osmos;
mod small;
mod commit;
mod open;
mod elliptics;
mod steady;
mod growth;
mod indexes;

use std::path::PathBuf;

use folddb::table_rules::TableKind;
use folddb::{Durability, Result, ValuePlacement};

pub use report::Report;

/// How to run a bench.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// Size of the work, as a factor of its full size. Default 1.
    pub scale: f64,
    /// Where the data comes from: the same seed gives the same data. Default 1.
    pub seed: u64,
    /// Memory of the store, in bytes. Default: what the bench is about (160 MB for `hugedb`, 64 MiB otherwise).
    pub memory_bytes: Option<usize>,
    /// The durability of every commit. Default [`Durability::Process`].
    pub durability: Durability,
    /// Ops of a commit. Default: 1,000 for `hugedb`, 1 otherwise.
    pub batch: Option<usize>,
    /// Rows, whatever the scale, in benches whose work is so many rows: `hugedb`, `osmos`, `growth`, `open`, `elliptics`; keys of `steady`.
    pub rows: Option<u64>,
    /// How the table of `elliptics` keeps its records. Default sorted.
    pub kind: TableKind,
    /// Where the values of `elliptics` lie. Default segments.
    pub value_placement: ValuePlacement,
    /// Bytes of each value of `elliptics`. Default 4,000 to 4,800.
    pub value_bytes: Option<usize>,
    /// Seconds, whatever the scale, in benches that go on for a time: `steady`.
    pub seconds: Option<f64>,
    /// The directory to put the store in. Default: a fresh one under the system's directory for temporary files.
    pub dir: Option<PathBuf>,
    /// Leaves the store behind. Default false.
    pub keep: bool,
}

impl Default for BenchOptions {
    fn default() -> BenchOptions {
        BenchOptions {
            scale: 1.0,
            seed: 1,
            memory_bytes: None,
            durability: Durability::Process,
            batch: None,
            rows: None,
            kind: TableKind::Sorted,
            value_placement: ValuePlacement::Segments,
            value_bytes: None,
            seconds: None,
            dir: None,
            keep: false,
        }
    }
}

impl BenchOptions {
    /// A count at this scale, at least 100.
    fn scaled(&self, full: f64) -> u64 {
        ((full * self.scale).round() as u64).max(100)
    }
}

/// How far a bench has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What it is doing.
    pub phase: &'static str,
    /// How much of it is done.
    pub done: u64,
    /// How much there is to do; 0 where nobody knows.
    pub total: u64,
}

/// The names of the benches.
pub fn names() -> &'static [&'static str] {
    &["hugedb", "osmos", "append-one", "drain", "commit", "open", "elliptics", "steady", "growth", "indexes"]
}

/// Runs a bench. `progress` hears of every tenth of its longer phases.
///
/// # Errors
/// [`folddb::ErrorKind::InvalidInput`] for an unknown name or a scale that is not positive; whatever the store
/// fails with. A final state that is wrong is no error here: see [`Report::verified`].
pub fn run(name: &str, options: &BenchOptions, progress: &mut dyn FnMut(Progress)) -> Result<Report> {
    if !(options.scale > 0.0 && options.scale <= 1000.0) {
        let message = format!("a scale is above 0 and at most 1000; {} is not", options.scale);
        return Err(folddb::Error::invalid(message));
    }
    match name {
        "hugedb" => hugedb::run(options, progress),
        "osmos" => osmos::run(options, progress),
        "append-one" => small::append_one(options, progress),
        "drain" => small::drain(options, progress),
        "commit" => commit::run(options, progress),
        "open" => open::run(options, progress),
        "elliptics" => elliptics::run(options, progress),
        "growth" => growth::run(options, progress),
        "indexes" => indexes::run(options, progress),
        "steady" => steady::run(options, progress),
        _ => Err(workplace::unknown(name, names())),
    }
}
