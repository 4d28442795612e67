//! A manifest that was cut: at every edge of its edits, and at many places between. The loss of the
//! edits that were cut off is reported, with the remedy: the list of a backup.
//!
//! ```text
//!   open refuses          verify finds damage, and repair refuses or says that something is lost
//!   a table is gone       verify and repair name it, or say how many at least have lost their names
//!   a file with rows      is never reported as a leftover of an interrupted operation
//!   --list-from BACKUP    is named by both, and brings back what the backup had
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use folddb::codec::KeyCodec;
use folddb::maintenance::{BackupOptions, Finding, RepairOptions, VerifyOptions};
use folddb::table_rules::TableRules;
use folddb::{BackgroundWork, BytesTable, Durability, Options, Store, WriteOp};

const TABLES: [&str; 6] = ["text", "sums", "blobs", "hashed", "loaded", "late"];
const ROWS: u64 = 120;

fn options() -> Options {
    Options::default()
        .memory_bytes(4 << 20)
        .tuning(|t| t.segment_bytes(1 << 20).value_segment_bytes(16 << 10).part_bytes(64 << 10))
        .disk_reserve_bytes(0)
        .background(BackgroundWork::Manual)
}

fn rules(name: &str) -> TableRules {
    match name {
        "sums" => TableRules::new(KeyCodec::U64).fold("sum:u64"),
        "blobs" => TableRules::new(KeyCodec::U64).separate(Some(64)),
        "hashed" => TableRules::hashed(KeyCodec::U64),
        _ => TableRules::new(KeyCodec::U64),
    }
}

/// Creates the tables and fills them, with a flush after each.
fn fill(store: &Store) {
    for name in TABLES {
        if name == "loaded" {
            load(store);
            continue;
        }
        let table = store.create_bytes_table(name, rules(name)).expect("a table");
        write(store, &[table], 0);
        store.flush().expect("it flushes");
    }
}

fn load(store: &Store) {
    let mut load = store.bulk_load_bytes("loaded", rules("loaded")).expect("a load");
    for row in 0..ROWS {
        load.push(WriteOp::Put, &row.to_be_bytes(), &value(row, 0)).expect("a row");
    }
    load.finish().expect("it is loaded");
}

fn value(row: u64, round: u64) -> Vec<u8> {
    format!("row {row} of round {round}; ").into_bytes().into_iter().cycle().take(100).collect()
}

fn write(store: &Store, tables: &[BytesTable], round: u64) {
    let mut batch = store.batch();
    for (table, row) in tables.iter().flat_map(|table| (0..ROWS).map(move |row| (table, row))) {
        let (op, bytes) = match table.name() {
            "sums" => (WriteOp::Fold, row.to_le_bytes().to_vec()),
            _ => (WriteOp::Put, value(row, round)),
        };
        batch.write(table, op, &row.to_be_bytes(), &bytes);
    }
    batch.commit(Durability::Sync).expect("it is written");
}

fn all(store: &Store) -> Vec<BytesTable> {
    TABLES.iter().map(|name| store.bytes_table(name).expect("a table")).collect()
}

type Dump = BTreeMap<String, Vec<(Vec<u8>, Vec<u8>)>>;

fn dump(store: &Store) -> folddb::Result<Dump> {
    let rows = |name: &String| -> folddb::Result<_> {
        let mut rows = store.bytes_table(name)?.scan().into_iter().collect::<folddb::Result<Vec<_>>>()?;
        rows.sort();
        Ok((name.clone(), rows))
    };
    store.tables().iter().map(rows).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("it lists") {
        let entry = entry.expect("an entry").path();
        let target = to.join(entry.file_name().expect("a name"));
        match entry.is_dir() {
            true => copy(&entry, &target),
            false => drop(fs::copy(&entry, &target).expect("it is copied")),
        }
    }
}

/// Copies the files that list the files of a store, and nothing else.
fn lay_by(store: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(store).expect("it lists") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("a name");
        if name.starts_with("MANIFEST") || name == "FORMAT" {
            fs::copy(entry.path(), to.join(name)).expect("it is copied");
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Left {
    /// Never opened again since its creation, and closed.
    Young,
    /// The same, but its process died.
    YoungDied,
    /// Opened again and closed.
    Old,
    /// Opened again, and its process died.
    OldDied,
}

struct Cut {
    left: Left,
    temp: tempfile::TempDir,
    manifest: String,
    whole: Vec<u8>,
    dump: Dump,
    in_backup: Dump,
}

impl Cut {
    fn new(left: Left) -> Cut {
        let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
        let (written, dir) = (temp.path().join("written"), temp.path().join("store"));
        let mut store = Store::create(&written, options()).expect("a store");
        fill(&store);
        store.backup(temp.path().join("backups"), &BackupOptions::default()).expect("a backup");
        let in_backup = dump(&store).expect("it reads");
        lay_by(&written, &temp.path().join("laid_by"));
        if matches!(left, Left::Old | Left::OldDied) {
            store.close().expect("it closes");
            store = Store::open(&written, options()).expect("it opens");
        }
        write(&store, &all(&store), 1);
        store.flush().expect("it flushes");
        write(&store, &all(&store)[..2], 2);
        let whole = dump(&store).expect("it reads");
        match left {
            Left::Young | Left::Old => {
                store.close().expect("it closes");
                copy(&written, &dir);
            }
            Left::YoungDied | Left::OldDied => {
                copy(&written, &dir);
                drop(store);
            }
        }
        let manifest = fs::read_dir(&dir)
            .expect("it lists")
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .find(|name| name.starts_with("MANIFEST"))
            .expect("a manifest");
        let bytes = fs::read(dir.join(&manifest)).expect("it reads");
        Cut { left, temp, manifest, whole: bytes, dump: whole, in_backup }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    /// Every edge of an edit, and places between.
    fn places(&self) -> Vec<usize> {
        let (mut places, mut at) = (vec![0, 1], 0);
        while let Some(len) = self.whole.get(at + 8..at + 12) {
            let len = u32::from_le_bytes(len.try_into().expect("four bytes")) as usize;
            // The snapshot is long where all tables are in it.
            places.extend((at + len / 9..at + len).step_by(97).chain([at + 1, at + len / 2, at + len - 1]));
            at += len;
            places.push(at);
        }
        places.retain(|place| *place < self.whole.len());
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Cuts the manifest here, and says which of the promises does not hold.
    fn try_one(&self, at: usize) -> Result<Came, String> {
        let dir = self.path("store");
        fs::write(dir.join(&self.manifest), &self.whole[..at]).expect("it is cut");
        let judged = self.judge(&dir, at);
        fs::write(dir.join(&self.manifest), &self.whole).expect("it is whole again");
        judged
    }

    fn judge(&self, dir: &Path, at: usize) -> Result<Came, String> {
        let (opened, to) = (self.path("opened"), self.path("new"));
        copy(dir, &opened);
        let found = Store::open(&opened, options()).and_then(|store| dump(&store));
        fs::remove_dir_all(&opened).expect("it goes");
        let verified =
            Store::verify(dir, &VerifyOptions::default().deep(true), &options()).expect("a report");
        let repaired = Store::repair(dir, &to, &RepairOptions::default(), &options());
        let saved = repaired.as_ref().map(|_| dump(&Store::open(&to, options()).expect("it opens")));
        let saved = saved.unwrap_or(Ok(Dump::new())).expect("it reads");
        fs::remove_dir_all(&to).ok();
        match &found {
            Ok(found) if *found == self.dump => return Ok(Came::Whole),
            Ok(_) => return Err("it opens without a word, and rows are missing".to_owned()),
            Err(_) if verified.is_clean() => return Err(format!("{found:?}, and verify finds nothing")),
            Err(_) => {}
        }
        let said = match &repaired {
            Ok(report) if report.is_complete() && saved != self.dump => {
                return Err(format!("repair says that nothing is lost: {:?}", report.findings));
            }
            Ok(report) => report.findings.iter().map(|one| format!("{one}\n")).collect(),
            Err(error) => error.message().to_owned(),
        };
        let of_verify: String = verified.findings.iter().map(|one| format!("{one}\n")).collect();
        let lost: Vec<&str> = TABLES.into_iter().filter(|name| !saved.contains_key(*name)).collect();
        for said in [&of_verify, &said] {
            self.check_said(said, &lost)?;
            self.check_names(said, at)?;
        }
        let list = if at.is_multiple_of(2) { "backups/000001" } else { "laid_by" };
        self.by_the_list_of(dir, list)?;
        Ok(if lost.is_empty() { Came::AllNamed } else { Came::Lost })
    }

    /// The report of verify or repair where opening refuses, and these tables are lost.
    fn check_said(&self, said: &str, lost: &[&str]) -> Result<(), String> {
        let is_leftover = |line: &&str| line.contains("left by a flush");
        if let Some(line) = said.lines().find(is_leftover) {
            return Err(format!("a file that may be live is said to be a leftover: {line}"));
        }
        if !said.contains("--list-from") && !lost.is_empty() {
            return Err(format!("the way that helps is not named: {said}"));
        }
        let nameless = lost.iter().filter(|name| !said.contains(&format!("table `{name}`"))).count();
        let is_counted = match self.left {
            // The log mentions each.
            Left::YoungDied | Left::OldDied if nameless > 0 => {
                let s = if nameless == 1 { " whose name is gone" } else { "s whose names are gone" };
                said.contains(&format!("at least {nameless} table{s}"))
            }
            // Records of values name their table.
            _ if nameless == lost.len() && lost.iter().any(|name| ["blobs", "hashed"].contains(name)) => {
                said.contains("by number") && said.contains("not known")
            }
            _ => nameless == 0 || said.contains("names are gone") || said.contains("nothing names any more"),
        };
        match is_counted {
            true => Ok(()),
            false => {
                Err(format!("{lost:?} are lost, and {nameless} of them neither named nor counted: {said}"))
            }
        }
    }

    /// A snapshot that lacks only its last bytes still names all tables.
    fn check_names(&self, said: &str, at: usize) -> Result<(), String> {
        let snapshot_len = u32::from_le_bytes(self.whole[8..12].try_into().expect("four bytes")) as usize;
        let is_young = matches!(self.left, Left::Young | Left::YoungDied);
        let is_named = |name: &&str| said.contains(&format!("table `{name}`"));
        match TABLES.iter().find(|name| !is_named(name)) {
            Some(name) if at + 1 == snapshot_len && !is_young => {
                Err(format!("`{name}` is not named: {said}"))
            }
            _ => Ok(()),
        }
    }

    /// The list of a backup, or one that was kept elsewhere, brings back all tables that were on
    /// it.
    fn by_the_list_of(&self, dir: &Path, list: &str) -> Result<(), String> {
        let (list, to) = (Some(self.path(list)), self.path("listed"));
        let repaired = Store::repair(dir, &to, &RepairOptions::default().list_from(list), &options());
        let report = repaired.map_err(|error| format!("by a list it is not repaired: {error}"))?;
        let saved = dump(&Store::open(&to, options()).expect("it opens")).expect("it reads");
        fs::remove_dir_all(&to).expect("it goes");
        if !report.verified.is_clean() {
            return Err(format!("by a list: it does not verify: {:?}", report.verified.findings));
        }
        // The report about the list is true. The loss of a saved index may cost things that no row
        // shows.
        let is_of_list = |one: &&Finding| !one.file.ends_with(".index");
        let said: Vec<String> = report.lost().filter(is_of_list).map(ToString::to_string).collect();
        if report.is_complete() && saved != self.dump {
            return Err(format!("by a list, nothing is said to be lost: {:?}", report.findings));
        }
        if saved == self.dump && !said.is_empty() {
            return Err(format!("by a list all came back, and yet: {said:?}"));
        }
        let keys = |dump: &Dump| -> Vec<(String, usize)> {
            dump.iter().map(|(name, rows)| (name.clone(), rows.len())).collect()
        };
        match keys(&saved) == keys(&self.in_backup) {
            true => Ok(()),
            false => Err(format!("by a list: {:?} rows, and {:?}", keys(&saved), report.findings)),
        }
    }
}

/// The outcome of a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Came {
    /// Nothing is missing.
    Whole,
    /// It is refused, and all tables are still on the list.
    AllNamed,
    /// It is refused, and tables are lost without another list.
    Lost,
}

fn cut(left: Left) {
    let cut = Cut::new(left);
    let (mut wrong, mut counts) = (Vec::new(), BTreeMap::<Came, u64>::new());
    for at in cut.places() {
        match cut.try_one(at) {
            Ok(came) => *counts.entry(came).or_default() += 1,
            Err(why) => wrong.push(format!("cut to {at} of {}: {why}", cut.whole.len())),
        }
    }
    println!("{left:?}: {counts:?}");
    assert!(wrong.is_empty(), "{left:?}: {}:\n{}", wrong.len(), wrong[..wrong.len().min(10)].join("\n"));
    assert!(counts.get(&Came::Lost).is_some_and(|count| *count > 10), "{counts:?}");
}

#[test]
fn a_cut_manifest_of_a_young_store_that_was_closed_costs_nothing_unsaid() {
    cut(Left::Young);
}

#[test]
fn a_cut_manifest_of_a_young_store_whose_process_died_loses_nothing_unreported() {
    cut(Left::YoungDied);
}

#[test]
fn a_cut_manifest_of_a_store_that_was_opened_again_and_closed_costs_nothing_unsaid() {
    cut(Left::Old);
}

#[test]
fn a_cut_manifest_of_a_reopened_store_whose_process_died_loses_nothing_unreported() {
    cut(Left::OldDied);
}

/// An operation after the list was made, and the words of repair for its loss; none where the log
/// brings it back.
type Since = (&'static str, fn(&Store), Option<&'static str>);

const SINCE: [Since; 4] = [
    (
        "a batch that was flushed",
        |store| {
            write(store, &[store.bytes_table("text").expect("a table")], 1);
            store.flush().expect("it flushes");
        },
        None,
    ),
    ("a bulk load", load, Some("does not have 1 file with 120 records in parts")),
    (
        "a table",
        |store| {
            write(store, &[store.create_bytes_table("new", rules("text")).expect("a table")], 1);
        },
        Some("at least 1 table whose name is gone"),
    ),
    (
        "a table whose values stand apart, and no log",
        |store| {
            write(store, &[store.create_bytes_table("new", rules("blobs")).expect("a table")], 1);
            store.flush().expect("it flushes");
            store.bytes_table("new").expect("a table").compact().expect("it merges");
        },
        Some("whose name"),
    ),
];

#[test]
fn what_a_list_lacks_is_said() {
    for (what, since, lost) in SINCE {
        let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
        let (written, dir) = (temp.path().join("written"), temp.path().join("store"));
        let store = Store::create(&written, options()).expect("a store");
        let table = store.create_bytes_table("text", rules("text")).expect("a table");
        write(&store, &[table], 0);
        store.flush().expect("it flushes");
        lay_by(&written, &temp.path().join("laid_by"));
        since(&store);
        let whole = dump(&store).expect("it reads");
        copy(&written, &dir); // its process died
        drop(store);
        for entry in fs::read_dir(&dir).expect("it lists") {
            let path = entry.expect("an entry").path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("MANIFEST")) {
                fs::remove_file(path).expect("it goes");
            }
        }
        let (how, to) =
            (RepairOptions::default().list_from(Some(temp.path().join("laid_by"))), temp.path().join("new"));
        let report = Store::repair(&dir, &to, &how, &options()).expect("it is repaired");
        let saved = dump(&Store::open(&to, options()).expect("it opens")).expect("it reads");
        let said: String = report.findings.iter().map(|one| format!("{one}\n")).collect();
        match lost {
            None => assert!(report.is_complete() && saved == whole, "{what}: {said}"),
            Some(words) => {
                assert!(saved != whole && !report.is_complete(), "{what}: {said}");
                assert!(report.lost().any(|one| one.to_string().contains(words)), "{what}: {said}");
            }
        }
    }
}
