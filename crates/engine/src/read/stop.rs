//! A flag that stops long work on a scan from outside, such as from a signal handler or another
//! thread.
//!
//! A caller that iterates rows can stop between two of them. Work that covers a range in one call
//! checks the flag instead: counts, aggregates, folds, digests, comparisons.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use folddb_base::{Error, ErrorKind, Result};

/// The flag that stops the work, if there is one.
#[derive(Clone, Default)]
pub struct Stop(Option<Arc<AtomicBool>>);

impl Stop {
    pub fn by(flag: &Arc<AtomicBool>) -> Stop {
        Stop(Some(Arc::clone(flag)))
    }

    /// Fails if the work is to stop.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match &self.0 {
            Some(flag) if flag.load(Relaxed) => Err(stopped()),
            _ => Ok(()),
        }
    }
}

/// The error of work that its caller has stopped.
#[cold]
pub fn stopped() -> Error {
    Error::new(ErrorKind::Stopped, "the work was stopped before its end")
}
