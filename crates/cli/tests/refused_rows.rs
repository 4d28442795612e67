//! Rows that only the store can refuse, when their batch is committed: a key that is too long for
//! the indexes of its table, a value that folding makes too long. They are bad rows like any other,
//! the rest is in, and every row that was read is accounted for.

mod support;

use serde_json::Value;
use support::Place;

/// Rows of several batches, two of them with keys of 64,000 bytes.
const ROWS: usize = 12_000;
const REFUSED: [usize; 2] = [9_000, 9_005];

fn rows() -> String {
    let key = |row: usize| if REFUSED.contains(&row) { "k".repeat(64_000) } else { format!("k{row}") };
    (0..ROWS).map(|row| format!("{},{row}\n", key(row))).collect()
}

/// A store with a table. The index of the table takes no keys that long.
fn with_index() -> Place {
    let place = Place::new();
    place.write("rows.csv", rows());
    place.done(&["create", "s", "t", "--index", "by:value"]);
    place
}

/// Imports rows, with a report; the exit code, and the report.
fn import(place: &Place, table: &str, file: &str, more: &[&str]) -> (i32, Value) {
    let words = ["--json", "import", "s", table, file, "--no-header", "--key", "c1", "--value", "c2"];
    let ran = place.run(&[&words, more].concat());
    let report = serde_json::from_str(&ran.out).expect("a report");
    (ran.code, report)
}

fn count(report: &Value, name: &str) -> u64 {
    report[name].as_u64().unwrap_or_else(|| panic!("{name} in {report}"))
}

/// Each row that was read is in, or had nothing to fold, or is bad, or was left when it stopped.
fn assert_accounted(report: &Value) {
    let parts = ["rows_imported", "rows_empty", "rows_bad", "rows_left"];
    let sum: u64 = parts.iter().map(|part| count(report, part)).sum();
    assert_eq!(count(report, "rows_read"), sum, "{report}");
}

#[test]
fn a_row_that_only_the_store_can_refuse_is_a_bad_row_and_the_rest_is_in() {
    let place = with_index();
    let (code, report) = import(&place, "t", "rows.csv", &["--bad-rows", "bad.csv"]);
    assert_eq!(code, 5, "{report}");
    assert_accounted(&report);
    assert_eq!((count(&report, "rows_imported"), count(&report, "rows_bad")), (ROWS as u64 - 2, 2));
    let lines: Vec<u64> =
        report["bad_rows"].as_array().expect("a list").iter().map(|bad| count(bad, "line")).collect();
    assert_eq!(lines, REFUSED.map(|row| row as u64 + 1));
    assert!(report["bad_rows"][0]["reason"].to_string().contains("is too long for table `t`"), "{report}");
    assert_eq!(place.done(&["count", "s", "t"]).trim(), (ROWS - 2).to_string());

    let bad = place.read("bad.csv");
    let bad: Vec<&str> = bad.lines().collect();
    assert!(bad[1].starts_with("# bad row: rows.csv line 9001: "), "{:.80}", bad[1]);
    assert!(bad[2].starts_with("kkk") && bad[2].ends_with(",9000"), "{:.80}", bad[2]);
    assert_eq!(bad.len(), 5);
}

#[test]
fn bad_rows_are_reported_in_the_order_of_their_lines() {
    let place = Place::new();
    place.done(&["create", "s", "t", "--index", "by:value"]);
    place.write("rows.csv", format!("a,1\n{},2\nb\nc,3\n", "k".repeat(64_000)));
    let ran = place.run(&["import", "s", "t", "rows.csv", "--no-header", "--key", "c1", "--value", "c2"]);
    assert_eq!(ran.code, 5, "{}", ran.err);
    let told: Vec<&str> = ran.err.lines().map(|line| line.split(':').next().unwrap_or_default()).collect();
    assert_eq!(told, ["imported 2 rows into t; 2 bad rows not imported", "  line 2", "  line 3"]);
}

#[test]
fn a_strict_import_stops_at_a_row_that_the_store_refuses() {
    let place = with_index();
    let (code, report) = import(&place, "t", "rows.csv", &["--strict"]);
    assert_eq!(code, 3, "{report}");
    assert_accounted(&report);
    assert_eq!((count(&report, "rows_imported"), count(&report, "rows_bad")), (REFUSED[0] as u64, 1));
    assert!(count(&report, "rows_left") > 0, "those of its batch after it");
    assert_eq!(place.done(&["count", "s", "t"]).trim(), REFUSED[0].to_string());
}

#[test]
fn a_value_that_folding_makes_too_long_costs_its_row() {
    let place = Place::new();
    let long = "v".repeat(8 << 20);
    let others: String = (0..5_000).map(|row| format!("k{row},{row}\n")).collect();
    place.write("rows.csv", format!("{others}long,{long}\nlong,{long}\nlast,1\n"));
    place.done(&["create", "s", "t", "--kind", "hashed", "--fold", "append:-"]);
    let (code, report) = import(&place, "t", "rows.csv", &[]);
    assert_eq!(code, 5, "{report}");
    assert_accounted(&report);
    assert_eq!((count(&report, "rows_imported"), count(&report, "rows_bad")), (5_002, 1));
    assert_eq!(count(&report["bad_rows"][0], "line"), 5_002);
    assert_eq!(place.done(&["get", "s", "t", "last"]), "1\n");
}

#[test]
fn a_sync_that_has_done_something_does_not_say_that_nothing_was_done() {
    let place = Place::new();
    place.write("rows.csv", rows());
    place.done(&["create", "s", "t"]);
    assert_eq!(import(&place, "t", "rows.csv", &[]).0, 0);
    place.done(&["create", "other", "t", "--index", "by:value"]);
    let ran = place.run(&["sync", "s", "other", "t"]);
    let done = place.done(&["count", "other", "t"]).trim().to_owned();
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(
        done != "0" && ran.err.contains(&format!("after {done} keys put or deleted")),
        "{done}: {}",
        ran.err
    );
}
