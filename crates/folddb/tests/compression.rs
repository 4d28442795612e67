//! How blocks are compressed, at the bottom and above it: what is where, and that whatever a table
//! says now, what was written by other rules is read.
#![allow(clippy::unwrap_used)]

mod common;

use common::small;
use folddb::codec::KeyCodec;
use folddb::maintenance::VerifyOptions;
use folddb::table_rules::{Compression, TableRules};
use folddb::{BytesTable, ErrorKind, Options, Store};

const KEYS: u32 = 2000;

fn options() -> Options {
    small().tuning(|t| t.part_bytes(1 << 20)).disk_reserve_bytes(0)
}

/// Compressions that this build has.
fn available() -> Vec<Compression> {
    let all = [Compression::None, Compression::Lz4, Compression::Zstd];
    all.into_iter().filter(|compression| compression.is_available()).collect()
}

/// A value like a line of a log, of about 90 bytes.
fn value(number: u32, round: u32) -> Vec<u8> {
    let path = ["/index.html", "/news/today", "/images/logo.png"][number as usize % 3];
    format!(
        "203.0.113.{} - - \"GET {path} HTTP/1.1\" 200 {} \"Mozilla/5.0 (X11)\"",
        number % 256,
        number * 7 + round
    )
    .into_bytes()
}

/// Writes all keys, as one run.
fn fill(store: &Store, table: &BytesTable, round: u32) {
    for number in 0..KEYS {
        table.put(&number.to_be_bytes(), &value(number, round)).unwrap();
    }
    store.flush().unwrap();
}

fn check(table: &BytesTable, round: u32) {
    let mut rows = table.scan().rows().unwrap();
    for number in 0..KEYS {
        let (key, has) = rows.next_row().unwrap().unwrap();
        assert_eq!((key, has), (&number.to_be_bytes()[..], &*value(number, round)));
    }
    assert!(rows.next_row().unwrap().is_none());
    assert_eq!(table.get(&7u32.to_be_bytes()).unwrap(), Some(value(7, round)));
}

/// Bytes of the runs of the table.
fn size(table: &BytesTable) -> u64 {
    table.stats().unwrap().disk_bytes
}

#[test]
fn the_bottom_run_is_compressed_in_its_own_way() {
    for above in available() {
        for below in available() {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::create(dir.path().join("store"), options()).unwrap();
            let rules = TableRules::new(KeyCodec::U32).compression(above).bottom_compression(Some(below));
            let table = store.create_bytes_table("log", rules).unwrap();
            fill(&store, &table, 1);
            table.compact().unwrap();
            let bottom = size(&table);
            fill(&store, &table, 2);
            let top = size(&table) - bottom;
            let is_same = bottom.abs_diff(top) < bottom / 50;
            assert_eq!(is_same, above == below, "{above} {top}, {below} {bottom}");
            check(&table, 2);
            table.compact().unwrap();
            check(&table, 2);
            assert!(size(&table).abs_diff(bottom) < bottom / 20, "{above}, {below}");
            store.close().unwrap();
            assert!(
                Store::verify(dir.path().join("store"), &VerifyOptions::default(), &options())
                    .unwrap()
                    .findings
                    .is_empty()
            );
        }
    }
}

#[test]
fn each_compression_takes_less_than_the_one_before() {
    let sizes: Vec<u64> = available()
        .into_iter()
        .map(|compression| {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::create(dir.path().join("store"), options()).unwrap();
            let rules = TableRules::new(KeyCodec::U32).compression(compression);
            let table = store.create_bytes_table("log", rules).unwrap();
            fill(&store, &table, 1);
            size(&table)
        })
        .collect();
    assert!(sizes.windows(2).all(|pair| pair[1] < pair[0]), "{sizes:?}");
}

#[test]
fn whatever_is_altered_is_read_and_taken_over_by_merges() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let mut store = Store::create(&path, options()).unwrap();
    let table = store.create_bytes_table("log", TableRules::new(KeyCodec::U32)).unwrap();
    fill(&store, &table, 0);
    let plain = size(&table);
    for (round, compression) in available().into_iter().rev().enumerate() {
        let round = round as u32 + 1;
        let table = store.bytes_table("log").unwrap();
        table.alter(|rules| rules.bottom_compression(Some(compression))).unwrap();
        check(&table, round - 1);
        fill(&store, &table, round);
        check(&table, round);
        drop(table);
        store.close().unwrap();
        store = Store::open(&path, options()).unwrap();
        let table = store.bytes_table("log").unwrap();
        check(&table, round);
        table.compact().unwrap();
        assert_eq!(table.stats().unwrap().outdated_parts, 0);
        assert_eq!(size(&table) < plain * 3 / 4, compression != Compression::None, "{compression}");
    }
}

#[test]
fn a_bottom_that_needs_a_feature_that_is_off_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    for compression in [Compression::Lz4, Compression::Zstd] {
        let rules = TableRules::new(KeyCodec::U32).bottom_compression(Some(compression));
        match store.create_bytes_table(compression.name(), rules) {
            Ok(_) => assert!(compression.is_available()),
            Err(error) => {
                assert!(!compression.is_available(), "{error}");
                assert_eq!(error.kind(), ErrorKind::InvalidInput);
                assert!(error.to_string().contains(&format!("the feature `{compression}`")), "{error}");
            }
        }
    }
}
