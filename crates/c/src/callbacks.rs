//! What comes with a function of C's: a context, and how that is given back.
//!
//! A function of C's has the type of a safe function. Whoever made it has promised what the header
//! asks for: that it keeps to its signature, may be called from any thread, and does not unwind.

use std::ffi::{c_char, c_void};

/// Gives back a context, when the library calls the function that it belongs to no more.
pub type Destroy = Option<extern "C" fn(context: *mut c_void)>;

/// A context of C's, which is given back when this is dropped.
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

/// Where some bytes begin, for C, which has their length beside.
pub(crate) fn begin(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}
