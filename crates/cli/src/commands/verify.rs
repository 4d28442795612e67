//! `folddb verify STORE [--deep]`: whether a store is intact. It works on stores that do not open,
//! and changes nothing on disk.

use std::ops::ControlFlow;

use folddb::Store;
use folddb::maintenance::{Finding, VerifyOptions, VerifyReport};

use crate::args::VerifyArgs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::human;
use crate::progress;
use crate::render::findings;
use crate::session::Session;

pub(crate) fn run(args: &VerifyArgs, session: &mut Session) -> Result<(), Failure> {
    if session.shared.is_some() {
        return Err(Failure::Usage("verify reads a closed store; leave the shell first".to_owned()));
    }
    let report = verify(&args.store, args.deep, session)?;
    session.report(&findings::report_json(&report), |out| {
        report.findings.iter().try_for_each(|finding| writeln!(out, "{finding}"))?;
        writeln!(out, "{}", summary(&report))
    })?;
    let is_sound = report.damage().next().is_none() && report.unfit().next().is_none();
    match is_sound {
        true if report.checked.parts_unread > 0 => Err(Failure::Reported(ExitCode::Refused)),
        true => Ok(()),
        false => Err(Failure::Reported(ExitCode::Damaged)),
    }
}

/// Verifies with a bar.
pub(crate) fn verify(path: &std::path::Path, deep: bool, session: &Session) -> Result<VerifyReport, Failure> {
    let bar = progress::bytes_bar(Some(0), "verifying");
    let how = VerifyOptions::default().deep(deep);
    let report = Store::verify_with(path, &how, &session.options(), |at| {
        progress::show_bytes(&bar, at);
        ControlFlow::Continue(()) // Ctrl-C ends the program: nothing is half made
    });
    bar.finish_and_clear();
    Ok(report?)
}

/// One line: what was checked, and the result.
pub(crate) fn summary(report: &VerifyReport) -> String {
    let checked = &report.checked;
    let looked = format!(
        "{} in {}, {} in {}, {} of the log",
        human::plural(checked.tables, "table"),
        human::plural(checked.parts, "part"),
        human::plural(checked.records, "record"),
        human::bytes(checked.bytes),
        match checked.batches {
            1 => "1 batch".to_owned(),
            batches => format!("{} batches", human::count(batches)),
        },
    );
    let found = report.damage().count();
    let but = match checked.batches_cut {
        0 => String::new(),
        1 => " except for a batch that the next opening removes".to_owned(),
        cut => format!(" except for {} batches that the next opening removes", human::count(cut)),
    };
    let unfit = report.unfit().count() as u64;
    match (found, report.deep) {
        (0, _) if unfit > 0 => format!(
            "no file is damaged{but}, and programs wrote values that do not fit their tables, in {}: {looked}. Neither a backup nor \
             a repair changes them. Put such keys again, or remove them: folddb delete STORE TABLE KEY, then \
             folddb compact STORE TABLE; or open the store with the fold and the types that wrote them",
            human::plural(unfit, "place"),
        ),
        (0, _) if checked.parts_unread > 0 => format!(
            "this build of FoldDB cannot read {}, which may be whole or damaged; what it has read is whole{but}: {looked}. \
             Verify with a build that has the feature or is of the version named above",
            human::plural(checked.parts_unread, "part"),
        ),
        (0, true) => format!("whole{but}: {looked}; every record was read"),
        (0, false) => format!("whole{but} as far as it was read: {looked}; --deep reads every record"),
        (found, _) if report.damage().all(Finding::is_of_feeds_only) => format!(
            "damaged: {}, which costs feeds alone; {looked}. The tables are as they were written: begin these feeds again, with \
             the present rows: folddb watch STORE FEED --again",
            human::plural(found as u64, "place"),
        ),
        (found, _) => {
            let places = human::plural(found as u64, "place");
            match report.store_id {
                Some(_) => format!(
                    "damaged: {places}; {looked}. Restore a backup, or salvage what is whole: folddb repair STORE NEW{}",
                    match unfit {
                        0 => "",
                        _ => ". A program wrote the unfit values: put such keys again, or delete them",
                    }
                ),
                None => format!(
                    "damaged: {places}; no table was checked, since the list of tables is lost. Restore a backup, or \
                     salvage the tables that the list of a backup names: folddb repair STORE NEW --list-from BACKUP"
                ),
            }
        }
    }
}

#[cfg(test)]
mod tests;
