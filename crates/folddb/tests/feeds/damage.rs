//! Damage to the log that only a feed holds: `verify` and `repair` report it wherever the feed
//! cannot give all that it has not given yet.

use std::path::{Path, PathBuf};

use folddb::maintenance::{RepairOptions, VerifyOptions};
use folddb::{FeedEvent, FeedOptions, Rules, Store, ValuePlacement};

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

/// What the first keys of each table read as.
fn values_of_tables(dir: &Path) -> Vec<(String, u64, Option<Vec<u8>>)> {
    let store = Store::open(dir, manual()).unwrap();
    let tables: Vec<_> = store.tables().into_iter().map(|name| store.bytes_table(&name).unwrap()).collect();
    let keys = tables.iter().flat_map(|table| (0..8).map(move |key| (table, key)));
    keys.map(|(table, key): (_, u64)| (table.name().to_owned(), key, table.get(&key.to_be_bytes()).unwrap()))
        .collect()
}

/// A store with values that only the log leads to, which a feed has still to give: overwritten ones
/// in a sorted and in a hashed table, some in files of their own, and those of a dropped table.
fn with_values_of_an_unread_feed(dir: &Path) {
    let store = Store::create(dir, manual()).unwrap();
    let mut feed = store.feed("f", FeedOptions::default()).unwrap();
    while feed.poll().unwrap().is_some() {}
    feed.acknowledge(feed.position()).unwrap();
    drop(feed);
    let sorted = || Rules::sorted::<u64, Vec<u8>>().separate(64);
    let tables = [
        store.table("sorted", sorted()).unwrap(),
        store.table("hashed", Rules::hashed::<u64, Vec<u8>>()).unwrap(),
        store.table("files", sorted().value_placement(ValuePlacement::Files)).unwrap(),
        store.table("dropped", sorted()).unwrap(),
    ];
    for round in 0..3 {
        for table in &tables {
            table.put(&7, &vec![round; 900]).unwrap();
        }
        store.flush().unwrap();
    }
    for name in ["sorted", "hashed", "files"] {
        store.bytes_table(name).unwrap().compact().unwrap();
    }
    drop(tables);
    store.drop_table("dropped").unwrap();
    while store.background_step().unwrap().is_some() {}
    store.close().unwrap();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap().path();
        let to = to.join(entry.file_name().unwrap());
        match entry.is_dir() {
            true => copy(&entry, &to),
            false => assert!(std::fs::copy(&entry, to).is_ok()),
        }
    }
}

/// The files in a directory, and in those in it, whose names end so, relative to it.
fn files(dir: &Path, ends: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        let name = PathBuf::from(entry.file_name().unwrap());
        if entry.is_dir() {
            found.extend(files(&entry, ends).into_iter().map(|inner| name.join(inner)));
        } else if entry.extension().is_some_and(|end| ends.iter().any(|one| end == *one)) {
            found.push(name);
        }
    }
    found
}

/// Removes, cuts and flips each of these files in a copy of a store. Wherever the feed does not
/// give all of its changes then, verify and repair say so. Wherever verify calls it damage to feeds
/// alone, the tables read as before. Returns how often the feed failed.
fn harm_each(whole: &Path, ends: &[&str], all: usize) -> usize {
    let temp = whole.parent().unwrap();
    let unharmed = temp.join("unharmed");
    copy(whole, &unharmed);
    assert_eq!(given(&unharmed), Some(all));
    let values = values_of_tables(&unharmed);
    assert!(values.iter().any(|(_, _, value)| value.is_some()));
    let (mut failed, mut of_feeds_only) = (0, 0);
    for name in files(whole, ends) {
        let bytes = std::fs::read(whole.join(&name)).unwrap();
        let flips = (0..bytes.len()).step_by(bytes.len().min(4096) / 2 + 67);
        let cuts = [None, Some(0), Some(100), Some(4096 + 50)].map(|len| (len, None));
        for (len, flip) in cuts.into_iter().chain(flips.map(|flip| (Some(bytes.len()), Some(flip)))) {
            let dir = temp.join("harmed");
            copy(whole, &dir);
            let mut harmed = bytes.clone();
            if let Some(flip) = flip {
                harmed[flip] ^= 0x41;
            }
            match len.filter(|len| *len <= bytes.len()) {
                None => std::fs::remove_file(dir.join(&name)).unwrap(),
                Some(len) => std::fs::write(dir.join(&name), &harmed[..len]).unwrap(),
            }
            let said = format!("{name:?}, {len:?} bytes, flipped at {flip:?}");
            let report = Store::verify(&dir, &VerifyOptions::default().deep(true), &manual()).unwrap();
            let quick = Store::verify(&dir, &VerifyOptions::default(), &manual()).unwrap();
            let to = temp.join("repaired");
            let repaired = Store::repair(&dir, &to, &RepairOptions::default(), &manual()).unwrap();
            let mut damage = report.damage().peekable();
            if damage.peek().is_some() && damage.all(|finding| finding.is_of_feeds_only()) {
                of_feeds_only += 1;
                assert_eq!(values_of_tables(&dir), values, "{said}: {:?}", report.findings);
            }
            if given(&dir) != Some(all) {
                failed += 1;
                assert!(report.damage().next().is_some(), "{said}: verify calls it whole");
                // Values are whole behind a damaged header, and repair reads them.
                let is_header = name.extension().is_some_and(|end| end == "values");
                if !(is_header && flip.is_some_and(|at| at < 4096)) {
                    assert!(!repaired.is_complete(), "{said}: repair says that nothing is lost");
                    let mut feeds = report.damage().filter(|finding| finding.feeds == ["f"]);
                    assert!(feeds.next().is_some(), "{said}: {:?}", report.findings);
                }
                // A quick check looks at no value in a file of its own.
                if len.is_none() && name.extension().is_none_or(|end| end != "value") {
                    assert!(quick.damage().next().is_some(), "{said}: it is missing");
                }
            }
            std::fs::remove_dir_all(&dir).unwrap();
            std::fs::remove_dir_all(&to).unwrap();
        }
    }
    assert!(of_feeds_only > 5, "{of_feeds_only} harms hit only the feed");
    failed
}

#[test]
fn damage_to_what_a_feed_has_not_given_is_reported_wherever_the_feed_fails() {
    let temp = tempfile::tempdir().unwrap();
    let whole = temp.path().join("whole");
    with_unread_feed(&whole);
    assert!(files(&whole, &["log", "kept"]).len() > 2, "some files are not joined");
    let failed = harm_each(&whole, &["log", "kept"], 5 * OPENINGS as usize);
    assert!(failed > 10, "{failed} harms cost changes");
}

#[test]
fn damage_to_values_that_a_feed_has_not_given_is_reported_wherever_the_feed_fails() {
    let temp = tempfile::tempdir().unwrap();
    let whole = temp.path().join("whole");
    with_values_of_an_unread_feed(&whole);
    let failed = harm_each(&whole, &["values", "value"], 12);
    assert!(failed > 10, "{failed} harms cost changes");
}

/// What cannot be read stays as it is, and files on either side of it are joined.
#[test]
fn a_damaged_file_of_the_history_does_not_keep_others_from_being_joined() {
    let temp = tempfile::tempdir().unwrap();
    for harm in [Some(9), None] {
        let dir = temp.path().join(format!("{harm:?}"));
        with_unread_feed(&dir);
        let name = files(&dir, &["log"]).into_iter().min().unwrap();
        let mut bytes = std::fs::read(dir.join(&name)).unwrap();
        match harm {
            Some(at) => {
                bytes[4096 + at] ^= 0x41;
                std::fs::write(dir.join(&name), &bytes).unwrap();
            }
            None => std::fs::write(dir.join(&name), &bytes[..100]).unwrap(),
        }
        let lost = given(&dir).is_none();
        assert!(lost, "the feed cannot give all");
        for _ in 0..100 {
            let store = Store::open(&dir, manual()).unwrap();
            let table = store.table("sums", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
            table.fold(&1, &1).unwrap();
            drop(table);
            store.close().unwrap();
        }
        let left = files(&dir, &["log", "kept"]).len();
        assert!(left < 40, "{left} files");
    }
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
