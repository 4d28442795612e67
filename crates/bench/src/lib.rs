//! The benchmark programs of the systems that FoldDB unites, run in this process. This crate is on
//! no floor of FoldDB. Internal, no promises: `folddb` is the public API.
//!
//! `folddb bench NAME` runs them. Every bench works on a fresh store. It reports the speed in each
//! tenth of the run, latencies, memory, bytes written and disk space, and *verifies* the final
//! state against a computation of its own. The same seed gives the same data.
//!
//! | name | what it does at scale 1 |
//! |---|---|
//! | `hugedb` | 100 M random u64 → u64 in batches of 1,000; settle; reads warm, cold and while writing; compact; the reads again |
//! | `osmos` | 50 M sums on 10 M keys by Zipf's law, in single writes, with a concurrent reader |
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
//! Figures of the process come from `/proc`; on systems without it they are absent. What generates,
//! checks and measures is public for `bench-rivals`, which does the same work on other stores.

#![forbid(unsafe_code)]

pub mod generate;
pub mod check;
pub mod process;
mod report;
mod options;
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

use folddb::Result;

pub use options::{BenchOptions, Progress};
pub use report::Report;

/// The names of the benches.
pub fn names() -> &'static [&'static str] {
    &["hugedb", "osmos", "append-one", "drain", "commit", "open", "elliptics", "steady", "growth", "indexes"]
}

/// Runs a bench. `progress` is called for every tenth of its longer phases.
///
/// # Errors
/// [`folddb::ErrorKind::InvalidInput`] for an unknown name or a scale that is not positive; any
/// error of the store. A wrong final state is not an error here: see [`Report::verified`].
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
