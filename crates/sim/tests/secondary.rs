//! Secondaries read stores while other processes write to them, and any process reads frozen
//! stores: with real processes, and in the faulty world.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use folddb::maintenance::{BackupOptions, ByteProgress, RestoreOptions, VerifyOptions};
use folddb::{BackgroundWork, Durability, ErrorKind, Options, Rules, Store, Table, ValuePlacement};
use folddb_host::Host;
use folddb_sim::chance::Seeded;
use folddb_sim::faulty_files::{Call, Fault, FaultyFiles};
use folddb_sim::numbered::Numbered;
use folddb_sim::world::SimDisk;

const DIR: &str = "FOLDDB_BESIDE_DIR";

fn small() -> Options {
    Options::default()
        .memory_bytes(4 << 20)
        .tuning(|t| t.segment_bytes(1 << 20).value_segment_bytes(1 << 20).part_bytes(64 << 10))
        .disk_reserve_bytes(0)
}

fn manual() -> Options {
    small().background(BackgroundWork::Manual)
}

type Blobs = Table<u64, Vec<u8>>;

fn hashed(store: &Store) -> Blobs {
    store.table("hashed", Rules::hashed()).unwrap()
}

fn separated(store: &Store) -> Blobs {
    store.table("separated", Rules::sorted().separate(1024)).unwrap()
}

fn in_files(store: &Store) -> Blobs {
    store.table("files", Rules::hashed().value_placement(ValuePlacement::Files)).unwrap()
}

fn blob(key: u64, round: u64) -> Vec<u8> {
    let mut value = vec![(key + round) as u8; 1024 + (key as usize * 37) % 2000];
    value[..8].copy_from_slice(&round.to_le_bytes());
    value
}

// ---- next to a writer ---------------------------------------------------------------------------

/// The writer: does nothing unless the parent has called it.
#[test]
#[ignore = "run by `a_process_reads_what_another_writes` as a process of its own"]
fn child_that_writes() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let mut out = std::io::stdout().lock();
    let store = Store::open(PathBuf::from(dir), small()).unwrap();
    let numbered = Numbered::open(&store).unwrap();
    let (separated, hashed) = (separated(&store), hashed(&store));
    let mut batch = store.batch();
    for i in numbered.last().unwrap() + 1.. {
        numbered.fill(&mut batch, i);
        batch.put(&separated, &(i % 50), &blob(i % 50, i)).put(&hashed, &(i % 50), &blob(i % 50, i));
        batch.commit(Durability::Process).unwrap();
        out.write_all(format!("ack {i}\n").as_bytes()).unwrap();
        out.flush().unwrap();
        if i.is_multiple_of(300) {
            store.bytes_table("separated").unwrap().compact().unwrap(); // files come and go
        }
    }
}

/// A process that writes, and the last batch that it has acknowledged.
struct Writer {
    child: Child,
    acknowledged: Arc<AtomicU64>,
}

impl Writer {
    fn start(dir: &Path) -> Writer {
        let mut child = Command::new(std::env::current_exe().expect("this program has a path"))
            .args(["--exact", "child_that_writes", "--ignored", "--nocapture", "--test-threads=1"])
            .env(DIR, dir)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the writer starts");
        let acknowledged = Arc::new(AtomicU64::new(0));
        let (stdout, told) = (child.stdout.take().expect("it is piped"), Arc::clone(&acknowledged));
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some(number) = line.strip_prefix("ack ").and_then(|number| number.parse().ok()) {
                    told.store(number, Ordering::Release);
                }
            }
        });
        Writer { child, acknowledged }
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Acquire)
    }

    fn wait_for(&self, number: u64) {
        let begun = Instant::now();
        while self.acknowledged() < number {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "the writer stands still at {}",
                self.acknowledged()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The last batch that a store shows, all of whose tables say the same.
fn last(store: &Store) -> u64 {
    let last = Numbered::open(store).unwrap().last().unwrap();
    for table in [separated(store), hashed(store)] {
        let rows: BTreeMap<u64, Vec<u8>> = table.scan().into_iter().map(|row| row.unwrap()).collect();
        let expected = (last.saturating_sub(49).max(1)..=last).map(|i| (i % 50, blob(i % 50, i))).collect();
        assert_eq!(rows, expected, "each batch is whole, and no other is there, at {last}");
    }
    last
}

#[test]
fn a_process_reads_what_another_writes() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("store");
    let store = Store::create(&dir, small()).unwrap();
    Numbered::open(&store).unwrap();
    let _tables = (separated(&store), hashed(&store));
    store.close().unwrap();
    let writer = Writer::start(&dir);
    writer.wait_for(1);
    assert_eq!(Store::open(&dir, small()).err().unwrap().kind(), ErrorKind::Locked);
    let before = writer.acknowledged();
    let first = Store::open_secondary(&dir, small()).unwrap();
    let seen = last(&first);
    assert!(seen >= before, "{before} were acknowledged, {seen} are seen");
    let (mut store, mut newest) = (first.clone(), seen);
    for round in 1..=12 {
        writer.wait_for(before + round * 60);
        let acknowledged = writer.acknowledged();
        store = store.refresh().unwrap();
        let now = last(&store);
        assert!(now >= acknowledged.max(newest), "{acknowledged} were acknowledged, {now} are seen");
        newest = now;
    }
    assert_eq!(last(&first), seen, "what was opened stays what it was");
    let error = separated(&first).put(&1, &vec![0; 10]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
    drop(writer); // killed
    assert!(last(&store.refresh().unwrap()) >= newest);
    assert!(last(&Store::open(&dir, small()).unwrap()) >= newest, "the writer's place is free");
}

#[test]
fn whatever_the_writer_removes_the_reader_has_or_says_that_it_is_gone() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("store");
    let store = Store::create(&dir, manual()).unwrap();
    let tables = [separated(&store), hashed(&store), in_files(&store)];
    let fill = |round| {
        for table in &tables {
            (0..100).for_each(|key| assert!(table.put(&key, &blob(key, round)).is_ok()));
        }
    };
    let settle = || {
        store.flush().unwrap();
        store.bytes_table("separated").unwrap().compact().unwrap();
        while store.background_step().unwrap().is_some() {}
        store.reclaim().unwrap();
    };
    fill(0);
    settle();
    let reader = Store::open_secondary(&dir, manual()).unwrap();
    assert_eq!(in_files(&reader).get(&1).unwrap(), Some(blob(1, 0)));
    fill(1);
    settle();
    fill(2);
    settle();
    for table in [separated(&reader), hashed(&reader)] {
        assert!((0..100).all(|key| table.get(&key).unwrap() == Some(blob(key, 0))), "it stays what it was");
    }
    let error = in_files(&reader).get(&2).unwrap_err();
    assert!(error.to_string().contains("refresh"), "{error}");
    let fresh = reader.refresh().unwrap();
    for table in [separated(&fresh), hashed(&fresh), in_files(&fresh)] {
        assert!((0..100).all(|key| table.get(&key).unwrap() == Some(blob(key, 2))));
    }
    assert_eq!(store.refresh().err().unwrap().kind(), ErrorKind::InvalidInput);
}

#[test]
fn the_state_of_a_secondary_is_backed_up_whatever_the_writer_does() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("store");
    let store = Store::create(&dir, manual()).unwrap();
    let tables = [separated(&store), hashed(&store), in_files(&store)];
    let fill = |round| {
        for table in &tables {
            (0..100).for_each(|key| assert!(table.put(&key, &blob(key, round)).is_ok()));
        }
    };
    fill(0);
    store.flush().unwrap();
    fill(1);
    let reader = Store::open_secondary(&dir, manual()).unwrap();
    let backups = temp.path().join("backups");
    let restored = |number: u64| {
        let again = temp.path().join(format!("again{number}"));
        Store::restore(&backups, &again, &RestoreOptions::default(), &manual()).unwrap();
        let again = Store::open(&again, manual()).unwrap();
        for table in [separated(&again), hashed(&again), in_files(&again)] {
            assert!((0..100).all(|key| table.get(&key).unwrap() == Some(blob(key, 1))), "backup {number}");
            assert_eq!(table.scan().count().unwrap(), 100);
        }
    };
    reader.backup(&backups, &BackupOptions::default()).unwrap();
    restored(1);
    (1000..1100).for_each(|key| assert!(separated(&store).put(&key, &blob(key, 0)).is_ok())); // in the log that the reader has read
    reader.backup(&backups, &BackupOptions::default()).unwrap();
    restored(2);
    store.flush().unwrap();
    store.bytes_table("separated").unwrap().compact().unwrap(); // the files of the reader have no names any more
    reader.backup(&backups, &BackupOptions::default().check_all(true)).unwrap();
    restored(3);
    // The log that the reader has read continues: it leads to values in segments that are made and
    // removed after the reader's opening, and so are segments of the log itself.
    let inline = store.table("inline", Rules::sorted::<u64, Vec<u8>>()).unwrap();
    let (held, before) = (names(&dir, ".log"), names(&dir, ".values"));
    (1000..1700).for_each(|key| assert!(separated(&store).put(&key, &blob(key, 2)).is_ok()));
    let made: BTreeSet<String> = names(&dir, ".values").difference(&before).cloned().collect();
    for round in 3..6 {
        (0..20).for_each(|key| assert!(inline.put(&key, &vec![round; 60_000]).is_ok()));
        (1000..1700).for_each(|key| assert!(separated(&store).put(&key, &blob(key, round.into())).is_ok()));
    }
    store.flush().unwrap();
    store.bytes_table("separated").unwrap().compact().unwrap();
    store.settle().unwrap();
    assert!(names(&dir, ".log").is_disjoint(&held), "the log that the reader holds has no name any more");
    let left = names(&dir, ".values");
    assert!(made.iter().any(|name| !left.contains(name)), "nor have values that it leads to: {made:?}");
    reader.backup(&backups, &BackupOptions::default().check_all(true)).unwrap();
    restored(4);
}

/// A writer that is opened again cuts the tail of the log that it archives and rewrites it.
#[test]
fn a_secondary_of_a_reopened_writer_backs_up_the_present_state() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, backups, again) =
        (temp.path().join("store"), temp.path().join("backups"), temp.path().join("again"));
    let rules = || Rules::sorted::<u64, u64>().archive_log(true);
    let store = Store::create(&dir, manual()).unwrap();
    store.table("archived", rules()).unwrap().put(&1, &1).unwrap();
    store.flush().unwrap();
    store.table("archived", rules()).unwrap().put(&2, &2).unwrap();
    let reader = Store::open_secondary(&dir, manual()).unwrap();
    drop(store); // it is not closed
    let store = Store::open(&dir, manual()).unwrap();
    reader.backup(&backups, &BackupOptions::default()).unwrap();
    Store::restore(&backups, &again, &RestoreOptions::default(), &manual()).unwrap();
    let restored = Store::open(&again, manual()).unwrap();
    let rows: Vec<_> = restored.table("archived", rules()).unwrap().scan().into_iter().flatten().collect();
    assert_eq!(rows, [(1, 1), (2, 2)]);
    drop(store);
}

/// A writer that is opened again cuts off the end of a segment, where nothing leads any more: a
/// reader then loses the values of a table that was dropped since, and this is no damage.
#[test]
fn values_that_a_writer_cuts_off_when_it_is_opened_again_are_gone_and_not_damaged() {
    type Kind = fn() -> Rules<u64, Vec<u8>>;
    let sorted: Kind = || Rules::sorted().separate(1024);
    for (rules, is_flushed) in [(sorted, false), (sorted, true), (Rules::hashed as Kind, false)] {
        let temp = tempfile::tempdir().unwrap();
        let (dir, backups) = (temp.path().join("store"), temp.path().join("backups"));
        let files = FaultyFiles::new(Host::real().files);
        let host = Host { files: Arc::new(files.clone()), ..Host::real() };
        let store = Store::create(&dir, manual().host(host)).unwrap();
        separated(&store).put(&1, &blob(1, 0)).unwrap();
        store.table("doomed", rules()).unwrap().put(&1, &blob(1, 1)).unwrap();
        if is_flushed {
            store.flush().unwrap();
        }
        let reader = Store::open_secondary(&dir, manual()).unwrap();
        store.drop_table("doomed").unwrap();
        files.break_on(Fault::on(&[]));
        drop(store); // as if it had died: nothing that it does from now on reaches a file
        let store = Store::open(&dir, manual()).unwrap();
        let doomed = reader.open_table::<u64, Vec<u8>>("doomed").unwrap();
        for error in [doomed.get(&1).unwrap_err(), doomed.scan().into_iter().next().unwrap().unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
            assert!(error.to_string().contains("refresh the store"), "{error}");
        }
        assert_eq!(separated(&reader).get(&1).unwrap(), Some(blob(1, 0)), "what is needed stays");
        for copy in [false, true] {
            let again = temp.path().join(format!("again {copy}"));
            reader.backup(&backups, &BackupOptions::default().copy(copy).check_all(true)).unwrap();
            Store::restore(&backups, &again, &RestoreOptions::default(), &manual()).unwrap();
            assert!(
                Store::verify(&again, &VerifyOptions::default().deep(true), &manual())
                    .unwrap()
                    .findings
                    .is_empty()
            );
        }
        let reader = reader.refresh().unwrap();
        assert!(reader.open_table::<u64, Vec<u8>>("doomed").is_err());
        drop(store);
    }
}

/// A store whose values have files of their own, which are rewritten again and again.
struct Renewed {
    disk: SimDisk,
    store: Store,
    round: AtomicU64,
}

const BLOBS: u64 = 20;
const LONG: u64 = 1000;
const STAYS: std::ops::Range<u64> = 100..105;

impl Renewed {
    fn create() -> Renewed {
        let disk = SimDisk::new(1);
        let options = manual().host(disk.host()).tuning(|t| t.stream_piece_bytes(4 << 10));
        let store = Store::create(SimDisk::store_dir(), options).unwrap();
        let made = Renewed { disk, store, round: AtomicU64::new(0) };
        made.store.table("sorted", sorted_in_files()).unwrap();
        // A value that remains keeps its directory, from which most others are removed.
        for key in STAYS {
            in_files(&made.store).put(&key, &blob(key, 0)).unwrap();
        }
        made.renew();
        made
    }

    /// Rewrites every value, or deletes it, in one batch; then removes all dead values.
    fn renew(&self) {
        let round = self.round.fetch_add(1, Ordering::Relaxed);
        let (hashed, sorted) =
            (in_files(&self.store), self.store.table("sorted", sorted_in_files()).unwrap());
        let mut batch = self.store.batch();
        for key in 0..BLOBS {
            match (key + round) % 7 {
                0 => batch.delete(&hashed, &key).delete(&sorted, &key),
                _ => batch.put(&hashed, &key, &blob(key, round)).put(&sorted, &key, &blob(key, round)),
            };
        }
        batch.commit(Durability::Process).unwrap();
        let mut long = hashed.writer(&LONG).unwrap(); // a directory of its own, which is removed as a whole
        long.write_all(&blob(LONG, round).repeat(12)).unwrap();
        long.finish().unwrap();
        if round % 2 == 1 {
            self.store.flush().unwrap();
            self.store.bytes_table("sorted").unwrap().compact().unwrap();
        }
        while self.store.background_step().unwrap().is_some() {}
        self.store.reclaim().unwrap();
    }

    /// The round after which a store has its state; it must have all of that round.
    fn round_of(store: &Store, why: &str) -> u64 {
        let (hashed, sorted) = (in_files(store), store.table("sorted", sorted_in_files()).unwrap());
        let one = (0..2).find_map(|key| hashed.get(&key).unwrap()).expect("one of two is there");
        let round = u64::from_le_bytes(one[..8].try_into().unwrap());
        for key in 0..BLOBS {
            let expected = ((key + round) % 7 != 0).then(|| blob(key, round));
            assert_eq!(hashed.get(&key).unwrap(), expected, "{why}: key {key}, round {round}");
            assert_eq!(sorted.get(&key).unwrap(), expected, "{why}: key {key}, round {round}");
        }
        let long = hashed.get(&LONG).unwrap().expect("it is never deleted");
        assert!(long == blob(LONG, u64::from_le_bytes(long[..8].try_into().unwrap())).repeat(12), "{why}");
        STAYS.for_each(|key| assert_eq!(hashed.get(&key).unwrap(), Some(blob(key, 0)), "{why}: key {key}"));
        round
    }
}

/// More than a backup next to the writer tolerates.
const DISTURBED_MAX: u64 = 40;

fn sorted_in_files() -> Rules<u64, Vec<u8>> {
    Rules::sorted().separate(512).value_placement(ValuePlacement::Files)
}

#[test]
fn a_backup_is_complete_or_refused_while_value_files_are_removed() {
    let renewed = Arc::new(Renewed::create());
    let options = || manual().host(renewed.disk.host());
    let path = |name: &str, number: u64| SimDisk::store_dir().with_file_name(format!("{name}{number}"));
    let (mut number, mut refused) = (0, 0);
    for (steps, copy) in
        [0, 1, 2, 3, 5, 8, DISTURBED_MAX].into_iter().flat_map(|steps| [(steps, false), (steps, true)])
    {
        for of in ["the writer", "a reader", "a reader of before"] {
            let why = format!("backup {number} of {of}, disturbed {steps} times, copied: {copy}");
            let round = renewed.round.load(Ordering::Relaxed) - 1;
            let store = match of {
                "the writer" => renewed.store.clone(),
                _ => Store::open_secondary(SimDisk::store_dir(), options()).unwrap(),
            };
            if of == "a reader of before" {
                (0..3).for_each(|_| renewed.renew());
            }
            let place = path("backups", number);
            let how = BackupOptions::default().copy(copy);
            match store.backup_with(&place, &how, disturbance(&renewed, steps)) {
                Ok(_) => {
                    let again = path("again", number);
                    Store::restore(&place, &again, &RestoreOptions::default(), &options()).unwrap();
                    let restored = Renewed::round_of(&Store::open(&again, options()).unwrap(), &why);
                    assert!(
                        restored >= round,
                        "{why}: it is of round {restored} and not of {round} or later"
                    );
                }
                Err(error) => {
                    assert!(of != "the writer" && steps == DISTURBED_MAX, "{why}: {error}");
                    assert_eq!(error.kind(), ErrorKind::SnapshotTooOld, "{why}: {error}");
                    assert!(error.to_string().contains("in the process that writes"), "{why}: {error}");
                    assert!(Store::backups(&place, &options()).unwrap().is_empty(), "{why}");
                    refused += 1;
                }
            }
            number += 1;
        }
    }
    assert!(refused > 0 && refused < number / 2, "{refused} of {number} were refused");
}

#[test]
fn a_backup_takes_the_values_of_a_segment_that_the_writer_fills_and_cuts_meanwhile() {
    for copy in [false, true] {
        let temp = tempfile::tempdir().unwrap();
        let (dir, place, again) =
            (temp.path().join("store"), temp.path().join("backups"), temp.path().join("again"));
        let store = Store::create(&dir, manual()).unwrap();
        (0..50).for_each(|key| assert!(separated(&store).put(&key, &blob(key, 0)).is_ok()));
        store.flush().unwrap();
        let reader = Store::open_secondary(&dir, manual()).unwrap();
        let lengths =
            |of: &[String]| of.iter().map(|name| dir.join(name).metadata().unwrap().len()).sum::<u64>();
        let open: Vec<String> = names(&dir, ".values").into_iter().collect();
        let before = lengths(&open);
        let is_first = AtomicU64::new(1);
        let writer = store.clone();
        let fills = |_| {
            if is_first.swap(0, Ordering::Relaxed) == 1 {
                (50..1500).for_each(|key| assert!(separated(&writer).put(&key, &blob(key, 0)).is_ok()));
                while writer.background_step().unwrap().is_some() {}
            }
            ControlFlow::Continue(())
        };
        reader.backup_with(&place, &BackupOptions::default().copy(copy), fills).unwrap();
        assert!(lengths(&open) < before, "the segment was cut while it was copied");
        Store::restore(&place, &again, &RestoreOptions::default(), &manual()).unwrap();
        let restored = Store::open(&again, manual()).unwrap();
        (0..50).for_each(|key| assert_eq!(separated(&restored).get(&key).unwrap(), Some(blob(key, 0))));
        restored.close().unwrap();
        assert!(
            Store::verify(&again, &VerifyOptions::default().deep(true), &manual())
                .unwrap()
                .findings
                .is_empty()
        );
    }
}

/// Between the steps of a backup all values are rewritten, this many times.
fn disturbance(renewed: &Renewed, steps: u64) -> impl FnMut(ByteProgress) -> ControlFlow<()> {
    let mut left = steps;
    move |_| {
        if left > 0 {
            left -= 1;
            renewed.renew();
        }
        ControlFlow::Continue(())
    }
}

/// The files of a directory whose names end with this.
fn names(dir: &Path, end: &str) -> BTreeSet<String> {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter_map(|name| name.into_string().ok()).filter(|name| name.ends_with(end)).collect()
}

// ---- frozen -------------------------------------------------------------------------------------

#[test]
fn a_frozen_store_is_read_by_many_and_written_by_nobody() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("store");
    let store = Store::create(&dir, manual()).unwrap();
    (0..50).for_each(|key| assert!(separated(&store).put(&key, &blob(key, 0)).is_ok()));
    assert_eq!(Store::freeze(&dir, manual()).err().unwrap().kind(), ErrorKind::Locked);
    store.close().unwrap();
    Store::freeze(&dir, manual()).unwrap();
    Store::freeze(&dir, manual()).unwrap();
    assert!(Store::is_frozen(&dir, &manual()));
    let error = Store::open(&dir, manual()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
    assert!(error.to_string().contains("frozen"), "{error}");
    assert!(Store::diagnose(&dir, &manual()).unwrap().iter().any(|advice| advice.what.contains("frozen")));
    let readers: Vec<Store> = (0..3).map(|_| Store::open_read_only(&dir, manual()).unwrap()).collect();
    for reader in &readers {
        assert!(reader.stats().is_frozen);
        assert_eq!(separated(reader).get(&7).unwrap(), Some(blob(7, 0)));
        assert_eq!(separated(reader).delete(&7).unwrap_err().kind(), ErrorKind::ReadOnly);
    }
    let backups = temp.path().join("backups");
    readers[0].backup(&backups, &BackupOptions::default()).unwrap();
    assert_eq!(Store::thaw(&dir, manual()).err().unwrap().kind(), ErrorKind::Locked, "while somebody reads");
    drop(readers);
    assert!(
        Store::verify(&dir, &VerifyOptions::default().deep(true), &manual()).unwrap().findings.is_empty()
    );
    let again = temp.path().join("again");
    Store::restore(&backups, &again, &RestoreOptions::default(), &manual()).unwrap();
    assert!(Store::open(&again, manual()).is_ok(), "what is restored is not frozen");
    Store::thaw(&dir, manual()).unwrap();
    Store::thaw(&dir, manual()).unwrap();
    let store = Store::open(&dir, manual()).unwrap();
    assert!(!store.stats().is_frozen);
    assert!(separated(&store).delete(&7).is_ok());
    assert_eq!(Store::thaw(temp.path(), manual()).err().unwrap().kind(), ErrorKind::StoreNotFound);
}

/// Writes, freezes and thaws; returns how far it got.
fn freeze_and_thaw(disk: &SimDisk) -> u64 {
    let options = || manual().host(disk.host());
    let dir = SimDisk::store_dir();
    let fill = || -> folddb::Result<()> {
        let store = Store::create(&dir, options())?;
        let numbered = Numbered::open(&store)?;
        let mut batch = store.batch();
        for i in 1..=5 {
            numbered.fill(&mut batch, i);
            batch.commit(Durability::Sync)?;
        }
        Ok(())
    };
    let done = [fill(), Store::freeze(&dir, options()), Store::thaw(&dir, options())];
    done.iter().take_while(|done| done.is_ok()).count() as u64
}

#[test]
fn a_store_is_frozen_under_the_lock_that_it_was_opened_under() {
    let disk = SimDisk::new(3);
    let (dir, options) = (SimDisk::store_dir(), || manual().host(disk.host()));
    Store::create(&dir, options()).unwrap().close().unwrap();
    disk.break_on(Fault { skip: 1, ..Fault::on(&[Call::Lock]) }); // locking it again requires a release before
    Store::freeze(&dir, options()).unwrap();
    disk.heal();
    assert!(Store::is_frozen(&dir, &options()));
}

#[test]
fn a_crash_while_a_store_is_frozen_leaves_it_frozen_or_not_and_whole() {
    let whole = SimDisk::new(1);
    assert_eq!(freeze_and_thaw(&whole), 3);
    let (mut frozen, mut open) = (0, 0);
    for moment in 0..whole.changes() {
        let disk = SimDisk::new(1);
        disk.die_after(moment);
        let came = freeze_and_thaw(&disk);
        if came == 0 {
            continue;
        }
        for disk in [disk.after_death(), disk.after_power_cut(&mut Seeded::new(moment))] {
            let options = || manual().host(disk.host());
            let is_frozen = Store::is_frozen(SimDisk::store_dir(), &options());
            let changes = disk.changes();
            let dir = SimDisk::store_dir();
            for opened in [Store::open_read_only(&dir, options()), Store::open_secondary(&dir, options())] {
                let store = opened.unwrap();
                assert_eq!(Numbered::open(&store).unwrap().last().unwrap(), 5, "moment {moment}");
            }
            assert!(disk.changes() <= changes + 1, "readers change nothing but the lock");
            if came == 2 && moment < whole.changes() - 2 {
                assert!(is_frozen, "moment {moment}: what was acknowledged is frozen");
            }
            match Store::open(SimDisk::store_dir(), options()) {
                Ok(_) => open += 1,
                Err(error) => {
                    assert!(is_frozen && error.kind() == ErrorKind::ReadOnly, "moment {moment}: {error}");
                    frozen += 1;
                }
            }
        }
    }
    assert!(frozen > 0 && open > 0, "{frozen} frozen, {open} not");
}

/// Calls `change` again after each of its calls has failed once: where it returns success, a power
/// cut does not undo it.
fn assert_done_is_durable(
    whole: &SimDisk,
    is_frozen_then: bool,
    change: fn(&Path, Options) -> folddb::Result<()>,
) {
    let dir = SimDisk::store_dir();
    let mut failures = 0;
    for skip in 0.. {
        let disk = whole.after_death();
        let options = || manual().host(disk.host());
        disk.break_on(Fault { skip, times: 1, ..Fault::on(&[]) });
        let first = change(&dir, options());
        if disk.failed().is_empty() {
            break;
        }
        failures += u64::from(first.is_err());
        disk.heal();
        change(&dir, options()).unwrap_or_else(|error| panic!("again after call {skip}: {error}"));
        disk.after_power_cuts(4, |left| {
            let is_frozen = Store::is_frozen(&dir, &manual().host(left.host()));
            assert_eq!(is_frozen, is_frozen_then, "after call {skip} failed, done again, and the power went");
        });
    }
    assert!(failures > 2, "only {failures} calls failed it");
}

#[test]
fn a_freeze_that_failed_and_is_done_or_undone_again_is_durable_when_that_is_done() {
    let disk = SimDisk::new(3);
    let options = || manual().host(disk.host());
    let store = Store::create(SimDisk::store_dir(), options()).unwrap();
    Numbered::open(&store).unwrap();
    store.close().unwrap();
    assert_done_is_durable(&disk, true, |dir, options| Store::freeze(dir, options));
    Store::freeze(SimDisk::store_dir(), options()).unwrap();
    assert_done_is_durable(&disk, false, |dir, options| Store::thaw(dir, options));
}
