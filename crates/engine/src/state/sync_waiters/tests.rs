use std::sync::Arc;
use std::task::Wake;

use super::*;

/// A task that owns another handle, which is dropped with it.
struct Owner {
    waiters: Arc<SyncWaiters>,
    owned: u64,
}

impl Wake for Owner {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.waiters.forget(self.owned);
    }
}

/// The waker is the last that is left of a task: where it is dropped under the lock, this waits for
/// ever.
#[test]
fn a_task_may_end_where_its_waker_is_replaced_dropped_or_woken() {
    let waiters = Arc::new(SyncWaiters::default());
    let (one, other) = (waiters.number(), waiters.number());
    let leave = || {
        let task = Arc::new(Owner { waiters: Arc::clone(&waiters), owned: other });
        assert!(waiters.leave(one, 10, &task.into()).unwrap());
        assert!(waiters.leave(other, 20, Waker::noop()).unwrap());
    };
    let left = || waiters.wakers.lock().tasks.keys().copied().collect::<Vec<u64>>();
    leave();
    assert!(waiters.leave(one, 10, Waker::noop()).unwrap());
    assert_eq!(left(), [one]);
    leave();
    waiters.forget(one);
    assert!(left().is_empty());
    leave();
    waiters.wake(10);
    assert!(left().is_empty());
}

#[test]
fn what_was_asked_for_while_a_sync_failed_is_asked_for_still() {
    let waiters = SyncWaiters::default();
    waiters.ask(10);
    let tried = waiters.asked_beyond(0).unwrap();
    waiters.ask(20);
    waiters.fail(tried, &Error::invalid("a disk"));
    assert_eq!(waiters.asked_beyond(0), Some(20));
    waiters.fail(20, &Error::invalid("a disk"));
    assert_eq!(waiters.asked_beyond(0), None);
}

/// A waker that does this.
struct Does<F>(F);

impl<F: Fn() + Send + Sync> Wake for Does<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

#[test]
fn a_waker_that_panics_harms_neither_who_synced_nor_the_others() {
    let waiters = SyncWaiters::default();
    let woken = Arc::new(AtomicU64::new(0));
    let panics: Waker = Arc::new(Does(|| panic!("a user's waker"))).into();
    let count = Arc::clone(&woken);
    let does = move || _ = count.fetch_add(1, Ordering::Relaxed);
    let counts: Waker = Arc::new(Does(does)).into();
    for waker in [&counts, &panics, &counts] {
        assert!(waiters.leave(waiters.number(), 10, waker).unwrap());
    }
    waiters.wake(10);
    assert_eq!(woken.load(Ordering::Relaxed), 2);
    assert!(waiters.wakers.lock().tasks.is_empty());
}
