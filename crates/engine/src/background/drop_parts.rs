//! Drops parts as a whole if all their values have expired, or range deletes cover all their keys.
//! Of the latter at most what is between the range deletes is read, see `covered`.
//!
//! The same edit removes range deletes that hide nothing afterwards.
//!
//! Called by `merge`, before it plans.

use std::collections::HashSet;
use std::sync::Arc;

use folddb_base::ids::RunId;
use folddb_base::{FileNumber, Result};
use folddb_layout::manifest_edit::Change;

use crate::background::covered::{self, Applying};
use crate::background::state::Background;
use crate::background::{expire, ranges};
use crate::edit::install;
use crate::edit::install::Installed;
use crate::state::catalog::TableCore;
use crate::state::clock;
use crate::state::engine::Engine;
use crate::state::view::{PartView, RunView, TableView};

/// What is to be dropped: changes of the manifest, and their causes.
#[derive(Default)]
struct Dropping {
    changes: Vec<Change>,
    covered: HashSet<FileNumber>,
    records_expired: u64,
}

/// Removes parts without any live record from the list.
pub(crate) fn drop_parts(background: &Background, table: &Arc<TableCore>) -> Result<()> {
    let engine = &background.engine;
    if table.keeps_past {
        return Ok(()); // what has gone is a part of the past
    }
    covered::examine(engine, table);
    // Where nothing is to be dropped, no run is taken.
    if dropping(engine, table, &table.view(), |_| true).changes.is_empty() {
        return Ok(());
    }
    let (view, taken) = take_free_runs(background, table);
    let dropping = dropping(engine, table, &view, |run| taken.contains(&run.id));
    let installed = match dropping.changes.is_empty() {
        true => Ok(()),
        false => install::install(engine, table, dropping.changes, Installed::default()),
    };
    let mut merges = background.merges.lock();
    for run in taken {
        merges.busy.remove(&(table.id, run));
    }
    drop(merges);
    installed?;
    engine.counters.records_expired.add(dropping.records_expired);
    Ok(())
}

/// Takes the runs that no merge has, so that none takes them meanwhile.
fn take_free_runs(background: &Background, table: &TableCore) -> (Arc<TableView>, Vec<RunId>) {
    let mut merges = background.merges.lock();
    let view = table.view(); // a finished merge shows its output before it releases its inputs
    let free = view.runs.iter().map(|run| run.id).filter(|&run| merges.busy.insert((table.id, run)));
    let free = free.collect();
    (view, free)
}

/// What is to be dropped from these runs.
fn dropping(
    engine: &Engine,
    table: &TableCore,
    view: &TableView,
    may_touch: impl Fn(&RunView) -> bool,
) -> Dropping {
    let mut dropping = Dropping::default();
    let runs = || view.runs.iter().enumerate().filter(|(_, run)| may_touch(run));
    if !view.range_deletes.is_empty() {
        let applying = Applying::to(engine, table);
        runs().for_each(|(_, run)| note_covered(table, view, run, &applying, &mut dropping));
        if !dropping.covered.is_empty() {
            let is_gone = |part: &PartView| dropping.covered.contains(&part.file.number);
            let retired = ranges::retired_without(table, view, applying.newest_seq(), &is_gone);
            dropping.changes.extend(retired);
        }
    }
    if table.has_stamps {
        runs().for_each(|(index, _)| note_expired(engine, table, (view, index), &mut dropping));
    }
    dropping
}

/// Records of these keys in older parts are covered by the same range deletes, so none reappears.
fn note_covered(
    table: &TableCore,
    view: &TableView,
    run: &RunView,
    applying: &Applying,
    dropping: &mut Dropping,
) {
    for part in run.parts.iter().filter(|part| covered::is_covered(table, view, part, applying)) {
        let file = part.file.number;
        dropping.covered.insert(file);
        dropping.changes.push(Change::RemovePart { table: table.id, run: run.id, file });
    }
}

fn note_expired(
    engine: &Engine,
    table: &TableCore,
    (view, index): (&TableView, usize),
    dropping: &mut Dropping,
) {
    let run = &view.runs[index];
    // The clock is not read if nothing can have expired.
    if !run.parts.iter().any(|part| expire::deadline_of_all(part.file.part.facts()).is_some()) {
        return;
    }
    let sweep_ms = clock::sweepable_ms(engine, table, &|other| other.id == run.id);
    for part in &run.parts {
        let file = part.file.number;
        if !dropping.covered.contains(&file)
            && expire::is_over(part, sweep_ms)
            && !expire::covers_what_lasts(table, view, index, part, sweep_ms)
        {
            dropping.records_expired += part.file.part.facts().records;
            dropping.changes.push(Change::RemovePart { table: table.id, run: run.id, file });
        }
    }
}
