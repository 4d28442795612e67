//! A disk on which each read takes its time: what is read together is asked for together.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use folddb::{Options, Rules, Store, Table};
use folddb_host::Host;
use folddb_sim::faulty_files::FaultyFiles;

const KEYS: u64 = 20_000;

fn value(key: u64) -> Vec<u8> {
    vec![key as u8; 100 + key as usize % 50]
}

fn options(files: &FaultyFiles) -> Options {
    Options::default().memory_bytes(8 << 20).host(Host { files: Arc::new(files.clone()), ..Host::real() })
}

/// Keys of which every third is absent, in no order, one of them twice.
fn asked_keys() -> Vec<u64> {
    let mut keys: Vec<u64> = (0..200u64).map(|n| n.wrapping_mul(0x9e37_79b9) % KEYS * 3 / 2).collect();
    keys.push(keys[7]);
    keys
}

#[test]
fn many_keys_are_asked_for_before_they_are_read() {
    for rules in [Rules::sorted::<u64, Vec<u8>>(), Rules::hashed(), Rules::sorted().separate(64)] {
        let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
        let (path, files) = (temp.path().join("store"), FaultyFiles::new(Host::real().files));
        let store = Store::create(&path, options(&files)).unwrap();
        let table = store.table("blobs", rules.clone()).unwrap();
        for key in 0..KEYS {
            table.put(&key, &value(key)).unwrap();
            if key % 5_000 == 4_999 {
                store.flush().unwrap(); // several runs
            }
        }
        drop(table);
        store.close().unwrap();
        let store = Store::open(&path, options(&files)).unwrap();
        let table: Table<u64, Vec<u8>> = store.table("blobs", rules).unwrap();
        files.slow_reads(Duration::from_micros(200));
        let before = files.asked();
        let keys = asked_keys();
        let expected: Vec<Option<Vec<u8>>> =
            keys.iter().map(|&key| (key < KEYS).then(|| value(key))).collect();
        assert_eq!(table.get_many(&keys).unwrap(), expected);
        let asked = files.asked() - before;
        assert!(asked >= 50, "{asked} pieces were asked for beforehand");
        assert_eq!(table.get_many(&keys).unwrap(), expected, "and again, with some of it in memory");
        let other: Vec<u64> = keys.iter().map(|key| key + 1).collect();
        let expected: Vec<Option<Vec<u8>>> =
            other.iter().map(|&key| (key < KEYS).then(|| value(key))).collect();
        let past = store.snapshot();
        assert_eq!(past.table(&table).get_many(&other).unwrap(), expected);
        drop(past);
        store.close().unwrap();
    }
}
