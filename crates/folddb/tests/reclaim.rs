//! Reclaim: live values of old segments are copied together, and no reader or writer notices.

mod common;

use std::path::{Path, PathBuf};

use common::small_values;
use folddb::maintenance::{BackupOptions, Finding, Loss, RepairOptions, RestoreOptions, VerifyOptions};
use folddb::{BackgroundJob, Keep, Locate, Options, Rules, Store, Table};

const KEYS: u64 = 300;

fn options() -> Options {
    small_values().tuning(|t| t.part_bytes(64 << 10))
}

fn blobs(store: &Store) -> Table<u64, Vec<u8>> {
    store.table("blobs", Rules::sorted::<u64, Vec<u8>>().separate(2048)).expect("the table")
}

fn blob(key: u64, round: u64) -> Vec<u8> {
    let byte = (key * 7 + round * 31) as u8;
    vec![byte; 2048 + (key as usize * 37 + round as usize) % 5000]
}

/// The round in which a key was written last, when all were in round 0 and every third in each
/// round to `rounds`.
fn round_of(key: u64, rounds: u64) -> u64 {
    if key.is_multiple_of(3) { rounds } else { 0 }
}

/// Every segment has live values next to dead ones.
fn fill(store: &Store, rounds: u64) {
    let table = blobs(store);
    for key in 0..KEYS {
        table.put(&key, &blob(key, 0)).expect("it goes");
    }
    for round in 1..=rounds {
        for key in (0..KEYS).step_by(3) {
            table.put(&key, &blob(key, round)).expect("it goes");
        }
        store.background_step_of(BackgroundJob::Log).expect("it goes");
    }
    store.bytes_table("blobs").expect("a table").compact().expect("it goes");
}

/// A pseudo-random number.
fn drawn(key: u64, round: u64) -> u64 {
    (key * 1009 + round).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33
}

fn check(store: &Store, rounds: u64) {
    let table = blobs(store);
    for key in 0..KEYS {
        assert_eq!(table.get(&key).expect("it goes"), Some(blob(key, round_of(key, rounds))), "key {key}");
    }
    let rows: Vec<_> = table.scan().into_iter().map(|row| row.expect("it goes")).collect();
    assert_eq!(rows.len() as u64, KEYS);
    assert!(rows.iter().all(|(key, value)| *value == blob(*key, round_of(*key, rounds))));
}

fn files(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let names = std::fs::read_dir(dir).expect("a store").map(|entry| entry.expect("readable").path());
    let mut found: Vec<PathBuf> = names.filter(|path| path.to_string_lossy().ends_with(suffix)).collect();
    found.sort();
    found
}

fn reclaim(store: &Store) -> u64 {
    store.reclaim().expect("it goes").plans
}

fn verified(path: &Path) {
    let report = Store::verify(path, &VerifyOptions::default().deep(true), &options()).expect("it goes");
    assert_eq!(report.findings, [], "verified");
}

#[test]
fn what_is_alive_moves_together_and_reads_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    fill(&store, 6);
    let before = store.stats();
    let plans = store.reclaim_plans();
    let report = store.reclaim().unwrap();
    assert!(report.plans > 0 && report.plans == plans.len() as u64, "{report:?}, {plans:?}");
    let after = store.stats();
    assert!(report.bytes_after < before.disk.value_bytes, "{report:?}");
    assert_eq!(after.disk.value_bytes, report.bytes_after);
    assert_eq!(after.background.value_bytes_copied, report.bytes_copied);
    assert_eq!(after.disk.value_live_bytes, before.disk.value_live_bytes, "no pointer has changed");
    let sealed: u64 =
        store.value_segments().iter().filter(|file| file.is_sealed).map(|file| file.bytes).sum();
    assert!(
        sealed as f64 <= 1.25 * after.disk.value_live_bytes as f64,
        "{sealed} of {}",
        after.disk.value_live_bytes
    );
    assert!(!files(&path, ".moved").is_empty());
    assert_eq!(reclaim(&store), 0, "nothing more is worth it");
    check(&store, 6);
    drop(store); // as if the process died
    let store = Store::open(&path, options()).unwrap();
    check(&store, 6);
    store.close().unwrap();
    verified(&path);
    check(&Store::open_read_only(&path, options()).unwrap(), 6);
}

/// A value that was put and is not flushed is not dead: the figures of the value log are the same
/// before the flush and after it.
#[test]
fn what_memory_leads_to_counts_as_alive() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let rules = Rules::sorted::<u64, Vec<u8>>().separate(64);
    let latest = store.table("latest", rules.clone()).unwrap();
    let forever = store.table("forever", rules.keep(Keep::Forever)).unwrap();
    let live = || {
        store
            .value_segments()
            .iter()
            .fold((0, 0), |(values, bytes), file| (values + file.live_values, bytes + file.live_bytes))
    };
    let put = |table: &Table<u64, Vec<u8>>, keys: std::ops::Range<u64>, round: u8| {
        for key in keys {
            table.put(&key, &vec![round; 1000]).unwrap();
        }
    };
    for table in [&latest, &forever] {
        put(table, 0..50, 1);
        put(table, 0..20, 2); // over these
        for key in 40..50 {
            table.delete(&key).unwrap();
        }
    }
    let old = store.snapshot();
    put(&latest, 10..15, 3); // a snapshot sees the old values
    assert!(!store.value_times().unwrap().is_empty(), "and their times are told");
    let before = live();
    assert_eq!(before.0, 40 + 5 + 70);
    store.flush().unwrap();
    assert_eq!(live(), before);
    drop(old);
}

#[test]
fn what_has_moved_moves_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let table = blobs(&store);
    fill(&store, 3);
    assert!(reclaim(&store) > 0);
    let first = files(&path, ".moved");
    for gone in 0..4 {
        // More and more of the moved values are overwritten, and the live ones are then in files
        // that were moved.
        for key in (0..KEYS).filter(|key| key % 7 == gone) {
            table.put(&key, &blob(key, round_of(key, 3))).unwrap();
        }
        store.bytes_table("blobs").unwrap().compact().unwrap();
        reclaim(&store);
        check(&store, 3);
    }
    assert!(first.iter().all(|file| !file.exists()), "{first:?}");
    let moved = store.value_segments().into_iter().filter(|file| file.segments != [file.number]);
    assert!(moved.map(|file| file.segments.len()).max().unwrap() > 1);
    drop(table);
    store.close().unwrap();
    verified(&path);
    check(&Store::open(&path, options()).unwrap(), 3);
}

/// A segment without live values leaves the file that it moved to; the others remain in it, also
/// when the store is lost.
#[test]
fn a_file_of_relocated_values_stays_as_long_as_one_segment_in_it_lives() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    fill(&store, 3);
    assert!(reclaim(&store) > 0);
    let files = store.value_segments().into_iter().filter(|file| file.segments != [file.number]);
    let file = files.max_by_key(|file| file.segments.len()).unwrap();
    assert!(file.segments.len() > 1, "{file:?}");
    let table = blobs(&store);
    for key in 0..KEYS / 2 {
        table.put(&key, &blob(key, round_of(key, 3))).unwrap(); // everything in the first segments
    }
    store.bytes_table("blobs").unwrap().compact().unwrap();
    while store.background_step_of(BackgroundJob::Flush).unwrap().is_some() {}
    let left = store.value_segments().into_iter().find(|left| left.number == file.number).unwrap();
    assert!(left.segments.len() < file.segments.len(), "{left:?} of {file:?}");
    drop((table, store)); // as if the process died
    check(&Store::open(&path, options()).unwrap(), 3);
}

#[test]
fn scans_and_snapshots_of_before_read_what_they_saw() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let table = blobs(&store);
    fill(&store, 2);
    let snapshot = store.snapshot();
    let mut rows = table.scan().into_iter();
    assert_eq!(rows.next().unwrap().unwrap(), (0, blob(0, 2)));
    let whole = files(&path, ".values");
    for round in 3..9 {
        for key in (0..KEYS).step_by(3) {
            table.put(&key, &blob(key, round)).unwrap();
        }
        store.background_step_of(BackgroundJob::Log).unwrap();
    }
    store.bytes_table("blobs").unwrap().compact().unwrap();
    assert!(reclaim(&store) > 0);
    assert!(whole.iter().all(|file| file.exists()), "a reader of before needs them");
    for key in 1..KEYS {
        assert_eq!(rows.next().unwrap().unwrap(), (key, blob(key, round_of(key, 2))), "the scan goes on");
    }
    assert!(rows.next().is_none());
    drop(rows);
    assert!(!whole.iter().all(|file| file.exists()), "nobody needs them any more");
    check(&store, 8);
    for key in 0..KEYS {
        assert_eq!(snapshot.get(&table, &key).unwrap(), Some(blob(key, round_of(key, 2))));
    }
    drop(snapshot);
    store.bytes_table("blobs").unwrap().compact().unwrap();
    reclaim(&store);
    check(&store, 8);
}

#[test]
fn background_work_does_it_by_itself_and_keeps_to_the_bound() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("store"), options().tuning(|t| t.merge_factor(2))).unwrap();
    let table = blobs(&store);
    for round in 0..30 {
        for key in (0..KEYS).filter(|key| round == 0 || drawn(*key, round).is_multiple_of(5)) {
            table.put(&key, &blob(key, round)).unwrap();
        }
        store.flush().unwrap();
        while store.background_step().unwrap().is_some() {}
    }
    let stats = store.stats();
    assert!(stats.background.reclaims > 3, "{stats:?}");
    let sealed: u64 =
        store.value_segments().iter().filter(|file| file.is_sealed).map(|file| file.bytes).sum();
    assert!(sealed as f64 <= 1.45 * stats.disk.value_live_bytes as f64, "{stats:?}");
}

#[test]
fn a_damaged_record_leaves_its_file_alone_and_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    fill(&store, 4);
    store.close().unwrap();
    let victim = &files(&path, ".values")[0];
    let mut bytes = std::fs::read(victim).unwrap();
    let first = blob(1, 0); // alive, in the first segment
    let at = bytes.windows(64).position(|stretch| stretch == &first[..64]).unwrap();
    bytes[at + 100] ^= 1;
    std::fs::write(victim, bytes).unwrap();

    let store = Store::open(&path, options()).unwrap();
    reclaim(&store);
    let stats = store.stats();
    assert!(stats.damage.len() == 1 && stats.damage[0].contains(".values"), "{:?}", stats.damage);
    assert!(victim.exists(), "what is damaged is left as it is");
    let table = blobs(&store);
    assert!(table.get(&1).is_err());
    for key in (0..KEYS).filter(|key| *key != 1) {
        assert_eq!(table.get(&key).unwrap(), Some(blob(key, round_of(key, 4))), "key {key}");
    }
    assert!(stats.poisoned_by.is_none());
}

#[test]
fn backups_of_before_and_after_are_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (path, place) = (dir.path().join("store"), dir.path().join("backups"));
    let store = Store::create(&path, options()).unwrap();
    fill(&store, 5);
    let before = store.backup(&place, &BackupOptions::default()).unwrap();
    assert!(reclaim(&store) > 0);
    let after = store.backup(&place, &BackupOptions::default()).unwrap();
    for key in (0..KEYS).step_by(2) {
        blobs(&store).delete(&key).unwrap();
    }
    store.bytes_table("blobs").unwrap().compact().unwrap();
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

// ---- salvaging ----------------------------------------------------------------------------------

fn manifests(dir: &Path) -> Vec<PathBuf> {
    let is_manifest =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("MANIFEST"));
    files(dir, "").into_iter().filter(is_manifest).collect()
}

/// A store whose table `blobs` is as it was when it was backed up, while its values have been moved
/// since, twice, as others next to them died. Returns that backup, and the manifest of then.
fn relocated_since(path: &Path, backups: &Path) -> (PathBuf, (PathBuf, Vec<u8>)) {
    let store = Store::create(path, options()).expect("a store");
    let others = store.table("others", Rules::sorted::<u64, Vec<u8>>().separate(2048)).expect("the table");
    let compact = |table: &str| {
        store.bytes_table(table).expect("a table").compact().expect("it goes");
    };
    for key in 0..KEYS {
        blobs(&store).put(&key, &blob(key, 0)).expect("it goes");
        others.put(&key, &blob(key, 1)).expect("it goes");
        others.put(&(key + KEYS), &blob(key, 2)).expect("it goes");
        if key % 100 == 99 {
            store.background_step_of(BackgroundJob::Log).expect("it goes");
        }
    }
    ["blobs", "others"].into_iter().for_each(compact);
    let backup = store.backup(backups, &BackupOptions::default()).expect("it goes").path;
    let manifest = manifests(path).pop().expect("a manifest");
    let before = (manifest.clone(), std::fs::read(manifest).expect("it reads"));
    let mut moved = Vec::new();
    for from in [0, KEYS] {
        for key in from..from + KEYS {
            others.delete(&key).expect("it goes");
        }
        compact("others");
        assert!(reclaim(&store) > 0);
        assert!(moved.iter().all(|file: &PathBuf| !file.exists()), "what has moved moves on");
        moved = files(path, ".moved");
        assert!(!moved.is_empty());
    }
    drop(others);
    store.close().expect("it goes");
    (backup, before)
}

#[test]
fn values_that_were_moved_since_an_older_list_are_found_by_repair() {
    let dir = tempfile::tempdir().unwrap();
    let (path, place) = (dir.path().join("store"), dir.path().join("backups"));
    let (backup, (manifest, before)) = relocated_since(&path, &place);
    manifests(&path).iter().for_each(|file| std::fs::remove_file(file).unwrap());
    let lost = dir.path().join("lost");
    let how = RepairOptions::default();
    assert!(Store::repair(&path, &lost, &how, &options()).is_err(), "no list is at hand");
    // Once by the list of a backup, and once by an old manifest in the place of the newest.
    for (name, list_from) in [("by_backup", Some(backup)), ("by_manifest", None)] {
        if list_from.is_none() {
            std::fs::write(&manifest, &before).unwrap();
        }
        let to = dir.path().join(name);
        let how = RepairOptions::default().list_from(list_from);
        let report = Store::repair(&path, &to, &how, &options()).unwrap();
        assert!(report.verified.is_clean(), "{name}: {report:?}");
        let of_values = |file: &str| file.ends_with(".values") || file.ends_with(".moved");
        assert!(!report.lost().any(|one| of_values(&one.file)), "{name}: {:?}", report.findings);
        let store = Store::open(&to, options()).unwrap();
        check(&store, 0);
        store.close().unwrap();
        verified(&to);
    }
}

#[test]
fn relocated_values_whose_top_or_footer_is_lost_are_salvaged_all_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    fill(&store, 6);
    assert!(reclaim(&store) > 0);
    store.close().unwrap();
    for moved in files(&path, ".moved") {
        let len = std::fs::metadata(&moved).unwrap().len();
        std::fs::File::options().write(true).open(&moved).unwrap().set_len(len - 70).unwrap();
    }
    let error = Store::open(&path, options()).unwrap_err();
    assert!(error.message().contains(".moved"), "{error}");
    let to = dir.path().join("mended");
    let report = Store::repair(&path, &to, &RepairOptions::default(), &options()).unwrap();
    assert!(report.is_complete() && report.verified.is_clean(), "{report:?}");
    let told =
        |finding: &&Finding| finding.file.ends_with(".moved") && finding.what.contains("written again");
    assert!(report.findings.iter().any(|finding| told(&finding)), "{:?}", report.findings);
    let store = Store::open(&to, options()).unwrap();
    check(&store, 6);
    for key in (0..KEYS).filter(|key| key % 2 == 0) {
        blobs(&store).delete(&key).unwrap();
    }
    store.bytes_table("blobs").unwrap().compact().unwrap();
    assert!(reclaim(&store) > 0, "and what was salvaged moves on");
    for key in 0..KEYS {
        let kept = (key % 2 == 1).then(|| blob(key, round_of(key, 6)));
        assert_eq!(blobs(&store).get(&key).unwrap(), kept);
    }
    store.close().unwrap();
    verified(&to);
}

#[test]
fn repair_leaves_out_what_is_lost_names_each_key_of_it_and_the_rest_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    fill(&store, 4);
    assert!(reclaim(&store) > 0);
    let located = |key: u64| {
        let located = blobs(&store).locate(&key, Locate::default()).unwrap().unwrap();
        let piece = located.as_file().unwrap();
        (piece.path().to_owned(), piece.offset())
    };
    let damaged = [3, 4, 100, 299];
    let places = damaged.map(located);
    store.close().unwrap();
    for (file, offset) in &places {
        let mut bytes = std::fs::read(file).unwrap();
        bytes[*offset as usize + 17] ^= 1;
        std::fs::write(file, bytes).unwrap();
    }
    let to = dir.path().join("mended");
    let report = Store::repair(&path, &to, &RepairOptions::default(), &options()).unwrap();
    assert!(!report.is_complete() && report.verified.is_clean(), "{report:?}");
    assert_eq!(report.records_lost, 4);
    for (key, (file, _)) in damaged.iter().zip(&places) {
        let name = file.file_name().unwrap().to_string_lossy();
        let is_told = report.lost().any(|one| {
            let key = key.to_be_bytes().to_vec();
            let is_in = |loss: &Loss| loss.after.as_ref().is_none_or(|after| *after < key);
            one.file == name
                && one.losses.iter().any(|loss| is_in(loss) && loss.through.as_ref() >= Some(&key))
        });
        assert!(is_told, "key {key}: {:?}", report.findings);
    }
    let store = Store::open(&to, options()).unwrap();
    for key in 0..KEYS {
        let kept = (!damaged.contains(&key)).then(|| blob(key, round_of(key, 4)));
        assert_eq!(blobs(&store).get(&key).unwrap(), kept, "key {key}");
    }
}

// ---- space --------------------------------------------------------------------------------------

/// Writes keys as they are drawn, and now and then does all background work that is due.
struct Overwriting {
    store: Store,
    table: Table<u64, Vec<u8>>,
    _dir: tempfile::TempDir,
    keys: u64,
    /// The most bytes of the value log for each live byte, once all keys were there.
    most: f64,
}

impl Overwriting {
    fn new(keys: u64, options: Options) -> Overwriting {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::create(dir.path().join("store"), options).expect("a store");
        // Of a range delete background work sees the leaves of the runs that it covers, which hold
        // a few dozen keys here.
        let rules = Rules::sorted::<u64, Vec<u8>>().separate(2048).block_bytes(512);
        let table = store.table("values", rules).expect("the table");
        Overwriting { store, table, _dir: dir, keys, most: 0.0 }
    }

    fn value(at: u64) -> Vec<u8> {
        vec![at as u8; 4_000 + (drawn(at, 9) % 192) as usize]
    }

    /// Bytes of the value log for each live byte.
    fn space(&self, alive: u64) -> f64 {
        self.store.stats().disk.value_bytes as f64 / (alive * 4_150) as f64
    }

    fn background(&mut self, alive: u64) {
        self.store.flush().expect("flushed");
        while self.store.background_step().expect("a step").is_some() {}
        self.most = self.most.max(self.space(alive));
    }

    /// Puts all keys, and overwrites each this many times on average: of 100 writes, this many are
    /// to a fifth of the keys.
    fn overwrite(&mut self, times: u64, hot: u64) {
        let keys = self.keys;
        for at in 0..keys * times {
            let key = match at {
                at if at < keys => at,
                at if drawn(at, 1) % 100 < hot => drawn(at, 2) % (keys / 5),
                at => keys / 5 + drawn(at, 3) % (keys - keys / 5),
            };
            self.table.put(&key, &Overwriting::value(at)).expect("written");
            if at % (keys / 8) == keys / 8 - 1 {
                self.background(keys);
                self.most = if at < keys { 0.0 } else { self.most };
            }
        }
    }

    /// Deletes this many of 100 keys, and returns how many are left.
    fn delete(&self, of_100: u64) -> u64 {
        let gone: Vec<u64> = (0..self.keys).filter(|key| drawn(*key, 4) % 100 < of_100).collect();
        for key in &gone {
            self.table.delete(key).expect("written");
        }
        self.keys - gone.len() as u64
    }

    /// Bytes written for each byte put.
    fn written(&self) -> f64 {
        let stats = self.store.stats();
        let index = stats.writes.log_bytes + stats.background.part_bytes;
        (index + stats.writes.value_bytes + stats.background.value_bytes_copied) as f64
            / stats.writes.user_bytes as f64
    }
}

fn small_segments() -> Options {
    options().tuning(|t| t.value_segment_bytes(512 << 10).merge_factor(4))
}

/// All of the value log, at every moment when background work has nothing to do: the segment that
/// is filled, the one that is ready for later, values known to be dead, and dead values that no
/// merge has found yet.
#[test]
fn the_value_log_keeps_to_its_bound_on_the_way_when_keys_are_overwritten_evenly_and_unevenly() {
    for (name, hot) in [("even", 20), ("80 of 100 to a fifth", 80)] {
        let mut keys = Overwriting::new(2_000, small_segments());
        keys.overwrite(if cfg!(debug_assertions) { 5 } else { 12 }, hot);
        let (end, written) = (keys.space(2_000), keys.written());
        println!("{name}: space {end:.2}, at most {:.2}, written {written:.2}", keys.most);
        assert!(keys.most <= 1.5, "{name}: at most {}", keys.most);
        assert!(written <= 2.4, "{name}: written {written}");
    }
}

/// Only the two open segments are extra: of 512 KiB each here.
#[test]
fn after_mass_deletes_space_comes_back_by_itself() {
    for by_range in [false, true] {
        let mut keys = Overwriting::new(2_000, small_segments());
        keys.overwrite(2, 20);
        let left = if by_range {
            keys.table.delete_range(&200, &2_000).expect("written");
            200
        } else {
            keys.delete(90)
        };
        keys.background(left);
        let space = keys.space(left);
        let open = 2.0 * (512 << 10) as f64 / (left * 4_150) as f64;
        println!("by range {by_range}: space {space:.2}, of it {open:.2} open segments");
        assert!(space <= 1.5 + open, "by range {by_range}: {space}");
    }
}

/// Open segments have the length that suits a value log that was once large.
#[test]
fn open_segments_of_a_value_log_that_was_large_are_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let options = options().tuning(|t| t.segment_bytes(8 << 20).value_segment_bytes(256 << 20));
    let store = Store::create(dir.path().join("store"), options).unwrap();
    let table = blobs(&store);
    let background = || {
        store.flush().unwrap();
        while store.background_step().unwrap().is_some() {}
    };
    for key in 0..300 {
        table.put(&key, &vec![key as u8; 1 << 20]).unwrap();
        store.background_step_of(BackgroundJob::Log).unwrap();
    }
    background();
    let open = || store.value_segments().into_iter().filter(|file| !file.is_sealed).map(|file| file.bytes);
    assert!(open().max().unwrap() >= 16 << 20);
    for key in 4..300 {
        table.delete(&key).unwrap();
    }
    background();
    background();
    assert!(open().sum::<u64>() <= 8 << 20, "{:?}", store.value_segments());
    assert!(store.stats().disk.value_bytes <= 12 << 20, "{:?}", store.value_segments());
    for key in 0..4 {
        assert_eq!(table.get(&key).unwrap(), Some(vec![key as u8; 1 << 20]));
    }
    store.close().unwrap();
    verified(&dir.path().join("store"));
}
