//! Values of every kind, read in every way, while reclaim moves them: long ones in several pieces,
//! joined ones, values of hashed tables, and values in files of their own.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use common::small_values;
use folddb::maintenance::VerifyOptions;
use folddb::{
    BackgroundJob, BytesTable, Locate, Located, Options, Rules, Snapshot, Store, ValuePlacement, ValueReader,
    WriteOp,
};

const PIECE: usize = 16 << 10;
const KEYS: u64 = 24;
/// Every third key is overwritten in each round.
const STEP: u64 = 3;

fn options() -> Options {
    small_values().tuning(|t| t.part_bytes(64 << 10).stream_piece_bytes(PIECE))
}

/// Tables by name: `long` takes streams, `joined` separated operands.
fn tables(store: &Store) -> [BytesTable; 4] {
    let sorted = || Rules::sorted::<u64, Vec<u8>>().separate(1024);
    let joined = sorted().fold("append:,");
    let table = |name, rules| store.table(name, rules).unwrap().as_bytes().clone();
    [
        table("long", sorted()),
        table("joined", joined),
        table("objects", sorted().value_placement(ValuePlacement::Files)),
        table("hashed", Rules::hashed::<u64, Vec<u8>>()),
    ]
}

fn bytes(salt: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| ((at ^ (at >> 9)).wrapping_mul(salt | 1) >> 3) as u8).collect()
}

/// The value that is written to a key in a round.
fn written(table: usize, key: u64, round: u64) -> Vec<u8> {
    let len = match table {
        0 => 2 * PIECE + 1000 * key as usize, // in three pieces or four
        _ => 1500 + 211 * key as usize,
    };
    bytes(1 + key * 977 + round * 31 + table as u64, len)
}

/// The value of a key after a round.
fn expected(table: usize, key: u64, round: u64) -> Vec<u8> {
    let last = if key.is_multiple_of(STEP) { round } else { 0 };
    match table {
        1 => (0..=last).map(|round| written(table, key, round)).collect::<Vec<_>>().join(&b","[..]),
        _ => written(table, key, last),
    }
}

fn write(store: &Store, round: u64) {
    for (at, table) in tables(store).iter().enumerate() {
        for key in (0..KEYS).filter(|key| round == 0 || key.is_multiple_of(STEP)) {
            let value = written(at, key, round);
            match at {
                0 => {
                    let mut writer = table.writer(WriteOp::Put, &key.to_be_bytes()).unwrap();
                    writer.write_from(&mut &value[..]).unwrap();
                    writer.finish().unwrap();
                }
                1 => drop(table.write(WriteOp::Fold, &key.to_be_bytes(), &value).unwrap()),
                _ => drop(table.write(WriteOp::Put, &key.to_be_bytes(), &value).unwrap()),
            }
        }
        store.background_step_of(BackgroundJob::Log).unwrap();
    }
}

fn merge_and_reclaim(store: &Store) -> u64 {
    for table in ["long", "joined", "objects"] {
        store.bytes_table(table).unwrap().compact().unwrap();
    }
    store.reclaim().unwrap().plans
}

fn moved(path: &Path) -> usize {
    let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".moved")).count()
}

fn all_of(mut reader: ValueReader) -> Vec<u8> {
    let mut value = Vec::new();
    reader.read_to_end(&mut value).unwrap();
    value
}

/// All of it by the calls for copying it: from the store's own handle, and from a file opened by
/// name.
fn copied(located: &Located) -> Vec<u8> {
    let mut value = Vec::new();
    assert_eq!(located.write_to(&mut value).unwrap(), located.len_bytes());
    let mut by_offset = Vec::new();
    for piece in located.pieces() {
        match piece {
            folddb::LocatedPiece::Bytes(bytes) => by_offset.extend_from_slice(bytes),
            folddb::LocatedPiece::InFile(piece) => {
                let mut part = vec![0; piece.len_bytes() as usize];
                piece.read_exact_at(0, &mut part).unwrap();
                let mut again = Vec::new();
                piece.open().unwrap().take(piece.len_bytes()).read_to_end(&mut again).unwrap();
                assert_eq!(part, again, "{piece:?}");
                by_offset.extend(part);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(value, by_offset);
    value
}

/// Reads a key in every way, at a snapshot or now.
fn check_key(tables: &[BytesTable; 4], at: usize, key: u64, round: u64, snapshot: Option<&Snapshot>) {
    let (table, key_bytes) = (&tables[at], key.to_be_bytes());
    let expected = expected(at, key, round);
    let what = || format!("key {key} of {} after round {round}", table.name());
    let got = match snapshot {
        None => table.get(&key_bytes).unwrap(),
        Some(snapshot) => snapshot.get(table, &key_bytes).unwrap(),
    };
    assert!(got.as_ref() == Some(&expected), "get of {}", what());
    let reader = match snapshot {
        None => table.read(&key_bytes).unwrap(),
        Some(snapshot) => snapshot.table(table).read(&key_bytes).unwrap(),
    };
    assert!(all_of(reader.unwrap()) == expected, "stream of {}", what());
    for how in [Locate::default(), Locate::default().verify(false).read_ahead(true)] {
        let located = match snapshot {
            None => table.locate(&key_bytes, how).unwrap(),
            Some(snapshot) => snapshot.table(table).locate(&key_bytes, how).unwrap(),
        };
        assert!(copied(&located.unwrap()) == expected, "locate of {}", what());
    }
    let head = match snapshot {
        None => table.head(&key_bytes).unwrap(),
        Some(snapshot) => snapshot.table(table).head(&key_bytes).unwrap(),
    };
    assert_eq!(head.unwrap().size_bytes, expected.len() as u64, "head of {}", what());
}

fn check(store: &Store, round: u64, snapshot: Option<&Snapshot>) {
    let tables = tables(store);
    for at in 0..tables.len() {
        (0..KEYS).for_each(|key| check_key(&tables, at, key, round, snapshot));
    }
}

#[test]
fn streams_and_located_values_of_before_a_move_go_on_and_those_after_it_are_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    write(&store, 0);
    merge_and_reclaim(&store);
    let snapshot = store.snapshot();
    let tables = tables(&store);
    let mut held = Vec::new();
    for (at, table) in tables.iter().enumerate() {
        for key in 0..KEYS {
            let mut reader = table.read(&key.to_be_bytes()).unwrap().unwrap();
            let mut begun = vec![0; 700];
            reader.read_exact(&mut begun).unwrap();
            let located = table.locate(&key.to_be_bytes(), Locate::default()).unwrap().unwrap();
            held.push((at, key, begun, reader, located));
        }
    }
    for round in 1..=6 {
        write(&store, round);
        merge_and_reclaim(&store);
        check(&store, round, None);
        check(&store, 0, Some(&snapshot));
    }
    assert!(moved(&path) > 0, "{:?}", store.value_segments());
    for (at, key, mut begun, reader, located) in held {
        begun.extend(all_of(reader));
        assert!(begun == expected(at, key, 0), "a stream of key {key} of {}", tables[at].name());
        assert!(copied(&located) == expected(at, key, 0), "key {key} of {}, located", tables[at].name());
    }
    drop(snapshot);
    write(&store, 7);
    assert!(merge_and_reclaim(&store) > 0);
    check(&store, 7, None);
    drop(tables);
    drop(store); // as if the process died
    let store = Store::open(&path, options()).unwrap();
    check(&store, 7, None);
    store.close().unwrap();
    let report = Store::verify(&path, &VerifyOptions::default().deep(true), &options()).unwrap();
    assert_eq!(report.findings, []);
    check(&Store::open_read_only(&path, options()).unwrap(), 7, None);
}

#[test]
fn readers_meet_only_whole_values_while_others_overwrite_and_reclaim() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    write(&store, 0);
    let snapshot = store.snapshot();
    let (is_done, reads, plans) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for first in 0..2 {
            let (store, snapshot, is_done, reads) = (&store, &snapshot, &is_done, &reads);
            scope.spawn(move || {
                let tables = tables(store);
                let mut held: Vec<(usize, u64, Located)> = Vec::new();
                for turn in first.. {
                    let (at, key) = ((turn % 4) as usize, turn / 4 % KEYS);
                    match key.is_multiple_of(STEP) {
                        false => check_key(&tables, at, key, 0, None), // it is never overwritten
                        true => check_key(&tables, at, key, 0, Some(snapshot)),
                    }
                    if held.len() == 16 {
                        let (at, key, located) = held.remove(0);
                        assert!(copied(&located) == expected(at, key, 0), "key {key}, located a while ago");
                    }
                    let at_snapshot =
                        snapshot.table(&tables[at]).locate(&key.to_be_bytes(), Locate::default());
                    held.push((at, key, at_snapshot.unwrap().unwrap()));
                    reads.fetch_add(1, Ordering::Relaxed);
                    if is_done.load(Ordering::Relaxed) && turn > 2 * KEYS {
                        break;
                    }
                }
            });
        }
        for round in 1..=5 {
            write(&store, round);
            plans.fetch_add(merge_and_reclaim(&store), Ordering::Relaxed);
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert!(plans.into_inner() > 0 && moved(&path) > 0, "{:?}", store.value_segments());
    assert!(reads.into_inner() > KEYS);
    check(&store, 5, None);
    check(&store, 0, Some(&snapshot));
}

#[test]
fn a_version_distinguishes_a_write_from_every_other_and_stays_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.folddb");
    let mut store = Store::create(&path, options()).unwrap();
    let versions = |store: &Store| -> Vec<u64> {
        let of =
            |table: &BytesTable, key: u64| table.head(&key.to_be_bytes()).unwrap().unwrap().version.unwrap();
        tables(store).iter().flat_map(|table| (0..KEYS).map(move |key| of(table, key))).collect()
    };
    write(&store, 0);
    let mut seen = versions(&store);
    for round in 1..4 {
        let before = versions(&store);
        write(&store, round);
        let after = versions(&store);
        for (at, (before, after)) in before.iter().zip(&after).enumerate() {
            assert_eq!(before != after, (at as u64 % KEYS).is_multiple_of(STEP), "value {at}, round {round}");
        }
        store.flush().unwrap();
        merge_and_reclaim(&store);
        assert_eq!(versions(&store), after, "round {round}");
        drop(store);
        store = Store::open(&path, options()).unwrap();
        assert_eq!(versions(&store), after);
        seen.extend(
            after
                .iter()
                .enumerate()
                .filter(|(at, _)| (*at as u64 % KEYS).is_multiple_of(STEP))
                .map(|one| one.1),
        );
    }
    assert!(moved(&path) > 0, "values have moved");
    for table in &tables(&store)[2..] {
        let head = || table.head(&1u64.to_be_bytes()).unwrap().unwrap();
        let (before, value) = (head(), table.get(&1u64.to_be_bytes()).unwrap().unwrap());
        table.write(WriteOp::Put, &1u64.to_be_bytes(), &value).unwrap();
        assert_eq!(
            (head().hash, head().version == before.version),
            (before.hash, false),
            "the same bytes again"
        );
    }
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), count, "no two are alike");
}
