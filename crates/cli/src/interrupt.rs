//! Ctrl-C: while somebody hears it, it stops what a command does, and not the program.
//!
//! The signal sets a flag, at which long work looks between two rows. One that comes while nobody
//! hears, or before the last one was heeded, ends the process, as it does by default. There is one
//! such signal for a process, and so one flag.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

use crate::failure::Failure;

/// True: the next signal ends the process. Somebody who hears makes it false; the signal makes it
/// true.
static ENDS: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Somebody hears.
static IS_HEARD: AtomicBool = AtomicBool::new(false);

/// While it lives, a signal only asks to stop.
pub(crate) struct Hearing(&'static AtomicBool);

/// Begins to hear. Where the system does not let us, Ctrl-C ends the process, as ever.
pub(crate) fn hear() -> Hearing {
    let ends = ENDS.get_or_init(|| {
        let ends = Arc::new(AtomicBool::new(true));
        // In this order: the default action comes first, so that a first signal is not taken for a
        // second one.
        let heard = flag::register_conditional_default(SIGINT, Arc::clone(&ends))
            .and_then(|_| flag::register(SIGINT, Arc::clone(&ends)));
        heard.map(|_| ends).unwrap_or_default()
    });
    ends.store(false, Ordering::Relaxed);
    IS_HEARD.store(true, Ordering::Relaxed);
    Hearing(ends)
}

impl Hearing {
    /// What was asked is done: the next signal only asks, too.
    pub(crate) fn heed(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Drop for Hearing {
    fn drop(&mut self) {
        IS_HEARD.store(false, Ordering::Relaxed);
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The flag that asks to stop, for calls of the store that go on for long; none while nobody hears.
pub(crate) fn flag() -> Option<Arc<AtomicBool>> {
    ENDS.get().filter(|_| IS_HEARD.load(Ordering::Relaxed)).cloned()
}

/// Breaks off where somebody who hears has been asked to stop.
pub(crate) fn flow() -> ControlFlow<()> {
    if check().is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Fails when somebody who hears has been asked to stop.
///
/// # Errors
/// [`Failure::Interrupted`].
pub(crate) fn check() -> Result<(), Failure> {
    match IS_HEARD.load(Ordering::Relaxed) && ENDS.get().is_some_and(|ends| ends.load(Ordering::Relaxed)) {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}

#[cfg(test)]
#[path = "interrupt/tests.rs"]
mod tests;
