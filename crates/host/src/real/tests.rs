use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;

use super::{RealFiles, RealLock};
use crate::files::{AppendMode, Files, LockMode};

fn dir() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_path_buf();
    (dir, path)
}

#[test]
fn what_is_written_is_read_again() {
    let (_keep, dir) = dir();
    let files = RealFiles::default();
    let path = dir.join("a");
    let mut file = files.create(&path).unwrap();
    file.append(b"one").unwrap();
    file.start_writeback();
    file.append(b" two").unwrap();
    file.sync().unwrap();
    files.sync_dir(&dir).unwrap();
    assert_eq!(files.len_bytes(&path).unwrap(), 7);
    let file = files.open(&path).unwrap();
    assert_eq!(file.len_bytes().unwrap(), 7);
    file.will_need(0, 7);
    file.wont_need(0, 0);
    let mut buf = [0; 4];
    file.read_exact_at(3, &mut buf).unwrap();
    assert_eq!(&buf, b" two");
    let error = file.read_exact_at(4, &mut buf).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn nothing_that_is_there_is_created_again() {
    let (_keep, dir) = dir();
    let files = RealFiles::default();
    drop(files.create(&dir.join("a")).unwrap());
    files.create_dir(&dir.join("d")).unwrap();
    let exists = io::ErrorKind::AlreadyExists;
    assert_eq!(files.create(&dir.join("a")).err().unwrap().kind(), exists);
    assert_eq!(files.create_append(&dir.join("a"), 10, AppendMode::Mapped).err().unwrap().kind(), exists);
    assert_eq!(files.create_dir(&dir.join("d")).unwrap_err().kind(), exists);
    assert_eq!(files.len_bytes(&dir.join("a")).unwrap(), 0);
    assert_eq!(files.len_bytes(&dir.join("b")).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(files.open(&dir.join("b")).err().unwrap().kind(), io::ErrorKind::NotFound);
}

#[test]
fn what_a_file_has_is_written_over_and_nothing_else() {
    let (_temp, dir) = dir();
    let (files, path) = (RealFiles::default(), dir.join("a"));
    files.create(&path).unwrap().append(b"0123456789").unwrap();
    files.write_over(&path, 3, b"345").unwrap();
    files.sync_file(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"0123456789");
    files.write_over(&path, 8, b"xy").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"01234567xy");
    let missing = files.write_over(&dir.join("b"), 0, b"x").unwrap_err();
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn names_are_renamed_linked_listed_and_removed() {
    let (_keep, dir) = dir();
    let files = RealFiles::default();
    files.create(&dir.join("a")).unwrap().append(b"a").unwrap();
    files.create(&dir.join("b")).unwrap().append(b"bb").unwrap();
    files.link(&dir.join("a"), &dir.join("c")).unwrap();
    files.rename(&dir.join("a"), &dir.join("b")).unwrap();
    let mut names = files.list(&dir).unwrap();
    names.sort();
    assert_eq!(names, ["b", "c"]);
    assert_eq!(files.len_bytes(&dir.join("b")).unwrap(), 1);
    files.remove(&dir.join("b")).unwrap();
    assert_eq!(files.list(&dir).unwrap(), ["c"]);
}

#[test]
fn an_exclusive_lock_excludes_and_shared_ones_do_not() {
    let (_keep, dir) = dir();
    let files = RealFiles::default();
    let path = dir.join("LOCK");
    let blocked = |mode| files.lock(&path, mode).err().map(|error| error.kind());
    let one = files.lock(&path, LockMode::Exclusive).unwrap();
    assert_eq!(blocked(LockMode::Exclusive), Some(io::ErrorKind::WouldBlock));
    assert_eq!(blocked(LockMode::Shared), Some(io::ErrorKind::WouldBlock));
    drop(one);
    let shared = files.lock(&path, LockMode::Shared).unwrap();
    assert_eq!(blocked(LockMode::Shared), None);
    assert_eq!(blocked(LockMode::Exclusive), Some(io::ErrorKind::WouldBlock));
    drop(shared);
    assert_eq!(blocked(LockMode::Exclusive), None);
}

#[test]
fn a_lock_holds_when_its_file_is_removed() {
    let (_keep, dir) = dir();
    let files = RealFiles::default();
    let path = dir.join("LOCK");
    let lock = files.lock(&path, LockMode::Exclusive).unwrap();
    std::fs::remove_file(&path).unwrap();
    for mode in [LockMode::Exclusive, LockMode::Shared] {
        assert_eq!(files.lock(&path, mode).err().map(|error| error.kind()), Some(io::ErrorKind::WouldBlock));
    }
    drop(lock);
    assert!(files.lock(&path, LockMode::Exclusive).is_ok());
}

#[test]
fn an_append_file_has_its_length_at_once_and_never_grows() {
    for mode in [AppendMode::Mapped, AppendMode::Written] {
        let (_keep, dir) = dir();
        let files = RealFiles::default();
        let path = dir.join("1.log");
        let mut file = files.create_append(&path, 10_000, mode).unwrap();
        assert_eq!(files.len_bytes(&path).unwrap(), 10_000);
        let syncer = file.syncer();
        syncer.prepare().unwrap();
        file.append(&[7; 9_990]).unwrap();
        assert_eq!(file.append(&[8; 11]).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(file.end(), 9_990);
        file.append(&[9; 10]).unwrap();
        file.append(&[]).unwrap();
        syncer.sync().unwrap();
        syncer.prepare().unwrap();
        assert_eq!(file.end(), 10_000);
        assert_eq!(files.len_bytes(&path).unwrap(), 10_000);
        let mut bytes = vec![0; 10_000];
        files.open(&path).unwrap().read_exact_at(0, &mut bytes).unwrap();
        assert!(bytes[..9_990].iter().all(|&byte| byte == 7));
        assert!(bytes[9_990..].iter().all(|&byte| byte == 9));
    }
}

#[test]
fn a_file_that_does_not_fit_the_disk_leaves_no_name_behind() {
    let (_keep, dir) = dir();
    let files = RealFiles::default();
    let path = dir.join("1.log");
    let huge = 1 << 60; // longer than any file system here allows
    assert!(files.create_append(&path, huge, AppendMode::Mapped).is_err());
    assert_eq!(files.list(&dir).unwrap(), [] as [&str; 0]);
}

#[test]
fn free_space_is_known() {
    let (_keep, dir) = dir();
    assert!(RealFiles::default().space_free_bytes(&dir).unwrap() > 0);
}

#[test]
fn a_file_that_can_be_written_is_left_as_it_is() {
    let (_keep, dir) = dir();
    let files = RealFiles::default();
    let path = dir.join("FORMAT");
    std::fs::write(&path, b"all of it").unwrap();
    files.check_writable(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"all of it");
    let missing = files.check_writable(&dir.join("missing")).unwrap_err();
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
    assert_eq!(files.list(&dir).unwrap(), ["FORMAT"]);
}

#[test]
fn a_syncer_outlives_its_file() {
    let (_keep, dir) = dir();
    let files = RealFiles::default();
    let mut file = files.create_append(&dir.join("1.log"), 4096, AppendMode::Mapped).unwrap();
    file.append(b"x").unwrap();
    let syncer = file.syncer();
    drop(file);
    syncer.prepare().unwrap();
    syncer.sync().unwrap();
    assert_eq!(Arc::strong_count(&syncer), 1);
}

#[test]
fn a_file_read_past_the_page_cache_holds_what_was_written_through_it() {
    let (_keep, dir) = dir();
    let files = RealFiles::default();
    let path = dir.join("a");
    let content: Vec<u8> = (0..3_000_000_u32).map(|at| (at ^ (at >> 9)) as u8).collect();
    files.create(&path).unwrap().append(&content).unwrap();
    let file = files.open_direct(&path).unwrap();
    assert_eq!(file.len_bytes().unwrap(), 3_000_000);
    for (offset, len) in [(0, 10), (4095, 2), (5000, 0), (1, 2_999_999), (1 << 20, 1 << 20), (2_999_999, 1)] {
        let mut buf = vec![0; len];
        file.read_exact_at(offset as u64, &mut buf).unwrap();
        assert!(buf == content[offset..offset + len], "{len} bytes at {offset}");
    }
    for (offset, len) in [(2_999_999, 2), (3_000_000, 1), (9_000_000, 1)] {
        let error = file.read_exact_at(offset, &mut vec![0; len]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}

#[test]
fn a_lock_is_given_back_although_another_process_has_its_descriptors() {
    let (_keep, dir) = dir();
    let path = dir.join("LOCK");
    let lock = RealLock::take(&path, LockMode::Exclusive).unwrap();
    // What a forked child has.
    let (_file, _dir) = (lock.file.try_clone().unwrap(), lock.dir.as_ref().unwrap().try_clone().unwrap());
    drop(lock);
    let lock = RealLock::take(&path, LockMode::Exclusive).unwrap();

    // A forked child must not unlock what it drops.
    let (file, dir) = (lock.file.try_clone().unwrap(), lock.dir.as_ref().unwrap().try_clone().unwrap());
    drop(RealLock { file, dir: Some(dir), process: lock.process + 1 });
    let other = RealLock::take(&path, LockMode::Exclusive);
    assert_eq!(other.err().map(|error| error.kind()), Some(io::ErrorKind::WouldBlock));
}
