//! Indexes in `verify`, `repair`, dumps and loads.

use std::ops::ControlFlow;

use folddb::codec::tuple::Element;
use folddb::maintenance::{RepairOptions, VerifyOptions};
use folddb::{Rules, Store};

use crate::common::manual;
use crate::people::{fresh, in_city, people, person, rule, too_long};

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
