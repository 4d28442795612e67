//! A share of the byte flips: the headers and ends of all files, and every k-th byte between, beginning elsewhere each day.
//! All of them: `cargo run -p folddb-sim --release --example flips`.

use std::time::{SystemTime, UNIX_EPOCH};

use folddb_sim::flips::{Fixture, Outcome, Whole};

/// Every so many bytes of a file one is flipped.
const EVERY: usize = 23;
/// So many at the beginning of a file, and at its end, are all flipped.
const EDGE_BYTES: usize = 80;

/// Which bytes of a file are flipped, on a day.
fn chosen(file: &Whole, day: usize) -> Vec<usize> {
    let len = file.bytes.len();
    let is_edge = |at: &usize| *at < EDGE_BYTES || *at + EDGE_BYTES >= len;
    (0..len).filter(|at| is_edge(at) || (at + day).is_multiple_of(EVERY)).collect()
}

fn flip(closed: bool) {
    let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
    let fixture = Fixture::new(temp.path(), closed).expect("the store is written");
    let day =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400) as usize;
    let (mut wrong, mut refused) = (Vec::new(), 0);
    for file in fixture.files() {
        for at in chosen(file, day) {
            let mask = if at % 2 == 0 { 0xff } else { 1 << (at / 2 % 8) };
            match fixture.flip(file, at, mask) {
                Outcome::Wrong(why) => wrong.push(format!("{} byte {at} ^ {mask:#04x}: {why}", file.name)),
                Outcome::Refused => refused += 1,
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{} on day {day}:\n{}", wrong.len(), wrong[..wrong.len().min(10)].join("\n"));
    assert!(refused > 500, "only {refused} flips were refused");
}

#[test]
fn a_flipped_byte_of_a_closed_store_is_named_or_unused() {
    flip(true);
}

#[test]
fn a_flipped_byte_of_a_store_whose_process_died_is_named_or_unused_or_at_a_limit_that_is_stated() {
    flip(false);
}

#[test]
fn what_is_salvaged_is_what_was_there_but_for_what_is_told_as_lost() {
    for closed in [true, false] {
        let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
        let fixture = Fixture::new(temp.path(), closed).expect("the store is written");
        let (mut complete, mut lossy, mut refused) = (0, 0, 0);
        for file in fixture.files() {
            let every = (file.bytes.len() / 8).max(1) | 1;
            for at in (0..file.bytes.len()).step_by(every).chain([file.bytes.len() - 1]) {
                let to = temp.path().join("new");
                let report = match fixture.salvage(file, at, 1 << (at % 8), &to) {
                    Ok(report) => report,
                    // Without the snapshot nothing tells which table a part belongs to.
                    Err(why) if file.name.starts_with("MANIFEST") && why.contains("no manifest") => {
                        refused += 1;
                        continue;
                    }
                    Err(why) => panic!("closed {closed}, {} byte {at}: {why}", file.name),
                };
                if report.is_complete() {
                    complete += 1
                } else {
                    lossy += 1
                }
                std::fs::remove_dir_all(&to).expect("the new store goes");
            }
        }
        assert!(refused <= 9, "{refused} times the manifest was of no use");
        assert!(complete > 10 && lossy > 5, "{complete} complete, {lossy} lossy: each must be tried");
    }
}
