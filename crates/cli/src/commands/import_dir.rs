//! `folddb import-dir STORE TABLE DIR`: each file below a directory becomes the value of its path.
//!
//! A file is passed over where the table has a value of its size that was written after the file was, or that is the same. Links,
//! what is neither file nor directory, and stores are passed over, too, and counted.

use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use folddb::codec::KeyCodec;
use folddb::table_rules::TableRules;
use folddb::{BytesTable, Datum, ErrorKind, Head, Options, Store};
use indicatif::ProgressBar;
use serde_json::json;

use crate::args::ImportDirArgs;
use crate::failure::Failure;
use crate::session::{Opened, Session};
use crate::{blobs, human, interrupt, progress};

/// What became of the files.
#[derive(Default)]
struct Tally {
    stored: u64,
    bytes: u64,
    unchanged: u64,
    others: u64,
    stores: u64,
}

pub(crate) fn run(args: &ImportDirArgs, session: &mut Session) -> Result<(), Failure> {
    let mut tally = Tally::default();
    let options = session.options();
    if Store::keeps(&args.dir, &options) {
        let dir = args.dir.display();
        return Err(Failure::Refused(format!(
            "{dir} is a store, or holds backups, whose files are no values"
        )));
    }
    let files = files_below(&args.dir, &options, &mut tally)?;
    let _hearing = session.shared.is_none().then(interrupt::hear); // in a shell, that hears
    let store = open(args, session)?;
    let table = store.known_table(&args.table)?.with_durability(args.durability.into());
    let bar = progress::bytes_bar(Some(files.iter().map(|(_, facts)| facts.len()).sum()), "storing");
    let done = files.iter().try_for_each(|file| import(args, &table, file, &bar, &mut tally));
    bar.finish_and_clear();
    done?;
    store.close()?;
    let Tally { stored, bytes, unchanged, others, stores } = tally;
    let report = json!({ "stored": stored, "bytes": bytes, "unchanged": unchanged, "others": others, "stores": stores });
    session.report(&report, |out| {
        write!(out, "{} stored, {}", human::plural(stored, "file"), human::bytes(bytes))?;
        if unchanged > 0 {
            write!(out, "; {} unchanged", human::count(unchanged))?;
        }
        if others > 0 {
            write!(out, "; {} passed over: neither a file nor a directory", human::count(others))?;
        }
        if stores > 0 {
            let what = if stores == 1 { "a store, or backups" } else { "stores, or backups" };
            write!(out, "; {} passed over: {what}", human::count(stores))?;
        }
        writeln!(out)
    })
}

fn open(args: &ImportDirArgs, session: &Session) -> Result<Opened, Failure> {
    let store = match session.write(&args.store) {
        Err(Failure::Store(error)) if args.create && error.kind() == ErrorKind::NoStore => {
            session.create(&args.store)?
        }
        opened => opened?,
    };
    if args.create && !store.tables().contains(&args.table) {
        let Some(rules) = TableRules::ready_made("blob") else { return Ok(store) };
        store.create_table(&args.table, rules.key(KeyCodec::Utf8))?;
    }
    Ok(store)
}

/// All files below a directory, by path; those of stores are none of them, not of the one that is written to either.
fn files_below(
    dir: &Path,
    options: &Options,
    tally: &mut Tally,
) -> Result<Vec<(PathBuf, Metadata)>, Failure> {
    let cannot =
        |path: &Path, error: &std::io::Error| Failure::file("read", &path.display().to_string(), error);
    let (mut files, mut dirs) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).map_err(|error| cannot(&dir, &error))? {
            let path = entry.map_err(|error| cannot(&dir, &error))?.path();
            let facts = std::fs::symlink_metadata(&path).map_err(|error| cannot(&path, &error))?;
            match (facts.is_dir(), facts.is_file()) {
                (true, _) if Store::keeps(&path, options) => tally.stores += 1,
                (true, _) => dirs.push(path),
                (_, true) => files.push((path, facts)),
                _ => tally.others += 1,
            }
        }
    }
    files.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(files)
}

fn import(
    args: &ImportDirArgs,
    table: &BytesTable,
    (path, facts): &(PathBuf, Metadata),
    bar: &ProgressBar,
    tally: &mut Tally,
) -> Result<(), Failure> {
    interrupt::check()?; // what is stored stays, and is unchanged the next time
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
    let (_, bytes) = blobs::put(table, &key, from, (&name, None), bar)?;
    tally.stored += 1;
    tally.bytes += bytes;
    Ok(())
}

/// The path of a file as a key, with `/` between its names.
fn key_of(table: &BytesTable, path: &Path) -> Result<Vec<u8>, Failure> {
    let names: Option<Vec<&str>> = path.components().map(|name| name.as_os_str().to_str()).collect();
    let Some(names) = names else {
        return Err(Failure::Refused(format!("the name of {} is no UTF-8, and so no key", path.display())));
    };
    let (codec, mut key) = (table.rules().rules.key_codec(), Vec::new());
    codec.encode(&Datum::Text(names.join("/")), &mut key).map_err(|cause| {
        let table = table.name();
        Failure::Usage(format!("{} is no key of table `{table}`: {cause}", path.display()))
    })?;
    Ok(key)
}

/// Whether what is stored is this file: of its size, and written after the file was last changed or put there, or where nobody knows
/// when the same.
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
    // A file that is moved or copied here with its old time is changed now all the same.
    let there_since = Duration::new(facts.ctime().max(0) as u64, facts.ctime_nsec().max(0) as u32);
    let changed = facts.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let changed = changed.map(|modified| modified.max(there_since));
    if let (Some(written_ms), Some(changed)) = (head.written_ms, changed) {
        return Ok(u128::from(written_ms) > changed.as_millis());
    }
    let (mut from, mut bytes) = (blobs::open(&path.display().to_string())?.0, Vec::new());
    let read = from.read_to_end(&mut bytes);
    read.map_err(|error| Failure::file("read", &path.display().to_string(), &error))?;
    Ok(table.get_with(key, |value| value == Some(&bytes[..]))?)
}
