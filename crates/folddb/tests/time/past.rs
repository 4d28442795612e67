//! The past that tables keep.

use std::time::Duration;

use folddb::time::{moment, unix_ms};
use folddb::{AsOf, ErrorKind, Expire, Keep, Lifetime, Rules, Store, Table};

use folddb_host::clock::Clock;

use crate::common::compact;
use crate::indexes::{HOUR_MS, add_index, found, sessions};
use crate::moved::START_MS;
use crate::world::{World, after, before, counts, shakes, values};

#[test]
fn counters_travel_in_time_forever() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Forever, Expire::Never);
    let mut seqs = Vec::new();
    for round in 1..=30u64 {
        for key in 0..20 {
            table.fold(&key, &round).unwrap();
        }
        seqs.push((store.last_seq(), world.clock.unix_millis()));
        if round % 7 == 0 {
            store.flush().unwrap();
        }
        world.pass(1500);
    }
    drop(table);
    let mut store = store;
    for (how, shake) in shakes() {
        store = shake(&world, store);
        let table = counts(&store, Keep::Forever, Expire::Never);
        for (round, (seq, time_ms)) in seqs.iter().enumerate() {
            let total = (1..=round as u64 + 1).sum::<u64>();
            let sum = Some(total);
            assert_eq!(table.get_at(&7, AsOf::Seq(*seq)).unwrap(), sum, "{how}: after seq {seq}");
            assert_eq!(table.get_at(&7, AsOf::Time(moment(*time_ms))).unwrap(), sum, "{how}: at {time_ms}");
            let past = store.snapshot_at(AsOf::Seq(*seq)).unwrap();
            assert_eq!(past.get(&table, &3).unwrap(), sum);
            let rows: Vec<_> = past.scan(&table).into_iter().map(|row| row.unwrap().1).collect();
            assert_eq!(rows, vec![total; 20], "{how}");
        }
        assert_eq!(table.get_at(&7, AsOf::Time(moment(START_MS - 1))).unwrap(), None);
        let history = table.history(&7, 3).unwrap();
        assert_eq!(values(&history), [Some(465), Some(435), Some(406)]);
        assert_eq!(history[0].written.map(unix_ms), Some(seqs[29].1));
        assert_eq!(table.history(&7, usize::MAX).unwrap().len(), 30);
        drop(table);
    }
}

#[test]
fn the_newest_versions_of_a_key_are_kept_and_no_more() {
    let world = World::new();
    let mut store = world.create();
    let rules = || Rules::sorted::<String, String>().keep(Keep::Versions(3)).separate(100);
    let long = |n: u32| format!("{n}").repeat(200);
    let table = store.table("pages", rules()).unwrap();
    let first = table.put("a", &long(1)).unwrap();
    table.delete("a").unwrap();
    for n in 3..=5 {
        table.put("a", &long(n)).unwrap();
    }
    let deleted = table.delete("a").unwrap();
    let last = table.put("a", "short").unwrap();
    table.put("b", "only").unwrap();
    table.put("c", "gone").unwrap();
    table.delete("c").unwrap();
    drop(table);
    for (how, shake) in shakes() {
        store = shake(&world, store);
        let table = store.table("pages", rules()).unwrap();
        let history = table.history("a", usize::MAX).unwrap();
        assert_eq!(values(&history), [Some("short".to_owned()), None, Some(long(5))], "{how}");
        assert_eq!(history[1].seq, Some(deleted));
        assert_eq!(values(&table.history("b", 9).unwrap()), [Some("only".to_owned())]);
        assert_eq!(values(&table.history("c", 9).unwrap()), [None, Some("gone".to_owned())], "{how}");
        assert_eq!(table.get_at("a", AsOf::Seq(deleted)).unwrap(), None);
        assert_eq!(table.get_at("a", AsOf::Seq(before(deleted))).unwrap(), Some(long(5)));
        assert_eq!(table.get_at("a", AsOf::Seq(last)).unwrap().as_deref(), Some("short"));
        let refused = table.get_at("a", AsOf::Seq(first)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert!(refused.to_string().contains(&format!("at seq {}", before(deleted))), "{refused}");
        let refused = store.snapshot_at(AsOf::Seq(first)).unwrap().scan(&table).count().unwrap_err();
        assert!(refused.to_string().contains("history"), "{refused}");
    }
    let stats = store.bytes_table("pages").unwrap().stats().unwrap();
    assert!(stats.records <= 3 + 1 + 2, "{} records", stats.records);
}

#[test]
fn a_window_moves_and_what_is_beyond_it_is_folded_and_refused() {
    let world = World::new();
    let store = world.create();
    let keep = Keep::Window(Duration::from_secs(60));
    let table = counts(&store, keep, Expire::Never);
    let mut seqs = Vec::new();
    for round in 1..=120u64 {
        seqs.push(table.fold(&1, &round).unwrap());
        world.pass(1000);
    }
    assert_eq!(table.get_at(&1, AsOf::Seq(seqs[70])).unwrap(), Some((1..=71).sum::<u64>()));
    let refused = table.get_at(&1, AsOf::Seq(seqs[20])).unwrap_err();
    assert!(refused.to_string().contains("window:1m"), "{refused}");
    let held = store.snapshot_at(AsOf::Seq(seqs[70])).unwrap();
    compact(&store, "counts");
    let records = store.bytes_table("counts").unwrap().stats().unwrap().records;
    assert!((60..=63).contains(&records), "{records} records");
    assert_eq!(table.history(&1, usize::MAX).unwrap().len() as u64, records);
    world.pass(600_000);
    table.fold(&2, &1).unwrap();
    compact(&store, "counts");
    assert_eq!(held.get(&table, &1).unwrap(), Some((1..=71).sum::<u64>()), "a snapshot holds its moment");
    drop(held);
    table.fold(&2, &1).unwrap();
    store.flush().unwrap();
    compact(&store, "counts");
    assert_eq!(table.history(&1, usize::MAX).unwrap().len(), 1);
    assert_eq!(table.get(&1).unwrap(), Some((1..=120).sum::<u64>()));
    assert_eq!(store.bytes_table("counts").unwrap().stats().unwrap().records, 1 + 2);
}

#[test]
fn a_table_that_keeps_only_what_is_says_so() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Latest, Expire::Never);
    table.fold(&1, &1).unwrap();
    let before = store.last_seq();
    table.fold(&1, &2).unwrap();
    assert_eq!(values(&table.history(&1, 9).unwrap()), [Some(3)]);
    let refused = table.get_at(&1, AsOf::Seq(before)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert!(refused.to_string().contains("keeps latest"), "{refused}");
    assert_eq!(table.get_at(&1, AsOf::Seq(after(before))).unwrap(), Some(3), "the present is there");
    let refused = table.with_lifetime(Lifetime::For(Duration::from_secs(1))).put(&1, &1).unwrap_err();
    assert!(refused.to_string().contains("never expire"), "{refused}");
}

#[test]
fn a_range_delete_hides_the_past_from_the_present_only() {
    let world = World::new();
    let mut store = world.create();
    let table = counts(&store, Keep::Versions(2), Expire::Never);
    for key in 0..10u64 {
        table.fold(&key, &1).unwrap();
    }
    let before = store.last_seq();
    table.delete_range(&2, &8).unwrap();
    table.fold(&3, &5).unwrap();
    drop(table);
    for (how, shake) in shakes() {
        store = shake(&world, store);
        let table = counts(&store, Keep::Versions(2), Expire::Never);
        assert_eq!(table.scan().count().unwrap(), 5, "{how}");
        assert_eq!(values(&table.history(&2, 9).unwrap()), [None, Some(1)], "{how}");
        assert_eq!(values(&table.history(&3, 9).unwrap()), [Some(5)], "{how}");
        assert_eq!(table.get_at(&4, AsOf::Seq(before)).unwrap(), Some(1), "{how}");
    }
}

/// Flushes when an hour has passed, and opens the store again when the clock has gone back.
fn flush_late_and_open_early(world: &World, store: Store, keep: Keep) -> (Store, Table<u64, u64>) {
    world.pass(3_600_000);
    store.flush().expect("it works");
    drop(store);
    world.set(START_MS);
    let store = world.open();
    let table = counts(&store, keep, Expire::Never);
    (store, table)
}

/// A flush folds by a clock that has jumped ahead, and no record of that is written before the
/// process ends.
#[test]
fn a_window_has_no_holes_where_the_clock_goes_back_over_what_was_folded() {
    let world = World::new();
    let store = world.create();
    let keep = Keep::Window(Duration::from_secs(60));
    let table = counts(&store, keep, Expire::Never);
    table.put(&1, &10).unwrap();
    store.flush().unwrap();
    let folded_away = table.put(&1, &20).unwrap();
    table.put(&1, &30).unwrap();
    let (_store, table) = flush_late_and_open_early(&world, store, keep);
    assert_eq!(values(&table.history(&1, usize::MAX).unwrap()), [Some(30)], "10 was not the last before 30");
    let refused = table.get_at(&1, AsOf::Seq(folded_away)).unwrap_err();
    assert!(refused.to_string().contains("the oldest state that is kept"), "{refused}");
}

/// The same where the flush leaves no file that could show it: everything in it was deleted.
#[test]
fn a_window_has_no_holes_where_nothing_is_left_of_what_was_folded() {
    let world = World::new();
    let store = world.create();
    let keep = Keep::Window(Duration::from_secs(60));
    let table = counts(&store, keep, Expire::Never);
    let folded_away = table.put(&1, &10).unwrap();
    table.delete_range(&0, &9).unwrap();
    let (_store, table) = flush_late_and_open_early(&world, store, keep);
    let refused = table.get_at(&1, AsOf::Seq(folded_away)).unwrap_err();
    assert!(refused.to_string().contains("the oldest state that is kept"), "{refused}");
}

#[test]
fn time_does_not_go_back_over_reopening() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Latest, Expire::After(Duration::from_secs(5)));
    table.fold(&1, &1).unwrap();
    world.pass(3_600_000); // a jump ahead
    assert_eq!(table.get(&1).unwrap(), None);
    table.fold(&2, &1).unwrap();
    world.set(START_MS); // and back
    assert_eq!(table.get(&1).unwrap(), None, "what is gone stays gone");
    assert_eq!(table.get(&2).unwrap(), Some(1));
    drop((table, store));
    let store = world.open();
    let table = counts(&store, Keep::Latest, Expire::After(Duration::from_secs(5)));
    assert!(unix_ms(store.now()) >= START_MS + 3_600_000);
    assert_eq!(table.get(&1).unwrap(), None, "the log knows how late it was");
    store.close().unwrap();
    let store = world.open();
    assert!(unix_ms(store.now()) >= START_MS + 3_600_000, "and so does the manifest");
    let table = counts(&store, Keep::Latest, Expire::After(Duration::from_secs(5)));
    assert_eq!(table.get(&2).unwrap(), Some(1));
    world.set(START_MS + 3_600_000 + 5_000);
    assert_eq!(table.get(&2).unwrap(), None);
}

/// A merge does not change the answers of a table about a moment.
#[test]
fn a_moment_at_which_values_were_alive_that_are_not_kept_is_refused() {
    let world = World::new();
    let store = world.create();
    let keeps = [Keep::Latest, Keep::Forever, Keep::Versions(3), Keep::Window(Duration::from_secs(1000))];
    let table = |keep: Keep| -> Table<u64, u64> {
        let rules = Rules::sorted::<u64, u64>().keep(keep).expire(Expire::After(Duration::from_secs(10)));
        store.table(&format!("t{}", keep.to_string().replace(':', "")), rules).unwrap()
    };
    for keep in keeps {
        table(keep).put(&1, &7).unwrap();
    }
    let alive = AsOf::Time(moment(world.clock.unix_millis() + 5_000));
    world.pass(10_000);
    for _ in 0..2 {
        for keep in keeps {
            let (got, now) =
                (table(keep).get_at(&1, alive), table(keep).get_at(&1, AsOf::Seq(store.last_seq())));
            assert_eq!(now.unwrap(), None);
            match keep {
                Keep::Latest => {
                    assert!(got.unwrap_err().message().contains("keeps no expired values"))
                }
                _ => assert_eq!(got.unwrap(), Some(7), "{keep}"),
            }
            let scanned = table(keep).as_bytes().scan_at(alive).into_iter().next().unwrap();
            assert_eq!(scanned.is_err(), keep == Keep::Latest, "{keep}");
            let to_come = table(keep).get_at(&1, AsOf::Seq(after(store.last_seq()))).unwrap_err();
            assert!(to_come.message().contains("yet"), "{to_come}");
            let to_come = store.snapshot_at(AsOf::Seq(after(store.last_seq()))).map(drop).unwrap_err();
            assert!(to_come.message().contains("yet"), "{to_come}");
        }
        store.tables().iter().for_each(|table| compact(&store, table));
    }
}

/// The record is the newest of all, and so at every boundary of a window by its seq; the earlier
/// state is dropped by time alone.
#[test]
fn a_moment_before_the_window_is_refused_where_values_expired_though_nothing_was_written_since() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Window(Duration::from_secs(20)), Expire::After(Duration::from_secs(5)));
    table.put(&1, &7).unwrap();
    let alive = AsOf::Time(moment(START_MS + 2_000));
    world.pass(60_000);
    table.put(&2, &8).unwrap();
    for _ in 0..2 {
        let refused = table.get_at(&1, alive).unwrap_err();
        assert!(refused.message().contains("keeps no expired values by 20s ago"), "{refused}");
        store.flush().unwrap();
        compact(&store, "counts");
    }
    assert_eq!(table.get_at(&2, AsOf::Time(moment(START_MS + 45_000))).unwrap(), None);
}

/// With a bound on the age of deletes, deleted records are removed from the disk, however few the
/// deletes are.
#[test]
fn deletes_that_are_older_than_may_be_take_what_they_delete_from_the_disk() {
    let world = World::new();
    for bound in [None, Some(Duration::from_secs(60))] {
        let path = world.path.with_extension(if bound.is_some() { "bounded" } else { "free" });
        let mut store = Store::create(&path, world.options().deletes_age_max(bound)).unwrap();
        let table = |store: &Store| store.table::<u64, u64>("t", Rules::sorted()).unwrap();
        let settle = |store: &Store| while store.background_step().unwrap().is_some() {};
        let records = |store: &Store| store.bytes_table("t").unwrap().stats().unwrap().records;
        for key in 0..1000 {
            table(&store).put(&key, &key).unwrap();
        }
        store.flush().unwrap();
        table(&store).delete(&7).unwrap();
        store.flush().unwrap();
        settle(&store);
        assert_eq!(records(&store), 1001);
        world.pass(55_000);
        settle(&store);
        drop(store);
        store = Store::open(&path, world.options().deletes_age_max(bound)).unwrap();
        settle(&store);
        assert_eq!(records(&store), 1001, "not as old as that");
        world.pass(10_000);
        let snapshot = store.snapshot();
        settle(&store);
        drop(snapshot);
        settle(&store);
        assert_eq!(records(&store), if bound.is_some() { 999 } else { 1001 });
        assert_eq!(store.background_step().unwrap(), None, "and no merge more");
        assert_eq!((table(&store).get(&7).unwrap(), table(&store).scan().count().unwrap()), (None, 999));
    }
}

#[test]
fn time_does_not_go_back_where_a_store_is_repaired() {
    for archive_log in [false, true] {
        let world = World::new();
        let store = world.create();
        let rules = || Rules::sorted::<u64, u64>().expire(Expire::ByWrite).archive_log(archive_log);
        let table = store.table("brief", rules()).expect("it works");
        table.with_lifetime(Lifetime::For(Duration::from_millis(HOUR_MS))).put(&1, &1).expect("it works");
        world.pass(2 * HOUR_MS);
        table.put(&2, &2).expect("it works");
        assert_eq!(table.get(&1).expect("it works"), None);
        drop((table, store)); // the process dies, and the wall clock is set back
        world.set(START_MS);
        let to = world.path.with_extension("repaired");
        let how = folddb::maintenance::RepairOptions::default();
        let how = if archive_log { how.rebuild_index("brief") } else { how };
        Store::repair(&world.path, &to, &how, &world.options()).expect("it is repaired");
        let store = Store::open(&to, world.options()).expect("it opens");
        assert!(unix_ms(store.now()) >= START_MS + 2 * HOUR_MS);
        let table = store.table("brief", rules()).expect("it works");
        assert_eq!((table.get(&1).expect("it works"), table.get(&2).expect("it works")), (None, Some(2)));
    }
}

/// No merge may fold what the table keeps, and a record has its times.
#[test]
fn explain_shows_what_the_table_keeps_and_when() {
    let world = World::new();
    let store = world.create();
    for (name, keep, kept) in [
        ("forever", Keep::Forever, 3),
        ("window", Keep::Window(Duration::from_secs(60)), 3),
        ("two", Keep::Versions(2), 1),
        ("latest", Keep::Latest, 0),
    ] {
        let rules = Rules::sorted::<u64, u64>().fold("sum:u64").keep(keep).expire(Expire::ByWrite);
        let table = store.table::<u64, u64>(name, rules).unwrap();
        table.put(&1, &1).unwrap();
        for operand in 1..=3 {
            table.with_lifetime(Lifetime::For(Duration::from_secs(900))).fold(&1, &operand).unwrap();
        }
        for _ in 0..2 {
            let told = table.as_bytes().explain(&1u64.to_be_bytes()).unwrap();
            let because = |record: &&folddb::Explained| record.why.contains("the table keeps its history");
            assert_eq!(told.iter().filter(because).count(), kept, "{name}: {told:?}");
            assert!(
                told.iter().filter(because).all(|record| record.why.contains(&format!("keep={keep}"))),
                "{told:?}"
            );
            assert_eq!(
                (told[0].written.map(unix_ms), told[0].deadline.map(unix_ms)),
                (Some(START_MS), Some(START_MS + 900_000)),
                "{name}"
            );
            compact(&store, name);
            let after = table.as_bytes().explain(&1u64.to_be_bytes()).unwrap();
            assert_eq!(after.len(), kept + 1, "{name}: {after:?}");
        }
    }
}

#[test]
fn a_snapshot_of_the_present_finds_its_records_with_pinned_files() {
    let world = World::new();
    let store = world.create();
    let table =
        store.table("plain", Rules::sorted::<u64, u64>().index("by_value", "value")).expect("it works");
    table.put(&1, &100).expect("it works");
    let past = store.snapshot_at(AsOf::Seq(store.last_seq())).expect("it works");
    for n in 1..3 {
        world.pass(61_000);
        while store.background_step().expect("it works").is_some() {}
        table.put(&n, &200).expect("it works");
    }
    compact(&store, "plain");
    assert_eq!(past.get(&table, &1).expect("it works"), Some(100));
    let found =
        past.table(&table).find("by_value").expect("an index").term(100u64).count().expect("it works");
    assert_eq!(found, 1);
}

#[test]
fn where_versions_are_kept_what_has_expired_is_found_at_a_time_when_it_lived() {
    let world = World::new();
    let store = world.create();
    let table = sessions(&store, Keep::Versions(2));
    add_index(&store);
    table.put(&1, b"ann").expect("it works");
    let alive_ms = unix_ms(store.now());
    store.flush().expect("it works");
    world.pass(2 * HOUR_MS);
    compact(&store, "sessions/by_user");
    let past = store.snapshot_at(AsOf::Time(moment(alive_ms))).expect("it works");
    let rows = past.scan(&table).into_iter().count() as u64;
    assert_eq!((rows, found(&table, Some(&past)).expect("it works")), (1, 1));
    assert_eq!(found(&table, None).expect("it works"), 0);
}

/// Also where nothing else needs the time: no other table is written to, or none that keeps its
/// past.
#[test]
fn a_loaded_table_was_there_at_each_time_after_its_load() {
    for others_keep in [Keep::Latest, Keep::Forever] {
        let world = World::new();
        let mut store = world.create();
        let other = store.table("other", Rules::sorted::<u64, u64>().keep(others_keep)).unwrap();
        other.put(&1, &1).unwrap();
        drop(other);
        world.pass(HOUR_MS);
        let rules = Rules::sorted::<u64, u64>().keep(Keep::Window(Duration::from_secs(86_400)));
        let mut load = store.bulk_load("loaded", rules).unwrap();
        load.put(&7, &70).unwrap();
        load.finish().unwrap();
        let loaded_ms = world.clock.unix_millis();
        world.pass(HOUR_MS);
        for (how, shake) in shakes() {
            store = shake(&world, store);
            let table = store.open_table::<u64, u64>("loaded").unwrap();
            for later_ms in [0, HOUR_MS / 4] {
                let then = AsOf::Time(moment(loaded_ms + later_ms));
                assert_eq!(table.get_at(&7, then).unwrap(), Some(70), "{how}: {later_ms} ms later");
            }
            // Its rows are as old as the last write before it, where that one's time is known.
            let before = table.get_at(&7, AsOf::Time(moment(loaded_ms - HOUR_MS / 4))).unwrap();
            assert_eq!(before, (others_keep == Keep::Forever).then_some(70), "{how}");
        }
    }
}
