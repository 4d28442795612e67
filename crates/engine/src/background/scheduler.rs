//! What is done next. The only module that knows all background jobs: it takes one step of the most
//! urgent one, and contains and notes its failures.

use std::sync::Arc;
use std::time::Duration;

use folddb_base::{Error, ErrorKind, Result};
use folddb_host::sync::atomic::Ordering;

use crate::background::state::Background;
use crate::background::{
    chunks, dead_segments, flush, hash_checkpoint, hash_sweep, log, merge, reclaim, snapshot_files,
};
use crate::edit::feeds;
use crate::state::catalog::TableCore;
use crate::state::debt::Worker;
use crate::state::engine::Engine;
use crate::state::pressure;
use crate::values::settle;
use crate::write::commit;

/// After this many failures of background work in a row, the store refuses writes.
pub(crate) const FAILURES_MAX: usize = 5;

/// A kind of background work, for callers that decide themselves what happens when; see
/// `Store::background_step_of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackgroundJob {
    /// Keeps the log ready: buffered batches are written, the next segment is created, an idle log
    /// is marked. Also checks the space that is left.
    Log,
    /// Every memtable that has been written to is sealed, so that a flush is due for each.
    Seal,
    /// The memtable that has waited longest is flushed.
    Flush,
    /// The merge of the lowest tier takes a step.
    Merge,
    /// Reclaim, which copies live values together, takes a step.
    Reclaim,
}

/// A step of a merge, and one of reclaim: neither waits for the end of the other.
pub(crate) fn merge_and_reclaim(background: &Background) -> Result<Option<String>> {
    let merged = contained(background, Worker::Merge);
    let reclaimed = match contained(background, Worker::Reclaim) {
        Err(error) if error.kind() == ErrorKind::Corruption => None, // merges continue anyway
        reclaimed => reclaimed?,
    };
    Ok(merged?.or(reclaimed))
}

/// Sweeping continues past damage, so reclaim still gets its step.
pub(crate) fn sweep_and_reclaim(background: &Background) -> Result<Option<String>> {
    match hash_sweep::sweep_step(&background.engine)? {
        None => reclaim::reclaim_step(background),
        swept => Ok(swept),
    }
}

/// Runs a step and contains its failures. What a failed step was writing is not part of the store
/// yet, so it may be tried again: on a full disk always, after any other failure a few times. A
/// panic (a bug, or a user's comparison function) is a failure, too. A damaged input of a merge or
/// of reclaim is given up, not tried again.
pub(crate) fn contained(background: &Background, work: Worker) -> Result<Option<String>> {
    let engine = &background.engine;
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match work {
        Worker::Flush => flush_step(background),
        Worker::Merge => merge::merge_step(background),
        Worker::Reclaim => sweep_and_reclaim(background),
    }));
    let result = outcome.unwrap_or_else(|_| {
        Err(Error::new(ErrorKind::Io, "background work panicked; what it was doing has not taken effect"))
    });
    match &result {
        Ok(_) => engine.debt.failures_in_a_row.of(work).store(0, Ordering::Relaxed),
        Err(error) => note_background_failure(engine, work, error),
    }
    result
}

pub(crate) fn note_background_failure(engine: &Engine, work: Worker, error: &Error) {
    match error.kind() {
        ErrorKind::NoSpace if work == Worker::Reclaim => {} // others may still have room
        ErrorKind::NoSpace => engine.health.set_short(Some(error.message().to_owned())),
        ErrorKind::Closed => {}
        ErrorKind::Corruption if matches!(work, Worker::Merge | Worker::Reclaim) => {}
        _ => {
            // Each worker has its own count: successful merges must not hide that no memtable gets
            // to disk.
            let failures = engine.debt.failures_in_a_row.of(work);
            // Threads that merge may all fail at once, by what is over in a moment.
            let threads = if work == Worker::Merge { engine.options.merge_threads } else { 1 };
            if failures.fetch_add(1, Ordering::Relaxed) + 1 >= FAILURES_MAX * threads {
                engine.health.poison(error);
            }
        }
    }
}

/// One step of background work, the most urgent; describes what it did, or none if there is nothing
/// to do.
pub fn background_step(background: &Background) -> Result<Option<String>> {
    let engine = &background.engine;
    let done = most_urgent_step(background);
    engine.events.hand_on(&engine.health);
    done
}

fn most_urgent_step(background: &Background) -> Result<Option<String>> {
    log_step(&background.engine)?;
    match contained(background, Worker::Flush)? {
        Some(done) => Ok(Some(done)),
        None => match contained(background, Worker::Merge)? {
            Some(done) => Ok(Some(done)),
            None => contained(background, Worker::Reclaim),
        },
    }
}

/// One step of one kind of work; describes what it did, or none if there is nothing to do.
pub fn background_step_of(background: &Background, work: BackgroundJob) -> Result<Option<String>> {
    let engine = &background.engine;
    let done = step_of(background, work);
    engine.events.hand_on(&engine.health);
    done
}

fn step_of(background: &Background, work: BackgroundJob) -> Result<Option<String>> {
    let engine = &background.engine;
    match work {
        BackgroundJob::Log => log_step(engine).map(|()| None),
        BackgroundJob::Seal => {
            engine.health.check_writable(true)?;
            Ok(flush::seal_all(engine).then(|| "sealed the memtables".to_owned()))
        }
        BackgroundJob::Flush => contained(background, Worker::Flush),
        BackgroundJob::Merge => contained(background, Worker::Merge),
        BackgroundJob::Reclaim => contained(background, Worker::Reclaim),
    }
}

pub(crate) fn log_step(engine: &Engine) -> Result<()> {
    log::keep_ready(engine, engine.host.clock.monotonic())?;
    pressure::check_space(engine);
    pressure::check_disk(engine);
    Ok(())
}

/// Waits until there is nothing left to flush or to merge.
pub fn settle(background: &Background) -> Result<()> {
    let engine = &background.engine;
    flush_all(background)?;
    loop {
        let seen = engine.bell.count();
        if let Some(cause) = engine.health.cause() {
            return Err(cause);
        }
        if engine.health.is_closed() {
            return Err(engine.health.closed());
        }
        if !pressure::background_runs(engine) {
            if background_step(background)?.is_none() {
                return Ok(());
            }
        } else if merge::is_settled(background) && reclaim::is_reclaimed(background) {
            return Ok(());
        } else {
            engine.bell.wait(seen, 10 * JOURNAL_TICK);
        }
    }
}

/// The step of the worker that flushes: what frees values and log comes first, then memtables and
/// indexes take turns, then the chunks that readers have met.
pub(crate) fn flush_step(background: &Background) -> Result<Option<String>> {
    let engine = &background.engine;
    let _only = engine.debt.flushing.lock();
    if engine.health.cause().is_some() {
        return Ok(None); // memory may hold half of a batch, which only replay completes
    }
    feeds::mind_feeds(engine)?;
    snapshot_files::age_snapshots(engine);
    settle::settle_values(engine)?;
    if let Some(done) = dead_segments::drop_dead_values(engine)? {
        return Ok(Some(done));
    }
    if engine.memory.take_asked() {
        commit::seal_largest(engine, &mut engine.commit.lock());
    }
    log::limit_log(engine);
    let waiting = engine.tables_sealed().into_iter().filter(|table| table.check_alive().is_ok());
    let waiting = waiting.filter_map(|table| {
        let oldest = table.view().sealed.last().cloned()?;
        Some((table, oldest))
    });
    // Memtables and indexes take turns, so that neither delays the other for long.
    let saves_now = !engine.debt.saved_last.swap(true, Ordering::Relaxed);
    let oldest = waiting.min_by_key(|(_, sealed)| sealed.first_lsn);
    if (saves_now || oldest.is_none())
        && let Some(done) = hash_checkpoint::save_due(engine)?
    {
        return Ok(Some(done));
    }
    engine.debt.saved_last.store(false, Ordering::Relaxed);
    let Some((table, sealed)) = oldest else {
        return Ok(chunks::merge_chunks(engine).then(|| "merged chunks of a memtable".to_owned()));
    };
    flush::flush_oldest(background, &table, &sealed)
}

/// Seals every memtable and flushes until none waits.
pub fn flush_all(background: &Background) -> Result<()> {
    let engine = &background.engine;
    engine.check_not_read_only()?;
    engine.health.check_writable(true)?;
    flush::seal_all(engine);
    wait_until_flushed(background)
}

pub(crate) fn wait_until_flushed(background: &Background) -> Result<()> {
    let engine = &background.engine;
    let begun = engine.debt.flushes_begun.load(Ordering::Acquire);
    // It does not wait for memtables sealed from now on, or a busy writer could keep it waiting
    // forever.
    let through = engine.published();
    let is_flushed = |table: &Arc<TableCore>| table.view().sealed.iter().all(|s| s.last_seq > through);
    loop {
        let seen = engine.bell.count();
        if let Some(cause) = engine.health.cause() {
            return Err(cause);
        }
        let all_flushed = engine.tables_sealed().iter().all(is_flushed)
            && engine.catalog().hashed().all(|(_, hashed)| !hashed.is_to_be_saved());
        engine.check_open()?; // in a closed store nothing waits, flushed or not
        if all_flushed {
            return Ok(());
        }
        // Writers may be refused while background work still has enough space: only a failed flush
        // counts.
        if engine.debt.is_refused_since(begun) {
            return Err(pressure::no_space(engine));
        }
        if pressure::background_runs(engine) {
            engine.bell.wait(seen, std::time::Duration::from_millis(50));
        } else {
            flush_step(background)?;
        }
    }
}

/// How often the log is maintained while the store is written to.
pub(crate) const JOURNAL_TICK: Duration = Duration::from_millis(2);
