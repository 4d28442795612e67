//! Whether the store may still write: poison, and space.
//!
//! A failed write or sync of the log or the manifest leaves the disk in an unknown state, so it
//! *poisons* the store: later writes fail with the first cause, reads continue, and only reopening
//! (which rewrites what it replays) repairs it. A full disk does not poison: writes are refused
//! until there is space again.

use std::sync::Arc;

use folddb_base::{Error, ErrorKind, Result, size_text};
use folddb_host::forks::ForkMark;
use folddb_host::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use folddb_host::sync::{Mutex, thread};

/// The facts from which [`Space::verdict`] decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Bytes free in the file system.
    pub free_bytes: u64,
    /// Bytes that the store uses.
    pub used_bytes: u64,
    /// What must stay free.
    pub reserve_bytes: u64,
    /// What the store may use.
    pub bytes_max: Option<u64>,
    /// How much of that ordinary writes leave to flushes, merges and deletes.
    pub kept_bytes: u64,
}

impl Space {
    /// Whether ordinary writes are allowed; if not, the text says why.
    pub fn verdict(&self) -> Result<(), String> {
        if self.free_bytes < self.reserve_bytes {
            return Err(format!(
                "the disk is full: {} is free, and writes leave {} to merges and deletes",
                size_text(self.free_bytes),
                size_text(self.reserve_bytes)
            ));
        }
        match self.bytes_max {
            Some(limit) if self.used_bytes > limit.saturating_sub(self.kept_bytes) => Err(format!(
                "the store uses {} bytes of its budget of {limit}, and {} are reserved for flushes, merges and deletes",
                self.used_bytes, self.kept_bytes
            )),
            _ => Ok(()),
        }
    }
}

/// The state of health of a store.
#[derive(Debug, Default)]
pub struct Health {
    poison: Mutex<Option<Error>>,
    poisoned: AtomicBool,
    closed: AtomicBool,
    short_of_space: Mutex<Option<String>>,
    is_short: AtomicBool,
    used_bytes: AtomicU64,
    mark: Arc<ForkMark>,
}

impl Health {
    /// That of a store that the process of this mark opens.
    pub(crate) fn of(mark: &Arc<ForkMark>) -> Health {
        Health { mark: Arc::clone(mark), ..Health::default() }
    }

    /// Fails if nothing may be written, or only deletes may and this is not one. A forked child is
    /// found before, where a call begins.
    #[inline]
    pub fn check_writable(&self, frees_only: bool) -> Result<()> {
        if self.poisoned.load(Ordering::Acquire) || self.closed.load(Ordering::Acquire) {
            return Err(self.why_not());
        }
        if !frees_only && self.is_short() {
            let why = self.short_of_space.lock().clone().unwrap_or_default();
            return Err(Error::new(ErrorKind::NoSpace, why));
        }
        Ok(())
    }

    #[cold]
    fn why_not(&self) -> Error {
        match &*self.poison.lock() {
            Some(cause) => {
                Error::new(ErrorKind::Poisoned, format!("an earlier write failed: {}", cause.message()))
            }
            None => self.closed(),
        }
    }

    /// Why a closed store answers nothing.
    #[cold]
    pub fn closed(&self) -> Error {
        if self.is_forked() { in_child() } else { Error::new(ErrorKind::Closed, "the store is closed") }
    }

    /// Records the first failure that leaves the disk in an unknown state. Lack of space is not
    /// one.
    pub fn poison(&self, cause: &Error) {
        if matches!(cause.kind(), ErrorKind::NoSpace | ErrorKind::Closed) {
            return;
        }
        self.poison.lock().get_or_insert_with(|| cause.clone());
        self.poisoned.store(true, Ordering::Release);
    }

    /// Whether space was short at the last check.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Acquire)
    }

    /// The cause of the poison, if there is one.
    pub fn cause(&self) -> Option<Error> {
        self.poison.lock().clone()
    }

    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Whether the store is closed for this process: always in a forked child.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) || self.is_forked()
    }

    /// Whether this process is a fork of the one that opened the store: it takes none of its locks.
    #[inline]
    pub fn is_forked(&self) -> bool {
        self.mark.is_forked()
    }

    /// Notes whether there is space.
    pub(crate) fn set_space(&self, space: &Space) {
        self.used_bytes.store(space.used_bytes, Ordering::Relaxed);
        self.set_short(space.verdict().err());
    }

    /// Notes that the operating system refused for lack of space, or that it no longer does.
    pub(crate) fn set_short(&self, why: Option<String>) {
        let mut short = self.short_of_space.lock();
        self.is_short.store(why.is_some(), Ordering::Release);
        *short = why;
    }

    /// Why ordinary writes are refused for lack of space, if they are.
    pub fn short_of_space(&self) -> Option<String> {
        self.short_of_space.lock().clone()
    }
}

/// Why a forked child gets nothing from what its parent has opened.
pub(crate) fn in_child() -> Error {
    let message = "the store was opened before this process was forked, which leaves its threads behind";
    Error::new(ErrorKind::Closed, message)
        .advise("open it in the child, once the parent has closed it; or fork before stores are opened")
}

/// Poisons the store if it is dropped by a panic: what it guards was left half done.
pub struct PoisonOnPanic<'h> {
    health: &'h Health,
    /// An earlier panic is not ours.
    was_panicking: bool,
}

impl<'h> PoisonOnPanic<'h> {
    pub fn new(health: &'h Health) -> PoisonOnPanic<'h> {
        PoisonOnPanic { health, was_panicking: thread::panicking() }
    }
}

impl Drop for PoisonOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() && !self.was_panicking {
            self.health.poison(&Error::new(
                ErrorKind::Io,
                "a write panicked half-way; reopening the store replays all of it",
            ));
        }
    }
}

#[cfg(test)]
mod tests;
