//! The kept inputs of every target, and a short search from them.
//!
//! `FOLDDB_FUZZ_SEED=7 cargo test -p folddb-fuzz --test fuzz` searches elsewhere; a longer search
//! is `cargo run -p folddb-fuzz --release -- --minutes 10`.

use std::sync::{Mutex, PoisonError};

use folddb_fuzz::run::{self, Failure, Limit, STACK_BYTES};
use folddb_fuzz::{corpus, targets};

/// Inputs that each target is searched by.
const RUNS: u64 = 1_500;

/// One thread at a time may measure the heap; it has the stack of a usual one.
fn alone(work: impl FnOnce() + Send + 'static) {
    static LOCK: Mutex<()> = Mutex::new(());
    let _held = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work).expect("a thread");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn tell(failure: &Failure, seed: Option<u64>) -> ! {
    let path = corpus::failing_path(&failure.target, &failure.input);
    let saved = corpus::save(&path, &failure.input);
    let seed = seed.map(|seed| format!("seed {seed}, ")).unwrap_or_default();
    panic!(
        "{}: {}\n{seed}saved ({saved:?}); cargo run -p folddb-fuzz --release -- --replay {}",
        failure.target.name,
        failure.what,
        path.display()
    );
}

#[test]
fn every_kept_input_holds() {
    alone(|| {
        for target in targets::all() {
            let kept = corpus::load(&target).expect("the corpus can be read");
            assert!(!kept.is_empty(), "{} has no kept inputs: run the example `seeds`", target.name);
            let inputs: Vec<Vec<u8>> = kept.into_iter().map(|(_, input)| input).collect();
            run::replay(&target, &inputs).unwrap_or_else(|failure| tell(&failure, None));
        }
    });
}

#[test]
fn a_short_search_finds_nothing() {
    let seed = std::env::var("FOLDDB_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("FOLDDB_FUZZ_SEED={seed}");
    alone(move || {
        for target in targets::all() {
            let kept = corpus::load(&target).expect("the corpus can be read");
            let inputs: Vec<Vec<u8>> = kept.into_iter().map(|(_, input)| input).collect();
            let limit = Limit { runs_max: RUNS, deadline: None };
            if let Err(failure) = run::search(&target, &inputs, seed, limit) {
                tell(&failure, Some(seed));
            }
        }
    });
}

/// Stores that were written by an earlier version hold what these seeds hold: a change here is a
/// change of the format.
#[test]
fn the_encoders_still_make_the_kept_seeds() {
    alone(|| {
        for target in targets::all() {
            for (number, seed) in (target.seeds)().into_iter().enumerate() {
                let path = corpus::folder(&target).join(format!("seed-{number:02}"));
                let kept = std::fs::read(&path).unwrap_or_default();
                assert!(
                    kept == seed,
                    "{} is not what the encoder makes: run the example `seeds`",
                    path.display()
                );
            }
        }
    });
}
