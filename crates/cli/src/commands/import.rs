//! `folddb import STORE TABLE FILE`: reads rows and folds them into a table.
//!
//! All errors of the command line are found before a store is created. Rows are written in batches
//! as they are read, so memory is bounded for files of any size, and at the end all are synced.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use folddb::{ErrorKind, Store};
use serde_json::{Value, json};

use crate::args::{ImportArgs, OutputFormat, RowsArgs};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::human;
use crate::import::bad_rows::BadRows;
use crate::import::delimited::{FIELD_LINES_MAX, Span};
use crate::import::mapping::{Mapping, Stated};
use crate::import::rows::{BadRow, Next, Rows};
use crate::import::sink::{Into, Raw, Refused, Sink};
use crate::import::source;
use crate::interrupt;
use crate::messages;
use crate::progress;
use crate::render::print_rows;
use crate::rules_words::check_expires;
use crate::session::{Opened, Session};

pub(crate) fn run(args: &ImportArgs, session: &mut Session) -> Result<(), Failure> {
    let mut stated = Stated::parse(args)?;
    check_aside(args)?;
    if args.file == "-" && session.shared.is_some() {
        return Err(Failure::Usage("in a shell, stdin has the commands; name a file".to_owned()));
    }
    let mut source = source::open(&args.file)?;
    let bar = progress::bytes_bar(source.bytes_total, "importing");
    let bytes_read = std::sync::Arc::clone(&source.bytes_read);
    let format = match args.format {
        Some(format) => format,
        // What is said of fields is said of delimited text.
        None if args.delimiter.is_some() || args.no_header => source::by_name(&args.file),
        None => source::by_content(&args.file, &mut source)?,
    };
    let mut rows = Rows::open(source, format, args.delimiter, !args.no_header, &args.null)?;
    let (mut sink, mapping) = open_sink(args, &mut stated, session, &mut rows)?;
    let bad = BadRows::new(args.bad_rows.as_deref(), &rows.header())?;

    let began = Instant::now();
    let hearing = session.shared.is_none().then(interrupt::hear); // a shell does this itself
    let mut import = Import {
        mapping,
        bad,
        strict: args.strict,
        read: 0,
        written: 0,
        left: 0,
        empty: 0,
        missing: None,
        lacking: Vec::new(),
        spans: None,
    };
    let ended = import
        .all(&mut sink, &mut rows, &args.optional, || bar.set_position(bytes_read.load(Ordering::Relaxed)));
    let is_all_well = import.bad.count == 0 && import.missing.is_none();
    let ended = ended.and_then(|()| sink.finish(is_all_well));
    (import.written, import.left) = (sink.written(), sink.left());
    bar.finish_and_clear();
    drop(hearing);
    let set_aside = import.bad.finish();
    // Rows that were committed before a failure stay, and the report says how many.
    let store = sink.into_store();
    store.as_ref().map(|store| store.sync()).transpose()?;
    let how = match &ended {
        Ok(()) => "",
        Err(Failure::Interrupted) => ", then stopped by Ctrl-C",
        Err(_) => ", then stopped",
    };
    import.report(session, &args.table, how, began.elapsed().as_secs_f64())?;
    ended.map_err(|failure| match failure {
        Failure::Interrupted => Failure::Reported(ExitCode::Interrupted),
        other => other.after(import.written > 0),
    })?;
    set_aside?;
    if let (Some(limit), Some(store)) = (args.show, &store)
        && store.tables().contains(&args.table)
    {
        let table = store.known_table(&args.table)?;
        let rows = RowsArgs { limit: Some(limit), ..RowsArgs::default() };
        let format = if session.globals.json { OutputFormat::Ndjson } else { OutputFormat::Table };
        print_rows::print(&mut session.out, &table, &rows, format, None)?;
    }
    store.map(Opened::close).transpose()?;
    match import.bad.count > 0 || import.missing.is_some() {
        true => Err(Failure::Reported(ExitCode::NotAllIn)),
        false => Ok(()),
    }
}

/// The file for bad rows must not be the one that is read.
fn check_aside(args: &ImportArgs) -> Result<(), Failure> {
    let Some(aside) = &args.bad_rows else { return Ok(()) };
    let same = match (aside.canonicalize(), Path::new(&args.file).canonicalize()) {
        (Ok(aside), Ok(file)) => aside == file,
        _ => false,
    };
    if same {
        return Err(Failure::Usage("--bad-rows names the file that is read; name another".to_owned()));
    }
    Ok(())
}

/// Opens the table, or determines everything needed to create it, if requested.
fn open_sink<'a>(
    args: &'a ImportArgs,
    stated: &mut Stated,
    session: &'a Session,
    rows: &mut Rows,
) -> Result<(Sink<'a>, Mapping), Failure> {
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
    let mapping = Mapping::bind(stated, &rules, rows)?;
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
        return Ok((Sink::of_table(session, into, store.clone(), table), mapping));
    }
    let rules = Store::check_table(&args.table, &rules, &session.options())?;
    Ok((Sink::to_come(session, into, store, rules), mapping))
}

/// A running import.
struct Import {
    mapping: Mapping,
    bad: BadRows,
    strict: bool,
    read: u64,
    written: u64,
    /// Rows that were read and not written, since the import stopped.
    left: u64,
    /// Rows that had nothing to fold.
    empty: u64,
    /// Which fields no row had, in words.
    missing: Option<String>,
    /// Which fields some rows lacked, and how many.
    lacking: Vec<(String, u64)>,
    /// How many rows had a field of many lines, and where the first of them is.
    spans: Option<(u64, Span)>,
}

impl Import {
    /// Imports all rows, and commits the rows before a failing one.
    fn all(
        &mut self,
        sink: &mut Sink<'_>,
        rows: &mut Rows,
        optional: &[String],
        progress: impl FnMut(),
    ) -> Result<(), Failure> {
        let ended = self.read_all(sink, rows, progress);
        self.spans = rows.spans();
        self.missing = if ended.is_ok() { rows.missing_fields(optional) } else { None };
        let lacking = rows.lacking_fields(optional).into_iter();
        self.lacking = lacking.map(|(name, rows)| (name.to_owned(), rows)).collect();
        if let (Some(missing), 0) = (&self.missing, sink.written()) {
            // Nothing is imported yet: the user may fix the command line and run it again.
            return Err(Failure::Usage(format!(
                "{missing}; nothing is imported (if no row needs it: --optional FIELD)"
            )));
        }
        let committed = sink.commit();
        self.note_refused(sink)?;
        ended.and(committed)
    }

    fn read_all(
        &mut self,
        sink: &mut Sink<'_>,
        rows: &mut Rows,
        mut progress: impl FnMut(),
    ) -> Result<(), Failure> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        loop {
            interrupt::check()?;
            let row = match rows.advance()? {
                Next::End => return Ok(()),
                Next::Wait => None,
                Next::Bad(bad) => Some(Err(bad)),
                Next::Row => Some(self.mapping.fill(rows, sink.rules(), &mut key, &mut value)),
            };
            self.read += u64::from(row.is_some());
            let written = match row {
                None => Ok(()),
                Some(Ok(true)) => sink.write(rows.line(), &key, &value, self.raw(rows)),
                Some(Ok(false)) => {
                    self.empty += 1;
                    Ok(())
                }
                Some(Err(bad)) => self.add_bad(rows.line(), self.raw(rows), bad),
            };
            let is_full = sink.is_full();
            let written = written.and_then(|()| if is_full { sink.commit() } else { Ok(()) });
            self.note_refused(sink)?;
            written?;
            if is_full {
                progress();
            }
        }
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
        self.bad.add(line, &raw.unwrap_or_default(), bad)?;
        if self.strict { Err(Failure::Reported(ExitCode::Refused)) } else { Ok(()) }
    }

    fn report(&self, session: &mut Session, table: &str, how: &str, seconds: f64) -> Result<(), Failure> {
        let whole = how.is_empty();
        let bad_rows = self
            .bad
            .listed
            .iter()
            .map(|(line, bad)| json!({ "line": line, "column": bad.column, "reason": bad.reason }));
        let report = json!({
            "table": table,
            "rows_read": self.read,
            "rows_imported": self.written,
            "rows_empty": self.empty,
            "rows_bad": self.bad.count,
            "rows_left": self.left,
            "bad_rows": bad_rows.collect::<Value>(),
            "missing": self.missing,
            "lacking": self.lacking.iter().cloned().collect::<BTreeMap<String, u64>>(),
            "long_fields": self.spans.map_or(Value::Null, |(rows, first)| {
                json!({ "rows": rows, "line": first.line, "lines": first.lines })
            }),
            "whole": whole,
            "seconds": seconds,
        });
        if session.globals.json {
            return session.report(&report, |_| Ok(()));
        }
        messages::print(&self.summary(table, how, seconds));
        for line in self.bad.lines() {
            messages::print(&format!("  {line}"));
        }
        for (name, rows) in &self.lacking {
            let lack = if *rows == 1 { "has" } else { "have" };
            let rows = human::plural(*rows, "row");
            messages::print(&format!(
                "  {rows} {lack} no field `{name}` (if that is meant: --optional {name})"
            ));
        }
        if let Some((rows, first)) = self.spans {
            messages::print(&format!("  {}", long_field(rows, first)));
        }
        if let (Some(missing), true) = (&self.missing, whole) {
            messages::print(&format!("  {missing} (if no row needs it: --optional FIELD)"));
        }
        Ok(())
    }

    fn summary(&self, table: &str, how: &str, seconds: f64) -> String {
        let mut text = format!("imported {} into {}", human::plural(self.written, "row"), table);
        if std::io::IsTerminal::is_terminal(&std::io::stderr()) {
            text.push_str(&format!(" in {seconds:.2} s"));
        }
        text.push_str(how);
        if self.left > 0 && self.written > 0 {
            text.push_str(&format!("; {} read and not written", human::plural(self.left, "row")));
        }
        if self.empty > 0 {
            text.push_str(&format!("; {} had nothing to fold", human::plural(self.empty, "row")));
        }
        if self.bad.count > 0 {
            text.push_str(&format!("; {} not imported:", human::plural(self.bad.count, "bad row")));
        }
        text
    }
}

/// What is reported about fields of many lines.
fn long_field(rows: u64, Span { line, lines }: Span) -> String {
    let what = match rows {
        1 => format!("a field spans {lines} lines, from line {line} on"),
        _ => format!(
            "{} have a field of more than {FIELD_LINES_MAX} lines; the first spans {lines}, from line {line} on",
            human::plural(rows, "row")
        ),
    };
    format!("{what}: if it is no text with line breaks, a quote is stray")
}
