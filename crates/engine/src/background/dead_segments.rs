//! Value segments that nothing points to any more are removed as a whole.

use std::collections::BTreeSet;
use std::sync::Arc;

use folddb_base::{FileNumber, Result, counted};
use folddb_host::sync::atomic::Ordering;
use folddb_manifest::{Change, State};

use crate::background::reclaim_job::freed_bytes;
use crate::background::{hash_checkpoint, live_values};
use crate::state::engine::Engine;
use crate::state::log_sync;
use crate::values::segments;

// ---- dead segments ------------------------------------------------------------------------------

/// Removes the segments that nothing points to; returns how many, if any. Cheap if nothing has
/// changed.
pub(crate) fn drop_dead_values(engine: &Engine) -> Result<Option<String>> {
    let installs = engine.values.installs.load(Ordering::Acquire);
    if engine.values.looked.load(Ordering::Acquire) == installs || engine.health.cause().is_some() {
        return Ok(None);
    }
    let dropped = drop_dead_now(engine)?;
    engine.values.looked.store(installs, Ordering::Release); // not after a failure: it is tried again
    Ok(dropped)
}

pub(crate) fn drop_dead_now(engine: &Engine) -> Result<Option<String>> {
    let mut manifest = engine.manifest.lock(); // no part is installed in between
    let dead = dead_segments(engine, manifest.state());
    if dead.is_empty() {
        return Ok(None);
    }
    // The present index does not point there. Sync, so that a power cut does not bring back one
    // that does.
    log_sync::sync_for_hashed(engine)?;
    let before = Arc::clone(manifest.state());
    let changes: Vec<Change> = dead.iter().map(|&segment| Change::RemoveValues { segment }).collect();
    engine.check_open()?;
    manifest.append(&changes).inspect_err(|error| log_sync::note_write_failure(engine, error))?;
    segments::note_listed_values(engine, &manifest);
    engine.counters.value_bytes_given_back.add(freed_bytes(&before, manifest.state()));
    segments::begin_without(engine, &manifest, &dead);
    drop(manifest);
    engine.counters.value_segments_reclaimed.add(dead.len() as u64);
    Ok(Some(format!("freed {} of dead values", counted(dead.len() as u64, "segment"))))
}

/// Segments that nothing points to, and nothing will point to.
pub(crate) fn dead_segments(engine: &Engine, state: &State) -> Vec<FileNumber> {
    segments::note_settled(engine, state);
    let mut dead: BTreeSet<FileNumber> = engine.values.settled.lock().clone();
    if dead.is_empty() {
        return Vec::new();
    }
    for segment in live_values::alive(engine).into_keys() {
        dead.remove(&FileNumber(u64::from(segment)));
    }
    hash_checkpoint::spare_hashed(engine, &mut dead);
    dead.into_iter().collect()
}

/// Bytes of the full segments that memtables point to, as of the last look: none of their dead
/// values can be reclaimed.
pub(crate) fn pinned_value_bytes(engine: &Engine) -> u64 {
    let needed_from = engine.feeds.log_start(); // lower ones are retained for feeds
    let fences = engine.values.fences.lock();
    let pinned: Vec<FileNumber> =
        fences.iter().filter(|(_, fence)| **fence > needed_from).map(|(&number, _)| number).collect();
    drop(fences);
    if pinned.is_empty() {
        return 0;
    }
    let state = std::sync::Arc::clone(engine.manifest.lock().state());
    pinned.iter().filter_map(|number| state.values.get(number)).flatten().sum()
}
