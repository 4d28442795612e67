//! The threads of a store have the priority that its options say, as the system tells it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::thread;
use std::time::Duration;

use folddb::{Options, Store};

/// The nice values of the threads of this process with this name.
fn nice_of(name: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for thread in fs::read_dir("/proc/self/task").unwrap() {
        // A thread may end meanwhile.
        let Ok(line) = fs::read_to_string(thread.unwrap().path().join("stat")) else { continue };
        let (begin, end) = (line.find('(').unwrap() + 1, line.rfind(')').unwrap());
        if &line[begin..end] == name {
            found.push(line[end + 2..].split(' ').nth(16).unwrap().parse().unwrap());
        }
    }
    found
}

/// Waits for a while until the threads for the log, flushes and merges are so many steps below this
/// one: each lowers itself when it begins.
fn expect(steps: [&[i32]; 3]) {
    let own = fs::read_to_string("/proc/thread-self/stat").unwrap();
    let own: i32 = own.rsplit_once(") ").unwrap().1.split(' ').nth(16).unwrap().parse().unwrap();
    let expected = steps.map(|of| of.iter().map(|steps| (own + steps).min(19)).collect::<Vec<i32>>());
    let found = || ["folddb-journal", "folddb-flush", "folddb-merge"].map(nice_of);
    for _ in 0..1000 {
        if found() == expected {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(found(), expected);
}

#[test]
fn threads_that_flush_and_merge_have_a_lower_priority() {
    let dir = tempfile::tempdir().unwrap();
    let options = || Options::default();
    let store = Store::create(dir.path().join("a"), options()).unwrap();
    expect([&[0], &[2], &[2]]);
    store.close().unwrap();
    let store = Store::create(dir.path().join("b"), options().tuning(|t| t.background_nice(0))).unwrap();
    expect([&[0], &[0], &[0]]);
    store.close().unwrap();
    let store = Store::create(dir.path().join("c"), options().tuning(|t| t.background_nice(99))).unwrap();
    expect([&[0], &[19], &[19]]);
    store.close().unwrap();
    expect([&[], &[], &[]]);
}
