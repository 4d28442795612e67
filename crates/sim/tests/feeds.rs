//! Change feeds in random programs and in a simulated world: a consumer that applies the rows of a
//! feed and the batches after them, op by op, has the contents of the store, over flushes, merges,
//! reclaim, closes, crashes before every change, power cuts and failing calls, whatever it has
//! acknowledged, and at any time.

use std::panic::{AssertUnwindSafe, catch_unwind};

use folddb_host::AppendMode;
use folddb_sim::disaster::{Effort, EveryCall, faults};
use folddb_sim::faulty_files::Fault;
use folddb_sim::play::{Disagreement, play, play_in};
use folddb_sim::program::{Program, shrink};
use folddb_sim::world::SimDisk;

/// Actions of a program, beyond the creation of its tables and the actions of its consumer.
const ACTIONS: usize = 60;

fn check(
    seeds: impl Iterator<Item = u64>,
    make: impl Fn(u64) -> Program,
    attempt: impl Fn(u64, &Program) -> Result<(), Disagreement>,
) {
    for seed in seeds {
        let program = make(seed);
        let attempt = |program: &Program| {
            let played = catch_unwind(AssertUnwindSafe(|| attempt(seed, program)));
            played.unwrap_or_else(|_| Err(Disagreement { at: usize::MAX, message: "it panicked".to_owned() }))
        };
        if attempt(&program).is_err() {
            let least = shrink(&program, &mut |candidate| attempt(candidate).is_err());
            let why =
                attempt(&least).map_or_else(|why| why.to_string(), |()| "it fails only sometimes".to_owned());
            panic!("seed {seed}: {why}\n{least}");
        }
    }
}

#[test]
fn a_consumer_of_a_random_program_has_what_the_store_has() {
    check(
        0..50,
        |seed| Program::random(seed, ACTIONS).followed(seed),
        |_, program| {
            let dir =
                tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory for temporary files");
            play(program, &dir.path().join("store"))
        },
    );
}

#[test]
fn a_consumer_of_a_store_with_disasters_has_what_it_has() {
    check(
        0..60,
        |seed| Program::disastrous(seed, ACTIONS).followed(seed),
        |seed, program| play_in(program, &SimDisk::new(seed)).map(drop),
    );
}

fn every(mode: AppendMode) -> EveryCall {
    EveryCall::followed(mode).unwrap_or_else(|why| panic!("without any disaster: {why}"))
}

#[test]
fn a_consumer_loses_nothing_and_gets_nothing_twice_when_the_store_crashes_before_any_change() {
    for (mode, step) in [(AppendMode::Mapped, 37), (AppendMode::Written, 83)] {
        let every = every(mode);
        for n in (0..=every.changes()).step_by(step) {
            let effort = Effort { cuts: 2, opening_step: if n % 4 == 0 { 7 } else { 0 } };
            every.crash_before(n, effort).unwrap_or_else(|why| panic!("{why}"));
        }
    }
}

#[test]
fn a_consumer_has_what_the_store_has_whichever_call_failed() {
    let every = every(AppendMode::Mapped);
    for (name, fault) in faults() {
        for n in (0..).step_by(if fault.calls.is_empty() { 131 } else { 61 }) {
            let outcome = every.fail(&Fault { skip: n, ..fault.clone() });
            if !outcome.unwrap_or_else(|why| panic!("{name} at call {n}: {why}")) {
                break;
            }
        }
    }
}
