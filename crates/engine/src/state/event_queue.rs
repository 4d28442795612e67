//! Events on their way to the program.
//!
//! Whoever does the work notes an event, under whatever locks it holds. A worker hands it on later,
//! with no lock of the store held, so that the listener may use the store. Nobody waits for a slow
//! listener but that worker: the queue is short, and of what does not fit only the number is kept.
//!
//! ```text
//!   noted = handed on + missed + queued
//! ```

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use folddb_host::sync::Mutex;
use folddb_host::sync::atomic::{AtomicBool, Ordering};

use crate::events::{Event, Listener, MissedEvents, PoisonEvent};
use crate::state::health::Health;

/// More events than this do not wait.
const QUEUE_MAX: usize = 1024;

/// The events that wait.
#[derive(Debug)]
pub struct EventQueue {
    listener: Option<Listener>,
    waiting: Mutex<Waiting>,
    /// Held by who hands events on, so that they come in order, one at a time.
    handing_on: Mutex<()>,
    poison_was_noted: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Event>,
    missed: u64,
}

impl EventQueue {
    pub(crate) fn new(listener: Option<Listener>) -> EventQueue {
        EventQueue {
            listener,
            waiting: Mutex::default(),
            handing_on: Mutex::default(),
            poison_was_noted: AtomicBool::new(false),
        }
    }

    /// Notes what has happened, if anybody listens.
    pub(crate) fn note(&self, event: impl FnOnce() -> Event) {
        if self.listener.is_none() {
            return;
        }
        let event = event();
        let mut waiting = self.waiting.lock();
        match waiting.events.len() < QUEUE_MAX {
            true => waiting.events.push_back(event),
            false => waiting.missed += 1,
        }
    }

    /// Hands on what waits. Returns at once where somebody else does, also when the listener itself
    /// leads here.
    pub fn hand_on(&self, health: &Health) {
        let Some(listener) = &self.listener else { return };
        let Some(_only) = self.handing_on.try_lock() else { return };
        self.note_poison(health);
        while let Some(event) = self.next() {
            // A listener that panics has had its event; the worker goes on.
            let _ = catch_unwind(AssertUnwindSafe(|| (listener.0)(&event)));
        }
    }

    fn next(&self) -> Option<Event> {
        let mut waiting = self.waiting.lock();
        waiting.events.pop_front().or_else(|| {
            let events = std::mem::take(&mut waiting.missed);
            (events > 0).then_some(Event::Missed(MissedEvents { events }))
        })
    }

    /// Poison is met under any lock, and told once.
    fn note_poison(&self, health: &Health) {
        if let Some(cause) = health.cause()
            && !self.poison_was_noted.swap(true, Ordering::Relaxed)
        {
            let (kind, message) = (cause.kind(), cause.message().to_owned());
            self.note(|| Event::Poison(PoisonEvent { kind, message }));
        }
    }
}

#[cfg(test)]
mod tests;
