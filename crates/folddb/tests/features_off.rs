//! Where a feature is off, a table that needs it is refused by name: `cargo test -p folddb
//! --no-default-features`.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use folddb::codec::KeyCodec;
use folddb::maintenance::{RepairOptions, VerifyOptions, Weight};
use folddb::table_rules::{Compression, TableRules};
use folddb::{ErrorKind, Options, Store};

/// A store of an earlier version, in a directory of its own.
fn kept_store(dir: &Path, fixture: &str) -> std::path::PathBuf {
    let (from, to) = (
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/fixtures").join(fixture),
        dir.join("kept.folddb"),
    );
    fs::create_dir(&to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
    to
}

/// The error of creating a table by these rules; nothing where it is created.
fn created(rules: TableRules) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("s.folddb"), Options::default()).unwrap();
    let refused = store.create_bytes_table("table", rules).err()?;
    assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
    Some(refused.to_string())
}

#[test]
fn a_table_is_made_or_the_feature_is_named_that_it_needs() {
    let bitmap = created(TableRules::new(KeyCodec::Utf8).fold("bitmap"));
    let record = created(TableRules::new(KeyCodec::Utf8).fold("{count: sum:u64, seen: bitmap}"));
    for said in [bitmap, record] {
        match (cfg!(feature = "bitmap"), said) {
            (true, said) => assert_eq!(said, None),
            (false, said) => assert!(said.unwrap().contains("needs the feature `bitmap` of folddb")),
        }
    }
    let said = created(TableRules::new(KeyCodec::Utf8).compression(Compression::Lz4));
    match (cfg!(feature = "lz4"), said) {
        (true, said) => assert_eq!(said, None),
        (false, said) => assert!(said.unwrap().contains("needs the feature `lz4` of folddb")),
    }
    let zstd = TableRules::new(KeyCodec::Utf8).compression(Compression::Zstd);
    let below = TableRules::new(KeyCodec::Utf8).bottom_compression(Some(Compression::Zstd));
    for said in [created(zstd), created(below)] {
        match (cfg!(feature = "zstd"), said) {
            (true, said) => assert_eq!(said, None),
            (false, said) => assert!(said.unwrap().contains("needs the feature `zstd` of folddb")),
        }
    }
    let json = TableRules::new(KeyCodec::Utf8).fold("json-merge");
    assert_eq!(created(json), None, "text of JSON needs no feature");
}

#[test]
fn a_store_opens_or_the_table_and_the_feature_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Store::open(kept_store(dir.path(), "v1/closed"), Options::default());
    if cfg!(not(feature = "lz4")) {
        let refused = opened.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::RulesMismatch);
        let said = refused.to_string();
        assert!(said.contains("table `") && said.contains("needs the feature `lz4` of folddb"), "{said}");
        return;
    }
    let store = opened.unwrap();
    let folds_by_bitmap = |name: &String| {
        store.bytes_table(name).unwrap().rules().as_table_rules().fold.spec().contains("bitmap")
    };
    let names: Vec<String> = store.tables().into_iter().filter(folds_by_bitmap).collect();
    assert!(!names.is_empty());
    for name in names {
        let table = store.bytes_table(&name).unwrap();
        assert_eq!(table.rules().missing().is_none(), cfg!(feature = "bitmap"), "{name}");
        if let Some(missing) = table.rules().missing() {
            assert!(missing.contains("needs the feature `bitmap` of folddb"), "{missing}");
            let refused = table.write(folddb::WriteOp::Fold, b"key", b"").unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::RulesMismatch);
        }
    }
}

/// The tables say no longer that they are compressed, but their blocks are. They are whole: a
/// verdict of damage would have them salvaged, and be left out.
#[test]
fn blocks_that_need_a_feature_are_not_called_damaged_and_are_not_left_out() {
    let (dir, options) = (tempfile::tempdir().unwrap(), Options::default());
    let path = kept_store(dir.path(), "v9/undone");
    let is_complete = Compression::Lz4.is_available() && Compression::Zstd.is_available();
    let report = Store::verify(&path, &VerifyOptions::default().deep(true), &options).unwrap();
    assert_eq!(report.damage().count(), 0, "{report:?}");
    let unread = report.findings.iter().filter(|finding| finding.what.contains("feature")).count();
    assert_eq!((unread == 0, report.is_clean()), (is_complete, is_complete), "{report:?}");
    assert_eq!(unread as u64, report.checked.parts_unread);
    let advised = Store::diagnose(&path, &options).unwrap().iter().any(|one| one.weight == Weight::Broken);
    assert_eq!(advised, !is_complete);
    let repaired = Store::repair(&path, dir.path().join("repaired"), &RepairOptions::default(), &options);
    match repaired {
        Ok(report) => assert!(is_complete && report.records_lost == 0, "{report:?}"),
        Err(error) => {
            assert!(!is_complete && error.kind() == ErrorKind::NewerFormat, "{error}");
            assert!(error.to_string().contains("feature `"), "{error}");
        }
    }
    let scanned = Store::open(&path, options).and_then(|store| {
        let tables = store.tables();
        tables.iter().try_for_each(|table| {
            let mut rows = store.bytes_table(table)?.scan().rows()?;
            while rows.next_row()?.is_some() {}
            Ok(())
        })
    });
    match scanned {
        Ok(()) => assert!(is_complete),
        Err(error) => assert!(!is_complete && error.kind() == ErrorKind::NewerFormat, "{error}"),
    }
}
