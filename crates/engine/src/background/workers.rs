//! What the threads do for a store: one keeps the log ready, so that no commit waits for a file;
//! one flushes; one or more merge, and the first of these reclaims between its steps of merges. The
//! threads belong to a pool, which the store may share with others. With `BackgroundWork::Manual`
//! there are none, and the caller takes single steps.

use std::sync::Arc;
use std::time::Duration;

use folddb_base::{Error, ErrorKind, Result};
use folddb_host::sync::thread;
use folddb_host::{heap, priority};

use crate::background::scheduler::JOURNAL_TICK;
use crate::background::state::Background;
use crate::background::{log, scheduler};
use crate::shared::pool::{IDLE_TICK, JOURNAL, Lanes, Pool, Seat, Spawn, Turn, Work};
use crate::state::debt::Worker;
use crate::state::engine::Engine;
use crate::state::health::PoisonOnPanic;
use crate::state::pressure;
use crate::write::sync_later;

/// How long a worker waits after a failure before it tries again.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// The threads that work for a store while it is open.
#[derive(Default)]
pub struct Workers {
    seat: Option<(Arc<Pool>, Arc<Seat>)>,
}

impl Workers {
    /// Starts the threads of the store, if its options ask for them.
    pub fn start(background: &Arc<Background>) -> Result<Workers> {
        let nice = background.engine.options.background_nice;
        Workers::start_by(background, &mut |name, run| {
            let nice = if name == JOURNAL { 0 } else { nice };
            thread::Builder::new().name(name.to_owned()).spawn(move || {
                priority::lower(nice);
                run();
            })
        })
    }

    fn start_by(background: &Arc<Background>, spawn: &mut Spawn<'_>) -> Result<Workers> {
        let engine = &background.engine;
        if !engine.options.has_threads() {
            return Ok(Workers::default());
        }
        let pool = &engine.shared.pool;
        let seat = pool.enter(lanes(background), spawn).map_err(|(name, error)| {
            engine.health.close();
            Error::new(ErrorKind::Io, format!("cannot start the thread {name}: {error}"))
        })?;
        Ok(Workers { seat: Some((Arc::clone(pool), seat)) })
    }

    /// Stops them: nothing is running on return.
    pub fn join(&mut self) {
        if let Some((pool, seat)) = self.seat.take() {
            pool.leave(&seat);
        }
    }
}

/// What each thread does for the store.
fn lanes(background: &Arc<Background>) -> Lanes {
    let engine = Arc::clone(&background.engine);
    let mut last = LastTurn::default();
    let merges = engine.options.merge_threads;
    let work = |duty: Duty| {
        let background = Arc::clone(background);
        let mut failed = None;
        Box::new(move || work_turn(&background, duty, &mut failed)) as Work
    };
    let first = [Box::new(move || journal_turn(&engine, &mut last)) as Work, work(Duty::Flush)];
    let merging =
        (0..merges.max(1)).map(|nth| work(if nth == 0 { Duty::MergeAndReclaim } else { Duty::Merge }));
    first.into_iter().chain(merging).collect()
}

/// What a thread does besides keeping the log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    Flush,
    /// One thread reclaims, whose steps would only wait for one another.
    MergeAndReclaim,
    Merge,
}

/// The state of the log when it was last examined.
#[derive(Default)]
struct LastTurn {
    commits: u64,
    reads: u64,
    space_at: Duration,
}

fn journal_turn(engine: &Engine, last: &mut LastTurn) -> Turn {
    if engine.journal.is_none() || engine.health.is_closed() {
        return Turn::Idle(IDLE_TICK);
    }
    engine.feeds.wake_readers(engine.published());
    let now = engine.host.clock.monotonic();
    if engine.health.cause().is_none() {
        let _guard = PoisonOnPanic::new(&engine.health);
        let _ = log::keep_ready(engine, now); // what fails is noted
    } else {
        let _ = sync_later::serve(engine); // handles that wait are told
    }
    if now.saturating_sub(last.space_at) >= IDLE_TICK {
        last.space_at = now;
        pressure::check_space(engine);
        pressure::check_disk(engine);
    }
    let (commits, reads) = (engine.counters.written.commits.get(), reads(engine));
    if std::mem::replace(&mut last.reads, reads) != reads || commits != last.commits {
        engine.shared.trims.trim_if_due(heap::give_back);
    }
    let is_quiet = commits == std::mem::replace(&mut last.commits, commits);
    if is_quiet { Turn::Idle(5 * JOURNAL_TICK) } else { Turn::Nap(JOURNAL_TICK) }
}

/// How often it was read; what merges do without commits and reads counts as well.
fn reads(engine: &Engine) -> u64 {
    let counters = &engine.counters;
    counters.gets.get() + counters.scans.get() + counters.part_bytes_written.get()
}

/// A failed step: how often the bell had rung by then, and when to retry.
pub type Failed = (u64, Duration);

/// One turn of the thread that flushes or merges. Tests take the turns of a store without threads.
pub fn work_turn(background: &Background, duty: Duty, failed: &mut Option<Failed>) -> Turn {
    let engine = &background.engine;
    if engine.health.is_closed() {
        return Turn::Idle(IDLE_TICK);
    }
    let now = || engine.host.clock.monotonic();
    if let Some((rung, again_at)) = *failed
        && rung == engine.bell.count()
        && let Some(left) = again_at.checked_sub(now()).filter(|left| !left.is_zero())
    {
        return Turn::Idle(left); // other stores of the pool continue
    }
    *failed = None;
    let due = engine.shared.throttle.due();
    if duty != Duty::Flush && !due.is_zero() {
        return Turn::Idle(due.min(IDLE_TICK));
    }
    let done = match duty {
        Duty::Flush => scheduler::contained(background, Worker::Flush),
        Duty::MergeAndReclaim => scheduler::merge_and_reclaim(background),
        Duty::Merge => scheduler::contained(background, Worker::Merge),
    };
    if duty != Duty::Flush {
        engine.events.hand_on(&engine.health); // not the flush worker: memory waits for that
    }
    match done {
        Ok(Some(_)) => Turn::Done,
        Ok(None) => Turn::Idle(IDLE_TICK),
        Err(_) => {
            engine.counters.background_retries.add(1);
            *failed = Some((engine.bell.count(), now() + RETRY_AFTER)); // the failure itself may have rung
            Turn::Idle(RETRY_AFTER)
        }
    }
}

#[cfg(test)]
mod tests;
