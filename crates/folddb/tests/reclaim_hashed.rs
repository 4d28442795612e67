//! Reclaim of values that hashed tables lead to: they move, and slots, snapshots, walks and crashes
//! do not notice.
#![allow(clippy::unwrap_used)]

mod common;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use common::small_values as options;
use folddb::maintenance::{BackupOptions, RepairOptions, RestoreOptions, VerifyOptions};
use folddb::{BackgroundJob, Rules, Store, Table, ValuePlacement};

const KEYS: u64 = 300;

fn blobs(store: &Store) -> Table<u64, Vec<u8>> {
    store.table("blobs", Rules::hashed::<u64, Vec<u8>>()).unwrap()
}

fn blob(key: u64, round: u64) -> Vec<u8> {
    vec![(key * 7 + round * 31) as u8; 1024 + (key as usize * 37 + round as usize) % 5000]
}

/// The round in which a key was written last, when all were in round 0 and every third in each
/// round to `rounds`.
fn round_of(key: u64, rounds: u64) -> u64 {
    if key.is_multiple_of(3) { rounds } else { 0 }
}

fn overwrite(store: &Store, rounds: std::ops::RangeInclusive<u64>) {
    let table = blobs(store);
    for round in rounds {
        for key in (0..KEYS).filter(|key| round == 0 || key.is_multiple_of(3)) {
            table.put(&key, &blob(key, round)).unwrap();
        }
        store.background_step_of(BackgroundJob::Log).unwrap();
    }
}

/// Every segment has live values next to dead ones.
fn filled(path: &Path, rounds: u64) -> Store {
    let store = Store::create(path, options()).unwrap();
    overwrite(&store, 0..=rounds);
    store
}

fn check(store: &Store, rounds: u64) {
    let table = blobs(store);
    for key in 0..KEYS {
        assert_eq!(table.get(&key).unwrap(), Some(blob(key, round_of(key, rounds))), "key {key}");
        assert_eq!(
            table.head(&key).unwrap().unwrap().size_bytes,
            blob(key, round_of(key, rounds)).len() as u64
        );
    }
    let mut rows: Vec<_> = table.scan().into_iter().map(|row| row.unwrap()).collect();
    rows.sort();
    assert_eq!(rows.len() as u64, KEYS);
    assert!(rows.iter().all(|(key, value)| *value == blob(*key, round_of(*key, rounds))));
}

fn files(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = names.filter(|path| path.to_string_lossy().ends_with(suffix)).collect();
    found.sort();
    found
}

/// How many plans were carried out until nothing was worth it any more.
fn reclaim(store: &Store) -> u64 {
    let mut begun = 0;
    let report = store.reclaim_with(|_| {
        begun += 1;
        if begun < 100 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert!(begun < 100, "the same values are copied again and again");
    report.unwrap().plans
}

fn verified(path: &Path) {
    let report = Store::verify(path, &VerifyOptions::default().deep(true), &options()).unwrap();
    assert_eq!(report.findings, [], "verified");
}

#[test]
fn what_is_alive_moves_together_and_is_found_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = filled(&path, 6);
    let before = store.stats();
    assert!(reclaim(&store) > 0, "{:?}", store.value_segments());
    let after = store.stats();
    assert!(
        after.disk.value_bytes < before.disk.value_bytes / 2,
        "{} of {}",
        after.disk.value_bytes,
        before.disk.value_bytes
    );
    // No slot has changed; of what was copied the bytes are known exactly.
    let (live, estimated) = (after.disk.value_live_bytes, before.disk.value_live_bytes);
    assert!(live.abs_diff(estimated) < live / 100, "{live}, {estimated} before");
    assert!(!files(&path, ".moved").is_empty());
    assert_eq!(reclaim(&store), 0, "nothing more is worth it");
    check(&store, 6);
    overwrite(&store, 7..=7); // heads of moved records are read
    check(&store, 7);
    drop(store); // as if the process died
    let store = Store::open(&path, options()).unwrap();
    check(&store, 7);
    store.close().unwrap();
    verified(&path);
    check(&Store::open_read_only(&path, options()).unwrap(), 7);
    drop(Store::open(&path, options()).unwrap());
    check(&Store::open(&path, options()).unwrap(), 7);
}

#[test]
fn what_has_moved_moves_on_and_goes_when_nothing_leads_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = filled(&path, 3);
    assert!(reclaim(&store) > 0);
    let first = files(&path, ".moved");
    let table = blobs(&store);
    for gone in 0..4 {
        for key in (0..KEYS).filter(|key| key % 7 == gone) {
            table.put(&key, &blob(key, round_of(key, 3))).unwrap();
        }
        reclaim(&store);
        check(&store, 3);
    }
    assert!(first.iter().all(|file| !file.exists()), "{first:?}");
    drop(table);
    store.close().unwrap();
    verified(&path);
    let store = Store::open(&path, options()).unwrap();
    check(&store, 3);
    for key in 0..KEYS {
        blobs(&store).delete(&key).unwrap();
    }
    reclaim(&store);
    assert_eq!(store.stats().disk.value_live_bytes, 0);
    assert_eq!(files(&path, ".moved"), Vec::<PathBuf>::new());
}

#[test]
fn walks_and_snapshots_of_before_read_what_they_saw() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = filled(&path, 2);
    let table = blobs(&store);
    let snapshot = store.snapshot();
    let mut walk = table.scan().into_iter();
    let mut walked = vec![walk.next().unwrap().unwrap()];
    overwrite(&store, 3..=8);
    // Values that only they read are alive, and move with the rest; values without a reader are
    // removed.
    assert!(reclaim(&store) > 0);
    check(&store, 8);
    for key in 0..KEYS {
        assert_eq!(snapshot.get(&table, &key).unwrap(), Some(blob(key, round_of(key, 2))), "key {key}");
    }
    walked.extend(walk.map(|row| row.unwrap()));
    walked.sort();
    assert_eq!(walked.len() as u64, KEYS);
    assert!(walked.iter().all(|(key, value)| *value == blob(*key, round_of(*key, 2))));
    let held = store.stats().disk.value_bytes;
    drop(snapshot);
    overwrite(&store, 9..=9);
    reclaim(&store);
    check(&store, 9);
    assert!(store.stats().disk.value_bytes < held, "{} of {held}", store.stats().disk.value_bytes);
    drop((table, store));
    check(&Store::open(&path, options()).unwrap(), 9);
}

#[test]
fn background_work_does_it_by_itself_and_keeps_to_the_bound() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let table = blobs(&store);
    let mut most = 0.0f64;
    for round in 0..24 {
        for key in
            (0..KEYS).filter(|key| round == 0 || (key * 1009 + round).wrapping_mul(0x9e37_79b9) >> 7 & 3 == 0)
        {
            table.put(&key, &vec![round as u8; 4000 + key as usize]).unwrap();
        }
        store.flush().unwrap();
        while store.background_step().unwrap().is_some() {}
        let alive: u64 = (0..KEYS).map(|key| 4032 + key).sum();
        let sealed: u64 =
            store.value_segments().iter().filter(|file| file.is_sealed).map(|file| file.bytes).sum();
        most = most.max(sealed as f64 / alive as f64);
    }
    let stats = store.stats();
    assert!(stats.background.reclaims > 2, "{stats:?}");
    assert!(most <= 1.6, "{most}: {stats:?}");
}

#[test]
fn live_bytes_are_those_of_records_and_not_of_size_classes() {
    const VALUE_BYTES: u64 = 4110; // its record is of the size class of 5,120
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let table = blobs(&store);
    let is_exact = |when: &str| {
        let (live, values) = (store.stats().disk.value_live_bytes, KEYS * VALUE_BYTES);
        assert!((values..values + values / 50).contains(&live), "{when}: {live} of {values}");
    };
    for round in 0..40u64 {
        for key in (0..KEYS).filter(|key| round == 0 || (key * 7 + round).is_multiple_of(5)) {
            table.put(&key, &vec![round as u8; VALUE_BYTES as usize]).unwrap();
        }
        store.flush().unwrap();
        while store.background_step().unwrap().is_some() {}
        is_exact("as it was put");
    }
    let copies = store.stats().background.reclaims;
    assert!(copies > 2, "{copies}");
    let sealed: u64 =
        store.value_segments().iter().filter(|file| file.is_sealed).map(|file| file.bytes).sum();
    assert!(sealed as f64 <= 1.45 * (KEYS * VALUE_BYTES) as f64, "{sealed}");
    store.reclaim().unwrap();
    is_exact("as it was copied");
}

#[test]
fn what_was_copied_once_does_not_look_dead_again() {
    for is_alone in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path().join("store"), options()).unwrap();
        let table = blobs(&store);
        let other = store.table("other", Rules::sorted::<u64, Vec<u8>>().separate(1024)).unwrap();
        // Small records fill their class, large ones four fifths of it: once the large ones are
        // gone, the rest takes more than the segment's average says.
        let long = |key: &u64| key.is_multiple_of(2);
        for key in 0..KEYS {
            table.put(&key, &vec![1; if long(&key) { 4110 } else { 3900 }]).unwrap();
            if !is_alone && key.is_multiple_of(10) {
                other.put(&key, &vec![2; 3900]).unwrap(); // in the same segments
            }
        }
        store.flush().unwrap();
        store.background_step_of(BackgroundJob::Log).unwrap();
        for key in (0..KEYS).filter(long) {
            table.delete(&key).unwrap();
        }
        assert!(reclaim(&store) > 0);
        if is_alone {
            let (live, values) = (store.stats().disk.value_live_bytes, KEYS / 2 * 3940); // with heads and keys
            assert!(live.abs_diff(values) < values / 50, "{live} of {values}");
        }
        assert_eq!(reclaim(&store), 0, "nothing more is worth it");
    }
}

/// Records of megabytes are all of one size class, which counts them as its shortest. Two tables
/// have some in one segment, so neither knows from what was copied how long its own are.
#[test]
fn long_values_of_two_tables_in_one_segment_do_not_look_dead() {
    const MIB: usize = 1 << 20;
    const LONG: usize = 5 * MIB; // three in a segment of 16 MiB
    for is_reopened in [false, true] {
        let options = options().tuning(|t| t.value_segment_bytes(16 << 20)).in_memory();
        let open = || Store::open_or_create("store", options.clone()).unwrap();
        let mut store = open();
        let filler = store.table("filler", Rules::hashed::<u64, Vec<u8>>()).unwrap();
        for key in 0..17 {
            filler.put(&key, &vec![3; 15 * MIB]).unwrap(); // so that segments have 16 MiB
        }
        let [one, other] = ["one", "other"].map(|name| {
            let table = store.table(name, Rules::hashed::<u64, Vec<u8>>()).unwrap();
            table.put(&0, &vec![0; LONG]).unwrap();
            table
        });
        let before = store.value_segments().len();
        for key in 1..4 {
            one.put(&key, &vec![1; LONG]).unwrap();
            other.put(&key, &vec![2; LONG]).unwrap();
            one.put(&(10 + key), &vec![3; LONG]).unwrap();
        }
        let segments = store.value_segments().len() - before;
        assert!(segments < 6, "{segments} new segments for 9 values");
        drop((filler, one, other));
        if is_reopened {
            store.close().unwrap();
            store = open();
        }
        let [one, other] = ["one", "other"].map(|name| store.open_table::<u64, Vec<u8>>(name).unwrap());
        (1..4).for_each(|key| assert!(one.delete(&(10 + key)).is_ok()));
        let filler = store.open_table::<u64, Vec<u8>>("filler").unwrap();
        (0..17).for_each(|key| assert!(filler.delete(&key).is_ok()));
        let plans = reclaim(&store);
        let alive = (8 * LONG) as u64;
        let live = store.stats().disk.value_live_bytes;
        // After an opening, what was not copied counts by size classes.
        let least = if is_reopened { alive / 10 * 9 } else { alive };
        assert!((least..alive + alive / 50).contains(&live), "{live} of {alive}, reopened: {is_reopened}");
        assert!((1..8).contains(&plans), "{plans} plans, reopened: {is_reopened}");
        assert_eq!(reclaim(&store), 0, "nothing more is worth it");
        for (table, byte) in [(one, 1), (other, 2)] {
            assert!((1..4).all(|key| table.get(&key).unwrap() == Some(vec![byte; LONG])));
        }
    }
}

#[test]
fn a_store_with_relocated_values_is_salvaged_even_if_the_index_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = filled(&path, 5);
    assert!(reclaim(&store) > 0);
    store.close().unwrap();
    for index in files(&path, ".index") {
        std::fs::write(&index, b"no index").unwrap();
    }
    let mended = dir.path().join("mended");
    let report = Store::repair(&path, &mended, &RepairOptions::default(), &options()).unwrap();
    assert!(report.verified.is_clean(), "{:?}", report.verified.findings);
    let store = Store::open(&mended, options()).unwrap();
    let table = blobs(&store);
    for key in 0..KEYS {
        assert_eq!(table.get(&key).unwrap(), Some(blob(key, round_of(key, 5))), "key {key}");
    }
    drop(table);
    store.close().unwrap();
    verified(&mended);
}

#[test]
fn relocated_values_whose_footer_is_lost_are_salvaged_also_by_an_older_list_and_without_the_index() {
    let dir = tempfile::tempdir().unwrap();
    let (path, place) = (dir.path().join("store"), dir.path().join("backups"));
    let store = filled(&path, 5);
    let backup = store.backup(&place, &BackupOptions::default()).unwrap().path;
    assert!(reclaim(&store) > 0);
    store.close().unwrap();
    for moved in files(&path, ".moved") {
        let len = std::fs::metadata(&moved).unwrap().len();
        std::fs::File::options().write(true).open(&moved).unwrap().set_len(len - 1).unwrap();
    }
    let mend = |name: &str, list_from: Option<PathBuf>| {
        let (to, how) = (dir.path().join(name), RepairOptions::default().list_from(list_from));
        let report = Store::repair(&path, &to, &how, &options()).unwrap();
        assert!(report.verified.is_clean(), "{name}: {report:?}");
        let store = Store::open(&to, options()).unwrap();
        check(&store, 5);
        store.close().unwrap();
        verified(&to);
        report
    };
    assert!(mend("mended", None).is_complete());
    for index in files(&path, ".index") {
        std::fs::remove_file(&index).unwrap();
    }
    mend("without the index", None);
    let manifests = files(&path, "").into_iter().filter(|path| path.to_string_lossy().contains("MANIFEST"));
    manifests.for_each(|manifest| std::fs::remove_file(manifest).unwrap());
    mend("by an older list", Some(backup));
}

/// A store whose manifest is lost, and a backup of it from before every third key was put again,
/// and `KEYS` more.
fn put_since(path: &Path, value_placement: ValuePlacement, moves: bool) -> PathBuf {
    let store = Store::create(path, options()).unwrap();
    let rules = || Rules::hashed::<u64, Vec<u8>>().value_placement(value_placement);
    let table = store.table("blobs", rules()).unwrap();
    (0..KEYS).for_each(|key| assert!(table.put(&key, &blob(key, 0)).is_ok()));
    let place = path.with_file_name("backups");
    let backup = store.backup(place, &BackupOptions::default()).unwrap().path;
    drop(table);
    store.close().unwrap();
    let store = Store::open(path, options()).unwrap();
    let table = store.table("blobs", rules()).unwrap();
    for key in 0..KEYS {
        if key.is_multiple_of(3) {
            table.put(&key, &blob(key, 1)).unwrap();
        }
        table.put(&(KEYS + key), &blob(KEYS + key, 9)).unwrap();
        if moves && !key.is_multiple_of(3) {
            table.put(&(KEYS + key), &blob(KEYS + key, 1)).unwrap();
        }
    }
    store.background_step_of(BackgroundJob::Log).unwrap();
    assert!(!moves || reclaim(&store) > 0);
    drop(table);
    store.close().unwrap();
    assert_eq!(!files(path, ".moved").is_empty(), moves);
    let is_manifest = |path: &PathBuf| path.to_string_lossy().contains("MANIFEST");
    let manifests = files(path, "").into_iter().filter(is_manifest);
    manifests.for_each(|manifest| std::fs::remove_file(manifest).unwrap());
    backup
}

#[test]
fn values_that_were_put_since_an_older_list_are_found_by_repair() {
    for (value_placement, moves) in
        [(ValuePlacement::Segments, false), (ValuePlacement::Segments, true), (ValuePlacement::Files, false)]
    {
        let dir = tempfile::tempdir().unwrap();
        let (path, to) = (dir.path().join("store"), dir.path().join("mended"));
        let backup = put_since(&path, value_placement, moves);
        let how = RepairOptions::default().list_from(Some(backup));
        let report = Store::repair(&path, &to, &how, &options()).unwrap();
        assert!(report.verified.is_clean(), "{report:?}");
        let is_told = |one: &folddb::maintenance::Finding| one.what.contains("the list does not have it");
        assert!(report.findings.iter().any(is_told), "{:?}", report.findings);
        let store = Store::open(&to, options()).unwrap();
        let table =
            store.table("blobs", Rules::hashed::<u64, Vec<u8>>().value_placement(value_placement)).unwrap();
        for key in 0..2 * KEYS {
            let round = match (key < KEYS, key.is_multiple_of(3)) {
                (true, is_third) => u64::from(is_third),
                (false, is_third) => {
                    if is_third || !moves {
                        9
                    } else {
                        1
                    }
                }
            };
            assert!(
                table.get(&key).unwrap() == Some(blob(key, round)),
                "key {key}: {value_placement:?}, {moves}"
            );
        }
        drop(table);
        store.close().unwrap();
        verified(&to);
    }
}

#[test]
fn an_unlisted_segment_with_a_damaged_header_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let (path, to) = (dir.path().join("store"), dir.path().join("mended"));
    let backup = put_since(&path, ValuePlacement::Segments, false);
    let newest = files(&path, ".values").pop().unwrap();
    let mut bytes = std::fs::read(&newest).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&newest, bytes).unwrap();
    let how = RepairOptions::default().list_from(Some(backup));
    let report = Store::repair(&path, &to, &how, &options()).unwrap();
    let name = newest.file_name().unwrap().to_string_lossy();
    assert!(report.lost().any(|one| one.file == name && one.what.contains("header")), "{report:?}");
    assert!(report.verified.is_clean(), "{report:?}");
}

#[test]
fn backups_of_before_and_after_are_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (path, place) = (dir.path().join("store"), dir.path().join("backups"));
    let store = filled(&path, 5);
    let before = store.backup(&place, &BackupOptions::default()).unwrap();
    assert!(reclaim(&store) > 0);
    let after = store.backup(&place, &BackupOptions::default()).unwrap();
    for key in (0..KEYS).step_by(2) {
        blobs(&store).delete(&key).unwrap();
    }
    assert!(reclaim(&store) > 0);
    store.close().unwrap();
    for (number, generation) in [before, after].iter().enumerate() {
        verified(&generation.path);
        let restored = dir.path().join(format!("restored-{number}"));
        let what = RestoreOptions::default().generation(Some(generation.generation));
        Store::restore(&place, &restored, &what, &options()).unwrap();
        verified(&restored);
        check(&Store::open(&restored, options()).unwrap(), 5);
    }
}
