//! Folds written in C, named and versioned.

use std::ffi::{c_char, c_int, c_void};

use folddb::{Fold, FoldFailure, Outcome};

use crate::callbacks::{Context, begin};
use crate::output::{Output, collect};

/// The outcome of a fold function.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldOutcome {
    /// It has appended the value to its output.
    Value = 0,
    /// The value is the earlier one, as it is.
    KeepEarlier = 1,
    /// The value is the later one, as it is.
    KeepLater = 2,
    /// The key becomes absent, whatever came before these two.
    Delete = 3,
    /// It cannot fold them; what it has appended to its output says why. So does any other number.
    Failed = 4,
}

/// Folds `later` onto `earlier`, which are values of `key`, and returns one of
/// `folddb_fold_outcome`.
///
/// It must be associative, byte for byte, and give equal bytes for equal bytes, in every process
/// and version. It is called from any thread, by several at once, with locks held: it must not call
/// the store that calls it. The pointers are valid during the call. A C++ exception must not leave
/// it.
pub type FoldFunction = Option<
    extern "C" fn(
        context: *mut c_void,
        key: *const c_char,
        key_len: usize,
        earlier: *const c_char,
        earlier_len: usize,
        later: *const c_char,
        later_len: usize,
        output: *mut Output,
    ) -> c_int,
>;

type Function = extern "C" fn(
    *mut c_void,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *mut Output,
) -> c_int;

/// The function, as a store calls it.
pub(crate) struct CustomFold {
    pub(crate) name: String,
    pub(crate) version: u32,
    pub(crate) function: Function,
    pub(crate) context: Context,
}

impl Fold for CustomFold {
    fn spec(&self) -> String {
        self.name.clone()
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn fold(
        &self,
        key: &[u8],
        earlier: &[u8],
        later: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, FoldFailure> {
        let outcome = collect(out, |output| {
            (self.function)(
                self.context.pointer(),
                begin(key),
                key.len(),
                begin(earlier),
                earlier.len(),
                begin(later),
                later.len(),
                output,
            )
        });
        match outcome {
            outcome if outcome == FoldOutcome::Value as c_int => Ok(Outcome::Value),
            outcome if outcome == FoldOutcome::KeepEarlier as c_int => Ok(Outcome::KeepEarlier),
            outcome if outcome == FoldOutcome::KeepLater as c_int => Ok(Outcome::KeepLater),
            outcome if outcome == FoldOutcome::Delete as c_int => Ok(Outcome::Delete),
            outcome if outcome == FoldOutcome::Failed as c_int => {
                Err(FoldFailure::new(String::from_utf8_lossy(out)))
            }
            other => Err(FoldFailure::new(format!("its function returned {other}"))),
        }
    }
}
