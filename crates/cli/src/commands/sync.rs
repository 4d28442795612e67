//! `folddb sync SOURCE TARGET [TABLE]`: makes the tables of one store, or a range of one, what those of another are. Only what differs is
//! written. A table that is not there yet is made, with its indexes. Hashed tables are passed over, and told of.

use folddb::{BytesTable, ErrorKind, SyncOptions, SyncReport};
use serde_json::json;
use std::path::Path;

use crate::args::SyncArgs;
use crate::commands::{diff, scan};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::human;
use crate::session::{Opened, Session};

pub(crate) fn run(args: &SyncArgs, session: &mut Session) -> Result<(), Failure> {
    let place = |path: &Path| path.canonicalize().ok();
    if place(&args.source).is_some_and(|source| place(&args.target) == Some(source)) {
        let message =
            format!("{} is one store, which is what it is: name another one", args.source.display());
        return Err(Failure::Usage(message));
    }
    let from = session.read(&args.source)?;
    let to = session.write_other(&args.target)?;
    let mut all = true;
    for name in diff::tables_of(&from, &to, args.table.as_deref())? {
        let theirs = match from.bytes_table(&name) {
            Ok(theirs) => theirs,
            Err(error) if error.kind() == ErrorKind::UnknownTable => {
                // A table that only `to` has is nobody's copy; `drop` is for that.
                session.report(&json!({ "table": name, "left": true }), |out| {
                    writeln!(out, "table {name}: only in {}, left as it is", args.target.display())
                })?;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if diff::is_hashed(&theirs) || to.bytes_table(&name).is_ok_and(|ours| diff::is_hashed(&ours)) {
            pass_over(session, &name, args)?;
            all = false;
            continue;
        }
        let report = bring_up((&from, &to), &theirs, args)?;
        all &= report.found.failing == 0;
        tell(session, &name, &report)?;
    }
    to.close()?;
    if all { Ok(()) } else { Err(Failure::Told(ExitCode::Damaged)) }
}

/// Tells of a hashed table how else it may be brought over.
fn pass_over(session: &mut Session, table: &str, args: &SyncArgs) -> Result<(), Failure> {
    let (source, target) = (args.source.display(), args.target.display());
    let instead = format!("folddb dump {source} {table} --to FILE; folddb load {target} FILE --over");
    let line = json!({ "table": table, "synced": false, "reason": "hashed", "instead": instead });
    session.report(&line, |out| {
        writeln!(
            out,
            "table {table}: left as it is: a hashed table has no order of keys; to set all that {source} has: {instead}"
        )
    })
}

fn bring_up(
    (from, to): (&Opened, &Opened),
    theirs: &BytesTable,
    args: &SyncArgs,
) -> Result<SyncReport, Failure> {
    let ours = match to.bytes_table(theirs.name()) {
        Ok(ours) => ours,
        Err(error) if error.kind() == ErrorKind::UnknownTable => {
            let rules = theirs.rules().rules.clone();
            let rules =
                from.indexes(theirs.name())?.into_iter().fold(rules, |rules, index| rules.index(index.rule));
            to.create_table(theirs.name(), rules)?
        }
        Err(error) => return Err(error.into()),
    };
    let options = SyncOptions::default().keep_others(args.keep);
    Ok(to.bring_up(scan::narrow(&ours, &args.range)?, scan::narrow(theirs, &args.range)?, &options)?)
}

fn tell(session: &mut Session, table: &str, report: &SyncReport) -> Result<(), Failure> {
    let line = json!({
        "table": table,
        "same": report.found.same,
        "set": report.set,
        "value_bytes": report.value_bytes,
        "deleted": report.deleted,
        "failing": report.found.failing,
    });
    session.report(&line, |out| {
        let SyncReport { found, set, value_bytes, deleted, .. } = report;
        write!(out, "table {table}: set {} ({}), ", human::plural(*set, "key"), human::bytes(*value_bytes))?;
        write!(out, "deleted {}, {} were the same", human::count(*deleted), human::count(found.same))?;
        match found.failing {
            0 => writeln!(out),
            failing => writeln!(out, "; {} whose fold fails were left", human::count(failing)),
        }
    })
}
