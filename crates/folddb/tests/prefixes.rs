//! Scans of prefixes: the filters of runs know the leading elements of tuples, so a run without the
//! prefix is not read; and whatever is passed over, a scan finds all that there is.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::ops::Bound;

use common::{drain, fresh, manual};
use folddb::codec::tuple::{Element, pack};
use folddb::codec::{KeyCodec, KeyRange};
use folddb::table_rules::TableRules;
use folddb::{BytesScan, BytesTable, MetricValue, Rules, Snapshot, Store, Table};

/// A number as good as random (a step of SplitMix64).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32
}

fn metric(store: &Store, name: &str) -> u64 {
    match store.metrics().of(name, "") {
        Some(MetricValue::Number(number)) => *number as u64,
        other => panic!("{name} is {other:?}"),
    }
}

/// What work has read, in files and in the cache: pieces from files, pieces from memory, and files
/// that filters passed over.
fn cost(store: &Store, work: impl FnOnce()) -> (u64, u64, u64) {
    let now = || {
        let memory = metric(store, "folddb_cache_hits_total") + metric(store, "folddb_cache_misses_total");
        (store.stats().reads.pieces, memory, metric(store, "folddb_prefix_filter_rejects_total"))
    };
    let before = now();
    work();
    let after = now();
    (after.0 - before.0, after.1 - before.1, after.2 - before.2)
}

const RUNS: u64 = 5;
const USERS: u64 = 2000;

fn user(n: u64) -> String {
    format!("user{n:06}")
}

/// Five runs, none merged. Each has every tenth user, beginning with another one, with two rows
/// each: so the keys of all runs overlap, and half of the users have none.
fn visits(store: &Store, rules: Rules<(String, u64, u64), u64>) -> Table<(String, u64, u64), u64> {
    let visits = store.table("visits", rules).unwrap();
    for run in 0..RUNS {
        for n in (run..USERS).step_by(2 * RUNS as usize) {
            visits.put(&(user(n), 7, n), &n).unwrap();
            visits.put(&(user(n), 8, n), &n).unwrap();
        }
        store.flush().unwrap();
    }
    assert_eq!(store.bytes_table("visits").unwrap().stats().unwrap().runs.len(), RUNS as usize);
    visits
}

fn is_there(n: u64) -> bool {
    n % (2 * RUNS) < RUNS
}

#[test]
fn a_scan_of_an_absent_prefix_reads_no_block_of_any_run() {
    for rules in [Rules::sorted(), Rules::sorted().reversed()] {
        let (_dir, store) = fresh(manual());
        let visits = visits(&store, rules);
        let absent: Vec<u64> = (RUNS..USERS - RUNS).filter(|n| !is_there(*n)).collect();
        let (pieces, memory, passed_over) = cost(&store, || {
            for n in &absent {
                assert!(visits.scan().prefix(&(user(*n),)).is_empty().unwrap());
                assert_eq!(visits.scan().prefix(&(user(*n),)).count().unwrap(), 0);
                assert!(visits.scan().prefix(&(user(*n),)).reverse().is_empty().unwrap());
                // A range within a prefix.
                assert!(visits.scan().range((user(*n), 7)..=(user(*n), 9)).is_empty().unwrap());
            }
        });
        // One filter of each run is asked, and about one in a hundred of them lets the scan pass.
        let asked = 4 * RUNS * absent.len() as u64;
        let false_passes = asked - passed_over;
        assert!(false_passes * 100 < asked * 4, "{false_passes} of {asked}");
        assert_eq!(metric(&store, "folddb_prefix_filter_false_positives_total"), false_passes);
        assert!(memory <= asked + 2 * false_passes, "{memory} for {asked}");
        assert!(pieces <= 2 * false_passes, "{pieces} pieces for {false_passes}");
    }
}

#[test]
fn a_scan_of_a_present_prefix_finds_all_of_it_and_reads_only_the_run_that_has_it() {
    let (_dir, store) = fresh(manual());
    let visits = visits(&store, Rules::sorted());
    let present: Vec<u64> = (0..USERS).filter(|n| is_there(*n)).collect();
    let (_, _, passed_over) = cost(&store, || {
        for n in &present {
            let rows: Vec<_> = visits.scan().prefix(&(user(*n),)).into_iter().map(Result::unwrap).collect();
            assert_eq!(rows, [((user(*n), 7, *n), *n), ((user(*n), 8, *n), *n)]);
            assert_eq!(visits.scan().prefix(&(user(*n), 8)).count().unwrap(), 1);
        }
    });
    let others = 2 * (RUNS - 1) * present.len() as u64;
    assert!(passed_over * 100 > others * 95, "{passed_over} of {others}");
    assert_eq!(visits.scan().count().unwrap(), 2 * present.len() as u64);
}

#[test]
fn a_longer_prefix_is_known_where_it_has_many_rows() {
    let (_dir, store) = fresh(manual());
    let visits = store.table("visits", Rules::sorted::<(String, u64, u64), u64>()).unwrap();
    for n in 0..500 {
        (0..10).for_each(|visit| visits.put(&(user(n), 2 * n, visit), &n).map(|_| ()).unwrap());
    }
    store.flush().unwrap();
    let (pieces, _, passed_over) = cost(&store, || {
        for n in 0..500 {
            assert!(visits.scan().prefix(&(user(n), 2 * n + 1)).is_empty().unwrap());
        }
    });
    assert!(passed_over > 475 && pieces <= 2 * (500 - passed_over), "{passed_over}, {pieces} pieces");
    for n in 0..500 {
        assert_eq!(visits.scan().prefix(&(user(n), 2 * n)).count().unwrap(), 10);
    }
}

#[test]
fn ranges_beside_all_keys_of_a_run_are_not_read_whatever_the_keys_are() {
    let (_dir, store) = fresh(manual());
    let table = store.table("numbers", Rules::sorted::<u64, u64>()).unwrap();
    for run in 0..RUNS {
        (0..100).for_each(|n| table.put(&(run * 1000 + n), &n).map(|_| ()).unwrap());
        store.flush().unwrap();
    }
    let (pieces, memory, _) = cost(&store, || {
        for run in 0..RUNS {
            assert!(table.scan().range(run * 1000 + 100..run * 1000 + 1000).is_empty().unwrap());
            assert!(table.scan().range(run * 1000 + 100..run * 1000 + 1000).reverse().is_empty().unwrap());
        }
    });
    assert_eq!((pieces, memory), (0, 0));
    assert_eq!(table.scan().range(50..=1049).count().unwrap(), 100);
}

#[test]
fn a_find_of_an_absent_term_reads_no_block_of_the_index() {
    let (_dir, store) = fresh(manual());
    let rules = TableRules::new("tuple(text,int)".parse::<KeyCodec>().unwrap());
    let people = store.create_bytes_table("people", rules.index("by_name:key:0".parse().unwrap())).unwrap();
    for run in 0..RUNS {
        for n in (run..USERS).step_by(2 * RUNS as usize) {
            people.put(&pack(&[Element::from(user(n)), Element::from(n)]), b"x").unwrap();
        }
        store.flush().unwrap();
    }
    let absent: Vec<u64> = (RUNS..USERS - RUNS).filter(|n| !is_there(*n)).collect();
    let (pieces, _, passed_over) = cost(&store, || {
        for n in &absent {
            assert_eq!(people.find("by_name").unwrap().term(user(*n)).count().unwrap(), 0);
        }
    });
    let asked = RUNS * absent.len() as u64;
    assert!(passed_over * 100 > asked * 95, "{passed_over} of {asked}");
    assert!(pieces <= 2 * (asked - passed_over), "{pieces}");
    for n in (0..USERS).filter(|n| is_there(*n)) {
        assert_eq!(people.find("by_name").unwrap().term(user(n)).count().unwrap(), 1);
    }
}

#[test]
fn a_count_with_summaries_reads_nothing_of_an_absent_prefix() {
    let (_dir, store) = fresh(manual());
    let rules =
        TableRules::new("tuple(int,int)".parse::<KeyCodec>().unwrap()).fold("sum:u64").summaries(true);
    let sums = store.create_bytes_table("sums", rules).unwrap();
    let key = |n: u64, m: u64| pack(&[Element::from(n), Element::from(m)]);
    for n in (0..2000).step_by(2) {
        (0..5).for_each(|m| sums.put(&key(n, m), &1u64.to_le_bytes()).map(|_| ()).unwrap());
    }
    store.flush().unwrap();
    sums.compact().unwrap();
    let of = |n: u64| sums.scan().prefix(&pack(&[Element::from(n)]));
    assert_eq!(of(10).count().unwrap(), 5);
    let (pieces, _, _) = cost(&store, || {
        for n in (1..1999).step_by(2) {
            assert_eq!(of(n).count().unwrap(), 0);
        }
    });
    assert!(pieces < 100, "{pieces} pieces for 999 counts");
}

#[test]
fn what_a_scan_passed_over_is_not_taken_for_an_empty_range() {
    let (_dir, store) = fresh(manual());
    let table = store.table("t", Rules::sorted::<(u64, u64), u64>()).unwrap();
    // A run that does not have the prefix 5, but keys right behind it.
    (0..20).filter(|n| *n != 5).for_each(|n| table.put(&(n, 0), &n).map(|_| ()).unwrap());
    store.flush().unwrap();
    table.as_bytes().compact().unwrap();
    for m in 0..200 {
        table.put(&(5, m), &m).unwrap();
        table.delete(&(5, m)).unwrap();
    }
    for _ in 0..2 {
        assert_eq!(table.scan().prefix(&(5,)).count().unwrap(), 0);
        let rows: Vec<_> = table.scan().from(&(5,)).keys().map(Result::unwrap).collect();
        assert_eq!(rows, (6..20).map(|n| (n, 0)).collect::<Vec<_>>());
    }
}

// ---- against a model ----------------------------------------------------------------------------

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A key of up to four elements, of few values, so that prefixes meet.
fn key(chance: &mut u64) -> Vec<u8> {
    let texts = ["", "a", "a\0", "a\0b", "b"];
    let elements: Vec<Element<'_>> = (0..next(chance) % 5)
        .map(|_| match next(chance) % 8 {
            0..=3 => Element::from(texts[next(chance) as usize % texts.len()]),
            4 => Element::Null,
            5 => Element::Nested(vec![Element::Null, Element::from("a")]),
            _ => Element::from(next(chance) % 4 * 85),
        })
        .collect();
    pack(&elements)
}

/// A range in bytewise order: of a prefix of elements, of a prefix of bytes, or between two keys.
fn range(chance: &mut u64) -> KeyRange {
    let (a, b) = (key(chance), key(chance));
    let bound = |key: Vec<u8>, kind: u64| match kind % 5 {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(key),
        _ => Bound::Excluded(key),
    };
    let prefix_end = |mut prefix: Vec<u8>| {
        prefix.push(0xff);
        prefix
    };
    let (low, high) = if a <= b { (a.clone(), b) } else { (b, a.clone()) };
    match next(chance) % 6 {
        0 | 1 => KeyRange { low: Bound::Included(a.clone()), high: Bound::Excluded(prefix_end(a)) },
        2 => KeyRange::prefix(a),
        3 => KeyRange { low: bound(low, next(chance)), high: Bound::Excluded(prefix_end(a)) },
        _ => KeyRange { low: bound(low, next(chance)), high: bound(high, next(chance)) },
    }
}

fn check(scan: BytesScan, model: &Model, range: &KeyRange, reversed: bool) {
    let mut expected: Vec<_> =
        model.iter().filter(|(key, _)| range.contains(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
    if reversed {
        expected.reverse();
    }
    let scan = scan.within(range.clone());
    assert_eq!(scan.clone().count().unwrap(), expected.len() as u64, "{range:02x?}");
    let rows: Vec<_> = scan.clone().into_iter().map(Result::unwrap).collect();
    assert_eq!(rows, expected, "{range:02x?}");
    expected.reverse();
    let rows: Vec<_> = scan.reverse().into_iter().map(Result::unwrap).collect();
    assert_eq!(rows, expected, "reversed, {range:02x?}");
}

fn act(store: &Store, table: &BytesTable, is_reversed: bool, model: &mut Model, chance: &mut u64) {
    match next(chance) % 40 {
        0..=17 => {
            let (key, value) = (key(chance), next(chance).to_le_bytes().to_vec());
            table.put(&key, &value).unwrap();
            model.insert(key, value);
        }
        18..=27 => {
            let key = key(chance);
            table.delete(&key).unwrap();
            model.remove(&key);
        }
        28 => {
            let prefix = key(chance);
            table.delete_prefix(&prefix).unwrap();
            model.retain(|key, _| !key.starts_with(&prefix));
        }
        29 => {
            let (a, b) = (key(chance), key(chance));
            let (low, high) = if a <= b { (a, b) } else { (b, a) };
            let (from, to) = if is_reversed { (&high, &low) } else { (&low, &high) };
            if from == to {
                return;
            }
            table.delete_range(from, to).unwrap();
            let inside = |key: &Vec<u8>| {
                if is_reversed { low < *key && *key <= high } else { low <= *key && *key < high }
            };
            model.retain(|key, _| !inside(key));
        }
        30..=36 => store.flush().unwrap(),
        37 | 38 => drain(store),
        _ => table.compact().unwrap(),
    }
}

fn play(seed: u64) {
    let mut chance = seed;
    let (_dir, store) = fresh(manual());
    let rules = TableRules::new(KeyCodec::Tuple).block_bytes(512).summaries(seed.is_multiple_of(3));
    let rules = if seed.is_multiple_of(2) { rules } else { rules.order("reversed") };
    let reversed = seed % 2 == 1;
    let table = store.create_bytes_table("t", rules).unwrap();
    let mut model = Model::new();
    let mut past: Option<(Snapshot, Model)> = None;
    for _ in 0..400 {
        act(&store, &table, reversed, &mut model, &mut chance);
        let range = range(&mut chance);
        check(table.scan(), &model, &range, reversed);
        if let Some((snapshot, model)) = &past {
            check(snapshot.scan(&table), model, &range, reversed);
        }
        match next(&mut chance) % 30 {
            0 => past = Some((store.snapshot(), model.clone())),
            1 => past = None,
            _ => {}
        }
    }
    assert!(metric(&store, "folddb_prefix_filter_rejects_total") > 50, "filters were asked");
    drop(past);
    store.close().unwrap();
}

#[test]
fn scans_of_any_range_find_what_the_model_has() {
    (0..24).for_each(play);
}
