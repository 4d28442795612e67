//! Damage to the log that only a feed holds: `verify` and `repair` report it wherever the feed
//! cannot give all that it has not given yet.

use std::path::{Path, PathBuf};

use folddb::maintenance::{RepairOptions, VerifyOptions};
use folddb::{FeedEvent, FeedOptions, Rules, Store};

use crate::common::manual;

const OPENINGS: u64 = 11;

/// A store that was opened several times, for a few writes each; all of it is in runs, and the feed
/// has given nothing. Some files of the log are joined, others are not.
fn with_unread_feed(dir: &Path) {
    for opening in 0..OPENINGS {
        let store = match opening {
            0 => Store::create(dir, manual()).unwrap(),
            _ => Store::open(dir, manual()).unwrap(),
        };
        let table = store.table("sums", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
        if opening == 0 {
            let mut feed = store.feed("f", FeedOptions::default()).unwrap();
            while feed.poll().unwrap().is_some() {}
            feed.acknowledge(feed.position()).unwrap();
        }
        for key in 0..5 {
            table.fold(&key, &opening).unwrap();
        }
        drop(table);
        store.close().unwrap();
    }
}

/// How many changes the feed gives; none if it does not give all, or the store does not open.
fn given(dir: &Path) -> Option<usize> {
    let store = Store::open(dir, manual()).ok()?;
    let mut feed = store.feed("f", FeedOptions::default()).ok()?;
    let mut changes = 0;
    loop {
        match feed.poll() {
            Ok(Some(FeedEvent::Batch(batch))) => changes += batch.ops.len(),
            Ok(Some(_)) => {}
            Ok(None) => return Some(changes),
            Err(_) => return None,
        }
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap().path();
        std::fs::copy(&entry, to.join(entry.file_name().unwrap())).unwrap();
    }
}

fn logs(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let is_log = |path: &PathBuf| path.extension().is_some_and(|end| end == "log" || end == "kept");
    entries.filter(is_log).collect()
}

#[test]
fn damage_to_what_a_feed_has_not_given_is_reported_wherever_the_feed_fails() {
    let temp = tempfile::tempdir().unwrap();
    let whole = temp.path().join("whole");
    with_unread_feed(&whole);
    let all = 5 * OPENINGS as usize;
    assert!(logs(&whole).len() > 2, "some files are not joined");
    let unharmed = temp.path().join("unharmed");
    copy(&whole, &unharmed);
    assert_eq!(given(&unharmed), Some(all));
    let (mut harms, mut failed) = (0, 0);
    for log in logs(&whole) {
        let bytes = std::fs::read(&log).unwrap();
        let name = log.file_name().unwrap();
        let flips = (0..bytes.len()).step_by(bytes.len().min(4096) / 2 + 67);
        let cuts = [None, Some(0), Some(100), Some(4096 + 50)].map(|len| (len, None));
        for (len, flip) in cuts.into_iter().chain(flips.map(|flip| (Some(bytes.len()), Some(flip)))) {
            let dir = temp.path().join("harmed");
            copy(&whole, &dir);
            let mut harmed = bytes.clone();
            if let Some(flip) = flip {
                harmed[flip] ^= 0x41;
            }
            match len.filter(|len| *len <= bytes.len()) {
                None => std::fs::remove_file(dir.join(name)).unwrap(),
                Some(len) => std::fs::write(dir.join(name), &harmed[..len]).unwrap(),
            }
            let said = format!("{name:?}, {len:?} bytes, flipped at {flip:?}");
            let report = Store::verify(&dir, &VerifyOptions::default().deep(true), &manual()).unwrap();
            let quick = Store::verify(&dir, &VerifyOptions::default(), &manual()).unwrap();
            let to = temp.path().join("repaired");
            let repaired = Store::repair(&dir, &to, &RepairOptions::default(), &manual()).unwrap();
            harms += 1;
            if given(&dir) != Some(all) {
                failed += 1;
                assert!(report.damage().next().is_some(), "{said}: verify calls it whole");
                assert!(!repaired.is_complete(), "{said}: repair says that nothing is lost");
                let feeds = report.damage().filter(|finding| finding.what.contains("(`f`)"));
                assert!(feeds.count() > 0, "{said}: {:?}", report.findings);
                if len.is_none() {
                    assert!(quick.damage().next().is_some(), "{said}: it is missing");
                }
            }
            std::fs::remove_dir_all(&dir).unwrap();
            std::fs::remove_dir_all(&to).unwrap();
        }
    }
    assert!(failed > 10, "{failed} of {harms} harms cost changes");
}

#[test]
fn a_repair_says_that_feeds_are_left_out_and_a_whole_store_is_whole() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, to) = (temp.path().join("store"), temp.path().join("new"));
    with_unread_feed(&dir);
    let report = Store::verify(&dir, &VerifyOptions::default().deep(true), &manual()).unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    let repaired = Store::repair(&dir, &to, &RepairOptions::default(), &manual()).unwrap();
    assert!(repaired.is_complete(), "{:?}", repaired.findings);
    let notes: Vec<_> = repaired.findings.iter().map(|finding| finding.what.clone()).collect();
    assert!(notes.iter().any(|note| note.contains("feed `f` is not in the new store")), "{notes:?}");
}
