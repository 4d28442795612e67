//! What a function of C writes during its call: a value, or why there is none.
//!
//! A `folddb_output *` is a number as well. It leads to what the thread is collecting at the
//! moment, and nowhere after the call: the bytes are never at an address that C knows.

use std::cell::{Cell, RefCell};

use crate::memory::Bytes;

/// Collects what a callback writes. It is valid while the callback runs, on its thread.
pub struct Output(());

thread_local! {
    /// What is being collected, by number: the last is that of the callback which runs now.
    static COLLECTING: RefCell<Vec<(usize, Vec<u8>)>> = const { RefCell::new(Vec::new()) };
    /// The last number that was given.
    static LAST: Cell<usize> = const { Cell::new(0) };
}

/// Runs `call`, a function of C, with an output, and appends what it wrote to `out`.
pub(crate) fn collect<T>(out: &mut Vec<u8>, call: impl FnOnce(*mut Output) -> T) -> T {
    let number = LAST.get().wrapping_add(1).max(1);
    LAST.set(number);
    COLLECTING.with_borrow_mut(|open| open.push((number, std::mem::take(out))));
    let done = call(std::ptr::without_provenance_mut(number));
    if let Some((_, bytes)) = COLLECTING.with_borrow_mut(Vec::pop) {
        *out = bytes;
    }
    done
}

/// Appends bytes to the output of a callback. False where `output` is not that of the callback
/// which runs on this thread at the moment; then nothing is appended.
///
/// The bytes are copied.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_output_append(output: *mut Output, data: Bytes, data_len: usize) -> bool {
    let Ok(data) = data.get(data_len, "data") else { return false };
    COLLECTING.with_borrow_mut(|open| match open.last_mut() {
        Some((number, bytes)) if *number == output.addr() => {
            bytes.extend_from_slice(data);
            true
        }
        _ => false,
    })
}
