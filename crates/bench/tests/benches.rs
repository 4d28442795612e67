//! Every bench runs at a tiny scale, and its final state is what it must be.

use folddb::{Durability, ErrorKind};
use folddb_bench::{BenchOptions, Report, names, run};
use serde_json::Value;

fn tiny(name: &str, options: BenchOptions) -> Report {
    let mut phases = Vec::new();
    let report = run(name, &options, &mut |progress| phases.push(progress)).expect("the bench runs");
    assert!(report.verified(), "{report}");
    assert!(!phases.is_empty(), "it says how far it is");
    report
}

fn number(report: &Report, path: &[&str]) -> u64 {
    report.figure(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("no figure {path:?} in\n{report}"))
}

#[test]
fn every_bench_verifies_what_it_leaves() {
    for name in names() {
        let report = tiny(name, BenchOptions { scale: 0.0001, ..BenchOptions::default() });
        assert_eq!(report.name(), *name);
        assert_eq!(report.to_json()["verified"], Value::Bool(true));
    }
}

#[test]
fn hugedb_says_what_it_did() {
    let report =
        tiny("hugedb", BenchOptions { scale: 0.002, memory_bytes: Some(4 << 20), ..BenchOptions::default() });
    assert_eq!(number(&report, &["rows"]), 200_000);
    assert_eq!(number(&report, &["reads", "settled", "cold", "scan", "rows_found"]), 200_000);
    let compacted = number(&report, &["reads", "compacted", "warm", "scan", "rows_found"]);
    assert!(compacted > 200_000, "some came meanwhile");
    assert_eq!(number(&report, &["commits", "count"]), 200);
    assert_eq!(number(&report, &["compacted", "runs"]), 1);
    assert!(
        number(&report, &["background", "flushes"]) > 1,
        "the budget is small enough to flush while writing"
    );
    assert!(number(&report, &["written", "part_bytes"]) > 0);
    let tenths = report.figure(&["load", "rows_per_s_by_tenth"]).and_then(Value::as_array).map(Vec::len);
    assert_eq!(tenths, Some(10));
}

#[test]
fn benches_take_single_writes_and_synced_batches() {
    let single = BenchOptions { scale: 0.0001, batch: Some(1), ..BenchOptions::default() };
    assert_eq!(number(&tiny("hugedb", single), &["commits", "count"]), 10_000);
    let synced = BenchOptions {
        scale: 0.0001,
        batch: Some(500),
        durability: Durability::Sync,
        seed: 9,
        ..BenchOptions::default()
    };
    assert_eq!(number(&tiny("osmos", synced), &["commits", "count"]), 10);
}

#[test]
fn a_seed_decides_the_data() {
    let checksum = |seed| {
        let report = tiny("osmos", BenchOptions { scale: 0.0001, seed, ..BenchOptions::default() });
        report.figure(&["checksum"]).cloned()
    };
    assert_eq!(checksum(1), checksum(1));
    assert_ne!(checksum(1), checksum(2));
}

#[test]
fn a_store_is_left_only_where_it_is_to_be_kept() {
    let dir = tempfile::tempdir().unwrap();
    let options = |keep| BenchOptions {
        scale: 0.0001,
        dir: Some(dir.path().to_owned()),
        keep,
        ..BenchOptions::default()
    };
    tiny("drain", options(false));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let report = tiny("drain", options(true));
    let path = report.figure(&["store"]).and_then(Value::as_str).unwrap().to_owned();
    let store = folddb::Store::open(&path, folddb::Options::default()).unwrap();
    assert_eq!(store.tables(), ["empty", "queue"]);
}

#[test]
fn wrong_names_and_scales_are_refused() {
    let refused = |name: &str, scale| {
        run(name, &BenchOptions { scale, ..BenchOptions::default() }, &mut |_| {}).map(|_| ()).unwrap_err()
    };
    let unknown = refused("nothing", 1.0);
    assert_eq!(unknown.kind(), ErrorKind::InvalidInput);
    assert!(unknown.message().contains("hugedb, osmos"), "{unknown}");
    for scale in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(refused("hugedb", scale).kind(), ErrorKind::InvalidInput);
    }
}
