//! `folddb imports STORE [TABLE]`: the files that were imported into a table, and how far.

use std::path::Path;

use folddb::{Datum, Store};

use crate::args::ImportsArgs;
use crate::failure::Failure;
use crate::human;
use crate::import::ledger::{self, Entry};
use crate::render::json::object;
use crate::render::table;
use crate::session::Session;
use crate::zones;

pub(crate) fn run(args: &ImportsArgs, session: &mut Session) -> Result<(), Failure> {
    let store = match args.forget_gone {
        true => session.write(&args.store)?,
        false => session.read(&args.store)?,
    };
    let entries = ledger::entries(&store, args.table.as_deref())?;
    if let (Some(table), true) = (&args.table, entries.is_empty()) {
        store.known_table(table)?; // a mistyped name is no table without imports
    }
    if args.forget_gone {
        return forget_gone(&store, entries, session);
    }
    let is_json = session.globals.json;
    if is_json {
        for (table, entry) in &entries {
            session.report(
                &object! {
                    "table": table.as_str(),
                    "file": entry.file.as_str(),
                    "path": entry.disk.path.as_str(),
                    "bytes_read": entry.content.bytes,
                    "rows": entry.rows,
                    "rows_bad": entry.bad,
                    "rows_empty": entry.empty,
                    "done": entry.done,
                    "last_line_open": entry.is_open,
                    "followed": entry.is_followed,
                    "counting_again": entry.again.is_some(),
                    "gone": is_gone(entry),
                    "line": entry.line,
                    "how": entry.how.as_str(),
                    "at": zones::shown(&entry.at),
                },
                |_| Ok(()),
            )?;
        }
        return Ok(());
    }
    let header = ["table", "file", "rows", "bad", "read", "at", "state"].map(str::to_owned);
    let rows: Vec<Vec<Datum>> = entries.iter().map(|(table, entry)| row(table, entry)).collect();
    session.report(&"", |out| match rows.is_empty() {
        true => writeln!(out, "no file is imported (what comes from a pipe is not noted)"),
        false => table::write(out, &header, &rows),
    })
}

/// Whether nothing is at the path of a file any more: it was removed, or is elsewhere, which the
/// next import finds out.
fn is_gone(entry: &Entry) -> bool {
    !Path::new(&entry.disk.path).exists()
}

fn forget_gone(
    store: &Store,
    mut entries: Vec<(String, Entry)>,
    session: &mut Session,
) -> Result<(), Failure> {
    entries.retain(|(_, entry)| is_gone(entry));
    ledger::forget_all(store, &entries)?;
    let count = entries.len() as u64;
    session.report(&object! { "forgotten": count }, |out| {
        writeln!(out, "forgot {}, whose rows stay", human::plural(count, "file"))
    })
}

fn row(table: &str, entry: &Entry) -> Vec<Datum> {
    let text = |text: &str| Datum::Text(text.to_owned());
    let state = match entry.done {
        true if entry.is_open => "up to a last row that is not whole".to_owned(),
        true => "whole".to_owned(),
        false => {
            let again = if entry.again.is_some() { "counted again, and " } else { "" };
            let how = if entry.is_followed { "followed up to" } else { "broken off at" };
            format!("{again}{how} row {}", human::count(entry.read + entry.skip))
        }
    };
    let state = if is_gone(entry) { format!("{state}; gone") } else { state };
    vec![
        text(table),
        text(&entry.file),
        text(&human::count(entry.rows)),
        text(&human::count(entry.bad)),
        text(&human::bytes(entry.content.bytes)),
        text(&zones::shown(&entry.at)),
        text(&state),
    ]
}
