//! The threads of a store: one keeps the log ready, so that no commit waits for a file; one
//! flushes; one merges, and moves values between the steps of merges. With
//! [`BackgroundWork::Manual`] there are none, and the caller takes single steps.

use std::sync::Arc;
use std::time::Duration;

use folddb_base::{Error, ErrorKind, Result};
use folddb_host::sync::thread;

use crate::background::scheduler;
use crate::background::scheduler::JOURNAL_TICK;
use crate::background::state::Background;
use crate::options::BackgroundWork;
use crate::state::debt::Worker;
use crate::state::engine::Engine;
use crate::state::health::PoisonOnPanic;
use crate::state::{log_sync, pressure};
use crate::values::settle;

/// How long a worker sleeps when nothing rings.
pub(crate) const IDLE_TICK: Duration = Duration::from_millis(100);

/// How long a worker waits after a failure before it tries again.
pub(crate) const RETRY_AFTER: Duration = Duration::from_millis(200);

/// What a thread does until the store is closed.
pub type Loop = fn(&Background);

/// How a thread is started: its name, and what it does.
pub type Spawn<'s> =
    dyn FnMut(&str, Box<dyn FnOnce() + Send>) -> std::io::Result<thread::JoinHandle<()>> + 's;

/// The threads of a store.
#[derive(Default)]
pub struct Workers {
    threads: Vec<thread::JoinHandle<()>>,
}

impl Workers {
    /// Starts the threads that the options ask for.
    pub fn start(background: &Arc<Background>) -> Result<Workers> {
        Workers::start_by(background, &mut |name, run| {
            thread::Builder::new().name(name.to_owned()).spawn(run)
        })
    }

    fn start_by(background: &Arc<Background>, spawn: &mut Spawn<'_>) -> Result<Workers> {
        let engine = &background.engine;
        let mut workers = Workers::default();
        if engine.options.background == BackgroundWork::Manual || engine.options.read_only {
            return Ok(workers);
        }
        let loops: [(&str, Loop); 3] = [
            ("folddb-journal", |background| journal_loop(&background.engine)),
            ("folddb-flush", |background| work_loop(background, Worker::Flush)),
            ("folddb-merge", |background| work_loop(background, Worker::Merge)),
        ];
        for (name, run) in loops {
            let shared = Arc::clone(background);
            match spawn(name, Box::new(move || run(&shared))) {
                Ok(thread) => workers.threads.push(thread),
                Err(error) => {
                    // Those that run already would hold the store, and its lock, forever.
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
    pub fn join(&mut self) {
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // a worker contains the panics of its steps
        }
    }
}

pub(crate) fn journal_loop(engine: &Engine) {
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
            let kept = journal.background(now).and_then(|()| settle::keep_values_ready(engine));
            let kept = kept.and_then(|()| scheduler::vouch_when_idle(engine, now));
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

pub(crate) fn work_loop(background: &Background, work: Worker) {
    let engine = &background.engine;
    loop {
        let seen = engine.bell.count();
        if engine.health.is_closed() {
            return;
        }
        let done = match work {
            Worker::Merge => scheduler::merge_and_reclaim(background),
            work => scheduler::contained(background, work),
        };
        if work == Worker::Merge {
            engine.events.hand_on(&engine.health); // not the flushing one: memory waits for that
        }
        match done {
            Ok(Some(_)) => {}
            Ok(None) => engine.bell.wait(seen, IDLE_TICK),
            Err(_) => {
                engine.counters.background_retries.add(1);
                let seen = engine.bell.count(); // the failure itself may have rung
                if !engine.health.is_closed() {
                    engine.bell.wait(seen, RETRY_AFTER);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
