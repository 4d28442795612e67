//! Parts whose values have all expired are dropped as a whole, unread.

use std::sync::Arc;

use folddb_base::Result;
use folddb_layout::manifest_edit::Change;

use crate::background::expire;
use crate::background::state::Background;
use crate::edit::install;
use crate::edit::install::Installed;
use crate::state::catalog::TableCore;
use crate::state::clock;

/// Removes parts in which everything has expired from the list.
pub(crate) fn drop_expired(background: &Background, table: &Arc<TableCore>) -> Result<()> {
    let engine = &background.engine;
    if table.keeps_past {
        return Ok(()); // expired values are part of the past
    }
    let view = table.view();
    let mut taken = Vec::new();
    let mut changes = Vec::new();
    let mut records = 0;
    for (index, run) in view.runs.iter().enumerate().rev() {
        // The clock is not read if nothing can have expired.
        if !run.parts.iter().any(|part| expire::deadline_of_all(part.file.part.facts()).is_some()) {
            continue;
        }
        // If no merge has it, none gets it in between.
        if !background.merges.lock().busy.insert((table.id, run.id)) {
            continue;
        }
        taken.push(run.id);
        let sweep_ms = clock::sweepable_ms(engine, table, &|other| other.id == run.id);
        for part in &run.parts {
            if expire::is_over(part, sweep_ms)
                && !expire::covers_what_lasts(table, &view, index, part, sweep_ms)
            {
                records += part.file.part.facts().records;
                changes.push(Change::RemovePart { table: table.id, run: run.id, file: part.file.number });
            }
        }
    }
    let dropped = match changes.is_empty() {
        true => Ok(()),
        false => install::install(engine, table, changes, Installed::default()),
    };
    let mut merges = background.merges.lock();
    for run in taken {
        merges.busy.remove(&(table.id, run));
    }
    dropped?;
    engine.counters.records_expired.add(records);
    Ok(())
}
