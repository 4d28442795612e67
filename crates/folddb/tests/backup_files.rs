//! A backup as a list of files with roles: whoever sends each immutable file away once, and the
//! others each time, has every backup.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use folddb::maintenance::{BackupFile, BackupFileRole, BackupOptions, RestoreOptions, VerifyOptions};
use folddb::{BackgroundWork, ErrorKind, Options, Rules, Store, Table};

fn options() -> Options {
    Options::default().memory_bytes(8 << 20)
}

/// Files by role, name, length and hash, as an object store would have them.
#[derive(Default)]
struct Remote(BTreeMap<(String, u64, u64), Vec<u8>>);

impl Remote {
    /// Sends what is not there. Returns how many immutable files were.
    fn send(&mut self, backup: &Path, files: &[BackupFile]) -> usize {
        let mut known = 0;
        for file in files {
            let key = (file.name.clone(), file.bytes, file.hash);
            if file.role.is_immutable() && self.0.contains_key(&key) {
                known += 1;
                continue;
            }
            let bytes = std::fs::read(backup.join(&file.name)).unwrap();
            assert_eq!(bytes.len() as u64, file.bytes, "{}", file.name);
            self.0.insert(key, bytes);
        }
        known
    }

    fn fetch(&self, files: &[BackupFile], to: &Path) {
        for file in files {
            let path = to.join(&file.name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, &self.0[&(file.name.clone(), file.bytes, file.hash)]).unwrap();
        }
    }
}

fn put_all(store: &Store, numbers: &Table<u64, u64>, blobs: &Table<u64, Vec<u8>>, round: u64) {
    for key in 0..2000 {
        numbers.fold(&key, &round).unwrap();
    }
    for key in 0..20 {
        blobs.put(&(round * 20 + key), &vec![round as u8; 5000]).unwrap();
    }
    if round % 2 == 1 {
        store.flush().unwrap(); // else it is in the log
    }
}

#[test]
fn immutable_files_are_sent_once_and_each_backup_is_whole_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let numbers = store.table("numbers", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    let blobs = store.table("blobs", Rules::sorted::<u64, Vec<u8>>().separate(1024)).unwrap();
    let (mut remote, mut backups, mut known) = (Remote::default(), Vec::new(), 0);
    for round in 1..=6 {
        put_all(&store, &numbers, &blobs, round);
        let made = store.backup(dir.path().join("backups"), &BackupOptions::default().keep(Some(1))).unwrap();
        let files = Store::backup_files(&made.path, &options()).unwrap();
        known += remote.send(&made.path, &files);
        backups.push((round, files));
    }
    store.close().unwrap();
    assert!(known > 0, "later backups have files of earlier ones");
    let roles: BTreeSet<String> = backups[5].1.iter().map(|file| format!("{:?}", file.role)).collect();
    assert_eq!(
        roles.iter().map(String::as_str).collect::<Vec<_>>(),
        ["Format", "List", "Log", "Manifest", "Part", "Values"]
    );
    for (round, files) in &backups {
        let copy = dir.path().join(format!("copy {round}"));
        remote.fetch(files, &copy);
        let to = dir.path().join(format!("restored {round}"));
        Store::restore(&copy, &to, &RestoreOptions::default(), &options()).unwrap();
        for store in [Store::open_read_only(&copy, options()).unwrap(), Store::open(&to, options()).unwrap()]
        {
            let numbers: Table<u64, u64> = store.open_table("numbers").unwrap();
            let blobs: Table<u64, Vec<u8>> = store.open_table("blobs").unwrap();
            assert_eq!(numbers.get(&7).unwrap(), Some((1..=*round).sum()));
            assert_eq!(numbers.scan().count().unwrap(), 2000);
            assert_eq!(blobs.scan().count().unwrap(), 20 * round);
            assert_eq!(blobs.get(&(round * 20)).unwrap(), Some(vec![*round as u8; 5000]));
        }
    }
}

#[test]
fn a_set_with_a_file_too_few_or_of_another_backup_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let numbers = store.table("numbers", Rules::sorted::<u64, u64>()).unwrap();
    numbers.put(&1, &1).unwrap();
    store.flush().unwrap();
    let made = store.backup(dir.path().join("backups"), &BackupOptions::default()).unwrap();
    let files = Store::backup_files(&made.path, &options()).unwrap();
    let mut remote = Remote::default();
    remote.send(&made.path, &files);
    for (at, file) in files.iter().enumerate() {
        let copy = dir.path().join(format!("without {at}"));
        let mut fewer = files.clone();
        fewer.remove(at);
        remote.fetch(&fewer, &copy);
        let error = Store::restore(
            &copy,
            dir.path().join(format!("to {at}")),
            &RestoreOptions::default(),
            &options(),
        )
        .unwrap_err();
        let kind =
            if file.role == BackupFileRole::List { ErrorKind::StoreNotFound } else { ErrorKind::Corruption };
        assert_eq!(error.kind(), kind, "{}: {error}", file.name);
    }
    let error = Store::backup_files(dir.path().join("store"), &options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreNotFound, "a store is no backup: {error}");
}

#[test]
fn the_log_in_a_backup_begins_where_it_is_needed() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let numbers = store.table("numbers", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    let mut seqs = Vec::new();
    for round in 0..3u64 {
        for key in 0..20_000 {
            numbers.fold(&key, &1).unwrap();
        }
        store.flush().unwrap();
        for key in 0..10 {
            seqs.push(numbers.fold(&key, &1000).unwrap());
        }
        let made = store.backup(dir.path().join("backups"), &BackupOptions::default()).unwrap();
        let files = Store::backup_files(&made.path, &options()).unwrap();
        let log: u64 =
            files.iter().filter(|file| file.role == BackupFileRole::Log).map(|file| file.bytes).sum();
        assert!((1..10_000).contains(&log), "{log} bytes of log for ten rows");
        let report = Store::verify(&made.path, &VerifyOptions::default().deep(true), &options()).unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        for (ops, at) in [(10, None), (4, Some(seqs[seqs.len() - 7]))] {
            let to = dir.path().join(format!("restored {round} {ops}"));
            Store::restore(&made.path, &to, &RestoreOptions::default().at_seq(at), &options()).unwrap();
            let restored = Store::open(&to, options()).unwrap();
            let table: Table<u64, u64> = restored.open_table("numbers").unwrap();
            for key in 0..10 {
                let late = if key < ops { 1000 } else { 0 };
                assert_eq!(table.get(&key).unwrap(), Some((round + 1) + round * 1000 + late), "{key} {at:?}");
            }
            // It goes on, and its own backup is whole again.
            table.fold(&3, &5).unwrap();
            restored.backup(dir.path().join(format!("of {round} {ops}")), &BackupOptions::default()).unwrap();
            restored.close().unwrap();
        }
    }
}

#[test]
fn a_log_of_several_segments_is_cut_at_its_beginning_only() {
    let dir = tempfile::tempdir().unwrap();
    let small = || options().tuning(|t| t.segment_bytes(1 << 20)).background(BackgroundWork::Manual);
    let store = Store::create(dir.path().join("store"), small()).unwrap();
    let blobs = store.table("blobs", Rules::sorted::<u64, Vec<u8>>()).unwrap();
    for key in 0..100 {
        blobs.put(&key, &vec![1; 3000]).unwrap();
    }
    store.flush().unwrap();
    for key in 100..1000 {
        blobs.put(&key, &vec![2; 3000]).unwrap(); // 2.7 MB
    }
    let made = store.backup(dir.path().join("backups"), &BackupOptions::default()).unwrap();
    let files = Store::backup_files(&made.path, &options()).unwrap();
    let logs = files.iter().filter(|file| file.role == BackupFileRole::Log);
    let (count, log) = logs.fold((0, 0), |(count, bytes), file| (count + 1, bytes + file.bytes));
    assert!(count >= 3, "{count} segments");
    assert!((2_700_000..2_900_000).contains(&log), "{log} bytes of log for 2.7 MB that are not in runs");
    let to = dir.path().join("restored");
    Store::restore(&made.path, &to, &RestoreOptions::default(), &options()).unwrap();
    let store = Store::open(&to, options()).unwrap();
    let restored: Table<u64, Vec<u8>> = store.open_table("blobs").unwrap();
    for key in 0..1000 {
        assert_eq!(restored.get(&key).unwrap(), Some(vec![if key < 100 { 1 } else { 2 }; 3000]), "{key}");
    }
}
