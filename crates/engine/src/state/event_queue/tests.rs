use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use folddb_base::{Error, ErrorKind};

use super::*;
use crate::events::FlushEvent;

fn flush(records: u64) -> Event {
    Event::Flush(FlushEvent {
        table: "t".to_owned(),
        records,
        memory_bytes: 0,
        took: std::time::Duration::ZERO,
    })
}

fn queue(listener: impl Fn(&Event) + Send + Sync + 'static) -> EventQueue {
    EventQueue::new(Some(Listener(Arc::new(listener))))
}

#[test]
fn noted_is_handed_on_in_order_or_missed() {
    let got = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&got);
    let queue = queue(move |event| into.lock().push(event.clone()));
    let noted = QUEUE_MAX as u64 + 10;
    (0..noted).for_each(|records| queue.note(|| flush(records)));
    queue.hand_on(&Health::default());
    let got = got.lock();
    let expected = (0..QUEUE_MAX as u64).map(flush).chain([Event::Missed(MissedEvents { events: 10 })]);
    assert!(got.iter().cloned().eq(expected), "{} events", got.len());
}

#[test]
fn poison_is_told_once() {
    let got = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&got);
    let queue = queue(move |event| into.lock().push(event.clone()));
    let health = Health::default();
    queue.hand_on(&health);
    health.poison(&Error::new(ErrorKind::Io, "the disk is gone"));
    (0..3).for_each(|_| queue.hand_on(&health));
    let poison = PoisonEvent { kind: ErrorKind::Io, message: "the disk is gone".to_owned() };
    assert_eq!(*got.lock(), [Event::Poison(poison)]);
}

#[test]
fn a_listener_that_panics_gets_the_next_event_too() {
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    let queue = queue(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        panic!("of the listener");
    });
    (0..2).for_each(|records| queue.note(|| flush(records)));
    queue.hand_on(&Health::default());
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[test]
fn without_a_listener_nothing_is_kept() {
    let queue = EventQueue::new(None);
    queue.note(|| unreachable!("no event is made"));
    queue.hand_on(&Health::default());
}
