//! `folddb export-dir STORE TABLE DIR`: each value becomes a file below a directory, at the path
//! that is its key.
//!
//! Keys come from anywhere: one that is not a plain path below the directory (`..`, an absolute
//! path, an empty name, a path through a link or a file) is skipped and reported, and nothing is
//! written into a store or a directory of backups. A file is written under another name first, so
//! that a file with its name is complete. An existing file stays: if its bytes differ from the
//! value, that is reported.
//!
//! A file that cannot be read or written, and a damaged value, is refused by its name, and the
//! others are written, as `tar` and `rsync` do. An error that ends the export says how many are
//! written.

use std::fs::{self, File, Metadata};
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::path::{Component, Path, PathBuf};

use folddb::{BytesTable, Datum, Options, Store};
use indicatif::ProgressBar;

use crate::args::ExportDirArgs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::keys;
use crate::messages;
use crate::render::json::{self, Json, object};
use crate::session::Session;
use crate::{blobs, human, interrupt, progress};

/// The outcome for a key.
enum Exported {
    /// A file of this many bytes.
    Written(u64),
    /// Nothing: there is a file with these bytes, or the key was deleted in between.
    Left,
    /// Nothing: there is a file with other bytes, which stays.
    Differs(String),
    /// Nothing, and why it cannot be a file here.
    PassedOver(String),
    /// Nothing, since its file cannot be read or written.
    Refused(String),
    /// Nothing, since its value is damaged.
    Damaged(String),
}

/// The name of a file that is being written, or the beginning of its name. An existing one may be
/// the value of a key, or belong to anybody: it stays.
const UNDER_WAY: &str = ".folddb-unfinished";

pub(crate) fn run(args: &ExportDirArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let table = store.known_table(&args.table)?;
    let options = session.options();
    refuse_inside_store(&args.dir, &options)?;
    fs::create_dir_all(&args.dir).map_err(|error| cannot("create", &args.dir, &error))?;
    refuse_inside_store(&args.dir, &options)?; // its path may have led through missing directories
    let bar = progress::bytes_bar(None, "writing");
    let hearing = session.shared.is_none().then(interrupt::hear); // a shell does this itself
    let mut tally = Tally::default();
    let ended = export_all(args, &options, &table, &bar, &mut tally);
    bar.finish_and_clear();
    drop(hearing);
    tally.report(ended.is_ok(), session)?;
    ended?;
    tally.outcome()
}

/// The outcomes for the keys.
#[derive(Default)]
struct Tally {
    written: u64,
    bytes: u64,
    there: u64,
    differing: u64,
    passed_over: u64,
    /// Those with a damaged value, too.
    refused: u64,
    is_damaged: bool,
    /// The first keys without a file of their value, and why.
    left_out: Vec<Json>,
}

/// Most keys that a report names: others are counted.
const LEFT_OUT_MAX: usize = 1000;

impl Tally {
    /// Notes the outcome for a key, and names a key without a file.
    fn note(&mut self, exported: Exported, key: impl FnOnce() -> Json, bar: &ProgressBar) {
        let (outcome, why) = match exported {
            Exported::Written(len) => {
                (self.written, self.bytes) = (self.written + 1, self.bytes + len);
                return;
            }
            Exported::Left => {
                self.there += 1;
                return;
            }
            Exported::Differs(why) => {
                self.differing += 1;
                ("differing", why)
            }
            Exported::PassedOver(why) => {
                self.passed_over += 1;
                ("passed_over", why)
            }
            Exported::Refused(why) => {
                self.refused += 1;
                ("refused", why)
            }
            Exported::Damaged(why) => {
                self.refused += 1;
                self.is_damaged = true;
                ("damaged", why)
            }
        };
        if self.left_out.len() < LEFT_OUT_MAX {
            self.left_out.push(object! { "key": key(), "outcome": outcome, "reason": why.as_str() });
        }
        bar.suspend(|| messages::print(&format!("folddb: {why}")));
    }

    /// What the exit code says: damage is worse than a file that is not written.
    fn outcome(&self) -> Result<(), Failure> {
        match self.missing() {
            _ if self.is_damaged => Err(Failure::Reported(ExitCode::Damaged)),
            0 => Ok(()),
            _ => Err(Failure::Reported(ExitCode::Refused)),
        }
    }

    /// How many keys have no file of their value.
    fn missing(&self) -> u64 {
        self.differing + self.passed_over + self.refused
    }

    fn report(&mut self, is_at_end: bool, session: &mut Session) -> Result<(), Failure> {
        let left_out = std::mem::take(&mut self.left_out);
        let &mut Tally { written, bytes, there, differing, passed_over, refused, .. } = self;
        let report = object! {
            "written": written,
            "bytes": bytes,
            "there": there,
            "differing": differing,
            "passed_over": passed_over,
            "refused": refused,
            "left_out": left_out,
            "whole": is_at_end && self.missing() == 0,
        };
        session.report(&report, |out| {
            let stopped = if is_at_end { "" } else { ", then stopped" };
            write!(out, "{} written, {}{stopped}", human::plural(written, "file"), human::bytes(bytes))?;
            if there > 0 {
                write!(out, "; {} there already", human::count(there))?;
            }
            if differing > 0 {
                write!(out, "; {} left alone, with other contents", human::count(differing))?;
            }
            if passed_over > 0 {
                write!(out, "; {} passed over", human::plural(passed_over, "key"))?;
            }
            if refused > 0 {
                write!(out, "; {} refused", human::count(refused))?;
            }
            writeln!(out)
        })
    }
}

/// Writes the value of each key to its file. Fails if no other key would succeed.
fn export_all(
    args: &ExportDirArgs,
    options: &Options,
    table: &BytesTable,
    bar: &ProgressBar,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let mut rows = table.scan().keys_only().rows()?;
    while let Some((key, _)) = rows.next_row()? {
        interrupt::check()?;
        let exported = export(args, options, table, key, bar).or_else(refused)?;
        let shown = || json::from_datum(&keys::shown(table.rules(), key));
        tally.note(exported, shown, bar);
    }
    Ok(())
}

/// Makes a failure that concerns one file, or the value of one key, its outcome.
fn refused(failure: Failure) -> Result<Exported, Failure> {
    match &failure {
        Failure::Usage(_) | Failure::NoFile(_) | Failure::Refused(_) => {
            Ok(Exported::Refused(failure.to_string()))
        }
        Failure::Store(error) if error.kind() == folddb::ErrorKind::Corruption => {
            Ok(Exported::Damaged(failure.to_string()))
        }
        _ => Err(failure),
    }
}

/// Writes the value of a key to its file.
fn export(
    args: &ExportDirArgs,
    options: &Options,
    table: &BytesTable,
    key: &[u8],
    bar: &ProgressBar,
) -> Result<Exported, Failure> {
    let Some(relative) = path_of(table, key) else {
        let shown = table.rules().as_table_rules().key_codec().show_line(key);
        let why = format!("key {shown} of table `{}` is not a path below a directory", table.name());
        return Ok(Exported::PassedOver(why));
    };
    let path = args.dir.join(&relative);
    match fs::symlink_metadata(&path) {
        Ok(facts) if facts.is_dir() => {
            return Ok(Exported::PassedOver(format!("{} is a directory, and also a key", path.display())));
        }
        Ok(facts) if !args.overwrite => return compare(table, key, &path, &facts, bar),
        _ => {}
    }
    if let Some(in_the_way) = make_parents(&args.dir, &relative, options)? {
        let why =
            format!("{} cannot be written: {} is not a directory", path.display(), in_the_way.display());
        return Ok(Exported::PassedOver(why));
    }
    let mut unfinished = PathBuf::new();
    let make = || create_next_to(&path).map(|(file, name)| (file, unfinished = name).0);
    let got = blobs::get(table, key, make, &path.display().to_string(), bar);
    let len = match got {
        Ok(Some(len)) => len,
        Ok(None) => return Ok(Exported::Left), // deleted in between
        Err(failure) => {
            let _ = fs::remove_file(&unfinished);
            return Err(failure);
        }
    };
    fs::rename(&unfinished, &path).map_err(|error| {
        let _ = fs::remove_file(&unfinished);
        cannot("write", &path, &error)
    })?;
    Ok(Exported::Written(len))
}

/// Whether an existing file that stays has the value of a key.
fn compare(
    table: &BytesTable,
    key: &[u8],
    path: &Path,
    facts: &Metadata,
    bar: &ProgressBar,
) -> Result<Exported, Failure> {
    let name = path.display().to_string();
    let Some(head) = table.head(key)? else { return Ok(Exported::Left) }; // deleted in between
    let mut is_same = facts.is_file() && facts.len() == head.size_bytes;
    if is_same {
        let file = File::open(path).map_err(|error| cannot("read", path, &error))?;
        let to = Compared { file: BufReader::new(file), theirs: Vec::new(), is_same: &mut is_same };
        blobs::get(table, key, || Ok(to), &name, bar)?;
    }
    Ok(match is_same {
        true => Exported::Left,
        false => Exported::Differs(format!("{name} exists with other contents (--overwrite replaces it)")),
    })
}

/// A writer that compares with the contents of a file.
struct Compared<'a> {
    file: BufReader<File>,
    theirs: Vec<u8>,
    is_same: &'a mut bool,
}

impl Write for Compared<'_> {
    fn write(&mut self, ours: &[u8]) -> io::Result<usize> {
        if *self.is_same {
            self.theirs.resize(ours.len(), 0);
            *self.is_same = match self.file.read_exact(&mut self.theirs) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => false, // it was cut in between
                read => read.map(|()| self.theirs == ours)?,
            };
        }
        Ok(ours.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Creates a file in the directory of another, under a free name.
fn create_next_to(path: &Path) -> Result<(File, PathBuf), Failure> {
    let mut name = path.with_file_name(UNDER_WAY);
    for next in 1.. {
        match File::create_new(&name) {
            Ok(file) => return Ok((file, name)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot("create", &name, &error)),
        }
        name = path.with_file_name(format!("{UNDER_WAY}-{next}"));
    }
    Err(Failure::Refused(format!("no name is free next to {}", path.display())))
}

/// The path of a key, below any directory; none if it is not a path.
fn path_of(table: &BytesTable, key: &[u8]) -> Option<PathBuf> {
    let Ok(Datum::Text(text)) = table.rules().as_table_rules().key_codec().show(key) else { return None };
    let path = PathBuf::from(&text);
    let is_plain = |component| matches!(component, Component::Normal(_));
    // `components` ignores doubled and trailing slashes and dots, which would make two keys one
    // file.
    let is_said_plainly =
        text.split('/').all(|name| !matches!(name, "" | "." | "..")) && !text.contains('\0');
    (is_said_plainly && path.components().all(is_plain)).then_some(path)
}

/// Refuses a directory that is a store, or one of backups, or is inside one.
fn refuse_inside_store(dir: &Path, options: &Options) -> Result<(), Failure> {
    let named = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let there = named.ancestors().find_map(|above| fs::canonicalize(above).ok());
    match there.iter().flat_map(|there| there.ancestors()).find(|above| Store::owns_directory(above, options))
    {
        Some(kept) => Err(in_store(dir, kept)),
        None => Ok(()),
    }
}

fn in_store(dir: &Path, kept: &Path) -> Failure {
    let (dir, kept) = (dir.display(), kept.display());
    Failure::Refused(format!(
        "{dir} is not a place for files: {kept} is a store, or holds backups; name a directory elsewhere"
    ))
}

/// Creates the directories that a file needs, none of them through a link, nor in a store. Returns
/// what is in the way of one.
fn make_parents(dir: &Path, relative: &Path, options: &Options) -> Result<Option<PathBuf>, Failure> {
    let mut at = dir.to_owned();
    for name in relative.parent().into_iter().flat_map(Path::components) {
        at.push(name);
        match fs::create_dir(&at) {
            Ok(()) => continue,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot("create", &at, &error)),
        }
        let facts = fs::symlink_metadata(&at).map_err(|error| cannot("read", &at, &error))?;
        if !facts.is_dir() {
            return Ok(Some(at));
        }
        if Store::owns_directory(&at, options) {
            return Err(in_store(&dir.join(relative), &at));
        }
    }
    Ok(None)
}

fn cannot(doing: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::file(doing, &path.display().to_string(), error)
}
