//! Soaks a store: processes that use all of it are killed at random moments, and the store that
//! they leave is checked.
//!
//! `cargo run -p folddb-sim --release --example soak -- --minutes 10 [--seed S]`
//!
//! On a failure the directory of the store stays, and its name is printed.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use folddb_sim::soak::{Soak, write_until_killed};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, default: u64| {
        let at = arguments.iter().position(|argument| argument == name);
        at.and_then(|at| arguments.get(at + 1)?.parse().ok()).unwrap_or(default)
    };
    if let [word, dir, seed] = &arguments[..]
        && word == "write"
    {
        return match write_until_killed(Path::new(dir), seed.parse().unwrap_or(0)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("{why}");
                ExitCode::FAILURE
            }
        };
    }
    let (minutes, seed) = (number("--minutes", 10), number("--seed", 1));
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("store");
    let program = std::env::current_exe().expect("this program has a path");
    let writer = |dir: &Path, seed: u64| {
        let mut command = Command::new(&program);
        command.arg("write").arg(dir).arg(seed.to_string());
        command
    };
    let lasting = Duration::from_secs(60 * minutes);
    let mut told = 0;
    let soaked = Soak { dir: dir.clone(), seed, lasting, writer: &writer }.run(&mut |summary| {
        if summary.kills / 200 > told {
            told = summary.kills / 200;
            println!("{summary}");
        }
    });
    match soaked {
        Ok(summary) => {
            println!("seed {seed}, {minutes} minutes: {summary}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            let kept = temp.keep().join("store");
            eprintln!(
                "seed {seed}: {why}\nthe store is kept at {0}; look at it with `folddb stats {0}`",
                kept.display()
            );
            ExitCode::FAILURE
        }
    }
}
