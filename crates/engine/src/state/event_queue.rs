//! Events on their way to the program.
//!
//! The code that does the work notes an event, under any locks. A worker delivers it later, without
//! locks of the store, so that the listener may use the store. Only that worker waits for a slow
//! listener: the queue is short, and events that do not fit are only counted.
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

/// Most events that wait.
const QUEUE_MAX: usize = 1024;

/// The events that wait.
#[derive(Debug)]
pub struct EventQueue {
    listener: Option<Listener>,
    waiting: Mutex<Waiting>,
    /// Held while events are delivered, so that they arrive in order, one at a time.
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

    /// Notes an event, if there is a listener.
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

    /// Delivers waiting events. Returns at once if another thread is doing so, or if the listener
    /// itself calls it.
    pub fn hand_on(&self, health: &Health) {
        let Some(listener) = &self.listener else { return };
        let Some(_only) = self.handing_on.try_lock() else { return };
        self.note_poison(health);
        while let Some(event) = self.next() {
            // A listener that panics has had its event; the worker continues.
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

    /// Poison may happen under any lock, and is reported once.
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
