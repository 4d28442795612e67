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
    /// The number of a handle, what it waits for, and how it is woken.
    tasks: Vec<(u64, Lsn, Waker)>,
    /// Handles whose sync has failed, and why, until they are told.
    failed: Vec<(u64, Error)>,
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
        let mut waker = waker.clone();
        let mut waiting = self.wakers.lock();
        if let Some(at) = waiting.failed.iter().position(|(other, _)| *other == number) {
            return Err(waiting.failed.swap_remove(at).1);
        }
        if waiting.is_over {
            return Ok(false);
        }
        match waiting.tasks.iter_mut().find(|(other, ..)| *other == number) {
            Some((_, _, held)) => std::mem::swap(held, &mut waker),
            None => waiting.tasks.push((number, lsn, std::mem::replace(&mut waker, Waker::noop().clone()))),
        }
        self.has_wakers.store(true, Ordering::SeqCst);
        drop(waiting);
        drop(waker);
        Ok(true)
    }

    /// A handle is dropped.
    pub fn forget(&self, number: u64) {
        let mut waiting = self.wakers.lock();
        let at = waiting.tasks.iter().position(|(other, ..)| *other == number);
        let left = at.map(|at| waiting.tasks.swap_remove(at));
        waiting.failed.retain(|(other, _)| *other != number);
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
            waiting.failed.extend(waiting.tasks.iter().map(|(number, ..)| (*number, error.clone())));
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
        let woken: Vec<Waker> = {
            let mut waiting = self.wakers.lock();
            let tasks = std::mem::take(&mut waiting.tasks);
            let (woken, kept): (Vec<_>, Vec<_>) = tasks.into_iter().partition(|(_, lsn, _)| *lsn <= durable);
            self.has_wakers.store(!kept.is_empty(), Ordering::SeqCst);
            waiting.tasks = kept;
            woken.into_iter().map(|(_, _, waker)| waker).collect()
        };
        woken.into_iter().for_each(Waker::wake); // with no lock held: it may run anything
    }
}

#[cfg(test)]
#[path = "sync_waiters/tests.rs"]
mod tests;
