//! Values that expire are absent from their deadline on, for all readers, and reveal no older
//! value.

use std::path::Path;
use std::time::Duration;

use folddb::maintenance::VerifyOptions;
use folddb::time::{moment, unix_ms};
use folddb::{AsOf, Durability, ErrorKind, Expire, Keep, Lifetime, Resume, Rules, Store, WriteOp};

use crate::common::compact;
use crate::moved::START_MS;
use crate::world::{World, before, counts, shakes, values};

#[test]
fn expired_values_are_hidden_from_all_readers_at_once() {
    let world = World::new();
    let mut store = world.create();
    let rules =
        || Rules::sorted::<String, Vec<u8>>().expire(Expire::After(Duration::from_secs(10))).separate(100);
    let table = store.table("sessions", rules()).unwrap();
    table.put("default", &vec![1; 5]).unwrap();
    table.put("separated", &vec![2; 500]).unwrap();
    table.with_lifetime(Lifetime::For(Duration::from_secs(2))).put("short", &vec![3; 5]).unwrap();
    table.with_lifetime(Lifetime::Until(moment(START_MS + 5_000))).put("dated", &vec![4; 500]).unwrap();
    table.with_lifetime(Lifetime::Forever).put("kept", &vec![5; 5]).unwrap();
    let head = table.head("dated").unwrap().unwrap();
    assert_eq!(
        (head.is_separated, head.deadline.map(unix_ms), head.written.map(unix_ms)),
        (true, Some(START_MS + 5_000), Some(START_MS))
    );
    assert_eq!(table.head("default").unwrap().unwrap().deadline.map(unix_ms), Some(START_MS + 10_000));
    assert_eq!(table.head("kept").unwrap().unwrap().deadline, None);
    drop(table);
    for (elapsed, left) in [
        (1_999, vec!["dated", "default", "kept", "separated", "short"]),
        (2_000, vec!["dated", "default", "kept", "separated"]),
        (5_000, vec!["default", "kept", "separated"]),
        (10_000, vec!["kept"]),
    ] {
        world.set(START_MS + elapsed);
        for (how, shake) in shakes() {
            store = shake(&world, store);
            let table = store.table("sessions", rules()).unwrap();
            let keys: Vec<_> = table.scan().into_iter().map(|row| row.unwrap().0).collect();
            assert_eq!(keys, left, "{how} after {elapsed} ms");
            let mut back: Vec<_> = table.scan().reverse().into_iter().map(|row| row.unwrap().0).collect();
            back.reverse();
            assert_eq!(back, left);
            assert_eq!(table.scan().count().unwrap(), left.len() as u64);
            let heads: Vec<_> = table.scan().heads().map(|row| row.unwrap()).collect();
            assert_eq!(heads.len(), left.len());
            for key in ["separated", "dated", "default", "kept", "short"] {
                assert_eq!(table.get(key).unwrap().is_some(), left.contains(&key), "{how}: {key}");
                assert_eq!(table.contains(key).unwrap(), left.contains(&key));
                assert_eq!(table.head(key).unwrap().is_some(), left.contains(&key));
            }
            assert!(heads.iter().any(|(key, head)| key == "kept" && head.deadline.is_none()));
        }
    }
}

#[test]
fn folds_extend_the_life_of_a_value_and_begin_from_nothing_when_it_has_expired() {
    let world = World::new();
    let mut store = world.create();
    let expire = Expire::After(Duration::from_secs(10));
    let table = counts(&store, Keep::Latest, expire);
    table.fold(&1, &1).unwrap();
    world.pass(9_000);
    table.fold(&1, &10).unwrap(); // lives on until 19 s
    table.put_if_absent(&2, &1).unwrap();
    world.pass(9_000);
    table.fold(&1, &100).unwrap(); // until 28 s
    table.put_if_absent(&2, &50).unwrap(); // the first has not expired
    world.pass(2_000);
    table.put_if_absent(&2, &7).unwrap(); // now it has
    drop(table);
    for (how, shake) in shakes() {
        store = shake(&world, store);
        let table = counts(&store, Keep::Latest, expire);
        assert_eq!(table.get(&1).unwrap(), Some(111), "{how}");
        assert_eq!(table.get(&2).unwrap(), Some(7), "{how}");
    }
    drop(store);
    let report = Store::verify(&world.path, &VerifyOptions::default().deep(true), &world.options()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let store = world.open();
    world.pass(8_000);
    let table = counts(&store, Keep::Latest, expire);
    assert_eq!(table.get(&1).unwrap(), None);
    table.fold(&1, &1000).unwrap();
    assert_eq!(table.get(&1).unwrap(), Some(1000), "what had expired is not folded onto");
    compact(&store, "counts");
    assert_eq!(table.get(&1).unwrap(), Some(1000));
}

#[test]
fn a_snapshot_reads_at_its_own_time_and_holds_what_it_sees() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Latest, Expire::After(Duration::from_secs(5)));
    for key in 0..100u64 {
        table.fold(&key, &key).unwrap();
    }
    let past = store.snapshot();
    world.pass(60_000);
    table.fold(&500, &1).unwrap();
    compact(&store, "counts");
    assert_eq!(table.scan().count().unwrap(), 1);
    assert_eq!(past.scan(&table).count().unwrap(), 100);
    assert_eq!(past.get(&table, &7).unwrap(), Some(7));
    assert_eq!(unix_ms(past.time()), START_MS);
    drop(past);
    table.fold(&501, &1).unwrap();
    compact(&store, "counts");
    assert_eq!(store.bytes_table("counts").unwrap().stats().unwrap().records, 2);
    assert_eq!(store.stats().background.records_expired, 100);
}

#[test]
fn parts_in_which_all_has_expired_go_unread() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Latest, Expire::After(Duration::from_secs(100)));
    for hour in 0..6u64 {
        let mut batch = store.batch();
        for at in 0..5000u64 {
            batch.fold(&table, &(hour * 10_000 + at), &at);
        }
        batch.commit(Durability::Process).unwrap();
        store.flush().unwrap();
        world.pass(50_000);
    }
    store.settle().unwrap();
    // Six slices at 0, 50, .. 250 s, now 300 s: that of 250 s lives.
    let (left, expired, merged) = (
        store.bytes_table("counts").unwrap().stats().unwrap(),
        store.stats().background.records_expired,
        store.stats().background.records_merged,
    );
    assert_eq!(left.records, 5_000, "{left:?}");
    assert_eq!((expired, merged), (25_000, 0), "no record was read for it");
    assert_eq!(table.scan().count().unwrap(), 5_000);
}

#[test]
fn a_merge_is_planned_for_what_has_expired() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Latest, Expire::ByWrite);
    for key in 0..4000u64 {
        let lifetime = if key % 4 == 0 { Lifetime::Forever } else { Lifetime::For(Duration::from_secs(60)) };
        let bytes = (key.to_be_bytes(), key.to_le_bytes());
        table.as_bytes().with_lifetime(lifetime).write(WriteOp::Put, &bytes.0, &bytes.1).unwrap();
    }
    store.settle().unwrap();
    assert_eq!(store.bytes_table("counts").unwrap().stats().unwrap().records, 4000);
    world.pass(120_000);
    assert_eq!(table.scan().count().unwrap(), 1000);
    store.settle().unwrap();
    assert_eq!(
        store.bytes_table("counts").unwrap().stats().unwrap().records,
        1000,
        "{:?}",
        store.bytes_table("counts").and_then(|table| table.stats())
    );
    store.settle().unwrap(); // and no work is left
}

#[test]
fn rules_of_time_are_checked_where_the_table_is_opened() {
    let world = World::new();
    let store = world.create();
    let _table = counts(&store, Keep::Versions(3), Expire::ByWrite);
    let open = |rules: Rules<u64, u64>| store.table("counts", rules.fold("sum:u64")).map(drop);
    open(Rules::sorted()).unwrap();
    let differs = open(Rules::sorted().keep(Keep::Forever)).unwrap_err();
    assert_eq!(differs.kind(), ErrorKind::RulesMismatch);
    assert!(differs.to_string().contains("it keeps versions:3, not forever"), "{differs}");
    assert!(open(Rules::sorted().expire(Expire::After(Duration::from_millis(5)))).is_err());
    assert!(Path::new(&world.path).exists());
}

/// A cursor of a scan of the past resumes as long as a snapshot holds that moment; and a moment
/// that has left the window is refused, before a merge as after it.
#[test]
fn the_past_of_values_that_expire_is_resumed_and_ends_with_its_window() {
    let world = World::new();
    let store = world.create();
    let rules = Rules::sorted::<u64, u64>()
        .keep(Keep::Window(Duration::from_secs(20)))
        .expire(Expire::After(Duration::from_secs(5)));
    let table = store.table("t", rules).unwrap();
    for key in 0..6 {
        table.put(&key, &key).unwrap();
    }
    world.pass(10_000);
    let alive = AsOf::Time(moment(START_MS + 2_000));
    let past = store.snapshot_at(alive).unwrap();
    let mut rows = past.scan(&table).into_iter();
    assert_eq!(rows.by_ref().take(2).count(), 2);
    let cursor = rows.cursor().unwrap();
    drop(rows);
    let rest = || -> Result<Vec<u64>, ErrorKind> {
        let rest = table.resume(&cursor, Resume::Strict).map_err(|error| error.kind())?;
        Ok(rest.into_iter().map(|row| row.unwrap().0).collect())
    };
    assert_eq!(rest(), Ok(vec![2, 3, 4, 5]));
    drop(past);
    assert_eq!(rest(), Ok(vec![2, 3, 4, 5]), "the table keeps it");
    assert_eq!(table.get_at(&1, alive).unwrap(), Some(1));
    world.pass(90_000);
    for _ in 0..2 {
        assert_eq!(rest(), Err(ErrorKind::SnapshotTooOld));
        assert!(table.get_at(&1, alive).unwrap_err().message().contains("keeps no expired values"));
        compact(&store, "t");
    }
}

/// A part in which all values have expired remains as long as it hides something older that has
/// not.
#[test]
fn an_expired_value_still_hides_an_older_one_that_lasts_longer() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Latest, Expire::ByWrite);
    let set = |key: u64, value: u64, lifetime| table.with_lifetime(lifetime).put(&key, &value).unwrap();
    for key in 0..100 {
        set(key, 1, Lifetime::Forever);
    }
    store.flush().unwrap();
    set(7, 2, Lifetime::For(Duration::from_secs(60)));
    store.flush().unwrap();
    world.pass(120_000);
    for _ in 0..2 {
        assert_eq!((table.get(&7).unwrap(), table.scan().count().unwrap()), (None, 99));
        store.settle().unwrap();
    }
}

/// An expired value was alive when something was folded onto it, and that fold has not expired:
/// wherever the fold is stored.
#[test]
fn a_value_that_a_later_write_saw_alive_is_not_swept_away() {
    for is_flushed in [false, true] {
        let world = World::new();
        let store = world.create();
        let table = counts(&store, Keep::Latest, Expire::After(Duration::from_secs(10)));
        table.fold(&1, &1).unwrap();
        store.flush().unwrap();
        world.pass(9_000);
        table.fold(&1, &10).unwrap(); // lives on until 19 s
        if is_flushed {
            store.flush().unwrap();
        }
        world.pass(6_000);
        while store.background_step().unwrap().is_some() {}
        assert_eq!(table.get(&1).unwrap(), Some(11), "flushed {is_flushed}");
        world.pass(4_000);
        while store.background_step().unwrap().is_some() {}
        assert_eq!(table.get(&1).unwrap(), None);
    }
}

#[test]
fn an_expired_value_is_kept_while_its_window_shows_it_alive() {
    let world = World::new();
    let store = world.create();
    let rules = Rules::sorted::<u64, u64>()
        .keep(Keep::Window(Duration::from_secs(60)))
        .expire(Expire::After(Duration::from_secs(5)));
    let table = store.table("t", rules).unwrap();
    (0..100).for_each(|key| assert!(table.put(&key, &key).is_ok()));
    let alive = AsOf::Time(moment(START_MS + 2_000));
    world.pass(10_000);
    for _ in 0..2 {
        assert_eq!((table.get(&7).unwrap(), table.get_at(&7, alive).unwrap()), (None, Some(7)));
        store.settle().unwrap();
        compact(&store, "t");
    }
    world.pass(60_000);
    table.put(&200, &1).unwrap();
    compact(&store, "t");
    assert_eq!(store.bytes_table("t").unwrap().stats().unwrap().records, 1);
}

#[test]
fn a_version_of_a_key_is_no_value_once_it_has_expired() {
    let world = World::new();
    let mut store = world.create();
    let rules =
        || Rules::sorted::<u64, u64>().keep(Keep::Versions(3)).expire(Expire::After(Duration::from_secs(10)));
    let table = store.table("t", rules()).unwrap();
    table.put(&1, &7).unwrap();
    world.pass(20_000);
    table.put(&1, &8).unwrap();
    let deleted = table.delete(&1).unwrap();
    drop(table);
    for (how, shake) in shakes() {
        store = shake(&world, store);
        let table = store.table("t", rules()).unwrap();
        for (after_ms, value) in [(0, Some(7)), (9_999, Some(7)), (10_000, None), (15_000, None)] {
            let at = AsOf::Time(moment(START_MS + after_ms));
            assert_eq!(table.get_at(&1, at).unwrap(), value, "{how}: after {after_ms} ms");
        }
        assert_eq!(table.get_at(&1, AsOf::Seq(before(deleted))).unwrap(), Some(8));
        for (limit, states) in [(1, vec![None]), (2, vec![None, Some(8)]), (9, vec![None, Some(8), Some(7)])]
        {
            assert_eq!(values(&table.history(&1, limit).unwrap()), states, "{how}: at most {limit}");
        }
    }
}

/// A moment in the future is the present.
#[test]
fn nobody_sees_what_is_to_expire_as_if_it_had() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Forever, Expire::After(Duration::from_secs(10)));
    table.put(&1, &7).unwrap();
    world.pass(3_000);
    let to_come = AsOf::Time(moment(START_MS + 3_600_000));
    let at = store.snapshot_at(to_come).unwrap();
    assert_eq!(unix_ms(at.time()), START_MS + 3_000);
    assert_eq!((at.get(&table, &1).unwrap(), at.scan(&table).count().unwrap()), (Some(7), 1));
    assert_eq!(table.get_at(&1, to_come).unwrap(), Some(7));
}

#[test]
fn each_op_says_how_long_its_value_lasts() {
    let world = World::new();
    let store = world.create();
    let table = counts(&store, Keep::Latest, Expire::ByWrite);
    let lasts = |seconds| Lifetime::For(Duration::from_secs(seconds));
    let deadline = |key: u64| table.head(&key).unwrap().and_then(|head| head.deadline).map(unix_ms);
    let until = |seconds: u64| Some(START_MS + seconds * 1000);
    table.with_lifetime(lasts(5)).put_if_absent(&1, &1).unwrap();
    table.with_lifetime(lasts(50)).put_if_absent(&1, &9).unwrap();
    assert_eq!(
        (table.get(&1).unwrap(), deadline(1)),
        (Some(1), until(5)),
        "what is there lasts as long as it did"
    );
    table.with_lifetime(lasts(8)).fold(&1, &2).unwrap();
    assert_eq!((table.get(&1).unwrap(), deadline(1)), (Some(3), until(8)));
    let mut batch = store.batch();
    batch
        .put(&table.with_lifetime(lasts(3)), &2, &1)
        .fold(&table.with_lifetime(lasts(4)), &2, &1)
        .put_if_absent(&table.with_lifetime(lasts(5)), &3, &7);
    batch.commit(Durability::Process).unwrap();
    assert_eq!((table.get(&2).unwrap(), deadline(2), deadline(3)), (Some(2), until(4), until(5)));
    let mut transaction = store.transaction();
    transaction.put(&table.with_lifetime(lasts(3)), &4, &1).fold(&table.with_lifetime(lasts(6)), &4, &1);
    assert_eq!(
        transaction.put_if_absent(&table.with_lifetime(lasts(7)), &5, &7).get(&table, &4).unwrap(),
        Some(2)
    );
    transaction.commit(Durability::Process).unwrap();
    assert_eq!((deadline(4), deadline(5)), (until(6), until(7)));
    table.fold(&4, &1).unwrap();
    assert_eq!(deadline(4), None, "a fold that says nothing makes it last for ever");
    let plain = store.table::<u64, u64>("plain", Rules::sorted()).unwrap();
    let mut batch = store.batch();
    batch.fold(&plain.with_lifetime(lasts(5)), &1, &1);
    assert!(batch.commit(Durability::Process).unwrap_err().message().contains("never expire"));
    assert_eq!(
        plain.with_lifetime(lasts(5)).put_if_absent(&1, &1).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
}
