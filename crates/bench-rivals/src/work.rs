//! One run of a workload on one store, in a process of its own: the child. Its command line and its JSON are a contract
//! with the program for the stores written in Go (`go/`), drawn in the README of this crate.

mod files;
mod commits;
mod load;
mod reads;
mod beside;
mod child;
mod hugedb;
mod osmos;
mod small;
mod commit;

use std::path::PathBuf;

use anyhow::Result;
use serde_json::Value;

use crate::rival::Durability;

/// The workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Workload {
    /// Random pairs of numbers.
    Hugedb,
    /// Sums on keys that are hit by Zipf's law, beside a reader.
    Osmos,
    /// Appends of 72 bytes to one key, then gets of it.
    AppendOne,
    /// Puts, then deletes of all of them, then seeks.
    Drain,
    /// Random pairs of numbers, then a cold opening.
    Open,
    /// Values of 100 bytes, every commit synced, by several threads.
    Commit,
}

impl Workload {
    /// Its name on the command line and in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Workload::Hugedb => "hugedb",
            Workload::Osmos => "osmos",
            Workload::AppendOne => "append-one",
            Workload::Drain => "drain",
            Workload::Open => "open",
            Workload::Commit => "commit",
        }
    }
}

/// What is to be done: the same for all rivals of a contest.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Job {
    #[arg(long, value_enum)]
    pub(crate) workload: Workload,
    /// Rows, writes or appends
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) rows: u64,
    /// Keys of osmos [default: a fifth of the rows]
    #[arg(long)]
    pub(crate) keys: Option<u64>,
    /// Ops in a commit; 1 is the store's way for single writes
    #[arg(long, default_value_t = 1)]
    pub(crate) batch: u64,
    /// For write buffers and caches together
    #[arg(long, default_value_t = 64 << 20)]
    pub(crate) memory_bytes: u64,
    /// When a commit counts as done; `commit` always syncs
    #[arg(long, value_enum, default_value_t = Durability::Process)]
    pub(crate) durability: Durability,
    /// Writers of commit
    #[arg(long, default_value_t = 1)]
    pub(crate) threads: u64,
    /// Decides the data
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Also has the store make its reads as fast as they can be, and reads again
    #[arg(long)]
    pub(crate) optimize: bool,
}

impl Job {
    /// Keys of `osmos`.
    pub(crate) fn key_count(&self) -> u64 {
        self.keys.unwrap_or(self.rows / 5).max(1)
    }
}

/// Does a job on a store in an empty directory, and gives the figures.
pub(crate) fn run(rival: &str, job: &Job, dir: PathBuf) -> Result<Value> {
    let mut child = child::Child::new(rival, job, dir)?;
    match job.workload {
        Workload::Hugedb => hugedb::run(&mut child)?,
        Workload::Osmos => osmos::run(&mut child)?,
        Workload::AppendOne => small::append_one(&mut child)?,
        Workload::Drain => small::drain(&mut child)?,
        Workload::Open => hugedb::open(&mut child)?,
        Workload::Commit => commit::run(&mut child)?,
    }
    child.end()
}
