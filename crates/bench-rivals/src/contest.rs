//! The contest: every rival does the work this many times, each time in a process of its own. The
//! rounds are interleaved, since machines drift, and the order rotates from round to round. Each
//! run's figures are kept as soon as it is done, so that a contest that was stopped can continue.

mod child;
mod kept;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use self::kept::Kept;
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};

use crate::outcome::{Outcome, Runs};
use crate::report;
use crate::work::Job;

/// What to run, and where results go.
#[derive(Args, Clone, Debug)]
pub(crate) struct Contest {
    #[command(flatten)]
    job: Job,
    /// Names of rivals, with commas between; `pebble`, `pebble-separated` and `badger` run by the
    /// program in go/
    #[arg(long, value_delimiter = ',', required = true)]
    rivals: Vec<String>,
    /// How often each rival does the work; the medians count
    #[arg(long, default_value_t = 3)]
    repeat: usize,
    /// The directory for the results: JSON and charts
    #[arg(long, default_value = "results")]
    out: PathBuf,
    /// The directory in which the stores are, each gone before the next begins [default: the
    /// system's for temporary files]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// A rival that needs longer for one run is stopped, and its row says so
    #[arg(long, default_value_t = 3600)]
    seconds_max: u64,
    /// Goes on with a contest of the same settings and directory that was stopped or had failures:
    /// runs that are done are not repeated. Their figures are those of the build that made them
    #[arg(long)]
    resume: bool,
    /// The program for the rivals written in Go, as built by `go build -o rivals-go .` in go/
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/go/rivals-go"))]
    go_program: PathBuf,
}

impl Contest {
    /// Runs all of it. Failure, when any run failed: after the others are done and said.
    pub(crate) fn run(&self) -> Result<ExitCode> {
        ensure!(self.repeat > 0, "--repeat is at least 1");
        std::fs::create_dir_all(&self.out).with_context(|| format!("create {}", self.out.display()))?;
        let name = self.job.name();
        let kept = Kept::open(self.out.join(format!("{name}.rounds")), self.settings(), self.resume)?;
        let mut runs: Vec<Runs> =
            self.rivals.iter().map(|rival| Runs { rival: rival.clone(), outcomes: Vec::new() }).collect();
        for round in 0..self.repeat {
            for index in order(runs.len(), round) {
                let rival = runs[index].rival.clone();
                eprintln!("round {} of {}: {rival}", round + 1, self.repeat);
                let outcome = self.run_unless_kept(&kept, round, &rival)?;
                runs[index].outcomes.push(outcome);
            }
        }
        let mut settings = self.settings();
        settings["repeat"] = json!(self.repeat);
        report::write(&self.out, &name, &runs, &settings)?;
        if runs.iter().flat_map(|runs| &runs.outcomes).any(|end| matches!(end, Outcome::Failed(_))) {
            return Ok(ExitCode::FAILURE);
        }
        kept.forget()?;
        Ok(ExitCode::SUCCESS)
    }

    /// The kept figures of a run. If there are none, it is run, and its figures are kept when it is
    /// done.
    fn run_unless_kept(&self, kept: &Kept, round: usize, rival: &str) -> Result<Outcome> {
        if let Some(figures) = kept.get(round, rival) {
            return Ok(Outcome::Done(figures));
        }
        let outcome = self.run_child(rival)?;
        if let Outcome::Done(figures) = &outcome {
            kept.put(round, rival, figures)?;
        }
        Ok(outcome)
    }

    fn run_child(&self, rival: &str) -> Result<Outcome> {
        let parent = self.dir.clone().unwrap_or_else(std::env::temp_dir);
        let dir = parent.join(format!("bench-rivals-{}-{rival}", std::process::id()));
        let mut command = child::command(rival, &self.job, &dir, &self.go_program)?;
        let outcome = child::run(&mut command, Duration::from_secs(self.seconds_max))?;
        if dir.exists() {
            std::fs::remove_dir_all(&dir).with_context(|| format!("remove {}", dir.display()))?;
        }
        Ok(outcome)
    }

    /// The settings of each run, as they are in the results.
    fn settings(&self) -> Value {
        json!({
            "workload": self.job.workload.name(),
            "rows": self.job.rows,
            "keys": self.job.key_count(),
            "batch": self.job.batch,
            "memory_bytes": self.job.memory_bytes,
            "durability": self.job.durability.name(),
            "threads": self.job.threads,
            "value_bytes": self.job.value_bytes,
            "heads": self.job.heads,
            "indexes": self.job.indexes,
            "seed": self.job.seed,
            "beside_writes_per_s": self.job.beside_writes_per_s,
            "beside_gets_per_s": self.job.beside_gets_per_s,
            "optimize": self.job.optimize,
        })
    }
}

/// The order in which this many rivals run in a round: in each round another one is first.
fn order(rivals: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..rivals).map(move |place| (place + round) % rivals)
}

#[cfg(test)]
#[path = "contest/tests.rs"]
mod tests;
