//! A range of a table: merging it alone, and estimating what it holds.

#![allow(clippy::unwrap_used)]

mod common;

use std::ops::ControlFlow;

use common::{drain, small};
use folddb::table_rules::TableRules;
use folddb::{BytesTable, ErrorKind, Options, RangeEstimate, Rules, Store, WriteOp};

const VALUE_BYTES: usize = 100;

/// Bytes of a value that do not compress, and follow from two numbers.
fn value(key: u64, round: u64) -> Vec<u8> {
    let mut state = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ round;
    let byte = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..VALUE_BYTES).map(byte).collect()
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn put(table: &BytesTable, number: u64, round: u64) {
    table.write(WriteOp::Put, &key(number), &value(number, round)).unwrap();
}

fn options() -> Options {
    small().tuning(|t| t.part_bytes(64 << 10))
}

/// A table whose oldest run has every key below `keys`, in many files.
fn filled(store: &Store, rules: &str, keys: u64) -> BytesTable {
    let table = store.create_bytes_table("t", rules.parse::<TableRules>().unwrap()).unwrap();
    (0..keys).for_each(|i| put(&table, i, 0));
    table.compact().unwrap();
    table
}

/// Each of these runs has every `step`-th key.
fn add_runs(store: &Store, table: &BytesTable, runs: u64, (keys, step): (u64, usize)) {
    for round in 1..=runs {
        (0..keys).step_by(step).for_each(|i| put(table, i, round));
        store.flush().unwrap();
    }
}

fn rows(table: &BytesTable) -> Vec<(Vec<u8>, Vec<u8>)> {
    table.scan().into_iter().map(|row| row.unwrap()).collect()
}

/// How many runs have files with keys of a range.
fn runs_in(table: &BytesTable, from: u64, to: u64) -> usize {
    let stats = table.stats().unwrap();
    let met = |low: &[u8], high: &[u8]| low < &key(to)[..] && high >= &key(from)[..];
    stats.runs.iter().filter(|run| run.parts.iter().any(|part| met(&part.low, &part.high))).count()
}

// ---- compact_range ------------------------------------------------------------------------------

#[test]
fn one_run_has_all_of_a_range_and_the_others_keep_the_rest() {
    let store = Store::in_memory(options()).unwrap();
    let table = filled(&store, "", 20_000);
    add_runs(&store, &table, 3, (20_000, 3));
    let before = rows(&table);
    let runs = (runs_in(&table, 0, 8_000), runs_in(&table, 9_000, 20_000), table.stats().unwrap().runs.len());
    assert!(runs.0 > 3 && runs.1 > 3);
    let written = store.stats().background.part_bytes;
    table.compact_range(&table.scan().range(key(8_000)..key(9_000))).unwrap();
    assert_eq!(runs_in(&table, 8_000, 9_000), 1);
    let after =
        (runs_in(&table, 0, 8_000), runs_in(&table, 9_000, 20_000), table.stats().unwrap().runs.len());
    assert_eq!(after, runs, "the runs beside the range stay, and what was merged has joined the oldest");
    assert_eq!(rows(&table), before);
    let total = table.stats().unwrap().disk_bytes;
    let cost = store.stats().background.part_bytes - written;
    assert!(cost < total / 2, "{cost} of {total}: the range, and what was before it in three small runs");
    // Another time there is nothing to do.
    let written = store.stats().background.part_bytes;
    table.compact_range(&table.scan().range(key(8_000)..key(9_000))).unwrap();
    assert_eq!(store.stats().background.part_bytes, written);
}

#[test]
fn deleted_keys_of_a_range_take_no_space_afterwards() {
    let store = Store::in_memory(options()).unwrap();
    let table = filled(&store, "", 10_000);
    for i in 2_000..4_000 {
        table.delete(&key(i)).unwrap();
    }
    let before = table.stats().unwrap().disk_bytes;
    table.compact_range(&table.scan().from(&key(2_000)).through(&key(3_999))).unwrap();
    let stats = table.stats().unwrap();
    assert!(stats.disk_bytes < before * 90 / 100, "{} of {before}", stats.disk_bytes);
    assert_eq!(table.scan().from(&key(2_000)).through(&key(3_999)).estimate().unwrap().records, 0);
    assert_eq!(table.scan().count().unwrap(), 8_000);
}

#[test]
fn range_deletes_hide_what_they_hid_outside_of_the_range() {
    let store = Store::in_memory(options()).unwrap();
    let table = filled(&store, "", 10_000);
    table.delete_range(&key(1_000), &key(9_000)).unwrap();
    store.flush().unwrap();
    table.compact_range(&table.scan().range(key(4_000)..key(5_000))).unwrap();
    assert_eq!(table.scan().count().unwrap(), 2_000);
    drain(&store);
    table.compact().unwrap();
    assert_eq!(table.scan().count().unwrap(), 2_000);
}

#[test]
fn snapshots_see_what_they_saw_whatever_range_is_merged() {
    let store = Store::in_memory(options()).unwrap();
    let table = filled(&store, "fold=append", 5_000);
    let mut seen = Vec::new();
    for round in 1..=3 {
        add_runs(&store, &table, 1, (5_000, 2 + round));
        seen.push((store.snapshot(), rows(&table)));
    }
    for from in [0, 1_234, 4_999] {
        table.compact_range(&table.scan().from(&key(from)).before(&key(from + 700))).unwrap();
        for (snapshot, rows) in &seen {
            let now: Vec<_> = snapshot.scan(&table).into_iter().map(|row| row.unwrap()).collect();
            assert_eq!(now, *rows);
        }
    }
}

#[test]
fn it_can_be_stopped_and_goes_on_later() {
    let store = Store::in_memory(options()).unwrap();
    let table = filled(&store, "", 20_000);
    add_runs(&store, &table, 2, (20_000, 2));
    let before = rows(&table);
    let range = table.scan().from(&key(5_000)).before(&key(15_000));
    for steps in 0..8 {
        let mut left = steps;
        let stop = |_| {
            left -= 1;
            if left < 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        table.compact_range_with(&range, stop).unwrap();
        assert_eq!(rows(&table), before);
    }
    table.compact_range(&range).unwrap();
    assert_eq!((runs_in(&table, 5_000, 15_000), rows(&table) == before), (1, true));
}

/// Each new run begins before the range: were they taken in, there would always be one more to cut.
#[test]
fn it_ends_although_more_is_written_meanwhile() {
    let store = Store::in_memory(options()).unwrap();
    let table = filled(&store, "", 2000);
    add_runs(&store, &table, 3, (2000, 5));
    let mut steps = 0;
    let range = table.scan().from(&key(500)).before(&key(900));
    let ended = table.compact_range_with(&range, |_| {
        steps += 1;
        put(&table, 0, steps);
        put(&table, 600, steps);
        store.flush().unwrap();
        if steps < 300 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    ended.unwrap();
    assert!(0 < steps && steps < 300, "{steps} steps");
    assert_eq!(table.get(&key(600)).unwrap(), Some(value(600, steps)));
    assert_eq!(table.scan().count().unwrap(), 2000);
}

#[test]
fn any_ranges_in_any_order_change_no_row() {
    for rules in ["", "order=reversed", "fold=append", "separate=64", "keep=forever", "index=all:value"] {
        let options = options().in_memory();
        let store = Store::create("s", options.clone()).unwrap();
        let table = filled(&store, rules, 3_000);
        let mut draw = 7_u64;
        for round in 1..20 {
            let mut next = |bound: u64| {
                draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (draw >> 33) % bound
            };
            add_runs(&store, &table, 1, (3_000, 5 + next(90) as usize));
            if round % 4 == 0 {
                let (a, b) = (next(3_000), next(3_000) + 1);
                let (from, to) =
                    if rules == "order=reversed" { (a.max(b), a.min(b)) } else { (a.min(b), a.max(b)) };
                if from != to {
                    table.delete_range(&key(from), &key(to)).unwrap();
                }
            }
            let before = rows(&table);
            let (a, b) = (key(next(3_000)), key(next(3_000)));
            let range = match next(5) {
                0 => table.scan().from(&a),
                1 => table.scan().through(&a),
                2 => table.scan().after(&a).before(&b),
                3 => table.scan().from(&a).through(&b),
                _ => table.scan().prefix(&a[..7]),
            };
            table.compact_range(&range).unwrap();
            assert_eq!(rows(&table), before, "{rules}, round {round}");
            if next(3) == 0 {
                drain(&store);
            }
        }
        let before = rows(&table);
        drop((table, store));
        let store = Store::open("s", options.clone()).unwrap();
        assert_eq!(rows(&store.bytes_table("t").unwrap()), before, "{rules}, opened again");
        store.bytes_table("t").unwrap().compact().unwrap();
        assert_eq!(rows(&store.bytes_table("t").unwrap()), before, "{rules}, compacted");
        store.close().unwrap();
        let how = folddb::maintenance::VerifyOptions::default().deep(true);
        assert!(Store::verify("s", &how, &options).unwrap().is_clean(), "{rules}");
    }
}

#[test]
fn what_has_no_range_is_refused() {
    let store = Store::in_memory(small()).unwrap();
    let hashed = store.create_bytes_table("hashed", "kind=hashed".parse().unwrap()).unwrap();
    let one = store.create_bytes_table("one", "".parse().unwrap()).unwrap();
    let refused = |done: folddb::Result<()>| done.unwrap_err().kind();
    assert_eq!(refused(hashed.compact_range(&hashed.scan())), ErrorKind::InvalidInput);
    assert_eq!(refused(one.compact_range(&hashed.scan())), ErrorKind::InvalidInput);
    assert_eq!(refused(hashed.scan().estimate().map(drop)), ErrorKind::InvalidInput);
}

// ---- estimate -----------------------------------------------------------------------------------

/// Blocks of the table that is estimated, in bytes, and a record more.
const BLOCK_BYTES: u64 = (4 << 10) + 200;

/// The estimate is as wrong as it says at most, and that is two blocks in each file that is cut.
fn check_estimate(about: RangeEstimate, exact: u64, cut_files: u64, what: &str) {
    let doubt_bytes = about.disk_bytes_max - about.disk_bytes_min;
    assert!(doubt_bytes <= 2 * cut_files * BLOCK_BYTES, "{what}: {about:?}");
    assert!((about.disk_bytes_min..=about.disk_bytes_max).contains(&about.disk_bytes));
    let doubt_rows = doubt_bytes / 2 / VALUE_BYTES as u64 + 2 * cut_files;
    assert!(
        about.rows.abs_diff(exact) <= doubt_rows,
        "{what}: it is {exact}, within {doubt_rows}: {about:?}"
    );
    let bytes_of_rows = exact * VALUE_BYTES as u64; // they do not compress, and a key takes a few more
    assert!(bytes_of_rows <= about.disk_bytes_max, "{what}: {about:?}");
    assert!(about.disk_bytes_min <= bytes_of_rows * 115 / 100, "{what}: {about:?}");
}

#[test]
fn any_range_of_one_run_is_estimated_within_two_blocks_of_each_file_that_it_cuts() {
    let store = Store::in_memory(options()).unwrap();
    let table = filled(&store, "block_bytes=4096", 30_000);
    assert!(table.stats().unwrap().runs[0].parts.len() > 20);
    let mut draw = 11_u64;
    let mut next = |bound: u64| {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (draw >> 33) % bound
    };
    for _ in 0..2_000 {
        let (a, b) = (next(30_100), next(30_100));
        let (from, to) = (a.min(b), a.max(b));
        let about = table.scan().range(key(from)..key(to)).estimate().unwrap();
        let exact = to.min(30_000).saturating_sub(from.min(30_000));
        check_estimate(about, exact, 2, &format!("{from} to {to}"));
    }
    let all = table.scan().estimate().unwrap();
    assert_eq!((all.rows, all.records), (30_000, 30_000));
    assert_eq!(all.disk_bytes_min, all.disk_bytes_max);
}

#[test]
fn keys_that_several_runs_have_count_about_once() {
    let store = Store::in_memory(options()).unwrap();
    let table = filled(&store, "", 20_000);
    add_runs(&store, &table, 3, (20_000, 1));
    let half = table.scan().before(&key(10_000)).estimate().unwrap();
    assert!(half.records.abs_diff(40_000) < 1_500);
    assert!(half.rows.abs_diff(10_000) < 1_500, "{}", half.rows);
}

#[test]
fn rows_in_memory_are_counted_and_nothing_is_read() {
    let store = Store::in_memory(options()).unwrap();
    let table = filled(&store, "", 10_000);
    (10_000..10_500).for_each(|i| put(&table, i, 0));
    let before = store.stats().reads;
    let about = table.scan().from(&key(10_100)).estimate().unwrap();
    assert_eq!((about.rows, about.disk_bytes_max), (400, 0));
    assert_eq!(about.memory_bytes, 400 * (8 + VALUE_BYTES as u64));
    table.scan().from(&key(5_000)).estimate().unwrap();
    let after = store.stats().reads;
    assert!(after.pieces - before.pieces <= 2, "a leaf of the index for each bound that cuts a file");
}

#[test]
fn separated_values_are_estimated_as_well() {
    let store = Store::in_memory(options()).unwrap();
    let rules = Rules::sorted::<u64, Vec<u8>>().separate(64);
    let table = store.table("t", rules).unwrap();
    for i in 0..10_000 {
        table.put(&i, &value(i, 0)).unwrap();
    }
    table.compact().unwrap();
    let about = table.scan().range(0..5_000).estimate().unwrap();
    assert!((5_000 * 100..5_000 * 160).contains(&about.value_bytes), "{about:?}");
}
