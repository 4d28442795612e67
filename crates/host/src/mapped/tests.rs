use std::fs::{File, OpenOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{MAP_ALIGN, MappedAppend, Touch, WINDOW_BYTES, Window, maps_are_safe, sync_range};
use crate::files::{AppendFile, AppendSync};

#[cfg(folddb_schedules)]
#[path = "tests/schedules.rs"]
mod schedules;

/// A preallocated file in the temporary directory; none if that cannot be mapped safely.
fn preallocated(len_bytes: u64) -> Option<(tempfile::TempDir, File)> {
    let dir = tempfile::tempdir().unwrap();
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).open(dir.path().join("file")).unwrap();
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, len_bytes).ok()?;
    maps_are_safe(&file).then_some((dir, file))
}

fn content(dir: &tempfile::TempDir) -> Vec<u8> {
    std::fs::read(dir.path().join("file")).unwrap()
}

/// The byte that the tests put at a place: not periodic in pages or windows.
fn byte_at(offset: u64) -> u8 {
    (offset % 251) as u8 + 1
}

fn bytes_at(offset: u64, len: u64) -> Vec<u8> {
    (offset..offset + len).map(byte_at).collect()
}

#[test]
fn a_window_takes_what_is_in_it_and_refuses_the_rest() {
    let len_bytes = WINDOW_BYTES + 10_000;
    let Some((dir, file)) = preallocated(len_bytes) else { return };
    let mut window = Window::map(&file, WINDOW_BYTES, len_bytes).unwrap();
    window.populate(Touch::Read);
    window.fault_by_page();
    window.populate(Touch::Write);
    assert_eq!(window.end(), len_bytes);
    assert!(window.put(len_bytes - 3, b"abc"), "up to the last byte");
    assert!(window.put(WINDOW_BYTES, b"xyz"), "from the first byte");
    assert!(window.put(len_bytes, b""), "nothing fits anywhere");
    assert!(!window.put(WINDOW_BYTES - 1, b"q"), "before it");
    assert!(!window.put(len_bytes - 3, b"abcd"), "over its end");
    assert!(!window.put(len_bytes, b"q"));
    assert!(!window.put(u64::MAX, b"q"));
    drop(window);
    let content = content(&dir);
    assert_eq!(content.len() as u64, len_bytes);
    assert_eq!(&content[WINDOW_BYTES as usize..][..4], b"xyz\0");
    assert_eq!(&content[content.len() - 4..], b"\0abc");
    assert!(content[..WINDOW_BYTES as usize].iter().all(|&byte| byte == 0));
}

#[test]
fn appends_straddle_windows_with_and_without_preparation() {
    let len_bytes = 4 * WINDOW_BYTES + 100;
    for prepared in [false, true] {
        let Some((dir, file)) = preallocated(len_bytes) else { return };
        let mut append = MappedAppend::new(file, len_bytes, WINDOW_BYTES);
        let syncer = append.syncer();
        let mut at = 0;
        // Small ones, one of just over a window, one of over two windows, then small ones to the
        // end.
        for len in [100, 3_000, WINDOW_BYTES + 5, 2 * WINDOW_BYTES - 7_777, 999] {
            if prepared {
                syncer.prepare().unwrap();
                syncer.prepare().unwrap();
            }
            append.append(&bytes_at(at, len)).unwrap();
            at += len;
            assert_eq!(append.end(), at);
        }
        append.append(&bytes_at(at, len_bytes - at)).unwrap();
        assert!(append.append(b"x").is_err());
        syncer.prepare().unwrap();
        syncer.sync().unwrap();
        assert_eq!(content(&dir), bytes_at(0, len_bytes), "prepared: {prepared}");
    }
}

#[test]
fn no_more_than_three_windows_are_ever_mapped() {
    let len_bytes = 8 * WINDOW_BYTES;
    let Some((dir, file)) = preallocated(len_bytes) else { return };
    let mut append = MappedAppend::new(file, len_bytes, WINDOW_BYTES);
    let shared = Arc::clone(&append.shared);
    let chunk = vec![1; (WINDOW_BYTES / 4) as usize];
    for index in 0..32 {
        append.append(&chunk).unwrap();
        if index % 3 == 0 {
            shared.prepare().unwrap();
        }
        let windows = shared.windows.lock();
        let offsets = [&windows.passed, &append.current, &windows.next].map(|w| w.as_ref().map(|w| w.offset));
        let current = append.current.as_ref().unwrap().offset;
        assert!(offsets[0].is_none_or(|offset| offset + WINDOW_BYTES == current), "{offsets:?}");
        assert!(offsets[2].is_none_or(|offset| offset == current + WINDOW_BYTES), "{offsets:?}");
        assert!((1..=3).contains(&maps_of(&dir)), "the system agrees");
    }
    drop((append, shared));
    assert_eq!(maps_of(&dir), 0, "all are unmapped");
}

#[test]
fn a_file_that_is_appended_to_no_more_is_not_mapped_while_it_waits_to_be_synced() {
    let len_bytes = 4 * WINDOW_BYTES;
    let Some((dir, file)) = preallocated(len_bytes) else { return };
    let mut append = MappedAppend::new(file, len_bytes, WINDOW_BYTES);
    let syncer = append.syncer();
    append.append(&bytes_at(0, WINDOW_BYTES)).unwrap();
    append.append(&bytes_at(WINDOW_BYTES, 5)).unwrap();
    syncer.prepare().unwrap();
    append.append(&bytes_at(WINDOW_BYTES + 5, WINDOW_BYTES)).unwrap();
    drop(append);
    assert_eq!(maps_of(&dir), 0);
    syncer.prepare().unwrap();
    assert_eq!(maps_of(&dir), 0, "nobody will ask for a next window");
    syncer.sync().unwrap();
    assert_eq!(content(&dir)[..2 * WINDOW_BYTES as usize + 5], bytes_at(0, 2 * WINDOW_BYTES + 5));
}

/// How many maps of files in a directory this process has, as the system reports it.
fn maps_of(dir: &tempfile::TempDir) -> usize {
    let path = dir.path().to_str().unwrap();
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().filter(|line| line.contains(path)).count()
}

#[test]
fn preparing_and_syncing_during_appends_loses_nothing() {
    let len_bytes = 6 * WINDOW_BYTES;
    let Some((dir, file)) = preallocated(len_bytes) else { return };
    let mut append = MappedAppend::new(file, len_bytes, WINDOW_BYTES);
    let syncer = append.syncer();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                syncer.prepare().unwrap();
                std::thread::yield_now();
            }
            syncer.sync().unwrap();
        });
        let mut at = 0;
        while at < len_bytes {
            let len = (at % 70_001 + 1).min(len_bytes - at);
            append.append(&bytes_at(at, len)).unwrap();
            at += len;
        }
        done.store(true, Ordering::Release);
    });
    assert_eq!(content(&dir), bytes_at(0, len_bytes));
}

#[test]
fn a_sync_of_a_range_takes_any_range_of_the_file() {
    let len_bytes = 2 * WINDOW_BYTES + 77;
    let Some((_dir, file)) = preallocated(len_bytes) else { return };
    let places = [0, 1, 4095, 4096, MAP_ALIGN - 1, MAP_ALIGN, WINDOW_BYTES + 1, len_bytes - 1, len_bytes];
    for (at, from) in places.into_iter().enumerate() {
        for to in places.into_iter().skip(at + 1) {
            sync_range(&file, from, to).unwrap();
        }
    }
}

/// Each sync covers what was appended since the previous one, and does nothing if that is nothing.
#[test]
fn syncs_come_as_far_as_the_appends() {
    let Some((_dir, file)) = preallocated(3 * WINDOW_BYTES) else { return };
    let mut append = MappedAppend::new(file, 3 * WINDOW_BYTES, WINDOW_BYTES);
    let shared = Arc::clone(&append.shared);
    let (syncer, mut at) = (append.syncer(), 0);
    let synced_to = || shared.synced_to.load(Ordering::Acquire);
    for len in [1, 4095, 5, WINDOW_BYTES, 100_000] {
        append.append(&bytes_at(at, len)).unwrap();
        assert_eq!(synced_to(), at);
        at += len;
        syncer.sync().unwrap();
        syncer.sync().unwrap();
        assert_eq!((synced_to(), append.end()), (at, at));
    }
    assert!(append.append(&bytes_at(0, 3 * WINDOW_BYTES)).is_err(), "it does not fit");
    syncer.sync().unwrap();
    assert_eq!(synced_to(), at, "what failed is nothing to be synced");
}
