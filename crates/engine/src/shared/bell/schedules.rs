//! The bell under many schedules. A wait never times out there, so a lost wake-up leaves a thread
//! waiting forever, which the scheduler reports.

use std::sync::Arc;
use std::time::Duration;

use folddb_host::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use folddb_host::sync::{schedules, thread};

use super::*;

/// How everyone waits: count, look, wait.
fn wait_until(bell: &Bell, done: impl Fn() -> bool) {
    loop {
        let seen = bell.count();
        if done() {
            return;
        }
        bell.wait(seen, Duration::MAX);
    }
}

#[test]
fn schedules_of_a_bell_that_no_one_may_miss() {
    schedules(3000, || {
        let shared = Arc::new((Bell::default(), AtomicUsize::new(0), AtomicBool::new(false)));
        let mut threads = Vec::new();
        for _ in 0..2 {
            let ringer = Arc::clone(&shared);
            threads.push(thread::spawn(move || {
                ringer.1.fetch_add(1, Ordering::Relaxed);
                ringer.0.ring();
            }));
            let waiter = Arc::clone(&shared);
            threads.push(thread::spawn(move || {
                wait_until(&waiter.0, || waiter.1.load(Ordering::Relaxed) == 2);
                waiter.2.store(true, Ordering::Relaxed);
                waiter.0.ring();
            }));
        }
        wait_until(&shared.0, || shared.2.load(Ordering::Relaxed));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
