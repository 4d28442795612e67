//! Whether a file was imported before: wholly, up to a row, or up to where it ended then.
//!
//! 1. Size, time of the last change and both ends on disk are those of a record: it is that file,
//!    whatever its name is now.
//! 2. Otherwise its content is read and hashed, as far as a record with the same beginning goes.
//!
//! The longest such record counts, whosever it is: copies of a file are in with it. But where what
//! is in of the file itself ends within a line that has grown, no other record says more of it.
//!
//! An import that counts files again has records of its own, until it has come to its end. Only
//! what these say is in for it, so it goes on where it was broken off, and counts a file of two
//! names once. For other imports such a record counts if no other one is of the file.
//!
//! A file of less than [`BEGIN_BYTES`] is the one of a record only if it has its path, or is the
//! same file by its inode, as after a rename, or if the file of the record is not at that path any
//! more: many small files are alike. One that is followed is known by its inode only: what a
//! rotation puts in its place may be alike, too. A record goes with its file, where that is found
//! renamed or packed: what is at its path tells of the next ones whether they are others. While the
//! file of a record is beside its path, under another name, what is at that path is another one.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fs::{DirEntry, File, Metadata};
use std::hash::Hash;
use std::io::{BufRead, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirEntryExt, FileExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::failure::Failure;
use crate::import::ledger::{Entry, Inode, OnDisk};
use crate::import::source::{self, Said};
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

impl Known {
    /// Whether a record says what is known.
    pub(crate) fn is_of(&self, record: &Entry) -> bool {
        matches!(self, Known::In(entry) | Known::UpTo(entry) if entry.number == record.number)
    }
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
    let path = Path::new(name).canonicalize().map_err(failed)?;
    Ok(Some(OnDisk {
        path: path.to_string_lossy().into_owned(),
        bytes: facts.len(),
        modified: modified_ns(&facts),
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

/// The records of the files of a table, found by what a file may have in common with them: there
/// may be very many of both.
#[derive(Default)]
pub(crate) struct Records {
    /// By number.
    entries: BTreeMap<u64, Entry>,
    /// Numbers by path, by size, time and ends on disk, and by the length and the hash of what is
    /// the beginning of their content.
    by_path: HashMap<String, Vec<u64>>,
    by_disk: HashMap<(u64, u64, u128), Vec<u64>>,
    by_begin: BTreeMap<usize, HashMap<u128, Vec<u64>>>,
    /// How many are of imports that count files again, and have not ended.
    of_again: usize,
    /// What is in the directories that were looked into.
    dirs: RefCell<HashMap<PathBuf, Dir>>,
}

/// The files of a directory by their inodes, and when it was changed last.
#[derive(Default)]
struct Dir {
    modified: Option<SystemTime>,
    files: HashMap<u64, PathBuf>,
}

impl Dir {
    fn of(path: &Path, modified: Option<SystemTime>) -> Dir {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        Dir { modified, files: entries.map(|entry| (entry.ino(), entry.path())).collect() }
    }
}

/// How a file is looked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sought {
    /// It is followed: others of its name replace it.
    pub(crate) is_followed: bool,
    /// The import that looks for it, if it counts files again.
    pub(crate) again: Option<u128>,
}

impl Records {
    pub(crate) fn of(entries: Vec<Entry>) -> Records {
        let mut records = Records::default();
        entries.into_iter().for_each(|entry| records.put(entry));
        records
    }

    /// Adds a record, or another state of it.
    pub(crate) fn put(&mut self, entry: Entry) {
        self.remove(entry.number);
        let (number, begin) = (entry.number, entry.content.begin_bytes());
        self.of_again += usize::from(entry.again.is_some());
        self.by_path.entry(entry.disk.path.clone()).or_default().push(number);
        self.by_disk.entry(on_disk_of(&entry.disk)).or_default().push(number);
        self.by_begin.entry(begin).or_default().entry(entry.content.begin).or_default().push(number);
        self.entries.insert(number, entry);
    }

    pub(crate) fn remove(&mut self, number: u64) {
        let Some(entry) = self.entries.remove(&number) else { return };
        let begin = entry.content.begin_bytes();
        self.of_again -= usize::from(entry.again.is_some());
        take_out(&mut self.by_path, &entry.disk.path, number);
        take_out(&mut self.by_disk, &on_disk_of(&entry.disk), number);
        if let Some(hashes) = self.by_begin.get_mut(&begin) {
            take_out(hashes, &entry.content.begin, number);
        }
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Entry> {
        self.entries.get(&number)
    }

    /// The number of the next record.
    pub(crate) fn next_number(&self) -> u64 {
        self.entries.last_key_value().map_or(1, |(number, _)| number + 1)
    }

    /// The newest record of a file at this path.
    pub(crate) fn at_path(&self, path: &str) -> Option<&Entry> {
        self.get(*self.by_path.get(path)?.iter().max()?)
    }

    /// Whether another import has begun to count the file of a record again, and has not ended.
    pub(crate) fn is_begun_again(&self, record: &Entry, again: Option<u128>) -> bool {
        let is_other = |entry: &Entry| entry.again.is_some() && entry.again != again;
        self.of_again > 0
            && self
                .all(self.by_path.get(&record.disk.path))
                .any(|entry| entry.number != record.number && is_other(entry))
    }

    /// Whether the file of a record is beside its path, under another name, as after a rotation.
    /// There may be very many files in a directory, so it is read again only if it has changed.
    pub(crate) fn is_renamed(&self, entry: &Entry) -> bool {
        let path = Path::new(&entry.disk.path);
        let (Some(inode), Some(dir)) = (entry.disk.inode, path.parent()) else { return false };
        let modified = std::fs::metadata(dir).and_then(|facts| facts.modified()).ok();
        let mut dirs = self.dirs.borrow_mut();
        let known = dirs.entry(dir.to_owned()).or_default();
        if known.modified.is_none() || known.modified != modified {
            *known = Dir::of(dir, modified);
        }
        let found = known.files.get(&inode.number()).filter(|found| *found != path);
        found.is_some_and(|found| std::fs::metadata(found).is_ok_and(|facts| Inode::of(&facts) == inode))
    }

    /// Whether a file may be the one of a record, by what is known without its content.
    fn may_be(&self, entry: &Entry, disk: &OnDisk, is_followed: bool) -> bool {
        let is_large = entry.content.begin_bytes() == BEGIN_BYTES;
        let is_another = is_followed && disk.inode.is_some() && entry.disk.inode.is_some();
        let has_place = || match entry.disk.path == disk.path {
            true => !self.is_renamed(entry),
            false => !is_there(entry),
        };
        is_large || has_inode_of(entry, disk) || !is_another && has_place()
    }

    /// Looks for a file.
    pub(crate) fn find(&self, name: &str, disk: &OnDisk, sought: Sought) -> Result<Known, Failure> {
        let Sought { is_followed, again } = sought;
        let known = self
            .find_among(name, disk, |entry| entry.again == again && self.may_be(entry, disk, is_followed))?;
        match known {
            Known::New if again.is_none() && self.of_again > 0 => {
                self.find_among(name, disk, |entry| self.may_be(entry, disk, is_followed))
            }
            known => Ok(known),
        }
    }

    /// Looks for a file among some of the records.
    fn find_among(
        &self,
        name: &str,
        disk: &OnDisk,
        is_it: impl Fn(&&Entry) -> bool,
    ) -> Result<Known, Failure> {
        if disk.modified > 0
            && let Some(entry) = self.of_disk(disk, &is_it)
        {
            let entry = Box::new(entry.clone());
            return Ok(if entry.done { Known::In(entry) } else { Known::UpTo(entry) });
        }
        if self.entries.is_empty() {
            return Ok(Known::New);
        }
        self.find_by_content(name, disk, is_it)
    }

    /// The newest record with what a file is on disk, and its own before that of another one.
    fn of_disk(&self, disk: &OnDisk, is_it: impl Fn(&&Entry) -> bool) -> Option<&Entry> {
        let all = || self.all(self.by_disk.get(&on_disk_of(disk)));
        all().rfind(|entry| is_of(entry, disk) && is_it(entry)).or_else(|| all().rfind(&is_it))
    }

    /// The records of these numbers, the oldest first.
    fn all(&self, numbers: Option<&Vec<u64>>) -> impl DoubleEndedIterator<Item = &Entry> {
        let mut numbers = numbers.cloned().unwrap_or_default();
        numbers.sort_unstable();
        numbers.into_iter().filter_map(move |number| self.entries.get(&number))
    }

    /// The records of contents that begin like this.
    fn beginning_like<'r>(&'r self, begin: &'r [u8]) -> impl Iterator<Item = &'r Entry> {
        let lengths =
            self.by_begin.range(..=begin.len()).filter(|(bytes, hashes)| **bytes > 0 && !hashes.is_empty());
        let alike = lengths.filter_map(move |(&bytes, hashes)| hashes.get(&tape::hash(&begin[..bytes])));
        alike.flat_map(move |numbers| self.all(Some(numbers)))
    }

    fn find_by_content(
        &self,
        name: &str,
        disk: &OnDisk,
        is_it: impl Fn(&&Entry) -> bool,
    ) -> Result<Known, Failure> {
        let mut source = source::open_rows(name, Said::ALL)?; // whoever reads its rows says what it is
        let packed = source.packed.take();
        // What is packed and damaged is named as that.
        let failed = |error: std::io::Error| {
            let damage = packed.as_ref().and_then(|packed| packed.check().err());
            damage.unwrap_or_else(|| Failure::file("read", name, &error))
        };
        let mut reader = source.reader;
        let mut begin = Vec::new();
        reader.by_ref().take(BEGIN_BYTES as u64).read_to_end(&mut begin).map_err(failed)?;
        let mut candidates: Vec<&Entry> = self.beginning_like(&begin).filter(is_it).collect();
        candidates.sort_by_key(|entry| (entry.content.bytes, is_of(entry, disk), entry.number));
        let mut reader = std::io::Cursor::new(&begin).chain(reader);
        let (mut tape, mut found) = (Tape::new(), None);
        for entry in candidates {
            if !tape.feed_from(&mut reader, entry.content.bytes).map_err(failed)? {
                break;
            }
            if tape.content() == entry.content {
                // What comes next is looked at now: a longer record may be compared after this one.
                let next = next_byte(&mut reader).map_err(failed)?;
                if entry.done && is_of(entry, disk) {
                    grown(name, entry, tape.ends_line(), next)?;
                }
                found = Some((entry, tape.ends_line(), next));
            }
        }
        match found {
            None => Ok(Known::New),
            Some((entry, _, _)) if !entry.done => Ok(Known::UpTo(Box::new(entry.clone()))),
            Some((entry, ends_line, next)) => grown(name, entry, ends_line, next),
        }
    }
}

/// The byte that is read next; none at the end.
fn next_byte(reader: &mut impl BufRead) -> std::io::Result<Option<u8>> {
    loop {
        match reader.fill_buf() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            other => return Ok(other?.first().copied()),
        }
    }
}

/// What is known of a file that has all that a record of a whole one has, and then this byte.
fn grown(name: &str, entry: &Entry, ends_line: bool, next: Option<u8>) -> Result<Known, Failure> {
    match next {
        None => Ok(Known::In(Box::new(entry.clone()))),
        Some(_) if entry.read == 0 && !ends_line => Ok(Known::New), // only names were there, in part
        Some(b'\n' | b'\r') => Ok(Known::UpTo(Box::new(entry.clone()))),
        Some(_) if ends_line => Ok(Known::UpTo(Box::new(entry.clone()))),
        Some(_) => Err(Failure::Refused(format!(
            "{name} has grown within its line {}, which had no end when it was imported: what it was then is in, unless it \
             was bad, and nothing more of the file is imported (to go on behind that line: cut it back to what it was; \
             --again counts the whole file, beside what is in)",
            entry.line
        ))),
    }
}

fn on_disk_of(disk: &OnDisk) -> (u64, u64, u128) {
    (disk.bytes, disk.modified, disk.ends)
}

/// Takes a number out of those of a key.
fn take_out<K: Hash + Eq>(numbers: &mut HashMap<K, Vec<u64>>, key: &K, number: u64) {
    if let Some(of_key) = numbers.get_mut(key) {
        of_key.retain(|known| *known != number);
        if of_key.is_empty() {
            numbers.remove(key);
        }
    }
}

/// Whether a record is of this file, by its name or whatever its name is now.
fn is_of(entry: &Entry, disk: &OnDisk) -> bool {
    entry.disk.path == disk.path || has_inode_of(entry, disk)
}

fn has_inode_of(entry: &Entry, disk: &OnDisk) -> bool {
    disk.inode.is_some() && entry.disk.inode == disk.inode
}

/// Whether the file of a record is at its path: as it was, or grown. A rotation puts another one
/// there, or cuts it.
fn is_there(entry: &Entry) -> bool {
    let OnDisk { path, bytes, modified, .. } = &entry.disk;
    let Ok(facts) = std::fs::metadata(path) else { return false };
    (facts.len(), modified_ns(&facts)) == (*bytes, *modified) || begins_alike(entry)
}

/// Whether a file that has all that is in of a record, and no more, may be another one all the
/// same: it is small, at the same place, and was written since.
pub(crate) fn may_be_another(entry: &Entry, disk: &OnDisk) -> bool {
    let is_small = entry.content.begin_bytes() < BEGIN_BYTES;
    let is_there = is_small && disk.path == entry.disk.path && disk.bytes == entry.disk.bytes;
    is_there && disk.modified != entry.disk.modified
}

/// Whether what is at the path of a record begins as its file does. What cannot be read may.
fn begins_alike(entry: &Entry) -> bool {
    let Ok(source) = source::open_rows(&entry.disk.path, Said::ALL) else { return true };
    let mut begin = Vec::new();
    let read = source.reader.take(entry.content.begin_bytes() as u64).read_to_end(&mut begin);
    read.is_err() || tape::hash(&begin) == entry.content.begin
}

/// The record of a file that is in, if it was renamed or packed since: at its place now.
pub(crate) fn moved(entry: &Entry, disk: &OnDisk) -> Option<Entry> {
    let has_left = || match has_inode_of(entry, disk) {
        // It may have two names.
        true => !std::fs::metadata(&entry.disk.path).is_ok_and(|facts| Some(Inode::of(&facts)) == disk.inode),
        false => !is_there(entry),
    };
    (entry.disk.path != disk.path && has_left()).then(|| Entry { disk: disk.clone(), ..entry.clone() })
}

fn modified_ns(facts: &Metadata) -> u64 {
    let modified = facts.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    modified.map_or(0, |since| since.as_nanos() as u64)
}

/// Whether a record is of another file, which is still there.
pub(crate) fn is_of_another(entry: &Entry, disk: &OnDisk) -> bool {
    !is_of(entry, disk) && Path::new(&entry.disk.path).exists()
}

/// Files beside one that may be what it was before a rotation: first the one with this inode, then
/// those whose names begin as its name does, which may be packed.
pub(crate) fn names_beside(name: &str, inode: Option<Inode>) -> impl Iterator<Item = String> {
    let path = Path::new(name);
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = path.file_name().unwrap_or_default().as_encoded_bytes();
    let stem = file.split(|byte| *byte == b'.').next().unwrap_or(file); // app.log becomes app-1.log
    let has_inode = |entry: &DirEntry| entry.metadata().is_ok_and(|facts| Some(Inode::of(&facts)) == inode);
    let (mut moved, mut alike) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let is_other = Some(entry.file_name().as_os_str()) != path.file_name();
        let name = path.with_file_name(entry.file_name()).into_os_string().into_string();
        match name {
            Ok(name) if is_other && has_inode(&entry) => moved.push(name),
            Ok(name) if is_other && entry.file_name().as_encoded_bytes().starts_with(stem) => {
                alike.push(name)
            }
            _ => {}
        }
    }
    alike.sort_unstable();
    moved.into_iter().chain(alike)
}

/// Refuses a file that is followed if what is in of it ends within a line: the rest of the line
/// would count as a row of its own.
pub(crate) fn check_ends_line(name: &str, entry: &Entry) -> Result<(), Failure> {
    match ends_line(name, entry).map_err(|error| Failure::file("read", name, &error))? {
        true => Ok(()),
        false => Err(Failure::Refused(format!(
            "the last line of {name} has no end, and is in as it is: what is added to it would count as a row of \
             its own; end the line, or count the file from its beginning with --again"
        ))),
    }
}

/// Whether what is in of a file that is not packed ends with a line.
pub(crate) fn ends_line(name: &str, entry: &Entry) -> std::io::Result<bool> {
    let Some(last) = entry.content.bytes.checked_sub(1) else { return Ok(true) };
    let mut byte = [0];
    File::open(name)?.read_exact_at(&mut byte, last)?;
    Ok(matches!(byte, [b'\n' | b'\r']))
}

#[cfg(test)]
#[path = "identity/tests.rs"]
mod tests;
