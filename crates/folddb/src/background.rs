//! Upkeep: what is done in the background, and how hard it slows the writers.
//!
//! Three threads: one keeps the journal ready, so that no commit waits for a file; one flushes; one merges, and moves values
//! between the steps of merges.
//! With [`Upkeep::Manual`] there are none and the caller takes single steps.

pub(crate) mod step;
pub(crate) mod ranges;
pub(crate) mod output;
pub(crate) mod summaries;
pub(crate) mod stale;
pub(crate) mod clean;
pub(crate) mod expire;
pub(crate) mod hash_checkpoint;
pub(crate) mod hash_sweep;
pub(crate) mod live_values;
pub(crate) mod hidden_values;
pub(crate) mod reclaim_report;
pub(crate) mod reclaim_job;
pub(crate) mod dead_segments;
pub(crate) mod sweep_directories;
pub(crate) mod snapshot_files;
pub(crate) mod merge;
pub(crate) mod flush;
pub(crate) mod reclaim;
pub(crate) mod unflushed;
pub(crate) mod tidy;
pub(crate) mod compact;

use std::sync::Arc;
use std::time::Duration;

use folddb_base::{Error, ErrorKind, Result};
use folddb_host::sync::atomic::Ordering;
use folddb_host::sync::thread;

use crate::options::Upkeep;
use crate::state::engine::Engine;
use crate::state::health::PoisonOnPanic;
use crate::state::{log_sync, pressure};
use crate::values::settle;

/// How often the journal is looked after while the store is written to.
const JOURNAL_TICK: Duration = Duration::from_millis(2);

/// How long a worker sleeps when nothing rings.
const IDLE_TICK: Duration = Duration::from_millis(100);

/// How long a worker waits after a failure before it tries again.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// So many failures of upkeep in a row, and the store refuses to write.
const FAILURES_MAX: usize = 5;

/// What a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worker {
    Flush,
    Merge,
    Reclaim,
}

/// A kind of upkeep, for whoever decides himself what happens when; see [`crate::Store::upkeep_step_of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// What the journal needs: buffered batches are handed on, the next segment is made, an idle log is marked. And a
    /// look at the space that is left.
    Journal,
    /// Every memtable that has been written to is sealed, so that a flush is due for each.
    Seal,
    /// The memtable that has waited longest is flushed.
    Flush,
    /// The merge of the lowest tier takes a step.
    Merge,
    /// What moves living values together takes a step.
    Reclaim,
}

/// What a thread does until the store is closed.
type Loop = fn(&Arc<Engine>);

/// How a thread is started: its name, and what it does.
type Spawn<'s> = dyn FnMut(&str, Box<dyn FnOnce() + Send>) -> std::io::Result<thread::JoinHandle<()>> + 's;

/// The threads of a store.
#[derive(Default)]
pub(crate) struct Workers {
    threads: Vec<thread::JoinHandle<()>>,
}

impl Workers {
    /// Starts the threads that the options ask for.
    pub(crate) fn start(engine: &Arc<Engine>) -> Result<Workers> {
        Workers::start_by(engine, &mut |name, run| thread::Builder::new().name(name.to_owned()).spawn(run))
    }

    fn start_by(engine: &Arc<Engine>, spawn: &mut Spawn<'_>) -> Result<Workers> {
        let mut workers = Workers::default();
        if engine.options.upkeep == Upkeep::Manual || engine.options.read_only {
            return Ok(workers);
        }
        let loops: [(&str, Loop); 3] = [
            ("folddb-journal", |engine| journal_loop(engine)),
            ("folddb-flush", |engine| work_loop(engine, Worker::Flush)),
            ("folddb-merge", |engine| work_loop(engine, Worker::Merge)),
        ];
        for (name, run) in loops {
            let shared = Arc::clone(engine);
            match spawn(name, Box::new(move || run(&shared))) {
                Ok(thread) => workers.threads.push(thread),
                Err(error) => {
                    // Those that run already would hold the store, and its lock, for ever.
                    engine.health.close();
                    engine.bell.ring();
                    workers.join();
                    return Err(Error::new(
                        ErrorKind::Io,
                        format!("cannot start the thread {name}: {error}"),
                    ));
                }
            }
        }
        Ok(workers)
    }

    /// Waits for the threads, which end once the store is closed.
    pub(crate) fn join(&mut self) {
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // a worker contains the panics of its steps
        }
    }
}

fn journal_loop(engine: &Engine) {
    let Some(journal) = &engine.journal else { return };
    let mut last_commits = 0;
    let mut last_space_check = Duration::ZERO;
    loop {
        let seen = engine.bell.count(); // before anything is looked at: what comes later rings
        if engine.health.is_closed() {
            return;
        }
        engine.feeds.tell(engine.published());
        let now = engine.host.clock.monotonic();
        if engine.health.cause().is_none() {
            let _guard = PoisonOnPanic::new(&engine.health);
            let kept = journal.upkeep(now).and_then(|()| settle::keep_values_ready(engine));
            let kept = kept.and_then(|()| vouch_when_idle(engine, now));
            let _ = kept.inspect_err(|error| log_sync::note_write_failure(engine, error));
        }
        if now.saturating_sub(last_space_check) >= IDLE_TICK {
            last_space_check = now;
            pressure::check_space(engine);
        }
        let commits = engine.counters.commits.get();
        if commits == last_commits {
            engine.bell.wait(seen, 5 * JOURNAL_TICK);
        } else {
            thread::sleep(JOURNAL_TICK);
        }
        last_commits = commits;
    }
}

fn work_loop(engine: &Arc<Engine>, work: Worker) {
    loop {
        let seen = engine.bell.count();
        if engine.health.is_closed() {
            return;
        }
        let done = match work {
            Worker::Merge => merge_and_reclaim(engine),
            work => contained(engine, work),
        };
        match done {
            Ok(Some(_)) => {}
            Ok(None) => engine.bell.wait(seen, IDLE_TICK),
            Err(_) => {
                engine.counters.upkeep_retries.add(1);
                let seen = engine.bell.count(); // the failure itself may have rung
                if !engine.health.is_closed() {
                    engine.bell.wait(seen, RETRY_AFTER);
                }
            }
        }
    }
}

/// A step of a merge, and one of what moves values: neither waits for the end of the other.
fn merge_and_reclaim(engine: &Arc<Engine>) -> Result<Option<String>> {
    let merged = contained(engine, Worker::Merge);
    let reclaimed = match contained(engine, Worker::Reclaim) {
        Err(error) if error.kind() == ErrorKind::Corruption => None, // merges do not wait for it
        reclaimed => reclaimed?,
    };
    Ok(merged?.or(reclaimed))
}

/// Sweeping that meets damage goes on behind it, and then values move.
fn sweep_and_reclaim(engine: &Engine) -> Result<Option<String>> {
    match hash_sweep::sweep_step(engine)? {
        None => reclaim::reclaim_step(engine),
        swept => Ok(swept),
    }
}

/// Runs a step and contains its failures. What a failed step was writing is no part of the store yet, so it
/// may be tried again: at once when the disk is full, a few times after any other failure. A panic (a bug,
/// or a user's comparison function) is a failure too. A damaged input of a merge or of reclaim is given up, not tried again.
fn contained(engine: &Arc<Engine>, work: Worker) -> Result<Option<String>> {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match work {
        Worker::Flush => flush::flush_step(engine),
        Worker::Merge => merge::merge_step(engine),
        Worker::Reclaim => sweep_and_reclaim(engine),
    }));
    let result = outcome.unwrap_or_else(|_| {
        Err(Error::new(ErrorKind::Io, "upkeep panicked; what it was doing has not taken effect"))
    });
    match &result {
        Ok(_) => engine.debt.failures_in_a_row[work as usize].store(0, Ordering::Relaxed),
        Err(error) => note_upkeep_failure(engine, work, error),
    }
    result
}

fn note_upkeep_failure(engine: &Engine, work: Worker, error: &Error) {
    match error.kind() {
        ErrorKind::NoSpace if work == Worker::Reclaim => {} // others may still have room
        ErrorKind::NoSpace => engine.health.set_short(Some(error.message().to_owned())),
        ErrorKind::Closed => {}
        ErrorKind::Corruption if matches!(work, Worker::Merge | Worker::Reclaim) => {}
        _ => {
            // Each counts for itself: merges that go well must not hide that no memtable gets to disk.
            let failures = &engine.debt.failures_in_a_row[work as usize];
            if failures.fetch_add(1, Ordering::Relaxed) + 1 >= FAILURES_MAX {
                engine.health.poison(error);
            }
        }
    }
}

/// One step of upkeep, the most urgent; says what it did, or nothing when there is nothing to do.
pub(crate) fn upkeep_step(engine: &Arc<Engine>) -> Result<Option<String>> {
    journal_step(engine)?;
    match contained(engine, Worker::Flush)? {
        Some(done) => Ok(Some(done)),
        None => match contained(engine, Worker::Merge)? {
            Some(done) => Ok(Some(done)),
            None => contained(engine, Worker::Reclaim),
        },
    }
}

/// One step of one kind of work; says what it did, or nothing when there is nothing to do.
pub(crate) fn upkeep_step_of(engine: &Arc<Engine>, work: Work) -> Result<Option<String>> {
    match work {
        Work::Journal => journal_step(engine).map(|()| None),
        Work::Seal => {
            engine.health.check_writable(true)?;
            Ok(flush::seal_all(engine).then(|| "sealed the memtables".to_owned()))
        }
        Work::Flush => contained(engine, Worker::Flush),
        Work::Merge => contained(engine, Worker::Merge),
        Work::Reclaim => contained(engine, Worker::Reclaim),
    }
}

fn journal_step(engine: &Engine) -> Result<()> {
    if let Some(journal) = &engine.journal {
        let now = engine.host.clock.monotonic();
        journal.upkeep(now).inspect_err(|error| log_sync::note_write_failure(engine, error))?;
        settle::keep_values_ready(engine)?;
        vouch_when_idle(engine, now).inspect_err(|error| log_sync::note_write_failure(engine, error))?;
    }
    pressure::check_space(engine);
    Ok(())
}

/// Lets the manifest say how far the log is durable, when nothing is written any more that would: whoever takes segments away
/// while the store is down is found out.
fn vouch_when_idle(engine: &Engine, now: Duration) -> Result<()> {
    let is_due = engine.journal.as_ref().is_some_and(|journal| journal.is_to_be_vouched(now));
    match is_due.then(|| engine.manifest.lock().append(&[])) {
        Some(Err(error)) if error.kind() != ErrorKind::NoSpace => Err(error),
        _ => Ok(()), // on a full disk it is tried again
    }
}

/// Waits until there is nothing left to flush or to merge.
pub(crate) fn settle(engine: &Arc<Engine>) -> Result<()> {
    flush::flush_all(engine)?;
    loop {
        let seen = engine.bell.count();
        if let Some(cause) = engine.health.cause() {
            return Err(cause);
        }
        if engine.health.is_closed() {
            return Err(Error::new(ErrorKind::Closed, "the store is closed"));
        }
        if !pressure::upkeep_runs(engine) {
            if upkeep_step(engine)?.is_none() {
                return Ok(());
            }
        } else if merge::is_settled(engine) && reclaim::is_reclaimed(engine) {
            return Ok(());
        } else {
            engine.bell.wait(seen, 10 * JOURNAL_TICK);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
