//! `folddb sync SOURCE TARGET [TABLE]`: makes the tables of one store, or a range of one, equal to
//! those of another. Only differences are written. A missing table is created, with its indexes.
//! Hashed tables are skipped and reported.

use folddb::maintenance::{SyncOptions, SyncReport};
use folddb::{BytesTable, ErrorKind, Seq};
use serde_json::json;

use crate::args::SyncArgs;
use crate::commands::diff;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::human;
use crate::import::ledger;
use crate::interrupt;
use crate::messages;
use crate::ranges;
use crate::session::{Opened, Session, is_one_place};

pub(crate) fn run(args: &SyncArgs, session: &mut Session) -> Result<(), Failure> {
    if is_one_place(&args.source, &args.target) {
        let message = format!("{} is the source and the target: name two stores", args.source.display());
        return Err(Failure::Usage(message));
    }
    let _hearing = session.shared.is_none().then(interrupt::hear); // a shell does this itself
    let from = session.read(&args.source)?;
    let to = session.write_other(&args.target)?;
    // Everything that may be refused is checked before anything is written.
    let names = diff::tables_of((&from, &to), args.table.as_deref())?;
    let plans = names.iter().map(|name| plan((&from, &to), name, args)).collect::<Result<Vec<_>, _>>()?;
    let (before, mut all) = (state(&to), true);
    for (name, plan) in names.iter().zip(plans) {
        all &= match plan {
            Plan::OnlyHere => report_left(session, name, args)?,
            Plan::Hashed => pass_over(session, name, args)?,
            Plan::Refused(why) => report_refused(session, name, &why)?,
            Plan::BringUp(theirs) => {
                let report = synchronize(&to, &theirs, args);
                let report = report.map_err(|failure| ended_early(failure, before, state(&to)))?;
                report_synced(session, name, &report)?;
                if args.range.is_all() && !args.keep {
                    ledger::copy(&from, &to, name)?; // its rows are those of the same files now
                }
                report.found.failing == 0
            }
        };
    }
    to.close()?;
    if all { Ok(()) } else { Err(Failure::Reported(ExitCode::Damaged)) }
}

/// How a sync fails that may have written: one that was stopped says how much is in, which stays.
fn ended_early(failure: Failure, before: (Seq, usize), now: (Seq, usize)) -> Failure {
    match failure {
        Failure::Interrupted => {
            let written = human::plural(u64::from(now.0) - u64::from(before.0), "change");
            messages::print(&format!(
                "folddb: stopped by Ctrl-C: {written} of the target were made and stay; the next sync makes the rest"
            ));
            Failure::Reported(ExitCode::Interrupted)
        }
        other => other.after(now != before),
    }
}

/// What the command changes: the records of a store, and its tables.
fn state(store: &Opened) -> (Seq, usize) {
    (store.last_seq(), store.tables().len())
}

/// What to do with a table.
enum Plan {
    /// Nothing: only the target has it.
    OnlyHere,
    /// Nothing: it is hashed here or there.
    Hashed,
    /// Nothing: why it cannot be synced.
    Refused(String),
    BringUp(BytesTable),
}

fn plan(stores: (&Opened, &Opened), name: &str, args: &SyncArgs) -> Result<Plan, Failure> {
    let theirs = match stores.0.bytes_table(name) {
        Ok(theirs) => theirs,
        Err(error) if error.kind() == ErrorKind::TableNotFound => return Ok(Plan::OnlyHere),
        Err(error) => return Err(error.into()),
    };
    if diff::is_hashed(&theirs) || stores.1.bytes_table(name).is_ok_and(|ours| diff::is_hashed(&ours)) {
        return Ok(Plan::Hashed);
    }
    match check(stores.1, &theirs, args) {
        Ok(()) => Ok(Plan::BringUp(theirs)),
        Err(failure) if args.table.is_some() => Err(failure),
        Err(failure) => failure.of_table().map(Plan::Refused),
    }
}

/// Fails if the table cannot be synced.
fn check(to: &Opened, theirs: &BytesTable, args: &SyncArgs) -> Result<(), Failure> {
    let from = ranges::narrow(theirs, &args.range)?;
    match to.bytes_table(theirs.name()) {
        Ok(ours) => to.check_synchronize(&ranges::narrow_at(&ours, &args.range, None)?, &from)?,
        Err(error) if error.kind() == ErrorKind::TableNotFound => {
            theirs.rules().check_writable()?; // needed to create it
            from.limit(0).rows().map(drop)?; // checks the scan for errors
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// A table that only the target has is left; `drop` removes it.
fn report_left(session: &mut Session, table: &str, args: &SyncArgs) -> Result<bool, Failure> {
    session.report(&json!({ "table": table, "left": true }), |out| {
        writeln!(out, "table {table}: only in {}, left as it is", args.target.display())
    })?;
    Ok(true)
}

fn report_refused(session: &mut Session, table: &str, why: &str) -> Result<bool, Failure> {
    session.report(&json!({ "table": table, "synced": false, "reason": why }), |out| {
        writeln!(out, "table {table}: left as it is: {why}")
    })?;
    Ok(false)
}

/// Reports how a hashed table can be copied otherwise.
fn pass_over(session: &mut Session, table: &str, args: &SyncArgs) -> Result<bool, Failure> {
    let (source, target) = (args.source.display(), args.target.display());
    let instead = format!("folddb dump {source} {table} --to FILE; folddb load {target} FILE --over");
    let line = json!({ "table": table, "synced": false, "reason": "hashed", "instead": instead });
    session.report(&line, |out| {
        writeln!(
            out,
            "table {table}: left as it is: the keys of a hashed table have no order; to put all that {source} has: {instead}"
        )
    })?;
    Ok(false)
}

fn synchronize(to: &Opened, theirs: &BytesTable, args: &SyncArgs) -> Result<SyncReport, Failure> {
    let ours = match to.bytes_table(theirs.name()) {
        Ok(ours) => ours,
        Err(error) if error.kind() == ErrorKind::TableNotFound => {
            let rules = theirs.rules().as_table_rules().clone();
            let rules = theirs.indexes().into_iter().fold(rules, |rules, index| rules.index(index.rule));
            to.create_bytes_table(theirs.name(), rules)?
        }
        Err(error) => return Err(error.into()),
    };
    let options = SyncOptions::default().keep_others(args.keep);
    // The moment applies to the source; the target is always the present.
    let to_scan = ranges::narrow_at(&ours, &args.range, None)?;
    Ok(to.synchronize(to_scan, ranges::narrow(theirs, &args.range)?, &options)?)
}

fn report_synced(session: &mut Session, table: &str, report: &SyncReport) -> Result<(), Failure> {
    let line = json!({
        "table": table,
        "same": report.found.same,
        "put": report.put,
        "value_bytes": report.value_bytes,
        "deleted": report.deleted,
        "failing": report.found.failing,
    });
    session.report(&line, |out| {
        let SyncReport { found, put, value_bytes, deleted, .. } = report;
        write!(out, "table {table}: put {} ({}), ", human::plural(*put, "key"), human::bytes(*value_bytes))?;
        write!(out, "deleted {}, {} were the same", human::count(*deleted), human::count(found.same))?;
        match found.failing {
            0 => writeln!(out),
            failing => writeln!(out, "; {} whose fold fails were left", human::count(failing)),
        }
    })
}
