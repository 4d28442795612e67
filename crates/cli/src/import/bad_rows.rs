//! Bad rows: counted, the first of them reported, all of them kept in a file on request. None is
//! dropped silently.
//!
//! **Kept before they are passed.** What is to be kept of the rows of a batch is in the file before
//! the batch is committed, whose record says that they were read. With it the record says how long
//! the file is then, and the hash of that ([`Kept`]). So after a kill the same command finds the
//! file as its record has it, cuts what came after, which is not in the record, and goes on there.
//! A file that has changed meanwhile, as by mending, is refused. Where all that is named is in, the
//! file is not touched, and not refused before there is a row to keep.
//!
//! A file that no record knows is that of an import of which nothing is in, if its first lines say
//! so: then what is found again must be what is there.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::Failure;
use crate::human;
use crate::import::kept::Form;
use crate::import::ledger::Kept;
use crate::import::row::BadRow;
use crate::import::tape::Tape;

/// How many are reported.
const LISTED_MAX: usize = 10;

/// How much waits to be written.
const WAITING_BYTES: usize = 1 << 20;

/// What other programs write for missing values.
const USUAL_NULLS: [&str; 7] = ["NA", "N/A", "NULL", "null", "None", "\\N", "-"];

/// The bad rows of an import.
pub(crate) struct BadRows {
    /// How many there were.
    pub(crate) count: u64,
    /// The first of them: file, line, and what is wrong.
    pub(crate) listed: Vec<Listed>,
    /// The present file: its number, its name, and whether there are several.
    file: (usize, String, bool),
    aside: Option<Aside>,
}

/// A bad row that is reported.
pub(crate) struct Listed {
    number: usize,
    /// The file, if there are several.
    pub(crate) file: Option<String>,
    pub(crate) line: u64,
    pub(crate) bad: BadRow,
}

impl Listed {
    /// Where it is, in words.
    pub(crate) fn place(&self) -> String {
        match &self.file {
            Some(file) => format!("{file} line {}", self.line),
            None => format!("line {}", self.line),
        }
    }
}

/// What is asked for: a file that keeps them.
pub(crate) struct Asked<'a> {
    pub(crate) path: &'a Path,
    pub(crate) form: Form,
    /// What it is told by, in its first line.
    pub(crate) of: Value,
    /// What the records of the table say of such files, and whether theirs is whole; none of an
    /// import that cannot go on.
    pub(crate) noted: Option<Vec<(Kept, bool)>>,
}

/// The file that keeps them.
struct Aside {
    file: File,
    name: String,
    /// Where it is; none of a pipe.
    path: Option<String>,
    /// It was made, and is removed if no row was bad.
    made: Option<PathBuf>,
    form: Form,
    /// The first lines.
    begin: Vec<u8>,
    /// The columns of the first file, and how those of the present one are put in their order.
    header: Vec<String>,
    order: Order,
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
    /// How long it is.
    len: u64,
}

/// How the fields of a row are put in the order of the columns of another file.
enum Order {
    Same,
    /// By their places in the row.
    By(Vec<usize>),
    /// It has other columns.
    Other,
}

impl Order {
    fn of(columns: &[String], wanted: &[String]) -> Order {
        if columns == wanted {
            return Order::Same;
        }
        let place = |name: &String| columns.iter().position(|column| column == name);
        match wanted.iter().map(place).collect::<Option<Vec<usize>>>() {
            Some(places) if columns.len() == wanted.len() => Order::By(places),
            _ => Order::Other,
        }
    }
}

impl BadRows {
    /// Counts bad rows, and keeps them in a file if one is asked for: a new one, or the one that
    /// this import began.
    pub(crate) fn new(asked: Option<Asked<'_>>, header: &[String]) -> Result<BadRows, Failure> {
        let aside = asked.map(|asked| Aside::open(asked, header)).transpose()?;
        Ok(BadRows { count: 0, listed: Vec::new(), file: (0, String::new(), false), aside })
    }

    /// What follows are rows of the next file; whether it is one of several.
    pub(crate) fn begin_file(
        &mut self,
        name: &str,
        is_one_of_several: bool,
        form: &Form,
        columns: &[String],
    ) {
        self.file = (self.file.0 + 1, name.to_owned(), is_one_of_several);
        if let Some(aside) = &mut self.aside {
            // Fields may be put between other delimiters, lines are kept whole.
            let is_alike = form.format == aside.form.format
                && form.delimiter.is_some() == aside.form.delimiter.is_some();
            aside.order = match Order::of(columns, &aside.header) {
                _ if !is_alike => Order::Other,
                Order::By(_) if form.delimiter.is_none() => Order::Other,
                order => order,
            };
        }
    }

    /// Whether rows are needed as they were in the file.
    pub(crate) fn takes_raw(&self) -> bool {
        self.aside.is_some()
    }

    /// Whether so many wait to be kept that they should be.
    pub(crate) fn is_full(&self) -> bool {
        self.aside.as_ref().is_some_and(|aside| aside.waiting_bytes >= WAITING_BYTES)
    }

    /// Notes a bad row, by its number among all rows of the file, and its line. Some are found
    /// after later ones: those that the store refuses.
    pub(crate) fn add(
        &mut self,
        (number, line): (u64, u64),
        raw: &[Vec<u8>],
        bad: BadRow,
    ) -> Result<(), Failure> {
        let kept = self.put((number, line), raw, &bad);
        self.count(line, bad);
        kept
    }

    /// Counts a bad row.
    pub(crate) fn count(&mut self, line: u64, bad: BadRow) {
        self.count += 1;
        let (number, file, is_one_of_several) = self.file.clone();
        let at = self.listed.partition_point(|listed| (listed.number, listed.line) <= (number, line));
        let file = is_one_of_several.then_some(file);
        self.listed.insert(at, Listed { number, file, line, bad });
        self.listed.truncate(LISTED_MAX);
    }

    /// Keeps a bad row, if that is asked for. It is in the file after [`BadRows::keep`].
    pub(crate) fn put(
        &mut self,
        (number, line): (u64, u64),
        raw: &[Vec<u8>],
        bad: &BadRow,
    ) -> Result<(), Failure> {
        let Some(aside) = &mut self.aside else { return Ok(()) };
        aside.put(number, &format!("{} line {line}", shown(&self.file.1)), raw, bad)
    }

    /// Passes what is kept to the disk, up to the row of this number, before these rows are
    /// committed; where the file ends then. A pipe cannot take back what it was given: see
    /// [`BadRows::flush`].
    pub(crate) fn keep(&mut self, up_to: u64) -> Result<Option<Kept>, Failure> {
        let Some(aside) = &mut self.aside else { return Ok(None) };
        let Some(path) = aside.path.clone() else { return Ok(None) };
        aside.write(up_to)?;
        aside.sync()?;
        let content = aside.written.content();
        Ok((content.bytes > 0).then_some(Kept { path, bytes: content.bytes, hash: content.hash }))
    }

    /// Passes on all that is kept, to a pipe too: the rows are committed.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        match &mut self.aside {
            Some(aside) if aside.path.is_none() => aside.write(u64::MAX),
            _ => self.keep(u64::MAX).map(drop),
        }
    }

    /// Where the file ends, to come back to.
    pub(crate) fn place(&self) -> Option<Tape> {
        self.aside.as_ref().map(|aside| aside.written.clone())
    }

    /// Forgets what was kept since: these rows come again.
    pub(crate) fn go_back(&mut self, place: Option<Tape>) -> Result<(), Failure> {
        match (&mut self.aside, place) {
            (Some(aside), Some(place)) => aside.go_back(place),
            _ => Ok(()),
        }
    }

    /// Forgets those of the present file, before which there were so many.
    pub(crate) fn forget_file(&mut self, count: u64, place: Option<Tape>) -> Result<(), Failure> {
        let number = self.file.0;
        self.count = count;
        self.listed.retain(|listed| listed.number != number);
        self.go_back(place)
    }

    /// Takes back what was kept since by one call of [`BadRows::keep`]: it waits again.
    pub(crate) fn take_back(&mut self, place: Option<Tape>) -> Result<(), Failure> {
        match (&mut self.aside, place) {
            (Some(aside), Some(place)) if place.bytes() < aside.written.bytes() => {
                let lately = std::mem::take(&mut aside.lately);
                let waiting = std::mem::take(&mut aside.waiting);
                aside.go_back(place)?;
                aside.waiting = lately.into_iter().chain(waiting).collect();
                aside.waiting_bytes = aside.waiting.iter().map(|(_, row)| row.len()).sum();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Passes the file of bad rows to the disk; an empty one is removed.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        self.flush()?;
        match &self.aside {
            Some(Aside { made: Some(made), len: 0, name, .. }) => {
                fs::remove_file(made).map_err(|error| Failure::file("remove", name, &error))
            }
            _ => Ok(()),
        }
    }

    /// The lines that report them.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.listed.iter().map(|listed| format!("{}: {}", listed.place(), listed.bad)).collect();
        let unlisted = self.count - self.listed.len() as u64;
        if unlisted > 0 {
            lines.push(format!("and {} more", human::count(unlisted)));
        }
        if let Some(null) = self.likely_null() {
            lines.push(format!("if `{null}` means a missing value, say so: --null '{null}'"));
        }
        if self.listed.iter().any(|listed| listed.bad.reason.contains("not UTF-8")) {
            let advice = "if the file is in Latin-1: iconv -f LATIN1 -t UTF-8 FILE | folddb import … -";
            lines.push(advice.to_owned());
        }
        lines
    }

    /// A text that other programs write for missing values, if it made rows bad.
    fn likely_null(&self) -> Option<&'static str> {
        let blamed = |null: &&str| {
            let quoted = [format!("`{null}`"), format!("{null:?}")];
            self.listed.iter().any(|listed| quoted.iter().any(|quoted| listed.bad.reason.contains(quoted)))
        };
        USUAL_NULLS.into_iter().find(blamed)
    }
}

impl Aside {
    fn open(asked: Asked<'_>, header: &[String]) -> Result<Aside, Failure> {
        let Asked { path, form, of, noted } = asked;
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
        let begin = form.begin(of, header);
        let mut aside = Aside {
            file,
            name,
            path: canonical,
            made: (!is_pipe && !is_there).then(|| path.to_owned()),
            form,
            begin,
            header: header.to_vec(),
            order: Order::Same,
            waiting: Vec::new(),
            waiting_bytes: 0,
            lately: Vec::new(),
            refusal: None,
            written: Tape::new(),
            synced: 0,
            len: 0,
        };
        if is_there {
            aside.go_on(noted)?;
        }
        Ok(aside)
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
            (Some(bytes), _) => self.place_at(bytes, &noted),
            // Whole ones have left it as it is, or it was mended since, and is not touched.
            (None, _) => self.place_at(self.len, &noted),
        };
        let changed = format!(
            "{} is not as an import into this table left it: if its rows are mended, import it, and name another \
             file, or move that one away",
            self.name
        );
        match (place.map_err(|error| self.failed(&error))?, begun) {
            (Some(place), _) => self.go_back(place),
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
        if bytes > self.len {
            return Ok(None);
        }
        let (mut tape, mut buffer) = (Tape::new(), vec![0; 1 << 16]);
        while tape.bytes() < bytes {
            let len = (bytes - tape.bytes()).min(buffer.len() as u64) as usize;
            self.file.read_exact_at(&mut buffer[..len], tape.bytes())?;
            tape.feed(&buffer[..len]);
        }
        let (hash, path) = (tape.content().hash, self.path.as_deref());
        let is_it = |kept: &Kept| kept.bytes == bytes && kept.hash == hash && Some(&*kept.path) == path;
        Ok(noted.iter().any(|(kept, _)| is_it(kept)).then_some(tape))
    }

    fn put(&mut self, number: u64, place: &str, raw: &[Vec<u8>], bad: &BadRow) -> Result<(), Failure> {
        let field = |place: usize| raw.get(place).map_or(&[][..], Vec::as_slice);
        let fields: Vec<&[u8]> = match &self.order {
            Order::Same => raw.iter().map(Vec::as_slice).collect(),
            Order::By(places) => places.iter().copied().chain(places.len()..raw.len()).map(field).collect(),
            Order::Other => {
                return Err(Failure::Refused(format!(
                    "{place}: the file has other columns or another form than the first one, by which {} is written: import \
                     it by itself",
                    self.name
                )));
            }
        };
        let mut text = Vec::new();
        self.form.put(&mut text, place, &bad.to_string(), &fields);
        self.waiting_bytes += text.len();
        let at = self.waiting.partition_point(|(before, _)| *before <= number);
        self.waiting.insert(at, (number, text));
        Ok(())
    }

    /// Writes what waits, where it is not there already.
    fn write(&mut self, up_to: u64) -> Result<(), Failure> {
        let end = self.waiting.partition_point(|(number, _)| *number <= up_to);
        if end == 0 {
            return Ok(());
        }
        if let Some(refusal) = &self.refusal {
            return Err(Failure::Refused(refusal.clone()));
        }
        let mut text = if self.written.bytes() == 0 { self.begin.clone() } else { Vec::new() };
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

    fn sync(&mut self) -> Result<(), Failure> {
        if self.path.is_some() && self.synced != self.written.bytes() {
            self.file.sync_data().map_err(|error| self.failed(&error))?;
            self.synced = self.written.bytes();
        }
        Ok(())
    }

    /// Cuts the file.
    fn go_back(&mut self, place: Tape) -> Result<(), Failure> {
        self.waiting.clear();
        self.waiting_bytes = 0;
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

fn shown(file: &str) -> &str {
    if file == "-" { "stdin" } else { file }
}

/// The name of a new file stays through a loss of power.
fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}
