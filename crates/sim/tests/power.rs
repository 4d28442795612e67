//! Disasters in a simulated world, a bounded share of them: a small program that goes through
//! everything is crashed before its changes and in the middle of its recoveries, its calls fail one
//! by one, and random programs crash, lose power and meet faults by seed. All of it, and any
//! amount: `cargo run -p folddb-sim --release --example disasters -- --every-call` and `-- --seeds
//! 1000`.
//!
//! A test that fails prints the moment or the seed, what is wrong, and the calls that came before.

use folddb_host::AppendMode;
use folddb_sim::disaster::{Effort, EveryCall, faults, varied_workload, workload};
use folddb_sim::faulty_files::Fault;
use folddb_sim::play::play_in;
use folddb_sim::program::{Program, shrink};
use folddb_sim::world::SimDisk;

/// Actions of a random program, beyond the creation of its tables.
const ACTIONS: usize = 60;

fn every(mode: AppendMode) -> EveryCall {
    EveryCall::new(mode).unwrap_or_else(|why| panic!("without any disaster: {why}"))
}

fn varied(mode: AppendMode) -> EveryCall {
    EveryCall::varied(mode).unwrap_or_else(|why| panic!("without any disaster: {why}"))
}

/// Crashes before each n-th change of a program, from a moment on.
fn crash(every: &EveryCall, from: u64, step: usize, effort: Effort) {
    assert!(every.changes() > 400, "the program makes {} changes, which is little", every.changes());
    for n in (from..=every.changes()).step_by(step) {
        every.crash_before(n, effort).unwrap_or_else(|why| panic!("{why}"));
    }
}

#[test]
fn a_crash_before_any_change_loses_nothing_that_was_promised() {
    crash(&every(AppendMode::Mapped), 0, 4, Effort { cuts: 3, opening_step: 0 });
    crash(&every(AppendMode::Written), 2, 9, Effort { cuts: 3, opening_step: 0 });
}

#[test]
fn a_crash_in_the_middle_of_a_recovery_loses_nothing_that_was_promised() {
    crash(&every(AppendMode::Mapped), 3, 19, Effort { cuts: 2, opening_step: 2 });
    crash(&every(AppendMode::Written), 7, 61, Effort { cuts: 1, opening_step: 2 });
}

#[test]
fn a_crash_before_any_change_to_tables_of_every_kind_loses_nothing_that_was_promised() {
    crash(&varied(AppendMode::Mapped), 1, 31, Effort { cuts: 3, opening_step: 0 });
    crash(&varied(AppendMode::Written), 5, 97, Effort { cuts: 1, opening_step: 5 });
}

/// Most crashes are skipped since another one has left the same world: here all of those are played
/// as well.
#[test]
fn a_world_that_is_left_again_goes_the_way_it_went() {
    for (every, from) in [(every(AppendMode::Mapped), 700), (varied(AppendMode::Written), 1_200)] {
        let every = every.trusting_nothing();
        for n in from..from + 3 {
            let effort = Effort { cuts: 2, opening_step: 3 };
            every.crash_before(n, effort).unwrap_or_else(|why| panic!("{why}"));
        }
        let counts = every.counts();
        assert!(counts.found_alike > 20 && counts.opened_alike > 20, "{counts:?}");
        assert!(counts.again >= counts.found_alike + counts.opened_alike, "{counts:?}");
    }
}

#[test]
fn whichever_call_fails_in_whichever_way_nothing_promised_is_lost_and_no_write_follows_a_failed_sync() {
    let every = every(AppendMode::Mapped);
    for (name, fault) in faults() {
        let step = if fault.calls.is_empty() { 37 } else { 15 };
        let hit = (0..).step_by(step).take_while(|n| {
            let outcome = every.fail(&Fault { skip: *n, ..fault.clone() });
            outcome.unwrap_or_else(|why| panic!("{name} at call {n}: {why}"))
        });
        assert!(hit.count() > 5, "{name} hits few calls");
    }
}

/// So the crashes and the failing calls above happen while values are being moved.
#[test]
fn the_small_program_moves_values() {
    let disk = SimDisk::new(7);
    let world = play_in(&workload(AppendMode::Mapped), &disk).unwrap_or_else(|why| panic!("{why}"));
    let moved = world.diary(usize::MAX).lines().filter(|line| line.contains(".moved")).count();
    assert!(moved > 20, "{moved} calls");
}

/// And these with all kinds of files.
#[test]
fn the_varied_program_makes_every_kind_of_file() {
    let program = varied_workload(AppendMode::Mapped).followed(1);
    let play = |disk: &SimDisk| play_in(&program, disk).unwrap_or_else(|why| panic!("{why}"));
    let calls = |world: &SimDisk, ending: &str| {
        world.diary(usize::MAX).lines().filter(|line| line.contains(ending)).count()
    };
    let whole = SimDisk::new(7);
    let world = play(&whole);
    for (ending, least) in [(".index", 20), (".moved", 5), (".value", 50), (".values", 20), (".part", 50)] {
        assert!(calls(&world, ending) >= least, "{} calls on files {ending}", calls(&world, ending));
    }
    // The unsynced end of a log is rewritten for the consumer: only a death leaves one.
    let dying = (1..8).map(|eighths| {
        let disk = SimDisk::new(7);
        disk.die_after(world.changes() * eighths / 8);
        calls(&play(&disk), ".kept")
    });
    assert!(dying.sum::<usize>() >= 2, "no end of a log was kept");
}

fn check(seeds: impl Iterator<Item = u64>) {
    for seed in seeds {
        let program = Program::disastrous(seed, ACTIONS).followed_in_some(seed); // as in the example
        let attempt = |program: &Program| play_in(program, &SimDisk::new(seed)).map(drop);
        if attempt(&program).is_err() {
            let least = shrink(&program, &mut |candidate| attempt(candidate).is_err());
            let why =
                attempt(&least).map_or_else(|why| why.to_string(), |()| "it fails only sometimes".to_owned());
            panic!(
                "seed {seed}: {why}\n{least}\nagain: cargo run -p folddb-sim --release --example disasters -- \
                 --seeds 1 --from {seed} --actions {ACTIONS}"
            );
        }
    }
}

#[test]
fn random_programs_survive_their_disasters() {
    check(0..150);
}

/// Programs that have failed once.
#[test]
fn programs_that_failed_once_survive_their_disasters() {
    const SEEDS: [u64; 17] = [
        20366, 20562, 20854, 90090, 61250622, 61250746, 62410283, 62410881, 771089, 72002576, 72010426,
        72011718, 72011773, 81100323, 81100632, 82000206, 82200097,
    ];
    check(SEEDS.into_iter());
}

#[test]
fn a_seed_replays_a_whole_history_call_by_call() {
    let diary = |program: &Program, seed| {
        let disk = play_in(program, &SimDisk::new(seed)).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        disk.diary(usize::MAX)
    };
    for seed in 0..20 {
        let program = Program::disastrous(seed, ACTIONS);
        assert_eq!(diary(&program, seed), diary(&program, seed), "seed {seed}");
    }
    let program = workload(AppendMode::Mapped);
    let once = diary(&program, 1);
    assert!(once.lines().count() > 1000, "{} lines", once.lines().count());
    assert_eq!(once, diary(&program, 1));
    assert_ne!(once, diary(&program, 2), "another world hands out other random numbers");
}
