//! Reading a file on all cores.
//!
//! ```text
//!   this thread          cuts pieces ── 0 1 2 3 ──>   as many threads as there are cores
//!                                                     rows, keys, values; those of a key folded
//!   takes them in order <── 1 0 3 2 ──────────────    (ahead.rs)
//!   folds them together, and commits: the place up to which the file is in is the end of a piece
//! ```
//!
//! A piece begins where a line does. If the piece before it did not end with a row, its last row
//! goes on here: the two are read again as one, by this thread. So the rows are those that are
//! found one by one, in the same order, with the same lines.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::{Duration, Instant};

use folddb::{DynamicRules, Fold};

use crate::failure::Failure;
use crate::import::ahead::{self, Folded};
use crate::import::mapping::Mapping;
use crate::import::pieces::{Cut, Piece, Pieces};
use crate::import::row::{BadRow, Next};
use crate::import::rows::{Rest, Rows, Seen, Template};
use crate::import::tape::Mark;
use crate::interrupt;

/// More threads than this are not used: each has pieces in memory.
const THREADS_MAX: usize = 8;
/// What is gathered is committed when it has this many operands, or this many bytes, or after this
/// time.
const GATHERED_OPERANDS: usize = 1 << 16;
const GATHERED_BYTES: usize = 4 << 20;
const GATHERED_TIME: Duration = Duration::from_millis(700);
/// A row that goes on in later pieces is read one by one from here on.
const TAIL_BYTES_MAX: usize = 4 << 20;

/// A bad row: its line, the row as it was, and what is wrong with it.
pub(crate) type Bad = (u64, Vec<Vec<u8>>, BadRow);

/// Rows that are committed together.
#[derive(Default)]
pub(crate) struct Gathered {
    pub(crate) folded: Folded,
    /// How many rows are folded.
    pub(crate) rows: u64,
    /// How many were read, had nothing to fold, and were not wanted (these have nothing, too).
    pub(crate) read: u64,
    pub(crate) empty: u64,
    pub(crate) unwanted: u64,
    pub(crate) bad: Vec<Bad>,
    pub(crate) seen: Vec<Seen>,
    /// Up to where that is; none if reading cannot go on there.
    pub(crate) mark: Option<Mark>,
}

/// How reading ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All rows are read.
    Whole,
    /// From the last commit on, rows are to be read one by one.
    ByOne,
}

/// How rows are read.
pub(crate) struct Way<'a> {
    pub(crate) template: Template,
    pub(crate) rules: &'a DynamicRules,
    /// Bad rows are needed as they were in the file.
    pub(crate) keeps_raw: bool,
}

/// How many threads read.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX)
}

/// What became of a piece.
#[derive(Default)]
struct Done {
    folded: Folded,
    rows: u64,
    read: u64,
    empty: u64,
    unwanted: u64,
    bad: Vec<Bad>,
    seen: Seen,
    /// How much of its text are rows, and how many lines.
    passed: usize,
    lines: u64,
    text: Vec<u8>,
    /// It could not be read: one by one the error is found where it is.
    failed: bool,
}

/// Reads pieces.
struct Reader<'a> {
    way: &'a Way<'a>,
    fold: Option<&'a dyn Fold>,
    mapping: Mapping,
}

impl Reader<'_> {
    fn read(&mut self, text: Vec<u8>, begins: bool, is_last: bool) -> Done {
        let mut rows = self.way.template.rows(text, begins, is_last);
        let mut done = Done::default();
        let (mut key, mut value) = (Vec::new(), Vec::new());
        loop {
            let filled = match rows.advance() {
                Ok(Next::End | Next::Wait) => break,
                Ok(Next::Bad(bad)) => Err(bad),
                Ok(Next::Row) => match self.mapping.wants(&rows) {
                    Ok(true) => self.mapping.fill(&rows, self.way.rules, &mut key, &mut value),
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
                Ok(true) => {
                    done.rows += 1;
                    done.folded.push(self.fold, &key, &value);
                }
                Ok(false) => done.empty += 1,
                Err(bad) => done.bad.push((rows.line(), self.raw(&rows), bad)),
            }
        }
        (done.passed, done.lines) = rows.passed();
        done.seen = rows.take_seen();
        done.text = rows.into_text();
        done
    }

    fn raw(&self, rows: &Rows) -> Vec<Vec<u8>> {
        if self.way.keeps_raw { rows.raw() } else { Vec::new() }
    }
}

/// Reads what is left of a file; `take` commits rows, and says whether reading goes on like this.
/// There is a mapping for each thread, and one for this thread.
///
/// # Errors
/// Ctrl-C, a failing file, and those of `take`. The rows before are committed.
pub(crate) fn read(
    rest: Rest,
    way: &Way<'_>,
    mut mappings: Vec<Mapping>,
    take: impl FnMut(&mut Gathered) -> Result<Ended, Failure>,
) -> Result<Ended, Failure> {
    let fold = if ahead::folds(way.rules) { way.rules.fold().map(|fold| &**fold) } else { None };
    let Some(mapping) = mappings.pop() else { return Ok(Ended::ByOne) };
    let lines = rest.lines;
    let order = Order {
        reader: Reader { way, fold, mapping },
        take,
        gathered: Gathered::default(),
        since: Instant::now(),
        next: 0,
        waiting: BTreeMap::new(),
        tail: Vec::new(),
        lines,
    };
    let ahead_max = mappings.len() + 2;
    let (to_threads, pieces) = mpsc::sync_channel::<Piece>(ahead_max);
    let (done, from_threads) = mpsc::sync_channel(ahead_max);
    let pieces = Mutex::new(pieces);
    std::thread::scope(|scope| {
        for mapping in mappings {
            let (pieces, done) = (&pieces, done.clone());
            scope.spawn(move || work(Reader { way, fold, mapping }, pieces, &done));
        }
        drop(done);
        let threads = Threads { to: to_threads, from: from_threads, in_flight: 0, ahead_max };
        order.read(Pieces::of(rest), threads)
    })
}

fn work(mut reader: Reader<'_>, pieces: &Mutex<Receiver<Piece>>, done: &SyncSender<(Piece, Done)>) {
    loop {
        let next = pieces.lock().map(|pieces| pieces.recv());
        let Ok(Ok(mut piece)) = next else { return };
        let text = std::mem::take(&mut piece.text);
        // What panics here does so again when rows are read one by one, and ends the program there.
        let read = panic::catch_unwind(AssertUnwindSafe(|| reader.read(text, piece.begins, piece.is_last)));
        let read = read.unwrap_or_else(|_| Done { failed: true, ..Done::default() });
        if done.send((piece, read)).is_err() {
            return;
        }
    }
}

/// The threads that read pieces.
struct Threads {
    to: SyncSender<Piece>,
    from: Receiver<(Piece, Done)>,
    in_flight: usize,
    ahead_max: usize,
}

/// Puts the pieces in their order.
struct Order<'a, T> {
    reader: Reader<'a>,
    take: T,
    gathered: Gathered,
    /// When gathering began.
    since: Instant,
    /// The piece that is next.
    next: u64,
    waiting: BTreeMap<u64, (Piece, Done)>,
    /// The beginning of a row that goes on in the next piece.
    tail: Vec<u8>,
    /// How many lines are before the next piece, or the tail.
    lines: u64,
}

impl<T: FnMut(&mut Gathered) -> Result<Ended, Failure>> Order<'_, T> {
    fn read(mut self, mut pieces: Pieces, mut threads: Threads) -> Result<Ended, Failure> {
        let ended = self.read_pieces(&mut pieces, &mut threads);
        match ended {
            Ok(Ended::ByOne) => Ok(Ended::ByOne), // what is gathered is read again
            Ok(Ended::Whole) => self.commit(),
            Err(failure) => match self.commit() {
                Ok(_) | Err(Failure::Interrupted) => Err(failure),
                Err(other) => Err(other),
            },
        }
    }

    fn read_pieces(&mut self, pieces: &mut Pieces, threads: &mut Threads) -> Result<Ended, Failure> {
        let (mut is_ended, mut failed) = (false, None);
        loop {
            interrupt::check()?;
            while !is_ended && threads.in_flight + self.waiting.len() < threads.ahead_max {
                match pieces.next() {
                    Ok(Cut::Piece(piece)) => {
                        threads.in_flight += 1;
                        threads.to.send(piece).map_err(|_| lost())?;
                    }
                    Ok(Cut::End) => is_ended = true,
                    Ok(Cut::NoLine) => return Ok(Ended::ByOne),
                    Err(error) => (is_ended, failed) = (true, Some(error)),
                }
            }
            if threads.in_flight == 0 && self.waiting.is_empty() {
                return match failed {
                    None => Ok(Ended::Whole),
                    Some(error) => Err(self.reader.way.template.failed(self.lines, &error)),
                };
            }
            let (piece, done) = threads.from.recv().map_err(|_| lost())?;
            threads.in_flight -= 1;
            self.waiting.insert(piece.number, (piece, done));
            while let Some((piece, done)) = self.waiting.remove(&self.next) {
                self.next += 1;
                if self.add(&piece, done)? == Ended::ByOne {
                    return Ok(Ended::ByOne);
                }
            }
        }
    }

    /// Adds the rows of the next piece.
    fn add(&mut self, piece: &Piece, mut done: Done) -> Result<Ended, Failure> {
        if !self.tail.is_empty() {
            let mut text = std::mem::take(&mut self.tail);
            text.extend_from_slice(&done.text);
            done = self.reader.read(text, false, piece.is_last);
        }
        if done.failed {
            return Ok(Ended::ByOne);
        }
        self.gather(&done);
        let lines = self.lines;
        self.gathered.bad.extend(done.bad.into_iter().map(|(line, raw, bad)| {
            let line = lines + line;
            (line, raw, bad.on_line(line))
        }));
        self.gathered.seen.push(done.seen.after(lines));
        self.lines += done.lines;
        if done.passed < done.text.len() {
            self.tail = done.text.split_off(done.passed);
            self.gathered.mark = None;
        } else {
            self.gathered.mark = Some(self.reader.way.template.mark(piece.content, self.lines));
        }
        if self.tail.len() > TAIL_BYTES_MAX {
            return Ok(Ended::ByOne);
        }
        let folded = &self.gathered.folded;
        // Rows that do not fold are committed piece by piece.
        let is_enough = self.reader.fold.is_none()
            || folded.len() >= GATHERED_OPERANDS
            || folded.len_bytes() >= GATHERED_BYTES;
        if is_enough || self.since.elapsed() >= GATHERED_TIME { self.commit() } else { Ok(Ended::Whole) }
    }

    fn gather(&mut self, done: &Done) {
        let gathered = &mut self.gathered;
        gathered.rows += done.rows;
        gathered.read += done.read;
        gathered.empty += done.empty;
        gathered.unwanted += done.unwanted;
        gathered.folded.add(self.reader.fold, &done.folded);
    }

    fn commit(&mut self) -> Result<Ended, Failure> {
        let ended = (self.take)(&mut self.gathered);
        let mut folded = std::mem::take(&mut self.gathered.folded);
        folded.clear();
        self.gathered = Gathered { folded, mark: self.gathered.mark, ..Gathered::default() };
        self.since = Instant::now();
        ended
    }
}

/// All threads have ended, which they do not before they are told to.
fn lost() -> Failure {
    Failure::Refused("the threads that read rows have ended: this is a bug".to_owned())
}
