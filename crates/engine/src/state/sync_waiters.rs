//! Who waits for the log to be durable without a thread of its own: wakers, each for an LSN.
//!
//! ```text
//!   ask     a handle wants the log synced up to an LSN      the log's thread does it next
//!   wait    a task leaves its waker                         unless the log is durable so far
//!   wake    the log has been synced                         all that wait for no more
//!   fail    a sync has failed                               all; each is told why
//!   end     the store is closed                             all
//! ```
//!
//! A task first leaves its waker and then looks at the log once more; who syncs moves the log first
//! and then wakes. So no task sleeps for good.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::task::Waker;

use folddb_base::{Error, Lsn, Result};
use folddb_host::sync::Mutex;
use folddb_host::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The handles of a store that wait.
#[derive(Default)]
pub struct SyncWaiters {
    /// The highest LSN that the log's thread is asked to sync.
    asked: AtomicU64,
    /// Whether anybody waits: those who sync look here first.
    has_wakers: AtomicBool,
    wakers: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    next: u64,
    /// By the number of a handle: what it waits for, and how it is woken.
    tasks: BTreeMap<u64, (Lsn, Waker)>,
    /// Handles whose sync has failed, and why, until they are told.
    failed: BTreeMap<u64, Error>,
    is_over: bool,
}

impl SyncWaiters {
    /// Asks for a sync up to `lsn`.
    pub fn ask(&self, lsn: Lsn) {
        self.asked.fetch_max(lsn, Ordering::AcqRel);
    }

    /// The LSN that is asked for and not durable yet.
    pub fn asked_beyond(&self, durable: Lsn) -> Option<Lsn> {
        let asked = self.asked.load(Ordering::Acquire);
        (asked > durable).then_some(asked)
    }

    /// A number for a handle.
    pub fn number(&self) -> u64 {
        let mut waiting = self.wakers.lock();
        waiting.next += 1;
        waiting.next
    }

    /// Leaves the waker of a handle, in place of its last one. If its sync has failed, why; and
    /// false once the store is closed.
    ///
    /// # Errors
    /// The failure of its sync.
    pub fn leave(&self, number: u64, lsn: Lsn, waker: &Waker) -> Result<bool> {
        // Made and dropped with no lock held: either may run anything, as the end of a task.
        let waker = waker.clone();
        let mut waiting = self.wakers.lock();
        if let Some(cause) = waiting.failed.remove(&number) {
            return Err(cause);
        }
        if waiting.is_over {
            return Ok(false);
        }
        let left = waiting.tasks.insert(number, (lsn, waker));
        self.has_wakers.store(true, Ordering::SeqCst);
        drop(waiting);
        drop(left);
        Ok(true)
    }

    /// A handle is dropped.
    pub fn forget(&self, number: u64) {
        let mut waiting = self.wakers.lock();
        let left = waiting.tasks.remove(&number);
        waiting.failed.remove(&number);
        drop(waiting);
        drop(left); // with no lock held: this may be the end of a task that has other handles
    }

    /// Wakes all that wait for no more than `durable`. Costs a load if nobody waits.
    #[inline]
    pub fn wake(&self, durable: Lsn) {
        if self.has_wakers.load(Ordering::SeqCst) {
            self.wake_those(durable);
        }
    }

    /// Tells all that wait why the sync up to `lsn` has failed. It is asked for no more; what was
    /// asked for meanwhile is.
    pub fn fail(&self, lsn: Lsn, error: &Error) {
        let _ = self.asked.compare_exchange(lsn, 0, Ordering::AcqRel, Ordering::Acquire);
        {
            let waiting = &mut *self.wakers.lock();
            waiting.failed.extend(waiting.tasks.keys().map(|number| (*number, error.clone())));
        }
        self.wake(Lsn::MAX);
    }

    /// The store is closed: nobody waits any more.
    pub fn end(&self) {
        self.wakers.lock().is_over = true;
        self.wake(Lsn::MAX);
    }

    #[cold]
    fn wake_those(&self, durable: Lsn) {
        let woken = {
            let mut waiting = self.wakers.lock();
            let tasks = std::mem::take(&mut waiting.tasks).into_iter();
            let (woken, kept): (BTreeMap<_, _>, BTreeMap<_, _>) =
                tasks.partition(|(_, (lsn, _))| *lsn <= durable);
            self.has_wakers.store(!kept.is_empty(), Ordering::SeqCst);
            waiting.tasks = kept;
            woken
        };
        woken.into_values().for_each(|(_, waker)| wake_alone(waker));
    }
}

/// Wakes a task. No lock is held, since this may run anything; if it panics, that is not the fault
/// of the thread that has synced, and the others are woken all the same.
fn wake_alone(waker: Waker) {
    let _ = std::panic::catch_unwind(AssertUnwindSafe(|| waker.wake()));
}

#[cfg(test)]
#[path = "sync_waiters/tests.rs"]
mod tests;
