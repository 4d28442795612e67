//! `folddb import STORE TABLE FILE...`: reads rows and folds them into a table.
//!
//! All errors of the command line are found before a store is created. Rows are written in batches
//! as they are read, so memory is bounded for files of any size, and at the end all are synced.
//! Each batch says how far its file is in, so that the same command goes on after any end.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use folddb::{ErrorKind, Store};
use indicatif::ProgressBar;

use crate::args::{ImportArgs, OutputFormat, RowsArgs};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::human;
use crate::import::bad_rows::BadRows;
use crate::import::files;
use crate::import::identity::{self, Known};
use crate::import::ledger::{self, Entry, Inode, OnDisk};
use crate::import::mapping::{Mapping, Stated};
use crate::import::parallel::{self, Ended, Gathered, Way};
use crate::import::pieces::PIECE_BYTES;
use crate::import::report::Totals;
use crate::import::row::{BadRow, Next};
use crate::import::rows::{How, Rows};
use crate::import::sink::{Counts, Into, Raw, Reached, Refused, Sink};
use crate::import::source::{self, Packed, Source};
use crate::interrupt;
use crate::messages;
use crate::progress;
use crate::render::print_rows;
use crate::rules_words::{check_expires, check_table_name};
use crate::session::{Opened, Session};

pub(crate) fn run(args: &ImportArgs, session: &mut Session) -> Result<(), Failure> {
    let mut stated = Stated::parse(args, session.globals.zone.as_ref())?;
    check_table_name(&args.table)?;
    check_aside(args)?;
    if args.files.iter().any(|file| file == "-") && session.shared.is_some() {
        return Err(Failure::Usage("in a shell, stdin has the commands; name a file".to_owned()));
    }
    let names = files::named(&args.files)?;
    check_follow(args, &names)?;
    let first = match (args.follow, &names[..]) {
        (true, [name]) => OpenFile::of(args, name, source::follow(name)?)?,
        _ => OpenFile::open(args, &names[0])?,
    };
    let (mut sink, known) = open_sink(args, &mut stated, session)?;
    let bad = BadRows::new(args.bad_rows.as_deref(), &first.rows.header())?;
    let began = Instant::now();
    let hearing = session.shared.is_none().then(interrupt::hear); // a shell does this itself
    let bar = progress::bytes_bar(bytes_of(&names), "importing");
    let totals = Totals { files: names.len(), ..Totals::default() };
    let mut import = Import {
        args,
        stated,
        bad,
        totals,
        known,
        counts: Counts::default(),
        before: Reached::default(),
        bar,
    };
    let ended = import.all(&mut sink, &names, first);
    let is_all_well = import.bad.count == 0 && import.totals.missing.is_empty();
    let ended = ended.and_then(|()| sink.finish(is_all_well));
    (import.totals.written, import.totals.left) = (sink.written(), sink.left());
    import.totals.can_go_on = sink.entry().is_some() && sink.written() > 0;
    import.bar.finish_and_clear();
    drop(hearing);
    // Rows that were committed before a failure stay, and the report says how many.
    let store = sink.into_store();
    import.end(session, store, ended, began)
}

/// The file for bad rows must not be one that is read.
fn check_aside(args: &ImportArgs) -> Result<(), Failure> {
    let Some(aside) = &args.bad_rows else { return Ok(()) };
    let is_same = |file: &String| match (aside.canonicalize(), Path::new(file).canonicalize()) {
        (Ok(aside), Ok(file)) => aside == file,
        _ => false,
    };
    if args.files.iter().any(is_same) {
        return Err(Failure::Usage("--bad-rows names the file that is read; name another".to_owned()));
    }
    Ok(())
}

/// What is followed is the last of the files that are named.
fn check_follow(args: &ImportArgs, names: &[String]) -> Result<(), Failure> {
    let is_dir = |file: &String| Path::new(file).is_dir() || !Path::new(file).exists();
    match names.last() {
        Some(last) if args.follow && last == "-" => Err(Failure::Usage(
            "a pipe is read until it ends, and committed each second: leave --follow out".to_owned(),
        )),
        Some(_) if args.follow && args.files.last().is_some_and(is_dir) => {
            let message = "--follow is for a file: name it, after those that are read before it";
            Err(Failure::Usage(message.to_owned()))
        }
        _ => Ok(()),
    }
}

/// The bytes of all files; none if one is a pipe.
fn bytes_of(names: &[String]) -> Option<u64> {
    let bytes =
        |name: &String| std::fs::metadata(name).ok().filter(|facts| facts.is_file()).map(|facts| facts.len());
    names.iter().map(bytes).sum()
}

/// A file that is open, its header read.
struct OpenFile {
    rows: Rows,
    /// Which file it is; none if it is a pipe.
    inode: Option<Inode>,
    /// What is to be checked before a row is taken.
    packed: Option<Packed>,
    /// How much of it is read.
    bytes_read: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl OpenFile {
    fn open(args: &ImportArgs, name: &str) -> Result<OpenFile, Failure> {
        OpenFile::of(args, name, source::open(name)?)
    }

    fn of(args: &ImportArgs, name: &str, mut source: Source) -> Result<OpenFile, Failure> {
        let bytes_read = std::sync::Arc::clone(&source.bytes_read);
        let format = match args.format {
            Some(format) => format,
            // What is said of fields is said of delimited text.
            None if args.delimiter.is_some() || args.no_header => source::by_name(name),
            None => source::by_content(name, &mut source)?,
        };
        let how = How {
            format,
            pattern: args.regex.as_deref(),
            delimiter: args.delimiter,
            header: !args.no_header,
            nulls: &args.null,
        };
        let mut source = source.of_rows();
        let (inode, packed) = (source.inode, source.packed.take());
        let rows = Rows::open(source, &how)?;
        Ok(OpenFile { rows, inode, packed, bytes_read })
    }

    /// The same, of which rows may be taken: it is the file that it is taken for, and whole.
    fn checked(self, name: &str, inode: Option<Inode>) -> Result<OpenFile, Failure> {
        if self.inode != inode {
            return Err(changes(name));
        }
        self.packed.as_ref().map_or(Ok(()), Packed::check)?;
        Ok(self)
    }
}

fn changes(name: &str) -> Failure {
    Failure::Refused(format!("{name} changes while it is read: import it again"))
}

/// Opens the table, or determines everything needed to create it, if requested. Also returns what
/// was imported into it.
fn open_sink<'a>(
    args: &'a ImportArgs,
    stated: &mut Stated,
    session: &'a Session,
) -> Result<(Sink<'a>, Vec<Entry>), Failure> {
    let store = match session.write(&args.store) {
        Ok(store) => Some(store),
        Err(Failure::Store(error)) if error.kind() == ErrorKind::StoreNotFound && args.create => None,
        Err(failure) => return Err(failure),
    };
    let existing = match store.as_ref().map(|store| store.known_table(&args.table)) {
        None => None,
        Some(Ok(table)) => Some(table),
        Some(Err(Failure::NotFound(_))) if args.create => None,
        Some(Err(Failure::NotFound(message))) => {
            return Err(Failure::NotFound(format!("{message}; --create creates it")));
        }
        Some(Err(failure)) => return Err(failure),
    };
    let known = existing.as_ref().map(|table| table.rules().as_table_rules());
    stated.settle_key(&args.table, known)?;
    let rules = stated.rules(&args.table, known)?;
    if args.ttl.ttl.is_some() {
        check_expires(&args.table, &rules)?;
    }
    let into = Into {
        path: &args.store,
        table: &args.table,
        is_sorted: args.sorted,
        lifetime: args.ttl.lifetime(),
        durability: args.durability.into(),
        is_strict: args.strict,
    };
    if let (Some(store), Some(table)) = (&store, existing) {
        table.rules().check_writable()?;
        if args.sorted {
            let message =
                format!("--sorted loads a new table, and `{}` exists; leave --sorted out", args.table);
            return Err(Failure::Usage(message));
        }
        let known = ledger::entries(store, Some(&args.table))?.into_iter().map(|(_, entry)| entry).collect();
        return Ok((Sink::of_table(session, into, store.clone(), table), known));
    }
    let rules = Store::check_table(&args.table, &rules, &session.options())?;
    Ok((Sink::to_come(session, into, store, rules), Vec::new()))
}

/// A running import.
struct Import<'a> {
    args: &'a ImportArgs,
    stated: Stated,
    bad: BadRows,
    totals: Totals,
    /// The files that are in, wholly or in part.
    known: Vec<Entry>,
    /// The rows of the present file.
    counts: Counts,
    /// Where the present row begins, if a bad one ends the import.
    before: Reached,
    bar: ProgressBar,
}

impl Import<'_> {
    /// Imports all files, the first of which is open.
    fn all(&mut self, sink: &mut Sink<'_>, names: &[String], first: OpenFile) -> Result<(), Failure> {
        let mut first = Some(first);
        let mut bytes_before = 0;
        for name in names {
            self.bar.set_position(bytes_before);
            let follows = self.args.follow && names.last() == Some(name);
            if follows {
                return self.follow(sink, name, first.take());
            }
            self.file(sink, name, first.take(), bytes_before, false)?;
            bytes_before += std::fs::metadata(name).map_or(0, |facts| facts.len());
        }
        Ok(())
    }

    /// Imports a file as it grows, and each file that comes in its place.
    fn follow(&mut self, sink: &mut Sink<'_>, name: &str, open: Option<OpenFile>) -> Result<(), Failure> {
        let mut next = match open {
            Some(open) => open,
            None => OpenFile::of(self.args, name, source::follow(name)?)?,
        };
        loop {
            self.file(sink, name, Some(next), 0, true)?;
            next = OpenFile::of(self.args, name, source::follow_next(name)?)?;
            messages::print(&format!("{name} is another file now, and is read from its beginning"));
        }
    }

    /// Imports a file, unless it is in already.
    fn file(
        &mut self,
        sink: &mut Sink<'_>,
        name: &str,
        open: Option<OpenFile>,
        bytes_before: u64,
        follows: bool,
    ) -> Result<(), Failure> {
        let disk = match identity::on_disk(name) {
            Err(Failure::NoFile(_)) if follows => return Ok(()), // it was moved; the next one is to come
            disk => disk?,
        };
        let known = match &disk {
            Some(disk) if !self.args.again => identity::find(name, disk, &self.known, follows)?,
            _ => Known::New,
        };
        let before = match known {
            // What follows it is to come.
            Known::In(entry) if follows => {
                identity::check_ends_line(name, &entry)?;
                Some(*entry)
            }
            Known::In(entry) => {
                self.totals.passed.push(Entry { file: name.to_owned(), ..*entry });
                return Ok(());
            }
            Known::UpTo(entry) => Some(*entry),
            Known::New => None,
        };
        let inode = disk.as_ref().and_then(|disk| disk.inode);
        let open = match open {
            Some(open) if open.inode == inode => open,
            Some(_) if follows => return Ok(()), // what is known is of the file that has its name now
            _ => OpenFile::open(self.args, name)?,
        };
        let mut open = open.checked(name, inode)?;
        let rows = &mut open.rows;
        let mapping = Mapping::bind(&self.stated, sink.rules().as_table_rules(), rows)?;
        self.counts = Counts::default();
        if let Some(entry) = &before {
            self.go_on(rows, entry)?;
        }
        let is_large = disk.as_ref().is_some_and(|disk| disk.bytes >= PIECE_BYTES as u64);
        self.bad.begin_file((self.totals.files > 1).then_some(name));
        let entry = disk.map(|disk| self.entry(name, disk, before));
        sink.begin_file(entry);
        self.totals.files_read += 1;
        let bytes_read = open.bytes_read;
        let bar = self.bar.clone();
        let progress = || bar.set_position(bytes_before + bytes_read.load(Ordering::Relaxed));
        self.totals.note(if name == "-" { "stdin" } else { name }, rows.notes());
        let ended = if is_large && !follows && self.takes_pieces() {
            self.pieces_of(sink, name, rows, mapping, progress)
        } else {
            self.rows_of(sink, rows, mapping, progress)
        };
        self.known.retain(|known| sink.entry().is_none_or(|entry| entry.number != known.number));
        self.known.extend(sink.entry().cloned());
        ended
    }

    /// The record of a file, new or known up to a row.
    fn entry(&mut self, name: &str, disk: OnDisk, before: Option<Entry>) -> Entry {
        let how = self.stated.how(self.args);
        if let Some(entry) = before {
            self.totals.went_on.push(Entry { file: name.to_owned(), ..entry.clone() });
            return Entry { file: name.to_owned(), disk, how, done: false, ..entry };
        }
        let earlier = self.known.iter().rev().find(|entry| entry.disk.path == disk.path);
        if let (Some(earlier), false) = (earlier, self.args.again || self.args.follow) {
            self.totals.changed.push(Entry { file: name.to_owned(), ..earlier.clone() });
        }
        let number = self.known.iter().map(|entry| entry.number + 1).max().unwrap_or(1);
        Entry { number, file: name.to_owned(), disk, how, ..Entry::default() }
    }

    /// Goes on in a file where its record ends.
    fn go_on(&mut self, rows: &mut Rows, entry: &Entry) -> Result<(), Failure> {
        let how = self.stated.how(self.args);
        if !entry.done && entry.how != how {
            return Err(Failure::Usage(format!(
                "the import of {} was broken off at row {}, with {}; this one is with {how}: go on with those \
                 options, or count the file from its beginning with --again",
                entry.file,
                entry.read + entry.skip,
                entry.how
            )));
        }
        if !rows.go_on_at(&entry.mark())? {
            return Err(changes(&entry.file));
        }
        self.counts = Counts { read: entry.read, bad: entry.bad, empty: entry.empty };
        while self.counts.read < entry.read + entry.skip {
            interrupt::check()?;
            match rows.advance()? {
                Next::End => return Ok(()),
                Next::Wait => {}
                Next::Row | Next::Bad(_) => self.counts.read += 1,
            }
        }
        Ok(())
    }

    /// Imports all rows of a file, and commits the rows before a failing one.
    fn rows_of(
        &mut self,
        sink: &mut Sink<'_>,
        rows: &mut Rows,
        mapping: Mapping,
        progress: impl FnMut(),
    ) -> Result<(), Failure> {
        let ended = self.read_all(sink, rows, mapping, progress, |_| false);
        self.end_rows(sink, rows, ended)
    }

    /// Commits the rows before a failing one, and notes that the file is in.
    fn end_rows(
        &mut self,
        sink: &mut Sink<'_>,
        rows: &mut Rows,
        ended: Result<(), Failure>,
    ) -> Result<(), Failure> {
        if ended.is_ok() {
            self.check_share()?;
        }
        let optional = &self.args.optional;
        self.totals.add_spans(rows.spans());
        let missing = if ended.is_ok() { rows.missing_fields(optional) } else { None };
        for (name, rows) in rows.lacking_fields(optional) {
            *self.totals.lacking.entry(name.to_owned()).or_default() += rows;
        }
        if let (Some(missing), 0) = (&missing, sink.written()) {
            // Nothing is imported yet: the user may fix the command line and run it again.
            return Err(Failure::Usage(format!(
                "{missing}; nothing is imported (if no row needs it: --optional FIELD)"
            )));
        }
        self.totals.missing.extend(missing);
        let reached = match (&ended, self.args.strict) {
            (Err(Failure::Reported(_)), true) => self.before,
            _ => Reached { mark: rows.mark(), counts: self.counts },
        };
        let committed = sink.commit(&reached);
        self.note_refused(sink)?;
        let reached = Reached { counts: self.counts, ..reached };
        ended.and_then(|()| committed.and_then(|()| sink.end_file(&reached)))
    }

    fn read_all(
        &mut self,
        sink: &mut Sink<'_>,
        rows: &mut Rows,
        mut mapping: Mapping,
        mut progress: impl FnMut(),
        is_enough: impl Fn(&Rows) -> bool,
    ) -> Result<(), Failure> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        while !is_enough(rows) {
            interrupt::check()?;
            if self.args.strict {
                self.before = Reached { mark: rows.mark(), counts: self.counts };
            }
            let row = match rows.advance()? {
                Next::End => return Ok(()),
                Next::Wait => None,
                Next::Bad(bad) => Some(Err(bad.on_line(rows.line()))),
                Next::Row => match mapping.wants(rows) {
                    Ok(true) => Some(mapping.fill(rows, sink.rules(), &mut key, &mut value)),
                    Ok(false) => {
                        self.totals.unwanted += 1;
                        Some(Ok(false))
                    }
                    Err(bad) => Some(Err(bad)),
                },
            };
            self.counts.read += u64::from(row.is_some());
            self.totals.read += u64::from(row.is_some());
            match row {
                None => {}
                Some(Ok(true)) => sink.write(rows.line(), &key, &value, self.raw(rows), self.counts),
                Some(Ok(false)) => {
                    self.counts.empty += 1;
                    self.totals.empty += 1;
                }
                Some(Err(bad)) => self.add_bad(rows.line(), self.raw(rows), bad)?,
            }
            if sink.is_full() {
                self.check_share()?;
                let committed = sink.commit(&Reached { mark: rows.mark(), counts: self.counts });
                self.note_refused(sink)?;
                committed?;
                progress();
            }
        }
        Ok(())
    }

    /// Whether large files may be read in pieces, on all cores.
    fn takes_pieces(&self) -> bool {
        let ImportArgs { strict, sorted, ttl, .. } = self.args;
        !strict && !sorted && ttl.ttl.is_none()
    }

    /// Imports all rows of a large file, read in pieces, and those that need it one by one.
    fn pieces_of(
        &mut self,
        sink: &mut Sink<'_>,
        name: &str,
        rows: &mut Rows,
        mapping: Mapping,
        mut progress: impl FnMut(),
    ) -> Result<(), Failure> {
        // Those that were read to find the columns.
        let ended = self.read_all(sink, rows, mapping, || {}, Rows::has_rest);
        if ended.is_err() {
            return self.end_rows(sink, rows, ended);
        }
        sink.commit(&Reached { mark: rows.mark(), counts: self.counts })?;
        self.note_refused(sink)?;
        let rules = sink.rules().clone();
        let mut mapping = || Mapping::bind(&self.stated, rules.as_table_rules(), rows);
        let mappings = (0..=parallel::threads()).map(|_| mapping()).collect::<Result<Vec<_>, _>>()?;
        let way = Way { template: rows.template(), rules: &rules, keeps_raw: self.bad.takes_raw() };
        let rest = rows.take_rest();
        let ended = parallel::read(rest, &way, mappings, |gathered| {
            let taken = self.take(sink, rows, gathered);
            progress();
            taken
        });
        let failed = match ended {
            Ok(Ended::ByOne) => return self.by_one(sink, name, rows, progress),
            Ok(Ended::Whole) => Ok(()),
            Err(failure) => Err(failure),
        };
        self.end_rows(sink, rows, failed)
    }

    /// Commits rows of pieces.
    fn take(
        &mut self,
        sink: &mut Sink<'_>,
        rows: &mut Rows,
        gathered: &mut Gathered,
    ) -> Result<Ended, Failure> {
        let bad = gathered.bad.len() as u64;
        self.check_share_of(self.bad.count + bad, self.totals.read + gathered.read)?;
        let counts = Counts {
            read: self.counts.read + gathered.read,
            bad: self.counts.bad + bad,
            empty: self.counts.empty + gathered.empty,
        };
        let reached = Reached { mark: gathered.mark, counts };
        let committed = sink.commit_folded(&gathered.folded, gathered.rows, &reached);
        if let Ok(false) = committed {
            return Ok(Ended::ByOne);
        }
        self.totals.read += gathered.read;
        self.totals.empty += gathered.empty;
        self.totals.unwanted += gathered.unwanted;
        for (line, raw, bad) in gathered.bad.drain(..) {
            self.bad.add(line, &raw, bad)?;
        }
        gathered.seen.iter().for_each(|seen| rows.add_seen(seen));
        committed?;
        self.counts = counts;
        rows.settle(gathered.mark);
        Ok(Ended::Whole)
    }

    /// Reads a file one by one from the last commit on.
    fn by_one(
        &mut self,
        sink: &mut Sink<'_>,
        name: &str,
        rows: &mut Rows,
        progress: impl FnMut(),
    ) -> Result<(), Failure> {
        let entry = sink.entry().cloned();
        let inode = entry.as_ref().and_then(|entry| entry.disk.inode);
        let mut open = OpenFile::open(self.args, name)?.checked(name, inode)?;
        let mapping = Mapping::bind(&self.stated, sink.rules().as_table_rules(), &mut open.rows)?;
        if let Some(entry) = entry {
            self.go_on(&mut open.rows, &entry)?;
        }
        open.rows.add_seen(&rows.take_seen());
        self.rows_of(sink, &mut open.rows, mapping, progress)
    }

    /// Stops if too large a share of the rows is bad.
    fn check_share(&self) -> Result<(), Failure> {
        self.check_share_of(self.bad.count, self.totals.read)
    }

    fn check_share_of(&self, bad: u64, read: u64) -> Result<(), Failure> {
        let Some(share) = self.args.max_bad.filter(|share| bad as f64 > share * read as f64) else {
            return Ok(());
        };
        Err(Failure::Refused(format!(
            "{} of {} {} bad, more than {}% (--max-bad)",
            human::count(bad),
            human::plural(read, "row"),
            if bad == 1 { "is" } else { "are" },
            share * 100.0
        )))
    }

    /// The present row as it was in the file, if the file of bad rows may take it.
    fn raw(&self, rows: &Rows) -> Raw {
        self.bad.takes_raw().then(|| rows.raw())
    }

    /// Notes the rows that the store refused.
    fn note_refused(&mut self, sink: &mut Sink<'_>) -> Result<(), Failure> {
        for Refused { line, raw, error } in sink.take_refused() {
            let advice = if error.advice().is_empty() { "" } else { "; " };
            let reason = format!("{}{advice}{}", error.message(), error.advice());
            self.add_bad(line, raw, BadRow::whole(reason))?;
        }
        Ok(())
    }

    fn add_bad(&mut self, line: u64, raw: Raw, bad: BadRow) -> Result<(), Failure> {
        self.counts.bad += 1;
        self.bad.add(line, &raw.unwrap_or_default(), bad)?;
        if self.args.strict { Err(Failure::Reported(ExitCode::Refused)) } else { Ok(()) }
    }

    /// Reports, and says by its result whether all rows are in.
    fn end(
        mut self,
        session: &mut Session,
        store: Option<Opened>,
        ended: Result<(), Failure>,
        began: Instant,
    ) -> Result<(), Failure> {
        let set_aside = self.bad.finish();
        store.as_ref().map(|store| store.sync()).transpose()?;
        let how = match &ended {
            Ok(()) => "",
            Err(Failure::Interrupted) => ", then stopped by Ctrl-C",
            Err(_) => ", then stopped",
        };
        if let (Err(failure), 0, true) = (&ended, self.totals.files_read, self.totals.passed.is_empty())
            && !matches!(failure, Failure::Interrupted)
        {
            return ended; // before anything was read
        }
        let seconds = began.elapsed().as_secs_f64();
        self.totals.report(session, &self.args.table, &self.bad, (how, seconds))?;
        ended.map_err(|failure| match failure {
            Failure::Interrupted => Failure::Reported(ExitCode::Interrupted),
            other => other.after(self.totals.written > 0),
        })?;
        set_aside?;
        if let Some(store) = &store {
            show(self.args, session, store)?;
        }
        store.map(Opened::close).transpose()?;
        match self.bad.count > 0 || !self.totals.missing.is_empty() {
            true => Err(Failure::Reported(ExitCode::NotAllIn)),
            false => Ok(()),
        }
    }
}

/// Prints the first rows of the table, if that is asked for.
fn show(args: &ImportArgs, session: &mut Session, store: &Opened) -> Result<(), Failure> {
    let Some(limit) = args.show.filter(|_| store.tables().contains(&args.table)) else { return Ok(()) };
    let table = store.known_table(&args.table)?;
    let rows = RowsArgs { limit: Some(limit), ..RowsArgs::default() };
    let format = if session.globals.json { OutputFormat::Ndjson } else { OutputFormat::Table };
    print_rows::print(&mut session.out, &table, &rows, format, None)?;
    Ok(())
}
