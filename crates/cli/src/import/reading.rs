//! A running import: its files, one after the other, and their rows, one by one.
//!
//! Several files, and the rows of large ones, are read at the same time by `in_pieces.rs`, which
//! comes back here where that is not possible.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use folddb::table_rules::TableRules;
use indicatif::ProgressBar;

use crate::args::ImportArgs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::human;
use crate::import::bad_rows::BadRows;
use crate::import::dialect::Escape;
use crate::import::identity::{self, Known, Records, Sought};
use crate::import::kept::Form;
use crate::import::ledger::{Entry, Inode, OnDisk};
use crate::import::mapping::{Mapping, Stated};
use crate::import::opening::{OpenFile, changes, said};
use crate::import::report::{REFUSED_LISTED_MAX, Refused, Totals};
use crate::import::row::{BadRow, Next};
use crate::import::rows::Rows;
use crate::import::sink::{Counts, Raw, Reached, Sink};
use crate::import::source::{self, Said, Source};
use crate::import::tape::Mark;
use crate::interrupt;
use crate::messages;

/// What is known of a file before it is opened.
pub(crate) struct Looked {
    /// None of a pipe.
    pub(crate) disk: Option<OnDisk>,
    pub(crate) known: Known,
    /// It is read as it grows.
    follows: bool,
}

impl Looked {
    fn inode(&self) -> Option<Inode> {
        self.disk.as_ref().and_then(|disk| disk.inode)
    }

    /// Whether it is this open file.
    fn is(&self, open: &OpenFile) -> bool {
        open.inode == self.inode()
    }
}

/// A file that is to be imported.
pub(crate) struct Begun {
    pub(crate) open: OpenFile,
    pub(crate) mapping: Mapping,
    pub(crate) disk: Option<OnDisk>,
    /// How far it is in.
    pub(crate) before: Option<Entry>,
}

/// How long rows may wait for the end of a quote before that is said.
const QUOTE_PATIENCE: Duration = Duration::from_secs(2);

/// Waiting for the end of a quote: its line, since when, and whether it was said.
#[derive(Default)]
pub(crate) struct Waits(Option<(u64, Instant, bool)>);

impl Waits {
    /// Says once that nothing is read before a quote closes: a stray one would look as if nothing
    /// came.
    fn note(&mut self, open: Option<(&str, u64)>) {
        let Some((file, line)) = open else { return self.0 = None };
        match &mut self.0 {
            Some((known, since, is_told)) if *known == line => {
                if !*is_told && since.elapsed() >= QUOTE_PATIENCE {
                    *is_told = true;
                    messages::print(&format!(
                        "{file} line {line}: a quote opens here and has not closed yet: what follows waits for that"
                    ));
                }
            }
            _ => self.0 = Some((line, Instant::now(), false)),
        }
    }
}

/// A running import.
pub(crate) struct Import<'a> {
    pub(crate) args: &'a ImportArgs,
    pub(crate) stated: Arc<Stated>,
    pub(crate) bad: BadRows,
    pub(crate) totals: Totals,
    /// The files that are in, wholly or in part.
    pub(crate) known: Records,
    /// Which import it is, if it counts files again.
    pub(crate) again: Option<u128>,
    /// The rows of the present file.
    pub(crate) counts: Counts,
    /// The numbers of the records of files that were read, or passed over.
    pub(crate) settled: BTreeSet<u64>,
    /// Of those that are elsewhere now than their records say in the store.
    pub(crate) moved: BTreeSet<u64>,
    /// Where the present row begins, if a bad one ends the import.
    pub(crate) before: Reached,
    /// The place before the last row of the present file, if nothing of that is in, and its line,
    /// or a quote of it, has no end; and whether it is bad.
    pub(crate) before_open: Option<(Mark, bool)>,
    /// The present file could not be read on, or no row of it has what is asked for.
    pub(crate) is_broken: bool,
    pub(crate) is_misfit: bool,
    pub(crate) waits: Waits,
    pub(crate) bar: ProgressBar,
}

impl Import<'_> {
    /// Imports a file, unless it is in already. One that cannot be imported is noted, if others are
    /// named beside it.
    pub(crate) fn file(
        &mut self,
        sink: &mut Sink<'_>,
        name: &str,
        open: Option<OpenFile>,
        bytes_before: u64,
        follows: bool,
    ) -> Result<(), Failure> {
        let begun = match self.begin(sink, name, open, follows) {
            Err(failure) if !follows => return self.refuse(name, failure),
            begun => begun?,
        };
        let Some(Begun { mut open, mapping, disk, before }) = begun else { return Ok(()) };
        self.check_how(&before)?;
        let rows = &mut open.rows;
        self.counts = Counts::default();
        if let Some(entry) = &before
            && let Err(failure) = self.go_on(rows, entry)
        {
            return if follows { Err(failure) } else { self.refuse(name, failure) };
        }
        self.begin_bad(name, &open.form, &rows.header());
        let entry = disk.map(|disk| self.entry((name, open.form.escape), disk, &before));
        let entry = entry.map(|entry| Entry { is_followed: follows, ..entry });
        let changed = entry.as_ref().and_then(|entry| self.changed(entry, before.is_some()));
        self.totals.changed.extend(changed);
        self.totals.went_on.extend(before.map(|entry| Entry { file: name.to_owned(), ..entry }));
        sink.begin_file(entry);
        let before = (self.totals.read, self.totals.empty, self.totals.unwanted, self.bad.counts());
        let place = self.bad.place();
        self.totals.files_read += 1;
        let bytes_read = open.bytes_read;
        let bar = self.bar.clone();
        let progress = || bar.set_position(bytes_before + bytes_read.load(Ordering::Relaxed));
        self.totals.note(if name == "-" { "stdin" } else { name }, rows.notes());
        let ended = self.rows_of(sink, rows, mapping, progress);
        if self.is_misfit && self.goes_on() && !follows {
            // Nothing of it is in, and what was found out does not count.
            let count;
            (self.totals.read, self.totals.empty, self.totals.unwanted, count) = before;
            self.totals.files_read -= 1;
            sink.discard();
            self.bad.forget_file(count, place)?;
            return ended.or_else(|failure| self.refuse(name, failure));
        }
        self.note_record(sink);
        match ended {
            Err(failure) if self.is_broken && !follows => self.refuse(name, failure),
            ended => ended,
        }
    }

    /// Opens a file, unless it is in already.
    fn begin(
        &mut self,
        sink: &Sink<'_>,
        name: &str,
        open: Option<OpenFile>,
        follows: bool,
    ) -> Result<Option<Begun>, Failure> {
        let looked = match self.look(name, follows) {
            Err(Failure::NoFile(_)) if follows => return Ok(None), // it was moved; the next one is to come
            looked => looked?,
        };
        if follows && open.as_ref().is_some_and(|open| !looked.is(open)) {
            return Ok(None); // what is known is of the file that has its name now
        }
        match looked.known {
            // What follows it is to come.
            Known::In(ref entry) if follows => identity::check_ends_line(name, entry)?,
            Known::In(entry) => {
                self.pass_over((name, looked.disk.as_ref()), *entry);
                return Ok(None);
            }
            Known::UpTo(_) | Known::New => {}
        }
        self.open(sink.rules().as_table_rules(), name, looked, open).map(Some)
    }

    /// Looks for a file among those that are in.
    pub(crate) fn look(&self, name: &str, follows: bool) -> Result<Looked, Failure> {
        let disk = identity::on_disk(name)?;
        let known = match &disk {
            Some(disk) => self.known.find(name, disk, Sought { is_followed: follows, again: self.again })?,
            None => Known::New,
        };
        let known = match known {
            // What was left at its end is not in: it is read, and told, until it is. Who follows a
            // file waits for more of it.
            Known::In(entry) if entry.is_open && (!follows || self.args.complete) => Known::UpTo(entry),
            known => known,
        };
        Ok(Looked { disk, known, follows })
    }

    /// Opens a file to go on with it, or takes the one that is open, if it is the same.
    pub(crate) fn open(
        &self,
        rules: &TableRules,
        name: &str,
        looked: Looked,
        open: Option<OpenFile>,
    ) -> Result<Begun, Failure> {
        let open = match open.filter(|open| looked.is(open)) {
            Some(open) => open,
            None => OpenFile::open(self.args, &self.stated, name)?,
        };
        let inode = looked.inode();
        let before = match looked.known {
            Known::In(entry) | Known::UpTo(entry) => Some(entry.without_open()),
            Known::New => None,
        };
        let open = match &before {
            Some(entry) => self.go_on_with(entry, name, looked.follows, open)?,
            None => open,
        };
        let mut open = open.checked(name, inode)?;
        let mapping = Mapping::bind(&self.stated, rules, &mut open.rows)?;
        Ok(Begun { open, mapping, disk: looked.disk, before })
    }

    /// The same file, whose quotes are escaped as they were up to where it is in: rows that came
    /// since may look otherwise, and one file is not read in two ways.
    fn go_on_with(
        &self,
        entry: &Entry,
        name: &str,
        follows: bool,
        open: OpenFile,
    ) -> Result<OpenFile, Failure> {
        let is_alike = open.form.delimiter.is_none() || open.form.escape == entry.escape;
        if is_alike || self.args.escape.is_some() {
            return Ok(open);
        }
        let source = match follows {
            true => source::follow(name, said(self.args))?,
            false => source::open_rows(name, said(self.args))?,
        };
        OpenFile::with(self.args, &self.stated, (name, Escape::Is(entry.escape)), source)
    }

    /// Notes a file that cannot be imported, if others are named beside it, which are. One that is
    /// empty has nothing that could be.
    ///
    /// # Errors
    /// It is alone, or more than the file is concerned.
    pub(crate) fn refuse(&mut self, name: &str, failure: Failure) -> Result<(), Failure> {
        if !self.goes_on() || !failure.is_of_file() {
            return Err(failure);
        }
        if self.args.follow {
            messages::print(&format!("not imported: {failure}")); // the report may be far
        }
        match failure {
            Failure::Empty(_) => self.totals.blank.push(name.to_owned()),
            failure => {
                let (file, is_begun) = (name.to_owned(), std::mem::take(&mut self.is_broken));
                self.totals.refused.push(Refused { file, failure, is_begun });
            }
        }
        Ok(())
    }

    /// Whether other files are imported where one cannot be.
    pub(crate) fn goes_on(&self) -> bool {
        !(self.totals.is_single || self.args.strict || self.args.sorted)
    }

    /// Why nothing is imported, if all files that are named were refused.
    pub(crate) fn check_fits(&mut self) -> Result<(), Failure> {
        let totals = &mut self.totals;
        if totals.files_read > 0 || !totals.passed.is_empty() || totals.refused.is_empty() {
            return Ok(());
        }
        let refused = std::mem::take(&mut totals.refused);
        let is_none_there = refused.iter().all(|refused| matches!(refused.failure, Failure::NoFile(_)));
        let mut refused = refused.into_iter().map(|refused| refused.failure);
        let Some(first) = refused.next() else { return Ok(()) };
        let reasons: Vec<String> = refused.map(|failure| failure.to_string()).collect();
        let mut text = first.to_string();
        for reason in reasons.iter().take(REFUSED_LISTED_MAX - 1) {
            text.push_str(&format!("\n  {reason}"));
        }
        let unlisted = reasons.len().saturating_sub(REFUSED_LISTED_MAX - 1);
        if unlisted > 0 {
            text.push_str(&format!("\n  and {} more", human::count(unlisted as u64)));
        }
        Err(match first {
            Failure::Usage(_) => Failure::Usage(text),
            Failure::NoFile(_) if is_none_there => Failure::NoFile(text),
            _ => Failure::Refused(text),
        })
    }

    /// Notes that a file is in already.
    pub(crate) fn pass_over(&mut self, (name, disk): (&str, Option<&OnDisk>), entry: Entry) {
        if disk.is_some_and(|disk| disk.path != entry.disk.path) && entry.file != name {
            self.totals.passed_as.insert(name.to_owned(), entry.file.clone());
        }
        let alike = disk.filter(|disk| identity::may_be_another(&entry, disk));
        if let Some(disk) = alike.filter(|_| !self.settled.contains(&entry.number)) {
            self.totals.passed_alike.push(name.to_owned());
            self.moved.insert(entry.number); // that is said once
            self.known.put(Entry { disk: disk.clone(), ..entry.clone() });
        }
        if self.known.is_begun_again(&entry, self.again) {
            self.totals.begun_again.push(name.to_owned());
        }
        if let Some(moved) = disk.and_then(|disk| identity::moved(&entry, disk)) {
            self.moved.insert(entry.number);
            self.known.put(moved);
        }
        // Bad rows of one that this import has read, by another name, are counted there.
        let is_counted = !self.settled.insert(entry.number);
        let told = if is_counted { entry.bad } else { entry.told };
        self.totals.passed.push(Entry { file: name.to_owned(), told, ..entry });
    }

    /// Notes how far the file is in that was read last.
    pub(crate) fn note_record(&mut self, sink: &Sink<'_>) {
        if let Some(entry) = sink.entry() {
            self.settled.insert(entry.number);
            self.known.put(entry.clone());
        }
    }

    /// Notes the files that have grown before, and that end without a line end, unless they are
    /// whole now.
    pub(crate) fn note_open_ended(&mut self) {
        if self.args.complete {
            return;
        }
        for before in &self.totals.went_on {
            let is_in =
                |entry: &&Entry| entry.done && !entry.is_open && entry.content.bytes == entry.disk.bytes;
            let Some(entry) = self.known.get(before.number).filter(is_in) else { continue };
            let has_lines = |source: Source| source.may_grow && !source.is_packed && !source.is_array;
            if !source::open(&before.file, Said::ALL).is_ok_and(has_lines) {
                continue;
            }
            if identity::ends_line(&before.file, entry).is_ok_and(|ends| !ends) {
                self.totals.open_ended.push(before.file.clone());
            }
        }
    }

    /// The records of this import's files that say something else once it has ended: its bad rows
    /// are told, files that were counted again are in as others are, and some have moved.
    pub(crate) fn at_end(&self) -> Vec<Entry> {
        let entries = self.settled.iter().filter_map(|number| self.known.get(*number));
        let ended = |entry: &Entry| {
            let again = entry.again.filter(|_| !entry.done); // the same command goes on in it
            Entry { told: entry.bad, again, ..entry.clone() }
        };
        let changed = entries.filter_map(|entry| {
            let ended = ended(entry);
            (ended != *entry || self.moved.contains(&entry.number)).then_some(ended)
        });
        changed.collect()
    }

    /// Bad rows that follow are of this file.
    pub(crate) fn begin_bad(&mut self, name: &str, form: &Form, columns: &[String]) {
        self.bad.begin_file(name, self.totals.files > 1, form, columns);
    }

    /// The record of a file, new or known up to a row.
    pub(crate) fn entry(
        &self,
        (name, escape): (&str, Option<u8>),
        disk: OnDisk,
        before: &Option<Entry>,
    ) -> Entry {
        let (file, how) = (name.to_owned(), self.stated.how(self.args));
        let number = match before {
            // That file keeps its own record: it may grow in another way.
            Some(entry) if !identity::is_of_another(entry, &disk) => entry.number,
            _ => self.known.next_number(),
        };
        let before = before.clone().unwrap_or_default();
        let again = self.again;
        Entry { number, file, disk, escape, how, done: false, is_followed: false, again, ..before }
    }

    /// What was at the path of a new file when it was imported earlier.
    pub(crate) fn changed(&self, entry: &Entry, is_known: bool) -> Option<Entry> {
        if is_known || self.args.again || self.args.follow {
            return None;
        }
        let is_another = |earlier: &&Entry| earlier.read > 0 && !self.known.is_renamed(earlier);
        let earlier = self.known.at_path(&entry.disk.path).filter(is_another)?;
        Some(Entry { file: entry.file.clone(), ..earlier.clone() })
    }

    /// Refuses to go on in a file with other options than those of its record, which would mix two
    /// things.
    pub(crate) fn check_how(&self, before: &Option<Entry>) -> Result<(), Failure> {
        let how = self.stated.how(self.args);
        let Some(entry) = before.as_ref().filter(|entry| !entry.done && entry.how != how) else {
            return Ok(());
        };
        Err(Failure::Usage(format!(
            "the import of {} was broken off at row {}, with {}; this one is with {how}: go on with those options, \
             or count the file from its beginning with --again",
            entry.file,
            entry.read + entry.skip,
            entry.how
        )))
    }

    /// Goes on in a file where its record ends.
    pub(crate) fn go_on(&mut self, rows: &mut Rows, entry: &Entry) -> Result<(), Failure> {
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
    pub(crate) fn rows_of(
        &mut self,
        sink: &mut Sink<'_>,
        rows: &mut Rows,
        mapping: Mapping,
        progress: impl FnMut(),
    ) -> Result<(), Failure> {
        let ended = self.read_all(sink, rows, mapping, progress, |_| false);
        self.end_rows(sink, rows, ended)
    }

    /// Imports rows up to where it is enough, and commits them.
    pub(crate) fn some_rows_of(
        &mut self,
        sink: &mut Sink<'_>,
        rows: &mut Rows,
        mapping: Mapping,
        is_enough: impl Fn(&Rows) -> bool,
    ) -> Result<(), Failure> {
        self.read_all(sink, rows, mapping, || {}, is_enough)?;
        let reached = self.reached(rows);
        self.commit(sink, &reached)
    }

    /// How far the present file is read.
    fn reached(&self, rows: &mut Rows) -> Reached {
        let counts = self.counts;
        match self.before_open {
            Some((mark, is_bad)) => Reached { mark: Some(mark), counts, is_open: is_bad },
            None => Reached { mark: rows.mark(), counts, is_open: false },
        }
    }

    /// Commits the rows that wait.
    fn commit(&mut self, sink: &mut Sink<'_>, reached: &Reached) -> Result<(), Failure> {
        let committed = sink.commit(reached, &mut self.bad);
        self.counts.bad += sink.take_refused();
        committed?;
        self.bad.flush()
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
        let missing = if ended.is_ok() { rows.missing_fields(&self.args.optional) } else { None };
        self.note_fields(rows);
        if let (Some(missing), 0) = (&missing, sink.written()) {
            self.is_misfit = true;
            return Err(match self.goes_on() {
                true => Import::lacks(missing),
                false => Import::nothing_imported(missing),
            });
        }
        self.totals.missing.extend(missing);
        let reached = match (&ended, self.args.strict) {
            (Err(Failure::Reported(_)), true) => self.before,
            _ => self.reached(rows),
        };
        let committed = self.commit(sink, &reached);
        let reached = Reached { counts: self.counts, ..reached };
        ended.and_then(|()| committed.and_then(|()| sink.end_file(&reached, &mut self.bad)))
    }

    /// Nothing is imported yet: the user may fix the command line and run it again.
    pub(crate) fn nothing_imported(missing: &str) -> Failure {
        Failure::Usage(format!("{missing}; nothing is imported (if no row needs it: --optional FIELD)"))
    }

    /// The same, of one file of several.
    pub(crate) fn lacks(missing: &str) -> Failure {
        Failure::Usage(format!("{missing} (if no row needs it: --optional FIELD)"))
    }

    /// Notes what is said of the fields of a file.
    pub(crate) fn note_fields(&mut self, rows: &Rows) {
        self.totals.add_spans(rows.source_name(), rows.spans());
        for (name, rows) in rows.lacking_fields(&self.args.optional) {
            *self.totals.lacking.entry(name.to_owned()).or_default() += rows;
        }
    }

    /// Reads rows up to where it is enough, or to the end.
    fn read_all(
        &mut self,
        sink: &mut Sink<'_>,
        rows: &mut Rows,
        mut mapping: Mapping,
        mut progress: impl FnMut(),
        is_enough: impl Fn(&Rows) -> bool,
    ) -> Result<(), Failure> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        (self.before_open, self.is_broken, self.is_misfit) = (None, false, false);
        while !is_enough(rows) {
            interrupt::check()?;
            if self.args.strict {
                self.before = self.reached(rows);
            }
            let row = match rows.advance().inspect_err(|_| self.is_broken = true)? {
                Next::End => {
                    let passed = rows.passed_open().map(|mark| (mark, false));
                    self.before_open = self.before_open.or(passed);
                    return Ok(());
                }
                Next::Wait => {
                    self.waits.note(rows.open_quote());
                    None
                }
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
                None if sink.is_idle() => self.bad.flush()?,
                None => {}
                Some(Ok(true)) => sink.write(rows.line(), &key, &value, self.raw(rows), self.counts),
                Some(Ok(false)) => {
                    self.counts.empty += 1;
                    self.totals.empty += 1;
                    self.before_open = rows.before_open().map(|mark| (mark, false));
                    if self.before_open.is_some() {
                        (self.counts.read, self.counts.empty) = (self.counts.read - 1, self.counts.empty - 1);
                    }
                }
                Some(Err(bad)) => self.add_bad(rows, bad)?,
            }
            if sink.is_full() || self.bad.is_full() {
                self.check_share()?;
                let reached = self.reached(rows);
                self.commit(sink, &reached)?;
                progress();
            }
        }
        Ok(())
    }

    /// Stops if too large a share of the rows is bad.
    fn check_share(&self) -> Result<(), Failure> {
        let (bad, lines) = self.bad.counts();
        self.check_share_of(bad + lines, self.totals.read + lines)
    }

    pub(crate) fn check_share_of(&self, bad: u64, read: u64) -> Result<(), Failure> {
        // Those of files that were broken off are of this import, too.
        let before = self.totals.went_on.iter().filter(|entry| !entry.done);
        let (bad, read) =
            before.fold((bad, read), |(bad, read), entry| (bad + entry.bad, read + entry.read + entry.skip));
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

    /// Notes that the present row is bad. One that a file ends within is not kept: it is read
    /// again.
    fn add_bad(&mut self, rows: &Rows, bad: BadRow) -> Result<(), Failure> {
        self.counts.bad += 1;
        let raw = self.raw(rows);
        self.before_open = rows.before_open().filter(|_| !self.args.strict).map(|mark| (mark, true));
        match self.before_open {
            Some(_) => self.bad.count(rows.line(), bad.at_open_end()),
            None => self.bad.add((self.counts.read, rows.line()), &raw.unwrap_or_default(), bad)?,
        }
        if self.args.strict { Err(Failure::Reported(ExitCode::Refused)) } else { Ok(()) }
    }
}
