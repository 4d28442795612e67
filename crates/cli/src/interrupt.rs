//! Ctrl-C: while it is handled, it stops the running command instead of the program.
//!
//! The signal sets a flag, which long work checks between two rows. A signal while it is not
//! handled, or before the last one was processed, ends the process, as by default. A process has
//! one such signal, and so one flag.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

use crate::failure::Failure;

/// If true, the next signal ends the process. Handling makes it false; the signal makes it true.
static ENDS: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// The signal is handled.
static IS_HEARD: AtomicBool = AtomicBool::new(false);

/// While it lives, a signal only asks to stop.
pub(crate) struct Hearing(&'static AtomicBool);

/// Begins to handle it. If the system does not allow that, Ctrl-C ends the process, as usual.
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
    /// Handles it to the end of the process: what is done, and told, is not to end as if the signal
    /// had broken it off. A second one ends the process, as ever.
    pub(crate) fn stay(self) {
        std::mem::forget(self);
    }

    /// The request is processed: the next signal only sets the flag again.
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

/// The flag for long calls of the store; none while the signal is not handled.
pub(crate) fn flag() -> Option<Arc<AtomicBool>> {
    ENDS.get().filter(|_| IS_HEARD.load(Ordering::Relaxed)).cloned()
}

/// Waits, or fails soon after the flag is set.
///
/// # Errors
/// [`Failure::Interrupted`].
pub(crate) fn sleep(time: Duration) -> Result<(), Failure> {
    const STEP: Duration = Duration::from_millis(20);
    let since = Instant::now();
    while let Some(left) = time.checked_sub(since.elapsed()).filter(|left| !left.is_zero()) {
        check()?;
        std::thread::sleep(left.min(STEP));
    }
    check()
}

/// Breaks if the flag is set.
pub(crate) fn flow() -> ControlFlow<()> {
    if check().is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Fails if the flag is set.
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
