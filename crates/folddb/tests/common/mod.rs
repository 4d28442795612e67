//! The beginning of many tests: settings of a small store whose background work is done by hand,
//! and functions that do it.

#![allow(dead_code)] // no test needs all of it

use folddb::{BackgroundWork, Fold, FoldFailure, Options, Outcome, Store};

/// Background work is done by hand.
pub(crate) fn manual() -> Options {
    Options::default().background(BackgroundWork::Manual)
}

/// The same, in a store whose memory and segments are small.
pub(crate) fn small() -> Options {
    manual().memory_bytes(4 << 20).tuning(|t| t.segment_bytes(1 << 20))
}

/// The same, where files of values are small, too.
pub(crate) fn small_values() -> Options {
    small().tuning(|t| t.value_segment_bytes(256 << 10))
}

/// A new store, and its directory.
pub(crate) fn fresh(options: Options) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::create(dir.path().join("s.folddb"), options).expect("the store is made");
    (dir, store)
}

/// Does all background work that there is.
pub(crate) fn drain(store: &Store) {
    while store.background_step().expect("a step of background work").is_some() {}
}

/// Merges all runs of a table into one.
pub(crate) fn compact(store: &Store, table: &str) {
    store.bytes_table(table).expect("a table").compact().expect("it merges");
}

/// A fold that fails.
pub(crate) struct Fails;

impl Fold for Fails {
    fn spec(&self) -> String {
        "fails".to_owned()
    }

    fn fold(&self, _: &[u8], _: &[u8], _: &[u8], _: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        Err(FoldFailure::new("it always does"))
    }
}
