//! The simulated disk behaves as documented, since it judges everything else.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use folddb_host::{AppendMode, Files, LockMode};

use super::*;

fn path(name: &str) -> PathBuf {
    Path::new("/").join(name)
}

/// What many power cuts leave of a file: the distinct contents, none where it is gone.
fn outcomes(disk: &SimDisk, name: &str) -> BTreeSet<Option<Vec<u8>>> {
    (0..300).map(|seed| disk.after_power_cut(&mut Seeded::new(seed)).bytes(&path(name)).ok()).collect()
}

#[test]
fn what_is_synced_with_its_name_survives_everything() {
    let disk = SimDisk::new(1);
    let mut file = disk.create(&path("a")).unwrap();
    file.append(b"hello").unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    assert_eq!(outcomes(&disk, "a"), BTreeSet::from([Some(b"hello".to_vec())]));
}

#[test]
fn a_name_that_is_not_synced_may_go_and_a_removal_may_come_back() {
    let disk = SimDisk::new(1);
    let mut file = disk.create(&path("a")).unwrap();
    file.append(b"x").unwrap();
    file.sync().unwrap();
    assert_eq!(outcomes(&disk, "a"), BTreeSet::from([None, Some(b"x".to_vec())]));
    disk.sync_dir(Path::new("/")).unwrap();
    disk.remove(&path("a")).unwrap();
    assert!(disk.open(&path("a")).is_err());
    assert_eq!(outcomes(&disk, "a"), BTreeSet::from([None, Some(b"x".to_vec())]));
    disk.sync_dir(Path::new("/")).unwrap();
    assert_eq!(outcomes(&disk, "a"), BTreeSet::from([None]));
}

#[test]
fn a_rename_happens_whole_or_not_and_links_keep_a_file() {
    let disk = SimDisk::new(1);
    disk.create(&path("a")).unwrap().sync().unwrap();
    disk.link(&path("a"), &path("c")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    disk.rename(&path("a"), &path("b")).unwrap();
    let names: BTreeSet<Vec<String>> = (0..100)
        .map(|seed| {
            let after = disk.after_power_cut(&mut Seeded::new(seed));
            after.names(Path::new("/")).into_iter().map(|(name, _)| name).collect()
        })
        .collect();
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(names, BTreeSet::from([named(&["a", "c"]), named(&["b", "c"])]));
}

#[test]
fn sectors_that_are_not_synced_are_old_new_torn_or_garbage() {
    let disk = SimDisk::new(1);
    let mut file = disk.create(&path("a")).unwrap();
    file.append(&[1; 700]).unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    file.append(&[2; 2000]).unwrap();
    let left = outcomes(&disk, "a");
    assert!(left.len() > 50, "{} outcomes", left.len());
    let left: Vec<Vec<u8>> = left.into_iter().flatten().collect();
    assert!(left.iter().all(|bytes| bytes[..700] == [1; 700]), "synced bytes stay");
    let has = |wanted: &dyn Fn(&[u8]) -> bool| left.iter().any(|bytes| wanted(bytes));
    assert!(has(&|bytes| bytes.len() == 700), "the old length");
    assert!(has(&|bytes| bytes.len() == 2700 && bytes[700..].iter().all(|byte| *byte == 2)), "all of it");
    assert!(has(&|bytes| bytes.len() > 2600 && bytes[1024..1536] == [0; 512]), "a sector that is not there");
    assert!(has(&|bytes| bytes.len() > 1536 && bytes[1024..1536].iter().any(|byte| *byte > 2)), "garbage");
    assert!(has(&|bytes| bytes.len() > 700 && bytes.len() < 2700), "a length between");
}

#[test]
fn pages_of_a_mapped_file_get_there_on_their_own() {
    let disk = SimDisk::new(1);
    let mut file = disk.create_append(&path("a"), 64 << 10, AppendMode::Mapped).unwrap();
    file.syncer().sync().unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    file.append(&[7; 20_000]).unwrap();
    assert_eq!(file.append(&[7; 64 << 10]).unwrap_err().kind(), io::ErrorKind::StorageFull);
    let left: Vec<Vec<u8>> = outcomes(&disk, "a").into_iter().flatten().collect();
    assert!(
        left.iter().all(|bytes| bytes.len() == 64 << 10 && bytes[20_480..].iter().all(|byte| *byte == 0))
    );
    assert!(left.iter().any(|bytes| bytes[4096] == 0 && bytes[8192] == 7), "the later page alone");
}

#[test]
fn a_preallocated_file_that_is_not_synced_may_be_short() {
    let disk = SimDisk::new(1);
    let _file = disk.create_append(&path("a"), 10_000, AppendMode::Written).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    let lens: BTreeSet<usize> = outcomes(&disk, "a").into_iter().flatten().map(|bytes| bytes.len()).collect();
    assert!(lens.contains(&0) && lens.contains(&10_000) && lens.len() > 5, "{lens:?}");
}

#[test]
fn a_sync_that_fails_marks_clean_and_a_later_one_saves_nothing() {
    let disk = SimDisk::new(1);
    let mut file = disk.create(&path("a")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    file.append(&[3; 4096]).unwrap();
    disk.break_on(Fault { times: 1, ..Fault::on(&[Call::WriteSync]) });
    file.sync().unwrap_err();
    assert_eq!(disk.bytes(&path("a")).unwrap(), [3; 4096], "readers see it");
    file.sync().unwrap();
    let lost = |disk: &SimDisk| disk.bytes(&path("a")).unwrap().iter().filter(|byte| **byte == 0).count();
    assert!(lost(&disk.after_power_cut(&mut Seeded::new(1))) > 1000);
    assert_eq!(lost(&disk.after_death()), 0);
    disk.evict();
    assert!(lost(&disk) > 1000);
}

#[test]
fn a_process_dies_before_a_change_and_then_changes_nothing() {
    let disk = SimDisk::new(1);
    disk.die_after(2);
    let mut file = disk.create(&path("a")).unwrap();
    file.append(b"1").unwrap();
    assert!(!disk.is_dead());
    file.append(b"2").unwrap_err();
    assert!(disk.is_dead());
    assert!(disk.open(&path("a")).is_err());
    assert_eq!(disk.bytes(&path("a")).unwrap(), b"1");
    let next = disk.after_death();
    assert_eq!(next.bytes(&path("a")).unwrap(), b"1");
    file.append(b"3").unwrap_err();
    assert_eq!(next.bytes(&path("a")).unwrap(), b"1");
}

#[test]
fn a_full_disk_takes_what_fits() {
    let disk = SimDisk::new(1);
    let mut reserved = disk.create_append(&path("r"), 600, AppendMode::Written).unwrap();
    disk.leave_free(Some(10));
    reserved.append(&[1; 600]).unwrap();
    let mut file = disk.create(&path("a")).unwrap();
    assert_eq!(file.append(&[1; 16]).unwrap_err().raw_os_error(), Some(28));
    assert_eq!(disk.bytes(&path("a")).unwrap(), [1; 10]);
    assert!(disk.create_append(&path("b"), 1, AppendMode::Mapped).is_err());
    disk.heal();
    file.append(&[2; 16]).unwrap();
}

#[test]
fn locks_exclude_and_end_with_their_process() {
    let disk = SimDisk::new(1);
    let held = disk.lock(&path("L"), LockMode::Exclusive).unwrap();
    let refused = disk.lock(&path("L"), LockMode::Shared).map(|_| ()).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
    let next = disk.after_death();
    let first = next.lock(&path("L"), LockMode::Shared).unwrap();
    let second = next.lock(&path("L"), LockMode::Shared).unwrap();
    assert!(next.lock(&path("L"), LockMode::Exclusive).is_err());
    drop((first, second, held));
    assert!(next.lock(&path("L"), LockMode::Exclusive).is_ok());
}

#[test]
fn a_fork_goes_its_own_way() {
    let disk = SimDisk::new(1);
    let mut file = disk.create(&path("a")).unwrap();
    file.append(b"1").unwrap();
    let fork = disk.fork();
    file.append(b"2").unwrap();
    assert_eq!(fork.bytes(&path("a")).unwrap(), b"1");
    assert_eq!(disk.bytes(&path("a")).unwrap(), b"12");
    assert!(disk.diary(9).contains("Write a 1 bytes at 1"), "{}", disk.diary(9));
    assert!(!fork.diary(9).contains("at 1"), "{}", fork.diary(9));
}
