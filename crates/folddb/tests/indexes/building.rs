//! Indexes are added to full tables, built during writes, and dropped.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use folddb::{Durability, ErrorKind, Options, Rules, Store, WriteOp};

use crate::common::manual;
use crate::people::{People, fresh, in_city, on, people, person, rule, too_long};

#[test]
fn an_index_is_added_to_a_full_table_and_dropped() {
    let (world, store) = fresh(manual());
    let people: People = store.table("people", Rules::sorted::<String, Vec<u8>>()).unwrap();
    for name in 0..5000u32 {
        people.put(&format!("p{name:04}"), &person(["Berlin", "Rome"][name as usize % 2], name)).unwrap();
    }
    let before = store.snapshot();
    let mut told = Vec::new();
    store
        .bytes_table("people")
        .unwrap()
        .add_index_with(&rule("by_city:json:/city"), |at| {
            told.push(at);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(told.len() > 1 && told.is_sorted_by_key(|at| at.keys_done));
    assert_eq!(told.last().map(|at| (at.keys_done, at.entries)), Some((5000, 5000)));
    assert_eq!(in_city(&people, "Rome").len(), 2500);
    let asked = before.table(&people).find("by_city").unwrap().keys().next().unwrap();
    assert!(asked.unwrap_err().message().contains("when it was built"));
    drop(before);

    store.bytes_table("people").unwrap().add_index_with(&rule("by_age:json:/age"), on).unwrap();
    let infos = store.bytes_table("people").unwrap().indexes();
    assert_eq!(
        infos.iter().map(|index| index.rule.to_string()).collect::<Vec<_>>(),
        ["by_age:json:/age", "by_city:json:/city"]
    );
    let other = store
        .bytes_table("people")
        .and_then(|table| table.add_index_with(&rule("by_age:json:/city"), on))
        .unwrap_err();
    assert!(other.message().contains("drop that first"), "{other}");

    drop((people, store));
    let store = Store::open(&world.path, manual()).unwrap();
    let people: People = store.table("people", Rules::sorted::<String, Vec<u8>>()).unwrap();
    assert_eq!(people.find("by_age").unwrap().range(10..20).count().unwrap(), 10);
    people.put("p0010", &person("Oslo", 70_000)).unwrap();
    assert_eq!(
        (in_city(&people, "Oslo"), people.find("by_age").unwrap().range(10..20).count().unwrap()),
        (vec!["p0010".to_owned()], 9)
    );
    store.bytes_table("people").unwrap().drop_index("by_city").unwrap();
    assert_eq!(people.find("by_city").unwrap_err().kind(), ErrorKind::InvalidInput);
    people.put("p0011", &person("Oslo", 11)).unwrap();
    assert_eq!(store.bytes_table("people").unwrap().indexes().len(), 1);
    store.drop_table("people").unwrap();
    assert_eq!(store.tables(), [""; 0]);
    let again = people_with_index_anew(&store);
    assert_eq!(again.find("by_city").unwrap().count().unwrap(), 0);
}

fn people_with_index_anew(store: &Store) -> People {
    people(store)
}

#[test]
fn building_an_index_resumes_where_it_was_interrupted() {
    let (world, store) = fresh(manual());
    let people: People = store.table("people", Rules::sorted::<String, Vec<u8>>()).unwrap();
    for name in 0..9000u32 {
        people.put(&format!("p{name:04}"), &person(["Berlin", "Rome"][name as usize % 2], name)).unwrap();
    }
    store
        .bytes_table("people")
        .unwrap()
        .add_index_with(&rule("by_city:json:/city"), |_| ControlFlow::Break(()))
        .unwrap();
    assert!(!store.bytes_table("people").unwrap().indexes()[0].is_built);
    let refused = people.find("by_city").unwrap().term("Rome").keys().next().unwrap().unwrap_err();
    assert!(refused.message().contains("is being built"), "{refused}");
    // After its position, and before it.
    people.put("p0001", &person("Oslo", 1)).unwrap();
    people.put("p8999", &person("Oslo", 1)).unwrap();
    drop((people, store));

    let store = Store::open(&world.path, manual()).unwrap();
    let people: People = store.table("people", Rules::sorted::<String, Vec<u8>>()).unwrap();
    let mut last = None;
    store
        .bytes_table("people")
        .unwrap()
        .add_index_with(&rule("by_city:json:/city"), |at| {
            last = Some(at.keys_done);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(last < Some(9000), "what was done before the store was closed stays done: {last:?}");
    assert_eq!(in_city(&people, "Oslo"), ["p0001", "p8999"]);
    assert_eq!((in_city(&people, "Rome").len(), in_city(&people, "Berlin").len()), (4498, 4500));
}

#[test]
fn writes_go_on_while_an_index_is_built() {
    let (_world, store) = fresh(Options::default().memory_bytes(4 << 20));
    let people: People = store.table("people", Rules::sorted::<String, Vec<u8>>()).unwrap();
    let city = |n: u32| ["Berlin", "Rome", "Oslo"][n as usize % 3];
    for n in 0..20_000u32 {
        people.put(&format!("p{n:05}"), &person(city(n), n)).unwrap();
    }
    let is_done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for thread in 0..2u32 {
            let (people, store, is_done) = (&people, &store, &is_done);
            threads.spawn(move || {
                let mut n = thread;
                while !is_done.load(Ordering::Relaxed) {
                    n = (n.wrapping_mul(2_654_435_761).wrapping_add(thread)) % 25_000;
                    let mut batch = store.batch();
                    batch.put(people, &format!("p{n:05}"), &person(city(n + 1), n));
                    std::thread::yield_now();
                    batch.commit(Durability::Process).unwrap();
                }
            });
        }
        store.bytes_table("people").unwrap().add_index_with(&rule("by_city:json:/city"), on).unwrap();
        is_done.store(true, Ordering::Relaxed);
    });
    for town in ["Berlin", "Rome", "Oslo"] {
        let found: BTreeSet<String> = in_city(&people, town).into_iter().collect();
        let rows = people.scan().into_iter().map(Result::unwrap);
        let has = |value: &[u8]| std::str::from_utf8(value).unwrap().contains(town);
        let expected: BTreeSet<String> = rows.filter(|(_, value)| has(value)).map(|(key, _)| key).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn a_batch_that_was_filled_before_an_index_came_brings_its_entries() {
    let (_world, store) = fresh(manual());
    let people: People = store.table("people", Rules::sorted::<String, Vec<u8>>()).unwrap();
    let mut batch = store.batch();
    batch.put(&people, "ann", &person("Berlin", 1));
    store.bytes_table("people").unwrap().add_index_with(&rule("by_city:json:/city"), on).unwrap();
    batch.commit(Durability::Process).unwrap();
    assert_eq!(in_city(&people, "Berlin"), ["ann"]);
    batch.put(&people, "bob", &person("Berlin", 1));
    store.bytes_table("people").unwrap().drop_index("by_city").unwrap();
    batch.commit(Durability::Process).unwrap();
    assert!(people.get("bob").unwrap().is_some());
}

#[test]
fn an_index_is_written_by_its_table_alone_and_hashed_tables_have_none() {
    let (_world, store) = fresh(manual());
    let people = people(&store);
    people.put("ann", &person("Berlin", 1)).unwrap();
    let entries = store.bytes_table("people/by_city").unwrap();
    assert_eq!(entries.scan().count().unwrap(), 1);
    for refused in [
        entries.write(WriteOp::Put, b"k", b"").unwrap_err(),
        entries.write(WriteOp::Delete, b"k", b"").unwrap_err(),
        entries.delete_range(b"a", b"b").unwrap_err(),
        store.drop_table("people/by_city").unwrap_err(),
        store
            .bytes_table("people/by_city")
            .and_then(|table| table.add_index_with(&rule("x:value"), on))
            .unwrap_err(),
    ] {
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
        assert!(refused.message().contains("index"), "{refused}");
    }
    let hashed = Rules::hashed::<String, Vec<u8>>();
    assert!(store.table("h", hashed.clone().index("a", "value")).is_err());
    store.table("h", hashed).unwrap();
    assert!(
        store
            .bytes_table("h")
            .and_then(|table| table.add_index_with(&rule("a:value"), on))
            .unwrap_err()
            .message()
            .contains("hashed")
    );
    assert!(store.table("bad", Rules::sorted::<String, u64>().index("a b", "value")).is_err());
    let long = "k".repeat(65_000);
    assert!(people.put(&long, b"".as_slice()).unwrap_err().message().contains("too long"));
}

#[test]
fn an_index_that_no_build_could_finish_is_not_added() {
    let (_world, store) = fresh(manual());
    let table = store.table("t", Rules::sorted::<String, u64>()).unwrap();
    let bytes = store.bytes_table("t").unwrap();
    let add = |report: &mut dyn FnMut() -> ControlFlow<()>| {
        bytes.add_index_with(&rule("by_value:value"), |_| report())
    };
    table.put(&too_long(), &1).unwrap();
    let refused = add(&mut || on(())).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert!(refused.to_string().contains("the index is not added (delete that key"), "{refused}");
    assert!(bytes.indexes().is_empty() && store.bytes_table("t/by_value").is_err());
    table.put(&too_long(), &2).unwrap(); // as before

    // Broken off before that key, it is there; going on ends it.
    for key in 0..3000 {
        table.put(&format!("k{key:05}"), &key).unwrap();
    }
    add(&mut || ControlFlow::Break(())).unwrap();
    assert_eq!(bytes.indexes().len(), 1);
    assert!(add(&mut || on(())).is_err() && bytes.indexes().is_empty());

    table.delete(&too_long()).unwrap();
    add(&mut || on(())).unwrap();
    assert_eq!(
        table.find("by_value").unwrap().term(7).keys().map(Result::unwrap).collect::<Vec<_>>(),
        ["k00007"]
    );
}
