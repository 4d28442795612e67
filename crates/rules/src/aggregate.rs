//! What the values of many keys fold to, one after the other in the order of the keys.
//!
//! The fold of a table is made for the values of one key; over keys it is the sum of sums, the
//! least of the least, the sketch of all. A fold that uses the key gets an empty one. Called when
//! parts are summarized and when ranges are aggregated: a fold is associative, so it does not
//! matter how the keys are divided into pieces.

use crate::algebra::{Decline, FoldRules, Product};
use crate::fold::FoldFailure;

impl FoldRules {
    /// Whether the fold of values of many keys says something about all of them. `replace` and
    /// `first` do not: they drop one of two values.
    pub fn covers_many(&self) -> bool {
        !matches!(self.spec(), "replace" | "first")
    }
}

/// The values so far, folded.
#[derive(Clone, Debug, Default)]
pub struct Aggregate {
    value: Option<Vec<u8>>,
    scratch: Vec<u8>,
}

impl Aggregate {
    /// Folds the value of the next key, or the fold of the next keys, onto it.
    ///
    /// # Errors
    /// The fold fails on the two, is not available, or deletes. Then the previous value is
    /// unchanged.
    pub fn push(&mut self, rules: &FoldRules, value: &[u8]) -> Result<(), FoldFailure> {
        let Some(earlier) = &mut self.value else {
            self.value = Some(value.to_vec());
            return Ok(());
        };
        match rules.product(&[], earlier, value, &mut self.scratch) {
            Ok(Product::Out) => std::mem::swap(earlier, &mut self.scratch),
            Ok(Product::Earlier) => {}
            Ok(Product::Later) => {
                earlier.clear();
                earlier.extend_from_slice(value);
            }
            Ok(Product::Deleted) => {
                return Err(FoldFailure::new("the values of two keys fold to a deletion"));
            }
            Err(Decline::Failed(failure)) => return Err(failure),
            Err(decline) => return Err(FoldFailure::new(decline.to_string())),
        }
        Ok(())
    }

    /// What the values fold to; none if there was no value.
    pub fn value(&self) -> Option<&[u8]> {
        self.value.as_deref()
    }

    /// Takes what they fold to. The next value starts a new aggregate.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        self.value.take()
    }
}

#[cfg(test)]
#[path = "aggregate/tests.rs"]
mod tests;
