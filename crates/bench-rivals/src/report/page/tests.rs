use serde_json::json;

use super::super::figures::MEASURES;
use super::*;

#[test]
fn every_figure_of_a_line_is_one_that_a_contest_compares() {
    for measure in LINES.iter().flat_map(|line| line.1) {
        assert!(MEASURES.iter().any(|known| known.name == *measure), "{measure}");
    }
}

#[test]
fn figures_share_a_line_and_what_is_not_measured_has_none() {
    let of = |p50: f64| json!({ "commit p50, µs": { "median": p50 }, "commit p99, µs": { "median": 7.0 } });
    let results = json!({
        "contest": { "repeat": 3 },
        "figures": { "folddb": of(0.5), "rocksdb-blob": of(2.0) },
        "folddb_to_best": { "commit p50, µs": { "ratio": 4.0 }, "commit p99, µs": { "ratio": 12.4 } },
    });
    let before = json!({ "folddb_to_best": { "commit p50, µs": { "ratio": 3.25 } } });
    let page = [
        "| median of 3 rounds | FoldDB | BlobDB | FoldDB to the best | before |",
        "|---|---|---|---|---|",
        "| commit p50 / p99 / p99.9, µs | 0.50 / 7 / - | 2 / 7 / - | 4.00x / 12x / - | 3.25x / - / - |",
    ];
    assert_eq!(render(&results, Some(&before)).unwrap(), page.join("\n"));
}

#[test]
fn a_file_that_has_no_results_is_refused() {
    assert!(render(&json!({ "rows": 1 }), None).is_err());
}
