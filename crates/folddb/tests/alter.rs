//! Rules of a table that are altered: what may be, when it applies, and that nothing is lost.
#![allow(clippy::unwrap_used)]

mod common;
mod moved;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use common::{drain, fresh, small, small_values};
use folddb::codec::KeyCodec;
use folddb::maintenance::{BackupOptions, RestoreOptions, VerifyOptions};
use folddb::table_rules::{Applies, TableRules};
use folddb::{AsOf, BytesTable, ErrorKind, Expire, Keep, Lifetime, Options, Store, ValuePlacement};
use folddb_host::Host;
use moved::Moved;

const KEYS: u32 = 4000;

fn options() -> Options {
    small().tuning(|t| t.part_bytes(16 << 10).merge_factor(3)).disk_reserve_bytes(0)
}

fn key(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn value(number: u32, round: u32) -> Vec<u8> {
    format!("value {round} of {number}, with some more text so that blocks are filled").into_bytes()
}

/// Writes all keys, as one run.
fn fill(store: &Store, table: &BytesTable, round: u32) {
    for number in 0..KEYS {
        table.put(&key(number), &value(number, round)).unwrap();
    }
    store.flush().unwrap();
}

fn check(table: &BytesTable, round: u32) {
    assert_eq!(table.get(&key(7)).unwrap(), Some(value(7, round)));
    let mut rows = table.scan().rows().unwrap();
    let mut count = 0;
    while let Some((has_key, has)) = rows.next_row().unwrap() {
        assert_eq!((has_key, has), (&*key(count), &*value(count, round)));
        count += 1;
    }
    assert_eq!(count, KEYS);
}

fn outdated(table: &BytesTable) -> u64 {
    let stats = table.stats().unwrap();
    assert_eq!(stats.outdated_bytes > 0, stats.outdated_parts > 0);
    assert!(stats.outdated_bytes <= stats.disk_bytes);
    stats.outdated_parts
}

fn text_of(store: &Store, name: &str) -> String {
    store.bytes_table(name).unwrap().rules().as_table_rules().to_string()
}

fn reopened(store: Store) -> Store {
    let path = store.path().to_owned();
    store.close().unwrap();
    Store::open(&path, options()).unwrap()
}

#[test]
fn altered_rules_are_those_of_the_table_from_then_on() {
    let (_dir, store) = fresh(options());
    let table = store.create_bytes_table("t", TableRules::default()).unwrap();
    fill(&store, &table, 0);
    let changes = table.alter(|rules| rules.block_bytes(1024).filter_bits(0).key_names(["id"])).unwrap();
    let said: Vec<(&str, &str, &str)> =
        changes.iter().map(|change| (change.rule, &*change.from, &*change.to)).collect();
    assert_eq!(said, [("block_bytes", "4096", "1024"), ("filter_bits", "10", "0"), ("key_names", "", "id")]);
    assert_eq!(changes[0].applies, Applies::ByMerges);
    let text = text_of(&store, "t");
    assert!(text.contains("block_bytes=1024\n") && text.contains("filter_bits=0\n"), "{text}");
    assert_eq!(table.alter(|rules| rules.block_bytes(1024)).unwrap(), [], "nothing differs");
    check(&table, 0);
    drop(table);
    // The edit is replayed; then it is in the snapshot of a manifest, and in that of a backup.
    let store = reopened(store);
    let store = reopened(store);
    assert_eq!(text_of(&store, "t"), text);
    assert!(outdated(&store.bytes_table("t").unwrap()) > 0, "and what is outdated is still known");
    check(&store.bytes_table("t").unwrap(), 0);
    let place = tempfile::tempdir().unwrap();
    let backups = place.path().join("backups");
    store.backup(&backups, &BackupOptions::default()).unwrap();
    let copy = place.path().join("copy.folddb");
    Store::restore(&backups, &copy, &RestoreOptions::default(), &options()).unwrap();
    let copy = Store::open(&copy, options()).unwrap();
    assert_eq!(text_of(&copy, "t"), text);
    assert!(outdated(&copy.bytes_table("t").unwrap()) > 0);
    check(&copy.bytes_table("t").unwrap(), 0);
}

#[test]
fn compact_takes_altered_rules_over_even_into_a_single_run() {
    let (_dir, store) = fresh(options());
    let table = store.create_bytes_table("t", TableRules::default().block_bytes(512)).unwrap();
    fill(&store, &table, 0);
    table.compact().unwrap();
    let before = table.stats().unwrap();
    assert_eq!((before.runs.len(), before.outdated_parts), (1, 0));
    table.compact().unwrap();
    assert_eq!(table.stats().unwrap().runs, before.runs, "there is nothing to do for an unaltered table");

    table.alter(|rules| rules.filter_bits(0)).unwrap();
    let parts = before.runs[0].parts.len() as u64;
    let stats = table.stats().unwrap();
    assert_eq!((stats.outdated_parts, stats.outdated_bytes), (parts, before.disk_bytes));
    table.compact().unwrap();
    let after = table.stats().unwrap();
    assert_eq!((after.runs.len(), after.outdated_parts, after.outdated_bytes), (1, 0, 0));
    assert!(after.disk_bytes < before.disk_bytes - u64::from(KEYS), "a byte a key at least");
    check(&table, 0);

    table.alter(|rules| rules.block_bytes(65_536)).unwrap();
    table.compact().unwrap();
    let blocks = table.stats().unwrap();
    assert!(blocks.outdated_parts == 0 && blocks.disk_bytes != after.disk_bytes);
    check(&table, 0);

    table.alter(|rules| rules.block_bytes(512).filter_bits(10)).unwrap();
    table.compact().unwrap();
    let bytes = table.stats().unwrap().disk_bytes;
    assert!(bytes.abs_diff(before.disk_bytes) < 64, "as before, but for the numbers in them");
    assert_eq!(outdated(&table), 0);
}

#[test]
fn the_next_merges_take_altered_rules_over() {
    let (_dir, store) = fresh(options());
    let table = store.create_bytes_table("t", TableRules::default()).unwrap();
    fill(&store, &table, 0);
    table.alter(|rules| rules.block_bytes(1024)).unwrap();
    let all = outdated(&table);
    assert!(all > 1);
    fill(&store, &table, 1);
    assert_eq!(outdated(&table), all, "a flush writes by the new rules");
    let mut round = 1;
    while outdated(&table) > 0 {
        round += 1;
        assert!(round < 20, "merges must come to the old parts");
        fill(&store, &table, round);
        drain(&store);
    }
    check(&table, round);
    assert!(store.verify_now_is_clean());
}

#[test]
fn what_would_change_the_meaning_is_refused_and_changes_nothing() {
    let (_dir, store) = fresh(options());
    let table = store.create_bytes_table("t", TableRules::new(KeyCodec::U64).fold("sum:u64")).unwrap();
    let text = text_of(&store, "t");
    let refused = table.alter(|rules| rules.block_bytes(1024).fold("sum:i64")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::RulesMismatch);
    assert!(refused.message().contains("table `t`") && refused.message().contains("`fold`"), "{refused}");
    assert!(refused.advice().contains("folddb load"), "{refused}");
    let refused = table.alter(|rules| rules.index("all:value".parse().unwrap())).unwrap_err();
    assert!(refused.advice().contains("add_index"), "{refused}");
    let refused = table.alter(|rules| rules.block_bytes(7)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
    assert!(refused.message().contains("block_bytes is 7"));
    assert_eq!(text_of(&store, "t"), text);
    assert_eq!(text_of(&reopened(store), "t"), text);
}

#[test]
fn indexes_dropped_tables_and_readers_are_refused() {
    let (_dir, store) = fresh(options());
    let rules: TableRules = "index=all:value".parse().unwrap();
    let table = store.create_bytes_table("t", rules).unwrap();
    let entries = table.indexes()[0].table.clone();
    let refused = store.bytes_table(&entries).unwrap().alter(|rules| rules.block_bytes(512)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
    table.alter(|rules| rules.block_bytes(512)).unwrap();
    assert_eq!(table.indexes().len(), 1, "its index stays");
    let store = reopened(store);
    let again = store.bytes_table("t").unwrap();
    assert_eq!(again.indexes().len(), 1);
    assert_eq!(again.alter(|rules| rules.block_bytes(2048)).unwrap().len(), 1);
    let reader = Store::open_secondary(store.path(), options()).unwrap();
    let refused = reader.bytes_table("t").unwrap().alter(|rules| rules.block_bytes(1024)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    store.drop_table("t").unwrap();
    let refused = again.alter(|rules| rules.block_bytes(1024)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Closed);
}

#[test]
fn a_table_is_opened_with_the_rules_that_it_has_now() {
    let (_dir, store) = fresh(options());
    let rules = TableRules::default().keep(Keep::Window(Duration::from_secs(60)));
    let table = store.create_bytes_table("t", rules.clone()).unwrap();
    table.alter(|rules| rules.block_bytes(1024).keep(Keep::Window(Duration::from_secs(30)))).unwrap();
    let refused = store.open_or_create_bytes_table("t", rules).map(|_| ()).unwrap_err();
    assert!(refused.message().contains("it keeps window:30s, not window:1m"), "{refused}");
    assert!(refused.advice().contains("rules that it has"), "{refused}");
    store.open_or_create_bytes_table("t", TableRules::default()).unwrap();
    let refused = store.open_or_create_bytes_table("t", TableRules::counter()).map(|_| ()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::RulesMismatch);
}

#[test]
fn a_running_merge_finishes_and_the_part_that_it_had_begun_is_outdated() {
    let (_dir, store) = fresh(options());
    // In smaller blocks these values take so few bytes that one part has all of them.
    let table = store.create_bytes_table("t", TableRules::default().block_bytes(8192)).unwrap();
    fill(&store, &table, 0);
    fill(&store, &table, 1);
    let snapshot = store.snapshot();
    let mut is_altered = false;
    table
        .compact_with(|at| {
            if !is_altered && at.bytes_done > 0 && at.bytes_done < at.bytes_total {
                is_altered = true;
                table.alter(|rules| rules.block_bytes(1024)).unwrap();
                assert!(outdated(&table) > 0);
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(is_altered);
    let stats = table.stats().unwrap();
    let parts: u64 = stats.runs.iter().map(|run| run.parts.len() as u64).sum();
    assert!((1..parts).contains(&stats.outdated_parts), "{} of {parts}", stats.outdated_parts);
    check(&table, 1);
    assert_eq!(snapshot.table(&table).get(&key(3)).unwrap(), Some(value(3, 1)));
    drop(snapshot);
    table.compact().unwrap();
    assert_eq!(outdated(&table), 0);
    check(&table, 1);
}

#[test]
fn values_are_separated_from_the_alteration_on() {
    let (_dir, store) = fresh(small_values().disk_reserve_bytes(0));
    let table = store.create_bytes_table("t", TableRules::default()).unwrap();
    let long = |number: u8| vec![number; 3000];
    let stored = |store: &Store| store.value_segments().len();
    table.put(b"inline", &long(1)).unwrap();
    assert_eq!(stored(&store), 0);
    let snapshot = store.snapshot();
    assert_eq!(table.alter(|rules| rules.separate(1000)).unwrap()[0].applies, Applies::ToWrites);
    table.put(b"separated", &long(2)).unwrap();
    store.flush().unwrap();
    assert!(stored(&store) > 0);
    table.alter(|rules| rules.value_placement(ValuePlacement::Files)).unwrap();
    table.put(b"in a file", &long(3)).unwrap();
    let refused = table.alter(|rules| rules.separate(None)).unwrap_err();
    assert!(refused.message().contains("`separate`"), "{refused}");
    table.alter(|rules| rules.separate(u32::MAX)).unwrap();
    table.put(b"inline again", &long(4)).unwrap();
    assert_eq!(snapshot.table(&table).scan().count().unwrap(), 1);
    drop(snapshot);
    let check = |table: &BytesTable| {
        for (key, number) in [(&b"inline"[..], 1), (b"separated", 2), (b"in a file", 3), (b"inline again", 4)]
        {
            assert_eq!(table.get(key).unwrap(), Some(long(number)));
        }
        let mut rows = table.scan().rows().unwrap();
        while let Some((_, value)) = rows.next_row().unwrap() {
            assert_eq!(value.len(), 3000);
        }
    };
    check(&table);
    let path = store.path().to_owned();
    drop((table, store));
    let store = Store::open(&path, small_values()).unwrap();
    let table = store.bytes_table("t").unwrap();
    check(&table);
    table.compact().unwrap();
    check(&table);
    assert_eq!(outdated(&table), 0, "these rules are none about parts");
    let directories =
        std::fs::read_dir(&path).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir());
    assert_eq!(directories.count(), 1);
}

#[test]
fn what_is_altered_for_writes_or_in_name_alone_makes_no_part_outdated() {
    let (_dir, store) = fresh(options());
    let table = store.create_bytes_table("t", TableRules::default()).unwrap();
    fill(&store, &table, 0);
    table.compact().unwrap();
    let before = table.stats().unwrap().runs;
    let applies = |alter: &dyn Fn(TableRules) -> TableRules| {
        let changes = table.alter(alter).unwrap();
        changes.iter().map(|change| change.applies).collect::<Vec<_>>()
    };
    assert_eq!(applies(&|rules| rules.separate(100_000)), [Applies::ToWrites]);
    assert_eq!(outdated(&table), 0, "a threshold is none of what is written already");
    assert_ne!(applies(&|rules| rules.key_names(["id"])), [Applies::ByMerges]);
    assert_eq!(outdated(&table), 0, "a name is in no part");
    assert_eq!(applies(&|rules| rules), [], "nothing differs");
    assert_eq!(outdated(&table), 0);
    table.compact().unwrap();
    assert_eq!(table.stats().unwrap().runs, before, "no merge has anything to do");
    drop(table);
    let store = reopened(store);
    let table = store.bytes_table("t").unwrap();
    assert_eq!(outdated(&table), 0);
    assert_eq!(applies_by_merges(&table), 1, "one that merges take over still does");
    assert!(outdated(&table) > 0);
}

/// How many changes merges take over where blocks become smaller.
fn applies_by_merges(table: &BytesTable) -> usize {
    let changes = table.alter(|rules| rules.block_bytes(1024)).unwrap();
    changes.iter().filter(|change| change.applies == Applies::ByMerges).count()
}

#[test]
fn summaries_come_and_go_and_counts_stay_right() {
    let (_dir, store) = fresh(options());
    let rules = TableRules::new(KeyCodec::U64).fold("sum:u64").block_bytes(512);
    let table = store.create_bytes_table("t", rules).unwrap();
    for number in 0..2000u64 {
        table.fold(&number.to_be_bytes(), &1u64.to_le_bytes()).unwrap();
    }
    store.flush().unwrap();
    let by_summaries = |table: &BytesTable| {
        assert_eq!(table.scan().count().unwrap(), 2000);
        let aggregate = table.scan().aggregate().unwrap();
        assert_eq!(aggregate.value, Some(2000u64.to_le_bytes().to_vec()));
        aggregate.cost.part_summaries > 0
    };
    assert!(!by_summaries(&table));
    table.alter(|rules| rules.summaries(true)).unwrap();
    assert!(!by_summaries(&table), "no part has them yet");
    table.compact().unwrap();
    assert!(by_summaries(&table));
    table.alter(|rules| rules.summaries(false)).unwrap();
    assert!(!by_summaries(&table));
    assert!(store.verify_now_is_clean(), "summaries that are there are still right");
    table.compact().unwrap();
    assert!(!by_summaries(&table) && outdated(&table) == 0);
    assert!(store.verify_now_is_clean());
}

/// A store whose clock the test moves.
fn with_clock(dir: &Path) -> (Store, Arc<Moved>, Options) {
    let clock = Arc::new(Moved::new());
    let host = Host { clock: clock.clone(), ..Host::real() };
    let options = options().host(host);
    (Store::create(dir.join("s.folddb"), options.clone()).unwrap(), clock, options)
}

#[test]
fn a_longer_window_has_the_past_from_its_alteration_on_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (store, clock, options) = with_clock(dir.path());
    let window = |seconds| Keep::Window(Duration::from_secs(seconds));
    let table = store.create_bytes_table("t", TableRules::default().keep(window(60))).unwrap();
    let mut seqs = Vec::new();
    for round in 0..30u32 {
        table.put(b"k", &value(0, round)).unwrap();
        seqs.push(store.last_seq());
        clock.pass(10_000);
    }
    store.flush().unwrap();
    table.compact().unwrap(); // all but the last minute is folded
    table.alter(|rules| rules.keep(window(3600))).unwrap();
    let past = |table: &BytesTable, round: usize| table.get_at(b"k", AsOf::Seq(seqs[round]));
    let old = |table: &BytesTable| {
        let refused = past(table, 5).unwrap_err();
        assert!(refused.message().contains("keeps window:1h"), "{refused}");
        assert_eq!(past(table, 27).unwrap(), Some(value(0, 27)), "the old window had it");
    };
    old(&table);
    clock.pass(600_000); // far beyond the old window
    table.put(b"k", &value(0, 99)).unwrap();
    store.flush().unwrap();
    table.compact().unwrap();
    old(&table);
    let path = store.path().to_owned();
    drop((table, store));
    let store = Store::open(&path, options).unwrap();
    old(&store.bytes_table("t").unwrap());
}

#[test]
fn a_shorter_window_and_fewer_versions_forget_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (store, clock, _) = with_clock(dir.path());
    let window = |seconds| Keep::Window(Duration::from_secs(seconds));
    let windowed = store.create_bytes_table("w", TableRules::default().keep(window(3600))).unwrap();
    let versioned = store.create_bytes_table("v", TableRules::default().keep(Keep::Versions(5))).unwrap();
    for round in 0..10u32 {
        windowed.put(b"k", &value(0, round)).unwrap();
        versioned.put(b"k", &value(0, round)).unwrap();
        clock.pass(60_000);
    }
    assert_eq!(windowed.history(b"k", 99).unwrap().len(), 10);
    windowed.alter(|rules| rules.keep(window(90))).unwrap();
    versioned.alter(|rules| rules.keep(Keep::Versions(2))).unwrap();
    for _ in 0..2 {
        assert_eq!(windowed.history(b"k", 99).unwrap().len(), 2);
        assert_eq!(versioned.history(b"k", 99).unwrap().len(), 2);
        assert_eq!(versioned.get(b"k").unwrap(), Some(value(0, 9)));
        store.flush().unwrap();
        windowed.compact().unwrap();
        versioned.compact().unwrap();
    }
}

#[test]
fn another_lifetime_is_that_of_later_writes() {
    for rules in [TableRules::new(KeyCodec::Bytes), TableRules::hashed(KeyCodec::Bytes)] {
        let dir = tempfile::tempdir().unwrap();
        let (store, clock, _) = with_clock(dir.path());
        let rules = rules.expire(Expire::After(Duration::from_secs(60)));
        let table = store.create_bytes_table("t", rules).unwrap();
        table.put(b"before", b"x").unwrap();
        table.alter(|rules| rules.expire(Expire::After(Duration::from_secs(600)))).unwrap();
        table.put(b"after", b"x").unwrap();
        let table = table.with_lifetime(Lifetime::For(Duration::from_secs(5)));
        table.put(b"own", b"x").unwrap();
        let alive = |key: &[u8]| table.contains(key).unwrap();
        clock.pass(59_000);
        assert_eq!((alive(b"before"), alive(b"after"), alive(b"own")), (true, true, false));
        clock.pass(2_000);
        assert_eq!((alive(b"before"), alive(b"after")), (false, true));
        clock.pass(600_000);
        assert!(!alive(b"after"));
        let refused = table.alter(|rules| rules.expire(Expire::Never)).unwrap_err();
        assert!(refused.message().contains("`expire`"), "{refused}");
    }
}

#[test]
fn a_hashed_table_is_altered_in_what_it_has() {
    let (_dir, store) = fresh(small_values().disk_reserve_bytes(0));
    let table = store.create_bytes_table("t", TableRules::hashed(KeyCodec::Bytes)).unwrap();
    table.put(b"before", &[1; 500]).unwrap();
    assert_eq!(table.alter(|rules| rules.block_bytes(16_384)).unwrap().len(), 1);
    table.put(b"after", &[2; 500]).unwrap();
    let refused = table.alter(|rules| rules.summaries(true)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
    let refused = table.alter(|rules| rules.value_placement(ValuePlacement::Files)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::RulesMismatch, "{refused}");
    assert!(refused.message().contains("`value_placement`"), "{refused}");
    let path = store.path().to_owned();
    drop((table, store));
    let store = Store::open(&path, small_values()).unwrap();
    let table = store.bytes_table("t").unwrap();
    assert_eq!(table.get(b"before").unwrap(), Some(vec![1; 500]));
    assert_eq!(table.get(b"after").unwrap(), Some(vec![2; 500]));
    assert_eq!(outdated(&table), 0);
}

#[test]
fn threads_that_alter_at_once_lose_nothing_of_each_other() {
    let (_dir, store) = fresh(options());
    let table = store.create_bytes_table("t", TableRules::default()).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            for bytes in 0..40 {
                table.alter(|rules| rules.block_bytes(1024 + bytes)).unwrap();
            }
        });
        scope.spawn(|| {
            for bits in 0..20 {
                table.alter(|rules| rules.filter_bits(bits)).unwrap();
            }
        });
        scope.spawn(|| {
            for round in 0..3 {
                fill(&store, &table, round);
            }
        });
    });
    let text = text_of(&store, "t");
    assert!(text.contains("block_bytes=1063\n") && text.contains("filter_bits=19\n"), "{text}");
    assert_eq!(text_of(&reopened(store), "t"), text);
}

#[test]
fn a_secondary_sees_altered_rules_once_it_is_refreshed() {
    let (_dir, store) = fresh(options());
    let table = store.create_bytes_table("t", TableRules::default()).unwrap();
    let reader = Store::open_secondary(store.path(), options()).unwrap();
    table.alter(|rules| rules.separate(100)).unwrap();
    table.put(b"k", &[7; 200]).unwrap();
    assert!(!text_of(&reader, "t").contains("separate"));
    let reader = reader.refresh().unwrap();
    assert!(text_of(&reader, "t").contains("separate=100"));
    assert_eq!(reader.bytes_table("t").unwrap().get(b"k").unwrap(), Some(vec![7; 200]));
}

/// Whether a store that is open has no damaged file: a copy of it is verified.
trait VerifyNow {
    fn verify_now_is_clean(&self) -> bool;
}

impl VerifyNow for Store {
    fn verify_now_is_clean(&self) -> bool {
        let place = tempfile::tempdir().unwrap();
        let backups = place.path().join("backups");
        self.backup(&backups, &BackupOptions::default()).unwrap();
        let copy = place.path().join("copy.folddb");
        Store::restore(&backups, &copy, &RestoreOptions::default(), &options()).unwrap();
        let how = VerifyOptions::default().deep(true);
        Store::verify(&copy, &how, &options()).unwrap().findings.is_empty()
    }
}

#[test]
fn readers_of_the_past_go_on_when_other_rules_are_altered() {
    let dir = tempfile::tempdir().unwrap();
    let (store, clock, _) = with_clock(dir.path());
    let window = |seconds| Keep::Window(Duration::from_secs(seconds));
    let table = store.create_bytes_table("t", TableRules::default().keep(window(3600))).unwrap();
    table.put(b"k", &value(0, 1)).unwrap();
    let then = store.last_seq();
    clock.pass(3_000_000); // 50 minutes
    table.put(b"k", &value(0, 2)).unwrap();
    let past = store.snapshot_at(AsOf::Seq(then)).unwrap();
    let read = || past.table(&table).get(b"k").unwrap();
    assert_eq!(read(), Some(value(0, 1)));
    clock.pass(1_200_000); // the window ends after it, and it is held
    table.put(b"k", &value(0, 3)).unwrap();
    table.alter(|rules| rules.block_bytes(1024)).unwrap();
    assert_eq!(read(), Some(value(0, 1)));
    store.flush().unwrap();
    table.compact().unwrap();
    assert_eq!(read(), Some(value(0, 1)));
}
