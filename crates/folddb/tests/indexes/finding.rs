//! Records are found by their terms: wherever they are, as of any moment, and by any number of
//! threads.

use std::ops::ControlFlow;

use folddb::codec::tuple::Element;
use folddb::time::moment;
use folddb::{AsOf, ErrorKind, HeadRule, Keep, Lifetime, Rules, Snapshot, Store};

use crate::common::{drain, manual};
use crate::people::{People, fresh, in_city, in_city_at, on, people, person, rule};

#[test]
fn records_are_found_by_their_terms_wherever_they_lie() {
    let (_world, store) = fresh(manual());
    let people = people(&store);
    for (name, city) in [("ann", "Berlin"), ("bob", "Rome"), ("cid", "Berlin")] {
        people.put(name, &person(city, 30)).unwrap();
    }
    let check = || {
        assert_eq!(in_city(&people, "Berlin"), ["ann", "cid"]);
        assert_eq!(in_city(&people, "Rome"), ["bob"]);
        assert_eq!(in_city(&people, "Paris"), [""; 0]);
        let all: Vec<_> = people.find("by_city").unwrap().keys().map(Result::unwrap).collect();
        assert_eq!(all, ["ann", "cid", "bob"], "in the order of terms, then of keys");
    };
    check();
    store.flush().unwrap();
    check();
    store.bytes_table("people").unwrap().compact_with(on).unwrap();
    check();
    assert_eq!(store.tables(), ["people"], "an index is no table of its own");
}

#[test]
fn what_was_overwritten_deleted_or_never_took_place_is_not_found() {
    let (_world, store) = fresh(manual());
    let people = people(&store);
    people.put("ann", &person("Berlin", 1)).unwrap();
    people.put("bob", &person("Berlin", 1)).unwrap();
    people.put("cid", &person("Berlin", 1)).unwrap();
    people.put_if_absent("cid", &person("Rome", 1)).unwrap();
    people.put("ann", &person("Rome", 2)).unwrap();
    people.delete("bob").unwrap();
    assert_eq!(in_city(&people, "Berlin"), ["cid"]);
    assert_eq!(in_city(&people, "Rome"), ["ann"]);
    people.put("bob", &person("Berlin", 3)).unwrap();
    people.put("dan", b"no JSON".as_slice()).unwrap();
    people.delete_range("a", "b").unwrap();
    assert_eq!(in_city(&people, "Berlin"), ["bob", "cid"]);
    assert_eq!(in_city(&people, "Rome"), [""; 0]);
    let stats = store.stats();
    assert!(
        stats.reads.index_entries > stats.reads.index_entries_stale && stats.reads.index_entries_stale > 0
    );
}

#[test]
fn a_record_may_have_several_terms_and_ranges_run_both_ways() {
    let (_world, store) = fresh(manual());
    let rules = Rules::sorted::<String, Vec<u8>>().index("by_age", "json:/age").index("by_tag", "json:/tags");
    let people: People = store.table("people", rules).unwrap();
    for age in 0..30u32 {
        people.put(&format!("p{age:02}"), &person("x", age)).unwrap();
    }
    let by_age = || people.find("by_age").unwrap();
    let keys =
        |find: folddb::Find<String, Vec<u8>>| -> Vec<String> { find.keys().map(Result::unwrap).collect() };
    assert_eq!(keys(by_age().range(3..6)), ["p03", "p04", "p05"]);
    assert_eq!(keys(by_age().range(3..=6).reverse()), ["p06", "p05", "p04", "p03"]);
    assert_eq!(keys(by_age().range(28..)), ["p28", "p29"]);
    assert_eq!(keys(by_age().range(..2)), ["p00", "p01"]);
    assert_eq!(keys(by_age().range(27.5..).limit(2)), ["p28", "p29"]);
    assert_eq!(by_age().count().unwrap(), 30);
    let expected: Vec<String> =
        (0..30u32).filter(|age| age % 3 == 1 || age % 5 == 1).map(|age| format!("p{age:02}")).collect();
    assert_eq!(keys(people.find("by_tag").unwrap().term("t1")), expected);
    assert_eq!(keys(people.find("by_tag").unwrap().prefix("t4")), ["p04", "p09", "p14", "p19", "p24", "p29"]);
    let row = people.find("by_tag").unwrap().term("t4").limit(1).values().next().unwrap().unwrap();
    assert_eq!(row, ("p04".to_owned(), person("x", 4)));
    let head = people.find("by_tag").unwrap().term("t4").limit(1).heads().next().unwrap().unwrap();
    assert_eq!(head.1.size_bytes, person("x", 4).len() as u64);
}

#[test]
fn a_snapshot_finds_what_was() {
    let (_world, store) = fresh(manual());
    let people = people(&store);
    let mut snapshots = Vec::new();
    for round in 0..6 {
        for name in 0..20 {
            let city = ["Berlin", "Rome", "Oslo"][(name + round) % 3];
            people.put(&format!("p{name:02}"), &person(city, round as u32)).unwrap();
        }
        let expected: Vec<Vec<String>> = ["Berlin", "Rome", "Oslo"].map(|city| in_city(&people, city)).into();
        assert_eq!(expected.iter().map(Vec::len).sum::<usize>(), 20);
        snapshots.push((store.snapshot(), expected));
        store.flush().unwrap();
        drain(&store);
    }
    let check = |snapshots: &[(Snapshot, Vec<Vec<String>>)]| {
        for (at, expected) in snapshots {
            let found: Vec<_> = ["Berlin", "Rome", "Oslo"].map(|city| in_city_at(&people, city, at)).into();
            assert_eq!(&found, expected);
        }
    };
    check(&snapshots);
    store.bytes_table("people").unwrap().compact_with(on).unwrap();
    check(&snapshots);
    snapshots.drain(..3);
    store.bytes_table("people").unwrap().compact_with(on).unwrap();
    check(&snapshots);
}

#[test]
fn where_heads_tell_the_terms_no_value_is_read() {
    let (_world, store) = fresh(manual());
    let rules = Rules::sorted::<String, Vec<u8>>()
        .separate(256)
        .head(HeadRule::Json("/meta".into()))
        .index("by_kind", "head:/kind")
        .index("by_body", "json:/body")
        .index("by_key", "key:0");
    let table: People = store.table("objects", rules).unwrap();
    for n in 0..60 {
        let value =
            format!(r#"{{"meta":{{"kind":"k{}"}},"body":{},"pad":"{}"}}"#, n % 4, n % 5, "x".repeat(1000));
        table.put(&format!("o{n:02}"), value.as_bytes()).unwrap();
    }
    store.flush().unwrap();
    let reads = || store.stats().reads.values;
    let before = reads();
    assert_eq!(table.find("by_kind").unwrap().term("k1").count().unwrap(), 15);
    assert_eq!(table.find("by_key").unwrap().prefix("o1").count().unwrap(), 10);
    assert_eq!(table.find("by_kind").unwrap().term("k1").heads().count(), 15);
    assert_eq!(reads(), before);
    assert_eq!(table.find("by_body").unwrap().term(3).count().unwrap(), 12);
    assert_eq!(reads(), before + 12);
    assert_eq!(table.find("by_kind").unwrap().term("k1").values().map(Result::unwrap).count(), 15);
    store.bytes_table("objects").unwrap().add_index_with(&rule("again:head:/kind"), on).unwrap();
    assert_eq!(table.find("again").unwrap().term("k1").count().unwrap(), 15);
}

#[test]
fn streamed_values_are_found_and_those_too_long_to_be_examined_are_not() {
    let (_world, store) = fresh(manual().tuning(|t| t.stream_piece_bytes(4 << 10)));
    let rules = Rules::sorted::<String, Vec<u8>>().separate(2048).index("by_city", "json:/city");
    let table: People = store.table("people", rules).unwrap();
    let long = format!(r#"{{"city":"Berlin","pad":"{}"}}"#, "y".repeat(50_000));
    table.put_from("streamed", &mut long.as_bytes()).unwrap();
    table.put("whole", long.as_bytes()).unwrap();
    let longest = format!(r#"{{"city":"Berlin","pad":"{}"}}"#, "y".repeat(17 << 20));
    table.put_from("longest", &mut longest.as_bytes()).unwrap();
    assert_eq!(in_city(&table, "Berlin"), ["streamed", "whole"]);
    store.bytes_table("people").unwrap().add_index_with(&rule("again:json:/city"), on).unwrap();
    let again: Vec<_> = table.find("again").unwrap().keys().map(Result::unwrap).collect();
    assert_eq!(again, ["streamed", "whole"]);
}

#[test]
fn expired_values_are_not_found_and_the_past_is_found_where_it_is_kept() {
    let (_world, store) = fresh(manual());
    let rules =
        Rules::sorted::<String, Vec<u8>>().expire(folddb::Expire::ByWrite).index("by_city", "json:/city");
    let table: People = store.table("brief", rules).unwrap();
    table.put("stays", &person("Berlin", 1)).unwrap();
    table.with_lifetime(Lifetime::Until(moment(1))).put("goes", &person("Berlin", 1)).unwrap();
    assert_eq!(in_city(&table, "Berlin"), ["stays"]);
    store.bytes_table("brief").unwrap().compact_with(on).unwrap();
    assert_eq!(in_city(&table, "Berlin"), ["stays"]);
    assert_eq!(store.bytes_table("brief/by_city").unwrap().stats().unwrap().records, 1);

    let rules = Rules::sorted::<String, Vec<u8>>().keep(Keep::Forever).index("by_city", "json:/city");
    let kept: People = store.table("kept", rules).unwrap();
    let first = kept.put("ann", &person("Berlin", 1)).unwrap();
    let second = kept.put("ann", &person("Rome", 1)).unwrap();
    kept.put("ann", &person("Berlin", 1)).unwrap();
    let fourth = kept.delete("ann").unwrap();
    store.bytes_table("kept").unwrap().compact_with(on).unwrap();
    let at = |seq, city: &str| in_city_at(&kept, city, &store.snapshot_at(AsOf::Seq(seq)).unwrap()).len();
    assert_eq!((at(first, "Berlin"), at(first, "Rome")), (1, 0));
    assert_eq!((at(second, "Berlin"), at(second, "Rome")), (0, 1));
    assert_eq!((at(fourth, "Berlin"), at(fourth, "Rome")), (0, 0));
}

#[test]
fn a_store_opened_for_reading_finds_and_closed_ones_open_with_their_indexes() {
    let (world, store) = fresh(manual());
    let table = people(&store);
    table.put("ann", &person("Berlin", 1)).unwrap();
    store.close().unwrap();
    let store = Store::open_read_only(&world.path, manual()).unwrap();
    let table: People = store.table("people", Rules::sorted::<String, Vec<u8>>()).unwrap();
    assert_eq!(in_city(&table, "Berlin"), ["ann"]);
    assert_eq!(
        store.bytes_table("people").and_then(|table| table.drop_index("by_city")).unwrap_err().kind(),
        ErrorKind::ReadOnly
    );
}

#[test]
fn hits_say_by_which_term_they_were_found() {
    let (_world, store) = fresh(manual());
    let rules = Rules::sorted::<String, Vec<u8>>().index("by_tag", "json:/tags").index("by_age", "json:/age");
    let people: People = store.table("people", rules).unwrap();
    people.put("ann", &person("Rome", 8)).unwrap();
    let terms: Vec<_> = people.find("by_tag").unwrap().terms().map(Result::unwrap).collect();
    assert_eq!(terms, [(Element::from("t2"), "ann".to_owned()), (Element::from("t3"), "ann".to_owned())]);
    let hits: Vec<_> = people.find("by_age").unwrap().hits().map(Result::unwrap).collect();
    assert_eq!(hits, [(Element::from(8.0), "ann".to_owned(), person("Rome", 8))]);
}

/// A fold over the hits of an index has the same result on any number of threads, in the order of
/// the terms; by range, and of keys, values and heads.
#[test]
fn a_fold_over_an_index_is_the_same_on_any_number_of_threads() {
    let (_world, store) = fresh(manual().tuning(|t| t.part_bytes(64 << 10)));
    let rules = Rules::sorted::<String, Vec<u8>>().index("by_age", "json:/age").separate(2048);
    let people: People = store.table("people", rules).unwrap();
    for name in 0..6000u32 {
        people.put(&format!("p{name:04}"), &person("Rome", name % 90)).unwrap();
    }
    for name in (0..6000u32).step_by(3) {
        people.put(&format!("p{name:04}"), &person("Rome", 100)).unwrap(); // this leaves stale entries
    }
    store.flush().unwrap();
    drain(&store);
    let past = store.snapshot();
    people.put("p0001", &person("Rome", 10)).unwrap();
    let find = || past.table(&people).find("by_age").unwrap().range(20..50);
    let keys: Vec<String> = find().keys().map(Result::unwrap).collect();
    let is_found = |name: &u32| !name.is_multiple_of(3) && (20..50).contains(&(name % 90));
    assert_eq!(keys.len(), (0..6000).filter(is_found).count());
    let bytes: usize = find().values().map(|row| row.unwrap().1.len()).sum();
    let join = |mut a: Vec<String>, b: Vec<String>| {
        a.extend(b);
        a
    };
    let go = ControlFlow::Continue(());
    for threads in [0, 1, 3] {
        let gathered = find().fold_keys(
            threads,
            Vec::new,
            |keys, key| {
                keys.push(key);
                go
            },
            join,
        );
        assert_eq!(gathered.unwrap(), keys, "{threads} threads");
        let sum = |sum: &mut usize, more: usize| {
            *sum += more;
            go
        };
        let add = |a, b| a + b;
        let of_values = find().fold_values(threads, || 0, |to, _, value| sum(to, value.len()), add);
        assert_eq!(of_values.unwrap(), bytes);
        let of_heads = past.table(people.as_bytes()).find("by_age").unwrap().range(20..50).fold_heads(
            threads,
            || 0,
            |to, hit| sum(to, hit.head.map_or(0, |head| head.size_bytes as usize)),
            add,
        );
        assert_eq!(of_heads.unwrap(), bytes);
    }
    assert!(
        people.as_bytes().find("by_age").unwrap().split(4).unwrap().len() > 1,
        "there is something to cut"
    );
    let seen = find().fold_keys(
        1,
        || 0,
        |count, _| {
            *count += 1;
            if *count == 10 { ControlFlow::Break(()) } else { go }
        },
        |a, b| a + b,
    );
    assert_eq!(seen.unwrap(), 10, "a step that breaks ends the work");
    let limited = find().limit(3).fold_keys(1, || (), |(), _| go, |(), ()| ());
    assert_eq!(limited.unwrap_err().kind(), ErrorKind::InvalidInput);
}
