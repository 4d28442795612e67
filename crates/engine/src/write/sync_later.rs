//! A sync that others do: a handle asks for it, the thread of the log does it, and a waker tells
//! when it is done. A handle may wait in its own thread as well: it then syncs like any commit.
//!
//! Called by `sync_handle` of the public API, and by the thread of the log.

use std::sync::Arc;
use std::task::{Poll, Waker};

use folddb_base::{Error, ErrorKind, Lsn, Result};

use crate::state::engine::Engine;
use crate::state::log_sync;

/// A request that everything that was written before it is made durable.
pub struct SyncRequest {
    engine: Arc<Engine>,
    lsn: Lsn,
    number: u64,
}

impl SyncRequest {
    /// Asks for it.
    ///
    /// # Errors
    /// The store is closed, poisoned, or not open for writing.
    pub fn ask(engine: &Arc<Engine>) -> Result<SyncRequest> {
        engine.check_not_read_only()?;
        engine.check_open()?;
        engine.health.check_writable(true)?;
        let lsn = engine.journal.as_ref().map_or(0, |journal| journal.end_lsn());
        engine.sync_waiters.ask(lsn);
        engine.bell.ring();
        Ok(SyncRequest { engine: Arc::clone(engine), lsn, number: engine.sync_waiters.number() })
    }

    /// Whether it is done.
    pub fn is_done(&self) -> bool {
        self.engine.journal.as_ref().is_none_or(|journal| journal.durable_lsn() >= self.lsn)
    }

    /// Waits until it is done: in this thread, which shares a sync with others that wait.
    ///
    /// # Errors
    /// A failed sync; the store is closed, in a forked child.
    pub fn wait(&self) -> Result<()> {
        if self.is_done() {
            return Ok(());
        }
        self.engine.check_here()?;
        log_sync::sync_to(&self.engine, self.lsn).map_err(|cause| self.not_durable(&cause))
    }

    /// Whether it is done; if not, `waker` is called when it is, or has failed.
    pub fn poll(&self, waker: &Waker) -> Poll<Result<()>> {
        let engine = &*self.engine;
        if self.is_done() {
            return Poll::Ready(Ok(()));
        }
        if engine.health.is_forked() {
            return Poll::Ready(Err(engine.health.closed()));
        }
        let is_left = match engine.sync_waiters.leave(self.number, self.lsn, waker) {
            Ok(is_left) => is_left,
            Err(cause) => return Poll::Ready(Err(self.not_durable(&cause))),
        };
        // Once more, now that whoever syncs sees the waker.
        match engine.health.cause() {
            _ if self.is_done() => return Poll::Ready(Ok(())),
            Some(cause) => return Poll::Ready(Err(self.not_durable(&cause))),
            None if !is_left => return Poll::Ready(Err(self.not_durable(&engine.health.closed()))),
            None => {}
        }
        engine.sync_waiters.ask(self.lsn);
        engine.bell.ring();
        Poll::Pending
    }

    fn not_durable(&self, cause: &Error) -> Error {
        match cause.kind() {
            ErrorKind::NotDurable => cause.clone(),
            _ => log_sync::not_durable("what was written is committed", cause),
        }
    }
}

/// A forked child takes none of its parent's locks.
impl Drop for SyncRequest {
    fn drop(&mut self) {
        if !self.engine.health.is_forked() {
            self.engine.sync_waiters.forget(self.number);
        }
    }
}

/// Does what handles have asked for, and wakes those whose sync somebody else has done.
pub(crate) fn serve(engine: &Engine) -> Result<()> {
    let Some(journal) = &engine.journal else { return Ok(()) };
    let asked = engine.sync_waiters.asked_beyond(journal.durable_lsn());
    let synced = asked.map_or(Ok(()), |lsn| log_sync::sync_to(engine, lsn));
    engine.sync_waiters.wake(journal.durable_lsn());
    synced.inspect_err(|error| engine.sync_waiters.fail(asked.unwrap_or_default(), error))
}
