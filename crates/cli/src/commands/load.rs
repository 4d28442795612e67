//! `folddb load STORE [FILE]`: loads what `dump` wrote. A file is read twice: all of it is checked before anything is written.

use std::sync::atomic::Ordering;

use folddb::{ErrorKind, LoadOptions, LoadReport, Store};
use serde_json::{Value, json};

use crate::args::LoadArgs;
use crate::exit_code;
use crate::failure::Failure;
use crate::human;
use crate::import::source;
use crate::interrupt;
use crate::progress;
use crate::session::{Opened, Session};

pub(crate) fn run(args: &LoadArgs, session: &mut Session) -> Result<(), Failure> {
    if args.file == "-" && session.shared.is_some() {
        return Err(Failure::Usage("in a shell stdin holds the commands; name a file".to_owned()));
    }
    if args.file != "-" && !args.partial {
        over(args, "checking", |dump| Store::check_dump(dump))?;
    }
    // In a shell, that hears; and who waits for a pipe is ended as ever.
    let _hearing = (session.shared.is_none() && args.file != "-").then(interrupt::hear);
    let (store, is_new) = open(args, session)?;
    let options = LoadOptions::default().partial(args.partial).over(args.over);
    let loaded = over(args, "loading", |dump| store.load(dump, &options));
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(failure) => {
            store.close()?;
            return Err(failure);
        }
    };
    store.close()?;
    report(args, session, &loaded, is_new)
}

fn open(args: &LoadArgs, session: &Session) -> Result<(Opened, bool), Failure> {
    match session.write(&args.store) {
        Ok(store) => Ok((store, false)),
        Err(Failure::Store(error)) if error.kind() == ErrorKind::NoStore && args.create => {
            Ok((session.create(&args.store)?, true))
        }
        Err(failure) => Err(failure),
    }
}

/// Reads the file from its beginning, with a bar.
fn over(
    args: &LoadArgs,
    doing: &str,
    read: impl FnOnce(&mut dyn std::io::BufRead) -> folddb::Result<LoadReport>,
) -> Result<LoadReport, Failure> {
    let source = source::open(&args.file)?;
    let bar = progress::bytes_bar(source.bytes_total, doing);
    let mut watched = Watched { inner: source.reader, bar: bar.clone(), bytes_read: source.bytes_read };
    let done = read(&mut watched);
    bar.finish_and_clear();
    match done {
        Err(error) if interrupt::check().is_err() => {
            exit_code::tell(&format!("folddb: {}", error.message())); // which says how many records are in
            Err(Failure::Interrupted)
        }
        done => Ok(done?),
    }
}

/// Moves the bar as the file is read.
struct Watched {
    inner: Box<dyn std::io::BufRead>,
    bar: indicatif::ProgressBar,
    bytes_read: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl std::io::Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.inner.read(buffer)
    }
}

impl std::io::BufRead for Watched {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        interrupt::check().map_err(|stopped| std::io::Error::other(stopped.to_string()))?;
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
        exit_code::tell(&format!("index {index} is left out: {why}"));
    }
    exit_code::tell(&in_words(args, loaded));
    Ok(())
}

fn as_json(args: &LoadArgs, report: &LoadReport, is_new: bool) -> Value {
    let LoadReport { tables, created, records, loaded, over, skipped, indexes_left, whole, .. } = report;
    let left = |(index, why): &(String, String)| json!({ "index": index, "why": why });
    json!({
        "store": args.store.display().to_string(),
        "store_created": is_new,
        "tables": tables,
        "tables_created": created,
        "records": records,
        "loaded": loaded,
        "over": over,
        "skipped": skipped,
        "indexes_left": indexes_left.iter().map(left).collect::<Vec<_>>(),
        "whole": whole,
    })
}

/// What was loaded, and what became of the other records of the dump.
fn in_words(args: &LoadArgs, report: &LoadReport) -> String {
    let LoadReport { tables, records, loaded, over, skipped, whole, .. } = report;
    let (of_tables, store) = (human::plural(*tables, "table"), args.store.display());
    let mut line = format!("loaded {} of {of_tables} into {store}", human::plural(*loaded, "record"));
    let others = [(over, "had expired already"), (skipped, "skipped, since the dump was cut within it")];
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
