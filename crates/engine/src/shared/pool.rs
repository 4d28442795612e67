//! The background threads of one store, or of several that take turns: one keeps logs ready, one
//! flushes, the others merge. A store enters with the work of each, one step at a time; a thread
//! visits all stores in turn, and sleeps when none has work. The first to enter starts the threads,
//! one that has work for more of them starts the rest; they end when the last has left.
//!
//! ```text
//!   lock     guards                                     held while
//!   members  the stores, and the threads                a moment
//!   a lane   what a thread does for a store             it takes its turn there; a leaving store waits for that
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use folddb_host::sync::atomic::{AtomicBool, Ordering};
use folddb_host::sync::{Mutex, thread};

use crate::shared::bell::Bell;

/// How long a thread sleeps when nothing rings.
pub const IDLE_TICK: Duration = Duration::from_millis(100);

/// The result of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Something was done, and there may be more.
    Done,
    /// Next time after this time, even if the bell rings.
    Nap(Duration),
    /// Next time when the bell rings, or after this time.
    Idle(Duration),
}

impl Turn {
    /// What a thread does next after both.
    fn and(self, other: Turn) -> Turn {
        match (self, other) {
            (Turn::Done, _) | (_, Turn::Done) => Turn::Done,
            (Turn::Nap(one), Turn::Nap(other)) => Turn::Nap(one.min(other)),
            (Turn::Nap(nap), Turn::Idle(_)) | (Turn::Idle(_), Turn::Nap(nap)) => Turn::Nap(nap),
            (Turn::Idle(one), Turn::Idle(other)) => Turn::Idle(one.min(other)),
        }
    }
}

/// What a thread does for a store: one step.
pub type Work = Box<dyn FnMut() -> Turn + Send>;

/// What the threads do for a store: the first keeps its log, the second flushes, all others merge.
pub type Lanes = Vec<Work>;

/// The names of the threads; commits wait for the first, and those of the last one are many.
const LANES: [&str; 3] = [JOURNAL, "folddb-flush", "folddb-merge"];
pub const JOURNAL: &str = "folddb-journal";

/// How a thread is started: its name, and what it does.
pub type Spawn<'s> =
    dyn FnMut(&str, Box<dyn FnOnce() + Send>) -> std::io::Result<thread::JoinHandle<()>> + 's;

/// The threads of one store, or of several.
#[derive(Default)]
pub struct Pool {
    bell: Arc<Bell>,
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members {
    seats: Arc<Vec<Arc<Seat>>>,
    threads: Vec<thread::JoinHandle<()>>,
    /// Tells these threads to end.
    is_over: Arc<AtomicBool>,
}

impl Members {
    /// Tells the threads to end.
    fn end(&mut self) -> Vec<thread::JoinHandle<()>> {
        self.is_over.store(true, Ordering::Release);
        std::mem::take(&mut self.threads)
    }
}

/// The place of a store in a pool.
pub struct Seat {
    lanes: Vec<Mutex<Option<Work>>>,
}

impl Seat {
    /// Takes a turn, unless the store has left. Work that panics gets no more turns: the threads
    /// also serve other stores.
    fn turn(&self, lane: usize) -> Turn {
        let Some(slot) = self.lanes.get(lane) else { return Turn::Idle(IDLE_TICK) };
        let mut slot = slot.lock();
        let Some(work) = slot.as_mut() else { return Turn::Idle(IDLE_TICK) };
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
            *slot = None;
            Turn::Idle(IDLE_TICK)
        })
    }
}

impl Pool {
    /// A bell that wakes the threads, too.
    pub fn new_bell(&self) -> Bell {
        Bell::ringing(&self.bell)
    }

    /// Lets the threads work for one more store, until it leaves.
    ///
    /// # Errors
    /// A thread cannot be started, with its name; the store has not entered then.
    pub fn enter(
        self: &Arc<Pool>,
        lanes: Lanes,
        spawn: &mut Spawn<'_>,
    ) -> Result<Arc<Seat>, (&'static str, std::io::Error)> {
        let lanes: Vec<_> = lanes.into_iter().map(|work| Mutex::new(Some(work))).collect();
        let seat = Arc::new(Seat { lanes });
        let mut members = self.members.lock();
        let seats = members.seats.iter().cloned().chain([Arc::clone(&seat)]).collect();
        members.seats = Arc::new(seats);
        if members.threads.is_empty() {
            members.is_over = Arc::default();
        }
        for lane in members.threads.len()..seat.lanes.len() {
            let (pool, is_over) = (Arc::clone(self), Arc::clone(&members.is_over));
            let name = LANES[lane.min(LANES.len() - 1)];
            match spawn(name, Box::new(move || pool.work(lane, &is_over))) {
                Ok(thread) => members.threads.push(thread),
                Err(error) => {
                    drop(members);
                    self.leave(&seat);
                    return Err((name, error));
                }
            }
        }
        drop(members);
        self.bell.ring();
        Ok(seat)
    }

    /// Ends the work for a store: none is running on return. The threads end with the last.
    pub fn leave(&self, seat: &Arc<Seat>) {
        let mut members = self.members.lock();
        let seats = members.seats.iter().filter(|other| !Arc::ptr_eq(other, seat)).cloned().collect();
        members.seats = Arc::new(seats);
        let ended = if members.seats.is_empty() { members.end() } else { Vec::new() };
        drop(members);
        let work: Vec<_> = seat.lanes.iter().map(|lane| lane.lock().take()).collect();
        drop(work);
        self.wait_for_end(ended);
    }

    fn wait_for_end(&self, threads: Vec<thread::JoinHandle<()>>) {
        self.bell.ring();
        for thread in threads {
            let _ = thread.join(); // a turn contains its panics
        }
    }

    /// What a thread does.
    fn work(&self, lane: usize, is_over: &AtomicBool) {
        loop {
            let seen = self.bell.count(); // before anything is examined: later work rings
            if is_over.load(Ordering::Acquire) {
                return;
            }
            let seats = Arc::clone(&self.members.lock().seats);
            match seats.iter().map(|seat| seat.turn(lane)).fold(Turn::Idle(IDLE_TICK), Turn::and) {
                Turn::Done => {}
                Turn::Nap(time) => thread::sleep(time),
                Turn::Idle(time) => self.bell.wait(seen, time),
            }
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(all(test, folddb_schedules))]
mod schedules;
