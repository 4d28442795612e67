//! Values of hashed tables that are longer than a single write: streamed, one record each, and with
//! all promises that a store makes for shorter ones.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use common::{drain, small_values};
use folddb::maintenance::{BackupOptions, LoadOptions, RepairOptions, RestoreOptions, VerifyOptions};
use folddb::{ErrorKind, Locate, Options, Rules, Store, Table, ValuePlacement, WriteOp};

/// Four pieces of a value are held in memory: a value longer than 4 KiB is a long one.
fn options() -> Options {
    small_values().tuning(|t| t.stream_piece_bytes(1 << 10))
}

fn rules(place: ValuePlacement) -> Rules<u64, Vec<u8>> {
    Rules::hashed().value_placement(place)
}

fn blobs(store: &Store, place: ValuePlacement) -> Table<u64, Vec<u8>> {
    store.table("blobs", rules(place)).unwrap()
}

fn blob(key: u64, round: u64, bytes: usize) -> Vec<u8> {
    let mut state = key * 1000 + round + 1;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..bytes).map(next).collect()
}

fn stream(store: &Store, op: WriteOp, key: u64, value: &[u8]) {
    let mut writer = store.bytes_table("blobs").unwrap().writer(op, &key.to_be_bytes()).unwrap();
    value.chunks(700).for_each(|piece| writer.write_all(piece).unwrap());
    writer.finish().unwrap();
}

fn streamed(table: &Table<u64, Vec<u8>>, key: u64) -> Option<Vec<u8>> {
    let mut reader = table.read(&key).unwrap()?;
    let mut value = Vec::new();
    reader.read_to_end(&mut value).unwrap();
    assert_eq!(reader.len_bytes(), value.len() as u64);
    Some(value)
}

fn check(table: &Table<u64, Vec<u8>>, key: u64, expected: Option<&Vec<u8>>) {
    assert_eq!(table.get(&key).unwrap().as_ref(), expected, "key {key}");
    assert_eq!(streamed(table, key).as_ref(), expected, "key {key}");
    let head = table.head(&key).unwrap();
    assert_eq!(head.map(|head| head.size_bytes), expected.map(|value| value.len() as u64));
}

fn whole(path: &Path) {
    for deep in [false, true] {
        let report = Store::verify(path, &VerifyOptions::default().deep(deep), &options()).unwrap();
        assert!(report.is_clean(), "{:?}", report.findings);
    }
}

/// Directories of values, and files of values that are in none.
fn entries(path: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|found| found == ending)).collect()
}

#[test]
fn a_long_value_is_one_record_in_a_file_of_its_own_and_goes_when_it_is_dead() {
    for place in [ValuePlacement::Segments, ValuePlacement::Files] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let mut store = Store::create(&path, options()).unwrap();
        let mut expected = vec![None; 6];
        for round in 0..6 {
            let table = blobs(&store, place);
            for key in 0..6_u64 {
                let bytes = [100, 4096, 4097, 9000, 60_000, 0][(key + round) as usize % 6];
                let value = blob(key, round, bytes);
                match (key + round) % 4 {
                    0 if round > 0 => {
                        table.delete(&key).unwrap();
                        expected[key as usize] = None;
                        continue;
                    }
                    1 => stream(&store, WriteOp::Put, key, &value),
                    2 if expected[key as usize].is_some() => {
                        stream(&store, WriteOp::PutIfAbsent, key, &value); // has no effect
                        continue;
                    }
                    2 => stream(&store, WriteOp::PutIfAbsent, key, &value),
                    _ => {
                        table.put(&key, &value).unwrap();
                    }
                }
                expected[key as usize] = Some(value);
            }
            for (key, value) in (0..).zip(&expected) {
                check(&table, key, value.as_ref());
            }
            let rows = table
                .scan()
                .into_iter()
                .map(|row| row.unwrap())
                .collect::<std::collections::BTreeMap<_, _>>();
            assert!((0..).zip(&expected).all(|(key, value)| rows.get(&key) == value.as_ref()));
            drop(table);
            match round % 3 {
                0 => drop(store),
                1 => store.close().unwrap(),
                _ => {
                    drain(&store);
                    store.reclaim().unwrap();
                    store.close().unwrap();
                }
            }
            whole(&path);
            store = Store::open(&path, options()).unwrap();
        }
        let table = blobs(&store, place);
        for key in 0..6 {
            table.delete(&key).unwrap();
        }
        store.flush().unwrap();
        store.reclaim().unwrap();
        drain(&store);
        store.close().unwrap();
        assert_eq!(entries(&path, "shelf"), Vec::<PathBuf>::new());
        assert_eq!(entries(&path, "values"), Vec::<PathBuf>::new());
    }
}

#[test]
fn a_seek_and_a_locate_find_it_in_one_file_and_a_snapshot_keeps_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let table = blobs(&store, ValuePlacement::Segments);
    let value = blob(1, 1, 17 << 20);
    stream(&store, WriteOp::Put, 1, &value);
    let past = store.snapshot();
    let mut reader = table.read(&1).unwrap().unwrap();
    table.put(&1, &vec![7; 10]).unwrap();
    store.flush().unwrap();
    drain(&store);
    for at in [0, 1 << 20, (17 << 20) - 5, 1023, 1024] {
        reader.seek(SeekFrom::Start(at)).unwrap();
        let mut some = vec![0; 5];
        reader.read_exact(&mut some).unwrap();
        assert_eq!(some, value[at as usize..at as usize + 5]);
    }
    assert_eq!(reader.read(&mut [0; 10]).unwrap().min(1), 1);
    assert_eq!(past.get(&table, &1).unwrap().as_ref(), Some(&value));
    let located = past
        .table(&store.bytes_table("blobs").unwrap())
        .locate(&1_u64.to_be_bytes(), Locate::default())
        .unwrap()
        .unwrap();
    let file = located.as_file().unwrap();
    let mut bytes = vec![0; 9];
    file.read_exact_at(3, &mut bytes).unwrap();
    assert_eq!((file.len_bytes(), bytes.as_slice()), (value.len() as u64, &value[3..12]));
    assert_eq!(table.get(&1).unwrap(), Some(vec![7; 10]));
    drop((located, past, reader));
    drain(&store);
    store.reclaim().unwrap();
    assert_eq!(entries(&path, "shelf"), Vec::<PathBuf>::new());
}

#[test]
fn what_is_not_finished_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let table = blobs(&store, ValuePlacement::Segments);
    let mut writer = table.writer(&1).unwrap();
    writer.write_all(&[1; 50_000]).unwrap();
    assert_eq!(entries(&path, "values").len(), 1);
    drop(writer);
    assert_eq!((entries(&path, "values").len(), table.get(&1).unwrap()), (0, None));
}

/// A store in which the last value of a key is long, or short after a long one, by the parity of
/// the key.
fn mixed(path: &Path, long_bytes: usize) -> Vec<Vec<u8>> {
    let store = Store::create(path, options()).unwrap();
    let table = blobs(&store, ValuePlacement::Segments);
    let last = |key: u64| {
        let (long, short) = (blob(key, 1, long_bytes), blob(key, 2, 300));
        table.put(&key, &short).unwrap();
        stream(&store, WriteOp::Put, key, &long);
        if key.is_multiple_of(2) {
            return long;
        }
        table.put(&key, &short).unwrap();
        short
    };
    let values = (0..4).map(last).collect();
    drop(table);
    store.close().unwrap();
    values
}

#[test]
fn backups_dumps_and_repair_have_it_also_where_the_index_is_lost() {
    for long_bytes in [9_000, (16 << 20) + 100] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let values = mixed(&path, long_bytes);
        let has_all = |path: &Path| {
            whole(path);
            let store = Store::open(path, options()).unwrap();
            let table = blobs(&store, ValuePlacement::Segments);
            (0..).zip(&values).for_each(|(key, value)| check(&table, key, Some(value)));
        };
        let (backups, again) = (dir.path().join("backups"), dir.path().join("again"));
        let store = Store::open(&path, options()).unwrap();
        store.backup(&backups, &BackupOptions::default()).unwrap();
        Store::restore(&backups, &again, &RestoreOptions::default(), &options()).unwrap();
        has_all(&again);

        let mut dump = Vec::new();
        store.dump(&[], &mut dump).unwrap();
        drop(store);
        let loaded = dir.path().join("loaded");
        let store = Store::create(&loaded, options()).unwrap();
        store.load(&mut dump.as_slice(), &LoadOptions::default()).unwrap();
        drop(store);
        has_all(&loaded);

        let index = entries(&path, "index").pop().unwrap();
        let mut bytes = std::fs::read(&index).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..].fill(9);
        std::fs::write(&index, bytes).unwrap();
        let mended = dir.path().join("mended");
        let report = Store::repair(&path, &mended, &RepairOptions::default(), &options()).unwrap();
        assert!(report.findings.iter().any(|finding| finding.what.contains("was rebuilt")), "{report:?}");
        has_all(&mended);
    }
}

/// Where an index is lost, the later value in the log counts, and a short one that was put after a
/// long one is later.
#[test]
fn the_later_of_two_values_is_found_without_the_index_though_the_earlier_is_there_still() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let table = blobs(&store, ValuePlacement::Segments);
    table.put(&1, &blob(1, 1, 300)).unwrap();
    stream(&store, WriteOp::Put, 1, &blob(1, 2, 9_000));
    let past = store.snapshot(); // so the long one remains
    table.put(&1, &blob(1, 3, 300)).unwrap();
    store.flush().unwrap();
    drain(&store);
    assert!(store.stats().background.indexes_saved > 0 && entries(&path, "shelf").len() == 1);
    drop((past, table, store)); // as if the process died
    std::fs::write(entries(&path, "index").pop().unwrap(), [9; 5000]).unwrap();
    let mended = dir.path().join("mended");
    Store::repair(&path, &mended, &RepairOptions::default(), &options()).unwrap();
    let store = Store::open(&mended, options()).unwrap();
    check(&blobs(&store, ValuePlacement::Segments), 1, Some(&blob(1, 3, 300)));
}

#[test]
fn damage_is_reported_before_any_byte_is_returned() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    mixed(&path, 17 << 20);
    let directory = entries(&path, "shelf").into_iter().min().unwrap();
    let value_file = entries(&directory, "value").pop().unwrap();
    let mut bytes = std::fs::read(&value_file).unwrap();
    let at = bytes.len() - 1000;
    bytes[at] ^= 1;
    std::fs::write(&value_file, bytes).unwrap();
    let store = Store::open(&path, options()).unwrap();
    let table = blobs(&store, ValuePlacement::Segments);
    let name = value_file.file_name().unwrap().to_str().unwrap().to_owned();
    let told = |error: folddb::Error| {
        assert!(error.kind() == ErrorKind::Corruption && error.message().contains(&name), "{error}")
    };
    told(table.get(&0).unwrap_err());
    let read = table.read(&0).unwrap().unwrap().read(&mut [0; 10]);
    assert!(read.unwrap_err().to_string().contains(&name));
    told(table.locate(&0, Locate::default()).unwrap_err());
    assert!(table.locate(&0, Locate::default().verify(false)).unwrap().is_some());
    drop((table, store));
    let report = Store::verify(&path, &VerifyOptions::default().deep(true), &options()).unwrap();
    assert!(report.damage().any(|finding| finding.to_string().contains(&name)), "{:?}", report.findings);
}

/// A segment that a long value leaves behind, nearly empty, gives back its preallocated space, even
/// without a sync.
#[test]
fn short_and_long_values_in_turn_take_no_more_of_the_disk_than_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options().tuning(|t| t.value_segment_bytes(2 << 20)))
        .unwrap();
    let table = blobs(&store, ValuePlacement::Segments);
    let rounds = 24;
    for round in 0..rounds {
        table.put(&(1000 + round), &blob(round, 0, 200)).unwrap();
        stream(&store, WriteOp::Put, round, &blob(round, 1, 6000));
        drain(&store);
    }
    let taken = store.stats().disk.value_bytes;
    assert!(
        taken < rounds * (200 + 6000 + 3 * 4096) + (4 << 20),
        "{taken} bytes, {:?}",
        store.value_segments()
    );
    for round in 0..rounds {
        check(&table, round, Some(&blob(round, 1, 6000)));
        assert_eq!(table.get(&(1000 + round)).unwrap(), Some(blob(round, 0, 200)));
    }
}
