#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use folddb_rules::codec::KeyCodec;
use folddb_rules::table_rules::TableRules;
use folddb_rules::{Fold, FoldFailure, Outcome};

use super::{AnyRows, ScanPlan, unfit};
use crate::{BackgroundWork, Expire, Lifetime, Options, Store, WriteOp};

/// A fold that takes short values only.
struct Short;

impl Fold for Short {
    fn spec(&self) -> String {
        "short".to_owned()
    }

    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        if value.len() < 10 { Ok(()) } else { Err(FoldFailure::new("too long")) }
    }

    fn fold(&self, _: &[u8], _: &[u8], _: &[u8], _: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        Ok(Outcome::KeepLater)
    }
}

/// The same, as it was once: it took all.
struct Any;

impl Fold for Any {
    fn spec(&self) -> String {
        "short".to_owned()
    }

    fn fold(&self, _: &[u8], _: &[u8], _: &[u8], _: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        Ok(Outcome::KeepLater)
    }
}

/// A store with expired keys before one with a value that does not fit.
fn with_expired(rules: TableRules, expired: u64) -> (tempfile::TempDir, Store) {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("store");
    let options = || Options::default().background(BackgroundWork::Manual);
    let store = Store::create(&path, options().custom_fold(Arc::new(Any))).unwrap();
    let table = store.create_bytes_table("t", rules).unwrap();
    let past = table.with_lifetime(Lifetime::Until(SystemTime::UNIX_EPOCH + Duration::from_secs(1)));
    let mut batch = store.batch();
    for key in 0..expired {
        batch.write(&past, WriteOp::Put, &key.to_be_bytes(), b"short");
    }
    batch.write(&table, WriteOp::Put, &u64::MAX.to_be_bytes(), b"a long value");
    batch.commit(crate::Durability::Process).unwrap();
    (temp, store)
}

/// Whether a scan that skips at most this many keys reaches it.
fn is_met(store: &Store, passed_max: u64) -> bool {
    let table = store.bytes_table("t").unwrap();
    let plan = ScanPlan { passed_max, ..ScanPlan::everything(None) };
    let mut rows = AnyRows::start(table.engine(), table.core(), plan).unwrap();
    rows.next_row().unwrap().is_some()
}

#[test]
fn a_scan_skips_a_limited_number_of_keys_without_a_value() {
    let rules = TableRules::new(KeyCodec::U64).custom_fold("short", 1).expire(Expire::ByWrite);
    let (_temp, store) = with_expired(rules, 1000);
    assert!(is_met(&store, u64::MAX) && is_met(&store, 1001));
    assert!(!is_met(&store, 1000) && !is_met(&store, 1));
}

#[test]
fn a_scan_of_a_hashed_table_does_so_too() {
    let rules = TableRules::hashed(KeyCodec::U64).custom_fold("short", 1).expire(Expire::ByWrite);
    // The order of its keys differs from store to store: this one may be the first.
    let stores: Vec<_> = (0..5).map(|_| with_expired(rules.clone(), 1000)).collect();
    assert!(stores.iter().all(|(_, store)| is_met(store, 1001)));
    assert!(!stores.iter().all(|(_, store)| is_met(store, 1)), "nothing bounds the walk");
}

#[test]
fn an_unfit_value_behind_expired_ones_is_found() {
    for rules in [TableRules::new(KeyCodec::U64), TableRules::hashed(KeyCodec::U64)] {
        let (temp, store) = with_expired(rules.custom_fold("short", 1).expire(Expire::ByWrite), 20);
        store.close().unwrap();
        let options = Options::default().custom_fold(Arc::new(Short));
        let store = Store::open_read_only(temp.path().join("store"), options).unwrap();
        let said = unfit(&store.bytes_table("t").unwrap()).unwrap();
        assert!(said.contains("too long") && said.contains("a program wrote it"), "{said}");
    }
}
