//! Hashed tables: an index in memory, one read for a get, and everything else that a store
//! promises.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;

use common::{drain, small_values as options};
use folddb::maintenance::VerifyOptions;
use folddb::{BackgroundWork, Durability, ErrorKind, RecordOp, RecordValue, Rules, Store, Table, WriteOp};

fn blobs(store: &Store) -> Table<u64, Vec<u8>> {
    store.table("blobs", Rules::hashed::<u64, Vec<u8>>()).unwrap()
}

fn blob(key: u64, round: u64) -> Vec<u8> {
    vec![(key * 7 + round) as u8; (key as usize * 37 + round as usize * 11) % 900]
}

fn check(table: &Table<u64, Vec<u8>>, expected: &BTreeMap<u64, Vec<u8>>, keys: u64) {
    for key in 0..keys {
        assert_eq!(table.get(&key).unwrap().as_ref(), expected.get(&key), "key {key}");
        assert_eq!(table.contains(&key).unwrap(), expected.contains_key(&key), "key {key}");
    }
    let rows: BTreeMap<u64, Vec<u8>> = table.scan().into_iter().map(|row| row.unwrap()).collect();
    assert_eq!(&rows, expected);
    assert_eq!(table.scan().count().unwrap(), expected.len() as u64);
}

#[test]
fn what_was_set_inserted_and_deleted_is_there_after_a_close_a_death_and_a_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let mut store = Store::create(&path, options()).unwrap();
    let mut expected = BTreeMap::new();
    for round in 0..8 {
        let table = blobs(&store);
        for key in 0..300 {
            match (key + round) % 5 {
                0 => {
                    table.delete(&key).unwrap();
                    expected.remove(&key);
                }
                1 => {
                    table.put_if_absent(&key, &blob(key, round)).unwrap();
                    expected.entry(key).or_insert_with(|| blob(key, round));
                }
                _ => {
                    table.put(&key, &blob(key, round)).unwrap();
                    expected.insert(key, blob(key, round));
                }
            }
            if key == 150 && round % 2 == 1 {
                store.flush().unwrap();
            }
        }
        check(&table, &expected, 310);
        match round % 3 {
            0 => store.close().unwrap(),
            1 => drop((table, store)),
            _ => {
                drop(table);
                drain(&store);
                store.sync().unwrap();
                drop(store);
            }
        }
        store = Store::open(&path, options()).unwrap();
        check(&blobs(&store), &expected, 310);
    }
    store.close().unwrap();
    let looking = Store::open_read_only(&path, options()).unwrap();
    check(&blobs(&looking), &expected, 310);
}

#[test]
fn a_get_of_a_key_that_is_there_is_one_read_and_of_one_that_is_not_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let table = blobs(&store);
    (0..500).for_each(|key| {
        table.put(&key, &blob(key, 0)).unwrap();
    });
    assert_eq!(store.stats().reads.value_heads, 0, "a new key is looked for in memory only");
    store.close().unwrap();
    let store = Store::open(&path, options()).unwrap();
    let table = blobs(&store);
    for key in 0..500 {
        assert_eq!(table.get(&key).unwrap(), Some(blob(key, 0)));
    }
    assert_eq!(store.stats().reads.values, 500);
    (500..2000).for_each(|key| assert_eq!(table.get(&key).unwrap(), None));
    assert_eq!((store.stats().reads.values, store.stats().reads.value_heads), (500, 0));
    // A head is one small read; so is the lookup of a write for the value that it replaces.
    let head = table.head(&77).unwrap().unwrap();
    assert_eq!((head.size_bytes, head.is_separated), (blob(77, 0).len() as u64, true));
    assert!(table.contains(&78).unwrap());
    table.put(&79, &blob(79, 1)).unwrap();
    assert_eq!((store.stats().reads.values, store.stats().reads.value_heads), (500, 3));
}

#[test]
fn folds_are_resolved_when_they_are_written_and_the_first_insert_wins() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let sums = store.table("sums", Rules::hashed::<String, i64>().fold("sum:i64").delete_when(&0)).unwrap();
    sums.fold("a", &5).unwrap();
    sums.fold("a", &6).unwrap();
    sums.put_if_absent("b", &1).unwrap();
    sums.put_if_absent("b", &2).unwrap();
    assert_eq!((sums.get("a").unwrap(), sums.get("b").unwrap()), (Some(11), Some(1)));
    sums.fold("a", &-11).unwrap();
    assert_eq!((sums.get("a").unwrap(), sums.scan().count().unwrap()), (None, 1), "a sum of 0 is absent");
    // All ops of a batch on one key, one after the other.
    let mut batch = store.batch();
    batch
        .fold(&sums, "b", &10)
        .put_if_absent(&sums, "b", &99)
        .delete(&sums, "c")
        .put_if_absent(&sums, "c", &7);
    batch.fold(&sums, "c", &1).put(&sums, "d", &3).delete(&sums, "d").fold(&sums, "e", &4);
    let before = store.last_seq();
    let last = batch.commit(Durability::Process).unwrap();
    assert_eq!(u64::from(last), u64::from(before) + 8, "each op has its seq");
    let all = ["b", "c", "d", "e"].map(|key| sums.get(key).unwrap());
    assert_eq!(all, [Some(11), Some(8), None, Some(4)]);
}

#[test]
fn a_snapshot_sees_what_was_and_batches_of_both_kinds_of_tables_are_whole() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let table = blobs(&store);
    let sorted = store.table("sorted", Rules::sorted::<u64, u64>()).unwrap();
    let mut snapshots = Vec::new();
    for round in 0..6 {
        let mut batch = store.batch();
        for key in 0..100 {
            if key % 6 == round {
                batch.delete(&table, &key);
            } else {
                batch.put(&table, &key, &blob(key, round));
            }
            batch.put(&sorted, &key, &round);
        }
        batch.commit(Durability::Process).unwrap();
        snapshots.push(store.snapshot());
        if round == 3 {
            store.flush().unwrap();
            drain(&store);
        }
    }
    for (round, snapshot) in (0..).zip(&snapshots) {
        for key in 0..100 {
            let expected = (key % 6 != round).then(|| blob(key, round));
            assert_eq!(snapshot.get(&table, &key).unwrap(), expected, "key {key} of round {round}");
            assert_eq!(snapshot.get(&sorted, &key).unwrap(), Some(round));
        }
        let rows = snapshot.scan(&table).into_iter().filter(|row| row.is_ok()).count() as u64;
        assert_eq!(rows, (0..100).filter(|key| key % 6 != round).count() as u64);
    }
    drop(snapshots);
    drain(&store);
    let rows = table.scan().into_iter().filter(|row| row.is_ok()).count();
    assert_eq!(rows, (0..100).filter(|key| key % 6 != 5).count());
}

#[test]
fn what_a_hashed_table_cannot_do_is_refused_with_what_to_use_instead() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let table = blobs(&store);
    table.put(&1, &blob(1, 0)).unwrap();
    let refused = |result: folddb::Result<()>, what: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{what}");
        assert!(error.message().contains("sorted"), "{what}: {error}");
    };
    let first = |scan: folddb::Scan<u64, Vec<u8>>| scan.into_iter().next().unwrap().map(drop);
    refused(first(table.scan().from(&1)), "from");
    refused(first(table.scan().through(&1)), "through");
    refused(first(table.scan().reverse()), "reverse");
    let same =
        table.as_bytes().scan().compare(table.as_bytes().scan(), |_| std::ops::ControlFlow::Continue(()));
    refused(same.map(drop), "compare");
    refused(table.delete_range(&0, &5).map(drop), "delete_range");
    let made = |rules: folddb::table_rules::TableRules| store.create_bytes_table("other", rules).map(drop);
    let hashed = || Rules::hashed::<u64, Vec<u8>>();
    refused(made(hashed().reversed().as_table_rules().clone()), "reversed");
    refused(made(hashed().head(folddb::HeadRule::First(8)).as_table_rules().clone()), "heads");
    assert_eq!(
        made(hashed().separate(2048).as_table_rules().clone()).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    // What a hashed table cannot have, each with the reason and what to do instead.
    let plain = || hashed().as_table_rules().clone();
    for (rules, words) in [
        (plain().order("reversed"), "a hashed table has no order of keys; use a sorted table for one"),
        (
            plain().keep(folddb::Keep::Forever),
            "a hashed table keeps only a few of the newest versions of each key; give keep=versions:N up to 16, or use a sorted \
             table for more history",
        ),
        (plain().summaries(true), "a hashed table has no ranges; leave `summaries` out"),
        (plain().archive_log(true), "a hashed table is rebuilt from its values; leave `archive_log` out"),
        (
            plain().separate(Some(2048)),
            "a hashed table keeps all of its separated values; leave `separate` out",
        ),
        (
            plain().head(folddb::HeadRule::First(8)),
            "a hashed table keeps no heads in memory; use a sorted table with `separate` for heads of your own",
        ),
    ] {
        let error = made(rules).unwrap_err();
        assert!(error.message().ends_with(words), "{error}, and not {words}");
    }
    // The same name under another kind.
    let error = store.table("blobs", Rules::sorted::<u64, Vec<u8>>()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RulesMismatch);
}

#[test]
fn segments_of_dead_values_go_and_what_is_read_meanwhile_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let table = blobs(&store);
    let keep = store.snapshot();
    (0..100).for_each(|key| {
        table.put(&key, &blob(key, 0)).unwrap();
    });
    let past = store.snapshot();
    for round in 1..60 {
        (0..100).for_each(|key| {
            table.put(&key, &blob(key, round)).unwrap();
        });
        if round % 10 == 0 {
            store.flush().unwrap();
            drain(&store);
        }
    }
    (0..100).for_each(|key| assert_eq!(past.get(&table, &key).unwrap(), Some(blob(key, 0))));
    let before = store.stats();
    drop((keep, past));
    store.flush().unwrap();
    table.put(&1, &blob(1, 59)).unwrap();
    store.flush().unwrap();
    drain(&store);
    let stats = store.stats();
    assert!(stats.background.value_segments_reclaimed > 4, "{stats:?}");
    assert!(stats.disk.value_segments < before.disk.value_segments, "{stats:?}");
    (0..100).for_each(|key| assert_eq!(table.get(&key).unwrap(), Some(blob(key, 59))));
    drop((table, store));
    let store = Store::open(&path, options()).unwrap();
    (0..100).for_each(|key| assert_eq!(blobs(&store).get(&key).unwrap(), Some(blob(key, 59))));
    store.drop_table("blobs").unwrap();
    store.create_bytes_table("other", folddb::table_rules::TableRules::replace()).unwrap();
    drain(&store);
    store.close().unwrap();
    let store = Store::open(&path, options()).unwrap();
    assert_eq!((store.stats().disk.value_segments, store.tables()), (0, vec!["other".to_owned()]));
}

#[test]
fn an_index_larger_than_its_memory_is_read_again_and_does_not_fail() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let options = || options().tuning(|t| t.index_bytes_max(Some(1)));
    let store = Store::create(&path, options()).unwrap();
    let table = blobs(&store);
    for round in 0..4 {
        (0..3000).for_each(|key| {
            table.put(&key, &blob(key % 50, round)).unwrap();
        });
        store.flush().unwrap();
        drain(&store);
        let keys = [0, 77, 1400, 2999];
        keys.iter().for_each(|key| assert_eq!(table.get(key).unwrap(), Some(blob(key % 50, round))));
        assert!(table.get(&5000).unwrap().is_none());
    }
    let stats = store.stats();
    assert!(stats.reads.index_loads > 0 && stats.background.indexes_saved > 0, "{stats:?}");
    assert_eq!(table.scan().count().unwrap(), 3000);
    store.close().unwrap();
    let store = Store::open(&path, options().tuning(|t| t.lock_in_memory(true))).unwrap();
    (0..3000).for_each(|key| assert_eq!(blobs(&store).get(&key).unwrap(), Some(blob(key % 50, 3))));
}

#[test]
fn bytes_tables_write_and_read_them_too() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let rules = folddb::table_rules::TableRules::ready_made("blobs").unwrap();
    let table = store.create_bytes_table("blobs", rules).unwrap();
    table.write(WriteOp::Put, b"k", b"v").unwrap();
    table.write(WriteOp::Put, b"", &vec![7; 5 << 20]).unwrap();
    assert_eq!(table.get(b"k").unwrap().unwrap(), b"v");
    assert_eq!(table.get(b"").unwrap().unwrap(), vec![7; 5 << 20]);
    assert_eq!(table.explain(b"k").unwrap().len(), 1);
    assert_eq!(table.operands(b"k").unwrap(), [RecordOp::Put(RecordValue::Inline(b"v".to_vec()))]);
    let mut keys = Vec::new();
    let mut rows = table.scan().keys_only().rows().unwrap();
    while let Some((key, value)) = rows.next_row().unwrap() {
        assert!(value.is_empty());
        keys.push(key.to_vec());
    }
    keys.sort();
    assert_eq!(keys, [b"".to_vec(), b"k".to_vec()]);
    assert_eq!(store.bytes_table("blobs").unwrap().stats().unwrap().records, 2);
    store.bytes_table("blobs").unwrap().compact().unwrap();
}

/// A store with a table of each kind, saved once and written to since.
fn a_store(path: &std::path::Path) -> BTreeMap<u64, Vec<u8>> {
    let store = Store::create(path, options()).unwrap();
    let table = blobs(&store);
    let sorted = store.table("sorted", Rules::sorted::<u64, u64>()).unwrap();
    let mut expected = BTreeMap::new();
    for round in 0..3 {
        for key in 0..200 {
            if (key + round) % 7 == 0 {
                table.delete(&key).unwrap();
                expected.remove(&key);
            } else {
                table.put(&key, &blob(key, round)).unwrap();
                expected.insert(key, blob(key, round));
            }
            sorted.put(&key, &round).unwrap();
        }
        if round < 2 {
            store.flush().unwrap();
        }
    }
    store.sync().unwrap();
    expected
}

fn find(path: &std::path::Path, suffix: &str) -> std::path::PathBuf {
    let names = std::fs::read_dir(path).unwrap().flatten().map(|entry| entry.path());
    names.filter(|name| name.to_string_lossy().ends_with(suffix)).max().unwrap()
}

fn flip(path: &std::path::Path, at: u64) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at as usize] ^= 0x40;
    std::fs::write(path, bytes).unwrap();
}

fn index_files(path: &std::path::Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let names = std::fs::read_dir(path).unwrap().flatten().map(|entry| entry.path());
    let mut found: Vec<_> =
        names.filter(|name| name.extension().is_some_and(|kind| kind == "index")).collect();
    found.sort();
    found.into_iter().map(|name| (name.clone(), std::fs::read(name).unwrap())).collect()
}

#[test]
fn what_came_after_a_checkpoint_is_saved_by_itself_crash_after_crash() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let mut expected = BTreeMap::new();
    let keys = 12_000;
    {
        let store = Store::create(&path, options()).unwrap();
        let table = blobs(&store);
        let mut batch = store.batch();
        for key in 0..keys {
            batch.put(&table, &key, &vec![1; 20]);
            expected.insert(key, vec![1; 20]);
        }
        batch.commit(Durability::Process).unwrap();
        drop(table);
        store.close().unwrap();
    }
    let checkpoint = index_files(&path);
    assert_eq!(checkpoint.len(), 1);
    for round in 0..4u64 {
        let store = Store::open(&path, options()).unwrap();
        let table = blobs(&store);
        for key in (round * 40..round * 40 + 60).chain(keys + round * 10..keys + round * 10 + 10) {
            match key % 4 {
                0 => {
                    table.delete(&key).unwrap();
                    expected.remove(&key);
                }
                _ => {
                    table.put(&key, &blob(key, round)).unwrap();
                    expected.insert(key, blob(key, round));
                }
            }
        }
        drop((table, store)); // its process dies
        drop(Store::open(&path, options()).unwrap()); // and nothing is written after it
        let files = index_files(&path);
        assert_eq!(files.len(), 2, "round {round}: the checkpoint, and what came after it");
        assert_eq!(files[0], checkpoint[0], "round {round}: the checkpoint is as it was");
        let bytes = files[1].1.len() as u64;
        assert!((1_000 * (round + 1)..2_500 * (round + 1)).contains(&bytes), "round {round}: {bytes} bytes");
        let looked = Store::verify(&path, &VerifyOptions::default().deep(true), &options()).unwrap();
        assert!(looked.findings.is_empty(), "round {round}: {:?}", looked.findings);
    }
    let looking = Store::open_read_only(&path, options()).unwrap();
    check(&blobs(&looking), &expected, keys + 50);
    drop(looking);
    // A backup has both files.
    let store = Store::open(&path, options()).unwrap();
    let backups = dir.path().join("backups");
    store.backup(&backups, &folddb::maintenance::BackupOptions::default().check_all(true)).unwrap();
    drop(store);
    let restored = dir.path().join("restored");
    Store::restore(&backups, &restored, &folddb::maintenance::RestoreOptions::default(), &options()).unwrap();
    check(&blobs(&Store::open(&restored, options()).unwrap()), &expected, keys + 50);
    // Damage of the changes is damage, and is repaired from the checkpoint and the values.
    let later = index_files(&path)[1].clone();
    flip(&later.0, 100);
    assert_eq!(Store::open(&path, options()).unwrap_err().kind(), ErrorKind::Corruption);
    assert!(!Store::verify(&path, &VerifyOptions::default(), &options()).unwrap().is_clean());
    let mended = dir.path().join("mended");
    let how = folddb::maintenance::RepairOptions::default();
    Store::repair(&path, &mended, &how, &options()).unwrap();
    let store = Store::open(&mended, options()).unwrap();
    for (key, value) in &expected {
        assert_eq!(blobs(&store).get(key).unwrap().as_ref(), Some(value), "key {key}");
    }
    drop(store);
    std::fs::write(&later.0, &later.1).unwrap();
    // Many changes at once are saved as the whole index, with the next checkpoint.
    let store = Store::open(&path, options()).unwrap();
    for key in 0..3_000 {
        blobs(&store).put(&key, &blob(key, 9)).unwrap();
        expected.insert(key, blob(key, 9));
    }
    drop(store);
    let store = Store::open(&path, options()).unwrap();
    assert_eq!(index_files(&path).len(), 1);
    check(&blobs(&store), &expected, keys + 50);
    blobs(&store).put(&1, &blob(1, 10)).unwrap();
    drop(store);
    let store = Store::open(&path, options()).unwrap();
    assert_eq!(index_files(&path).len(), 2);
    blobs(&store).put(&2, &blob(2, 10)).unwrap();
    store.flush().unwrap();
    assert_eq!(index_files(&path).len(), 1, "a checkpoint has them");
    store.close().unwrap();
    assert!(
        Store::verify(&path, &VerifyOptions::default().deep(true), &options()).unwrap().findings.is_empty()
    );
}

#[test]
fn backups_and_dumps_have_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let expected = a_store(&path);
    let store = Store::open(&path, options()).unwrap();
    let table = blobs(&store);
    table.put(&1000, &blob(1000, 0)).unwrap();
    let at = store.last_seq();
    let mut expected = expected;
    expected.insert(1000, blob(1000, 0));
    expected.insert(1001, blob(1001, 0));
    table.put(&1001, &blob(1001, 0)).unwrap();
    let backups = dir.path().join("backups");
    store.backup(&backups, &folddb::maintenance::BackupOptions::default().check_all(true)).unwrap();
    table.delete(&1000).unwrap();
    let restored = dir.path().join("restored");
    Store::restore(&backups, &restored, &folddb::maintenance::RestoreOptions::default(), &options()).unwrap();
    let again = Store::open(&restored, options()).unwrap();
    check(&blobs(&again), &expected, 1010);
    again.close().unwrap();
    assert!(
        Store::verify(&restored, &VerifyOptions::default().deep(true), &options())
            .unwrap()
            .findings
            .is_empty()
    );
    // Values that the index had led to by then may be gone: there is no restore to an earlier end.
    let what = folddb::maintenance::RestoreOptions::default().at_seq(Some(at));
    assert!(Store::restore(&backups, dir.path().join("no"), &what, &options()).is_err());
    expected.remove(&1000);
    let mut text = Vec::new();
    let report = store.dump(&[], &mut text).unwrap();
    assert_eq!(report.records, 200 + expected.len() as u64);
    let loaded = Store::create(dir.path().join("loaded"), options()).unwrap();
    loaded.load(&mut &text[..], &Default::default()).unwrap();
    check(&blobs(&loaded), &expected, 1010);
}

#[test]
fn a_check_calls_a_store_intact_and_reports_a_damaged_index_and_value() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    a_store(&path);
    let look = |deep| Store::verify(&path, &VerifyOptions::default().deep(deep), &options()).unwrap();
    assert!(look(true).findings.is_empty() && look(false).findings.is_empty(), "{:?}", look(true).findings);
    let index = find(&path, ".index");
    let bytes = std::fs::read(&index).unwrap();
    flip(&index, 3);
    let found = look(true);
    assert!(found.findings.iter().any(|finding| index.ends_with(&finding.file) && finding.offset == Some(0)));
    std::fs::write(&index, &bytes).unwrap();
    std::fs::remove_file(&index).unwrap();
    assert!(!look(false).is_clean());
    let error = Store::open(&path, options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    std::fs::write(&index, &bytes).unwrap();
    for entry in std::fs::read_dir(&path).unwrap().flatten() {
        let len = entry.metadata().unwrap().len();
        if entry.path().extension().is_some_and(|kind| kind == "values") {
            (14..len / 300).for_each(|at| flip(&entry.path(), at * 300));
        }
    }
    let found = look(true);
    assert!(found.damage().count() > 0, "{:?}", found.findings);
}

#[test]
fn everything_intact_is_salvaged_even_if_the_index_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let expected = a_store(&path);
    let mend = |name: &str| {
        let to = dir.path().join(name);
        let how = folddb::maintenance::RepairOptions::default();
        let report = Store::repair(&path, &to, &how, &options()).unwrap();
        assert!(report.verified.is_clean(), "{:?}", report.verified.findings);
        (report, Store::open(&to, options()).unwrap())
    };
    let (report, store) = mend("whole");
    assert!(report.is_complete(), "{:?}", report.findings);
    check(&blobs(&store), &expected, 210);
    let sorted = store.table("sorted", Rules::sorted::<u64, u64>()).unwrap();
    assert_eq!(sorted.get(&7).unwrap(), Some(2));
    drop(store);
    // Without its index the values themselves show what there is, but no delete before the
    // beginning of the log.
    std::fs::remove_file(find(&path, ".index")).unwrap();
    let (report, store) = mend("rebuilt");
    assert!(!report.is_complete());
    let table = blobs(&store);
    for (key, value) in &expected {
        assert_eq!(table.get(key).unwrap().as_ref(), Some(value), "key {key}");
    }
    for key in 0..200u64 {
        if (key + 2) % 7 == 0 {
            assert_eq!(table.get(&key).unwrap(), None, "the log tells of the delete of key {key}");
        }
    }
    table.put(&3, &blob(3, 9)).unwrap();
    store.close().unwrap();
}

#[test]
fn a_walk_is_interrupted_and_resumed_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let expected = a_store(&path);
    let mut found = BTreeMap::new();
    let mut cursor: Option<folddb::Cursor> = None;
    loop {
        let store = Store::open(&path, options()).unwrap();
        let table = blobs(&store);
        let scan = match &cursor {
            None => table.scan(),
            Some(cursor) => table.resume(cursor, folddb::Resume::Relaxed).unwrap(),
        };
        let mut rows = scan.limit(23).into_iter();
        let before = found.len();
        for row in &mut rows {
            let (key, value) = row.unwrap();
            assert!(found.insert(key, value).is_none(), "key {key} comes once");
        }
        cursor = rows.cursor();
        if found.len() == before {
            break;
        }
    }
    assert_eq!(found, expected);
}

#[test]
fn writers_and_readers_meet_and_batches_stay_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let options =
        || options().background(BackgroundWork::Threads).tuning(|t| t.index_bytes_max(Some(300 << 10)));
    let store = Store::create(&path, options()).unwrap();
    let sums = store.table("sums", Rules::hashed::<u64, u64>().fold("sum:u64")).unwrap();
    let twins = store.table("twins", Rules::hashed::<u64, Vec<u8>>()).unwrap();
    let (writers, rounds, keys) = (4, 400, 16);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writing: Vec<_> = (0..writers)
            .map(|writer| {
                let (store, sums, twins) = (&store, &sums, &twins);
                scope.spawn(move || {
                    for round in 0..rounds {
                        let mut batch = store.batch();
                        let key = (writer * 7 + round) % keys;
                        batch.fold(sums, &key, &1).fold(sums, &(key + 100), &1);
                        let value = vec![(round % 251) as u8; (round as usize * 13) % 3000];
                        batch.put(twins, &(2 * writer), &value).put(twins, &(2 * writer + 1), &value);
                        batch.commit(Durability::Process).unwrap();
                        if round % 100 == 50 {
                            store.flush().unwrap();
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let past = store.snapshot();
                for writer in 0..writers {
                    let twin = |at: u64| past.get(&twins, &(2 * writer + at)).unwrap();
                    assert_eq!(twin(0), twin(1), "a snapshot sees whole batches");
                }
                for key in 0..keys {
                    let of = |key: u64| past.get(&sums, &key).unwrap();
                    assert_eq!(of(key), of(key + 100));
                    // What is read later is no older.
                    let now = sums.get(&key).unwrap();
                    assert!(sums.get(&(key + 100)).unwrap() >= now && now >= of(key));
                }
            }
        });
        writing.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let total = |table: &Table<u64, u64>| table.scan().into_iter().map(|row| row.unwrap().1).sum::<u64>();
    assert_eq!(total(&sums), 2 * writers * rounds, "no fold is lost");
    store.close().unwrap();
    assert!(
        Store::verify(&path, &VerifyOptions::default().deep(true), &options()).unwrap().findings.is_empty()
    );
    let store = Store::open(&path, options()).unwrap();
    assert_eq!(
        total(&store.table("sums", Rules::hashed::<u64, u64>().fold("sum:u64")).unwrap()),
        2 * writers * rounds
    );
}
