//! A flag that ends long work on a scan from outside: from a handler of signals, say, or another
//! thread.
//!
//! Whoever iterates rows stops by itself between two of them. Work that goes over a range in one
//! call looks at the flag there instead: counts, aggregates, folds, digests, comparisons.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use folddb_base::{Error, ErrorKind, Result};

/// Whether somebody may end the work, and by which flag.
#[derive(Clone, Default)]
pub struct Stop(Option<Arc<AtomicBool>>);

impl Stop {
    pub fn by(flag: &Arc<AtomicBool>) -> Stop {
        Stop(Some(Arc::clone(flag)))
    }

    /// Fails where the work is to end.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match &self.0 {
            Some(flag) if flag.load(Relaxed) => Err(stopped()),
            _ => Ok(()),
        }
    }
}

#[cold]
fn stopped() -> Error {
    Error::new(ErrorKind::Stopped, "the work was stopped before its end")
}
