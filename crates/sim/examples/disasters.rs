//! Disasters, as many as asked for:
//!
//! ```text
//! cargo run -p folddb-sim --release --example disasters -- --every-call      two small programs, crashed before every change
//!                                                                            they make, and with every call failing once
//!     [--program small|varied] [--step 1] [--cuts 4] [--opening-step 1] [--from 0]    less of it, or from a moment on
//! cargo run -p folddb-sim --release --example disasters -- --seeds 1000      random programs in a simulated world
//!     [--from 0] [--actions 60]
//! ```
//!
//! Everything follows from the numbers that a failure prints. The exit code is 1 when there was one.

use std::io::{IsTerminal, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use folddb::AppendMode;
use folddb_sim::disaster::{Effort, EveryCall, faults};
use folddb_sim::faulty_files::Fault;
use folddb_sim::play::{Disagreement, play_in};
use folddb_sim::program::{Program, shrink};
use folddb_sim::world::SimDisk;

const FAILURES_MAX: u64 = 5;

fn argument(name: &str) -> Option<u64> {
    word(name)?.parse().ok()
}

fn word(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

/// A line on standard error that tells how far it is, where somebody looks on.
struct Bar {
    what: &'static str,
    total: u64,
    shown: u64,
}

impl Bar {
    fn new(what: &'static str, total: u64) -> Bar {
        Bar { what, total, shown: u64::MAX }
    }

    fn at(&mut self, done: u64) {
        let thousandth = done * 1000 / self.total.max(1);
        if std::io::stderr().is_terminal() && thousandth != self.shown {
            self.shown = thousandth;
            let bar = "#".repeat((thousandth / 25) as usize);
            let _ = write!(std::io::stderr(), "\r{:24} [{bar:40}] {done}/{} ", self.what, self.total);
        }
    }

    fn end(&mut self) {
        if std::io::stderr().is_terminal() {
            let _ = writeln!(std::io::stderr());
        }
    }
}

fn contained<T>(work: impl FnOnce() -> Result<T, Disagreement>) -> Result<T, Disagreement> {
    let outcome = catch_unwind(AssertUnwindSafe(work));
    outcome.unwrap_or_else(|_| Err(Disagreement { at: usize::MAX, message: "it panicked".to_owned() }))
}

/// Makes one of the programs.
type Make = fn(AppendMode) -> Result<EveryCall, Disagreement>;

fn every_call() -> u64 {
    let mut failures = 0;
    let step = argument("--step").unwrap_or(1).max(1) as usize;
    let from = argument("--from").unwrap_or(0);
    let effort = Effort {
        cuts: argument("--cuts").unwrap_or(4) as u8,
        opening_step: argument("--opening-step").unwrap_or(1),
    };
    let programs: [(&str, Make); 2] = [("small", EveryCall::new), ("varied", EveryCall::varied)];
    let only = word("--program");
    for (name, make) in
        programs.into_iter().filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name))
    {
        println!("the {name} program");
        for mode in [AppendMode::Mapped, AppendMode::Written] {
            let every = match make(mode) {
                Ok(every) => every,
                Err(why) => {
                    println!("{mode:?}: without any disaster, {why}");
                    return failures + 1;
                }
            };
            failures += crashes(&every, mode, from, step, effort);
            failures += failing_calls(&every, mode, from, step);
        }
    }
    failures
}

fn crashes(every: &EveryCall, mode: AppendMode, from: u64, step: usize, effort: Effort) -> u64 {
    let (mut tried, mut failures) = (0, 0);
    let mut bar = Bar::new("a crash before each", every.changes());
    for n in (from..=every.changes()).step_by(step) {
        bar.at(n);
        match contained(|| every.crash_before(n, effort)) {
            Ok(crashes) => tried += crashes,
            Err(why) => {
                failures += 1;
                println!("{mode:?}, a crash before change {n}: {why}");
                if failures == FAILURES_MAX {
                    break;
                }
            }
        }
    }
    bar.end();
    println!("{mode:?}: {} changes, {tried} crashes, {failures} went wrong", every.changes());
    failures
}

fn failing_calls(every: &EveryCall, mode: AppendMode, from: u64, step: usize) -> u64 {
    let mut failures = 0;
    for (name, fault) in faults() {
        let (mut hit, mut wrong) = (0, 0);
        let mut bar = Bar::new(name, every.calls());
        for n in (from..).step_by(step) {
            bar.at(n);
            match contained(|| every.fail(&Fault { skip: n, ..fault.clone() })) {
                Ok(true) => hit += 1,
                Ok(false) => break,
                Err(why) => {
                    wrong += 1;
                    println!("{mode:?}, {name} at call {n}: {why}");
                    if wrong == FAILURES_MAX {
                        break;
                    }
                }
            }
        }
        bar.end();
        println!("{mode:?}: {name} at {hit} calls, {wrong} went wrong");
        failures += wrong;
    }
    failures
}

fn attempt(program: &Program, seed: u64) -> Result<(), Disagreement> {
    contained(|| play_in(program, &SimDisk::new(seed)).map(drop))
}

fn seeds(count: u64) -> u64 {
    let from = argument("--from").unwrap_or(0);
    let actions = argument("--actions").unwrap_or(60) as usize;
    let mut failures = 0;
    let mut bar = Bar::new("programs", count);
    for seed in from..from + count {
        bar.at(seed - from);
        let program = Program::disastrous(seed, actions).followed_in_some(seed);
        let Err(why) = attempt(&program, seed) else { continue };
        failures += 1;
        eprintln!("seed {seed} {}; shrinking", why.message.lines().next().unwrap_or_default());
        let least = shrink(&program, &mut |candidate| attempt(candidate, seed).is_err());
        match attempt(&least, seed) {
            Err(why) => println!("seed {seed} {why}\n{least}"),
            Ok(()) => println!("seed {seed} fails only sometimes\n{least}"),
        }
        println!(
            "again: cargo run -p folddb-sim --release --example disasters -- --seeds 1 --from {seed} --actions {actions}"
        );
        if failures == FAILURES_MAX {
            break;
        }
    }
    bar.end();
    println!("{count} programs from seed {from}, {failures} of them failed");
    failures
}

fn main() -> ExitCode {
    let failures = match argument("--seeds") {
        Some(count) => seeds(count),
        None if std::env::args().any(|argument| argument == "--every-call") => every_call(),
        None => {
            eprintln!("say --every-call or --seeds N; the head of this file tells more");
            return ExitCode::FAILURE;
        }
    };
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
