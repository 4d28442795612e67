//! Whether a file was imported before: wholly, up to a row, or up to where it ended then.
//!
//! 1. Size, time of the last change and both ends on disk are those of a record: it is that file,
//!    whatever its name is now.
//! 2. Otherwise its content is read and hashed, as far as a record with the same beginning goes.
//!
//! A file of less than [`BEGIN_BYTES`] is the one of a record only if it has its path, or is the
//! same file by its inode, as after a rename, or if there is nothing at that path now: many small
//! files are alike. One that is followed is known by its inode only: what a rotation puts in its
//! place may be alike, too.

use std::fs::File;
use std::io::{BufRead, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use crate::failure::Failure;
use crate::import::ledger::{Entry, Inode, OnDisk};
use crate::import::source;
use crate::import::tape::{self, BEGIN_BYTES, Tape};

/// What is known of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Nothing: it is read from its beginning.
    New,
    /// All of it is in.
    In(Box<Entry>),
    /// It is in up to a row: the import was broken off, or the file has grown.
    UpTo(Box<Entry>),
}

/// The facts of a file; none if it is a pipe or the like, which cannot be recognized.
pub(crate) fn on_disk(name: &str) -> Result<Option<OnDisk>, Failure> {
    if name == "-" {
        return Ok(None);
    }
    let failed = |error: std::io::Error| Failure::file("open", name, &error);
    if !std::fs::metadata(name).map_err(failed)?.is_file() {
        return Ok(None);
    }
    let mut file = File::open(name).map_err(failed)?;
    let facts = file.metadata().map_err(failed)?;
    let modified = facts.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let path = Path::new(name).canonicalize().map_err(failed)?;
    Ok(Some(OnDisk {
        path: path.to_string_lossy().into_owned(),
        bytes: facts.len(),
        modified: modified.map_or(0, |since| since.as_nanos() as u64),
        ends: ends(&mut file, facts.len()).map_err(failed)?,
        inode: Some(Inode::of(&facts)),
    }))
}

/// The hash of the first and the last bytes.
fn ends(file: &mut File, bytes: u64) -> std::io::Result<u128> {
    let mut ends = Vec::with_capacity(2 * BEGIN_BYTES);
    file.by_ref().take(BEGIN_BYTES as u64).read_to_end(&mut ends)?;
    file.seek(SeekFrom::Start(bytes.saturating_sub(BEGIN_BYTES as u64)))?;
    file.take(BEGIN_BYTES as u64).read_to_end(&mut ends)?;
    Ok(tape::hash(&ends))
}

/// Looks for a file among the records of its table. One that is followed is replaced by others of
/// its name.
pub(crate) fn find(
    name: &str,
    disk: &OnDisk,
    entries: &[Entry],
    is_followed: bool,
) -> Result<Known, Failure> {
    let is_it = |entry: &&Entry| may_be(entry, disk, is_followed);
    let is_as_it_was = |entry: &&Entry| {
        disk.modified > 0
            && (entry.disk.bytes, entry.disk.modified) == (disk.bytes, disk.modified)
            && entry.disk.ends == disk.ends
    };
    if let Some(entry) = entries.iter().rev().filter(is_it).find(is_as_it_was) {
        let entry = Box::new(entry.clone());
        return Ok(if entry.done { Known::In(entry) } else { Known::UpTo(entry) });
    }
    let candidates: Vec<&Entry> = entries.iter().filter(is_it).collect();
    if candidates.is_empty() { Ok(Known::New) } else { by_content(name, candidates) }
}

/// Whether a file may be the one of a record, by what is known without its content.
fn may_be(entry: &Entry, disk: &OnDisk, is_followed: bool) -> bool {
    let is_large = entry.content.begin_bytes() == BEGIN_BYTES;
    let is_same = disk.inode.is_some() && entry.disk.inode == disk.inode;
    let is_another = is_followed && disk.inode.is_some() && entry.disk.inode.is_some();
    let has_place = entry.disk.path == disk.path || !Path::new(&entry.disk.path).exists();
    is_large || is_same || has_place && !is_another
}

fn by_content(name: &str, mut candidates: Vec<&Entry>) -> Result<Known, Failure> {
    let mut reader = source::open(name)?.reader;
    let failed = |error: std::io::Error| Failure::file("read", name, &error);
    let mut begin = Vec::new();
    reader.by_ref().take(BEGIN_BYTES as u64).read_to_end(&mut begin).map_err(failed)?;
    candidates.retain(|entry| {
        let bytes = entry.content.begin_bytes();
        0 < bytes && bytes <= begin.len() && tape::hash(&begin[..bytes]) == entry.content.begin
    });
    candidates.sort_by_key(|entry| (entry.content.bytes, entry.number));
    let mut reader = std::io::Cursor::new(begin).chain(reader);
    let (mut tape, mut found) = (Tape::new(), None);
    for entry in candidates {
        if !feed_up_to(&mut tape, &mut reader, entry.content.bytes).map_err(failed)? {
            break;
        }
        if tape.content() == entry.content {
            found = Some((entry, tape.ends_line()));
        }
    }
    let Some((entry, ends_line)) = found else { return Ok(Known::New) };
    if tape.bytes() > entry.content.bytes || !entry.done {
        return Ok(Known::UpTo(Box::new(entry.clone())));
    }
    let next = loop {
        match reader.fill_buf() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            other => break other.map_err(failed)?.first().copied(),
        }
    };
    match next {
        None => Ok(Known::In(Box::new(entry.clone()))),
        Some(b'\n' | b'\r') => Ok(Known::UpTo(Box::new(entry.clone()))),
        Some(_) if ends_line => Ok(Known::UpTo(Box::new(entry.clone()))),
        Some(_) => Err(Failure::Refused(format!(
            "{name} has grown within its line {}, which ended there when it was imported, and is in like that: \
             nothing is imported (--again counts the file from its beginning)",
            entry.line
        ))),
    }
}

/// Refuses a file that is followed if what is in of it ends within a line: the rest of the line
/// would count as a row of its own.
pub(crate) fn check_ends_line(name: &str, entry: &Entry) -> Result<(), Failure> {
    let Some(last) = entry.content.bytes.checked_sub(1) else { return Ok(()) };
    let failed = |error: std::io::Error| Failure::file("read", name, &error);
    let mut byte = [0];
    File::open(name).and_then(|file| file.read_exact_at(&mut byte, last)).map_err(failed)?;
    match byte {
        [b'\n' | b'\r'] => Ok(()),
        _ => Err(Failure::Refused(format!(
            "the last line of {name} has no end, and is in as it is: what is added to it would count as a row of \
             its own; end the line, or count the file from its beginning with --again"
        ))),
    }
}

/// Feeds content up to a length; false if it ends before.
fn feed_up_to(tape: &mut Tape, reader: &mut impl BufRead, bytes: u64) -> std::io::Result<bool> {
    while tape.bytes() < bytes {
        let read = match reader.fill_buf() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if read.is_empty() {
            return Ok(false);
        }
        let wanted = usize::try_from(bytes - tape.bytes()).unwrap_or(usize::MAX).min(read.len());
        tape.feed(&read[..wanted]);
        reader.consume(wanted);
    }
    Ok(true)
}
