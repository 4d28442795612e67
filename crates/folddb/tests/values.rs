//! Separated values: written once, read by one read, and not touched by operations that do not need
//! them.

mod common;

use std::io::Read;
use std::os::unix::fs::FileExt;

use common::small;
use folddb::codec::KeyCodec;
use folddb::maintenance::{RepairOptions, Severity, VerifyOptions};
use folddb::table_rules::TableRules;
use folddb::{
    BackgroundWork, Durability, ErrorKind, HeadRule, Locate, LocatedPiece, Options, Rules, Store, Table,
    WriteOp,
};

fn options() -> Options {
    small().tuning(|t| t.part_bytes(64 << 10))
}

fn blobs(store: &Store) -> Table<u64, Vec<u8>> {
    store.table("blobs", Rules::sorted::<u64, Vec<u8>>().separate(2048)).expect("the table")
}

fn blob(key: u64, round: u64) -> Vec<u8> {
    let byte = (key * 7 + round) as u8;
    vec![byte; 2048 + (key as usize * 37 + round as usize) % 5000]
}

fn fill(table: &Table<u64, Vec<u8>>, keys: u64, round: u64) {
    for key in 0..keys {
        table.put(&key, &blob(key, round)).expect("written");
    }
}

fn files(dir: &std::path::Path, suffix: &str) -> usize {
    let names = std::fs::read_dir(dir).expect("a store").flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_string_lossy().ends_with(suffix)).count()
}

#[test]
fn values_come_back_from_memory_from_runs_and_after_reopening_with_and_without_close() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let table = blobs(&store);
    let check = |table: &Table<u64, Vec<u8>>, round: u64| {
        for key in 0..200 {
            assert_eq!(table.get(&key).unwrap(), Some(blob(key, round)), "key {key}");
        }
        let rows: Vec<_> = table.scan().into_iter().map(|row| row.unwrap()).collect();
        assert!(rows.iter().all(|(key, value)| *value == blob(*key, round)) && rows.len() == 200);
        let back: Vec<_> = table.scan().reverse().into_iter().map(|row| row.unwrap().0).collect();
        assert!(back.is_sorted_by(|a, b| a > b) && back.len() == 200);
    };
    fill(&table, 200, 0);
    check(&table, 0);
    store.flush().unwrap();
    check(&table, 0);
    fill(&table, 200, 1);
    drop((table, store)); // only the log has the rest
    let store = Store::open(&path, options()).unwrap();
    check(&blobs(&store), 1);
    fill(&blobs(&store), 200, 2);
    store.bytes_table("blobs").unwrap().compact().unwrap();
    check(&blobs(&store), 2);
    store.close().unwrap();
    let store = Store::open(&path, options()).unwrap();
    check(&blobs(&store), 2);
    store.close().unwrap();
    let report = Store::verify(&path, &VerifyOptions::default().deep(true), &options()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn keys_counts_and_whether_a_key_is_there_read_no_value() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let table = blobs(&store);
    fill(&table, 100, 0);
    for _ in 0..2 {
        let before = store.stats().reads.values;
        assert_eq!(table.scan().count().unwrap(), 100);
        assert!(table.contains(&7).unwrap() && !table.contains(&700).unwrap());
        let mut rows = table.as_bytes().scan().keys_only().rows().unwrap();
        while rows.next_row().unwrap().is_some() {}
        store.bytes_table("blobs").unwrap().compact().unwrap();
        assert_eq!(store.stats().reads.values, before);
        table.get(&7).unwrap().unwrap();
        assert_eq!(store.stats().reads.values, before + 1, "one read for a value");
        store.flush().unwrap();
    }
}

#[test]
fn merges_write_pointers_and_never_the_values_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options().tuning(|t| t.merge_factor(2))).unwrap();
    let table = blobs(&store);
    for round in 0..8 {
        fill(&table, 50, round);
        store.flush().unwrap();
    }
    store.settle().unwrap();
    let stats = store.stats();
    assert!(
        stats.background.merges > 0 && stats.background.part_bytes < stats.writes.value_bytes / 10,
        "{stats:?}"
    );
    assert!(
        stats.disk.value_live_bytes > 0 && stats.disk.value_live_bytes * 4 < stats.writes.value_bytes,
        "{stats:?}"
    );
    (0..50).for_each(|key| assert_eq!(table.get(&key).unwrap(), Some(blob(key, 7))));
}

#[test]
fn short_values_and_operands_stay_inline_and_fold_onto_those_that_are_separated() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let rules = Rules::sorted::<u64, Vec<u8>>().fold("append:,").separate(100);
    let table = store.table("lists", rules).unwrap();
    let long = vec![b'x'; 300];
    table.put(&1, &b"short".to_vec()).unwrap();
    assert_eq!(store.stats().writes.value_bytes, 0);
    table.put_if_absent(&2, &long).unwrap();
    table.put_if_absent(&2, &b"not this".to_vec()).unwrap();
    table.fold(&2, &b"more".to_vec()).unwrap();
    table.fold(&2, &b"and more".to_vec()).unwrap();
    let expected = [&long[..], b",more,and more"].concat();
    for _ in 0..3 {
        assert_eq!(table.get(&2).unwrap().as_ref(), Some(&expected));
        let row = |reverse: bool| {
            let scan = if reverse { table.scan().reverse() } else { table.scan() };
            scan.into_iter().find(|row| row.as_ref().is_ok_and(|(key, _)| *key == 2)).unwrap().unwrap().1
        };
        assert_eq!((row(false), row(true)), (expected.clone(), expected.clone()));
        store.flush().unwrap();
        store.bytes_table("lists").unwrap().compact().unwrap();
    }
    table.put(&2, &b"gone".to_vec()).unwrap();
    assert_eq!(table.get(&2).unwrap(), Some(b"gone".to_vec()));
}

#[test]
fn segments_that_nothing_points_to_go_at_the_next_opening_and_closed_ones_are_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let plain = store.table("plain", Rules::sorted::<u64, u64>()).unwrap();
    plain.put(&1, &1).unwrap();
    assert_eq!(files(&path, ".values"), 0, "a store that separates nothing has no value segment");
    fill(&blobs(&store), 10, 0);
    assert_eq!(files(&path, ".values"), 1);
    store.close().unwrap();
    let len = |path: &std::path::Path| {
        let values = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
        values
            .filter(|e| e.file_name().to_string_lossy().ends_with(".values"))
            .map(|e| e.metadata().unwrap().len())
            .sum::<u64>()
    };
    assert!(len(&path) < 100_000, "{}", len(&path));
    let store = Store::open(&path, options()).unwrap();
    store.drop_table("blobs").unwrap();
    store.close().unwrap();
    let store = Store::open(&path, options()).unwrap();
    assert_eq!(files(&path, ".values"), 0);
    assert_eq!(plain_of(&store), Some(1));
}

fn plain_of(store: &Store) -> Option<u64> {
    let plain = store.table("plain", Rules::sorted::<u64, u64>()).expect("the table");
    plain.get(&1).expect("read")
}

#[test]
fn a_damaged_value_is_an_error_that_names_table_key_file_and_offset() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let table = blobs(&store);
    fill(&table, 3, 0);
    store.close().unwrap();
    let values = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let values = values.into_iter().find(|path| path.extension().is_some_and(|e| e == "values")).unwrap();
    let mut bytes = std::fs::read(&values).unwrap();
    bytes[4096 + 24 + 8 + 1000] ^= 1;
    std::fs::write(&values, &bytes).unwrap();
    let store = Store::open(&path, options()).unwrap();
    let error = blobs(&store).get(&0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    for named in ["blobs", "key 0", ".values", "offset 4096"] {
        assert!(error.message().contains(named), "{error} names {named}");
    }
    assert_eq!(blobs(&store).get(&1).unwrap(), Some(blob(1, 0)), "other values are untouched");
    store.close().unwrap();
    let report = Store::verify(&path, &VerifyOptions::default().deep(true), &options()).unwrap();
    assert_eq!(report.damage().count(), 1, "{:?}", report.findings);
    std::fs::remove_file(&values).unwrap();
    let error = Store::open(&path, options()).unwrap_err();
    assert!(error.message().contains(".values"), "{error}");
}

#[test]
fn tables_that_ask_values_do_not_separate() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let rules = Rules::sorted::<u64, Vec<u8>>().delete_when(&b"".to_vec()).separate(2048);
    let error = store.table("asks", rules).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidInput && error.message().contains("inline"), "{error}");
    let error = store.table("tiny", Rules::sorted::<u64, Vec<u8>>().separate(1)).unwrap_err();
    assert!(error.message().contains("at least 32"), "{error}");
}

#[test]
fn a_backup_holds_the_values_and_a_store_restored_from_it_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    fill(&blobs(&store), 700, 0);
    store.sync().unwrap();
    store.flush().unwrap();
    fill(&blobs(&store), 50, 1);
    let backups = dir.path().join("backups");
    store.backup(&backups, &folddb::maintenance::BackupOptions::default().check_all(true)).unwrap();
    fill(&blobs(&store), 50, 2);
    store.close().unwrap();
    let restored = dir.path().join("restored");
    Store::restore(&backups, &restored, &folddb::maintenance::RestoreOptions::default(), &options()).unwrap();
    let report = Store::verify(&restored, &VerifyOptions::default().deep(true), &options()).unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    let store = Store::open(&restored, options()).unwrap();
    for key in 0..700 {
        assert_eq!(blobs(&store).get(&key).unwrap(), Some(blob(key, u64::from(key < 50))));
    }
}

#[test]
fn a_batch_over_several_tables_is_synced_with_its_values() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let (table, plain) = (blobs(&store), store.table("plain", Rules::sorted::<u64, u64>()).unwrap());
    let mut batch = store.batch();
    for key in 0..20 {
        batch.put(&table, &key, &blob(key, 3)).put(&plain, &key, &key);
    }
    batch.commit(Durability::Sync).unwrap();
    drop((table, plain, store));
    let looking = Store::open_read_only(&path, options()).unwrap();
    assert_eq!(blobs(&looking).get(&19).unwrap(), Some(blob(19, 3)));
    drop(looking);
    let store = Store::open(&path, options()).unwrap();
    assert_eq!(blobs(&store).get(&19).unwrap(), Some(blob(19, 3)));
}

/// leveled: HEAD next to GET. The head of a value is returned without reading the value, wherever
/// it is.
#[test]
fn a_head_reads_no_value() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let rules = Rules::sorted::<u64, Vec<u8>>().separate(2048).head(HeadRule::First(3));
    let table = store.table("objects", rules).unwrap();
    fill(&table, 100, 1);
    table.put(&500, &b"short".to_vec()).unwrap();
    for _ in 0..3 {
        let before = store.stats().reads.values;
        let mut heads = Vec::new();
        for key in 0..100 {
            let head = table.head(&key).unwrap().unwrap();
            assert_eq!((head.size_bytes, &head.bytes[..]), (blob(key, 1).len() as u64, &blob(key, 1)[..3]));
            assert!(head.is_separated && head.written.is_some());
            heads.push((key, head));
        }
        let short = table.head(&500).unwrap().unwrap();
        assert_eq!((short.size_bytes, &short.bytes[..], short.is_separated), (5, &b"sho"[..], false));
        assert_eq!(table.head(&501).unwrap(), None);
        heads.push((500, short));
        let scanned: Vec<_> = table.scan().heads().map(|row| row.unwrap()).collect();
        assert_eq!(scanned, heads);
        let mut reversed: Vec<_> =
            table.scan().reverse().limit(1000).heads().map(|row| row.unwrap()).collect();
        reversed.reverse();
        assert_eq!(reversed, heads);
        let snapshot = store.snapshot();
        let key = 7u64.to_be_bytes();
        assert_eq!(snapshot.table(table.as_bytes()).head(&key).unwrap().as_ref(), Some(&heads[7].1));
        assert_eq!(store.stats().reads.values, before, "no value was read");
        table.get(&7).unwrap().unwrap();
        assert_eq!(store.stats().reads.values, before + 1, "a get reads it");
        store.flush().unwrap();
        store.bytes_table("objects").unwrap().compact().unwrap();
    }
}

#[test]
fn a_head_changes_with_its_value_and_folds_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let options = options().custom_head("length", |_, value, out| out.push(value.len() as u8));
    let store = Store::create(dir.path().join("store"), options).unwrap();
    let rules = Rules::sorted::<u64, Vec<u8>>().fold("append:,").separate(100);
    let table = store.table("lists", rules.head(HeadRule::Named("length".to_owned()))).unwrap();
    let head = |key: u64| table.head(&key).unwrap().unwrap();
    table.put(&1, &vec![b'x'; 120]).unwrap();
    let first = head(1);
    assert_eq!((first.size_bytes, &first.bytes[..]), (120, &[120][..]));
    table.put(&1, &vec![b'y'; 120]).unwrap();
    assert!(head(1).hash != first.hash && head(1).size_bytes == 120);
    table.fold(&1, &b"z".to_vec()).unwrap();
    assert_eq!((head(1).size_bytes, &head(1).bytes[..], head(1).is_separated), (122, &[122][..], false));
    table.put(&1, &vec![b'x'; 120]).unwrap();
    assert_eq!(head(1).hash, first.hash, "the hash says nothing of when it was written, nor where");
    table.put(&1, &vec![b'x'; 20]).unwrap();
    let inline = head(1).hash;
    store.flush().unwrap();
    assert_eq!(head(1).hash, inline);
    table.delete(&1).unwrap();
    assert_eq!(table.head(&1).unwrap(), None);
}

#[test]
fn a_table_whose_head_function_is_not_at_hand_is_read_and_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options().custom_head("mine", |_, _, out| out.push(7))).unwrap();
    let rules = || Rules::sorted::<u64, Vec<u8>>().separate(100).head(HeadRule::Named("mine".to_owned()));
    store.table("t", rules()).unwrap().put(&1, &vec![1; 200]).unwrap();
    store.close().unwrap();
    let store = Store::open(&path, options()).unwrap();
    let table = store.table("t", rules()).unwrap();
    assert_eq!(table.get(&1).unwrap(), Some(vec![1; 200]));
    assert_eq!(table.head(&1).unwrap().unwrap().bytes, [7]);
    let refused = table.put(&2, &vec![1; 200]).unwrap_err();
    assert!(refused.kind() == ErrorKind::RulesMismatch && refused.message().contains("mine"), "{refused}");
    let other = store.table("t", Rules::sorted::<u64, Vec<u8>>().separate(100)).err().unwrap();
    assert!(other.message().contains("its heads are named:mine, not none"), "{other}");
}

/// Overwrites everything again and again: the segments of the first rounds have no live values.
fn overwrite(store: &Store, table: &Table<u64, Vec<u8>>, rounds: std::ops::Range<u64>) {
    for round in rounds {
        fill(table, 300, round);
        store.flush().expect("it works");
        store.bytes_table("blobs").expect("a table").compact().expect("it works");
    }
    while store.background_step().expect("it works").is_some() {}
}

#[test]
fn segments_of_dead_values_go_while_the_store_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let table = blobs(&store);
    overwrite(&store, &table, 0..12);
    let stats = store.stats();
    assert!(
        stats.writes.value_bytes > 12 << 20 && stats.background.value_segments_reclaimed >= 2,
        "{stats:?}"
    );
    assert_eq!((files(&path, ".values") + files(&path, ".moved")) as u64, stats.disk.value_segments);
    assert!(stats.disk.value_segments <= 3, "{stats:?}");
    (0..300).for_each(|key| assert_eq!(table.get(&key).unwrap(), Some(blob(key, 11))));
    drop((table, store)); // as if the process died
    let store = Store::open(&path, options()).unwrap();
    let table = blobs(&store);
    (0..300).for_each(|key| assert_eq!(table.get(&key).unwrap(), Some(blob(key, 11))));
    overwrite(&store, &table, 12..20);
    assert!(store.stats().background.value_segments_reclaimed >= 2);
    store.close().unwrap();
    let report = Store::verify(&path, &VerifyOptions::default().deep(true), &options()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn a_reader_keeps_the_segments_that_it_reads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let table = blobs(&store);
    overwrite(&store, &table, 0..1);
    let mut rows = table.scan().into_iter();
    assert_eq!(rows.next().unwrap().unwrap(), (0, blob(0, 0)));
    overwrite(&store, &table, 1..12);
    assert!(store.stats().background.value_segments_reclaimed >= 2);
    let held = files(&path, ".values") as u64;
    assert!(held > store.stats().disk.value_segments, "what is read stays, listed or not");
    for key in 1..300 {
        assert_eq!(rows.next().unwrap().unwrap(), (key, blob(key, 0)), "the scan goes on as it began");
    }
    drop(rows);
    assert_eq!((files(&path, ".values") + files(&path, ".moved")) as u64, store.stats().disk.value_segments);

    let snapshot = store.snapshot();
    overwrite(&store, &table, 12..24);
    (0..300).for_each(|key| assert_eq!(snapshot.get(&table, &key).unwrap(), Some(blob(key, 11))));
}

#[test]
fn a_segment_stays_as_long_as_a_memtable_or_the_log_leads_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let table = blobs(&store);
    let other = store.table("other", Rules::sorted::<u64, Vec<u8>>().separate(2048)).unwrap();
    other.put(&1, &blob(1, 1)).unwrap(); // in memory only, and first in the first segment
    for round in 0..12 {
        fill(&table, 300, round);
        store.background_step_of(folddb::BackgroundJob::Log).unwrap();
    }
    while store.background_step().unwrap().is_some() {}
    let segments = store.stats().disk.value_segments;
    assert!(segments >= 3, "nothing is in runs yet: {segments}");
    assert_eq!(other.get(&1).unwrap(), Some(blob(1, 1)));
    drop((other, table, store));
    let store = Store::open(&path, options()).unwrap();
    let other = store.table("other", Rules::sorted::<u64, Vec<u8>>().separate(2048)).unwrap();
    assert_eq!(other.get(&1).unwrap(), Some(blob(1, 1)));
    (0..300).for_each(|key| assert_eq!(blobs(&store).get(&key).unwrap(), Some(blob(key, 11))));
}

#[test]
fn memtables_that_keep_many_segments_are_flushed() {
    let dir = tempfile::tempdir().unwrap();
    let store =
        Store::create(dir.path().join("store"), options().tuning(|t| t.value_segment_bytes(64 << 10)))
            .unwrap();
    let table = blobs(&store);
    for round in 0..20 {
        fill(&table, 30, round);
        while store.background_step().unwrap().is_some() {}
    }
    let stats = store.stats();
    assert!(stats.background.flushes > 3 && stats.background.value_segments_reclaimed > 5, "{stats:?}");
    (0..30).for_each(|key| assert_eq!(table.get(&key).unwrap(), Some(blob(key, 19))));
}

/// Few and short records in runs, whose values take all of the space: no tier is full, and no run
/// is large.
#[test]
fn overwritten_values_are_garbage_that_starts_a_merge() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options().tuning(|t| t.value_segment_bytes(8 << 20)))
        .unwrap();
    let table = blobs(&store);
    for round in 0..4u8 {
        let value = vec![round; 1 << 20];
        for key in 0..40u64 {
            table.put(&key, &value).unwrap();
        }
        store.flush().unwrap();
        while store.background_step().unwrap().is_some() {}
    }
    let stats = store.stats();
    assert!(stats.background.merges >= 2 && stats.background.value_segments_reclaimed >= 10, "{stats:?}");
    let live_bytes = 40 << 20;
    assert!(stats.disk.value_bytes <= 2 * live_bytes, "{stats:?}");
    (0..40u64).for_each(|key| assert_eq!(table.get(&key).unwrap(), Some(vec![3; 1 << 20])));
}

/// Of a batch that was not synced, the value is lost and the frame is not: the opening cuts it, and
/// a check says so before.
#[test]
fn a_check_reports_values_that_were_lost_before_they_were_durable() {
    let dir = tempfile::tempdir().unwrap();
    let (open, path) = (dir.path().join("open"), dir.path().join("store"));
    let store = Store::create(&open, options()).unwrap();
    let table = blobs(&store);
    table.put(&1, &blob(1, 1)).unwrap();
    table.put(&2, &blob(2, 1)).unwrap();
    table.put(&3, &blob(3, 1)).unwrap();
    // The files of a process that dies now: one that drops its store syncs the log, and records
    // that.
    std::fs::create_dir(&path).unwrap();
    for file in std::fs::read_dir(&open).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), path.join(file.file_name())).unwrap();
    }
    drop((table, store));
    let names = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let values = names.into_iter().find(|path| path.extension().is_some_and(|is| is == "values")).unwrap();
    let mut bytes = std::fs::read(&values).unwrap();
    let second = bytes.windows(100).rposition(|stretch| stretch == vec![blob(2, 1)[0]; 100]).unwrap();
    bytes[second] ^= 1;
    std::fs::write(&values, bytes).unwrap();

    for deep in [false, true] {
        let report = Store::verify(&path, &VerifyOptions::default().deep(deep), &options()).unwrap();
        let told: Vec<String> = report.findings.iter().map(|finding| finding.to_string()).collect();
        assert!(
            told.iter().any(|told| told.contains(".values")
                && told.contains("the next opening removes it and the batches after it, 2 in all")),
            "{told:?}"
        );
        assert_eq!((report.checked.batches, report.checked.batches_cut), (3, 2), "deep: {deep}");
    }
    let advice = Store::diagnose(&path, &options()).unwrap();
    assert!(
        advice.iter().any(|advice| advice.what.contains("the next opening removes 2 batches")),
        "{advice:?}"
    );
    for past_holes in [false, true] {
        let mended = dir.path().join(format!("mended-{past_holes}"));
        let how = RepairOptions::default().past_holes(past_holes);
        let report = Store::repair(&path, &mended, &how, &options()).unwrap();
        assert_eq!(
            (report.batches, report.batches_left),
            if past_holes { (2, 0) } else { (1, 2) },
            "{report:?}"
        );
        assert!(report.findings.iter().any(|finding| finding.severity == Severity::Damage), "{report:?}");
        let store = Store::open(&mended, options()).unwrap();
        let found = [1, 2, 3].map(|key| blobs(&store).get(&key).unwrap());
        assert_eq!(found, [Some(blob(1, 1)), None, past_holes.then(|| blob(3, 1))]);
    }
    let store = Store::open(&path, options()).unwrap();
    let found = [1, 2, 3].map(|key| blobs(&store).get(&key).unwrap());
    assert_eq!(found, [Some(blob(1, 1)), None, None]);
    store.close().unwrap();
    let report = Store::verify(&path, &VerifyOptions::default().deep(true), &options()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn a_small_store_takes_little_disk_and_segments_grow_with_what_it_holds() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, Options::default().background(BackgroundWork::Manual)).unwrap();
    let table = blobs(&store);
    let lens = || {
        let names = std::fs::read_dir(&path).unwrap().flatten();
        let values = names.filter(|entry| entry.file_name().to_string_lossy().ends_with(".values"));
        values.map(|entry| entry.metadata().unwrap().len()).collect::<Vec<_>>()
    };
    table.put(&0, &blob(0, 0)).unwrap();
    assert_eq!(lens(), [256 << 10]);
    for key in 1..40_u64 {
        table.put(&key, &vec![key as u8; 1 << 20]).unwrap();
        while store.background_step().unwrap().is_some() {}
    }
    let (most, all) = (lens().into_iter().max().unwrap(), lens().iter().sum::<u64>());
    assert!(most == 4 << 20 && all <= 64 << 20, "{:?}", lens());
    let stats = store.stats();
    assert_eq!(stats.disk.value_bytes, all, "what is told is what the files take");
}

#[test]
fn a_located_value_is_copied_by_the_system_and_stays_while_its_segment_goes() {
    for direct in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let store = Store::create(&path, options().tuning(|t| t.values_direct(direct))).unwrap();
        let table = blobs(&store);
        table.put(&1, &blob(1, 0)).unwrap();
        table.put(&2, &vec![7; 20]).unwrap();
        store.flush().unwrap();
        let reads = store.stats().reads.values;
        let unread = table.locate(&1, Locate::default().verify(false).read_ahead(true)).unwrap().unwrap();
        assert_eq!(store.stats().reads.values, reads);
        let located = table.locate(&1, Locate::default()).unwrap().unwrap();
        assert_eq!(store.stats().reads.values, reads + 1, "it is read once, to be verified");
        assert!(table.locate(&9, Locate::default()).unwrap().is_none());
        let short = table.locate(&2, Locate::default()).unwrap().unwrap();
        assert!(matches!(short.pieces(), [LocatedPiece::Bytes(bytes)] if *bytes == [7; 20]));
        let piece = located.as_file().expect("it lies in one file");
        let segment = piece.path().to_owned();
        overwrite(&store, &table, 1..12);
        assert!(segment.exists(), "its name stays, too");
        // From file to file by the system, by its own offset, and by `std`.
        let to = dir.path().join("copy");
        let mut file = std::fs::File::create(&to).unwrap();
        assert_eq!(located.write_to(&mut file).unwrap(), blob(1, 0).len() as u64);
        assert_eq!(std::fs::read(&to).unwrap(), blob(1, 0));
        let mut taken = Vec::new();
        std::io::Read::take(piece.open().unwrap(), piece.len_bytes()).read_to_end(&mut taken).unwrap();
        assert_eq!(taken, blob(1, 0));
        let whole = std::fs::read(&segment).unwrap();
        let (from, len) = (piece.offset() as usize, piece.len_bytes() as usize);
        assert_eq!(whole[from..from + len], blob(1, 0));
        assert_eq!(piece.fd().is_some(), !direct);
        if let Some(fd) = piece.fd() {
            let mut buf = vec![0; len];
            std::fs::File::from(fd.try_clone_to_owned().unwrap())
                .read_exact_at(&mut buf, from as u64)
                .unwrap();
            assert_eq!(buf, blob(1, 0));
        }
        let mut out = Vec::new();
        unread.write_to(&mut out).unwrap();
        short.write_to(&mut out).unwrap();
        assert_eq!(out, [blob(1, 0), vec![7; 20]].concat());
        drop((located, unread));
        while store.background_step().unwrap().is_some() {}
        assert!(!segment.exists(), "it goes with the last who looks");
        assert_eq!(table.get(&1).unwrap(), Some(blob(1, 11)));
    }
}

/// What cannot be known of a value without reading it: the result of an operand that is folded onto
/// a separated value, where folding is not joining. Only the values of such keys are read, each
/// once, and none any more once it was set again.
#[test]
fn heads_read_a_value_only_where_an_operand_waits_that_folding_does_not_join() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let merged = TableRules::new(KeyCodec::U64).fold("json-merge").separate(Some(256));
    let joined = TableRules::new(KeyCodec::U64).fold("append:,").separate(Some(256));
    let tables = [("merged", merged), ("joined", joined)]
        .map(|(name, rules)| store.create_bytes_table(name, rules).unwrap());
    let key = |n: u64| n.to_be_bytes();
    let text = |n: usize| format!("{{\"text\":\"{}\"}}", "x".repeat(n)).into_bytes();
    let reads = |of: &dyn Fn()| {
        let before = store.stats().reads.values;
        of();
        store.stats().reads.values - before
    };
    for table in &tables {
        let write = |op: WriteOp, n: u64, bytes: &[u8]| assert!(table.write(op, &key(n), bytes).is_ok());
        (0..20).for_each(|n| write(WriteOp::Put, n, &text(1000)));
        store.flush().unwrap();
        (0..20).step_by(5).for_each(|n| write(WriteOp::Fold, n, b"{\"more\":1}"));
        let waiting = if table.name() == "merged" { 4 } else { 0 };
        for settled in [false, true] {
            if settled {
                store.flush().unwrap();
                table.compact().unwrap();
            }
            let heads = || {
                let heads: Vec<_> = table.scan().heads().map(|row| row.unwrap().1.size_bytes).collect();
                assert_eq!(heads.len(), 20);
                assert!(
                    heads.iter().enumerate().all(|(n, &size)| (size > 1011) == n.is_multiple_of(5)),
                    "{heads:?}"
                );
            };
            assert_eq!(reads(&heads), waiting, "{} heads of a scan, settled: {settled}", table.name());
            let one_by_one = || (0..20).for_each(|n| assert!(table.head(&key(n)).unwrap().is_some()));
            assert_eq!(reads(&one_by_one), waiting, "{} heads, settled: {settled}", table.name());
        }
        (0..20).step_by(5).for_each(|n| write(WriteOp::Put, n, &text(2000)));
        let heads = || {
            assert_eq!(table.scan().heads().filter(|row| row.as_ref().unwrap().1.is_separated).count(), 20)
        };
        assert_eq!(reads(&heads), 0, "{}: what was set anew", table.name());
    }
}
