//! A few seconds of the soak. Ten minutes: `cargo run -p folddb-sim --release --example soak --
//! --minutes 10`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use folddb_sim::soak::{Soak, write_until_killed};

const DIR: &str = "FOLDDB_SOAK_TEST_DIR";
const SEED: &str = "FOLDDB_SOAK_TEST_SEED";

/// Does nothing unless the soak has started it.
#[test]
#[ignore = "run by `killed_at_any_moment_a_store_loses_nothing_and_grows_by_nothing` as a process of its own"]
fn child_that_writes() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let seed = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    println!(); // after the output of the test program itself
    if let Err(why) = write_until_killed(Path::new(&dir), seed) {
        panic!("{why}");
    }
}

#[test]
fn killed_at_any_moment_a_store_loses_nothing_and_grows_by_nothing() {
    let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
    let writer = |dir: &Path, seed: u64| {
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        command.args(["--exact", "child_that_writes", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(DIR, dir).env(SEED, seed.to_string());
        command
    };
    let soak =
        Soak { dir: temp.path().join("store"), seed: 1, lasting: Duration::from_secs(4), writer: &writer };
    let summary = soak.run(&mut |_| {}).unwrap_or_else(|why| panic!("seed {}: {why}", soak.seed));
    assert!(summary.kills >= 4 && summary.descriptors_max > 4, "{summary:?}");
}
