//! Where a feature is off, a table that needs it is refused by name: `cargo test -p folddb
//! --no-default-features`.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use folddb::codec::KeyCodec;
use folddb::table_rules::{Compression, TableRules};
use folddb::{ErrorKind, Options, Store};

/// A store of version 1, with tables that need features, in a directory of its own.
fn kept_store(dir: &Path) -> std::path::PathBuf {
    let (from, to) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/fixtures/v1/closed"), dir.join("kept.folddb"));
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
    let opened = Store::open(kept_store(dir.path()), Options::default());
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
