//! Secondary indexes as a user sees them: declared, added to a full table, queried, cleaned,
//! dropped.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{drain, manual};
use folddb::codec::tuple::Element;
use folddb::codec::{KeyCodec, ValueCodec};
use folddb::maintenance::{RepairOptions, VerifyOptions};
use folddb::table_rules::TableRules;
use folddb::time::moment;
use folddb::{
    AsOf, Durability, ErrorKind, HeadRule, IndexRule, Keep, Lifetime, Options, Rules, Snapshot, Store, Table,
    TermRule, WriteOp,
};

struct World {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

fn fresh(options: Options) -> (World, Store) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.folddb");
    let store = Store::create(&path, options).unwrap();
    (World { _dir: dir, path }, store)
}

fn on(_: impl Sized) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn rule(text: &str) -> IndexRule {
    text.parse::<IndexRule>().unwrap()
}

type People = Table<String, Vec<u8>>;

fn people(store: &Store) -> People {
    store.table("people", Rules::sorted::<String, Vec<u8>>().index("by_city", "json:/city")).unwrap()
}

fn person(city: &str, age: u32) -> Vec<u8> {
    format!(r#"{{"city":"{city}","age":{age},"tags":["t{}","t{}"]}}"#, age % 3, age % 5).into_bytes()
}

fn in_city(people: &People, city: &str) -> Vec<String> {
    people.find("by_city").unwrap().term(city).keys().map(Result::unwrap).collect()
}

fn in_city_at(people: &People, city: &str, at: &Snapshot) -> Vec<String> {
    at.table(people).find("by_city").unwrap().term(city).keys().map(Result::unwrap).collect()
}

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
fn compacting_leaves_no_stale_entry_and_gives_its_space_back() {
    let (_world, store) = fresh(manual().tuning(|t| t.part_bytes(64 << 10)));
    let people = people(&store);
    for round in 0..8u32 {
        for name in 0..1500 {
            people.put(&format!("p{name:04}"), &person(&format!("city{round}-{}", name % 7), round)).unwrap();
        }
        store.flush().unwrap();
    }
    drain(&store);
    let before = store.bytes_table("people/by_city").unwrap().stats().unwrap();
    assert!(before.records >= 8 * 1500, "every entry is still there: {}", before.records);
    store.bytes_table("people").unwrap().compact_with(on).unwrap();
    let after = store.bytes_table("people/by_city").unwrap().stats().unwrap();
    assert_eq!(after.records, 1500, "one entry for each record");
    assert!(after.disk_bytes < before.disk_bytes / 4, "{} of {}", after.disk_bytes, before.disk_bytes);
    assert_eq!(store.stats().background.index_entries_cleaned, 7 * 1500);
    let met = store.stats().reads.index_entries;
    assert_eq!(people.find("by_city").unwrap().count().unwrap(), 1500);
    assert_eq!((store.stats().reads.index_entries - met, store.stats().reads.index_entries_stale), (1500, 0));
}

#[test]
fn a_snapshot_keeps_the_entries_that_it_needs_from_being_cleaned() {
    let (_world, store) = fresh(manual());
    let people = people(&store);
    for name in 0..50 {
        people.put(&format!("p{name}"), &person("Berlin", 1)).unwrap();
    }
    let past = store.snapshot();
    for name in 0..50 {
        people.put(&format!("p{name}"), &person("Rome", 1)).unwrap();
    }
    store.bytes_table("people").unwrap().compact_with(on).unwrap();
    assert_eq!((in_city_at(&people, "Berlin", &past).len(), in_city(&people, "Berlin").len()), (50, 0));
    drop(past);
    store.bytes_table("people").unwrap().compact_with(on).unwrap();
    assert_eq!(store.bytes_table("people/by_city").unwrap().stats().unwrap().records, 50);
    assert_eq!(in_city(&people, "Rome").len(), 50);
}

#[test]
fn background_work_cleans_an_index_of_which_finds_have_met_too_much_that_is_stale() {
    let (_world, store) = fresh(manual());
    let people = people(&store);
    for city in ["Berlin", "Rome"] {
        for name in 0..900 {
            people.put(&format!("p{name:03}"), &person(city, 1)).unwrap();
        }
    }
    store.flush().unwrap();
    drain(&store);
    assert_eq!(store.bytes_table("people/by_city").unwrap().stats().unwrap().records, 1800);
    assert_eq!(people.find("by_city").unwrap().count().unwrap(), 900);
    drain(&store);
    assert_eq!(store.bytes_table("people/by_city").unwrap().stats().unwrap().records, 900);
    assert_eq!(people.find("by_city").unwrap().count().unwrap(), 900);
}

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
fn an_index_that_folding_would_deceive_is_refused_with_a_counter_example() {
    let (_world, store) = fresh(manual());
    let sums = Rules::sorted::<String, u64>().fold("sum:u64");
    let refused = store.table("sums", sums.clone().index("by_sum", "value")).unwrap_err();
    assert!(refused.message().contains("1 and 1 have 2 together"), "{refused}");
    for (name, fold, field) in
        [("v", "stats:f64", "sum"), ("c", "stats:f64", "count"), ("q", "quantiles", "count")]
    {
        let rules = Rules::sorted::<String, Vec<u8>>().fold(fold).index("by_part", &format!("field:{field}"));
        let refused = store.table(name, rules).unwrap_err();
        assert!(refused.message().contains("folding makes a term"), "{refused}");
    }
    let table = store.table("sums", sums).unwrap();
    table.fold("a", &7).unwrap();
    assert!(
        store.bytes_table("sums").and_then(|table| table.add_index_with(&rule("by_sum:value"), on)).is_err()
    );
    let peaks = Rules::sorted::<String, u64>().fold("max:u64").index("by_peak", "value");
    let peaks = store.table("peaks", peaks).unwrap();
    for (key, value) in [("a", 5), ("b", 9), ("a", 12), ("b", 2)] {
        peaks.fold(key, &value).unwrap();
    }
    let top: Vec<_> = peaks.find("by_peak").unwrap().reverse().keys().map(Result::unwrap).collect();
    assert_eq!(top, ["a", "b"]);
    assert_eq!(peaks.find("by_peak").unwrap().term(5).count().unwrap(), 0);
}

#[test]
fn sets_are_found_by_their_members_and_documents_by_what_is_merged_into_them() {
    let (_world, store) = fresh(manual());
    let words = store
        .create_bytes_table("words", folddb::table_rules::TableRules::postings().index(rule("by_doc:value")))
        .unwrap();
    let write = |word: &str, doc: &str| {
        let mut operand = Vec::new();
        words.rules().read_value(&folddb::Datum::Text(doc.to_owned()), &mut operand).unwrap();
        words.write(WriteOp::Fold, word.as_bytes(), &operand).unwrap();
    };
    for (word, doc) in [("apple", "d1"), ("pear", "d1"), ("apple", "d2")] {
        write(word, doc);
    }
    store.flush().unwrap();
    let of = |doc: &str| -> Vec<_> {
        words.find("by_doc").unwrap().term(doc).keys().map(Result::unwrap).collect()
    };
    assert_eq!(of("d1"), [b"apple".to_vec(), b"pear".to_vec()]);
    assert_eq!(of("d2"), [b"apple".to_vec()]);

    let docs = Rules::sorted::<String, Vec<u8>>().fold("json-merge").index("by_city", "json:/home/city");
    let docs: People = store.table("docs", docs).unwrap();
    docs.fold("ann", br#"{"home":{"city":"Berlin"}}"#.as_slice()).unwrap();
    docs.fold("ann", br#"{"name":"Ann"}"#.as_slice()).unwrap();
    assert_eq!(in_city(&docs, "Berlin"), ["ann"]);
    docs.fold("ann", br#"{"home":{"$set":{"city":"Rome"}}}"#.as_slice()).unwrap();
    assert_eq!((in_city(&docs, "Berlin").len(), in_city(&docs, "Rome").len()), (0, 1));
    docs.fold("ann", br#"{"home":null}"#.as_slice()).unwrap();
    assert_eq!(in_city(&docs, "Rome").len(), 0);
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

/// A key of `z`s that tables take and indexes do not.
fn too_long() -> String {
    "z".repeat(65_000)
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

#[test]
fn a_repair_leaves_out_an_index_that_no_build_could_finish() {
    let (world, store) = fresh(manual());
    let table = store.table("t", Rules::sorted::<String, u64>()).unwrap();
    for key in 0..3000 {
        table.put(&format!("k{key:05}"), &key).unwrap();
    }
    table.put(&too_long(), &1).unwrap();
    let bytes = store.bytes_table("t").unwrap();
    bytes.add_index_with(&rule("by_value:value"), |_| ControlFlow::Break(())).unwrap();
    assert_eq!(bytes.indexes().len(), 1);
    drop((table, bytes, store));
    let to = world.path.with_extension("new");
    let report = Store::repair(&world.path, &to, &RepairOptions::default(), &manual()).unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert!(
        report.findings.iter().any(|one| one.to_string().contains("the index is left out")),
        "{report:?}"
    );
    let store = Store::open(&to, manual()).unwrap();
    let bytes = store.bytes_table("t").unwrap();
    assert!(bytes.indexes().is_empty());
    assert_eq!(bytes.scan().count().unwrap(), 3001);
}

#[test]
fn a_table_whose_terms_are_taken_by_a_function_is_written_only_where_that_is_at_hand() {
    let with = |version| {
        manual().custom_terms("initial", version, |key, _value, terms| {
            key.first().iter().for_each(|first| terms.push(&Element::from(&[**first][..])));
        })
    };
    let (world, store) = fresh(with(1));
    let rules = || Rules::sorted::<String, u64>().index("initial", "custom:initial@1");
    let table = store.table("t", rules()).unwrap();
    table.put("ann", &1).unwrap();
    table.put("bob", &1).unwrap();
    let of =
        |table: &Table<String, u64>, initial: &[u8]| table.find("initial").unwrap().term(initial).count();
    assert_eq!(of(&table, b"a").unwrap(), 1);
    drop((table, store));
    for options in [manual(), with(2)] {
        let store = Store::open(&world.path, options).unwrap();
        let table = store.table("t", rules()).unwrap();
        assert_eq!(table.get("ann").unwrap(), Some(1));
        for refused in [table.put("cid", &1).unwrap_err(), of(&table, b"a").unwrap_err()] {
            assert_eq!(refused.kind(), ErrorKind::RulesMismatch);
            assert!(refused.message().contains("custom `initial` version 1"), "{refused}");
        }
    }
    let store = Store::open(&world.path, with(1)).unwrap();
    let table = store.table("t", rules()).unwrap();
    table.put("abe", &1).unwrap();
    assert_eq!(of(&table, b"a").unwrap(), 2);
    let other = store.table("t", Rules::sorted::<String, u64>().index("other", "value")).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::RulesMismatch);
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
fn verify_compares_indexes_with_their_tables_and_repair_and_load_rebuild_them() {
    let (world, store) = fresh(manual());
    let table = people(&store);
    for n in 0..300u32 {
        table.put(&format!("p{n:03}"), &person(["Berlin", "Rome"][n as usize % 2], n)).unwrap();
    }
    store.flush().unwrap();
    for n in 0..50u32 {
        table.put(&format!("p{n:03}"), &person("Oslo", n)).unwrap();
    }
    let check = store.check_index("people", "by_city").unwrap();
    assert_eq!((check.keys, check.entries, check.missing, check.stale), (300, 350, 0, 50));
    let mut text = Vec::new();
    store.dump(&[], &mut text).unwrap();
    drop((table, store));

    let report = Store::verify(&world.path, &VerifyOptions::default().deep(true), &manual()).unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    let mended = world.path.with_extension("mended");
    let how = folddb::maintenance::RepairOptions::default();
    let report = Store::repair(&world.path, &mended, &how, &manual()).unwrap();
    assert!(report.verified.is_clean(), "{:?}", report.verified.findings);
    let loaded = Store::create(world.path.with_extension("loaded"), manual()).unwrap();
    loaded.load(&mut text.as_slice(), &folddb::maintenance::LoadOptions::default()).unwrap();
    for store in [Store::open(&mended, manual()).unwrap(), loaded] {
        let table = people(&store);
        let found = ["Berlin", "Rome", "Oslo", "Paris"].map(|city| in_city(&table, city).len());
        assert_eq!(found, [125, 125, 50, 0]);
        let check = store.check_index("people", "by_city").unwrap();
        assert_eq!((check.keys, check.missing, check.stale), (300, 0, 0));
    }
}

#[test]
fn an_index_whose_rule_can_never_give_a_term_is_refused() {
    let (_world, store) = fresh(manual());
    let rules = || Rules::sorted::<String, Vec<u8>>();
    for (rules, expected) in [
        (
            rules().index("x", "head"),
            "index `x` of table `t`: `head` never gives a term: the table has no heads",
        ),
        (rules().index("x", "key:7"), "no element 7 in keys that are utf8: they have key:0"),
        (
            rules().fold("{n: max:u64}").index("x", "field:nosuch"),
            "no field `nosuch`; fields with terms are n",
        ),
    ] {
        let error = store.table("t", rules).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.message().contains(expected), "{error}");
    }
    store.table("t", rules()).unwrap().put("k", b"v".as_slice()).unwrap();
    let error =
        store.bytes_table("t").and_then(|table| table.add_index_with(&rule("x:field:a"), on)).unwrap_err();
    assert!(error.message().contains("values are bytes, which have no fields"), "{error}");
    assert_eq!(store.bytes_table("t").unwrap().indexes(), []);
}

#[test]
fn numbers_are_found_by_what_they_are_and_what_an_index_cannot_have_is_refused() {
    let (_world, store) = fresh(manual());
    let rules = || Rules::sorted::<String, f64>().fold("max:f64").index("by_peak", "value");
    let peaks = store.table("peaks", rules()).unwrap();
    for (key, peak) in [("a", 3.0), ("b", 4.5), ("c", -0.0), ("d", f64::NAN)] {
        peaks.fold(key, &peak).unwrap();
    }
    let find = || peaks.find("by_peak").unwrap();
    let typed = |term: &str| {
        let term = term.to_owned();
        peaks.as_bytes().find("by_peak").unwrap().typed(term.clone()..=term).count().unwrap()
    };
    assert_eq!([typed("3"), typed("3.0"), typed("0"), typed("nan"), typed("5")], [1, 1, 1, 1, 0]);
    assert_eq!(find().term(3).count().unwrap(), 1);
    assert_eq!(find().range(..=3).count().unwrap(), 2);
    for refused in [find().term("abc").count(), find().range("abc"..).count(), find().prefix("a").count()] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let said = error.message();
        assert!(said.starts_with("index `by_peak` of table `peaks` has numbers, and \"a"), "{said}");
    }
    assert!(peaks.as_bytes().find("by_peak").unwrap().term("abc").split(4).is_err());
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

/// Fields of JSON that folds are whole numbers and others, which are in the index one after the
/// other.
#[test]
fn a_find_over_numbers_of_several_types_is_cut_and_turned_as_any() {
    let (_world, store) = fresh(manual());
    let rules = Rules::sorted::<String, Vec<u8>>().fold("json-merge").index("by_age", "field:age");
    let docs: People = store.table("docs", rules).unwrap();
    for age in 0..40u32 {
        let point = if age % 2 == 0 { "" } else { ".0" };
        docs.fold(&format!("p{age:02}"), format!("{{\"age\":{age}{point}}}").as_bytes()).unwrap();
    }
    docs.fold("half", br#"{"age":7.5}"#.as_slice()).unwrap();
    store.flush().unwrap();
    let find = || docs.find("by_age").unwrap();
    assert_eq!(find().term(7).keys().map(Result::unwrap).collect::<Vec<_>>(), ["p07"]);
    assert_eq!(find().term(8.0).keys().map(Result::unwrap).collect::<Vec<_>>(), ["p08"]);
    let ages: Vec<String> = find().range(5..9).keys().map(Result::unwrap).collect();
    assert_eq!(ages, ["p06", "p08", "p05", "p07", "half"]);
    let turned: Vec<String> = find().range(5..=8).reverse().keys().map(Result::unwrap).collect();
    assert_eq!(turned, ages.into_iter().rev().collect::<Vec<_>>());
    for threads in [1, 2, 5] {
        let count = find().range(5.5..).fold_keys(
            threads,
            || 0,
            |sum, _| {
                *sum += 1;
                ControlFlow::Continue(())
            },
            |a, b| a + b,
        );
        assert_eq!(count.unwrap(), 35, "on {threads} threads");
    }
}

/// An index that was made before its rule was found to be wrong: the entries that it lacks are no
/// damage, and no repair adds them.
#[test]
fn verify_distinguishes_a_rule_that_breaks_the_law_from_damage() {
    let sums = |store: &Store| {
        store.table("sums", Rules::sorted::<String, u64>().fold("sum:u64").index("by_sum", "custom:sum@1"))
    };
    let (world, store) = fresh(manual().custom_terms("sum", 1, |_, _, _| {}));
    let table = sums(&store).unwrap();
    for number in 1..=2 {
        table.fold("k", &number).unwrap();
    }
    drop((table, store));
    let options = manual().custom_terms("sum", 1, |_, value, terms| terms.push(&Element::from(value)));
    let report = Store::verify(&world.path, &VerifyOptions::default().deep(true), &options).unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    let [finding] = &report.findings[..] else { panic!("{:?}", report.findings) };
    assert!(
        finding.what.contains("3 and 3 have") && finding.what.ends_with("drop the index"),
        "{}",
        finding.what
    );
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

/// As written by a version that accepted indexes of parts of statistics.
const DUMPED_BEFORE: &str = r#"{"folddb":"dump","version":1}
{"table":"ok","rules":["rules 1","block_bytes=8192","compression=none","delete=never","filter_bits=10","fold=replace","index=by:json:/a","key=utf8","kind=sorted","order=bytewise","short_circuit=never","value=json"]}
{"key":"x","value":{"a":1}}
{"table":"st","rules":["rules 1","block_bytes=8192","compression=none","delete=never","filter_bits=10","fold=stats:f64","index=c:field:count%0av:field:sum","key=utf8","kind=sorted","order=bytewise","short_circuit=never","value=bytes"]}
{"key":"k","value_hex":"0x1222023ff04040084014","shown":{"count":2,"sum":3.0,"min":1.0,"max":2.0,"mean":1.5,"variance":0.25}}
{"end":"dump","tables":2,"records":2,"hash":"89087ddc3d7bda3b"}
"#;

#[test]
fn a_dump_with_indexes_that_are_refused_today_is_loaded_without_these() {
    let (_world, store) = fresh(manual());
    let loaded =
        store.load(&mut DUMPED_BEFORE.as_bytes(), &folddb::maintenance::LoadOptions::default()).unwrap();
    assert_eq!((loaded.records, loaded.whole, loaded.created.len()), (2, true, 2));
    let left: Vec<&str> = loaded.indexes_left.iter().map(|(index, _)| index.as_str()).collect();
    assert_eq!(left, ["st/c", "st/v"]);
    assert!(loaded.indexes_left[0].1.contains("index `c` of table `st`"), "{:?}", loaded.indexes_left);
    assert_eq!(
        (store.bytes_table("ok").unwrap().indexes().len(), store.bytes_table("st").unwrap().indexes().len()),
        (1, 0)
    );
    assert_eq!(store.bytes_table("ok").unwrap().find("by").unwrap().term(1).count().unwrap(), 1);
    assert!(store.bytes_table("st").unwrap().get(b"k").unwrap().is_some());
}

/// By `json:` they are doubles; a field distinguishes numbers of 64 bits. Either way the hits
/// include what is asked for, and `find` with one end of a range includes the keys that have the
/// same double.
#[test]
fn numbers_beyond_a_double_are_found_together_and_none_is_missed() {
    let (_world, store) = fresh(manual());
    let rules = TableRules::new(KeyCodec::Utf8).value(ValueCodec::Json);
    let rules = rules.index(rule("exact:field:n")).index(rule("double:json:/n"));
    let table = store.create_bytes_table("t", rules).unwrap();
    const NUMBERS: [&str; 8] = [
        "9007199254740992",
        "9007199254740993",
        "-9223372036854775809",
        "18446744073709551615",
        "18446744073709551616",
        "18446744073709551617",
        "1180591620717411303425",
        "170141183460469231731687303715884105729",
    ];
    for number in NUMBERS {
        table.write(WriteOp::Put, number.as_bytes(), format!("{{\"n\":{number}}}").as_bytes()).unwrap();
    }
    let found = |index: &str, low: &str, high: &str| -> BTreeSet<String> {
        let range = table.find(index).unwrap().typed(low.to_owned()..=high.to_owned());
        range.keys().map(|key| String::from_utf8(key.unwrap()).unwrap()).collect()
    };
    let is_of_64_bits = |number: &str| number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok();
    let as_double = |number: &str| number.parse::<f64>().unwrap();
    for asked in NUMBERS {
        let alike: BTreeSet<String> = NUMBERS
            .iter()
            .filter(|number| as_double(number) == as_double(asked))
            .map(|number| (*number).to_owned())
            .collect();
        assert_eq!(found("double", asked, asked), alike, "{asked}");
        let exact = match is_of_64_bits(asked) {
            true => BTreeSet::from([asked.to_owned()]),
            false => alike.into_iter().filter(|number| !is_of_64_bits(number)).collect(),
        };
        assert_eq!(found("exact", asked, asked), exact, "{asked}");
        for index in ["double", "exact"] {
            assert!(found(index, asked, "1e300").contains(asked), "{index} from {asked}");
            assert!(found(index, "-1e300", asked).contains(asked), "{index} to {asked}");
        }
    }
}

/// The rules of a table are kept as text: a name that could not be read back would close the table.
#[test]
fn an_index_whose_text_cannot_be_read_back_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("s.folddb"), Options::default()).unwrap();
    let rules = || TableRules::new(KeyCodec::Utf8).value(ValueCodec::Json);
    let table = store.create_bytes_table("people", rules()).unwrap();
    let pointer = || TermRule::Json("/a\nb".to_owned());
    for rule in [
        IndexRule::new("a:b", TermRule::Value),
        IndexRule::new("a b", TermRule::Value),
        IndexRule::new("", TermRule::Value),
        IndexRule::new("by_line", pointer()),
    ] {
        let refused = table.add_index(&rule).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{rule}: {refused}");
        let refused = store.create_bytes_table("others", rules().index(rule.clone())).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{rule}: {refused}");
    }
}
