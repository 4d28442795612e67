//! Corners that a review of the engine found: each test failed once.
#![allow(clippy::unwrap_used)]

mod common;

mod watched;

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{fresh, manual};
use folddb::maintenance::VerifyOptions;
use folddb::{BackgroundJob, Durability, ErrorKind, Options, Rules, Store};
use folddb_host::Host;

fn counters() -> Rules<u64, u64> {
    Rules::sorted::<u64, u64>().fold("sum:u64")
}

/// Merged chunks take less memory than before, so what a memtable takes can fall between two
/// commits.
#[test]
fn a_memtable_that_shrinks_is_no_reason_to_stop() {
    let (_dir, store) = fresh(manual());
    let hits = store.table("hits", counters()).unwrap();
    let mut batch = store.batch();
    for n in 0..120_000u64 {
        batch.fold(&hits, &(n % 3000), &1);
        if n % 100 == 99 {
            batch.commit(Durability::Process).unwrap();
        }
    }
    hits.get(&1).unwrap(); // finds many chunks, and asks for fewer
    while store.background_step().unwrap().is_some() {}
    hits.fold(&1, &1).unwrap();
    assert_eq!(hits.get(&1).unwrap(), Some(41));
}

/// The memory of the memtables of a dropped table must no longer be counted, or the next ones would
/// be sealed earlier and earlier.
#[test]
fn memtables_of_dropped_tables_do_not_count() {
    let (_dir, store) = fresh(manual().memory_bytes(6 << 20));
    let value = "x".repeat(1000);
    let steps: Vec<usize> = (0..20)
        .map(|round| {
            let name = format!("t{round}");
            let table = store.table(&name, Rules::sorted::<u64, String>()).unwrap();
            for n in 0..300u64 {
                table.put(&n, &value).unwrap();
            }
            let mut steps = 0;
            while store.background_step().unwrap().is_some() {
                steps += 1;
            }
            store.drop_table(&name).unwrap();
            steps
        })
        .collect();
    assert_eq!(steps, [steps[0]; 20], "the last table fares like the first");
}

/// A tail that becomes full is sorted after its batch, and then takes more. Tables that are written
/// to once, with one full tail each, were counted as if it did not.
#[test]
fn what_a_sorted_tail_takes_counts_although_its_table_is_written_to_no_more() {
    let (_dir, store) = fresh(manual().memory_bytes(64 << 20));
    let tables: Vec<_> = (0..40).map(|n| store.table(&format!("t{n}"), counters()).unwrap()).collect();
    for table in &tables {
        let mut batch = store.batch();
        for n in 0..4_200u64 {
            batch.put(table, &n, &n);
        }
        batch.commit(Durability::Process).unwrap();
    }
    while store.background_step_of(BackgroundJob::Flush).unwrap().is_some() {}
    let bytes: u64 = tables.iter().map(|table| table.stats().unwrap().memtable_bytes).sum();
    let most = (64 << 20) / 4; // what is written to, before the largest is sealed: see LIMITS
    assert!(bytes <= most, "{bytes} bytes of memtables that nobody flushes");
    assert!(bytes > most / 2, "most of it need not be flushed: {bytes}");
}

/// A batch that fits into no segment is refused, and nothing else happens.
#[test]
fn a_batch_longer_than_a_segment_is_refused_and_does_not_poison() {
    let (_dir, store) = fresh(manual().tuning(|t| t.segment_bytes(1 << 20)));
    let table = store.table("t", Rules::sorted::<u64, String>()).unwrap();
    let error = table.put(&1, &"x".repeat(2 << 20)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    table.put(&2, "two").unwrap();
    assert_eq!(table.get(&1).unwrap(), None);
    assert_eq!(table.get(&2).unwrap().as_deref(), Some("two"));
}

/// Several callers of background work must not flush one memtable twice.
#[test]
fn many_may_flush_by_hand_at_once() {
    let (_dir, store) = fresh(manual());
    let hits = store.table("hits", counters()).unwrap();
    for round in 1..=20u64 {
        for n in 0..2000 {
            hits.fold(&n, &1).unwrap();
        }
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| store.flush().unwrap());
            }
        });
        assert_eq!(hits.get(&7).unwrap(), Some(round));
    }
}

/// A closed store changes nothing any more: another process may have it open.
#[test]
fn a_closed_store_refuses_what_writes() {
    let (_dir, store) = fresh(manual());
    let hits = store.table("hits", counters()).unwrap();
    for _ in 0..2 {
        hits.fold(&1, &1).unwrap();
        store.flush().unwrap();
    }
    let other = store.clone();
    store.close().unwrap();
    assert_eq!(other.drop_table("hits").unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(other.flush().unwrap_err().kind(), ErrorKind::Closed);
    let compacted = other.bytes_table("hits").and_then(|table| table.compact());
    assert_eq!(compacted.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(other.settle().unwrap_err().kind(), ErrorKind::Closed);
}

/// A world that from now on accepts this many parts.
fn few_parts(parts: usize) -> (Host, Arc<AtomicUsize>) {
    let left = Arc::new(AtomicUsize::new(parts));
    let taken = Arc::clone(&left);
    let host = watched::host(move || {
        let take = taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1));
        take.map(drop).map_err(|_| io::Error::from_raw_os_error(5))
    });
    (host, left)
}

/// A flush that always fails ends in an error for writers, not in a wait: idle merges do not hide
/// it.
#[test]
fn writers_do_not_wait_for_ever_for_a_flush_that_fails() {
    let (host, _) = few_parts(0);
    let (_dir, store) = fresh(Options::default().memory_bytes(4 << 20).host(host));
    let table = store.table("t", Rules::sorted::<u64, String>()).unwrap();
    let value = "x".repeat(1000);
    let (done, outcome) = std::sync::mpsc::channel();
    let writer = table.clone();
    std::thread::spawn(move || {
        let failed = (0..1_000_000u64).find_map(|n| writer.put(&n, &value).err());
        let _ = done.send(failed.map(|error| error.kind()));
    });
    let outcome = outcome.recv_timeout(Duration::from_secs(30)).expect("the writer waits for ever");
    assert_eq!(outcome, Some(ErrorKind::Poisoned));
    assert!(table.get(&0).unwrap().is_some(), "reads go on");
    assert!(store.close().is_err(), "what was asked for could not be done");
}

fn files_with(dir: &Path, extension: &str) -> Vec<std::path::PathBuf> {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = names.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
    paths.sort();
    paths
}

/// A recovery that is cut short has flushed one table of two; then the power goes, and with it the
/// end of the log, which was not synced. The seqs of what was flushed are taken: new writes must
/// not get them again.
#[test]
fn seqs_that_a_cut_recovery_has_flushed_are_not_given_out_again() {
    let (dir, store) = fresh(manual());
    let (a, b) = (store.table("a", counters()).unwrap(), store.table("b", counters()).unwrap());
    for n in 0..100 {
        a.fold(&n, &1).unwrap();
        b.fold(&n, &1).unwrap();
    }
    let copy = dir.path().join("copy.folddb");
    std::fs::create_dir(&copy).unwrap();
    for entry in std::fs::read_dir(store.path()).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
    }
    let (host, left) = few_parts(1);
    assert!(Store::open(&copy, manual().host(host)).is_err(), "the second part cannot be created");
    assert_eq!(left.load(Ordering::Acquire), 0);
    for segment in files_with(&copy, "log") {
        let mut bytes = std::fs::read(&segment).unwrap();
        bytes[4096..].fill(0);
        std::fs::write(&segment, bytes).unwrap();
    }
    let store = Store::open(&copy, manual()).unwrap();
    let a = store.table("a", counters()).unwrap();
    let before = a.get(&5).unwrap().unwrap_or(0);
    a.fold(&5, &10).unwrap();
    assert_eq!(a.get(&5).unwrap(), Some(before + 10), "a write that was acknowledged is there");
}

/// A damaged part stops the merges of its own table, not those of others.
#[test]
fn damage_in_one_table_does_not_stop_the_merges_of_another() {
    let (_dir, store) = fresh(manual().tuning(|t| t.merge_factor(2)));
    let (a, b) = (store.table("a", counters()).unwrap(), store.table("b", counters()).unwrap());
    a.fold(&1, &1).unwrap();
    store.flush().unwrap();
    let damaged = files_with(store.path(), "part").remove(0);
    let mut bytes = std::fs::read(&damaged).unwrap();
    bytes[3] ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    for n in 0..2 {
        a.fold(&1, &1).unwrap();
        b.fold(&1, &n).unwrap();
        store.flush().unwrap();
    }
    let mut failures = 0;
    loop {
        match store.background_step() {
            Ok(None) => break,
            Ok(Some(_)) => {}
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption);
                failures += 1;
                assert!(failures < 10, "the damage is met again and again");
            }
        }
    }
    assert!(failures > 0, "the damage is told");
    assert_eq!(store.bytes_table("b").unwrap().stats().unwrap().runs.len(), 1, "b is merged");
    assert_eq!(store.bytes_table("a").unwrap().stats().unwrap().runs.len(), 3, "a is left alone");
}

/// The output of a merge that was broken off half way, in a higher tier than its inputs, must not
/// hide newer records.
#[test]
fn a_merge_that_is_given_up_hides_nothing_newer() {
    let (_dir, store) =
        fresh(manual().memory_bytes(64 << 20).tuning(|t| t.part_bytes(64 << 10).merge_factor(2)));
    let table = store.table("t", Rules::sorted::<u64, Vec<u8>>()).unwrap();
    let mut newest = [0; 12];
    let mut set = |keys: std::ops::Range<u64>, number: u8| {
        for key in keys {
            table.put(&key, &vec![number; 20_000]).unwrap(); // a part holds three
            newest[key as usize] = number;
        }
        store.flush().unwrap();
        newest
    };
    let give_up_after = |mut steps: u64| {
        let progress = |_| {
            steps -= 1;
            if steps == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        store.bytes_table("t").unwrap().compact_with(progress).unwrap();
    };
    set(0..11, 1);
    set(7..9, 2);
    set(0..9, 3);
    give_up_after(3);
    while store.background_step_of(BackgroundJob::Merge).unwrap().is_some() {}
    set(6..9, 4);
    let newest = set(10..11, 5);
    give_up_after(1);
    for step in 0..4 {
        for key in 0..11 {
            let first_byte = table.get(&key).unwrap().map(|value| value[0]);
            assert_eq!(first_byte, Some(newest[key as usize]), "key {key}, step {step}");
        }
        store.background_step_of(BackgroundJob::Merge).unwrap();
    }
}

/// The only file of a store whose name ends so.
fn file_of(store: &Path, ending: &str) -> std::path::PathBuf {
    let paths = std::fs::read_dir(store).unwrap().map(|entry| entry.unwrap().path());
    let found: Vec<_> = paths.filter(|path| path.to_string_lossy().contains(ending)).collect();
    // For segments: the active one.
    let written =
        |path: &&std::path::PathBuf| std::fs::read(path).unwrap().iter().skip(4096).any(|&byte| byte != 0);
    if found.len() == 1 { found[0].clone() } else { found.iter().find(written).unwrap().clone() }
}

/// Damages a byte at the place of this text in a file.
fn spoil(path: &Path, text: &str) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
    bytes[at] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

/// A store of thirty batches that was not closed.
fn unclosed(durability: Durability) -> (tempfile::TempDir, std::path::PathBuf) {
    let (dir, store) = fresh(manual());
    let table = store.table("t", Rules::sorted::<String, String>()).unwrap();
    for n in 0..30 {
        let mut batch = store.batch();
        batch.put(&table, format!("key{n:02}").as_str(), "value");
        batch.commit(durability).unwrap();
    }
    let path = store.path().to_owned();
    (dir, path)
}

/// Every damage in a store that was not closed was reported as caused by the end of its manifest.
#[test]
fn damage_is_not_blamed_on_a_manifest_that_ends_whole() {
    let (_dir, path) = unclosed(Durability::Sync);
    spoil(&file_of(&path, ".log"), "key05");
    let error = Store::open(&path, manual()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(!error.message().contains("MANIFEST"), "{error}");
    let damage = error.damage().unwrap();
    assert!(damage.offset.is_some_and(|offset| offset > 4096) && damage.what.starts_with("no whole frame"));
    std::fs::remove_file(file_of(&path, ".log")).unwrap();
    let error = Store::open(&path, manual()).unwrap_err();
    assert!(error.is_lacking() && error.message().contains("MANIFEST"), "{error}");
}

#[test]
fn a_part_that_is_gone_is_missing_and_not_damaged_somewhere() {
    let (_dir, store) = fresh(manual());
    let table = store.table("t", Rules::sorted::<String, String>()).unwrap();
    table.put("key", "value").unwrap();
    store.flush().unwrap();
    let path = store.path().to_owned();
    drop(table);
    store.close().unwrap();
    std::fs::remove_file(file_of(&path, ".part")).unwrap();
    let error = Store::open(&path, manual()).unwrap_err();
    assert!(error.message().ends_with("part is missing: the manifest lists it"), "{error}");
    assert_eq!((error.kind(), error.damage().unwrap().offset), (ErrorKind::Corruption, None));
}

/// It reported that nothing is lost.
#[test]
fn batches_that_a_repair_leaves_beyond_a_torn_end_may_be_lost() {
    let (dir, path) = unclosed(Durability::Process);
    spoil(&file_of(&path, ".log"), "key04");
    let repair = |name: &str, past_holes| {
        let how = folddb::maintenance::RepairOptions::default().past_holes(past_holes);
        Store::repair(&path, dir.path().join(name), &how, &manual()).unwrap()
    };
    let left = repair("left", false);
    assert_eq!((left.batches, left.batches_left, left.is_complete()), (4, 25, false));
    assert!(
        left.lost().any(|finding| finding.what.contains("--past-holes saves them")),
        "{:?}",
        left.findings
    );
    let taken = repair("taken", true);
    assert_eq!((taken.batches, taken.batches_left), (29, 0));
}

#[test]
fn no_newer_manifest_counts_where_there_is_but_one() {
    let (_dir, path) = unclosed(Durability::Process);
    let manifest = file_of(&path, "MANIFEST");
    let mut bytes = std::fs::read(&manifest).unwrap();
    bytes.iter_mut().skip(20).take(40).for_each(|byte| *byte ^= 0x55);
    std::fs::write(&manifest, bytes).unwrap();
    let report = Store::verify(&path, &VerifyOptions::default(), &manual()).unwrap();
    assert!(!report.is_clean());
    assert!(
        report.findings.iter().all(|finding| !finding.what.contains("a newer one")),
        "{:?}",
        report.findings
    );
}

/// Separators are mostly not whole keys; they were shown as bytes.
#[test]
fn lost_keys_are_reported_by_keys_of_the_table() {
    let (_dir, store) = fresh(manual());
    let table = store.table("t", Rules::sorted::<(String, String), String>()).unwrap();
    for n in 0..2000 {
        table
            .put(&(format!("carrier{:03}", n / 10), format!("origin{n:05}")), "some value or other")
            .unwrap();
    }
    store.flush().unwrap();
    let path = store.path().to_owned();
    drop(table);
    store.close().unwrap();
    let part = file_of(&path, ".part");
    let mut bytes = std::fs::read(&part).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&part, bytes).unwrap();
    let report = Store::verify(&path, &VerifyOptions::default().deep(true), &manual()).unwrap();
    let [damage] = &report.damage().collect::<Vec<_>>()[..] else { panic!("{:?}", report.findings) };
    let words = &damage.losses[0].keys;
    assert!(words.starts_with("keys after [\"carrier") && !words.contains("0x"), "{words}");
    assert!(damage.losses[0].after.is_some() && damage.losses[0].through.is_some());
}
