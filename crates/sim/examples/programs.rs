//! Plays random programs against the model, as many as asked for: `cargo run -p folddb-sim
//! --release --example programs -- --seeds 1000 [--from 0] [--actions 60]`.
//!
//! With `--threads`, threads do the background work of every store, not of one in four. With
//! `--on-disk`, stores are in the directory for temporary files, not in memory. With both, next to
//! other work, time passes where it seldom does: `.ci/races sleeps`. `--held-clock` reads the clock
//! between actions only, for a machine whose clock jumps (libfaketime). `--print` prints programs,
//! and plays none.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use folddb_sim::play::{Disagreement, play, play_by_held_clock};
use folddb_sim::program::{Program, shrink};

fn argument(name: &str, default: u64) -> u64 {
    let arguments: Vec<String> = std::env::args().collect();
    let at = arguments.iter().position(|argument| argument == name);
    at.and_then(|at| arguments.get(at + 1)?.parse().ok()).unwrap_or(default)
}

fn has_flag(name: &str) -> bool {
    std::env::args().any(|argument| argument == name)
}

fn attempt(program: &Program) -> Result<(), Disagreement> {
    let place = if has_flag("--on-disk") { std::env::temp_dir() } else { folddb_sim::memory_dir() };
    let dir = tempfile::tempdir_in(place).expect("a directory for temporary files");
    let play = if has_flag("--held-clock") { play_by_held_clock } else { play };
    let played = catch_unwind(AssertUnwindSafe(|| play(program, &dir.path().join("store"))));
    played.unwrap_or_else(|_| Err(Disagreement { at: usize::MAX, message: "it panicked".to_owned() }))
}

fn main() -> ExitCode {
    let (from, seeds) = (argument("--from", 0), argument("--seeds", 1000));
    let actions = argument("--actions", 60) as usize;
    let mut failed = 0;
    for seed in from..from + seeds {
        let program = Program::random(seed, actions).followed_in_some(seed);
        let program = if has_flag("--threads") { program.in_threads() } else { program };
        if has_flag("--print") {
            println!("seed {seed}\n{program}");
            continue;
        }
        let Err(why) = attempt(&program) else { continue };
        failed += 1;
        eprintln!("seed {seed} {why}; shrinking");
        let least = shrink(&program, &mut |candidate| attempt(candidate).is_err());
        match attempt(&least) {
            Err(why) => println!("seed {seed} {why}\n{least}"),
            Ok(()) => println!("seed {seed} fails only sometimes\n{least}"),
        }
    }
    println!("{seeds} programs from seed {from}, {failed} of them failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
