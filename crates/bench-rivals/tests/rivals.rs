//! Every rival of this build does every workload at a tiny scale, as a child of the contest, and
//! leaves the right state.

use std::path::Path;
use std::process::{Command, Output};

fn program(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_folddb-bench-rivals")).args(arguments).output().expect("it starts")
}

fn rivals() -> Vec<String> {
    let output = program(&["rivals"]);
    String::from_utf8(output.stdout).expect("names are text").lines().map(str::to_owned).collect()
}

/// Whether a rival has the workload: hashed tables are for values that are put and asked for by id,
/// and have no order.
fn takes_part(rival: &str, workload: &str) -> bool {
    !["folddb-hashed", "folddb-locked"].contains(&rival) || ["leveled", "elliptics"].contains(&workload)
}

/// Runs a child, and gives its figures.
fn child(rival: &str, workload: &str, more: &[&str]) -> serde_json::Value {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("store").display().to_string();
    let fixed =
        ["child", "--rival", rival, "--workload", workload, "--dir", &path, "--memory-bytes", "8000000"];
    let output = program(&[&fixed, more].concat());
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{rival} {workload}: {complaint}");
    let text = String::from_utf8(output.stdout).expect("figures are text");
    serde_json::from_str(text.lines().last().expect("a last line")).expect("JSON")
}

/// Runs a workload on all rivals that have it, and passes their figures to `check`.
fn all(workload: &str, more: &[&str], check: impl Fn(&str, &serde_json::Value)) {
    for rival in rivals().into_iter().filter(|rival| takes_part(rival, workload)) {
        let figures = child(&rival, workload, more);
        assert_eq!(figures["verified"], true, "{rival} {workload}: {figures}");
        assert_eq!(figures["rival"], rival.as_str());
        check(&rival, &figures);
    }
}

#[test]
fn hugedb_in_single_writes() {
    all("hugedb", &["--rows", "3000"], |rival, figures| {
        assert_eq!(figures["commits"]["count"], 3000, "{rival}");
        assert_eq!(figures["reads"]["cold"]["hits"]["count"], 50_000, "{rival}");
    });
}

#[test]
fn hugedb_in_batches_and_optimized() {
    all("hugedb", &["--rows", "20000", "--batch", "1000", "--optimize"], |rival, figures| {
        assert_eq!(figures["commits"]["count"], 20, "{rival}");
        assert!(figures["written"]["device_bytes"].as_u64() > Some(0), "{rival}: {figures}");
    });
}

#[test]
fn osmos_in_single_writes_and_in_batches() {
    for batch in ["1", "100"] {
        all("osmos", &["--rows", "5000", "--keys", "500", "--batch", batch], |rival, figures| {
            assert!(figures["reader"]["gets"]["count"].as_u64() > Some(0), "{rival}");
        });
    }
}

#[test]
fn the_small_ones() {
    all("append-one", &["--rows", "500"], |_, _| {});
    all("drain", &["--rows", "2000"], |_, _| {});
    all("drain", &["--rows", "2000", "--batch", "100"], |_, _| {});
    all("open", &["--rows", "5000", "--batch", "100"], |rival, figures| {
        assert!(figures["open"]["open_ms"].as_f64() > Some(0.0), "{rival}");
    });
    for threads in ["1", "4"] {
        all("commit", &["--rows", "40", "--threads", threads], |rival, figures| {
            assert_eq!(figures["durability"], "sync", "{rival}");
            assert_eq!(figures["commits"]["count"], 40, "{rival}");
        });
    }
}

#[test]
fn documents_that_grow() {
    for batch in ["1", "50"] {
        all("ydb", &["--rows", "3000", "--keys", "300", "--batch", batch], |rival, figures| {
            assert_eq!(figures["keys"], 300, "{rival}");
        });
    }
    all("ydb-rmw", &["--rows", "1000"], |rival, figures| {
        assert_eq!(figures["commits"]["count"], 1000, "{rival}");
    });
}

#[test]
fn objects_that_are_replaced() {
    all("more-than-ram", &["--rows", "200"], |rival, figures| {
        assert!(figures["space"]["per_byte"].as_f64() > Some(0.1), "{rival}: {figures}");
    });
    let more = ["--rows", "2000", "--keys", "200", "--threads", "2", "--value-bytes", "4096"];
    all("leveled", &more, |rival, figures| {
        let count = |kind: &str| figures["serve"][kind]["count"].as_u64().expect("a count");
        assert_eq!(count("gets") + count("puts"), 2000, "{rival}");
        assert_eq!(figures["heads"]["cold"]["count"], 66, "{rival}");
    });
}

#[test]
fn blobs_by_id() {
    all("elliptics", &["--rows", "300", "--threads", "4"], |rival, figures| {
        assert_eq!(figures["cold_gets"]["gets"]["count"], 100, "{rival}");
    });
}

#[test]
fn a_contest_leaves_a_table_json_and_charts() {
    let out = tempfile::tempdir().expect("a directory");
    let path = out.path().display().to_string();
    let rivals: Vec<_> = rivals().into_iter().filter(|rival| takes_part(rival, "hugedb")).collect();
    let rivals = rivals.join(",");
    let fixed = ["contest", "--workload", "hugedb", "--rows", "3000", "--batch", "100", "--repeat", "2"];
    let output = program(&[&fixed[..], &["--rivals", &rivals, "--out", &path]].concat());
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{table}{}", String::from_utf8_lossy(&output.stderr));
    assert!(table.contains("load and settle, rows/s"), "{table}");
    let name = "hugedb-batch-100-rows-3000";
    for file in [".json", "-throughput.svg", "-tenths.svg", "-p99.svg"] {
        assert!(Path::new(&path).join(format!("{name}{file}")).exists(), "{file}");
    }
}

#[test]
fn a_rival_that_takes_too_long_is_a_row_that_says_so() {
    let out = tempfile::tempdir().expect("a directory");
    let path = out.path().display().to_string();
    let fixed =
        ["contest", "--workload", "hugedb", "--rows", "1000000000", "--repeat", "1", "--seconds-max", "1"];
    let output = program(&[&fixed[..], &["--rivals", "folddb", "--out", &path]].concat());
    assert!(!output.status.success());
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("folddb: FAILED: not done within 1 s"), "{table}");
}
