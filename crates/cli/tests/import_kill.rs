//! Imports of several files that are killed (kill -9) at random moments and run again: every row is
//! in exactly once.
//!
//! Each test kills at a dozen moments of its kind, which are other ones each time; what fails says
//! its seed, and `FOLDDB_SEED=N` chooses it. All kinds at 200 moments: `cargo test -p folddb-cli
//! --release --test import_kill -- --ignored`.

mod support;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use support::{Place, Random};

/// Where bad rows are kept, by their kind.
const KEPT: [&str; 3] = ["bad.csv", "bad.2.csv", "bad.3.csv"];

/// How many kills of each kind are tried each time, and how many if that is asked for.
const MOMENTS: u32 = 12;
const MANY_MOMENTS: u32 = 200;

const FILES: u64 = 5;
const ROWS: u64 = 6000;

/// Writes the files, plain and packed, as CSV and as JSON; returns what they add up to by key.
fn write_files(place: &Place) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    std::fs::create_dir(place.path().join("in")).expect("a directory");
    for file in 0..FILES {
        let mut text = if file % 2 == 0 { "k,n\n".to_owned() } else { String::new() };
        for row in 0..ROWS {
            let (key, n) = (format!("k{}", (row * 31 + file) % 997), row % 7 + 1);
            match file % 2 {
                0 => text.push_str(&format!("{key},{n}\n")),
                _ => text.push_str(&format!("{{\"k\":\"{key}\",\"n\":{n}}}\n")),
            }
            *sums.entry(key).or_default() += n;
        }
        let kind = if file % 2 == 0 { "csv" } else { "ndjson" };
        match file {
            2 => {
                let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                packed.write_all(text.as_bytes()).expect("it is packed");
                place.write(&format!("in/{file}.{kind}.gz"), packed.finish().expect("it is packed"));
            }
            _ => place.write(&format!("in/{file}.{kind}"), text),
        }
    }
    sums
}

const IMPORT: [&str; 8] =
    ["import", "s", "t", "in", "--create", "--key", "k", "--fold=rows: sum:u64 = 1, n: sum:u64 = n"];

/// What a table holds by key: rows, and their sum.
fn held(place: &Place) -> BTreeMap<String, (u64, u64)> {
    let rows = place.done(&["export", "s", "t"]);
    rows.lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            (fields[0].to_owned(), (fields[1].parse().expect("rows"), fields[2].parse().expect("a sum")))
        })
        .collect()
}

fn check(place: &Place, sums: &BTreeMap<String, u64>, seed: u64) {
    let held = held(place);
    let rows: u64 = held.values().map(|(rows, _)| rows).sum();
    assert_eq!(rows, FILES * ROWS, "seed {seed}");
    let held: BTreeMap<String, u64> = held.into_iter().map(|(key, (_, sum))| (key, sum)).collect();
    assert!(held == *sums, "seed {seed}: a sum is wrong");
}

/// The seed of this run, and what follows from it.
fn seeded() -> (u64, Random) {
    let of_now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(7, |now| now.subsec_nanos().into());
    let seed = std::env::var("FOLDDB_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(of_now);
    println!("FOLDDB_SEED={seed}");
    (seed, Random(seed * 2 + 0x9e37_79b9_7f4a_7c15))
}

/// Runs an import, and kills it within a time, if one is given: the exit code, none of one that was
/// killed, and what it said.
fn run_killed(
    place: &Place,
    words: &[&str],
    random: &mut Random,
    latest_us: Option<u64>,
) -> (Option<i32>, String) {
    let mut child = place.command(words).stderr(Stdio::piped()).spawn().expect("the program starts");
    if let Some(latest_us) = latest_us {
        std::thread::sleep(Duration::from_micros(random.below(latest_us)));
        let _ = child.kill();
    }
    let ended = child.wait_with_output().expect("it ends");
    (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

/// Imports without a kill, which is checked; how long that takes.
fn whole_us(place: &Place, check: impl Fn()) -> u64 {
    let began = Instant::now();
    place.done(&IMPORT);
    check();
    began.elapsed().as_micros() as u64
}

/// Kills imports at this many moments, each within `latest_us`, and starts them again until one
/// reaches the end, which is checked. How many of them went on from a row.
fn kill_imports(place: &Place, seeded: (u64, Random), moments: u32, latest_us: u64, check: impl Fn()) -> u32 {
    kill_all(place, |_| IMPORT.to_vec(), 0, seeded, moments, latest_us, check)
}

/// The same, of imports with these words, the last of which ends with this code.
fn kill_all(
    place: &Place,
    words: impl Fn(&mut Random) -> Vec<&'static str>,
    end: i32,
    (seed, mut random): (u64, Random),
    moments: u32,
    latest_us: u64,
    check: impl Fn(),
) -> u32 {
    let (mut killed, mut gone_on) = (0, 0);
    while killed < moments {
        std::fs::remove_dir_all(place.path().join("s")).expect("the store is removed");
        for kept in KEPT {
            let _ = std::fs::remove_file(place.path().join(kept));
        }
        let mut was_told = false;
        loop {
            let words = words(&mut random);
            let latest_us = (killed < moments).then_some(latest_us); // the last one goes on to the end
            let (code, said) = run_killed(place, &words, &mut random, latest_us);
            gone_on += u32::from(said.contains("went on from its row"));
            // Who is killed once it has reported bad rows has told of them.
            if code == Some(end) || was_told && code == Some(0) {
                break;
            }
            assert_eq!(code, None, "seed {seed}: it failed after {killed} kills: {said}");
            was_told |= said.contains("not imported");
            killed += 1;
        }
        check();
    }
    gone_on
}

/// Kills imports of files of several kinds.
fn kill_at(moments: u32) {
    let seeded = seeded();
    let seed = seeded.0;
    let place = Place::new();
    let sums = write_files(&place);
    let whole_us = whole_us(&place, || check(&place, &sums, seed));
    // Also right after it begins, and not so late that an import ends at once.
    kill_imports(&place, seeded, moments, whole_us * 2 / 3, || {
        check(&place, &sums, seed);
        let again = place.json(&IMPORT);
        assert_eq!((&again["rows_imported"], &again["files_read"]), (&0.into(), &0.into()), "seed {seed}");
        check(&place, &sums, seed);
    });
}

/// Kills imports of a file that is read in pieces, on all cores.
fn kill_large_at(moments: u32) {
    let seeded = seeded();
    let seed = seeded.0;
    let place = Place::new();
    let (mut text, mut sums) = ("k,n\n".to_owned(), BTreeMap::new());
    for row in 0..FILES * ROWS * 5 {
        // Keys that come back soon, and late; some rows are on several lines.
        let (key, n) = (format!("a key of some length {}", row * 31 % 70_001), row % 7 + 1);
        let end = if row % 1000 == 0 { "\n" } else { "" };
        text.push_str(&format!("\"{key}{end}\",{n}\n"));
        *sums.entry(key + end).or_default() += n;
    }
    place.write("in", text);
    let rows: u64 = FILES * ROWS * 5;
    let held = || -> (u64, BTreeMap<String, u64>) {
        let out = place.done(&["export", "s", "t", "--format", "ndjson"]);
        let (mut rows, mut sums) = (0, BTreeMap::new());
        for line in out.lines() {
            let row: serde_json::Value = serde_json::from_str(line).expect("a row of JSON");
            let (key, value) = (row["key"].as_str().expect("a key"), &row["value"]);
            rows += value["rows"].as_u64().expect("rows");
            sums.insert(key.to_owned(), value["n"].as_u64().expect("a sum"));
        }
        (rows, sums)
    };
    let check = || assert!(held() == (rows, sums.clone()), "seed {seed}: rows are missing, or twice");
    let whole_us = whole_us(&place, check);
    let gone_on = kill_imports(&place, seeded, moments, whole_us, check);
    println!("of {moments} that were killed, {gone_on} had gone on from a row");
}

/// Kills imports that count files again, each row of which is in twice in the end. One is killed
/// once it has said that it is at its end, and noted that, or not: all is in by then.
fn kill_again_at(moments: u32) {
    let (seed, mut random) = seeded();
    let place = Place::new();
    let mut sums = write_files(&place);
    sums.values_mut().for_each(|sum| *sum *= 2);
    let (mut killed, mut gone_on, mut latest_us) = (0, 0, 0);
    while killed < moments {
        let _ = std::fs::remove_dir_all(place.path().join("s"));
        let began = Instant::now();
        place.done(&IMPORT);
        latest_us = latest_us.max(began.elapsed().as_micros() as u64);
        loop {
            let mut words = [&IMPORT[..], &["--again"]].concat();
            words.extend(["--threads=1"].iter().filter(|_| random.below(2) == 0));
            let latest_us = (killed < moments).then_some(latest_us);
            let (code, said) = run_killed(&place, &words, &mut random, latest_us);
            gone_on += u32::from(said.contains("went on from its row"));
            if code == Some(0) || said.contains("imported ") {
                break;
            }
            assert_eq!(code, None, "seed {seed}: it failed after {killed} kills: {said}");
            killed += 1;
        }
        let held = held(&place);
        let rows: u64 = held.values().map(|(rows, _)| rows).sum();
        assert_eq!(rows, 2 * FILES * ROWS, "seed {seed}, after {killed} kills");
        assert!(held.into_iter().all(|(key, (_, sum))| sums[&key] == sum), "seed {seed}: a sum is wrong");
    }
    println!("of {moments} that were killed, {gone_on} had gone on from a row");
}

#[test]
fn an_import_with_again_that_is_killed_counts_each_row_once() {
    kill_again_at(MOMENTS);
}

#[test]
#[ignore = "takes a few minutes"]
fn an_import_with_again_that_is_killed_at_200_moments_counts_each_row_once() {
    kill_again_at(MANY_MOMENTS);
}

/// Kills imports of many small files, which are committed together.
fn kill_many_at(moments: u32) {
    let (seed, mut random) = seeded();
    let place = Place::new();
    std::fs::create_dir(place.path().join("in")).expect("a directory");
    let (files, mut sums, mut rows) = (1200, BTreeMap::new(), 0);
    for file in 0..files {
        let mut text = "k,n\n".to_owned();
        for row in 0..random.below(if file % 200 == 3 { 60_000 } else { 40 }) {
            let (key, n) = (format!("k{}", row * 31 % 997), random.below(9));
            text.push_str(&format!("{key},{n}\n"));
            let (count, sum) = sums.entry(key).or_insert((0, 0));
            (*count, *sum, rows) = (*count + 1, *sum + n, rows + 1);
        }
        // A name in each, so that no two are alike.
        place.write(&format!("in/{file:04}.csv"), text + &format!("file {file},1\n"));
        sums.insert(format!("file {file}"), (1, 1));
        rows += 1;
    }
    let check = || assert!(held(&place) == sums, "seed {seed}: rows of {rows} are missing, or twice");
    let whole_us = whole_us(&place, check);
    kill_imports(&place, (seed, random), moments, whole_us, check);
}

/// Kills imports of files with bad rows, which are kept, and at last are imported, too. It is never
/// passed over in silence that rows are bad.
fn kill_with_bad_rows_at(moments: u32) {
    let (seed, random) = seeded();
    let place = Place::new();
    std::fs::create_dir(place.path().join("in")).expect("a directory");
    let (mut good, mut bad) = (BTreeMap::new(), Vec::new());
    for file in 0..3u64 {
        // The second file has other columns, and the third is JSON.
        let (names, kind) = [("k,n\n", "csv"), ("k,n,m\n", "csv"), ("", "ndjson")][file as usize];
        let row_of = |key: &str, n: &str| match file {
            0 => format!("{key},{n}"),
            1 => format!("{key},{n},1"),
            _ => format!("{{\"k\":\"{key}\",\"n\":\"{n}\"}}"),
        };
        let mut text = names.to_owned();
        for row in 0..40_000 {
            let key = format!("k{}", row * 31 % 997);
            if (row + file) % 100 == 7 {
                bad.push(row_of(&key, &format!("bad {file} {row}")));
                text.push_str(&format!("{}\n", row_of(&key, &format!("bad {file} {row}"))));
                continue;
            }
            text.push_str(&format!("{}\n", row_of(&key, &(row % 7).to_string())));
            let (count, sum) = good.entry(key).or_insert((0, 0));
            (*count, *sum) = (*count + 1, *sum + row % 7);
        }
        place.write(&format!("in/{file}.{kind}"), text);
    }
    bad.sort();
    let words = |random: &mut Random| {
        let mut words = [&IMPORT[..], &["--bad-rows", "bad.csv"]].concat();
        words.extend(["--threads=1"].iter().filter(|_| random.below(2) == 0));
        words
    };
    let check = || {
        assert!(held(&place) == good, "seed {seed}: a row is missing, or twice");
        let text = KEPT.map(|kept| place.read(kept)).concat();
        let is_row = |line: &&str| !line.starts_with('#') && !line.starts_with("k,n");
        let mut kept: Vec<&str> = text.lines().filter(is_row).collect();
        kept.sort_unstable();
        assert_eq!(kept.len(), bad.len(), "seed {seed}: how many are kept");
        assert!(kept == bad, "seed {seed}: a bad row is missing, or twice");
        let told = place.run(&["--json", "imports", "s", "t"]).out;
        let count = |line: &str| -> u64 {
            let record: serde_json::Value = serde_json::from_str(line).expect("a record");
            record["rows_bad"].as_u64().expect("a number")
        };
        assert_eq!(told.lines().map(count).sum::<u64>(), bad.len() as u64, "seed {seed}: {told}");
    };
    let began = Instant::now();
    assert_eq!(place.run(&words(&mut Random(1))).code, 5);
    check();
    let whole_us = began.elapsed().as_micros() as u64;
    kill_all(&place, words, 5, (seed, random), moments, whole_us, check);
    let again = place.run(&words(&mut Random(1)));
    assert_eq!(again.code, 0, "it was told: {}", again.err);
}

/// Kills imports of a file with bad rows among which are some that only the store can refuse, so
/// that batches are committed in halves.
fn kill_with_refused_rows_at(moments: u32) {
    let (seed, mut random) = seeded();
    let place = Place::new();
    let (mut text, mut bad) = (String::new(), Vec::new());
    for row in 0..1500 {
        let line = match row % 100 {
            7 => format!("{}{row},1", "k".repeat(64_000)),
            57 => format!("bad {row}"),
            _ => format!("k{row},1"),
        };
        text.push_str(&format!("{line}\n"));
        bad.extend([7, 57].contains(&(row % 100)).then_some(line));
    }
    place.write("rows.csv", text);
    bad.sort();
    let words =
        ["import", "s", "t", "rows.csv", "--no-header", "--key=c1", "--value=c2", "--bad-rows=bad.csv"];
    let (mut killed, mut latest_us) = (0, 500_000);
    while killed < moments {
        let _ = std::fs::remove_dir_all(place.path().join("s"));
        let _ = std::fs::remove_file(place.path().join("bad.csv"));
        place.done(&["create", "s", "t", "--index", "by:value"]);
        loop {
            let began = Instant::now();
            let (code, said) = run_killed(&place, &words, &mut random, Some(latest_us));
            if code.is_some() {
                // Who is killed once it has reported bad rows has told of them.
                assert!([Some(5), Some(0)].contains(&code), "seed {seed}, after {killed} kills: {said}");
                latest_us = began.elapsed().as_micros() as u64;
                break;
            }
            killed += 1;
        }
        assert_eq!(place.done(&["count", "s", "t"]).trim(), (1500 - bad.len()).to_string(), "seed {seed}");
        let text = place.read("bad.csv");
        let mut kept: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        kept.sort_unstable();
        assert_eq!(kept.len(), bad.len(), "seed {seed}: how many are kept");
        assert!(kept == bad, "seed {seed}: a bad row is missing, or twice");
    }
}

#[test]
fn an_import_whose_rows_the_store_refuses_keeps_each_bad_one_once() {
    kill_with_refused_rows_at(MOMENTS);
}

#[test]
#[ignore = "takes a few minutes"]
fn an_import_whose_rows_the_store_refuses_keeps_each_bad_one_once_at_200_moments() {
    kill_with_refused_rows_at(MANY_MOMENTS);
}

#[test]
fn an_import_with_bad_rows_that_is_killed_keeps_each_of_them_once() {
    kill_with_bad_rows_at(MOMENTS);
}

#[test]
#[ignore = "takes a few minutes"]
fn an_import_with_bad_rows_that_is_killed_at_200_moments_keeps_each_of_them_once() {
    kill_with_bad_rows_at(MANY_MOMENTS);
}

#[test]
fn an_import_of_many_files_that_is_killed_goes_on() {
    kill_many_at(MOMENTS);
}

#[test]
#[ignore = "takes a few minutes"]
fn an_import_of_many_files_that_is_killed_at_200_moments_goes_on() {
    kill_many_at(MANY_MOMENTS);
}

#[test]
fn an_import_on_all_cores_that_is_killed_goes_on() {
    kill_large_at(MOMENTS);
}

#[test]
#[ignore = "takes a few minutes"]
fn an_import_on_all_cores_that_is_killed_at_200_moments_goes_on() {
    kill_large_at(MANY_MOMENTS);
}

#[test]
fn an_import_that_is_killed_goes_on_with_nothing_twice_and_nothing_missing() {
    kill_at(MOMENTS);
}

#[test]
#[ignore = "takes a minute or two"]
fn an_import_that_is_killed_at_200_moments_goes_on() {
    kill_at(MANY_MOMENTS);
}
