//! Disks that cannot read parts of a file of values: a repair continues after them, and reports
//! the loss.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb::maintenance::{RepairOptions, RepairReport};
use folddb::{BackgroundWork, Options, Rules, Store, Table, ValuePlacement};
use folddb_host::Host;
use folddb_sim::faulty_files::{Call, Fault, FaultyFiles};

const KEYS: u64 = 60;

fn options(files: &FaultyFiles) -> Options {
    Options::default()
        .host(Host { files: Arc::new(files.clone()), ..Host::real() })
        .memory_bytes(4 << 20)
        .tuning(|t| t.segment_bytes(1 << 20).value_segment_bytes(128 << 10).part_bytes(64 << 10))
        .background(BackgroundWork::Manual)
}

fn tables(store: &Store) -> [Table<u64, Vec<u8>>; 3] {
    let sorted = || Rules::sorted::<u64, Vec<u8>>().separate(1024);
    [
        ("sorted", sorted()),
        ("objects", sorted().value_placement(ValuePlacement::Files)),
        ("hashed", Rules::hashed::<u64, Vec<u8>>()),
    ]
    .map(|(name, rules)| store.table(name, rules).expect("a table"))
}

fn blob(key: u64, round: u64) -> Vec<u8> {
    vec![(key * 7 + round) as u8; 2000 + (key * 37) as usize]
}

fn ends_with(path: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).expect("a directory").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

/// A closed store, with values in segments, in files of their own, and moved.
fn a_store(path: &Path, files: &FaultyFiles) {
    let store = Store::create(path, options(files)).expect("a store");
    for (round, step) in [(1, 1), (2, 2)] {
        for key in (0..KEYS).step_by(step) {
            for table in tables(&store) {
                table.put(&key, &blob(key, round)).expect("it goes");
            }
        }
        store.flush().expect("it flushes");
    }
    for name in ["sorted", "objects"] {
        store.bytes_table(name).expect("a table").compact().expect("it merges");
    }
    store.reclaim().expect("it reclaims");
    for key in 0..KEYS / 10 {
        for table in tables(&store) {
            table.put(&(KEYS + key), &blob(KEYS + key, 1)).expect("it goes");
        }
    }
    store.flush().expect("it flushes");
    store.close().expect("it closes");
    for ending in [".values", ".shelf", ".moved"] {
        assert!(!ends_with(path, ending).is_empty(), "no {ending}");
    }
}

/// The number of missing values; those that are there are right.
fn missing(store: &Store) -> u64 {
    let expected: BTreeMap<u64, Vec<u8>> = (0..KEYS + KEYS / 10)
        .map(|key| (key, blob(key, if key < KEYS && key % 2 == 0 { 2 } else { 1 })))
        .collect();
    let mut missing = 0;
    for table in tables(store) {
        for (key, value) in &expected {
            match table.get(key).expect("it reads") {
                Some(found) => assert!(found == *value, "key {key} of {}", table.name()),
                None => missing += 1,
            }
        }
    }
    missing
}

/// Repairs while these reads of files with this ending fail. None where no read of the damaged
/// store failed.
fn mended(path: &Path, files: &FaultyFiles, ending: &str, (skip, times): (u64, u64)) -> Option<RepairReport> {
    let said = format!("{ending}: reads {skip} to {}", skip + times);
    let to = path.with_file_name(format!("mended{ending}.{skip}.{times}"));
    let before = files.failed().len();
    files.break_on(Fault { name: ending.to_owned(), skip, times, ..Fault::on(&[Call::Read]) });
    let report = Store::repair(path, &to, &RepairOptions::default(), &options(files));
    files.heal();
    let failed = files.failed().split_off(before);
    if failed.is_empty() || failed.iter().any(|(_, file)| !file.starts_with(path)) {
        return None;
    }
    let report = report.unwrap_or_else(|error| panic!("{said}: {error}"));
    assert!(report.verified.is_clean(), "{said}: {report:?}");
    let store = Store::open(&to, options(files)).expect("it opens");
    let missing = missing(&store);
    assert_eq!(missing, report.records_lost, "{said}: {:?}", report.findings);
    assert!(missing == 0 || !report.is_complete(), "{said}: {:?}", report.findings);
    Some(report)
}

#[test]
fn a_repair_continues_after_unreadable_blocks() {
    let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
    let (path, files) = (temp.path().join("store"), FaultyFiles::new(Host::real().files));
    a_store(&path, &files);
    for (ending, reads_min) in [(".values", 4), (".value", 60), (".moved", 4)] {
        let (mut reads, mut lost, mut unread) = (0, 0, 0);
        // One failed read succeeds when it is tried again; two cost a block; three cost two.
        for times in 1..=3 {
            let reports = (0..).map_while(|skip| mended(&path, &files, ending, (skip, times)));
            for report in reports {
                reads += 1;
                lost += report.records_lost;
                let is_unread = |what: &str| what.contains("cannot be read, and are zeros");
                unread += report.findings.iter().filter(|finding| is_unread(&finding.what)).count();
            }
        }
        // Relocated values are read again when the copy lacks some, and these reads fail for a
        // while only.
        let is_lost = lost > 0 || ending == ".moved";
        assert!(reads >= reads_min && is_lost && unread > 0, "{ending}: {reads} {lost} {unread}");
    }
}
