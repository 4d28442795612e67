//! What leveled, osmos and HugeDB promise for reads of many rows, row by row: one test each, named
//! after the row.
#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;

use folddb::{BackgroundWork, HeadRule, Options, Rules, Store, Table};
use folddb_sim::place::Place;

fn options() -> Options {
    Options::default()
        .memory_bytes(4 << 20)
        .tuning(|t| t.segment_bytes(1 << 20).part_bytes(64 << 10))
        .disk_reserve_bytes(0)
        .background(BackgroundWork::Manual)
}

fn compact(store: &Store, table: &str) {
    store.bytes_table(table).expect("a table").compact().expect("it merges");
}

fn blobs(store: &Store) -> Table<(String, u64), Vec<u8>> {
    let rules = Rules::sorted::<(String, u64), Vec<u8>>().separate(512).head(HeadRule::First(1));
    store.table("blobs", rules).expect("the table")
}

fn fill(store: &Store) -> Table<(String, u64), Vec<u8>> {
    let table = blobs(store);
    for number in 0..3000u64 {
        let bucket = format!("b{}", number % 3);
        table.put(&(bucket, number), &vec![(number % 7) as u8; 1000]).expect("it writes");
        if number % 700 == 0 {
            store.flush().expect("it flushes");
        }
    }
    table
}

#[test]
fn leveled_multiple_fold_types() {
    let place = Place::new();
    let store = place.create(options());
    let table = fill(&store);
    for threads in [1, 2] {
        let sum = |sum: u64, more: u64| sum + more;
        let values_read = || store.stats().reads.values;
        let before = values_read();
        // Over keys: of the table, of a prefix, of a range.
        let count = |sum: &mut u64, _| {
            *sum += 1;
            ControlFlow::Continue(())
        };
        assert_eq!(table.scan().fold_keys(threads, || 0, count, sum).unwrap(), 3000);
        assert_eq!(table.scan().prefix(&("b1",)).fold_keys(threads, || 0, count, sum).unwrap(), 1000);
        let range = table.scan().from(&("b0".to_owned(), 1500)).before(&("b2".to_owned(), 3));
        assert_eq!(range.fold_keys(threads, || 0, count, sum).unwrap(), 500 + 1000 + 1);
        // Over heads.
        let sizes = table.scan().fold_heads(
            threads,
            || (0, 0),
            |(bytes, firsts): &mut (u64, u64), _, head| {
                (*bytes, *firsts) = (*bytes + head.size_bytes, *firsts + u64::from(head.bytes[0]));
                ControlFlow::Continue(())
            },
            |a, b| (a.0 + b.0, a.1 + b.1),
        );
        let firsts = (0..3000).map(|number| number % 7).sum();
        assert_eq!(sizes.unwrap(), (3_000_000, firsts));
        assert_eq!(values_read(), before, "neither reads a value");
        // Over values, in the order of the keys, until enough has come.
        let bytes = table.scan().fold_rows(
            threads,
            || 0,
            |sum: &mut u64, _, value| {
                *sum += value.iter().map(|byte| u64::from(*byte)).sum::<u64>();
                ControlFlow::Continue(())
            },
            sum,
        );
        assert_eq!(bytes.unwrap(), firsts * 1000);
        let some = table.scan().fold_rows(
            threads,
            || 0,
            |sum: &mut u64, _, _| {
                *sum += 1;
                if *sum == 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
            sum,
        );
        assert!((10..3000).contains(&some.unwrap()), "it ends early");
    }
}

#[test]
fn leveled_hash_trees_are_rebuilt_and_compared() {
    let (place, other_place) = (Place::new(), Place::new());
    let (store, other) = (place.create(options()), other_place.create(options()));
    let (table, also) = (fill(&store), fill(&other));
    compact(&store, "blobs");
    let digest =
        |table: &Table<(String, u64), Vec<u8>>| table.as_bytes().scan().digest(3, 2).expect("it reads");
    assert_eq!(digest(&table).root(), digest(&also).root(), "whatever was merged");
    also.put(&("b1".to_owned(), 1), &vec![9; 1000]).unwrap();
    also.delete(&("b2".to_owned(), 2)).unwrap();
    also.put(&("b3".to_owned(), 3), &vec![3; 10]).unwrap();
    let (ours, theirs) = (digest(&table), digest(&also));
    assert_eq!(ours.differing(&theirs).unwrap().len(), 3, "of 4096 leaves");
    let mut keys = Vec::new();
    let report = table.as_bytes().scan().compare(also.as_bytes().scan(), |difference| {
        keys.push((difference.first.is_some(), difference.second.is_some()));
        ControlFlow::Continue(())
    });
    report.unwrap();
    assert_eq!(keys, [(true, true), (true, false), (false, true)]);
}

#[test]
fn osmos_records_of_one_key_under_several_subkeys() {
    let place = Place::new();
    let store = place.create(options());
    let table = store.table("visits", Rules::sorted::<(String, String, u64), u64>().fold("sum:u64")).unwrap();
    for number in 0..4000u64 {
        let (user, page) = (format!("user{}", number % 40), format!("page{}", number % 7));
        table.fold(&(user, page, number % 3), &1).unwrap();
        if number % 900 == 0 {
            store.flush().unwrap();
        }
    }
    // All pages of a user, and all days of one of them.
    let of_user = table.scan().prefix(&("user7",)).into_iter().map(|row| row.unwrap());
    let rows: Vec<((String, String, u64), u64)> = of_user.collect();
    assert_eq!(rows.len(), 21);
    assert!(rows.iter().all(|((user, ..), _)| user == "user7"));
    assert_eq!(rows.iter().map(|(_, visits)| visits).sum::<u64>(), 100);
    assert_eq!(table.scan().prefix(&("user7", "page3")).count().unwrap(), 3);
    assert_eq!(table.scan().prefix(&("user7", "page9")).count().unwrap(), 0);
}

#[test]
fn osmos_queries_over_ranges_of_the_first_part_of_a_tuple() {
    let place = Place::new();
    let store = place.create(options());
    let table = store.table("series", Rules::sorted::<(u64, String), u64>().fold("sum:u64")).unwrap();
    for minute in 0..500u64 {
        for name in ["cpu", "disk", "net"] {
            table.fold(&(minute, name.to_owned()), &minute).unwrap();
        }
        if minute % 120 == 0 {
            store.flush().unwrap();
        }
    }
    // A part of a tuple is a bound: all names from minute 100 on and before 110; through 109; after
    // 99.
    let minutes = |low: u64, high: u64| table.scan().from(&(low,)).before(&(high,));
    let rows: Vec<_> = minutes(100, 110).into_iter().map(|row| row.unwrap()).collect();
    assert_eq!(rows.len(), 30);
    assert_eq!((rows[0].0.0, rows[29].0.0), (100, 109));
    assert_eq!(table.scan().after(&(99,)).through(&(109,)).count().unwrap(), 30);
    assert_eq!(minutes(100, 110).aggregate().unwrap().value, Some((100..110).sum::<u64>() * 3));
    let newest = table.scan().through(&(499,)).reverse().limit(3).into_iter();
    assert!(newest.map(|row| row.unwrap()).all(|((minute, _), _)| minute == 499));
}

#[test]
fn hugedb_insert_all_then_find_all_with_optimize_between() {
    const KEYS: u64 = 60_000;
    let place = Place::new();
    let store = place.create(options());
    let table = store.table("numbers", Rules::sorted::<u64, u64>()).unwrap();
    let key = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for number in 0..KEYS {
        table.put_if_absent(&key(number), &number).unwrap();
        if number % 10_000 == 0 {
            store.flush().unwrap();
        }
    }
    compact(&store, "numbers");
    assert_eq!(store.bytes_table("numbers").unwrap().stats().unwrap().runs.len(), 1);
    for number in 0..KEYS {
        assert_eq!(table.get(&key(number)).unwrap(), Some(number));
    }
    assert_eq!(table.get(&key(KEYS)).unwrap(), None);
}
