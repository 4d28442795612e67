//! `folddb compact STORE [TABLE...]`: merges all runs of a table into one, or a range of one table.
//! May be stopped at any moment; what is merged by then stays merged.

use folddb::{CompactProgress, TableStats};
use serde_json::{Value, json};

use crate::args::{CompactArgs, RangeArgs};
use crate::failure::Failure;
use crate::human;
use crate::interrupt;
use crate::progress;
use crate::ranges;
use crate::session::{Opened, Session};

pub(crate) fn run(args: &CompactArgs, session: &mut Session) -> Result<(), Failure> {
    let _hearing = session.shared.is_none().then(interrupt::hear); // a shell does this itself
    let store = session.write(&args.store)?;
    let tables = if args.tables.is_empty() { store.tables() } else { args.tables.clone() };
    for name in &tables {
        store.known_table(name)?;
    }
    check_range(args)?;
    let mut done = Vec::new();
    for name in &tables {
        done.push(compact(&store, name, &args.range)?);
    }
    store.close()?;
    let figures = |stats: &TableStats| json!({ "runs": stats.runs.len(), "records": stats.records, "disk_bytes": stats.disk_bytes });
    let report = |(before, after): &(TableStats, TableStats)| json!({ "table": after.name, "before": figures(before), "after": figures(after) });
    let report: Value = done.iter().map(report).collect();
    session.report(&report, |out| {
        done.iter().try_for_each(|(before, after)| {
            let (name, runs) = (&after.name, human::plural(before.runs.len() as u64, "run"));
            let (records, bytes) = (human::plural(after.records, "record"), human::bytes(after.disk_bytes));
            match args.range.is_all() {
                true => writeln!(out, "{name}: {runs} merged into {}; {records}, {bytes}", after.runs.len()),
                false => writeln!(out, "{name}: the range of {runs} merged; {records}, {bytes}"),
            }
        })
    })
}

/// A range is one of the present keys of one table.
fn check_range(args: &CompactArgs) -> Result<(), Failure> {
    if args.range.is_all() || (args.tables.len() == 1 && args.range.at.is_none()) {
        return Ok(());
    }
    let why = match args.range.at {
        Some(_) => "what is merged is the table as it is now: leave out --at",
        None => "a range is one of a table: name the table",
    };
    Err(Failure::Usage(why.to_owned()))
}

/// Merges a table, or a range of it; its figures before and after.
fn compact(store: &Opened, name: &str, range: &RangeArgs) -> Result<(TableStats, TableStats), Failure> {
    store.flush()?;
    let table = store.bytes_table(name)?;
    let before = table.stats()?;
    let bar = progress::share_bar(name);
    let report = |progress: CompactProgress| {
        let share = progress.bytes_done.saturating_mul(1000) / progress.bytes_total.max(1);
        bar.set_position(share.min(1000));
        interrupt::flow()
    };
    match range.is_all() {
        true => table.compact_with(report)?,
        false => table.compact_range_with(&ranges::narrow(&table, range)?, report)?,
    }
    bar.finish_and_clear();
    interrupt::check()?; // the running step is complete
    Ok((before, store.bytes_table(name)?.stats()?))
}
