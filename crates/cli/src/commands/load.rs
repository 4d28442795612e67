//! `folddb load STORE [FILE]`: loads what `dump` wrote. A file is read twice: all of it is checked
//! before anything is written. For a pipe only the beginning is checked, with the rules of its
//! first table.

use std::io::{self, BufRead, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use folddb::maintenance::{LoadOptions, LoadReport};
use folddb::{ErrorKind, Options, Store};
use serde_json::{Value, json};

use crate::args::LoadArgs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::human;
use crate::import::source::{self, Said, Source};
use crate::interrupt;
use crate::messages;
use crate::progress;
use crate::session::{Opened, Session};

/// How much of a pipe is checked before a store is created: the rules of a table are shorter.
const HEAD_BYTES_MAX: u64 = 1 << 20;

pub(crate) fn run(args: &LoadArgs, session: &mut Session) -> Result<(), Failure> {
    if args.file == "-" && session.shared.is_some() {
        return Err(Failure::Usage("in a shell, stdin has the commands; name a file".to_owned()));
    }
    let options = LoadOptions::default().partial(args.partial).over(args.over);
    let mut source = source::open(&args.file, Said::NOTHING)?;
    let is_file = source.bytes_total.is_some();
    if is_file {
        let of_store = session.options();
        over(source, "checking", |dump| Store::check_dump(dump, &options, &of_store))?;
        source = source::open(&args.file, Said::NOTHING)?;
    } else {
        source.reader = checked_beginning(source.reader, &session.options())?;
    }
    let _hearing = session.shared.is_none().then(interrupt::hear); // a shell does this itself
    let (store, is_new) = open(args, session)?;
    let before = store.last_seq();
    let loaded = over(source, "loading", |dump| store.load(dump, &options));
    let is_changed = store.last_seq() != before || (is_new && !store.tables().is_empty());
    match loaded {
        Ok(loaded) => {
            store.close()?;
            report(args, session, &loaded, is_new)
        }
        Err(failure) => Err(failure.after(is_changed)),
    }
}

fn open(args: &LoadArgs, session: &Session) -> Result<(Opened, bool), Failure> {
    match session.write(&args.store) {
        Ok(store) => Ok((store, false)),
        Err(Failure::Store(error)) if error.kind() == ErrorKind::StoreNotFound && args.create => {
            Ok((session.create_to_fill(&args.store)?, true))
        }
        Err(failure) => Err(failure),
    }
}

/// Checks the first two lines of a source that can be read only once: that it is a dump, and the
/// rules of the first table. Returns a reader of all of it.
fn checked_beginning(reader: Box<dyn BufRead>, of_store: &Options) -> Result<Box<dyn BufRead>, Failure> {
    let (mut reader, mut head) = (Patient(reader), Vec::new());
    for _ in 0..2 {
        let line = (&mut reader).take(HEAD_BYTES_MAX).read_until(b'\n', &mut head);
        match line {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break, // of a compressed one
            line => line.map_err(|error| Failure::file("read", "stdin", &error))?,
        };
    }
    let head_only = LoadOptions::default().partial(true);
    Store::check_dump(&mut head.as_slice(), &head_only, of_store)
        .map_err(|error| Failure::from(error).of_input())?;
    Ok(Box::new(Cursor::new(head).chain(reader)))
}

/// Reads all of a source, with a bar.
fn over(
    source: Source,
    doing: &str,
    read: impl FnOnce(&mut dyn BufRead) -> folddb::Result<LoadReport>,
) -> Result<LoadReport, Failure> {
    let bar = progress::bytes_bar(source.bytes_total, doing);
    let inner = Patient(source.reader);
    let mut watched = Watched { inner, bar: bar.clone(), bytes_read: source.bytes_read };
    let done = read(&mut watched);
    bar.finish_and_clear();
    match done {
        Err(error) if interrupt::check().is_err() => {
            messages::print(&format!("folddb: {}", error.message())); // this says how many records are loaded
            Err(Failure::Reported(ExitCode::Interrupted))
        }
        done => done.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                error.advise("load it over what is there with --over, or drop the table first").into()
            }
            _ => Failure::from(error).of_input(),
        }),
    }
}

/// Waits while a pipe has nothing yet, until Ctrl-C.
struct Patient(Box<dyn BufRead>);

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.fill_buf()?.read(buffer)?;
        self.consume(len);
        Ok(len)
    }
}

impl BufRead for Patient {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        loop {
            interrupt::check().map_err(|stopped| io::Error::other(stopped.to_string()))?;
            match self.0.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
                Ok(_) => break,
            }
        }
        self.0.fill_buf()
    }

    fn consume(&mut self, len: usize) {
        self.0.consume(len);
    }
}

/// Moves the bar as the file is read.
struct Watched {
    inner: Patient,
    bar: indicatif::ProgressBar,
    bytes_read: Arc<AtomicU64>,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer)
    }
}

impl BufRead for Watched {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.bar.set_position(self.bytes_read.load(Ordering::Relaxed));
        self.inner.fill_buf()
    }

    fn consume(&mut self, len: usize) {
        self.inner.consume(len);
    }
}

fn report(args: &LoadArgs, session: &mut Session, loaded: &LoadReport, is_new: bool) -> Result<(), Failure> {
    if session.globals.json {
        return session.report(&as_json(args, loaded, is_new), |_| Ok(()));
    }
    for (index, why) in &loaded.indexes_left {
        messages::print(&format!("index {index} is left out: {why}"));
    }
    messages::print(&in_words(args, loaded));
    Ok(())
}

fn as_json(args: &LoadArgs, report: &LoadReport, is_new: bool) -> Value {
    let LoadReport { tables, created, records, loaded, expired, skipped, indexes_left, whole, .. } = report;
    let left = |(index, why): &(String, String)| json!({ "index": index, "why": why });
    json!({
        "store": args.store.display().to_string(),
        "store_created": is_new,
        "tables": tables,
        "tables_created": created,
        "records": records,
        "loaded": loaded,
        "expired": expired,
        "skipped": skipped,
        "indexes_left": indexes_left.iter().map(left).collect::<Vec<_>>(),
        "whole": whole,
    })
}

/// What was loaded, and the outcome for the other records of the dump.
fn in_words(args: &LoadArgs, report: &LoadReport) -> String {
    let LoadReport { tables, records, loaded, expired, skipped, whole, .. } = report;
    let (of_tables, store) = (human::plural(*tables, "table"), args.store.display());
    let mut line = format!("loaded {} of {of_tables} into {store}", human::plural(*loaded, "record"));
    let others = [(expired, "had expired already"), (skipped, "skipped, since the dump was cut within it")];
    for (count, what) in others.into_iter().filter(|(count, _)| **count > 0) {
        line.push_str(&format!("; {} {what}", human::count(*count)));
    }
    if loaded < records {
        line.push_str(&format!("; {} in the dump", human::count(*records)));
    }
    if !whole {
        line.push_str("; the dump was cut, and what came after is missing");
    }
    line
}
