//! The context of a function of C, and how it is released.
//!
//! A function of C has the type of a safe function. Its author has promised what the header asks
//! for: that it keeps to its signature, may be called from any thread, and does not unwind.

use std::ffi::{c_char, c_void};
use std::ops::ControlFlow;

/// Releases a context, when the library no longer calls its function.
pub type Destroy = Option<extern "C" fn(context: *mut c_void)>;

/// A context of C, which is released when this is dropped.
pub(crate) struct Context {
    pointer: *mut c_void,
    destroy: Destroy,
}

// SAFETY: the pointer is handed to C's function and followed by nothing else; C has promised that
// this function may be called from any thread. Tested by `custom`.
unsafe impl Send for Context {}
// SAFETY: the same, from several threads at once. Tested by `custom`.
unsafe impl Sync for Context {}

impl Context {
    pub(crate) fn new(pointer: *mut c_void, destroy: Destroy) -> Context {
        Context { pointer, destroy }
    }

    pub(crate) fn pointer(&self) -> *mut c_void {
        self.pointer
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy {
            destroy(self.pointer);
        }
    }
}

/// Called with the progress of long work: how much is done, and of how much. Returns whether to
/// continue. A C++ exception must not leave it.
pub type ProgressFunction = Option<extern "C" fn(context: *mut c_void, done: u64, total: u64) -> bool>;

/// Tells a function of C, if there is one, how far the work is, until it asks to stop.
pub(crate) struct Progress {
    function: ProgressFunction,
    context: *mut c_void,
    is_stopped: bool,
}

impl Progress {
    pub(crate) fn new(function: ProgressFunction, context: *mut c_void) -> Progress {
        Progress { function, context, is_stopped: false }
    }

    pub(crate) fn report(&mut self, done: u64, total: u64) -> ControlFlow<()> {
        self.is_stopped |= self.function.is_some_and(|told| !told(self.context, done, total));
        if self.is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped
    }
}

/// The beginning of some bytes, for C, which has their length.
pub(crate) fn begin(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}
