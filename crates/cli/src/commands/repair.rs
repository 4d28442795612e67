//! `folddb repair STORE NEW`: salvages the intact data of a damaged store into a new one. The old
//! one is only read.

use folddb::Store;
use folddb::maintenance::{ByteProgress, RepairOptions, RepairReport};
use serde_json::{Value, json};

use crate::args::RepairArgs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::human;
use crate::interrupt;
use crate::progress;
use crate::render::findings::{finding_json, report_json};
use crate::session::Session;

pub(crate) fn run(args: &RepairArgs, session: &mut Session) -> Result<(), Failure> {
    if session.shared.is_some() {
        return Err(Failure::Usage("repair reads a closed store; leave the shell first".to_owned()));
    }
    let bar = progress::bytes_bar(Some(0), "salvaging");
    let how = RepairOptions::default().past_holes(args.past_holes).list_from(args.list_from.clone());
    let how = args.rebuild_index.iter().fold(how, |how, table| how.rebuild_index(table));
    let _hearing = interrupt::hear();
    let shown = |at: ByteProgress| {
        progress::show_bytes(&bar, at);
        interrupt::flow()
    };
    let report =
        session.once_unlocked(|| Store::repair_with(&args.store, &args.new, &how, &session.options(), shown));
    bar.finish_and_clear();
    let report = report?;
    session.report(&as_json(&report), |out| {
        report.findings.iter().try_for_each(|finding| writeln!(out, "{finding}"))?;
        writeln!(out, "{}", summary(&report, &args.new.display().to_string()))
    })?;
    match report.is_complete() && report.verified.damage().next().is_none() {
        true => Ok(()),
        false => Err(Failure::Reported(ExitCode::Damaged)),
    }
}

pub(crate) fn summary(report: &RepairReport, to: &str) -> String {
    let parts = report.parts_whole + report.parts_salvaged;
    let saved = format!(
        "{} in {}, and {} of the log, are in {to}",
        human::plural(report.records, "record"),
        human::plural(parts, "part"),
        match report.batches {
            1 => "1 batch".to_owned(),
            batches => format!("{} batches", human::count(batches)),
        },
    );
    let verified = &report.verified;
    let checked = match (verified.damage().next(), verified.unfit().next()) {
        (Some(_), _) => "but it does not verify: run verify --deep on it and report this",
        (None, Some(_)) => {
            "every record of it was read back. Some values do not fit their tables, as in the old store: verify --deep names them; \
             put them again, or delete them"
        }
        (None, None) => "every record of it was read back",
    };
    match report.is_complete() {
        true => format!("nothing is lost: {saved}; {checked}"),
        false if report.records_lost > 0 => {
            format!("lost: {}; {saved}; {checked}", human::plural(report.records_lost, "record"))
        }
        false => format!("what is lost is listed above; {saved}; {checked}"),
    }
}

fn as_json(report: &RepairReport) -> Value {
    json!({
        "complete": report.is_complete(),
        "parts_whole": report.parts_whole,
        "parts_salvaged": report.parts_salvaged,
        "parts_lost": report.parts_lost,
        "records": report.records,
        "records_lost": report.records_lost,
        "batches": report.batches,
        "batches_left": report.batches_left,
        "findings": report.findings.iter().map(finding_json).collect::<Value>(),
        "verified": report_json(&report.verified),
    })
}
