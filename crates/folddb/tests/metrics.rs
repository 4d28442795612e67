//! The figures of a store as a page of metrics has them.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use folddb::{BackgroundWork, MetricKind, Options, Rules, Store};

/// The names, which do not change: dashboards use them. New ones may be added.
const NAMES: &str = "\
writes: commits_total records_total user_bytes_total log_bytes_total value_bytes_total delay_us_total stalls_total
reads: gets_total operands_visited_max fold_failures_total pieces_total bytes_total values_total value_heads_total
reads: index_loads_total index_entries_total index_entries_stale_total
memory: memtable_bytes cache_bytes index_bytes index_locked_bytes
disk: bytes log_segments value_segments value_bytes value_live_bytes snapshot_file_bytes
background: flushes_total merges_total records_merged_total part_bytes_total indexes_saved_total index_bytes_total
background: reclaims_total value_bytes_copied_total value_bytes_given_back_total value_segments_reclaimed_total
background: records_expired_total index_entries_cleaned_total debt_s retries_total feeds_lost_total
snapshots: live in_files oldest_s";

#[test]
fn the_names_of_metrics_stay_and_each_says_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default().background(BackgroundWork::Manual);
    let store = Store::create(dir.path().join("s.folddb"), options).unwrap();
    let visits = store.table("visits", Rules::sorted::<String, u64>().fold("sum:u64")).unwrap();
    visits.fold("/index", &1).unwrap();
    store.flush().unwrap();
    let _snapshot = store.snapshot();

    let metrics = store.stats().metrics();
    let names: BTreeSet<String> = metrics.iter().map(|metric| metric.full_name()).collect();
    let of_line = |line: &'static str| {
        let (group, names) = line.split_once(": ").unwrap();
        names.split(' ').map(move |name| format!("folddb_{group}_{name}"))
    };
    let known: BTreeSet<String> = NAMES.lines().flat_map(of_line).collect();
    assert_eq!(names, known);
    for metric in &metrics {
        assert!(metric.help.ends_with('.') && !metric.help.contains('\n'), "{metric:?}");
        assert_eq!(metric.kind == MetricKind::Counter, metric.full_name().ends_with("_total"));
    }
    let value = |name: &str| metrics.iter().find(|metric| metric.full_name() == name).unwrap().value;
    assert_eq!(value("folddb_writes_commits_total"), 1.0);
    assert_eq!(value("folddb_background_flushes_total"), 1.0);
    assert_eq!(value("folddb_snapshots_live"), 1.0);
    assert!(value("folddb_disk_bytes") > 0.0);
}
