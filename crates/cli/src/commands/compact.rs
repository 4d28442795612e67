//! `folddb compact STORE [TABLE...]`: merges all runs of a table into one. May be stopped at any
//! moment; what is merged by then stays merged.

use folddb::TableStats;
use serde_json::{Value, json};

use crate::args::CompactArgs;
use crate::failure::Failure;
use crate::human;
use crate::interrupt;
use crate::progress;
use crate::session::{Opened, Session};

pub(crate) fn run(args: &CompactArgs, session: &mut Session) -> Result<(), Failure> {
    let _hearing = session.shared.is_none().then(interrupt::hear); // a shell does this itself
    let store = session.write(&args.store)?;
    let tables = if args.tables.is_empty() { store.tables() } else { args.tables.clone() };
    for name in &tables {
        store.known_table(name)?;
    }
    let mut done = Vec::new();
    for name in &tables {
        done.push(compact(&store, name)?);
    }
    store.close()?;
    let figures = |stats: &TableStats| json!({ "runs": stats.runs.len(), "records": stats.records, "disk_bytes": stats.disk_bytes });
    let report = |(before, after): &(TableStats, TableStats)| json!({ "table": after.name, "before": figures(before), "after": figures(after) });
    let report: Value = done.iter().map(report).collect();
    session.report(&report, |out| {
        done.iter().try_for_each(|(before, after)| {
            let (name, runs) = (&after.name, human::plural(before.runs.len() as u64, "run"));
            let (records, bytes) = (human::plural(after.records, "record"), human::bytes(after.disk_bytes));
            writeln!(out, "{name}: {runs} merged into {}; {records}, {bytes}", after.runs.len())
        })
    })
}

/// Merges a table; its figures before and after.
fn compact(store: &Opened, name: &str) -> Result<(TableStats, TableStats), Failure> {
    store.flush()?;
    let before = store.bytes_table(name)?.stats()?;
    let bar = progress::share_bar(name);
    store.bytes_table(name)?.compact_with(|progress| {
        let share = progress.bytes_done.saturating_mul(1000) / progress.bytes_total.max(1);
        bar.set_position(share.min(1000));
        interrupt::flow()
    })?;
    bar.finish_and_clear();
    interrupt::check()?; // the running step is complete
    Ok((before, store.bytes_table(name)?.stats()?))
}
