//! A merge that is broken off leaves a table in which newer and older records of one key are in
//! more runs than before, and the next merge may take any of them.
#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;

use folddb::{BackgroundWork, Options, Rules, Store, Table};

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
