//! Real threads on one store at once, for as long as asked:
//! `cargo run -p folddb-sim --release --example threads -- --minutes 10 [--seed 1] [--writers 3]`.
//!
//! Each store lives for 20 rounds; then the next seed begins a new one. With `--minutes 0` one seed
//! is run.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use folddb_sim::threads::{Plan, run};

fn argument(name: &str, default: u64) -> u64 {
    let arguments: Vec<String> = std::env::args().collect();
    let at = arguments.iter().position(|argument| argument == name);
    at.and_then(|at| arguments.get(at + 1)?.parse().ok()).unwrap_or(default)
}

fn main() -> ExitCode {
    let until = Instant::now() + Duration::from_secs(60 * argument("--minutes", 1));
    let (first, writers) = (argument("--seed", 1), argument("--writers", 3));
    for seed in first.. {
        let dir = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory for temporary files");
        let plan = Plan { seed, rounds: 20, round: Duration::from_millis(700), writers, background: None };
        match run(&dir.path().join("store"), &plan) {
            Ok(report) => println!("seed {seed}: {report:?}"),
            Err(what) => {
                println!("{what}");
                return ExitCode::FAILURE;
            }
        }
        if Instant::now() >= until {
            break;
        }
    }
    ExitCode::SUCCESS
}
