//! How a bench is run, and how far it has come.

use std::path::PathBuf;

use folddb::table_rules::TableKind;
use folddb::{Durability, ValuePlacement};

/// How to run a bench.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// Size of the work, as a factor of its full size. Default 1.
    pub scale: f64,
    /// Where the data comes from: the same seed gives the same data. Default 1.
    pub seed: u64,
    /// Memory of the store, in bytes. Default: what the bench is about (160 MB for `hugedb`, 64 MiB
    /// otherwise).
    pub memory_bytes: Option<usize>,
    /// The durability of every commit. Default [`Durability::Process`].
    pub durability: Durability,
    /// Ops of a commit. Default: 1,000 for `hugedb`, 1 otherwise.
    pub batch: Option<usize>,
    /// Rows, for any scale, in benches that are measured in rows: `hugedb`, `osmos`, `growth`,
    /// `open`, `elliptics`; keys of `steady`.
    pub rows: Option<u64>,
    /// How the table of `elliptics` keeps its records. Default sorted.
    pub kind: TableKind,
    /// Where the values of `elliptics` are. Default segments.
    pub value_placement: ValuePlacement,
    /// Bytes of each value of `elliptics`. Default 4,000 to 4,800.
    pub value_bytes: Option<usize>,
    /// Seconds, for any scale, in benches that run for a time: `steady`.
    pub seconds: Option<f64>,
    /// How many threads merge. Default 1.
    pub merge_threads: usize,
    /// Runs of a tier that make it full. Default that of the store, 8.
    pub merge_factor: Option<usize>,
    /// Whether `hugedb` writes only where there is no value (HugeDB's INSERT) instead of replacing.
    /// Default false.
    pub inserts: bool,
    /// Whether a thread reads while `osmos` writes. Default true.
    pub reader: bool,
    /// The directory to put the store in. Default: a fresh one under the system's directory for
    /// temporary files.
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
            merge_threads: 1,
            merge_factor: None,
            inserts: false,
            reader: true,
            dir: None,
            keep: false,
        }
    }
}

impl BenchOptions {
    /// A count at this scale, at least 100.
    pub(crate) fn scaled(&self, full: f64) -> u64 {
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
    /// How much there is to do; 0 if that is unknown.
    pub total: u64,
}
