//! Work over many rows: scans cut into pieces, folds on several threads, digests.
#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;

use folddb::{BytesTable, ErrorKind, Options, Rules, Store, Table, Upkeep};

fn options() -> Options {
    Options::default().memory_bytes(4 << 20).part_bytes(64 << 10).upkeep(Upkeep::Manual)
}

fn blob(key: u64, round: u64) -> Vec<u8> {
    vec![(key + round) as u8; 100 + (key * 37 % 400) as usize]
}

/// A store whose values lie apart from `separate` bytes on, written in an order of its own, with some keys written twice.
fn filled(
    separate: Option<u32>,
    order: impl Iterator<Item = u64>,
) -> (tempfile::TempDir, Store, Table<u64, Vec<u8>>) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("s.folddb"), options()).unwrap();
    let rules = Rules::sorted::<u64, Vec<u8>>();
    let rules = match separate {
        Some(from) => rules.separate(from),
        None => rules,
    };
    let table = store.table("t", rules).unwrap();
    for (number, key) in order.enumerate() {
        if key % 3 == 0 {
            table.set(&key, &blob(key, 9)).unwrap();
        }
        table.set(&key, &blob(key, 0)).unwrap();
        if number % 4000 == 3999 {
            store.flush().unwrap();
        }
    }
    while store.upkeep_step().unwrap().is_some() {}
    (dir, store, table)
}

const KEYS: u64 = 10_000;

fn rows(table: &BytesTable) -> Vec<(Vec<u8>, Vec<u8>)> {
    table.scan().into_iter().map(|row| row.unwrap()).collect()
}

#[test]
fn pieces_follow_one_another_and_see_one_snapshot() {
    let (_dir, store, table) = filled(None, 0..KEYS);
    let all = rows(table.as_bytes());
    for pieces in [1, 2, 5, 16] {
        let split = table.as_bytes().scan().split(pieces).unwrap();
        assert_eq!(split.len(), pieces);
        table.delete(&(pieces as u64)).unwrap();
        let counts: Vec<usize> = split.iter().map(|piece| piece.clone().into_iter().count()).collect();
        let even = all.len() / pieces;
        assert!(counts.iter().all(|count| *count > even / 3 && *count < even * 3), "{counts:?}");
        let joined: Vec<_> = split.into_iter().flatten().map(|row| row.unwrap()).collect();
        assert_eq!(joined, all, "what is deleted after the cut is there in every piece");
        table.set(&(pieces as u64), &blob(pieces as u64, 0)).unwrap();
    }
    store.flush().unwrap();
    let back = table.as_bytes().scan().reverse().split(7).unwrap();
    let joined: Vec<_> = back.into_iter().flatten().map(|row| row.unwrap()).collect();
    assert!(joined.iter().eq(all.iter().rev()));
}

#[test]
fn a_fold_over_rows_comes_to_the_same_on_any_number_of_threads() {
    let (_dir, store, table) = filled(Some(256), 0..KEYS);
    let table = table.as_bytes();
    let keys: Vec<Vec<u8>> = rows(table).into_iter().map(|row| row.0).collect();
    let bytes: usize = rows(table).iter().map(|row| row.1.len()).sum();
    for threads in [0, 1, 2, 5] {
        let gathered = table.scan().fold_rows(
            threads,
            || (Vec::new(), 0),
            |(keys, bytes), key, value| {
                keys.push(key.to_vec());
                *bytes += value.len();
                ControlFlow::Continue(())
            },
            |(mut keys, bytes), (more, others)| {
                keys.extend(more);
                (keys, bytes + others)
            },
        );
        assert_eq!(gathered.unwrap(), (keys.clone(), bytes), "{threads} threads");
    }
    let read = store.stats().value_reads;
    let sized = table.scan().fold_heads(
        3,
        || 0,
        |sum, _, head| {
            *sum += head.size_bytes as usize;
            ControlFlow::Continue(())
        },
        |a, b| a + b,
    );
    assert_eq!(sized.unwrap(), bytes);
    assert_eq!(store.stats().value_reads, read, "a fold over heads reads no value");
}

#[test]
fn a_step_that_breaks_ends_the_work_of_all() {
    let (_dir, _store, table) = filled(None, 0..KEYS);
    let seen = table.as_bytes().scan().fold_rows(
        1,
        || 0,
        |count, _, _| {
            *count += 1;
            if *count == 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
        |a, b| a + b,
    );
    assert_eq!(seen.unwrap(), 10);
    let limited = table.as_bytes().scan().limit(3);
    let refused = limited.fold_rows(1, || (), |(), _, _| ControlFlow::Continue(()), |(), ()| ());
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn two_stores_with_the_same_content_have_the_same_digest_however_it_came_there() {
    let (_dir, mine, table) = filled(Some(256), 0..KEYS);
    let (_other_dir, _theirs, other) = filled(None, (0..KEYS).rev());
    let (table, other) = (table.as_bytes(), other.as_bytes());
    let read = mine.stats().value_reads;
    let digest = |table: &BytesTable, threads| table.scan().digest(3, threads).unwrap();
    assert_eq!(digest(table, 1), digest(other, 4));
    assert_eq!(digest(table, 3).keys(), KEYS);
    assert_eq!(mine.stats().value_reads, read, "a digest reads no value");

    let changed = rows(table)[1234].0.clone();
    other.write(folddb::WriteOp::Set, &changed, &blob(1234, 1)).unwrap();
    let (a, b) = (digest(table, 2), digest(other, 2));
    assert_ne!(a.root(), b.root());
    assert_eq!(a.differing(&b).unwrap(), [a.leaf_of(&changed)]);
    let before = other.scan().before(&changed).digest(3, 2).unwrap();
    assert_eq!(before, table.scan().before(&changed).digest(3, 1).unwrap());
    assert!(a.differing(&before).is_err(), "digests of other ranges do not compare");
}
