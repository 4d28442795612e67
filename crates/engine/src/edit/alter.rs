//! Altering the rules of a table: one edit of the manifest, then the rules that all see.
//!
//! ```text
//!   changes_to     which rules differ, and whether each may be altered   crate `rules`
//!   edit           the table has these rules, and parts below this number are outdated: durable
//!   set_rules      flushes, merges and writes follow them
//! ```
//!
//! A part has either all of the old rules or all of the new ones, and its number says which: see
//! `install::new_part`. So a running merge may finish, and those of its parts that were begun
//! before count as outdated. A crash before the edit is durable leaves the old rules, one after it
//! the new ones; in between nothing has been written by the new ones.

use std::sync::Arc;

use folddb_base::{Error, FileNumber, Result, Seq};
use folddb_layout::manifest_edit::Change;
use folddb_rules::Keep;
use folddb_rules::table_rules::{Applies, BoundRules, RuleChange, StoredRules, TableRules};

use crate::edit::install;
use crate::state::catalog::TableCore;
use crate::state::engine::Engine;
use crate::state::manifest::Manifest;
use crate::state::{clock, log_sync};

/// Gives a table the rules that `change` makes of its present ones. `change` is called without
/// locks, and again if another thread has altered them in between.
///
/// # Errors
/// As `BytesTable::alter`.
pub fn alter(
    engine: &Engine,
    table: &TableCore,
    change: &mut dyn FnMut(TableRules) -> TableRules,
) -> Result<Vec<RuleChange>> {
    let in_table = |error: Error| error.context(format!("table `{}`", table.name));
    loop {
        table.check_alive()?;
        table.check_takes_writes()?;
        let (before, rules) = (table.present(), table.rules_with_indexes());
        let wanted = change(rules.clone());
        let changes = rules.changes_to(&wanted).map_err(in_table)?;
        if changes.is_empty() {
            return Ok(changes);
        }
        wanted.validate(&engine.options.custom).map_err(in_table)?;
        let mut stored = wanted;
        stored.indexes.clear(); // each is kept in its own table
        let bound = Arc::new(stored.bind(&engine.options.custom).map_err(in_table)?);
        let mut manifest = engine.manifest.lock();
        if Arc::ptr_eq(&before, &table.present()) {
            install_rules(engine, &mut manifest, table, bound, &changes)?;
            return Ok(changes);
        }
    }
}

/// Writes the edit, and lets all follow the rules.
fn install_rules(
    engine: &Engine,
    manifest: &mut Manifest,
    table: &TableCore,
    bound: Arc<BoundRules>,
    changes: &[RuleChange],
) -> Result<()> {
    engine.check_open()?;
    engine.check_readable(table)?;
    engine.health.check_writable(false)?;
    let _alone = table.altering.write();
    let (outdated_before, kept_since) = marks(engine, manifest, (table, &bound), changes);
    let rules_text = bound.rules.to_string();
    let mut edit = vec![Change::AlterTable { table: table.id, rules_text, outdated_before, kept_since }];
    edit.extend(install::numbers_change(engine, manifest.state()));
    edit.extend(clock::times_change(engine, manifest.state()));
    manifest.append(&edit).inspect_err(|error| log_sync::note_write_failure(engine, error))?;
    table.note_altered(outdated_before, kept_since);
    table.set_rules(bound);
    engine.work.changed.lock().insert(table.id); // a shorter window may make merges due
    engine.bell.ring();
    Ok(())
}

/// Below which number parts are outdated once these rules are altered, and up to where the past may
/// have been folded. No part gets a number meanwhile, and no merge determines what it keeps.
fn marks(
    engine: &Engine,
    manifest: &Manifest,
    (table, bound): (&TableCore, &BoundRules),
    changes: &[RuleChange],
) -> (FileNumber, Seq) {
    let has = manifest.state().tables.get(&table.id);
    let (mut outdated_before, mut kept_since) =
        has.map_or((FileNumber(0), 0), |state| (state.outdated_before, state.kept_since));
    if changes.iter().any(|change| change.applies == Applies::ByMerges) {
        outdated_before = engine.numbers.take();
    }
    // A shorter window needs none: one that is longer than it will look at it then. Whoever holds a
    // moment of the past goes on reading it.
    if let (Keep::Window(has), Keep::Window(wants)) = (table.keep(), bound.rules.keep)
        && wants > has
    {
        kept_since = kept_since.max(clock::kept_since(engine, table, clock::now_ms(engine)));
    }
    (outdated_before, kept_since)
}
