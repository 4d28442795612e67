//! The fold function of a table: how two values of one key become one.
//!
//! Implement [`Fold`] for a function of your own, or take one of [`crate::folds`] by its spec
//! string.
//!
//! # The laws
//! Values and operands are of one type. For all values a, b, c of one key:
//!
//! - **associative**: (a·b)·c = a·(b·c), byte for byte, unless the fold declares itself
//!   approximate;
//! - **deterministic**: equal bytes in, equal bytes out, in every process and version;
//! - **short-circuit**: where `short_circuit(v)` holds, x·v = v for every x;
//! - **delete**: where `is_deleted(d)` holds, d·y = y for every y (0 for sums).
//!
//! `folddb check-fold` looks for counter-examples.

use std::borrow::Cow;

use crate::datum::{Datum, plain};
use crate::words::WordFold;

/// The bytes of a member, a name or a payload.
///
/// # Errors
/// As [`plain::bytes`].
pub(crate) fn plain_bytes(datum: &Datum) -> Result<Cow<'_, [u8]>, FoldFailure> {
    plain::bytes(datum).map_err(FoldFailure)
}

/// The result of folding two values: these are all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The value that the fold appended to its output.
    Value,
    /// The earlier value, unchanged. The output is ignored.
    KeepEarlier,
    /// The later value, unchanged. The output is ignored.
    KeepLater,
    /// The key becomes absent. Declared *absorbing*: what came before these two no longer matters.
    Delete,
}

/// Why a fold, or a codec, could not read bytes. The message names what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldFailure(pub(crate) String);

impl FoldFailure {
    /// A failure with this message.
    pub fn new(message: impl Into<String>) -> FoldFailure {
        FoldFailure(message.into())
    }

    /// What was expected.
    pub fn message(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for FoldFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FoldFailure {}

/// So much longer than its operands is room for what they fold to. Buffers with room from the
/// beginning do not grow: where several threads fold, growing waits for the lock of an allocator.
const MORE_BYTES: usize = 64;

/// Folds values in pairs of neighbors, then the results of that, until one is left: a value that
/// grows is copied as often as the number of values has digits, in base 2.
pub(crate) fn fold_in_pairs<F: Fold + ?Sized>(
    fold: &F,
    key: &[u8],
    values: &[&[u8]],
    out: &mut Vec<u8>,
) -> Result<(), FoldFailure> {
    let mut apart = Vec::new();
    let mut put = |pair: &[&[u8]], out: &mut Vec<u8>| {
        let &[earlier, later] = pair else {
            pair.iter().for_each(|one| out.extend_from_slice(one));
            return Ok(());
        };
        // A fold is promised an empty output; the last and longest of a few is made in place.
        let is_in_place = out.is_empty();
        apart.clear();
        if !is_in_place {
            apart.reserve(earlier.len() + later.len() + MORE_BYTES);
        }
        let made = if is_in_place { &mut *out } else { &mut apart };
        let result: &[u8] = match fold.fold(key, earlier, later, made)? {
            Outcome::Value if is_in_place => return Ok(()),
            Outcome::Value => &apart,
            Outcome::KeepEarlier => earlier,
            Outcome::KeepLater => later,
            Outcome::Delete => return Err(FoldFailure::new("folding these values deletes the key")),
        };
        if is_in_place {
            out.clear();
        }
        out.extend_from_slice(result);
        Ok(())
    };
    if values.len() <= 2 {
        return put(values, out);
    }
    let bytes: usize = values.iter().map(|value| value.len()).sum();
    let (mut halves, mut ends) = (Vec::with_capacity(bytes + MORE_BYTES), Vec::with_capacity(values.len()));
    for pair in values.chunks(2) {
        put(pair, &mut halves)?;
        ends.push(halves.len());
    }
    let mut begin = 0;
    let half = |end: usize| &halves[std::mem::replace(&mut begin, end)..end];
    fold_in_pairs(fold, key, &ends.into_iter().map(half).collect::<Vec<_>>(), out)
}

/// An associative function on the values of one key.
///
/// A failure or a panic affects only the key it happens on: merges keep the operands as separate
/// records, and reading that key gives an error until the operands fold again.
///
/// It is a function of its arguments, and must not use the store that calls it, which would
/// deadlock: the commit that fills the tail of a memtable folds it before the next commit may
/// begin. So a slow fold of short operands also slows the writers.
pub trait Fold: Send + Sync {
    /// The spec string of a built-in fold (`sum:i64`), or the name of a custom one. Kept by the
    /// store.
    fn spec(&self) -> String;

    /// The version of a custom fold. Built-in folds are version 1 forever.
    fn version(&self) -> u32 {
        1
    }

    /// Folds `later` onto `earlier`. `out` arrives empty; on [`Outcome::Value`] it holds the
    /// result.
    ///
    /// # Errors
    /// When the bytes are not values of this fold, or the result would not fit.
    fn fold(
        &self,
        key: &[u8],
        earlier: &[u8],
        later: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, FoldFailure>;

    /// Folds several values of a key, in order, into one: what folding them one after the other
    /// gives. Appends it to `out`; of no values that is nothing. It is the same work in fewer
    /// steps: many of the built-in folds add numbers up without making the bytes of each total
    /// between. Not for other folds: what it gives is not checked against the laws.
    ///
    /// # Errors
    /// As [`Fold::fold`], and where folding some of them deletes the key.
    #[doc(hidden)]
    fn fold_all(&self, key: &[u8], values: &[&[u8]], out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        fold_in_pairs(self, key, values, out)
    }

    /// The same fold as a function of words, if every value is a number of eight bytes and folding
    /// cannot fail: then neither readers nor merges call [`Fold::fold`]. Not for other folds, as
    /// with [`Fold::fold_all`].
    #[doc(hidden)]
    fn words(&self) -> Option<WordFold> {
        None
    }

    /// True when nothing earlier than `value` matters.
    fn short_circuit(&self, _key: &[u8], _value: &[u8]) -> bool {
        false
    }

    /// True when a complete state of `value` means that the key is absent.
    fn is_deleted(&self, _key: &[u8], _value: &[u8]) -> bool {
        false
    }

    /// True when `is_deleted` can ever hold; ops compose more freely when it cannot.
    fn has_delete(&self) -> bool {
        false
    }

    /// True when the fold is associative only up to a tolerance, which its documentation states.
    fn is_approximate(&self) -> bool {
        false
    }

    /// Checks that `value` is a well-formed value of this fold.
    ///
    /// # Errors
    /// Says what is wrong with the bytes.
    fn check(&self, _value: &[u8]) -> Result<(), FoldFailure> {
        Ok(())
    }

    /// The value as people read it, for the command line and for other languages.
    ///
    /// # Errors
    /// When the bytes are not a value of this fold.
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        Ok(Datum::from_bytes(value))
    }

    /// Encodes what a person typed, or what was in a column of a file, as an operand: `3` for
    /// `sum:u64`, `12.5` for `stats:f64`, a member for `set`. Appends the bytes to `out`.
    ///
    /// # Errors
    /// Says what was expected.
    fn read(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        out.extend_from_slice(&plain_bytes(datum)?);
        Ok(())
    }

    /// The separator, if folding concatenates the operands with a separator between them. Then long
    /// operands may be separated, and folding them copies none.
    fn joins_with(&self) -> Option<&[u8]> {
        None
    }

    /// Operands of at most `bytes_max` bytes each that fold to `value`, byte for byte, the first
    /// onto nothing, each next one onto those before it; none if that is not possible. Folding
    /// grows values beyond what a single write may have: this is how such a value is written to
    /// another store, for example. The caller folds them to check the result.
    fn pieces(&self, _value: &[u8], _bytes_max: usize) -> Option<Vec<Vec<u8>>> {
        None
    }

    /// The length of every value in bytes, if it is fixed.
    fn fixed_len(&self) -> Option<usize> {
        None
    }
}

#[cfg(test)]
#[path = "fold/tests.rs"]
mod tests;
