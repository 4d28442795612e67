//! Power cuts at moments that the small program of `power` does not reach: while a grown manifest
//! begins a new file, and while a backup or a restored store is made. Each is crashed before every
//! change that it makes, in several ways.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use folddb::maintenance::{BackupOptions, RestoreOptions};
use folddb::{BackgroundJob, Durability, ErrorKind, Keep, Options, Resume, Rules, Store, Table};
use folddb_sim::numbered::Numbered;
use folddb_sim::small_store;
use folddb_sim::world::SimDisk;

/// Ways of crashing at each moment: the process alone, and power cuts with this many seeds.
const CUTS: u64 = 3;

fn options(disk: &SimDisk) -> Options {
    small_store::options(disk).tuning(|t| t.part_bytes(64 << 10).merge_factor(64))
}

/// The worlds that a crash may leave.
fn after_crash(disk: &SimDisk, moment: u64) -> Vec<SimDisk> {
    small_store::crashed(disk, 0, moment, CUTS).into_iter().map(|(_, left)| left).collect()
}

/// A key of 60 KB, so that a few dozen parts fill a manifest, which has the bounds of each part.
fn long_key(n: u64) -> Vec<u8> {
    let mut key = n.to_be_bytes().to_vec();
    key.resize(60_000, b'k');
    key
}

fn long(store: &Store) -> Table<Vec<u8>, u64> {
    store.table("long", Rules::sorted::<Vec<u8>, u64>()).unwrap()
}

fn manifests(disk: &SimDisk) -> Vec<String> {
    let names = disk.names(&SimDisk::store_dir()).into_iter().map(|(name, _)| name);
    names.filter(|name| name.starts_with("MANIFEST")).collect()
}

/// Writes and flushes one key after the other in a new store, until its manifest has begun a new
/// file or the process is dead. Returns how many keys were acknowledged, and the number of changes
/// before the last of them.
fn fill_manifest(disk: &SimDisk) -> (u64, u64) {
    let store = Store::create(SimDisk::store_dir(), options(disk)).unwrap();
    let table = long(&store).with_durability(Durability::Sync);
    let first = manifests(disk);
    for n in 0..100 {
        let before = disk.changes();
        if table.put(&long_key(n), &n).is_err() {
            return (n, before);
        }
        if store.flush().is_err() || manifests(disk) != first {
            return (n + 1, before);
        }
    }
    panic!("the manifest does not grow");
}

#[test]
fn no_crash_while_a_grown_manifest_begins_a_new_file_loses_anything() {
    let whole = SimDisk::new(1);
    let (_, first_moment) = fill_manifest(&whole);
    assert!(whole.changes() > first_moment + 5);
    for moment in first_moment..=whole.changes() {
        let disk = SimDisk::new(1);
        disk.die_after(moment);
        let (acknowledged, _) = fill_manifest(&disk);
        for next in after_crash(&disk, moment) {
            let opened = Store::open(SimDisk::store_dir(), options(&next));
            let store = opened.unwrap_or_else(|error| panic!("moment {moment}: {error}\n{}", next.diary(60)));
            let table = long(&store);
            for n in 0..acknowledged {
                assert_eq!(table.get(&long_key(n)).unwrap(), Some(n), "moment {moment}\n{}", next.diary(60));
            }
        }
    }
}

/// Lengths of the batches that are written one after the other: the log continues in segments of
/// 128 KiB, 512 KiB and 1 MiB, and the segment that was made in advance is too short for the long
/// one.
const GROWING: [usize; 10] =
    [40_000, 40_000, 40_000, 40_000, 150_000, 700_000, 90_000, 150_000, 90_000, 90_000];

/// Writes them in a new store until the process is dead. Returns how many were acknowledged, and
/// how many changes there were before the first.
fn grow_log(disk: &SimDisk) -> (u64, u64) {
    let store = Store::create(SimDisk::store_dir(), options(disk)).unwrap();
    let table = long(&store);
    let before = disk.changes();
    for (n, len) in (0u64..).zip(GROWING) {
        let mut key = n.to_be_bytes().to_vec();
        let mut batch = store.batch();
        for piece in 0..len / 10_000 {
            key.resize(10_000 + piece, piece as u8 + 1);
            batch.put(&table, &key, &n);
        }
        if batch.commit(Durability::Sync).is_err() {
            return (n, before);
        }
        let _ = store.background_step_of(BackgroundJob::Log);
    }
    (GROWING.len() as u64, before)
}

#[test]
fn no_crash_while_segments_of_the_log_grow_loses_anything() {
    let whole = SimDisk::new(3);
    let (written, first_moment) = grow_log(&whole);
    assert_eq!(written, GROWING.len() as u64);
    let logs = whole.names(&SimDisk::store_dir()).into_iter().filter(|(name, _)| name.ends_with(".log"));
    let lengths_kib: Vec<u64> = logs.map(|(_, len)| len >> 10).collect();
    assert_eq!((lengths_kib.len(), &lengths_kib[..3]), (4, &[128, 512, 1024][..])); // the last was cut
    for moment in first_moment..=whole.changes() {
        let disk = SimDisk::new(3);
        disk.die_after(moment);
        let (acknowledged, _) = grow_log(&disk);
        for next in after_crash(&disk, moment) {
            let opened = Store::open(SimDisk::store_dir(), options(&next));
            let store = opened.unwrap_or_else(|error| panic!("moment {moment}: {error}\n{}", next.diary(60)));
            let rows: Vec<u64> = long(&store).scan().into_iter().map(|row| row.unwrap().1).collect();
            let whole =
                |n: &u64| rows.iter().filter(|row| *row == n).count() == GROWING[*n as usize] / 10_000;
            let held = (0..GROWING.len() as u64).take_while(whole).count() as u64;
            let expected: usize = GROWING[..held as usize].iter().map(|len| len / 10_000).sum();
            let ways = (held >= acknowledged, rows.len());
            assert_eq!(ways, (true, expected), "moment {moment}: {held}\n{}", next.diary(60));
        }
    }
}

fn store_with(disk: &SimDisk, batches: std::ops::RangeInclusive<u64>) -> Store {
    let dir = SimDisk::store_dir();
    let store = match Store::open(&dir, options(disk)) {
        Err(error) if error.kind() == ErrorKind::StoreNotFound => Store::create(&dir, options(disk)).unwrap(),
        opened => opened.unwrap(),
    };
    let numbered = Numbered::open(&store).unwrap();
    for i in batches {
        let mut batch = store.batch();
        numbered.fill(&mut batch, i);
        batch.commit(Durability::Process).unwrap();
        if i.is_multiple_of(7) {
            store.flush().unwrap();
        }
    }
    store
}

fn place() -> PathBuf {
    PathBuf::from("/backups")
}

/// The last batch of a store, or of a backup, which must hold whole batches.
fn last_of(disk: &SimDisk, dir: &Path, read_only: bool) -> Result<u64, String> {
    let opened =
        (if read_only { Store::open_read_only(dir, options(disk)) } else { Store::open(dir, options(disk)) })
            .map_err(|error| error.to_string())?;
    Numbered::open(&opened).map_err(|error| error.to_string())?.last()
}

/// The backups of a world: for each the last batch that it holds.
fn backups_of(disk: &SimDisk) -> Vec<u64> {
    match Store::backups(place(), &options(disk)) {
        Ok(generations) => generations
            .iter()
            .map(|one| {
                let told = |why: String| panic!("generation {one:?}: {why}\n{}", disk.diary(80));
                last_of(disk, &one.path, true).unwrap_or_else(told)
            })
            .collect(),
        Err(error) if error.kind() == ErrorKind::StoreNotFound => Vec::new(),
        Err(error) => panic!("{error}\n{}", disk.diary(80)),
    }
}

#[test]
fn no_crash_while_a_backup_is_made_leaves_half_of_one_or_takes_an_older_one() {
    let start = SimDisk::new(2);
    let store = store_with(&start, 1..=20);
    store.backup(place(), &BackupOptions::default()).unwrap();
    drop(store);
    let start = start.after_death();
    drop(store_with(&start, 21..=30));
    let mut moment = 0;
    loop {
        let disk = start.after_death();
        let store = Store::open(SimDisk::store_dir(), options(&disk)).unwrap();
        disk.die_after(moment);
        let made = store.backup(place(), &BackupOptions::default()).is_ok() && !disk.is_dead();
        drop(store);
        for next in after_crash(&disk, moment) {
            let found = backups_of(&next);
            assert!(
                found == [20, 30] || (!made && found == [20]),
                "moment {moment}, made: {made}: {found:?}\n{}",
                next.diary(80)
            );
            assert_eq!(
                last_of(&next, &SimDisk::store_dir(), false),
                Ok(30),
                "the store itself, moment {moment}"
            );
            // Another backup can be made in that place, whatever was left there.
            let store = Store::open(SimDisk::store_dir(), options(&next)).unwrap();
            let again = store.backup(place(), &BackupOptions::default());
            again.unwrap_or_else(|error| panic!("moment {moment}: {error}\n{}", next.diary(80)));
            assert_eq!(backups_of(&next).last(), Some(&30));
        }
        if made {
            assert!(moment > 10, "a backup makes {moment} changes, which is little");
            return;
        }
        moment += 1;
    }
}

#[test]
fn no_crash_while_a_store_is_restored_leaves_half_of_one() {
    let start = SimDisk::new(3);
    let store = store_with(&start, 1..=25);
    store.backup(place(), &BackupOptions::default()).unwrap();
    drop(store);
    let to = Path::new("/restored");
    let mut moment = 0;
    loop {
        let disk = start.after_death();
        disk.die_after(moment);
        let restored = Store::restore(place(), to, &RestoreOptions::default(), &options(&disk)).is_ok();
        let restored = restored && !disk.is_dead();
        for next in after_crash(&disk, moment) {
            match Store::open(to, options(&next)).map(drop) {
                Err(error) if error.kind() == ErrorKind::StoreNotFound && !restored => {}
                Err(error) => panic!("moment {moment}: {error}\n{}", next.diary(80)),
                Ok(()) => {
                    assert_eq!(last_of(&next, to, false), Ok(25), "moment {moment}");
                    // Later writes to it remain.
                    let store = Store::open(to, options(&next)).unwrap();
                    let numbered = Numbered::open(&store).unwrap();
                    let mut batch = store.batch();
                    numbered.fill(&mut batch, 26);
                    batch.commit(Durability::Sync).unwrap();
                    drop((numbered, store));
                    for last in after_crash(&next, moment) {
                        assert_eq!(last_of(&last, to, false), Ok(26), "moment {moment}\n{}", last.diary(80));
                    }
                }
            }
            assert_eq!(backups_of(&next), [25], "moment {moment}");
        }
        if restored {
            assert!(moment > 8, "restoring makes {moment} changes, which is little");
            return;
        }
        moment += 1;
    }
}

const LOADED: u64 = 12_000;

fn numbers(store: &Store, name: &str) -> Table<u64, u64> {
    store.table(name, Rules::sorted::<u64, u64>()).unwrap()
}

/// Loads a table of some parts while another one is written to; returns how many of those writes
/// were acknowledged, and whether the load was.
fn load_beside_writes(disk: &SimDisk) -> folddb::Result<(u64, bool)> {
    let store = Store::create(SimDisk::store_dir(), options(disk))?;
    let beside = store.table("beside", Rules::sorted::<u64, u64>())?.with_durability(Durability::Sync);
    let mut load = store.bulk_load("loaded", Rules::sorted::<u64, u64>())?;
    let mut acknowledged = 0;
    let mut is_failing = false;
    for number in 0..LOADED {
        is_failing |= load.put(&number, &number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).is_err();
        if number % 3000 == 0 {
            acknowledged += u64::from(acknowledged * 3000 == number && beside.put(&number, &1).is_ok());
        }
    }
    Ok((acknowledged, !is_failing && load.finish().is_ok()))
}

#[test]
fn no_crash_while_a_table_is_loaded_leaves_part_of_it() {
    let whole = SimDisk::new(1);
    assert_eq!(load_beside_writes(&whole).unwrap(), (4, true));
    let mut outcomes = std::collections::BTreeSet::new();
    for moment in 0..=whole.changes() {
        let disk = SimDisk::new(1);
        disk.die_after(moment);
        let Ok((acknowledged, is_loaded)) = load_beside_writes(&disk) else { continue };
        for next in after_crash(&disk, moment) {
            let context = || format!("moment {moment}\n{}", next.diary(60));
            let opened = Store::open(SimDisk::store_dir(), options(&next));
            let store = opened.unwrap_or_else(|error| panic!("{error}, {}", context()));
            let has_it = store.tables().contains(&"loaded".to_owned());
            assert!(has_it || !is_loaded, "{}", context());
            let names = next.names(&SimDisk::store_dir()).into_iter();
            let parts = names.filter(|(name, _)| name.ends_with(".part")).count();
            let runs = store
                .tables()
                .into_iter()
                .flat_map(|name| store.bytes_table(&name).unwrap().stats().unwrap().runs);
            let listed: usize = runs.map(|run| run.parts.len()).sum();
            assert_eq!(parts, listed, "what no manifest lists goes, {}", context());
            if has_it {
                assert_eq!(numbers(&store, "loaded").scan().count().unwrap(), LOADED, "{}", context());
            }
            let beside = numbers(&store, "beside");
            (0..acknowledged).for_each(|at| {
                assert_eq!(beside.get(&(at * 3000)).unwrap(), Some(1), "{}", context());
            });
            beside.put(&7, &7).unwrap();
            outcomes.insert((has_it, is_loaded));
        }
    }
    assert!(outcomes.contains(&(true, true)) && outcomes.contains(&(false, false)), "{outcomes:?}");
}

/// A load is on the disk when it ends, and so is all that was written before: its rows have the seq
/// of that.
#[test]
fn what_was_written_before_a_load_is_as_durable_as_the_load() {
    for moment in 0..8 {
        let disk = SimDisk::new(moment);
        let store = Store::create(SimDisk::store_dir(), options(&disk)).unwrap();
        let beside = numbers(&store, "beside").with_durability(Durability::Process);
        (0..100).for_each(|number| assert!(beside.put(&number, &number).is_ok()));
        let mut load = store.bulk_load("loaded", Rules::sorted::<u64, u64>()).unwrap();
        (0..10).for_each(|number| assert!(load.put(&number, &number).is_ok()));
        load.finish().unwrap();
        drop(beside);
        for next in after_crash(&disk, moment) {
            let store = Store::open(SimDisk::store_dir(), options(&next)).unwrap();
            assert_eq!(numbers(&store, "loaded").scan().count().unwrap(), 10);
            assert_eq!(numbers(&store, "beside").scan().count().unwrap(), 100, "{}", next.diary(40));
        }
    }
}

/// The numbers of the files of a store.
fn file_numbers(disk: &SimDisk) -> Vec<u64> {
    let names = disk.names(&SimDisk::store_dir()).into_iter();
    let digits = |name: String| name.chars().filter(char::is_ascii_digit).collect::<String>();
    names.filter_map(|(name, _)| digits(name).parse().ok()).collect()
}

/// Also where nothing shows a number any more: the load was abandoned and its files were removed,
/// or their names were lost.
#[test]
fn no_number_that_a_load_has_given_to_a_file_is_given_to_another_after_a_crash() {
    let disk = SimDisk::new(5);
    let store = Store::create(SimDisk::store_dir(), options(&disk)).unwrap();
    let mut load = store.bulk_load("loaded", Rules::sorted::<u64, Vec<u8>>()).unwrap();
    (0..6_000).for_each(|key| assert!(load.put(&key, &vec![key as u8; 2_000]).is_ok()));
    let used = file_numbers(&disk).into_iter().max().unwrap();
    assert!(used > 150, "{used} files are few");
    let under_way = after_crash(&disk, 1);
    drop(load);
    for next in under_way.into_iter().chain(after_crash(&disk, 2)) {
        let before = file_numbers(&next);
        let store = Store::open(SimDisk::store_dir(), options(&next)).unwrap();
        let later = file_numbers(&next).into_iter().filter(|number| !before.contains(number)).min();
        assert!(later > Some(used), "{later:?} is given to a file, and {used} was");
        drop(store);
    }
}

/// A cursor outlives the process, a write that was `Buffered` may not: the store says what happened
/// to the writes that the cursor saw. Where nothing was written since, its seq belongs to no other
/// write.
#[test]
fn a_strict_cursor_of_writes_that_a_dead_process_took_with_it_is_refused_with_the_reason() {
    let disk = SimDisk::new(11);
    let store = Store::create(SimDisk::store_dir(), options(&disk)).unwrap();
    let rules = Rules::sorted::<u64, u64>().keep(Keep::Forever);
    let table = store.table("kept", rules).unwrap();
    let write = |n: u64, durability| table.clone().with_durability(durability).put(&n, &n).unwrap();
    let cursor = || table.as_bytes().scan().rows().unwrap().cursor();
    (0..10).for_each(|n| assert!(write(n, Durability::Process) > folddb::Seq::default()));
    let handed_over = cursor();
    (10..20).for_each(|n| assert!(write(n, Durability::Buffered) > folddb::Seq::default()));
    let lost = cursor();

    let next = disk.after_death();
    let store = Store::open(SimDisk::store_dir(), options(&next)).unwrap();
    let table = store.open_table::<u64, u64>("kept").unwrap();
    assert_eq!(table.resume(&handed_over, Resume::Strict).unwrap().count().unwrap(), 10);
    let refused = table.resume(&lost, Resume::Strict).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::SnapshotTooOld);
    assert!(refused.to_string().contains("lost what was written after 10"), "{refused}");
}
