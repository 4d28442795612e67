//! Damaged files: for any byte that is flipped and any place where a file is cut, a store answers
//! with an error that names the file and the offset, or with the right data; never with wrong data,
//! and never with a panic.
//!
//! The log is the one exception, and a narrow one: its end, as far as no sync has vouched for it,
//! may be lost to damage as to a power cut, so there a store may hold fewer batches, but whole ones
//! and in order.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use folddb::maintenance::{RepairOptions, VerifyOptions};
use folddb::table_rules::Compression;
use folddb::{BackgroundWork, Durability, ErrorKind, Options, Rules, Store, Table, ValuePlacement};
use folddb_layout::values::{RECORD_HEAD_BYTES, RecordHead, put_head};
use folddb_sim::numbered::Numbered;

/// Batches of a store.
const BATCHES: u64 = 150;
/// How many bytes of a file are flipped at most, one at a time, and as many cuts.
const FLIPS_MAX: u64 = 900;
const CUTS_MAX: u64 = 60;

fn options() -> Options {
    Options::default()
        .memory_bytes(4 << 20)
        .tuning(|t| t.segment_bytes(1 << 20).part_bytes(64 << 10))
        .disk_reserve_bytes(0)
}

struct Fixture {
    _temp: tempfile::TempDir,
    dir: PathBuf,
}

impl Fixture {
    /// A small store with several runs, tables of both kinds of blocks, and a range delete; closed,
    /// or left with the last batches in the log only.
    fn new(closed: bool) -> Fixture {
        let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
        let dir = temp.path().join("store");
        let store = Store::create(&dir, options()).expect("the store is created");
        let numbered = Numbered::open(&store).expect("the tables are created");
        let text = store.table("text", rules_of_text()).expect("a table");
        let mut batch = store.batch();
        for i in 1..=BATCHES {
            numbered.fill(&mut batch, i);
            text_of(i).into_iter().for_each(|(key, value)| {
                batch.put(&text, &key, &value);
            });
            batch.commit(Durability::Process).expect("it writes");
            if i.is_multiple_of(BATCHES / 3) {
                store.flush().expect("it flushes");
            }
        }
        text.delete_range("a", "b").expect("it writes");
        match closed {
            true => store.close().expect("it closes"),
            false => {
                for i in BATCHES + 1..=2 * BATCHES {
                    numbered.fill(&mut batch, i);
                    batch.commit(Durability::Process).expect("it writes");
                }
                store.sync().expect("it syncs");
            }
        }
        Fixture { _temp: temp, dir }
    }

    /// The files that may be damaged, by name.
    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.dir).expect("the directory lists");
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.file_name().is_some_and(|name| name != "LOCK"));
        files.sort();
        files
    }
}

/// Blocks of both compressions: runs above the bottom by LZ4, the bottom by zstd.
fn rules_of_text() -> Rules<String, String> {
    Rules::sorted().lz4().bottom_compression(Some(Compression::Zstd)).block_bytes(512)
}

fn text_of(i: u64) -> Vec<(String, String)> {
    (0..4)
        .map(|n| {
            (format!("key {:04}", i * 4 + n), format!("the value of {i}, part {n}, and some more of it"))
        })
        .collect()
}

/// The answer of a store: the last of its numbered batches, or its first error. Wrong data is an
/// `Err` without an error of the store.
fn look(dir: &Path, read_only: bool) -> Result<Result<u64, folddb::Error>, String> {
    let store =
        match if read_only { Store::open_read_only(dir, options()) } else { Store::open(dir, options()) } {
            Ok(store) => store,
            Err(error) => return Ok(Err(error)),
        };
    let numbered = match Numbered::open(&store) {
        Ok(numbered) => numbered,
        Err(error) => return Ok(Err(error)),
    };
    let table = match store.table("text", rules_of_text()) {
        Ok(table) => table,
        Err(error) => return Ok(Err(error)),
    };
    let mut rows = Vec::new();
    for row in table.scan() {
        match row {
            Ok(row) => rows.push(row),
            Err(error) => return Ok(Err(error)),
        }
    }
    let expected: Vec<(String, String)> = (1..=BATCHES).flat_map(text_of).collect();
    if rows != expected {
        return Err(format!("{} rows of text and not {}, or other ones", rows.len(), expected.len()));
    }
    for (key, value) in expected.iter().step_by(37) {
        match table.get(key) {
            Ok(found) if found.as_ref() == Some(value) => {}
            Ok(found) => return Err(format!("get {key:?} gives {found:?}")),
            Err(error) => return Ok(Err(error)),
        }
    }
    match numbered.rows() {
        Ok(rows) => rows.last().map(Ok),
        Err(error) => Ok(Err(error)),
    }
}

/// Checks a damaged store. None where all is right.
fn judge(fixture: &Fixture, file: &Path, batches: u64, read_only: bool) -> Option<String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let looked = catch_unwind(AssertUnwindSafe(|| look(&fixture.dir, read_only)));
    match looked {
        Err(_) => Some("it panics".to_owned()),
        Ok(Err(wrong)) => Some(format!("wrong data: {wrong}")),
        Ok(Ok(Ok(last))) if last == batches => None,
        Ok(Ok(Ok(last))) if name.ends_with(".log") && last < batches => None,
        Ok(Ok(Ok(last))) => Some(format!("{last} batches and not {batches}")),
        Ok(Ok(Err(error))) => {
            let is_damage = error.kind() == ErrorKind::Corruption && error.message().contains("offset");
            // A damaged version number of a file cannot be distinguished from another version.
            let is_version = matches!(error.kind(), ErrorKind::NewerFormat);
            let names_it = error.message().contains(&name) || is_version && name == "FORMAT";
            (!names_it || !(is_damage || is_version)).then(|| format!("a poor error: {error:?}"))
        }
    }
}

/// Damages every file of a store in many places, one at a time.
fn damage(closed: bool, flip: bool, is_meant: fn(&str) -> bool) {
    let fixture = Fixture::new(closed);
    let batches = if closed { BATCHES } else { 2 * BATCHES };
    assert!(matches!(look(&fixture.dir, true), Ok(Ok(last)) if last == batches), "the store is whole");
    let files = fixture.files();
    assert!(files.len() >= 5, "{files:?} are few files");
    let mut wrong = Vec::new();
    for file in files.iter().filter(|file| is_meant(&file.to_string_lossy())) {
        let whole = fs::read(file).expect("the file reads");
        // A preallocated segment is zeros after its end.
        let used = whole.iter().rposition(|byte| *byte != 0).map_or(0, |at| at as u64 + 1);
        let step = match flip {
            true => (used / FLIPS_MAX).max(1) | 1,
            false => (used / CUTS_MAX).max(1) | 1,
        };
        for at in (0..used).step_by(step as usize) {
            let mut bytes = whole.clone();
            match flip {
                true => bytes[at as usize] ^= if at % 2 == 0 { 0x01 } else { 0xff },
                false => bytes.truncate(at as usize),
            }
            fs::write(file, &bytes).expect("the file writes");
            if let Some(why) = judge(&fixture, file, batches, true) {
                let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                wrong.push(format!(
                    "{name} {} {at} of {used}: {why}",
                    if flip { "flipped at" } else { "cut to" }
                ));
            }
        }
        fs::write(file, &whole).expect("the file writes");
    }
    assert!(matches!(look(&fixture.dir, true), Ok(Ok(last)) if last == batches), "the store is whole again");
    assert!(wrong.is_empty(), "{} times:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}

#[test]
fn no_flipped_byte_of_a_closed_store_gives_wrong_data() {
    damage(true, true, |_| true);
}

#[test]
fn no_flipped_byte_of_a_store_with_a_log_gives_wrong_data() {
    damage(false, true, |_| true);
}

#[test]
fn no_cut_of_a_closed_store_gives_wrong_data() {
    damage(true, false, |file| !file.contains("MANIFEST"));
}

#[test]
fn no_cut_of_a_store_with_a_log_gives_wrong_data() {
    damage(false, false, |file| !file.contains("MANIFEST"));
}

#[test]
fn no_cut_of_a_manifest_gives_wrong_data() {
    damage(true, false, |file| file.contains("MANIFEST"));
    damage(false, false, |file| file.contains("MANIFEST"));
}

/// Removes every file of a store, one at a time.
fn take_away(closed: bool, is_meant: fn(&str) -> bool) {
    let fixture = Fixture::new(closed);
    for file in fixture.files() {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !is_meant(&name) {
            continue;
        }
        let aside = fixture.dir.with_extension("aside");
        fs::rename(&file, &aside).expect("the file moves");
        match look(&fixture.dir, true).expect("no wrong data") {
            Ok(last) => panic!("without {name} the store opens, with {last} batches"),
            Err(error) if name == "FORMAT" || name.starts_with("MANIFEST") => {
                assert!(
                    matches!(error.kind(), ErrorKind::StoreNotFound | ErrorKind::Corruption),
                    "{name}: {error:?}"
                );
            }
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Io), "{name}: {error:?}");
                // A removed segment has left no name behind.
                let named = if name.ends_with(".log") { "a segment of the log" } else { &name };
                assert!(error.message().contains(named), "{name}: {error:?}");
            }
        }
        fs::rename(&aside, &file).expect("the file moves back");
    }
}

#[test]
fn a_file_that_is_gone_is_named() {
    take_away(true, |_| true);
    take_away(false, |name| !name.ends_with(".log"));
}

#[test]
fn a_log_that_is_gone_is_missed() {
    take_away(false, |name| name.ends_with(".log"));
}

#[test]
fn damage_that_a_writer_meets_is_named_too_and_spreads_no_further() {
    let fixture = Fixture::new(true);
    let part =
        fixture.files().into_iter().find(|file| file.extension().is_some_and(|kind| kind == "part")).unwrap();
    let mut bytes = fs::read(&part).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 0x10;
    fs::write(&part, &bytes).unwrap();
    let name = part.file_name().unwrap().to_string_lossy().into_owned();
    match Store::open(&fixture.dir, options()) {
        Err(error) => assert!(error.message().contains(&name), "{error:?}"),
        Ok(store) => {
            // Reading damaged data fails, also for a merge; undamaged data is still read and
            // written.
            let merged: Vec<_> = store
                .tables()
                .iter()
                .map(|table| store.bytes_table(table).and_then(|table| table.compact()))
                .collect();
            let failed: Vec<_> = merged.into_iter().filter_map(Result::err).collect();
            assert_eq!(failed.len(), 1, "{failed:?}");
            assert_eq!(failed[0].kind(), ErrorKind::Corruption);
            assert!(failed[0].message().contains(&name), "{:?}", failed[0]);
            let other = store.table("other", Rules::sorted::<u64, u64>()).unwrap();
            other.put(&1, &2).unwrap();
            store.flush().unwrap();
            assert_eq!(other.get(&1).unwrap(), Some(2));
            assert!(store.stats().poisoned_by.is_none());
        }
    }
}

/// The files of values that have files of their own.
fn values_of(dir: &Path) -> Vec<PathBuf> {
    let list = |dir: &Path| fs::read_dir(dir).expect("it lists").map(|entry| entry.expect("an entry").path());
    let directories = list(dir).filter(|path| path.extension().is_some_and(|end| end == "shelf"));
    directories.flat_map(|directory| list(&directory).collect::<Vec<_>>()).collect()
}

/// False lengths of a record of the value log, each with its check recomputed, which a flip never
/// does: none is believed, and no value is made from it.
#[test]
fn a_damaged_length_of_a_value_is_named_before_anything_is_made_of_it() {
    let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
    let dir = temp.path().join("store");
    let store = Store::create(&dir, options()).expect("a store");
    let rules = || Rules::hashed().value_placement(ValuePlacement::Files);
    let table: Table<u64, Vec<u8>> = store.table("files", rules()).expect("a table");
    table.put(&1, &vec![1; 2000]).expect("it is written");
    let mut writer = table.writer(&2).expect("a stream");
    std::io::Write::write_all(&mut writer, &vec![2; 20 << 20]).expect("pieces");
    writer.finish().expect("a commit");
    drop(table);
    store.close().expect("it closes");
    let files = values_of(&dir);
    assert_eq!(files.len(), 2);
    for path in files {
        let whole = fs::read(&path).expect("it reads");
        let head = RecordHead::decode(&whole).expect("a head");
        let key = &whole[RECORD_HEAD_BYTES..RECORD_HEAD_BYTES + usize::from(head.key_len)];
        for len in [head.len + 4096, 1 << 30, 1 << 40, 1 << 62, u64::MAX] {
            let mut bytes = Vec::new();
            put_head(&mut bytes, (head.table, key), len, head.hash, false);
            bytes.extend_from_slice(&whole[RECORD_HEAD_BYTES..]);
            fs::write(&path, &bytes).expect("it is written");
            let store = Store::open_read_only(&dir, options()).expect("it opens");
            let table: Table<u64, Vec<u8>> = store.table("files", rules()).expect("a table");
            let key = if head.len > 2000 { 2 } else { 1 };
            let name = path.file_name().expect("a name").to_str().expect("text");
            let said = [
                table.get(&key).map(drop),
                table.head(&key).map(drop),
                table.read(&key).map(drop),
                table.scan().into_iter().try_for_each(|row| row.map(drop)),
            ];
            for (at, said) in said.into_iter().enumerate() {
                let error = said.expect_err(&format!("{name} of {len} bytes, read in way {at}"));
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                assert!(error.message().contains(name), "way {at}: {error}");
            }
        }
        fs::write(&path, &whole).expect("it is as it was");
    }
}

/// The last edit of the manifest has listed a segment of values, and the log leads into that: so
/// opening, verifying and repairing all know that it is missing, and nothing is cut silently.
#[test]
fn a_manifest_that_has_lost_the_segment_to_which_the_log_leads_is_found() {
    for (placement, before) in [
        (ValuePlacement::Segments, 0),
        (ValuePlacement::Segments, 1),
        (ValuePlacement::Files, 0),
        (ValuePlacement::Files, 1),
    ] {
        let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
        let (dir, copy, to) =
            (temp.path().join("store"), temp.path().join("copy"), temp.path().join("repaired"));
        let options = options().background(BackgroundWork::Manual).tuning(|t| t.value_segment_bytes(4096));
        let store = Store::create(&dir, options.clone()).expect("the store is created");
        let table = store.table("t", rules_of(placement)).expect("a table");
        let other = store.table("other", rules_of(ValuePlacement::Segments)).expect("a table");
        (0..before).for_each(|key| assert!(other.put(&key, &vec![1; 4000]).is_ok()));
        store.sync().expect("it syncs");
        table.put(&1, &vec![2; 4000]).expect("it writes");
        copy_of(&dir, &copy);
        let manifest = fs::read_dir(&copy).expect("a copy").flatten().map(|entry| entry.path());
        let manifest = manifest.filter(|path| path.to_string_lossy().contains("MANIFEST"));
        let manifest = manifest.max().expect("a manifest");
        let mut bytes = fs::read(&manifest).expect("it is there");
        *bytes.last_mut().expect("it has bytes") ^= 1;
        fs::write(&manifest, bytes).expect("it is written");

        let in_case = format!("{placement:?}, {before} values elsewhere");
        let opened = Store::open_read_only(&copy, options.clone()).map(drop);
        let error = opened.expect_err(&format!("{in_case}: the log leads to what is not listed"));
        assert_eq!(error.kind(), ErrorKind::Corruption, "{in_case}: {error}");
        assert!(error.message().contains("MANIFEST"), "{in_case}: {error}");
        let verified =
            Store::verify(&copy, &VerifyOptions::default().deep(true), &options).expect("it verifies");
        assert!(!verified.is_clean(), "{in_case}: {:?}", verified.findings);
        let repaired = Store::repair(&copy, &to, &RepairOptions::default(), &options);
        let repaired = repaired.expect("it repairs");
        let saved = Store::open(&to, options).expect("what was repaired opens");
        let saved = saved.table("t", rules_of(placement)).expect("the table").get(&1).expect("it reads");
        assert!(saved.is_some() || !repaired.is_complete(), "{in_case}: {:?}", repaired.findings);
    }
}

fn rules_of(placement: ValuePlacement) -> Rules<u64, Vec<u8>> {
    Rules::sorted::<u64, Vec<u8>>().separate(64).value_placement(placement)
}

/// A copy of a store that is open, as the death of its process would leave it.
fn copy_of(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a store").flatten() {
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_of(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).expect("it is copied")),
        }
    }
}
