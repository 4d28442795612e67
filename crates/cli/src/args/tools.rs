//! The verbs that need no store of yours.

use std::path::PathBuf;

use clap::Args;

use super::common::DurabilityArgs;
use crate::human;

/// `man`.
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Write a page for the program and one for each verb into this directory [default: print all]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// `bench`.
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// The benchmark [default: list them]
    pub(crate) name: Option<String>,
    /// The share of the full size
    #[arg(long, default_value_t = 0.01)]
    pub(crate) scale: f64,
    /// Seed of the data
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Ops in a commit [default: the benchmark's own]
    #[arg(long, value_name = "OPS")]
    pub(crate) batch: Option<usize>,
    /// Rows, whatever the scale (hugedb, osmos, growth, open, elliptics; keys of steady)
    #[arg(long)]
    pub(crate) rows: Option<u64>,
    /// How the table of elliptics keeps its records: sorted, hashed
    #[arg(long, value_name = "KIND", default_value = "sorted")]
    pub(crate) kind: String,
    /// Where elliptics keeps its values: segments, files
    #[arg(long, value_name = "PLACE", default_value = "segments")]
    pub(crate) value_placement: String,
    /// Size of each value of elliptics [default: 4,000 to 4,800]
    #[arg(long, value_name = "SIZE", value_parser = human::parse_bytes)]
    pub(crate) value_bytes: Option<usize>,
    /// How many seconds steady holds its rate, whatever the scale
    #[arg(long)]
    pub(crate) seconds: Option<f64>,
    /// Where to make the store [default: the system's directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Keep the store
    #[arg(long)]
    pub(crate) keep: bool,
    /// When a commit is acknowledged
    #[command(flatten)]
    pub(crate) durability: DurabilityArgs,
}

/// `shell`.
#[derive(Args, Debug)]
pub(crate) struct ShellArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// Open it for reading: nothing on disk changes; if another process is writing, the shell sees
    /// the store as of now
    #[arg(long)]
    pub(crate) read_only: bool,
}

/// `completions`.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
    /// A line up to where it is typed, and what separates words in it: print what completes the
    /// last of them in the store; scripts of shells ask so
    #[arg(last = true, hide = true)]
    pub(crate) words: Vec<String>,
}
