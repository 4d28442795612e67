//! False lengths: each length in a file is made far longer than any memory, with all checksums
//! right. No step takes memory for it, none panics, and an error or a finding names the file.
//!
//! For things that are not files of a store (cursors, digests, each decoder alone),
//! `crates/fuzz/tests/lengths.rs` tests the same.

#[path = "lengths/lies.rs"]
mod lies;

use std::collections::BTreeMap;
use std::io::sink;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use folddb::Store;
use folddb::maintenance::{BackupOptions, LoadOptions, RepairOptions, RestoreOptions, VerifyOptions};
use folddb_sim::fixtures::{copy, kept, options};
use lies::{LIES, Lie, StoreFile};
use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// The memory that a step may take beyond what it takes for the unchanged store: far more than
/// errors need, far less than any false length.
const MORE_BYTES: usize = 16 << 20;

/// Files in which each false length is put.
const FILES_OF_A_LIE: usize = 3;

/// The fixtures with false lengths, by version: every kind of file is in one of them.
const STORES: [(&str, &str); 5] =
    [("v2", "settled"), ("v2", "died"), ("v4", "lasting"), ("v1", "unclosed"), ("v2", "copied/000001")];

/// All steps with a store, by name: each reports what is wrong, any number of times.
type Step = fn(&Path, &Path) -> Vec<String>;

const STEPS: [(&str, Step); 7] = [
    ("read", read),
    ("write", write),
    ("verify", verify),
    ("repair", repair),
    ("back up", back_up),
    ("restore", restore),
    ("diagnose", diagnose),
];

fn told<T>(result: folddb::Result<T>) -> Vec<String> {
    result.err().map(|error| error.to_string()).into_iter().collect()
}

fn read(dir: &Path, _: &Path) -> Vec<String> {
    told(Store::open_read_only(dir, options()).and_then(|store| store.dump(&[], &mut sink()).map(drop)))
}

/// Everything that moves or copies the contents.
fn write(dir: &Path, temp: &Path) -> Vec<String> {
    let dir = &copied(dir, temp, "written");
    let store = match Store::open(dir, options()) {
        Err(error) => return vec![error.to_string()],
        Ok(store) => store,
    };
    let mut said = told(store.dump(&[], &mut sink()));
    for table in store.tables() {
        said.extend(told(store.bytes_table(&table).and_then(|table| table.compact())));
    }
    said.extend(told(store.reclaim()));
    said.extend(told(store.close()));
    said
}

fn verify(dir: &Path, _: &Path) -> Vec<String> {
    match Store::verify(dir, &VerifyOptions::default().deep(true), &options()) {
        Err(error) => vec![error.to_string()],
        Ok(report) => report.findings.iter().map(|finding| finding.to_string()).collect(),
    }
}

fn repair(dir: &Path, temp: &Path) -> Vec<String> {
    let to = temp.join("repaired");
    match Store::repair(dir, &to, &RepairOptions::default(), &options()) {
        Err(error) => vec![error.to_string()],
        Ok(report) => report.findings.iter().map(|finding| finding.to_string()).collect(),
    }
}

fn back_up(dir: &Path, temp: &Path) -> Vec<String> {
    let (dir, place, to) = (&copied(dir, temp, "backed-up"), temp.join("backups"), temp.join("restored"));
    let made = Store::open_read_only(dir, options())
        .and_then(|store| store.backup(&place, &BackupOptions::default()))
        .and_then(|_| Store::restore(&place, &to, &RestoreOptions::default(), &options()));
    told(made)
}

/// For a store that is a backup; others cannot be restored.
fn restore(dir: &Path, temp: &Path) -> Vec<String> {
    told(Store::restore(dir, temp.join("restored"), &RestoreOptions::default(), &options()))
}

fn diagnose(dir: &Path, _: &Path) -> Vec<String> {
    told(Store::diagnose(dir, &options()))
}

/// A copy of the store, for a step that changes it.
fn copied(dir: &Path, temp: &Path, name: &str) -> PathBuf {
    let to = temp.join(name);
    copy_all(dir, &to);
    to
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a store") {
        let path = entry.expect("an entry").path();
        let to = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_all(&path, &to)
        } else {
            std::fs::copy(&path, &to).map(|_| ()).expect("a copy")
        }
    }
}

/// Takes a step; returns what it reported, and the memory that it took.
fn take(name: &str, step: Step, dir: &Path) -> Result<(Vec<String>, usize), String> {
    let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let said = catch_unwind(AssertUnwindSafe(|| step(dir, temp.path())));
    let taken = HEAP.peak_usage().saturating_sub(before);
    said.map(|said| (said, taken)).map_err(|_| format!("to {name} panicked"))
}

/// An unchanged store, and the memory that each step takes for it.
struct Whole {
    dir: PathBuf,
    taken: BTreeMap<&'static str, usize>,
}

impl Whole {
    fn of(dir: PathBuf) -> Whole {
        let taken = STEPS.into_iter().map(|(name, step)| {
            let (_, taken) = take(name, step, &dir).expect("nothing panics at a store that is whole");
            (name, taken)
        });
        Whole { taken: taken.collect(), dir }
    }

    /// Puts the false length into some files, and takes every step. Returns in how many files it
    /// could be put, and in how many it was detected.
    fn tell(&self, lie: &Lie, wrong: &mut Vec<String>) -> (usize, usize) {
        let (mut count, mut found) = (0, 0);
        for file in StoreFile::all(&self.dir) {
            if !file.name.contains(lie.files) || count == FILES_OF_A_LIE {
                continue;
            }
            let Some(bytes) = (lie.tell)(&file) else { continue };
            count += 1;
            let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
            let dir = copied(&self.dir, temp.path(), "lied-about");
            file.replace(&dir, &bytes);
            let (why, is_named) = self.try_all(&dir, lie, &file.name);
            wrong.extend(why.into_iter().map(|why| format!("{}, {}: {why}", lie.place, file.name)));
            found += usize::from(is_named);
        }
        (count, found)
    }

    /// What goes wrong, and whether any step names the file, or, of a list of files, one that it
    /// lists.
    fn try_all(&self, dir: &Path, lie: &Lie, file: &str) -> (Vec<String>, bool) {
        let names: Vec<String> = match lie.files {
            "MANIFEST" | "BACKUP" => StoreFile::all(dir).into_iter().map(|file| file.name).collect(),
            _ => vec![file.to_owned()],
        };
        let (mut wrong, mut is_named) = (Vec::new(), false);
        for (name, step) in STEPS {
            match take(name, step, dir) {
                Err(panicked) => wrong.push(panicked),
                Ok((said, taken)) => {
                    if taken > self.taken[name] + MORE_BYTES {
                        wrong.push(format!("to {name} took {taken} bytes, and {} before", self.taken[name]));
                    }
                    is_named |= said.iter().any(|said| names.iter().any(|name| said.contains(name)));
                }
            }
        }
        (wrong, is_named)
    }
}

fn fixtures(temp: &Path) -> Vec<Whole> {
    let kept = kept().expect("the fixtures are there");
    let version = |version: &str| kept.iter().find(|dir| dir.ends_with(version)).expect("a version");
    STORES
        .iter()
        .map(|(of, name)| {
            let to = temp.join(of);
            copy(version(of), name.split('/').next().unwrap_or(name), &to).expect("a fixture is copied");
            Whole::of(to.join(name))
        })
        .collect()
}

#[test]
fn a_false_length_takes_no_memory_and_the_error_names_its_file() {
    let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
    let stores = fixtures(temp.path());
    let mut wrong = Vec::new();
    for lie in &LIES {
        let told = stores.iter().map(|store| store.tell(lie, &mut wrong));
        // Some of these lengths are of things that no step needs.
        match told.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1)) {
            (0, _) => wrong.push(format!("{}: no fixture has it", lie.place)),
            (told, 0) if lie.is_found => {
                wrong.push(format!("{}: found out in none of {told} files", lie.place))
            }
            _ => {}
        }
    }
    a_dump_that_lies(&mut wrong);
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// A dump states the number of bytes of a long value.
fn a_dump_that_lies(wrong: &mut Vec<String>) {
    let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
    let store = Store::create(temp.path().join("store"), options()).expect("a store");
    for long in [1_u64 << 40, u64::MAX] {
        let text = format!(
            "{{\"folddb\":\"dump\",\"version\":1}}\n{{\"table\":\"t\",\"rules\":[\"rules 1\",\"fold=append:\"]}}\n\
             {{\"key\":\"k\",\"long\":{long}}}\n{{\"piece\":\"0x61\"}}\n"
        );
        let before = HEAP.current_usage();
        HEAP.reset_peak_usage();
        let loaded = store.load(&mut text.as_bytes(), &LoadOptions::default());
        let taken = HEAP.peak_usage().saturating_sub(before);
        match loaded {
            Err(error) if error.to_string().contains(" lines") && taken < MORE_BYTES => {}
            other => wrong.push(format!("a dump with a value of {long} bytes took {taken}: {other:?}")),
        }
    }
}
