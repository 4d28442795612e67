//! Stale entries are removed.

use crate::common::{drain, manual};
use crate::people::{fresh, in_city, in_city_at, on, people, person};

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
