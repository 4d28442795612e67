//! Every byte of a small store, flipped in turn: each flip is found and named, or changes nothing.
//!
//! ```text
//!   flip one byte  ->  open, scan, get every key        the whole data, or an error that names the file
//!                  ->  verify --deep                    names the file, wherever the data is not as it was
//! ```
//!
//! One of the stores has separated values, some moved by reclaim. There every way of reading a
//! value is tried, and heads, which no damage to values affects ([`values`]).
//!
//! [`Outcome`] lists the rest: bytes that are never read, and the two limits that
//! docs/DURABILITY.md states. A step that fails while the store is being made panics: without it
//! there is nothing to flip. `tests/flips.rs` takes a share, `cargo run -p folddb-sim --release
//! --example flips` all of them.

mod whole;
pub mod values;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use self::values::PieceKind;
use folddb::codec::KeyCodec;
use folddb::maintenance::{Loss, RepairOptions, RepairReport, VerifyOptions, VerifyReport, Weight};
use folddb::table_rules::{Compression, TableRules};
use folddb::{BackgroundWork, Batch, BytesTable, Durability, ErrorKind, Head, Options, Store, WriteOp};

use crate::flips::whole::{names_file, tables_of};

pub use whole::{Dump, Whole};

/// Batches that are flushed, and batches that only the log has.
const BATCHES: u64 = 45;

const LOGGED: u64 = 12;

/// How many of the last batches are not synced.
const UNSYNCED: u64 = 2;

/// A small store on disk, and what it holds.
pub struct Fixture {
    dir: PathBuf,
    files: Vec<Whole>,
    dump: Dump,
    /// The same without the batches that nothing vouches for.
    vouched_dumps: Vec<Dump>,
    /// Where in the log frames begin that nothing vouches for.
    vouched_offset: u64,
    /// Where in the log the first needed frame begins.
    needed_offset: u64,
    /// Where values are separated: the heads of all keys.
    heads: Option<Vec<Option<Head>>>,
}

/// The outcome of a flip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Opening or reading gives an error that names the file, and so does verifying.
    Refused,
    /// The data is right all the same, and verifying names the file.
    Named,
    /// The data is right, and the byte does not matter.
    Unused(&'static str),
    /// One of the limits that are stated.
    Limit(&'static str),
    /// None of these: a fault of FoldDB.
    Wrong(String),
}

fn options() -> Options {
    Options::default()
        .memory_bytes(4 << 20)
        .tuning(|t| t.segment_bytes(1 << 20).part_bytes(64 << 10))
        .disk_reserve_bytes(0)
        .background(BackgroundWork::Manual)
}

pub(crate) fn tables(store: &Store) -> folddb::Result<Vec<BytesTable>> {
    let back = TableRules::new(KeyCodec::Bytes).fold("append:\",\"").order("reversed").filter_bits(0);
    let back = back.bottom_compression(Some(Compression::Zstd));
    let rules = [
        ("text", TableRules::new(KeyCodec::Utf8).compression(Compression::Lz4).block_bytes(512)),
        ("sums", TableRules::new(KeyCodec::U64).fold("sum:u64").block_bytes(512)),
        ("back", back),
    ];
    tables_of(store, rules)
}

/// Batch `i`, over all tables.
fn fill(batch: &mut Batch, tables: &[BytesTable], i: u64) {
    let [text, sums, back] = tables else { return };
    let key = format!("key {:03}", i * 7 % 60);
    let value = format!("the value of batch {i}, and some more of it, and more");
    batch.write(text, WriteOp::Put, key.as_bytes(), value.as_bytes());
    for n in 0..3 {
        batch.write(sums, WriteOp::Fold, &(i * n % 50).to_be_bytes(), &i.to_le_bytes());
    }
    let op = if i.is_multiple_of(5) { WriteOp::PutIfAbsent } else { WriteOp::Fold };
    batch.write(back, op, format!("b{}", i % 9).as_bytes(), format!("{i}").as_bytes());
    if i.is_multiple_of(11) {
        batch.write(text, WriteOp::Delete, format!("key {:03}", i % 60).as_bytes(), &[]);
    }
    if i == 30 {
        batch.delete_range(text, b"key 010", b"key 014");
    }
}

impl Fixture {
    /// Writes the store into an empty directory: closed in order, or as left by a process that dies
    /// while it writes.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Panics
    /// The directory cannot be written to.
    pub fn new(within: &Path, closed: bool) -> folddb::Result<Fixture> {
        let (written, dir) = (within.join("written"), within.join("store"));
        let store = Store::create(&written, options())?;
        let tables = tables(&store)?;
        let mut batch = store.batch();
        let mut snapshot = None;
        for i in 1..=BATCHES {
            fill(&mut batch, &tables, i);
            batch.commit(Durability::Process)?;
            if i == BATCHES / 2 {
                snapshot = Some(store.snapshot()); // it keeps the seqs of records
            }
            if i.is_multiple_of(BATCHES / 3) {
                store.flush()?;
            }
        }
        store.bytes_table("sums")?.compact()?;
        drop(snapshot);
        let mut vouched_dumps = Vec::new();
        if closed {
            store.close()?;
            copy(&written, &dir);
        } else {
            for i in BATCHES + 1..=BATCHES + LOGGED {
                if i > BATCHES + LOGGED - UNSYNCED {
                    vouched_dumps.push(dump(&store)?);
                }
                fill(&mut batch, &tables, i);
                batch.commit(Durability::Process)?;
                if i == BATCHES + LOGGED - UNSYNCED {
                    store.sync()?;
                }
            }
            copy(&written, &dir);
            drop(store);
        }
        fs::remove_dir_all(&written).ok();
        Fixture::of(dir, vouched_dumps)
    }

    /// The same of a store whose values are separated, closed in order.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Panics
    /// The directory cannot be written to.
    pub fn of_values(within: &Path) -> folddb::Result<Fixture> {
        let dir = within.join("store");
        let store = values::fill(Store::create(&dir, options())?, &|| Store::open(&dir, options()))?;
        let heads = values::heads(&store)?;
        store.close()?;
        Ok(Fixture { heads: Some(heads), ..Fixture::of(dir, Vec::new())? })
    }

    pub(crate) fn of(dir: PathBuf, vouched_dumps: Vec<Dump>) -> folddb::Result<Fixture> {
        let mut fixture = Fixture {
            files: read_all(&dir),
            dir,
            dump: Dump::new(),
            vouched_dumps,
            vouched_offset: 0,
            needed_offset: 0,
            heads: None,
        };
        let store = Store::open_read_only(&fixture.dir, options())?;
        fixture.dump = dump(&store)?;
        drop(store);
        fixture.vouched_offset = fixture.find_vouched_offset();
        let report = Store::verify(&fixture.dir, &VerifyOptions::default().deep(true), &options())?;
        if let Some(damage) = report.damage().next() {
            return Err(folddb::Error::new(ErrorKind::Corruption, damage.to_string()));
        }
        fixture.needed_offset = fixture.needed_offset_of(report.checked.log_start_lsn);
        Ok(fixture)
    }

    /// The files whose bytes are flipped.
    pub fn files(&self) -> &[Whole] {
        &self.files
    }

    /// Where the store is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What it holds.
    pub fn dump(&self) -> &Dump {
        &self.dump
    }

    /// Only later frames vouch for the frames after the last sync: with the log cut there, the
    /// store opens.
    fn find_vouched_offset(&self) -> u64 {
        let Some(log) = self.files.iter().find(|file| file.name.ends_with(".log")) else { return 0 };
        // The unsynced batches are the last frames; each begins where a cut leaves one batch more.
        let frames = frame_offsets(&log.bytes);
        frames.len().checked_sub(UNSYNCED as usize).and_then(|at| frames.get(at)).copied().unwrap_or(0)
    }

    /// A segment has the LSN of the first byte after its header at offset 48.
    fn needed_offset_of(&self, log_start_lsn: u64) -> u64 {
        let log = self.files.iter().find(|file| file.name.ends_with(".log"));
        let first_lsn =
            log.and_then(|log| log.bytes.get(48..56)?.try_into().ok()).map_or(0, u64::from_le_bytes);
        4096 + log_start_lsn.saturating_sub(first_lsn)
    }

    /// Flips the bits of `mask` in one byte, looks, and puts it back.
    pub fn flip(&self, file: &Whole, at: usize, mask: u8) -> Outcome {
        let path = self.dir.join(&file.name);
        let byte = file.bytes.get(at).copied().unwrap_or(0);
        if let Err(error) = poke(&path, at, byte ^ mask) {
            return Outcome::Wrong(format!("cannot flip: {error}"));
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| self.judge(file, at)));
        let put_back = poke(&path, at, byte);
        match (outcome, put_back) {
            (Ok(outcome), Ok(())) => outcome,
            (Err(_), _) => Outcome::Wrong("it panics".to_owned()),
            (_, Err(error)) => Outcome::Wrong(format!("cannot flip back: {error}")),
        }
    }

    /// Flips the bits of `mask` in one byte, salvages the store to `to`, and puts the byte back.
    /// The result must verify and have the same contents, except for keys that the report lists as
    /// lost.
    ///
    /// # Errors
    /// Says what is wrong with the outcome.
    pub fn salvage(&self, file: &Whole, at: usize, mask: u8, to: &Path) -> Result<RepairReport, String> {
        let path = self.dir.join(&file.name);
        let byte = file.bytes.get(at).copied().unwrap_or(0);
        poke(&path, at, byte ^ mask).map_err(|error| format!("cannot flip: {error}"))?;
        let repaired = Store::repair(&self.dir, to, &RepairOptions::default(), &options());
        poke(&path, at, byte).map_err(|error| format!("cannot flip back: {error}"))?;
        let report = repaired.map_err(|error| format!("it cannot be salvaged: {error:?}"))?;
        if let Some(finding) = report.verified.damage().next() {
            return Err(format!("the new store does not verify: {finding}"));
        }
        let found = Store::open_read_only(to, options()).and_then(|store| dump(&store));
        let found = found.map_err(|error| format!("the new store does not open: {error:?}"))?;
        let is_end = at as u64 >= self.vouched_offset && file.name.ends_with(".log");
        if is_end && self.vouched_dumps.contains(&found) {
            return Ok(report);
        }
        for (table, rows) in &self.dump {
            let (had, has) = (by_key(rows), by_key(found.get(table).map_or(&[][..], Vec::as_slice)));
            let keys = had.keys().chain(has.keys());
            for key in keys.filter(|key| had.get(*key) != has.get(*key)) {
                let is_told = report.lost().flat_map(|finding| &finding.losses).any(|loss| {
                    is_of(loss, table, &found) && in_span(table, key, &loss.after, &loss.through)
                });
                if !is_told {
                    return Err(format!(
                        "table {table}, key {key:?} differs, and only {:?} is told",
                        report.findings
                    ));
                }
            }
        }
        Ok(report)
    }

    fn judge(&self, file: &Whole, at: usize) -> Outcome {
        if let Some(heads) = &self.heads {
            return self.judge_values(heads, file, at);
        }
        let read = Store::open_read_only(&self.dir, options()).and_then(|store| self.look(&store));
        let verified = Store::verify(&self.dir, &VerifyOptions::default().deep(true), &options());
        let report = match verified {
            Ok(report) => report,
            Err(error) => return Outcome::Wrong(format!("verifying fails: {error:?}")),
        };
        let is_named = names(&report, &file.name);
        match read {
            Ok(true) if is_named => Outcome::Named,
            Ok(true) => self.unused(file, at, &report),
            Ok(false) => self.limit(file, at),
            Err(error) if !is_named => {
                Outcome::Wrong(format!("{error:?}, and verifying finds {:?}", report.findings))
            }
            Err(error) => match names_file(&error, &file.name) {
                true => Outcome::Refused,
                false => Outcome::Wrong(format!("a poor error: {error:?}")),
            },
        }
    }

    /// The same where values are separated: values that the damage does not affect are still read.
    fn judge_values(&self, heads: &[Option<Head>], file: &Whole, at: usize) -> Outcome {
        let verified = Store::verify(&self.dir, &VerifyOptions::default().deep(true), &options());
        let is_named = verified.as_ref().is_ok_and(|report| names(report, &file.name));
        let advice = match Store::diagnose(&self.dir, &options()) {
            Ok(advice) => advice,
            Err(error) => return Outcome::Wrong(format!("no advice: {error:?}")),
        };
        let kind =
            values::pieces(file).into_iter().find(|piece| piece.range.contains(&at)).map(|piece| piece.kind);
        let store = match Store::open_read_only(&self.dir, options()) {
            Ok(store) => store,
            Err(error) => {
                let is_advised = advice.iter().any(|one| one.weight == Weight::Broken);
                return match is_named && names_file(&error, &file.name) && is_advised {
                    true => Outcome::Refused,
                    false => {
                        Outcome::Wrong(format!("{error:?}, of which are told {verified:?} and {advice:?}"))
                    }
                };
            }
        };
        match values::heads(&store) {
            Ok(found) if found == heads => {}
            Err(error) if kind.is_none() && is_named && names_file(&error, &file.name) => {
                return Outcome::Refused;
            }
            found => return Outcome::Wrong(format!("heads are not as they were: {found:?}")),
        }
        match values::read_all_ways(&store, &self.dump, &file.name) {
            Err(why) => Outcome::Wrong(why),
            Ok(0) if is_named => Outcome::Named,
            Ok(0) if kind == Some(PieceKind::Padding) => Outcome::Unused("zeros between records"),
            Ok(0) if self.is_dead(file, at) => Outcome::Unused("a dead value"),
            Ok(0) => Outcome::Wrong(format!("nobody sees it: {verified:?}")),
            Ok(_) if is_named => Outcome::Refused,
            Ok(errors) => Outcome::Wrong(format!("{errors} errors, and verifying finds {verified:?}")),
        }
    }

    /// Whether the record with this byte has a value that no key has.
    fn is_dead(&self, file: &Whole, at: usize) -> bool {
        values::value_at(file, at).is_some_and(|value| {
            let has = |held: &[u8]| held.windows(value.len()).any(|stretch| stretch == value);
            !self.dump.values().flatten().any(|(_, held)| has(held))
        })
    }

    /// True when the store holds what it should, by scans and by gets.
    fn look(&self, store: &Store) -> folddb::Result<bool> {
        if dump(store)? != self.dump {
            return Ok(false);
        }
        for (name, rows) in &self.dump {
            let table = store.bytes_table(name)?;
            for (key, value) in rows {
                if table.get(key)?.as_ref() != Some(value) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The data is right, and verifying finds no damage in the file.
    fn unused(&self, file: &Whole, at: usize, report: &VerifyReport) -> Outcome {
        let noted = report.findings.iter().any(|finding| finding.file == file.name);
        if file.name.starts_with("MANIFEST") && noted && at >= last_edit_offset(&file.bytes) {
            return Outcome::Limit("the last edit of the manifest; the log had it all");
        }
        if file.name.ends_with(".log") && (4096..self.needed_offset).contains(&(at as u64)) {
            return Outcome::Unused("frames that the manifest says are not needed");
        }
        Outcome::Wrong(format!("nobody sees it: {:?}", report.findings))
    }

    /// The data is not right, and no error said so.
    fn limit(&self, file: &Whole, at: usize) -> Outcome {
        let store = Store::open_read_only(&self.dir, options());
        let found = store.and_then(|store| dump(&store));
        let is_prefix = found.is_ok_and(|found| self.vouched_dumps.contains(&found));
        match file.name.ends_with(".log") && is_prefix && at as u64 >= self.vouched_offset {
            true => Outcome::Limit("the last group of the log, for which nothing vouches yet"),
            false => Outcome::Wrong("wrong data".to_owned()),
        }
    }
}

fn by_key(rows: &[(Vec<u8>, Vec<u8>)]) -> BTreeMap<&[u8], &[u8]> {
    rows.iter().map(|(key, value)| (key.as_slice(), value.as_slice())).collect()
}

/// Whether a loss is of this table, or of tables whose names are lost.
fn is_of(loss: &Loss, table: &str, found: &Dump) -> bool {
    loss.table == table || loss.table.is_empty() && !found.contains_key(table)
}

/// Whether a key is beyond one and not beyond another, in the order of its table.
fn in_span(table: &str, key: &[u8], after: &Option<Vec<u8>>, through: &Option<Vec<u8>>) -> bool {
    let compare = |a: &[u8], b: &[u8]| if table == "back" { b.cmp(a) } else { a.cmp(b) };
    after.as_ref().is_none_or(|after| compare(after, key).is_lt())
        && through.as_ref().is_none_or(|through| compare(key, through).is_le())
}

/// Whether a report names damage in the file.
pub(crate) fn names(report: &VerifyReport, name: &str) -> bool {
    report.damage().any(|finding| finding.file == name)
}

fn dump(store: &Store) -> folddb::Result<Dump> {
    let mut dump = Dump::new();
    for name in store.tables() {
        let rows = store.bytes_table(&name)?.scan().into_iter().collect::<folddb::Result<_>>()?;
        dump.insert(name, rows);
    }
    Ok(dump)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("the directory lists").flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).expect("a file is copied");
    }
}

fn read_all(dir: &Path) -> Vec<Whole> {
    let mut files = Vec::new();
    read_into(dir, "", &mut files);
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files
}

/// Reads the files of a directory, and of the directories in it, whose names begin with those of
/// these.
fn read_into(dir: &Path, before: &str, files: &mut Vec<Whole>) {
    for entry in fs::read_dir(dir).expect("the directory lists").flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if entry.path().is_dir() {
            read_into(&entry.path(), &format!("{name}/"), files);
            continue;
        }
        let Ok(mut bytes) = fs::read(entry.path()) else { continue };
        if name.ends_with(".log") {
            let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            bytes.truncate(used);
        }
        if name != "LOCK" {
            files.push(Whole { name: format!("{before}{name}"), bytes });
        }
    }
}

fn poke(path: &Path, at: usize, byte: u8) -> std::io::Result<()> {
    File::options().write(true).open(path)?.write_all_at(&[byte], at as u64)
}

/// Where the frames of a segment begin: each says its length.
fn frame_offsets(bytes: &[u8]) -> Vec<u64> {
    let (mut offsets, mut at) = (Vec::new(), 4096);
    while let Some(len) = u32_at(bytes, at + 8).filter(|len| *len > 0) {
        offsets.push(at as u64);
        at += len;
    }
    offsets
}

/// Where the last edit of a manifest begins.
fn last_edit_offset(bytes: &[u8]) -> usize {
    let (mut last, mut at) = (0, 0);
    while let Some(len) = u32_at(bytes, at + 8).filter(|len| *len > 0) {
        last = at;
        at += len;
    }
    last
}

fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
}
