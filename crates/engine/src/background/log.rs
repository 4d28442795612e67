//! Keeps the log ready, so that no commit waits for a file: the next segments are created ahead,
//! full ones are synced, as is what handles ask for (`sync_later`), and when nothing is written any
//! more an edit records how far the log is durable. Keeps it short, too: a memtable that retains
//! too much of it is sealed.
//!
//! Called by the thread of the log, and where there are no threads with each step (`scheduler`).

use std::sync::Arc;
use std::time::Duration;

use folddb_base::Result;
use folddb_journal::SegmentFacts;

use crate::background::{dead_segments, hash_checkpoint};
use crate::edit::feeds;
use crate::state::engine::Engine;
use crate::state::log_sync;
use crate::values::settle;
use crate::write::{commit, sync_later};

/// Bytes of values in full segments that memtables may always retain, whatever the size of the
/// value log.
pub(crate) const PINNED_BYTES_MIN: u64 = 16 << 20;

/// Does everything that is due. Failures are noted, so that later commits are refused.
pub(crate) fn keep_ready(engine: &Engine, now: Duration) -> Result<()> {
    let Some(journal) = &engine.journal else { return Ok(()) };
    let kept = journal.background(now).and_then(|()| settle::keep_values_ready(engine));
    let kept = kept.and_then(|()| vouch_when_idle(engine, now));
    let served = sync_later::serve(engine); // what is in the log already needs no more space
    let kept = kept.and(served);
    kept.inspect_err(|error| log_sync::note_write_failure(engine, error))
}

/// Records in the manifest how far the log is durable when no write does so any more: then segments
/// that are removed while the store is closed are noticed.
fn vouch_when_idle(engine: &Engine, now: Duration) -> Result<()> {
    let is_due = engine.journal.as_ref().is_some_and(|journal| journal.is_to_be_vouched(now));
    if is_due { log_sync::vouch(engine) } else { Ok(()) }
}

/// As how long each segment counts where the kept ones are too many: as long as the last one, since
/// many short ones before it take no more than a few of its length. The log of a store with little
/// memory has shorter segments than others and may be as long as theirs: how much of it is alive in
/// memtables does not show in its length, and each flush costs syncs.
fn segment_bytes_counted(engine: &Engine, last: Option<&SegmentFacts>) -> u64 {
    let last_bytes = last.map_or(0, |segment| segment.len_bytes);
    let is_grown = last_bytes >= engine.options.segment_bytes_grown();
    if is_grown { engine.options.segment_bytes } else { last_bytes }
}

/// Seals the memtable that retains the log if too much of the log, or too many segments of values,
/// are kept.
pub(crate) fn limit_log(engine: &Engine) {
    const SEGMENTS_MAX: usize = 4;
    // Segments of values count by their bytes: they begin small. If space is short, those that only
    // memtables keep are freed.
    let max = if engine.health.short_of_space().is_some() { 1 } else { SEGMENTS_MAX };
    let kept = feeds::segments_of_memory(engine);
    let kept_bytes: u64 = kept.iter().map(|segment| segment.len_bytes).sum();
    let limit_bytes = segment_bytes_counted(engine, kept.last()).saturating_mul(max as u64);
    // What memtables point to counts as live, dead or not: at most a few segments, or an eighth of
    // a small value log.
    let values_max = engine.options.values_segment_bytes().saturating_mul(max as u64);
    let values_max = values_max.min((engine.values.bytes() / 8).max(PINNED_BYTES_MIN));
    let is_long = kept.len() > max && kept_bytes > limit_bytes;
    if !is_long && dead_segments::pinned_value_bytes(engine) <= values_max {
        return;
    }
    let mut committer = engine.commit.lock();
    let oldest = committer.written().min_by_key(|active| active.first_lsn);
    let Some((table, first_lsn)) = oldest.map(|active| (Arc::clone(&active.table), active.first_lsn)) else {
        return;
    };
    // A memtable that is sealed already may retain the log, too; its flush comes first.
    let sealed_first = engine
        .tables_sealed()
        .iter()
        .flat_map(|table| table.view().sealed.clone())
        .map(|s| s.first_lsn)
        .min();
    if !is_long && max == SEGMENTS_MAX && !hash_checkpoint::saving_pays(&table) {
        return;
    }
    if sealed_first.is_none() || first_lsn < sealed_first {
        commit::seal(engine, &mut committer, &table);
    }
}
