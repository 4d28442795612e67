//! Cursors: a scan is left, and resumed, by the same process or by another.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{Fails, manual as options};
use folddb::{
    AsOf, BytesTable, Cursor, ErrorKind, Keep, ParseError, Resume, Rules, Store, Table, ValuePlacement,
};

fn fresh(dir: &Path) -> (Store, Table<u64, u64>) {
    let store = Store::create(dir.join("s.folddb"), options()).unwrap();
    let table = store.table("t", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    for key in 0..100 {
        table.put(&key, &(key * 2)).unwrap();
        if key % 30 == 0 {
            store.flush().unwrap();
        }
    }
    (store, table)
}

/// Reads a range in pages of `page` rows, each from the cursor of the page before, as text; returns
/// all keys.
fn in_pages(table: &BytesTable, first: &Cursor, page: usize, how: Resume) -> Vec<Vec<u8>> {
    let mut cursor = first.to_string();
    let mut keys = Vec::new();
    loop {
        let scan = table.resume(&cursor.parse().unwrap(), how).unwrap();
        let mut rows = scan.limit(page).rows().unwrap();
        let before = keys.len();
        while let Some((key, _)) = rows.next_row().unwrap() {
            keys.push(key.to_vec());
        }
        if keys.len() == before {
            return keys;
        }
        cursor = rows.cursor().to_string();
    }
}

#[test]
fn pages_together_are_the_whole_scan_in_any_range_and_direction() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, table) = fresh(dir.path());
    let table = table.as_bytes();
    let key =
        |key: u64| table.scan().keys_only().limit(key as usize + 1).into_iter().last().unwrap().unwrap().0;
    let scans = [
        table.scan(),
        table.scan().reverse(),
        table.scan().from(&key(7)).through(&key(42)),
        table.scan().after(&key(7)).before(&key(42)).reverse(),
        table.scan().keys_only(),
        table.scan().from(&key(99)),
        table.scan().after(&key(99)),
    ];
    for (number, scan) in scans.into_iter().enumerate() {
        let all: Vec<Vec<u8>> = scan.clone().into_iter().map(|row| row.unwrap().0).collect();
        let first = scan.rows().unwrap().cursor();
        for page in [1, 7, 1000] {
            for how in [Resume::Strict, Resume::Relaxed] {
                assert_eq!(in_pages(table, &first, page, how), all, "scan {number}, pages of {page}");
            }
        }
    }
}

/// The scan that resumes decides whether it reads values, whatever the scan before did.
#[test]
fn the_cursor_of_a_scan_of_keys_is_resumed_with_values() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, table) = fresh(dir.path());
    let mut keys = table.as_bytes().scan().keys_only().rows().unwrap();
    keys.next_row().unwrap();
    let all: Vec<_> = table.scan().into_iter().map(|row| row.unwrap()).collect();
    let rest: Vec<_> =
        table.resume(&keys.cursor(), Resume::Strict).unwrap().into_iter().map(|row| row.unwrap()).collect();
    assert_eq!(rest, all[1..]);
    let cursor = keys.cursor();
    let mut rest = table.as_bytes().resume(&cursor, Resume::Relaxed).unwrap().keys_only().rows().unwrap();
    assert!(rest.next_row().unwrap().unwrap().1.is_empty());
}

#[test]
fn a_cursor_survives_a_restart_strictly_where_nothing_was_written_and_relaxed_where_something_was() {
    let dir = tempfile::tempdir().unwrap();
    let (store, table) = fresh(dir.path());
    let mut rows = table.scan().into_iter();
    rows.by_ref().take(40).for_each(|row| assert!(row.is_ok()));
    let cursor = rows.cursor().unwrap().to_bytes();
    drop((rows, table));
    store.close().unwrap();

    let store = Store::open(dir.path().join("s.folddb"), options()).unwrap();
    let table = store.table("t", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    let cursor = Cursor::from_bytes(&cursor).unwrap();
    let keys = |how| -> Vec<u64> {
        table.resume(&cursor, how).unwrap().into_iter().map(|row| row.unwrap().0).collect()
    };
    assert_eq!(keys(Resume::Strict), (40..100).collect::<Vec<_>>());
    table.put(&5, &1).unwrap();
    table.put(&200, &1).unwrap();
    table.delete(&50).unwrap();
    let gone = table.resume(&cursor, Resume::Strict).err().unwrap();
    assert_eq!(gone.kind(), ErrorKind::SnapshotTooOld);
    assert!(gone.to_string().contains("seq 100"), "{gone}");
    let there: Vec<u64> = (40..100).filter(|key| *key != 50).chain([200]).collect();
    assert_eq!(keys(Resume::Relaxed), there);
}

#[test]
fn while_its_snapshot_lives_a_cursor_sees_what_that_sees() {
    let dir = tempfile::tempdir().unwrap();
    let (store, table) = fresh(dir.path());
    let past = store.snapshot();
    let mut rows = past.scan(&table).into_iter();
    rows.by_ref().take(10).for_each(|row| assert!(row.is_ok()));
    let cursor = rows.cursor().unwrap();
    drop(rows);
    for key in 0..100 {
        table.delete(&key).unwrap();
    }
    store.flush().unwrap();
    let rest = table.resume(&cursor, Resume::Strict).unwrap();
    drop(past); // the resumed scan holds it now
    store.bytes_table("t").unwrap().compact().unwrap();
    assert_eq!(rest.count().unwrap(), 90);
    assert_eq!(table.resume(&cursor, Resume::Strict).err().unwrap().kind(), ErrorKind::SnapshotTooOld);
    assert_eq!(table.resume(&cursor, Resume::Relaxed).unwrap().count().unwrap(), 0);
}

#[test]
fn what_is_no_cursor_of_this_table_is_refused() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (store, table) = fresh(dir.path());
    let cursor = table.as_bytes().scan().rows().unwrap().cursor();
    let (_other_store, other_table) = fresh(other.path());
    let second = store.table("u", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    for wrong in [&other_table, &second] {
        let refused = wrong.resume(&cursor, Resume::Relaxed).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    }
    let text = cursor.to_string();
    for (wrong, at) in [(&text[1..], 0), (&text[2..], 0), ("", 0), ("zz", 0), ("0g", 1)] {
        let refused: ParseError = wrong.parse::<Cursor>().unwrap_err();
        assert_eq!((refused.text(), refused.at()), (wrong, at), "{refused}");
    }
}

#[test]
fn a_key_whose_fold_fails_is_reported_once_and_the_scan_continues_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("s.folddb"), options().custom_fold(Arc::new(Fails))).unwrap();
    let table = store.table("t", Rules::sorted::<u64, u64>().custom_fold(&Fails)).unwrap();
    for key in 0..5 {
        table.put(&key, &key).unwrap();
    }
    table.fold(&2, &1).unwrap();
    let table = table.as_bytes();
    for (scan, wanted) in [(table.scan(), [0, 1, 3, 4]), (table.scan().reverse(), [4, 3, 1, 0])] {
        let (mut cursor, mut found, mut failed) = (scan.rows().unwrap().cursor(), Vec::new(), 0);
        loop {
            let mut rows = table.resume(&cursor, Resume::Strict).unwrap().rows().unwrap();
            match rows.next_row() {
                Ok(None) => break,
                Ok(Some((_, value))) => found.push(u64::from_le_bytes(value.try_into().unwrap())),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::FoldFailed);
                    failed += 1;
                    assert_eq!(failed, 1, "it does not come to this key again");
                }
            }
            cursor = rows.cursor();
        }
        assert_eq!(found, wanted);
    }
}

/// A row that could not be read is not skipped by a scan that resumes once it can be read.
#[test]
fn an_unreadable_row_is_the_first_of_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.folddb");
    let store = Store::create(&path, options()).unwrap();
    let rules = || Rules::sorted::<u64, Vec<u8>>().separate(100).value_placement(ValuePlacement::Files);
    let table = store.table("t", rules()).unwrap();
    for key in 0..6u64 {
        table.put(&key, &vec![key as u8; 5000]).unwrap();
    }
    store.flush().unwrap();
    let table = table.as_bytes();
    for (scan, wanted) in [(table.scan(), [2, 3, 4, 5]), (table.scan().reverse(), [3, 2, 1, 0])] {
        let mut rows = scan.rows().unwrap();
        for _ in 0..2 {
            assert!(rows.next_row().unwrap().is_some());
        }
        let hidden = hide_directories(&path);
        assert_ne!(rows.next_row().unwrap_err().kind(), ErrorKind::FoldFailed);
        hidden.iter().for_each(|(there, here)| std::fs::rename(here, there).unwrap());
        let left = table.resume(&rows.cursor(), Resume::Strict).unwrap();
        let left: Vec<u8> = left.into_iter().map(|row| row.unwrap().1[0]).collect();
        assert_eq!(left, wanted);
    }
}

/// Renames the directories below this one; returns their old and new names.
fn hide_directories(path: &Path) -> Vec<(PathBuf, PathBuf)> {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let hide = |there: PathBuf| {
        let here = there.with_extension("hidden");
        std::fs::rename(&there, &here).unwrap();
        (there, here)
    };
    let hidden: Vec<_> = entries.filter(|entry| entry.is_dir()).map(hide).collect();
    assert!(!hidden.is_empty());
    hidden
}

/// A snapshot of the past holds it for tables that keep their past, and for no others.
#[test]
fn holding_the_past_of_one_table_does_not_help_the_cursor_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("s.folddb"), options()).unwrap();
    let sums =
        |name, keep| store.table(name, Rules::sorted::<u64, u64>().fold("sum:u64").keep(keep)).unwrap();
    let (kept, plain) = (sums("kept", Keep::Forever), sums("plain", Keep::Latest));
    let fold = || (0..5).for_each(|key| assert!(kept.fold(&key, &1).is_ok() && plain.fold(&key, &1).is_ok()));
    fold();
    let cursors = [&kept, &plain].map(|table| table.as_bytes().scan().rows().unwrap().cursor());
    let seq = store.last_seq();
    fold();
    store.flush().unwrap();
    let past = store.snapshot_at(AsOf::Seq(seq)).unwrap();
    let rest = || kept.resume(&cursors[0], Resume::Strict).unwrap().into_iter().map(|row| row.unwrap().1);
    assert_eq!(rest().collect::<Vec<_>>(), [1; 5]);
    assert_eq!(plain.resume(&cursors[1], Resume::Strict).err().unwrap().kind(), ErrorKind::SnapshotTooOld);
    drop(past);
    // A table that keeps its past needs nothing to hold it.
    store.bytes_table("kept").unwrap().compact().unwrap();
    assert_eq!(rest().collect::<Vec<_>>(), [1; 5]);
    assert_eq!(plain.resume(&cursors[1], Resume::Strict).err().unwrap().kind(), ErrorKind::SnapshotTooOld);
}
