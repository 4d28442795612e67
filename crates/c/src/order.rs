//! Key orders of C, by name.

use std::cmp::Ordering;
use std::ffi::{c_char, c_int, c_void};

use folddb::order::CustomOrder;

use crate::callbacks::{Context, begin};

/// Compares two keys: below zero where `a` comes first, above where `b` does. Zero leaves it to
/// their bytes: keys are one key only where their bytes are the same.
///
/// It must be an order, and the same one in every process, for as long as a table has it. It is
/// called from any thread, by several at once, with locks held: it must not call the store that
/// calls it. The pointers are valid during the call. A C++ exception must not leave it.
pub type OrderFunction = Option<
    extern "C" fn(
        context: *mut c_void,
        a: *const c_char,
        a_len: usize,
        b: *const c_char,
        b_len: usize,
    ) -> c_int,
>;

/// The function, as a store calls it.
pub(crate) struct NamedOrder {
    pub(crate) name: String,
    pub(crate) function: extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int,
    pub(crate) context: Context,
}

impl CustomOrder for NamedOrder {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        (self.function)(self.context.pointer(), begin(a), a.len(), begin(b), b.len()).cmp(&0)
    }
}
