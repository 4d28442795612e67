//! Reading files on all cores.
//!
//! ```text
//!   this thread          cuts pieces ── 0 1 2 3 ──>   as many threads as there are cores
//!                        of file after file           rows, keys, values; those of a key folded
//!                                                     (ahead.rs)
//!   takes them in order <── 1 0 3 2 ──────────────
//!   folds them together, and commits: the place up to which a file is in is the end of a piece
//! ```
//!
//! A piece begins where a line does. If the piece before it did not end with a row, its last row
//! goes on here: the two are read again as one, by this thread. So the rows are those that are
//! found one by one, in the same order, with the same lines. What is committed together may be of
//! several small files.
//!
//! A pipe cannot be read again: the text of what is not committed is kept.

use std::collections::BTreeMap;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use folddb::limits::VALUE_BYTES_MAX;
use folddb::{DynamicRules, Fold};

use crate::failure::Failure;
use crate::import::ahead::{self, Folded};
use crate::import::mapping::{Mapping, Stated};
use crate::import::pieces::{PIECE_BYTES, Piece};
use crate::import::row::{BadRow, Next};
use crate::import::rows::{Rows, Seen, Template};
use crate::import::tape::{Mark, Tape};
use crate::interrupt;

/// More threads than this are not used: each has pieces in memory.
const THREADS_MAX: usize = 8;
/// How many pieces wait to be read, or to be taken, if they are small.
const PIECES_MAX: usize = 64;
/// What is gathered is committed when it takes this much memory although it is folded, or is of
/// this many files, or after this time: of files, which are read again after a kill, or of a pipe.
const GATHERED_BYTES: usize = 6 << 20;
const GATHERED_FILES: usize = 256;
const GATHERED_TIME: Duration = Duration::from_secs(5);
const GATHERED_TIME_OF_PIPE: Duration = Duration::from_millis(700);
/// After this time of cutting pieces, those that are read are taken.
const SEND_TIME: Duration = Duration::from_millis(100);
/// A row that goes on in later pieces is read one by one from here on.
const TAIL_BYTES_MAX: usize = 4 << 20;
/// How much text of a pipe, and how much of bad rows, is kept before it is committed.
const KEPT_BYTES: usize = 8 << 20;

/// A bad row: its line, the row as it was, and what is wrong with it.
pub(crate) type Bad = (u64, Vec<Vec<u8>>, BadRow);

/// How much memory a bad row takes, about.
fn bad_bytes((_, raw, bad): &Bad) -> usize {
    let raw: usize = raw.iter().map(|field| size_of::<Vec<u8>>() + field.len()).sum();
    size_of::<Bad>() + raw + bad.reason.len() + bad.text.as_ref().map_or(0, Vec::len)
}

/// Rows that are committed together.
#[derive(Default)]
pub(crate) struct Gathered {
    pub(crate) folded: Folded,
    /// The files of which they are, in their order.
    pub(crate) files: Vec<OfFile>,
    /// How long they are as text.
    text_bytes: usize,
    /// How much memory the bad rows among them take, about.
    bad_bytes: usize,
}

/// Rows of a file.
#[derive(Default)]
pub(crate) struct OfFile {
    /// The number of the file.
    pub(crate) file: usize,
    /// How many rows are folded.
    pub(crate) rows: u64,
    /// How many were read, had nothing to fold, and were not wanted (these have nothing, too).
    pub(crate) read: u64,
    pub(crate) empty: u64,
    pub(crate) unwanted: u64,
    pub(crate) bad: Vec<Bad>,
    /// The last of the bad ones is on a line without an end, and is read again when the file has
    /// grown.
    pub(crate) is_open: bool,
    /// So are so many of those that had nothing: one, if it is the last row.
    pub(crate) empty_open: u64,
    pub(crate) seen: Vec<Seen>,
    /// Up to where that is; none if reading cannot go on there.
    pub(crate) mark: Option<Mark>,
    /// There are no more.
    pub(crate) is_whole: bool,
}

/// How a commit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is in.
    All,
    /// Nothing of it is in, nor will be: the file is refused.
    Refused,
    /// Nothing of it is in: the rows are to be read one by one.
    ByOne,
}

/// What is left when reading ends before all is read: from the last commit on, the rows of the
/// present files are to be read one by one.
pub(crate) struct Left {
    /// The text of a pipe from there on, as far as it is cut, and how many lines are before it,
    /// unless that is where it began.
    pub(crate) text: Vec<u8>,
    pub(crate) lines: Option<u64>,
    /// The error that comes after it.
    pub(crate) failed: Option<io::Error>,
}

/// A piece of a file.
pub(crate) struct Job {
    pub(crate) piece: Piece,
    /// The number of the file.
    pub(crate) file: usize,
    /// How many lines are before it, if it is the first of its file.
    pub(crate) lines: Option<u64>,
    pub(crate) template: Arc<Template>,
    /// What became of it, if it is read.
    pub(crate) done: Option<Done>,
}

/// What comes next.
pub(crate) enum Fed {
    Job(Box<Job>),
    /// Nothing has arrived for a moment.
    Wait,
    /// The next file can be opened once all that came before is committed.
    Settle,
    /// The present file cannot be read in pieces from here on.
    ByOne,
    /// It cannot be read on; and how many lines are before that place, if nothing of it was cut.
    Broken(Arc<Template>, Option<u64>, io::Error),
    /// The next one cannot be opened.
    Failed(Failure),
    /// There are no more.
    End,
}

/// The files that are read.
pub(crate) trait Files {
    /// What comes next.
    fn next(&mut self) -> Fed;

    /// The present file cannot be read on, and what came before is committed.
    ///
    /// # Errors
    /// That is the end.
    fn broken(&mut self, failure: Failure) -> Result<(), Failure>;

    /// Commits rows.
    ///
    /// # Errors
    /// Those of the store.
    fn take(&mut self, gathered: &mut Gathered) -> Result<Taken, Failure>;

    /// Whether the present file cannot be read again.
    fn is_pipe(&self) -> bool;
}

/// How rows are read.
pub(crate) struct Way {
    pub(crate) stated: Arc<Stated>,
    pub(crate) rules: DynamicRules,
    /// Bad rows are needed as they were in the file.
    pub(crate) keeps_raw: bool,
}

impl Way {
    /// The fold, if rows may be folded here.
    fn fold(&self) -> Option<&dyn Fold> {
        self.rules.fold().map(|fold| &**fold).filter(|_| ahead::folds(&self.rules))
    }

    /// Finds the columns of a file.
    ///
    /// # Errors
    /// It does not have them.
    pub(crate) fn bind(&self, rows: &mut Rows) -> Result<Mapping, Failure> {
        Mapping::bind(&self.stated, self.rules.as_table_rules(), rows)
    }
}

/// How many threads read.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX)
}

/// What a last line without an end is, if nothing of it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenLine {
    /// A bad row.
    Bad,
    /// A row that had nothing.
    Empty,
    /// No row.
    Passed,
}

/// What became of a piece.
#[derive(Default)]
pub(crate) struct Done {
    folded: Folded,
    rows: u64,
    read: u64,
    empty: u64,
    unwanted: u64,
    bad: Vec<Bad>,
    /// The place before the last line, if nothing of that is in, and it has no end; or before the
    /// last row, if the text ends inside a quote of it.
    before_open: Option<(Mark, OpenLine)>,
    pub(crate) seen: Seen,
    /// How much of its text are rows, and how many lines.
    passed: usize,
    pub(crate) lines: u64,
    text: Vec<u8>,
    /// It could not be read: one by one the error is found where it is.
    failed: bool,
}

impl Done {
    /// The place before a last row, or line, that is read again when the file has grown.
    pub(crate) fn before_open(&self) -> Option<Mark> {
        self.before_open.map(|(mark, _)| mark)
    }
}

/// Reads rows, up to the end of what is there or to where it is enough. They are folded into what
/// is empty at first; another one like it is left there, for rows like these.
pub(crate) fn read_rows(
    way: &Way,
    mapping: &mut Mapping,
    rows: &mut Rows,
    room: &mut Folded,
    is_enough: impl Fn(&Rows) -> bool,
) -> Done {
    let (fold, mut done) = (way.fold(), Done { folded: std::mem::take(room), ..Done::default() });
    let (mut key, mut value) = (Vec::new(), Vec::new());
    while !is_enough(rows) {
        let filled = match rows.advance() {
            Ok(Next::Wait) => break,
            Ok(Next::End) => {
                let passed = rows.passed_open().map(|mark| (mark, OpenLine::Passed));
                done.before_open = done.before_open.or(passed);
                break;
            }
            Ok(Next::Bad(bad)) => Err(bad),
            Ok(Next::Row) => match mapping.wants(rows) {
                Ok(true) => mapping.fill(rows, &way.rules, &mut key, &mut value),
                Ok(false) => {
                    done.unwanted += 1;
                    Ok(false)
                }
                Err(bad) => Err(bad),
            },
            Err(_) => {
                done.failed = true;
                break;
            }
        };
        done.read += 1;
        match filled {
            // It is written alone, by whoever reads one by one.
            Ok(true) if value.len() > VALUE_BYTES_MAX => {
                done.failed = true;
                break;
            }
            Ok(true) => {
                done.rows += 1;
                done.folded.push(fold, &key, &value);
            }
            Ok(false) => {
                done.empty += 1;
                done.before_open = rows.before_open().map(|mark| (mark, OpenLine::Empty));
            }
            Err(bad) => {
                let raw = if way.keeps_raw { rows.raw() } else { Vec::new() };
                done.before_open = rows.before_open().map(|mark| (mark, OpenLine::Bad));
                done.bad.push((rows.line(), raw, bad));
            }
        }
    }
    *room = done.folded.empty_like();
    done.folded.settle_if_many(fold);
    done
}

/// Reads pieces.
struct Reader<'w> {
    way: &'w Way,
    /// What was found out about the columns of files like the last one.
    found: Option<(Arc<Template>, Mapping)>,
    /// For the rows of the next piece.
    room: Folded,
}

impl Reader<'_> {
    /// Reads a text that begins where a piece does.
    fn read(&mut self, template: &Arc<Template>, text: Vec<u8>, begins: bool, is_last: bool) -> Done {
        let is_open = is_last && template.is_of_lines() && !text.ends_with(b"\n");
        let last = if is_open { text.clone() } else { Vec::new() };
        let mut rows = template.rows(text, begins, is_last);
        self.found.take_if(|(known, _)| !known.is_like(template));
        if self.found.is_none() {
            // It was possible when the file was opened.
            self.found = self.way.bind(&mut rows).ok().map(|mapping| (Arc::clone(template), mapping));
        }
        let Some((_, mapping)) = &mut self.found else {
            return Done { failed: true, ..Done::default() };
        };
        let mut done = read_rows(self.way, mapping, &mut rows, &mut self.room, |_| false);
        (done.passed, done.lines) = rows.passed();
        done.seen = rows.take_seen();
        done.text = if template.is_of_lines() { last } else { rows.into_text() };
        if let Some((mark, _)) = &done.before_open {
            (done.passed, done.lines) = (mark.content.bytes as usize, template.lines_before(mark));
        }
        done
    }
}

/// Reads files, on so many threads besides this one. What is left is to be read one by one; none if
/// all is in.
///
/// # Errors
/// Ctrl-C, a failing file, and those of `take`. The rows before are committed.
pub(crate) fn read(files: &mut impl Files, way: &Way, threads: usize) -> Result<Option<Left>, Failure> {
    let (to_threads, jobs) = mpsc::sync_channel::<Sent>(PIECES_MAX);
    let (done, from_threads) = mpsc::sync_channel(PIECES_MAX);
    let jobs = Mutex::new(jobs);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (jobs, done) = (&jobs, done.clone());
            scope.spawn(move || work(Reader { way, found: None, room: Folded::default() }, jobs, &done));
        }
        drop(done);
        let bytes_max = (threads + 2) * PIECE_BYTES;
        let threads =
            Threads { count: threads, to: to_threads, from: from_threads, in_flight: 0, bytes: 0, bytes_max };
        let order = Order {
            reader: Reader { way, found: None, room: Folded::default() },
            files,
            threads,
            gathered: Gathered::default(),
            since: Instant::now(),
            written: 0,
            number: 0,
            next: 0,
            waiting: BTreeMap::new(),
            tail: Vec::new(),
            before_tail: Tape::new(),
            lines: 0,
            kept: Vec::new(),
            kept_lines: None,
            stop: None,
        };
        order.read()
    })
}

/// A job with its place in the order.
struct Sent {
    number: u64,
    job: Box<Job>,
    /// How long its text is, and that text, if it cannot be read again.
    bytes: usize,
    kept: Vec<u8>,
    /// How much memory what became of it takes.
    done_bytes: usize,
}

fn work(mut reader: Reader<'_>, jobs: &Mutex<Receiver<Sent>>, done: &SyncSender<(Sent, Done)>) {
    loop {
        let next = jobs.lock().map(|jobs| jobs.recv());
        let Ok(Ok(mut sent)) = next else { return };
        let Piece { text, begins, is_last, .. } = &mut sent.job.piece;
        let (text, begins, is_last) = (std::mem::take(text), *begins, *is_last);
        let template = &sent.job.template;
        // What panics here does so again when rows are read one by one, and ends the program there.
        let read = panic::catch_unwind(AssertUnwindSafe(|| reader.read(template, text, begins, is_last)));
        let read = read.unwrap_or_else(|_| Done { failed: true, ..Done::default() });
        if done.send((sent, read)).is_err() {
            return;
        }
    }
}

/// The threads that read pieces.
struct Threads {
    count: usize,
    to: SyncSender<Sent>,
    from: Receiver<(Sent, Done)>,
    in_flight: usize,
    /// How long the pieces are that are in flight or wait.
    bytes: usize,
    bytes_max: usize,
}

/// Puts the pieces in their order.
struct Order<'a, F> {
    reader: Reader<'a>,
    files: &'a mut F,
    threads: Threads,
    gathered: Gathered,
    /// When gathering began.
    since: Instant,
    /// How many rows are committed.
    written: u64,
    /// How many pieces are cut, and which one is to be taken next.
    number: u64,
    next: u64,
    waiting: BTreeMap<u64, (Sent, Done)>,
    /// The beginning of a row that goes on in the next piece, and all before it.
    tail: Vec<u8>,
    before_tail: Tape,
    /// How many lines are before the next piece, or the tail.
    lines: u64,
    /// The text of a pipe that is not committed, and the lines before it.
    kept: Vec<u8>,
    kept_lines: Option<u64>,
    /// Why no more is read for now.
    stop: Option<Fed>,
}

impl<F: Files> Order<'_, F> {
    fn read(mut self) -> Result<Option<Left>, Failure> {
        match self.read_all() {
            Ok(Taken::ByOne) => self.left().map(Some), // what is gathered is read again
            Ok(Taken::All | Taken::Refused) => Ok(None),
            Err(failure) => match self.commit() {
                Ok(_) | Err(Failure::Interrupted) => Err(failure),
                Err(other) => Err(other),
            },
        }
    }

    fn read_all(&mut self) -> Result<Taken, Failure> {
        loop {
            interrupt::check()?;
            if matches!(self.stop, None | Some(Fed::Wait)) {
                self.stop = self.send()?;
            }
            if self.threads.in_flight > 0 {
                self.receive()?;
                if self.take_waiting()? == Taken::ByOne {
                    return Ok(Taken::ByOne);
                }
                continue;
            }
            // Nothing is in flight, and nothing waits. What came before an end, or a failure, is in
            // first.
            let is_due = self.is_time() || !matches!(self.stop, None | Some(Fed::Wait));
            if is_due && self.commit()? == Taken::ByOne {
                return Ok(Taken::ByOne);
            }
            match self.stop.take() {
                None | Some(Fed::Job(_) | Fed::Wait | Fed::Settle) => {}
                Some(Fed::ByOne) => return Ok(Taken::ByOne),
                Some(Fed::Broken(template, lines, error)) => {
                    self.files.broken(template.failed(lines.unwrap_or(self.lines), &error))?;
                }
                Some(Fed::Failed(failure)) => return Err(failure),
                Some(Fed::End) => return Ok(Taken::All),
            }
        }
    }

    /// Gives pieces to the threads, as many as there is room for; what stops that otherwise.
    fn send(&mut self) -> Result<Option<Fed>, Failure> {
        let began = Instant::now();
        loop {
            let Threads { in_flight, bytes, bytes_max, .. } = self.threads;
            let has_room = bytes < bytes_max && in_flight + self.waiting.len() < PIECES_MAX;
            // A pipe that gives a little all the time must not keep what has come from a commit.
            let is_late = in_flight > 0 && began.elapsed() >= SEND_TIME;
            if !has_room || is_late {
                return Ok(None);
            }
            let mut job = match self.files.next() {
                Fed::Job(job) => job,
                stop => return Ok(Some(stop)),
            };
            let kept = if self.files.is_pipe() { job.piece.text.clone() } else { Vec::new() };
            let bytes = job.piece.text.len();
            self.threads.bytes += bytes;
            let (number, done) = (self.number, job.done.take());
            self.number += 1;
            let sent = Sent { number, job, bytes, kept, done_bytes: 0 };
            match done {
                Some(done) => {
                    self.waiting.insert(number, (sent, done));
                    if self.threads.in_flight == 0 && self.take_waiting()? == Taken::ByOne {
                        return Ok(Some(Fed::ByOne));
                    }
                }
                None => {
                    self.threads.in_flight += 1;
                    self.threads.to.send(sent).map_err(|_| lost())?;
                }
            }
        }
    }

    /// Waits for a piece that is read.
    fn receive(&mut self) -> Result<(), Failure> {
        let (mut sent, done) = self.threads.from.recv().map_err(|_| lost())?;
        self.threads.in_flight -= 1;
        sent.done_bytes = done.folded.held_bytes();
        self.threads.bytes += sent.done_bytes;
        self.waiting.insert(sent.number, (sent, done));
        Ok(())
    }

    /// Adds the rows of all pieces that are next.
    fn take_waiting(&mut self) -> Result<Taken, Failure> {
        while let Some((sent, done)) = self.waiting.remove(&self.next) {
            self.next += 1;
            if self.add(sent, done)? == Taken::ByOne {
                return Ok(Taken::ByOne);
            }
        }
        Ok(Taken::All)
    }

    /// Adds the rows of the next piece.
    fn add(&mut self, sent: Sent, mut done: Done) -> Result<Taken, Failure> {
        let Sent { job, bytes, kept, done_bytes, .. } = sent;
        self.threads.bytes -= bytes + done_bytes;
        if self.gathered.files.last().is_none_or(|last| last.file != job.file) {
            self.gathered.files.push(OfFile { file: job.file, ..OfFile::default() });
        }
        if let Some(lines) = job.lines {
            (self.lines, self.kept_lines) = (lines, None);
            self.tail.clear();
        }
        self.kept_lines.get_or_insert(self.lines);
        self.kept.extend_from_slice(&kept);
        if self.tail.is_empty() {
            self.before_tail = Tape::clone(&job.piece.before);
        }
        if !done.failed && !self.tail.is_empty() {
            let mut text = std::mem::take(&mut self.tail);
            text.extend_from_slice(&done.text);
            done = self.reader.read(&job.template, text, false, job.piece.is_last);
        }
        if done.failed {
            return Ok(Taken::ByOne);
        }
        let mark = self.gather(&job, done);
        let is_whole = job.piece.is_last;
        if let Some(of_file) = self.gathered.files.last_mut() {
            (of_file.mark, of_file.is_whole) = (Some(mark), is_whole);
        }
        if is_whole {
            self.tail.clear(); // a last line that is read again is no part of another file
        }
        self.gathered.text_bytes += bytes;
        if self.tail.len() > TAIL_BYTES_MAX {
            return Ok(Taken::ByOne);
        }
        if self.is_enough(is_whole) { self.commit() } else { Ok(Taken::All) }
    }

    /// Adds what became of a piece; the place behind its last row. Each commit notes one: a record
    /// without a place is found only as long as nobody touches the file.
    fn gather(&mut self, job: &Job, mut done: Done) -> Mark {
        let lines = self.lines;
        self.lines += done.lines;
        let folded = std::mem::take(&mut done.folded);
        self.gathered.folded.add(self.reader.way.fold(), folded, self.threads.count);
        self.gathered.bad_bytes += done.bad.iter().map(bad_bytes).sum::<usize>();
        if let Some(of_file) = self.gathered.files.last_mut() {
            of_file.rows += done.rows;
            of_file.read += done.read;
            of_file.empty += done.empty;
            of_file.unwanted += done.unwanted;
            let open = done.before_open.map(|(_, line)| line);
            of_file.is_open = open == Some(OpenLine::Bad);
            of_file.empty_open = u64::from(open == Some(OpenLine::Empty));
            of_file.bad.extend(done.bad.into_iter().map(|(line, raw, bad)| {
                let line = lines + line;
                (line, raw, bad.on_line(line))
            }));
            if let (true, Some((_, _, bad))) = (of_file.is_open, of_file.bad.last_mut()) {
                *bad = bad.clone().at_open_end();
            }
            of_file.seen.push(done.seen.after(lines));
        }
        let content = if done.passed < done.text.len() {
            self.tail = done.text.split_off(done.passed);
            self.before_tail.feed(&done.text);
            self.before_tail.content()
        } else {
            job.piece.content
        };
        job.template.mark(content, self.lines)
    }

    /// Whether what is gathered is to be committed; a file has ended, or not.
    fn is_enough(&self, has_ended: bool) -> bool {
        let Gathered { folded, files, text_bytes, bad_bytes } = &self.gathered;
        let is_large = match self.reader.way.fold() {
            Some(_) => folded.settled_bytes() >= GATHERED_BYTES,
            None => *text_bytes >= PIECE_BYTES,
        };
        // The first file decides alone whether the command line fits the files.
        let is_first = has_ended && self.written == 0;
        let is_much =
            files.len() >= GATHERED_FILES || self.kept.len() >= KEPT_BYTES || *bad_bytes >= KEPT_BYTES;
        is_large || is_first || is_much || self.is_time()
    }

    /// Whether what is gathered has waited for long enough.
    fn is_time(&self) -> bool {
        let most = if self.files.is_pipe() { GATHERED_TIME_OF_PIPE } else { GATHERED_TIME };
        self.since.elapsed() >= most
    }

    fn commit(&mut self) -> Result<Taken, Failure> {
        if self.gathered.files.is_empty() {
            return Ok(Taken::All);
        }
        let rows: u64 = self.gathered.files.iter().map(|of_file| of_file.rows).sum();
        self.gathered.folded.settle(self.reader.way.fold(), self.threads.count);
        let taken = self.files.take(&mut self.gathered);
        let mut gathered = std::mem::take(&mut self.gathered);
        if let Ok(Taken::All | Taken::Refused) = taken {
            self.written += if let Ok(Taken::All) = taken { rows } else { 0 };
            (self.kept_lines, self.since) = (Some(self.lines), Instant::now());
            self.kept.clear();
            if self.files.is_pipe() {
                self.kept.extend_from_slice(&self.tail);
            }
        }
        gathered.folded.clear();
        self.gathered.folded = gathered.folded;
        taken
    }

    /// What is not committed.
    fn left(mut self) -> Result<Left, Failure> {
        while self.threads.in_flight > 0 {
            self.receive()?;
        }
        let mut text = self.kept;
        for (sent, _) in self.waiting.values() {
            text.extend_from_slice(&sent.kept);
        }
        let failed = match self.stop {
            Some(Fed::Broken(_, _, error)) => Some(error),
            _ => None,
        };
        Ok(Left { text, lines: self.kept_lines, failed })
    }
}

/// All threads have ended, which they do not before they are told to.
fn lost() -> Failure {
    Failure::Refused("the threads that read rows have ended: this is a bug".to_owned())
}
