//! Real flights, folded by the command line and added up by this test in another way: the totals
//! agree.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;

use support::{Place, flights_sample, project};

const FOLD: &str = "flights: sum:u64 = 1, delay: stats:f64 = dep_delay, tails: hll:12 = tailnum";

/// What is known of a route by plain sums.
#[derive(Default)]
struct Route {
    flights: u64,
    delays: Vec<f64>,
    tails: BTreeSet<String>,
}

fn plain_sums(file: &Path) -> BTreeMap<(String, String), Route> {
    let file = GzDecoder::new(File::open(file).expect("the file is there"));
    let mut reader = csv::Reader::from_reader(file);
    let header = reader.headers().expect("a header").clone();
    let at = |name: &str| header.iter().position(|column| column == name).expect("a column");
    let (carrier, origin, delay, tail) = (at("carrier"), at("origin"), at("dep_delay"), at("tailnum"));
    let mut routes: BTreeMap<(String, String), Route> = BTreeMap::new();
    for row in reader.records() {
        let row = row.expect("a row");
        let route = routes.entry((row[carrier].to_owned(), row[origin].to_owned())).or_default();
        route.flights += 1;
        if &row[delay] != "NA" {
            route.delays.push(row[delay].parse().expect("a number"));
        }
        if &row[tail] != "NA" {
            route.tails.insert(row[tail].to_owned());
        }
    }
    routes
}

fn folded(file: &Path) -> BTreeMap<(String, String), Value> {
    let place = Place::new();
    let file = file.to_str().expect("a path of text");
    let words = [
        "import",
        "s",
        "delays",
        file,
        "--create",
        "--key",
        "carrier,origin",
        "--fold",
        FOLD,
        "--null",
        "NA",
    ];
    let report = place.json(&words);
    assert_eq!(
        (&report["rows_bad"], &report["rows_empty"], &report["whole"]),
        (&0.into(), &0.into(), &true.into())
    );
    let rows = place.done(&["scan", "s", "delays", "--format", "ndjson"]);
    let rows = rows.lines().map(|line| {
        let row: Value = serde_json::from_str(line).expect("a row is JSON");
        let part = |index: usize| row["key"][index].as_str().expect("text").to_owned();
        ((part(0), part(1)), row["value"].clone())
    });
    rows.collect()
}

fn compare(file: &Path) -> u64 {
    let (plain, folded) = (plain_sums(file), folded(file));
    assert_eq!(plain.keys().collect::<Vec<_>>(), folded.keys().collect::<Vec<_>>());
    for (route, plain) in &plain {
        let folded = &folded[route];
        assert_eq!(folded["flights"], plain.flights, "{route:?}");
        assert_eq!(folded["delay"]["count"].as_u64().unwrap_or(0), plain.delays.len() as u64, "{route:?}");
        if plain.delays.is_empty() {
            continue;
        }
        let near = |name: &str, expected: f64| {
            let found = folded["delay"][name].as_f64().expect("a number");
            let tolerance = 1e-9 * expected.abs().max(1.0);
            assert!((found - expected).abs() <= tolerance, "{route:?} {name}: {found}, not {expected}");
        };
        let count = plain.delays.len() as f64;
        let sum: f64 = plain.delays.iter().sum();
        let squares: f64 = plain.delays.iter().map(|delay| (delay - sum / count).powi(2)).sum();
        near("sum", sum);
        near("mean", sum / count);
        near("variance", squares / count);
        near("min", plain.delays.iter().copied().fold(f64::INFINITY, f64::min));
        near("max", plain.delays.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        let (distinct, estimate) = (plain.tails.len() as f64, folded["tails"].as_f64().expect("a number"));
        // The standard error of hll:12 is 1.04 / sqrt(4096) = 1.6 %; four of them, and two for
        // small counts.
        assert!(
            (estimate - distinct).abs() <= 0.065 * distinct + 2.0,
            "{route:?}: {estimate} tails, not {distinct}"
        );
    }
    plain.values().map(|route| route.flights).sum()
}

#[test]
fn the_folded_sample_equals_plain_sums() {
    assert_eq!(compare(&flights_sample()), 10_452);
}

#[test]
fn all_flights_of_the_year_equal_plain_sums() {
    let file = project().join("../shared/data/flights.csv.gz");
    if !file.exists() {
        println!("skipped: the flights of the whole year are not here");
        return;
    }
    assert_eq!(compare(&file), 336_776);
}
