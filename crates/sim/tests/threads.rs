//! Real threads on one store at once: writers, readers, snapshots, flushes, merges, tables that
//! come and go, and an end in the middle of it all. Longer runs: `cargo run -p folddb-sim --release
//! --example threads -- --minutes 10`.

use std::time::Duration;

use folddb::BackgroundWork;
use folddb_sim::threads::{Plan, Report, run};

fn play(seed: u64, rounds: u64, background: BackgroundWork) -> Report {
    let dir = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory for temporary files");
    let plan =
        Plan { seed, rounds, round: Duration::from_millis(600), writers: 3, background: Some(background) };
    let report = run(&dir.path().join("store"), &plan).unwrap_or_else(|what| {
        let again =
            format!("cargo run -p folddb-sim --release --example threads -- --seed {seed} --minutes 1");
        panic!("{what}\nagain: {again}")
    });
    assert!(report.writes > 0 && report.cuts > 0 && report.tables > 0, "little happened: {report:?}");
    assert!(report.flushes > 0, "memory was never full: {report:?}");
    report
}

#[test]
fn threads_at_once_see_whole_batches_and_a_history_that_stands() {
    play(1, 4, BackgroundWork::Threads);
}

#[test]
fn so_they_do_when_they_do_the_background_work_themselves() {
    play(2, 2, BackgroundWork::Manual);
}
