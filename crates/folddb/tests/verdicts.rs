//! What `verify`, `repair` and `doctor` report about one problem: the three agree on whether
//! something is lost, and name it.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::small;
use folddb::codec::KeyCodec;
use folddb::maintenance::{
    Advice, Finding, RepairOptions, RepairReport, Severity, VerifyOptions, VerifyReport, Weight,
};
use folddb::table_rules::TableRules;
use folddb::{Durability, Fold, FoldFailure, Options, Outcome, Rules, Store, WriteOp};

fn options() -> Options {
    small().disk_reserve_bytes(0)
}

/// A store whose process died: a run, a batch that is synced, and one that is not.
fn died(within: &Path) -> PathBuf {
    let (written, path) = (within.join("written"), within.join("store"));
    let store = Store::create(&written, options()).unwrap();
    let table = store.table("t", Rules::sorted::<u64, u64>()).unwrap();
    let batch = |round: u64, durability| {
        let mut batch = store.batch();
        for key in 0..100 {
            batch.put(&table, &key, &round);
        }
        batch.commit(durability).unwrap();
    };
    batch(1, Durability::Sync);
    store.flush().unwrap();
    batch(2, Durability::Sync);
    batch(3, Durability::Process);
    copy(&written, &path);
    path
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap().path();
        std::fs::copy(&entry, to.join(entry.file_name().unwrap())).unwrap();
    }
}

/// The newest file with this ending.
fn newest(path: &Path, ending: &str) -> PathBuf {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|found| found == ending)).max().unwrap()
}

/// Flips a byte, this many before the last that is not zero.
fn flip(file: &Path, before_the_end: usize) {
    let mut bytes = std::fs::read(file).unwrap();
    let last = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[last - before_the_end] ^= 0x10;
    std::fs::write(file, bytes).unwrap();
}

/// What the three report.
fn said(path: &Path) -> (VerifyReport, RepairReport, Vec<Advice>) {
    let verified = Store::verify(path, &VerifyOptions::default().deep(true), &options()).unwrap();
    let advice = Store::diagnose(path, &options()).unwrap();
    let to = path.with_extension("new");
    let repaired = Store::repair(path, &to, &RepairOptions::default(), &options()).unwrap();
    assert!(repaired.verified.is_clean(), "{:?}", repaired.verified.findings);
    (verified, repaired, advice)
}

#[test]
fn a_torn_end_is_a_note_with_its_place_and_nothing_that_was_promised_is_lost() {
    let temp = tempfile::tempdir().unwrap();
    let path = died(temp.path());
    let log = newest(&path, "log");
    flip(&log, 5);
    let (verified, repaired, advice) = said(&path);
    assert!(verified.is_clean(), "{:?}", verified.findings);
    let [note] = &verified.findings[..] else { panic!("{:?}", verified.findings) };
    assert_eq!((note.severity, Path::new(&note.file)), (Severity::Note, Path::new(log.file_name().unwrap())));
    let (bytes, lsn) = (verified.checked.log_end_lsn, note.what.clone());
    let words: Vec<&str> = lsn.split_whitespace().collect();
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    assert_eq!(words[..3].join(" "), "a torn end:");
    assert!(number(3) > 1000, "the bytes of a batch of 100 records: {lsn}");
    assert_eq!(words[4..7].join(" "), "bytes from LSN");
    assert_eq!(number(7), bytes, "{lsn}");
    assert_eq!(
        words[8..].join(" "),
        "on were being written and not acknowledged as durable; the next opening removes them"
    );
    assert!(repaired.is_complete() && repaired.batches == 1, "{:?}", repaired.findings);
    assert!(advice.iter().all(|one| one.weight == Weight::Minor), "{advice:?}");
    assert!(advice.iter().any(|one| one.what.contains("a torn end")), "{advice:?}");
    let store = Store::open(&path, options()).unwrap();
    assert_eq!(store.table("t", Rules::sorted::<u64, u64>()).unwrap().get(&7).unwrap(), Some(2));
}

#[test]
fn a_hole_in_what_was_synced_is_damage_to_all_three() {
    let temp = tempfile::tempdir().unwrap();
    let path = died(temp.path());
    // The synced batch is before the other, which vouches for it.
    flip(&newest(&path, "log"), 2500);
    assert!(Store::open(&path, options()).is_err());
    let (verified, repaired, advice) = said(&path);
    assert!(verified.damage().any(|one| one.file.ends_with(".log") && one.to_string().contains("table `t`")));
    assert!(!repaired.is_complete() && repaired.batches == 0, "{:?}", repaired.findings);
    assert!(repaired.lost().any(|one| one.to_string().contains("table `t`")), "{:?}", repaired.findings);
    assert!(
        repaired.lost().any(|one| one.file.ends_with(".log")),
        "the hole itself, too: {:?}",
        repaired.findings
    );
    assert_eq!(advice[0].weight, Weight::Broken, "{advice:?}");
    assert!(advice[0].todo.contains("folddb repair"), "{advice:?}");
}

#[test]
fn a_part_that_is_gone_is_damage_to_all_three() {
    let temp = tempfile::tempdir().unwrap();
    let path = died(temp.path());
    let part = newest(&path, "part");
    std::fs::remove_file(&part).unwrap();
    let name = part.file_name().unwrap().to_str().unwrap().to_owned();
    let (verified, repaired, advice) = said(&path);
    assert!(verified.damage().any(|one| one.file == name), "{:?}", verified.findings);
    assert!(repaired.lost().any(|one| one.file == name), "{:?}", repaired.findings);
    assert_eq!((repaired.parts_lost, repaired.records_lost), (1, 100));
    assert!(advice[0].weight == Weight::Broken && advice[0].what.contains(&name), "{advice:?}");
}

/// A fold that accepts any text; or, in a later version of the program, only short ones.
struct Short {
    bytes_max: usize,
}

impl Fold for Short {
    fn spec(&self) -> String {
        "short".to_owned()
    }

    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        match value.len() <= self.bytes_max {
            true => Ok(()),
            false => Err(FoldFailure::new(format!("{} bytes are too many", value.len()))),
        }
    }

    fn fold(&self, _: &[u8], _: &[u8], _: &[u8], _: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        Ok(Outcome::KeepLater)
    }
}

fn with_short(bytes_max: usize) -> Options {
    options().custom_fold(Arc::new(Short { bytes_max }))
}

/// A store in whose tables one value of ten is too long for the later version: in runs, in
/// separated values, in the index of a hashed table, in the log.
fn written_by_another(path: &Path) {
    let written = path.with_extension("written");
    let store = Store::create(&written, with_short(usize::MAX)).unwrap();
    let rules = [
        TableRules::new(KeyCodec::U64).custom_fold("short", 1),
        TableRules::new(KeyCodec::U64).custom_fold("short", 1).separate(Some(64)).summaries(true),
        TableRules::hashed(KeyCodec::U64).custom_fold("short", 1),
    ];
    for (name, rules) in NAMES.into_iter().zip(rules) {
        let table = store.create_bytes_table(name, rules).unwrap();
        for key in 0..100_u64 {
            let len = if key % 10 == 3 { 500 } else { 100 };
            table.write(WriteOp::Put, &key.to_be_bytes(), &vec![b'x'; len]).unwrap();
        }
        store.flush().unwrap();
        table.write(WriteOp::Put, &1000_u64.to_be_bytes(), &[b'y'; 700]).unwrap();
    }
    store.sync().unwrap();
    copy(&written, path);
}

const NAMES: [&str; 3] = ["plain", "apart", "hashed"];

#[test]
fn unfit_values_are_distinguished_from_damage_and_deletes_mend_them() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("store");
    written_by_another(&path);
    let report = Store::verify(&path, &VerifyOptions::default().deep(true), &with_short(200)).unwrap();
    assert_eq!(report.damage().next(), None);
    assert!(!report.is_clean());
    for name in NAMES {
        let of_table = |one: &&Finding| one.what.contains(&format!("table `{name}`"));
        let said: String = report.unfit().filter(of_table).map(|one| format!("{one}\n")).collect();
        for key in [3, 13, 23, 33, 43, 53, 63, 73, 83, 93, 1000] {
            let is_named = [", ", ":", " "].iter().any(|end| said.contains(&format!(" {key}{end}")));
            assert!(is_named, "{name}: {key} is not named: {said}");
        }
        // A finding says why the first of its values is unfit. Which is first depends on the order
        // of the table, which differs from store to store for a hashed one.
        let reasons = ["500 bytes are too many", "700 bytes are too many"];
        assert!(reasons.iter().any(|reason| said.contains(reason)), "{said}");
        assert!(said.contains("a program wrote"), "{said}");
        assert!(report.unfit().all(|one| one.losses.is_empty()), "{said}");
    }
    // A repair loses nothing, and changes nothing.
    let to = temp.path().join("new");
    let repaired = Store::repair(&path, &to, &RepairOptions::default(), &with_short(200)).unwrap();
    assert!(repaired.is_complete(), "{:?}", repaired.findings);
    assert_eq!(repaired.verified.damage().next(), None);
    assert!(repaired.verified.unfit().next().is_some(), "{:?}", repaired.verified.findings);
    // Deletes and a merge fix it.
    let store = Store::open(&path, with_short(200)).unwrap();
    for name in NAMES {
        let table = store.bytes_table(name).unwrap();
        for key in (3..100_u64).step_by(10).chain([1000]) {
            table.write(WriteOp::Delete, &key.to_be_bytes(), &[]).unwrap();
        }
        store.flush().unwrap();
        table.compact().unwrap();
    }
    store.close().unwrap();
    let report = Store::verify(&path, &VerifyOptions::default().deep(true), &with_short(200)).unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}

#[test]
fn damage_is_reported_before_unfit_values() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("store");
    written_by_another(&path);
    std::fs::remove_file(newest(&path, "part")).unwrap();
    let report = Store::verify(&path, &VerifyOptions::default().deep(true), &with_short(200)).unwrap();
    assert_eq!(report.findings[0].severity, Severity::Damage, "{:?}", report.findings);
    assert!(report.unfit().next().is_some(), "{:?}", report.findings);
}
