//! What indexes know of time.

use std::time::Duration;

use folddb::time::{moment, unix_ms};
use folddb::{AsOf, Expire, Keep, Rules, Snapshot, Store, Table};

use crate::common::compact;
use crate::moved::START_MS;
use crate::world::World;

/// The hits of a moment do not change; entries that no query can ask for any more are removed.
#[test]
fn indexes_lose_what_is_stale_as_far_as_their_table_forgets() {
    let world = World::new();
    let store = world.create();
    let keeps = [Keep::Latest, Keep::Versions(2), Keep::Window(Duration::from_secs(100)), Keep::Forever];
    let rules = |keep| Rules::sorted::<u64, u64>().keep(keep).index("by_value", "value");
    let tables: Vec<Table<u64, u64>> = keeps
        .iter()
        .enumerate()
        .map(|(at, keep)| store.table(&format!("t{at}"), rules(*keep)).unwrap())
        .collect();
    let mut moments = Vec::new();
    for round in 0..30u64 {
        for table in &tables {
            for key in 0..4 {
                table.put(&key, &(100 * key + round)).unwrap();
            }
        }
        moments.push((store.last_seq(), round));
        world.pass(10_000);
        store.flush().unwrap();
    }
    let check = || {
        for (at, (table, keep)) in tables.iter().zip(keeps).enumerate() {
            let found = |term: u64, of: Option<&Snapshot>| -> folddb::Result<Vec<u64>> {
                let find = match of {
                    None => table.find("by_value").unwrap(),
                    Some(of) => of.table(table).find("by_value").unwrap(),
                };
                find.term(term).keys().collect()
            };
            assert_eq!(found(329, None).unwrap(), [3], "table {at}");
            assert_eq!(found(328, None).unwrap(), [0; 0]);
            for (seq, round) in &moments {
                let past = store.snapshot_at(AsOf::Seq(*seq)).unwrap();
                let is_kept = match keep {
                    Keep::Forever => true,
                    Keep::Window(_) => *round > 20,
                    _ => false,
                };
                if is_kept {
                    assert_eq!(found(100 + round, Some(&past)).unwrap(), [1], "table {at}, round {round}");
                    assert_eq!(found(100 + round + 1, Some(&past)).unwrap(), [0; 0]);
                }
            }
        }
    };
    let entries = || -> Vec<u64> {
        (0..keeps.len())
            .map(|at| store.bytes_table(&format!("t{at}/by_value")).unwrap().stats().unwrap().records)
            .collect()
    };
    check();
    (0..keeps.len()).for_each(|at| compact(&store, &format!("t{at}")));
    check();
    let now = entries();
    assert_eq!((now[0], now[1], now[3]), (4, 4, 120));
    assert!((40..=52).contains(&now[2]), "those of the window, ten rounds: {now:?}");
    world.pass(1_000_000);
    for table in &tables {
        table.put(&9, &9).unwrap();
    }
    (0..keeps.len()).for_each(|at| compact(&store, &format!("t{at}")));
    assert_eq!(entries(), [5, 5, 5, 121]);
    assert_eq!(tables[2].find("by_value").unwrap().count().unwrap(), 5);
}

// ---- what indexes know of time ------------------------------------------------------------------

pub(crate) const HOUR_MS: u64 = 3_600_000;

pub(crate) fn sessions(store: &Store, keep: Keep) -> Table<u64, Vec<u8>> {
    let rules =
        Rules::sorted::<u64, Vec<u8>>().keep(keep).expire(Expire::After(Duration::from_millis(HOUR_MS)));
    store.table("sessions", rules).expect("it works")
}

pub(crate) fn add_index(store: &Store) {
    let rule = "by_user:value".parse::<folddb::IndexRule>().expect("a rule");
    store.bytes_table("sessions").expect("a table").add_index(&rule).expect("it works");
}

pub(crate) fn found(table: &Table<u64, Vec<u8>>, at: Option<&Snapshot>) -> folddb::Result<u64> {
    match at {
        None => table.find("by_user")?.count(),
        Some(at) => at.table(table).find("by_user")?.count(),
    }
}

/// The index refuses what it cannot answer, instead of giving too few hits.
fn is_too_young(found: folddb::Result<u64>) -> bool {
    found.is_err_and(|error| error.message().contains("when it was built"))
}

#[test]
fn an_index_that_was_built_when_all_had_expired_does_not_tell_what_was_before() {
    let world = World::new();
    let store = world.create();
    let table = sessions(&store, Keep::Window(Duration::from_millis(24 * HOUR_MS)));
    table.put(&1, b"ann").expect("it works");
    let alive_ms = unix_ms(store.now());
    let snapshot = store.snapshot();
    world.pass(2 * HOUR_MS);
    add_index(&store);
    assert_eq!(found(&table, None).expect("it works"), 0);
    assert!(is_too_young(found(&table, Some(&snapshot))));
    let past = store.snapshot_at(AsOf::Time(moment(alive_ms))).expect("it works");
    assert!(is_too_young(found(&table, Some(&past))));
    table.put(&2, b"bob").expect("it works");
    assert_eq!(found(&table, Some(&store.snapshot())).expect("it works"), 1);
}

#[test]
fn values_that_had_expired_when_an_index_was_built_do_not_reappear() {
    let world = World::new();
    let store = world.create();
    let table = sessions(&store, Keep::Latest);
    table.put(&1, b"ann").expect("it works");
    world.pass(2 * HOUR_MS);
    add_index(&store);
    drop((table, store)); // the process dies, and the wall clock is set back
    world.set(START_MS);
    let store = world.open();
    let table = sessions(&store, Keep::Latest);
    let rows = table.scan().into_iter().count() as u64;
    assert_eq!(found(&table, None).expect("it works"), rows);
}

#[test]
fn values_that_had_expired_when_an_index_was_cleaned_do_not_reappear() {
    let world = World::new();
    let store = world.create();
    let table = sessions(&store, Keep::Latest);
    add_index(&store);
    table.put(&1, b"ann").expect("it works");
    store.flush().expect("it works");
    world.pass(2 * HOUR_MS);
    compact(&store, "sessions/by_user");
    assert_eq!(store.bytes_table("sessions/by_user").expect("a table").stats().expect("it works").records, 0);
    drop((table, store)); // the process dies, and the wall clock is set back
    world.set(START_MS);
    let store = world.open();
    let table = sessions(&store, Keep::Latest);
    let rows = table.scan().into_iter().count() as u64;
    assert_eq!(found(&table, None).expect("it works"), rows);
}

#[test]
fn a_snapshot_of_the_past_finds_its_records_with_pinned_files() {
    let world = World::new();
    let store = world.create();
    let rules =
        Rules::sorted::<u64, u64>().keep(Keep::Window(Duration::from_secs(30))).index("by_value", "value");
    let table = store.table("counts", rules).expect("it works");
    let first = table.put(&1, &100).expect("it works");
    world.pass(10_000);
    table.put(&1, &200).expect("it works");
    let past = store.snapshot_at(AsOf::Seq(first)).expect("it works");
    for n in 2..4 {
        world.pass(61_000);
        while store.background_step().expect("it works").is_some() {}
        table.put(&n, &5).expect("it works");
    }
    compact(&store, "counts");
    assert_eq!(past.get(&table, &1).expect("it works"), Some(100));
    let found =
        past.table(&table).find("by_value").expect("an index").term(100u64).count().expect("it works");
    assert_eq!(found, 1);
}
