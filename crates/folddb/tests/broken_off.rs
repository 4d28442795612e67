//! Jobs that are broken off. A merge leaves a table in which newer and older records of one key are
//! in more runs than before, and the next merge may take any of them; jobs that make something
//! leave nothing of it.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

use folddb::maintenance::{BackupOptions, ByteProgress, RepairOptions, RestoreOptions, VerifyOptions};
use folddb::{BackgroundWork, ErrorKind, Options, Rules, Store, Table};

const KEYS: u64 = 1000;

fn rules() -> Rules<u64, Vec<u8>> {
    Rules::sorted()
}

fn options(part_bytes: u64) -> Options {
    let small = Options::default().background(BackgroundWork::Manual).memory_bytes(4 << 20);
    small.tuning(|t| t.part_bytes(part_bytes).merge_factor(64))
}

fn write(store: &Store, table: &Table<u64, Vec<u8>>, keys: impl Iterator<Item = u64>, round: u8) {
    for key in keys {
        table.put(&key, &[round; 200]).unwrap();
    }
    store.flush().unwrap();
}

fn runs(store: &Store) -> usize {
    store.bytes_table("t").unwrap().stats().unwrap().runs.len()
}

/// Parts without seqs of their own read as if all their records were as new as the newest. If the
/// output of a broken-off merge were merged with the inputs that it has not reached, old records
/// would thus be lifted over those of the newer input.
#[test]
fn what_a_broken_off_merge_leaves_hides_no_newer_records_once_it_is_merged_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options(64 << 10)).unwrap();
    let table = store.table("t", rules()).unwrap();
    write(&store, &table, 0..KEYS, 1);
    for key in (0..KEYS).step_by(2) {
        table.delete(&key).unwrap();
    }
    store.flush().unwrap();
    // The parts of low keys have the higher seqs.
    write(&store, &table, (KEYS / 2..KEYS).chain(0..KEYS / 2), 2);
    let stop_once_begun =
        |_| if runs(&store) > 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    store.bytes_table("t").unwrap().compact_with(stop_once_begun).unwrap();
    assert_eq!(runs(&store), 4, "what is left of the inputs, and what was written");
    drop((store, table));

    let store = Store::open(&path, options(1 << 20)).unwrap();
    let table = store.table("t", rules()).unwrap();
    while store.background_step().unwrap().is_some() {}
    assert_eq!(runs(&store), 2, "the deletes are merged with all that is older");
    for row in table.scan() {
        let (key, value) = row.unwrap();
        assert_eq!(value[0], 2, "key {key} is as it was written last");
        assert_eq!(table.get(&key).unwrap(), Some(value));
    }
    store.bytes_table("t").unwrap().compact().unwrap();
    assert!(table.scan().into_iter().all(|row| row.unwrap().1[0] == 2), "and stays so");
}

/// Each job that makes something ends where its caller breaks it off, and leaves nothing of it.
#[test]
fn jobs_that_are_broken_off_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let stop = |at: ByteProgress| {
        assert!(at.bytes_done <= at.bytes_total && at.bytes_total > 0, "{at:?}");
        ControlFlow::Break(())
    };
    let store = Store::create(path("store"), options(64 << 10)).unwrap();
    let table = store.table("t", rules()).unwrap();
    (0..3).for_each(|round| write(&store, &table, 0..KEYS, round));
    let names = || {
        let entries =
            std::fs::read_dir(dir.path()).unwrap().chain(std::fs::read_dir(path("backups")).unwrap());
        entries.map(|entry| entry.unwrap().file_name()).collect::<BTreeSet<_>>()
    };

    for how in [BackupOptions::default(), BackupOptions::default().copy(true).check_all(true)] {
        let stopped = store.backup_with(path("backups"), &how, stop).unwrap_err();
        assert_eq!(stopped.kind(), ErrorKind::Stopped);
        assert!(Store::backups(path("backups"), &options(64 << 10)).unwrap().is_empty());
    }
    assert_eq!(store.backup(path("backups"), &BackupOptions::default()).unwrap().generation, 1);
    store.close().unwrap();

    // Also where all is in the log.
    let small = Store::create(path("small"), options(64 << 10)).unwrap();
    small.table("t", rules()).unwrap().put(&1, &vec![1]).unwrap();
    let stopped = small.backup_with(path("of small"), &BackupOptions::default(), stop).unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::Stopped);
    assert!(Store::backups(path("of small"), &options(64 << 10)).unwrap().is_empty());
    drop(small);

    let before = names();
    let (is, copies) = (options(64 << 10), RestoreOptions::default().copy(true));
    for stopped in [
        Store::restore_with(path("backups"), path("new"), &RestoreOptions::default(), &is, stop).unwrap_err(),
        Store::restore_with(path("backups"), path("new"), &copies, &is, stop).unwrap_err(),
        Store::repair_with(path("store"), path("new"), &RepairOptions::default(), &is, stop).unwrap_err(),
        Store::verify_with(path("store"), &VerifyOptions::default().deep(true), &is, stop).unwrap_err(),
    ] {
        assert_eq!(stopped.kind(), ErrorKind::Stopped);
        assert_eq!(names(), before);
    }

    // Broken off anywhere else, too; a job that was not is whole.
    let restored = |to: &Path, report: &mut dyn FnMut() -> ControlFlow<()>| {
        Store::restore_with(path("backups"), to, &copies, &is, |_| report()).map(drop)
    };
    let repaired = |to: &Path, report: &mut dyn FnMut() -> ControlFlow<()>| {
        Store::repair_with(path("store"), to, &RepairOptions::default(), &is, |_| report()).map(drop)
    };
    type Job<'a> = &'a dyn Fn(&Path, &mut dyn FnMut() -> ControlFlow<()>) -> folddb::Result<()>;
    for job in [&restored as Job<'_>, &repaired] {
        for after in (1..).map(|step| step * step) {
            let mut calls = 0;
            let done = job(&path("new"), &mut || {
                calls += 1;
                if calls > after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            let Err(stopped) = done else { break };
            assert_eq!(stopped.kind(), ErrorKind::Stopped);
            assert_eq!(names(), before, "broken off after {after} calls");
        }
        let verified = Store::verify(path("new"), &VerifyOptions::default().deep(true), &is).unwrap();
        assert!(verified.findings.is_empty(), "{verified:?}");
        std::fs::remove_dir_all(path("new")).unwrap();
    }
}
