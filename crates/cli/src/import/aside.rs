//! A file that keeps bad rows of one kind: how it is opened, gone on with, written and cut.
//!
//! Rows are of one kind if they have the same columns, in any order, and the same form. Those of
//! another kind than the first are kept in a file of their own beside it: `bad.2.csv` beside
//! `bad.csv`. Which one that is is found again by its first lines, whatever files are read by then.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::Failure;
use crate::import::kept::{self, Form};
use crate::import::ledger::Kept;
use crate::import::row::BadRow;
use crate::import::tape::Tape;

/// How much of a file that is there is looked at for its first lines.
const HEAD_BYTES: u64 = 1 << 20;

/// What is asked for: a file that keeps them, and others beside it.
pub(crate) struct Asked {
    pub(crate) path: PathBuf,
    /// What they are told by, in their first lines.
    pub(crate) of: Value,
    /// What the records of the table say of such files, and whether theirs is whole; none of an
    /// import that cannot go on.
    pub(crate) noted: Option<Vec<(Kept, bool)>>,
    /// The files that are read, which none of these may be.
    pub(crate) read: Vec<String>,
}

impl Asked {
    /// A file beside the one that is asked for, and beside those that are open: that of a kind of
    /// rows, if there is one, or else a new one.
    fn beside(
        &self,
        open: &[Aside],
        form: &Form,
        header: &[String],
    ) -> Result<(PathBuf, Form, Vec<String>), Failure> {
        let own = |path| Ok((path, form.clone(), header.to_vec()));
        let mut numbers = 2..;
        loop {
            let path = self.numbered(numbers.next().unwrap_or(u64::MAX));
            let is_open = || open.iter().any(|aside| aside.is_at(&path));
            match fs::metadata(&path) {
                Err(_) => return own(path), // what is wrong with it is said when it is opened
                Ok(facts) if !facts.is_file() || self.noted.is_none() => {}
                Ok(_) if is_open() || self.is_read(&path) => {}
                Ok(_) => {
                    let head = head_of(&path)
                        .map_err(|error| Failure::file("read", &path.display().to_string(), &error))?;
                    let begin = form.begin(self.of.clone(), header);
                    if begin.starts_with(&head) || head.starts_with(&begin) {
                        return own(path);
                    }
                    let there = kept::begin_of(&head).filter(|(of, columns)| {
                        head.starts_with(&of.begin(self.of.clone(), columns))
                            && Order::between(form, header, of, columns).is_some()
                    });
                    if let Some((form, header)) = there {
                        return Ok((path, form, header));
                    }
                }
            }
        }
    }

    fn numbered(&self, number: u64) -> PathBuf {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        match self.path.extension() {
            Some(kind) => self.path.with_file_name(format!("{stem}.{number}.{}", kind.to_string_lossy())),
            None => self.path.with_file_name(format!("{stem}.{number}")),
        }
    }

    fn is_read(&self, path: &Path) -> bool {
        let Ok(path) = path.canonicalize() else { return false };
        self.read.iter().any(|name| Path::new(name).canonicalize().is_ok_and(|read| read == path))
    }
}

/// How a file begins, as far as its first lines may go.
fn head_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

/// A file that keeps them.
pub(crate) struct Aside {
    file: File,
    name: String,
    /// Where it is; none of a pipe.
    path: Option<String>,
    /// It was made, and is removed if no row was bad.
    made: Option<PathBuf>,
    form: Form,
    /// The first lines.
    begin: Vec<u8>,
    /// The columns.
    header: Vec<String>,
    /// What is to be written: the numbers of rows, and their texts.
    waiting: Vec<(u64, Vec<u8>)>,
    waiting_bytes: usize,
    /// What was written last.
    lately: Vec<(u64, Vec<u8>)>,
    /// Why nothing more may be written, if that is so.
    refusal: Option<String>,
    /// What was written, and how much of it the system keeps through a loss of power.
    written: Tape,
    synced: u64,
    /// What was written when it was opened.
    opened: Tape,
    /// How long it is.
    len: u64,
}

/// How the fields of a row are put in the order of other columns.
#[derive(Clone)]
pub(crate) enum Order {
    Same,
    /// By their places in the row.
    By(Vec<usize>),
}

impl Order {
    /// How rows of a form, with these columns, are put in another one; none if they are of another
    /// kind. Fields may be put between other delimiters, lines are kept whole.
    fn between(form: &Form, columns: &[String], other: &Form, wanted: &[String]) -> Option<Order> {
        if form.format != other.format || form.delimiter.is_some() != other.delimiter.is_some() {
            return None;
        }
        if columns == wanted {
            return Some(Order::Same);
        }
        let place = |name: &String| columns.iter().position(|column| column == name);
        let places = wanted.iter().map(place).collect::<Option<Vec<usize>>>()?;
        (columns.len() == wanted.len() && form.delimiter.is_some()).then_some(Order::By(places))
    }

    /// The fields of a row in this order.
    fn put<'r>(&self, raw: &'r [Vec<u8>]) -> Vec<&'r [u8]> {
        let field = |place: usize| raw.get(place).map_or(&[][..], Vec::as_slice);
        match self {
            Order::Same => raw.iter().map(Vec::as_slice).collect(),
            Order::By(places) => places.iter().copied().chain(places.len()..raw.len()).map(field).collect(),
        }
    }
}

impl Aside {
    /// The file that is asked for: a new one, or the one that this import began.
    pub(crate) fn open(asked: &Asked, form: &Form, header: &[String]) -> Result<Aside, Failure> {
        Aside::at(asked, &asked.path, form, header)
    }

    /// One beside those that are open, for rows of another kind. A pipe takes them all.
    pub(crate) fn beside(
        open: &[Aside],
        asked: &Asked,
        form: &Form,
        header: &[String],
    ) -> Result<Aside, Failure> {
        if let Some(pipe) = open.first().filter(|first| first.is_pipe()) {
            let file = pipe.file.try_clone().map_err(|error| pipe.failed(&error))?;
            return Ok(Aside::new(
                file,
                pipe.name.clone(),
                form.begin(asked.of.clone(), header),
                form,
                header,
            ));
        }
        let (path, form, header) = asked.beside(open, form, header)?;
        Aside::at(asked, &path, &form, &header)
    }

    fn new(file: File, name: String, begin: Vec<u8>, form: &Form, header: &[String]) -> Aside {
        Aside {
            file,
            name,
            path: None,
            made: None,
            form: form.clone(),
            begin,
            header: header.to_vec(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            lately: Vec::new(),
            refusal: None,
            written: Tape::new(),
            synced: 0,
            opened: Tape::new(),
            len: 0,
        }
    }

    fn at(asked: &Asked, path: &Path, form: &Form, header: &[String]) -> Result<Aside, Failure> {
        let name = path.display().to_string();
        let failed = |error: io::Error| Failure::file("create", &name, &error);
        let facts = fs::metadata(path).ok();
        let is_pipe = facts.as_ref().is_some_and(|facts| !facts.is_file() && !facts.is_dir());
        let is_there = facts.as_ref().is_some_and(Metadata::is_file);
        if facts.is_some_and(|facts| is_output(&facts)) && is_there {
            return Err(Failure::Usage(format!(
                "{name} is where the results go, which would be written over the bad rows: name a file for these"
            )));
        }
        let mut how = OpenOptions::new();
        how.write(true).read(!is_pipe).create_new(!is_pipe && !is_there);
        let file = how.open(path).map_err(failed)?;
        if !is_pipe && !is_there {
            sync_parent(path).map_err(failed)?;
        }
        let canonical = match is_pipe {
            true => None, // it may have no path
            false => Some(path.canonicalize().map_err(failed)?.to_string_lossy().into_owned()),
        };
        let begin = form.begin(asked.of.clone(), header);
        let mut aside = Aside::new(file, name, begin, form, header);
        (aside.path, aside.made) = (canonical, (!is_pipe && !is_there).then(|| path.to_owned()));
        if is_there {
            aside.go_on(asked.noted.clone())?;
        }
        aside.opened = aside.written.clone();
        Ok(aside)
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is a pipe or the like, of which nothing can be taken back.
    pub(crate) fn is_pipe(&self) -> bool {
        self.path.is_none()
    }

    fn is_at(&self, path: &Path) -> bool {
        path.canonicalize().is_ok_and(|path| self.path.as_deref() == path.to_str())
    }

    /// How rows of a form, with these columns, are put in it; none if they are of another kind.
    pub(crate) fn order(&self, form: &Form, columns: &[String]) -> Option<Order> {
        Order::between(form, columns, &self.form, &self.header)
    }

    /// How much waits to be written.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Where it ends; none if it is a pipe. A record says so also if nothing is in it yet: rows may
    /// have been written ahead, and are cut.
    pub(crate) fn kept(&self) -> Option<Kept> {
        let (path, content) = (self.path.clone()?, self.written.content());
        Some(Kept { path, bytes: content.bytes, hash: content.hash })
    }

    /// What is written.
    pub(crate) fn place(&self) -> Tape {
        self.written.clone()
    }

    /// Takes back what was written since by one call of [`Aside::write`]: it waits again.
    pub(crate) fn take_back(&mut self, place: Option<&Tape>) -> Result<(), Failure> {
        let place = place.unwrap_or(&self.opened).clone();
        if place.bytes() < self.written.bytes() {
            let (lately, waiting) = (std::mem::take(&mut self.lately), std::mem::take(&mut self.waiting));
            self.go_back(Some(&place))?;
            self.waiting = lately.into_iter().chain(waiting).collect();
            self.waiting_bytes = self.waiting.iter().map(|(_, row)| row.len()).sum();
        }
        Ok(())
    }

    /// Removes it, if it was made, and nothing is in it.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        match &self.made {
            Some(made) if self.len == 0 => {
                fs::remove_file(made).map_err(|error| Failure::file("remove", &self.name, &error))
            }
            _ => Ok(()),
        }
    }

    /// Goes on in a file that is there, as far as records say that it was written.
    fn go_on(&mut self, noted: Option<Vec<(Kept, bool)>>) -> Result<(), Failure> {
        self.len = self.file.metadata().map_err(|error| self.failed(&error))?.len();
        if self.len == 0 {
            return Ok(());
        }
        let exists = || Failure::file("create", &self.name, &ErrorKind::AlreadyExists.into());
        let mut noted = noted.ok_or_else(exists)?;
        let mut head = vec![0; self.begin.len().min(self.len as usize)];
        self.file.read_exact_at(&mut head, 0).map_err(|error| self.failed(&error))?;
        if !self.begin.starts_with(&head) {
            return Err(exists());
        }
        noted.retain(|(kept, _)| Some(&kept.path) == self.path.as_ref());
        let begun = noted.iter().filter(|(_, is_whole)| !is_whole).map(|(kept, _)| kept.bytes).max();
        let place = match (begun, noted.is_empty()) {
            (_, true) => return Ok(()), // nothing of its import is in: what is found must be what is there
            (Some(bytes), _) => self.last_place(bytes, &noted),
            // Whole ones have left it as it is, or it was mended since, and is not touched.
            (None, _) => self.place_at(self.len, &noted),
        };
        let changed = format!(
            "{} is not as an import into this table left it: if its rows are mended, import it, and name another \
             file, or move that one away",
            self.name
        );
        match (place.map_err(|error| self.failed(&error))?, begun) {
            (Some(place), _) => self.cut(place),
            (None, Some(_)) => Err(Failure::Refused(changed)),
            (None, None) => self.go_on_behind_whole_ones(&noted, changed),
        }
    }

    /// What follows the bad rows of whole files may be of one that was killed before its first
    /// batch: it stays, and has to be what is found again.
    fn go_on_behind_whole_ones(&mut self, noted: &[(Kept, bool)], changed: String) -> Result<(), Failure> {
        let bytes = noted.iter().map(|(kept, _)| kept.bytes).max().unwrap_or(0);
        match self.place_at(bytes, noted).map_err(|error| self.failed(&error))? {
            Some(place) => self.written = place,
            None => self.refusal = Some(changed),
        }
        Ok(())
    }

    /// What is before a place, if that is what a record says of it.
    fn place_at(&self, bytes: u64, noted: &[(Kept, bool)]) -> io::Result<Option<Tape>> {
        let place = self.last_place(bytes, noted)?;
        Ok(place.filter(|place| place.bytes() == bytes))
    }

    /// What is before the last place of which a record says what is there, if it is not before this
    /// one. Behind a file that was not read to its end there may be bad rows of others.
    fn last_place(&self, from: u64, noted: &[(Kept, bool)]) -> io::Result<Option<Tape>> {
        let ends = noted.iter().map(|(kept, _)| kept.bytes).filter(|bytes| (from..=self.len).contains(bytes));
        let ends: BTreeSet<u64> = ends.collect();
        let (mut tape, mut buffer, mut found) = (Tape::new(), vec![0; 1 << 16], None);
        for bytes in ends {
            while tape.bytes() < bytes {
                let len = (bytes - tape.bytes()).min(buffer.len() as u64) as usize;
                self.file.read_exact_at(&mut buffer[..len], tape.bytes())?;
                tape.feed(&buffer[..len]);
            }
            let hash = tape.content().hash;
            if noted.iter().any(|(kept, _)| kept.bytes == bytes && kept.hash == hash) {
                found = Some(tape.clone());
            }
        }
        Ok(found)
    }

    /// Keeps a row, by its number among those of its file.
    pub(crate) fn put(
        &mut self,
        (number, place): (u64, &str),
        (raw, form, order): (&[Vec<u8>], &Form, &Order),
        bad: &BadRow,
    ) {
        let (mut text, reason) = (Vec::new(), bad.to_string());
        match &bad.text {
            Some(row) if matches!(order, Order::Same) && form.is_alike(&self.form) => {
                kept::put_text(&mut text, place, &reason, row);
            }
            _ => self.form.put(&mut text, place, &reason, &order.put(raw)),
        }
        self.waiting_bytes += text.len();
        let at = self.waiting.partition_point(|(before, _)| *before <= number);
        self.waiting.insert(at, (number, text));
    }

    /// Writes what waits, where it is not there already. To a pipe the first lines are written
    /// again, where those of another kind came last.
    pub(crate) fn write(&mut self, up_to: u64, is_behind_others: bool) -> Result<(), Failure> {
        let end = self.waiting.partition_point(|(number, _)| *number <= up_to);
        if end == 0 {
            return Ok(());
        }
        if let Some(refusal) = &self.refusal {
            return Err(Failure::Refused(refusal.clone()));
        }
        let is_begun = self.written.bytes() > 0 && !is_behind_others;
        let mut text = if is_begun { Vec::new() } else { self.begin.clone() };
        self.lately = self.waiting.drain(..end).collect();
        for (_, row) in &self.lately {
            self.waiting_bytes -= row.len();
            text.extend_from_slice(row);
        }
        if self.path.is_none() {
            self.file.write_all(&text).map_err(|error| self.failed(&error))?;
            self.written.feed(&text);
            return Ok(());
        }
        let at = self.written.bytes();
        let mut there = vec![0; (self.len.saturating_sub(at)).min(text.len() as u64) as usize];
        self.file.read_exact_at(&mut there, at).map_err(|error| self.failed(&error))?;
        let Some(rest) = text.strip_prefix(&there[..]) else {
            return Err(Failure::Refused(format!(
                "{} has other bad rows than this import finds: name another file",
                self.name
            )));
        };
        let end = at + there.len() as u64;
        self.file.write_all_at(rest, end).map_err(|error| self.failed(&error))?;
        self.len = self.len.max(end + rest.len() as u64);
        self.written.feed(&text);
        Ok(())
    }

    /// Passes what is written to the disk.
    pub(crate) fn sync(&mut self) -> Result<(), Failure> {
        if self.path.is_some() && self.synced != self.written.bytes() {
            self.file.sync_data().map_err(|error| self.failed(&error))?;
            self.synced = self.written.bytes();
        }
        Ok(())
    }

    /// Forgets what was kept since a place, or since it was opened.
    pub(crate) fn go_back(&mut self, place: Option<&Tape>) -> Result<(), Failure> {
        self.waiting.clear();
        self.waiting_bytes = 0;
        let place = place.unwrap_or(&self.opened).clone();
        match place.bytes() < self.written.bytes() {
            true => self.cut(place),
            false => Ok(()),
        }
    }

    fn cut(&mut self, place: Tape) -> Result<(), Failure> {
        if self.path.is_some() {
            self.file.set_len(place.bytes()).map_err(|error| self.failed(&error))?;
        }
        (self.len, self.synced) = (place.bytes(), self.synced.min(place.bytes()));
        self.written = place;
        Ok(())
    }

    fn failed(&self, error: &io::Error) -> Failure {
        Failure::file("write", &self.name, error)
    }
}

/// Whether it is where results are written to.
fn is_output(facts: &Metadata) -> bool {
    let output = io::stdout().as_fd().try_clone_to_owned().and_then(|output| File::from(output).metadata());
    output.is_ok_and(|output| (output.dev(), output.ino()) == (facts.dev(), facts.ino()))
}

/// The name of a new file stays through a loss of power.
fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}
