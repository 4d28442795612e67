//! The files of an import, read on all cores: they are opened one after the other, and cut into
//! pieces (`parallel.rs`). What is committed together may be of several of them.
//!
//! - **In order.** Files begin and end in the order of their names, as rows do. What is reported of
//!   a file is noted when its first rows are committed, so a file that was only opened ahead leaves
//!   no trace.
//! - **What is in.** A file that is cut, and not committed yet, is known already to those that are
//!   opened after it. If one of them is the same, it waits until what came before is committed.
//! - **One by one.** Where rows cannot be read in pieces, or the store refuses one of them, the
//!   files at hand are read one by one from the last commit on. Then pieces go on.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::failure::Failure;
use crate::import::ahead::Folded;
use crate::import::dialect::Escape;
use crate::import::identity::Known;
use crate::import::kept::Form;
use crate::import::ledger::{Entry, OnDisk};
use crate::import::mapping::Mapping;
use crate::import::opening::{OpenFile, said};
use crate::import::parallel::{self, Fed, Files, Gathered, Job, Left, OfFile, Taken, Way};
use crate::import::pieces::{Cut, Failing, Piece, Pieces};
use crate::import::reading::{Begun, Import};
use crate::import::rows::{Rows, Template};
use crate::import::sink::{self, Counts, Reached, Sink};
use crate::import::source;

/// Imports files, the first of which is open, on so many threads.
///
/// # Errors
/// Ctrl-C, a file that cannot be read, and those of the store. The rows before are committed.
pub(crate) fn import(
    import: &mut Import<'_>,
    sink: &mut Sink<'_>,
    names: &[String],
    first: Option<(usize, OpenFile)>,
    threads: usize,
) -> Result<(), Failure> {
    let (stated, rules) = (Arc::clone(&import.stated), sink.rules().clone());
    let way = Way { stated, rules, keeps_raw: import.bad.takes_raw() };
    let mut files = Opened {
        import,
        sink,
        names,
        way: &way,
        next: 0,
        first,
        bytes_before: 0,
        cutting: None,
        ready: None,
        in_flight: VecDeque::new(),
        ahead: Vec::new(),
    };
    loop {
        match parallel::read(&mut files, &way, threads) {
            Ok(None) => return Ok(()),
            Ok(Some(left)) => files.one_by_one(left)?,
            Err(failure) => {
                files.note_seen();
                return Err(failure);
            }
        }
    }
}

/// A file of which rows are not committed yet.
struct InFlight {
    file: usize,
    rows: Rows,
    /// How bad rows of it are kept.
    form: Form,
    template: Arc<Template>,
    /// It cannot be read again.
    is_pipe: bool,
    /// How far it is in.
    entry: Option<Entry>,
    counts: Counts,
    /// How far it was in before, and what was at its path.
    went_on: Option<Entry>,
    changed: Option<Entry>,
    /// How many lines were read when it was opened.
    lines: u64,
    /// Rows of it are committed, or noted.
    has_begun: bool,
}

/// What becomes of the next file.
enum Next {
    /// It can be opened once all that came before is committed.
    Settle,
    /// It is in already.
    In(Box<Entry>, Option<OnDisk>),
    /// It is open.
    Open(Box<Begun>),
}

/// The file that is cut.
struct Cutting {
    pieces: Pieces,
    file: usize,
    /// How many lines are before the first piece, until that is cut.
    lines: Option<u64>,
    template: Arc<Template>,
    bytes_read: Arc<AtomicU64>,
}

/// The files, as they are opened.
struct Opened<'o, 'i, 's> {
    import: &'o mut Import<'i>,
    sink: &'o mut Sink<'s>,
    names: &'o [String],
    way: &'o Way,
    /// The file that is opened next.
    next: usize,
    /// One that is open already, and its number.
    first: Option<(usize, OpenFile)>,
    /// How long all files before the present one are.
    bytes_before: u64,
    cutting: Option<Cutting>,
    /// Rows that were read when a file was opened.
    ready: Option<Box<Job>>,
    in_flight: VecDeque<InFlight>,
    /// What was known of files before they were cut: their numbers, and their records.
    ahead: Vec<(u64, Option<Entry>)>,
}

impl Files for Opened<'_, '_, '_> {
    fn next(&mut self) -> Fed {
        loop {
            if let Some(job) = self.ready.take() {
                return Fed::Job(job);
            }
            let Some(cutting) = &mut self.cutting else {
                match self.open_next() {
                    Ok(Some(fed)) => return fed,
                    Ok(None) => continue,
                    Err(failure) => return Fed::Failed(failure),
                }
            };
            let cut = cutting.pieces.next();
            let bytes = self.bytes_before + cutting.bytes_read.load(Ordering::Relaxed);
            self.import.bar.set_position(bytes);
            match cut {
                Ok(Cut::Piece(piece)) => return self.job(piece),
                Ok(Cut::Wait) => return Fed::Wait,
                Ok(Cut::NoLine) => return Fed::ByOne,
                Ok(Cut::End) => self.cutting = None,
                Err(error) => {
                    return Fed::Broken(Arc::clone(&cutting.template), cutting.lines, error);
                }
            }
        }
    }

    fn broken(&mut self, failure: Failure) -> Result<(), Failure> {
        let Some(open) = self.in_flight.back().filter(|open| !open.is_pipe) else { return Err(failure) };
        let (name, entry) = (&self.names[open.file], open.entry.clone());
        self.import.is_broken = true;
        self.import.refuse(name, failure)?;
        if let Some(entry) = entry {
            self.import.settled.insert(entry.number);
            self.import.known.put(entry);
        }
        self.cutting = None;
        self.note_seen();
        Ok(())
    }

    fn take(&mut self, gathered: &mut Gathered) -> Result<Taken, Failure> {
        if let (true, Some((file, missing))) = (self.import.goes_on(), self.missing(gathered)) {
            self.leave_out(file, &missing)?;
            return Ok(Taken::Refused);
        }
        for of_file in &gathered.files {
            if let Some(at) = self.place(of_file.file) {
                self.begin(at);
            }
        }
        let rows = gathered.files.iter().map(|of_file| of_file.rows).sum();
        let before = self.import.bad.place();
        if let Err(failure) = self.keep_bad(gathered).and_then(|()| self.check(gathered)) {
            self.sink.leave(rows);
            self.note_all(gathered, false, Vec::new());
            return Err(failure);
        }
        let entries = self.entries(gathered);
        let taken = self.sink.commit_folded(&gathered.folded, rows, &entries);
        if let Ok(false) = taken {
            self.import.bad.go_back(before)?; // they are found again
            return Ok(Taken::ByOne);
        }
        self.note_all(gathered, taken.is_ok(), entries);
        taken?;
        self.import.bad.flush().map(|()| Taken::All)
    }

    fn is_pipe(&self) -> bool {
        self.in_flight.back().is_some_and(|file| file.is_pipe)
    }
}

impl Opened<'_, '_, '_> {
    /// Opens the next file. None: it is open, or was passed over, or cannot be imported, which is
    /// noted.
    fn open_next(&mut self) -> Result<Option<Fed>, Failure> {
        let Some(name) = self.names.get(self.next) else { return Ok(Some(Fed::End)) };
        let (file, passes) = (self.next, |this: &mut Self| {
            this.pass();
            Ok(None)
        });
        let Begun { mut open, mapping, disk, before } = match self.begin_next(name) {
            Ok(Next::Settle) => return Ok(Some(Fed::Settle)),
            Ok(Next::In(entry, disk)) => {
                self.import.pass_over((name, disk.as_ref()), *entry);
                return passes(self);
            }
            Ok(Next::Open(begun)) => *begun,
            Err(failure) => {
                self.import.refuse(name, failure)?;
                return passes(self);
            }
        };
        self.import.check_how(&before)?;
        self.import.counts = Counts::default();
        if let Some(entry) = &before
            && let Err(failure) = self.import.go_on(&mut open.rows, entry)
        {
            self.import.refuse(name, failure)?;
            return passes(self);
        }
        self.pass(); // one that fails before is opened again, if others are to be read one by one first
        let is_pipe = disk.is_none();
        let entry = disk.map(|disk| self.import.entry((name, open.form.escape), disk, &before));
        self.in_flight.push_back(InFlight {
            file,
            template: Arc::new(open.rows.template()),
            is_pipe,
            changed: entry.as_ref().and_then(|entry| self.import.changed(entry, before.is_some())),
            went_on: before.map(|entry| Entry { file: name.clone(), ..entry }),
            entry,
            counts: self.import.counts,
            lines: 0,
            rows: open.rows,
            form: open.form,
            has_begun: false,
        });
        self.cut(mapping, open.bytes_read)?;
        Ok(None)
    }

    /// Opens the next file, unless it is in already.
    fn begin_next(&mut self, name: &str) -> Result<Next, Failure> {
        let looked = self.import.look(name, false)?;
        let is_ahead = |entry: &Entry| self.ahead.iter().any(|(number, _)| *number == entry.number);
        let has_pipe = (looked.disk.is_none() || self.is_pipe()) && !self.in_flight.is_empty();
        if has_pipe || matches!(&looked.known, Known::In(entry) | Known::UpTo(entry) if is_ahead(entry)) {
            return Ok(Next::Settle);
        }
        let open = self.first.take_if(|(file, _)| *file == self.next).map(|(_, open)| open);
        if let Known::In(entry) = looked.known {
            return Ok(Next::In(entry, looked.disk));
        }
        let begun = self.import.open(self.way.rules.as_table_rules(), name, looked, open)?;
        Ok(Next::Open(Box::new(begun)))
    }

    /// Begins to cut the file that was opened last. Rows that were read to open it come first:
    /// those of a pipe are imported at once, since they cannot be read again.
    fn cut(&mut self, mut mapping: Mapping, bytes_read: Arc<AtomicU64>) -> Result<(), Failure> {
        let at = self.in_flight.len() - 1;
        let (has_rest, is_pipe) = (self.in_flight[at].rows.has_rest(), self.in_flight[at].is_pipe);
        let mut done = None;
        if !has_rest && is_pipe {
            self.first_of_pipe(mapping)?;
        } else if !has_rest {
            let rows = &mut self.in_flight[at].rows;
            let mut read =
                parallel::read_rows(self.way, &mut mapping, rows, &mut Folded::default(), Rows::has_rest);
            read.seen = rows.take_seen();
            done = Some(read);
        }
        let open = &mut self.in_flight[at];
        let rest = open.rows.take_rest();
        let (file, template) = (open.file, Arc::clone(&open.template));
        open.lines = rest.lines;
        let lines = done.is_none().then_some(rest.lines);
        if let Some(mut done) = done {
            // Where the file ends with the last of them, so that it is read again, nothing follows.
            let end = done.before_open();
            done.lines = end.map_or(rest.lines, |mark| template.lines_before(&mark));
            let content = end.map_or_else(|| rest.tape.content(), |mark| mark.content);
            let (before, is_last) = (Box::new(rest.tape.clone()), end.is_some());
            let piece = Piece { text: Vec::new(), begins: false, is_last, before, content };
            self.note_ahead(&piece);
            let (template, done) = (Arc::clone(&template), Some(done));
            self.ready = Some(Box::new(Job { piece, file, lines: Some(0), template, done }));
            if is_last {
                return Ok(());
            }
        }
        self.cutting = Some(Cutting { pieces: Pieces::of(rest), file, lines, template, bytes_read });
        Ok(())
    }

    /// Imports the rows that were read to open a pipe.
    fn first_of_pipe(&mut self, mapping: Mapping) -> Result<(), Failure> {
        let at = self.in_flight.len() - 1;
        self.begin(at);
        let open = &mut self.in_flight[at];
        self.import.begin_bad(&self.names[open.file], &open.form, &open.rows.header());
        self.sink.begin_file(None);
        self.import.some_rows_of(self.sink, &mut open.rows, mapping, Rows::has_rest)?;
        open.counts = self.import.counts;
        Ok(())
    }

    /// The next piece of the file that was opened last.
    fn job(&mut self, piece: Piece) -> Fed {
        let Some(cutting) = &mut self.cutting else { return Fed::End };
        let (file, lines, template) = (cutting.file, cutting.lines.take(), Arc::clone(&cutting.template));
        self.note_ahead(&piece);
        Fed::Job(Box::new(Job { piece, file, lines, template, done: None }))
    }

    /// Notes that the file that was opened last is cut, if this is its last piece: others may be
    /// the same file.
    fn note_ahead(&mut self, piece: &Piece) {
        let entry = self.in_flight.back().and_then(|open| open.entry.as_ref());
        if let (true, Some(entry)) = (piece.is_last, entry) {
            self.ahead.push((entry.number, self.import.known.get(entry.number).cloned()));
            self.import.known.put(Entry { content: piece.content, done: true, ..entry.clone() });
        }
    }

    /// Refuses rows of which too many are bad, or that do not have what is asked for.
    fn check(&self, gathered: &Gathered) -> Result<(), Failure> {
        let rows = || gathered.files.iter().flat_map(|of_file| &of_file.bad);
        let read: u64 = gathered.files.iter().map(|of_file| of_file.read).sum();
        let (bad, lines) = self.import.bad.counts();
        let lines = lines + rows().map(|(_, _, bad)| bad.lines_later).sum::<u64>();
        let bad = bad + rows().count() as u64;
        self.import.check_share_of(bad + lines, self.import.totals.read + read + lines)?;
        match self.missing(gathered) {
            Some((_, missing)) => Err(Import::nothing_imported(&missing)),
            None => Ok(()),
        }
    }

    /// A whole file of which no row has what is asked for, before any row is in: its number, and
    /// what that is. The first file is committed alone.
    fn missing(&self, gathered: &Gathered) -> Option<(usize, String)> {
        let mut whole = gathered.files.iter().filter(|of_file| of_file.is_whole && self.sink.written() == 0);
        whole.find_map(|of_file| {
            let open = self.in_flight.iter().find(|open| open.file == of_file.file)?;
            let missing = open.rows.missing_with(&of_file.seen, &self.import.args.optional)?;
            Some((of_file.file, missing))
        })
    }

    /// Refuses a file of which nothing is in.
    fn leave_out(&mut self, file: usize, missing: &str) -> Result<(), Failure> {
        self.import.refuse(&self.names[file], Import::lacks(missing))?;
        let open = self.place(file).and_then(|at| self.in_flight.remove(at));
        let number = open.and_then(|open| open.entry).map(|entry| entry.number);
        if let Some(at) = self.ahead.iter().position(|(ahead, _)| Some(*ahead) == number) {
            let (number, before) = self.ahead.remove(at);
            self.import.known.remove(number);
            before.into_iter().for_each(|before| self.import.known.put(before));
        }
        Ok(())
    }

    /// Keeps the bad ones among rows that are to be committed.
    fn keep_bad(&mut self, gathered: &Gathered) -> Result<(), Failure> {
        if self.import.bad.takes_raw() {
            for of_file in gathered.files.iter().filter(|of_file| !of_file.bad.is_empty()) {
                let Some(at) = self.place(of_file.file) else { continue };
                let open = &self.in_flight[at];
                self.import.begin_bad(&self.names[of_file.file], &open.form, &open.rows.header());
                // One that is read again is not kept.
                let kept = of_file.bad.len() - usize::from(of_file.is_open);
                for (line, raw, bad) in &of_file.bad[..kept] {
                    self.import.bad.put((0, *line), raw, bad)?; // they are in their order
                }
            }
        }
        self.import.bad.keep(u64::MAX).map(drop)
    }

    /// The records of the files with these rows.
    fn entries(&self, gathered: &Gathered) -> Vec<Entry> {
        let advanced = |of_file: &OfFile| {
            let open = self.in_flight.iter().find(|open| open.file == of_file.file)?;
            let mut entry = open.entry.clone()?;
            let counts = counts_with(open.counts, of_file);
            let is_open = of_file.is_open;
            sink::advance(&mut entry, &Reached { mark: of_file.mark, counts, is_open });
            entry.rows += of_file.rows;
            entry.done = of_file.is_whole;
            entry.kept = self.import.bad.kept_of(&open.form, &open.rows.header()).or(entry.kept);
            Some(entry)
        };
        gathered.files.iter().filter_map(advanced).collect()
    }

    fn note_all(&mut self, gathered: &mut Gathered, is_in: bool, entries: Vec<Entry>) {
        let mut entries = entries.into_iter().peekable();
        gathered.files.drain(..).for_each(|of_file| self.note(of_file, is_in, &mut entries));
    }

    /// Notes what became of rows that were read, and that are in, or are not.
    fn note(
        &mut self,
        of_file: OfFile,
        is_in: bool,
        entries: &mut std::iter::Peekable<impl Iterator<Item = Entry>>,
    ) {
        let Some(at) = self.place(of_file.file) else { return };
        let open = &mut self.in_flight[at];
        let totals = &mut self.import.totals;
        totals.read += of_file.read;
        totals.empty += of_file.empty;
        totals.unwanted += of_file.unwanted;
        of_file.seen.iter().for_each(|seen| open.rows.add_seen(seen));
        let counts = counts_with(open.counts, &of_file);
        self.import.begin_bad(&self.names[of_file.file], &open.form, &open.rows.header());
        for (line, _, bad) in of_file.bad {
            self.import.bad.count(line, bad);
        }
        if !is_in {
            return;
        }
        open.counts = counts;
        let number = open.entry.as_ref().map(|entry| entry.number);
        if let (Some(number), Some(entry)) = (number, entries.next_if(|entry| Some(entry.number) == number)) {
            open.entry = Some(entry.clone());
            if of_file.is_whole {
                self.ahead.retain(|(ahead, _)| *ahead != number);
                self.import.settled.insert(number);
                self.import.known.put(entry);
            }
        }
        if of_file.is_whole {
            self.end(at);
        }
    }

    /// Where a file is among those that are not in.
    fn place(&self, file: usize) -> Option<usize> {
        self.in_flight.iter().position(|open| open.file == file)
    }

    /// Notes that a file is read.
    fn begin(&mut self, at: usize) {
        let open = &mut self.in_flight[at];
        if std::mem::replace(&mut open.has_begun, true) {
            return;
        }
        let name = &self.names[open.file];
        let totals = &mut self.import.totals;
        totals.files_read += 1;
        totals.note(if name == "-" { "stdin" } else { name }, open.rows.notes());
        totals.went_on.extend(open.went_on.take());
        totals.changed.extend(open.changed.take());
    }

    /// Notes what was seen in a file that is in.
    fn end(&mut self, at: usize) {
        if let Some(open) = self.in_flight.remove(at) {
            self.import.totals.missing.extend(open.rows.missing_fields(&self.import.args.optional));
            self.import.note_fields(&open.rows);
        }
    }

    /// Notes what was seen in files that are not read to their end.
    fn note_seen(&mut self) {
        if !self.in_flight.is_empty() {
            self.begin(0);
        }
        for open in self.in_flight.drain(..).filter(|open| open.has_begun) {
            self.import.note_fields(&open.rows);
        }
    }

    /// Reads the files at hand one by one, from the last commit on.
    fn one_by_one(&mut self, left: Left) -> Result<(), Failure> {
        for (number, before) in self.ahead.drain(..) {
            self.import.known.remove(number);
            before.into_iter().for_each(|before| self.import.known.put(before));
        }
        self.ready = None;
        let rest = self.cutting.take().map(|cutting| cutting.pieces.into_rest());
        let mut left = Some((left, rest));
        for open in std::mem::take(&mut self.in_flight) {
            match (open.is_pipe, open.has_begun) {
                (true, _) => {
                    if let Some((left, rest)) = left.take() {
                        self.pipe_by_one(open, left, rest)?; // it is alone
                    }
                }
                (false, true) => self.file_by_one(open)?,
                (false, false) => {
                    let name = &self.names[open.file];
                    self.import.file(self.sink, name, None, self.bytes_before, false)?;
                }
            }
        }
        Ok(())
    }

    /// Reads what is left of a file one by one.
    fn file_by_one(&mut self, mut open: InFlight) -> Result<(), Failure> {
        let (name, bar, bytes) = (&self.names[open.file], self.import.bar.clone(), self.bytes_before);
        let inode = open.entry.as_ref().and_then(|entry| entry.disk.inode);
        // What more of it tells by now does not change how it is read.
        let (escape, source) =
            (Escape::Is(open.form.escape), source::open_rows(name, said(self.import.args))?);
        let again = OpenFile::with(self.import.args, &self.import.stated, (name, escape), source)?;
        let mut again = again.checked(name, inode)?;
        let mapping = self.way.bind(&mut again.rows)?;
        self.import.counts = open.counts;
        if let Some(entry) = &open.entry {
            self.import.go_on(&mut again.rows, entry)?;
        }
        again.rows.add_seen(&open.rows.take_seen());
        self.import.begin_bad(name, &again.form, &again.rows.header());
        self.sink.begin_file(open.entry);
        let bytes_read = again.bytes_read;
        let progress = || bar.set_position(bytes + bytes_read.load(Ordering::Relaxed));
        let ended = self.import.rows_of(self.sink, &mut again.rows, mapping, progress);
        self.import.note_record(self.sink);
        match ended {
            Err(failure) if self.import.is_broken => self.import.refuse(name, failure),
            ended => ended,
        }
    }

    /// Reads what is left of a pipe one by one.
    fn pipe_by_one(
        &mut self,
        mut open: InFlight,
        left: Left,
        rest: Option<Box<dyn BufRead>>,
    ) -> Result<(), Failure> {
        let rest = rest.unwrap_or_else(|| Box::new(std::io::empty()));
        let lines = left.lines.unwrap_or(open.lines);
        let rest = Cursor::new(left.text).chain(BufReader::new(Failing(left.failed))).chain(rest);
        let mut rows = open.template.rows_after(lines, Box::new(rest));
        rows.add_seen(&open.rows.take_seen());
        let mapping = self.way.bind(&mut rows)?;
        let counts = open.counts;
        self.import.begin_bad(&self.names[open.file], &open.form, &rows.header());
        self.in_flight.push_back(open);
        self.begin(0);
        self.in_flight.clear();
        self.import.counts = counts;
        self.sink.begin_file(None);
        self.import.rows_of(self.sink, &mut rows, mapping, || {})
    }

    /// The file after this one is opened next.
    fn pass(&mut self) {
        let before = self.next.checked_sub(1).and_then(|before| std::fs::metadata(&self.names[before]).ok());
        self.bytes_before += before.map_or(0, |facts| facts.len());
        self.next += 1;
    }
}

fn counts_with(counts: Counts, of_file: &OfFile) -> Counts {
    Counts {
        read: counts.read + of_file.read - of_file.empty_open,
        bad: counts.bad + of_file.bad.len() as u64,
        empty: counts.empty + of_file.empty - of_file.empty_open,
    }
}
