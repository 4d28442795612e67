//! Tells old snapshots with pinned files (`state::pinned_files`) about loaded and dropped tables.

use std::collections::BTreeSet;

use folddb_base::Seq;

use crate::state::catalog::TableCore;
use crate::state::engine::Engine;
use crate::state::pinned_files::InRuns;

/// A table was loaded, with rows of `seq`. Old snapshots at or after that seq see it, as young ones
/// do. The caller has held the manifest's lock since before the table existed, so that no snapshot
/// gets pinned files in between.
pub fn show_to_old_snapshots(engine: &Engine, table: &TableCore, seq: Seq) {
    let files = engine.boundaries.files_since(seq);
    if files.is_empty() {
        return;
    }
    let in_runs = InRuns::of(table);
    let of_each = files.iter().zip(std::iter::repeat(in_runs));
    of_each.for_each(|(files, in_runs)| in_runs.into_iter().for_each(|one| files.take_in(table.id, one)));
}

/// A table was dropped: releases the files that old snapshots pin of it.
pub(crate) fn forget_pinned_files(engine: &Engine, table: &TableCore) {
    engine.boundaries.all_files().iter().for_each(|files| {
        let gone = files.tables.lock().remove(&table.id);
        drop(gone);
    });
}

/// Bytes of parts and value files that only old snapshots keep.
pub fn own_file_bytes(engine: &Engine) -> u64 {
    let (mut parts, mut values) = (BTreeSet::new(), BTreeSet::new());
    let mut bytes = 0;
    for files in engine.boundaries.all_files() {
        let retired = files.part_files().into_iter().filter(|file| file.is_retired());
        let new = retired.filter(|file| parts.insert(file.number));
        bytes += new.map(|file| file.part.facts().file_bytes).sum::<u64>();
        bytes += files.segment_map.retired_bytes(&mut values);
    }
    bytes
}
