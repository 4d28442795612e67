//! Replayed records are in parts; one edit installs these and records that the old log is not
//! needed.

use std::collections::BTreeMap;
use std::sync::Arc;

use folddb_base::pointer::VALUE_ALIGN;
use folddb_base::{ErrorKind, FileNumber, Result};
use folddb_layout::manifest_edit::Change;
use folddb_manifest::{ArchivedLog, LossCause};
use folddb_value_log::ValuesEnd;
use folddb_value_log::directories::count_value_files;

use crate::background::hash_checkpoint;
use crate::background::hash_checkpoint::SavedIndex;
use crate::edit::feeds;
use crate::edit::feeds::is_held_for_feeds;
use crate::edit::install;
use crate::edit::install::Installed;
use crate::recovery::log::record_log_start;
use crate::recovery::replay::Replay;
use crate::recovery::rewrites::{Rewrites, rewrite_all};
use crate::state::catalog::TableCore;
use crate::state::engine::Engine;
use crate::state::hash_index::{Hashed, low_bits};
use crate::values::segments;
use crate::values::segments::{seal_change, seal_directory_change};

/// Value segments from before an opening.
#[derive(Default)]
struct OldValues {
    /// Segments that nothing points to.
    unused: Vec<FileNumber>,
    /// Segments that are complete.
    sealed: Vec<ValuesEnd>,
}

/// Writes replayed records to runs, and in one edit installs these and records that the old
/// segments are not needed: a batch may be in several tables. Then the old segments are removed.
pub(crate) fn install_replayed(engine: &Engine, replayed: Replay) -> Result<()> {
    let Replay { end_lsn, old_segments, kept, mut rewritten, .. } = replayed;
    let written = rewrite_all(engine, &mut rewritten);
    let saved = written.and_then(|()| save_all_replayed(engine));
    let saved = saved.inspect_err(|_| rewritten.discard())?;
    let mut changes = rewritten.take_changes();
    changes.extend(saved.iter().flat_map(SavedIndex::changes));
    let old_values = look_over_values(engine, &rewritten, &mut changes);
    changes.extend(kept.map(|ArchivedLog { file, first_lsn, next_lsn }| Change::ArchiveLog {
        file,
        first_lsn,
        next_lsn,
    }));
    record_log_start(engine, end_lsn, changes).inspect_err(|error| {
        if error.kind() == ErrorKind::NoSpace {
            rewritten.discard(); // after any other failure the edit may be on the disk
            saved.iter().for_each(SavedIndex::discard);
            kept.iter().for_each(|kept| feeds::remove_kept(engine, kept.file));
        }
    })?;
    saved.iter().for_each(SavedIndex::adopt);
    engine.values.files.retire(&old_values.unused);
    // All pointers to the existing segments are in parts.
    let state = Arc::clone(engine.manifest.lock().state());
    let sealed = state.values.iter().filter(|(_, end)| end.is_some()).map(|(&number, _)| number);
    let (held, free): (Vec<FileNumber>, Vec<FileNumber>) =
        sealed.partition(|&number| is_held_for_feeds(&state, number));
    engine.values.settled.lock().extend(free.into_iter().chain(state.relocated.keys().copied()));
    engine.values.fences.lock().extend(held.into_iter().map(|number| (number, end_lsn)));
    old_values.sealed.iter().for_each(|&end| engine.values.log.cut(end));
    for table in engine.catalog().all() {
        let parts = rewritten.of(table).flat_map(|one| one.written.parts.iter().cloned()).collect();
        if let Some(state) = engine.manifest.lock().state().tables.get(&table.id) {
            install::show(engine, table, state, &Installed { parts, flushed: None });
        }
    }
    let lost = feeds::adopt_history(engine, &old_segments, end_lsn)?;
    let lost: Vec<_> = lost.iter().map(|name| (&name[..], LossCause::Gone)).collect();
    feeds::lose_feeds(engine, &lost)
}

/// Saves the indexes with replayed changes.
fn save_all_replayed(engine: &Engine) -> Result<Vec<SavedIndex>> {
    let mut saved: Vec<SavedIndex> = Vec::new();
    for table in engine.catalog().all() {
        let one = hash_checkpoint::save_replayed(engine, table);
        saved.extend(one.inspect_err(|_| saved.iter().for_each(SavedIndex::discard))?);
    }
    Ok(saved)
}

/// Updates the value segments now that all pointers are in parts: those that nothing points to are
/// removed, and the others are sealed.
fn look_over_values(engine: &Engine, rewritten: &Rewrites, changes: &mut Vec<Change>) -> OldValues {
    let manifest = engine.manifest.lock();
    let mut ends: BTreeMap<FileNumber, u64> = BTreeMap::new();
    let catalog = engine.catalog();
    let views: Vec<_> = catalog.all().map(|table| table.part_files()).collect();
    let new_parts = rewritten.0.iter().flat_map(|one| &one.written.parts);
    for part in views.iter().flat_map(BTreeMap::values).chain(new_parts) {
        for used in &part.part.facts().values {
            let end = ends.entry(FileNumber(u64::from(used.segment))).or_default();
            *end = (*end).max(used.end.saturating_mul(VALUE_ALIGN));
        }
    }
    let index =
        |table: &Arc<TableCore>| table.hashed.as_ref().map_or(0, |hashed| hashed.index.facts().misfits);
    let has_misfits = catalog.all().map(index).sum::<u64>() > 0;
    for (low, used) in catalog.all().filter_map(|table| table.hashed.as_ref()).flat_map(Hashed::segments) {
        let mut listed = manifest.state().values.keys().chain(manifest.state().relocated.keys());
        let number = listed.find(|number| low_bits(number.0) == low);
        if let (Some(&number), true) = (number, used.tally.records > 0 || has_misfits) {
            let end = ends.entry(number).or_default();
            *end = (*end).max(used.end);
        }
    }
    let mut old = OldValues::default();
    for (&number, sealed) in &manifest.state().values {
        let is_held = is_held_for_feeds(manifest.state(), number);
        match ends.get(&number) {
            found if manifest.state().is_directory(number) && (is_held || found.is_some()) => {
                // Files counted in excess are dead, and found when the directory is swept.
                let counted =
                    sealed.is_none().then(|| count_value_files(&*engine.host.files, &engine.dir, number));
                changes.extend(counted.into_iter().flatten().map(|end| seal_directory_change(&end)));
            }
            _ if is_held && sealed.is_some() => {}
            _ if is_held => {
                // Its valid length is not known without reading the log that feeds still have to
                // give.
                let end = segments::segment_bytes(engine, manifest.state(), number);
                old.sealed.push(ValuesEnd { number, end });
            }
            None => {
                changes.push(Change::RemoveValues { segment: number });
                old.unused.push(number);
            }
            Some(&end) if sealed.is_none() => old.sealed.push(ValuesEnd { number, end }),
            Some(_) => {}
        }
    }
    for &number in manifest.state().relocated.keys().filter(|number| !ends.contains_key(number)) {
        changes.push(Change::RemoveValues { segment: number });
        old.unused.push(number);
    }
    changes.extend(old.sealed.iter().map(seal_change));
    old
}
