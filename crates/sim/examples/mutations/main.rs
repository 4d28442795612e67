//! Proves that the tests can fail: puts deliberate faults into a copy of the engine, one at a time,
//! and demands that the test named with each fails then.
//!
//! ```text
//!   cargo run -p folddb-sim --example mutations                     all
//!   cargo run -p folddb-sim --example mutations -- --only sync      those with `sync` in their names
//!   cargo run -p folddb-sim --example mutations -- --sample 2       two at random
//! ```
//!
//! The list is in `crates/sim/mutations/`; `list.rs` next to this file describes it. First every
//! test asked for must pass on the unchanged engine. Exit code 1 means that a fault survived, 2
//! that the list or the machine is at fault.

mod list;
mod tree;
mod trial;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use clap::Parser;
use folddb_sim::chance::Seeded;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use list::{Mutation, Test};
use tree::Tree;
use trial::{Outcome, Workshop};

/// Puts deliberate faults into a copy of the engine, one at a time; the test named with each must
/// fail then.
#[derive(Debug, Parser)]
struct Arguments {
    /// Only the mutations whose name contains this; may be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Only mutations whose test is in the crate that they change, which take seconds each.
    #[arg(long)]
    in_crate: bool,
    /// So many of them, at random.
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// What decides which; by default the clock. It is printed.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// How long a test may run, in seconds. The tests take a few.
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    limit: u64,
    /// Run each test this many times on each mutation; it must fail every time. Shows what tries at
    /// random to be reliable.
    #[arg(long, value_name = "N", default_value_t = 1)]
    times: u32,
    /// Print the list, and build nothing.
    #[arg(long)]
    list: bool,
    /// One line of JSON for each mutation.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

/// Does what is asked for; how many faults no test has caught.
fn run(arguments: &Arguments) -> Result<usize, String> {
    let (root, target_dir) = workspace()?;
    let all = list::read(&root)?;
    let faults = all.iter().filter_map(|one| Some(format!("{}: {}", one.name, one.fault(&root)?)));
    let faults: Vec<String> = faults.collect();
    if !faults.is_empty() {
        return Err(format!("the list does not fit the code:\n  {}", faults.join("\n  ")));
    }
    let chosen = choose(all, arguments)?;
    if arguments.list {
        chosen.iter().for_each(|mutation| print_entry(mutation, arguments.json));
        return Ok(0);
    }
    let tree = Tree::copy_of(&root, &target_dir)?;
    let workshop = Workshop { tree, limit: Duration::from_secs(arguments.limit), times: arguments.times };
    let tests: BTreeSet<&Test> = chosen.iter().map(|mutation| &mutation.test).collect();
    let bar = bar((tests.len() + chosen.len()) as u64);
    for test in tests {
        bar.set_message(format!("whole: {}", test.name));
        match workshop.run(test, 1) {
            Outcome::Passed => bar.inc(1),
            other => return Err(format!("`{test}` does not pass on the engine as it is: {other:?}")),
        }
    }
    let mut survived = 0;
    let width = chosen.iter().map(|mutation| mutation.name.len()).max().unwrap_or(0);
    for mutation in &chosen {
        bar.set_message(mutation.name.clone());
        let began = Instant::now();
        let outcome = workshop.run_mutated(mutation)?;
        survived += usize::from(!is_caught(&outcome));
        let line = told(mutation, &outcome, began.elapsed(), width, arguments.json);
        bar.suspend(|| println!("{line}"));
        bar.inc(1);
    }
    bar.finish_and_clear();
    if !arguments.json {
        println!("{} mutations, {} caught, {survived} not", chosen.len(), chosen.len() - survived);
    }
    Ok(survived)
}

/// The root of the workspace, and where cargo builds.
fn workspace() -> Result<(PathBuf, PathBuf), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let told = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(here)
        .output()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&told.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
    let path = |key: &str| metadata[key].as_str().map(PathBuf::from);
    path("workspace_root")
        .zip(path("target_directory"))
        .ok_or_else(|| "cargo metadata names no workspace".to_owned())
}

/// The mutations asked for, in an order that needs little building between two of them.
fn choose(all: Vec<Mutation>, arguments: &Arguments) -> Result<Vec<Mutation>, String> {
    let is_in_crate = |one: &Mutation| Path::new(&one.file).starts_with(one.test.package_dir());
    let is_named = |one: &Mutation| arguments.only.iter().any(|name| one.name.contains(name.as_str()));
    let mut chosen: Vec<Mutation> = all
        .into_iter()
        .filter(|one| arguments.only.is_empty() || is_named(one))
        .filter(|one| !arguments.in_crate || is_in_crate(one))
        .collect();
    if chosen.is_empty() {
        return Err("the list has no such mutation; `--list` prints it".to_owned());
    }
    if let Some(count) = arguments.sample {
        let seed = arguments.seed.unwrap_or_else(seed_of_the_clock);
        eprintln!("a sample of {count}: --sample {count} --seed {seed}");
        let mut chance = Seeded::new(seed);
        while chosen.len() > count {
            chosen.swap_remove(chance.below(chosen.len() as u64) as usize);
        }
    }
    chosen.sort_by(|a, b| {
        (&a.test.package, &a.test.target, &a.file).cmp(&(&b.test.package, &b.test.target, &b.file))
    });
    Ok(chosen)
}

fn seed_of_the_clock() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64 % 1_000_000)
}

fn is_caught(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(_))
}

fn print_entry(mutation: &Mutation, as_json: bool) {
    let Mutation { name, why, file, test, .. } = mutation;
    if as_json {
        println!("{}", json!({ "name": name, "why": why, "file": file, "test": test.to_string() }));
    } else {
        println!("{name}\n    {why}\n    {file}\n    {test}");
    }
}

/// The line of a mutation that was tried.
fn told(mutation: &Mutation, outcome: &Outcome, took: Duration, width: usize, as_json: bool) -> String {
    let (word, said) = match outcome {
        Outcome::Failed(said) => ("caught", said.as_str()),
        Outcome::Passed => ("SURVIVED", ""),
        Outcome::NotBuilt(why) => ("NOT BUILT", why.as_str()),
        Outcome::Hung => ("HUNG", ""),
        Outcome::Died(words) => ("DIED", words.as_str()),
    };
    let Mutation { name, file, test, .. } = mutation;
    let seconds = (took.as_secs_f64() * 10.0).round() / 10.0;
    if as_json {
        let outcome = word.to_lowercase();
        let test = test.to_string();
        return json!({ "name": name, "file": file, "test": test, "outcome": outcome, "said": said, "seconds": seconds })
            .to_string();
    }
    let line = format!("{name:width$}  {word:9} {seconds:5.1} s  {test}");
    if is_caught(outcome) || said.is_empty() { line } else { format!("{line}\n    {said}") }
}

/// A bar on the error output, where that is a terminal.
fn bar(steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{pos}/{len} {wide_bar} {elapsed} {msg}");
    ProgressBar::new(steps).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
