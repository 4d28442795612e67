//! Disasters, as many as asked for:
//!
//! ```text
//! cargo run -p folddb-sim --release --example disasters -- --every-call      two small programs, crashed before every change
//!                                                                            they make, and with every call failing once
//!     [--program small|varied] [--step 1] [--cuts 4] [--opening-step 1]          less of it
//!     [--mode mapped|written] [--only crash|EIO|..] [--from 0] [--to N]          a piece of it: moments from .. to, without the last
//! cargo run -p folddb-sim --release --example disasters -- --seeds 1000      random programs in a simulated world
//!     [--from 0] [--actions 60]
//! ```
//!
//! Everything follows from the numbers that a failure prints. The exit code is 1 when there was
//! one.

use std::io::{IsTerminal, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use folddb_host::AppendMode;
use folddb_sim::disaster::{Effort, EveryCall, faults};
use folddb_sim::faulty_files::Fault;
use folddb_sim::play::{Counts, Disagreement, play_in};
use folddb_sim::program::{Program, shrink};
use folddb_sim::world::SimDisk;

const FAILURES_MAX: u64 = 5;

fn argument(name: &str) -> Option<u64> {
    word(name)?.parse().ok()
}

fn word(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

/// A line on standard error with the progress, where that is a terminal.
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

/// Which moments of a program are tried: each `step`-th of a range.
struct Moments {
    from: u64,
    to: u64,
    step: usize,
}

impl Moments {
    fn asked_for() -> Moments {
        Moments {
            from: argument("--from").unwrap_or(0),
            to: argument("--to").unwrap_or(u64::MAX),
            step: argument("--step").unwrap_or(1).max(1) as usize,
        }
    }

    /// Those before `end`.
    fn before(&self, end: u64) -> impl Iterator<Item = u64> + use<> {
        (self.from..self.to.min(end)).step_by(self.step)
    }
}

/// Whether the piece `name` of this option is asked for; without the option, all are.
fn is_asked_for(option: &str, name: &str) -> bool {
    word(option).is_none_or(|part| name.to_lowercase().contains(&part.to_lowercase()))
}

fn every_call() -> u64 {
    let mut failures = 0;
    let moments = Moments::asked_for();
    let effort = Effort {
        cuts: argument("--cuts").unwrap_or(4) as u8,
        opening_step: argument("--opening-step").unwrap_or(1),
    };
    let programs: [(&str, Make); 2] = [("small", EveryCall::new), ("varied", EveryCall::varied)];
    for (name, make) in programs.into_iter().filter(|(name, _)| is_asked_for("--program", name)) {
        println!("the {name} program");
        let modes = [(AppendMode::Mapped, "mapped"), (AppendMode::Written, "written")];
        for (mode, _) in modes.into_iter().filter(|(_, name)| is_asked_for("--mode", name)) {
            let every = match make(mode) {
                Ok(every) => every,
                Err(why) => {
                    println!("{mode:?}: without any disaster, {why}");
                    return failures + 1;
                }
            };
            if is_asked_for("--only", "crash") {
                failures += crashes(&every, mode, &moments, effort);
            }
            failures += failing_calls(&every, mode, &moments);
        }
    }
    failures
}

fn crashes(every: &EveryCall, mode: AppendMode, moments: &Moments, effort: Effort) -> u64 {
    let (mut before, mut tried, mut failures) = (0, 0, 0);
    let (mut bar, began) = (Bar::new("a crash before each", every.changes()), Instant::now());
    for n in moments.before(every.changes() + 1) {
        bar.at(n);
        before += 1;
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
    println!(
        "{mode:?}: {tried} crashes before {before} of {} changes, {failures} went wrong, in {} s",
        every.changes() + 1,
        began.elapsed().as_secs()
    );
    let Counts { crashes, found_alike, opened_alike, again } = every.counts();
    println!(
        "{mode:?}: of {crashes} crashes {found_alike} left a world that was known, and {opened_alike} one that an \
         opening makes a known one; {again} of these were played to their end all the same"
    );
    failures
}

fn failing_calls(every: &EveryCall, mode: AppendMode, moments: &Moments) -> u64 {
    let mut failures = 0;
    for (name, fault) in faults().into_iter().filter(|(name, _)| is_asked_for("--only", name)) {
        let (mut hit, mut wrong) = (0, 0);
        let (mut bar, began) = (Bar::new(name, every.calls()), Instant::now());
        for n in moments.before(u64::MAX) {
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
        println!("{mode:?}: {name} at {hit} calls, {wrong} went wrong, in {} s", began.elapsed().as_secs());
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
