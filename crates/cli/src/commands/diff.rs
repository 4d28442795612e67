//! `folddb diff STORE OTHER [TABLE]`: the keys that differ between two stores. `sync` makes one
//! equal to the other. Hashed tables are skipped and reported.

use std::fmt;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::time::SystemTime;

use folddb::maintenance::{DiffReport, Difference};
use folddb::table_rules::TableKind;
use folddb::{AsOf, BytesTable, Head};
use serde_json::{Value, json};

use crate::args::DiffArgs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::human;
use crate::keys;
use crate::ranges;
use crate::render::json::{self, object};
use crate::session::{Opened, Session, is_reserved};

pub(crate) fn run(args: &DiffArgs, session: &mut Session) -> Result<(), Failure> {
    let stores = (session.read(&args.store)?, session.read_other(&args.other)?);
    let mut same = true;
    for name in tables_of((&stores.0, &stores.1), args.table.as_deref())? {
        let one = one_table(&name, &stores, args, session);
        same &= one.map_err(|failure| if same { failure } else { failure.with_answer(DIFFER) })?;
    }
    if same { Ok(()) } else { Err(Failure::Reported(DIFFER)) }
}

/// How a comparison of different stores ends.
const DIFFER: ExitCode = ExitCode::Damaged;

/// Reports something that makes them different.
fn report_different(
    session: &mut Session,
    line: &dyn fmt::Display,
    text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    session.report(line, text).map_err(|failure| failure.with_answer(DIFFER))
}

/// Compares a table, and returns whether it is equal in both.
fn one_table(
    name: &str,
    (first, second): &(Opened, Opened),
    args: &DiffArgs,
    session: &mut Session,
) -> Result<bool, Failure> {
    let (ours, theirs) = match (first.bytes_table(name), second.bytes_table(name)) {
        (Ok(ours), Ok(theirs)) => (ours, theirs),
        (Ok(_), Err(_)) => return only_in(session, name, &args.store.display().to_string()),
        _ => return only_in(session, name, &args.other.display().to_string()),
    };
    if is_hashed(&ours) || is_hashed(&theirs) {
        let (first, second) = (args.store.display(), args.other.display());
        let compare =
            format!("folddb digest {first} {name} --to FILE; folddb digest {second} {name} --against FILE");
        return not_compared(session, name, &compare);
    }
    match compare(&ours, &theirs, args, session) {
        Ok(same) => Ok(same),
        Err(failure) if args.table.is_some() => Err(failure),
        Err(failure) => {
            let why = failure.of_table()?;
            report_different(session, &json!({ "table": name, "compared": false, "reason": why }), |out| {
                writeln!(out, "table {name}: not compared: {why}")
            })?;
            Ok(false)
        }
    }
}

/// Reports different meanings of keys and values.
fn report_meanings(
    (ours, theirs): (&BytesTable, &BytesTable),
    session: &mut Session,
) -> Result<bool, Failure> {
    let (first, second) = (ours.rules().meaning(), theirs.rules().meaning());
    let line = json!({ "table": ours.name(), "means": { "first": first, "second": second } });
    report_rules(ours.name(), ("has rules with another meaning", &first, &second), &line, session)
}

/// Reports different rules of expiry: present values may be equal, but future writes will differ.
fn report_lifetimes(
    (ours, theirs): (&BytesTable, &BytesTable),
    session: &mut Session,
) -> Result<bool, Failure> {
    let [first, second] = [ours, theirs].map(|table| table.rules().as_table_rules().expire.to_string());
    let line = json!({ "table": ours.name(), "expire": { "first": first, "second": second } });
    report_rules(ours.name(), ("has different rules of expiry", &first, &second), &line, session)
}

/// Reports different rules of two tables.
fn report_rules(
    table: &str,
    (what, first, second): (&str, &str, &str),
    line: &Value,
    session: &mut Session,
) -> Result<bool, Failure> {
    if first == second {
        return Ok(true);
    }
    report_different(session, line, |out| {
        writeln!(out, "table {table}: {what}: in the first {first}; in the second {second}")
    })?;
    Ok(false)
}

/// The tables of either store, or the requested one, which one of them must have.
pub(crate) fn tables_of(
    (first, second): (&Opened, &Opened),
    only: Option<&str>,
) -> Result<Vec<String>, Failure> {
    let mut names = first.tables();
    names.extend(second.tables());
    names.sort();
    names.dedup();
    let Some(name) = only else {
        names.retain(|name| !is_reserved(name)); // notes of two stores are never the same
        return Ok(names);
    };
    if names.iter().any(|one| one == name) {
        return Ok(vec![name.to_owned()]);
    }
    let known: Vec<&str> = names.iter().map(String::as_str).filter(|name| !is_reserved(name)).collect();
    let (first, second) = (first.path().display(), second.path().display());
    let known = human::suggestion(name, &known);
    Err(Failure::NotFound(format!("neither {first} nor {second} has a table `{name}` ({known})")))
}

/// Whether a table is hashed, so that it cannot be compared row by row.
pub(crate) fn is_hashed(table: &BytesTable) -> bool {
    table.rules().as_table_rules().kind == TableKind::Hashed
}

/// Reports a hashed table, and what to do instead of comparing it.
fn not_compared(session: &mut Session, table: &str, instead: &str) -> Result<bool, Failure> {
    let line = json!({ "table": table, "compared": false, "reason": "hashed", "instead": instead });
    report_different(session, &line, |out| {
        writeln!(
            out,
            "table {table}: not compared: the keys of a hashed table have no order; instead: {instead}"
        )
    })?;
    Ok(false)
}

fn only_in(session: &mut Session, table: &str, store: &str) -> Result<bool, Failure> {
    report_different(session, &json!({ "table": table, "only_in": store }), |out| {
        writeln!(out, "table {table}: only in {store}")
    })?;
    Ok(false)
}

fn compare(
    ours: &BytesTable,
    theirs: &BytesTable,
    args: &DiffArgs,
    session: &mut Session,
) -> Result<bool, Failure> {
    let means_same = report_meanings((ours, theirs), session)?;
    let lasts_same = report_lifetimes((ours, theirs), session)?;
    // A time applies to both stores; a seq only to the first.
    let theirs_at = args.range.at.filter(|at| matches!(at, AsOf::Time(_)));
    let first = ranges::narrow(ours, &args.range)?;
    let second = ranges::narrow_at(theirs, &args.range, theirs_at)?;
    let (mut told, mut failure) = (0, None);
    let report = first.compare(second, |difference| {
        told += 1;
        if args.summary || args.limit.is_some_and(|limit| told > limit) {
            return ControlFlow::Continue(());
        }
        match report(&difference, (ours, theirs), session) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    let table = ours.name();
    let expires = [ours, theirs].iter().any(|table| table.rules().as_table_rules().expire.has_stamps());
    let is_same = means_same && lasts_same && report.is_same();
    let told = session.report(&summary(table, &report), |out| {
        writeln!(out, "table {table}: {}", in_words(&report, expires, means_same))
    });
    told.map_err(|failure| if is_same { failure } else { failure.with_answer(DIFFER) })?;
    Ok(is_same)
}

/// One key: `<` only the first store has it, `>` only the second, `|` both, with other values.
fn report(
    difference: &Difference,
    (ours, theirs): (&BytesTable, &BytesTable),
    session: &mut Session,
) -> Result<(), Failure> {
    let Difference { key, first, second, .. } = difference;
    let table = if first.is_some() { ours } else { theirs };
    let shown = keys::shown(table.rules(), key);
    let known = |head: &Option<Head>| {
        head.as_ref().map(|head| {
            let until = head.deadline.map(human::rfc3339);
            object! { "size": head.size_bytes, "hash": u64::from(head.hash), "deadline": until }
        })
    };
    let line = object! {
        "table": table.name(),
        "key": json::from_datum(&shown),
        "first": known(first),
        "second": known(second),
    };
    let (ours, theirs) = (first.as_ref(), second.as_ref());
    let deadlines = [ours, theirs].map(|head| head.and_then(|head| head.deadline));
    let words = |head: Option<&Head>| head.map_or_else(String::new, |head| value_in_words(head, deadlines));
    let shown = human::one_line(shown.to_string());
    report_different(session, &line, |out| match (ours, theirs) {
        (Some(_), None) => writeln!(out, "< {shown}  {}", words(ours)),
        (None, _) => writeln!(out, "> {shown}  {}", words(theirs)),
        _ => writeln!(out, "| {shown}  {} | {}", words(ours), words(theirs)),
    })
}

/// The length of a value, and its deadline.
fn value_in_words(head: &Head, deadlines: [Option<SystemTime>; 2]) -> String {
    let until = head.deadline.map(|at| format!(" until {}", deadline_in_words(at, deadlines)));
    human::bytes(head.size_bytes) + &until.unwrap_or_default()
}

/// One of two deadlines: to the second, or to the millisecond if they differ by less.
fn deadline_in_words(at: SystemTime, both: [Option<SystemTime>; 2]) -> String {
    let seconds = human::time(at);
    match both {
        [Some(one), Some(other)] if one != other && human::time(one) == human::time(other) => {
            human::rfc3339(at).replacen('T', " ", 1)
        }
        _ => seconds,
    }
}

/// The figures of a comparison.
pub(crate) fn summary(table: &str, report: &DiffReport) -> Value {
    json!({
        "table": table,
        "same": report.same,
        "only_first": report.only_first,
        "only_second": report.only_second,
        "differing": report.differing,
        "failing": report.failing,
    })
}

fn in_words(report: &DiffReport, expires: bool, means_same: bool) -> String {
    let kinds = [
        (report.only_first, "only in the first"),
        (report.only_second, "only in the second"),
        (report.differing, if expires { "with different values or deadlines" } else { "with other values" }),
        (report.failing, "whose fold fails"),
    ];
    let said: Vec<String> = kinds
        .iter()
        .filter(|(keys, _)| *keys > 0)
        .map(|(keys, what)| format!("{} {what}", human::count(*keys)))
        .collect();
    match said.is_empty() {
        true if !means_same => format!("{} with the same bytes", human::plural(report.same, "key")),
        true => format!("the same, {}", human::plural(report.same, "key")),
        false => format!("{} the same, {}", human::plural(report.same, "key"), said.join(", ")),
    }
}

#[cfg(test)]
#[path = "diff/tests.rs"]
mod tests;
