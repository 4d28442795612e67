//! FoldDB next to other stores: the same work, the same data, the same memory and durability, in
//! one run.
//!
//! `contest` runs a workload over chosen rivals, each in a process of its own, in turns, and
//! reports the results; `child` is one such process. The modules, bottom-up: `rival` is what a
//! store must be able to do, `rivals` are the stores, `work` is what is done with one, `report`
//! writes the results, `contest` runs it all.

mod rival;
mod rivals;
mod work;
mod outcome;
mod report;
mod contest;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// FoldDB next to other stores, doing the same work with the same means
#[derive(Parser)]
#[command(name = "bench-rivals", version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Runs a workload over rivals, in turns, and writes a table, JSON and charts
    Contest(contest::Contest),
    /// One workload on one rival in this process; the last line of output is JSON
    Child {
        /// The store
        #[arg(long)]
        rival: String,
        /// An empty directory, or one to be made, for the store
        #[arg(long)]
        dir: PathBuf,
        #[command(flatten)]
        job: work::Job,
    },
    /// The table of a contest as docs/BENCHMARKS.md has it
    Table {
        /// The JSON that the contest wrote
        results: PathBuf,
        /// That of an older contest: how FoldDB stood then is a column
        #[arg(long)]
        before: Option<PathBuf>,
    },
    /// Draws the charts of a contest again, beside its JSON
    Charts {
        /// The JSON that the contest wrote
        results: PathBuf,
    },
    /// The rivals that this build can run
    Rivals,
}

fn main() -> ExitCode {
    match run(Arguments::parse().verb) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench-rivals: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::Contest(contest) => return contest.run(),
        Verb::Child { rival, dir, job } => println!("{}", work::run(&rival, &job, dir)?),
        Verb::Table { results, before } => println!("{}", report::page(&results, before.as_deref())?),
        Verb::Charts { results } => report::redraw(&results)?,
        Verb::Rivals => rivals::ENTRIES.iter().for_each(|entry| println!("{}", entry.name)),
    }
    Ok(ExitCode::SUCCESS)
}
