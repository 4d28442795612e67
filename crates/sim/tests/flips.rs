//! A share of the byte flips: the headers and ends of all files, and every k-th byte between,
//! beginning at another one each day. All of them: `cargo run -p folddb-sim --release --example
//! flips`.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use folddb_sim::flips::values::{PieceKind, pieces};
use folddb_sim::flips::{Fixture, Outcome, Whole};

/// One in this many bytes of a file is flipped.
const EVERY: usize = 23;
/// This many at the beginning of a file, and at its end, are all flipped.
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
    let day = today();
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

/// In files that hold values: all bytes of short pieces, and of the others the edges and every k-th
/// byte between.
fn chosen_of_values(file: &Whole, day: usize) -> Vec<(PieceKind, usize)> {
    let mut chosen = Vec::new();
    for piece in pieces(file) {
        let (start, end) = (piece.range.start, piece.range.end);
        let is_edge = |at: &usize| *at < start + 8 || at + 8 >= end;
        let is_short = piece.range.len() <= 24;
        // The rest of a header, or of the space after the last record, is zeros; the rest of a
        // page counts as a whole.
        let every = if piece.range.len() > 1000 { 331 } else { 37 };
        let wanted = piece.range.filter(|at| is_short || is_edge(at) || (at + day).is_multiple_of(every));
        chosen.extend(wanted.map(|at| (piece.kind, at)));
    }
    chosen
}

fn today() -> usize {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400) as usize
}

#[test]
fn a_flipped_byte_of_a_separated_or_relocated_value_is_named_by_every_read_and_changes_no_head() {
    let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
    let fixture = Fixture::of_values(temp.path()).expect("the store is written");
    let (mut wrong, mut counts) = (Vec::new(), BTreeMap::<(PieceKind, bool), [u64; 3]>::new());
    for file in fixture.files() {
        for (kind, at) in chosen_of_values(file, today()) {
            let mask = if at % 2 == 0 { 0xff } else { 1 << (at / 2 % 8) };
            let counts = counts.entry((kind, file.name.ends_with(".moved"))).or_default();
            match fixture.flip(file, at, mask) {
                Outcome::Wrong(why) => {
                    wrong.push(format!("{} byte {at} ({kind:?}) ^ {mask:#04x}: {why}", file.name))
                }
                Outcome::Refused => counts[0] += 1,
                Outcome::Named => counts[1] += 1,
                Outcome::Unused(_) | Outcome::Limit(_) => counts[2] += 1,
            }
        }
    }
    println!("{counts:?}");
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
    let refused = |kind, moved| counts.get(&(kind, moved)).map_or(0, |[refused, ..]| *refused);
    for moved in [false, true] {
        for kind in [PieceKind::Header, PieceKind::RecordHead, PieceKind::Key, PieceKind::Value] {
            assert!(refused(kind, moved) > 10, "{kind:?} of relocated values {moved}: {counts:?}");
        }
    }
    for kind in [PieceKind::Page, PieceKind::Top, PieceKind::Footer] {
        assert!(refused(kind, true) > 10, "{kind:?}: {counts:?}");
    }
}

#[test]
fn all_values_are_salvaged_except_damaged_ones_which_are_reported() {
    let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
    let fixture = Fixture::of_values(temp.path()).expect("the store is written");
    let mut wrong = Vec::new();
    for file in fixture.files() {
        let mut last = None;
        for piece in pieces(file) {
            // Of adjacent pieces of one kind, one in three is enough.
            if last.replace(piece.kind) == Some(piece.kind) && piece.range.start % 3 != today() % 3 {
                continue;
            }
            let (at, to) = (piece.range.start + piece.range.len() / 3, temp.path().join("new"));
            match fixture.salvage(file, at, 1 << (at % 8), &to) {
                Ok(report) => {
                    let is_framing =
                        !matches!(piece.kind, PieceKind::RecordHead | PieceKind::Key | PieceKind::Value);
                    // A page is lost with the values that it lists, until something else lists
                    // them.
                    if is_framing && piece.kind != PieceKind::Page && !report.is_complete() {
                        wrong.push(format!(
                            "{} byte {at} ({:?}): {:?}",
                            file.name, piece.kind, report.findings
                        ));
                    }
                }
                Err(why) => wrong.push(format!("{} byte {at} ({:?}): {why}", file.name, piece.kind)),
            }
            std::fs::remove_dir_all(&to).ok();
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

#[test]
fn salvaged_data_is_complete_except_what_is_reported_as_lost() {
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
                    // Without the snapshot nothing shows which table a part belongs to.
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
