//! Forks are reported in the child.
//!
//! A fork copies the memory of a process, but only one of its threads, and leaves locked what the
//! others had locked.

use std::sync::Once;

/// Calls `in_child` in each child that is forked from now on. It must take no lock. Only the first
/// call does anything.
pub(crate) fn watch(in_child: extern "C" fn()) {
    static WATCHES: Once = Once::new();
    WATCHES.call_once(|| {
        // SAFETY: the function keeps to its signature, and takes nothing that the fork may have
        // left half done. Where there is no memory for it, a child goes unnoticed. Tested by
        // `forks`.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}
