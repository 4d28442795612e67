//! A recovery that is interrupted, and then a power cut: a batch over two tables is there whole or
//! not at all.
//!
//! Replayed records reach the manifest in one edit. With one edit per table, the first could be
//! durable at a power cut, and with it half of a batch whose log was never synced.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use folddb::{BackgroundWork, Durability, Options, Rules, Store};
use folddb_host::Host;
use folddb_sim::faulty_files::{Call, Fault, FaultyFiles};

const BATCHES: u64 = 10;
const CALLS_MAX: u64 = 200;

fn options() -> Options {
    Options::default()
        .background(BackgroundWork::Manual)
        .tuning(|t| t.segment_bytes(1 << 20))
        .memory_bytes(4 << 20)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// A store whose process died: ten batches over two tables, all of them in the log only.
fn died(dir: &Path) {
    let store = Store::create(dir, options()).unwrap();
    let first = store.table("first", Rules::sorted::<u64, u64>()).unwrap();
    let second = store.table("second", Rules::sorted::<u64, u64>()).unwrap();
    for n in 0..BATCHES {
        store.batch().put(&first, &n, &n).put(&second, &n, &n).commit(Durability::Process).unwrap();
    }
    std::mem::forget(store.clone());
}

/// A power cut: the log, which was never synced, is zeros after its header.
fn lose_the_log(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "log") {
            let mut bytes = fs::read(&path).unwrap();
            let header = bytes.len().min(4096);
            bytes[header..].fill(0);
            fs::write(&path, bytes).unwrap();
        }
    }
}

#[test]
fn no_call_at_which_a_recovery_ends_leaves_half_a_batch() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    died(&whole);
    let after_death = dir.path().join("after-death");
    copy(&whole, &after_death);
    let mut cut_short = 0;
    for call in [Call::Create, Call::Write, Call::WriteSync, Call::CreateAppend, Call::SyncDir] {
        for nth in 0..CALLS_MAX {
            let trial = dir.path().join("trial");
            copy(&after_death, &trial);
            let files = FaultyFiles::new(Host::real().files);
            files.break_on(Fault { skip: nth, times: u64::MAX, ..Fault::on(&[call]) });
            let host = Host { files: Arc::new(files.clone()), ..Host::real() };
            let opened = Store::open(&trial, options().host(host)).is_ok();
            if !opened {
                cut_short += 1;
                lose_the_log(&trial);
            }
            let store = Store::open(&trial, options()).unwrap();
            let count = |table: &str| store.bytes_table(table).unwrap().scan().count().unwrap();
            assert_eq!(count("first"), count("second"), "{call:?} {nth}");
            drop(store);
            fs::remove_dir_all(&trial).unwrap();
            if opened {
                break;
            }
        }
    }
    assert!(cut_short > 5, "recoveries were cut short: {cut_short}");
}
