//! Real processes, killed at random moments: after each reopening every acknowledged batch is
//! there, whole, and in order.
//!
//! The writer is this very test program, run again with one test chosen. It commits numbered
//! batches over two tables and writes each acknowledged number to its standard output; the parent
//! kills it with SIGKILL, while it writes or while it still recovers from the time before. The ops
//! of batch `i` are known, so the state after batches 1 to n is known for every n, and no other
//! state may be found.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use folddb::{Durability, Options, Store};
use folddb_sim::chance::Seeded;
use folddb_sim::numbered::Numbered;

const ROUNDS: u64 = 200;
const DIR: &str = "FOLDDB_KILL_TEST_DIR";
const SEED: &str = "FOLDDB_KILL_TEST_SEED";

fn options() -> Options {
    // As small as possible, so that flushes and merges always run.
    Options::default()
        .memory_bytes(4 << 20)
        .tuning(|t| t.segment_bytes(1 << 20).part_bytes(64 << 10).merge_factor(2))
}

/// How a batch is committed, by the mode of a round. `Buffered` promises a killed process only the
/// order.
fn durability(mode: u64, i: u64) -> Durability {
    match mode {
        0 => Durability::Sync,
        1 if i.is_multiple_of(5) => Durability::Sync,
        2 => Durability::Buffered,
        _ => Durability::Process,
    }
}

/// Whether the acknowledged batches of a round must be there after its writer was killed.
fn promises(round: u64) -> bool {
    durability(round % 4, 1) != Durability::Buffered
}

/// The writer: does nothing unless the parent has called it.
#[test]
#[ignore = "run by `killed_writers_lose_nothing_that_was_acknowledged` as a process of its own"]
fn child_that_writes() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let seed: u64 = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let mut out = std::io::stdout().lock();
    let store = Store::open(PathBuf::from(dir), options()).unwrap();
    let numbered = Numbered::open(&store).unwrap();
    let last = numbered.last().unwrap();
    writeln!(out, "\nopen {last}").unwrap();
    let mut batch = store.batch();
    for i in last + 1.. {
        numbered.fill(&mut batch, i);
        batch.commit(durability(seed % 4, i)).unwrap();
        out.write_all(format!("ack {i}\n").as_bytes()).unwrap();
        out.flush().unwrap();
    }
}

/// Runs a writer and kills it. Returns the last batch that it acknowledged, if any.
fn write_and_kill(dir: &Path, seed: u64, chance: &mut Seeded) -> (Option<u64>, String) {
    let mut child = Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["--exact", "child_that_writes", "--ignored", "--nocapture", "--test-threads=1"])
        .env(DIR, dir)
        .env(SEED, seed.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the writer starts");
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (opened, wait_open) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut last = None;
        let mut lines = BufReader::new(stdout.expect("it is piped"));
        let mut line = String::new();
        while lines.read_line(&mut line).is_ok_and(|len| len > 0) {
            if line.starts_with("open ") {
                let _ = opened.send(());
            }
            // A line without its end was cut by the kill.
            if let Some(number) = line.strip_prefix("ack ").and_then(|rest| rest.strip_suffix('\n')) {
                last = number.parse().ok().or(last);
            }
            line.clear();
        }
        last
    });
    if chance.one_in(3) {
        std::thread::sleep(Duration::from_micros(chance.below(25_000))); // while it starts, opens or recovers
    } else {
        let _ = wait_open.recv_timeout(Duration::from_secs(20));
        std::thread::sleep(Duration::from_micros(chance.below(40_000)));
    }
    let died_itself = child.try_wait().expect("the writer can be asked").is_some();
    child.kill().expect("the writer can be killed");
    child.wait().expect("the writer ends");
    let last = reader.join().expect("its output is read");
    let mut said = String::new();
    if died_itself {
        let _ = std::io::Read::read_to_string(&mut stderr.expect("it is piped"), &mut said);
        said = format!("the writer ended by itself: {said}");
    }
    (last, said)
}

#[test]
fn killed_writers_lose_nothing_that_was_acknowledged() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("store");
    let store = Store::create(&dir, options()).unwrap();
    Numbered::open(&store).unwrap();
    drop(store);
    let chance = &mut Seeded::new(42);
    let (mut promised, mut rounds_with_writes) = (0, 0);
    for round in 0..ROUNDS {
        let (acknowledged, said) = write_and_kill(&dir, round, chance);
        assert!(said.is_empty(), "round {round}: {said}");
        rounds_with_writes += u64::from(acknowledged.is_some());
        if promises(round) {
            promised = promised.max(acknowledged.unwrap_or(0));
        }
        // Now and then the next writer is the first to open it, and now and then a reader that
        // changes nothing.
        let read_only = match chance.below(3) {
            0 => continue,
            other => other == 1,
        };
        let store =
            (if read_only { Store::open_read_only(&dir, options()) } else { Store::open(&dir, options()) })
                .unwrap();
        let found =
            Numbered::open(&store).unwrap().last().unwrap_or_else(|why| panic!("round {round}: {why}"));
        assert!(
            found >= promised,
            "round {round}: batch {promised} was acknowledged, the last one there is {found}"
        );
        promised = found;
    }
    assert!(rounds_with_writes > ROUNDS / 3, "only {rounds_with_writes} rounds came to write");
    assert!(promised > ROUNDS, "{promised} batches are few");
}
