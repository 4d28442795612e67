//! The context of a function of C, and how it is released.
//!
//! A function of C has the type of a safe function. Its author has promised what the header asks
//! for: that it keeps to its signature, may be called from any thread, and does not unwind.

use std::ffi::{c_char, c_void};

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

/// The beginning of some bytes, for C, which has their length.
pub(crate) fn begin(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}
