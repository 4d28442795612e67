//! Cursors: a scan is left, and gone on with, by the same process or by another.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use folddb::{BytesTable, Cursor, ErrorKind, Options, Resume, Rules, Store, Table, Upkeep};

fn options() -> Options {
    Options::default().upkeep(Upkeep::Manual)
}

fn fresh(dir: &Path) -> (Store, Table<u64, u64>) {
    let store = Store::create(dir.join("s.folddb"), options()).unwrap();
    let table = store.table("t", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    for key in 0..100 {
        table.set(&key, &(key * 2)).unwrap();
        if key % 30 == 0 {
            store.flush().unwrap();
        }
    }
    (store, table)
}

/// Goes over a range in pages of `page` rows, each by the cursor that the last one left, as text; all keys seen.
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
fn pages_come_to_the_whole_scan_whatever_its_range_and_direction() {
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

/// Values are wanted or not by whoever goes on, however the scan was that was left.
#[test]
fn the_cursor_of_a_scan_of_keys_goes_on_with_values() {
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
    table.set(&5, &1).unwrap();
    table.set(&200, &1).unwrap();
    table.delete(&50).unwrap();
    let gone = table.resume(&cursor, Resume::Strict).err().unwrap();
    assert_eq!(gone.kind(), ErrorKind::SnapshotGone);
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
    drop(past); // the scan that was gone on with holds it now
    store.optimize("t", |_| std::ops::ControlFlow::Continue(())).unwrap();
    assert_eq!(rest.count().unwrap(), 90);
    assert_eq!(table.resume(&cursor, Resume::Strict).err().unwrap().kind(), ErrorKind::SnapshotGone);
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
    for wrong in [&text[1..], &text[2..], "", "zz", "0g"] {
        assert_eq!(wrong.parse::<Cursor>().unwrap_err().kind(), ErrorKind::InvalidInput, "{wrong}");
    }
}
