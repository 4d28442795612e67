//! `folddb export-dir STORE TABLE DIR`: each value becomes a file below a directory, at the path that is its key.
//!
//! Keys come from anywhere: one that is no plain path below the directory (`..`, an absolute path, an empty name, a way through a link)
//! ends the export before anything is written for it. A file is written under another name first, so that what has its name is whole.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use folddb::{BytesTable, Datum};
use indicatif::ProgressBar;
use serde_json::json;

use crate::args::ExportDirArgs;
use crate::failure::Failure;
use crate::session::Session;
use crate::{blobs, human, progress};

/// Behind the name of a file that is being written.
const UNDER_WAY: &str = ".folddb-unfinished";

pub(crate) fn run(args: &ExportDirArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let table = store.known_table(&args.table)?;
    fs::create_dir_all(&args.dir).map_err(|error| cannot("create", &args.dir, &error))?;
    let bar = progress::bytes_bar(None, "writing");
    let (mut written, mut bytes, mut there) = (0, 0, 0);
    let mut rows = table.scan().keys_only().rows()?;
    let done = (|| -> Result<(), Failure> {
        while let Some((key, _)) = rows.next_row()? {
            match export(args, &table, key, &bar)? {
                Some(len) => (written, bytes) = (written + 1, bytes + len),
                None => there += 1,
            }
        }
        Ok(())
    })();
    bar.finish_and_clear();
    done?;
    let report = json!({ "written": written, "bytes": bytes, "there": there });
    session.report(&report, |out| {
        write!(out, "{} written, {}", human::plural(written, "file"), human::bytes(bytes))?;
        if there > 0 {
            write!(out, "; {} there already", human::count(there))?;
        }
        writeln!(out)
    })
}

/// Writes the value of a key to its file, and returns its length; none where there is a file that is to stay.
fn export(
    args: &ExportDirArgs,
    table: &BytesTable,
    key: &[u8],
    bar: &ProgressBar,
) -> Result<Option<u64>, Failure> {
    let relative = path_of(table, key)?;
    let path = args.dir.join(&relative);
    if !args.overwrite && fs::symlink_metadata(&path).is_ok() {
        return Ok(None);
    }
    make_parents(&args.dir, &relative)?;
    let mut unfinished = path.clone().into_os_string();
    unfinished.push(UNDER_WAY);
    let unfinished = PathBuf::from(unfinished);
    let _ = fs::remove_file(&unfinished); // of an export that was broken off
    let got = blobs::get(table, key, || blobs::create(&unfinished), &path.display().to_string(), bar);
    let len = match got {
        Ok(Some(len)) => len,
        Ok(None) => return Ok(None), // deleted meanwhile
        Err(failure) => {
            let _ = fs::remove_file(&unfinished);
            return Err(failure);
        }
    };
    fs::rename(&unfinished, &path).map_err(|error| {
        let _ = fs::remove_file(&unfinished);
        cannot("write", &path, &error)
    })?;
    Ok(Some(len))
}

/// The path that a key is, below any directory.
fn path_of(table: &BytesTable, key: &[u8]) -> Result<PathBuf, Failure> {
    let codec = table.rules().rules.key_codec();
    let refused = || {
        let shown = codec.show_line(key);
        Failure::Refused(format!("key {shown} of table `{}` is no path below a directory", table.name()))
    };
    let Ok(Datum::Text(text)) = codec.show(key) else { return Err(refused()) };
    let path = PathBuf::from(&text);
    let is_plain = |component| matches!(component, Component::Normal(_));
    // `components` passes over doubled and trailing slashes and over dots, which would make two keys one file.
    let is_said_plainly =
        text.split('/').all(|name| !matches!(name, "" | "." | "..")) && !text.contains('\0');
    if !is_said_plainly || !path.components().all(is_plain) {
        return Err(refused());
    }
    Ok(path)
}

/// Makes the directories that a file needs, none of them through a link.
fn make_parents(dir: &Path, relative: &Path) -> Result<(), Failure> {
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
            return Err(Failure::Refused(format!("{} is in the way: it is no directory", at.display())));
        }
    }
    Ok(())
}

fn cannot(doing: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::file(doing, &path.display().to_string(), error)
}
