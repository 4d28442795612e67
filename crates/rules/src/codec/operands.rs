//! The operand types of [`crate::folds`] as values of typed tables.
//!
//! Only those whose bytes say all: a [`folds::Hll`], [`folds::Quantiles`] or record needs its spec to be
//! read, so tables of these have `Vec<u8>` values and read them by the fold.

use super::CodecError;
use super::value::{AsValue, Value};
use crate::folds;

/// Each with the folds of which every value is an operand by what it is made of.
macro_rules! operand_value {
    ($($operand:ident $specs:tt $put:expr;)+) => {$(
        impl AsValue<folds::$operand> for folds::$operand {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                $put(self, out);
            }
        }

        impl Value for folds::$operand {
            fn is_operand_of(spec: &str) -> bool {
                let specs: &[&str] = &$specs;
                specs.contains(&spec)
            }

            fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
                folds::$operand::from_bytes(bytes).map_err(|failure| CodecError(failure.0))
            }
        }
    )+};
}

operand_value! {
    Bitmap ["bitmap"] folds::Bitmap::put;
    ByteSet ["set", "intersect"] folds::ByteSet::put;
    Counters ["counters"] folds::Counters::put;
    ExactSum [] folds::ExactSum::put;
    Patch [] |patch: &folds::Patch, out: &mut Vec<u8>| out.extend_from_slice(patch.as_bytes());
    Stats ["stats:f64"] folds::Stats::put;
    TopK [] folds::TopK::put;
}

#[cfg(test)]
#[path = "operands/tests.rs"]
mod tests;
