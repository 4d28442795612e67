//! Tables that archive their logs forever: whatever happens to their runs, a repair rebuilds them,
//! over restarts, crashes, reclaim and batches that write to other tables too.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use common::small_values;
use folddb::maintenance::{RepairOptions, VerifyOptions};
use folddb::{ErrorKind, FeedOptions, Options, Rules, Store, Table};

const KEYS: u64 = 60;

fn options() -> Options {
    small_values().tuning(|t| t.part_bytes(64 << 10))
}

struct Tables {
    sums: Table<u64, u64>,
    blobs: Table<u64, Vec<u8>>,
    others: Table<u64, u64>,
}

fn tables(store: &Store) -> Tables {
    Tables {
        sums: store
            .table("sums", Rules::sorted::<u64, u64>().fold("sum:u64").archive_log(true))
            .expect("a table"),
        blobs: store
            .table("blobs", Rules::sorted::<u64, Vec<u8>>().separate(512).archive_log(true))
            .expect("a table"),
        others: store.table("others", Rules::sorted::<u64, u64>()).expect("a table"),
    }
}

#[derive(Default)]
struct Model {
    sums: BTreeMap<u64, u64>,
    blobs: BTreeMap<u64, Vec<u8>>,
    others: BTreeMap<u64, u64>,
}

fn drawn(step: u64) -> u64 {
    step.wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(23)
        .wrapping_mul(0xbf58_476d_1ce4_e5b9)
        >> 17
}

impl Model {
    fn step(&mut self, store: &Store, tables: &Tables, step: u64) {
        let (chance, key) = (drawn(step), drawn(step * 7 + 3) % KEYS);
        let mut batch = store.batch();
        batch.put(&tables.others, &key, &step);
        self.others.insert(key, step);
        match chance % 16 {
            0 => {
                batch.delete(&tables.sums, &key);
                self.sums.remove(&key);
            }
            1 => {
                batch.delete(&tables.blobs, &key);
                self.blobs.remove(&key);
            }
            2..=9 => {
                batch.fold(&tables.sums, &key, &(chance % 1000));
                *self.sums.entry(key).or_default() += chance % 1000;
            }
            _ => {
                let blob = vec![chance as u8; 100 + (chance % 3000) as usize]; // some of them inline
                batch.put(&tables.blobs, &key, &blob);
                self.blobs.insert(key, blob);
            }
        }
        batch.commit(folddb::Durability::Process).expect("it goes");
        if chance % 97 == 0 {
            tables.blobs.delete_range(&key, &(key + 5)).expect("it goes");
            (key..key + 5).for_each(|key| drop(self.blobs.remove(&key)));
        }
    }

    fn check(&self, store: &Store) {
        let tables = tables(store);
        let rows =
            |table: &Table<u64, u64>| table.scan().into_iter().map(|row| row.expect("it reads")).collect();
        let (sums, others): (BTreeMap<_, _>, BTreeMap<_, _>) = (rows(&tables.sums), rows(&tables.others));
        assert_eq!((sums, others), (self.sums.clone(), self.others.clone()));
        let blobs: BTreeMap<u64, Vec<u8>> =
            tables.blobs.scan().into_iter().map(|row| row.expect("it reads")).collect();
        assert!(blobs == self.blobs, "{:?} {:?}", blobs.keys(), self.blobs.keys());
    }
}

/// A store with a past: flushes, merges, reclaim, and openings after a close and after a death.
fn lived(path: &Path, steps: u64) -> Model {
    let (mut model, mut store) = (Model::default(), Store::create(path, options()).expect("a store"));
    let mut at = tables(&store);
    for step in 0..steps {
        model.step(&store, &at, step);
        match step % 211 {
            40 | 90 => store.flush().expect("it flushes"),
            120 => store.bytes_table("blobs").expect("a table").compact().expect("it merges"),
            150 => drop(store.reclaim().expect("it reclaims")),
            200 => {
                drop(at);
                match step % 2 {
                    0 => store.close().expect("it closes"),
                    _ => drop(store), // as a process that dies
                }
                store = Store::open(path, options()).expect("it opens");
                at = tables(&store);
            }
            _ => {}
        }
    }
    model.check(&store);
    model
}

fn ruin_parts(path: &Path) -> usize {
    let parts: Vec<PathBuf> = std::fs::read_dir(path)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "part"))
        .collect();
    parts.iter().for_each(|part| std::fs::write(part, b"no part").expect("it is written"));
    parts.len()
}

fn rebuild(path: &Path, to: &Path, names: &[&str]) -> folddb::Result<folddb::maintenance::RepairReport> {
    let how = names.iter().fold(RepairOptions::default(), |how, name| how.rebuild_index(name));
    Store::repair(path, to, &how, &options())
}

#[test]
fn lost_runs_are_rebuilt_from_the_log_and_again_in_the_new_store() {
    let temp = tempfile::tempdir().expect("a directory");
    let path = temp.path().join("store");
    let model = lived(&path, 2000);
    assert!(ruin_parts(&path) > 2);
    let plain = Store::repair(&path, temp.path().join("plain"), &RepairOptions::default(), &options());
    assert!(!plain.expect("it repairs").is_complete());
    let mut from = path;
    for round in 0..2 {
        let to = temp.path().join(format!("new{round}"));
        let report = rebuild(&from, &to, &["sums", "blobs"]).expect("it rebuilds");
        assert!(report.verified.is_clean(), "{report:?}");
        let told: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|line| line.contains("table `sums` was rebuilt")), "{told:?}");
        let store = Store::open(&to, options()).expect("it opens");
        let others = store.table("others", Rules::sorted::<u64, u64>()).expect("a table");
        let left: BTreeMap<u64, u64> = others.scan().into_iter().map(|row| row.expect("it reads")).collect();
        Model { others: left, sums: model.sums.clone(), blobs: model.blobs.clone() }.check(&store);
        store.flush().expect("it flushes");
        store.close().expect("it closes");
        assert!(ruin_parts(&to) > 0);
        from = to;
    }
}

#[test]
fn runs_and_a_log_give_the_same() {
    let temp = tempfile::tempdir().expect("a directory");
    let path = temp.path().join("store");
    let model = lived(&path, 1500);
    let to = temp.path().join("new");
    assert!(rebuild(&path, &to, &["blobs"]).expect("it rebuilds").is_complete());
    model.check(&Store::open(&to, options()).expect("it opens"));
}

#[test]
fn a_table_without_an_archived_log_is_not_rebuilt() {
    let temp = tempfile::tempdir().expect("a directory");
    let path = temp.path().join("store");
    lived(&path, 300);
    for (name, says) in [("others", "its whole log is not archived"), ("missing", "no table `missing`")] {
        let refused = rebuild(&path, &temp.path().join("new"), &[name]).expect_err("it is refused");
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert!(refused.message().contains(says), "{refused}");
    }
    assert!(!temp.path().join("new").exists());
}

#[test]
fn a_log_that_is_kept_goes_with_its_table_and_is_not_for_reading() {
    let temp = tempfile::tempdir().expect("a directory");
    let store = Store::create(temp.path().join("store"), options()).expect("a store");
    let at = tables(&store);
    let mut model = Model::default();
    (0..3000).for_each(|step| model.step(&store, &at, step));
    store.flush().expect("it flushes");
    let held = |store: &Store| {
        store.feeds().iter().map(|feed| (feed.name.clone(), feed.held_bytes > 0)).collect::<Vec<_>>()
    };
    assert_eq!(held(&store), [("log:blobs".to_owned(), true), ("log:sums".to_owned(), true)]);
    let refused = store.feed("log:sums", FeedOptions::default()).map(drop).expect_err("it is refused");
    assert!(refused.message().contains("the log that table `sums` archives"), "{refused}");
    let refused = store.drop_feed("log:sums").expect_err("it is refused");
    assert!(refused.message().contains("goes when the table is dropped"), "{refused}");
    store.drop_table("sums").expect("it is dropped");
    store.drop_table("blobs").expect("it is dropped");
    assert_eq!(store.feeds(), []);
    let refused = store.table("hashed", Rules::hashed::<u64, Vec<u8>>().archive_log(true)).map(drop);
    assert!(refused.expect_err("it is refused").message().contains("rebuilt from its values"));
}

#[test]
fn a_value_that_is_damaged_costs_its_batch_and_not_the_table() {
    let temp = tempfile::tempdir().expect("a directory");
    let path = temp.path().join("store");
    let store = Store::create(&path, options()).expect("a store");
    let at = tables(&store);
    (1..=6_u64).for_each(|key| assert!(at.blobs.put(&key, &vec![key as u8; 2000]).is_ok()));
    at.blobs.delete(&3).expect("it goes");
    at.sums.fold(&1, &7).expect("it goes");
    store.flush().expect("it flushes");
    store.bytes_table("blobs").expect("a table").compact().expect("it merges");
    drop(at);
    store.close().expect("it closes");
    // The value that is lost, and one that is still there.
    for (dead_or_alive, keys) in [(3, &[1_u64, 2, 4, 5, 6][..]), (5, &[1, 2, 4, 6][..])] {
        flip_value(&path, dead_or_alive);
        let to = temp.path().join(format!("without {dead_or_alive}"));
        let report = rebuild(&path, &to, &["blobs", "sums"]).expect("it rebuilds");
        assert!(report.verified.is_clean(), "{report:?}");
        let told: Vec<&folddb::maintenance::Finding> = report.lost().collect();
        let is_of_blobs =
            |one: &&folddb::maintenance::Finding| one.losses.iter().all(|loss| loss.table == "blobs");
        assert!(told.len() == 1 && told.iter().all(is_of_blobs), "{told:?}");
        assert!(told[0].what.contains("its batch is lost"), "{told:?}");
        let store = Store::open(&to, options()).expect("it opens");
        let at = tables(&store);
        let left: Vec<u64> = at.blobs.scan().into_iter().map(|row| row.expect("it reads").0).collect();
        assert_eq!((left.as_slice(), at.sums.get(&1).expect("it reads")), (keys, Some(7)));
    }
}

/// Flips a byte of the one value that consists of 2000 bytes of this.
fn flip_value(path: &Path, byte: u8) {
    let values = std::fs::read_dir(path).expect("a directory").map(|entry| entry.expect("an entry").path());
    for file in values.filter(|path| path.extension().is_some_and(|extension| extension == "values")) {
        let mut bytes = std::fs::read(&file).expect("it reads");
        if let Some(at) = bytes.windows(1000).position(|window| window.iter().all(|&one| one == byte)) {
            bytes[at] ^= 0x40;
            return std::fs::write(&file, bytes).expect("it is written");
        }
    }
    panic!("no value of {byte}");
}

#[test]
fn a_damaged_log_is_reported_and_nothing_is_created() {
    let temp = tempfile::tempdir().expect("a directory");
    let path = temp.path().join("store");
    lived(&path, 2000);
    let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "log");
    let entries = std::fs::read_dir(&path).expect("a directory").map(|entry| entry.expect("an entry").path());
    let oldest = entries.filter(is_log).min().expect("a log");
    let verified =
        || Store::verify(&path, &VerifyOptions::default().deep(true), &options()).expect("it reads");
    assert!(verified().is_clean(), "{:?}", verified().findings);
    let mut bytes = std::fs::read(&oldest).expect("it reads");
    bytes[6000] ^= 0x40;
    std::fs::write(&oldest, bytes).expect("it is written");
    let refused = rebuild(&path, &temp.path().join("new"), &["sums"]).expect_err("it is refused");
    assert_eq!(refused.kind(), ErrorKind::Corruption);
    assert!(refused.to_string().contains("table `sums` cannot be rebuilt"), "{refused}");
    assert!(refused.to_string().contains("keeps what is whole of its runs"), "{refused}");
    assert!(!temp.path().join("new").exists());
    // And before it is needed.
    let report = verified();
    let told: Vec<&folddb::maintenance::Finding> = report.damage().collect();
    let name = oldest.file_name().expect("a name").to_string_lossy();
    assert!(told.len() == 1 && told[0].file == name && told[0].offset.is_some(), "{told:?}");
    assert!(
        told[0].what.contains("that archive their logs (`sums`, `blobs`) can no longer be rebuilt"),
        "{told:?}"
    );
    let quick = Store::verify(&path, &VerifyOptions::default(), &options()).expect("it reads");
    assert!(quick.is_clean(), "{:?}", quick.findings);
}

/// Openings for writing remove nothing of an archived log because some of it is missing: the file
/// may be put back.
#[test]
fn an_archived_log_outlives_openings_while_a_file_of_it_is_missing() {
    let temp = tempfile::tempdir().expect("a directory");
    let path = temp.path().join("store");
    for opening in 0..20 {
        let store = Store::open_or_create(&path, options()).expect("a store");
        let at = tables(&store);
        (0..20).for_each(|key| assert!(at.sums.fold(&key, &opening).is_ok()));
        drop(at);
        store.close().expect("it closes");
    }
    let logs = || {
        let entries =
            std::fs::read_dir(&path).expect("a directory").map(|entry| entry.expect("an entry").path());
        let is_log = |path: &PathBuf| path.extension().is_some_and(|end| end == "log" || end == "kept");
        entries.filter(is_log).collect::<std::collections::BTreeSet<_>>()
    };
    let verified =
        || Store::verify(&path, &VerifyOptions::default().deep(true), &options()).expect("it reads");
    let newest = |end: &str, nth: usize| {
        let ends = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == end);
        logs().iter().filter(ends).nth_back(nth).expect("there are some").clone()
    };
    for harmed in [newest("log", 1), newest("kept", 0)] {
        let bytes = std::fs::read(&harmed).expect("it reads");
        for flipped in [None, Some(20)] {
            match flipped {
                None => std::fs::remove_file(&harmed).expect("it goes"),
                Some(at) => {
                    let mut bytes = bytes.clone();
                    bytes[at] ^= 0x40;
                    std::fs::write(&harmed, bytes).expect("it is written");
                }
            }
            for _ in 0..3 {
                let store = Store::open(&path, options()).expect("it opens");
                tables(&store).sums.fold(&7, &1).expect("a fold");
                store.close().expect("it closes");
                assert_eq!(harmed.exists(), flipped.is_some(), "{harmed:?}");
                assert!(!verified().is_clean(), "{harmed:?} is damaged");
            }
            std::fs::write(&harmed, &bytes).expect("it is put back");
            assert!(verified().is_clean(), "{:?}", verified().findings);
        }
    }
    let new = temp.path().join("new");
    rebuild(&path, &new, &["sums"]).expect("it is rebuilt");
    let store = Store::open(&new, options()).expect("it opens");
    let sums = tables(&store).sums;
    assert_eq!((sums.get(&3).expect("a get"), sums.get(&7).expect("a get")), (Some(190), Some(190 + 12)));
}

#[test]
fn a_deep_check_reads_values_that_only_an_archived_log_points_to() {
    let temp = tempfile::tempdir().expect("a directory");
    let path = temp.path().join("store");
    let store = Store::create(&path, options()).expect("a store");
    let at = tables(&store);
    (1..=6_u64).for_each(|key| assert!(at.blobs.put(&key, &vec![key as u8; 2000]).is_ok()));
    at.blobs.delete(&3).expect("it goes");
    store.bytes_table("blobs").expect("a table").compact().expect("it merges");
    drop(at);
    store.close().expect("it closes");
    flip_value(&path, 3);
    let report = Store::verify(&path, &VerifyOptions::default().deep(true), &options()).expect("it reads");
    let told: Vec<String> = report.damage().map(ToString::to_string).collect();
    assert!(told.len() == 1 && told[0].contains(".values"), "{told:?}");
    assert!(told[0].contains("a value that the archived log leads to"), "{told:?}");
}
