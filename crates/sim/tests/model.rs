//! Random programs over the whole public interface agree with the model, at the present and at
//! every live snapshot, after every action.

use std::panic::{AssertUnwindSafe, catch_unwind};

use folddb_sim::play::{Disagreement, play};
use folddb_sim::program::{Program, shrink};

/// Actions of a program, beyond the creation of its tables.
const ACTIONS: usize = 60;

fn attempt(program: &Program) -> Result<(), Disagreement> {
    let dir = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory for temporary files");
    let played = catch_unwind(AssertUnwindSafe(|| play(program, &dir.path().join("store"))));
    played.unwrap_or_else(|_| Err(Disagreement { at: usize::MAX, message: "it panicked".to_owned() }))
}

fn check(seeds: impl Iterator<Item = u64>) {
    for seed in seeds {
        let program = Program::random(seed, ACTIONS);
        if let Err(first) = attempt(&program) {
            let least = shrink(&program, &mut |candidate| attempt(candidate).is_err());
            let why = attempt(&least).map_or_else(|why| why.to_string(), |()| "now it agrees".to_owned());
            panic!("seed {seed}: at first {first}; of less: {why}\n{least}");
        }
    }
}

/// Programs that have failed once.
#[test]
fn programs_that_failed_once_agree_with_the_model() {
    check([9, 70172, 62120016].into_iter());
}

#[test]
fn random_programs_agree_with_the_model() {
    check(0..170);
}

#[test]
fn more_random_programs_agree_with_the_model() {
    check(1000..1150);
}
