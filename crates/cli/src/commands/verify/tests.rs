use std::path::Path;
use std::sync::Arc;

use folddb::codec::KeyCodec;
use folddb::maintenance::{RepairOptions, VerifyOptions, VerifyReport};
use folddb::table_rules::TableRules;
use folddb::{FeedOptions, Fold, FoldFailure, Options, Outcome, Store, WriteOp};

use super::summary;

/// A fold that takes values of at most this many bytes.
struct Short(usize);

impl Fold for Short {
    fn spec(&self) -> String {
        "short".to_owned()
    }

    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        match value.len() <= self.0 {
            true => Ok(()),
            false => Err(FoldFailure::new(format!("{} bytes are too many", value.len()))),
        }
    }

    fn fold(&self, _: &[u8], _: &[u8], _: &[u8], _: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        Ok(Outcome::KeepLater)
    }
}

fn options(bytes_max: usize) -> Options {
    Options::default().custom_fold(Arc::new(Short(bytes_max)))
}

/// A store with a value that a later version of its fold does not take.
fn written_by_another(path: &Path) {
    let store = Store::create(path, options(100)).expect("a store");
    let rules = TableRules::new(KeyCodec::U64).custom_fold("short", 1);
    let table = store.create_bytes_table("t", rules).expect("a table");
    table.write(WriteOp::Put, &7_u64.to_be_bytes(), &[1; 50]).expect("it is written");
    store.close().expect("it closes");
}

fn verify(path: &Path) -> VerifyReport {
    Store::verify(path, &VerifyOptions::default().deep(true), &options(10)).expect("a report")
}

#[test]
fn the_advice_fits_what_was_found() {
    let temp = tempfile::tempdir().expect("a directory");
    let path = temp.path().join("store");
    written_by_another(&path);
    let report = verify(&path);
    let (said, found) = (summary(&report), report.findings[0].to_string());
    assert!(
        found.starts_with("unfit: ") && found.contains("table `t`") && found.contains("key 7:"),
        "{found}"
    );
    assert!(
        said.starts_with("no file is damaged") && said.contains("folddb delete STORE TABLE KEY"),
        "{said}"
    );
    assert!(!said.contains("folddb repair"), "{said}");

    let format = path.join("FORMAT");
    let bytes = std::fs::read(&format).expect("it reads");
    std::fs::write(&format, &bytes[..bytes.len() / 2]).expect("it is cut");
    let said = summary(&verify(&path));
    assert!(said.starts_with("damaged: 1 place;") && said.contains("folddb repair STORE NEW"), "{said}");
    assert!(said.contains("put such keys again"), "{said}");
}

#[test]
fn a_store_with_parts_that_this_build_cannot_read_is_not_called_whole() {
    let mut report = VerifyReport::default();
    for deep in [false, true] {
        report.deep = deep;
        report.checked.parts_unread = 0;
        assert!(report.is_clean() && summary(&report).starts_with("whole"), "{}", summary(&report));
        report.checked.parts_unread = 2;
        let said = summary(&report);
        assert!(!report.is_clean() && said.starts_with("this build of FoldDB cannot read 2 parts"), "{said}");
        assert!(!said.contains("repair"), "{said}");
    }
}

/// A log that only an unread feed holds: the tables need nothing of it.
#[test]
fn the_advice_for_damage_to_feeds_alone_is_to_begin_them_again() {
    let temp = tempfile::tempdir().expect("a directory");
    let path = temp.path().join("store");
    let store = Store::create(&path, options(100)).expect("a store");
    let table = store.create_bytes_table("t", TableRules::new(KeyCodec::U64)).expect("a table");
    drop(store.feed("f", FeedOptions::default()).expect("a feed"));
    table.write(WriteOp::Put, &7_u64.to_be_bytes(), b"seven").expect("it is written");
    store.close().expect("it closes");
    drop(Store::open(&path, options(100)).expect("it opens").close());
    let files = std::fs::read_dir(&path).expect("it lists").map(|entry| entry.expect("an entry").path());
    let held = files.filter(|file| file.extension().is_some_and(|end| end == "log")).min();
    std::fs::remove_file(held.expect("a file of the log")).expect("it is removed");

    let said = summary(&verify(&path));
    assert!(said.starts_with("damaged: 1 place, which costs feeds alone;"), "{said}");
    assert!(said.contains("folddb watch STORE FEED --again") && !said.contains("repair"), "{said}");
    let store = Store::open(&path, options(100)).expect("it opens");
    let advice = store.doctor().expect("advice");
    assert!(advice.iter().all(|one| !one.todo.contains("repair")), "{advice:?}");
}

#[test]
fn a_repair_of_it_is_complete_and_says_that_it_mends_no_such_value() {
    let temp = tempfile::tempdir().expect("a directory");
    let (path, new) = (temp.path().join("store"), temp.path().join("new"));
    written_by_another(&path);
    let repaired = Store::repair(&path, &new, &RepairOptions::default(), &options(10));
    let said = crate::commands::repair::summary(&repaired.expect("it is repaired"), "new");
    assert!(said.starts_with("nothing is lost") && said.contains("put them again, or delete them"), "{said}");
    assert!(!said.contains("report this"), "{said}");
}
