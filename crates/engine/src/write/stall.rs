//! What stalls a writer: full memory, a backlog of work, too many range deletes, a disk that is
//! short of space. `folddb_merge::pace` has the law of the delays.

use std::sync::Arc;
use std::time::Duration;

use folddb_base::Result;
use folddb_host::sync::atomic::Ordering;
use folddb_host::sync::thread;
use folddb_merge::pace;

use crate::events::{Event, StallCause, StallEvent};
use crate::shared::memory_plan::MemoryPlan;
use crate::state::catalog::TableCore;
use crate::state::engine::Engine;
use crate::state::pressure;
use crate::write::encoded_batch::Encoded;

/// Slows a writer down by the debt: see [`pace`] for the law.
pub(crate) fn pay_delay(engine: &Engine, bytes: usize, value_bytes: usize) {
    if !pressure::background_runs(engine) {
        return;
    }
    let mut toll = pace::Toll::of(bytes as u64, value_bytes as u64);
    while let Some(delay) = toll.next(&pressure::debt_now(engine), &pace::PaceOptions::default()) {
        if delay.is_zero() || engine.health.is_closed() {
            return;
        }
        let due = engine.debt.owed.lock().add(delay);
        if let Some(due) = due {
            engine.counters.writer_delay_us.add(due.as_micros() as u64);
            let _turn = engine.debt.sleeping.lock();
            thread::sleep(due);
        }
    }
}

/// Admits a writer, after the delay for the debt; waits while memory is full.
pub(crate) fn admit(engine: &Engine, batch: &Encoded) -> Result<()> {
    let is_over = || engine.quota.as_ref().is_some_and(|quota| !quota.takes_writes());
    if !batch.frees_only && (engine.health.is_short() || is_over()) {
        engine.check_open()?;
        // The situation may have changed since the last tick: no writer is refused for a shortage
        // that is over.
        pressure::check_space(engine);
    }
    engine.health.check_writable(batch.frees_only)?;
    if batch.has_range_delete {
        wait_for_ranges(engine, batch);
    }
    let debt = &engine.debt;
    let is_behind = debt.tier_runs_max.load(Ordering::Relaxed) > engine.options.merge_factor;
    let value_log_is_over =
        debt.value_log_thousandths.load(Ordering::Relaxed) > 1000 && !batch.values.is_empty();
    let nothing_is_sealed = engine.memory.bytes().sealed == 0 && engine.memory.shared().bytes().sealed == 0;
    if nothing_is_sealed && !is_behind && !value_log_is_over {
        return Ok(());
    }
    pay_delay(engine, batch.payload.len(), batch.values.len());
    let mut waits_since = None;
    let admitted = wait_for_memory(engine, batch, &mut waits_since);
    if let Some(from) = waits_since {
        note_stall(engine, StallCause::MemoryFull, from);
    }
    admitted
}

/// Waits until memory takes the batch, or certainly will not; sets `since` if it had to wait.
fn wait_for_memory(engine: &Engine, batch: &Encoded, since: &mut Option<Duration>) -> Result<()> {
    let begun = engine.debt.flushes_begun.load(Ordering::Acquire);
    while memory_is_full_for(engine, batch) && pressure::background_runs(engine) {
        let seen = engine.bell.count();
        engine.health.check_writable(batch.frees_only)?;
        if engine.debt.is_refused_since(begun) {
            return Err(pressure::no_space(engine));
        }
        if since.is_none() {
            engine.counters.stalls.add(1);
            *since = Some(engine.host.clock.monotonic());
        }
        if memory_is_full_for(engine, batch) {
            engine.bell.wait(seen, Duration::from_millis(10));
        }
    }
    Ok(())
}

fn note_stall(engine: &Engine, cause: StallCause, from: Duration) {
    let took = engine.host.clock.monotonic().saturating_sub(from);
    engine.latencies.stall.note(took);
    engine.events.note(|| Event::Stall(StallEvent { cause, took }));
}

/// Slows down a writer that deletes ranges faster than merges remove them: a limited time for each
/// batch.
#[cold]
pub(crate) fn wait_for_ranges(engine: &Engine, batch: &Encoded) {
    let seen = engine.bell.count();
    let is_over = |table: &Arc<TableCore>| table.has_many_ranges.load(Ordering::Relaxed);
    if pressure::background_runs(engine) && batch.tables.iter().any(is_over) {
        engine.counters.stalls.add(1);
        let from = engine.host.clock.monotonic();
        engine.bell.wait(seen, Duration::from_millis(10));
        note_stall(engine, StallCause::RangeDeletes, from);
    }
}

/// Admits a piece of a value that no record points to yet.
pub(crate) fn admit_piece(engine: &Engine) -> Result<()> {
    engine.check_open()?;
    if engine.health.is_short() || engine.quota.as_ref().is_some_and(|quota| !quota.takes_writes()) {
        pressure::check_space(engine);
    }
    engine.health.check_writable(false)
}

/// True while sealed memtables leave no memory for a batch. The tables that fill it wait first:
/// tables without a memtable that waits for its flush may use half a memtable more, so that the
/// load of one table does not stall writes to another. The bound still holds, since a table that
/// has filled its own memtable loses that allowance.
///
/// This holds for the limit of the store, and for that of all stores that share a budget with it.
pub(crate) fn memory_is_full_for(engine: &Engine, batch: &Encoded) -> bool {
    let is_quiet = |table: &Arc<TableCore>| table.view().sealed.is_empty();
    let is_full = |sealed_bytes: usize, plan: MemoryPlan| {
        // A memtable is sealed once it is full, so two hold a little more than two.
        let limit = plan.sealed_bytes_max() + plan.memtable_bytes() / 4;
        let far = limit + plan.memtable_bytes() / 2;
        sealed_bytes > limit && (sealed_bytes > far || !batch.tables.iter().all(is_quiet))
    };
    let shared = engine.memory.shared();
    is_full(engine.memory.bytes().sealed, engine.options.memory_plan())
        || is_full(shared.bytes().sealed, shared.plan())
}
