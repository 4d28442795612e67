//! Merges the chunks of active memtables on request of readers: see `state::chunk_reads`.

use folddb_memtable::Memtable;

use crate::edit::install;
use crate::state::chunk_reads::Wish;
use crate::state::engine::Engine;

/// Merges the chunks of active memtables if readers have asked for it. False if none has.
pub(crate) fn merge_chunks(engine: &Engine) -> bool {
    let mut merged = false;
    let wishes = std::mem::take(&mut *engine.work.chunked.lock());
    let catalog = engine.catalog();
    for table in wishes.into_iter().filter_map(|id| catalog.by_id(id)) {
        let wish = table.chunk_reads.take();
        // In this order: first the published seq, which bounds what is touched, then all boundaries
        // below it.
        let published = engine.published();
        let view = table.view();
        let mut boundaries = engine.boundaries.all();
        boundaries.extend(
            view.range_deletes.newer_than(install::flushed_seq(engine, table)).map(|range| range.seq),
        );
        boundaries.retain(|&boundary| boundary < published);
        boundaries.sort_unstable();
        boundaries.push(published);
        if wish == Wish::Whole {
            let whole = has_room_for_whole(engine, &view.active) && view.active.merge_whole(&boundaries);
            table.chunk_reads.end_whole();
            merged |= whole;
            if whole {
                continue;
            }
        }
        while view.active.merge_step(&boundaries) {
            merged = true;
        }
    }
    merged
}

/// Whether a memtable has room for a copy of itself, which its own merge counts as its bytes: else
/// the next commit would find it full, and seal it.
fn has_room_for_whole(engine: &Engine, memtable: &Memtable) -> bool {
    memtable.bytes() * 2 < engine.options.memtable_bytes()
}
