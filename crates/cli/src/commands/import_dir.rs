//! `folddb import-dir STORE TABLE DIR`: each file below a directory becomes the value of its path.
//!
//! A file is skipped if the table has a value of its size that was written after the file, or that
//! is equal. Links, stores, and what is neither file nor directory are skipped, too, and counted.
//!
//! A file that cannot be read, or with a name or bytes that the table does not take, is refused by
//! its name, and the others are stored, as `tar` and `rsync` do. An error that ends the import says
//! how many are stored.

use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use folddb::codec::KeyCodec;
use folddb::table_rules::TableRules;
use folddb::{BytesTable, Datum, ErrorKind, Head, Options, Store, WriteOp};
use indicatif::ProgressBar;
use serde_json::json;

use crate::args::ImportDirArgs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::messages;
use crate::session::{Opened, Session};
use crate::{blobs, human, interrupt, progress};

/// The outcomes for the files.
#[derive(Default)]
struct Tally {
    stored: u64,
    bytes: u64,
    unchanged: u64,
    others: u64,
    stores: u64,
    refused: u64,
}

/// Most refused files that are named.
const REFUSED_NAMED_MAX: u64 = 10;

impl Tally {
    /// Notes a file that cannot be a value, and names it; a failure that concerns more than a file
    /// is returned.
    fn refuse(&mut self, failure: Failure, bar: &ProgressBar) -> Result<(), Failure> {
        let is_of_file = match &failure {
            Failure::Usage(_) | Failure::NoFile(_) | Failure::Refused(_) => true,
            Failure::Store(error) => error.kind() == ErrorKind::InvalidInput,
            _ => false,
        };
        if !is_of_file {
            return Err(failure);
        }
        self.refused += 1;
        if self.refused <= REFUSED_NAMED_MAX {
            bar.suspend(|| messages::print(&format!("folddb: {failure}")));
        }
        Ok(())
    }
}

pub(crate) fn run(args: &ImportDirArgs, session: &mut Session) -> Result<(), Failure> {
    let mut tally = Tally::default();
    let options = session.options();
    if Store::owns_directory(&args.dir, &options) {
        let dir = args.dir.display();
        return Err(Failure::Refused(format!(
            "{dir} is a store, or holds backups, whose files are not imported"
        )));
    }
    let bar = progress::bytes_bar(None, "storing");
    let files = files_below(&args.dir, &options, &bar, &mut tally)?;
    bar.set_length(files.iter().map(|(_, facts)| facts.len()).sum());
    let _hearing = session.shared.is_none().then(interrupt::hear); // a shell does this itself
    let store = open(args, session)?;
    let table = store.known_table(&args.table)?.with_durability(args.durability.into());
    let ended = files.iter().try_for_each(|file| match import(args, &table, file, &bar, &mut tally) {
        Err(failure) => tally.refuse(failure, &bar),
        done => done,
    });
    bar.finish_and_clear();
    let closed = store.close();
    report(&tally, ended.is_ok() && closed.is_ok(), session)?;
    let ended = ended.and(closed);
    match ended {
        Ok(()) if tally.refused > 0 => Err(Failure::Reported(ExitCode::NotAllIn)),
        ended => ended,
    }
}

fn report(tally: &Tally, is_whole: bool, session: &mut Session) -> Result<(), Failure> {
    let &Tally { stored, bytes, unchanged, others, stores, refused } = tally;
    let report = json!({
        "stored": stored,
        "bytes": bytes,
        "unchanged": unchanged,
        "others": others,
        "stores": stores,
        "refused": refused,
        "whole": is_whole,
    });
    session.report(&report, |out| {
        let stopped = if is_whole { "" } else { ", then stopped" };
        write!(out, "{} stored, {}{stopped}", human::plural(stored, "file"), human::bytes(bytes))?;
        if unchanged > 0 {
            write!(out, "; {} unchanged", human::count(unchanged))?;
        }
        if others > 0 {
            write!(out, "; {} skipped: neither a file nor a directory", human::count(others))?;
        }
        if stores > 0 {
            let what = if stores == 1 { "a store, or backups" } else { "stores, or backups" };
            write!(out, "; {} skipped: {what}", human::count(stores))?;
        }
        if refused > 0 {
            write!(out, "; {} refused", human::count(refused))?;
        }
        if refused > REFUSED_NAMED_MAX {
            write!(out, ", of which {REFUSED_NAMED_MAX} are named above")?;
        }
        writeln!(out)
    })
}

fn open(args: &ImportDirArgs, session: &Session) -> Result<Opened, Failure> {
    let store = match session.write(&args.store) {
        Err(Failure::Store(error)) if args.create && error.kind() == ErrorKind::StoreNotFound => {
            session.create_to_fill(&args.store)?
        }
        opened => opened?,
    };
    if args.create && !store.tables().contains(&args.table) {
        let Some(rules) = TableRules::ready_made("blob") else { return Ok(store) };
        store.create_bytes_table(&args.table, rules.key(KeyCodec::Utf8))?;
    }
    Ok(store)
}

/// All files below a directory, by path, except those of stores, including the target. An
/// unreadable directory is refused.
fn files_below(
    dir: &Path,
    options: &Options,
    bar: &ProgressBar,
    tally: &mut Tally,
) -> Result<Vec<(PathBuf, Metadata)>, Failure> {
    let (mut files, mut dirs) = (Vec::new(), Vec::new());
    look_into(dir, options, (&mut files, &mut dirs), tally)?;
    while let Some(dir) = dirs.pop() {
        if let Err(failure) = look_into(&dir, options, (&mut files, &mut dirs), tally) {
            tally.refuse(failure, bar)?;
        }
    }
    files.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(files)
}

/// The files and the directories in a directory.
fn look_into(
    dir: &Path,
    options: &Options,
    (files, dirs): (&mut Vec<(PathBuf, Metadata)>, &mut Vec<PathBuf>),
    tally: &mut Tally,
) -> Result<(), Failure> {
    let cannot =
        |path: &Path, error: &std::io::Error| Failure::file("read", &path.display().to_string(), error);
    for entry in std::fs::read_dir(dir).map_err(|error| cannot(dir, &error))? {
        let path = entry.map_err(|error| cannot(dir, &error))?.path();
        let facts = std::fs::symlink_metadata(&path).map_err(|error| cannot(&path, &error))?;
        match (facts.is_dir(), facts.is_file()) {
            (true, _) if Store::owns_directory(&path, options) => tally.stores += 1,
            (true, _) => dirs.push(path),
            (_, true) => files.push((path, facts)),
            _ => tally.others += 1,
        }
    }
    Ok(())
}

fn import(
    args: &ImportDirArgs,
    table: &BytesTable,
    (path, facts): &(PathBuf, Metadata),
    bar: &ProgressBar,
    tally: &mut Tally,
) -> Result<(), Failure> {
    interrupt::check()?; // stored files stay, and are unchanged the next time
    let key = key_of(table, path.strip_prefix(&args.dir).unwrap_or(path))?;
    let name = path.display().to_string();
    if !args.overwrite
        && let Some(head) = table.head(&key)?
        && is_unchanged(table, &key, &head, path, facts)?
    {
        tally.unchanged += 1;
        bar.inc(facts.len());
        return Ok(());
    }
    let (from, _) = blobs::open(&name)?;
    let (_, bytes) = blobs::put(table, (WriteOp::Put, &key), from, &name, bar)?;
    tally.stored += 1;
    tally.bytes += bytes;
    Ok(())
}

/// The path of a file as a key, with `/` between its names.
fn key_of(table: &BytesTable, path: &Path) -> Result<Vec<u8>, Failure> {
    let names: Option<Vec<&str>> = path.components().map(|name| name.as_os_str().to_str()).collect();
    let Some(names) = names else {
        return Err(Failure::Refused(format!(
            "the name of {path:?} is not UTF-8 text, so it cannot be a key"
        )));
    };
    let (codec, mut key) = (table.rules().as_table_rules().key_codec(), Vec::new());
    codec.encode(&Datum::Text(names.join("/")), &mut key).map_err(|cause| {
        let table = table.name();
        Failure::Usage(format!("{} is not a key of table `{table}`: {cause}", path.display()))
    })?;
    Ok(key)
}

/// Whether the stored value is this file: of its size, and written after the last change or
/// creation of the file; if that time is unknown, equal bytes.
fn is_unchanged(
    table: &BytesTable,
    key: &[u8],
    head: &Head,
    path: &Path,
    facts: &Metadata,
) -> Result<bool, Failure> {
    if head.size_bytes != facts.len() {
        return Ok(false);
    }
    // A file that is moved or copied here with its old time counts as changed now.
    let there_since = Duration::new(facts.ctime().max(0) as u64, facts.ctime_nsec().max(0) as u32);
    let changed = facts.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let changed = changed.map(|modified| modified.max(there_since));
    if let (Some(written), Some(changed)) = (head.written, changed) {
        return Ok(written.duration_since(UNIX_EPOCH).is_ok_and(|written| written > changed));
    }
    let (mut from, mut bytes) = (blobs::open(&path.display().to_string())?.0, Vec::new());
    let read = from.read_to_end(&mut bytes);
    read.map_err(|error| Failure::file("read", &path.display().to_string(), &error))?;
    Ok(table.get_with(key, |value| value == Some(&bytes[..]))?)
}
